/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/random.h"

#include <string.h>

static uint64_t state;

void wf_fake_random_seed(uint64_t seed)
{
	state = seed;
}

/* splitmix64: every state gives another value, so 0 comes once in 2^64. */
uint64_t wf_random_u64(void)
{
	uint64_t z;

	do {
		z = state += 0x9e3779b97f4a7c15;
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
		z ^= z >> 31;
	} while (!z);
	return z;
}

void wf_random_fill(void *bytes, size_t count)
{
	uint8_t *at = bytes;
	uint64_t z;

	for (; count; at += WF_MIN(count, sizeof(z)), count -= WF_MIN(count, sizeof(z))) {
		z = wf_random_u64();
		memcpy(at, &z, WF_MIN(count, sizeof(z)));
	}
}
