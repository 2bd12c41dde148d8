/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What peers may do by an access control list, and who they are, over real providers: node a, which
 * anybody may do anything to, and node b, which has a list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft/weft.h>

#include "tests/fabric/calls.pb-c.h"
#include "tests/fabric/said.h"

#define LIMIT_NS 20000000000ull
#define TEXT_BYTES 1000
#define LONG_BYTES ((size_t)1 << 20)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static char folder[64], key_file[96], list[96];

/* The service of both nodes: who called last, and how many calls came to a handler. */
static Calls__Test_Service service;
static atomic_int handled;
static char caller[WEFT_IDENTITY_BYTES];

struct two {
	struct weft_node *a, *b;
	struct weft_peer *to_a, *to_b;
	struct weft_stub *stub; /* of b's service, at a */
};

/* Files */

static void write_list(const char *text)
{
	char fresh[sizeof(list) + 4];
	int fd;

	(void)snprintf(fresh, sizeof(fresh), "%s.new", list);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(close(fd), 0);
	assert_int_equal(rename(fresh, list), 0);
}

/* The service */

static void handle_empty(Calls__Test_Service *of, const Calls__Nothing *request,
			 Calls__Nothing_Closure closure, void *closure_data)
{
	struct weft_served *call = weft_served(closure_data);
	Calls__Nothing reply = CALLS__NOTHING__INIT;

	(void)of;
	(void)request;
	if (weft_peer_identity(weft_served_peer(call), caller, sizeof(caller)))
		(void)snprintf(caller, sizeof(caller), "error: %s", weft_error());
	atomic_fetch_add(&handled, 1);
	closure(&reply, closure_data);
}

static void handle_unary(Calls__Test_Service *of, const Calls__Request *request,
			 Calls__Response_Closure closure, void *closure_data)
{
	Calls__Response reply = CALLS__RESPONSE__INIT;

	(void)of;
	(void)request;
	atomic_fetch_add(&handled, 1);
	closure(&reply, closure_data);
}

/* Methods with streams, both of which end at once. */
static void handle_stream(struct weft_stream *stream, void *arg)
{
	(void)arg;
	atomic_fetch_add(&handled, 1);
	weft_stream_finish(stream, WEFT_OK, NULL);
}

static void serve(struct weft_node *node)
{
	static const struct weft_stream_method streams[] = {
		{ .name = "Later", .handle = handle_stream },
		{ .name = "Bounce", .handle = handle_stream },
	};

	assert_int_equal(weft_serve_streams(node, &service.base, streams, COUNT(streams)), 0);
}

/* Nodes */

/* Open a node that proves itself by the key file, with what @allow names; NULL: nothing. */
static int try_open(const char *key, const char *allow, struct weft_node **node)
{
	const struct weft_node_options options = {
		.size = sizeof(options), .provider = "tcp", .log = said_line,
		.timeout_ns = LIMIT_NS,
	};
	int err;

	if (key)
		assert_int_equal(setenv("WEFT_KEY_FILE", key, 1), 0);
	if (allow)
		assert_int_equal(setenv("WEFT_ALLOW", allow, 1), 0);
	err = weft_node_open(&options, node);
	assert_int_equal(unsetenv("WEFT_KEY_FILE") || unsetenv("WEFT_ALLOW"), 0);
	return err;
}

static struct weft_node *open_node(const char *key, const char *allow)
{
	struct weft_node *node;

	if (try_open(key, allow, &node))
		fail_msg("%s", weft_error());
	return node;
}

static enum weft_status end_of(struct weft_op *op, char text[TEXT_BYTES])
{
	enum weft_status status;

	assert_int_equal(weft_wait(op, LIMIT_NS), 0);
	status = weft_op_status(op);
	(void)snprintf(text, TEXT_BYTES, "%s", weft_op_message(op));
	weft_op_free(op);
	return status;
}

static void ends(struct weft_op *op, enum weft_status status)
{
	char text[TEXT_BYTES];
	enum weft_status end = end_of(op, text);

	if (end != status)
		fail_msg("%s, not %s: \"%s\"", weft_status_name(end), weft_status_name(status),
			 text);
}

static void ping(struct weft_peer *peer)
{
	struct weft_op *op;

	assert_int_equal(weft_ping(peer, NULL, &op), 0);
	ends(op, WEFT_OK);
}

/* Open both nodes, b with the list @text, and let them meet. */
static struct two open_two(const char *text)
{
	struct two two;

	write_list(text);
	two.a = open_node(key_file, NULL);
	two.b = open_node(key_file, list);
	serve(two.a);
	serve(two.b);
	assert_int_equal(weft_peer_open(two.a, weft_node_address(two.b), &two.to_b), 0);
	assert_int_equal(weft_peer_open(two.b, weft_node_address(two.a), &two.to_a), 0);
	assert_int_equal(weft_stub_open(two.to_b, &calls__test__descriptor, &two.stub), 0);
	ping(two.to_b);
	ping(two.to_a);
	return two;
}

static void close_two(struct two *two)
{
	weft_stub_close(two->stub);
	weft_peer_close(two->to_a);
	weft_peer_close(two->to_b);
	assert_int_equal(weft_node_close(two->a), 0);
	assert_int_equal(weft_node_close(two->b), 0);
}

static struct weft_counters count(struct weft_node *node)
{
	struct weft_counters counters = WEFT_COUNTERS_INIT;

	assert_int_equal(weft_node_counters(node, &counters), 0);
	return counters;
}

static void sleep_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Wait until @node has refused @acts acts of peers. */
static void wait_for_refusals(struct weft_node *node, uint64_t acts)
{
	uint64_t until = now_ns() + LIMIT_NS;

	while (count(node).rights_refused < acts && now_ns() < until)
		sleep_a_little();
	assert_int_equal(count(node).rights_refused, acts);
}

/* Calls */

static void nothing_came(const Calls__Nothing *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

static void response_came(const Calls__Response *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

static struct weft_op *call_empty(struct weft_stub *stub)
{
	const Calls__Nothing request = CALLS__NOTHING__INIT;
	ProtobufCService *once;
	struct weft_op *op;

	assert_int_equal(weft_call_open(stub, NULL, &once, &op), 0);
	calls__test__empty(once, &request, nothing_came, NULL);
	return op;
}

static struct weft_op *call_unary(struct weft_stub *stub, size_t bytes)
{
	Calls__Request request = CALLS__REQUEST__INIT;
	ProtobufCService *once;
	struct weft_op *op;

	request.payload.len = bytes;
	request.payload.data = test_calloc(1, bytes + 1);
	assert_int_equal(weft_call_open(stub, NULL, &once, &op), 0);
	calls__test__unary(once, &request, response_came, NULL);
	test_free(request.payload.data);
	return op;
}

/* @op, a call from @two's node a, is refused with a sentence that has @method. */
static void is_refused(const struct two *two, struct weft_op *op, const char *method)
{
	char identity[WEFT_IDENTITY_BYTES], text[TEXT_BYTES];
	int before = atomic_load(&handled);

	assert_int_equal(weft_wait(op, LIMIT_NS), 0);
	assert_int_equal(weft_op_executed(op), WEFT_EXECUTED_NO);
	assert_int_equal(end_of(op, text), WEFT_PERMISSION_DENIED);
	assert_int_equal(weft_peer_identity(two->to_a, identity, sizeof(identity)), 0);
	if (!strstr(text, identity) || !strstr(text, method))
		fail_msg("\"%s\" does not name both %s and %s", text, identity, method);
	assert_int_equal(atomic_load(&handled), before);
}

static void calls_are_taken_by_pattern_and_others_are_not_executed(void **state)
{
	static const size_t sizes[] = { 0, 20000, LONG_BYTES };
	struct two two = open_two("# calls\nallow key:* calls other.* calls.Test/Em*\n");
	uint64_t refused = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		int before = atomic_load(&handled);

		is_refused(&two, call_unary(two.stub, sizes[i]), "calls.Test/Unary");
		assert_int_equal(count(two.b).rights_refused, ++refused);
		ends(call_empty(two.stub), WEFT_OK);
		assert_int_equal(atomic_load(&handled), before + 1);
	}
	assert_int_equal(count(two.a).rights_refused, 0);
	assert_true(said_has("may not call calls.Test/Unary"));
	close_two(&two);
}

static void a_refused_call_gives_its_attachments_back(void **state)
{
	struct two two = open_two("allow * calls */Empty\n");
	const Calls__Request request = CALLS__REQUEST__INIT;
	int64_t length = LONG_BYTES;
	uint8_t *bytes = test_calloc(1, LONG_BYTES);
	const struct weft_tensor tensor = { .data = bytes, .device = { WEFT_CPU, 0 }, .ndim = 1,
					    .dtype = { WEFT_UINT, 8, 1 }, .shape = &length };
	struct weft_op *op, *attached;
	ProtobufCService *once;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(weft_call_open(two.stub, NULL, &once, &op), 0);
		assert_int_equal(weft_call_attach(op, &tensor, NULL, &attached), 0);
		calls__test__unary(once, &request, response_came, NULL);
		is_refused(&two, op, "calls.Test/Unary");
		assert_int_equal(weft_wait(attached, LIMIT_NS), 0);
		weft_op_free(attached);
		ends(call_empty(two.stub), WEFT_OK);
	}
	close_two(&two);
	test_free(bytes);
}

static void streams_are_taken_by_pattern_and_others_are_not_executed(void **state)
{
	struct two two = open_two("allow key:* calls *Later *Empty\n");
	const Calls__Nothing request = CALLS__NOTHING__INIT;
	struct weft_op *op, *read;
	struct weft_stream *stream;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		int before = atomic_load(&handled);

		assert_int_equal(weft_stream_open(two.stub, "Bounce", NULL, &stream, &op), 0);
		assert_int_equal(weft_stream_write(stream, &request.base, NULL, NULL), 0);
		assert_int_equal(weft_stream_read(stream, NULL, &read), 0);
		is_refused(&two, op, "calls.Test/Bounce");
		ends(read, WEFT_PERMISSION_DENIED);
		weft_stream_close(stream);

		assert_int_equal(weft_stream_open(two.stub, "Later", NULL, &stream, &op), 0);
		assert_int_equal(weft_stream_read(stream, NULL, &read), 0);
		ends(read, WEFT_OK);
		ends(op, WEFT_OK);
		weft_stream_close(stream);
		assert_int_equal(atomic_load(&handled), before + 1);
	}
	assert_int_equal(count(two.b).rights_refused, 3);
	close_two(&two);
}

static void a_line_is_for_its_identity_alone(void **state)
{
	char identity[WEFT_IDENTITY_BYTES], text[2 * WEFT_IDENTITY_BYTES];
	struct two two = open_two("allow key:0 all\nallow spiffe://* all\nallow ke all\n");

	(void)state;
	is_refused(&two, call_empty(two.stub), "calls.Test/Empty");
	assert_int_equal(weft_peer_identity(two.to_a, identity, sizeof(identity)), 0);
	close_two(&two);
	(void)snprintf(text, sizeof(text), "allow %s calls calls.Test/Empty\n", identity);
	two = open_two(text);
	ends(call_empty(two.stub), WEFT_OK);
	is_refused(&two, call_unary(two.stub, 0), "calls.Test/Unary");
	close_two(&two);
}

/* Tensors */

static struct weft_tensor bytes_of(uint8_t *data, int64_t *length)
{
	return (struct weft_tensor){ .data = data, .device = { WEFT_CPU, 0 }, .ndim = 1,
				     .dtype = { WEFT_UINT, 8, 1 }, .shape = length };
}

static struct weft_op *receive(struct weft_node *node, uint64_t step, const char *key)
{
	const struct weft_recv_options any = { .size = sizeof(any), .flags = WEFT_ANY_KEY };
	struct weft_op *op;

	assert_int_equal(weft_recv(node, NULL, step, key, key ? strlen(key) : 0, NULL,
				   key ? NULL : &any, &op), 0);
	return op;
}

/* Send @length bytes, each @byte. */
static enum weft_status send_bytes(struct weft_peer *peer, uint64_t step, const char *key,
				   int64_t length, int byte)
{
	uint8_t *data = test_malloc((size_t)length);
	struct weft_tensor sent = bytes_of(data, &length);
	char text[TEXT_BYTES];
	enum weft_status status;
	struct weft_op *op;

	memset(data, byte, (size_t)length);
	assert_int_equal(weft_send(peer, step, key, strlen(key), &sent, NULL, &op), 0);
	status = end_of(op, text);
	test_free(data);
	return status;
}

/* @op got @length bytes, each @byte.  Frees it. */
static void has_got(struct weft_op *op, int64_t length, int byte)
{
	const struct weft_tensor *got;

	assert_int_equal(weft_wait(op, LIMIT_NS), 0);
	if (weft_op_status(op) != WEFT_OK)
		fail_msg("%s", weft_op_message(op));
	got = weft_op_tensor(op, NULL);
	assert_non_null(got);
	assert_int_equal(got->shape[0], length);
	for (int64_t i = 0; i < length; i++)
		assert_int_equal(((const uint8_t *)got->data)[i], byte);
	weft_op_free(op);
}

static void is_waiting_still(struct weft_op *op)
{
	assert_false(weft_op_ended(op));
	weft_cancel(op);
	ends(op, WEFT_CANCELLED);
}

static void a_tensor_of_another_key_never_reaches_a_receive(void **state)
{
	static const int64_t sizes[] = { 1, 100, 5000, 60000, 66000, LONG_BYTES, 9 << 20 };
	struct two two = open_two("allow key:* tensors grad/* loss\n");
	uint64_t kept = count(two.b).kept_bytes, until;

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct weft_op *secret = receive(two.b, i, "secret"), *any, *later;
		struct weft_op *allowed = receive(two.b, i, "grad/1");
		enum weft_status sent;

		sent = send_bytes(two.to_b, i, "secret", sizes[i], 'x');
		if (sizes[i] >= (int64_t)LONG_BYTES)
			assert_int_equal(sent, WEFT_PERMISSION_DENIED);
		assert_int_equal(send_bytes(two.to_b, i, "grad/1", sizes[i], 'y'), WEFT_OK);
		has_got(allowed, sizes[i], 'y');
		/* A refused tensor is not kept for a receive that comes later either. */
		later = receive(two.b, i, "secret");
		any = receive(two.b, i, NULL);
		assert_int_equal(send_bytes(two.to_b, i, "loss", sizes[i], 'z'), WEFT_OK);
		has_got(any, sizes[i], 'z');
		is_waiting_still(secret);
		is_waiting_still(later);
		assert_int_equal(count(two.b).rights_refused, i + 1);
	}
	until = now_ns() + LIMIT_NS;
	while (count(two.b).kept_bytes != kept && now_ns() < until)
		sleep_a_little();
	assert_int_equal(count(two.b).kept_bytes, kept);
	close_two(&two);
}

static void a_tensor_that_nobody_waits_for_is_refused_as_well(void **state)
{
	struct two two = open_two("allow key:* tensors loss\n");

	(void)state;
	assert_int_equal(send_bytes(two.to_b, 1, "secret", LONG_BYTES, 'x'),
			 WEFT_PERMISSION_DENIED);
	assert_int_equal(send_bytes(two.to_b, 1, "loss", LONG_BYTES / 1024, 'y'), WEFT_OK);
	has_got(receive(two.b, 1, "loss"), LONG_BYTES / 1024, 'y');
	is_waiting_still(receive(two.b, 1, "secret"));
	close_two(&two);
}

/* Windows */

static enum weft_status move(struct weft_remote *remote, bool put, void *local, size_t bytes,
			     char text[TEXT_BYTES])
{
	const struct weft_block block = { local, 0, bytes };
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	struct weft_op *op;

	options.flags = WEFT_NOTE;
	options.number = put;
	assert_int_equal(put ? weft_put(remote, &block, bytes ? 1 : 0, &options, &op) :
			       weft_get(remote, &block, 1, &options, &op), 0);
	return end_of(op, text);
}

/* Get and put @bytes of a window of @two's node b: with both rights but those of its list. */
static void use_window(struct two *two, size_t bytes, bool get, bool put)
{
	uint8_t *there = test_malloc(bytes), *here = test_malloc(bytes);
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t length = sizeof(descriptor);
	struct weft_window *window;
	struct weft_remote *remote;
	char text[TEXT_BYTES];
	struct weft_op *note;

	memset(there, 't', bytes);
	memset(here, 'h', bytes);
	assert_int_equal(weft_window_open(two->b, there, bytes,
					  WEFT_WINDOW_READ | WEFT_WINDOW_WRITE, &window), 0);
	assert_int_equal(weft_window_describe(window, descriptor, &length), 0);
	assert_int_equal(weft_window_import(two->to_b, descriptor, length, &remote), 0);
	assert_int_equal(weft_window_next(window, NULL, &note), 0);
	assert_int_equal(move(remote, false, here, bytes, text),
			 get ? WEFT_OK : WEFT_PERMISSION_DENIED);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(here[i], get ? 't' : 'h');
	if (get)
		assert_int_equal(weft_wait(note, LIMIT_NS), 0);
	assert_int_equal(weft_op_ended(note), get);
	memset(here, 'p', bytes);
	assert_int_equal(move(remote, true, here, bytes, text),
			 put ? WEFT_OK : WEFT_PERMISSION_DENIED);
	assert_int_equal(move(remote, true, here, 0, text), put ? WEFT_OK : WEFT_PERMISSION_DENIED);
	assert_int_equal(weft_window_puts(window), put ? 2 : 0);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(there[i], put ? 'p' : 't');
	if (put)
		assert_int_equal(weft_wait(note, LIMIT_NS), 0);
	assert_int_equal(weft_op_ended(note), get || put);
	weft_remote_close(remote);
	assert_int_equal(weft_window_close(window), 0);
	ends(note, get || put ? WEFT_OK : WEFT_CANCELLED);
	test_free(there);
	test_free(here);
}

static void gets_and_puts_are_allowed_each_alone(void **state)
{
	static const struct {
		const char *text;
		bool get, put;
	} rows[] = {
		{ "allow * tensors get put\nallow * calls *\n", false, false },
		{ "allow * windows get\n", true, false },
		{ "allow * windows put\n", false, true },
		{ "allow * windows get put\n", true, true },
		{ "allow * all\n", true, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct two two = open_two(rows[i].text);

		use_window(&two, 16, rows[i].get, rows[i].put);
		use_window(&two, LONG_BYTES, rows[i].get, rows[i].put);
		assert_int_equal(count(two.b).rights_refused,
				 2 * (!rows[i].get + 2 * !rows[i].put));
		close_two(&two);
	}
}

static void a_push_needs_the_right_to_put(void **state)
{
	struct weft_op_options patience = { .size = sizeof(patience), .timeout_ns = LIMIT_NS };
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX], bytes[1000], slots[2000];
	int64_t length = sizeof(bytes);
	const struct weft_tensor tensor = bytes_of(bytes, &length);

	(void)state;
	memset(bytes, 1, sizeof(bytes));
	for (unsigned may = 0; may < 2; may++) {
		struct two two = open_two(may ? "allow * calls weft.*\nallow * windows put\n" :
						"allow * calls weft.*\nallow * windows get\n");
		size_t room = sizeof(descriptor);
		struct weft_landing *landing;
		struct weft_op *push, *took;
		struct weft_remote *remote;

		assert_int_equal(weft_landing_open(two.b, slots, sizeof(bytes), 2, &landing), 0);
		assert_int_equal(weft_landing_describe(landing, descriptor, &room), 0);
		assert_int_equal(weft_window_import(two.to_b, descriptor, room, &remote), 0);
		assert_int_equal(weft_landing_next(landing, &patience, &took), 0);
		assert_int_equal(weft_push(remote, &tensor, NULL, &push), 0);
		ends(push, may ? WEFT_OK : WEFT_PERMISSION_DENIED);
		if (may)
			has_got(took, length, 1);
		else
			is_waiting_still(took);
		weft_remote_close(remote);
		assert_int_equal(weft_landing_close(landing), 0);
		close_two(&two);
	}
}

/* Steps */

static void an_abort_without_the_right_changes_nothing(void **state)
{
	struct two two = open_two("allow key:* tensors *\n");
	struct weft_node *c = open_node(key_file, NULL);
	struct weft_op *first = receive(two.b, 7, "first"), *second = receive(two.b, 7, "second");
	struct weft_peer *from_c;

	(void)state;
	assert_int_equal(weft_peer_open(c, weft_node_address(two.b), &from_c), 0);
	assert_int_equal(send_bytes(two.to_b, 7, "first", 10, 'f'), WEFT_OK);
	has_got(first, 10, 'f');
	assert_int_equal(weft_step_abort(two.a, 7, WEFT_DATA_LOSS, "nan"), 0);
	wait_for_refusals(two.b, 1);
	assert_false(weft_op_ended(second));
	assert_int_equal(send_bytes(from_c, 7, "second", 20, 's'), WEFT_OK);
	has_got(second, 20, 's');
	is_waiting_still(receive(two.b, 7, "third"));
	weft_peer_close(from_c);
	assert_int_equal(weft_node_close(c), 0);
	close_two(&two);
}

static void an_abort_without_the_right_costs_no_connection(void **state)
{
	int64_t length = LONG_BYTES;
	uint8_t *data = test_calloc(1, LONG_BYTES);
	struct weft_tensor sent = bytes_of(data, &length);
	uint64_t until = now_ns() + LIMIT_NS;
	struct weft_op *op;
	struct two two;

	(void)state;
	assert_int_equal(setenv("WEFT_LOG", "3", 1), 0);
	two = open_two("allow key:* tensors *\n");
	assert_int_equal(unsetenv("WEFT_LOG"), 0);
	assert_int_equal(weft_send(two.to_b, 7, "body", 4, &sent, NULL, &op), 0);
	while (weft_probe(two.b, NULL, 7, "body", 4, NULL) == -EAGAIN && now_ns() < until)
		sleep_a_little();
	said_forget();
	assert_int_equal(weft_step_abort(two.a, 7, WEFT_DATA_LOSS, "nan"), 0);
	ends(op, WEFT_DATA_LOSS);
	wait_for_refusals(two.b, 1);
	assert_true(said_has("step 7 was aborted"));
	ping(two.to_b);
	assert_false(said_has("rail tcp failed"));
	is_waiting_still(receive(two.b, 7, "body"));
	test_free(data);
	close_two(&two);
}

static void an_abort_with_the_right_ends_the_step(void **state)
{
	struct two two = open_two("allow key:* tensors *\nallow key:* abort\n");
	struct weft_op *first = receive(two.b, 7, "first"), *second = receive(two.b, 7, "second");

	(void)state;
	assert_int_equal(send_bytes(two.to_b, 7, "first", 10, 'f'), WEFT_OK);
	has_got(first, 10, 'f');
	assert_int_equal(weft_step_abort(two.a, 7, WEFT_DATA_LOSS, "nan"), 0);
	ends(second, WEFT_DATA_LOSS);
	assert_int_equal(count(two.b).rights_refused, 0);
	close_two(&two);
}

/* Draining */

static void note_draining(struct weft_peer *peer, enum weft_peer_state state, const char *why,
			  void *arg)
{
	(void)peer;
	(void)why;
	if (state == WEFT_PEER_DRAINING)
		atomic_store((atomic_bool *)arg, true);
}

/* Let node a drain.  Does b take its word for that, and keep its calls? */
static bool drain_is_heard(const char *text)
{
	struct two two = open_two(text);
	uint64_t until = now_ns() + LIMIT_NS;
	atomic_bool drains = false;
	struct weft_stub *back;
	bool heard;

	assert_int_equal(weft_stub_open(two.to_a, &calls__test__descriptor, &back), 0);
	assert_int_equal(weft_peer_on_change(two.to_a, note_draining, &drains), 0);
	ends(call_empty(back), WEFT_OK);
	assert_int_equal(weft_node_drain(two.a, LIMIT_NS), 0);
	while (!atomic_load(&drains) && !count(two.b).rights_refused && now_ns() < until)
		sleep_a_little();
	ends(call_empty(back), WEFT_UNAVAILABLE);
	/* A call that was kept never came to node a. */
	heard = !count(two.a).calls_refused;
	assert_int_equal(count(two.b).rights_refused, !heard);
	assert_int_equal(weft_peer_on_change(two.to_a, NULL, NULL), 0);
	assert_int_equal(atomic_load(&drains), heard);
	weft_stub_close(back);
	close_two(&two);
	return heard;
}

static void a_drain_without_the_right_leaves_calls_going(void **state)
{
	(void)state;
	assert_true(drain_is_heard("allow * drain\n"));
	assert_false(drain_is_heard("allow * calls *\nallow * abort\n"));
}

/* Lists */

static void the_empty_list_refuses_all(void **state)
{
	static const char *const texts[] = { "", "\n", "# nobody may do anything", " \t\r\n\n" };

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct two two = open_two(texts[i]);
		struct weft_op *op = receive(two.b, 1, "k");

		is_refused(&two, call_empty(two.stub), "calls.Test/Empty");
		assert_int_equal(send_bytes(two.to_b, 1, "k", LONG_BYTES, 'k'),
				 WEFT_PERMISSION_DENIED);
		use_window(&two, 100, false, false);
		is_waiting_still(op);
		assert_int_equal(count(two.b).rights_refused, 5);
		close_two(&two);
	}
}

static void a_list_that_cannot_be_used_opens_no_node(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "deny * all\n", ":1: expected allow: deny" },
		{ "allow\n", ":1: expected an identity" },
		{ "\n# two\nallow * fly\n", ":3: expected calls, tensors" },
		{ "allow * all\nallow * calls\n", ":2: expected a pattern" },
		{ "allow * windows get take\n", ":1: expected get or put: take" },
		{ "allow * abort now\n", ":1: nothing more was expected: now" },
	};
	struct weft_node *node;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		write_list(rows[i].text);
		assert_int_equal(try_open(key_file, list, &node), -EINVAL);
		if (!strstr(weft_error(), rows[i].says) || !strstr(weft_error(), list))
			fail_msg("\"%s\" does not say \"%s\"", weft_error(), rows[i].says);
	}
	assert_int_equal(try_open(key_file, "/nowhere/list", &node), -ENOENT);
	assert_non_null(strstr(weft_error(), "/nowhere/list"));
	assert_int_equal(try_open(key_file, folder, &node), -EINVAL);
	assert_non_null(strstr(weft_error(), folder));
	write_list("allow * all\n");
	assert_int_equal(try_open(NULL, list, &node), -EINVAL);
	assert_non_null(strstr(weft_error(), "WEFT_ALLOW needs a key"));
}

/* Replace the list of @two's node b, for which it holds from now on. */
static void change_list(const struct two *two, const char *text)
{
	write_list(text);
	if (weft_node_rekey(two->b))
		fail_msg("%s", weft_error());
}

static void a_new_list_holds_from_rekey_on_for_a_link_that_is_up(void **state)
{
	struct two two = open_two("");
	uint64_t resumed = count(two.b).links_resumed;

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		struct weft_op *op;

		change_list(&two, "allow * calls calls.Test/Empty\nallow * tensors k\n");
		ends(call_empty(two.stub), WEFT_OK);
		op = receive(two.b, i, "k");
		assert_int_equal(send_bytes(two.to_b, i, "k", 100000, 'k'), WEFT_OK);
		has_got(op, 100000, 'k');
		change_list(&two, "allow * calls calls.Test/Unary\n");
		is_refused(&two, call_empty(two.stub), "calls.Test/Empty");
		assert_int_equal(send_bytes(two.to_b, i, "k", 100000, 'k'),
				 WEFT_PERMISSION_DENIED);
		ends(call_unary(two.stub, 10), WEFT_OK);
	}
	/* The link has stayed as it was. */
	assert_int_equal(count(two.b).links_resumed, resumed);
	close_two(&two);
}

static enum weft_status get_once(struct weft_remote *remote, void *into, size_t bytes)
{
	const struct weft_block block = { into, 0, bytes };
	char text[TEXT_BYTES];
	struct weft_op *op;

	assert_int_equal(weft_get(remote, &block, 1, NULL, &op), 0);
	return end_of(op, text);
}

/* The first get is lent the whole window, and later ones read it without asking. */
static void a_window_that_was_lent_is_got_from_no_more_under_a_list_without_the_right(void **state)
{
	static const struct {
		const char *list;
		enum weft_status status;
	} rows[] = {
		{ "allow * windows get\n", WEFT_OK },
		{ "allow * windows get\nallow * abort\n", WEFT_OK },
		{ "allow * windows put\n", WEFT_PERMISSION_DENIED },
		{ "allow * windows get\n", WEFT_OK },
	};
	struct two two = open_two(rows[0].list);
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX], here[1000], there[1000];
	size_t length = sizeof(descriptor);
	struct weft_window *window;
	struct weft_remote *remote;

	(void)state;
	assert_int_equal(weft_window_open(two.b, there, sizeof(there), WEFT_WINDOW_READ, &window),
			 0);
	assert_int_equal(weft_window_describe(window, descriptor, &length), 0);
	assert_int_equal(weft_window_import(two.to_b, descriptor, length, &remote), 0);
	for (unsigned i = 0; i < COUNT(rows); i++) {
		memset(here, 'h', sizeof(here));
		memset(there, (int)('a' + i), sizeof(there));
		change_list(&two, rows[i].list);
		assert_int_equal(get_once(remote, here, sizeof(here)), rows[i].status);
		assert_int_equal(here[0], rows[i].status == WEFT_OK ? 'a' + i : 'h');
	}
	weft_remote_close(remote);
	assert_int_equal(weft_window_close(window), 0);
	close_two(&two);
}

static void a_new_list_that_cannot_be_used_leaves_the_old_one(void **state)
{
	struct two two = open_two("allow * calls calls.Test/Empty\n");

	(void)state;
	write_list("allow * all\nallow * everything\n");
	assert_int_equal(weft_node_rekey(two.b), -EINVAL);
	assert_non_null(strstr(weft_error(), list));
	assert_non_null(strstr(weft_error(), ":2: expected calls"));
	ends(call_empty(two.stub), WEFT_OK);
	is_refused(&two, call_unary(two.stub, 0), "calls.Test/Unary");
	assert_int_equal(unlink(list), 0);
	assert_int_equal(weft_node_rekey(two.b), -ENOENT);
	ends(call_empty(two.stub), WEFT_OK);
	is_refused(&two, call_unary(two.stub, 0), "calls.Test/Unary");
	change_list(&two, "allow * calls calls.Test/Unary\n");
	is_refused(&two, call_empty(two.stub), "calls.Test/Empty");
	ends(call_unary(two.stub, 0), WEFT_OK);
	close_two(&two);
}

/* Call Empty until it ends so. */
static void call_until(const struct two *two, enum weft_status status)
{
	uint64_t until = now_ns() + LIMIT_NS;
	char text[TEXT_BYTES];

	while (end_of(call_empty(two->stub), text) != status) {
		assert_true(now_ns() < until);
		sleep_a_little();
	}
}

static void a_node_sees_by_itself_that_its_list_has_changed(void **state)
{
	struct two two = open_two("allow * calls calls.Test/Empty\n");

	(void)state;
	ends(call_empty(two.stub), WEFT_OK);
	write_list("allow * calls calls.Test/Unary\n");
	call_until(&two, WEFT_PERMISSION_DENIED);
	ends(call_unary(two.stub, 0), WEFT_OK);
	write_list("allow * calls calls.Test/Empty\n");
	call_until(&two, WEFT_OK);
	close_two(&two);
}

/* Identities */

static void an_identity_is_the_same_to_all_who_see_it(void **state)
{
	char a[WEFT_IDENTITY_BYTES], b[WEFT_IDENTITY_BYTES];
	struct two two = open_two("allow * all\n");

	(void)state;
	assert_int_equal(weft_peer_identity(two.to_b, b, sizeof(b)), 0);
	assert_int_equal(weft_peer_identity(two.to_a, a, sizeof(a)), 0);
	assert_int_equal(strlen(b), 20);
	assert_memory_equal(b, "key:", 4);
	assert_int_equal(strspn(b + 4, "0123456789abcdef"), 16);
	assert_string_equal(a, b);
	caller[0] = '\0';
	ends(call_empty(two.stub), WEFT_OK);
	assert_string_equal(caller, a);
	close_two(&two);
}

static void an_identity_needs_room_and_a_peer_that_was_met(void **state)
{
	struct weft_node *a = open_node(key_file, NULL), *b = open_node(key_file, NULL);
	char identity[WEFT_IDENTITY_BYTES];
	struct weft_peer *peer;

	(void)state;
	assert_int_equal(weft_peer_open(a, weft_node_address(b), &peer), 0);
	assert_int_equal(weft_peer_identity(peer, identity, sizeof(identity)), -ENOTCONN);
	ping(peer);
	assert_int_equal(weft_peer_identity(peer, identity, 0), -ENOSPC);
	assert_int_equal(weft_peer_identity(peer, identity, 20), -ENOSPC);
	assert_int_equal(weft_peer_identity(peer, identity, 21), 0);
	assert_int_equal(strlen(identity), 20);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(a), 0);
	assert_int_equal(weft_node_close(b), 0);
}

static void nobody_is_anybody_where_nothing_is_proven(void **state)
{
	struct weft_node *a = open_node(NULL, NULL), *b = open_node(NULL, NULL);
	char identity[WEFT_IDENTITY_BYTES] = "?";
	struct weft_peer *peer;

	(void)state;
	assert_int_equal(weft_node_rekey(a), -ENOENT);
	assert_int_equal(weft_peer_open(a, weft_node_address(b), &peer), 0);
	ping(peer);
	assert_int_equal(weft_peer_identity(peer, identity, sizeof(identity)), 0);
	assert_string_equal(identity, "");
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(a), 0);
	assert_int_equal(weft_node_close(b), 0);
}

static int make_files(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/weft-rights.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(key_file, sizeof(key_file), "%s/key", folder);
	(void)snprintf(list, sizeof(list), "%s/list", folder);
	calls__test__init(&service, NULL);
	service.empty = handle_empty;
	service.unary = handle_unary;
	return weft_key_new(key_file);
}

static int remove_files(void **state)
{
	(void)state;
	return unlink(key_file) || unlink(list) || rmdir(folder);
}

static int forget(void **state)
{
	(void)state;
	said_forget();
	return 0;
}

#define TEST(test) cmocka_unit_test_setup(test, forget)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(calls_are_taken_by_pattern_and_others_are_not_executed),
		TEST(a_refused_call_gives_its_attachments_back),
		TEST(streams_are_taken_by_pattern_and_others_are_not_executed),
		TEST(a_line_is_for_its_identity_alone),
		TEST(a_tensor_of_another_key_never_reaches_a_receive),
		TEST(a_tensor_that_nobody_waits_for_is_refused_as_well),
		TEST(gets_and_puts_are_allowed_each_alone),
		TEST(a_push_needs_the_right_to_put),
		TEST(an_abort_without_the_right_changes_nothing),
		TEST(an_abort_without_the_right_costs_no_connection),
		TEST(an_abort_with_the_right_ends_the_step),
		TEST(a_drain_without_the_right_leaves_calls_going),
		TEST(the_empty_list_refuses_all),
		TEST(a_list_that_cannot_be_used_opens_no_node),
		TEST(a_new_list_holds_from_rekey_on_for_a_link_that_is_up),
		TEST(a_window_that_was_lent_is_got_from_no_more_under_a_list_without_the_right),
		TEST(a_new_list_that_cannot_be_used_leaves_the_old_one),
		TEST(a_node_sees_by_itself_that_its_list_has_changed),
		TEST(an_identity_is_the_same_to_all_who_see_it),
		TEST(an_identity_needs_room_and_a_peer_that_was_met),
		TEST(nobody_is_anybody_where_nothing_is_proven),
	};

	(void)argc;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
