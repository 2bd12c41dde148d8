/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trial of `weft perf --tune`: some bodies between two fresh processes of this host, both with
 * the same values of the settings that are tuned.
 *
 * A process reads its settings once, so a trial forks one that measures, which starts a server as
 * `weft perf` does and reports by a pipe.  The process that runs trials must never open a node or
 * an info, for a forked process must hold nothing of a fabric.
 *
 * Threads: owner; the process has no other thread.
 */
#ifndef TOOL_TRIAL_H
#define TOOL_TRIAL_H

#include "tool/perf_client.h"

enum trial_setting { TRIAL_FRAME, TRIAL_EAGER, TRIAL_CHUNK, TRIAL_DEPTH, TRIAL_SETTINGS };

/* Most sizes of body in one trial. */
#define TRIAL_SIZES_MAX 8u

struct trial {
	enum perf_test test;
	const char *provider; /* libfabric's name of the provider that is tuned; "": unknown yet */
	uint64_t values[TRIAL_SETTINGS]; /* values to set; 0: leave the environment as it is */
	uint64_t sizes[TRIAL_SIZES_MAX];
	size_t size_count;
	uint64_t time_ns;  /* time for each size, as in a struct perf_plan */
	uint64_t limit_ns; /* no further size begins after so long; 0: all are measured */
};

/* Measures of bodies of one size. */
struct trial_body {
	double us;       /* median round trip of one at a time */
	double per_s;    /* bytes in a second, several at a time */
	uint64_t ran_ns; /* time that the size took, with all that is not measured */
};

struct trial_result {
	int status;         /* status of the process that measured, as trial_run() returns it */
	char refused[256];  /* why a value was not tried, one phrase; "": it was */
	char libfabric[16]; /* version of libfabric */
	char provider[64];  /* provider that carried the bodies */
	uint64_t values[TRIAL_SETTINGS]; /* values in force; 0: the fabrics do not tell */
	struct trial_body bodies[TRIAL_SIZES_MAX];
	size_t body_count;  /* bodies that were measured, in the order of the sizes */
	uint64_t ran_ns;
};

/* Returns the environment variable of @setting. */
const char *trial_variable(enum trial_setting setting);

/*
 * Run a trial.  Returns TOOL_OK, TOOL_FAILED after saying why, or TOOL_INTERRUPTED.  A value that
 * the provider does not take, or with which no node opens, is no failure where @trial->provider is
 * known: @result says why it was refused.
 */
int trial_run(const struct tool_command *command, const struct trial *trial,
	      struct trial_result *result);

#endif
