/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * srun without PMIx.  Rank 0 runs on the first host of the step, at a port made from the numbers of
 * job and step, as no variable names one.
 */
#include "group/slurm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "group/launcher.h"
#include "util/environment.h"

int wf_slurm_first_host(const char *list, char *host, size_t bytes)
{
	size_t used = 0;

	while (*list && *list != ',') {
		const char *end = list + 1;

		/* The first host has, of a bracket, the text before the first "-" or ",". */
		if (*list == '[') {
			size_t piece = strcspn(list + 1, "-,]");

			end = strchr(list, ']');
			if (!end || !piece || piece >= bytes - used)
				return -EINVAL;
			memcpy(host + used, list + 1, piece);
			used += piece;
			end++;
		} else if (used + 1 < bytes) {
			host[used++] = *list;
		} else {
			return -EINVAL;
		}
		list = end;
	}
	if (!used)
		return -EINVAL;
	host[used] = 0;
	return 0;
}

/* Set only where srun starts the process; a batch script has ranks of srun's in no variable. */
static bool here(void)
{
	return wf_environment_get("SLURM_PROCID") && wf_environment_get("SLURM_STEP_NUM_TASKS");
}

/* On a step of one host no name has to be known to anybody. */
static int find_host(struct wf_job *job, struct wf_error *e)
{
	const char *list = wf_environment_get("SLURM_STEP_NODELIST");
	const char *count = wf_environment_get("SLURM_STEP_NUM_NODES");

	if (count && !strcmp(count, "1"))
		return wf_launcher_host("127.0.0.1", job, e);
	job->many_hosts = count;
	if (!list || wf_slurm_first_host(list, job->host, sizeof(job->host)))
		return wf_error_set(e, -EINVAL, "SLURM_STEP_NODELIST=%.100s: expected names of hosts",
				    list ? list : "");
	return 0;
}

static int read_environment(const struct wf_options *options, const char *argument,
			    struct wf_job *job, struct wf_error *e)
{
	uint64_t number = 0, step = 0;
	int err;

	(void)options;
	if (!here())
		return wf_error_set(e, -ENOENT,
				    "srun has not started this process: SLURM_PROCID and "
				    "SLURM_STEP_NUM_TASKS are not set");
	err = wf_launcher_rank("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", job, e);
	if (!err)
		err = wf_launcher_number("SLURM_JOB_ID", UINT32_MAX, &number, e);
	if (!err)
		err = wf_launcher_number("SLURM_STEP_ID", UINT32_MAX, &step, e);
	if (!err)
		err = find_host(job, e);
	if (err)
		return err;
	snprintf(job->key, sizeof(job->key), "%" PRIu64 ".%" PRIu64, number, step);
	return wf_launcher_port(argument, wf_launcher_port_of(number * 16 + step), job, e);
}

const struct wf_launcher wf_slurm_launcher = {
	.name = "slurm",
	.here = here,
	.read = read_environment,
};
