/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that starts anew at its address, or for the first time, while others live on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "core/worker.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define US WF_NS_PER_US
#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define BIG (3 * MIB + 17)
#define LONG_NS (20 * S)
#define LOST_NS (600 * MS) /* silence of 300 ms, counted in beats of 100, or no redial for 500 */

static uint8_t sources[4][BIG], targets[4][BIG];

static void open_world(enum wf_world_shape shape)
{
	wf_world_lose_soon();
	wf_world_open(shape, 3, NULL);
	wf_world_connect(2, 0);
}

/* Node @at holds nothing for anybody. */
static void assert_free(unsigned at)
{
	const struct wf_worker *worker = &wf_world_node(at)->workers[0];
	uint32_t from = 0;

	assert_null(wf_table_next(&worker->transfer.outgoing, &from));
	from = 0;
	assert_null(wf_table_next(&worker->transfer.pulls, &from));
	from = 0;
	assert_null(wf_table_next(&worker->calls.table, &from));
	assert_int_equal(worker->unexpected_queue.count, 0);
	WF_LIST_EACH(node, &worker->engine.link_list)
		assert_int_equal(WF_CONTAINER(node, struct wf_link, node)->offers.map.count, 0);
	assert_int_equal(wf_world_count(at).pool_bytes_used, 0);
}

/* Tensors both ways and a call, between @a and @b: five flights. */
static void begin_all(struct wf_flight *f, unsigned a, unsigned b, uint64_t step)
{
	for (unsigned i = 0; i < 2; i++)
		wf_world_fill(sources[i], BIG, step + i);
	wf_flight_send(&f[0], a, b, step, sources[0], BIG, LONG_NS);
	wf_flight_receive(&f[1], a, b, step + 1, targets[1], BIG, LONG_NS);
	wf_flight_call(&f[2], a, b, sources[0], BIG, LONG_NS);
	wf_flight_receive(&f[3], b, a, step, targets[0], BIG, LONG_NS);
	wf_flight_send(&f[4], b, a, step + 1, sources[1], BIG, LONG_NS);
}

static void land_well(struct wf_flight *f, uint64_t step)
{
	wf_flight_land(f, 5, LONG_NS);
	for (unsigned i = 0; i < 5; i++)
		if (f[i].status != WEFT_OK)
			fail_msg("operation %u: %s", i, weft_op_message(f[i].op));
	assert_true(f[2].reply_right);
	for (unsigned i = 0; i < 2; i++)
		assert_true(wf_world_is_filled(targets[i], BIG, step + i));
	wf_flight_free(f, 5);
}

/* What waits for node 1 at node 0, each at another place. */
static void begin_old(struct wf_flight *old)
{
	wf_world_hold(1, true);
	wf_flight_send(&old[0], 0, 1, 1, sources[2], BIG, LONG_NS);
	wf_flight_receive(&old[1], 0, 1, 2, targets[2], BIG, LONG_NS);
	wf_flight_call(&old[2], 0, 1, sources[3], 100, LONG_NS);
	wf_flight_send(&old[3], 1, 0, 3, sources[3], BIG, LONG_NS); /* an offer of the dead */
	wf_world_pass(20 * MS);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(old[i].outcomes, 0);
	assert_int_equal(wf_world_served(1), 1);
}

static void try_restart(enum wf_world_shape shape, uint64_t away_ns)
{
	struct wf_flight old[4], fresh[5];
	uint64_t killed_ns;

	open_world(shape);
	wf_world_connect(0, 1);
	begin_old(old);

	killed_ns = wf_clock_now();
	wf_world_kill(1);
	wf_world_pass(away_ns);
	wf_world_restart(1);
	wf_flight_land(old, 3, LONG_NS);

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(old[i].status, WEFT_UNAVAILABLE);
		assert_in_range(old[i].ended_ns - killed_ns, 0, LOST_NS);
	}
	assert_int_equal(old[2].closures, 1);
	assert_int_equal(wf_world_count(0).peers_lost, 1);
	wf_world_pass(10 * MS);
	assert_free(0);
	begin_all(fresh, 0, 1, 10);
	land_well(fresh, 10);
	assert_int_equal(wf_world_count(0).peers_lost, 1);
	assert_int_equal(wf_world_count(2).peers_lost, 0);
	wf_flight_free(old, 4);
	assert_int_equal(wf_world_close(), 0);
}

static void a_peer_that_restarts_is_another_and_the_survivor_goes_on(void **state)
{
	/* At once, before anybody knows; while it is redialled; when it has been given up. */
	static const uint64_t away_ns[] = { 0, MS, 60 * MS, 250 * MS, S };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++)
		for (size_t j = 0; j < WF_COUNT(away_ns); j++)
			try_restart(wf_world_shapes[i], away_ns[j]);
}

static void a_peer_may_restart_again_and_again(void **state)
{
	struct wf_flight f[5];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		for (unsigned life = 0; life < 10; life++) {
			begin_all(f, 0, 1, 10 * (uint64_t)life);
			land_well(f, 10 * (uint64_t)life);
			wf_world_kill(1);
			wf_world_restart(1);
			/* Nobody waits for it, so its end is seen by what comes next. */
			wf_world_pass(life % 2 ? S : 0);
			if (life % 2 == 0) {
				wf_flight_ping(&f[0], 0, 1, LONG_NS);
				wf_flight_land(f, 1, LONG_NS);
				wf_flight_free(f, 1);
			}
		}
		wf_world_connect(0, 1);
		assert_free(0);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void dials_that_cross_after_a_restart_fail_nothing(void **state)
{
	struct wf_flight ping, f[5];

	(void)state;
	for (uint64_t seed = 0; seed < 80; seed++) {
		struct wf_fake fake = { .seed = seed, .delay_min_ns = 5 * US, .delay_max_ns = 50 * US };

		wf_world_open(wf_world_shapes[seed % WF_COUNT(wf_world_shapes)], 2, &fake);
		wf_world_connect(0, 1);
		wf_world_kill(1);
		wf_world_pass(5 * S);
		wf_world_restart(1);
		wf_flight_ping(&ping, 0, 1, LONG_NS);
		wf_world_pass(seed % 40 * 10 * US);
		begin_all(f, 0, 1, seed);
		land_well(f, seed);
		assert_int_equal(ping.status, WEFT_OK);
		wf_flight_free(&ping, 1);
		assert_int_equal(wf_world_count(0).peers_lost, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* The first calls of both lives of node 1 have the same id. */
static void a_handler_of_a_dead_caller_is_not_taken_for_that_of_a_call_of_its_next_life(void **state)
{
	struct wf_flight old, fresh;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		wf_world_connect(0, 1);
		wf_world_hold(0, true);
		wf_flight_call(&old, 1, 0, sources[0], 100, LONG_NS);
		wf_world_pass(20 * MS);
		assert_int_equal(wf_world_served(0), 1);
		wf_world_kill(1);
		wf_world_pass(S);
		wf_world_restart(1);
		wf_world_connect(0, 1);
		wf_flight_call(&fresh, 1, 0, sources[0], 100, LONG_NS);
		wf_world_pass(20 * MS);
		assert_int_equal(wf_world_served(0), 2);
		wf_world_hold(0, false);
		wf_flight_land(&fresh, 1, LONG_NS);
		assert_int_equal(fresh.status, WEFT_OK);
		assert_int_equal(wf_world_count(0).peers_lost, 1);
		wf_flight_free(&fresh, 1);
		wf_flight_free(&old, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_job_may_start_in_any_order(void **state)
{
	struct wf_flight f[5];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		for (unsigned j = 0; j < 2; j++)
			wf_world_fill(sources[j], BIG, 5 + j);
		wf_world_kill(1); /* known to nobody yet: its port refuses, as before its start */
		wf_flight_send(&f[0], 0, 1, 5, sources[0], BIG, LONG_NS);
		wf_flight_receive(&f[1], 0, 1, 6, targets[1], BIG, LONG_NS);
		wf_flight_call(&f[2], 0, 1, sources[0], BIG, LONG_NS);
		wf_world_pass(3 * S);
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(f[j].outcomes, 0);

		wf_world_restart(1);
		wf_flight_receive(&f[3], 1, 0, 5, targets[0], BIG, LONG_NS);
		wf_flight_send(&f[4], 1, 0, 6, sources[1], BIG, LONG_NS);
		land_well(f, 5);
		assert_int_equal(wf_world_count(0).peers_lost, 0);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Number of links that node 0 has. */
static size_t link_count(void)
{
	const struct wf_engine *engine = &wf_world_node(0)->workers[0].engine;
	size_t count = 0;

	WF_LIST_EACH(node, &engine->link_list)
		count++;
	assert_int_equal(engine->links.count, count);
	return count;
}

/* Let node 1, whose address node 0 does not know, send a byte under @step; returns its peer. */
static struct weft_peer *hear_of(uint64_t step)
{
	struct wf_flight f[2];
	struct weft_peer *peer;

	wf_flight_send(&f[0], 1, 0, step, sources[0], 1, LONG_NS);
	wf_flight_receive(&f[1], 0, 0, step, targets[0], 1, LONG_NS);
	wf_flight_land(f, 2, LONG_NS);
	assert_int_equal(f[1].status, WEFT_OK);
	peer = weft_op_peer(f[1].op);
	wf_flight_free(f, 2);
	return peer;
}

static void links_of_clients_that_have_died_are_given_up(void **state)
{
	struct wf_flight call;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		wf_world_lose_soon();
		wf_world_open(wf_world_shapes[i], 2, NULL);
		for (unsigned life = 0; life < 10; life++) {
			if (life % 2) {
				wf_flight_call(&call, 1, 0, sources[0], 100, LONG_NS);
				wf_flight_land(&call, 1, LONG_NS);
				assert_int_equal(call.status, WEFT_OK);
				wf_flight_free(&call, 1);
			} else {
				(void)hear_of(life);
			}
			assert_int_equal(link_count(), 1);
			wf_world_kill(1);
			wf_world_pass(S);
			assert_int_equal(link_count(), 0);
			wf_world_restart(1);
		}
		assert_int_equal(wf_world_count(0).peers_lost, 10);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Number of peers that node 0 has. */
static size_t peer_count(void)
{
	size_t count = 0;

	WF_LIST_EACH(node, &wf_world_node(0)->peers)
		count++;
	return count;
}

static void a_peer_that_the_program_was_not_told_of_goes_with_its_link(void **state)
{
	struct wf_flight call;
	struct weft_peer *told;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		wf_world_lose_soon();
		wf_world_open(wf_world_shapes[i], 2, NULL);
		for (unsigned life = 0; life < 3; life++) {
			wf_flight_call(&call, 1, 0, sources[0], 100, LONG_NS);
			wf_flight_land(&call, 1, LONG_NS);
			assert_int_equal(call.status, WEFT_OK);
			wf_flight_free(&call, 1);
			assert_int_equal(peer_count(), 1);
			wf_world_kill(1);
			wf_world_pass(S);
			assert_int_equal(peer_count(), 0);
			wf_world_restart(1);
		}
		told = hear_of(1);
		wf_world_kill(1);
		wf_world_pass(S);
		assert_int_equal(peer_count(), 1);
		assert_string_equal(weft_peer_name(told), "n1");
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Assert that @f, an operation of a client that is gone, fails at once. */
static void fail_as_gone(struct wf_flight *f)
{
	wf_flight_land(f, 1, 10 * MS);
	assert_int_equal(f->status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_op_message(f->op), "is gone"));
	wf_flight_free(f, 1);
}

static void the_peer_of_a_client_that_has_died_stays_and_all_that_it_is_asked_for_fails(void **state)
{
	struct weft_op_options options;
	struct weft_tensor byte = {
		.data = sources[0], .device = { WEFT_CPU, 0 }, .dtype = { WEFT_UINT, 8, 1 },
	};
	struct weft_send_options send = { .size = sizeof(send) };
	struct weft_recv_options recv = { .size = sizeof(recv) };
	struct wf_flight f;
	struct weft_peer *peer;
	char name[64];

	(void)state;
	wf_world_lose_soon();
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	peer = hear_of(1);
	(void)snprintf(name, sizeof(name), "%s", weft_peer_name(peer));
	wf_world_kill(1);
	wf_world_pass(S);
	assert_string_equal(weft_peer_name(peer), name);
	assert_int_equal(weft_probe(wf_world_node(0), peer, 1, NULL, 0, NULL), -EAGAIN);
	options = wf_flight_begin(&f, LONG_NS);
	assert_int_equal(weft_ping(peer, &options, &f.op), 0);
	fail_as_gone(&f);
	send.op = wf_flight_begin(&f, LONG_NS);
	assert_int_equal(weft_send(peer, 2, NULL, 0, &byte, &send, &f.op), 0);
	fail_as_gone(&f);
	recv.op = wf_flight_begin(&f, LONG_NS);
	assert_int_equal(weft_recv(wf_world_node(0), peer, 2, NULL, 0, NULL, &recv, &f.op), 0);
	fail_as_gone(&f);
	assert_int_equal(link_count(), 0);
	assert_int_equal(wf_world_close(), 0);
}

static void tensors_that_a_client_has_sent_before_it_died_are_received_by_its_peer(void **state)
{
	struct weft_recv_options options = { .size = sizeof(options) };
	struct wf_flight sent, got;
	struct weft_peer *peer;

	(void)state;
	wf_world_lose_soon();
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	peer = hear_of(1);
	wf_flight_send(&sent, 1, 0, 2, sources[0], 1, LONG_NS);
	wf_flight_land(&sent, 1, LONG_NS);
	wf_flight_free(&sent, 1);
	wf_world_kill(1);
	wf_world_pass(S);
	assert_int_equal(link_count(), 1);
	assert_int_equal(weft_probe(wf_world_node(0), peer, 2, NULL, 0, NULL), 0);
	options.op = wf_flight_begin(&got, LONG_NS);
	assert_int_equal(weft_recv(wf_world_node(0), peer, 2, NULL, 0, NULL, &options, &got.op), 0);
	wf_flight_land(&got, 1, LONG_NS);
	assert_int_equal(got.status, WEFT_OK);
	assert_ptr_equal(weft_op_peer(got.op), peer);
	wf_flight_free(&got, 1);
	wf_world_pass(10 * MS);
	assert_int_equal(link_count(), 0);
	assert_int_equal(wf_world_close(), 0);
}

static void a_node_closes_with_what_a_client_that_has_died_has_left(void **state)
{
	struct wf_flight sent;

	(void)state;
	wf_world_lose_soon();
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_flight_send(&sent, 1, 0, 1, sources[0], 1, LONG_NS);
	wf_flight_land(&sent, 1, LONG_NS);
	wf_flight_free(&sent, 1);
	wf_world_kill(1);
	wf_world_pass(S);
	assert_int_equal(link_count(), 1);
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_that_restarts_is_another_and_the_survivor_goes_on),
		cmocka_unit_test(a_peer_may_restart_again_and_again),
		cmocka_unit_test(dials_that_cross_after_a_restart_fail_nothing),
		cmocka_unit_test(a_handler_of_a_dead_caller_is_not_taken_for_that_of_a_call_of_its_next_life),
		cmocka_unit_test(a_job_may_start_in_any_order),
		cmocka_unit_test(links_of_clients_that_have_died_are_given_up),
		cmocka_unit_test(a_peer_that_the_program_was_not_told_of_goes_with_its_link),
		cmocka_unit_test(the_peer_of_a_client_that_has_died_stays_and_all_that_it_is_asked_for_fails),
		cmocka_unit_test(tensors_that_a_client_has_sent_before_it_died_are_received_by_its_peer),
		cmocka_unit_test(a_node_closes_with_what_a_client_that_has_died_has_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
