/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measurement of one ordered pair of processes, each with a manual node: one sends and measures,
 * the other answers.  Latency comes first, by bodies of 8 bytes that are answered one by one; then
 * bandwidth, by batches of bodies, several on the way at once, with one answer for each batch.
 *
 * The sender orders each batch, so the receiver needs no clock, and has posted its receives before
 * the time begins.  Both give up at a time of their own; nothing of a pair that failed can disturb
 * the next one, which has another number.
 *
 * Threads: owner.
 */
#ifndef TOOL_PAIRS_H
#define TOOL_PAIRS_H

#include "tool/matrix.h"
#include "tool/tool.h"

struct pairs;

/* Plan of a measurement, the same in all processes. */
struct pairs_plan {
	uint64_t bytes;   /* body for bandwidth: 1 to PERF_BYTES_MAX */
	uint64_t time_ns; /* time for an ordered pair: half for latency, half for bandwidth */
};

/* Returns whether @plan is within its limits. */
bool pairs_plan_fits(const struct pairs_plan *plan);

/* Open what measures at @node, which is borrowed; owned by the caller.  NULL: no memory. */
struct pairs *pairs_open(struct weft_node *node, const struct pairs_plan *plan);

/* Close, after the node; accepts NULL. */
void pairs_close(struct pairs *p);

/* Time for both to meet: what a loaded machine may need, not a network. */
#define PAIRS_MEET_NS 10000000000ull

/* A pair under way. */
struct pairs_pair {
	struct weft_peer *peer;
	uint64_t number;   /* step of its tensors, which no other pair has */
	uint64_t until_ns; /* time to give up; where they don't meet, PAIRS_MEET_NS is the limit */
};

/* Send to a peer, and fill @cell: with what was measured, or with why not. */
void pairs_measure(struct pairs *p, const struct pairs_pair *pair, struct matrix_cell *cell);

/*
 * Answer a peer that measures, until it says that it is done.  Returns NULL; or why not, a sentence
 * that is valid until the next pair.
 */
const char *pairs_answer(struct pairs *p, const struct pairs_pair *pair);

#endif
