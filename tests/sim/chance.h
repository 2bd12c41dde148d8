/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chance of a simulated run: drawn from the run's seed, and from a source of its
 * own, so that draws of the library do not move it.
 */
#ifndef WF_SIM_CHANCE_H
#define WF_SIM_CHANCE_H

#include "util/base.h"

void wf_chance_seed(uint64_t seed);

/* Returns the seed with which draws go on as they would from here. */
uint64_t wf_chance_here(void);

/* Draw from 0 to @n - 1; 0 if @n is 0. */
uint64_t wf_chance_below(uint64_t n);

static inline bool wf_chance_in_100(unsigned chance)
{
	return wf_chance_below(100) < chance;
}

#endif
