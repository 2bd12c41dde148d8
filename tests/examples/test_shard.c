/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "server.h"

#define SHARD "tests/examples/shard"
#define WORKERS 3
#define SOLVE_MS 60000 /* for what takes a second or two */

static void start_worker(const struct server *s, struct process *worker)
{
	server_visit(s, worker, SHARD, NULL, NULL, NULL);
}

static void expect_solution(struct server *s)
{
	assert_true(process_wait(&s->process, SOLVE_MS));
	assert_non_null(strstr(process_out(&s->process), "\nsolved in "));
	assert_int_equal(s->process.status, 0);
}

static void expect_success(struct process *worker)
{
	assert_true(process_wait(worker, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(worker), "");
	assert_non_null(strstr(process_out(worker), " gradients\n"));
	assert_int_equal(worker->status, 0);
	process_stop(worker);
}

/* The error in the first report, and in the last. */
static void find_errors(const char *reports, double *first, double *last)
{
	static const char word[] = ": error ";

	reports = strstr(reports, word);
	assert_non_null(reports);
	assert_int_equal(sscanf(reports + strlen(word), "%lf", first), 1);
	for (; reports; reports = strstr(reports + 1, word))
		assert_int_equal(sscanf(reports + strlen(word), "%lf", last), 1);
}

static void solve(const char *provider)
{
	struct process workers[WORKERS];
	struct server server;
	double first, last;

	server_start(&server, SHARD, provider);
	for (unsigned i = 0; i < WORKERS; i++)
		start_worker(&server, &workers[i]);
	expect_solution(&server);
	for (unsigned i = 0; i < WORKERS; i++)
		expect_success(&workers[i]);

	assert_string_equal(process_err(&server.process), "");
	find_errors(process_out(&server.process), &first, &last);
	assert_true(first > .5);
	assert_true(last < .0011);
	process_stop(&server.process);
}

static void workers_find_the_known_answer_together(void **state)
{
	(void)state;
	server_over_each(solve);
}

static void kill_worker(const char *provider)
{
	struct process killed, worker;
	struct server server;

	server_start(&server, SHARD, provider);
	start_worker(&server, &killed);
	assert_true(process_says(&server.process, "step 1:", PROCESS_LIMIT_MS));
	process_signal(&killed, SIGKILL);
	assert_true(process_wait(&killed, PROCESS_LIMIT_MS));
	start_worker(&server, &worker);
	expect_solution(&server);
	expect_success(&worker);

	assert_memory_equal(process_err(&server.process), "shard: a worker is lost: ", 25);
	process_stop(&killed);
	process_stop(&server.process);
}

static void a_killed_worker_is_told_of_and_another_goes_on(void **state)
{
	(void)state;
	server_over_each(kill_worker);
}

static void kill_server(const char *provider)
{
	struct process worker;
	struct server server;

	server_start(&server, SHARD, provider);
	start_worker(&server, &worker);
	assert_true(process_says(&server.process, "step 1:", PROCESS_LIMIT_MS));
	process_signal(&server.process, SIGKILL);

	assert_true(process_wait(&worker, PROCESS_LIMIT_MS));
	assert_memory_equal(process_err(&worker), "shard: ", 7);
	assert_int_equal(worker.status, 1);
	process_stop(&worker);
	process_stop(&server.process);
}

static void a_killed_server_ends_its_worker(void **state)
{
	(void)state;
	server_over_each(kill_server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_find_the_known_answer_together),
		cmocka_unit_test(a_killed_worker_is_told_of_and_another_goes_on),
		cmocka_unit_test(a_killed_server_ends_its_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
