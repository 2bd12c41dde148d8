/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/mutate.h"

#include <string.h>

#include "util/base.h"

#define PLACES_MAX 4
#define INSERT_BYTES_MAX 16

uint64_t mutate_random(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* The first bytes of a number where sums and signs go wrong. */
static void overwrite(uint64_t *seed, uint8_t *bytes, size_t count)
{
	static const uint64_t limits[] = {
		0, 1, INT16_MAX, UINT16_MAX, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX,
	};
	uint64_t number = limits[mutate_random(seed) % WF_COUNT(limits)] + mutate_random(seed) % 3;
	size_t width = (size_t)1 << mutate_random(seed) % 4;

	number -= 1; /* so one below, the limit itself, one above */
	for (size_t i = 0; i < width && i < count; i++)
		bytes[i] = (uint8_t)(number >> 8 * i);
}

static size_t insert(uint64_t *seed, uint8_t *bytes, size_t count, size_t at, size_t room)
{
	size_t more = WF_MIN(mutate_random(seed) % INSERT_BYTES_MAX + 1, room - count);

	memmove(bytes + at + more, bytes + at, count - at);
	for (size_t i = 0; i < more; i++)
		bytes[at + i] = (uint8_t)mutate_random(seed);
	return count + more;
}

static size_t cut(uint64_t *seed, uint8_t *bytes, size_t count, size_t at)
{
	size_t less = mutate_random(seed) % (count - at) + 1;

	memmove(bytes + at, bytes + at + less, count - at - less);
	return count - less;
}

size_t mutate(uint64_t *seed, uint8_t *bytes, size_t count, size_t room)
{
	uint64_t places = mutate_random(seed) % PLACES_MAX + 1;

	while (places--) {
		uint64_t dice = mutate_random(seed);
		size_t at = count ? mutate_random(seed) % count : 0;

		if (!count || dice % 16 == 0)
			count = insert(seed, bytes, count, at, room);
		else if (dice % 16 == 1)
			count = cut(seed, bytes, count, at);
		else if (dice % 16 < 6)
			overwrite(seed, bytes + at, count - at);
		else if (dice % 16 < 10)
			bytes[at] = (uint8_t)(dice >> 8);
		else
			bytes[at] ^= (uint8_t)(1 << (dice >> 8) % 8);
	}
	return count;
}
