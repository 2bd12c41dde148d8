/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a simulated run leaves to chance: drawn from its seed, and from a
 * source of its own, so that what the library draws does not move it.
 */
#ifndef WF_SIM_CHANCE_H
#define WF_SIM_CHANCE_H

#include "util/base.h"

void wf_chance_seed(uint64_t seed);

/* 0 to @n - 1; 0 if @n is 0. */
uint64_t wf_chance_below(uint64_t n);

static inline bool wf_chance_in_100(unsigned chance)
{
	return wf_chance_below(100) < chance;
}

#endif
