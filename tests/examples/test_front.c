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

#define FRONT "tests/examples/front"
#define CLIENTS 4

/* An answer that nobody stops has 2000 tokens, and takes more than 10 s. */
#define TOKENS_LATE 600 /* 3 s: what a busy machine may need until all have heard of the end */

/* Wait until the server has said how the answer to @prompt ended, in a line of its own. */
static const char *said_of(struct server *s, const char *prompt, unsigned *made)
{
	char about[64];
	const char *line;

	snprintf(about, sizeof(about), " tokens for \"%s\", ", prompt);
	assert_true(process_says(&s->process, about, PROCESS_LIMIT_MS));
	line = strstr(process_out(&s->process), about);
	while (line[-1] != '\n')
		line--;
	assert_int_equal(sscanf(line, "%u", made), 1);
	return line;
}

static unsigned count(const char *text, const char *word)
{
	unsigned found = 0;

	while ((text = strstr(text, word))) {
		found++;
		text += strlen(word);
	}
	return found;
}

static void cancel_several(const char *provider)
{
	static const char *const prompts[CLIENTS] = { "red", "green", "blue", "black" };
	struct process clients[CLIENTS];
	struct server server;
	char word[16], tokens[16], end[32];

	server_start(&server, FRONT, provider);
	for (unsigned i = 0; i < CLIENTS; i++) {
		snprintf(tokens, sizeof(tokens), "%u", 10 + 20 * i);
		server_visit(&server, &clients[i], FRONT, prompts[i], tokens, NULL);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		unsigned wanted = 10 + 20 * i, made;

		assert_true(process_wait(&clients[i], PROCESS_LIMIT_MS));
		assert_string_equal(process_err(&clients[i]), "");
		assert_int_equal(clients[i].status, 0);
		snprintf(word, sizeof(word), "%s ", prompts[i]);
		assert_int_equal(count(process_out(&clients[i]), word), wanted);
		snprintf(end, sizeof(end), "\n%u tokens: CANCELLED\n", wanted);
		assert_non_null(strstr(process_out(&clients[i]), end));

		said_of(&server, prompts[i], &made);
		assert_in_range(made, wanted, wanted + TOKENS_LATE);
		process_stop(&clients[i]);
	}
	server_end(&server);
}

static void each_client_that_has_enough_stops_its_answer(void **state)
{
	(void)state;
	server_over_each(cancel_several);
}

static void run_out_of_time(const char *provider)
{
	struct process client;
	struct server server;
	const char *line;
	unsigned made;
	double left_s;

	server_start(&server, FRONT, provider);
	server_visit(&server, &client, FRONT, "late", "2000", "2.5");
	assert_true(process_wait(&client, PROCESS_LIMIT_MS));
	assert_non_null(strstr(process_err(&client), "front: the deadline passed"));
	assert_non_null(strstr(process_out(&client), "late late "));
	assert_non_null(strstr(process_out(&client), " tokens: DEADLINE_EXCEEDED\n"));
	assert_int_equal(client.status, 1);

	line = said_of(&server, "late", &made);
	/* The client's time, which began earlier, may have ended it: but not long before. */
	assert_int_equal(sscanf(line, "%*u tokens for \"late\", %lf s before", &left_s), 1);
	assert_true(left_s < 1);
	assert_in_range(made, 2, 500 + TOKENS_LATE);
	process_stop(&client);
	server_end(&server);
}

static void a_deadline_ends_the_answer_on_both_sides(void **state)
{
	(void)state;
	server_over_each(run_out_of_time);
}

static void kill_client(const char *provider)
{
	struct process killed, client;
	struct server server;
	const char *line;
	unsigned made;

	server_start(&server, FRONT, provider);
	server_visit(&server, &killed, FRONT, "victim", NULL, NULL);
	assert_true(process_says(&killed, "victim ", PROCESS_LIMIT_MS));
	process_signal(&killed, SIGKILL);
	line = said_of(&server, "victim", &made);
	assert_non_null(strstr(line, ": UNAVAILABLE\n"));
	assert_in_range(made, 1, TOKENS_LATE);
	process_stop(&killed);

	server_visit(&server, &client, FRONT, "next", "3", NULL);
	assert_true(process_wait(&client, PROCESS_LIMIT_MS));
	assert_string_equal(process_out(&client), "next next next \n3 tokens: CANCELLED\n");
	assert_int_equal(client.status, 0);
	process_stop(&client);
	server_end(&server);
}

static void a_killed_client_stops_its_answer_and_the_server_goes_on(void **state)
{
	(void)state;
	server_over_each(kill_client);
}

static void end_server(const char *provider)
{
	struct process client;
	struct server server;

	server_start(&server, FRONT, provider);
	server_visit(&server, &client, FRONT, "word", NULL, NULL);
	assert_true(process_says(&client, "word ", PROCESS_LIMIT_MS));
	server_end(&server);

	assert_true(process_wait(&client, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(&client), "front: the server ends\n");
	assert_non_null(strstr(process_out(&client), " tokens: UNAVAILABLE\n"));
	assert_int_equal(client.status, 1);
	process_stop(&client);
}

static void a_server_that_ends_tells_its_clients(void **state)
{
	(void)state;
	server_over_each(end_server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_client_that_has_enough_stops_its_answer),
		cmocka_unit_test(a_deadline_ends_the_answer_on_both_sides),
		cmocka_unit_test(a_killed_client_stops_its_answer_and_the_server_goes_on),
		cmocka_unit_test(a_server_that_ends_tells_its_clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
