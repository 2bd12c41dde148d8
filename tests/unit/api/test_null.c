/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every public function with NULL for each of its arguments: what it can't do
 * without is refused by name, and nothing crashes.  The last test compares the
 * functions that were called with the public headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>
#include "tests/fabric/calls.pb-c.h"

#define S 1000000000ull
#define FUNCTIONS_MAX 200
#define NAME_BYTES 64

/* Names of functions, each once. */
struct names {
	unsigned count;
	char all[FUNCTIONS_MAX][NAME_BYTES];
};

static struct names walked;
static struct weft_node *node;
static struct weft_peer *peer; /* nobody listens there */
static struct weft_stub *stub;
static struct weft_op *op;     /* a call that has not begun */

static bool has(const struct names *n, const char *name)
{
	for (unsigned i = 0; i < n->count; i++)
		if (!strcmp(n->all[i], name))
			return true;
	return false;
}

/* The name at the beginning of @text. */
static void add(struct names *n, const char *text)
{
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
	char name[NAME_BYTES];

	assert_true(length && length < NAME_BYTES && n->count < FUNCTIONS_MAX);
	snprintf(name, sizeof(name), "%.*s", (int)length, text);
	if (!has(n, name))
		strcpy(n->all[n->count++], name);
}

static void refused(const char *call, long long result, long long expected, const char *what)
{
	char sentence[NAME_BYTES];

	add(&walked, call);
	if (result != expected)
		fail_msg("%s gave %lld, not %lld", call, result, expected);
	snprintf(sentence, sizeof(sentence), "%s is NULL", what);
	if (strcmp(weft_error(), sentence))
		fail_msg("%s: \"%s\" is not \"%s\"", call, weft_error(), sentence);
}

/* @call is refused for the lack of @what. */
#define REFUSED(call, what) refused(#call, call, -EINVAL, what)

/* @call, whose result is no code, gives @result for the lack of @what. */
#define GIVES(call, result, what) refused(#call, (long long)(call), (long long)(result), what)
#define GIVES_NULL(call, what) refused(#call, (long long)(intptr_t)(call), 0, what)
#define GIVES_TEXT(call, text, what) refused(#call, strcmp(call, text), 0, what)

/* A call without a result does nothing, for the lack of @what. */
#define DOES_NOTHING(call, what) \
	do { \
		call; \
		refused(#call, 0, 0, what); \
	} while (0)

/* @call takes NULL, or has no pointers. */
#define FINE(call) \
	do { \
		add(&walked, #call); \
		(void)call; \
	} while (0)

static void nodes_and_peers(void **state)
{
	char text[8];
	struct weft_peer *p, *given;
	uint64_t ns;

	(void)state;
	assert_int_equal(weft_peer_open(node, "127.0.0.1:9", &given), 0);
	REFUSED(weft_peer_identity(given, NULL, 8), "identity");
	weft_peer_close(given);
	REFUSED(weft_node_open(NULL, NULL), "node");
	FINE(weft_node_close(NULL));
	GIVES_TEXT(weft_node_address(NULL), "", "node");
	REFUSED(weft_peer_open(NULL, "127.0.0.1:9", &p), "node");
	REFUSED(weft_peer_open(node, NULL, &p), "address");
	REFUSED(weft_peer_open(node, "127.0.0.1:9", NULL), "peer");
	FINE(weft_peer_close(NULL));
	GIVES_TEXT(weft_peer_name(NULL), "", "peer");
	REFUSED(weft_peer_on_change(NULL, NULL, NULL), "peer");
	REFUSED(weft_peer_identity(NULL, text, sizeof(text)), "peer");
	REFUSED(weft_node_rekey(NULL), "node");
	REFUSED(weft_poll(NULL, 0), "node");
	REFUSED(weft_fd(NULL), "node");
	REFUSED(weft_arm(NULL, &ns), "node");
	FINE(weft_arm(node, NULL));
	REFUSED(weft_node_counters(NULL, &(struct weft_counters){ 0 }), "node");
	REFUSED(weft_node_counters(node, NULL), "counters");
	REFUSED(weft_dump(NULL, stderr), "node");
	REFUSED(weft_dump(node, NULL), "out");
	REFUSED(weft_node_drain(NULL, 0), "node");
}

static void operations(void **state)
{
	struct weft_path path = { .size = sizeof(path) };
	enum weft_status status;
	size_t index;

	(void)state;
	REFUSED(weft_ping(NULL, NULL, &op), "peer");
	assert_int_equal(weft_ping(peer, NULL, NULL), 0);
	REFUSED(weft_wait(NULL, 0), "op");
	REFUSED(weft_wait_any(NULL, 1, 0, &index), "ops");
	REFUSED(weft_wait_any(&op, 1, 0, NULL), "index");
	REFUSED(weft_wait_all(NULL, 1, 0), "ops");
	REFUSED(weft_finish(NULL, &status), "op");
	REFUSED(weft_finish(op, NULL), "status");
	GIVES_NULL(weft_op_arg(NULL), "op");
	REFUSED(weft_op_ended(NULL), "op");
	GIVES(weft_op_status(NULL), WEFT_INVALID_ARGUMENT, "op");
	GIVES_TEXT(weft_op_message(NULL), "op is NULL", "op");
	GIVES(weft_op_executed(NULL), WEFT_EXECUTED_NO, "op");
	DOES_NOTHING(weft_cancel(NULL), "op");
	FINE(weft_op_free(NULL));
	REFUSED(weft_op_path(NULL, &path), "op");
	REFUSED(weft_op_path(op, NULL), "path");
}

static void queues(void **state)
{
	struct weft_queue *queue;
	struct weft_op *got;

	(void)state;
	REFUSED(weft_queue_open(NULL, &queue), "node");
	REFUSED(weft_queue_open(node, NULL), "queue");
	assert_int_equal(weft_queue_open(node, &queue), 0);
	REFUSED(weft_queue_next(NULL, &got, 1, 0), "queue");
	REFUSED(weft_queue_next(queue, NULL, 1, 0), "ops");
	REFUSED(weft_queue_fd(NULL), "queue");
	FINE(weft_queue_close(NULL));
	weft_queue_close(queue);
}

static void windows(void **state)
{
	char memory[8] = { 0 }, descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	const struct weft_block block = { memory, 0, sizeof(memory) };
	size_t bytes = sizeof(descriptor);
	struct weft_window *window;
	struct weft_remote *remote;

	(void)state;
	REFUSED(weft_window_open(NULL, memory, 8, WEFT_WINDOW_READ, &window), "node");
	REFUSED(weft_window_open(node, NULL, 8, WEFT_WINDOW_READ, &window), "memory");
	REFUSED(weft_window_open(node, memory, 8, WEFT_WINDOW_READ, NULL), "window");
	assert_int_equal(weft_window_open(node, memory, 8, WEFT_WINDOW_READ | WEFT_WINDOW_WRITE,
					  &window), 0);
	REFUSED(weft_window_describe(NULL, descriptor, &bytes), "window");
	REFUSED(weft_window_describe(window, NULL, &bytes), "descriptor");
	REFUSED(weft_window_describe(window, descriptor, NULL), "bytes");
	assert_int_equal(weft_window_describe(window, descriptor, &bytes), 0);
	REFUSED(weft_window_publish(NULL, "k", 1), "window");
	GIVES(weft_window_puts(NULL), 0, "window");
	REFUSED(weft_window_wait(NULL, 0, 0), "window");
	REFUSED(weft_window_next(NULL, NULL, &op), "window");
	assert_int_equal(weft_window_next(window, NULL, NULL), 0);
	GIVES_NULL(weft_op_note(NULL), "op");

	REFUSED(weft_window_import(NULL, descriptor, bytes, &remote), "peer");
	REFUSED(weft_window_import(peer, NULL, bytes, &remote), "descriptor");
	REFUSED(weft_window_import(peer, descriptor, bytes, NULL), "remote");
	assert_int_equal(weft_window_import(peer, descriptor, bytes, &remote), 0);
	REFUSED(weft_window_find(NULL, "k", 1, NULL, &op), "peer");
	REFUSED(weft_window_find(peer, "k", 1, NULL, NULL), "op");
	REFUSED(weft_op_remote(NULL, &remote), "op");
	REFUSED(weft_op_remote(op, NULL), "remote");
	GIVES(weft_remote_bytes(NULL), 0, "remote");
	GIVES(weft_remote_rights(NULL), 0, "remote");
	REFUSED(weft_get(NULL, &block, 1, NULL, &op), "remote");
	REFUSED(weft_get(remote, NULL, 1, NULL, &op), "blocks");
	assert_int_equal(weft_get(remote, &block, 1, NULL, NULL), 0);
	REFUSED(weft_put(NULL, &block, 1, NULL, &op), "remote");
	REFUSED(weft_put(remote, NULL, 1, NULL, &op), "blocks");
	assert_int_equal(weft_put(remote, NULL, 0, NULL, NULL), 0);
	FINE(weft_remote_close(NULL));
	weft_remote_close(remote);
	FINE(weft_window_close(NULL));
	assert_int_equal(weft_window_close(window), 0);
}

static void landings(void **state)
{
	char memory[8] = { 0 }, descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	const struct weft_tensor tensor = { .data = memory, .dtype = { WEFT_UINT, 8, 1 },
					    .device = { WEFT_CPU, 0 } };
	size_t bytes = sizeof(descriptor);
	struct weft_landing *landing;
	struct weft_remote *remote;
	uint64_t number;

	(void)state;
	REFUSED(weft_landing_open(NULL, memory, 4, 2, &landing), "node");
	REFUSED(weft_landing_open(node, NULL, 4, 2, &landing), "memory");
	REFUSED(weft_landing_open(node, memory, 4, 2, NULL), "landing");
	assert_int_equal(weft_landing_open(node, memory, 4, 0, &landing), -EINVAL);
	assert_int_equal(weft_landing_open(node, memory, 0, 2, &landing), -EINVAL);
	assert_int_equal(weft_landing_open(node, memory, SIZE_MAX / 2, 2, &landing), -EINVAL);
	assert_int_equal(weft_landing_open(node, memory, 1, WEFT_LANDING_SLOTS_MAX + 1, &landing),
			 -EINVAL);
	assert_int_equal(weft_landing_open(node, memory, 4, 2, &landing), 0);
	REFUSED(weft_landing_describe(NULL, descriptor, &bytes), "landing");
	REFUSED(weft_landing_describe(landing, NULL, &bytes), "descriptor");
	REFUSED(weft_landing_describe(landing, descriptor, NULL), "bytes");
	assert_int_equal(weft_landing_describe(landing, descriptor, &bytes), 0);
	REFUSED(weft_landing_publish(NULL, "k", 1), "landing");
	REFUSED(weft_landing_next(NULL, NULL, &op), "landing");
	assert_int_equal(weft_landing_next(landing, NULL, NULL), 0);
	REFUSED(weft_op_landed(NULL, &number), "op");
	REFUSED(weft_op_landed(op, NULL), "number");
	assert_int_equal(weft_op_landed(op, &number), -EINVAL);

	assert_int_equal(weft_window_import(peer, descriptor, bytes, &remote), 0);
	REFUSED(weft_push(NULL, &tensor, NULL, &op), "remote");
	REFUSED(weft_push(remote, NULL, NULL, &op), "tensor");
	assert_int_equal(weft_push(remote, &tensor, NULL, NULL), 0);
	weft_remote_close(remote);
	FINE(weft_landing_close(NULL));
	assert_int_equal(weft_landing_close(landing), 0);
}

static void groups(void **state)
{
	struct weft_join_options options = WEFT_JOIN_OPTIONS_INIT;
	const char *address = weft_node_address(node), *none = NULL;
	struct weft_group *group;
	struct weft_peer *self;

	(void)state;
	options.bootstrap = "none";
	REFUSED(weft_join(NULL, &options, &group), "node");
	REFUSED(weft_join(node, &options, NULL), "group");
	assert_int_equal(weft_join(node, &options, &group), 0);
	REFUSED(weft_group_peer(NULL, 0, &self), "group");
	REFUSED(weft_group_peer(group, 0, NULL), "peer");
	assert_int_equal(weft_group_peer(group, 1, &self), -EINVAL);
	assert_int_equal(weft_group_peer(group, 0, &self), -EINVAL);
	GIVES(weft_group_rank(NULL), 0, "group");
	GIVES(weft_group_size(NULL), 0, "group");
	GIVES(weft_group_local_rank(NULL), 0, "group");
	GIVES(weft_group_local_size(NULL), 0, "group");
	GIVES_TEXT(weft_group_launcher(NULL), "", "group");
	GIVES_NULL(weft_group_address(NULL, 0), "group");
	assert_null(weft_group_address(group, 1));
	assert_string_equal(weft_group_address(group, 0), weft_node_address(node));
	FINE(weft_group_close(NULL));
	assert_int_equal(weft_group_close(group), 0);

	REFUSED(weft_group_open(NULL, 0, 1, &address, 1, &group), "node");
	REFUSED(weft_group_open(node, 0, 1, NULL, 1, &group), "addresses");
	REFUSED(weft_group_open(node, 0, 1, &address, 1, NULL), "group");
	assert_int_equal(weft_group_open(node, 1, 1, &address, 1, &group), -EINVAL);
	assert_int_equal(weft_group_open(node, 0, 1, &address, 0, &group), -EINVAL);
	assert_int_equal(weft_group_open(node, 0, 1, &none, 1, &group), -EINVAL);
	assert_int_equal(weft_group_open(node, 0, 1, &address, 1, &group), 0);
	assert_int_equal(weft_group_close(group), 0);
}

/* Collectives of a group of this process alone, where that is enough to end them well. */
static void collectives(void **state)
{
	const char *address = weft_node_address(node);
	float in = 1, out = 0;
	int64_t one = 1;
	const struct weft_tensor i = { .data = &in, .device = { WEFT_CPU, 0 }, .ndim = 1,
				       .dtype = { WEFT_FLOAT, 32, 1 }, .shape = &one };
	const struct weft_tensor o = { .data = &out, .device = { WEFT_CPU, 0 }, .ndim = 1,
				       .dtype = { WEFT_FLOAT, 32, 1 }, .shape = &one };
	struct weft_group *group;

	(void)state;
	assert_int_equal(weft_group_open(node, 0, 1, &address, 2, &group), 0);
	REFUSED(weft_all_reduce(NULL, &i, &o, WEFT_SUM, NULL, &op), "group");
	REFUSED(weft_all_reduce(group, NULL, &o, WEFT_SUM, NULL, &op), "in");
	REFUSED(weft_all_reduce(group, &i, NULL, WEFT_SUM, NULL, &op), "out");
	assert_int_equal(weft_all_reduce(group, &i, &o, WEFT_SUM, NULL, NULL), 0);
	REFUSED(weft_reduce(NULL, 0, &i, &o, WEFT_SUM, NULL, &op), "group");
	REFUSED(weft_reduce(group, 0, NULL, &o, WEFT_SUM, NULL, &op), "in");
	REFUSED(weft_reduce(group, 0, &i, NULL, WEFT_SUM, NULL, &op), "out");
	assert_int_equal(weft_reduce(group, 0, &i, &o, WEFT_SUM, NULL, NULL), 0);
	REFUSED(weft_reduce_scatter(NULL, &i, &o, WEFT_SUM, NULL, &op), "group");
	REFUSED(weft_reduce_scatter(group, NULL, &o, WEFT_SUM, NULL, &op), "in");
	REFUSED(weft_reduce_scatter(group, &i, NULL, WEFT_SUM, NULL, &op), "out");
	assert_int_equal(weft_reduce_scatter(group, &i, &o, WEFT_SUM, NULL, NULL), 0);
	REFUSED(weft_all_gather(NULL, &i, &o, NULL, &op), "group");
	REFUSED(weft_all_gather(group, NULL, &o, NULL, &op), "in");
	REFUSED(weft_all_gather(group, &i, NULL, NULL, &op), "out");
	assert_int_equal(weft_all_gather(group, &i, &o, NULL, NULL), 0);
	REFUSED(weft_gather(NULL, 0, &i, &o, NULL, &op), "group");
	REFUSED(weft_gather(group, 0, NULL, &o, NULL, &op), "in");
	REFUSED(weft_gather(group, 0, &i, NULL, NULL, &op), "out");
	assert_int_equal(weft_gather(group, 0, &i, &o, NULL, NULL), 0);
	REFUSED(weft_scatter(NULL, 0, &i, &o, NULL, &op), "group");
	REFUSED(weft_scatter(group, 0, NULL, &o, NULL, &op), "in");
	REFUSED(weft_scatter(group, 0, &i, NULL, NULL, &op), "out");
	assert_int_equal(weft_scatter(group, 0, &i, &o, NULL, NULL), 0);
	REFUSED(weft_all_to_all(NULL, &i, &o, NULL, &op), "group");
	REFUSED(weft_all_to_all(group, NULL, &o, NULL, &op), "in");
	REFUSED(weft_all_to_all(group, &i, NULL, NULL, &op), "out");
	assert_int_equal(weft_all_to_all(group, &i, &o, NULL, NULL), 0);
	REFUSED(weft_group_broadcast(NULL, 0, &i, NULL, &op), "group");
	REFUSED(weft_group_broadcast(group, 0, NULL, NULL, &op), "tensor");
	assert_int_equal(weft_group_broadcast(group, 0, &i, NULL, NULL), 0);
	REFUSED(weft_barrier(NULL, NULL, &op), "group");
	assert_int_equal(weft_barrier(group, NULL, NULL), 0);
	assert_int_equal(weft_group_close(group), 0);
	assert_true(out == 1);
}

static void tensors(void **state)
{
	float data[4] = { 0 };
	int64_t shape[1] = { 4 };
	const struct weft_tensor t = { .data = data, .shape = shape, .ndim = 1,
				       .dtype = { WEFT_FLOAT, 32, 1 }, .device = { WEFT_CPU, 0 } };
	uint64_t bytes;

	(void)state;
	REFUSED(weft_send(NULL, 1, "k", 1, &t, NULL, &op), "peer");
	REFUSED(weft_send(peer, 1, "k", 1, NULL, NULL, &op), "tensor");
	assert_int_equal(weft_send(peer, 1, "k", 1, &t, NULL, NULL), 0);
	REFUSED(weft_recv(NULL, peer, 1, "k", 1, &t, NULL, &op), "node");
	assert_int_equal(weft_recv(node, NULL, 1, "k", 1, NULL, NULL, NULL), 0);
	REFUSED(weft_probe(NULL, peer, 1, "k", 1, NULL), "node");
	assert_int_equal(weft_probe(node, peer, 1, "k", 1, NULL), -EAGAIN);
	GIVES_NULL(weft_op_key(NULL, NULL), "op");
	GIVES_NULL(weft_op_tensor(NULL, NULL), "op");
	GIVES_NULL(weft_op_peer(NULL), "op");
	GIVES_NULL(weft_op_take(NULL), "op");
	REFUSED(weft_tensor_bytes(NULL, &bytes), "tensor");
	REFUSED(weft_tensor_bytes(&t, NULL), "bytes");
	REFUSED(weft_step_abort(NULL, 1, WEFT_ABORTED, NULL), "node");
	REFUSED(weft_step_end(NULL, 1), "node");
}

static void broadcasts(void **state)
{
	struct weft_broadcast_options options = WEFT_BROADCAST_OPTIONS_INIT;
	float number = 1;
	int64_t one = 1;
	struct weft_tensor t = { .data = &number, .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_FLOAT, 32, 1 }, .shape = &one };
	struct weft_peer *peers[] = { peer, NULL };
	struct weft_op *all, *send;
	enum weft_status status;
	const char *message;

	(void)state;
	REFUSED(weft_broadcast(NULL, 1, 1, "k", 1, &t, NULL, &all), "peers");
	REFUSED(weft_broadcast(peers, 2, 1, "k", 1, &t, NULL, &all), "peers[1]");
	REFUSED(weft_broadcast(peers, 1, 1, "k", 1, NULL, NULL, &all), "tensor");
	assert_int_equal(weft_broadcast(peers, 0, 1, "k", 1, &t, NULL, &all), -EINVAL);
	assert_string_equal(weft_error(), "a broadcast to no peers");
	options.flags = WEFT_SNAPSHOT;
	assert_int_equal(weft_broadcast(peers, 1, 1, "k", 1, &t, &options, &all), -EINVAL);
	assert_string_equal(weft_error(), "flags 0x4 are not for a broadcast");
	assert_int_equal(weft_broadcast(peers, 1, 1, NULL, 0, &t, NULL, NULL), 0);
	assert_int_equal(weft_broadcast(peers, 1, 1, "k", 1, &t, NULL, &all), 0);
	REFUSED(weft_broadcast_add(NULL, peer), "op");
	REFUSED(weft_broadcast_add(all, NULL), "peer");
	assert_int_equal(weft_broadcast_add(all, peer), 0);
	REFUSED(weft_broadcast_outcome(NULL, 0, &status, &message), "op");
	REFUSED(weft_broadcast_outcome(all, 0, NULL, &message), "status");
	assert_int_equal(weft_broadcast_outcome(all, 1, &status, NULL), 0);
	assert_int_equal(weft_broadcast_outcome(all, 2, &status, NULL), -ENOENT);
	assert_string_equal(weft_error(), "the broadcast has no peer number 2");
	assert_int_equal(weft_send(peer, 1, "k", 1, &t, NULL, &send), 0);
	assert_int_equal(weft_broadcast_add(send, peer), -EINVAL);
	assert_string_equal(weft_error(), "the operation is no broadcast");
	assert_int_equal(weft_broadcast_outcome(send, 0, &status, NULL), -EINVAL);
	weft_op_free(send);
	weft_op_free(all);
}

static void sets_of_receives(void **state)
{
	const struct weft_recv_item items[] = { { "a", 1, NULL }, { "a", 1, NULL } };
	struct weft_op *set, *recv;

	(void)state;
	REFUSED(weft_recv_set(NULL, peer, 1, items, 2, NULL, &set), "node");
	REFUSED(weft_recv_set(node, peer, 1, NULL, 2, NULL, &set), "items");
	assert_int_equal(weft_recv_set(node, peer, 1, items, 2, NULL, NULL), 0);
	assert_int_equal(weft_recv_set(node, NULL, 1, items, 2, NULL, &set), 0);
	GIVES_NULL(weft_recv_set_item(NULL, 0), "op");
	assert_non_null(weft_recv_set_item(set, 1));
	assert_null(weft_recv_set_item(set, 2));
	assert_int_equal(weft_recv(node, peer, 1, "a", 1, NULL, NULL, &recv), 0);
	assert_null(weft_recv_set_item(recv, 0));
	weft_op_free(recv);
	weft_op_free(set);
}

static void memory(void **state)
{
	struct weft_placement place = { .size = sizeof(place) };
	struct weft_region *region;
	void *at;

	(void)state;
	REFUSED(weft_alloc(NULL, 1, &at), "node");
	REFUSED(weft_alloc(node, 1, NULL), "memory");
	REFUSED(weft_alloc_near(NULL, 1, NULL, &at), "node");
	REFUSED(weft_alloc_near(node, 1, NULL, NULL), "memory");
	REFUSED(weft_memory_place(NULL, &place, &place), "node");
	REFUSED(weft_memory_place(node, NULL, &place), "memory");
	REFUSED(weft_memory_place(node, &place, NULL), "placement");
	REFUSED(weft_retain(NULL, &place), "node");
	REFUSED(weft_retain(node, NULL), "memory");
	DOES_NOTHING(weft_free(NULL, &place), "node");
	weft_free(node, NULL);
	REFUSED(weft_register(NULL, &place, sizeof(place), &region), "node");
	REFUSED(weft_register(node, NULL, sizeof(place), &region), "memory");
	REFUSED(weft_register(node, &place, sizeof(place), NULL), "region");
	FINE(weft_unregister(NULL));
}

/* As protoc-c makes it for a file with optimize_for = CODE_SIZE. */
static const ProtobufCServiceDescriptor nameless = {
	.magic = PROTOBUF_C__SERVICE_DESCRIPTOR_MAGIC,
};

static void calls_of_a_client(void **state)
{
	const struct weft_metadata none = { 0 };
	ProtobufCService *service;
	struct weft_op *call;
	size_t count;

	(void)state;
	REFUSED(weft_stub_open(NULL, &calls__test__descriptor, &stub), "peer");
	REFUSED(weft_stub_open(peer, NULL, &stub), "descriptor");
	REFUSED(weft_stub_open(peer, &nameless, &stub), "descriptor->name");
	REFUSED(weft_stub_open(peer, &calls__test__descriptor, NULL), "stub");
	FINE(weft_stub_close(NULL));
	GIVES_NULL(weft_stub_service(NULL), "stub");
	REFUSED(weft_call_open(NULL, NULL, &service, &call), "stub");
	REFUSED(weft_call_open(stub, NULL, NULL, &call), "service");
	assert_int_equal(weft_call_open(stub, NULL, &service, NULL), 0); /* never invoked */
	REFUSED(weft_call_open(stub, &((struct weft_call_options){
		.size = sizeof(struct weft_call_options), .metadata_count = 1 }), &service, &call),
		"pairs");
	GIVES_NULL(weft_call_initial(NULL, &count), "op");
	GIVES_NULL(weft_call_initial(op, NULL), "count");
	GIVES_NULL(weft_call_trailing(NULL, &count), "op");
	GIVES_NULL(weft_call_details(NULL, &count), "op");
	GIVES_NULL(weft_call_details(op, NULL), "bytes");
	REFUSED(weft_op_compressed(NULL), "op");
	FINE(weft_reply_status(NULL));
	REFUSED(weft_call_add_metadata(NULL, &none, 1), "op");
	REFUSED(weft_call_attach(NULL, NULL, NULL, NULL), "call");
	REFUSED(weft_call_attach(op, NULL, NULL, NULL), "tensor");
	GIVES(weft_op_attachments(NULL), 0, "op");
	GIVES_NULL(weft_op_attachment(NULL, 0, NULL), "op");
	REFUSED(weft_op_receive(NULL, 0, NULL, NULL, NULL), "op");
}

static unsigned heard;

static void hear(const Calls__Nothing *nothing, void *arg)
{
	(void)nothing;
	(void)arg;
	heard++;
}

static void a_call_for_nobody_who_waits_is_told_to_its_closure(void **state)
{
	struct weft_call_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = S / 100 },
	};
	Calls__Nothing nothing = CALLS__NOTHING__INIT;
	ProtobufCService *service;

	(void)state;
	assert_int_equal(weft_call_open(stub, &options, &service, NULL), 0);
	calls__test__empty(service, &nothing, hear, NULL);
	while (!heard)
		assert_true(weft_poll(node, S) >= 0);
	assert_int_equal(heard, 1);

	/* A request that is none is told so, too. */
	calls__test__empty(weft_stub_service(stub), NULL, hear, NULL);
	assert_int_equal(heard, 2);
}

static void handle_nothing(struct weft_stream *stream, void *arg)
{
	(void)stream;
	(void)arg;
}

static void calls_of_a_server(void **state)
{
	const struct weft_stream_method unnamed = { .handle = handle_nothing };
	const struct weft_stream_method idle = { .name = "Empty" };
	ProtobufCService service = { .descriptor = &calls__test__descriptor };
	ProtobufCService without_name = { .descriptor = &nameless };
	ProtobufCService undescribed = { 0 };
	size_t count;

	(void)state;
	REFUSED(weft_serve(NULL, &service), "node");
	REFUSED(weft_serve(node, NULL), "service");
	REFUSED(weft_serve(node, &undescribed), "service->descriptor");
	REFUSED(weft_serve(node, &without_name), "service->descriptor->name");
	REFUSED(weft_serve_with(NULL, &service, NULL), "node");
	REFUSED(weft_serve_with(node, NULL, NULL), "service");
	REFUSED(weft_serve_streams(NULL, &service, &idle, 1), "node");
	REFUSED(weft_serve_streams(node, &service, NULL, 1), "methods");
	REFUSED(weft_serve_streams(node, &service, &unnamed, 1), "methods[i].name");
	REFUSED(weft_serve_streams(node, &service, &idle, 1), "methods[i].handle");
	REFUSED(weft_serve_reflection(NULL), "node");
	REFUSED(weft_serve_health(NULL), "node");
	REFUSED(weft_health_set(NULL, "", WEFT_HEALTH_SERVING), "node");
	REFUSED(weft_health_set(node, NULL, WEFT_HEALTH_SERVING), "service");

	FINE(weft_served(NULL));
	GIVES_NULL(weft_call_reply(NULL), "op");
	GIVES_NULL(weft_served_peer(NULL), "call");
	GIVES(weft_served_left_ns(NULL), 0, "call");
	REFUSED(weft_served_cancelled(NULL), "call");
	DOES_NOTHING(weft_served_defer(NULL), "call");
	DOES_NOTHING(weft_served_fail(NULL, WEFT_ABORTED, NULL), "call");
	GIVES_NULL(weft_served_metadata(NULL, &count), "call");
	REFUSED(weft_served_set_initial(NULL, NULL, 0), "call");
	REFUSED(weft_served_set_trailing(NULL, NULL, 0), "call");
	REFUSED(weft_served_set_details(NULL, "", 1), "call");
	REFUSED(weft_served_compress(NULL, 0), "call");
	REFUSED(weft_served_compressed(NULL), "call");
	DOES_NOTHING(weft_served_on_cancel(NULL, NULL, NULL), "call");
	REFUSED(weft_served_attach(NULL, NULL, NULL, NULL), "call");
	GIVES(weft_served_attachments(NULL), 0, "call");
	GIVES_NULL(weft_served_attachment(NULL, 0, NULL), "call");
	REFUSED(weft_served_receive(NULL, 0, NULL, NULL, NULL), "call");
}

static void streams(void **state)
{
	Calls__Nothing nothing = CALLS__NOTHING__INIT;
	struct weft_stream *stream;

	(void)state;
	REFUSED(weft_stream_open(NULL, "Empty", NULL, &stream, NULL), "stub");
	REFUSED(weft_stream_open(stub, NULL, NULL, &stream, NULL), "method");
	REFUSED(weft_stream_open(stub, "Empty", NULL, NULL, NULL), "stream");
	assert_int_equal(weft_stream_open(stub, "Empty", NULL, &stream, NULL), 0);
	REFUSED(weft_stream_write(NULL, &nothing.base, NULL, NULL), "stream");
	REFUSED(weft_stream_write(stream, NULL, NULL, NULL), "message");
	assert_int_equal(weft_stream_write(stream, &nothing.base, NULL, NULL), 0);
	REFUSED(weft_stream_compress(NULL, 0), "stream");
	REFUSED(weft_stream_attach(NULL, NULL, NULL, NULL), "stream");
	REFUSED(weft_stream_attach(stream, NULL, NULL, NULL), "tensor");
	REFUSED(weft_stream_half_close(NULL), "stream");
	REFUSED(weft_stream_read(NULL, NULL, NULL), "stream");
	assert_int_equal(weft_stream_read(stream, NULL, NULL), 0);
	GIVES_NULL(weft_stream_message(NULL), "op");
	DOES_NOTHING(weft_stream_finish(NULL, WEFT_OK, NULL), "stream");
	GIVES_NULL(weft_stream_served(NULL), "stream");
	FINE(weft_stream_close(NULL));
	weft_stream_close(stream);
}

static void looking(void **state)
{
	struct weft_cuda_device device = { .size = sizeof(device) };
	struct weft_publisher publisher = { .size = sizeof(publisher) };
	struct weft_client client = { .size = sizeof(client) };
	struct weft_fabric fabric = { .size = sizeof(fabric) };
	struct weft_cuda cuda = { .size = sizeof(cuda) };
	struct weft_pair pair = { .size = sizeof(pair) };
	struct weft_topology *topology;
	struct weft_info *info;
	char text[8];

	(void)state;
	REFUSED(weft_info_open(NULL, NULL), "info");
	REFUSED(weft_info_look(NULL, NULL), "info");
	assert_int_equal(weft_info_open(NULL, &info), 0);
	GIVES(weft_info_count(NULL), 0, "info");
	REFUSED(weft_info_get(NULL, 0, &fabric), "info");
	REFUSED(weft_info_get(info, 0, NULL), "fabric");
	REFUSED(weft_info_security(NULL, &(struct weft_info_secure){ 0 }), "info");
	REFUSED(weft_info_security(info, NULL), "secure");
	REFUSED(weft_info_cuda(NULL, &cuda), "info");
	REFUSED(weft_info_cuda(info, NULL), "cuda");
	REFUSED(weft_info_cuda_device(NULL, 0, &device), "info");
	REFUSED(weft_info_cuda_device(info, 0, NULL), "device");
	REFUSED(weft_info_plan(NULL, 0, 1, WEFT_PLACE_POOL, WEFT_PLACE_POOL, text, 8), "info");
	REFUSED(weft_info_plan(info, 0, 1, WEFT_PLACE_POOL, WEFT_PLACE_POOL, NULL, 8), "text");
	weft_info_close(info);
	FINE(weft_info_close(NULL));
	FINE(weft_info_libfabric());
	FINE(weft_option_count());
	REFUSED(weft_option_get(0, NULL), "option");

	REFUSED(weft_key_new(NULL), "path");
	REFUSED(weft_topology_open(NULL, NULL), "topology");
	assert_int_equal(weft_topology_open(NULL, &topology), 0);
	GIVES(weft_topology_publishers(NULL), 0, "topology");
	GIVES(weft_topology_clients(NULL), 0, "topology");
	REFUSED(weft_topology_publisher(NULL, 0, &publisher), "topology");
	REFUSED(weft_topology_publisher(topology, 0, NULL), "publisher");
	REFUSED(weft_topology_client(NULL, 0, &client), "topology");
	REFUSED(weft_topology_client(topology, 0, NULL), "client");
	REFUSED(weft_topology_pair(NULL, 0, 0, &pair), "topology");
	REFUSED(weft_topology_pair(topology, 0, 0, NULL), "pair");
	weft_topology_close(topology);
	FINE(weft_topology_close(NULL));

	FINE(weft_version());
	FINE(weft_status_name(WEFT_OK));
	FINE(weft_strerror(-EINVAL));
	FINE(weft_error());
}

/* Those that the headers mark as exported, which tests/shape compares with the library. */
static void read_headers(struct names *promised)
{
	char command[4096 + 64], line[4096];
	FILE *headers;

	snprintf(command, sizeof(command), "cat '%s'/include/weft/*.h | tr '\\n' ' ' | tr ';' '\\n'",
		 getenv("top_srcdir"));
	headers = popen(command, "r");
	assert_non_null(headers);
	while (fgets(line, sizeof(line), headers)) {
		char *at = strstr(line, "WEFT_API "), *paren = at ? strchr(at, '(') : NULL;

		if (!paren || strstr(line, "define WEFT_API"))
			continue;
		while (paren > at && strchr("abcdefghijklmnopqrstuvwxyz0123456789_", paren[-1]))
			paren--;
		if (!strncmp(paren, "weft_", 5))
			add(promised, paren);
	}
	assert_int_equal(pclose(headers), 0);
}

static void every_public_function_was_called(void **state)
{
	static struct names promised;
	unsigned missing = 0;

	(void)state;
	read_headers(&promised);
	assert_true(promised.count > 80);
	for (unsigned i = 0; i < promised.count; i++) {
		if (has(&walked, promised.all[i]))
			continue;
		print_message("%s is not called with NULL here\n", promised.all[i]);
		missing++;
	}
	assert_int_equal(missing, 0);
}

static int set_up(void **state)
{
	struct weft_node_options options = { .size = sizeof(options), .mode = WEFT_MANUAL,
					     .provider = "tcp", .timeout_ns = S };
	ProtobufCService *service;

	(void)state;
	return weft_node_open(&options, &node) || weft_peer_open(node, "127.0.0.1:9", &peer) ||
	       weft_stub_open(peer, &calls__test__descriptor, &stub) ||
	       weft_call_open(stub, NULL, &service, &op);
}

static int tear_down(void **state)
{
	(void)state;
	weft_op_free(op);
	weft_stub_close(stub);
	weft_peer_close(peer);
	return weft_node_close(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_and_peers),
		cmocka_unit_test(operations),
		cmocka_unit_test(queues),
		cmocka_unit_test(windows),
		cmocka_unit_test(landings),
		cmocka_unit_test(groups),
		cmocka_unit_test(collectives),
		cmocka_unit_test(tensors),
		cmocka_unit_test(broadcasts),
		cmocka_unit_test(sets_of_receives),
		cmocka_unit_test(memory),
		cmocka_unit_test(calls_of_a_client),
		cmocka_unit_test(a_call_for_nobody_who_waits_is_told_to_its_closure),
		cmocka_unit_test(calls_of_a_server),
		cmocka_unit_test(streams),
		cmocka_unit_test(looking),
		cmocka_unit_test(every_public_function_was_called),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
