/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A round: open all nodes, let them talk, do harm that the seed draws, let
 * them end what they began, close, and hold everyone to account.
 */
#ifndef ROUND_H
#define ROUND_H

#include "crew.h"

/* Make a state of draws from a seed, so that neighbours are not alike. */
uint64_t round_random(uint64_t seed);
/* Draw one of @count. */
uint64_t round_draw(uint64_t *random, uint64_t count);

/*
 * Play one round with a crew whose members may or may not run yet; those that
 * live go on into the next.  Prints what went wrong, and then one line.
 * False: something went wrong.
 */
bool round_play(struct crew *crew, unsigned number, uint64_t seed);


#endif
