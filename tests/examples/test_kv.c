/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "process.h"

/* Read the word after the address. */
static void read_descriptor(struct process *prefill, char hex[600])
{
	assert_true(process_says(prefill, "\n", PROCESS_LIMIT_MS));
	assert_int_equal(sscanf(process_out(prefill), "%*s %599s", hex), 1);
}

static void blocks_go_from_one_cache_to_another(void **state)
{
	struct process prefill, decode;
	char path[512], address[128], hex[600];
	const char *serve[] = { process_path("tests/examples/kv", path), "prefill", NULL };
	const char *take[] = { path, "decode", address, hex, NULL };

	(void)state;
	process_start(&prefill, NULL, serve);
	process_address(&prefill, address);
	read_descriptor(&prefill, hex);
	process_start(&decode, NULL, take);

	assert_true(process_wait(&decode, PROCESS_LIMIT_MS));
	assert_true(process_wait(&prefill, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(&decode), "");
	assert_string_equal(process_err(&prefill), "");
	assert_string_equal(process_out(&decode), "200 blocks of 65536 bytes\n");
	assert_non_null(strstr(process_out(&prefill), "\nrequest 1: its blocks can go\n"));
	assert_int_equal(decode.status, 0);
	assert_int_equal(prefill.status, 0);

	process_stop(&decode);
	process_stop(&prefill);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_go_from_one_cache_to_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
