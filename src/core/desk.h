/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Desk: a worker, the thread that owns it, and the state of the floors above for its links.
 *
 * All desks of a node are alike, but the first one's door listens for all of them.
 */
#ifndef WF_CORE_DESK_H
#define WF_CORE_DESK_H

#include <pthread.h>
#include <stdatomic.h>
#include "core/watch.h"
#include "rpc/call.h"
#include "rpc/service.h"
#include "rpc/stream.h"
#include "tensor/bundle.h"
#include "tensor/step_end.h"
#include "transfer/echo.h"

struct wf_desk {
	struct weft_node *node;
	struct wf_worker worker;
	struct wf_routes routes;  /* handlers of received records */
	struct wf_transfer transfer;
	struct wf_unexpected_queue unexpected_queue;
	struct wf_channels channels;
	struct wf_bundles bundles;
	struct wf_sendings attachments; /* attachments that are sent */
	struct wf_echoes echoes;
	struct wf_streams streams;
	struct wf_calls calls;
	struct wf_serving serving;
	struct wf_watch watch;
	struct wf_task drain_task;
	atomic_bool drains;       /* the desk takes no more calls */
	struct wf_task stop_task;
	bool stop;                /* worker only */
	pthread_t thread;         /* the worker's, or the one that polled last */
	bool polling;             /* the thread is inside a turn of the loop */
	unsigned ended_count;     /* operations that ended in this turn */
};

/* Make @desk ready for services and operations of @node.  A negative code: no lock. */
int wf_desk_init(struct wf_desk *desk, struct weft_node *node);
/* Undo wf_desk_init. */
void wf_desk_fini(struct wf_desk *desk);

/* Returns the desk that serves @served. */
static inline struct wf_desk *wf_desk_of(const struct wf_server_call *served)
{
	return WF_CONTAINER(served->serving, struct wf_desk, serving);
}

/* Open the desk's worker, with the desk's own sink.  Threads: setup. */
int wf_desk_open(struct wf_desk *desk, struct wf_worker_config *config, struct wf_error *e);

/* Start the thread that drives @desk, unless its node is manual. */
int wf_desk_start(struct wf_desk *desk);
/* Stop and join the thread that drives @desk. */
void wf_desk_stop(struct wf_desk *desk);

/*
 * Close a node, by one thread that drives all its desks from now on: wf_desk_end for each, then
 * wf_desk_recall and wf_desk_live_on for all of them, as an operation that ends may belong to
 * another desk, until no desk has an offer out, or for the bound of a shared rail.
 */
/* End all that needs no other desk. */
void wf_desk_end(struct wf_desk *desk);
/* Take offers back.  Returns whether none is out any more. */
bool wf_desk_recall(struct wf_desk *desk);
/* Turn the loop once, with a bounded wait. */
void wf_desk_live_on(struct wf_desk *desk);

#endif
