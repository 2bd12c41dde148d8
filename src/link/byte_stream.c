/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/byte_stream.h"

#include <errno.h>

#define FEED_BYTES 16384 /* taken off the socket at once: no more than this is held in a session */

/* The alert protocol_version, by which a node that speaks no TLS hears why the connection ends. */
static const uint8_t alert[] = { 21, 3, 3, 0, 2, 2, 70 };

/* The alert insufficient_security, by which a node with credentials hears that we have none. */
static const uint8_t without_credentials[] = { 21, 3, 3, 0, 2, 2, 71 };

void wf_byte_stream_close(struct wf_byte_stream *s)
{
	wf_socket_close(s->socket);
	wf_session_free(s->session);
	*s = (struct wf_byte_stream){ 0 };
}

int wf_byte_stream_secure(struct wf_byte_stream *s, struct wf_credentials *credentials,
			  const char *host, bool older)
{
	s->shaking = true;
	return wf_session_new(credentials, host, older, &s->session);
}

/*
 * Feed the session what has come.  0, also at -EAGAIN when there was something; -ECONNRESET: the
 * end.
 */
static int feed(struct wf_byte_stream *s)
{
	uint8_t bytes[FEED_BYTES];
	ssize_t got = wf_socket_read(s->socket, bytes, sizeof(bytes));

	if (got == 0)
		return -ECONNRESET;
	if (got < 0)
		return (int)got;
	s->greeted = true;
	return wf_session_feed(s->session, bytes, (size_t)got);
}

int wf_byte_stream_flush(struct wf_byte_stream *s)
{
	const uint8_t *bytes;
	ssize_t sent;
	size_t count;

	while (s->session && (bytes = wf_session_outgoing(s->session, &count))) {
		sent = wf_socket_write(s->socket, bytes, count);
		if (sent < 0)
			return (int)sent;
		wf_session_sent(s->session, (size_t)sent);
	}
	return 0;
}

bool wf_byte_stream_waits(const struct wf_byte_stream *s)
{
	size_t count;

	return s->session && wf_session_outgoing(s->session, &count);
}

int wf_byte_stream_shake(struct wf_byte_stream *s, struct wf_error *e)
{
	int rc, end = 0, sent;

	while ((rc = wf_session_shake(s->session, e)) == -EAGAIN && !(end = feed(s)))
		;
	if (rc == -EBADMSG && !wf_byte_stream_waits(s))
		(void)wf_socket_write(s->socket, alert, sizeof(alert));
	sent = wf_byte_stream_flush(s);
	if (rc && rc != -EAGAIN)
		return rc;
	if (end && end != -EAGAIN)
		return wf_error_set(e, end, "the connection ended: %s", end != -ECONNRESET ?
				    wf_error_name(end) : s->greeted ? "in the middle" :
				    "at once, so it may have no key, or be no node");
	if (sent && sent != -EAGAIN)
		return wf_error_set(e, sent, "the connection broke: %s", wf_error_name(sent));
	s->shaking = rc;
	return rc;
}

void wf_byte_stream_decline(struct wf_byte_stream *s)
{
	(void)wf_socket_write(s->socket, without_credentials, sizeof(without_credentials));
}

ssize_t wf_byte_stream_read(struct wf_byte_stream *s, void *bytes, size_t count, struct wf_error *e)
{
	ssize_t got;
	int err;

	if (!s->session)
		return wf_socket_read(s->socket, bytes, count);
	for (;;) {
		got = wf_session_read(s->session, bytes, count, e);
		if (got != -EAGAIN)
			return got;
		err = feed(s);
		if (err)
			return err == -ECONNRESET ? 0 : err;
	}
}

ssize_t wf_byte_stream_write(struct wf_byte_stream *s, const void *bytes, size_t count)
{
	ssize_t put;
	int err;

	if (!s->session)
		return wf_socket_write(s->socket, bytes, count);
	err = wf_byte_stream_flush(s);
	if (err)
		return err;
	put = wf_session_write(s->session, bytes, count);
	if (put < 0)
		return put;
	/* Bytes that the peer does not take now stay in the session. */
	err = wf_byte_stream_flush(s);
	return err && err != -EAGAIN ? err : put;
}
