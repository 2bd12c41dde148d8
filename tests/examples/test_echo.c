/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE /* pipe2 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "server.h"

#define LINES 400     /* more than either side keeps for a reader that is slow */
#define LONG_LINE 9000

/* A client whose input is what the test writes into the descriptor that is returned. */
static int start_client(const struct server *s, struct process *client)
{
	int saved = dup(STDIN_FILENO);
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_true(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
	server_visit(s, client, "tests/examples/echo_client", NULL, NULL, NULL);
	if (saved >= 0) {
		dup2(saved, STDIN_FILENO);
		close(saved);
	} else {
		close(STDIN_FILENO);
	}
	close(ends[0]);
	return ends[1];
}

static void say(int input, const char *text)
{
	size_t bytes = strlen(text);

	assert_int_equal(write(input, text, bytes), bytes);
}

/* What this client says comes back. */
static void converse(struct process *client, int input, const char *line)
{
	say(input, line);
	assert_true(process_says(client, line, PROCESS_LIMIT_MS));
}

static void echo_many(const char *provider)
{
	static char text[LINES * 8 + LONG_LINE + 16];
	struct process client;
	struct server server;
	size_t used = 0;
	int input;

	for (unsigned i = 0; i < LINES; i++)
		used += (size_t)sprintf(text + used, "%u\n", i);
	memset(text + used, 'x', LONG_LINE);
	strcpy(text + used + LONG_LINE, "\nthe end");

	server_start(&server, "tests/examples/echo_server", provider);
	input = start_client(&server, &client);
	say(input, text);
	close(input);
	assert_true(process_wait(&client, PROCESS_LIMIT_MS));

	assert_string_equal(process_err(&client), "");
	assert_string_equal(process_out(&client), text);
	assert_int_equal(client.status, 0);
	process_stop(&client);
	server_end(&server);
}

static void all_lines_come_back_in_their_order(void **state)
{
	(void)state;
	server_over_each(echo_many);
}

static void kill_client(const char *provider)
{
	struct process killed, client;
	struct server server;
	int first, second;

	server_start(&server, "tests/examples/echo_server", provider);
	first = start_client(&server, &killed);
	second = start_client(&server, &client);
	converse(&killed, first, "one\n");
	converse(&client, second, "two\n");

	process_signal(&killed, SIGKILL);
	assert_true(process_wait(&killed, PROCESS_LIMIT_MS));
	converse(&client, second, "three\n");
	close(second);

	assert_true(process_wait(&client, PROCESS_LIMIT_MS));
	assert_string_equal(process_out(&client), "two\nthree\n");
	assert_int_equal(client.status, 0);
	close(first);
	process_stop(&killed);
	process_stop(&client);
	server_end(&server);
}

static void a_killed_client_leaves_the_server_to_others(void **state)
{
	(void)state;
	server_over_each(kill_client);
}

static void end_server(const char *provider)
{
	struct process client;
	struct server server;
	int input;

	server_start(&server, "tests/examples/echo_server", provider);
	input = start_client(&server, &client);
	converse(&client, input, "one\n");
	server_end(&server);

	say(input, "two\n");
	assert_true(process_wait(&client, PROCESS_LIMIT_MS));
	assert_string_equal(process_out(&client), "one\n");
	assert_memory_equal(process_err(&client), "echo_client: ", 13);
	assert_int_equal(client.status, 1);
	close(input);
	process_stop(&client);
}

static void a_server_ends_well_amid_a_call_and_its_client_says_so(void **state)
{
	(void)state;
	server_over_each(end_server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lines_come_back_in_their_order),
		cmocka_unit_test(a_killed_client_leaves_the_server_to_others),
		cmocka_unit_test(a_server_ends_well_amid_a_call_and_its_client_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
