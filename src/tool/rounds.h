/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rounds of disjoint pairs: a round-robin tournament of the ranks of a job.
 *
 * All unordered pairs meet once, each rank in one pair of a round at most: an even number of ranks
 * takes one round less than there are ranks, an odd number as many, with one rank idle in each.
 * No fewer rounds are possible.  Pure: no state, no I/O.
 *
 * Threads: any.
 */
#ifndef TOOL_ROUNDS_H
#define TOOL_ROUNDS_H

#include <stdint.h>

/* Returns the number of rounds of @size ranks, which are at most UINT32_MAX / 2. */
uint32_t rounds_count(uint32_t size);

/* Returns the rank that @rank meets in @round; @size: none. */
uint32_t rounds_partner(uint32_t size, uint32_t round, uint32_t rank);

#endif
