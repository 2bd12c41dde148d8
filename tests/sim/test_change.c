/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners hear what becomes of their peers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define HEARD_MAX 16

static struct {
	enum weft_peer_state states[HEARD_MAX];
	char why[200]; /* of the last WEFT_PEER_GONE */
	unsigned count;
	struct wf_flight *ping; /* begun when the peer is gone; NULL: not */
} heard;

static void changed(struct weft_peer *peer, enum weft_peer_state state, const char *why, void *arg)
{
	assert_ptr_equal(arg, &heard);
	assert_true(heard.count < HEARD_MAX);
	assert_int_equal(state == WEFT_PEER_GONE, *why != '\0');
	heard.states[heard.count++] = state;
	if (state != WEFT_PEER_GONE)
		return;
	(void)snprintf(heard.why, sizeof(heard.why), "%s", why);
	if (heard.ping) {
		struct weft_op_options options = wf_flight_begin(heard.ping, 10 * S);

		assert_int_equal(weft_ping(peer, &options, &heard.ping->op), 0);
	}
}

static void listen(void)
{
	memset(&heard, 0, sizeof(heard));
	assert_int_equal(weft_peer_on_change(wf_world_peer(0, 1), changed, &heard), 0);
}

static bool has_heard(void *count)
{
	return heard.count >= *(unsigned *)count;
}

/* Assert that the listener has heard, or hears soon, @state as number @count. */
static void hear(unsigned count, enum weft_peer_state state)
{
	assert_true(wf_world_run(has_heard, &count, 10 * S));
	assert_int_equal(heard.count, count);
	assert_int_equal(heard.states[count - 1], state);
}

static void a_peer_is_up_gone_and_up_again(void **state)
{
	struct wf_flight ping;

	(void)state;
	for (size_t s = 0; s < WF_COUNT(wf_world_shapes); s++) {
		wf_world_lose_soon();
		wf_world_open(wf_world_shapes[s], 2, NULL);
		listen();
		wf_world_pass(S);
		assert_int_equal(heard.count, 0);
		wf_world_connect(0, 1);
		hear(1, WEFT_PEER_UP);
		wf_world_kill(1);
		hear(2, WEFT_PEER_GONE);
		wf_world_restart(1);
		wf_flight_ping(&ping, 0, 1, 10 * S);
		wf_flight_land(&ping, 1, 10 * S);
		assert_int_equal(ping.status, WEFT_OK);
		hear(3, WEFT_PEER_UP);
		wf_flight_free(&ping, 1);
		assert_int_equal(wf_world_close(), 0);
		assert_int_equal(heard.count, 3); /* the node's own end is no change */
	}
}

static void a_listener_that_comes_late_hears_what_is_so(void **state)
{
	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	listen();
	hear(1, WEFT_PEER_UP);
	assert_int_equal(weft_node_drain(wf_world_node(1), S), 0);
	hear(2, WEFT_PEER_DRAINING);
	listen();
	hear(1, WEFT_PEER_DRAINING);
	assert_int_equal(weft_peer_on_change(wf_world_peer(0, 1), NULL, NULL), 0);
	wf_world_leave(1);
	wf_world_pass(S);
	assert_int_equal(heard.count, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void a_peer_that_says_goodbye_is_gone_at_once(void **state)
{
	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	listen();
	hear(1, WEFT_PEER_UP);
	wf_world_leave(1);
	hear(2, WEFT_PEER_GONE);
	assert_non_null(strstr(heard.why, "said goodbye"));
	assert_int_equal(wf_world_close(), 0);
}

static void a_rail_that_fails_and_a_door_that_is_cut_are_no_change(void **state)
{
	struct wf_flight ping;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	listen();
	hear(1, WEFT_PEER_UP);
	wf_world_break_rail(0, 1, true);
	wf_world_pass(20 * MS);
	wf_world_break_rail(0, 1, false);
	wf_world_cut_door(0, 1);
	wf_flight_ping(&ping, 0, 1, 10 * S);
	wf_flight_land(&ping, 1, 10 * S);
	assert_int_equal(ping.status, WEFT_OK);
	wf_flight_free(&ping, 1);
	wf_world_pass(S);
	assert_int_equal(heard.count, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void a_listener_may_begin_operations(void **state)
{
	struct wf_flight ping;

	(void)state;
	wf_world_lose_soon();
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	listen();
	wf_world_connect(0, 1);
	hear(1, WEFT_PEER_UP);
	heard.ping = &ping;
	wf_world_kill(1);
	hear(2, WEFT_PEER_GONE);
	heard.ping = NULL;
	wf_world_restart(1);
	wf_flight_land(&ping, 1, 10 * S);
	assert_int_equal(ping.status, WEFT_OK);
	hear(3, WEFT_PEER_UP);
	wf_flight_free(&ping, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void a_peer_that_nobody_reaches_is_gone(void **state)
{
	struct wf_flight ping;

	(void)state;
	wf_world_lose_soon();
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	listen();
	wf_world_kill(1);
	wf_flight_ping(&ping, 0, 1, 100 * S);
	wf_flight_land(&ping, 1, 100 * S);
	assert_int_equal(ping.status, WEFT_UNAVAILABLE);
	hear(1, WEFT_PEER_GONE);
	wf_flight_free(&ping, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void a_peer_of_any_worker_is_heard_of(void **state)
{
	struct wf_flight ping;

	(void)state;
	wf_world_set_workers(3);
	wf_world_lose_soon();
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	listen();
	wf_flight_ping(&ping, 1, 0, S); /* it dials us meanwhile, and is met at another worker */
	wf_world_connect(0, 1);
	wf_flight_land(&ping, 1, S);
	hear(1, WEFT_PEER_UP);
	wf_world_kill(1);
	hear(2, WEFT_PEER_GONE);
	wf_flight_free(&ping, 1);
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_is_up_gone_and_up_again),
		cmocka_unit_test(a_listener_that_comes_late_hears_what_is_so),
		cmocka_unit_test(a_peer_that_says_goodbye_is_gone_at_once),
		cmocka_unit_test(a_rail_that_fails_and_a_door_that_is_cut_are_no_change),
		cmocka_unit_test(a_listener_may_begin_operations),
		cmocka_unit_test(a_peer_that_nobody_reaches_is_gone),
		cmocka_unit_test(a_peer_of_any_worker_is_heard_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
