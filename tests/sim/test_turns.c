/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns of a worker: a long list of one peer does not hold one, nothing overtakes, and a thread that
 * is in the middle of a submission gets to run.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "core/op.h"
#include "core/worker.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define MANY 4000u
#define A_TURN 200u /* the most that a turn may end */
#define BYTES 64

static uint8_t source[BYTES], target[BYTES];
static struct wf_flight many[MANY];

static unsigned ended(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < MANY; i++)
		count += many[i].outcomes;
	return count;
}

/* Turn node 0 until all has ended.  Asserts that no turn ends more than it may. */
static void turn_to_the_end(void)
{
	for (unsigned before = ended(), now; before < MANY; before = now) {
		wf_world_poll(0);
		now = ended();
		assert_in_range(now - before, 1, A_TURN);
	}
}

static void operations_that_time_out_at_once_let_a_call_through(void **state)
{
	struct wf_flight call;
	unsigned turns = 0;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 3, NULL);
	wf_world_connect(0, 1);
	wf_world_connect(2, 0);
	for (unsigned i = 0; i < MANY; i++)
		wf_flight_receive(&many[i], 0, 1, i, target, BYTES, 100 * MS);
	wf_world_pass(98 * MS);
	assert_int_equal(ended(), 0);
	/* The call is on the wire when the time of all is up. */
	wf_flight_call(&call, 2, 0, source, BYTES, S);
	wf_world_poll(2);
	wf_fake_clock_set(wf_clock_now() + 5 * MS);
	while (!wf_world_served(0)) {
		wf_world_poll(0);
		assert_in_range(++turns, 1, 3);
	}
	assert_in_range(ended(), 0, 3 * A_TURN);
	turn_to_the_end();
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(many[i].status, WEFT_DEADLINE_EXCEEDED);
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_OK);
	wf_flight_free(&call, 1);
	wf_flight_free(many, MANY);
	wf_world_end();
}

/* The program hears of the ends in parts. */
static void operations_of_a_dead_peer_end_in_parts_and_let_a_call_through(void **state)
{
	struct wf_flight call;

	(void)state;
	wf_world_lose_soon();
	wf_world_open(WF_WORLD_CONNECTED, 3, NULL);
	wf_world_connect(0, 1);
	wf_world_connect(2, 0);
	for (unsigned i = 0; i < MANY; i++)
		wf_flight_receive(&many[i], 0, 1, i, target, BYTES, 10 * S);
	wf_world_kill(1);
	for (uint64_t until_ns = wf_clock_now() + 2 * S; !ended(); wf_world_step())
		assert_true(wf_clock_now() < until_ns);
	assert_in_range(ended(), 1, A_TURN);
	wf_flight_call(&call, 2, 0, source, BYTES, S);
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_OK);
	turn_to_the_end();
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(many[i].status, WEFT_UNAVAILABLE);
	wf_flight_free(&call, 1);
	wf_flight_free(many, MANY);
	wf_world_end();
}

#define ORDERED 500u /* more than a turn begins */

static uint32_t numbers[ORDERED + 1], got[ORDERED + 1];
static struct wf_flight sends[ORDERED + 1], receives[ORDERED + 1];
static bool begun;

static void send_number(unsigned i)
{
	numbers[i] = i;
	wf_flight_send(&sends[i], 0, 1, 1, &numbers[i], sizeof(numbers[i]), 20 * S);
}

static void send_many(struct weft_op *op, void *arg)
{
	(void)op;
	(void)arg;
	for (unsigned i = 0; i < ORDERED; i++)
		send_number(i);
	begun = true;
}

static void a_send_outside_a_turn_follows_those_that_a_callback_has_begun(void **state)
{
	const struct weft_op_options options = { .size = sizeof(options), .done = send_many };

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	assert_int_equal(weft_ping(wf_world_peer(0, 1), &options, NULL), 0);
	while (!begun) {
		wf_world_poll(1);
		wf_world_poll(0);
		wf_fake_clock_set(wf_clock_now() + MS / 10);
	}
	send_number(ORDERED);
	for (unsigned i = 0; i <= ORDERED; i++)
		wf_flight_receive(&receives[i], 1, 0, 1, &got[i], sizeof(got[i]), 20 * S);
	wf_flight_land(receives, ORDERED + 1, 20 * S);
	wf_flight_land(sends, ORDERED + 1, 20 * S);
	for (unsigned i = 0; i <= ORDERED; i++)
		assert_int_equal(got[i], i);
	wf_flight_free(receives, ORDERED + 1);
	wf_flight_free(sends, ORDERED + 1);
	assert_int_equal(wf_world_close(), 0);
}

static unsigned yields;

/* In the place of the C library's. */
int sched_yield(void)
{
	yields++;
	return 0;
}

static void a_worker_whose_next_end_waits_for_a_submission_lets_its_thread_run(void **state)
{
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	wf_flight_send(&f, 0, 1, 1, source, BYTES, 20 * S);
	/* The thread that submits has been put off the processor just before its last step. */
	atomic_store(&f.op->submitted, false);
	while (!f.op->outcome.known) {
		assert_int_equal(yields, 0);
		wf_world_poll(0);
	}
	for (unsigned turn = 0; turn < 3; turn++) {
		yields = 0;
		wf_world_poll(0);
		assert_true(yields > 0);
		assert_false(f.outcomes);
	}
	atomic_store(&f.op->submitted, true);
	wf_world_poll(0);
	assert_int_equal(f.outcomes, 1);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

static struct wf_loop *loop_of(unsigned number)
{
	return &wf_world_node(number)->workers[0].engine.loop;
}

static void an_end_that_nobody_is_told_of_leaves_the_loop_to_a_waiter_that_comes_back(void **state)
{
	struct weft_op *op;
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	assert_int_equal(weft_ping(wf_world_peer(0, 1), NULL, &op), 0);
	weft_cancel(op);
	assert_false(wf_list_empty(&loop_of(0)->notices));
	assert_false(loop_of(0)->pressing);
	weft_op_free(op);
	wf_flight_ping(&f, 0, 1, 20 * S);
	weft_cancel(f.op);
	assert_true(loop_of(0)->pressing);
	wf_flight_land(&f, 1, 20 * S);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_that_time_out_at_once_let_a_call_through),
		cmocka_unit_test(operations_of_a_dead_peer_end_in_parts_and_let_a_call_through),
		cmocka_unit_test(a_send_outside_a_turn_follows_those_that_a_callback_has_begun),
		cmocka_unit_test(
			a_worker_whose_next_end_waits_for_a_submission_lets_its_thread_run),
		cmocka_unit_test(
			an_end_that_nobody_is_told_of_leaves_the_loop_to_a_waiter_that_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
