/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Op: operations, made by any thread, run and ended by a worker, and freed when both the
 * user and the library have let go.
 */
#ifndef WF_CORE_OP_H
#define WF_CORE_OP_H

#include <stdatomic.h>
#include <weft/weft.h>
#include "core/node.h"
#include "core/op_class.h"
#include "core/peer.h"
#include "core/recv.h"
#include "core/rpc.h"
#include "core/send.h"
#include "core/streaming.h"
#include "util/reason.h"
#include "util/status.h"

#define WF_OP_FLAGS ((unsigned)(WEFT_CHECKSUM | WEFT_STRICT_NO_STAGING | WEFT_STRICT_NO_FALLBACK))

/* Names up to this need no memory of their own: a short key, and two dimensions. */
#define WF_OP_NAMES_BYTES 64

/* Told: its callback runs.  Ended: that has returned too. */
enum wf_op_state { WF_OP_RUNNING, WF_OP_TOLD, WF_OP_ENDED };

/* The wish of a user to end it. */
struct wf_op_cancel {
	struct wf_task task;
	struct wf_desk *desk; /* where the task runs */
};

struct weft_op {
	_Alignas(int64_t) char names[WF_OP_NAMES_BYTES]; /* key, shape and strides, if they fit here */

	/* From here on all is zero when it is made, up to what its kind sets up by itself. */
	struct wf_list node;      /* in owner->ops */
	struct weft_node *owner;  /* NULL: the node has closed */
	struct wf_desk *_Atomic desk; /* that runs it */
	uint64_t number;          /* for people: the first of a node is 1 */
	const struct wf_op_class *class;
	atomic_uint refs;         /* user's and library's */
	_Atomic enum wf_op_state state;
	enum weft_executed executed;
	/* Small ones side by side; but for the first two worker only, and from copies on until it has ended. */
	atomic_bool submitted;    /* the call that began it is over: its callback may run */
	atomic_bool cancel_asked;
	bool timed;               /* its options name a time limit */
	bool started;
	bool moves;               /* taken back, to be begun at another desk */
	bool finished;            /* the outcome is set: executed, and from error on */
	uint8_t copies;
	uint8_t way;              /* of its path: enum wf_body_way */
	uint8_t sum_kind;         /* enum wf_body_sum */
	void (*done)(struct weft_op *op, void *arg); /* its options': NULL: nobody is told */
	void *arg;
	uint64_t made_ns, deadline_ns;
	struct wf_terms terms;

	/* worker only, until it has ended */
	struct weft_peer *peer;   /* NULL: a receive from any */
	struct wf_task start_task;
	struct wf_op_cancel cancel;
	struct wf_timer timer;
	struct wf_notice notice;
	struct wf_watch_op watched;

	struct wf_reason error;   /* none: it went well */
	const struct wf_names *over; /* of the rail; NULL: nothing moved */
	const struct wf_path *path; /* the rest, in what its kind has; NULL: there is no more to tell */
	uint64_t done_ns;         /* the outcome was known */

	void *memory;             /* names that did not fit */
	union {
		struct wf_echo echo;
		struct wf_op_send send;
		struct wf_op_recv recv;
		struct wf_op_call call;
		struct wf_op_write write;
		struct wf_op_read read;
	};
};

static inline bool wf_op_ended(const struct weft_op *op)
{
	return atomic_load(&op->state) != WF_OP_RUNNING;
}

/* How it has ended; WEFT_UNKNOWN, and "" for the sentence: it has not. */
static inline enum weft_status wf_op_status(const struct weft_op *op)
{
	return wf_op_ended(op) ? wf_status_of(op->error.code) : WEFT_UNKNOWN;
}

static inline const char *wf_op_message(const struct weft_op *op)
{
	return wf_op_ended(op) ? wf_reason_text(&op->error) : "";
}

/* What its body did, as far as path->size goes, once it has ended.  Threads: any, callback. */
void wf_op_path(const struct weft_op *op, struct weft_path *path);

/* Wait until it has ended.  -ETIMEDOUT, -EOWNERDEAD: recorded.  Threads: any, but in no callback. */
int wf_op_wait(struct weft_op *op, uint64_t timeout_ns);

/* A user asks to end it; gives up its reference.  Threads: any, callback. */
void wf_op_cancel(struct weft_op *op);
void wf_op_free(struct weft_op *op);

/* Submit @fresh for a caller who wants it in *@op, or who does not wait, @op NULL.  Threads: any, callback. */
void wf_op_launch(struct weft_op *fresh, uint64_t now_ns, struct weft_op **op);

/* For the node: what it keeps of and for operations, of @classes, one for each kind. */
void wf_op_init(struct weft_node *node, const struct wf_options *options,
		const struct wf_op_class *const classes[WF_OP_KINDS]);
void wf_op_fini(struct weft_node *node);
/*
 * The options of an operation inside others, where they need not say anything: then NULL.
 * -EINVAL: they do, and not their size.
 */
int wf_op_nested(const struct weft_op_options *given, const struct weft_op_options **options);

/* An operation with @peer; NULL: with any of @node. */
int wf_op_new(struct weft_node *node, struct weft_peer *peer, const struct wf_op_class *class,
	      const struct weft_op_options *options, struct weft_op **op);
/* One that will not be submitted: nobody else knows it. */
void wf_op_drop(struct weft_op *op);
void wf_op_submit(struct weft_op *op, uint64_t now_ns); /* as wf_turn_run */
void wf_op_begin(struct weft_op *op); /* at its desk: from now on it can end */
void wf_op_stop(struct weft_op *op, const struct wf_error *e); /* harmless unless it runs */
/* Begin it again from the start, when nothing of it runs.  Threads: owner. */
void wf_op_again(struct weft_op *op);
void wf_op_finish(struct weft_op *op, const struct wf_error *e, enum weft_executed executed);
/* With the outcome that is set already. */
void wf_op_finish_kept(struct weft_op *op);
void wf_op_put(struct weft_op *op);
/*
 * Take @op back, unless it is about to end: as if it had not begun, before its peer was met.
 * Then, if it was, begin it again at desk @to.  Threads: owner.
 */
void wf_op_take_back(struct weft_op *op);
void wf_op_move(struct weft_op *op, struct wf_desk *to);

/* The node closes: what waits for memory of the pool would wait for ever, for nobody gives any back. */
void wf_op_starve(struct wf_desk *desk);
/* Borrows @path until @op is freed. */
void wf_op_path_set(struct weft_op *op, const struct wf_path *path, unsigned copies);

#endif
