/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one source of randomness: tokens, keys, incarnations, jitter.  Tests
 * replace it when they link.
 *
 * Threads: any, callback.
 */
#ifndef WF_RANDOM_H
#define WF_RANDOM_H

#include "util/base.h"

/* Fill with bytes that no peer can guess. */
void wf_random_fill(void *bytes, size_t count);

/* 64 such bits, never 0. */
uint64_t wf_random_u64(void);

#endif
