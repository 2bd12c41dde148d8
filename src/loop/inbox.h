/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inbox: the only way into a loop from other threads: many threads put, one takes.
 *
 * The inbox is an intrusive stack that is taken whole and turned round, so that order is kept
 * for each sender, nothing is allocated and it can't be full.  What is taken is handed out one by
 * one.
 */
#ifndef WF_INBOX_H
#define WF_INBOX_H

#include <stdatomic.h>
#include "util/base.h"

struct wf_inbox_node {
	struct wf_inbox_node *next;
};

struct wf_inbox {
	_Atomic(struct wf_inbox_node *) head;
	struct wf_inbox_node *taken; /* oldest first; the owner's */
};

/* Put @node.  Returns true if none waited to be taken: the owner may be asleep.  Threads: any. */
bool wf_inbox_put(struct wf_inbox *inbox, struct wf_inbox_node *node);

/* The rest is for the owner. */

/* Take all nodes that were put, if all that were taken before have been handed out. */
void wf_inbox_take(struct wf_inbox *inbox);

/* Hand out the oldest node that was taken; NULL: there is none. */
static inline struct wf_inbox_node *wf_inbox_next(struct wf_inbox *inbox)
{
	struct wf_inbox_node *node = inbox->taken;

	if (node)
		inbox->taken = node->next;
	return node;
}

static inline bool wf_inbox_empty(const struct wf_inbox *inbox)
{
	return !inbox->taken && !atomic_load_explicit(&inbox->head, memory_order_acquire);
}

#endif
