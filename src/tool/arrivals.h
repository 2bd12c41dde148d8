/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrivals of a Poisson process, which is how requests of many callers who know nothing of each
 * other come: the intervals are drawn from an exponential distribution, by a fixed seed, so that
 * every run has the same.  No clock: the times are the caller's.
 *
 * Threads: owner.
 */
#ifndef TOOL_ARRIVALS_H
#define TOOL_ARRIVALS_H

#include <stdint.h>

/* The most in a second: more than one thread begins anywhere. */
#define ARRIVALS_RATE_MAX 10000000u

struct arrivals {
	uint64_t due_ns; /* time of the next arrival */
	uint64_t seed;
	double mean_ns;  /* mean interval */
	double rest_ns;  /* part of a nanosecond that @due_ns leaves out */
};

/* Begin: the first arrival is at @start_ns; then come @rate in a second, 1 to ARRIVALS_RATE_MAX. */
void arrivals_init(struct arrivals *a, uint64_t rate, uint64_t start_ns);

/* Go on to the next arrival. */
void arrivals_next(struct arrivals *a);

#endif
