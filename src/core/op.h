/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Op: operations, made by any thread, run and ended by a worker, and freed when both the
 * user and the library have let go.
 */
#ifndef WF_CORE_OP_H
#define WF_CORE_OP_H

#include <stdatomic.h>
#include <weft/weft.h>
#include "core/broadcast.h"
#include "core/completion_queue.h"
#include "core/composite.h"
#include "core/landing_next.h"
#include "core/node.h"
#include "core/note.h"
#include "core/op_class.h"
#include "core/peer.h"
#include "core/push.h"
#include "core/recv.h"
#include "core/recv_many.h"
#include "core/recv_set.h"
#include "core/rma.h"
#include "core/rpc.h"
#include "core/send.h"
#include "core/streaming.h"
#include "util/reason.h"
#include "util/status.h"

#define WF_OP_FLAGS ((unsigned)(WEFT_CHECKSUM | WEFT_STRICT_NO_STAGING | WEFT_STRICT_NO_FALLBACK))

/* Names up to this size need no allocation: a short key, and two dimensions. */
#define WF_OP_NAMES_BYTES 64

/* Told: the user's callback runs.  Ended: the callback has returned too. */
enum wf_op_state { WF_OP_RUNNING, WF_OP_TOLD, WF_OP_ENDED };

/* A user's request to end an operation. */
struct wf_op_cancel {
	struct wf_loop_task task;
	struct wf_worker *worker; /* the worker that runs the task */
};

/* The listener to the end: a callback or a queue of the options, or none. */
struct wf_op_told {
	union {
		void (*done)(struct weft_op *op, void *arg); /* NULL: no callback */
		struct weft_queue *queue; /* a reference; with entry.named */
	};
	void *arg; /* the program's */
};

struct wf_op_time {
	uint64_t made_ns, deadline_ns;
	struct wf_timer timer; /* at the deadline.  worker only */
};

/* How an operation has gone: worker only, and for any thread once it has ended. */
struct wf_op_outcome {
	struct wf_reason error;  /* none: the operation went well */
	const struct wf_names *over; /* names of the rail; NULL: nothing moved */
	const struct wf_path *path; /* the body's path, in the kind's member; NULL: none */
	uint64_t done_ns;        /* when the outcome was known */
	enum weft_executed executed;
	bool known;              /* the other members are set */
	uint8_t copies;
	unsigned way : 4;        /* the path's enum wf_body_way */
	unsigned sum_kind : 2;   /* the path's enum wf_body_sum */
	unsigned cipher : 2;     /* the path's */
};

struct weft_op {
	_Alignas(int64_t) char names[WF_OP_NAMES_BYTES]; /* key, shape and strides, if they fit */

	struct wf_list node;      /* in owner->ops, under the node's lock */
	struct wf_worker *_Atomic worker; /* the worker that runs the operation; NULL: it is spare */

	/* Members from here on are zero in a new operation, up to zero_to of its class. */
	struct weft_node *owner;  /* NULL: the node has closed */
	uint64_t number;          /* for people: one is given once, and some are left out */
	const struct wf_op_class *class;
	atomic_uint refs;         /* the user's and the library's */
	_Atomic enum wf_op_state state;
	/* Small members, side by side.  All but the first two are worker only. */
	atomic_bool submitted;    /* the submitting call is over: the callback may run */
	atomic_bool cancel_asked;
	bool timed : 1;           /* the options name a time limit */
	bool patient : 1;         /* like class->patient, for this operation */
	bool moves : 1;           /* the operation was taken back, to begin at another worker */
	bool started;
	struct wf_completion_queue_entry entry;
	struct wf_op_told told;
	struct wf_op_time time;
	struct wf_terms terms;

	/* worker only, until it has ended */
	struct weft_peer *peer;   /* NULL: a receive from any peer */
	struct wf_loop_task start_task;
	struct wf_op_cancel cancel;
	struct wf_loop_notice notice;
	struct wf_watch_op watched;

	struct wf_op_outcome outcome;

	void *memory;             /* allocated names, that did not fit */
	union {
		struct wf_echo echo;
		struct wf_op_send send;
		struct wf_op_recv recv;
		struct wf_op_call call;
		struct wf_op_write write;
		struct wf_op_read read;
		struct wf_op_rma rma;
		struct wf_op_note note;
		struct wf_op_landed landed; /* begins with a note */
		struct wf_op_push push;
		struct wf_op_recv_many recv_many;
		struct wf_op_broadcast broadcast;
		struct wf_op_recv_set recv_set;
		struct wf_op_composite composite;
	};
};

/* Returns the queue that @op comes out of; NULL: none. */
static inline struct weft_queue *wf_op_queue(const struct weft_op *op)
{
	return op->entry.named ? op->told.queue : NULL;
}

static inline bool wf_op_ended(const struct weft_op *op)
{
	return atomic_load(&op->state) != WF_OP_RUNNING;
}

/* Returns how @op has ended; WEFT_UNKNOWN: it has not. */
static inline enum weft_status wf_op_status(const struct weft_op *op)
{
	return wf_op_ended(op) ? wf_status_of(op->outcome.error.code) : WEFT_UNKNOWN;
}

/* Returns the sentence of the failure of @op; "": it has not ended. */
static inline const char *wf_op_message(const struct weft_op *op)
{
	return wf_op_ended(op) ? wf_reason_text(&op->outcome.error) : "";
}

/* Tell what the body of @op, which has ended, did, up to path->size.  Threads: any, callback. */
void wf_op_path(const struct weft_op *op, struct weft_path *path);

/* Ask for an early end of @op.  Threads: any, callback. */
void wf_op_cancel(struct weft_op *op);
/* Give up the user's reference to @op.  Threads: any, callback. */
void wf_op_free(struct weft_op *op);

/*
 * Submit @fresh and put it into *@op.  @op NULL: its queue gets it, or nobody waits for it.
 * Threads: any, callback.
 */
void wf_op_launch(struct weft_op *fresh, uint64_t now_ns, struct weft_op **op);

/* Set up the node's terms, list and freelists of operations; @classes: one for each kind. */
void wf_op_init(struct weft_node *node, const struct wf_options *options,
		const struct wf_op_class *const classes[WF_OP_KINDS]);
/* Free the spare operations in the list of @node, whose workers have ended; then its freelists. */
void wf_op_free_spares(struct weft_node *node);
void wf_op_fini(struct weft_node *node);
/*
 * Find the options of an operation inside others: *@options is NULL if all are zero.
 * -EINVAL: a field is set, and not the size.
 */
int wf_op_nested(const struct weft_op_options *given, const struct weft_op_options **options);

/* Make an operation with @peer; NULL: with any peer of @node. */
int wf_op_new(struct weft_node *node, struct weft_peer *peer, const struct wf_op_class *class,
	      const struct weft_op_options *options, struct weft_op **op);
/* Free @op, which will not be submitted, and which nobody else knows. */
void wf_op_drop(struct weft_op *op);
void wf_op_submit(struct weft_op *op, uint64_t now_ns); /* @now_ns: see wf_turn_run */
/* Start @op at once, in place of its task; wf_op_submitted() follows.  Threads: owner. */
void wf_op_start(struct weft_op *op);
void wf_op_submitted(struct weft_op *op, uint64_t now_ns); /* end the submission of @op */
bool wf_op_submission_is_over(const struct weft_op *op); /* May users hear of @op? */
void wf_op_begin(struct weft_op *op); /* at its worker: @op can end from now on */
void wf_op_stop(struct weft_op *op, const struct wf_error *e); /* harmless unless @op runs */
/* Begin @op again from the start, when nothing of it runs.  Threads: owner. */
void wf_op_again(struct weft_op *op);
void wf_op_finish(struct weft_op *op, const struct wf_error *e, enum weft_executed executed);
void wf_op_finish_kept(struct weft_op *op); /* with the outcome that is set already */
void wf_op_put(struct weft_op *op);
/* Undo the begin of @op, before its peer was met, unless @op is about to end.  Threads: owner. */
void wf_op_take_back(struct weft_op *op);
/* Begin @op, if it was taken back, again at worker @to.  Threads: owner. */
void wf_op_move(struct weft_op *op, struct wf_worker *to);

/* Stop what waits for memory of the pool, for nobody gives any back once the node closes. */
void wf_op_starve(struct wf_worker *worker);
/* Set the path of @op, which borrows @path until it is freed. */
void wf_op_path_set(struct weft_op *op, const struct wf_path *path, unsigned copies);

#endif
