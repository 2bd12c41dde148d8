/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * beside: how long an empty call takes beside bulk to or from the same peer:
 *
 *   -e idle      nothing beside it
 *   -e sent      a tensor of -s bytes after another goes to the server
 *   -e received  a tensor of -s bytes after another comes from the server
 *   -e equal     as sent, and the calls have the priority of the bulk
 *
 * Calls have the highest priority, and bulk the default.  One call is under way at a time.  Both
 * sides spin.
 */
#include "tests/bench/must.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weft/weft.h>

#include "tests/bench/mirror.h"

#define SAMPLES_MAX 4000000u
#define WARM_COUNT  100u
#define ADDRESS_BYTES 64

/* Between the two processes. */
static struct shared {
	_Atomic bool over;
} *shared;

static struct weft_node *open_node(const struct bench_options *o)
{
	const struct weft_node_options options = {
		.size = sizeof(options), .mode = WEFT_MANUAL, .provider = o->provider,
	};
	struct weft_node *node;

	must(weft_node_open(&options, &node), "no node");
	return node;
}

/* The bulk of one process: tensors of one buffer, one after the other. */
struct bulk {
	struct weft_node *node;
	struct weft_peer *peer;
	char *memory;
	int64_t bytes;
	bool sends;
	uint64_t step, bytes_moved;
	struct weft_op *op; /* NULL: none has begun */
};

/* Begin the next body if the one before is over, or there is none. */
static void keep_on(struct bulk *b)
{
	struct weft_tensor t = { .data = b->memory, .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = &b->bytes };

	if (!b->memory || (b->op && !weft_op_ended(b->op)))
		return;
	if (b->op && weft_op_status(b->op) != WEFT_OK)
		bench_die("bulk failed: %s", weft_op_message(b->op));
	b->bytes_moved += b->op ? (uint64_t)b->bytes : 0;
	weft_op_free(b->op);
	if (b->sends)
		must(weft_send(b->peer, ++b->step, "b", 1, &t, NULL, &b->op), "weft_send");
	else
		must(weft_recv(b->node, b->peer, ++b->step, "b", 1, &t, NULL, &b->op), "weft_recv");
}

static struct bulk bulk_of(const struct bench_options *o, bool caller, struct weft_node *node,
			   struct weft_peer *peer)
{
	bool idle = !strcmp(o->endpoint, "idle"), received = !strcmp(o->endpoint, "received");

	return (struct bulk){
		.node = node, .peer = peer, .bytes = (int64_t)o->bytes,
		.memory = idle ? NULL : bench_memory(o->bytes),
		.sends = caller != received,
	};
}

static int serve(int to, const struct bench_options *o)
{
	struct weft_node *node = open_node(o);
	char address[ADDRESS_BYTES] = "", ready = 0;
	struct weft_peer *peer;
	struct bulk bulk;

	mirror_serve(node);
	strncpy(address, weft_node_address(node), sizeof(address) - 1);
	bench_tell(to, address, sizeof(address));
	bench_hear(to, address, sizeof(address));
	must(weft_peer_open(node, address, &peer), "weft_peer_open");
	bulk = bulk_of(o, false, node, peer);
	bench_tell(to, &ready, 1);
	while (!atomic_load(&shared->over)) {
		if (!weft_poll(node, 0))
			bench_spin();
		keep_on(&bulk);
	}
	weft_op_free(bulk.op);
	must(weft_node_close(node), "weft_node_close");
	free(bulk.memory);
	return 0;
}

static void answered(const Sim__Bytes *answer, void *arg)
{
	bool *well = arg;

	*well = answer != NULL;
}

/* Returns the microseconds of one call. */
static double call(struct weft_stub *stub, struct bulk *bulk, uint32_t priority)
{
	struct weft_call_options options = WEFT_CALL_OPTIONS_INIT;
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	double start = bench_now();
	struct weft_op *op;
	bool well = false;

	options.op.priority = priority;
	must(weft_call_open(stub, &options, &service, &op), "weft_call_open");
	sim__mirror__reflect(service, &question, answered, &well);
	while (!weft_op_ended(op)) {
		if (!weft_poll(bulk->node, 0))
			bench_spin();
		keep_on(bulk);
	}
	if (!well)
		bench_die("a call failed: %s", weft_op_message(op));
	weft_op_free(op);
	return (bench_now() - start) * 1e6;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "idle", .bytes = 1u << 30, .seconds = 1, .window = 1
	};
	char address[ADDRESS_BYTES] = "", ready;
	struct weft_node *node;
	struct weft_stub *stub;
	struct weft_peer *peer;
	struct bulk bulk;
	uint32_t priority;
	size_t samples = 0;
	double *us, start;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv, "beside [-e idle|sent|received|equal] [-p PROVIDER] "
		      "[-s BYTES] [-t SECONDS]");
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		bench_die("no shared memory");
	to = bench_pair(serve, &o, &pid);
	node = open_node(&o);
	bench_hear(to, address, sizeof(address));
	must(weft_peer_open(node, address, &peer), "weft_peer_open");
	strncpy(address, weft_node_address(node), sizeof(address) - 1);
	bench_tell(to, address, sizeof(address));
	bench_hear(to, &ready, 1);
	bulk = bulk_of(&o, true, node, peer);
	must(weft_stub_open(peer, &sim__mirror__descriptor, &stub), "weft_stub_open");
	priority = strcmp(o.endpoint, "equal") ? WEFT_PRIORITY_MAX : 0;
	for (unsigned i = 0; i < WARM_COUNT; i++)
		call(stub, &bulk, priority);
	bulk.bytes_moved = 0;
	start = bench_now();
	do
		us[samples++] = call(stub, &bulk, priority);
	while (bench_now() - start < o.seconds && samples < SAMPLES_MAX);
	o.bytes = bulk.bytes_moved / samples; /* bulk of one call, so that the rate is of bulk */
	bench_print("beside", &o, us, samples, samples, bench_now() - start);
	atomic_store(&shared->over, true);
	weft_stub_close(stub);
	weft_op_free(bulk.op);
	must(weft_node_close(node), "weft_node_close");
	bench_pair_end(pid);
	munmap(shared, sizeof(*shared));
	close(to);
	free(bulk.memory);
	free(us);
	return 0;
}
