/* SPDX-License-Identifier: BSD-2-Clause */
#include "content.h"

#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 64 /* a cache line, and the alignment of what lies between */
#define GUARD 0xc5
#define QUIET 0xa7
#define BLOCK_WORDS 512
#define GOLDEN 0x9e3779b97f4a7c15u

/* Weyl's sequence and a multiplication: no two places or seeds alike. */
static void make_block(uint64_t words[BLOCK_WORDS], size_t block, uint64_t seed)
{
	uint64_t x = seed + block * BLOCK_WORDS * GOLDEN;

	for (size_t i = 0; i < BLOCK_WORDS; i++) {
		x += GOLDEN;
		words[i] = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
	}
}

static uint64_t seed_of(const struct content *what)
{
	uint64_t seed = what->life;

	seed = (seed ^ what->from) * GOLDEN;
	seed = (seed ^ what->to) * GOLDEN;
	seed = (seed ^ what->lane) * GOLDEN;
	return (seed ^ what->sequence) * GOLDEN;
}

void content_put(void *bytes, size_t count, const struct content *what)
{
	uint64_t words[BLOCK_WORDS], seed = seed_of(what);
	char *to = bytes;

	if (!count)
		return;
	memcpy(to, what, sizeof(*what));
	for (size_t done = sizeof(*what), block = 0, n; done < count; done += n, block++) {
		n = count - done < sizeof(words) ? count - done : sizeof(words);
		make_block(words, block, seed);
		memcpy(to + done, words, n);
	}
}

bool content_get(const void *bytes, size_t count, struct content *what)
{
	uint64_t words[BLOCK_WORDS], seed;
	const char *from = bytes;

	if (count < sizeof(*what))
		return false;
	memcpy(what, from, sizeof(*what));
	seed = seed_of(what);
	for (size_t done = sizeof(*what), block = 0, n; done < count; done += n, block++) {
		n = count - done < sizeof(words) ? count - done : sizeof(words);
		make_block(words, block, seed);
		if (memcmp(from + done, words, n))
			return false;
	}
	return true;
}

bool content_is_new(struct content_seen *seen, const struct content *what)
{
	const uint64_t window = 8 * sizeof(seen->bits);
	uint64_t *word = &seen->bits[what->sequence % window / 64];
	uint64_t bit = 1ull << what->sequence % 64;

	if (what->life != seen->life)
		*seen = (struct content_seen){ .life = what->life };
	for (; seen->next <= what->sequence; seen->next++)
		seen->bits[seen->next % window / 64] &= ~(1ull << seen->next % 64);
	if (seen->next - what->sequence > window || *word & bit)
		return false;
	*word |= bit;
	return true;
}

unsigned char *guarded_take(size_t count)
{
	size_t whole = (count + 2 * GUARD_BYTES + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
	unsigned char *base = aligned_alloc(GUARD_BYTES, whole);

	if (!base)
		return NULL;
	memset(base, GUARD, GUARD_BYTES);
	memset(base + GUARD_BYTES + count, GUARD, GUARD_BYTES);
	return base + GUARD_BYTES;
}

void guarded_give(unsigned char *bytes)
{
	if (bytes)
		free(bytes - GUARD_BYTES);
}

void guarded_mark(unsigned char *bytes, size_t count)
{
	memset(bytes, QUIET, count);
}

/* All of @count bytes @value: the first is, and each is as the one before. */
static bool all(const unsigned char *bytes, unsigned char value, size_t count)
{
	return !count || (*bytes == value && !memcmp(bytes, bytes + 1, count - 1));
}

bool guarded_is_quiet(const unsigned char *bytes, size_t from, size_t count)
{
	return all(bytes - GUARD_BYTES, GUARD, GUARD_BYTES) &&
	       all(bytes + from, QUIET, count - from) && all(bytes + count, GUARD, GUARD_BYTES);
}
