/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drain: a worker that takes no more calls, and peers that take none.
 *
 * Threads: owner.
 */
#ifndef WF_CORE_DRAIN_H
#define WF_CORE_DRAIN_H

#include "core/worker.h"

/* Tell the peer of @link, which has come up, if this node drains. */
void wf_drain_up(struct wf_worker *worker, struct wf_link *link);

/* Handle DRAIN records, by which a peer says that it drains.  Threads: setup. */
void wf_drain_route(struct wf_worker *worker, struct wf_routes *routes);

/* Check that the peer of @link takes calls.  -ESHUTDOWN: it drains. */
int wf_drain_check(const struct wf_link *link, struct wf_error *e);

/* Has @worker served its last call, for now?  Threads: any. */
bool wf_drain_serves_none(const struct wf_worker *worker);

/* Wake threads that wait for the drain of @node.  Threads: any. */
void wf_drain_wake(struct weft_node *node);

/* Note that a call which @worker served is gone. */
void wf_drain_gone(struct wf_worker *worker);

#endif
