/* SPDX-License-Identifier: BSD-2-Clause */
/* A node that takes no more calls: its peers know, and what runs comes to its end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define BYTES 1000
#define LONG_BYTES (1 * MIB)

static uint8_t source[LONG_BYTES], target[LONG_BYTES];

/* Node 1 is the one that drains. */
static void open_world(enum wf_world_shape shape, unsigned count)
{
	wf_world_lose_soon();
	wf_world_fill(source, sizeof(source), 1);
	wf_world_open(shape, count, NULL);
}

static void close_world(void)
{
	assert_int_equal(wf_world_close(), 0);
}

static void begin_to_drain(void)
{
	assert_int_equal(weft_node_drain(wf_world_node(1), 0), -ETIMEDOUT);
	wf_world_pass(50 * MS);
}

static void assert_drained(void)
{
	wf_world_pass(5 * MS);
	assert_int_equal(weft_node_drain(wf_world_node(1), 0), 0);
}

static void assert_refused(struct wf_flight *f)
{
	assert_int_equal(f->status, WEFT_UNAVAILABLE);
	assert_int_equal(weft_op_executed(f->op), WEFT_EXECUTED_NO);
	assert_non_null(strstr(weft_op_message(f->op), "n1 is draining"));
	wf_flight_free(f, 1);
}

/* A call of @from to node 1 fails, and not a frame leaves for it. */
static void assert_refused_at_home(unsigned from)
{
	uint64_t before, refused = wf_world_count(1).calls_refused;
	struct weft_stream *stream;
	struct wf_flight f;

	before = wf_world_count(from).frames_sent;
	wf_flight_call(&f, from, 1, source, BYTES, S);
	wf_flight_land(&f, 1, 2 * MS);
	assert_int_equal(f.closures, 1);
	assert_refused(&f);
	wf_flight_open(&f, from, 1, S, &stream);
	wf_flight_land(&f, 1, 2 * MS);
	weft_stream_close(stream);
	assert_refused(&f);
	assert_int_equal(wf_world_count(from).frames_sent, before);
	assert_int_equal(wf_world_count(1).calls_refused, refused);
}

static void running_calls_end_well_and_none_begins_in_a_drain(void **state)
{
	struct wf_flight f[2];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], 2);
		wf_world_connect(0, 1);
		wf_world_hold(1, true);
		wf_flight_call(&f[0], 0, 1, source, BYTES, 10 * S);
		wf_flight_call(&f[1], 0, 1, source, LONG_BYTES, 10 * S);
		wf_world_pass(50 * MS);
		begin_to_drain();
		assert_refused_at_home(0);
		assert_int_equal(weft_node_drain(wf_world_node(1), 0), -ETIMEDOUT);
		wf_world_hold(1, false);
		wf_flight_land(f, 2, S);
		for (unsigned k = 0; k < 2; k++) {
			assert_int_equal(f[k].status, WEFT_OK);
			assert_true(f[k].reply_right);
		}
		assert_int_equal(wf_world_served(1), 2);
		assert_drained();
		wf_flight_free(f, 2);
		close_world();
	}
}

/* Its caller has not heard of it when it makes the call. */
static void a_call_that_crosses_the_word_is_refused_where_it_comes(void **state)
{
	struct weft_stream *stream;
	struct wf_flight f[3], write;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	wf_world_connect(0, 1);
	wf_world_hold_way(1, 0, true);
	assert_int_equal(weft_node_drain(wf_world_node(1), 0), 0);
	wf_flight_call(&f[0], 0, 1, source, BYTES, S);
	wf_flight_call(&f[1], 0, 1, source, LONG_BYTES, S);
	wf_flight_open(&f[2], 0, 1, S, &stream);
	wf_flight_write(&write, stream, source, LONG_BYTES, S);
	wf_world_pass(20 * MS);
	wf_world_hold_way(1, 0, false);
	wf_flight_land(f, 3, S);
	wf_flight_land(&write, 1, S);
	assert_int_equal(wf_world_count(1).calls_refused, 3);
	assert_int_equal(wf_world_served(1), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_refused(&f[i]);
	wf_flight_free(&write, 1);
	weft_stream_close(stream);
	assert_drained();
	close_world();
}

static void a_stream_goes_on_to_its_end(void **state)
{
	struct wf_flight call, write, read;
	struct weft_stream *stream;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	wf_world_connect(0, 1);
	wf_flight_open(&call, 0, 1, 10 * S, &stream);
	wf_world_pass(5 * MS);
	begin_to_drain();
	for (unsigned i = 0; i < 100; i++) {
		wf_flight_write(&write, stream, source, i % 10 ? BYTES : LONG_BYTES, 0);
		wf_flight_read(&read, stream, 0);
		wf_flight_land(&write, 1, S);
		wf_flight_land(&read, 1, S);
		assert_non_null(weft_stream_message(read.op));
		wf_flight_free(&write, 1);
		wf_flight_free(&read, 1);
	}
	assert_int_equal(weft_node_drain(wf_world_node(1), 0), -ETIMEDOUT);
	assert_int_equal(weft_stream_half_close(stream), 0);
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_OK);
	assert_drained();
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	close_world();
}

static void a_peer_that_comes_later_is_told_first(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 4);
	assert_int_equal(weft_node_drain(wf_world_node(1), 0), 0);
	wf_world_connect(0, 1);
	wf_world_connect(1, 2);
	wf_world_connect(2, 1);
	wf_world_pass(20 * MS);
	assert_refused_at_home(0);
	assert_refused_at_home(2);
	/* Neither a door that is cut nor a rail that fails is a new life of the link. */
	wf_world_cut_door(0, 1);
	wf_world_pass(500 * MS);
	assert_refused_at_home(0);
	close_world();
}

static void another_life_of_the_node_takes_calls(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	wf_world_connect(0, 1);
	assert_int_equal(weft_node_drain(wf_world_node(1), 0), 0);
	wf_world_pass(20 * MS);
	assert_refused_at_home(0);
	wf_world_kill(1);
	wf_world_restart(1);
	wf_world_pass(S);
	wf_flight_call(&f, 0, 1, source, BYTES, S);
	wf_flight_land(&f, 1, S);
	assert_int_equal(f.status, WEFT_OK);
	wf_flight_free(&f, 1);
	close_world();
}

static void tensors_and_own_calls_go_on(void **state)
{
	struct wf_flight f[4];

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	wf_world_connect(0, 1);
	assert_int_equal(weft_node_drain(wf_world_node(1), 0), 0);
	wf_world_pass(20 * MS);
	wf_flight_receive(&f[0], 1, 0, 1, target, BYTES, S);
	wf_flight_send(&f[1], 0, 1, 1, source, BYTES, S);
	wf_flight_ping(&f[2], 0, 1, S);
	wf_flight_call(&f[3], 1, 0, source, BYTES, S);
	wf_flight_land(f, 4, S);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	wf_flight_free(f, 4);
	close_world();
}

static uint64_t answer_late(unsigned number, void *call, const uint8_t *bytes, size_t count)
{
	(void)number;
	(void)call;
	(void)bytes;
	(void)count;
	return 100 * MS;
}

static void draining_waits_for_as_long_as_it_is_told(void **state)
{
	struct wf_flight f;
	uint64_t began_ns;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	wf_world_connect(0, 1);
	wf_world_on_call(answer_late);
	wf_flight_call(&f, 0, 1, source, BYTES, S);
	wf_world_pass(10 * MS);
	began_ns = wf_clock_now();
	assert_int_equal(weft_node_drain(wf_world_node(1), 20 * MS), -ETIMEDOUT);
	assert_in_range(wf_clock_now() - began_ns, 20 * MS, 30 * MS);
	assert_int_equal(weft_node_drain(wf_world_node(1), WEFT_FOREVER), 0);
	assert_in_range(wf_clock_now() - began_ns, 80 * MS, 120 * MS);
	wf_flight_land(&f, 1, S);
	assert_int_equal(f.status, WEFT_OK);
	wf_flight_free(&f, 1);
	close_world();
}

static void assert_dump_says(unsigned number, const char *what)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	assert_int_equal(weft_dump(wf_world_node(number), out), 0);
	fclose(out);
	assert_non_null(strstr(text, what));
	free(text);
}

static void a_dump_says_who_drains(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	wf_world_connect(0, 1);
	assert_int_equal(weft_node_drain(wf_world_node(1), 0), 0);
	wf_world_pass(20 * MS);
	assert_dump_says(1, "it drains: no more calls are taken");
	assert_dump_says(0, "it takes no more calls");
	close_world();
}

static int inside;

static void drain_here(struct weft_op *op, void *arg)
{
	(void)op;
	(void)arg;
	inside = weft_node_drain(wf_world_node(0), 0);
}

static void draining_is_not_for_callbacks(void **state)
{
	struct weft_op_options options = { .size = sizeof(options), .done = drain_here };
	struct weft_op *op;
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	assert_int_equal(weft_ping(wf_world_peer(0, 1), &options, &op), 0);
	assert_int_equal(weft_wait(op, S), 0);
	assert_int_equal(inside, -EDEADLK);
	weft_op_free(op);
	wf_flight_call(&f, 1, 0, source, BYTES, S);
	wf_flight_land(&f, 1, S);
	assert_int_equal(f.status, WEFT_OK);
	wf_flight_free(&f, 1);
	close_world();
}

static void every_worker_drains(void **state)
{
	struct wf_flight f[5];

	(void)state;
	wf_world_set_workers(3);
	open_world(WF_WORLD_CONNECTED, 6);
	for (unsigned i = 0; i < 6; i++)
		if (i != 1)
			wf_world_connect(i, 1);
	wf_world_hold(1, true);
	for (unsigned i = 0; i < 5; i++)
		wf_flight_call(&f[i], i ? i + 1 : 0, 1, source, BYTES, 10 * S);
	wf_world_pass(20 * MS);
	begin_to_drain();
	for (unsigned i = 0; i < 6; i++)
		if (i != 1)
			assert_refused_at_home(i);
	wf_world_hold(1, false);
	wf_flight_land(f, 5, S);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	assert_drained();
	wf_flight_free(f, 5);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(running_calls_end_well_and_none_begins_in_a_drain),
		cmocka_unit_test(a_call_that_crosses_the_word_is_refused_where_it_comes),
		cmocka_unit_test(a_stream_goes_on_to_its_end),
		cmocka_unit_test(a_peer_that_comes_later_is_told_first),
		cmocka_unit_test(another_life_of_the_node_takes_calls),
		cmocka_unit_test(tensors_and_own_calls_go_on),
		cmocka_unit_test(draining_waits_for_as_long_as_it_is_told),
		cmocka_unit_test(a_dump_says_who_drains),
		cmocka_unit_test(draining_is_not_for_callbacks),
		cmocka_unit_test(every_worker_drains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
