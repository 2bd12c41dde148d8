/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/pattern.h"

#include <endian.h>
#include <string.h>

/* splitmix64: one multiplication chain a word, and no two words alike. */
static uint64_t mix(uint64_t v)
{
	v += 0x9e3779b97f4a7c15u;
	v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
	v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
	return v ^ (v >> 31);
}

static uint64_t seed_of(uint64_t run, uint64_t index)
{
	return mix(mix(run) ^ index);
}

/* Words are little-endian on both sides, or hosts of two kinds would disagree. */
static uint64_t word(uint64_t seed, size_t at)
{
	return htole64(mix(seed + at));
}

void pattern_fill(void *memory, size_t bytes, uint64_t run, uint64_t index)
{
	uint64_t seed = seed_of(run, index), w;
	uint8_t *to = memory;
	size_t at;

	for (at = 0; at + sizeof(w) <= bytes; at += sizeof(w)) {
		w = word(seed, at);
		memcpy(to + at, &w, sizeof(w));
	}
	w = word(seed, at);
	memcpy(to + at, &w, bytes - at);
}

static size_t differing(const uint8_t *a, const void *b, size_t bytes)
{
	const uint8_t *other = b;
	size_t count = 0;

	for (size_t i = 0; i < bytes; i++)
		count += a[i] != other[i];
	return count;
}

size_t pattern_wrong(const void *memory, size_t bytes, uint64_t run, uint64_t index)
{
	uint64_t seed = seed_of(run, index), w;
	const uint8_t *from = memory;
	size_t at, wrong = 0;

	for (at = 0; at + sizeof(w) <= bytes; at += sizeof(w)) {
		w = word(seed, at);
		if (memcmp(from + at, &w, sizeof(w)) != 0)
			wrong += differing(from + at, &w, sizeof(w));
	}
	w = word(seed, at);
	return wrong + differing(from + at, &w, bytes - at);
}
