/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "process.h"

#define SENDERS 3
#define NUMBERS (100 * 4096ll) /* of each sender */

static void threads_share_what_many_send(void **state)
{
	static struct process collector, senders[SENDERS];
	char path[512], address[128], expected[64];
	const char *collect[] = { process_path("tests/examples/threads", path), "collect", "3",
				  NULL };
	const char *send[] = { path, "send", address, NULL, NULL };
	const char *first[SENDERS] = { "0", "1000", "2000000" };

	(void)state;
	process_start(&collector, NULL, collect);
	process_address(&collector, address);
	for (int i = 0; i < SENDERS; i++) {
		send[3] = first[i];
		process_start(&senders[i], NULL, send);
	}
	for (int i = 0; i < SENDERS; i++) {
		assert_true(process_wait(&senders[i], PROCESS_LIMIT_MS));
		assert_string_equal(process_err(&senders[i]), "");
		assert_int_equal(senders[i].status, 0);
	}

	assert_true(process_wait(&collector, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(&collector), "");
	assert_int_equal(collector.status, 0);
	snprintf(expected, sizeof(expected), "\n300 rows, sum %lld\n",
		 SENDERS * (NUMBERS - 1) * NUMBERS / 2 + 2001000 * NUMBERS);
	assert_non_null(strstr(process_out(&collector), expected));

	for (int i = 0; i < SENDERS; i++)
		process_stop(&senders[i]);
	process_stop(&collector);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_share_what_many_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
