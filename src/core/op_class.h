/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kind of operation: what one of it does that others do not.
 *
 * Each kind has a const table, in the file of the kind: ping.c, send.c, recv.c, rpc.c, and
 * streaming.c for writes and reads.
 */
#ifndef WF_CORE_OP_CLASS_H
#define WF_CORE_OP_CLASS_H

#include <weft/weft.h>
#include "link/link.h"
#include "util/error.h"
#include "util/recorder.h"

struct wf_desk;

enum wf_op_kind { WF_OP_PING, WF_OP_SEND, WF_OP_RECV, WF_OP_CALL, WF_OP_WRITE, WF_OP_READ };
_Static_assert(WF_OP_READ + 1 == WF_OP_KINDS, "every kind has a row");

/*
 * Functions run on the worker that runs the operation, except where it is said; one that is
 * NULL has nothing to do.
 */
struct wf_op_class {
	enum wf_op_kind kind;
	enum wf_recorder_kind recorded; /* in the flight recorder, when one begins */
	size_t bytes;   /* of a struct weft_op of this kind, whose union ends with what it needs */
	size_t zero_to; /* of these, the first ones are zero when it is made */

	/* Begin.  It may end at once. */
	void (*start)(struct weft_op *op);
	/* Begin at other desks than op->desk, too.  Threads: the one that submits it. */
	void (*fan_out)(struct weft_op *op, uint64_t now_ns);
	/* It was to start, but its node has closed: end it.  NULL: it holds nothing yet. */
	void (*refuse)(struct weft_op *op, const struct wf_error *e);
	/* End it early, because of @e; one that has begun. */
	void (*stop)(struct weft_op *op, const struct wf_error *e);
	/* As if it had not begun.  Another code than 0: it is too late for that, and it ends by itself. */
	int (*take_back)(struct weft_op *op);
	/* The node closes: stop what at @desk waits for what will not come any more. */
	void (*starve)(struct weft_op *op, struct wf_desk *desk, const struct wf_error *e);
	/* The desk that it is to run at.  NULL: that of its peer.  It runs at @to from now on. */
	struct wf_desk *(*place)(const struct weft_op *op);
	void (*moved)(struct weft_op *op, struct wf_desk *to);
	/* Its outcome is told: before its callback runs. */
	void (*tell)(struct weft_op *op);
	/* Nobody has it any more: free what it holds.  op->owner NULL: its node has closed.  Threads: any. */
	void (*free)(struct weft_op *op);
	/* Was it submitted?  NULL: always, for it is when it is made. */
	bool (*begun)(const struct weft_op *op);
	/* Its node has closed, and a user may hold it still.  Threads: setup. */
	void (*let_go)(struct weft_op *op);

	/* Bytes of the pool that it waits for; 0: it does not. */
	uint64_t (*missing_bytes)(const struct weft_op *op);
	/* Another number once it has come further. */
	uint64_t (*progress)(struct weft_op *op);
	/* Bytes that its peer may be reading just now, without a word. */
	uint64_t (*offered_bytes)(const struct weft_op *op);
	/* Where its body comes from, if that is known and is not its peer's link. */
	const struct wf_link *(*source)(const struct weft_op *op);
	/* Of a tensor. */
	uint64_t (*step)(const struct weft_op *op);

	/* For people: what it is, added to @text, from what stands since it was submitted. */
	void (*describe)(const struct weft_op *op, char *text);
	/* What it waits for. */
	void (*describe_wait)(const struct weft_op *op, char *text, size_t bytes);
	/* What @who, or whoever it names itself, has not done before the deadline. */
	void (*late)(const struct weft_op *op, const char *who, struct wf_error *e);
};

extern const struct wf_op_class wf_ping_class, wf_send_class, wf_recv_class, wf_rpc_class,
	wf_streaming_write_class, wf_streaming_read_class;

#endif
