/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft perf --tune`: finds, by measurement between two processes of this host, better values for
 * the settings that a provider's row presets.
 *
 * One setting after the other, values around the present one run beside it in short trials, in
 * turns; what is better stays while the next setting is tried.
 *
 * Threads: owner.
 */
#ifndef TOOL_TUNE_H
#define TOOL_TUNE_H

#include "tool/trial.h"
#include "tool/verdict.h"

/* Values that are tried for a setting: three powers of two on either side of the present one. */
#define TUNE_VALUES_MAX 6u

/* Measures of some rounds, by round and size. */
struct tune_measures {
	double us[VERDICT_ROUNDS_MAX][TRIAL_SIZES_MAX];
	double per_s[VERDICT_ROUNDS_MAX][TRIAL_SIZES_MAX];
};

/* A value that is tried. */
struct tune_value {
	uint64_t value;
	char skipped[256]; /* why the value has no verdict, one phrase; "": it has */
	uint64_t sizes[TRIAL_SIZES_MAX];
	size_t size_count;
	size_t rounds;
	uint64_t pair_ns; /* time of a trial with the value and one with the present value */
	struct tune_measures with, present;
	struct verdict verdict;
};

/* A setting. */
struct tune_setting {
	uint64_t present; /* value that was in force; 0: there was no time to look */
	uint64_t chosen;  /* value that is better, or @present */
	struct tune_value values[TUNE_VALUES_MAX]; /* nearest to @present first */
	size_t value_count;
};

struct tune {
	char provider[64], libfabric[16];
	char date[16]; /* as 2026-11-30 */
	struct tune_setting settings[TRIAL_SETTINGS];
};

/* Returns @a / @b, and 1 where one of the two was too small to measure. */
double tune_ratio(double a, double b);

/* Do the arguments of `weft perf` have --tune? */
bool tune_asked(int argc, char **argv);

/* Run `weft perf` with these arguments; as a command's run(). */
int tune_run(const struct tool_command *self, int argc, char **argv);

#endif
