/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draining a node: it takes no more calls, and waits for running ones.
 *
 * Each worker drains by itself (drain.h): it refuses calls from then on and tells its peers, so that
 * they need not try.
 *
 * Threads: any.
 */
#ifndef WF_CORE_NODE_DRAIN_H
#define WF_CORE_NODE_DRAIN_H

#include <stdint.h>

struct weft_node;

/* Take no more calls, and wait for running ones.  -ETIMEDOUT, -EOWNERDEAD: recorded. */
int wf_node_drain(struct weft_node *node, uint64_t timeout_ns);

#endif
