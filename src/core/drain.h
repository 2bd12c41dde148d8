/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drain: a node that takes no more calls.
 *
 * Threads: owner.
 */
#ifndef WF_CORE_DRAIN_H
#define WF_CORE_DRAIN_H

#include "core/desk.h"

/*
 * Take no more calls, and wait for those that run.  -ETIMEDOUT, -EOWNERDEAD: recorded.
 * Threads: any.
 */
int wf_drain(struct weft_node *node, uint64_t timeout_ns);

/* @link has come up, and may have to be told that this node drains. */
void wf_drain_up(struct wf_desk *desk, struct wf_link *link);

/* DRAIN records are taken: a peer drains.  Threads: setup. */
void wf_drain_route(struct wf_routes *routes);

/* -ESHUTDOWN: the peer takes no more calls. */
int wf_drain_check(const struct wf_link *link, struct wf_error *e);

/* A call that was served at @desk is no more. */
void wf_drain_gone(struct wf_desk *desk);

#endif
