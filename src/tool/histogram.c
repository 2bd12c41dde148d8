/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/histogram.h"

#include <math.h>

#define STEPS (1u << HISTOGRAM_STEPS_LOG2)

/* Below STEPS a cell is one nanosecond; above, its width doubles with each power of two. */
static unsigned cell_of(uint64_t ns)
{
	unsigned shift;

	if (ns < STEPS)
		return (unsigned)ns;
	shift = 63u - (unsigned)__builtin_clzll(ns) - HISTOGRAM_STEPS_LOG2;
	return ((shift + 1) << HISTOGRAM_STEPS_LOG2) + (unsigned)((ns >> shift) - STEPS);
}

/* The longest time that falls into @cell. */
static uint64_t cell_end_ns(unsigned cell)
{
	unsigned shift;

	if (cell < STEPS)
		return cell;
	shift = (cell >> HISTOGRAM_STEPS_LOG2) - 1;
	return (((uint64_t)(cell % STEPS) + STEPS + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t ns)
{
	h->cells[cell_of(ns)]++;
	h->count++;
	if (ns > h->most_ns)
		h->most_ns = ns;
}

uint64_t histogram_part_ns(const struct histogram *h, double part)
{
	/* A product that is whole may come out a little above. */
	uint64_t wanted = (uint64_t)ceil(part * (double)h->count - 1e-6), seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_CELLS; i++) {
		seen += h->cells[i];
		if (seen && seen >= wanted)
			return cell_end_ns(i) < h->most_ns ? cell_end_ns(i) : h->most_ns;
	}
	return h->most_ns;
}
