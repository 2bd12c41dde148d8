/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Desk: a worker, the thread that owns it, and what the floors above keep for its links.
 *
 * The desks of a node are alike, but the first one's door listens for all of them.
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
#include "tensor/ending.h"
#include "transfer/echo.h"

struct wf_desk {
	struct weft_node *node;
	struct wf_worker worker;
	struct wf_routes routes;  /* of the records that come to it */
	struct wf_transfer transfer;
	struct wf_arrivals arrivals;
	struct wf_channels channels;
	struct wf_bundles bundles;
	struct wf_sendings attachments; /* on their way out */
	struct wf_echoes echoes;
	struct wf_streams streams;
	struct wf_calls calls;
	struct wf_serving serving;
	struct wf_watch watch;
	struct wf_task drain_task;
	atomic_bool drains;       /* it takes no more calls */
	struct wf_task stop_task;
	bool stop;                /* worker only */
	pthread_t thread;         /* of the worker, or whoever polled last */
	bool polling;             /* inside a turn of the loop */
	unsigned ended_count;     /* operations that ended in this turn */
};

/* Make @desk ready for services and operations of @node; fini undoes that.  A negative code: no lock. */
int wf_desk_init(struct wf_desk *desk, struct weft_node *node);
void wf_desk_fini(struct wf_desk *desk);

/* Of a call that is served. */
static inline struct wf_desk *wf_desk_of(const struct wf_served *served)
{
	return WF_CONTAINER(served->serving, struct wf_desk, serving);
}

/* Open its worker, which gets the desk's own sink.  Threads: setup. */
int wf_desk_open(struct wf_desk *desk, struct wf_worker_config *config, struct wf_error *e);

/* The thread that drives a desk, unless its node is manual. */
int wf_desk_start(struct wf_desk *desk);
void wf_desk_stop(struct wf_desk *desk);

/*
 * Closing, by a thread that drives all desks of the node from now on.  First each ends what
 * needs nobody else; then offers are taken back, and all live on, for what ends may be another's,
 * until each says that it has none, or for the bound of a shared rail.
 */
void wf_desk_end(struct wf_desk *desk);
bool wf_desk_recall(struct wf_desk *desk);
void wf_desk_live_on(struct wf_desk *desk);

#endif
