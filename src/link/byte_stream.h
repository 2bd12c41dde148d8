/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a conn: as they are, or in a TLS session with the peer.
 *
 * A stream in TLS first shakes hands: until that is done nothing of ours leaves but the handshake,
 * and nothing of the peer's is heard.
 *
 * Threads: owner.
 */
#ifndef WF_BYTE_STREAM_H
#define WF_BYTE_STREAM_H

#include "link/socket.h"
#include "secure/session.h"

struct wf_byte_stream {
	struct wf_socket *socket;   /* NULL: the stream is closed */
	struct wf_session *session; /* NULL: bytes go as they are, or the handshake has not begun */
	bool shaking;               /* the handshake is not done */
	bool greeted;               /* the peer has said something of its handshake */
};

/* Close the socket and wipe the session. */
void wf_byte_stream_close(struct wf_byte_stream *stream);

/*
 * Begin a session: what the peer says is the handshake.  @host: the host that was dialled; NULL:
 * the peer dialled.  @older: show it the older key.  -ENOMEM.
 */
int wf_byte_stream_secure(struct wf_byte_stream *stream, struct wf_credentials *credentials,
			  const char *host, bool older);

/*
 * Go on with the handshake.  0: it is done.  -EAGAIN: not yet.  Any other error, with a sentence:
 * the peer is not proven, and has been told as far as it takes bytes.
 */
int wf_byte_stream_shake(struct wf_byte_stream *stream, struct wf_error *e);

/* Tell the peer, who shakes hands, that this node has no credentials.  @stream has no session. */
void wf_byte_stream_decline(struct wf_byte_stream *stream);

/*
 * Read bytes.  Returns how many; 0 at the end; -EAGAIN; any other error: the stream is broken, and
 * @e has a sentence if TLS knows why.
 */
ssize_t wf_byte_stream_read(struct wf_byte_stream *stream, void *bytes, size_t count,
			    struct wf_error *e);

/* Has the session read bytes off the socket that nobody has read yet?  No event tells of those. */
static inline bool wf_byte_stream_holds(const struct wf_byte_stream *stream)
{
	return stream->session && wf_session_holds(stream->session);
}

/*
 * Write bytes.  Returns how many were taken; -EAGAIN; any other error: the stream is broken.
 * Sealed ones may wait: see wf_byte_stream_flush().
 */
ssize_t wf_byte_stream_write(struct wf_byte_stream *stream, const void *bytes, size_t count);

/* Write sealed bytes that wait.  0: none is left; -EAGAIN; other errors: the stream is broken. */
int wf_byte_stream_flush(struct wf_byte_stream *stream);

/* Do sealed bytes wait for the peer to take them? */
bool wf_byte_stream_waits(const struct wf_byte_stream *stream);

#endif
