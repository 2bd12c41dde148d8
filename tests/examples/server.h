/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An example's server as a test starts it, over each provider that is there, and its clients.
 *
 * Threads: the one that runs the tests.
 */
#ifndef SERVER_H
#define SERVER_H

#include "process.h"

struct server {
	struct process process;
	char variable[64]; /* "FI_PROVIDER=..." */
	char address[128];
};

/* Start the example @program over @provider, and wait for the address that it prints. */
void server_start(struct server *s, const char *program, const char *provider);

/* Start a client: @program, the address, and up to three arguments; NULL: no more. */
void server_visit(const struct server *s, struct process *client, const char *program,
		  const char *first, const char *second, const char *third);

/* Ask the server to end, which must go well and without a complaint. */
void server_end(struct server *s);

/* Run @one over tcp, which is everywhere, and over shm where that is. */
void server_over_each(void (*one)(const char *provider));

#endif
