/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test that no living peer is taken for dead: full traffic on all providers at
 * once, with every core burning beside it, and the default heartbeat.
 */
#ifndef SOAK_H
#define SOAK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Run for @seconds.  False: a peer was lost, an operation failed without a reason, or a node left
 * something behind, or one with what members proved themselves by at first was let in at last.
 */
bool soak_run(const char *const *providers, unsigned count, unsigned seconds, uint64_t seed);

#endif
