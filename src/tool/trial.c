/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/child.h"

#define NS_PER_MS 1000000ull

/* How often a signal is looked for while a trial runs. */
#define SLICE_MS 100

/* A process that was asked to end is killed after so long: its child has three steps of 2 s. */
#define END_NS (10000 * NS_PER_MS)

const char *trial_variable(enum trial_setting setting)
{
	static const char *const names[] = {
		[TRIAL_FRAME] = "WEFT_FRAME_BYTES",
		[TRIAL_EAGER] = "WEFT_EAGER_BYTES",
		[TRIAL_CHUNK] = "WEFT_CHUNK_BYTES",
		[TRIAL_DEPTH] = "WEFT_DEPTH",
	};

	return names[setting];
}

/* The process that measures */

static int set_values(const struct tool_command *command, const struct trial *t)
{
	char text[24];

	for (size_t i = 0; i < TRIAL_SETTINGS; i++) {
		snprintf(text, sizeof(text), "%" PRIu64, t->values[i]);
		if (t->values[i] && setenv(trial_variable(i), text, 1))
			return tool_fail(command, "no memory");
	}
	/* Warnings of the library are the first trial's to print: hundreds would repeat them. */
	if (t->provider[0] && setenv("WEFT_LOG", "0", 0))
		return tool_fail(command, "no memory");
	return TOOL_OK;
}

/* Read the values that are in force with @provider; all stay 0 where no node opens it. */
static void values_of(const struct weft_info *info, const char *provider,
		      uint64_t values[TRIAL_SETTINGS])
{
	struct weft_fabric f = WEFT_FABRIC_INIT;

	for (size_t i = 0; i < weft_info_count(info); i++) {
		if (weft_info_get(info, i, &f) || !f.used || strcmp(f.provider, provider) != 0)
			continue;
		values[TRIAL_FRAME] = f.frame_bytes;
		values[TRIAL_EAGER] = f.eager_bytes;
		values[TRIAL_CHUNK] = f.chunk_bytes;
		values[TRIAL_DEPTH] = f.depth;
		return;
	}
}

/*
 * Ask what a node would open, before the second process starts.  Leaves @info NULL, and says in
 * @r, where a value is refused.
 */
static int look(const struct tool_command *command, const struct trial *t, struct trial_result *r,
		struct weft_info **info)
{
	*info = NULL;
	if (weft_info_open(NULL, info)) {
		if (!t->provider[0])
			return tool_fail(command, "%s", weft_error());
		snprintf(r->refused, sizeof(r->refused), "%s", weft_error());
		return TOOL_OK;
	}
	snprintf(r->libfabric, sizeof(r->libfabric), "%s", weft_info_libfabric());
	values_of(*info, t->provider, r->values);
	for (size_t i = 0; i < TRIAL_SETTINGS && t->provider[0]; i++) {
		if (!t->values[i] || r->values[i] == t->values[i])
			continue;
		snprintf(r->refused, sizeof(r->refused), "%s takes no more than %" PRIu64,
			 t->provider, r->values[i]);
		weft_info_close(*info);
		*info = NULL;
		break;
	}
	return TOOL_OK;
}

static int measure(struct perf_client *client, const struct trial *t, struct trial_result *r,
		   uint64_t start_ns)
{
	static struct perf_result measured; /* 58 KiB of histogram: too much for a stack */
	struct perf_plan plan = { .test = t->test, .part_count = 1, .time_ns = t->time_ns };
	int status = TOOL_OK;

	for (size_t i = 0; i < t->size_count && !status; i++) {
		struct trial_body *body = &r->bodies[i];
		uint64_t begun_ns = tool_now_ns();

		if (i && t->limit_ns && begun_ns - start_ns > t->limit_ns)
			break;
		plan.parts = &t->sizes[i];
		plan.window = perf_run_window(t->sizes[i]);
		status = perf_client_measure(client, &plan, &measured);
		if (status)
			break;
		body->us = (double)histogram_part_ns(&measured.latency, 0.5) / 1e3;
		body->per_s = (double)(measured.count * t->sizes[i]) * 1e9 /
			      (double)(measured.took_ns ? measured.took_ns : 1);
		body->ran_ns = tool_now_ns() - begun_ns;
		snprintf(r->provider, sizeof(r->provider), "%s", measured.path.provider);
		r->body_count = i + 1;
	}
	return status;
}

static int work(const struct tool_command *command, const struct trial *t, struct trial_result *r)
{
	struct perf_client *client = NULL;
	struct child child = { 0 };
	char *started[] = { child.address };
	uint64_t start_ns = tool_now_ns();
	struct weft_info *info = NULL;
	int status = set_values(command, t), ended;

	if (!status)
		status = look(command, t, r, &info);
	if (status || !info)
		return status;
	status = child_start(command, &child);
	if (!status)
		status = perf_client_open(command, child.listen, started, 1, &client);
	if (!status)
		status = measure(client, t, r, start_ns);
	if (!status)
		status = perf_client_leave(client);
	if (status)
		child_ask(&child);
	perf_client_close(client);
	ended = child_end(command, &child);
	values_of(info, r->provider, r->values);
	weft_info_close(info);
	r->ran_ns = tool_now_ns() - start_ns;
	return status ? status : ended;
}

/* Measure in the forked process, and report.  The buffers of stdio are the parent's to write. */
static void become_measurer(const struct tool_command *command, const struct trial *t, pid_t parent,
			    int out)
{
	static struct trial_result r; /* no padding of a stack goes out */

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent) /* the parent died before prctl() */
		_exit(TOOL_FAILED);
	r.status = work(command, t, &r);
	fflush(stderr);
	if (write(out, &r, sizeof(r)) != (ssize_t)sizeof(r))
		_exit(TOOL_FAILED);
	_exit(r.status);
}

/* The process that asks */

/* Read the report.  When a signal asks for the end it is passed on, and then the end is awaited. */
static bool read_report(pid_t pid, int from, struct trial_result *r)
{
	struct pollfd ready = { .fd = from, .events = POLLIN };
	char *to = (char *)r;
	size_t have = 0;
	uint64_t asked_ns = 0;
	ssize_t got = 1;

	while (have < sizeof(*r) && got) {
		if (tool_ending() && !asked_ns) {
			asked_ns = tool_now_ns();
			kill(pid, SIGTERM);
		}
		if (asked_ns && tool_now_ns() - asked_ns > END_NS)
			break;
		if (poll(&ready, 1, SLICE_MS) <= 0)
			continue;
		got = read(from, to + have, sizeof(*r) - have);
		if (got > 0)
			have += (size_t)got;
		else if (got < 0 && errno != EINTR)
			break;
	}
	return have == sizeof(*r);
}

/* Reap the measuring process, whose report is here or will not come. */
static int reap(const struct tool_command *command, pid_t pid, bool reported)
{
	int status;

	if (!reported)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (tool_ending())
		return TOOL_INTERRUPTED;
	return reported ? TOOL_OK
			: tool_fail(command, "the process that measures ended without a report");
}

int trial_run(const struct tool_command *command, const struct trial *trial,
	      struct trial_result *result)
{
	pid_t self = getpid(), pid;
	bool reported;
	int ends[2], status;

	memset(result, 0, sizeof(*result));
	if (tool_flush(command))
		return TOOL_FAILED;
	if (pipe2(ends, O_CLOEXEC))
		return tool_fail(command, "can't make a pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		become_measurer(command, trial, self, ends[1]);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return tool_fail(command, "can't start a process: %s", strerror(errno));
	}
	reported = read_report(pid, ends[0], result);
	close(ends[0]);
	status = reap(command, pid, reported);
	return status ? status : result->status;
}
