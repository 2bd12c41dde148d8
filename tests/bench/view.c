/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * view: a tensor in memory of the pool that another process of this host looks
 * at where it is, from the call of weft_send on,
 *
 *   -e first  until the receiver has read its first byte
 *   -e all    until it has read every byte
 *
 * One tensor at a time, which is freed before the next is sent.  Both sides spin.
 */
#include "tests/bench/must.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weft/weft.h>

#define SAMPLES_MAX 1000000u
#define WARM_COUNT  8u
#define ADDRESS_BYTES 64
#define PATTERN 0x5a

/* Between the two processes. */
static struct shared {
	_Atomic uint64_t wanted; /* tensors that are awaited, a total */
	_Atomic bool over;
	double sent_at;          /* the last of them */
} *shared;

static struct weft_node *open_node(const struct bench_options *o, size_t pool_bytes)
{
	struct weft_node_options options = {
		.size = sizeof(options), .mode = WEFT_MANUAL, .provider = o->provider,
		.pool_bytes = pool_bytes,
	};
	struct weft_node *node;

	must(weft_node_open(&options, &node), "weft_node_open");
	return node;
}

static void finish(struct weft_node *node, struct weft_op *op)
{
	while (!weft_op_ended(op))
		(void)weft_poll(node, 0);
	if (weft_op_status(op) != WEFT_OK)
		bench_die("a tensor did not come: %s", weft_op_message(op));
}

/* The sender: a tensor whenever one is wanted. */
static int serve(int to, const struct bench_options *o)
{
	struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SHARE };
	struct weft_node *node = open_node(o, 2 * o->bytes + (8u << 20));
	int64_t shape = (int64_t)o->bytes;
	struct weft_tensor tensor = { .device = { WEFT_CPU, 0 }, .ndim = 1,
				      .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };
	char address[ADDRESS_BYTES];
	struct weft_peer *peer;
	struct weft_op *op;

	bench_hear(to, address, sizeof(address));
	must(weft_peer_open(node, address, &peer), "weft_peer_open");
	must(weft_alloc(node, o->bytes, &tensor.data), "weft_alloc");
	memset(tensor.data, PATTERN, o->bytes);
	for (uint64_t step = 1;; step++) {
		while (atomic_load(&shared->wanted) < step && !atomic_load(&shared->over))
			(void)weft_poll(node, 0);
		if (atomic_load(&shared->over))
			break;
		shared->sent_at = bench_now();
		must(weft_send(peer, step, "", 0, &tensor, &options, &op), "weft_send");
		finish(node, op);
		weft_op_free(op);
	}
	weft_peer_close(peer);
	must(weft_node_close(node), "weft_node_close");
	return 0;
}

/* Of the next tensor, in microseconds from its send on. */
static double once(struct weft_node *node, const struct bench_options *o, uint64_t step, bool all)
{
	volatile uint64_t kept;
	struct weft_path path = { .size = sizeof(path) };
	const struct weft_tensor *got;
	struct weft_op *op;
	double read_at;

	must(weft_recv(node, NULL, step, "", 0, NULL, NULL, &op), "weft_recv");
	atomic_store(&shared->wanted, step);
	finish(node, op);
	got = weft_op_tensor(op, NULL);
	kept = all ? bench_sum(got->data, o->bytes) : *(const unsigned char *)got->data;
	read_at = bench_now();
	must(weft_op_path(op, &path), "weft_op_path");
	if (strcmp(path.way, "view") || path.copies || (!all && kept != PATTERN))
		bench_die("it came by %s with %u copies", path.way, path.copies);
	weft_op_free(op);
	return (read_at - shared->sent_at) * 1e6;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "shm", .endpoint = "all", .bytes = 64u << 20, .seconds = 1, .window = 1
	};
	char address[ADDRESS_BYTES] = "";
	size_t samples = 0;
	struct weft_node *node;
	double *us, start, one;
	uint64_t step = 0;
	bool all;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv, "view [-e first|all] [-p PROVIDER] [-s BYTES] [-t SECONDS]");
	all = !strcmp(o.endpoint, "all");
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		bench_die("no shared memory");
	to = bench_pair(serve, &o, &pid);
	node = open_node(&o, 8u << 20);
	strncpy(address, weft_node_address(node), sizeof(address) - 1);
	bench_tell(to, address, sizeof(address));
	while (step < WARM_COUNT)
		(void)once(node, &o, ++step, all);
	start = bench_now();
	do {
		one = once(node, &o, ++step, all);
		us[samples++] = one;
	} while (bench_now() - start < o.seconds && samples < SAMPLES_MAX);
	bench_print("view", &o, us, samples, samples, bench_now() - start);
	atomic_store(&shared->over, true);
	must(weft_node_close(node), "weft_node_close");
	bench_pair_end(pid);
	munmap(shared, sizeof(*shared));
	close(to);
	free(us);
	return 0;
}
