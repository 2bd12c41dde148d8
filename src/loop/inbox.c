/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/inbox.h"

bool wf_inbox_put(struct wf_inbox *inbox, struct wf_inbox_node *node)
{
	struct wf_inbox_node *head = atomic_load_explicit(&inbox->head, memory_order_relaxed);

	/*
	 * Release, so that the taker sees what the sender wrote into its node.  A head that
	 * went away and came back (ABA) does no harm, because nothing behind it is read here.
	 */
	do
		node->next = head;
	while (!atomic_compare_exchange_weak_explicit(&inbox->head, &head, node,
						      memory_order_release,
						      memory_order_relaxed));
	return !head;
}

void wf_inbox_take(struct wf_inbox *inbox)
{
	struct wf_inbox_node *newest;

	/* Load first: polling an empty inbox must not dirty the senders' cache line. */
	if (inbox->taken || wf_inbox_empty(inbox))
		return;
	newest = atomic_exchange_explicit(&inbox->head, NULL, memory_order_acquire);
	while (newest) {
		struct wf_inbox_node *older = newest->next;

		newest->next = inbox->taken;
		inbox->taken = newest;
		newest = older;
	}
}
