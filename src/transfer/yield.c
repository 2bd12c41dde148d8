/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/yield.h"

/* Returns the priorities of the pulls that are held, one bit each. */
static unsigned held(const struct wf_above_yields *y)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < WF_PRIORITIES; i++)
		bits |= (unsigned)!wf_list_empty(&y->held[i]) << i;
	return bits;
}

/* Returns whether a pull of a higher priority than @priority has bytes to ask for. */
static bool is_preceded(const struct wf_above_yields *y, unsigned priority)
{
	for (unsigned i = priority + 1; i < WF_PRIORITIES; i++)
		if (y->wanting[i])
			return true;
	return false;
}

/* Let held pulls go on for which nothing is left to make way. */
static void release(struct wf_above_yields *y)
{
	struct wf_list *node;

	for (unsigned i = WF_PRIORITIES; i-- > 0 && !is_preceded(y, i);)
		while ((node = wf_list_pop(&y->held[i])))
			wf_pull_go_on(WF_CONTAINER(node, struct wf_pull, held_node));
}

bool wf_yield_must(struct wf_pull *pull)
{
	struct wf_above_yields *y = &pull->link->yields;

	wf_yield_want(pull, true);
	if (pull->has_turn || !is_preceded(y, pull->priority))
		return false;
	if (wf_list_empty(&pull->held_node))
		wf_list_append(&y->held[pull->priority], &pull->held_node);
	return true;
}

void wf_yield_took(struct wf_pull *pull)
{
	struct wf_above_yields *y = &pull->link->yields;
	unsigned waiting = pull->priority ? held(y) : 0, next;
	struct wf_pull *other;

	pull->has_turn = false;
	if (!waiting)
		return;
	wf_priority_took(&y->turns, waiting, pull->priority);
	next = wf_priority_next(&y->turns, waiting);
	if (y->turns.passed[next] < WF_PRIORITY_PASSES)
		return;
	other = WF_CONTAINER(wf_list_pop(&y->held[next]), struct wf_pull, held_node);
	other->has_turn = true;
	wf_priority_took(&y->turns, waiting, next);
	wf_pull_go_on(other);
}

void wf_yield_want(struct wf_pull *pull, bool wants)
{
	struct wf_above_yields *y = &pull->link->yields;

	if (!pull->priority || pull->wants == wants)
		return;
	pull->wants = wants;
	if (wants)
		y->wanting[pull->priority]++;
	else if (!--y->wanting[pull->priority])
		release(y);
}

void wf_yield_leave(struct wf_pull *pull)
{
	wf_list_remove(&pull->held_node);
	pull->has_turn = false;
	wf_yield_want(pull, false);
}
