/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * first: what a program pays before its first operation:
 *
 *   -e answer  time of a node that has just opened to the first answer of another one: the dial,
 *              the handshake, the rail and a ping
 *   -e open    processor time of opening a node, the first of its process, libfabric included
 *
 * Keys and certificates are those of the environment.
 */
#include "tests/bench/must.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weft/weft.h>

#define SAMPLES_MAX 10000u
#define ADDRESS_BYTES 64

static struct weft_node *open_node(const struct bench_options *o)
{
	const struct weft_node_options options = {
		.size = sizeof(options), .provider = o->provider,
	};
	struct weft_node *node;

	must(weft_node_open(&options, &node), "weft_node_open");
	return node;
}

static int serve(int to, const struct bench_options *o)
{
	struct weft_node *node = open_node(o);
	char address[ADDRESS_BYTES] = "", over;

	strncpy(address, weft_node_address(node), sizeof(address) - 1);
	bench_tell(to, address, sizeof(address));
	bench_hear(to, &over, 1);
	must(weft_node_close(node), "weft_node_close");
	return 0;
}

/* Returns the microseconds to the first answer. */
static double meet(const struct bench_options *o, const char *address)
{
	struct weft_node *node = open_node(o);
	struct weft_peer *peer;
	struct weft_op *op;
	double start, us;

	must(weft_peer_open(node, address, &peer), "weft_peer_open");
	start = bench_now();
	must(weft_ping(peer, NULL, &op), "weft_ping");
	must(weft_wait(op, WEFT_FOREVER), "weft_wait");
	us = (bench_now() - start) * 1e6;
	if (weft_op_status(op) != WEFT_OK)
		bench_die("no answer: %s", weft_op_message(op));
	weft_op_free(op);
	must(weft_node_close(node), "weft_node_close");
	return us;
}

/* Measure first answers, one at least.  Returns how many. */
static size_t measure_answers(const struct bench_options *o, double *us)
{
	char address[ADDRESS_BYTES] = "", over = 1;
	size_t samples = 0;
	double start;
	pid_t pid;
	int to = bench_pair(serve, o, &pid);

	bench_hear(to, address, sizeof(address));
	(void)meet(o, address);
	start = bench_now();
	do
		us[samples++] = meet(o, address);
	while (bench_now() - start < o->seconds && samples < SAMPLES_MAX);
	bench_tell(to, &over, 1);
	bench_pair_end(pid);
	close(to);
	return samples;
}

static double spent_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Open a node in a process that has had none, and tell what that took. */
static int open_first(int to, const struct bench_options *o)
{
	double before_us = spent_us(), took_us;
	struct weft_node *node = open_node(o);

	took_us = spent_us() - before_us;
	bench_tell(to, &took_us, sizeof(took_us));
	must(weft_node_close(node), "weft_node_close");
	return 0;
}

/* Measure openings, each in a process of its own, one at least.  Returns how many. */
static size_t measure_openings(const struct bench_options *o, double *us)
{
	double start = bench_now();
	size_t samples = 0;

	do {
		pid_t pid;
		int to = bench_pair(open_first, o, &pid);

		bench_hear(to, &us[samples++], sizeof(*us));
		bench_pair_end(pid);
		close(to);
	} while (bench_now() - start < o->seconds && samples < SAMPLES_MAX);
	return samples;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "answer", .bytes = 8, .seconds = 1, .window = 1,
	};
	double *us = bench_memory(SAMPLES_MAX * sizeof(*us)), start = bench_now();
	size_t samples;

	bench_options(&o, argc, argv, "first [-e answer|open] [-p PROVIDER] [-t SECONDS]");
	samples = strcmp(o.endpoint, "open") ? measure_answers(&o, us) : measure_openings(&o, us);
	bench_print("first", &o, us, samples, samples, bench_now() - start);
	free(us);
	return 0;
}
