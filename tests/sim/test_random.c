/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random traffic under random faults, a run for each seed; see run.h.
 *
 * test_random [FIRST [COUNT [NODES [JOBS [WORKERS]]]]] runs those seeds; a seed that
 * fails is named, and alone does the same again.  COUNT is 1 if only FIRST is given,
 * NODES 0 what the seed says, WORKERS 1 for each node.  With SIM_TABLES in the
 * environment it prints what was hit by what.  Without arguments the first thousand
 * run, or as many as SIM_SEEDS in the environment says; test_seeds has others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "tests/sim/seeds.h"

static struct wf_seeds_plan plan;
static uint64_t first_seed, seed_count;

static void promises_hold_under_random_faults(void **state)
{
	(void)state;
	assert_int_equal(wf_seeds_run(first_seed, seed_count, &plan), 0);
}

static uint64_t number(char **argv, int argc, int at, uint64_t preset)
{
	return argc > at ? strtoull(argv[at], NULL, 0) : preset;
}

static uint64_t preset_count(void)
{
	const char *text = getenv("SIM_SEEDS");

	return text ? strtoull(text, NULL, 0) : 1000;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(promises_hold_under_random_faults) };
	time_t began = time(NULL);
	uint64_t jobs = number(argv, argc, 4, argc > 1 ? 1 : WF_SEEDS_JOBS);
	int failed;

	first_seed = number(argv, argc, 1, 1);
	seed_count = number(argv, argc, 2, argc > 1 ? 1 : preset_count());
	plan.nodes = (unsigned)number(argv, argc, 3, 0);
	plan.jobs = (unsigned)WF_MIN(WF_MAX(jobs, (uint64_t)1), (uint64_t)WF_SEEDS_JOBS_MAX);
	plan.workers = (unsigned)number(argv, argc, 5, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	wf_seeds_print(getenv("SIM_TABLES") != NULL);
	printf("%llu s\n", (unsigned long long)(time(NULL) - began));
	return failed;
}
