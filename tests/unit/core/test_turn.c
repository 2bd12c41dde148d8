/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guests of a worker's loop, and whether its thread expects them back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "core/await.h"
#include "core/node.h"
#include "core/turn.h"
#include "util/clock.h"

#define LIMIT_NS (20 * WF_NS_PER_S)

static struct weft_node *node;

static int set_up(void **state)
{
	(void)state;
	setenv("FI_PROVIDER", "tcp", 1);
	setenv("WEFT_SPIN", "50us", 1);
	return weft_node_open(NULL, &node);
}

static int tear_down(void **state)
{
	(void)state;
	weft_node_close(node);
	return 0;
}

static bool comes(void *ctx)
{
	return *(bool *)ctx;
}

static struct wf_baton look_at_baton(void)
{
	struct wf_baton *b = &node->workers[0].baton, copy;

	pthread_mutex_lock(&b->lock);
	copy = (struct wf_baton){
		.left_ns = b->left_ns, .expected = b->expected, .promised = b->promised,
	};
	pthread_mutex_unlock(&b->lock);
	return copy;
}

/*
 * Turn the node's loop as a guest that waits for what comes at once or never.  Returns whether the
 * guest is expected back.
 */
static bool visit(bool at_once, uint64_t until_ns)
{
	uint64_t left_ns = look_at_baton().left_ns;

	/* The thread may keep the loop. */
	while (look_at_baton().left_ns == left_ns && wf_clock_now() < until_ns)
		assert_int_equal(wf_turn_visit(&node->workers[0], comes, &at_once, until_ns),
				 at_once);
	return look_at_baton().expected;
}

static void a_guest_that_spins_in_vain_is_not_expected_back(void **state)
{
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		assert_false(visit(false, until_ns));
	assert_true(wf_clock_now() < until_ns);
}

static void a_guest_whose_wait_is_over_is_expected_back(void **state)
{
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;

	(void)state;
	/* The thread may have waited for it in vain before this one could look. */
	while (!visit(true, until_ns))
		assert_true(wf_clock_now() < until_ns);
}

/* The wait of a guest that another one keeps out of the loop. */
struct kept_out {
	unsigned looks;
	bool is_let_in; /* at the second look, at which the wait is over */
};

static bool comes_at_second_look(void *ctx)
{
	struct kept_out *k = ctx;
	struct wf_baton *b = &node->workers[0].baton;

	k->looks++;
	if (k->looks == 2 && k->is_let_in) {
		/* As the worker's thread does for a guest that has asked. */
		pthread_mutex_lock(&b->lock);
		b->holder = WF_BATON_FREE;
		b->promised = true;
		pthread_mutex_unlock(&b->lock);
	}
	return k->looks >= 2;
}

/* Wait while this thread, as another guest, has the loop.  Returns whether the wait has ended. */
static bool wait_outside(struct kept_out *k)
{
	struct wf_worker *worker = &node->workers[0];
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;
	bool ended = false;

	while (!wf_baton_take(&worker->baton, wf_clock_now()))
		assert_true(wf_clock_now() < until_ns);
	/* On a busy machine the time to ask may be over after one look. */
	while (!ended && wf_clock_now() < until_ns)
		ended = wf_turn_visit(worker, comes_at_second_look, k, until_ns);
	return ended;
}

static void a_guest_asks_for_the_loop_until_another_has_ended_its_wait(void **state)
{
	struct wf_worker *worker = &node->workers[0];
	struct kept_out k = { 0 };
	bool ended = wait_outside(&k);

	(void)state;
	if (wf_baton_give(&worker->baton, wf_clock_now(), false))
		wf_loop_kick(&worker->engine.loop);
	assert_true(ended);
	assert_int_equal(k.looks, 2);
	assert_false(wf_baton_is_wanted(&worker->baton));
}

static void a_guest_that_was_let_in_too_late_leaves_no_loop_that_waits_for_it(void **state)
{
	struct kept_out k = { .is_let_in = true };

	(void)state;
	assert_true(wait_outside(&k));
	assert_false(look_at_baton().promised);
}

static void guests_ask_for_longer_after_short_sleeps_and_less_after_long_ones(void **state)
{
	struct wf_worker *worker = &node->workers[0];
	uint64_t least_ns = worker->engine.loop.spin.least_ns;

	(void)state;
	wf_turn_slept(worker, least_ns);
	assert_int_equal(worker->ask_ns, WF_SPIN_FACTOR * least_ns);
	for (unsigned i = 0; i < 10; i++)
		wf_turn_slept(worker, LIMIT_NS);
	assert_int_equal(worker->ask_ns, least_ns);
}

static bool comes_never(void *ctx)
{
	(void)ctx;
	return false;
}

static void a_wait_in_vain_does_not_count_as_a_short_sleep(void **state)
{
	struct wf_worker *worker = &node->workers[0];

	(void)state;
	assert_int_equal(wf_await_that(worker, comes_never, NULL, wf_clock_now()), -ETIMEDOUT);
	assert_int_equal(wf_await_that(worker, comes_never, NULL,
				       wf_clock_now() + WF_NS_PER_MS / 20),
			 -ETIMEDOUT);
	assert_int_equal(worker->ask_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_guest_that_spins_in_vain_is_not_expected_back,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_guest_whose_wait_is_over_is_expected_back,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_guest_asks_for_the_loop_until_another_has_ended_its_wait, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_guest_that_was_let_in_too_late_leaves_no_loop_that_waits_for_it, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			guests_ask_for_longer_after_short_sleeps_and_less_after_long_ones, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_wait_in_vain_does_not_count_as_a_short_sleep,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
