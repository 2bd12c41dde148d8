/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Randomness from a seed, the same in every run.  Linking this file replaces
 * util/random.
 */
#ifndef WF_FAKE_RANDOM_H
#define WF_FAKE_RANDOM_H

#include "util/random.h"

void wf_fake_random_seed(uint64_t seed);

#endif
