/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only source of randomness: tokens, keys, incarnations, jitter.  Tests link their own in
 * its place.
 *
 * Threads: any, callback.
 */
#ifndef WF_RANDOM_H
#define WF_RANDOM_H

#include "util/base.h"

/* Fill @bytes with bytes that no peer can guess. */
void wf_random_fill(void *bytes, size_t count);

/* Return 64 bits that no peer can guess; never 0. */
uint64_t wf_random_u64(void);

#endif
