/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of simulated runs, in processes of their own.  A seed that fails is named on
 * stderr, with the command that does it again, and stops none of the others.
 */
#ifndef WF_SIM_SEEDS_H
#define WF_SIM_SEEDS_H

#include "util/base.h"

#define WF_SEEDS_JOBS_MAX 64
#define WF_SEEDS_JOBS 2 /* jobs of a test: few machines have fewer cores, and `make -j` runs more */

struct wf_seeds_plan {
	unsigned nodes, workers; /* as wf_run_seed() has them */
	unsigned jobs;           /* processes at once, WF_SEEDS_JOBS_MAX at most */
};

/* Run @count seeds, from @first on.  Returns how many failed. */
uint64_t wf_seeds_run(uint64_t first, uint64_t count, const struct wf_seeds_plan *how);

/* Print the results of all runs; @tables: with each pair and each state. */
void wf_seeds_print(bool tables);

#endif
