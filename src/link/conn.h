/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a connection, for door.c and conn.c alone: others use door.h.
 *
 * A conn turns a stream into messages and back, and knows in which of its door's lists it stands.
 * A conn reports nothing: the door does.
 *
 * Threads: owner.
 */
#ifndef WF_CONN_H
#define WF_CONN_H

#include "link/crowd.h"
#include "link/door.h"
#include "link/byte_stream.h"
#include "util/list.h"

/* Room for some 80 hellos: a longer queue means that the peer does not read. */
#define WF_CONN_QUEUE_BYTES_MAX (256 * KIB)
#define WF_CONN_LINGER_NS WF_NS_PER_S

/* The connections of one door; each stands in one list. */
struct wf_conn_lists {
	struct wf_list strangers; /* strangers, the oldest first, also those that are closing */
	struct wf_list guests;    /* adopted conns that are not trusted, the oldest first */
	struct wf_list owned;
	struct wf_list closing;
	struct wf_list dead; /* dead conns, kept while events may still name them */
	struct wf_list more; /* conns whose sessions hold bytes that no event tells of */
	unsigned stranger_count, guest_count;
	struct wf_crowd crowd;    /* strangers and guests, by their sources */
	bool polling; /* a poll runs: dead conns are freed at its end */
};

/* The first message of one direction. */
struct wf_conn_first {
	uint8_t *bytes; /* NULL: the message is not there yet, or forgotten */
	size_t count;
	bool over;      /* no later message is taken for the first */
};

/* The message that is coming in. */
struct wf_conn_in {
	uint8_t *bytes; /* @size bytes, once the length is known; NULL: the prefix is coming */
	size_t count, size;
};

/* Messages that wait to be written: @count bytes from @at. */
struct wf_conn_out {
	uint8_t *bytes; /* a buffer of @size bytes */
	size_t at, count, size;
};

struct wf_conn {
	struct wf_list node;
	struct wf_list more_node; /* in lists->more, or in no list */
	struct wf_conn_lists *lists;
	struct wf_byte_stream stream; /* closed: the conn is dead */
	void *owner;
	const struct wf_list *standing; /* the list of @lists that holds the conn; NULL: none */
	uint32_t source; /* number of the source in lists->crowd; unused when dialled */
	bool dialled, closing;
	bool dialling; /* the dial is not through, with its handshake */
	bool older;    /* the dial shows the older key: the peer has refused the newer one */
	bool mute; /* writing has failed; reading finds the end, and its cause */
	/* Part of a message is out and there is no memory for the rest: the stream must end. */
	bool torn;
	uint64_t since_ns; /* when a stranger came */
	uint64_t until_ns; /* limit of a stranger or a closing conn; 0: the next poll sets it */

	uint8_t prefix[WF_GREET_PREFIX_BYTES];
	struct wf_conn_in in;
	struct wf_conn_out out;
	struct wf_conn_first sent, got;

	char remote[WF_SOCKET_ADDRESS_BYTES];
};

/* Make a conn in no list but of @lists, without a socket.  NULL: out of memory. */
struct wf_conn *wf_conn_new(struct wf_conn_lists *lists);

/* Move the stream of @from, and what has come of it, to the new conn @to.  @from is dead then. */
void wf_conn_move(struct wf_conn *from, struct wf_conn *to);

void wf_conn_stand_as_stranger(struct wf_conn *conn, uint64_t until_ns);

/*
 * Read the next message.  -EAGAIN: not all of the message is here.  Any other error, with a
 * sentence, is the end: of the stream, or of our patience with its bytes (-EBADMSG, -EMSGSIZE).
 */
int wf_conn_read(struct wf_conn *conn, struct wf_greet *greet, struct wf_error *e);

/* Write queued messages, as far as the peer takes them. */
void wf_conn_flush(struct wf_conn *conn);

/* Is the stream there, and may messages be read and written? */
static inline bool wf_conn_is_open(const struct wf_conn *conn)
{
	return conn->stream.socket && !conn->dialling && !conn->stream.shaking;
}

/* Do bytes wait for the peer to take them? */
bool wf_conn_waits(const struct wf_conn *conn);

/* Say which readiness matters now. */
void wf_conn_want(struct wf_conn *conn);

/* Close the stream at once.  @conn is freed, or dead until the poll ends. */
void wf_conn_bury(struct wf_conn *conn);

/*
 * Returns the oldest conn in @list (strangers or guests) of the source that has most conns.
 * NULL: none.
 */
struct wf_conn *wf_conn_least(const struct wf_conn_lists *lists, const struct wf_list *list);

/* Free dead conns. */
void wf_conn_reap(struct wf_conn_lists *lists);

#endif
