/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operation class: the functions in which one kind of operation differs from others.
 *
 * Each kind has a const table, in a file of its own: ping.c, send.c, recv.c, recv_many.c,
 * recv_set.c, rpc.c, note.c, landing_next.c, push.c, broadcast.c, composite.c, streaming.c for
 * writes and reads, and rma.c for gets and puts.
 */
#ifndef WF_CORE_OP_CLASS_H
#define WF_CORE_OP_CLASS_H

#include <weft/weft.h>
#include "link/link.h"
#include "util/error.h"
#include "util/recorder.h"

struct wf_worker;

enum wf_op_kind {
	WF_OP_PING,
	WF_OP_SEND,
	WF_OP_RECV,
	WF_OP_CALL,
	WF_OP_WRITE,
	WF_OP_READ,
	WF_OP_GET,
	WF_OP_PUT,
	WF_OP_NOTE,
	WF_OP_RECV_MANY,
	WF_OP_BROADCAST,
	WF_OP_RECV_SET,
	WF_OP_LANDED,
	WF_OP_PUSH,
	WF_OP_COMPOSITE
};
_Static_assert(WF_OP_COMPOSITE + 1 == WF_OP_KINDS, "every kind has a row");

/*
 * Functions run on the worker that runs the operation, unless Threads says otherwise; a
 * function that is NULL has nothing to do.
 */
struct wf_op_class {
	enum wf_op_kind kind;
	enum wf_recorder_kind recorded; /* the flight recorder's event of a begin */
	size_t bytes;   /* length of a struct weft_op whose union ends with this kind's member */
	size_t zero_to; /* end of the members that are zero in a new operation */
	bool patient;   /* waiting is the rule: the watchdog says nothing of it */

	/* Begin @op, which may end at once. */
	void (*start)(struct weft_op *op);
	/* Begin @op at other workers than op->worker, too.  Threads: the submitter's. */
	void (*fan_out)(struct weft_op *op, uint64_t now_ns);
	/* End @op, which was to start, but the node has closed.  NULL: it holds nothing yet. */
	void (*refuse)(struct weft_op *op, const struct wf_error *e);
	/* End @op, which has begun, early because of @e. */
	void (*stop)(struct weft_op *op, const struct wf_error *e);
	/*
	 * Undo the begin of @op, for its peer is at another worker.  Another code than 0: nothing
	 * was done, and @op stays at its worker.  NULL: the kind is made without a peer.
	 */
	int (*take_back)(struct weft_op *op);
	/* Stop @op if it waits at @worker for something that a closing node does not bring. */
	void (*starve)(struct weft_op *op, struct wf_worker *worker, const struct wf_error *e);
	/* Returns the worker that @op is to run at.  NULL: the worker of its peer. */
	struct wf_worker *(*place)(const struct weft_op *op);
	/* Note that @op runs at @to from now on. */
	void (*moved)(struct weft_op *op, struct wf_worker *to);
	/* Tell the outcome, before the user's callback runs. */
	void (*tell)(struct weft_op *op);
	/* Free what an unused @op holds.  op->owner NULL: the node has closed.  Threads: any. */
	void (*free)(struct weft_op *op);
	/* Returns whether @op was submitted.  NULL: always, as soon as it is made. */
	bool (*begun)(const struct weft_op *op);
	/* Drop what is the closed node's from @op, which a user may still hold.  Threads: setup. */
	void (*let_go)(struct weft_op *op);

	/* Returns how many bytes of the pool @op waits for; 0: it does not. */
	uint64_t (*missing_bytes)(const struct weft_op *op);
	/* Returns another number once @op has made progress. */
	uint64_t (*progress)(struct weft_op *op);
	/* Returns how many bytes the peer may be reading now, unreported. */
	uint64_t (*offered_bytes)(const struct weft_op *op);
	/* Returns the link of the body's source, if known and not the peer's link. */
	const struct wf_link *(*source)(const struct weft_op *op);
	/* Returns the step of a tensor. */
	uint64_t (*step)(const struct weft_op *op);

	/* Append to @text what @op is, from members that are fixed since its submission. */
	void (*describe)(const struct weft_op *op, char *text);
	/* Write what @op waits for. */
	void (*describe_wait)(const struct weft_op *op, char *text, size_t bytes);
	/* Set @e: what @who, or a peer that the class names, has not done before the deadline. */
	void (*late)(const struct weft_op *op, const char *who, struct wf_error *e);
};

/* Implement refuse of an operation of parts, which end by themselves in a closing node: begin it. */
void wf_op_refuse_parts(struct weft_op *op, const struct wf_error *e);

extern const struct wf_op_class wf_ping_class, wf_send_class, wf_recv_class,
	wf_recv_many_class, wf_rpc_class,
	wf_streaming_write_class, wf_streaming_read_class, wf_rma_get_class,
	wf_rma_put_class, wf_note_class, wf_broadcast_class, wf_recv_set_class,
	wf_landing_next_class, wf_push_class, wf_composite_class;

#endif
