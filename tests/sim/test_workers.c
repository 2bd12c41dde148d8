/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes of several workers: each peer belongs to one, and what concerns the node concerns all. */
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

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define WORKERS 3
#define PEERS 6
#define BYTES 1000
#define LONG_BYTES (3 * MIB)

static uint8_t source[LONG_BYTES], target[PEERS][BYTES];

/* Node 0 has three workers, and so have the others. */
static void open_world(enum wf_world_shape shape)
{
	wf_world_set_workers(WORKERS);
	wf_world_open(shape, 1 + PEERS, NULL);
	wf_world_fill(source, sizeof(source), 1);
}

/* Links of worker @worker of node 0 that have met their peers. */
static unsigned links_of(unsigned worker)
{
	const struct wf_engine *engine = &wf_world_node(0)->workers[worker].engine;
	unsigned count = 0;

	WF_LIST_EACH(at, &engine->link_list)
		count += wf_link_greeted(WF_CONTAINER(at, struct wf_link, node));
	return count;
}

static void peers_that_we_dial_are_shared_out(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 1; i <= PEERS; i++)
		wf_world_connect(0, i);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(links_of(i), PEERS / WORKERS);
	assert_int_equal(wf_world_close(), 0);
}

static void and_so_are_those_who_dial_us(void **state)
{
	(void)state;
	open_world(WF_WORLD_SHARED);
	for (unsigned i = 1; i <= PEERS; i++)
		wf_world_connect(i, 0);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(links_of(i), PEERS / WORKERS);
	/* Whoever is dialled back by his address, or by another name of it, is met where he is. */
	for (unsigned i = 1; i <= PEERS; i++)
		wf_world_connect(0, i);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(links_of(i), PEERS / WORKERS);
	assert_int_equal(wf_world_close(), 0);
}

/* Both dial at once, one by an alias, so that they choose workers without knowing of each other. */
static void two_nodes_that_dial_each_other_end_with_one_link(void **state)
{
	struct wf_flight f[2 * PEERS];

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 0; i < PEERS; i++) {
		wf_flight_ping(&f[2 * i], 0, 1 + i, S);
		wf_flight_ping(&f[2 * i + 1], 1 + i, 0, S);
	}
	wf_flight_land(f, WF_COUNT(f), S);
	for (size_t i = 0; i < WF_COUNT(f); i++)
		assert_int_equal(f[i].status, WEFT_OK);
	wf_world_pass(S); /* the loser of a crossing may be the last to hear of it */
	assert_int_equal(links_of(0) + links_of(1) + links_of(2), PEERS);
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_close(), 0);
}

/* What waits for a peer when it turns out to be another worker's: of every kind, in its order. */
static void operations_that_were_begun_go_where_the_peer_is(void **state)
{
	struct wf_flight f[9], *at = f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned round = 0; round < 2; round++) {
		unsigned from = round ? 0 : 1, to = round ? 1 : 0;

		wf_flight_send(at++, from, to, 1, source, BYTES, S);
		wf_flight_send(at++, from, to, 1, source, LONG_BYTES, S);
		wf_flight_call(at++, from, to, source, BYTES, S);
		wf_flight_ping(at++, from, to, S);
	}
	wf_flight_receive(at++, 0, 1, 1, target[0], BYTES, S);
	wf_flight_land(&f[2], 2, S);
	wf_flight_land(&f[6], 3, S);
	/* The first of both that were sent: the other is longer than the buffer. */
	assert_int_equal(f[8].status, WEFT_OK);
	assert_true(wf_world_is_filled(target[0], BYTES, 1));
	for (unsigned i = 2; i < 8; i += i == 3 ? 3 : 1)
		assert_int_equal(f[i].status, WEFT_OK);
	assert_int_equal(weft_step_end(wf_world_node(0), 1), 0);
	assert_int_equal(weft_step_end(wf_world_node(1), 1), 0);
	wf_flight_land(f, WF_COUNT(f), S);
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_close(), 0);
}

static void a_receive_from_anybody_is_open_on_every_worker(void **state)
{
	struct wf_flight f[2 * PEERS];
	bool from[1 + PEERS] = { 0 };

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 0; i < PEERS; i++)
		wf_flight_receive(&f[i], 0, 0, 1, target[i], BYTES, S);
	for (unsigned i = 0; i < PEERS; i++)
		wf_flight_send(&f[PEERS + i], 1 + i, 0, 1, source, BYTES, S);
	wf_flight_land(f, WF_COUNT(f), S);
	for (unsigned i = 0; i < PEERS; i++) {
		const char *name = weft_peer_name(weft_op_peer(f[i].op));
		unsigned number = (unsigned)strtoul(name + 1, NULL, 10);

		assert_int_equal(f[i].status, WEFT_OK);
		assert_true(wf_world_is_filled(target[i], BYTES, 1));
		assert_false(from[number]);
		from[number] = true;
	}
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_close(), 0);
}

static void and_ends_once_when_nobody_sends(void **state)
{
	struct wf_flight f[4];

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	wf_world_connect(1, 0);
	wf_flight_receive(&f[0], 0, 0, 1, target[0], BYTES, 50 * MS);
	wf_flight_receive(&f[1], 0, 0, 2, target[1], BYTES, S);
	wf_flight_receive(&f[2], 0, 0, 3, target[2], BYTES, S);
	wf_flight_receive(&f[3], 0, 0, 4, target[3], BYTES, S);
	weft_cancel(f[1].op);
	assert_int_equal(weft_step_end(wf_world_node(0), 3), 0);
	wf_flight_land(f, 3, S);
	assert_int_equal(f[0].status, WEFT_DEADLINE_EXCEEDED);
	assert_int_equal(f[1].status, WEFT_CANCELLED);
	assert_int_equal(f[2].status, WEFT_CANCELLED);
	/* The last one ends with its node. */
	wf_world_leave(0);
	assert_int_equal(f[3].outcomes, 1);
	assert_int_equal(f[3].status, WEFT_CANCELLED);
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_close(), 0);
}

/* The tensor comes to each worker in turn, the receive's own among them, and none has memory. */
static void a_deadline_of_a_receive_from_anybody_names_the_full_pool(void **state)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct wf_flight receive, send;
	static void *pieces[10000];
	size_t count;

	(void)state;
	assert_int_equal(setenv("WEFT_POOL_BYTES", "24M", 1), 0);
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 1; i <= WORKERS; i++)
		wf_world_connect(i, 0);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(links_of(i), 1);
	count = wf_world_take_pool(0, pieces, WF_COUNT(pieces));
	for (unsigned i = 1; i <= WORKERS; i++) {
		options.op = wf_flight_begin(&receive, 50 * MS);
		assert_int_equal(weft_recv(wf_world_node(0), NULL, i, "", 0, NULL, &options,
					   &receive.op), 0);
		wf_flight_send(&send, i, 0, i, source, BYTES, S);
		wf_flight_land(&receive, 1, S);
		assert_int_equal(receive.status, WEFT_RESOURCE_EXHAUSTED);
		assert_non_null(strstr(weft_op_message(receive.op), "1000 bytes of the pool"));
		wf_flight_free(&receive, 1);
		wf_flight_land(&send, 1, S);
		wf_flight_free(&send, 1);
		assert_int_equal(weft_step_end(wf_world_node(0), i), 0);
	}
	while (count)
		weft_free(wf_world_node(0), pieces[--count]);
	assert_int_equal(wf_world_close(), 0);
}

/*
 * Node 1 takes part with node 0 alone, and that passes its word on, whichever workers the others
 * have.
 */
static void an_abort_reaches_the_peers_of_every_worker(void **state)
{
	struct wf_flight f[PEERS];

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 1; i <= PEERS; i++)
		wf_world_connect(i, 0);
	for (unsigned i = 1; i < PEERS; i++)
		wf_flight_receive(&f[i], 1 + i, 0, 5, target[i], BYTES, 10 * S);
	wf_flight_receive(&f[0], 0, 1, 5, target[0], BYTES, 10 * S);
	assert_int_equal(weft_step_abort(wf_world_node(1), 5, WEFT_DATA_LOSS, "bad"), 0);
	wf_flight_land(f, WF_COUNT(f), 100 * MS);
	for (unsigned i = 0; i < PEERS; i++)
		assert_int_equal(f[i].status, WEFT_DATA_LOSS);
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_close(), 0);
}

/* All of it is of one worker's part of the pool, and most peers are others'. */
static void pool_memory_goes_to_peers_of_every_worker(void **state)
{
	struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SHARE };
	struct wf_flight f[2 * PEERS];
	int64_t shape = BYTES;
	struct weft_tensor t = { .ndim = 1, .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape,
				 .device = { WEFT_CPU, 0 } };

	(void)state;
	open_world(WF_WORLD_SAME_HOST);
	assert_int_equal(weft_alloc(wf_world_node(0), BYTES, &t.data), 0);
	memcpy(t.data, source, BYTES);
	for (unsigned i = 0; i < PEERS; i++) {
		wf_flight_receive(&f[i], 1 + i, 0, 1, target[i], BYTES, S);
		options.op = wf_flight_begin(&f[PEERS + i], S);
		assert_int_equal(weft_send(wf_world_peer(0, 1 + i), 1, "", 0, &t, &options,
					   &f[PEERS + i].op), 0);
	}
	weft_free(wf_world_node(0), t.data);
	wf_flight_land(f, WF_COUNT(f), S);
	for (unsigned i = 0; i < PEERS; i++) {
		assert_int_equal(f[i].status, WEFT_OK);
		assert_true(wf_world_is_filled(target[i], BYTES, 1));
	}
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_count(0).pool_bytes_used, 0);
	assert_int_equal(wf_world_close(), 0);
}

/* The connection that resumes a link comes through the one door, and finds its worker. */
static void a_door_that_was_cut_is_resumed_where_the_link_is(void **state)
{
	struct wf_flight f[PEERS];

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 1; i <= PEERS; i++)
		wf_world_connect(i, 0);
	for (unsigned i = 1; i <= PEERS; i++)
		wf_world_cut_door(i, 0);
	wf_world_pass(200 * MS);
	assert_int_equal(wf_world_count(0).links_resumed, PEERS);
	for (unsigned i = 0; i < PEERS; i++)
		wf_flight_call(&f[i], 1 + i, 0, source, BYTES, S);
	wf_flight_land(f, WF_COUNT(f), S);
	for (unsigned i = 0; i < PEERS; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	assert_int_equal(wf_world_count(0).peers_lost, 0);
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_that_we_dial_are_shared_out),
		cmocka_unit_test(and_so_are_those_who_dial_us),
		cmocka_unit_test(two_nodes_that_dial_each_other_end_with_one_link),
		cmocka_unit_test(operations_that_were_begun_go_where_the_peer_is),
		cmocka_unit_test(a_receive_from_anybody_is_open_on_every_worker),
		cmocka_unit_test(and_ends_once_when_nobody_sends),
		cmocka_unit_test(a_deadline_of_a_receive_from_anybody_names_the_full_pool),
		cmocka_unit_test(an_abort_reaches_the_peers_of_every_worker),
		cmocka_unit_test(pool_memory_goes_to_peers_of_every_worker),
		cmocka_unit_test(a_door_that_was_cut_is_resumed_where_the_link_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
