/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "process.h"

static void numbers_go_from_gpu_to_gpu(const char *const *variables)
{
	static struct process receiver, sender;
	char path[512], address[128];
	const char *receive[] = { process_path("tests/examples/cuda", path), "recv", NULL };
	const char *send[] = { path, "send", address, NULL };

	process_start(&receiver, variables, receive);
	process_address(&receiver, address);
	process_start(&sender, variables, send);

	assert_true(process_wait(&sender, PROCESS_LIMIT_MS));
	assert_true(process_wait(&receiver, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(&sender), "");
	assert_string_equal(process_err(&receiver), "");
	assert_int_equal(sender.status, 0);
	assert_int_equal(receiver.status, 0);
	assert_non_null(strstr(process_out(&receiver), "\n4194304 numbers have come\n"));

	process_stop(&sender);
	process_stop(&receiver);
}

/*
 * The software driver stands for the runtime, too.  NVIDIA's own runtime does not run on another
 * driver: it asks that for tables of functions which are not documented (cuGetExportTable).
 */
static void a_send_is_behind_its_stream_with_the_software_driver(void **state)
{
	char path[512], preload[600];
	/* A sanitizer's library is otherwise the first that is loaded. */
	const char *variables[] = { preload, "ASAN_OPTIONS=verify_asan_link_order=0", NULL };

	(void)state;
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s",
		 process_path("tests/cuda/fake/.libs/libcuda.so.1", path));
	numbers_go_from_gpu_to_gpu(variables);
}

/* Would the example find a GPU?  Says so if not. */
static bool has_gpu(void)
{
	static struct process probe;
	char path[512];
	const char *argv[] = { process_path("tests/examples/cuda", path), "send", "127.0.0.1:1",
			       NULL };
	const char *variables[] = { "WEFT_TIMEOUT=10ms", NULL };
	bool has;

	process_start(&probe, variables, argv);
	assert_true(process_wait(&probe, PROCESS_LIMIT_MS));
	has = !strstr(process_err(&probe), "cuda: no GPU: ");
	if (!has)
		print_message("skip: a real GPU: %s", process_err(&probe));
	process_stop(&probe);
	return has;
}

static void a_send_is_behind_its_stream_on_a_real_gpu(void **state)
{
	(void)state;
	if (!has_gpu())
		skip();
	numbers_go_from_gpu_to_gpu(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_is_behind_its_stream_with_the_software_driver),
		cmocka_unit_test(a_send_is_behind_its_stream_on_a_real_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
