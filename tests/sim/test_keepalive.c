/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls whose peer stands still: what gRPC calls keepalive, and its test keepalive_timeout.
 * The connection is there, and its kernel confirms what comes; only the process does nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/streaming.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define HEARTBEAT "100ms"
#define LOST "300ms"
#define LOST_NS (300 * MS)
#define SLACK_NS (150 * MS) /* a heartbeat, and how late one is heard */
#define REQUEST 100
#define BIG (3 * MIB) /* pulled */

static uint8_t source[BIG];

static void open_world_dialled_by(unsigned dialler, enum wf_world_shape shape)
{
	setenv("WEFT_HEARTBEAT", HEARTBEAT, 1);
	setenv("WEFT_LOST", LOST, 1);
	wf_world_fill(source, sizeof(source), 1);
	wf_world_open(shape, 2, NULL);
	wf_world_connect(dialler, !dialler);
}

static void open_world(enum wf_world_shape shape)
{
	open_world_dialled_by(0, shape);
}

static void close_world(void)
{
	wf_world_freeze(1, false);
	wf_world_pass(S);
	assert_int_equal(wf_world_close(), 0);
}

/* It ends when the limit is over since the peer was frozen, at @frozen_ns, and says why. */
static void assert_lost(const struct wf_flight *f, uint64_t frozen_ns)
{
	assert_int_equal(f->outcomes, 1);
	assert_int_equal(f->status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_op_message(f->op), "silent"));
	/* It may have been heard a heartbeat ago. */
	assert_in_range(f->ended_ns - frozen_ns, LOST_NS - SLACK_NS, LOST_NS + SLACK_NS);
}

static void a_call_whose_server_freezes_is_unavailable_within_the_limit(void **state)
{
	struct wf_flight f;
	uint64_t frozen_ns;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		wf_world_hold(1, true);
		wf_flight_call(&f, 0, 1, source, REQUEST, WEFT_FOREVER);
		wf_world_pass(S);
		assert_int_equal(wf_world_served(1), 1);
		assert_int_equal(f.outcomes, 0);
		wf_world_freeze(1, true);
		frozen_ns = wf_clock_now();
		wf_flight_land(&f, 1, 2 * S);
		assert_lost(&f, frozen_ns);
		assert_int_equal(f.closures, 1);
		assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_MAYBE);
		wf_flight_free(&f, 1);
		close_world();
	}
}

static void a_call_that_begins_while_its_server_is_frozen_ends_like_it(void **state)
{
	struct wf_flight f[2];
	uint64_t frozen_ns;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		wf_world_pass(S);
		wf_world_freeze(1, true);
		wf_world_pass(5 * S);
		/* Nobody waited for it: nothing was noticed.  From here on the limit counts. */
		frozen_ns = wf_clock_now();
		wf_flight_call(&f[0], 0, 1, source, REQUEST, WEFT_FOREVER);
		wf_flight_call(&f[1], 0, 1, source, BIG, WEFT_FOREVER);
		wf_flight_land(f, 2, 10 * S);
		for (unsigned j = 0; j < 2; j++) {
			assert_int_equal(f[j].status, WEFT_UNAVAILABLE);
			assert_true(f[j].ended_ns - frozen_ns <= LOST_NS + SLACK_NS);
		}
		wf_flight_free(f, 2);
		close_world();
	}
}

static void a_receive_from_the_address_of_a_peer_that_dialled_ends_when_that_freezes(void **state)
{
	struct wf_flight f;
	uint64_t frozen_ns;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world_dialled_by(1, wf_world_shapes[i]);
		wf_world_pass(S);
		/* The link to that address turns out to be another name of the one that is there. */
		wf_flight_receive(&f, 0, 1, 1, source, REQUEST, WEFT_FOREVER);
		wf_world_pass(S);
		wf_world_freeze(1, true);
		frozen_ns = wf_clock_now();
		wf_flight_land(&f, 1, 2 * S);
		assert_lost(&f, frozen_ns);
		wf_flight_free(&f, 1);
		close_world();
	}
}

static void an_idle_stream_whose_server_freezes_is_unavailable_within_the_limit(void **state)
{
	struct weft_stream *stream;
	struct wf_flight call, read;
	uint64_t frozen_ns;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		for (unsigned reads = 0; reads < 2; reads++) {
			open_world(wf_world_shapes[i]);
			wf_flight_open(&call, 0, 1, WEFT_FOREVER, &stream);
			if (reads)
				wf_flight_read(&read, stream, 0);
			/* As long as both live, silence about nothing ends nothing. */
			wf_world_pass(10 * S);
			assert_int_equal(call.outcomes, 0);
			assert_int_equal(wf_world_talking(1), 1);
			wf_world_freeze(1, true);
			frozen_ns = wf_clock_now();
			wf_flight_land(&call, 1, 2 * S);
			assert_lost(&call, frozen_ns);
			if (reads) {
				wf_flight_land(&read, 1, 10 * MS);
				assert_int_equal(read.status, WEFT_UNAVAILABLE);
				wf_flight_free(&read, 1);
			}
			wf_flight_free(&call, 1);
			weft_stream_close(stream);
			close_world();
		}
	}
}

static void a_server_that_thaws_in_time_ends_nothing(void **state)
{
	struct weft_stream *stream;
	struct wf_flight f[2];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		wf_world_hold(1, true);
		wf_flight_call(&f[0], 0, 1, source, REQUEST, WEFT_FOREVER);
		wf_flight_open(&f[1], 0, 1, WEFT_FOREVER, &stream);
		wf_world_pass(S);
		for (unsigned j = 0; j < 5; j++) {
			wf_world_freeze(1, true);
			wf_world_pass(150 * MS);
			wf_world_freeze(1, false);
			wf_world_pass(150 * MS);
		}
		assert_int_equal(f[0].outcomes, 0);
		assert_int_equal(f[1].outcomes, 0);
		wf_world_hold(1, false);
		assert_int_equal(weft_stream_half_close(stream), 0);
		wf_flight_land(f, 2, S);
		assert_int_equal(f[0].status, WEFT_OK);
		assert_int_equal(f[1].status, WEFT_OK);
		wf_flight_free(f, 2);
		weft_stream_close(stream);
		close_world();
	}
}

/* With an attempt to spare the call finds the server again, which has handled it. */
static uint64_t a_second(unsigned number, void *call, const uint8_t *bytes, size_t count)
{
	(void)call;
	(void)number;
	(void)bytes;
	(void)count;
	return S;
}

static void a_call_with_retry_outlives_a_server_that_thaws(void **state)
{
	static const struct weft_retry retry = { .size = sizeof(retry), .attempts = 5,
						 .statuses = 1u << WEFT_UNAVAILABLE };
	struct weft_call_options options = { .size = sizeof(options), .retry = &retry };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	struct wf_flight f;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		wf_world_on_call(a_second);
		options.op = wf_flight_begin(&f, 30 * S);
		assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &f.op), 0);
		question.body.data = source;
		question.body.len = REQUEST;
		sim__mirror__reflect(service, &question, NULL, NULL);
		wf_world_pass(100 * MS);
		assert_int_equal(wf_world_served(1), 1);
		wf_world_freeze(1, true);
		wf_world_pass(2 * S);
		assert_int_equal(f.outcomes, 0);
		wf_world_freeze(1, false);
		wf_flight_land(&f, 1, 20 * S);
		assert_int_equal(f.status, WEFT_OK);
		assert_int_equal(wf_world_served(1), 1);
		wf_flight_free(&f, 1);
		close_world();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_whose_server_freezes_is_unavailable_within_the_limit),
		cmocka_unit_test(a_call_that_begins_while_its_server_is_frozen_ends_like_it),
		cmocka_unit_test(
			a_receive_from_the_address_of_a_peer_that_dialled_ends_when_that_freezes),
		cmocka_unit_test(an_idle_stream_whose_server_freezes_is_unavailable_within_the_limit),
		cmocka_unit_test(a_server_that_thaws_in_time_ends_nothing),
		cmocka_unit_test(a_call_with_retry_outlives_a_server_that_thaws),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
