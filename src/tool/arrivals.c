/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/arrivals.h"

#include <math.h>

#define NS_PER_S 1e9

/* Draw a number above 0 and up to 1, by SplitMix64, whose top 53 bits are a double's. */
static double draw(uint64_t *seed)
{
	uint64_t v = *seed += 0x9e3779b97f4a7c15;

	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
	v = (v ^ v >> 27) * 0x94d049bb133111eb;
	v ^= v >> 31;
	return (double)((v >> 11) + 1) * 0x1p-53;
}

void arrivals_init(struct arrivals *a, uint64_t rate, uint64_t start_ns)
{
	*a = (struct arrivals){ .due_ns = start_ns, .mean_ns = NS_PER_S / (double)rate };
}

void arrivals_next(struct arrivals *a)
{
	double ns = a->rest_ns - log(draw(&a->seed)) * a->mean_ns;

	a->due_ns += (uint64_t)ns;
	a->rest_ns = ns - (double)(uint64_t)ns;
}
