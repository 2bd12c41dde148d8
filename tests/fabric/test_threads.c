/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many user threads on two threaded nodes at once, over every provider that
 * this host has: what the interface allows from any thread holds when all do
 * it.  Most of it is for ThreadSanitizer; without it the outcomes count.
 *
 * In a thread no need() and no assertion: it returns what went wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/health.pb-c.h"
#include "tests/fabric/calls.pb-c.h"
#include "pair.h"

#define ROUNDS 100 /* of each thread, on each provider */
#define REQUEST_BYTES 30000
#define STALL "2ms" /* so short that the watchdog has something to tell */

static struct weft_node *here, *there;
static struct weft_peer *to_there, *to_here;
static struct weft_stub *stub;

/* What a thread says when @condition does not hold. */
#define TEXT_(line) #line
#define TEXT(line) TEXT_(line)
#define WRONG(condition) "line " TEXT(__LINE__) ": not: " #condition

/* A frame, a few frames, a pull of one chunk and of some. */
static const size_t sizes[] = { 100, 20000, 300000, 3000000 };

static size_t size_of(unsigned round)
{
	return sizes[round % PAIR_COUNT(sizes)];
}

/* Did @op end well?  Frees it. */
static bool ends_well(struct weft_op *op)
{
	bool good = !weft_wait(op, PAIR_LIMIT_NS) && weft_op_status(op) == WEFT_OK;

	if (!good)
		fprintf(stderr, "%s: %s\n", weft_status_name(weft_op_status(op)),
			weft_op_message(op));
	weft_op_free(op);
	return good;
}

/* Tensors, each way by two threads. */

static void *send_tensors(void *arg)
{
	struct weft_peer *to = arg;
	char *bytes = malloc(sizes[PAIR_COUNT(sizes) - 1]);
	const char *wrong = NULL;
	struct weft_op *op;

	for (unsigned i = 0; i < ROUNDS && !wrong; i++) {
		int64_t count = (int64_t)size_of(i);
		const struct weft_tensor tensor = pair_tensor(bytes, &count);

		pair_fill(bytes, size_of(i), i);
		if (weft_send(to, i, "k", 1, &tensor, NULL, &op) || !ends_well(op))
			wrong = WRONG(sent);
	}
	free(bytes);
	return (void *)(uintptr_t)wrong;
}

static void *receive_tensors(void *arg)
{
	struct weft_node *node = arg;
	const struct weft_tensor *got;
	struct weft_op *op;

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (weft_recv(node, NULL, i, "k", 1, NULL, NULL, &op) ||
		    weft_wait(op, PAIR_LIMIT_NS))
			return (void *)(uintptr_t)WRONG(received);
		got = weft_op_tensor(op, NULL);
		if (!got || !weft_op_peer(op) || !*weft_peer_name(weft_op_peer(op)) ||
		    !pair_matches(got->data, size_of(i), i))
			return (void *)(uintptr_t)WRONG(right bytes);
		/* In turn: freed with the operation, or taken and freed later. */
		if (i % 2) {
			void *memory = weft_op_take(op);

			weft_op_free(op);
			weft_free(node, memory);
		} else {
			weft_op_free(op);
		}
	}
	return NULL;
}

/* Operations that a callback frees, on the worker. */

static void count_and_free(struct weft_op *op, void *arg)
{
	if (weft_op_status(op) == WEFT_OK)
		atomic_fetch_add((atomic_uint *)arg, 1);
	weft_op_free(op);
}

static void *ping_with_callbacks(void *arg)
{
	atomic_uint count = 0;
	const struct weft_op_options options = { .size = sizeof(options),
						 .done = count_and_free,
						 .arg = &count };
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;
	struct weft_op *op;

	for (unsigned i = 0; i < ROUNDS; i++)
		if (weft_ping(arg, &options, &op))
			return (void *)(uintptr_t)WRONG(pinged);
	while (atomic_load(&count) < ROUNDS && pair_now_ns() < until)
		pair_sleep_ms(1);
	return atomic_load(&count) == ROUNDS ? NULL : (void *)(uintptr_t)WRONG(all told);
}

/* Calls, answered by other threads. */

struct later {
	Calls__Response_Closure closure;
	void *closure_data;
	uint32_t bytes;
};

static atomic_uint answering; /* calls that were put off: a node may not close before they are answered */

static void *answer(void *arg)
{
	struct later *later = arg;
	Calls__Response reply = CALLS__RESPONSE__INIT;

	reply.payload.len = later->bytes;
	reply.payload.data = calloc(1, later->bytes + 1u);
	if (weft_served_cancelled(later->closure_data) || !weft_served_left_ns(later->closure_data))
		weft_served_fail(later->closure_data, WEFT_ABORTED, "nobody wants to know");
	else
		later->closure(&reply, later->closure_data);
	free(reply.payload.data);
	free(later);
	atomic_fetch_sub(&answering, 1);
	return NULL;
}

static void handle_later(Calls__Test_Service *service, const Calls__Request *request,
			 Calls__Response_Closure closure, void *closure_data)
{
	struct later *later = malloc(sizeof(*later));
	pthread_t thread;

	(void)service;
	*later = (struct later){ closure, closure_data, request->response_bytes };
	weft_served_defer(closure_data);
	atomic_fetch_add(&answering, 1);
	if (pthread_create(&thread, NULL, answer, later))
		abort();
	pthread_detach(thread);
}

static Calls__Test_Service service;

static void keep_bytes(const Calls__Response *reply, void *arg)
{
	size_t *bytes = arg;

	*bytes = reply ? reply->payload.len : 0;
}

static void *call(void *arg)
{
	static uint8_t payload[REQUEST_BYTES];
	Calls__Request request = CALLS__REQUEST__INIT;
	ProtobufCService *once;
	struct weft_op *op;
	size_t bytes;

	(void)arg;
	request.payload.data = payload;
	request.payload.len = sizeof(payload);
	for (unsigned i = 0; i < ROUNDS; i++) {
		enum weft_status status;

		if (weft_call_open(stub, NULL, &once, &op))
			return (void *)(uintptr_t)WRONG(opened);
		request.response_bytes = (uint32_t)size_of(i);
		calls__test__later(once, &request, (Calls__Response_Closure)keep_bytes, &bytes);
		if (i % 4 == 3)
			weft_cancel(op);
		if (weft_wait(op, PAIR_LIMIT_NS))
			return (void *)(uintptr_t)WRONG(ended);
		status = weft_op_status(op);
		weft_op_free(op);
		if (status == WEFT_OK ? bytes != size_of(i) :
					i % 4 != 3 || status != WEFT_CANCELLED)
			return (void *)(uintptr_t)WRONG(answered or cancelled);
	}
	return NULL;
}

/* What ends early, one way or the other, also without its user. */
static void *cancel(void *arg)
{
	const struct weft_recv_options soon = {
		.size = sizeof(soon),
		.op = { .size = sizeof(soon.op), .timeout_ns = PAIR_MS }
	};
	struct weft_op *op;

	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (weft_recv(here, to_there, i, "nobody", 6, NULL, i % 2 ? &soon : NULL, &op))
			return (void *)(uintptr_t)WRONG(begun);
		if (i % 2 == 0)
			weft_cancel(op);
		if (i % 3 == 0) {
			weft_op_free(op);
			continue;
		}
		if (weft_wait(op, PAIR_LIMIT_NS) || weft_op_status(op) == WEFT_OK ||
		    !*weft_op_message(op))
			return (void *)(uintptr_t)WRONG(ended early);
		weft_op_free(op);
	}
	return NULL;
}

/* Peers that come and go, some of which never were. */
static void *open_peers(void *arg)
{
	const struct weft_op_options soon = { .size = sizeof(soon), .timeout_ns = 5 * PAIR_MS };
	struct weft_peer *known, *nobody;
	struct weft_op *ping, *lost;

	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (weft_peer_open(here, weft_node_address(there), &known) ||
		    weft_peer_open(here, "127.0.0.1:1", &nobody) ||
		    weft_ping(known, NULL, &ping) || weft_ping(nobody, &soon, &lost))
			return (void *)(uintptr_t)WRONG(opened);
		weft_peer_close(known);
		weft_peer_close(nobody);
		if (!*weft_peer_name(known) || !ends_well(ping))
			return (void *)(uintptr_t)WRONG(reached);
		if (weft_wait(lost, PAIR_LIMIT_NS) || weft_op_status(lost) == WEFT_OK)
			return (void *)(uintptr_t)WRONG(nobody there);
		weft_op_free(lost);
	}
	return NULL;
}

/* Steps that end while somebody waits in them. */
static void *end_steps(void *arg)
{
	const uint64_t first = 1000000; /* others use steps, too */
	struct weft_op *op;

	(void)arg;
	for (uint64_t step = first; step < first + ROUNDS; step++) {
		if (weft_recv(here, to_there, step, "k", 1, NULL, NULL, &op) ||
		    (step % 2 ? weft_step_end(here, step) :
				weft_step_abort(here, step, WEFT_ABORTED, "by a thread")))
			return (void *)(uintptr_t)WRONG(begun and ended);
		if (step % 2)
			weft_cancel(op);
		if (weft_wait(op, PAIR_LIMIT_NS) || weft_op_status(op) == WEFT_OK)
			return (void *)(uintptr_t)WRONG(ended early);
		weft_op_free(op);
	}
	return NULL;
}

/* Tensors that are asked for until they have come, and then received by their step alone. */
static void *probe_and_receive(void *arg)
{
	const uint64_t first = 2000000; /* others use steps, too */
	const struct weft_recv_options any = { .size = sizeof(any), .flags = WEFT_ANY_KEY };
	struct weft_probe_info info = { .size = sizeof(info) };
	struct weft_op *sent, *received;
	char bytes[20000] = "";

	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		int64_t count = (int64_t)sizeof(bytes);
		const struct weft_tensor tensor = pair_tensor(bytes, &count);
		uint64_t until_ns = pair_now_ns() + PAIR_LIMIT_NS;

		if (weft_send(to_there, first + i, "m", 1, &tensor, NULL, &sent))
			return (void *)(uintptr_t)WRONG(sent);
		while (weft_probe(there, NULL, first + i, "m", 1, &info))
			if (pair_now_ns() > until_ns)
				return (void *)(uintptr_t)WRONG(found in time);
		if (info.bytes != sizeof(bytes) ||
		    weft_probe(there, info.peer, first + i, "m", 1, NULL))
			return (void *)(uintptr_t)WRONG(found from its sender);
		if (weft_recv(there, i % 2 ? info.peer : NULL, first + i, NULL, 0, NULL, &any,
			      &received) || weft_wait(received, PAIR_LIMIT_NS) ||
		    !weft_op_key(received, NULL) || *(const char *)weft_op_key(received, NULL) != 'm')
			return (void *)(uintptr_t)WRONG(received with its key);
		if (!ends_well(received) || !ends_well(sent))
			return (void *)(uintptr_t)WRONG(ended well);
	}
	return NULL;
}

/* The log of one node: stalls are many here, and never told by two at once. */
static void heed(void *arg, int level, const char *line)
{
	atomic_uint *in_use = arg;

	(void)level;
	if (atomic_fetch_add(in_use, 1) || !*line)
		abort();
	atomic_fetch_sub(in_use, 1);
}

static void *look(void *arg)
{
	struct weft_counters counters = { .size = sizeof(counters) };
	FILE *nowhere = fopen("/dev/null", "w");
	void *memory, *wrong = NULL;

	(void)arg;
	for (unsigned i = 0; i < ROUNDS && !wrong; i++) {
		if (weft_node_counters(here, &counters) || weft_node_counters(there, &counters) ||
		    weft_dump(here, nowhere) || weft_dump(there, nowhere))
			wrong = (void *)(uintptr_t)WRONG(seen);
		else if (weft_alloc(here, 100000, &memory))
			wrong = (void *)(uintptr_t)WRONG(taken);
		else
			weft_free(here, memory);
	}
	fclose(nowhere);
	return wrong;
}

/* One operation for which several wait, and look at it meanwhile. */

static void *wait_too(void *arg)
{
	struct weft_path path = { .size = sizeof(path) };
	struct weft_op *op = arg;

	while (!weft_op_ended(op))
		(void)weft_op_status(op);
	if (weft_wait(op, PAIR_LIMIT_NS) || weft_op_status(op) != WEFT_OK ||
	    weft_op_path(op, &path))
		return (void *)(uintptr_t)WRONG(ended well);
	return NULL;
}

static void *wait_together(void *arg)
{
	void *wrong = NULL, *other = NULL;
	struct weft_op *op;
	pthread_t thread;

	(void)arg;
	for (unsigned i = 0; i < ROUNDS / 4 && !wrong && !other; i++) {
		if (weft_ping(to_there, NULL, &op) ||
		    pthread_create(&thread, NULL, wait_too, op))
			return (void *)(uintptr_t)WRONG(begun);
		wrong = wait_too(op);
		pthread_join(thread, &other);
		weft_op_free(op);
	}
	return wrong ? wrong : other;
}

/* Memory near to the NICs, which all workers of a node have to register and let go. */
static void *use_near(void *arg)
{
	struct weft_node *node = arg;
	struct weft_placement place = { .size = sizeof(place) };

	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		size_t bytes = size_of(i);
		void *memory;

		if (weft_alloc_near(node, bytes, NULL, &memory))
			return (void *)(uintptr_t)WRONG(given);
		memset(memory, (int)i, bytes);
		if (weft_memory_place(node, memory, &place) || place.bytes < bytes ||
		    weft_retain(node, memory))
			return (void *)(uintptr_t)WRONG(placed and retained);
		weft_free(node, memory);
		if (((unsigned char *)memory)[bytes - 1] != i)
			return (void *)(uintptr_t)WRONG(kept);
		weft_free(node, memory);
	}
	return NULL;
}

static void *close_here(void *arg)
{
	(void)arg;
	return weft_node_close(here) ? (void *)(uintptr_t)WRONG(closed) : NULL;
}

static void do_everything(unsigned workers)
{
	atomic_uint here_in_use = 0, there_in_use = 0;
	pthread_t threads[16], closing;
	struct weft_node_options options;
	size_t count = 0;
	uint64_t until;
	void *wrong;

	calls__test__init(&service, NULL);
	service.later = handle_later;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(pair_within_process(at));
		options.workers = workers;
		options.log = heed;
		options.log_arg = &here_in_use;
		assert_int_equal(weft_node_open(&options, &here), 0);
		options.log_arg = &there_in_use;
		assert_int_equal(weft_node_open(&options, &there), 0);
		assert_int_equal(weft_serve(there, &service.base), 0);
		assert_int_equal(weft_peer_open(here, weft_node_address(there), &to_there), 0);
		assert_int_equal(weft_peer_open(there, weft_node_address(here), &to_here), 0);
		assert_int_equal(weft_stub_open(to_there, &calls__test__descriptor, &stub), 0);

		const struct {
			void *(*run)(void *arg);
			void *arg;
		} jobs[] = {
			{ send_tensors, to_there }, { receive_tensors, there },
			{ send_tensors, to_here },  { receive_tensors, here },
			{ ping_with_callbacks, to_there }, { ping_with_callbacks, to_here },
			{ call, NULL },	      { cancel, NULL }, { open_peers, NULL },
			{ look, NULL },	      { wait_together, NULL }, { end_steps, NULL },
			{ probe_and_receive, NULL },
			{ use_near, here },   { use_near, here },
		};

		for (count = 0; count < PAIR_COUNT(jobs); count++)
			assert_int_equal(pthread_create(&threads[count], NULL, jobs[count].run,
							jobs[count].arg), 0);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(pthread_join(threads[i], &wrong), 0);
			if (wrong)
				fail_msg("%s", (char *)wrong);
		}
		/* Callers that have cancelled wait neither for their calls to come nor for these. */
		pair_ping(to_there);
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (atomic_load(&answering) && pair_now_ns() < until)
			pair_sleep_ms(1);
		assert_int_equal(atomic_load(&answering), 0);
		weft_stub_close(stub);
		weft_peer_close(to_there);
		weft_peer_close(to_here);
		assert_int_equal(pthread_create(&closing, NULL, close_here, NULL), 0);
		assert_int_equal(weft_node_close(there), 0);
		assert_int_equal(pthread_join(closing, &wrong), 0);
		assert_null(wrong);
	}
}

static void every_thread_does_everything_at_once(void **state)
{
	(void)state;
	do_everything(1);
}

static void and_so_they_do_on_nodes_of_several_workers(void **state)
{
	(void)state;
	do_everything(3);
}

/* A server with limits, whose health is watched and set, is drained while it is called. */

#define CLIENTS 3
#define CALLS_MAX 2

static atomic_uint limited, limit_passed, answered_well;

static void *answer_limited(void *arg)
{
	struct later *later = arg;
	const Calls__Response reply = CALLS__RESPONSE__INIT;

	atomic_fetch_sub(&limited, 1);
	later->closure(&reply, later->closure_data);
	free(later);
	return NULL;
}

static void handle_limited(Calls__Test_Service *own, const Calls__Request *request,
			   Calls__Response_Closure closure, void *closure_data)
{
	struct later *later = malloc(sizeof(*later));
	pthread_t thread;

	(void)own;
	(void)request;
	*later = (struct later){ closure, closure_data, 0 };
	if (atomic_fetch_add(&limited, 1) >= CALLS_MAX)
		atomic_store(&limit_passed, 1);
	if (pthread_create(&thread, NULL, answer_limited, later))
		abort();
	pthread_detach(thread);
}

static atomic_uint watchers; /* that have heard something */

/* A watcher that comes too late is refused, as any caller is. */
static bool hears_something(struct weft_stream *watch)
{
	struct weft_op *op;
	bool heard;

	if (weft_stream_read(watch, NULL, &op) || weft_wait(op, PAIR_LIMIT_NS))
		return false;
	heard = weft_stream_message(op) != NULL;
	weft_op_free(op);
	atomic_fetch_add(&watchers, 1);
	return heard;
}

/* The last that the watcher hears before its stream ends, as it must. */
static bool hears_the_end(struct weft_stream *watch, struct weft_op *watching)
{
	const Grpc__Health__V1__HealthCheckResponse *response;
	int last = -1;
	bool more = true;

	while (more) {
		struct weft_op *op;

		if (weft_stream_read(watch, NULL, &op) || weft_wait(op, PAIR_LIMIT_NS))
			return false;
		response = (const void *)weft_stream_message(op);
		if (response)
			last = (int)response->status;
		more = response;
		weft_op_free(op);
	}
	return last == WEFT_HEALTH_NOT_SERVING && !weft_wait(watching, PAIR_LIMIT_NS) &&
	       weft_op_status(watching) == WEFT_UNAVAILABLE;
}

/* Until that is refused, which is how it must end. */
static bool calls_until_it_drains(struct weft_stub *own)
{
	const Calls__Request request = CALLS__REQUEST__INIT;
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;

	while (pair_now_ns() < until) {
		enum weft_executed executed;
		enum weft_status status;
		ProtobufCService *once;
		struct weft_op *op;
		size_t bytes;

		if (weft_call_open(own, NULL, &once, &op))
			return false;
		calls__test__later(once, &request, (Calls__Response_Closure)keep_bytes, &bytes);
		if (weft_wait(op, PAIR_LIMIT_NS))
			return false;
		status = weft_op_status(op);
		executed = weft_op_executed(op);
		weft_op_free(op);
		if (status != WEFT_OK)
			return status == WEFT_UNAVAILABLE && executed == WEFT_EXECUTED_NO;
		atomic_fetch_add(&answered_well, 1);
	}
	return false;
}

static void *be_a_client(void *arg)
{
	Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
	const struct weft_node_options options = pair_options(pair_within_process(arg));
	struct weft_stub *own, *health;
	struct weft_stream *watch;
	struct weft_op *watching;
	struct weft_peer *server;
	struct weft_node *client;
	void *wrong = NULL;

	if (weft_node_open(&options, &client) ||
	    weft_peer_open(client, weft_node_address(there), &server) ||
	    weft_stub_open(server, &calls__test__descriptor, &own) ||
	    weft_stub_open(server, &grpc__health__v1__health__descriptor, &health) ||
	    weft_stream_open(health, "Watch", NULL, &watch, &watching) ||
	    weft_stream_write(watch, &request.base, NULL, NULL))
		return (void *)(uintptr_t)WRONG(opened);
	if (!hears_something(watch))
		wrong = (void *)(uintptr_t)WRONG(told whether it serves);
	else if (!calls_until_it_drains(own))
		wrong = (void *)(uintptr_t)WRONG(refused by a server that drains);
	else if (!hears_the_end(watch, watching))
		wrong = (void *)(uintptr_t)WRONG(told that it does not serve);
	weft_stream_close(watch);
	weft_op_free(watching);
	weft_stub_close(own);
	weft_stub_close(health);
	weft_peer_close(server);
	return weft_node_close(client) ? (void *)(uintptr_t)WRONG(closed) : wrong;
}

static void limits_hold_and_a_drain_waits_for_all(void **state)
{
	const struct weft_serve_options limits = { .size = sizeof(limits), .calls_max = CALLS_MAX,
						   .queue_max = 100 };
	struct weft_node_options options = pair_options(pair_within_process(pair_any()));
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;
	pthread_t clients[CLIENTS];
	void *wrong;

	(void)state;
	options.workers = 3;
	calls__test__init(&service, NULL);
	service.later = handle_limited;
	atomic_store(&answered_well, 0);
	atomic_store(&watchers, 0);
	assert_int_equal(weft_node_open(&options, &there), 0);
	assert_int_equal(weft_serve_with(there, &service.base, &limits), 0);
	assert_int_equal(weft_serve_health(there), 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&clients[i], NULL, be_a_client,
						(void *)(uintptr_t)options.provider), 0);
	for (unsigned i = 0; (atomic_load(&answered_well) < ROUNDS ||
			      atomic_load(&watchers) < CLIENTS) && pair_now_ns() < until; i++) {
		assert_int_equal(weft_health_set(there, "", i % 2 ? WEFT_HEALTH_SERVING
								  : WEFT_HEALTH_UNKNOWN), 0);
		pair_sleep_ms(1);
	}
	assert_int_equal(weft_node_drain(there, PAIR_LIMIT_NS), 0);
	assert_int_equal(atomic_load(&limited), 0);
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(pthread_join(clients[i], &wrong), 0);
		if (wrong)
			fail_msg("%s", (char *)wrong);
	}
	assert_true(atomic_load(&answered_well) >= ROUNDS);
	assert_int_equal(atomic_load(&limit_passed), 0);
	assert_int_equal(weft_node_close(there), 0);
}

/* A manual node whose driver changes. */

#define OPENS 50

static atomic_bool is_over;

static void *drive(void *node)
{
	while (!atomic_load(&is_over))
		if (weft_poll(node, PAIR_MS) < 0)
			return (void *)(uintptr_t)WRONG(polled);
	return NULL;
}

/* Wait until @count has come to @all. */
static bool comes_to(atomic_uint *count, unsigned all)
{
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;

	while (atomic_load(count) < all && pair_now_ns() < until)
		pair_sleep_ms(1);
	return atomic_load(count) == all;
}

static void the_opener_of_a_manual_node_begins_operations_as_another_thread_drives(void **state)
{
	struct weft_node_options options = pair_options(pair_within_process(pair_any()));
	struct weft_op_options told = { .size = sizeof(told), .done = count_and_free };
	pthread_t driver;
	void *wrong;

	(void)state;
	need(!weft_node_open(&options, &there));
	options.mode = WEFT_MANUAL;
	for (unsigned i = 0; i < OPENS; i++) {
		atomic_uint count = 0;
		struct weft_op *op;

		told.arg = &count;
		need(!weft_node_open(&options, &here));
		need(!weft_peer_open(here, weft_node_address(there), &to_there));
		atomic_store(&is_over, false);
		need(!pthread_create(&driver, NULL, drive, here));
		for (unsigned round = 0; round < ROUNDS; round++)
			need(!weft_ping(to_there, &told, &op));
		need(comes_to(&count, ROUNDS));
		atomic_store(&is_over, true);
		need(!pthread_join(driver, &wrong) && !wrong);
		weft_peer_close(to_there);
		need(!weft_node_close(here));
	}
	need(!weft_node_close(there));
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(pair_name_the_missing),
		TEST(every_thread_does_everything_at_once),
		TEST(and_so_they_do_on_nodes_of_several_workers),
		TEST(limits_hold_and_a_drain_waits_for_all),
		TEST(the_opener_of_a_manual_node_begins_operations_as_another_thread_drives),
	};

	(void)argc;
	setenv("WEFT_STALL", STALL, 1);
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
