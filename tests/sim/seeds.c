/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/seeds.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/sim/run.h"

#define BATCH 50 /* seeds of one process: a fork for each would cost as much as half a run */
#define SEED_SECONDS 60 /* far more than any takes; what loops for ever is stopped */

/* A row of seeds for one child: @at says how far it is. */
struct row {
	uint64_t at, end;
};

static struct shared {
	struct wf_tally tally;
	struct row rows[WF_SEEDS_JOBS_MAX];
} *shared;

static struct row *mine;
static const struct wf_seeds_plan *plan;

static void all_promises_hold(void **state)
{
	(void)state;
	for (; mine->at < mine->end; mine->at++) {
		(void)alarm(SEED_SECONDS);
		wf_run_seed(mine->at, plan->nodes, plan->workers, &shared->tally);
	}
}

/* A seed that fails among others says why when it does so again, alone. */
static int run_row(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_promises_hold) };
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 ||
	    (mine->end - mine->at > 1 && dup2(nowhere, STDERR_FILENO) < 0))
		return 1;
	(void)close(nowhere);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

static pid_t start(struct row *row)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		mine = row;
		exit(run_row());
	}
	if (child < 0) {
		perror("fork");
		exit(1);
	}
	return child;
}

/* A seed that failed among others should do so alone. */
static void report(uint64_t seed)
{
	int status = 0;
	struct row alone = { seed, seed + 1 };
	pid_t child = start(&alone);

	if (waitpid(child, &status, 0) != child || !status)
		fprintf(stderr, "seed %llu failed after others, and not alone\n",
			(unsigned long long)seed);
	fprintf(stderr, "seed %llu failed: scripts/sim --seeds 1 --from %llu --workers %u%s does it again\n",
		(unsigned long long)seed, (unsigned long long)seed, plan->workers,
		plan->nodes ? " with the same --nodes" : "");
	shared->tally.failures++;
}

/* A new row for @row, or none is left. */
static bool next_row(struct row *row, uint64_t *next, uint64_t end)
{
	if (row->at == row->end) {
		row->at = *next;
		row->end = WF_MIN(*next + BATCH, end);
		*next = row->end;
	}
	return row->at < row->end;
}

static void share(void)
{
	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
}

uint64_t wf_seeds_run(uint64_t first, uint64_t count, const struct wf_seeds_plan *how)
{
	uint64_t next = first, end = first + count, before;
	pid_t children[WF_SEEDS_JOBS_MAX] = { 0 }, child;
	unsigned running = 0, i;
	int status;

	share();
	plan = how;
	before = shared->tally.failures;
	memset(shared->rows, 0, sizeof(shared->rows));
	for (i = 0; i < plan->jobs; i++) {
		if (!next_row(&shared->rows[i], &next, end))
			break;
		children[i] = start(&shared->rows[i]);
		running++;
	}
	while (running) {
		child = waitpid(-1, &status, 0);
		if (child < 0)
			break;
		for (i = 0; i < plan->jobs && children[i] != child; i++)
			;
		running--;
		children[i] = 0;
		if (status)
			report(shared->rows[i].at++);
		if (next_row(&shared->rows[i], &next, end)) {
			children[i] = start(&shared->rows[i]);
			running++;
		}
	}
	return shared->tally.failures - before;
}

void wf_seeds_print(bool tables)
{
	share();
	wf_tally_print(&shared->tally, tables);
}
