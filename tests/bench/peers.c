/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peers: what a node takes of memory and descriptors for one more peer: -w of
 * them, nodes of a second process, which connect one after the other.
 *
 *   -e idle    connected, and nothing more
 *   -e active  one tensor of -s bytes has come from each, and waits for its receive
 *
 * Memory is what is private and written to, from the 9th peer to the last.
 */
#include "tests/bench/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#define ADDRESS_BYTES 64
#define FIRST_PINGS   200u /* of each of these: every receive slot has been used once */
#define SETTLE_US     1500000u /* acknowledgements and what waited for them */

static struct weft_node *open_node(const struct bench_options *o)
{
	struct weft_node_options options = { .size = sizeof(options), .provider = o->provider };
	struct weft_node *node;

	must(weft_node_open(&options, &node), "weft_node_open");
	return node;
}

static void ping(struct weft_peer *peer)
{
	struct weft_op *op;

	must(weft_ping(peer, NULL, &op), "weft_ping");
	must(weft_wait(op, WEFT_FOREVER), "weft_wait");
	if (weft_op_status(op) != WEFT_OK)
		bench_die("no link: %s", weft_op_message(op));
	weft_op_free(op);
}

/* One of the peers: connects, and sends if it is to be active. */
static void join(const struct bench_options *o, const char *address, uint64_t number)
{
	static char body[1u << 20];
	const struct weft_send_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = WEFT_FOREVER },
	};
	struct weft_node *node = open_node(o);
	int64_t shape = (int64_t)o->bytes;
	struct weft_tensor tensor = {
		.data = body, .device = { .type = WEFT_CPU }, .ndim = 1,
		.dtype = { .code = WEFT_UINT, .bits = 8, .lanes = 1 }, .shape = &shape,
	};
	struct weft_peer *peer;
	struct weft_op *op;

	must(weft_peer_open(node, address, &peer), "weft_peer_open");
	if (strcmp(o->endpoint, "active") == 0)
		must(weft_send(peer, number, "k", 1, &tensor, &options, &op), "weft_send");
	for (unsigned i = 0; i < (number < BENCH_FIRST_PEERS ? FIRST_PINGS : 1); i++)
		ping(peer);
}

/* The peers, all in one process, which nobody looks at; they go with it. */
static int serve(int to, const struct bench_options *o)
{
	char address[ADDRESS_BYTES], word;

	/* Few slots: these nodes have one peer each. */
	setenv("WEFT_SLOTS", "16", 1);
	bench_hear(to, address, sizeof(address));
	for (uint64_t i = 0; i < o->window; i++) {
		bench_hear(to, &word, 1);
		join(o, address, i);
		bench_tell(to, &word, 1);
	}
	bench_hear(to, &word, 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "idle", .bytes = 8, .seconds = 1, .window = 200
	};
	double bytes = 0, fds = 0, more;
	char address[ADDRESS_BYTES] = { 0 }, word = 0;
	struct weft_node *node;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv, "peers [-p PROVIDER] [-e idle|active] [-s BYTES] [-w PEERS]");
	if (o.window <= BENCH_FIRST_PEERS || o.bytes > 1u << 20)
		bench_die("more than %u peers, and at most 1M", BENCH_FIRST_PEERS);
	to = bench_pair(serve, &o, &pid);
	node = open_node(&o);
	snprintf(address, sizeof(address), "%s", weft_node_address(node));
	bench_tell(to, address, sizeof(address));
	for (unsigned i = 0; i < o.window; i++) {
		bench_tell(to, &word, 1);
		bench_hear(to, &word, 1);
		if (i + 1 != BENCH_FIRST_PEERS && i + 1 != o.window)
			continue;
		usleep(SETTLE_US);
		if (i + 1 == BENCH_FIRST_PEERS) {
			bytes = bench_private_bytes();
			fds = bench_descriptors();
		}
	}
	more = (double)(o.window - BENCH_FIRST_PEERS);
	printf("{\"test\":\"peers\",\"provider\":\"%s\",\"peers\":%u,\"state\":\"%s\","
	       "\"peer_bytes\":%.0f,\"peer_descriptors\":%.2f}\n",
	       o.provider, o.window, o.endpoint, (bench_private_bytes() - bytes) / more,
	       (bench_descriptors() - fds) / more);
	bench_tell(to, &word, 1);
	bench_pair_end(pid);
	/* What is open goes with the process. */
	return 0;
}
