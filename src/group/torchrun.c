/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torchrun, and all that speak like it, as Kubeflow's PyTorchJob does: RANK, WORLD_SIZE,
 * MASTER_ADDR and MASTER_PORT.
 *
 * The port itself is never taken: torch's own store listens there, in the agent or in rank 0.
 */
#include "group/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/environment.h"

static bool here(void)
{
	return wf_environment_get("RANK") && wf_environment_get("WORLD_SIZE") &&
	       wf_environment_get("MASTER_ADDR") && wf_environment_get("MASTER_PORT");
}

/*
 * A run that torchrun has started anew is another job.  The count of restarts is each agent's own,
 * which counts those that its own workers cause, so it says something of a run of one agent alone.
 * Several agents meet anew once each has ended its workers of the time before.
 */
static void set_key(struct wf_job *job)
{
	const char *run = wf_environment_get("TORCHELASTIC_RUN_ID");
	const char *restarts = wf_environment_get("TORCHELASTIC_RESTART_COUNT");
	const char *agents = wf_environment_get("GROUP_WORLD_SIZE");

	if (run && agents && !strcmp(agents, "1"))
		snprintf(job->key, sizeof(job->key), "%.200s.%.20s", run, restarts ? restarts : "0");
	else if (run)
		snprintf(job->key, sizeof(job->key), "%.200s", run);
}

static int read_environment(const struct wf_options *options, const char *argument,
			    struct wf_job *job, struct wf_error *e)
{
	uint64_t port = 0, local = 0;
	struct wf_error ignored;
	int err;

	(void)options;
	if (!here())
		return wf_error_set(e, -ENOENT,
				    "torchrun has not started this process: RANK, WORLD_SIZE, "
				    "MASTER_ADDR and MASTER_PORT are not set");
	err = wf_launcher_rank("RANK", "WORLD_SIZE", job, e);
	if (!err)
		err = wf_launcher_number("MASTER_PORT", UINT16_MAX - 1, &port, e);
	if (!err)
		err = wf_launcher_host(wf_environment_get("MASTER_ADDR"), job, e);
	if (err)
		return err;
	/* Only torchrun itself tells how many of the processes are on this host. */
	job->many_hosts = !wf_launcher_number("LOCAL_WORLD_SIZE", WF_JOB_SIZE_MAX, &local, &ignored) &&
			  local < job->size;
	set_key(job);
	return wf_launcher_port(argument, (uint16_t)(port + 1), job, e);
}

const struct wf_launcher wf_torchrun_launcher = {
	.name = "torchrun",
	.here = here,
	.read = read_environment,
};
