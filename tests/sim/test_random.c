/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random traffic under random faults, a run for each seed; see run.h.
 *
 * test_random [FIRST [COUNT [NODES [JOBS [WORKERS]]]]] runs those seeds; a seed that
 * fails is named, and alone does the same again.  COUNT is 1 if only FIRST is given,
 * NODES 0 what the seed says, WORKERS 1 for each node.  With SIM_TABLES in the
 * environment it prints what was hit by what.  Without arguments the first thousand
 * run, those that failed once, and some with nodes of several workers.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/sim/run.h"

#define BATCH 50 /* seeds of one process: a fork for each would cost as much as half a run */
#define JOBS_MAX 64
#define SEED_SECONDS 60 /* far more than any takes; what loops for ever is stopped */

/* Seeds that have failed once; they run when none is asked for. */
static const uint64_t known[] = {
	44,   /* a new link died when its only rail failed once */
	182,  /* an offer that was withdrawn while the rail failed waited there for ever */
	263,  /* of twenty nodes the last to come got no credit */
	669,  /* a door that was reset in the middle of the first handshake cost all operations */
	3231, /* the same, in the second attempt */
	3728, /* word of a failed rail was lost with the door */
	4078, /* a node closed, and a peer of the same host read on */
	6319, /* a pong of an earlier connection made a link look up */
	158,  /* what waited for memory never ended when its node closed */
	1667, /* the pong of an earlier life made a new one wait for a redial */
	2406, /* a handler began while its node closed */
	11110, /* a rail came up while a node closed, and it made its last offers there */
	16461, /* a pong came after the end of its connection */
	21252, /* a pull that was taken back while it stopped ended too late */
	29556, /* who was dialled gave up, and who dialled read on */
	28725, /* a rail was opened anew between two hellos, and the peer kept its old address */
	51399, /* who had stood still read pool memory by the key of its slab, and it was another tensor */
	235227, /* who dialled gave up before who was dialled, and that one read on */
	611,  /* a stream broke while its link died, which was told to cancel the call, and kept it */
	4008596, /* a read of a stream went on after the deadline of its call, which had ended well */
	104119, /* a stream got its turn while its node closed, and kept what had come */
	106500, /* a stream broke, and a message waited for what went beside it, beyond its call */
	111839, /* a call's time passed while its good end waited for messages, and a frozen caller heard that end */
	420536, /* there was no memory to send an attachment, nor to say that it would not come */
	1795371375, /* the fake fabric read memory for a process that had died */
	22913, /* a peer was restarted and died while a call waited for its next attempt */
	1795263167, /* a control frame that a shared rail delivered twice */
};

/* A row of seeds for one child: @at says how far it is. */
struct row {
	uint64_t at, end;
};

static struct shared {
	struct wf_tally tally;
	struct row rows[JOBS_MAX];
} *shared;

static struct row *mine;
static uint64_t first_seed, seed_count;
static unsigned nodes, jobs, workers;

static void all_promises_hold(void **state)
{
	(void)state;
	for (; mine->at < mine->end; mine->at++) {
		(void)alarm(SEED_SECONDS);
		wf_run_seed(mine->at, nodes, workers, &shared->tally);
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
		(unsigned long long)seed, (unsigned long long)seed, workers,
		nodes ? " with the same --nodes" : "");
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

static void run_seeds(uint64_t first, uint64_t count)
{
	uint64_t next = first, end = first + count;
	pid_t children[JOBS_MAX] = { 0 }, child;
	unsigned running = 0, i;
	int status;

	memset(shared->rows, 0, sizeof(shared->rows));
	for (i = 0; i < jobs; i++) {
		if (!next_row(&shared->rows[i], &next, end))
			break;
		children[i] = start(&shared->rows[i]);
		running++;
	}
	while (running) {
		child = waitpid(-1, &status, 0);
		if (child < 0)
			break;
		for (i = 0; i < jobs && children[i] != child; i++)
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
}

static void promises_hold_under_random_faults(void **state)
{
	(void)state;
	run_seeds(first_seed, seed_count);
	assert_int_equal(shared->tally.failures, 0);
}

static void seeds_that_failed_once_do_not_again(void **state)
{
	uint64_t before = shared->tally.failures;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(known); i++)
		run_seeds(known[i], 1);
	assert_int_equal(shared->tally.failures, before);
}

static void nor_do_they_break_where_nodes_have_several_workers(void **state)
{
	uint64_t before = shared->tally.failures;

	(void)state;
	for (workers = 2; workers <= 3; workers++)
		run_seeds(1, 200);
	workers = 3;
	run_seeds(1590, 1); /* a closing node waited for one worker's offers, and did not poll the others */
	assert_int_equal(shared->tally.failures, before);
}

static uint64_t number(char **argv, int argc, int at, uint64_t preset)
{
	return argc > at ? strtoull(argv[at], NULL, 0) : preset;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(promises_hold_under_random_faults),
		cmocka_unit_test(seeds_that_failed_once_do_not_again),
		cmocka_unit_test(nor_do_they_break_where_nodes_have_several_workers),
	};
	const struct CMUnitTest asked_for[] = { tests[0] };
	time_t began = time(NULL);
	int failed;

	first_seed = number(argv, argc, 1, 1);
	seed_count = number(argv, argc, 2, argc > 1 ? 1 : 1000);
	nodes = (unsigned)number(argv, argc, 3, 0);
	jobs = (unsigned)WF_MIN(WF_MAX(number(argv, argc, 4, 1), (uint64_t)1), (uint64_t)JOBS_MAX);
	workers = (unsigned)number(argv, argc, 5, 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	failed = argc > 1 ? cmocka_run_group_tests(asked_for, NULL, NULL) :
			    cmocka_run_group_tests(tests, NULL, NULL);
	wf_tally_print(&shared->tally, getenv("SIM_TABLES") != NULL);
	printf("%llu s\n", (unsigned long long)(time(NULL) - began));
	return failed;
}
