/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "process.h"

static void only_who_has_the_token_is_greeted(void **state)
{
	struct process server, friend, stranger;
	char path[512], address[128];
	const char *serve[] = { process_path("tests/examples/token", path), "sesame", NULL };
	const char *come[] = { path, "sesame", address, NULL };
	const char *try[] = { path, "barley", address, NULL };

	(void)state;
	process_start(&server, NULL, serve);
	process_address(&server, address);

	process_start(&stranger, NULL, try);
	assert_true(process_wait(&stranger, PROCESS_LIMIT_MS));
	assert_int_equal(stranger.status, 1);
	assert_string_equal(process_out(&stranger), "");
	assert_non_null(strstr(process_err(&stranger), "UNAUTHENTICATED: a token is needed"));

	process_start(&friend, NULL, come);
	assert_true(process_wait(&friend, PROCESS_LIMIT_MS));
	assert_int_equal(friend.status, 0);
	assert_string_equal(process_out(&friend), "hello, world\n");
	assert_string_equal(process_err(&friend), "");

	assert_true(process_says(&server, ": OK\n", PROCESS_LIMIT_MS));
	assert_non_null(strstr(process_out(&server), ": UNAUTHENTICATED\n"));
	process_stop(&stranger);
	process_stop(&friend);
	process_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_who_has_the_token_is_greeted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
