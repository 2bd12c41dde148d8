/* SPDX-License-Identifier: BSD-2-Clause */
/* `weft run`: the processes of a job, and how they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/examples/process.h"

static struct process job;

/* Run a job of @count, each of which is @argv. */
static void run(const char *count, const char *const argv[3])
{
	char weft[512];
	const char *all[] = { process_path("weft", weft), "run", "-n", count, argv[0], argv[1], argv[2],
			      NULL };

	process_start(&job, NULL, all);
}

static void run_shell(const char *count, const char *script)
{
	run(count, (const char *const[]){ "/bin/sh", "-c", script });
}

static void ends_with(int status, const char *sentence)
{
	assert_true(process_wait(&job, PROCESS_LIMIT_MS));
	if (job.status != status || !strstr(process_err(&job), sentence))
		fail_msg("expected %d and \"%s\": %d, %s", status, sentence, job.status,
			 process_err(&job));
}

static int stop(void **state)
{
	(void)state;
	process_stop(&job);
	return 0;
}

static void processes_of_a_job_find_each_other(void **state)
{
	char member[512];

	(void)state;
	run("3", (const char *const[]){ process_path("tests/group/member", member), NULL, NULL });
	ends_with(0, "");
	assert_non_null(strstr(process_out(&job), "rank 2 of 3, local 2 of 3, by address\n"));
}

static void a_job_averages_the_numbers_of_its_processes(void **state)
{
	char average[512], line[64];

	(void)state;
	run("3", (const char *const[]){ process_path("tests/examples/average", average), NULL, NULL });
	ends_with(0, "");
	for (unsigned rank = 0; rank < 3; rank++) {
		snprintf(line, sizeof(line), "rank %u of 3: 2\n", rank);
		assert_non_null(strstr(process_out(&job), line));
	}
}

static void the_first_that_fails_ends_the_others(void **state)
{
	(void)state;
	run_shell("3", "[ $WEFT_RANK = 1 ] && exit 7; exec sleep 1000");
	ends_with(7, "weft run: rank 1 ended with status 7\n");
}

static void a_signal_that_kills_a_rank_is_named(void **state)
{
	(void)state;
	run_shell("2", "[ $WEFT_RANK = 0 ] && kill -9 $$; exec sleep 1000");
	ends_with(128 + SIGKILL, "weft run: rank 0 was killed by signal 9 (Killed)\n");
}

static void the_end_of_the_tool_ends_the_job(void **state)
{
	(void)state;
	run_shell("2", "echo begun; exec sleep 1000");
	assert_true(process_says(&job, "begun\nbegun\n", PROCESS_LIMIT_MS));
	process_signal(&job, SIGTERM);
	ends_with(128 + SIGTERM, "");
}

static void a_process_that_ignores_the_end_is_killed(void **state)
{
	(void)state;
	run_shell("1", "trap '' TERM; echo begun; while :; do sleep 1; done");
	assert_true(process_says(&job, "begun\n", PROCESS_LIMIT_MS));
	process_signal(&job, SIGTERM);
	ends_with(128 + SIGTERM, "weft run: 1 process was killed: the time to end is over\n");
}

static void a_second_signal_kills_all_at_once(void **state)
{
	(void)state;
	run_shell("2", "trap 'echo heard' TERM; echo begun; while :; do sleep 0.1; done");
	assert_true(process_says(&job, "begun\nbegun\n", PROCESS_LIMIT_MS));
	process_signal(&job, SIGTERM);
	assert_true(process_says(&job, "heard\nheard\n", PROCESS_LIMIT_MS));
	process_signal(&job, SIGTERM);
	ends_with(128 + SIGTERM, "weft run: 2 processes were killed: a second signal came\n");
}

static void a_signal_that_is_ignored_ends_no_job(void **state)
{
	char weft[512];

	(void)state;
	/* As nohup does. */
	process_start(&job, NULL,
		      (const char *const[]){ "/bin/sh", "-c",
					     "trap '' HUP; exec \"$0\" run -n 1 sh -c "
					     "'echo begun; exec sleep 1000'",
					     process_path("weft", weft), NULL });
	assert_true(process_says(&job, "begun\n", PROCESS_LIMIT_MS));
	process_signal(&job, SIGHUP);
	process_signal(&job, SIGTERM);
	ends_with(128 + SIGTERM, "");
}

static void a_job_ends_where_the_end_of_children_is_ignored(void **state)
{
	char weft[512];

	(void)state;
	process_start(&job, NULL,
		      (const char *const[]){ "/proc/self/exe", process_path("weft", weft), "run", "-n",
					     "2", "sh", "-c", "exit $((WEFT_RANK * 7))", NULL });
	ends_with(7, "weft run: rank 1 ended with status 7\n");
}

static void a_program_that_is_not_there_is_named(void **state)
{
	(void)state;
	run("2", (const char *const[]){ "/nowhere/program", NULL, NULL });
	ends_with(127, "weft run: /nowhere/program: No such file or directory\n");
}

static void options_of_the_program_are_its_own(void **state)
{
	(void)state;
	run("1", (const char *const[]){ "echo", "--help", "-n" });
	ends_with(0, "");
	assert_string_equal(process_out(&job), "--help -n\n");
}

static void a_job_needs_a_count_and_a_program(void **state)
{
	char weft[512];

	(void)state;
	process_start(&job, NULL, (const char *const[]){ process_path("weft", weft), "run", "x", NULL });
	ends_with(2, "how many processes?");
	process_stop(&job);
	run("2", (const char *const[]){ NULL, NULL, NULL });
	ends_with(2, "there is no program");
	process_stop(&job);
	run("0", (const char *const[]){ "true", NULL, NULL });
	ends_with(2, "-n 0: expected a number from 1 to 1024");
}

/* With arguments this program is one that ignores SIGCHLD and runs another. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(processes_of_a_job_find_each_other, stop),
		cmocka_unit_test_teardown(a_job_averages_the_numbers_of_its_processes, stop),
		cmocka_unit_test_teardown(the_first_that_fails_ends_the_others, stop),
		cmocka_unit_test_teardown(a_signal_that_kills_a_rank_is_named, stop),
		cmocka_unit_test_teardown(the_end_of_the_tool_ends_the_job, stop),
		cmocka_unit_test_teardown(a_process_that_ignores_the_end_is_killed, stop),
		cmocka_unit_test_teardown(a_second_signal_kills_all_at_once, stop),
		cmocka_unit_test_teardown(a_signal_that_is_ignored_ends_no_job, stop),
		cmocka_unit_test_teardown(a_job_ends_where_the_end_of_children_is_ignored, stop),
		cmocka_unit_test_teardown(a_program_that_is_not_there_is_named, stop),
		cmocka_unit_test_teardown(options_of_the_program_are_its_own, stop),
		cmocka_unit_test_teardown(a_job_needs_a_count_and_a_program, stop),
	};

	if (argc > 1) {
		signal(SIGCHLD, SIG_IGN);
		execv(argv[1], argv + 1);
		return 127;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
