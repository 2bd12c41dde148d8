/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/chance.h"

static uint64_t state;

void wf_chance_seed(uint64_t seed)
{
	state = seed;
}

uint64_t wf_chance_here(void)
{
	return state;
}

/* splitmix64: any seed will do. */
uint64_t wf_chance_below(uint64_t n)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return n ? (z ^ (z >> 31)) % n : 0;
}
