/* SPDX-License-Identifier: BSD-2-Clause */
#include "group/launcher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/environment.h"

int wf_launcher_number(const char *name, uint64_t most, uint64_t *value, struct wf_error *e)
{
	const char *text = wf_environment_get(name);

	if (!text)
		return wf_error_set(e, -ENOENT, "%s is not set", name);
	if (wf_options_parse("count", text, value) || *value > most)
		return wf_error_set(e, -EINVAL, "%s=%.100s: expected a number from 0 to %" PRIu64,
				    name, text, most);
	return 0;
}

/* Check rank and size; the names are of the variables that gave them. */
static int set_rank(uint64_t rank, uint64_t size, const char *rank_name, const char *size_name,
		    struct wf_job *job, struct wf_error *e)
{
	if (rank >= size)
		return wf_error_set(e, -EINVAL,
				    "%s=%" PRIu64 " is no rank of %s=%" PRIu64 " processes", rank_name,
				    rank, size_name, size);
	job->rank = (uint32_t)rank;
	job->size = (uint32_t)size;
	return 0;
}

int wf_launcher_rank(const char *rank_name, const char *size_name, struct wf_job *job,
		     struct wf_error *e)
{
	uint64_t rank = 0, size = 0;
	int err = wf_launcher_number(rank_name, WF_JOB_SIZE_MAX, &rank, e);

	if (!err)
		err = wf_launcher_number(size_name, WF_JOB_SIZE_MAX, &size, e);
	return err ? err : set_rank(rank, size, rank_name, size_name, job, e);
}

/* Variables of launchers. */
static const struct {
	const char *rank, *size; /* size NULL: the launcher gives none */
} pairs[] = {
	{ "RANK", "WORLD_SIZE" },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	{ "PMI_RANK", "PMI_SIZE" },
	{ "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" },
	{ "JOB_COMPLETION_INDEX", NULL },
};

/* The size is WEFT_SIZE; the rank is WEFT_RANK, or else a launcher's, or else 0. */
static int rank_of_size(const struct wf_options *options, struct wf_job *job, struct wf_error *e)
{
	bool given = options->job_rank || wf_environment_get("WEFT_RANK");

	for (size_t i = 0; i < WF_COUNT(pairs) && !given; i++) {
		uint64_t rank;
		int err = wf_launcher_number(pairs[i].rank, WF_JOB_SIZE_MAX, &rank, e);

		if (err == -ENOENT)
			continue;
		return err ? err : set_rank(rank, options->job_size, pairs[i].rank, "WEFT_SIZE", job, e);
	}
	return set_rank(options->job_rank, options->job_size, "WEFT_RANK", "WEFT_SIZE", job, e);
}

int wf_launcher_any_rank(const struct wf_options *options, struct wf_job *job, struct wf_error *e)
{
	if (options->job_size)
		return rank_of_size(options, job, e);
	/* A variable without the other of its pair may be anybody's. */
	for (size_t i = 0; i < WF_COUNT(pairs) && pairs[i].size; i++)
		if (wf_environment_get(pairs[i].rank) && wf_environment_get(pairs[i].size))
			return wf_launcher_rank(pairs[i].rank, pairs[i].size, job, e);
	return wf_error_set(e, -ENOENT,
			    "WEFT_RANK and WEFT_SIZE are not set, nor a rank of a launcher's");
}

uint16_t wf_launcher_port_of(uint64_t number)
{
	return (uint16_t)(20000 + number % (12000 / WF_JOB_PORTS) * WF_JOB_PORTS);
}

int wf_launcher_port(const char *argument, uint16_t preset, struct wf_job *job, struct wf_error *e)
{
	uint64_t port = preset;

	if (*argument && (wf_options_parse("count", argument, &port) || !port || port > UINT16_MAX))
		return wf_error_set(e, -EINVAL, "WEFT_BOOTSTRAP: \"%.100s\" is no port", argument);
	job->port = (uint16_t)port;
	job->ports = UINT16_MAX - job->port < WF_JOB_PORTS ? UINT16_MAX - job->port + 1u
							   : WF_JOB_PORTS;
	return 0;
}

int wf_launcher_host(const char *host, struct wf_job *job, struct wf_error *e)
{
	if (!*host || strlen(host) >= sizeof(job->host))
		return wf_error_set(e, -EINVAL, "\"%.100s\" is no name of a host", host);
	strcpy(job->host, host);
	return 0;
}
