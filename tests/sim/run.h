/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulated run, from its seed: a world, traffic, faults, and the checker. */
#ifndef WF_SIM_RUN_H
#define WF_SIM_RUN_H

#include "tests/sim/tally.h"

/* Run @nodes (0: as the seed says) with @workers each.  Asserts; adds its counts to @tally. */
void wf_run_seed(uint64_t seed, unsigned nodes, unsigned workers, struct wf_tally *tally);

#endif
