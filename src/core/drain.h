/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drain: a node that takes no more calls.
 *
 * Threads: owner.
 */
#ifndef WF_CORE_DRAIN_H
#define WF_CORE_DRAIN_H

#include "core/worker.h"

/*
 * Take no more calls, and wait for running ones.  -ETIMEDOUT, -EOWNERDEAD: recorded.
 * Threads: any.
 */
int wf_drain(struct weft_node *node, uint64_t timeout_ns);

/* Tell the peer of @link, which has come up, if this node drains. */
void wf_drain_up(struct wf_worker *worker, struct wf_link *link);

/* Handle DRAIN records, by which a peer says that it drains.  Threads: setup. */
void wf_drain_route(struct wf_worker *worker, struct wf_routes *routes);

/* Check that the peer of @link takes calls.  -ESHUTDOWN: it drains. */
int wf_drain_check(const struct wf_link *link, struct wf_error *e);

/* Note that a call which @worker served is gone. */
void wf_drain_gone(struct wf_worker *worker);

#endif
