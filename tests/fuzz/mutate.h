/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seeded damage to bytes, as from a peer that is broken or means harm.
 */
#ifndef MUTATE_H
#define MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* The next number of the sequence that began with *@seed (splitmix64). */
uint64_t mutate_random(uint64_t *seed);

/*
 * Change the @count bytes, which have room for @room, in one to four places:
 * bits, bytes, numbers near a limit, cuts and insertions.  Returns the new count.
 */
size_t mutate(uint64_t *seed, uint8_t *bytes, size_t count, size_t room);

#endif
