/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/door.h"
#include "link/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "secure/credentials.h"

#define EVENTS_MAX 64
/*
 * Connections accepted in one poll: fewer than there are places, so that a stranger that speaks is
 * heard before a crowd pushes it out.
 */
#define ACCEPTS_MAX 16
/* Messages of one connection in one poll: others have their turn then. */
#define MESSAGES_MAX 16
/* Steps of strangers' handshakes in one poll: a signature by RSA, 2048 bits, takes 0.2 ms. */
#define SHAKES_MAX 8

struct wf_door {
	struct wf_door_config config;
	struct wf_socket_set *set;
	struct wf_socket *listener; /* owner NULL; of a stream, its conn.  NULL: no listener */
	struct wf_conn_lists lists;
	unsigned shakes_left; /* steps of handshakes that this poll may still take */
	uint64_t accept_ns; /* when to accept again; 0: connections are accepted */
	bool crowded;       /* none is accepted before there is room, or that time */
	char address[WF_SOCKET_ADDRESS_BYTES];
};

static struct wf_conn *conn_of(struct wf_list *node)
{
	return WF_CONTAINER(node, struct wf_conn, node);
}

int wf_door_open(const struct wf_door_config *config, struct wf_door **door, struct wf_error *e)
{
	struct wf_door *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return wf_error_set(e, -ENOMEM, "door: out of memory");
	d->config = *config;
	d->config.listen = NULL; /* the caller's string */
	wf_list_init(&d->lists.strangers);
	wf_list_init(&d->lists.guests);
	wf_list_init(&d->lists.owned);
	wf_crowd_init(&d->lists.crowd);
	wf_list_init(&d->lists.closing);
	wf_list_init(&d->lists.dead);
	wf_list_init(&d->lists.more);
	err = wf_socket_set_open(&d->set, e);
	if (err)
		goto free_door;
	if (config->listen)
		err = wf_socket_listen(d->set, config->listen, config->beyond_loopback, NULL,
				       &d->listener, d->address, e);
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

/* Write queued bytes once and close. */
static void close_all(struct wf_list *list)
{
	WF_LIST_EACH(node, list) {
		struct wf_conn *conn = conn_of(node);

		if (wf_conn_is_open(conn))
			wf_conn_flush(conn);
		wf_conn_bury(conn);
	}
}

void wf_door_close(struct wf_door *door)
{
	if (!door)
		return;
	close_all(&door->lists.strangers);
	close_all(&door->lists.guests);
	close_all(&door->lists.owned);
	close_all(&door->lists.closing);
	wf_socket_close(door->listener);
	wf_socket_set_close(door->set);
	free(door);
}

void wf_door_renew(struct wf_door *door, struct wf_credentials *credentials)
{
	door->config.credentials = credentials;
}

const char *wf_door_address(const struct wf_door *door)
{
	return door->address;
}

int wf_door_fd(const struct wf_door *door)
{
	return wf_socket_set_fd(door->set);
}

/* Returns the earliest time limit of the conns in @list; an until_ns of 0 is due at once. */
static uint64_t soonest(const struct wf_list *list)
{
	uint64_t ns = UINT64_MAX;

	WF_LIST_EACH(node, list)
		ns = WF_MIN(ns, conn_of(node)->until_ns);
	return ns;
}

uint64_t wf_door_next_ns(const struct wf_door *door)
{
	uint64_t ns = WF_MIN(soonest(&door->lists.strangers), soonest(&door->lists.closing));

	if (!wf_list_empty(&door->lists.more))
		return 0;
	return door->accept_ns ? WF_MIN(ns, door->accept_ns) : ns;
}

int wf_door_dial(struct wf_door *door, const char *address, void *owner, struct wf_conn **conn,
		 struct wf_error *e)
{
	struct wf_conn *c = wf_conn_new(&door->lists);
	int err;

	if (!c)
		return wf_error_set(e, -ENOMEM, "dial %.200s: out of memory", address);
	err = wf_socket_dial(door->set, address, c, &c->stream.socket, e);
	if (err) {
		free(c);
		return err;
	}
	c->dialled = true;
	c->dialling = true;
	(void)snprintf(c->remote, sizeof(c->remote), "%s", address);
	wf_conn_adopt(c, owner);
	*conn = c;
	return 0;
}

int wf_door_pass(struct wf_conn *conn, struct wf_door *to, struct wf_conn **passed)
{
	struct wf_conn *c = wf_conn_new(&to->lists);

	if (!c)
		return -ENOMEM;
	wf_socket_leave(conn->stream.socket, to->set);
	wf_conn_move(conn, c);
	*passed = c;
	return 0;
}

/* Let the next poll go on with @conn if its session holds bytes, which no event tells of. */
static void note_held(struct wf_conn *conn)
{
	if (wf_byte_stream_holds(&conn->stream) && wf_list_empty(&conn->more_node))
		wf_list_append(&conn->lists->more, &conn->more_node);
}

void wf_door_take(struct wf_conn *passed, uint64_t now_ns)
{
	passed->since_ns = now_ns;
	wf_conn_stand_as_stranger(passed, now_ns + WF_DOOR_STRANGER_NS);
	wf_socket_join(passed->stream.socket, passed);
	note_held(passed);
}

/*
 * Bury @conn, which has ended by itself.  Strangers and conns that were closing go without a word.
 */
static void end(struct wf_door *door, struct wf_conn *conn, const struct wf_error *e)
{
	bool told = conn->owner && !conn->closing;

	wf_conn_bury(conn);
	if (told)
		door->config.events->closed(door->config.ctx, conn, e);
	conn->owner = NULL;
}

static void read_conn(struct wf_door *door, struct wf_conn *conn)
{
	struct wf_error e = { 0 };
	struct wf_greet greet;

	for (int i = 0; i < MESSAGES_MAX; i++) {
		int err = wf_conn_read(conn, &greet, &e);

		if (err == -EAGAIN)
			return;
		if (!conn->owner && !conn->closing && wf_door_is_garbage(err)) {
			door->config.events->refused(door->config.ctx, conn, &e);
			return;
		}
		if (err) {
			end(door, conn, &e);
			return;
		}
		if (!conn->closing)
			door->config.events->message(door->config.ctx, conn, &greet);
		if (!conn->stream.socket)
			return;
	}
	/* The messages of a busy session never end, and others have their turn. */
	note_held(conn);
}

/* Begin the handshake with a stranger, or with the node that was dialled. */
static int secure(struct wf_door *door, struct wf_conn *conn, struct wf_error *e)
{
	char host[WF_SOCKET_ADDRESS_BYTES];
	uint16_t port;
	int err = conn->dialled ? wf_socket_split(conn->remote, host, sizeof(host), &port, e) : 0;

	if (err)
		return err;
	err = wf_byte_stream_secure(&conn->stream, door->config.credentials,
				    conn->dialled ? host : NULL, conn->older);
	return err ? wf_error_set(e, err, "out of memory") : 0;
}

/*
 * Dial again and show the older key, for the peer, which has refused us because of @code, may not
 * have the newer one yet.  What is to be sent stays.  false: that is no remedy.
 */
static bool dial_by_older(struct wf_door *door, struct wf_conn *conn, int code, struct wf_error *e)
{
	if (code != -EKEYREJECTED || !conn->dialling || conn->older ||
	    !wf_credentials_have_older(door->config.credentials))
		return false;
	wf_byte_stream_close(&conn->stream);
	conn->older = true;
	return !wf_socket_dial(door->set, conn->remote, conn, &conn->stream.socket, e);
}

/* Go on with the handshake of @conn.  Is it done?  A conn whose handshake fails is ended. */
static bool shake(struct wf_door *door, struct wf_conn *conn)
{
	struct wf_error e = { 0 };
	int err = conn->stream.session ? 0 : secure(door, conn, &e);

	if (!err)
		err = wf_byte_stream_shake(&conn->stream, &e);
	if (!err)
		return true;
	if (err == -EAGAIN) {
		wf_conn_want(conn);
		return false;
	}
	if (dial_by_older(door, conn, err, &e))
		return false;
	wf_error_within(&e, "the TLS handshake with %s failed", conn->remote);
	if (conn->owner)
		end(door, conn, &e);
	else
		door->config.events->refused(door->config.ctx, conn, &e);
	return false;
}

/* Look how a dial stands, which ends with the check that the peer is one to talk to. */
static void finish_dial(struct wf_door *door, struct wf_conn *conn)
{
	struct wf_error e = { 0 };
	int err = conn->stream.shaking ? 0 : wf_socket_dialled(conn->stream.socket, &e);

	if (err == -EAGAIN)
		return;
	if (err) {
		end(door, conn, &e);
		return;
	}
	/* The user is checked before our hello leaves. */
	if (!door->config.beyond_loopback && wf_socket_check_user(conn->stream.socket, true, &e)) {
		wf_error_within(&e, "dial %s", conn->remote);
		end(door, conn, &e);
		return;
	}
	if (!conn->stream.shaking)
		door->config.events->connected(door->config.ctx, conn);
	if (door->config.credentials && !shake(door, conn))
		return;
	conn->dialling = false;
	wf_conn_flush(conn);
	door->config.events->opened(door->config.ctx, conn);
}

static void serve(struct wf_door *door, struct wf_conn *conn, unsigned ready)
{
	struct wf_error e = { 0 };

	/* An event of this batch may have closed @conn before its own came. */
	if (!conn->stream.socket)
		return;
	if (conn->dialling) {
		finish_dial(door, conn);
		return;
	}
	if (conn->stream.shaking) {
		/* The event comes again: a step may cost a signature, before the peer proves anything. */
		if (!door->shakes_left)
			return;
		door->shakes_left--;
		if (!shake(door, conn))
			return;
	}
	if (conn->torn) {
		wf_error_set(&e, -ENOMEM, "a message to %s: out of memory", conn->remote);
		end(door, conn, &e);
		return;
	}
	/* Reading comes first: messages that the peer sent before it left are heard. */
	if (ready & WF_SOCKET_READABLE)
		read_conn(door, conn);
	if (ready & WF_SOCKET_WRITABLE && conn->stream.socket)
		wf_conn_flush(conn);
	if (conn->stream.socket && conn->closing && (conn->mute || !wf_conn_waits(conn)))
		wf_conn_bury(conn);
}

/* Evict a conn of @list (strangers or guests); false if there is none. */
static bool evict_from(struct wf_door *door, const struct wf_list *list)
{
	struct wf_conn *conn = wf_conn_least(&door->lists, list);
	struct wf_error e;

	if (!conn)
		return false;
	wf_error_set(&e, -ECONNABORTED, "%s has brought no rail up, and others have come since",
		     conn->remote);
	end(door, conn, &e);
	return true;
}

/* Evict a conn whose end loses little; false if there is none. */
static bool evict(struct wf_door *door)
{
	return evict_from(door, &door->lists.strangers) || evict_from(door, &door->lists.guests);
}

/* Accept no more until @until_ns. */
static void pause_until(struct wf_door *door, uint64_t until_ns)
{
	door->accept_ns = until_ns;
	wf_socket_want(door->listener, 0);
}

static void go_on(struct wf_door *door)
{
	door->accept_ns = 0;
	door->crowded = false;
	wf_socket_want(door->listener, WF_SOCKET_READABLE);
}

static bool strangers_full(const struct wf_door *door)
{
	return door->lists.stranger_count >= WF_DOOR_STRANGERS_MAX;
}

static bool guests_full(const struct wf_door *door)
{
	return door->lists.guest_count >= WF_DOOR_GUESTS_MAX;
}

/* Accept no more while the conn of @list that is to go next is younger than @young_ns.  Is it? */
static bool pause_for(struct wf_door *door, const struct wf_list *list, uint64_t young_ns,
		      uint64_t now_ns)
{
	const struct wf_conn *least = wf_conn_least(&door->lists, list);

	if (!least || now_ns - least->since_ns >= young_ns)
		return false;
	door->crowded = true;
	pause_until(door, least->since_ns + young_ns);
	return true;
}

/* Accept no more while a full list has no conn to evict.  Is it so? */
static bool pause_if_full(struct wf_door *door, uint64_t now_ns)
{
	return (strangers_full(door) && pause_for(door, &door->lists.strangers,
						  WF_DOOR_YOUNG_STRANGER_NS, now_ns)) ||
	       (guests_full(door) &&
		pause_for(door, &door->lists.guests, WF_DOOR_YOUNG_GUEST_NS, now_ns));
}

/* Make room for one who has come. */
static void make_room(struct wf_door *door)
{
	if (strangers_full(door))
		(void)evict_from(door, &door->lists.strangers);
	if (guests_full(door))
		(void)evict_from(door, &door->lists.guests);
}

/* Accept one connection.  Has one come? */
static bool accept_one(struct wf_door *door, uint64_t now_ns)
{
	char from[WF_SOCKET_ADDRESS_BYTES];
	struct wf_error e = { 0 };
	struct wf_socket *s;
	struct wf_conn *conn;
	uint32_t source;
	int err;

	if (pause_if_full(door, now_ns))
		return false;
	do
		err = wf_socket_accept(door->listener, &s, from);
	while (err == -EMFILE && evict(door));
	if (err == -EMFILE || err == -EPERM)
		pause_until(door, now_ns + WF_SOCKET_ACCEPT_PAUSE_NS);
	if (err)
		return false;
	source = wf_crowd_source(&door->lists.crowd, from);
	if (!wf_crowd_admits(&door->lists.crowd, source, from, now_ns)) {
		wf_socket_close(s);
		return true;
	}
	make_room(door);
	conn = wf_conn_new(&door->lists);
	if (!conn) {
		wf_socket_close(s);
		return true;
	}
	conn->source = source;
	conn->since_ns = now_ns;
	conn->stream = (struct wf_byte_stream){ .socket = s, .shaking = door->config.credentials };
	(void)snprintf(conn->remote, sizeof(conn->remote), "%s", *from ? from : "a stranger");
	wf_socket_own(s, conn);
	wf_conn_stand_as_stranger(conn, now_ns + WF_DOOR_STRANGER_NS);
	if (!door->config.beyond_loopback && wf_socket_check_user(s, false, &e)) {
		door->config.events->refused(door->config.ctx, conn, &e);
		return true;
	}
	/* A stranger has often spoken already. */
	serve(door, conn, WF_SOCKET_READABLE);
	return true;
}

/* Go on with the conns whose sessions hold bytes. */
static void serve_more(struct wf_door *door)
{
	WF_LIST_EACH_OF_NOW(node, &door->lists.more) {
		struct wf_conn *conn = WF_CONTAINER(node, struct wf_conn, more_node);

		wf_list_remove(node);
		serve(door, conn, WF_SOCKET_READABLE);
	}
}

static void accept_all(struct wf_door *door, uint64_t now_ns)
{
	for (int i = 0; i < ACCEPTS_MAX; i++)
		if (!accept_one(door, now_ns))
			return;
}

/* Bury the conns of @list whose time is up. */
static void expire(struct wf_list *list, uint64_t now_ns)
{
	WF_LIST_EACH(node, list) {
		struct wf_conn *conn = conn_of(node);

		if (!conn->until_ns)
			conn->until_ns = now_ns + WF_CONN_LINGER_NS;
		if (now_ns >= conn->until_ns)
			wf_conn_bury(conn);
	}
}

void wf_door_poll(struct wf_door *door, uint64_t now_ns)
{
	struct wf_socket_event events[EVENTS_MAX];
	int count;

	if (door->accept_ns && now_ns >= door->accept_ns)
		go_on(door);
	door->lists.polling = true;
	door->shakes_left = SHAKES_MAX;
	serve_more(door);
	count = wf_socket_set_poll(door->set, events, EVENTS_MAX);
	for (int i = 0; i < count; i++) {
		if (events[i].owner)
			serve(door, events[i].owner, events[i].ready);
		else
			accept_all(door, now_ns);
	}
	expire(&door->lists.strangers, now_ns);
	expire(&door->lists.closing, now_ns);
	/* Strangers that were here have become guests meanwhile. */
	while (door->lists.guest_count > WF_DOOR_GUESTS_MAX + WF_DOOR_STRANGERS_MAX)
		(void)evict_from(door, &door->lists.guests);
	if (door->crowded && !strangers_full(door) && !guests_full(door))
		go_on(door);
	door->lists.polling = false;
	wf_conn_reap(&door->lists);
}

void wf_door_forked(struct wf_door *door)
{
	wf_socket_set_forked(door->set);
}
