/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Unread bytes that are thrown away before a close; more than a peer sends unasked. */
#define DRAIN_BYTES_MAX (64 * KIB)

struct wf_conn *wf_conn_new(struct wf_conn_lists *lists)
{
	struct wf_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->lists = lists;
	wf_list_init(&c->node);
	wf_list_init(&c->more_node);
	return c;
}

/* Add @by to the count of the list that @c is in, if that list is counted. */
static void count(const struct wf_conn *c, uint32_t by)
{
	struct wf_conn_lists *lists = c->lists;

	if (c->standing == &lists->strangers)
		lists->stranger_count += by;
	else if (c->standing == &lists->guests)
		lists->guest_count += by;
	else
		return;
	lists->crowd.sources[c->source].count += by;
}

static void stand_in(struct wf_conn *c, struct wf_list *list)
{
	count(c, (uint32_t)-1);
	c->standing = list;
	count(c, 1);
	wf_list_remove(&c->node);
	wf_list_append(list, &c->node);
}

void wf_conn_stand_as_stranger(struct wf_conn *c, uint64_t until_ns)
{
	c->until_ns = until_ns;
	stand_in(c, &c->lists->strangers);
}

void wf_conn_adopt(struct wf_conn *c, void *owner)
{
	c->owner = owner;
	if (c->stream.socket && !c->closing)
		stand_in(c, c->dialled ? &c->lists->owned : &c->lists->guests);
}

void wf_conn_trust(struct wf_conn *c)
{
	if (c->standing == &c->lists->guests)
		stand_in(c, &c->lists->owned);
}

struct wf_conn *wf_conn_least(const struct wf_conn_lists *lists, const struct wf_list *list)
{
	struct wf_conn *least = NULL;
	uint32_t most = 0;

	WF_LIST_EACH(node, list) {
		struct wf_conn *c = WF_CONTAINER(node, struct wf_conn, node);
		uint32_t count = lists->crowd.sources[c->source].count;

		if (count <= most)
			continue;
		most = count;
		least = c;
	}
	return least;
}

void *wf_conn_owner(const struct wf_conn *c)
{
	return c->owner;
}

bool wf_conn_dialled(const struct wf_conn *c)
{
	return c->dialled;
}

int wf_conn_secret(const struct wf_conn *c, const char *label, struct wf_secret *secret)
{
	return c->stream.session ? wf_session_secret(c->stream.session, label, secret) : -ENOENT;
}

const char *wf_conn_identity(const struct wf_conn *c)
{
	return c->stream.session ? wf_session_identity(c->stream.session) : "";
}

bool wf_conn_does(const struct wf_conn *c, const struct wf_credentials *credentials)
{
	return c->stream.session && wf_session_does(c->stream.session, credentials);
}

bool wf_conn_is_proven_by(const struct wf_conn *c, const struct wf_credentials *credentials)
{
	return c->stream.session && wf_session_is_of(c->stream.session, credentials);
}

const char *wf_conn_remote(const struct wf_conn *c)
{
	return c->remote;
}

static void forget(struct wf_conn_first *first)
{
	free(first->bytes);
	*first = (struct wf_conn_first){ .over = true };
}

const uint8_t *wf_conn_first_sent(const struct wf_conn *c, size_t *count)
{
	*count = c->sent.count;
	return c->sent.bytes;
}

const uint8_t *wf_conn_first_got(const struct wf_conn *c, size_t *count)
{
	*count = c->got.count;
	return c->got.bytes;
}

void wf_conn_forget_first(struct wf_conn *c)
{
	forget(&c->sent);
	forget(&c->got);
}

static void free_conn(struct wf_conn *c)
{
	wf_conn_forget_first(c);
	free(c->in.bytes);
	free(c->out.bytes);
	free(c);
}

void wf_conn_reap(struct wf_conn_lists *lists)
{
	struct wf_list *node;

	while ((node = wf_list_pop(&lists->dead)))
		free_conn(WF_CONTAINER(node, struct wf_conn, node));
}

/* Read and drop bytes: a close over unread bytes is a reset, which would overtake the goodbye. */
static void drain(struct wf_conn *c)
{
	char bytes[4096];
	ssize_t got = 1;

	for (size_t total = 0; got > 0 && total < DRAIN_BYTES_MAX; total += (size_t)got)
		got = wf_socket_read(c->stream.socket, bytes, sizeof(bytes));
}

void wf_conn_bury(struct wf_conn *c)
{
	if (!c->dialling)
		drain(c);
	wf_byte_stream_close(&c->stream);
	wf_list_remove(&c->more_node);
	stand_in(c, &c->lists->dead);
	if (!c->lists->polling)
		wf_conn_reap(c->lists);
}

void wf_conn_move(struct wf_conn *from, struct wf_conn *to)
{
	to->stream = from->stream;
	to->dialled = from->dialled;
	memcpy(to->prefix, from->prefix, sizeof(to->prefix));
	to->in = from->in;
	strcpy(to->remote, from->remote);
	to->source = wf_crowd_source(&to->lists->crowd, to->remote);
	to->sent = from->sent;
	to->got = from->got;
	from->stream = (struct wf_byte_stream){ 0 };
	from->in = (struct wf_conn_in){ 0 };
	from->sent = from->got = (struct wf_conn_first){ .over = true };
	wf_list_remove(&from->more_node);
	stand_in(from, &from->lists->dead);
}

void wf_conn_close(struct wf_conn *c)
{
	c->owner = NULL;
	if (!c->stream.socket || c->closing)
		return;
	if (!wf_conn_is_open(c) || !wf_conn_waits(c)) {
		wf_conn_bury(c);
		return;
	}
	c->closing = true;
	c->until_ns = 0;
	/* A stranger keeps its place, or a crowd that does not read would need none. */
	if (c->standing != &c->lists->strangers)
		stand_in(c, &c->lists->closing);
}

/* Say how the stream has ended: @e has TLS's words for it, if there are any. */
static int say_ended(const struct wf_conn *c, int err, struct wf_error *e)
{
	if (!err)
		return wf_error_set(e, -ECONNRESET, "%s has closed the connection", c->remote);
	if (e->code)
		return wf_error_within(e, "the connection to %s broke", c->remote);
	return wf_error_set(e, err, "the connection to %s broke: %s", c->remote,
			    wf_error_name(err));
}

/* Read until @count bytes of the current part are here. */
static int fill(struct wf_conn *c, uint8_t *bytes, size_t count, struct wf_error *e)
{
	while (c->in.count < count) {
		ssize_t got = wf_byte_stream_read(&c->stream, bytes + c->in.count,
						  count - c->in.count, e);

		if (got == -EAGAIN)
			return -EAGAIN;
		if (got <= 0)
			return say_ended(c, (int)got, e);
		c->in.count += (size_t)got;
	}
	return 0;
}

/* Are the first bytes those of TLS, a handshake or an alert? */
static bool is_tls(const struct wf_conn *c)
{
	return !c->stream.session && (c->prefix[0] == 22 || c->prefix[0] == 21) &&
	       c->in.count > 1 && c->prefix[1] == 3;
}

/* Learn the length of the next message and make room for it, and for no more. */
static int start_message(struct wf_conn *c, struct wf_error *e)
{
	int err = fill(c, c->prefix, sizeof(c->prefix), e);
	/*
	 * The length is asked of any first bytes, so that a stranger to weft is known by its
	 * first, also one that has gone again.
	 */
	int length = wf_greet_length(c->prefix, c->in.count);

	if (length < 0 && is_tls(c)) {
		if (!c->dialled)
			wf_byte_stream_decline(&c->stream);
		return wf_error_set(e, -EKEYREJECTED, "%s sent TLS: it has a key or certificate, "
				    "and this node has none (WEFT_KEY_FILE, WEFT_CERT)", c->remote);
	}
	if (length < 0)
		return wf_error_set(e, length, "%s sent %s", c->remote, length == -EMSGSIZE ?
				    "a message that is too long" :
				    "what is no message of weft's");
	if (err)
		return err;
	c->in.bytes = malloc((size_t)length);
	if (!c->in.bytes)
		return wf_error_set(e, -ENOMEM, "a message from %s: out of memory", c->remote);
	memcpy(c->in.bytes, c->prefix, sizeof(c->prefix));
	c->in.size = (size_t)length;
	return 0;
}

int wf_conn_read(struct wf_conn *c, struct wf_greet *greet, struct wf_error *e)
{
	struct wf_error why = { 0 };
	int err;

	if (!c->in.bytes) {
		err = start_message(c, e);
		if (err)
			return err;
	}
	err = fill(c, c->in.bytes, c->in.size, e);
	if (err)
		return err;

	err = wf_greet_get(c->in.bytes, c->in.size, greet, &why);
	if (c->got.over)
		free(c->in.bytes);
	else
		c->got = (struct wf_conn_first){ .bytes = c->in.bytes, .count = c->in.size,
						.over = true };
	c->in = (struct wf_conn_in){ 0 };
	if (err)
		return wf_error_set(e, err, "%s sent a message that is refused: %s", c->remote,
				    why.text);
	return 0;
}

static void forget_queue(struct wf_conn *c)
{
	free(c->out.bytes);
	c->out = (struct wf_conn_out){ 0 };
}

void wf_conn_flush(struct wf_conn *c)
{
	while (c->out.count) {
		ssize_t sent = wf_byte_stream_write(&c->stream, c->out.bytes + c->out.at,
						    c->out.count);

		if (sent == -EAGAIN) {
			wf_conn_want(c);
			return;
		}
		if (sent < 0) {
			c->mute = true;
			break;
		}
		c->out.at += (size_t)sent;
		c->out.count -= (size_t)sent;
	}
	/* An idle connection holds no buffer: there are as many as there are peers. */
	forget_queue(c);
	(void)wf_byte_stream_flush(&c->stream);
	wf_conn_want(c);
}

bool wf_conn_waits(const struct wf_conn *c)
{
	return c->out.count || wf_byte_stream_waits(&c->stream);
}

void wf_conn_want(struct wf_conn *c)
{
	/* The queue waits for the end of a handshake, not for the socket. */
	bool waits = c->stream.shaking ? wf_byte_stream_waits(&c->stream) : wf_conn_waits(c);
	bool writes = c->torn || (!c->mute && waits);

	wf_socket_want(c->stream.socket,
		       WF_SOCKET_READABLE | (writes ? WF_SOCKET_WRITABLE : 0u));
}

/* Make room for @count more bytes at the end of the queue. */
static int reserve(struct wf_conn *c, size_t count)
{
	size_t need = c->out.count + count, bytes;
	uint8_t *out;

	if (need > WF_CONN_QUEUE_BYTES_MAX)
		return -ENOBUFS;
	if (c->out.at + need <= c->out.size)
		return 0;
	if (need > c->out.size) {
		bytes = WF_MAX(need, WF_MIN(2 * c->out.size, WF_CONN_QUEUE_BYTES_MAX));
		out = realloc(c->out.bytes, bytes);
		if (!out)
			return -ENOMEM;
		c->out.bytes = out;
		c->out.size = bytes;
	}
	memmove(c->out.bytes, c->out.bytes + c->out.at, c->out.count);
	c->out.at = 0;
	return 0;
}

/* Write what the socket takes of the @count bytes.  Returns how many. */
static size_t write_now(struct wf_conn *c, const uint8_t *bytes, size_t count)
{
	ssize_t sent = wf_byte_stream_write(&c->stream, bytes, count);

	if (sent < 0 && sent != -EAGAIN)
		c->mute = true;
	return sent > 0 ? (size_t)sent : 0;
}

/* Keep a copy of the first message.  false: no memory. */
static bool keep_first(struct wf_conn_first *first, const uint8_t *bytes, size_t count)
{
	first->bytes = malloc(count);
	if (!first->bytes)
		return false;
	memcpy(first->bytes, bytes, count);
	first->count = count;
	first->over = true;
	return true;
}

void wf_conn_break(struct wf_conn *c)
{
	c->torn = true;
	if (wf_conn_is_open(c))
		wf_conn_want(c);
}

int wf_conn_send(struct wf_conn *c, const struct wf_greet *greet)
{
	uint8_t bytes[WF_GREET_BYTES_MAX];
	int length = wf_greet_put(greet, bytes);
	size_t rest, sent = 0;
	int err;

	if (length < 0)
		return length;
	/* The stream has ended: messages are dropped until the next poll says so. */
	if (!c->stream.socket || c->closing || c->mute || c->torn)
		return 0;
	if (!c->sent.over && !keep_first(&c->sent, bytes, (size_t)length)) {
		wf_conn_break(c);
		return -ENOMEM;
	}
	/* A message waits for those before it, and for a dial to be through. */
	if (wf_conn_is_open(c) && !c->out.count)
		sent = write_now(c, bytes, (size_t)length);
	rest = (size_t)length - sent;
	if (c->mute || (!rest && !wf_byte_stream_waits(&c->stream)))
		return 0;
	err = rest ? reserve(c, rest) : 0;
	if (!err && rest) {
		memcpy(c->out.bytes + c->out.at + c->out.count, bytes + sent, rest);
		c->out.count += rest;
	} else if (err && sent) {
		c->torn = true;
	}
	if (wf_conn_is_open(c))
		wf_conn_want(c);
	return err;
}
