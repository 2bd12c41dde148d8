/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broadcast: a tensor of -s bytes from one host to -w others, again and again, each cable limited to
 * MBIT both ways.  The hosts are network namespaces.  A round ends when the sender knows that all
 * have the tensor.
 */
#include "tests/bench/must.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <weft/weft.h>

#include "tests/hosts/hosts.h"

#define SAMPLES_MAX 10000u
#define WARM_COUNT 1u
#define MBIT 800
#define PORT 7001
#define TIMEOUT_NS 60000000000u

static struct weft_node *open_node(unsigned host, const char *provider)
{
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	struct weft_node *node;
	char listen[64];

	snprintf(listen, sizeof(listen), "%s:%d", hosts_address(host, 0), PORT);
	options.listen = listen;
	options.provider = provider;
	options.security = WEFT_SECURITY_OPEN;
	options.timeout_ns = TIMEOUT_NS;
	must(weft_node_open(&options, &node), "weft_node_open");
	return node;
}

static struct weft_peer *open_peer(struct weft_node *node, unsigned host)
{
	struct weft_peer *peer;
	char address[64];

	snprintf(address, sizeof(address), "%s:%d", hosts_address(host, 0), PORT);
	must(weft_peer_open(node, address, &peer), "weft_peer_open");
	return peer;
}

static struct weft_tensor tensor_of(void *memory, int64_t *bytes)
{
	return (struct weft_tensor){ .data = memory, .device = { WEFT_CPU, 0 }, .ndim = 1,
				     .dtype = { WEFT_UINT, 8, 1 }, .shape = bytes };
}

/* Receive for as long as the sender lives. */
static void receive(unsigned host, const struct bench_options *o)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	int64_t bytes = (int64_t)o->bytes;
	struct weft_node *node;
	struct weft_peer *sender;
	struct weft_tensor into;
	enum weft_status status = WEFT_OK;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	hosts_enter(host);
	node = open_node(host, o->provider);
	sender = open_peer(node, 0);
	into = tensor_of(bench_memory(o->bytes), &bytes);
	options.flags = WEFT_RELAY;
	for (uint64_t step = 0; status == WEFT_OK; step++) {
		struct weft_op *op;

		must(weft_recv(node, sender, step, "", 0, &into, &options, &op), "weft_recv");
		must(weft_finish(op, &status), "weft_finish");
	}
	_exit(0);
}

static void once(struct weft_peer **peers, const struct bench_options *o, void *memory, uint64_t step)
{
	int64_t bytes = (int64_t)o->bytes;
	struct weft_tensor t = tensor_of(memory, &bytes);
	enum weft_status status;
	struct weft_op *op;

	must(weft_broadcast(peers, o->window, step, "", 0, &t, NULL, &op), "weft_broadcast");
	must(weft_finish(op, &status), "weft_finish");
	if (status != WEFT_OK)
		bench_die("a broadcast failed: %s", weft_error());
}

static void limit(unsigned hosts)
{
	for (unsigned i = 0; i < hosts; i++)
		hosts_limit(i, 0, MBIT);
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "", .bytes = 64u << 20, .seconds = 1, .window = 8
	};
	struct weft_peer *peers[HOSTS_MAX];
	char reason[HOSTS_REASON_BYTES];
	struct hosts_plan plan = { .networks = 1 };
	struct weft_node *node;
	size_t samples = 0;
	double *us, start, last, now;
	void *memory;

	hosts_arrive(argc, argv);
	bench_options(&o, argc, argv, "broadcast [-p PROVIDER] [-s BYTES] [-w RECEIVERS] [-t SECONDS]");
	plan.count = o.window + 1;
	if (plan.count > HOSTS_MAX)
		bench_die("%u receivers: at most %d", o.window, HOSTS_MAX - 1);
	if (!hosts_make(&plan, reason))
		bench_die("no hosts: %s", reason);
	limit(plan.count);
	for (unsigned i = 1; i < plan.count; i++)
		if (!fork())
			receive(i, &o);
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	memory = bench_memory(o.bytes);
	node = open_node(0, o.provider);
	for (unsigned i = 1; i < plan.count; i++)
		peers[i - 1] = open_peer(node, i);
	for (unsigned i = 0; i < WARM_COUNT; i++)
		once(peers, &o, memory, i);
	start = last = bench_now();
	do {
		once(peers, &o, memory, WARM_COUNT + samples);
		now = bench_now();
		us[samples++] = (now - last) * 1e6;
		last = now;
	} while (now - start < o.seconds && samples < SAMPLES_MAX);
	bench_print("broadcast", &o, us, samples, samples, now - start);
	must(weft_node_close(node), "weft_node_close");
	free(memory);
	free(us);
	return 0;
}
