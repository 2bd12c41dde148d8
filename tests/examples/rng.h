/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers that are the same on every machine: splitmix64.
 * Not for secrets.
 */
#ifndef RNG_H
#define RNG_H

#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Draw from @low up to, not including, @high: 24 bits, all that a float holds. */
static inline float rng_between(struct rng *r, float low, float high)
{
	return low + (high - low) * (float)(rng_next(r) >> 40) / 16777216.0f;
}

#endif
