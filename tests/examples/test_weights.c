/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "server.h"

#define FOLLOWERS 8
#define EARLY 6 /* followers that come before one has the weights */

static bool dies(unsigned follower)
{
	return follower == 1 || follower == 3;
}

static void start(struct process *followers, unsigned i, const char *const *variables,
		  const char *address)
{
	char path[512];
	const char *argv[] = { process_path("tests/examples/weights", path), "follow", address,
			       dies(i) ? "die" : NULL, NULL };

	process_start(&followers[i], variables, argv);
}

static void expect_end(struct process *follower, bool dead)
{
	assert_true(process_wait(follower, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(follower), "");
	assert_string_equal(process_out(follower), dead ? "" : "has the weights\n");
	assert_int_equal(follower->status, dead ? 3 : 0);
	process_stop(follower);
}

static void publish(const char *provider)
{
	char path[512], address[128], variable[64];
	const char *variables[] = { variable, NULL };
	const char *argv[] = { process_path("tests/examples/weights", path), "lead", "8", NULL };
	struct process leader, followers[FOLLOWERS];

	snprintf(variable, sizeof(variable), "FI_PROVIDER=%s", provider);
	process_start(&leader, variables, argv);
	process_address(&leader, address);
	for (unsigned i = 0; i < EARLY; i++)
		start(followers, i, variables, address);
	assert_true(process_says(&followers[0], "has the weights", PROCESS_LIMIT_MS));
	for (unsigned i = EARLY; i < FOLLOWERS; i++)
		start(followers, i, variables, address);

	for (unsigned i = 0; i < FOLLOWERS; i++)
		expect_end(&followers[i], dies(i));
	assert_true(process_wait(&leader, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(&leader), "");
	assert_non_null(strstr(process_out(&leader), "\nlost a follower: "));
	assert_non_null(strstr(process_out(&leader), "\n6 of 8 have the weights\n"));
	assert_int_equal(leader.status, 0);
	process_stop(&leader);
}

static void followers_that_come_late_or_die_keep_no_other_from_the_weights(void **state)
{
	(void)state;
	server_over_each(publish);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(followers_that_come_late_or_die_keep_no_other_from_the_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
