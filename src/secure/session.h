/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TLS 1.3 session with a peer, over bytes that its user carries: nothing here reads or writes a
 * socket, so that a test can run both ends in one thread.
 *
 * What the peer has sent is fed in, and what is to be sent is taken out: after each call there may
 * be more of that, also when the call has failed, for the peer is told why.
 *
 * Threads: owner.
 */
#ifndef WF_SESSION_H
#define WF_SESSION_H

#include <sys/types.h>

#include "secure/credentials.h"
#include "secure/seal.h"

struct wf_session;

/*
 * Begin a session.  @host: the name or number that was dialled, which the peer's certificate must
 * have; NULL: the peer has dialled us.  @older: show the older key, which still does, to the peer
 * that was dialled.  -ENOMEM.
 */
int wf_session_new(struct wf_credentials *credentials, const char *host, bool older,
		   struct wf_session **session);

/* Wipe and free; accepts NULL. */
void wf_session_free(struct wf_session *session);

/* Take in bytes from the peer.  -ENOMEM. */
int wf_session_feed(struct wf_session *session, const void *bytes, size_t count);

/* Returns the bytes that are to be sent, until another call; NULL: none. */
const uint8_t *wf_session_outgoing(struct wf_session *session, size_t *count);

/* Note that the first @count bytes to be sent are sent. */
void wf_session_sent(struct wf_session *session, size_t count);

/*
 * Go on with the handshake.  0: it is done, and the peer is proven.  -EAGAIN: the peer must speak
 * first.  Any other error, with a sentence: the peer is not one we talk to (-EKEYREJECTED),
 * speaks no TLS 1.3 (-EBADMSG), or memory is out (-ENOMEM).
 */
int wf_session_shake(struct wf_session *session, struct wf_error *e);

/*
 * Read what the peer has sent.  Returns the number of bytes; 0: the peer has ended the session;
 * -EAGAIN: feed more, or the handshake is not done.  Any other error, with a sentence: the bytes do
 * not verify, the peer refuses us, or it changes its keys without end.
 */
ssize_t wf_session_read(struct wf_session *session, void *bytes, size_t count,
			struct wf_error *e);

/* Has the session bytes that were fed and not read yet?  They may be too few for a read. */
bool wf_session_holds(const struct wf_session *session);

/*
 * Seal up to 16 KiB of @bytes to be sent.  Returns how many.  -EBADMSG: the handshake is not done,
 * or the session is over.
 */
ssize_t wf_session_write(struct wf_session *session, const void *bytes, size_t count);

/* The secret of @label that only the two ends of this session, which is proven, can know. */
int wf_session_secret(struct wf_session *session, const char *label, struct wf_secret *secret);

/* The peer as its proof names it: "key:..." or a name in its certificate; "" before the proof. */
const char *wf_session_identity(const struct wf_session *session);

/* Is the session one of @credentials, and of their newest key? */
bool wf_session_is_of(const struct wf_session *session, const struct wf_credentials *credentials);

/* Would the peer's proof do for @credentials: their newest key, or the older one in its grace? */
bool wf_session_does(const struct wf_session *session, const struct wf_credentials *credentials);

/* The cipher that was agreed, for people. */
const char *wf_session_cipher(const struct wf_session *session);

#endif
