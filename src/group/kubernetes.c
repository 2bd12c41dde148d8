/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An indexed job of Kubernetes: JOB_COMPLETION_INDEX is the rank, and WEFT_SIZE, which the manifest
 * sets to the job's completions, how many pods there are.  Rank 0 is the pod of index 0, whose name
 * is this one's with another number; a headless service makes it known.
 */
#include "group/kubernetes.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "group/launcher.h"
#include "util/environment.h"

int wf_kubernetes_first_pod(const char *name, uint32_t index, char *first, size_t bytes)
{
	size_t label = strcspn(name, "."), tail;
	char suffix[16];
	int length;

	tail = (size_t)snprintf(suffix, sizeof(suffix), "-%" PRIu32, index);
	if (label <= tail || memcmp(name + label - tail, suffix, tail))
		return -EINVAL;
	length = snprintf(first, bytes, "%.*s-0%s", (int)(label - tail), name, name + label);
	return length < 0 || (size_t)length >= bytes ? -EINVAL : 0;
}

static bool here(void)
{
	return wf_environment_get("JOB_COMPLETION_INDEX");
}

/* The full name of this pod, where its service gives it one. */
static int find_name(char *name, size_t bytes, struct wf_error *e)
{
	const struct addrinfo hints = { .ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (gethostname(name, bytes) || !memchr(name, 0, bytes))
		return wf_error_set(e, -EINVAL, "this host has no name");
	if (getaddrinfo(name, NULL, &hints, &found))
		return 0;
	if (found->ai_canonname && strlen(found->ai_canonname) < bytes)
		strcpy(name, found->ai_canonname);
	freeaddrinfo(found);
	return 0;
}

static int read_environment(const struct wf_options *options, const char *argument,
			    struct wf_job *job, struct wf_error *e)
{
	char name[WF_SOCKET_ADDRESS_BYTES];
	uint64_t index = 0;
	int err = wf_launcher_number("JOB_COMPLETION_INDEX", WF_JOB_SIZE_MAX, &index, e);

	if (!err && !options->job_size)
		err = wf_error_set(e, -EINVAL,
				   "WEFT_SIZE is not set: the number of pods, completions of the job");
	if (!err && index >= options->job_size)
		err = wf_error_set(e, -EINVAL,
				   "JOB_COMPLETION_INDEX=%" PRIu64 " is no rank of WEFT_SIZE=%" PRIu64
				   " processes", index, options->job_size);
	if (!err)
		err = find_name(name, sizeof(name), e);
	if (err)
		return err;
	if (wf_kubernetes_first_pod(name, (uint32_t)index, job->host, sizeof(job->host)))
		return wf_error_set(e, -EINVAL,
				    "the pod's name, %.150s, does not end with its index: say where rank "
				    "0 is by WEFT_BOOTSTRAP=HOST:PORT", name);
	job->rank = (uint32_t)index;
	job->size = (uint32_t)options->job_size;
	job->many_hosts = job->size > 1;
	return wf_launcher_port(argument, WF_LAUNCHER_PORT, job, e);
}

const struct wf_launcher wf_kubernetes_launcher = {
	.name = "kubernetes",
	.here = here,
	.read = read_environment,
};
