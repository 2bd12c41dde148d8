/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/yield.h"

#include "util/clock.h"

#define NARROW_NS (5 * WF_NS_PER_MS) /* after the last urgent record; not tuned yet */

/*
 * Length of a read then.  With 16, 32 and 128 KiB an empty call beside bulk over tcp had a p99 of
 * 2.8, 3.1 and 6 times that of an idle link, and bulk 0.6, 0.8 and 1.4 GB/s: loopback, two
 * processors.  Over shm, where a read holds the loop, 8, 12 and 16 KiB made it 2.1, 2.8 and 3.3
 * times, and bulk 1.5, 2.0 and 2.3 GB/s.
 */
#define NARROW_BYTES      (16 * KIB)
#define NARROW_SYNC_BYTES (8 * KIB)

/* Returns whether a pull of a higher priority than @priority has bytes to ask for. */
static bool is_preceded(const struct wf_above_yields *y, unsigned priority)
{
	for (unsigned i = priority + 1; i < WF_PRIORITIES; i++)
		if (y->wanting[i])
			return true;
	return false;
}

/* Have records of a higher priority than that of @pull come or gone just now? */
static bool is_narrow(const struct wf_pull *pull)
{
	const struct wf_above_yields *y = &pull->link->yields;
	uint64_t now_ns = pull->transfer->engine->loop.now_ns;

	for (unsigned i = pull->yield.priority + 1u; i < WF_PRIORITIES; i++)
		if (y->urgent_ns[i] && now_ns - y->urgent_ns[i] < NARROW_NS)
			return true;
	return false;
}

/* Returns whether a read is under way, the end of which calls wf_yield_next(). */
static bool is_reading(const struct wf_link *link)
{
	return link->reads.count > link->yields.refused;
}

uint64_t wf_yield_chunk_bytes(const struct wf_pull *pull)
{
	uint64_t most = pull->path.caps->sync_read ? NARROW_SYNC_BYTES : NARROW_BYTES;

	return is_narrow(pull) ? WF_MIN(pull->rail.chunk_bytes, most) : pull->rail.chunk_bytes;
}

/* Let @pull make way no longer, if it does. */
static void let_go(struct wf_pull *pull)
{
	if (wf_list_empty(&pull->yield.node))
		return;
	wf_list_remove(&pull->yield.node);
	pull->link->yields.held_count--;
}

/* A pull that goes on among narrow ones has its read first, the end of which calls the next. */
void wf_yield_next(struct wf_link *link)
{
	struct wf_above_yields *y = &link->yields;
	struct wf_list *node;

	for (unsigned i = WF_PRIORITIES; y->held_count && i-- > 0 && !is_preceded(y, i);)
		while ((node = wf_list_first(&y->held[i]))) {
			struct wf_pull *pull = WF_CONTAINER(node, struct wf_pull, yield.node);
			bool narrow = is_narrow(pull);

			if (narrow && is_reading(link))
				return;
			let_go(pull);
			wf_pull_go_on(pull);
			if (narrow)
				return;
		}
}

bool wf_yield_pauses(const struct wf_pull *pull)
{
	return pull->path.caps->sync_read && is_narrow(pull);
}

static void want(struct wf_pull *pull, bool wants)
{
	struct wf_above_yields *y = &pull->link->yields;

	if (!pull->yield.priority || pull->yield.wants == wants)
		return;
	pull->yield.wants = wants;
	if (wants)
		y->wanting[pull->yield.priority]++;
	else if (!--y->wanting[pull->yield.priority])
		wf_yield_next(pull->link);
}

bool wf_yield_must(struct wf_pull *pull)
{
	struct wf_above_yields *y = &pull->link->yields;

	want(pull, true);
	if (pull->yield.has_turn ||
	    (!is_preceded(y, pull->yield.priority) && !(is_reading(pull->link) && is_narrow(pull))))
		return false;
	if (wf_list_empty(&pull->yield.node)) {
		wf_list_append(&y->held[pull->yield.priority], &pull->yield.node);
		y->held_count++;
	}
	return true;
}

void wf_yield_took(struct wf_pull *pull)
{
	struct wf_above_yields *y = &pull->link->yields;
	unsigned waiting = pull->yield.priority ? wf_priority_waiting(y->held) : 0, next;
	struct wf_pull *other;

	pull->yield.has_turn = false;
	if (!waiting)
		return;
	wf_priority_took(&y->turns, waiting, pull->yield.priority);
	next = wf_priority_next(&y->turns, waiting);
	if (y->turns.passed[next] < WF_PRIORITY_PASSES)
		return;
	other = WF_CONTAINER(wf_list_first(&y->held[next]), struct wf_pull, yield.node);
	let_go(other);
	other->yield.has_turn = true;
	wf_priority_took(&y->turns, waiting, next);
	wf_pull_go_on(other);
}

void wf_yield_done(struct wf_pull *pull)
{
	want(pull, false);
	wf_yield_next(pull->link);
}

void wf_yield_leave(struct wf_pull *pull)
{
	let_go(pull);
	pull->yield.has_turn = false;
	want(pull, false);
}
