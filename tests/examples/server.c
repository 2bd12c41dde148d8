/* SPDX-License-Identifier: BSD-2-Clause */
#include "server.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

void server_start(struct server *s, const char *program, const char *provider)
{
	const char *variables[] = { s->variable, NULL };
	char path[512];
	const char *argv[] = { process_path(program, path), NULL };

	snprintf(s->variable, sizeof(s->variable), "FI_PROVIDER=%s", provider);
	process_start(&s->process, variables, argv);
	process_address(&s->process, s->address);
}

void server_visit(const struct server *s, struct process *client, const char *program,
		  const char *first, const char *second, const char *third)
{
	const char *variables[] = { s->variable, NULL };
	char path[512];
	const char *argv[] = { process_path(program, path), s->address, first, second, third,
			       NULL };

	process_start(client, variables, argv);
}

void server_end(struct server *s)
{
	process_signal(&s->process, SIGTERM);
	assert_true(process_wait(&s->process, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(&s->process), "");
	assert_int_equal(s->process.status, 0);
	process_stop(&s->process);
}

void server_over_each(void (*one)(const char *provider))
{
	static const char *const providers[] = { "tcp", "shm" };

	for (unsigned i = 0; i < sizeof(providers) / sizeof(*providers); i++) {
		/* Without tcp something is wrong with the test. */
		if (i > 0 && !process_finds(providers[i]))
			continue;
		print_message("over %s\n", providers[i]);
		one(providers[i]);
	}
}
