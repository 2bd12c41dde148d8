/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a connection, for door.c and conn.c alone: others use door.h.
 *
 * It turns a stream into messages and back, and knows in which of its door's
 * lists it stands.  It tells nobody anything: the door does.
 *
 * Threads: owner.
 */
#ifndef WF_CONN_H
#define WF_CONN_H

#include "link/crowd.h"
#include "link/door.h"
#include "util/list.h"

/* Some 80 hellos: more means that the peer does not read. */
#define WF_CONN_QUEUE_BYTES_MAX (256 * KIB)
#define WF_CONN_LINGER_NS WF_NS_PER_S

/* The connections of one door; each stands in one list. */
struct wf_conn_lists {
	struct wf_list strangers; /* oldest first, also those that are closing */
	struct wf_list guests;    /* adopted and not trusted, oldest first */
	struct wf_list owned;
	struct wf_list closing;
	struct wf_list dead; /* kept while events may still name them */
	unsigned stranger_count, guest_count;
	struct wf_crowd crowd;    /* strangers and guests, by their sources */
	bool polling; /* so the dead wait for the end of the poll */
};

/* The first message of one direction. */
struct wf_conn_first {
	uint8_t *bytes; /* NULL: not there yet, or forgotten */
	size_t count;
	bool over;      /* no later one is taken for it */
};

/* The message that is coming. */
struct wf_conn_in {
	uint8_t *bytes; /* @size of them, once its length is known; NULL: its prefix is coming */
	size_t count, size;
};

/* Messages that wait to be written: @count bytes from @at. */
struct wf_conn_out {
	uint8_t *bytes; /* @size of them */
	size_t at, count, size;
};

struct wf_conn {
	struct wf_list node;
	struct wf_conn_lists *lists;
	struct wf_socket *socket; /* NULL: dead */
	void *owner;
	const struct wf_list *standing; /* which of @lists it is in; NULL: none */
	uint32_t source; /* in lists->crowd; of dialled ones nothing */
	bool dialled, dialling, closing;
	bool mute; /* writing has failed; reading finds the end and says how */
	bool torn; /* part of a message is out and there is no memory for the rest: it must end */
	uint64_t until_ns; /* of strangers and closing ones; 0: the next poll sets it */

	uint8_t prefix[WF_GREET_PREFIX_BYTES];
	struct wf_conn_in in;
	struct wf_conn_out out;
	struct wf_conn_first sent, got;

	char remote[WF_SOCKET_ADDRESS_BYTES];
};

/* A conn in no list but of @lists, without a socket.  NULL: out of memory. */
struct wf_conn *wf_conn_new(struct wf_conn_lists *lists);

/* The stream of @from, and what has come of it, goes over to @to, which is new.  @from is dead. */
void wf_conn_move(struct wf_conn *from, struct wf_conn *to);

void wf_conn_stand_as_stranger(struct wf_conn *conn, uint64_t until_ns);

/*
 * The next message.  -EAGAIN: not all of it is here.  Other: the end, with a
 * sentence: of the stream, or of our patience with what came (-EBADMSG, -EMSGSIZE).
 */
int wf_conn_read(struct wf_conn *conn, struct wf_greet *greet, struct wf_error *e);

/* Write what waits, as far as the peer takes it. */
void wf_conn_flush(struct wf_conn *conn);

/* Close the stream at once.  @conn is freed, or dead until the poll ends. */
void wf_conn_bury(struct wf_conn *conn);

/* The oldest in @list, of strangers or guests, of the source that has most there and here.  NULL: none. */
struct wf_conn *wf_conn_least(const struct wf_conn_lists *lists, const struct wf_list *list);

/* Free the dead. */
void wf_conn_reap(struct wf_conn_lists *lists);

#endif
