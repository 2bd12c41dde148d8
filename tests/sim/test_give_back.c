/* SPDX-License-Identifier: BSD-2-Clause */
/* What a receive is matched with, and what becomes of that when it is cancelled, or out of time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define SMALL 100
#define BIG (3 * MIB + 17) /* pulled, in several chunks */
#define STEP 7
#define LIMIT (25 * MS) /* reads are under way then: each way takes 10 ms */

static const struct wf_fake slow = { .seed = 1, .delay_min_ns = 10 * MS, .delay_max_ns = 10 * MS };

static uint8_t sources[2][BIG], target[BIG], next_target[BIG];

static void open_world(enum wf_world_shape shape)
{
	wf_world_open(shape, 2, &slow);
	wf_world_connect(0, 1);
	for (unsigned i = 0; i < 2; i++)
		wf_world_fill(sources[i], BIG, i + 1);
	memset(target, 0xee, BIG);
}

static void receive(struct wf_flight *f, void *into, size_t bytes, unsigned flags, uint64_t limit_ns)
{
	int64_t shape = (int64_t)bytes;
	struct weft_tensor t = {
		.data = into, .device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 },
		.shape = &shape,
	};
	struct weft_recv_options options = { .size = sizeof(options), .flags = flags };

	options.op = wf_flight_begin(f, limit_ns);
	assert_int_equal(weft_recv(wf_world_node(1), wf_world_peer(1, 0), STEP, "", 0,
				   into ? &t : NULL, &options, &f->op), 0);
}

/* @f ends as the test wants, and its buffer is quiet from then on. */
static void give_up(struct wf_flight *f, bool cancel)
{
	static uint8_t at_the_end[BIG];

	if (cancel) {
		wf_world_pass(LIMIT);
		assert_int_equal(f->outcomes, 0);
		weft_cancel(f->op);
	}
	wf_flight_land(f, 1, S);
	/* One that had no memory by then says that. */
	assert_true(f->status == (cancel ? WEFT_CANCELLED : WEFT_DEADLINE_EXCEEDED) ||
		    (!cancel && f->status == WEFT_RESOURCE_EXHAUSTED));
	wf_flight_free(f, 1);
	memcpy(at_the_end, target, BIG);
	wf_world_pass(S);
	assert_same_content(at_the_end, target, BIG);
}

static void land_well(struct wf_flight *f, size_t count)
{
	wf_flight_land(f, count, 5 * S);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	wf_flight_free(f, count);
}

static void a_tensor_that_was_being_pulled_waits_for_the_next_receive(void **state)
{
	struct wf_flight f[3];

	(void)state;
	for (unsigned i = 0; i < 4; i++) { /* not on one host: reads have no middle there */
		open_world(wf_world_shapes[i / 2]);
		wf_flight_send(&f[0], 0, 1, STEP, sources[0], BIG, 0);
		receive(&f[2], target, BIG, 0, i % 2 ? 0 : LIMIT);
		give_up(&f[2], i % 2);
		assert_int_equal(f[0].outcomes, 0);

		receive(&f[1], next_target, BIG, 0, 0);
		land_well(f, 2);
		assert_same_content(next_target, sources[0], BIG);
		wf_world_assert_free(1);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_receive_that_waits_already_gets_it(void **state)
{
	struct wf_flight f[3];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		open_world(wf_world_shapes[i]);
		wf_flight_send(&f[0], 0, 1, STEP, sources[0], BIG, 0);
		receive(&f[2], target, BIG, 0, 0);
		receive(&f[1], next_target, BIG, 0, 0);
		give_up(&f[2], true);
		land_well(f, 2);
		assert_same_content(next_target, sources[0], BIG);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_tensor_given_back_goes_back_to_its_place(void **state)
{
	struct wf_flight f[4], cancelled;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	receive(&cancelled, target, BIG, 0, 0);
	for (unsigned i = 0; i < 2; i++)
		wf_flight_send(&f[i], 0, 1, STEP, sources[i], BIG, 0);
	give_up(&cancelled, true);
	receive(&f[2], next_target, BIG, 0, 0);
	wf_flight_land(&f[2], 1, 5 * S);
	assert_same_content(next_target, sources[0], BIG);
	wf_flight_free(&f[2], 1);
	receive(&f[2], next_target, BIG, 0, 0);
	land_well(f, 3);
	assert_same_content(next_target, sources[1], BIG);
	assert_int_equal(wf_world_close(), 0);
}

static void a_tensor_is_dropped_if_the_receive_says_so(void **state)
{
	struct wf_flight f, cancelled;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		open_world(WF_WORLD_CONNECTED);
		wf_flight_send(&f, 0, 1, STEP, sources[0], BIG, 0);
		receive(&cancelled, target, BIG, WEFT_DROP, i ? 0 : LIMIT);
		give_up(&cancelled, i);
		wf_flight_land(&f, 1, S);
		assert_int_equal(f.status, WEFT_OK);
		wf_flight_free(&f, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Of an eager one the bytes are here, of an offered one they are not. */
static void a_tensor_that_waited_for_memory_waits_for_the_next_receive(void **state)
{
	static const size_t lengths[] = { SMALL, 500 * KIB };
	struct wf_flight f[2], cancelled;
	void *all[256];
	size_t count;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		size_t bytes = lengths[i / 2];

		assert_int_equal(setenv("WEFT_POOL_BYTES", "8M", 1), 0);
		open_world(WF_WORLD_CONNECTED);
		count = wf_world_take_pool(1, all, WF_COUNT(all));
		wf_flight_send(&f[0], 0, 1, STEP, sources[0], bytes, 0);
		receive(&cancelled, NULL, bytes, 0, i % 2 ? 0 : LIMIT);
		give_up(&cancelled, i % 2);

		receive(&f[1], next_target, bytes, 0, 0);
		land_well(f, 2);
		assert_same_content(next_target, sources[0], bytes);
		while (count--)
			weft_free(wf_world_node(1), all[count]);
		wf_world_assert_free(1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* The sender changes its mind first, dies, or the step ends, while it waits again. */
static void a_tensor_that_was_given_back_ends_as_any_other(void **state)
{
	struct wf_flight f, cancelled;

	(void)state;
	for (unsigned how = 0; how < 4; how++) {
		open_world(WF_WORLD_CONNECTED);
		wf_flight_send(&f, 0, 1, STEP, sources[0], BIG, 0);
		receive(&cancelled, target, BIG, 0, 0);
		give_up(&cancelled, true);
		if (how == 0)
			weft_cancel(f.op);
		else if (how == 1)
			assert_int_equal(weft_step_end(wf_world_node(1), STEP), 0);
		else if (how == 2)
			assert_int_equal(weft_step_abort(wf_world_node(0), STEP, WEFT_ABORTED, ""), 0);
		else
			wf_world_kill(1);
		wf_flight_land(&f, 1, 5 * S);
		assert_int_equal(f.status, how == 0	? WEFT_CANCELLED :
					   how == 1 ? WEFT_OK :
					   how == 2 ? WEFT_ABORTED : WEFT_UNAVAILABLE);
		wf_flight_free(&f, 1);
		if (how < 3)
			wf_world_assert_free(1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Dtype, shape and size are asked for, though there is no content. */
static void a_dead_tensor_is_matched_as_a_live_one(void **state)
{
	static const struct {
		int64_t sent, asked;
		uint8_t bits;
		unsigned flags;
		enum weft_status status;
	} rows[] = {
		{ 8, 8, 32, 0, WEFT_OK },
		{ 8, 9, 32, 0, WEFT_FAILED_PRECONDITION },
		{ 8, 8, 64, 0, WEFT_FAILED_PRECONDITION },
		{ 8, 9, 32, WEFT_ANY_SHAPE, WEFT_OK },
		{ 9, 8, 32, WEFT_ANY_SHAPE, WEFT_FAILED_PRECONDITION },
		{ 8, 9, 64, WEFT_ANY_SHAPE, WEFT_FAILED_PRECONDITION },
	};
	struct wf_flight f[2];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		int64_t sent = rows[i].sent, asked = rows[i].asked;
		struct weft_tensor out = {
			.device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_FLOAT, 32, 1 },
			.shape = &sent,
		};
		struct weft_tensor in = {
			.data = target, .device = { WEFT_CPU, 0 }, .ndim = 1,
			.dtype = { WEFT_FLOAT, rows[i].bits, 1 }, .shape = &asked,
		};
		struct weft_send_options sending = { .size = sizeof(sending), .flags = WEFT_DEAD };
		struct weft_recv_options receiving = {
			.size = sizeof(receiving), .flags = rows[i].flags,
		};

		open_world(WF_WORLD_CONNECTED);
		sending.op = wf_flight_begin(&f[0], 0);
		assert_int_equal(weft_send(wf_world_peer(0, 1), STEP, "", 0, &out, &sending,
					   &f[0].op), 0);
		receiving.op = wf_flight_begin(&f[1], 0);
		assert_int_equal(weft_recv(wf_world_node(1), NULL, STEP, "", 0, &in, &receiving,
					   &f[1].op), 0);
		wf_flight_land(f, 2, S);
		assert_int_equal(f[0].status, WEFT_OK);
		assert_int_equal(f[1].status, rows[i].status);
		wf_flight_free(f, 2);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_receive_that_fails_was_executed_only_if_a_tensor_came(void **state)
{
	struct wf_flight f[2];

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	receive(&f[0], target, BIG, 0, 5 * MS);
	wf_flight_land(f, 1, S);
	assert_int_equal(f[0].status, WEFT_DEADLINE_EXCEEDED);
	assert_int_equal(weft_op_executed(f[0].op), WEFT_EXECUTED_NO);
	wf_flight_free(f, 1);
	receive(&f[0], target, BIG, WEFT_DROP, LIMIT);
	wf_flight_send(&f[1], 0, 1, STEP, sources[0], BIG, 0);
	wf_flight_land(f, 2, S);
	assert_int_equal(f[0].status, WEFT_DEADLINE_EXCEEDED);
	assert_int_equal(weft_op_executed(f[0].op), WEFT_EXECUTED_MAYBE);
	wf_flight_free(f, 2);
	wf_world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tensor_that_was_being_pulled_waits_for_the_next_receive),
		cmocka_unit_test(a_receive_that_waits_already_gets_it),
		cmocka_unit_test(a_tensor_given_back_goes_back_to_its_place),
		cmocka_unit_test(a_tensor_is_dropped_if_the_receive_says_so),
		cmocka_unit_test(a_tensor_that_waited_for_memory_waits_for_the_next_receive),
		cmocka_unit_test(a_tensor_that_was_given_back_ends_as_any_other),
		cmocka_unit_test(a_dead_tensor_is_matched_as_a_live_one),
		cmocka_unit_test(a_receive_that_fails_was_executed_only_if_a_tensor_came),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
