/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker: a progress engine, the thread that owns it, and the state of all floors above.
 *
 * All workers of a node are alike, but the first one's door listens for all of them.
 */
#ifndef WF_CORE_WORKER_H
#define WF_CORE_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include "core/watch.h"
#include "loop/baton.h"
#include "rpc/call.h"
#include "rpc/service.h"
#include "rpc/stream.h"
#include "tensor/attachment_set.h"
#include "tensor/remote.h"
#include "tensor/step_end.h"
#include "tensor/window.h"
#include "transfer/echo.h"

#define WF_OP_KINDS 15 /* enum wf_op_kind of op_class.h */

struct wf_worker {
	struct weft_node *node;
	struct wf_engine engine;
	struct wf_routes routes;  /* handlers of received records */
	struct wf_transfer transfer;
	struct wf_unexpected_queue unexpected_queue;
	struct wf_channels channels;
	struct wf_attachment_sets attachment_sets;
	struct wf_sendings attachments; /* attachments that are sent */
	struct wf_echoes echoes;
	struct wf_windows windows;
	struct wf_remotes remotes;
	struct wf_streams streams;
	struct wf_calls calls;
	struct wf_server_calls serving;
	struct wf_watch watch;
	struct wf_loop_task drain_task;
	atomic_bool drains;       /* the worker takes no more calls */
	struct wf_loop_task proof_task;
	atomic_bool proof_due;    /* @proof_task is under way */
	uint64_t proof_taken;     /* reading of the files that holds; under the node's lock */
	atomic_bool proof_again;  /* by that task peers are to prove themselves again */
	struct wf_loop_task stop_task;
	bool stop;                /* owner only */
	_Atomic pthread_t thread; /* the worker's, or the one that polled last */
	_Atomic uintptr_t driver; /* the thread that has the loop, but for a guest; 0: none */
	struct wf_baton baton;    /* the right to turn the loop of a threaded node */
	_Atomic uintptr_t guest;  /* thread that turns the loop in the place of @thread; 0: none */
	_Atomic uint64_t ask_ns;  /* guests ask so long for the loop, or as WEFT_SPIN says if longer */
	uint64_t turned_ns;       /* a guest's last turn; for who has the baton */
	unsigned ended_count;     /* operations that ended in this turn */
	/* For operations that callbacks of @thread make, and nobody else: */
	struct weft_op *spare_ops[WF_OP_KINDS]; /* NULL: none */
	uint64_t next_number;
	unsigned numbers_left;
};

/* Make @worker ready for services and operations of @node.  A negative code: no lock. */
int wf_worker_init(struct wf_worker *worker, struct weft_node *node);
/* Undo wf_worker_init. */
void wf_worker_fini(struct wf_worker *worker);

/* Returns the worker that serves @served. */
static inline struct wf_worker *wf_worker_of(const struct wf_server_call *served)
{
	return WF_CONTAINER(served->serving, struct wf_worker, serving);
}

/* Returns the server call behind @call, the user's handle; NULL for NULL. */
static inline struct wf_server_call *wf_worker_served(struct weft_served *call)
{
	return (struct wf_server_call *)(void *)call;
}

/* Returns the user's handle of @served; NULL for NULL. */
static inline struct weft_served *wf_worker_handle(struct wf_server_call *served)
{
	return (struct weft_served *)(void *)served;
}

/* Open the worker's engine, with the worker's own sink.  Threads: setup. */
int wf_worker_open(struct wf_worker *worker, struct wf_engine_config *config, struct wf_error *e);

/* Start the thread that drives @worker, unless its node is manual. */
int wf_worker_start(struct wf_worker *worker);
/* End the wait of whoever turns @worker's loop, once, before the worker ends. */
void wf_worker_interrupt(struct wf_worker *worker);
/* Stop and join the thread that drives @worker. */
void wf_worker_stop(struct wf_worker *worker);

/*
 * Close a node, by one thread that drives all its workers from now on: wf_worker_end for each, then
 * wf_worker_recall and wf_worker_live_on for all of them, as an operation that ends may belong to
 * another worker, until no worker has an offer out, or for the bound of a shared rail.
 */
/* End all that needs no other worker. */
void wf_worker_end(struct wf_worker *worker);
/* Take offers back.  Returns whether none is out any more. */
bool wf_worker_recall(struct wf_worker *worker);
/* Turn the loop once, with a bounded wait. */
void wf_worker_live_on(struct wf_worker *worker);

#endif
