/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inbox: the only way into a loop from other threads: many threads put, one takes.
 *
 * The inbox is an intrusive stack that is taken whole and turned round, so that order is kept
 * for each sender, nothing is allocated and it can't be full.
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
};

/* Put @node.  Returns true if the inbox was empty: its owner may be asleep.  Threads: any. */
bool wf_inbox_put(struct wf_inbox *inbox, struct wf_inbox_node *node);

/* Take all nodes, oldest first, linked by ->next.  Threads: owner. */
struct wf_inbox_node *wf_inbox_take(struct wf_inbox *inbox);

static inline bool wf_inbox_empty(const struct wf_inbox *inbox)
{
	return !atomic_load_explicit(&inbox->head, memory_order_acquire);
}

#endif
