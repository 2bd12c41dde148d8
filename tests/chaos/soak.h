/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nobody is taken for dead who lives: full traffic on all providers at once,
 * with every core burning beside it, and the default heartbeat.
 */
#ifndef SOAK_H
#define SOAK_H

#include <stdbool.h>
#include <stdint.h>

/* False: a peer was lost, an operation failed without a reason, or a node left something. */
bool soak_run(const char *const *providers, unsigned count, unsigned seconds, uint64_t seed);

#endif
