/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The door: the listener beside every link, and the connections through it.
 *
 * It moves whole messages (wire/greet.h) and knows nothing of what they mean.
 * A stranger, until he is adopted, holds one place of a fixed table, a
 * bounded buffer and five seconds; and once he is, one of another table until
 * he is trusted.  When a table is full the oldest of its most frequent source
 * goes, and no source but loopback comes in faster than crowd.h allows.  So a
 * thousand silent connections keep nobody out, nor thousands that greet and
 * leave it at that.
 *
 * Threads: owner.
 */
#ifndef WF_DOOR_H
#define WF_DOOR_H

#include "link/socket.h"
#include "wire/greet.h"

#define WF_DOOR_STRANGERS_MAX 64 /* not tuned yet: a burst of 200 workers redials with backoff */
#define WF_DOOR_STRANGER_NS (5 * WF_NS_PER_S)

/*
 * Adopted and not trusted.  With a thousand greetings a second each has a quarter of a second
 * for what takes an honest one some milliseconds, and there are descriptors left of 1024; not
 * tuned yet.
 */
#define WF_DOOR_GUESTS_MAX 256

struct wf_door;
struct wf_conn;

/*
 * What the door tells: only from wf_door_poll, and never inside another
 * function of the door.
 */
struct wf_door_events {
	/* A dial has come through. */
	void (*opened)(void *ctx, struct wf_conn *conn);
	/* The conn may be closed inside. */
	void (*message)(void *ctx, struct wf_conn *conn, const struct wf_greet *greet);
	/* A stranger is kept out because of @e.  He may be told; the conn is to be closed inside. */
	void (*refused)(void *ctx, struct wf_conn *conn, const struct wf_error *e);
	/* It has ended, or a dial has failed: @e says how.  @conn is gone on return.
	 * Not called for a conn closed by wf_conn_close, nor for strangers never adopted. */
	void (*closed)(void *ctx, struct wf_conn *conn, const struct wf_error *e);
};

struct wf_door_config {
	const char *listen;    /* host:port; NULL: nobody comes in here but by wf_door_take */
	bool beyond_loopback;  /* security=open was said by name; else loopback is for one user's nodes */
	const struct wf_door_events *events;
	void *ctx;
};

int wf_door_open(const struct wf_door_config *config, struct wf_door **door, struct wf_error *e);

/*
 * Flushes what goodbyes are queued, without waiting, and closes every conn.  Not
 * inside an event; accepts NULL.
 */
void wf_door_close(struct wf_door *door);

const char *wf_door_address(const struct wf_door *door); /* "": it does not listen */

/* For epoll; and when wf_door_poll must run at the latest (UINT64_MAX: no such time). */
int wf_door_fd(const struct wf_door *door);
uint64_t wf_door_next_ns(const struct wf_door *door);
void wf_door_poll(struct wf_door *door, uint64_t now_ns);

/*
 * Dial @address for @owner (not NULL); opened or closed follows from a later
 * poll.  An error: it could not be tried at all, and nothing follows.
 */
int wf_door_dial(struct wf_door *door, const char *address, void *owner, struct wf_conn **conn,
		 struct wf_error *e);

/*
 * Pass a stranger on to door @to, of another thread: as @passed, which wf_door_take there
 * follows with.  @conn must not be used any more.  -ENOMEM: nothing was done.
 */
int wf_door_pass(struct wf_conn *conn, struct wf_door *to, struct wf_conn **passed);
void wf_door_take(struct wf_conn *passed, uint64_t now_ns);

/*
 * A stranger becomes @owner's, whose time limit it has; but when there are too many of his
 * kind he may be closed.  Until he is trusted.
 */
void wf_conn_adopt(struct wf_conn *conn, void *owner);
void wf_conn_trust(struct wf_conn *conn);
void *wf_conn_owner(const struct wf_conn *conn); /* NULL: a stranger */
bool wf_conn_dialled(const struct wf_conn *conn);
const char *wf_conn_remote(const struct wf_conn *conn); /* for people */

/* Let it end, as by a failure, at its next event: there was no memory for what must be said. */
void wf_conn_break(struct wf_conn *conn);

/*
 * The first message of each direction, as it went over this connection, until they are
 * forgotten.  NULL: there is none.
 */
const uint8_t *wf_conn_first_sent(const struct wf_conn *conn, size_t *count);
const uint8_t *wf_conn_first_got(const struct wf_conn *conn, size_t *count);
void wf_conn_forget_first(struct wf_conn *conn);

/*
 * Queue a message; before a dial is through as well.  -ENOBUFS: the peer does
 * not read, 256 KiB are queued; -EMSGSIZE; -ENOMEM.  A conn that has broken
 * swallows it, and closed follows.
 */
int wf_conn_send(struct wf_conn *conn, const struct wf_greet *greet);

/*
 * Close after what is queued has left, but within a second.  @owner is
 * forgotten at once, and @conn must not be used any more.
 */
void wf_conn_close(struct wf_conn *conn);

/* Close all descriptors in a forked child, touching nothing else. */
void wf_door_forked(struct wf_door *door);

#endif
