/* SPDX-License-Identifier: BSD-2-Clause */
#include "crossing.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VARIABLES_MAX 16

static char home[40];
static const char *variables[VARIABLES_MAX]; /* that a test has set */

bool crossing_begin(int argc, char **argv, const struct hosts_plan *plan,
		    const struct pair_command *commands, int *status)
{
	static const struct pair_command none[] = { { NULL, NULL } };
	char reason[HOSTS_REASON_BYTES];

	hosts_arrive(argc, argv);
	*status = 0;
	if (pair_is_other(argc, argv, commands ? commands : none))
		return false;
	if (!hosts_make(plan, reason)) {
		printf("skip: hosts: %s\n", reason);
		*status = 77;
		return false;
	}
	snprintf(home, sizeof(home), "%s:0", hosts_address(0, 0));
	setenv("WEFT_SECURITY", "open", 1);
	/* No cable leads through memory. */
	setenv("PAIR_PROVIDERS", "tcp net sockets", 0);
	return true;
}

void crossing_set(const char *name, const char *value)
{
	unsigned i = 0;

	while (variables[i] && strcmp(variables[i], name))
		i++;
	need(i < VARIABLES_MAX);
	variables[i] = name;
	setenv(name, value, 1);
}

int crossing_setup(void **state)
{
	(void)state;
	for (unsigned i = 0; i < VARIABLES_MAX && variables[i]; i++) {
		unsetenv(variables[i]);
		variables[i] = NULL;
	}
	setenv("WEFT_LISTEN", home, 1);
	hosts_restore();
	return 0;
}

void crossing_start(struct pair_other *other, const char *provider, unsigned host,
		    const char *listen, struct weft_node *node)
{
	char address[40];

	snprintf(address, sizeof(address), "%s:0", hosts_address(host, 0));
	hosts_start_on(host, false);
	pair_start(other, provider, listen ? listen : address, node);
}

void crossing_end(struct pair_other *other)
{
	/* It is none of those that others may have: those are here. */
	pair_do(other, "close");
	pair_kill(other, SIGKILL);
}

void crossing_open(struct pair *pair, const char *provider, unsigned host)
{
	struct weft_node_options options = pair_options(provider);

	*pair = (struct pair){ .provider = provider };
	need(!weft_node_open(&options, &pair->node));
	crossing_start(&pair->other, provider, host, NULL, pair->node);
	pair->peer = pair->other.peer;
}

void crossing_close(struct pair *pair)
{
	weft_peer_close(pair->peer);
	pair->other.peer = NULL;
	need(!weft_node_close(pair->node));
	crossing_end(&pair->other);
}

uint64_t crossing_bytes(unsigned network)
{
	char path[64];
	uint64_t bytes;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/eth%u/statistics/rx_bytes", network);
	file = fopen(path, "r");
	need(file && fscanf(file, "%" SCNu64, &bytes) == 1);
	fclose(file);
	return bytes;
}

void crossing_skip_unless(bool done, const char *reason)
{
	if (done)
		return;
	print_message("skip: %s\n", reason);
	skip();
}

const char *crossing_dump(struct weft_node *node)
{
	static char text[8192];
	FILE *out = fmemopen(text, sizeof(text), "w");

	need(out != NULL);
	weft_dump(node, out);
	fclose(out);
	return text;
}
