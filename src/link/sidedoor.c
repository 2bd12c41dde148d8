/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/sidedoor.h"
#include "link/internal.h"
#include "link/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fabric/ep.h"
#include "util/random.h"

#define EVENTS_MAX 16
#define ACCEPTS_MAX 16 /* connections accepted in one poll */
#define PACKETS_MAX 16 /* packets taken from one neighbour in one poll */
#define SLABS_MAX 64   /* slabs of one peer, as link/shm_import.c maps */

/* A same-host rail of the peer. */
struct side_rail {
	struct wf_side_rail told;
	int gate;
};

/* A slab of the peer's that has come, and was not asked for yet. */
struct slab {
	uint64_t file;
	int fd;
};

/* Slabs shared with a neighbour. */
struct slabs {
	struct slab come[SLABS_MAX];
	uint32_t come_count;
	uint64_t lent[SLABS_MAX]; /* numbers of our slabs that the neighbour has */
	uint32_t lent_count;
};

struct wf_neighbour {
	struct wf_list node; /* place in strangers, owned or dead */
	struct wf_sidedoor *door;
	struct wf_socket *socket; /* NULL: the neighbour is dead */
	struct wf_link *link;     /* NULL: a stranger */
	struct wf_timer timer;    /* time limit of a stranger, or of rails that wait */
	bool awaited;             /* the first packet of the neighbour is still to come */
	/* The link looks for no rail before the first packet, for one may be of this host. */
	bool holds_rails;
	struct wf_socket_peer who;
	uint8_t nonce[WF_SIDE_NONCE_BYTES]; /* our nonce, for this neighbour alone */
	int leases_fd;
	struct side_rail *rails;
	uint32_t rail_count;
	struct slabs *slabs; /* NULL: no slab is shared yet */
};

struct wf_sidedoor {
	struct wf_engine *engine;
	uint64_t number;
	struct wf_socket_set *set;
	struct wf_socket *listener; /* owner NULL; of a stream, its neighbour */
	struct wf_list strangers;   /* strangers, the oldest first */
	struct wf_list owned;
	struct wf_list dead;        /* dead neighbours, kept while events may still name them */
	unsigned stranger_count;
	struct wf_timer accept_timer; /* end of a pause without descriptors */
	bool polling;
	const struct wf_sidedoor_events *events;
	int leases_fd; /* page of our leases; -1: none is shown */
};

/* A packet that has come, with its descriptors; those from @taken on are still to be closed. */
struct incoming {
	struct wf_side_packet packet;
	int fds[WF_SOCKET_FDS_MAX];
	unsigned fd_count, taken;
};

static struct wf_neighbour *neighbour_of(struct wf_list *node)
{
	return WF_CONTAINER(node, struct wf_neighbour, node);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void drop_rails(struct wf_neighbour *n)
{
	for (uint32_t i = 0; i < n->rail_count; i++)
		close_fd(&n->rails[i].gate);
	free(n->rails);
	n->rails = NULL;
	n->rail_count = 0;
}

static void drop_slabs(struct wf_neighbour *n)
{
	for (uint32_t i = 0; n->slabs && i < n->slabs->come_count; i++)
		close_fd(&n->slabs->come[i].fd);
	free(n->slabs);
	n->slabs = NULL;
}

static void reap(struct wf_sidedoor *d)
{
	struct wf_list *node;

	while ((node = wf_list_pop(&d->dead)))
		free(neighbour_of(node));
}

/* Let go of @n: a poll that runs may still name it. */
static void bury(struct wf_neighbour *n)
{
	struct wf_sidedoor *d = n->door;

	wf_timer_stop(&d->engine->loop.timers, &n->timer);
	wf_socket_close(n->socket);
	n->socket = NULL;
	close_fd(&n->leases_fd);
	close_fd(&n->who.pid_fd);
	drop_rails(n);
	drop_slabs(n);
	if (!n->link)
		d->stranger_count--;
	n->link = NULL;
	wf_list_remove(&n->node);
	wf_list_append(&d->dead, &n->node);
	if (!d->polling)
		reap(d);
}

static struct wf_neighbour *new_neighbour(struct wf_sidedoor *d)
{
	struct wf_neighbour *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->door = d;
	n->leases_fd = -1;
	n->who.pid_fd = -1;
	wf_list_init(&n->node);
	wf_random_fill(n->nonce, sizeof(n->nonce));
	return n;
}

/* Part @link from its neighbour, which has gone, or has never been one. */
static void lose(struct wf_link *link, const char *why)
{
	struct wf_neighbour *n = link->side.neighbour;
	bool held = n && n->awaited && n->holds_rails;
	const struct wf_sidedoor_events *events = link->engine->sidedoor->events;

	link->side.neighbour = NULL;
	link->side.gate_open = false;
	snprintf(link->dial.gate_text, sizeof(link->dial.gate_text), "%s", why);
	if (n)
		bury(n);
	if (held)
		events->settled(link, false);
}

static void part(struct wf_link *link)
{
	if (!link->side.neighbour)
		return;
	bury(link->side.neighbour);
	link->side.neighbour = NULL;
}

void wf_sidedoor_forget(struct wf_link *link)
{
	wf_remote_doorbell_close(link->side.remote_doorbell);
	part(link);
	if (link->side.host)
		wf_engine_unwatch_peer(link->engine, wf_host_peer_fd(link->side.host));
	wf_host_peer_close(link->side.host);
	link->side = (struct wf_sidedoor_link){ 0 };
}

/* Packets that go out. */

static void list_rails(const struct wf_engine *engine, struct wf_side_packet *p, int *fds,
		       unsigned *fd_count)
{
	for (uint32_t i = 0; i < engine->rail_count && p->rail_count < WF_SIDE_RAILS_MAX; i++) {
		const struct wf_rail *rail = engine->rails[i].rail;
		struct wf_side_rail *r = &p->rails[p->rail_count];
		int gate;

		if (!wf_rail_caps(rail)->same_host)
			continue;
		gate = wf_rail_gate_fd(rail);
		*r = (struct wf_side_rail){ .index = i, .edition = engine->rails[i].edition,
					    .gate = gate >= 0 };
		r->address_bytes = (uint32_t)wf_rail_address(rail, r->address);
		if (r->gate)
			fds[(*fd_count)++] = gate;
		p->rail_count++;
	}
}

static int send_packet(struct wf_neighbour *n, const struct wf_side_packet *p, const int *fds,
		       unsigned fd_count)
{
	uint8_t bytes[WF_SIDE_BYTES_MAX];

	return wf_socket_send(n->socket, bytes, wf_side_put(p, bytes), fds, fd_count);
}

static int send_meet(struct wf_neighbour *n)
{
	const struct wf_link *link = n->link;
	const struct wf_engine *engine = link->engine;
	struct wf_side_packet p = {
		.kind = WF_SIDE_MEET,
		.link = link->id,
		.token = link->token,
		.peer_link = link->peer->link,
		.peer_token = link->peer->token,
		.nonce_address = (uintptr_t)n->nonce,
		.side = n->door->number,
		.bell = engine->bell,
		.lends = n->door->leases_fd >= 0,
	};
	int fds[WF_SIDE_FDS_MAX];
	unsigned fd_count = 0;

	memcpy(p.nonce, n->nonce, sizeof(p.nonce));
	if (engine->bell) {
		wf_doorbell_fds(engine->bell, fds);
		fd_count = 2;
	}
	if (p.lends)
		fds[fd_count++] = n->door->leases_fd;
	list_rails(engine, &p, fds, &fd_count);
	return send_packet(n, &p, fds, fd_count);
}

void wf_sidedoor_tell(struct wf_link *link)
{
	struct wf_side_packet p = { .kind = WF_SIDE_RAILS };
	int fds[WF_SIDE_FDS_MAX];
	unsigned fd_count = 0;

	if (!link->side.neighbour || link->side.neighbour->awaited)
		return;
	list_rails(link->engine, &p, fds, &fd_count);
	/* A peer that does not read does not hear of the rails, and finds them closed. */
	if (send_packet(link->side.neighbour, &p, fds, fd_count))
		lose(link, "its side door takes nothing");
}

/* Packets that come in. */

static int take_fd(struct incoming *incoming)
{
	return incoming->fds[incoming->taken++];
}

static void drop_fds(struct incoming *incoming)
{
	while (incoming->taken < incoming->fd_count)
		(void)close(take_fd(incoming));
}

static void take_rails(struct wf_neighbour *n, struct incoming *incoming)
{
	const struct wf_side_packet *p = &incoming->packet;

	drop_rails(n);
	n->rails = calloc(p->rail_count, sizeof(*n->rails));
	if (!n->rails)
		return; /* the rails stay unknown, and the caller closes the descriptors */
	for (uint32_t i = 0; i < p->rail_count; i++) {
		n->rails[i].told = p->rails[i];
		n->rails[i].gate = p->rails[i].gate ? take_fd(incoming) : -1;
	}
	n->rail_count = p->rail_count;
}

/*
 * Judge whether same-host rails can reach the process of @n: link->side.gate_open, or why not in
 * link->dial.gate_text.  Returns whether that is final.  false: the nonce is not there any more, as
 * the process has let go of its end of the link meanwhile, and the next one may be reached.
 */
static bool judge(struct wf_neighbour *n, const struct wf_side_packet *p)
{
	struct wf_link *link = n->link;
	int err;

	link->side.gate_open = false;
	/* Frames that are on their way already may be longer than a same-host rail takes. */
	if (link->stage >= WF_LINK_STAGE_PONGED) {
		snprintf(link->dial.gate_text, sizeof(link->dial.gate_text),
			 "it came to the side door too late");
		return true;
	}
	if (!n->who.pid) {
		snprintf(link->dial.gate_text, sizeof(link->dial.gate_text),
			 "its pid namespace can't be seen from this one");
		return true;
	}
	err = wf_host_probe(n->who.pid, p->nonce_address, p->nonce, sizeof(p->nonce));
	if (err) {
		snprintf(link->dial.gate_text, sizeof(link->dial.gate_text),
			 "the memory of its process %" PRIu64 " can't be read: %s", n->who.pid,
			 err == -EBADMSG ? "it holds another nonce" : wf_error_name(err));
		return err != -EBADMSG;
	}
	link->side.within_process = wf_host_is_this(n->who.pid);
	link->side.gate_open = true;
	link->dial.gate_text[0] = '\0';
	n->door->events->opened(link);
	return true;
}

/* Take the first packet of the peer of n->link.  Returns as judge(). */
static bool take_meet(struct wf_neighbour *n, struct incoming *incoming)
{
	const struct wf_side_packet *p = &incoming->packet;
	struct wf_link *link = n->link;
	struct wf_engine *engine = link->engine;
	bool settled = judge(n, p);

	if (p->bell) {
		int bell = take_fd(incoming), page = take_fd(incoming);

		wf_remote_doorbell_close(link->side.remote_doorbell);
		if (wf_remote_doorbell_open(bell, page, &link->side.remote_doorbell))
			link->side.remote_doorbell = NULL;
	}
	close_fd(&n->leases_fd);
	if (p->lends)
		n->leases_fd = take_fd(incoming);
	take_rails(n, incoming);
	/* The watch on the process is a help, not a need: without it the door tells its end. */
	if (link->side.host || n->who.pid_fd < 0)
		return settled;
	if (wf_host_peer_open(n->who.pid_fd, p->side, &link->side.host))
		link->side.host = NULL;
	else
		wf_engine_watch_peer(engine, wf_host_peer_fd(link->side.host), link->id);
	n->who.pid_fd = -1;
	return settled;
}

/* Is @p from the peer of @link, and to this node? */
static bool is_between(const struct wf_link *link, const struct wf_side_packet *p)
{
	return wf_link_greeted(link) && link->token == p->peer_token && link->id == p->peer_link &&
	       link->peer->link == p->link && link->peer->token == p->token;
}

/*
 * Enter a stranger as the neighbour of the link that its first packet names.  False: there is no
 * such link.
 */
static bool enter(struct wf_neighbour *n, struct incoming *incoming)
{
	const struct wf_side_packet *p = &incoming->packet;
	struct wf_sidedoor *d = n->door;
	struct wf_link *link = wf_table_get(&d->engine->links, p->peer_link);

	if (p->kind != WF_SIDE_MEET || !link || link->dialler || !is_between(link, p))
		return false;
	part(link);
	wf_timer_stop(&d->engine->loop.timers, &n->timer);
	wf_list_remove(&n->node);
	wf_list_append(&d->owned, &n->node);
	d->stranger_count--;
	n->link = link;
	link->side.neighbour = n;
	take_meet(n, incoming);
	if (send_meet(n))
		lose(link, "its side door takes nothing");
	return true;
}

/* Returns the slabs of @n, made at need; NULL: out of memory. */
static struct slabs *slabs_of(struct wf_neighbour *n)
{
	if (!n->slabs)
		n->slabs = calloc(1, sizeof(*n->slabs));
	return n->slabs;
}

static void keep_slab(struct wf_neighbour *n, struct incoming *incoming)
{
	struct slabs *s = slabs_of(n);

	if (!s)
		return; /* the body is pulled, and the caller closes the descriptor */
	/* A slab that was never asked for makes room: its body is pulled. */
	if (s->come_count == SLABS_MAX) {
		close_fd(&s->come[0].fd);
		memmove(s->come, s->come + 1, sizeof(s->come) - sizeof(s->come[0]));
		s->come_count--;
	}
	s->come[s->come_count++] = (struct slab){ incoming->packet.file, take_fd(incoming) };
}

static void forget_lent(struct slabs *s, uint64_t file)
{
	for (uint32_t i = s ? s->lent_count : 0; i-- > 0;)
		if (s->lent[i] == file)
			s->lent[i] = s->lent[--s->lent_count];
}

/* Take a packet of the peer of n->link.  Returns NULL, or what is wrong with the packet. */
static const char *take(struct wf_neighbour *n, struct incoming *incoming)
{
	struct wf_link *link = n->link;
	bool settled;

	switch (incoming->packet.kind) {
	case WF_SIDE_MEET:
		if (!n->awaited || !is_between(link, &incoming->packet))
			return "another answers at its side door";
		n->awaited = false;
		wf_timer_stop(&link->engine->loop.timers, &n->timer);
		settled = take_meet(n, incoming);
		if (n->holds_rails)
			n->door->events->settled(link, settled);
		return NULL;
	case WF_SIDE_RAILS:
		take_rails(n, incoming);
		return NULL;
	case WF_SIDE_SLAB:
		keep_slab(n, incoming);
		return NULL;
	case WF_SIDE_DROPPED:
		forget_lent(n->slabs, incoming->packet.file);
		return NULL;
	}
	return "it breaks the protocol of side doors";
}

/* Receive one packet.  -EAGAIN: there is none. */
static int receive(struct wf_neighbour *n, struct incoming *incoming)
{
	uint8_t bytes[WF_SIDE_BYTES_MAX];
	ssize_t got = wf_socket_receive(n->socket, bytes, sizeof(bytes), incoming->fds,
					&incoming->fd_count);
	int err;

	incoming->taken = 0;
	if (got <= 0) {
		incoming->fd_count = 0;
		return got ? (int)got : -ECONNRESET;
	}
	err = wf_side_get(bytes, (size_t)got, &incoming->packet, NULL);
	if (!err && wf_side_fds(&incoming->packet) != incoming->fd_count)
		err = -EBADMSG;
	if (err)
		drop_fds(incoming);
	return err;
}

static void hear_stranger(struct wf_neighbour *n)
{
	struct incoming incoming;
	int err = receive(n, &incoming);

	if (err == -EAGAIN)
		return;
	if (err || !enter(n, &incoming))
		bury(n);
	if (!err)
		drop_fds(&incoming);
}

/* Take the packets of @n, which may be gone after this. */
static void hear(struct wf_neighbour *n)
{
	struct wf_link *link = n->link;

	for (int i = 0; i < PACKETS_MAX && link->side.neighbour == n; i++) {
		const char *wrong = NULL;
		struct incoming incoming;
		int err = receive(n, &incoming);

		if (err == -EAGAIN)
			break;
		if (!err)
			wrong = take(n, &incoming);
		drop_fds(&incoming);
		if (err)
			wrong = err == -ECONNRESET ? "its side door has closed"
						   : "its side door can't be read";
		if (wrong && link->side.neighbour == n)
			lose(link, wrong);
	}
}

void wf_sidedoor_hear(struct wf_link *link)
{
	struct wf_sidedoor *d = link->engine->sidedoor;
	bool polling;

	if (!link->side.neighbour || link->side.neighbour->awaited)
		return;
	polling = d->polling;
	d->polling = true;
	hear(link->side.neighbour);
	d->polling = polling;
	if (!polling)
		reap(d);
}

/* Meetings. */

static void stranger_late(struct wf_timer *timer)
{
	bury(WF_CONTAINER(timer, struct wf_neighbour, timer));
}

static void meet_late(struct wf_timer *timer)
{
	struct wf_neighbour *n = WF_CONTAINER(timer, struct wf_neighbour, timer);

	lose(n->link, "it does not answer at its side door");
}

static const char *why_not(int err)
{
	switch (err) {
	case -ENOENT:
	case -ECONNREFUSED:
		return "it runs on another host, or has another /dev/shm";
	case -EACCES:
		return "it runs as another user";
	default:
		return wf_error_name(err);
	}
}

static int connect_to(struct wf_neighbour *n, struct wf_link *link)
{
	int err = wf_socket_meet(n->door->set, link->peer->side, n, &n->socket);

	if (!err)
		err = wf_socket_peer(n->socket, &n->who);
	if (!err && n->who.uid != geteuid())
		err = -EACCES;
	n->link = link;
	return err ? err : send_meet(n);
}

/* Do any of our rails and the peer's wait for a meeting? */
static bool is_wanted(const struct wf_link *link)
{
	const struct wf_engine *engine = link->engine;

	for (uint32_t i = 0; i < engine->rail_count; i++)
		for (uint32_t j = 0; j < link->peer->rail_count; j++)
			if (wf_rail_caps(engine->rails[i].rail)->same_host &&
			    link->peer->rails[j].same_host)
				return true;
	return false;
}

/* Is @err a shortage, of descriptors or of places in the backlog, that may be over soon? */
static bool is_temporary(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS ||
	       err == -EAGAIN;
}

bool wf_sidedoor_meet(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;
	struct wf_sidedoor *d = engine->sidedoor;
	struct wf_neighbour *n;
	int err;

	link->side.gate_open = false;
	snprintf(link->dial.gate_text, sizeof(link->dial.gate_text), "%s",
		 !d ? "this node has no side door" : "the peer has no side door");
	if (!d || !link->peer->side || link->side.neighbour)
		return false;
	n = new_neighbour(d);
	err = n ? connect_to(n, link) : -ENOMEM;
	link->side.beside = !err || err == -EACCES;
	if (err) {
		snprintf(link->dial.gate_text, sizeof(link->dial.gate_text), "%s", why_not(err));
		if (n)
			bury(n);
		if (!is_temporary(err) || !is_wanted(link))
			return false;
		d->events->settled(link, false);
		return true;
	}
	link->side.neighbour = n;
	wf_list_append(&d->owned, &n->node);
	n->awaited = true;
	n->holds_rails = is_wanted(link);
	wf_loop_timer(&engine->loop, &n->timer, engine->loop.now_ns + WF_SIDEDOOR_WAIT_NS,
		      meet_late);
	return n->holds_rails;
}

/* Bury the oldest stranger; false if there is none. */
static bool evict(struct wf_sidedoor *d)
{
	struct wf_list *oldest = wf_list_first(&d->strangers);

	if (oldest)
		bury(neighbour_of(oldest));
	return oldest;
}

static void accept_again(struct wf_timer *timer)
{
	struct wf_sidedoor *d = WF_CONTAINER(timer, struct wf_sidedoor, accept_timer);

	wf_socket_want(d->listener, WF_SOCKET_READABLE);
}

/* Accept no more for a while: a listener that nobody can accept from stays readable. */
static void pause_accepting(struct wf_sidedoor *d)
{
	struct wf_loop *loop = &d->engine->loop;

	wf_socket_want(d->listener, 0);
	wf_loop_timer(loop, &d->accept_timer, loop->now_ns + WF_SOCKET_ACCEPT_PAUSE_NS,
		      accept_again);
}

/* Accept one connection.  Has one come? */
static bool accept_one(struct wf_sidedoor *d)
{
	struct wf_engine *engine = d->engine;
	struct wf_socket *s;
	struct wf_neighbour *n;
	int err;

	do
		err = wf_socket_accept(d->listener, &s, NULL);
	while (err == -EMFILE && evict(d));
	if (err == -EMFILE || err == -EPERM)
		pause_accepting(d);
	if (err)
		return false;
	n = new_neighbour(d);
	if (!n) {
		wf_socket_close(s);
		return true;
	}
	if (d->stranger_count == WF_SIDEDOOR_STRANGERS_MAX)
		(void)evict(d);
	n->socket = s;
	wf_socket_own(s, n);
	wf_list_append(&d->strangers, &n->node);
	d->stranger_count++;
	wf_loop_timer(&engine->loop, &n->timer, engine->loop.now_ns + WF_SIDEDOOR_STRANGER_NS,
		      stranger_late);
	/* The kernel names the user before anything of the stranger's is read. */
	if (wf_socket_peer(s, &n->who) || n->who.uid != geteuid())
		bury(n);
	else
		hear_stranger(n);
	return true;
}

void wf_sidedoor_poll(struct wf_sidedoor *d)
{
	struct wf_socket_event events[EVENTS_MAX];
	int count;

	d->polling = true;
	count = wf_socket_set_poll(d->set, events, EVENTS_MAX);
	for (int i = 0; i < count; i++) {
		struct wf_neighbour *n = events[i].owner;

		if (!n)
			for (int j = 0; j < ACCEPTS_MAX && accept_one(d); j++)
				;
		else if (n->link)
			hear(n);
		else if (n->socket)
			hear_stranger(n);
	}
	d->polling = false;
	reap(d);
}

int wf_sidedoor_fd(const struct wf_sidedoor *d)
{
	return wf_socket_set_fd(d->set);
}

void wf_sidedoor_show_leases(struct wf_sidedoor *d, int fd)
{
	d->leases_fd = fd;
}

int wf_sidedoor_open(struct wf_engine *engine, uint64_t number,
		     const struct wf_sidedoor_events *events, struct wf_sidedoor **door,
		     struct wf_error *e)
{
	struct wf_sidedoor *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return wf_error_set(e, -ENOMEM, "a side door: out of memory");
	d->engine = engine;
	d->number = number;
	d->events = events;
	d->leases_fd = -1;
	wf_list_init(&d->strangers);
	wf_list_init(&d->owned);
	wf_list_init(&d->dead);
	err = wf_socket_set_open(&d->set, e);
	if (err)
		goto free_door;
	err = wf_socket_listen_beside(d->set, number, NULL, &d->listener, e);
	if (err)
		goto close_set;

	*door = d;
	return 0;

close_set:
	wf_socket_set_close(d->set);
free_door:
	free(d);
	return err;
}

void wf_sidedoor_close(struct wf_sidedoor *d)
{
	struct wf_list *node;

	if (!d)
		return;
	while ((node = wf_list_first(&d->strangers)) || (node = wf_list_first(&d->owned)))
		bury(neighbour_of(node));
	wf_timer_stop(&d->engine->loop.timers, &d->accept_timer);
	wf_socket_close(d->listener);
	wf_socket_sweep_beside(d->number);
	wf_socket_set_close(d->set);
	free(d);
}

void wf_sidedoor_forked(struct wf_sidedoor *d)
{
	wf_socket_set_forked(d->set);
}

/* Requests of rails and bodies. */

int wf_sidedoor_ep_open(struct wf_link *link, struct wf_rail *rail, uint32_t theirs,
			struct wf_ep **ep, struct wf_error *e)
{
	const struct wf_greet_rail *told = &link->peer->rails[theirs];
	const struct wf_neighbour *n;

	wf_sidedoor_hear(link);
	n = link->side.neighbour;
	for (uint32_t i = 0; n && i < n->rail_count; i++) {
		const struct wf_side_rail *r = &n->rails[i].told;

		if (r->index == theirs && r->edition == told->edition)
			return wf_ep_open_here(rail, r->address, r->address_bytes,
					       (uint32_t)n->who.pid, n->rails[i].gate, link, ep, e);
	}
	return wf_error_set(e, -EHOSTUNREACH, "%s: the peer's address has not come by its side door",
			    told->provider);
}

int wf_sidedoor_take_leases(struct wf_link *link)
{
	struct wf_neighbour *n = link->side.neighbour;
	int fd = n ? n->leases_fd : -1;

	if (fd < 0)
		return -ENOENT;
	n->leases_fd = -1;
	return fd;
}

int wf_sidedoor_take_slab(struct wf_link *link, uint64_t file)
{
	struct slabs *s;
	int fd;

	wf_sidedoor_hear(link);
	s = link->side.neighbour ? link->side.neighbour->slabs : NULL;
	for (uint32_t i = 0; s && i < s->come_count; i++) {
		if (s->come[i].file != file)
			continue;
		fd = s->come[i].fd;
		s->come[i] = s->come[--s->come_count];
		return fd;
	}
	return -ENOENT;
}

int wf_sidedoor_give_slab(struct wf_link *link, uint64_t file, int fd)
{
	struct wf_side_packet p = { .kind = WF_SIDE_SLAB, .file = file };
	struct wf_neighbour *n = link->side.neighbour;
	struct slabs *s;
	int err;

	if (!n || n->awaited)
		return -ENOTCONN;
	s = slabs_of(n);
	if (!s)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->lent_count; i++)
		if (s->lent[i] == file)
			return 0;
	err = send_packet(n, &p, &fd, 1);
	if (err)
		return err;
	/* The slab whose number makes room is sent again when it is next needed. */
	if (s->lent_count == SLABS_MAX)
		forget_lent(s, s->lent[0]);
	s->lent[s->lent_count++] = file;
	return 0;
}

int wf_sidedoor_drop_slab(struct wf_link *link, uint64_t file)
{
	struct wf_side_packet p = { .kind = WF_SIDE_DROPPED, .file = file };

	if (!link->side.neighbour)
		return 0;
	return send_packet(link->side.neighbour, &p, NULL, 0);
}
