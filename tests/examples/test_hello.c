/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "process.h"

static void two_processes_greet_and_pass_numbers(void **state)
{
	struct process server, client;
	char path[512], address[128];
	const char *serve[] = { process_path("tests/examples/hello", path), NULL };
	const char *visit[] = { path, address, NULL };

	(void)state;
	process_start(&server, NULL, serve);
	process_address(&server, address);
	process_start(&client, NULL, visit);

	assert_true(process_wait(&client, PROCESS_LIMIT_MS));
	assert_true(process_wait(&server, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(&client), "");
	assert_string_equal(process_err(&server), "");
	assert_string_equal(process_out(&client), "hello, world\n");
	assert_non_null(strstr(process_out(&server),
			       "\n100000 numbers, the last is 99999\n"));
	assert_int_equal(client.status, 0);
	assert_int_equal(server.status, 0);

	process_stop(&client);
	process_stop(&server);
}

static void a_visit_to_nobody_says_so(void **state)
{
	struct process client;
	char path[512], address[32];
	const char *variables[] = { "WEFT_CONNECT_TIMEOUT=1s", NULL };
	const char *visit[] = { process_path("tests/examples/hello", path),
				address, NULL };
	unsigned short port;

	(void)state;
	process_ports(&port, 1);
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	process_start(&client, variables, visit);

	assert_true(process_wait(&client, PROCESS_LIMIT_MS));
	assert_non_null(strstr(process_err(&client), address));
	assert_int_equal(client.status, 1);
	process_stop(&client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes_greet_and_pass_numbers),
		cmocka_unit_test(a_visit_to_nobody_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
