/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window: bytes that one process takes out of a window of another's, or brings there, in one
 * operation at a time:
 *
 *   -e get      a get of -w blocks, of -s bytes together
 *   -e put      a put of them
 *   -e tensor   a tensor of -s bytes
 *   -e tensors  -w tensors, of -s bytes together, all on the way at once
 *
 * The blocks lie apart in the window, in the reverse order, and in registered memory here.
 * Tensors are received into memory of the receiver's that is always the same.  Both sides spin.
 * The bytes are compared once, after what is measured.
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
#define APART 2 /* the window has so many times the bytes */
#define PATTERN 0x5a  /* of the window's bytes */
#define OURS    1     /* of those that are put, as bench_memory() leaves them */

/* Between the two processes. */
static struct shared {
	_Atomic uint64_t wanted; /* rounds of tensors that are awaited, a total */
	_Atomic bool over;
	size_t descriptor_bytes;
	char descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
} *shared;

static struct weft_node *open_node(const struct bench_options *o)
{
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	struct weft_node *node;

	options.mode = WEFT_MANUAL;
	options.provider = o->provider;
	must(weft_node_open(&options, &node), "weft_node_open");
	return node;
}

static void poll_once(struct weft_node *node)
{
	if (!weft_poll(node, 0))
		bench_spin();
}

static void finish(struct weft_node *node, struct weft_op *op)
{
	while (!weft_op_ended(op))
		poll_once(node);
	if (weft_op_status(op) != WEFT_OK)
		bench_die("an operation failed: %s", weft_op_message(op));
	weft_op_free(op);
}

static struct weft_tensor part(void *memory, size_t bytes, int64_t *shape)
{
	*shape = (int64_t)bytes;
	return (struct weft_tensor){ .data = memory, .device = { WEFT_CPU, 0 }, .ndim = 1,
				     .dtype = { WEFT_UINT, 8, 1 }, .shape = shape };
}

/* Send @count tensors of the memory, of @bytes together. */
static void send_tensors(struct weft_node *node, struct weft_peer *peer, char *memory,
			 size_t bytes, unsigned count, uint64_t step)
{
	struct weft_op **ops = bench_memory(count * sizeof(*ops));

	for (unsigned i = 0; i < count; i++) {
		size_t each = bytes / count;
		int64_t shape;
		struct weft_tensor t = part(memory + i * each, each, &shape);

		must(weft_send(peer, step, &i, sizeof(i), &t, NULL, &ops[i]), "weft_send");
	}
	for (unsigned i = 0; i < count; i++)
		finish(node, ops[i]);
	free(ops);
}

static void receive_tensors(struct weft_node *node, char *memory, size_t bytes, unsigned count,
			    uint64_t step)
{
	struct weft_op **ops = bench_memory(count * sizeof(*ops));

	for (unsigned i = 0; i < count; i++) {
		size_t each = bytes / count;
		int64_t shape;
		struct weft_tensor t = part(memory + i * each, each, &shape);

		must(weft_recv(node, NULL, step, &i, sizeof(i), &t, NULL, &ops[i]), "weft_recv");
	}
	atomic_store(&shared->wanted, step);
	for (unsigned i = 0; i < count; i++)
		finish(node, ops[i]);
	free(ops);
}

static unsigned tensor_count(const struct bench_options *o)
{
	return strcmp(o->endpoint, "tensors") ? 1 : o->window;
}

/* The owner of the window, and the sender of tensors. */
static int serve(int to, const struct bench_options *o)
{
	struct weft_node *node = open_node(o);
	char *memory = bench_memory(APART * o->bytes);
	char address[ADDRESS_BYTES], ready = 0;
	struct weft_window *window;
	struct weft_peer *peer;
	uint64_t step = 0;

	memset(memory, PATTERN, APART * o->bytes);
	must(weft_window_open(node, memory, APART * o->bytes, WEFT_WINDOW_READ | WEFT_WINDOW_WRITE,
			      &window), "weft_window_open");
	shared->descriptor_bytes = sizeof(shared->descriptor);
	must(weft_window_describe(window, shared->descriptor, &shared->descriptor_bytes),
	     "weft_window_describe");
	strncpy(address, weft_node_address(node), sizeof(address) - 1);
	bench_tell(to, address, sizeof(address));
	bench_hear(to, address, sizeof(address));
	must(weft_peer_open(node, address, &peer), "weft_peer_open");
	bench_tell(to, &ready, 1);
	while (!atomic_load(&shared->over)) {
		poll_once(node);
		if (atomic_load(&shared->wanted) > step)
			send_tensors(node, peer, memory, o->bytes, tensor_count(o), ++step);
	}
	must(weft_window_close(window), "weft_window_close");
	must(weft_node_close(node), "weft_node_close");
	free(memory);
	return 0;
}

struct side {
	struct weft_node *node;
	struct weft_remote *remote;
	struct weft_block *blocks;
	char *memory;
	uint64_t step;
};

static void get(struct side *s, const struct bench_options *o)
{
	struct weft_op *op;

	must(weft_get(s->remote, s->blocks, o->window, NULL, &op), "weft_get");
	finish(s->node, op);
}

static void put(struct side *s, const struct bench_options *o)
{
	struct weft_op *op;

	must(weft_put(s->remote, s->blocks, o->window, NULL, &op), "weft_put");
	finish(s->node, op);
}

static void once(struct side *s, const struct bench_options *o)
{
	if (!strcmp(o->endpoint, "get"))
		get(s, o);
	else if (!strcmp(o->endpoint, "put"))
		put(s, o);
	else
		receive_tensors(s->node, s->memory, o->bytes, tensor_count(o), ++s->step);
}

/* End unless the bytes that moved are here, or, of a put, come back from the window. */
static void compare(struct side *s, const struct bench_options *o)
{
	bool is_put = !strcmp(o->endpoint, "put");

	if (is_put) {
		memset(s->memory, 0, o->bytes);
		get(s, o);
	}
	for (size_t i = 0; i < o->bytes / o->window * o->window; i++)
		if (s->memory[i] != (is_put ? OURS : PATTERN))
			bench_die("byte %zu is wrong", i);
}

static struct weft_block *apart(const struct bench_options *o, char *memory)
{
	struct weft_block *blocks = bench_memory(o->window * sizeof(*blocks));
	size_t each = o->bytes / o->window;

	for (unsigned i = 0; i < o->window; i++)
		blocks[i] = (struct weft_block){
			.local = memory + i * each,
			.remote = (o->window - 1 - i) * APART * each,
			.bytes = each,
		};
	return blocks;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "get", .bytes = 16u << 20, .seconds = 1, .window = 1
	};
	struct side s = { 0 };
	char address[ADDRESS_BYTES] = "", ready;
	struct weft_region *region;
	struct weft_peer *peer;
	size_t samples = 0;
	double *us, start, last, now;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv, "window [-e get|put|tensor|tensors] [-p PROVIDER] "
		      "[-s BYTES] [-w BLOCKS] [-t SECONDS]");
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		bench_die("no shared memory");
	to = bench_pair(serve, &o, &pid);
	s.node = open_node(&o);
	s.memory = bench_memory(o.bytes);
	s.blocks = apart(&o, s.memory);
	bench_hear(to, address, sizeof(address));
	must(weft_peer_open(s.node, address, &peer), "weft_peer_open");
	strncpy(address, weft_node_address(s.node), sizeof(address) - 1);
	bench_tell(to, address, sizeof(address));
	bench_hear(to, &ready, 1);
	must(weft_register(s.node, s.memory, o.bytes, &region), "weft_register");
	must(weft_window_import(peer, shared->descriptor, shared->descriptor_bytes, &s.remote),
	     "weft_window_import");
	for (unsigned i = 0; i < WARM_COUNT; i++)
		once(&s, &o);
	start = last = bench_now();
	do {
		once(&s, &o);
		now = bench_now();
		us[samples++] = (now - last) * 1e6;
		last = now;
	} while (now - start < o.seconds && samples < SAMPLES_MAX);
	compare(&s, &o);
	bench_print("window", &o, us, samples, samples, now - start);
	atomic_store(&shared->over, true);
	weft_remote_close(s.remote);
	must(weft_unregister(region), "weft_unregister");
	must(weft_node_close(s.node), "weft_node_close");
	bench_pair_end(pid);
	munmap(shared, sizeof(*shared));
	close(to);
	free(s.blocks);
	free(s.memory);
	free(us);
	return 0;
}
