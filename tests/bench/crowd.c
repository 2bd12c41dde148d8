/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crowd: -w nodes of -n processes, which are open already, meet one node at the same time: how
 * long from the first ping until each has an answer.
 *
 *   -e ADDRESS  they meet that node, which is another program's, and in each process one after
 *               the other: what is measured then is how that node fares beside them
 *
 * Then all stay connected and idle until the program's input ends.  The exit status is 77 where
 * so many nodes can't be opened.  Nodes of the crowd never spin, as they have one host together.
 */
#include "tests/bench/must.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weft/weft.h>

#define ADDRESS_BYTES 64
#define PROCESSES_MAX 64u
#define TOO_MANY      77 /* exit status */
#define SETTLE_US     1500000u /* acknowledgements and what waited for them */

/* A node of the crowd. */
struct member {
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_op *ping;
};

static int open_node(const struct bench_options *o, struct weft_node **node)
{
	const struct weft_node_options options = { .size = sizeof(options),
						   .provider = o->provider };

	return weft_node_open(&options, node);
}

/* One process of the crowd. */

/* Open all nodes, whether they fit or not, and tell. */
static void open_all(int to, const struct bench_options *o, struct member *members, unsigned count)
{
	char fits = 1;

	for (unsigned i = 0; i < count && fits; i++)
		if (open_node(o, &members[i].node)) {
			fprintf(stderr, "node %u of a process: %s\n", i + 1, weft_error());
			fits = 0;
		}
	bench_tell(to, &fits, 1);
}

static void begin(struct member *m)
{
	must(weft_ping(m->peer, NULL, &m->ping), "weft_ping");
}

static void end(struct member *m)
{
	must(weft_wait(m->ping, WEFT_FOREVER), "weft_wait");
	if (weft_op_status(m->ping) != WEFT_OK)
		bench_die("no answer: %s", weft_op_message(m->ping));
	weft_op_free(m->ping);
}

static void meet_all(struct member *members, unsigned count, bool together)
{
	for (unsigned i = 0; i < count; i++) {
		begin(&members[i]);
		if (!together)
			end(&members[i]);
	}
	for (unsigned i = 0; i < count && together; i++)
		end(&members[i]);
}

static void run(int to, const struct bench_options *o, unsigned count)
{
	struct member *members = bench_memory(count * sizeof(*members));
	char address[ADDRESS_BYTES], word = 0;

	/* Few slots: these nodes have one peer each. */
	setenv("WEFT_SLOTS", "16", 1);
	setenv("WEFT_SPIN", "0", 1);
	open_all(to, o, members, count);
	bench_hear(to, address, sizeof(address));
	for (unsigned i = 0; i < count; i++)
		must(weft_peer_open(members[i].node, address, &members[i].peer), "weft_peer_open");
	meet_all(members, count, !o->endpoint[0]);
	bench_tell(to, &word, 1);
	/* What is open goes with the process, which goes with its parent. */
	while (true)
		pause();
}

/* The process that the others are children of. */

static int ends[PROCESSES_MAX];

static void start(const struct bench_options *o)
{
	for (unsigned i = 0; i < o->servers; i++)
		if (!bench_fork(&ends[i]))
			run(ends[i], o, o->window / o->servers + (i < o->window % o->servers));
}

static void await(const struct bench_options *o, bool opening)
{
	char word = 0;

	for (unsigned i = 0; i < o->servers; i++) {
		bench_hear(ends[i], &word, 1);
		if (opening && !word)
			exit(TOO_MANY);
	}
}

/* Use as many descriptors as this process may have. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	struct bench_options o = { .provider = "tcp", .endpoint = "", .bytes = 8, .seconds = 1,
				   .window = 1000, .servers = 4 };
	char address[ADDRESS_BYTES] = { 0 }, word;
	struct weft_node *node = NULL;
	double began, open_s, met_s;

	bench_options(&o, argc, argv, "crowd [-p PROVIDER] [-w NODES] [-n PROCESSES] [-e ADDRESS]");
	if (!o.servers || o.servers > PROCESSES_MAX || o.servers > o.window)
		bench_die("1 to %u processes, of a node at least", PROCESSES_MAX);
	raise_limit();
	began = bench_now();
	start(&o);
	if (!o.endpoint[0])
		must(open_node(&o, &node), "weft_node_open");
	snprintf(address, sizeof(address), "%s",
		 node ? weft_node_address(node) : o.endpoint);
	await(&o, true);
	open_s = bench_now() - began;
	began = bench_now();
	for (unsigned i = 0; i < o.servers; i++)
		bench_tell(ends[i], address, sizeof(address));
	await(&o, false);
	met_s = bench_now() - began;
	if (!node)
		usleep(SETTLE_US);
	printf("{\"test\":\"crowd\",\"provider\":\"%s\",\"peers\":%u,\"open_s\":%.3f,"
	       "\"met_s\":%.3f,\"descriptors\":%.0f}\n",
	       o.provider, o.window, open_s, met_s, bench_descriptors());
	fflush(stdout);
	while (read(STDIN_FILENO, &word, 1) > 0)
		;
	/* What is open goes with the process. */
	return 0;
}
