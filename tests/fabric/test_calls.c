/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls between processes, over every provider that this host has.  The
 * sizes, codes and texts are those of gRPC's interoperability tests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fabric/calls.pb-c.h"
#include "pair.h"

#define REQUEST_BYTES 271828
#define RESPONSE_BYTES 314159

/* The service. */

/* What the handlers saw, for the command "seen". */
static atomic_int handled_count, cancelled_count;
static _Atomic uint64_t first_left_ns, last_left_ns;

static void handle_empty(Calls__Test_Service *service, const Calls__Nothing *request,
			 Calls__Nothing_Closure closure, void *closure_data)
{
	Calls__Nothing reply = CALLS__NOTHING__INIT;

	(void)service;
	(void)request;
	atomic_fetch_add(&handled_count, 1);
	closure(&reply, closure_data);
}

static void answer(const Calls__Request *request, Calls__Response_Closure closure,
		   void *closure_data)
{
	Calls__Response reply = CALLS__RESPONSE__INIT;

	if (request->status) {
		weft_served_fail(closure_data, (enum weft_status)request->status->code,
				 request->status->message);
		return;
	}
	if (!pair_matches(request->payload.data, request->payload.len, 1)) {
		weft_served_fail(closure_data, WEFT_DATA_LOSS, "not what was sent");
		return;
	}
	reply.payload.len = request->response_bytes;
	reply.payload.data = malloc(reply.payload.len + 1);
	pair_fill(reply.payload.data, reply.payload.len, 2);
	closure(&reply, closure_data);
	free(reply.payload.data);
}

static void handle_unary(Calls__Test_Service *service, const Calls__Request *request,
			 Calls__Response_Closure closure, void *closure_data)
{
	(void)service;
	atomic_fetch_add(&handled_count, 1);
	answer(request, closure, closure_data);
}

/* A call that another thread answers. */
struct later {
	const Calls__Request *request;
	Calls__Response_Closure closure;
	void *closure_data;
};

static void in_thread(void *(*run)(void *), const Calls__Request *request,
		      Calls__Response_Closure closure, void *closure_data)
{
	struct later *later = malloc(sizeof(*later));
	pthread_attr_t attr;
	pthread_t thread;

	*later = (struct later){ request, closure, closure_data };
	weft_served_defer(closure_data);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, run, later))
		abort();
	pthread_attr_destroy(&attr);
}

static void *answer_later(void *arg)
{
	struct later *later = arg;

	pair_sleep_ms(later->request->sleep_ms);
	answer(later->request, later->closure, later->closure_data);
	free(later);
	return NULL;
}

static void handle_later(Calls__Test_Service *service, const Calls__Request *request,
			 Calls__Response_Closure closure, void *closure_data)
{
	(void)service;
	atomic_fetch_add(&handled_count, 1);
	in_thread(answer_later, request, closure, closure_data);
}

static void *answer_never(void *arg)
{
	struct later *later = arg;
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;

	while (!weft_served_cancelled(later->closure_data) && pair_now_ns() < until)
		pair_sleep_ms(1);
	atomic_store(&last_left_ns, weft_served_left_ns(later->closure_data));
	weft_served_fail(later->closure_data, WEFT_ABORTED, "nobody wants to know");
	free(later);
	if (pair_now_ns() < until)
		atomic_fetch_add(&cancelled_count, 1);
	return NULL;
}

static void handle_never(Calls__Test_Service *service, const Calls__Request *request,
			 Calls__Nothing_Closure closure, void *closure_data)
{
	(void)service;
	(void)closure; /* it always fails */
	atomic_store(&first_left_ns, weft_served_left_ns(closure_data));
	in_thread(answer_never, request, NULL, closure_data);
	atomic_fetch_add(&handled_count, 1);
}

/* A call back, from its start in the handler to its end. */
struct bounce {
	struct weft_stub *stub;
	Calls__Nothing_Closure closure;
	void *closure_data;
};

static void bounced(const Calls__Nothing *reply, void *arg)
{
	struct bounce *bounce = arg;

	if (reply)
		bounce->closure(reply, bounce->closure_data);
	else
		weft_served_fail(bounce->closure_data, WEFT_INTERNAL, "the call back failed");
	weft_stub_close(bounce->stub);
	free(bounce);
}

static void handle_bounce(Calls__Test_Service *service, const Calls__Nothing *request,
			  Calls__Nothing_Closure closure, void *closure_data)
{
	struct bounce *bounce = calloc(1, sizeof(*bounce));

	(void)service;
	*bounce = (struct bounce){ .closure = closure, .closure_data = closure_data };
	if (weft_stub_open(weft_served_peer(closure_data), &calls__test__descriptor,
			   &bounce->stub)) {
		weft_served_fail(closure_data, WEFT_INTERNAL, weft_error());
		free(bounce);
		return;
	}
	calls__test__empty(weft_stub_service(bounce->stub), request, bounced, bounce);
}

static void relayed(const Calls__Nothing *reply, void *arg)
{
	struct bounce *bounce = arg;
	const char *text;
	enum weft_status status = weft_reply_status(&text);

	(void)reply; /* Never always fails */
	weft_served_fail(bounce->closure_data, status, text);
	weft_stub_close(bounce->stub);
	free(bounce);
}

static void handle_relay(Calls__Test_Service *service, const Calls__Request *request,
			 Calls__Nothing_Closure closure, void *closure_data)
{
	struct weft_call_options options = { .size = sizeof(options), .parent = closure_data };
	struct bounce *bounce = calloc(1, sizeof(*bounce));
	ProtobufCService *one;
	struct weft_op *op;

	(void)service;
	*bounce = (struct bounce){ .closure = closure, .closure_data = closure_data };
	need(!weft_stub_open(weft_served_peer(closure_data), &calls__test__descriptor,
			     &bounce->stub));
	need(!weft_call_open(bounce->stub, &options, &one, &op));
	calls__test__never(one, request, relayed, bounce);
	weft_op_free(op);
}

static Calls__Test_Service service = CALLS__TEST__INIT(handle_);

static void do_serve(struct pair *side, char *arguments)
{
	(void)arguments;
	atomic_store(&handled_count, 0);
	atomic_store(&cancelled_count, 0);
	need(!weft_serve(side->node, &service.base));
	need(weft_serve(side->node, &service.base) == -EEXIST);
}

/* Wait until @arguments handlers have seen their calls cancelled; says what they saw. */
static void do_seen(struct pair *side, char *arguments)
{
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;

	while (atomic_load(&cancelled_count) < atoi(arguments) && pair_now_ns() < until)
		pair_sleep_ms(1);
	snprintf(side->reply, sizeof(side->reply), "%d %d %" PRIu64 " %" PRIu64,
		 atomic_load(&handled_count), atomic_load(&cancelled_count),
		 atomic_load(&first_left_ns), atomic_load(&last_left_ns));
}

/* The client. */

/* What a closure heard. */
struct heard {
	atomic_int count;
	bool good;
	size_t bytes;
	enum weft_status status;
	char text[256];
};

static void hear(struct heard *heard, bool good)
{
	const char *text;

	heard->good = good;
	heard->status = weft_reply_status(&text);
	snprintf(heard->text, sizeof(heard->text), "%s", text);
	atomic_fetch_add(&heard->count, 1);
}

static void hear_empty(const Calls__Nothing *reply, void *arg)
{
	hear(arg, reply != NULL);
}

static void hear_response(const Calls__Response *reply, void *arg)
{
	struct heard *heard = arg;

	heard->bytes = reply ? reply->payload.len : 0;
	hear(heard, reply && pair_matches(reply->payload.data, reply->payload.len, 2));
}

struct client {
	struct pair pair;
	struct weft_stub *stub;
};

static void open_client(struct client *client, const char *provider)
{
	pair_open(&client->pair, provider, NULL);
	pair_do(&client->pair.other, "serve");
	need(!weft_stub_open(client->pair.peer, &calls__test__descriptor, &client->stub));
}

static void close_client(struct client *client)
{
	weft_stub_close(client->stub);
	pair_close(&client->pair);
}

/* The service for one invocation, whose operation is @op. */
static ProtobufCService *once(struct weft_stub *stub, uint64_t timeout_ns, struct weft_op **op)
{
	struct weft_call_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = timeout_ns },
	};
	ProtobufCService *one = NULL;

	need(!weft_call_open(stub, &options, &one, op));
	return one;
}

typedef void invoke_fn(ProtobufCService *, const Calls__Request *, Calls__Response_Closure, void *);

/* Begin a call with @request_bytes for @response_bytes. */
static struct weft_op *begin(struct weft_stub *stub, invoke_fn *invoke, size_t request_bytes,
			     uint32_t response_bytes, uint32_t sleep_ms, struct heard *heard)
{
	Calls__Request request = CALLS__REQUEST__INIT;
	struct weft_op *op;

	request.response_bytes = response_bytes;
	request.sleep_ms = sleep_ms;
	request.payload.len = request_bytes;
	request.payload.data = malloc(request_bytes + 1);
	pair_fill(request.payload.data, request_bytes, 1);
	*heard = (struct heard){ 0 };
	invoke(once(stub, 0, &op), &request, hear_response, heard);
	free(request.payload.data);
	return op;
}

static void finish(struct weft_op *op, const struct heard *heard, size_t bytes)
{
	pair_ended(op, WEFT_OK);
	need(atomic_load(&heard->count) == 1 && heard->good && heard->bytes == bytes);
	need(heard->status == WEFT_OK && !heard->text[0]);
	need(!weft_op_tensor(op, NULL));
	weft_op_free(op);
}

static void a_reply_stays_until_its_operation_is_freed(void **state)
{
	Calls__Request request = CALLS__REQUEST__INIT;
	const Calls__Response *reply;
	struct client client;
	struct weft_op *op;

	(void)state;
	open_client(&client, pair_any());
	request.response_bytes = 1000;
	calls__test__unary(once(client.stub, 0, &op), &request, NULL, NULL);
	pair_ended(op, WEFT_OK);
	reply = (const Calls__Response *)(const void *)weft_call_reply(op);
	need(reply && reply->payload.len == 1000);
	need(pair_matches(reply->payload.data, 1000, 2));
	weft_op_free(op);
	calls__test__unary(once(client.stub, 1, &op), &request, NULL, NULL);
	pair_ended(op, WEFT_DEADLINE_EXCEEDED);
	need(!weft_call_reply(op));
	weft_op_free(op);
	close_client(&client);
}

static void an_empty_call_gets_an_empty_answer(void **state)
{
	Calls__Nothing request = CALLS__NOTHING__INIT;
	struct client client;
	struct weft_op *op;
	uint64_t until;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct heard heard = { 0 }, plain = { 0 };

		open_client(&client, at);
		calls__test__empty(once(client.stub, 0, &op), &request, hear_empty, &heard);
		pair_ended(op, WEFT_OK);
		assert_int_equal(atomic_load(&heard.count), 1);
		assert_true(heard.good);
		assert_int_equal(weft_op_executed(op), WEFT_EXECUTED_YES);
		weft_op_free(op);

		/* As a program does that knows nothing of weft but the stub. */
		calls__test__empty(weft_stub_service(client.stub), &request, hear_empty, &plain);
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (!atomic_load(&plain.count) && pair_now_ns() < until)
			pair_sleep_ms(1);
		assert_int_equal(atomic_load(&plain.count), 1);
		assert_true(plain.good);
		assert_int_equal(weft_reply_status(NULL), WEFT_UNKNOWN);
		close_client(&client);
	}
}

static void requests_and_answers_may_be_large(void **state)
{
	static const struct {
		size_t request;
		uint32_t response;
	} rows[] = { { REQUEST_BYTES, RESPONSE_BYTES }, { 0, 1 }, { 4000, 70000 },
		     { 10, 5000000 }, { 5000000, 10 } };
	struct heard heard[PAIR_COUNT(rows)];
	struct weft_op *ops[PAIR_COUNT(rows)];
	struct client client;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		open_client(&client, at);
		for (size_t i = 0; i < PAIR_COUNT(rows); i++) {
			ops[i] = begin(client.stub, calls__test__unary, rows[i].request,
				       rows[i].response, 0, &heard[i]);
			finish(ops[i], &heard[i], rows[i].response);
		}
		for (size_t i = 0; i < PAIR_COUNT(rows); i++)
			ops[i] = begin(client.stub, calls__test__unary, rows[i].request,
				       rows[i].response, 0, &heard[i]);
		for (size_t i = 0; i < PAIR_COUNT(rows); i++)
			finish(ops[i], &heard[i], rows[i].response);
		close_client(&client);
	}
}

static void a_thousand_large_calls_may_be_outstanding(void **state)
{
	enum { COUNT = 1000 };
	struct heard *heard = calloc(COUNT, sizeof(*heard));
	struct weft_op **ops = calloc(COUNT, sizeof(struct weft_op *));
	struct client client;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		open_client(&client, at);
		for (unsigned i = 0; i < COUNT; i++)
			ops[i] = begin(client.stub, calls__test__unary, REQUEST_BYTES,
				       RESPONSE_BYTES, 0, &heard[i]);
		for (unsigned i = 0; i < COUNT; i++)
			finish(ops[i], &heard[i], RESPONSE_BYTES);
		close_client(&client);
	}
	free(heard);
	free(ops);
}

static void a_status_and_its_message_come_back(void **state)
{
	static const struct {
		enum weft_status status;
		const char *text;
	} rows[] = {
		{ WEFT_UNKNOWN, "test status message" },
		{ WEFT_UNKNOWN, "\t\ntest with whitespace\r\nand Unicode BMP \xe2\x98\xba and "
				"non-BMP \xf0\x9f\x98\x88\t\n" },
		{ WEFT_UNAUTHENTICATED, "the last code" },
		{ WEFT_CANCELLED, "the first" },
	};
	struct client client;
	struct weft_op *op;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		open_client(&client, at);
		for (size_t i = 0; i < PAIR_COUNT(rows); i++) {
			Calls__Request request = CALLS__REQUEST__INIT;
			Calls__Status status = CALLS__STATUS__INIT;
			struct heard heard = { 0 };

			status.code = (int32_t)rows[i].status;
			status.message = (char *)rows[i].text;
			request.status = &status;
			calls__test__unary(once(client.stub, 0, &op), &request, hear_response,
					   &heard);
			pair_ended(op, rows[i].status);
			assert_string_equal(weft_op_message(op), rows[i].text);
			assert_int_equal(weft_op_executed(op), WEFT_EXECUTED_YES);
			assert_int_equal(atomic_load(&heard.count), 1);
			assert_false(heard.good);
			assert_int_equal(heard.status, rows[i].status);
			assert_string_equal(heard.text, rows[i].text);
			weft_op_free(op);
		}
		close_client(&client);
	}
}

static void a_method_that_is_not_served_is_unimplemented(void **state)
{
	ProtobufCMethodDescriptor methods[8];
	ProtobufCServiceDescriptor no_method = calls__test__descriptor,
				   no_service = calls__test__descriptor;
	const ProtobufCServiceDescriptor *descriptors[] = { &no_method, &no_service };
	Calls__Nothing request = CALLS__NOTHING__INIT;
	ProtobufCService *one;
	struct weft_stub *stub;
	struct client client;
	struct weft_op *op;

	(void)state;
	memcpy(methods, no_method.methods, sizeof(methods[0]) * no_method.n_methods);
	methods[0].name = "Unimplemented";
	no_method.methods = methods;
	no_service.name = "calls.Nobody";
	for (const char *at = pair_first(); at; at = pair_next()) {
		open_client(&client, at);
		for (size_t i = 0; i < PAIR_COUNT(descriptors); i++) {
			struct heard heard = { 0 };

			assert_int_equal(weft_stub_open(client.pair.peer, descriptors[i], &stub), 0);
			/* Generated functions insist on their own descriptor. */
			one = once(stub, 0, &op);
			one->invoke(one, 0, &request.base, (ProtobufCClosure)hear_empty, &heard);
			weft_stub_close(stub);
			pair_ended(op, WEFT_UNIMPLEMENTED);
			assert_int_equal(heard.status, WEFT_UNIMPLEMENTED);
			assert_int_equal(weft_op_executed(op), WEFT_EXECUTED_NO);
			weft_op_free(op);
		}
		/* The good one goes on. */
		struct heard heard;
		op = begin(client.stub, calls__test__unary, 100, 100, 0, &heard);
		finish(op, &heard, 100);
		close_client(&client);
	}
}

struct seen {
	int handled, cancelled;
	uint64_t first_left_ns, last_left_ns;
};

static struct seen ask_seen(struct client *client, int cancelled)
{
	struct seen seen = { 0 };

	need(sscanf(pair_do(&client->pair.other, "seen %d", cancelled),
		    "%d %d %" SCNu64 " %" SCNu64, &seen.handled, &seen.cancelled,
		    &seen.first_left_ns, &seen.last_left_ns) == 4);
	return seen;
}

static void a_deadline_is_enforced_on_both_sides(void **state)
{
	Calls__Request request = CALLS__REQUEST__INIT;
	struct client client;
	struct weft_op *op;
	struct seen seen;
	uint64_t began;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct heard heard = { 0 };

		open_client(&client, at);
		pair_ping(client.pair.peer);
		began = pair_now_ns();
		calls__test__never(once(client.stub, 2000 * PAIR_MS, &op), &request, hear_empty,
				   &heard);
		pair_ended(op, WEFT_DEADLINE_EXCEEDED);
		assert_true(pair_now_ns() - began >= 2000 * PAIR_MS);
		assert_true(pair_now_ns() - began < PAIR_LIMIT_NS);
		assert_int_equal(atomic_load(&heard.count), 1);
		assert_int_equal(heard.status, WEFT_DEADLINE_EXCEEDED);
		weft_op_free(op);
		seen = ask_seen(&client, 1);
		assert_int_equal(seen.cancelled, 1);
		assert_true(seen.first_left_ns > 0 && seen.first_left_ns <= 2000 * PAIR_MS);
		/* Its own clock, or the cancel of a caller whose time was up. */
		assert_true(seen.last_left_ns < 1000 * PAIR_MS);
		close_client(&client);
		assert_int_equal(atomic_load(&heard.count), 1);
	}
}

static void a_deadline_that_has_passed_starts_nothing(void **state)
{
	Calls__Nothing request = CALLS__NOTHING__INIT;
	struct client client;
	struct weft_op *op;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct heard heard = { 0 };

		open_client(&client, at);
		pair_ping(client.pair.peer);
		calls__test__empty(once(client.stub, 1, &op), &request, hear_empty, &heard);
		pair_ended(op, WEFT_DEADLINE_EXCEEDED);
		assert_int_equal(weft_op_executed(op), WEFT_EXECUTED_NO);
		assert_int_equal(atomic_load(&heard.count), 1);
		weft_op_free(op);
		pair_ping(client.pair.peer);
		assert_int_equal(ask_seen(&client, 0).handled, 0);
		close_client(&client);
	}
}

static void a_cancel_reaches_the_handler(void **state)
{
	Calls__Request request = CALLS__REQUEST__INIT;
	struct client client;
	struct weft_op *op;
	struct seen seen;
	uint64_t until;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct heard heard = { 0 };

		open_client(&client, at);
		calls__test__never(once(client.stub, 0, &op), &request, hear_empty, &heard);
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (!ask_seen(&client, 0).handled && pair_now_ns() < until)
			;
		assert_false(weft_op_ended(op));
		weft_cancel(op);
		pair_ended(op, WEFT_CANCELLED);
		assert_int_equal(heard.status, WEFT_CANCELLED);
		assert_int_not_equal(weft_op_executed(op), WEFT_EXECUTED_NO);
		weft_op_free(op);
		seen = ask_seen(&client, 1);
		assert_int_equal(seen.cancelled, 1);
		assert_true(seen.last_left_ns > 0);
		close_client(&client);
	}
}

static void a_call_without_a_deadline_has_for_ever_left(void **state)
{
	Calls__Request request = CALLS__REQUEST__INIT;
	struct client client;
	struct weft_op *op;
	struct seen seen;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct heard heard = { 0 };

		open_client(&client, at);
		pair_ping(client.pair.peer);
		calls__test__never(once(client.stub, WEFT_FOREVER, &op), &request, hear_empty,
				   &heard);
		pair_ping(client.pair.peer);
		pair_sleep_ms(20);
		/* A client that goes away is as good as a cancel. */
		weft_stub_close(client.stub);
		client.stub = NULL;
		assert_int_equal(weft_node_close(client.pair.node), 0);
		assert_int_equal(weft_op_status(op), WEFT_CANCELLED);
		assert_int_equal(atomic_load(&heard.count), 1);
		weft_op_free(op);
		seen = ask_seen(&client, 1);
		assert_int_equal(seen.cancelled, 1);
		assert_true(seen.first_left_ns == WEFT_FOREVER);
		client.pair.other.peer = NULL;
		pair_end(&client.pair.other);
	}
}

static void answers_may_come_later_from_other_threads(void **state)
{
	enum { COUNT = 8 };
	struct heard heard[COUNT];
	struct weft_op *ops[COUNT];
	struct client client;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		open_client(&client, at);
		/* The first to ask is the last to be answered. */
		for (unsigned i = 0; i < COUNT; i++)
			ops[i] = begin(client.stub, calls__test__later, 100 + 40000 * (i % 2),
				       1000 * i * i * i, 10 * (COUNT - i), &heard[i]);
		for (unsigned i = 0; i < COUNT; i++)
			finish(ops[i], &heard[i], 1000 * i * i * i);
		close_client(&client);
	}
}

static void a_handler_may_call_its_caller(void **state)
{
	Calls__Nothing request = CALLS__NOTHING__INIT;
	struct client client;
	struct weft_op *op;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct heard heard = { 0 };

		open_client(&client, at);
		atomic_store(&handled_count, 0);
		assert_int_equal(weft_serve(client.pair.node, &service.base), 0);
		calls__test__bounce(once(client.stub, 0, &op), &request, hear_empty, &heard);
		pair_ended(op, WEFT_OK);
		assert_true(heard.good);
		assert_int_equal(atomic_load(&handled_count), 1);
		weft_op_free(op);
		close_client(&client);
	}
}

/* Wait until the handlers of this process have seen so many of each. */
static void wait_for(int handled, int cancelled)
{
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;

	while ((atomic_load(&handled_count) < handled || atomic_load(&cancelled_count) < cancelled) &&
	       pair_now_ns() < until)
		pair_sleep_ms(1);
	assert_int_equal(atomic_load(&handled_count), handled);
	assert_int_equal(atomic_load(&cancelled_count), cancelled);
}

static void a_call_for_another_ends_with_it(void **state)
{
	Calls__Request request = CALLS__REQUEST__INIT;
	struct client client;
	struct weft_op *op;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct heard heard = { 0 };

		open_client(&client, at);
		assert_int_equal(weft_serve(client.pair.node, &service.base), 0);

		/* Cancelled, it reaches through both. */
		atomic_store(&handled_count, 0);
		atomic_store(&cancelled_count, 0);
		calls__test__relay(once(client.stub, 0, &op), &request, hear_empty, &heard);
		wait_for(1, 0);
		weft_cancel(op);
		pair_ended(op, WEFT_CANCELLED);
		weft_op_free(op);
		wait_for(1, 1);

		/* And it has no more time than the first. */
		calls__test__relay(once(client.stub, 2000 * PAIR_MS, &op), &request, hear_empty,
				   &heard);
		pair_ended(op, WEFT_DEADLINE_EXCEEDED);
		weft_op_free(op);
		wait_for(2, 2);
		assert_in_range(atomic_load(&first_left_ns), 1, 2000 * PAIR_MS);
		close_client(&client);
	}
}

static void a_freed_call_goes_on_and_one_never_made_ends(void **state)
{
	struct client client;
	struct weft_op *op;
	struct heard heard;
	uint64_t until;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		open_client(&client, at);
		op = begin(client.stub, calls__test__unary, 100, 100, 0, &heard);
		weft_op_free(op);
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (!atomic_load(&heard.count) && pair_now_ns() < until)
			pair_sleep_ms(1);
		assert_int_equal(atomic_load(&heard.count), 1);
		assert_true(heard.good);

		/* Opened, and never invoked. */
		once(client.stub, 0, &op);
		weft_op_free(op);
		close_client(&client);
	}
}

static void a_call_waits_for_a_peer_that_is_not_there_yet(void **state)
{
	struct weft_node_options options;
	struct pair_other other;
	struct weft_stub *stub;
	struct weft_node *node;
	struct weft_peer *peer;
	struct heard heard;
	struct weft_op *op;
	char address[32];

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		pair_free_address(address);
		assert_int_equal(weft_node_open(&options, &node), 0);
		assert_int_equal(weft_peer_open(node, address, &peer), 0);
		assert_int_equal(weft_stub_open(peer, &calls__test__descriptor, &stub), 0);
		op = begin(stub, calls__test__unary, 100000, 1000, 0, &heard);
		pair_sleep_ms(300);
		assert_false(weft_op_ended(op));
		/* It is reached and does not serve yet; then it serves. */
		pair_start(&other, at, address, node);
		pair_ended(op, WEFT_UNIMPLEMENTED);
		weft_op_free(op);
		pair_do(&other, "serve");
		op = begin(stub, calls__test__unary, 100000, 1000, 0, &heard);
		finish(op, &heard, 1000);
		weft_stub_close(stub);
		weft_peer_close(peer);
		pair_end(&other);
		assert_int_equal(weft_node_close(node), 0);
	}
}

static void a_service_given_at_opening_answers_the_call_that_waited(void **state)
{
	ProtobufCService *twice[] = { &service.base, &service.base, NULL };
	ProtobufCService *services[] = { &service.base, NULL };
	struct weft_node_options options;
	struct weft_node *node, *server;
	struct weft_stub *stub;
	struct weft_peer *peer;
	struct heard heard;
	struct weft_op *op;
	char address[32];

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(pair_within_process(at));
		pair_free_address(address);
		assert_int_equal(weft_node_open(&options, &node), 0);
		assert_int_equal(weft_peer_open(node, address, &peer), 0);
		assert_int_equal(weft_stub_open(peer, &calls__test__descriptor, &stub), 0);
		op = begin(stub, calls__test__unary, 100000, 1000, 0, &heard);
		options.listen = address;
		options.services = twice;
		assert_int_equal(weft_node_open(&options, &server), -EEXIST);
		options.services = services;
		assert_int_equal(weft_node_open(&options, &server), 0);
		finish(op, &heard, 1000);
		weft_stub_close(stub);
		weft_peer_close(peer);
		assert_int_equal(weft_node_close(node), 0);
		assert_int_equal(weft_node_close(server), 0);
	}
}

static void a_port_where_nobody_listens_is_unavailable(void **state)
{
	struct weft_node_options options;
	struct weft_stub *stub;
	struct weft_node *node;
	struct weft_peer *peer;
	struct heard heard;
	struct weft_op *op;
	char address[32];
	uint64_t took;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		pair_free_address(address);
		setenv("WEFT_CONNECT_TIMEOUT", "1s", 1);
		assert_int_equal(weft_node_open(&options, &node), 0);
		unsetenv("WEFT_CONNECT_TIMEOUT");
		assert_int_equal(weft_peer_open(node, address, &peer), 0);
		assert_int_equal(weft_stub_open(peer, &calls__test__descriptor, &stub), 0);
		took = pair_now_ns();
		op = begin(stub, calls__test__unary, 100, 1000, 0, &heard);
		pair_ended(op, WEFT_UNAVAILABLE);
		took = pair_now_ns() - took;
		assert_in_range(took, 500 * PAIR_MS, PAIR_LIMIT_NS);
		assert_non_null(strstr(weft_op_message(op), address));
		assert_int_equal(weft_op_executed(op), WEFT_EXECUTED_NO);
		assert_int_equal(heard.status, WEFT_UNAVAILABLE);
		weft_op_free(op);
		weft_stub_close(stub);
		weft_peer_close(peer);
		assert_int_equal(weft_node_close(node), 0);
	}
}

static void a_killed_server_ends_the_calls_it_had(void **state)
{
	Calls__Request request = CALLS__REQUEST__INIT;
	struct client client;
	struct weft_op *op;
	uint64_t until;

	(void)state;
	setenv("WEFT_LOST", "120s", 1); /* longer than any wait here: the kernel tells of a death */
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct heard heard = { 0 };

		open_client(&client, at);
		calls__test__never(once(client.stub, 0, &op), &request, hear_empty, &heard);
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (!ask_seen(&client, 0).handled && pair_now_ns() < until)
			;
		pair_kill(&client.pair.other, SIGKILL);
		client.pair.peer = NULL;
		pair_ended(op, WEFT_UNAVAILABLE);
		/* It may have done what it was asked before it died. */
		assert_int_equal(weft_op_executed(op), WEFT_EXECUTED_MAYBE);
		assert_int_equal(heard.status, WEFT_UNAVAILABLE);
		weft_op_free(op);
		close_client(&client);
	}
	unsetenv("WEFT_LOST");
}

/* A call of the test's own service that nobody answers. */
static void do_call(struct pair *side, char *arguments)
{
	static struct heard heard;
	Calls__Request request = CALLS__REQUEST__INIT;
	struct weft_stub *stub;
	struct weft_op *op;

	(void)arguments;
	need(!weft_stub_open(side->peer, &calls__test__descriptor, &stub));
	calls__test__never(once(stub, WEFT_FOREVER, &op), &request, hear_empty, &heard);
	pair_ping(side->peer);
}

static void a_handler_learns_that_its_caller_was_killed(void **state)
{
	struct pair pair;
	uint64_t until;

	(void)state;
	setenv("WEFT_LOST", "120s", 1); /* longer than any wait here: the kernel tells of a death */
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		do_serve(&pair, NULL);
		pair_do(&pair.other, "call");
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (!atomic_load(&handled_count) && pair_now_ns() < until)
			pair_sleep_ms(1);
		assert_int_equal(atomic_load(&handled_count), 1);
		assert_int_equal(atomic_load(&cancelled_count), 0);
		pair_kill(&pair.other, SIGKILL);
		pair.peer = NULL;
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (!atomic_load(&cancelled_count) && pair_now_ns() < until)
			pair_sleep_ms(1);
		assert_int_equal(atomic_load(&cancelled_count), 1);
		pair_close(&pair);
	}
	unsetenv("WEFT_LOST");
}

static const struct pair_command commands[] = {
	{ "serve", do_serve },
	{ "call", do_call },
	{ "seen", do_seen },
	{ NULL, NULL },
};

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(pair_name_the_missing),
		TEST(a_reply_stays_until_its_operation_is_freed),
		TEST(an_empty_call_gets_an_empty_answer),
		TEST(requests_and_answers_may_be_large),
		TEST(a_thousand_large_calls_may_be_outstanding),
		TEST(a_status_and_its_message_come_back),
		TEST(a_method_that_is_not_served_is_unimplemented),
		TEST(a_deadline_is_enforced_on_both_sides),
		TEST(a_deadline_that_has_passed_starts_nothing),
		TEST(a_cancel_reaches_the_handler),
		TEST(a_call_without_a_deadline_has_for_ever_left),
		TEST(answers_may_come_later_from_other_threads),
		TEST(a_handler_may_call_its_caller),
		TEST(a_call_for_another_ends_with_it),
		TEST(a_freed_call_goes_on_and_one_never_made_ends),
		TEST(a_call_waits_for_a_peer_that_is_not_there_yet),
		TEST(a_service_given_at_opening_answers_the_call_that_waited),
		TEST(a_port_where_nobody_listens_is_unavailable),
		TEST(a_killed_server_ends_the_calls_it_had),
		TEST(a_handler_learns_that_its_caller_was_killed),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	cmocka_set_skip_filter(argc > 2 ? argv[2] : NULL);
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
