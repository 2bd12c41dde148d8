/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Histogram of times, from which percentiles can be told: a fixed 58 KiB however many times there
 * are, each within 1 part in 128 of its true value; the longest exactly.
 *
 * Threads: owner.
 */
#ifndef TOOL_HISTOGRAM_H
#define TOOL_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEPS_LOG2 7 /* cells per power of two: 128 keep the error under 1 % */
#define HISTOGRAM_CELLS      ((64 - HISTOGRAM_STEPS_LOG2 + 1) << HISTOGRAM_STEPS_LOG2)

/* All zero: an empty histogram. */
struct histogram {
	uint64_t count;
	uint64_t most_ns;
	uint64_t cells[HISTOGRAM_CELLS];
};

void histogram_add(struct histogram *h, uint64_t ns);

/* Returns the time that @part (0 to 1) of all times do not exceed; 0 when there are none. */
uint64_t histogram_part_ns(const struct histogram *h, double part);

#endif
