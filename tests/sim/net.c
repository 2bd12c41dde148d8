/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/net.h"
#include "link/doorbell.h"
#include "link/host.h"
#include "link/socket.h"
#include "util/clock.h"
#include "util/list.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define NODES_MAX 1024        /* hosts opened between two resets */
#define PAIRS_MAX 1024        /* faults of one kind at once */
#define PIPE_BYTES (64 * KIB) /* under way in one direction: little, so that writers meet the end */
#define SYN_TRIES 3           /* a second apart, as a kernel does */
#define NEVER UINT64_MAX
#define SIDE_NS WF_NS_PER_US /* until a packet of a side door wakes its reader */

enum stage { LISTENER, DIALLING, DIALLED, FAILED, STREAM, SIDE_LISTENER, SIDE_STREAM };

struct piece {
	struct wf_list node;
	uint64_t at_ns; /* when it is there */
	size_t count, used;
	uint8_t bytes[];
};

/* One direction. */
struct pipe {
	struct wf_list pieces;
	size_t bytes;      /* in pieces */
	uint64_t last_ns;  /* nothing overtakes what arrives then */
	uint64_t end_ns;   /* when the reader finds the end; NEVER: it is open */
	char from[WF_SOCKET_ADDRESS_BYTES], to[WF_SOCKET_ADDRESS_BYTES];
};

/* Shared by both ends; the last one frees it. */
struct stream {
	struct pipe pipes[2]; /* [side] carries what that side writes */
	bool reset;
	int forgotten; /* 1 + the side that knows nothing of it any more; 0: both do */
	int ends;
};

/* One packet of a side door. */
struct packet {
	struct wf_list node;
	size_t count;
	unsigned fd_count;
	int fds[WF_SOCKET_FDS_MAX];
	uint8_t bytes[];
};

struct wf_socket {
	struct wf_list node; /* in set->members; waiting ones in listener->waiting */
	struct wf_list waiting;
	struct wf_socket_set *set;
	void *owner;
	enum stage stage;
	unsigned want;
	bool away; /* between two sets */
	struct stream *stream;
	int side;
	/* a listener, or a dial */
	char address[WF_SOCKET_ADDRESS_BYTES];
	uint64_t syn_ns, answer_ns; /* when the dial arrives, and its answer; NEVER: has, or not yet */
	int tries, outcome;
	/* one that waits to be accepted */
	char remote[WF_SOCKET_ADDRESS_BYTES];
	/* a side door, or a stream of packets there */
	uint64_t number;
	bool alone;               /* on a host of its own */
	struct wf_socket *other;  /* NULL: that has closed */
	struct wf_list packets;   /* that have come */
	uint64_t news_ns;         /* when its reader is woken by the last of them, or by the end */
};

struct wf_socket_set {
	struct wf_list node; /* in sets */
	struct wf_list members;
	char address[WF_SOCKET_ADDRESS_BYTES]; /* of its listener: the node's name; "": the set before has it */
	int fd;
	bool dead;
};

struct pair {
	char from[WF_SOCKET_ADDRESS_BYTES], to[WF_SOCKET_ADDRESS_BYTES];
};

struct pairs {
	struct pair all[PAIRS_MAX];
	size_t count;
};

static struct wf_list sets = { &sets, &sets };
static uint64_t random_state;
static struct pairs silences, refusals;
static size_t dial_count; /* dials without an answer yet */
static unsigned next_port = 40000, last_pid;
static uint64_t last_number;         /* of a host's marker and side door */
static unsigned pids[NODES_MAX + 1]; /* whose it is */
static bool same_host;
static unsigned starved_count; /* dials of side doors that are still to fail */
static bool process_dead[NODES_MAX];
static struct wf_list watchers = { &watchers, &watchers }; /* struct wf_host_peer */

/* splitmix64: any seed will do. */
static uint64_t draw(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t preset_delay_ns(void *ctx, uint64_t random)
{
	(void)ctx;
	return (20 + random % 101) * WF_NS_PER_US;
}

static uint64_t (*delay_fn)(void *ctx, uint64_t random) = preset_delay_ns;
static void *delay_ctx;

static uint64_t arrival_ns(void)
{
	return wf_clock_now() + delay_fn(delay_ctx, draw());
}

static const char *host_of_all;

void wf_net_set_host(const char *host)
{
	host_of_all = host;
}

static void (*tamper_with)(uint8_t *bytes, size_t count);

void wf_net_set_tamper(void (*tamper)(uint8_t *bytes, size_t count))
{
	tamper_with = tamper;
}

void wf_net_reset(uint64_t seed)
{
	host_of_all = "127.0.0.1";
	assert(wf_list_empty(&sets) && wf_list_empty(&watchers));
	random_state = seed;
	next_port = 40000;
	last_pid = 0;
	last_number = 0;
	same_host = false;
	starved_count = 0;
	silences.count = refusals.count = 0;
	tamper_with = NULL;
	dial_count = 0;
	memset(process_dead, 0, sizeof(process_dead));
	wf_net_set_delay(preset_delay_ns, NULL);
}

void wf_net_set_delay(uint64_t (*delay_ns)(void *ctx, uint64_t random), void *ctx)
{
	delay_fn = delay_ns;
	delay_ctx = ctx;
}

static struct pair *find_pair(struct pairs *pairs, const char *from, const char *to)
{
	for (size_t i = 0; i < pairs->count; i++)
		if (!strcmp(pairs->all[i].from, from) && !strcmp(pairs->all[i].to, to))
			return &pairs->all[i];
	return NULL;
}

static void set_pair(struct pairs *pairs, const char *from, const char *to, bool on)
{
	struct pair *pair = find_pair(pairs, from, to);

	if (on == !!pair)
		return;
	if (!on) {
		*pair = pairs->all[--pairs->count];
		return;
	}
	assert(pairs->count < PAIRS_MAX);
	pair = &pairs->all[pairs->count++];
	(void)snprintf(pair->from, sizeof(pair->from), "%s", from);
	(void)snprintf(pair->to, sizeof(pair->to), "%s", to);
}

void wf_net_refuse(const char *address, bool on)
{
	set_pair(&refusals, "", address, on);
}

void wf_net_silence(const char *from, const char *to, bool on)
{
	set_pair(&silences, from, to, on);
}

static bool is_silent(const char *from, const char *to)
{
	return silences.count && *to && find_pair(&silences, from, to);
}

#define EACH_SOCKET(s, set)                                                    \
	for (struct wf_list *s##_at = (set)->members.next, *s##_next = s##_at->next; \
	     s##_at != &(set)->members; s##_at = s##_next, s##_next = s##_at->next)  \
		for (struct wf_socket *s = WF_CONTAINER(s##_at, struct wf_socket, node); s; s = NULL)

static struct wf_socket_set *set_of(struct wf_list *node)
{
	return WF_CONTAINER(node, struct wf_socket_set, node);
}

/* A node opens the set that listens first, and closes it last. */
static const char *name_of(const struct wf_socket_set *set)
{
	const struct wf_list *at = &set->node;

	while (!set->address[0] && at->prev != &sets) {
		at = at->prev;
		set = WF_CONTAINER(at, struct wf_socket_set, node);
	}
	return set->address;
}

static struct wf_socket *listener_at(const char *address)
{
	WF_LIST_EACH(node, &sets)
		EACH_SOCKET(s, set_of(node))
			if (s->stage == LISTENER && !s->set->dead && !strcmp(s->address, address))
				return s;
	return NULL;
}

/* Streams. */

static struct pipe *in_of(const struct wf_socket *s)
{
	return &s->stream->pipes[!s->side];
}

static struct pipe *out_of(const struct wf_socket *s)
{
	return &s->stream->pipes[s->side];
}

static struct stream *new_stream(const char *a, const char *b)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	assert(stream);
	for (int i = 0; i < 2; i++) {
		struct pipe *p = &stream->pipes[i];

		wf_list_init(&p->pieces);
		p->end_ns = NEVER;
		(void)snprintf(p->from, sizeof(p->from), "%s", i ? b : a);
		(void)snprintf(p->to, sizeof(p->to), "%s", i ? a : b);
	}
	stream->ends = 2;
	return stream;
}

static struct piece *first_piece(const struct pipe *p)
{
	struct wf_list *node = wf_list_first(&p->pieces);

	return node ? WF_CONTAINER(node, struct piece, node) : NULL;
}

static void drop_first(struct pipe *p)
{
	struct piece *piece = first_piece(p);

	p->bytes -= piece->count - piece->used;
	wf_list_remove(&piece->node);
	free(piece);
}

static void put_stream(struct stream *stream)
{
	if (--stream->ends)
		return;
	for (int i = 0; i < 2; i++)
		while (first_piece(&stream->pipes[i]))
			drop_first(&stream->pipes[i]);
	free(stream);
}

/* The writer has closed: the reader finds the end after all that is under way. */
static void end_pipe(struct pipe *p)
{
	if (p->end_ns == NEVER)
		p->end_ns = WF_MAX(p->last_ns, arrival_ns());
}

/* When the reader of @p has something to read, or its end; NEVER: not as things are. */
static uint64_t readable_ns(const struct pipe *p)
{
	struct piece *piece = first_piece(p);

	if (is_silent(p->from, p->to))
		return NEVER;
	return piece ? piece->at_ns : p->end_ns;
}

static void add_piece(struct pipe *p, const uint8_t *bytes, size_t count)
{
	struct piece *piece = malloc(sizeof(*piece) + count);

	assert(piece);
	p->last_ns = WF_MAX(p->last_ns, arrival_ns());
	piece->at_ns = p->last_ns;
	piece->count = count;
	piece->used = 0;
	memcpy(piece->bytes, bytes, count);
	p->bytes += count;
	wf_list_append(&p->pieces, &piece->node);
}

static bool is_reset(const struct wf_socket *s)
{
	return s->stream->reset || s->stream->forgotten == 1 + s->side;
}

ssize_t wf_socket_read(struct wf_socket *s, void *bytes, size_t count)
{
	struct pipe *p = in_of(s);
	struct piece *piece = first_piece(p);

	if (!s->set->dead && readable_ns(p) <= wf_clock_now() && piece) {
		count = WF_MIN(count, piece->count - piece->used);
		memcpy(bytes, piece->bytes + piece->used, count);
		piece->used += count;
		p->bytes -= count;
		if (piece->used == piece->count)
			drop_first(p);
		return (ssize_t)count;
	}
	if (is_reset(s))
		return -ECONNRESET;
	return s->set->dead || readable_ns(p) <= wf_clock_now() ? 0 : -EAGAIN;
}

/* Has word come that the peer reads no more? */
static bool is_broken(const struct wf_socket *s)
{
	const struct pipe *in = in_of(s);

	return is_reset(s) || s->set->dead ||
	       (in->end_ns <= wf_clock_now() && !is_silent(in->from, in->to));
}

ssize_t wf_socket_write(struct wf_socket *s, const void *bytes, size_t count)
{
	static uint8_t written[PIPE_BYTES];
	struct pipe *p = out_of(s);
	size_t first;

	if (is_broken(s))
		return -EPIPE;
	if (s->stream->forgotten)
		s->stream->reset = true; /* that is the answer */
	count = WF_MIN(count, PIPE_BYTES - p->bytes);
	if (!count)
		return -EAGAIN;
	if (in_of(s)->end_ns != NEVER)
		return (ssize_t)count; /* the peer has gone: nobody will read it */
	memcpy(written, bytes, count);
	if (tamper_with)
		tamper_with(written, count);
	/* In two pieces, so that readers meet every border. */
	first = draw() % count;
	if (first)
		add_piece(p, written, first);
	add_piece(p, written + first, count - first);
	return (ssize_t)count;
}

/* Sets. */

int wf_socket_set_open(struct wf_socket_set **set, struct wf_error *e)
{
	struct wf_socket_set *s = calloc(1, sizeof(*s));

	if (!s)
		return wf_error_set(e, -ENOMEM, "net: out of memory");
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert(s->fd >= 0);
	wf_list_init(&s->members);
	wf_list_append(&sets, &s->node);
	*set = s;
	return 0;
}

void wf_socket_set_close(struct wf_socket_set *set)
{
	if (!set)
		return;
	assert(wf_list_empty(&set->members));
	wf_list_remove(&set->node);
	(void)close(set->fd);
	free(set);
}

int wf_socket_set_fd(const struct wf_socket_set *set)
{
	return set->fd;
}

void wf_socket_set_forked(struct wf_socket_set *set)
{
	(void)close(set->fd);
}

static struct wf_socket *new_socket(struct wf_socket_set *set, void *owner, enum stage stage)
{
	struct wf_socket *s = calloc(1, sizeof(*s));

	assert(s);
	s->set = set;
	s->owner = owner;
	s->stage = stage;
	s->want = WF_SOCKET_READABLE;
	s->syn_ns = NEVER;
	s->answer_ns = NEVER;
	wf_list_init(&s->waiting);
	wf_list_init(&s->packets);
	wf_list_append(&set->members, &s->node);
	return s;
}

int wf_socket_split(const char *address, char *host, size_t host_bytes, uint16_t *port,
		    struct wf_error *e)
{
	const char *colon = strrchr(address, ':');
	size_t length = colon ? (size_t)(colon - address) : 0;

	if (!length || length >= host_bytes)
		return wf_error_set(e, -EINVAL, "\"%.200s\": expected host:port", address);
	memcpy(host, address, length);
	host[length] = '\0';
	*port = (uint16_t)strtoul(colon + 1, NULL, 10);
	return 0;
}

int wf_socket_listen(struct wf_socket_set *set, const char *address, bool beyond_loopback,
		     void *owner, struct wf_socket **listener,
		     char bound[WF_SOCKET_ADDRESS_BYTES], struct wf_error *e)
{
	char host[128];
	struct wf_socket *s;
	uint16_t port;
	int err;

	(void)beyond_loopback; /* no address here is beyond anything */
	err = wf_socket_split(address, host, sizeof(host), &port, e);
	if (err)
		return err;
	(void)snprintf(bound, WF_SOCKET_ADDRESS_BYTES, "%s:%u", host, port ? port : next_port++);
	if (listener_at(bound))
		return wf_error_set(e, -EADDRINUSE, "listen on %s: %s", bound,
				    wf_error_name(-EADDRINUSE));
	s = new_socket(set, owner, LISTENER);
	(void)snprintf(s->address, sizeof(s->address), "%s", bound);
	(void)snprintf(set->address, sizeof(set->address), "%s", bound);
	*listener = s;
	return 0;
}

int wf_socket_accept(struct wf_socket *listener, struct wf_socket **accepted,
		     char from[WF_SOCKET_ADDRESS_BYTES])
{
	struct wf_list *node = wf_list_pop(&listener->waiting);
	struct wf_socket *s;

	if (!node)
		return -EAGAIN;
	s = WF_CONTAINER(node, struct wf_socket, node);
	s->set = listener->set;
	wf_list_append(&s->set->members, &s->node);
	if (from)
		(void)snprintf(from, WF_SOCKET_ADDRESS_BYTES, "%s", s->remote);
	*accepted = s;
	return 0;
}

int wf_socket_check_user(struct wf_socket *s, bool dialled, struct wf_error *e)
{
	(void)s;
	(void)dialled;
	(void)e;
	return 0; /* one user has all the nodes */
}

int wf_socket_dial(struct wf_socket_set *set, const char *address, void *owner,
		   struct wf_socket **dialling, struct wf_error *e)
{
	char host[128];
	struct wf_socket *s;
	uint16_t port;
	int err = wf_socket_split(address, host, sizeof(host), &port, e);

	if (err)
		return err;
	s = new_socket(set, owner, DIALLING);
	if (strcmp(host, WF_NET_ALIAS))
		(void)snprintf(s->address, sizeof(s->address), "%s", address);
	else
		(void)snprintf(s->address, sizeof(s->address), "%s:%u", host_of_all, port);
	s->syn_ns = arrival_ns();
	dial_count++;
	*dialling = s;
	return 0;
}

/* A dial arrives where it goes, or is lost. */
static void arrive(struct wf_socket *s)
{
	const char *here = name_of(s->set);
	struct wf_socket *listener, *end;
	char host[128];
	uint16_t port;

	if (is_silent(here, s->address) || is_silent(s->address, here)) {
		s->syn_ns = ++s->tries < SYN_TRIES ? s->syn_ns + WF_NS_PER_S : NEVER;
		if (s->syn_ns == NEVER) {
			s->outcome = -ETIMEDOUT;
			s->answer_ns = wf_clock_now() + WF_NS_PER_S;
		}
		return;
	}
	listener = find_pair(&refusals, "", s->address) ? NULL : listener_at(s->address);
	s->syn_ns = NEVER;
	s->answer_ns = arrival_ns();
	if (!listener) {
		s->outcome = -ECONNREFUSED;
		return;
	}
	s->outcome = 0;
	s->stream = new_stream(here, s->address);
	end = new_socket(listener->set, NULL, STREAM);
	end->stream = s->stream;
	end->side = 1;
	if (wf_socket_split(here, host, sizeof(host), &port, NULL))
		strcpy(host, "nobody");
	(void)snprintf(end->remote, sizeof(end->remote), "%s:%u", host, next_port++);
	wf_list_remove(&end->node);
	wf_list_append(&listener->waiting, &end->node);
}

/* Let everything arrive that has come by now. */
static void run(void)
{
	uint64_t now = wf_clock_now();

	if (!dial_count)
		return;
	WF_LIST_EACH(node, &sets) {
		EACH_SOCKET(s, set_of(node)) {
			if (s->syn_ns <= now)
				arrive(s);
			if (s->answer_ns <= now && !(s->stream && is_silent(s->address, name_of(s->set)))) {
				s->stage = s->outcome ? FAILED : DIALLED;
				s->answer_ns = NEVER;
				dial_count--;
			}
		}
	}
}

int wf_socket_dialled(struct wf_socket *s, struct wf_error *e)
{
	if (s->stage == DIALLING)
		return -EAGAIN;
	if (s->stage == FAILED)
		return wf_error_set(e, s->outcome, "dial %s: %s", s->address,
				    wf_error_name(s->outcome));
	s->stage = STREAM;
	return 0;
}

static unsigned ready_for(const struct wf_socket *s)
{
	uint64_t now = wf_clock_now();
	unsigned ready = 0;

	switch (s->stage) {
	case LISTENER:
	case SIDE_LISTENER:
		return wf_list_empty(&s->waiting) ? 0 : s->want & WF_SOCKET_READABLE;
	case SIDE_STREAM:
		return wf_list_empty(&s->packets) && s->other ? 0 : s->want & WF_SOCKET_READABLE;
	case DIALLING:
		return 0;
	case DIALLED:
	case FAILED:
		return WF_SOCKET_WRITABLE;
	case STREAM:
		break;
	}
	if (is_broken(s))
		return WF_SOCKET_READABLE | WF_SOCKET_WRITABLE;
	if (readable_ns(in_of(s)) <= now)
		ready |= WF_SOCKET_READABLE;
	if (out_of(s)->bytes < PIPE_BYTES)
		ready |= WF_SOCKET_WRITABLE;
	return ready & s->want;
}

int wf_socket_set_poll(struct wf_socket_set *set, struct wf_socket_event *events, int max)
{
	int count = 0;

	run();
	if (set->dead)
		return 0;
	EACH_SOCKET(s, set) {
		unsigned ready = s->away ? 0 : ready_for(s);

		if (ready && count < max)
			events[count++] = (struct wf_socket_event){ s, s->owner, ready };
	}
	return count;
}

void wf_socket_own(struct wf_socket *s, void *owner)
{
	s->owner = owner;
}

void wf_socket_want(struct wf_socket *s, unsigned ready)
{
	s->want = ready;
}

void wf_socket_leave(struct wf_socket *s, struct wf_socket_set *to)
{
	wf_list_remove(&s->node);
	wf_list_append(&to->members, &s->node);
	s->set = to;
	s->away = true;
}

void wf_socket_join(struct wf_socket *s, void *owner)
{
	s->owner = owner;
	s->away = false;
}

static void drop_packet(struct packet *packet, bool with_fds)
{
	for (unsigned i = 0; with_fds && i < packet->fd_count; i++)
		(void)close(packet->fds[i]);
	wf_list_remove(&packet->node);
	free(packet);
}

/* This end of a side door's stream has gone: the other one finds that. */
static void end_side(struct wf_socket *s)
{
	struct wf_list *node;

	while ((node = wf_list_first(&s->packets)))
		drop_packet(WF_CONTAINER(node, struct packet, node), true);
	if (!s->other)
		return;
	s->other->other = NULL;
	s->other->news_ns = wf_clock_now() + SIDE_NS;
	s->other = NULL;
}

void wf_socket_close(struct wf_socket *s)
{
	struct wf_list *node;

	if (!s)
		return;
	end_side(s);
	/* Whoever was not accepted yet finds the end. */
	while ((node = wf_list_pop(&s->waiting)))
		wf_socket_close(WF_CONTAINER(node, struct wf_socket, node));
	if (s->stream) {
		if (!s->stream->forgotten)
			end_pipe(out_of(s));
		put_stream(s->stream);
	}
	if (s->stage == DIALLING)
		dial_count--;
	wf_list_remove(&s->node);
	free(s);
}

/* Time and faults. */

static uint64_t later(uint64_t ns, uint64_t now, uint64_t best)
{
	return ns > now ? WF_MIN(ns, best) : best;
}

uint64_t wf_net_next_ns(void)
{
	uint64_t now = wf_clock_now(), next = NEVER;

	WF_LIST_EACH(node, &sets) {
		if (set_of(node)->dead)
			continue;
		EACH_SOCKET(s, set_of(node)) {
			next = later(s->syn_ns, now, next);
			next = later(s->answer_ns, now, next);
			if (s->stage == STREAM)
				next = later(readable_ns(in_of(s)), now, next);
			next = later(s->news_ns, now, next);
		}
	}
	return next;
}

static void reset_stream(struct stream *stream)
{
	stream->reset = true;
	for (int i = 0; i < 2; i++)
		while (first_piece(&stream->pipes[i]))
			drop_first(&stream->pipes[i]);
}

void wf_net_cut(const char *a, const char *b)
{
	WF_LIST_EACH(node, &sets) {
		EACH_SOCKET(s, set_of(node)) {
			if (!s->stream)
				continue;
			if ((!strcmp(out_of(s)->from, a) && !strcmp(out_of(s)->to, b)) ||
			    (!strcmp(out_of(s)->from, b) && !strcmp(out_of(s)->to, a)))
				reset_stream(s->stream);
		}
	}
}

void wf_net_forget(const char *who, const char *whom)
{
	WF_LIST_EACH(node, &sets)
		EACH_SOCKET(s, set_of(node))
			if (s->stream && !strcmp(out_of(s)->from, who) &&
			    !strcmp(out_of(s)->to, whom))
				s->stream->forgotten = 1 + s->side;
}

/* Its kernel closes what it held. */
static void kill_set(struct wf_socket_set *set)
{
	set->dead = true;
	EACH_SOCKET(s, set) {
		s->syn_ns = NEVER;
		s->answer_ns = NEVER;
		end_side(s);
		if (s->stream) {
			end_pipe(out_of(s));
			while (first_piece(in_of(s)))
				drop_first(in_of(s));
		}
	}
}

void wf_net_kill(const char *address)
{
	struct wf_socket *listener = listener_at(address);
	struct wf_list *node;

	assert(listener);
	while ((node = wf_list_pop(&listener->waiting)))
		wf_socket_close(WF_CONTAINER(node, struct wf_socket, node));
	WF_LIST_EACH(at, &sets)
		if (name_of(set_of(at)) == listener->set->address)
			kill_set(set_of(at));
}

/* Hosts: everybody alone, or all together. */

struct wf_host {
	uint64_t number;
};

struct wf_host_peer {
	struct wf_list node;
	uint64_t pid;
	int fd;
};

void wf_net_set_same_host(bool on)
{
	same_host = on;
}

void wf_net_starve(unsigned count)
{
	starved_count = count;
}

void wf_net_kill_process(uint64_t pid)
{
	assert(pid < NODES_MAX);
	process_dead[pid] = true;
	WF_LIST_EACH(node, &watchers) {
		struct wf_host_peer *peer = WF_CONTAINER(node, struct wf_host_peer, node);
		uint64_t one = 1;

		if (peer->pid == pid)
			(void)!write(peer->fd, &one, sizeof(one));
	}
}

int wf_host_open(struct wf_host **host, struct wf_error *e)
{
	struct wf_host *h = malloc(sizeof(*h));

	if (!h)
		return wf_error_set(e, -ENOMEM, "net: out of memory");
	/* Whoever has opened a set that does not listen is of the process that does. */
	last_pid += wf_list_empty(&sets) || set_of(sets.prev)->address[0];
	assert(last_pid < NODES_MAX);
	assert(last_number < NODES_MAX);
	pids[++last_number] = last_pid;
	*h = (struct wf_host){ last_number };
	*host = h;
	return 0;
}

void wf_host_close(struct wf_host *host)
{
	free(host);
}

uint64_t wf_host_number(const struct wf_host *host)
{
	return host->number;
}

int wf_host_files(struct wf_host *host, const char *names)
{
	(void)host;
	(void)names;
	return 0;
}

/* All are one process, to the kernel, which reads what may have been freed since. */
int wf_host_probe(uint64_t pid, uint64_t address, const uint8_t *nonce, size_t count)
{
	uint8_t bytes[64];
	struct iovec here = { bytes, count };
	struct iovec there = { (void *)(uintptr_t)address, count };

	assert(pid == (uint64_t)getpid() && count <= sizeof(bytes));
	if (process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0) != (ssize_t)count ||
	    memcmp(bytes, nonce, count) != 0)
		return -EBADMSG;
	return 0;
}

bool wf_host_is_this(uint64_t pid)
{
	(void)pid;
	return false; /* each node is a process of its own */
}

int wf_host_peer_open(int pid_fd, uint64_t number, struct wf_host_peer **peer)
{
	struct wf_host_peer *p;

	assert(number <= last_number);
	(void)close(pid_fd);
	if (process_dead[pids[number]])
		return -ESRCH;
	p = calloc(1, sizeof(*p));
	assert(p);
	p->pid = pids[number];
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert(p->fd >= 0);
	wf_list_append(&watchers, &p->node);
	*peer = p;
	return 0;
}

void wf_host_peer_close(struct wf_host_peer *peer)
{
	if (!peer)
		return;
	wf_list_remove(&peer->node);
	(void)close(peer->fd);
	free(peer);
}

int wf_host_peer_fd(const struct wf_host_peer *peer)
{
	return peer->fd;
}

bool wf_host_peer_dead(const struct wf_host_peer *peer)
{
	return process_dead[peer->pid];
}

void wf_host_peer_sweep(const struct wf_host_peer *peer)
{
	(void)peer;
}

void wf_host_sweep(void)
{
}

void wf_host_forked(struct wf_host *host)
{
	(void)host;
}

/* Side doors: a packet is there for whoever looks, as in a kernel. */

int wf_socket_listen_beside(struct wf_socket_set *set, uint64_t number, void *owner,
			    struct wf_socket **listener, struct wf_error *e)
{
	struct wf_socket *s = new_socket(set, owner, SIDE_LISTENER);

	(void)e;
	s->number = number;
	s->alone = !same_host;
	*listener = s;
	return 0;
}

static struct wf_socket *side_door_of(uint64_t number)
{
	WF_LIST_EACH(node, &sets)
		EACH_SOCKET(s, set_of(node))
			if (s->stage == SIDE_LISTENER && s->number == number)
				return s;
	return NULL;
}

int wf_socket_meet(struct wf_socket_set *set, uint64_t number, void *owner,
		   struct wf_socket **met)
{
	struct wf_socket *listener = side_door_of(number), *here, *there;

	if (!listener || listener->alone)
		return -ENOENT; /* it is on another host */
	if (listener->set->dead)
		return -ECONNREFUSED;
	if (starved_count) {
		starved_count--;
		return -EMFILE;
	}
	here = new_socket(set, owner, SIDE_STREAM);
	there = new_socket(listener->set, NULL, SIDE_STREAM);
	here->other = there;
	there->other = here;
	wf_list_remove(&there->node);
	wf_list_append(&listener->waiting, &there->node);
	listener->news_ns = wf_clock_now() + SIDE_NS;
	*met = here;
	return 0;
}

void wf_socket_sweep_beside(uint64_t number)
{
	(void)number;
}

int wf_socket_peer(struct wf_socket *s, struct wf_socket_peer *peer)
{
	(void)s;
	*peer = (struct wf_socket_peer){ (uint64_t)getpid(), geteuid(), -1 };
	peer->pid_fd = eventfd(0, EFD_CLOEXEC);
	return peer->pid_fd < 0 ? -errno : 0;
}

int wf_socket_send(struct wf_socket *s, const void *bytes, size_t count, const int *fds,
		   unsigned fd_count)
{
	struct packet *packet;

	if (!s->other || s->set->dead)
		return -EPIPE;
	packet = malloc(sizeof(*packet) + count);
	assert(packet);
	packet->count = count;
	packet->fd_count = fd_count;
	memcpy(packet->bytes, bytes, count);
	for (unsigned i = 0; i < fd_count; i++)
		packet->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
	wf_list_append(&s->other->packets, &packet->node);
	s->other->news_ns = wf_clock_now() + SIDE_NS;
	return 0;
}

ssize_t wf_socket_receive(struct wf_socket *s, void *bytes, size_t count, int *fds,
			  unsigned *fd_count)
{
	struct wf_list *node = wf_list_first(&s->packets);
	struct packet *packet;
	ssize_t got;

	if (!node)
		return s->other ? -EAGAIN : 0;
	packet = WF_CONTAINER(node, struct packet, node);
	assert(packet->count <= count);
	got = (ssize_t)packet->count;
	*fd_count = packet->fd_count;
	memcpy(bytes, packet->bytes, packet->count);
	memcpy(fds, packet->fds, packet->fd_count * sizeof(*fds));
	drop_packet(packet, false);
	return got;
}

/* The doorbell: nobody sleeps here, so there is nobody to wake. */

struct wf_doorbell {
	int fd;
};

struct wf_remote_doorbell {
	char nothing;
};

int wf_doorbell_open(struct wf_doorbell **bell, struct wf_error *e)
{
	struct wf_doorbell *b = malloc(sizeof(*b));

	if (!b)
		return wf_error_set(e, -ENOMEM, "net: out of memory");
	b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert(b->fd >= 0);
	*bell = b;
	return 0;
}

void wf_doorbell_close(struct wf_doorbell *bell)
{
	if (!bell)
		return;
	(void)close(bell->fd);
	free(bell);
}

void wf_doorbell_fds(const struct wf_doorbell *bell, int fds[2])
{
	fds[0] = bell->fd;
	fds[1] = bell->fd;
}

int wf_doorbell_fd(const struct wf_doorbell *bell)
{
	return bell->fd;
}

void wf_doorbell_sleep(struct wf_doorbell *bell)
{
	(void)bell;
}

void wf_doorbell_wake(struct wf_doorbell *bell)
{
	(void)bell;
}

void wf_doorbell_forked(struct wf_doorbell *bell)
{
	(void)close(bell->fd);
}

int wf_remote_doorbell_open(int bell_fd, int page_fd, struct wf_remote_doorbell **remote_doorbell)
{
	(void)close(bell_fd);
	(void)close(page_fd);
	*remote_doorbell = malloc(sizeof(**remote_doorbell));
	return *remote_doorbell ? 0 : -ENOMEM;
}

void wf_remote_doorbell_close(struct wf_remote_doorbell *remote_doorbell)
{
	free(remote_doorbell);
}

void wf_remote_doorbell_ring(struct wf_remote_doorbell *remote_doorbell)
{
	(void)remote_doorbell;
}
