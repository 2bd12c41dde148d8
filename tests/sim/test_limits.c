/* SPDX-License-Identifier: BSD-2-Clause */
/* A service with limits: who waits, who is refused, and who is next. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "core/streaming.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define PEERS 6
#define CALLS 24
#define BIG (1 * MIB)

/* Node 0 serves this one, and its calls are answered when the test says so. */
static ProtobufCServiceDescriptor descriptor;
static Sim__Mirror_Service narrow;
static struct weft_stub *stubs[1 + PEERS];
static uint8_t big[BIG];

static struct {
	Sim__Bytes_Closure closure;
	void *data;
	uint8_t tag; /* the first byte of the request */
	uint64_t left_ns;
} begun[CALLS];
static unsigned begun_count, answered_count;
static struct weft_stream *stream_begun;

static void reflect(Sim__Mirror_Service *service, const Sim__Bytes *request,
		    Sim__Bytes_Closure closure, void *data)
{
	(void)service;
	assert_true(begun_count < CALLS);
	begun[begun_count].closure = closure;
	begun[begun_count].data = data;
	begun[begun_count].tag = request->body.len ? request->body.data[0] : 0;
	begun[begun_count].left_ns = weft_served_left_ns(data);
	begun_count++;
}

static void talk(struct weft_stream *stream, void *arg)
{
	(void)arg;
	stream_begun = stream;
}

/* Those that have begun are answered in that order. */
static void answer_next(void)
{
	Sim__Bytes answer = SIM__BYTES__INIT;

	assert_true(answered_count < begun_count);
	begun[answered_count].closure(&answer, begun[answered_count].data);
	answered_count++;
}

static const struct weft_stream_method method = { "Talk", talk, NULL };

static void open_world(unsigned peers, unsigned workers, struct weft_serve_options options)
{
	options.size = sizeof(options);
	options.methods = &method;
	options.method_count = 1;
	descriptor = sim__mirror__descriptor;
	descriptor.name = "sim.Narrow";
	narrow = (Sim__Mirror_Service){ .base = SIM__MIRROR__BASE_INIT, .reflect = reflect };
	narrow.base.descriptor = &descriptor;
	begun_count = answered_count = 0;
	stream_begun = NULL;
	wf_world_lose_soon();
	wf_world_set_workers(workers);
	wf_world_open(WF_WORLD_CONNECTED, 1 + peers, NULL);
	assert_int_equal(weft_serve_with(wf_world_node(0), &narrow.base, &options), 0);
	for (unsigned i = 1; i <= peers; i++) {
		wf_world_connect(i, 0);
		assert_int_equal(weft_stub_open(wf_world_peer(i, 0), &descriptor, &stubs[i]), 0);
	}
}

static void close_world(void)
{
	for (unsigned i = 1; i < wf_world_population(); i++)
		weft_stub_close(stubs[i]);
	assert_int_equal(wf_world_close(), 0);
}

static void note_answer(const ProtobufCMessage *answer, void *arg)
{
	struct wf_flight *f = arg;

	(void)answer;
	f->closures++;
}

/* Call with a limit of the reply; 0: the default. */
static void call_within(struct wf_flight *f, unsigned from, uint8_t tag, size_t bytes,
			uint64_t timeout_ns, uint64_t reply_bytes_max)
{
	struct weft_call_options options = {
		.size = sizeof(options), .message_bytes_max = reply_bytes_max,
	};
	Sim__Bytes request = SIM__BYTES__INIT;
	ProtobufCService *service;

	options.op = wf_flight_begin(f, timeout_ns);
	big[0] = tag;
	request.body.data = big;
	request.body.len = bytes;
	assert_int_equal(weft_call_open(stubs[from], &options, &service, &f->op), 0);
	/* What protoc-c made insists on the name that it knows. */
	service->invoke(service, 0, &request.base, note_answer, f);
}

static void call_with(struct wf_flight *f, unsigned from, uint8_t tag, size_t bytes,
		      uint64_t timeout_ns)
{
	call_within(f, from, tag, bytes, timeout_ns, 0);
}

/* And it has come before the next one is made. */
static void call(struct wf_flight *f, unsigned from, uint8_t tag)
{
	call_with(f, from, tag, 1, 100 * S);
	wf_world_pass(5 * MS);
}

static void open_stream(struct wf_flight *f, unsigned from, struct weft_stream **stream)
{
	struct weft_call_options options = { .size = sizeof(options) };

	options.op = wf_flight_begin(f, 10 * S);
	assert_int_equal(weft_stream_open(stubs[from], "Talk", &options, stream, &f->op), 0);
	wf_world_pass(5 * MS);
}

static bool has_begun(void *ctx)
{
	return begun_count >= *(unsigned *)ctx;
}

static void await_begun(unsigned count)
{
	assert_true(wf_world_run(has_begun, &count, S));
	assert_int_equal(begun_count, count);
}

static bool have_landed(const struct wf_flight *f, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!f[i].outcomes)
			return false;
	return true;
}

/* The rest are answered as they begin, and all end well. */
static void land_well(struct wf_flight *f, unsigned count)
{
	uint64_t until_ns = wf_clock_now() + S;

	while (!have_landed(f, count)) {
		assert_true(wf_clock_now() < until_ns);
		if (answered_count < begun_count)
			answer_next();
		wf_world_step();
	}
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	wf_flight_free(f, count);
}

static void assert_refused(const struct wf_flight *f, const char *limit)
{
	assert_int_equal(f->status, WEFT_RESOURCE_EXHAUSTED);
	assert_int_equal(weft_op_executed(f->op), WEFT_EXECUTED_NO);
	assert_non_null(strstr(weft_op_message(f->op), "sim.Narrow"));
	assert_non_null(strstr(weft_op_message(f->op), limit));
	assert_int_equal(f->closures, 1);
}

static void calls_beyond_the_limit_wait_in_their_order(void **state)
{
	struct weft_serve_options options = { .calls_max = 2, .queue_max = 10 };
	struct wf_flight f[6];

	(void)state;
	open_world(2, 1, options);
	for (unsigned i = 0; i < 6; i++)
		call(&f[i], 1 + i % 2, (uint8_t)i);
	assert_int_equal(begun_count, 2);
	assert_int_equal(wf_world_count(0).calls_waiting, 4);
	for (unsigned i = 0; i < 4; i++) {
		answer_next();
		await_begun(3 + i);
		wf_world_pass(5 * MS);
		assert_int_equal(begun_count, 3 + i);
	}
	assert_int_equal(wf_world_count(0).calls_waiting, 0);
	answer_next();
	answer_next();
	wf_flight_land(f, 6, S);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(begun[i].tag, i);
		assert_int_equal(f[i].status, WEFT_OK);
	}
	wf_flight_free(f, 6);
	close_world();
}

static void where_the_queue_is_full_a_call_is_refused_at_once(void **state)
{
	struct weft_serve_options options = { .calls_max = 1, .queue_max = 1 };
	struct wf_flight f[2], more;

	(void)state;
	open_world(2, 1, options);
	call(&f[0], 1, 0);
	call(&f[1], 2, 1);
	call(&more, 1, 2);
	wf_flight_land(&more, 1, 10 * MS);
	assert_refused(&more, "calls_max");
	wf_flight_free(&more, 1);
	assert_int_equal(wf_world_count(0).calls_refused, 1);
	assert_int_equal(wf_world_count(0).calls_waiting, 1);
	land_well(f, 2);
	/* There is room again. */
	call(&f[0], 1, 3);
	land_well(f, 1);
	close_world();
}

static void without_a_queue_nobody_waits(void **state)
{
	struct weft_serve_options options = { .calls_per_peer = 1 };
	struct wf_flight f[2], more;

	(void)state;
	open_world(2, 1, options);
	call(&f[0], 1, 0);
	call(&f[1], 2, 1);
	assert_int_equal(begun_count, 2);
	call_with(&more, 1, 2, BIG, S);
	wf_flight_land(&more, 1, 10 * MS);
	assert_refused(&more, "calls_per_peer");
	wf_flight_free(&more, 1);
	land_well(f, 2);
	close_world();
}

static void a_peer_at_its_limit_does_not_hold_up_others(void **state)
{
	struct weft_serve_options options = { .calls_max = 3, .calls_per_peer = 2, .queue_max = 8 };
	struct wf_flight f[7];
	static const uint8_t order[] = { 0, 1, 4, 5, 2, 3, 6 };

	(void)state;
	open_world(2, 1, options);
	for (unsigned i = 0; i < 4; i++)
		call(&f[i], 1, (uint8_t)i);
	assert_int_equal(begun_count, 2);
	for (unsigned i = 4; i < 7; i++)
		call(&f[i], 2, (uint8_t)i);
	assert_int_equal(begun_count, 3);
	/*
	 * Of 2, 3, 5 and 6: 5 waits for the service, the others for calls of their peers.
	 * When 0 ends 2 comes behind 5, when 1 ends 3 comes behind 2, and when 4 does, 6.
	 */
	land_well(f, 7);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(begun[i].tag, order[i]);
	assert_int_equal(wf_world_count(0).calls_refused, 0);
	close_world();
}

/* Each peer is at another worker, or at one with some of the others. */
static void a_limit_holds_over_all_workers(void **state)
{
	struct weft_serve_options options = { .calls_max = 2, .queue_max = 100 };
	struct wf_flight f[2 * PEERS];

	(void)state;
	open_world(PEERS, 3, options);
	for (unsigned i = 0; i < 2 * PEERS; i++)
		call(&f[i], 1 + i % PEERS, (uint8_t)i);
	assert_int_equal(begun_count, 2);
	assert_int_equal(wf_world_count(0).calls_waiting, 2 * PEERS - 2);
	for (unsigned i = 0; i < 2 * PEERS - 2; i++) {
		answer_next();
		await_begun(3 + i);
		wf_world_pass(5 * MS);
		assert_int_equal(begun_count - answered_count, 2);
	}
	land_well(f, 2 * PEERS);
	for (unsigned i = 0; i < 2 * PEERS; i++)
		assert_int_equal(begun[i].tag, i);
	close_world();
}

static void time_runs_while_a_call_waits(void **state)
{
	struct weft_serve_options options = { .calls_max = 1, .queue_max = 5 };
	struct wf_flight f[2], late;

	(void)state;
	open_world(1, 1, options);
	call(&f[0], 1, 0);
	call_with(&late, 1, 1, 1, 100 * MS);
	call_with(&f[1], 1, 2, 1, S);
	wf_flight_land(&late, 1, S);
	assert_int_equal(late.status, WEFT_DEADLINE_EXCEEDED);
	wf_flight_free(&late, 1);
	wf_world_pass(300 * MS);
	assert_int_equal(wf_world_count(0).calls_waiting, 1);
	assert_int_equal(wf_world_count(0).served, 2);
	answer_next();
	await_begun(2);
	assert_int_equal(begun[1].tag, 2);
	assert_true(begun[1].left_ns < 650 * MS);
	assert_true(begun[1].left_ns > 500 * MS);
	answer_next();
	wf_flight_land(f, 2, S);
	wf_flight_free(f, 2);
	close_world();
}

static void a_caller_that_gives_up_leaves_the_queue(void **state)
{
	struct weft_serve_options options = { .calls_max = 1, .calls_per_peer = 2, .queue_max = 3 };
	struct wf_flight f[2], cancelled, behind, dead;

	(void)state;
	open_world(3, 1, options);
	call(&f[0], 1, 0);
	call(&cancelled, 1, 1);
	call(&behind, 1, 2);
	call(&dead, 2, 3);
	weft_cancel(cancelled.op);
	wf_flight_land(&cancelled, 1, S);
	wf_world_pass(5 * MS);
	assert_int_equal(wf_world_count(0).calls_waiting, 2);
	wf_world_kill(2);
	wf_world_pass(S);
	assert_int_equal(wf_world_count(0).calls_waiting, 1);
	call(&f[1], 3, 4);
	weft_cancel(behind.op);
	wf_flight_land(&behind, 1, S);
	assert_int_equal(begun_count, 1);
	land_well(f, 2);
	assert_int_equal(begun[1].tag, 4);
	assert_int_equal(begun_count, 2);
	wf_flight_free(&cancelled, 1);
	wf_flight_free(&behind, 1);
	assert_int_equal(wf_world_count(0).served, 0);
	weft_cancel(dead.op);
	wf_flight_free(&dead, 1);
	close_world();
}

/* It counts until its handler has answered: that is what the limit is for. */
static void a_call_that_was_given_up_counts_while_its_handler_runs(void **state)
{
	struct weft_serve_options options = { .calls_max = 1, .queue_max = 5 };
	struct wf_flight given_up, next;

	(void)state;
	open_world(1, 1, options);
	call(&given_up, 1, 0);
	call(&next, 1, 1);
	weft_cancel(given_up.op);
	wf_flight_land(&given_up, 1, S);
	wf_world_pass(20 * MS);
	assert_int_equal(begun_count, 1);
	answer_next();
	land_well(&next, 1);
	wf_flight_free(&given_up, 1);
	close_world();
}

/* Its request is pulled while it waits; or its turn comes first. */
static void a_long_request_may_come_before_or_after_the_turn(void **state)
{
	struct weft_serve_options options = { .calls_max = 1, .queue_max = 5 };
	struct wf_flight f[2];

	(void)state;
	open_world(1, 1, options);
	call(&f[0], 1, 0);
	call_with(&f[1], 1, 7, BIG, 10 * S);
	wf_world_pass(100 * MS);
	assert_int_equal(begun_count, 1);
	land_well(f, 2);
	assert_int_equal(begun[1].tag, 7);

	call(&f[0], 1, 0);
	call_with(&f[1], 1, 8, BIG, 10 * S);
	wf_world_step();
	answer_next();
	land_well(f, 2);
	assert_int_equal(begun[3].tag, 8);
	close_world();
}

static void a_stream_is_one_call(void **state)
{
	struct weft_serve_options options = { .calls_max = 1, .queue_max = 5 };
	struct weft_stream *stream, *waits;
	struct wf_flight opened[2], f, read;

	(void)state;
	open_world(1, 1, options);
	open_stream(&opened[0], 1, &stream);
	assert_non_null(stream_begun);
	call(&f, 1, 0);
	open_stream(&opened[1], 1, &waits);
	wf_flight_write(&read, waits, big, 1, 0); /* what is written meanwhile is there then */
	wf_world_pass(50 * MS);
	assert_int_equal(begun_count, 0);
	weft_stream_finish(stream_begun, WEFT_OK, "");
	stream_begun = NULL;
	land_well(&f, 1);
	wf_world_pass(5 * MS);
	assert_non_null(stream_begun);
	wf_flight_land(&read, 1, S);
	wf_flight_free(&read, 1);
	wf_flight_read(&read, stream_begun, 0);
	wf_flight_land(&read, 1, S);
	assert_non_null(weft_stream_message(read.op));
	wf_flight_free(&read, 1);
	weft_stream_finish(stream_begun, WEFT_OK, "");
	wf_flight_land(opened, 2, S);
	wf_flight_free(opened, 2);
	weft_stream_close(stream);
	weft_stream_close(waits);
	close_world();
}

/* A call with a tensor of @bytes beside its request. */
static void call_with_tensor(struct wf_flight *f, struct wf_flight *attached, size_t bytes)
{
	struct weft_call_options options = { .size = sizeof(options) };
	struct weft_send_options beside = { .size = sizeof(beside) };
	Sim__Bytes request = SIM__BYTES__INIT;
	int64_t shape = (int64_t)bytes;
	const struct weft_tensor t = { .data = big, .device = { WEFT_CPU, 0 }, .ndim = 1,
				       .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };
	ProtobufCService *service;

	options.op = wf_flight_begin(f, 10 * S);
	beside.op = wf_flight_begin(attached, 0);
	assert_int_equal(weft_call_open(stubs[1], &options, &service, &f->op), 0);
	assert_int_equal(weft_call_attach(f->op, &t, &beside, &attached->op), 0);
	service->invoke(service, 0, &request.base, note_answer, f);
	wf_world_pass(5 * MS);
}

/* Its tensors end with it, however that ends: in its turn, before that, or for want of a place. */
static void a_call_may_wait_with_tensors(void **state)
{
	struct weft_serve_options options = { .calls_max = 1, .queue_max = 2 };
	struct wf_flight f[4], attached[4];

	(void)state;
	for (unsigned long_ones = 0; long_ones < 2; long_ones++) {
		open_world(1, 1, options);
		for (unsigned i = 0; i < 4; i++)
			call_with_tensor(&f[i], &attached[i], long_ones ? BIG : 1000);
		wf_flight_land(&f[3], 1, S);
		assert_refused(&f[3], "calls_max");
		assert_int_equal(begun_count, 1);
		assert_int_equal(weft_served_attachments(begun[0].data), 1);
		weft_cancel(f[1].op);
		wf_flight_land(&f[1], 1, S);
		answer_next();
		await_begun(2);
		assert_int_equal(weft_served_attachments(begun[1].data), 1);
		answer_next();
		wf_flight_land(f, 4, S);
		wf_flight_land(attached, 4, S);
		assert_int_equal(f[0].status, WEFT_OK);
		assert_int_equal(f[1].status, WEFT_CANCELLED);
		assert_int_equal(f[2].status, WEFT_OK);
		wf_world_pass(20 * MS);
		assert_int_equal(wf_world_count(0).served, 0);
		assert_int_equal(wf_world_count(0).calls_waiting, 0);
		wf_flight_free(f, 4);
		wf_flight_free(attached, 4);
		close_world();
	}
}

static void a_message_above_the_limit_fails_its_call(void **state)
{
	struct weft_serve_options options = { .message_bytes_max = 1000 };
	struct wf_flight f, write[2];
	struct weft_stream *stream;

	(void)state;
	open_world(1, 1, options);
	call_with(&f, 1, 0, 990, S);
	land_well(&f, 1);
	for (unsigned i = 0; i < 2; i++) {
		call_with(&f, 1, 0, i ? BIG : 1001, S);
		wf_flight_land(&f, 1, 10 * MS);
		assert_refused(&f, "1000");
		wf_flight_free(&f, 1);
	}
	assert_int_equal(begun_count, 1);
	for (unsigned i = 0; i < 2; i++) {
		open_stream(&f, 1, &stream);
		wf_flight_write(&write[0], stream, big, 990, 0);
		wf_flight_write(&write[1], stream, big, i ? BIG : 1001, 0);
		wf_world_pass(20 * MS);
		weft_stream_finish(stream_begun, WEFT_OK, "");
		wf_flight_land(&f, 1, S);
		assert_int_equal(f.status, WEFT_RESOURCE_EXHAUSTED);
		assert_non_null(strstr(weft_op_message(f.op), "1000"));
		wf_flight_land(write, 2, S);
		wf_flight_free(write, 2);
		wf_flight_free(&f, 1);
		weft_stream_close(stream);
	}
	close_world();
}

static void a_reply_above_the_limit_fails_its_call(void **state)
{
	static const size_t limits[] = { 1000, BIG }; /* eager, pulled */
	Sim__Bytes answer = SIM__BYTES__INIT;
	struct wf_flight f;

	(void)state;
	open_world(1, 1, (struct weft_serve_options){ 0 });
	for (unsigned i = 0; i < 2 * WF_COUNT(limits); i++) {
		size_t most = limits[i / 2], above = i % 2;

		answer.body.data = big;
		answer.body.len = most;
		answer.body.len -= protobuf_c_message_get_packed_size(&answer.base) - most;
		answer.body.len += above;
		assert_int_equal(protobuf_c_message_get_packed_size(&answer.base), most + above);
		call_within(&f, 1, 0, 1, S, most);
		await_begun(i + 1);
		begun[i].closure(&answer, begun[i].data);
		wf_flight_land(&f, 1, S);
		assert_int_equal(f.status, above ? WEFT_RESOURCE_EXHAUSTED : WEFT_OK);
		assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_YES);
		assert_true(!above || strstr(weft_op_message(f.op), "is over the limit of "));
		wf_flight_free(&f, 1);
	}
	close_world();
}

static void a_dump_says_what_a_call_waits_for(void **state)
{
	struct weft_serve_options options = { .calls_max = 1, .calls_per_peer = 1, .queue_max = 5 };
	struct wf_flight f[3];
	char *text;
	size_t bytes;
	FILE *out;

	(void)state;
	open_world(2, 1, options);
	call(&f[0], 1, 0);
	call(&f[1], 1, 1);
	call(&f[2], 2, 2);
	out = open_memstream(&text, &bytes);
	assert_non_null(out);
	assert_int_equal(weft_dump(wf_world_node(0), out), 0);
	fclose(out);
	assert_non_null(strstr(text, "sim.Narrow/Reflect from n1: it waits for others of its peer"));
	assert_non_null(strstr(text, "sim.Narrow/Reflect from n2: it waits, with 2 of its service"));
	free(text);
	land_well(f, 3);
	close_world();
}

static void a_node_may_close_while_calls_wait(void **state)
{
	struct weft_serve_options options = { .calls_max = 1, .calls_per_peer = 2, .queue_max = 50 };
	struct wf_flight f[3 * PEERS];

	(void)state;
	for (unsigned workers = 1; workers <= 3; workers += 2) {
		open_world(PEERS, workers, options);
		for (unsigned i = 0; i < 3 * PEERS; i++)
			call(&f[i], 1 + i % PEERS, (uint8_t)i);
		answer_next();
		await_begun(2);
		answer_next();
		wf_world_leave(0);
		wf_flight_land(f, 3 * PEERS, S);
		assert_true(begun_count <= 3);
		wf_flight_free(f, 3 * PEERS);
		close_world();
	}
}

static void calls_that_wait_are_served_while_the_node_drains(void **state)
{
	struct weft_serve_options options = { .calls_max = 1, .queue_max = 5 };
	struct wf_flight f[3], late;

	(void)state;
	for (unsigned workers = 1; workers <= 3; workers += 2) {
		open_world(3, workers, options);
		for (unsigned i = 0; i < 3; i++)
			call(&f[i], 1 + i, (uint8_t)i);
		assert_int_equal(weft_node_drain(wf_world_node(0), 0), -ETIMEDOUT);
		call(&late, 1, 3);
		wf_flight_land(&late, 1, S);
		assert_int_equal(late.status, WEFT_UNAVAILABLE);
		wf_flight_free(&late, 1);
		assert_int_equal(begun_count, 1);
		land_well(f, 3);
		wf_world_pass(5 * MS);
		assert_int_equal(weft_node_drain(wf_world_node(0), 0), 0);
		close_world();
	}
}

static void options_are_checked(void **state)
{
	const struct weft_stream_method nonesuch = { "Shout", talk, NULL };
	struct weft_serve_options options = { .calls_max = 1 };
	ProtobufCServiceDescriptor other = sim__mirror__descriptor;
	struct weft_node *node;
	Sim__Mirror_Service service;

	(void)state;
	open_world(1, 1, options);
	node = wf_world_node(0);
	options.size = sizeof(options);
	assert_int_equal(weft_serve_with(node, &narrow.base, &options), -EEXIST);
	other.name = "sim.Other";
	service = narrow;
	service.base.descriptor = &other;
	options.size = 0;
	assert_int_equal(weft_serve_with(node, &service.base, &options), -EINVAL);
	options.size = sizeof(options);
	options.message_bytes_max = GIB + 1;
	assert_int_equal(weft_serve_with(node, &service.base, &options), -EINVAL);
	options.message_bytes_max = GIB;
	options.methods = &nonesuch;
	options.method_count = 1;
	assert_int_equal(weft_serve_with(node, &service.base, &options), -ENOENT);
	assert_int_equal(weft_serve_with(node, &service.base, NULL), 0);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_beyond_the_limit_wait_in_their_order),
		cmocka_unit_test(where_the_queue_is_full_a_call_is_refused_at_once),
		cmocka_unit_test(without_a_queue_nobody_waits),
		cmocka_unit_test(a_peer_at_its_limit_does_not_hold_up_others),
		cmocka_unit_test(a_limit_holds_over_all_workers),
		cmocka_unit_test(time_runs_while_a_call_waits),
		cmocka_unit_test(a_caller_that_gives_up_leaves_the_queue),
		cmocka_unit_test(a_call_that_was_given_up_counts_while_its_handler_runs),
		cmocka_unit_test(a_long_request_may_come_before_or_after_the_turn),
		cmocka_unit_test(a_stream_is_one_call),
		cmocka_unit_test(a_call_may_wait_with_tensors),
		cmocka_unit_test(a_message_above_the_limit_fails_its_call),
		cmocka_unit_test(a_reply_above_the_limit_fails_its_call),
		cmocka_unit_test(a_dump_says_what_a_call_waits_for),
		cmocka_unit_test(a_node_may_close_while_calls_wait),
		cmocka_unit_test(calls_that_wait_are_served_while_the_node_drains),
		cmocka_unit_test(options_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
