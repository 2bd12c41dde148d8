/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft inside a program that was not built with it and knows how to be
 * interrupted: Python loads the library, its symbols to itself alone.
 *
 * Loading libfabric 1.17 installs handlers of signals; Python's own must be back
 * when the node is open.  2.1 leaves them alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <signal.h>

#include "../examples/process.h"

/* Loads the library @argv[1]; @argv[2] is run after that and before the node is opened. */
static const char program[] =
	"import ctypes, os, signal, sys, time\n"
	"def stop(*_):\n"
	"    raise KeyboardInterrupt\n"
	"lib = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_NOW)\n"
	"lib.weft_node_close.argtypes = [ctypes.c_void_p]\n"
	"exec(sys.argv[2])\n"
	"node = ctypes.c_void_p()\n"
	"assert lib.weft_node_open(None, ctypes.byref(node)) == 0\n"
	"try:\n"
	"    print('open', flush=True)\n"
	"    while True:\n"
	"        time.sleep(1)\n"
	"except KeyboardInterrupt:\n"
	"    assert lib.weft_node_close(node) == 0\n"
	"    print('interrupted', flush=True)\n";

static bool python_loads_it(void)
{
	const char *ask[] = { "/bin/sh", "-c", "command -v python3", NULL };
	struct process p;
	bool there;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("skip: a sanitizer must be loaded first, and Python is not built with it\n");
	return false;
#endif
	process_start(&p, NULL, ask);
	there = process_wait(&p, PROCESS_LIMIT_MS) && p.status == 0;
	process_stop(&p);
	if (!there)
		print_message("skip: no python3 here\n");
	return there;
}

/* Interrupt it once its node is open: it ends, without a word on stderr. */
static void interrupt(struct process *p, const char *before_open)
{
	char library[512];
	const char *run[] = { "/usr/bin/env", "python3", "-c", program,
			      process_path(".libs/libweft.so", library), before_open, NULL };

	process_start(p, NULL, run);
	assert_true(process_says(p, "open\n", PROCESS_LIMIT_MS));
	process_signal(p, SIGINT);
	assert_true(process_wait(p, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(p), "");
}

static void an_interrupt_reaches_a_program_that_loads_weft(void **state)
{
	struct process p;

	(void)state;
	if (!python_loads_it())
		skip();
	interrupt(&p, "");
	assert_string_equal(process_out(&p), "open\ninterrupted\n");
	assert_int_equal(p.status, 0);
	process_stop(&p);
}

static void an_interrupt_reaches_a_program_that_asks_for_the_version_first(void **state)
{
	struct process p;

	(void)state;
	if (!python_loads_it())
		skip();
	/* So libfabric is loaded without the variables that keep handlers of its parts out. */
	interrupt(&p, "lib.weft_info_libfabric()");
	assert_string_equal(process_out(&p), "open\ninterrupted\n");
	assert_int_equal(p.status, 0);
	process_stop(&p);
}

static void an_interrupt_reaches_a_program_that_takes_it_after_loading(void **state)
{
	struct process p;

	(void)state;
	if (!python_loads_it())
		skip();
	interrupt(&p, "signal.signal(signal.SIGINT, stop)");
	assert_string_equal(process_out(&p), "open\ninterrupted\n");
	assert_int_equal(p.status, 0);
	process_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interrupt_reaches_a_program_that_loads_weft),
		cmocka_unit_test(an_interrupt_reaches_a_program_that_asks_for_the_version_first),
		cmocka_unit_test(an_interrupt_reaches_a_program_that_takes_it_after_loading),
	};

	/* Whoever runs in the background of a script ignores it, and so would Python. */
	signal(SIGINT, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
