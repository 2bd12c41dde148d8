/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/timer.h"

#include <assert.h>

/* Join two heaps; either may be NULL.  The result has no sibling and no back. */
static struct wf_timer *merge(struct wf_timer *a, struct wf_timer *b)
{
	struct wf_timer *first, *second;

	if (!a || !b)
		return a ? a : b;
	first = b->at_ns < a->at_ns ? b : a;
	second = first == a ? b : a;

	second->back = first;
	second->sibling = first->child;
	if (first->child)
		first->child->back = second;
	first->child = second;
	return first;
}

/* Take the first timer out of the siblings @row; its children stay with it. */
static struct wf_timer *detach(struct wf_timer **row)
{
	struct wf_timer *t = *row;

	if (t) {
		*row = t->sibling;
		t->sibling = NULL;
		t->back = NULL;
	}
	return t;
}

/*
 * Make one heap of a row of siblings: in pairs from the left, then the pairs
 * together from the right, which is what gives O(log n) on average.  Loops, not
 * recursion: a row can be as long as there are timers.
 */
static struct wf_timer *merge_row(struct wf_timer *row)
{
	struct wf_timer *pairs = NULL, *root = NULL;

	while (row) {
		struct wf_timer *a = detach(&row), *b = detach(&row);

		a = merge(a, b);
		a->sibling = pairs;
		pairs = a;
	}
	while (pairs)
		root = merge(root, detach(&pairs));
	return root;
}

/* Put @heap, which may be NULL, where the non-root @t is; nothing in it is sooner than @t. */
static void replace(struct wf_timer *t, struct wf_timer *heap)
{
	struct wf_timer **slot = t->back->child == t ? &t->back->child : &t->back->sibling;
	struct wf_timer *next = t->sibling;

	if (heap) {
		heap->back = t->back;
		heap->sibling = next;
		if (next)
			next->back = heap;
		*slot = heap;
	} else {
		if (next)
			next->back = t->back;
		*slot = next;
	}
}

void wf_timer_stop(struct wf_timers *timers, struct wf_timer *t)
{
	struct wf_timer *children;

	if (!t->armed)
		return;
	children = merge_row(t->child);
	if (t == timers->root)
		timers->root = children;
	else if (t == timers->due)
		timers->due = children;
	else
		replace(t, children);

	t->child = NULL;
	t->sibling = NULL;
	t->back = NULL;
	t->armed = false;
}

void wf_timer_arm(struct wf_timers *timers, struct wf_timer *t, uint64_t at_ns,
		  void (*fire)(struct wf_timer *))
{
	wf_timer_stop(timers, t);
	*t = (struct wf_timer){ .at_ns = at_ns, .fire = fire, .armed = true };
	timers->root = merge(timers->root, t);
}

/*
 * The whole heap is set aside first, so that timers armed meanwhile wait for a later call and a
 * timer that is always due can't hold the worker.
 */
size_t wf_timer_run(struct wf_timers *timers, uint64_t now_ns, size_t max)
{
	size_t fired = 0;

	assert(!timers->due);
	if (!timers->root || timers->root->at_ns > now_ns)
		return 0;
	timers->due = timers->root;
	timers->root = NULL;
	while (fired < max && timers->due && timers->due->at_ns <= now_ns) {
		struct wf_timer *t = timers->due;

		wf_timer_stop(timers, t);
		t->fire(t);
		fired++;
	}
	timers->root = merge(timers->root, timers->due);
	timers->due = NULL;
	return fired;
}

uint64_t wf_timer_next_ns(const struct wf_timers *timers)
{
	uint64_t root_ns = timers->root ? timers->root->at_ns : UINT64_MAX;
	uint64_t due_ns = timers->due ? timers->due->at_ns : UINT64_MAX;

	return WF_MIN(root_ns, due_ns);
}
