/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/rounds.h"

/* Number of places: an odd number of ranks has an empty one beside them. */
static uint32_t places(uint32_t size)
{
	return size + size % 2;
}

uint32_t rounds_count(uint32_t size)
{
	return size < 2 ? 0 : places(size) - 1;
}

/*
 * The circle method: all places but the last stand on a circle of n - 1, and those meet whose
 * numbers have the sum @round, modulo n - 1.  The one that would meet itself meets the last place.
 */
uint32_t rounds_partner(uint32_t size, uint32_t round, uint32_t rank)
{
	uint32_t circle = rounds_count(size), last = circle, partner;

	if (size < 2)
		return size;
	round %= circle;
	if (rank == last)
		/* Half of @round: n - 1 is odd, and n / 2 is the inverse of 2. */
		partner = (uint32_t)((uint64_t)round * ((circle + 1) / 2) % circle);
	else
		partner = (round + circle - rank) % circle;
	if (rank != last && partner == rank)
		partner = last;
	return partner < size ? partner : size;
}
