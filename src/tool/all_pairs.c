/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/all_pairs.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/coordinator.h"
#include "tool/matrix.h"
#include "tool/matrix_json.h"
#include "tool/matrix_svg.h"
#include "tool/perf_run.h"
#include "tool/rounds.h"

#define BYTES_DEFAULT (1ull << 20)
#define TIME_DEFAULT_NS 1000000000ull

struct arguments {
	struct pairs_plan plan;
	const char *json, *svg; /* files; NULL: none; "-": JSON in place of text */
};

/* Files of rank 0, open before anything is measured: a path that is wrong must not cost an hour. */
struct files {
	FILE *json, *svg; /* NULL: none */
};

bool all_pairs_asked(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--all-pairs"))
			return true;
	return false;
}

/* Output */

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int file_open(const struct tool_command *self, const char *path, FILE **file)
{
	*file = NULL;
	if (!path)
		return TOOL_OK;
	*file = is_stdout(path) ? stdout : fopen(path, "we");
	return *file ? TOOL_OK : tool_fail(self, "%s: %s", path, strerror(errno));
}

/* Close a file, and say so if what was written is not there. */
static int file_close(const struct tool_command *self, const char *path, FILE *file)
{
	bool bad;

	if (!file || file == stdout)
		return TOOL_OK;
	bad = ferror(file);
	if (fclose(file) || bad)
		return tool_fail(self, "%s: can't be written: %s", path, strerror(errno));
	return TOOL_OK;
}

static int files_open(const struct tool_command *self, const struct arguments *a,
		      struct files *files)
{
	int status = file_open(self, a->json, &files->json);

	return status ? status : file_open(self, a->svg, &files->svg);
}

static int files_close(const struct tool_command *self, const struct arguments *a,
		       const struct files *files)
{
	int json = file_close(self, a->json, files->json);
	int svg = file_close(self, a->svg, files->svg);

	return json ? json : svg;
}

static int print_all(const struct tool_command *self, const struct arguments *a,
		     const struct files *files, const struct matrix *m)
{
	uint64_t failed = matrix_failed(m), pairs = (uint64_t)m->size * (m->size - 1);

	if (!is_stdout(a->json))
		matrix_print(m, stdout);
	if (files->json)
		matrix_json(m, files->json);
	if (files->svg)
		matrix_svg(m, files->svg);
	if (tool_flush(self))
		return TOOL_FAILED;
	if (failed)
		return tool_fail(self, "%" PRIu64 " of %" PRIu64 " pairs failed", failed, pairs);
	return TOOL_OK;
}

/* Rank 0 */

/* Fill in all that is known before anything is measured. */
static int matrix_begin(const struct tool_command *self, const struct arguments *a,
			struct weft_group *group, const char **addresses, struct matrix *m)
{
	uint32_t size = weft_group_size(group);

	for (uint32_t i = 0; i < size; i++)
		addresses[i] = weft_group_address(group, i);
	*m = (struct matrix){ .size = size,
			      .launcher = weft_group_launcher(group),
			      .addresses = addresses,
			      .bytes = a->plan.bytes,
			      .time_ns = a->plan.time_ns };
	m->cells = calloc((size_t)size * size, sizeof(*m->cells));
	for (uint64_t i = 0; m->cells && i < (uint64_t)size * size; i++)
		strcpy(m->cells[i].failed, "not measured");
	return m->cells ? TOOL_OK : tool_fail(self, "no memory for %" PRIu32 " processes", size);
}

static void print_head(const struct arguments *a, const struct matrix *m)
{
	uint32_t rounds = rounds_count(m->size);
	double seconds = (double)a->plan.time_ns / 1e9;

	if (is_stdout(a->json))
		return;
	printf("%" PRIu32 " processes, by %s: %" PRIu32
	       " round%s of disjoint pairs, some %.6g s each\n",
	       m->size, m->launcher, rounds, rounds == 1 ? "" : "s", 2 * seconds);
	fflush(stdout);
}

static int lead(const struct tool_command *self, const struct arguments *a,
		struct weft_group *group, struct coordinator *c)
{
	const char **addresses = calloc(weft_group_size(group), sizeof(*addresses));
	int status = addresses ? TOOL_OK : tool_fail(self, "no memory"), closed;
	struct files files = { NULL, NULL };
	struct matrix m = { 0 };

	if (!status && weft_group_size(group) < 2)
		status =
			tool_fail(self, "this process is alone: weft run, srun, mpirun or torchrun "
					"start several");
	if (!status)
		status = files_open(self, a, &files);
	if (!status)
		status = matrix_begin(self, a, group, addresses, &m);
	if (!status) {
		print_head(a, &m);
		status = coordinator_lead(c, &a->plan, &m);
	}
	/* The others end whatever became of this one. */
	coordinator_dismiss(c);
	if (!status)
		status = print_all(self, a, &files, &m);
	closed = files_close(self, a, &files);
	free(m.cells);
	free(addresses);
	return status ? status : closed;
}

/* All ranks */

static int take_part(const struct tool_command *self, const struct arguments *a,
		     struct weft_node *node, struct weft_group *group)
{
	struct coordinator *c = coordinator_open(self, node, group);
	int status;

	if (!c)
		return TOOL_FAILED;
	if (weft_group_rank(group) == 0)
		status = lead(self, a, group, c);
	else
		status = coordinator_follow(c);
	weft_group_close(group);
	/* Operations that are left end with the node, and then give up their memory. */
	tool_node_close(node);
	coordinator_close(c);
	return status;
}

static int join(const struct tool_command *self, const struct arguments *a)
{
	struct weft_group *group;
	struct weft_node *node;
	int status;

	if (tool_node_open(self, NULL, &node))
		return tool_fail(self, "%s", weft_error());
	if (weft_join(node, NULL, &group)) {
		status = tool_fail(self, "%s", weft_error());
		tool_node_close(node);
		return status;
	}
	/* Until here a signal ends the process: a join may wait for minutes. */
	tool_catch_signals();
	return take_part(self, a, node, group);
}

/* Arguments */

static int read_option(const struct tool_command *self, struct arguments *a, int c)
{
	switch (c) {
	case 'b':
		if (tool_bytes(optarg, &a->plan.bytes) || !a->plan.bytes ||
		    a->plan.bytes > PERF_BYTES_MAX)
			return tool_misused(self, "'%s' is not a size from 1 to 1G", optarg);
		return TOOL_OK;
	case 'T':
		if (tool_seconds(optarg, &a->plan.time_ns))
			return tool_misused(self, "'%s' is not a number of seconds", optarg);
		return TOOL_OK;
	case 'p':
		/* A node reads the environment when it opens. */
		return setenv("WEFT_PROVIDER", optarg, 1) ? tool_fail(self, "no memory") : TOOL_OK;
	case 'j':
		a->json = optarg;
		return TOOL_OK;
	case 's':
		a->svg = optarg;
		return TOOL_OK;
	default: /* 'a' */
		return TOOL_OK;
	}
}

int all_pairs_run(const struct tool_command *self, int argc, char **argv)
{
	static const struct option names[] = {
		{ "all-pairs", no_argument, NULL, 'a' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "seconds", required_argument, NULL, 'T' },
		{ "provider", required_argument, NULL, 'p' },
		{ "json", required_argument, NULL, 'j' },
		{ "svg", required_argument, NULL, 's' },
		{ 0 },
	};
	struct arguments a = { .plan = { BYTES_DEFAULT, TIME_DEFAULT_NS } };
	int c, status = TOOL_OK;

	opterr = 0;
	while (!status && (c = getopt_long(argc, argv, ":", names, NULL)) != -1)
		status = c == ':' || c == '?' ? tool_bad_option(self, c, argv)
					      : read_option(self, &a, c);
	if (!status && optind < argc)
		status = tool_misused(self,
				      "%s: with --all-pairs there is no address, for the processes "
				      "join",
				      argv[optind]);
	if (!status && is_stdout(a.svg))
		status = tool_misused(self, "--svg needs the name of a file");
	return status ? status : join(self, &a);
}
