/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/limit.h"

#include <errno.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define CALLS 8

static struct wf_limits limits;
static struct wf_limit limit;
static struct wf_loop loops[2]; /* never asleep: their tasks run when they are drained */
static struct wf_limit_turns turns[2];
static struct wf_limit_ticket calls[CALLS];
static struct wf_error error;
static const char alice, bob; /* peers */

/* The numbers of the calls whose turn has come, in order, as digits. */
static char came[CALLS + 1];

static void come(struct wf_limit_ticket *ticket)
{
	size_t used = strlen(came);

	assert_true(used < CALLS);
	came[used] = (char)('0' + (ticket - calls));
}

static int set_up(void **state)
{
	(void)state;
	memset(calls, 0, sizeof(calls));
	memset(came, 0, sizeof(came));
	assert_int_equal(wf_limits_init(&limits), 0);
	for (size_t i = 0; i < WF_COUNT(loops); i++) {
		loops[i] = (struct wf_loop){ 0 };
		wf_list_init(&loops[i].notices);
		wf_limit_turns_init(&turns[i], &limits, &loops[i], come);
	}
	return 0;
}

/* All calls have left, and nothing is kept of them. */
static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < CALLS; i++)
		wf_limit_leave(&calls[i]);
	for (size_t i = 0; i < WF_COUNT(loops); i++)
		wf_loop_drain(&loops[i]);
	assert_int_equal(limit.running, 0);
	assert_int_equal(limit.waiting, 0);
	assert_int_equal(limit.peers.count, 0);
	wf_limit_fini(&limit);
	wf_limits_fini(&limits);
	return 0;
}

static int enter_on(size_t loop, size_t call, const void *peer)
{
	return wf_limit_enter(&limit, &turns[loop], peer, &calls[call], &error);
}

static int enter(size_t call, const void *peer)
{
	return enter_on(0, call, peer);
}

static void a_service_without_limits_counts_nothing(void **state)
{
	(void)state;
	wf_limit_init(&limit, 0, 0, 0);
	for (size_t i = 0; i < CALLS; i++)
		assert_int_equal(enter(i, &alice), 0);
	assert_int_equal(limit.running, 0);
	assert_null(calls[0].limit);
}

static void calls_beyond_calls_max_begin_in_the_order_in_which_they_came(void **state)
{
	(void)state;
	wf_limit_init(&limit, 2, 0, 3);
	assert_int_equal(enter(0, &alice), 0);
	assert_int_equal(enter(1, &bob), 0);
	assert_int_equal(enter(2, &bob), -EINPROGRESS);
	assert_int_equal(enter(3, &alice), -EINPROGRESS);
	assert_int_equal(enter(4, &bob), -EINPROGRESS);
	wf_limit_leave(&calls[1]);
	wf_loop_drain(&loops[0]);
	assert_string_equal(came, "2");
	wf_limit_leave(&calls[0]);
	wf_limit_leave(&calls[2]);
	wf_loop_drain(&loops[0]);
	assert_string_equal(came, "234");
}

static void a_call_that_finds_the_queue_full_is_refused_and_told_which_limit(void **state)
{
	(void)state;
	wf_limit_init(&limit, 1, 0, 1);
	assert_int_equal(enter(0, &alice), 0);
	assert_int_equal(enter(1, &alice), -EINPROGRESS);
	assert_int_equal(enter(2, &alice), -ENOBUFS);
	assert_non_null(strstr(error.text, "calls_max"));
	assert_null(calls[2].limit);
}

static void without_a_queue_nobody_waits(void **state)
{
	(void)state;
	wf_limit_init(&limit, 0, 1, 0);
	assert_int_equal(enter(0, &alice), 0);
	assert_int_equal(enter(1, &alice), -ENOBUFS);
	assert_non_null(strstr(error.text, "calls_per_peer"));
	assert_int_equal(enter(2, &bob), 0);
}

static void calls_of_one_peer_that_wait_hold_up_no_other(void **state)
{
	(void)state;
	wf_limit_init(&limit, 2, 1, 4);
	assert_int_equal(enter(0, &alice), 0);
	assert_int_equal(enter(1, &alice), -EINPROGRESS);
	assert_int_equal(enter(2, &alice), -EINPROGRESS);
	assert_int_equal(enter(3, &bob), 0);
	wf_limit_leave(&calls[0]);
	wf_loop_drain(&loops[0]);
	assert_string_equal(came, "1");
}

static void a_call_waits_for_its_peer_and_then_for_the_service(void **state)
{
	char text[128];

	(void)state;
	wf_limit_init(&limit, 2, 1, 4);
	assert_int_equal(enter(0, &alice), 0);
	assert_int_equal(enter(1, &alice), -EINPROGRESS);
	assert_int_equal(enter(2, &bob), 0);
	assert_int_equal(enter(3, &limit), -EINPROGRESS); /* a third peer */
	wf_limit_describe(&calls[1], text, sizeof(text));
	assert_non_null(strstr(text, "calls_per_peer 1"));
	wf_limit_describe(&calls[3], text, sizeof(text));
	assert_non_null(strstr(text, "calls_max 2"));
	wf_limit_leave(&calls[0]); /* its peer's next comes to the end of the service's queue */
	wf_loop_drain(&loops[0]);
	assert_string_equal(came, "3");
	wf_limit_leave(&calls[2]);
	wf_loop_drain(&loops[0]);
	assert_string_equal(came, "31");
}

static void a_call_that_stops_waiting_gives_its_place_to_the_next(void **state)
{
	(void)state;
	wf_limit_init(&limit, 1, 0, 2);
	assert_int_equal(enter(0, &alice), 0);
	assert_int_equal(enter(1, &alice), -EINPROGRESS);
	assert_int_equal(enter(2, &alice), -EINPROGRESS);
	wf_limit_leave(&calls[1]);
	assert_int_equal(enter(3, &alice), -EINPROGRESS); /* there is room in the queue again */
	wf_limit_leave(&calls[0]);
	wf_loop_drain(&loops[0]);
	assert_string_equal(came, "2");
}

static void a_call_that_stops_waiting_for_its_peer_lets_no_other_in(void **state)
{
	(void)state;
	wf_limit_init(&limit, 0, 1, 2);
	assert_int_equal(enter(0, &alice), 0);
	assert_int_equal(enter(1, &alice), -EINPROGRESS);
	wf_limit_leave(&calls[1]);
	assert_int_equal(enter(2, &alice), -EINPROGRESS);
	assert_string_equal(came, "");
}

static void a_call_that_leaves_before_it_hears_of_its_turn_passes_it_on(void **state)
{
	(void)state;
	wf_limit_init(&limit, 1, 0, 2);
	assert_int_equal(enter(0, &alice), 0);
	assert_int_equal(enter(1, &alice), -EINPROGRESS);
	assert_int_equal(enter(2, &alice), -EINPROGRESS);
	wf_limit_leave(&calls[0]);
	assert_int_equal(calls[1].state, WF_TICKET_COME);
	wf_limit_leave(&calls[1]);
	wf_loop_drain(&loops[0]);
	assert_string_equal(came, "2");
}

static void a_turn_comes_on_the_loop_of_its_call(void **state)
{
	(void)state;
	wf_limit_init(&limit, 1, 0, 2);
	assert_int_equal(enter_on(0, 0, &alice), 0);
	assert_int_equal(enter_on(1, 1, &bob), -EINPROGRESS);
	wf_limit_leave(&calls[0]);
	wf_loop_drain(&loops[0]);
	assert_string_equal(came, "");
	wf_loop_drain(&loops[1]);
	assert_string_equal(came, "1");
}

#define ON_NEW_LIMITS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_NEW_LIMITS(a_service_without_limits_counts_nothing),
		ON_NEW_LIMITS(calls_beyond_calls_max_begin_in_the_order_in_which_they_came),
		ON_NEW_LIMITS(a_call_that_finds_the_queue_full_is_refused_and_told_which_limit),
		ON_NEW_LIMITS(without_a_queue_nobody_waits),
		ON_NEW_LIMITS(calls_of_one_peer_that_wait_hold_up_no_other),
		ON_NEW_LIMITS(a_call_waits_for_its_peer_and_then_for_the_service),
		ON_NEW_LIMITS(a_call_that_stops_waiting_gives_its_place_to_the_next),
		ON_NEW_LIMITS(a_call_that_stops_waiting_for_its_peer_lets_no_other_in),
		ON_NEW_LIMITS(a_call_that_leaves_before_it_hears_of_its_turn_passes_it_on),
		ON_NEW_LIMITS(a_turn_comes_on_the_loop_of_its_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
