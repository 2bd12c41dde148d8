/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft perf --all-pairs`: the processes of a job measure every pair of them, and rank 0 prints the
 * matrix.
 *
 * Threads: owner.
 */
#ifndef TOOL_ALL_PAIRS_H
#define TOOL_ALL_PAIRS_H

#include "tool/tool.h"

/* Returns whether the arguments ask for all pairs. */
bool all_pairs_asked(int argc, char **argv);

int all_pairs_run(const struct tool_command *self, int argc, char **argv);

#endif
