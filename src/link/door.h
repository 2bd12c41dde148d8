/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The door: the listener beside every link, and the connections through it.
 *
 * The door moves whole messages (wire/greet.h) and knows nothing of what they mean.  A stranger
 * that is not adopted holds one place of a fixed table, a bounded buffer and five seconds; once
 * adopted, one place of another table until it is trusted.  When a table is full the oldest conn
 * of its most frequent source goes, unless it is young: then nobody is accepted until it is older
 * or there is room, for a thousand workers of a job may come at the same time.  No source but
 * loopback comes in faster than crowd.h allows.  So a thousand silent connections keep nobody out,
 * nor thousands that greet and leave it at that.
 *
 * With credentials every connection begins with the handshake of TLS, and no message comes or goes
 * before the peer is proven.
 *
 * Threads: owner.
 */
#ifndef WF_DOOR_H
#define WF_DOOR_H

#include <errno.h>
#include "link/socket.h"
#include "wire/greet.h"

#define WF_DOOR_STRANGERS_MAX 64
#define WF_DOOR_STRANGER_NS (5 * WF_NS_PER_S)

/* A stranger that is pushed out younger dials again; a thousand silent ones take 0.3 s to go. */
#define WF_DOOR_YOUNG_STRANGER_NS (20 * WF_NS_PER_MS)

/*
 * Conns that are adopted and not trusted, of which descriptors are left of 1024, and how long each
 * has at least.  It takes an honest one some milliseconds, and when 256 have come at the same time
 * a tenth of a second; whoever has greeted and is pushed out fails what it wants.
 */
#define WF_DOOR_GUESTS_MAX 256
#define WF_DOOR_YOUNG_GUEST_NS (500 * WF_NS_PER_MS)

struct wf_credentials;
struct wf_door;
struct wf_secret;
struct wf_conn;

/* Upcalls of the door: only from wf_door_poll(), and never inside another function of the door. */
struct wf_door_events {
	/* A dial has reached somebody, who may still have to prove himself. */
	void (*connected)(void *ctx, struct wf_conn *conn);
	/* A dial has come through, with its handshake. */
	void (*opened)(void *ctx, struct wf_conn *conn);
	/* @greet has come.  @conn may be closed inside. */
	void (*message)(void *ctx, struct wf_conn *conn, const struct wf_greet *greet);
	/*
	 * A stranger is kept out because of @e.  Unless wf_door_is_garbage(e->code) it may be told;
	 * @conn is to be closed inside.
	 */
	void (*refused)(void *ctx, struct wf_conn *conn, const struct wf_error *e);
	/*
	 * @conn has ended, or a dial has failed: @e says how.  @conn is gone on return.  Not called
	 * for a conn closed by wf_conn_close, nor for strangers never adopted.
	 */
	void (*closed)(void *ctx, struct wf_conn *conn, const struct wf_error *e);
};

struct wf_door_config {
	const char *listen;    /* host:port; NULL: only wf_door_take() brings connections */
	/*
	 * There are credentials, or security=open was said by name; otherwise loopback is for nodes
	 * of one user.
	 */
	bool beyond_loopback;
	struct wf_credentials *credentials; /* NULL: no TLS; borrowed, see wf_door_renew() */
	const struct wf_door_events *events;
	void *ctx;
};

/* Does @code, of an error of a stranger's, say that its bytes are no message of weft's, or TLS? */
static inline bool wf_door_is_garbage(int code)
{
	return code == -EBADMSG || code == -EMSGSIZE || code == -EKEYREJECTED;
}

int wf_door_open(const struct wf_door_config *config, struct wf_door **door, struct wf_error *e);

/*
 * Flush queued goodbyes, without waiting, and close every conn.  Not inside an event; accepts NULL.
 */
void wf_door_close(struct wf_door *door);

/* Let @credentials, which are borrowed, take the place of those before, for new connections. */
void wf_door_renew(struct wf_door *door, struct wf_credentials *credentials);

const char *wf_door_address(const struct wf_door *door); /* "": the door does not listen */

/* Returns the descriptor for epoll. */
int wf_door_fd(const struct wf_door *door);

/* Returns when wf_door_poll() must run at the latest (UINT64_MAX: no such time). */
uint64_t wf_door_next_ns(const struct wf_door *door);
void wf_door_poll(struct wf_door *door, uint64_t now_ns);

/*
 * Dial @address for @owner (not NULL); opened or closed follows from a later poll.  An error: the
 * dial could not be tried at all, and nothing follows.
 */
int wf_door_dial(struct wf_door *door, const char *address, void *owner, struct wf_conn **conn,
		 struct wf_error *e);

/*
 * Pass a stranger on to door @to, of another thread, as @passed: wf_door_take() there is to follow.
 * @conn must not be used any more.  -ENOMEM: nothing was done.
 */
int wf_door_pass(struct wf_conn *conn, struct wf_door *to, struct wf_conn **passed);

/* Take in @passed, which another door has passed on. */
void wf_door_take(struct wf_conn *passed, uint64_t now_ns);

/*
 * Give a stranger to @owner, which limits its time from now on.  Until @conn is trusted it may be
 * closed when there are too many guests.
 */
void wf_conn_adopt(struct wf_conn *conn, void *owner);

/* Keep @conn, which is adopted, however many guests there are. */
void wf_conn_trust(struct wf_conn *conn);

/* Make the secret of @label that only the two ends of @conn know.  -ENOENT: there is no TLS. */
int wf_conn_secret(const struct wf_conn *conn, const char *label, struct wf_secret *secret);

/* Returns the identity that the peer has proven; "" without TLS. */
const char *wf_conn_identity(const struct wf_conn *conn);

/* Has the peer proven itself by a session of @credentials? */
bool wf_conn_is_proven_by(const struct wf_conn *conn, const struct wf_credentials *credentials);

/* Would the peer's proof still do for @credentials? */
bool wf_conn_does(const struct wf_conn *conn, const struct wf_credentials *credentials);

void *wf_conn_owner(const struct wf_conn *conn); /* NULL: @conn is a stranger */
bool wf_conn_dialled(const struct wf_conn *conn);
const char *wf_conn_remote(const struct wf_conn *conn); /* for people */

/* End @conn at its next event, as by a failure: there was no memory for what must be said. */
void wf_conn_break(struct wf_conn *conn);

/* Returns the first message sent over @conn, until it is forgotten.  NULL: there is none. */
const uint8_t *wf_conn_first_sent(const struct wf_conn *conn, size_t *count);

/* Returns the first message received over @conn, until it is forgotten.  NULL: there is none. */
const uint8_t *wf_conn_first_got(const struct wf_conn *conn, size_t *count);

/* Forget both first messages. */
void wf_conn_forget_first(struct wf_conn *conn);

/*
 * Queue a message, which is possible before a dial is through.  -ENOBUFS: the peer does not read,
 * 256 KiB are queued; -EMSGSIZE; -ENOMEM.  A broken conn drops the message, and closed follows.
 */
int wf_conn_send(struct wf_conn *conn, const struct wf_greet *greet);

/*
 * Close @conn after queued messages have left, but within a second.  Its owner is forgotten at
 * once, and @conn must not be used any more.
 */
void wf_conn_close(struct wf_conn *conn);

/* Close all descriptors in a forked child, touching nothing else. */
void wf_door_forked(struct wf_door *door);

#endif
