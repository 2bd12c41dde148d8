/* SPDX-License-Identifier: BSD-2-Clause */
/* Matching beyond one receive for one key: what waits is asked for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define STEP 5
#define SMALL 100 /* comes in a frame */
#define LONG 300000 /* is read when it is received */
#define WORKERS 3
#define PEERS 6

static uint8_t source[PEERS + 1][LONG], target[LONG];
static struct wf_flight sends[PEERS + 1], receives[PEERS + 1];

/* Ask node 0 for a tensor of node @from, or of anybody for 0. */
static int probe(unsigned from, uint64_t step, const char *key, struct weft_probe_info *info)
{
	*info = (struct weft_probe_info)WEFT_PROBE_INFO_INIT;
	return weft_probe(wf_world_node(0), from ? wf_world_peer(0, from) : NULL, step, key,
			  strlen(key), info);
}

static int waits(unsigned from)
{
	struct weft_probe_info info;

	return probe(from, STEP, "", &info);
}

static void open_world(enum wf_world_shape shape, unsigned count)
{
	memset(sends, 0, sizeof(sends));
	memset(receives, 0, sizeof(receives));
	wf_world_open(shape, count, NULL);
	for (unsigned i = 1; i < count; i++) {
		wf_world_connect(0, i);
		wf_world_connect(i, 0);
	}
}

/* Send @bytes of node @from under @step, and wait until they have come. */
static void send(unsigned from, uint64_t step, size_t bytes)
{
	wf_world_fill(source[from], bytes, from);
	wf_flight_send(&sends[from], from, 0, step, source[from], bytes, 10 * S);
	wf_world_pass(20 * MS);
}

static void receive(unsigned number, unsigned from, size_t bytes)
{
	wf_flight_receive(&receives[number], 0, from, STEP, target, bytes, 10 * S);
}

/* Land the receive and the send of @from, whose bytes are there. */
static void land(unsigned number, unsigned from, size_t bytes)
{
	wf_flight_land(&receives[number], 1, S);
	assert_int_equal(receives[number].status, WEFT_OK);
	assert_memory_equal(target, source[from], bytes);
	wf_flight_free(&receives[number], 1);
	wf_flight_land(&sends[from], 1, S);
	assert_int_equal(sends[from].status, WEFT_OK);
	wf_flight_free(&sends[from], 1);
}

static void give_up_send(unsigned from)
{
	wf_flight_land(&sends[from], 1, 10 * S);
	wf_flight_free(&sends[from], 1);
}

static void a_tensor_that_waits_is_described_and_stays(void **state)
{
	static const size_t lengths[] = { SMALL, LONG };
	struct weft_probe_info info;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes) * WF_COUNT(lengths); i++) {
		size_t bytes = lengths[i % WF_COUNT(lengths)];

		open_world(wf_world_shapes[i / WF_COUNT(lengths)], 2);
		assert_int_equal(waits(1), -EAGAIN);
		send(1, STEP, bytes);
		for (unsigned times = 0; times < 3; times++) {
			assert_int_equal(probe(times % 2, STEP, "", &info), 0);
			assert_ptr_equal(info.peer, wf_world_peer(0, 1));
			assert_int_equal(info.bytes, bytes);
			assert_int_equal(info.flags, 0);
			assert_int_equal(info.dtype.code, WEFT_UINT);
			assert_int_equal(info.dtype.bits, 8);
			assert_int_equal(info.ndim, 1);
			assert_int_equal(info.shape[0], bytes);
			assert_int_equal(info.shape[1], 0);
		}
		assert_int_equal(probe(1, STEP + 1, "", &info), -EAGAIN);
		assert_int_equal(probe(1, STEP, "k", &info), -EAGAIN);
		receive(0, 1, bytes);
		land(0, 1, bytes);
		assert_int_equal(waits(1), -EAGAIN);
		wf_world_end();
	}
}

static void a_dead_tensor_is_described_with_its_shape(void **state)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	int64_t shape[] = { 2, 3, 4, 5, 6, 7 };
	struct weft_tensor t = { .device = { WEFT_CPU, 0 }, .ndim = 6,
				 .dtype = { WEFT_FLOAT, 32, 2 }, .shape = shape };
	struct weft_probe_info info;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	options.flags = WEFT_DEAD;
	options.op = wf_flight_begin(&sends[1], S);
	assert_int_equal(weft_send(wf_world_peer(1, 0), STEP, "key", 3, &t, &options,
				   &sends[1].op), 0);
	wf_world_pass(20 * MS);
	assert_int_equal(probe(1, STEP, "key", &info), 0);
	assert_int_equal(info.bytes, 0);
	assert_int_equal(info.flags, WEFT_DEAD);
	assert_int_equal(info.dtype.lanes, 2);
	assert_int_equal(info.ndim, 6);
	assert_memory_equal(info.shape, shape, sizeof(shape));
	assert_int_equal(weft_step_end(wf_world_node(0), STEP), 0);
	assert_int_equal(probe(1, STEP, "key", &info), -EAGAIN);
	give_up_send(1);
	wf_world_end();
}

static void a_probe_of_any_peer_finds_the_first_and_of_one_its_own(void **state)
{
	struct weft_probe_info info;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 4);
	send(2, STEP, SMALL);
	send(1, STEP, SMALL + 1);
	for (unsigned from = 0; from < 3; from++) {
		assert_int_equal(probe(from, STEP, "", &info), 0);
		assert_ptr_equal(info.peer, wf_world_peer(0, from == 1 ? 1 : 2));
	}
	assert_int_equal(waits(3), -EAGAIN);
	receive(0, 2, SMALL);
	land(0, 2, SMALL);
	assert_int_equal(waits(2), -EAGAIN);
	assert_int_equal(probe(0, STEP, "", &info), 0);
	assert_int_equal(info.bytes, SMALL + 1);
	receive(0, 0, SMALL + 1);
	land(0, 1, SMALL + 1);
	wf_world_end();
}

static void a_tensor_with_a_receive_does_not_wait(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 3);
	receive(0, 1, LONG);
	wf_world_pass(20 * MS);
	wf_world_hold_way(1, 0, true);
	wf_world_fill(source[1], LONG, 1);
	wf_flight_send(&sends[1], 1, 0, STEP, source[1], LONG, 10 * S);
	for (unsigned i = 0; i < 20; i++) {
		wf_world_pass(MS);
		assert_int_equal(waits(1), -EAGAIN);
		if (i == 10)
			wf_world_hold_way(1, 0, false);
	}
	/* Another peer's is for another receive. */
	send(2, STEP, SMALL);
	assert_int_equal(waits(2), 0);
	assert_int_equal(waits(0), 0);
	assert_int_equal(waits(1), -EAGAIN);
	land(0, 1, LONG);
	receive(0, 2, SMALL);
	land(0, 2, SMALL);
	wf_world_end();
}

static void a_tensor_of_a_cancelled_receive_waits_again_in_its_place(void **state)
{
	struct weft_probe_info info;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 3);
	send(1, STEP, LONG);
	send(2, STEP, SMALL);
	wf_world_hold_way(1, 0, true);
	receive(0, 1, LONG);
	wf_world_pass(5 * MS);
	assert_int_equal(waits(1), -EAGAIN);
	assert_int_equal(probe(0, STEP, "", &info), 0);
	assert_int_equal(info.bytes, SMALL);
	weft_cancel(receives[0].op);
	wf_world_hold_way(1, 0, false);
	wf_flight_land(receives, 1, 5 * S);
	assert_int_equal(receives[0].status, WEFT_CANCELLED);
	wf_flight_free(receives, 1);
	assert_int_equal(probe(0, STEP, "", &info), 0);
	assert_int_equal(info.bytes, LONG);
	receive(0, 0, LONG);
	land(0, 1, LONG);
	receive(0, 0, SMALL);
	land(0, 2, SMALL);
	wf_world_end();
}

static void a_tensor_that_is_taken_back_or_dropped_waits_no_more(void **state)
{
	(void)state;
	wf_world_lose_soon();
	open_world(WF_WORLD_CONNECTED, 3);
	send(1, STEP, LONG);
	assert_int_equal(waits(1), 0);
	weft_cancel(sends[1].op);
	give_up_send(1);
	wf_world_pass(20 * MS);
	assert_int_equal(waits(1), -EAGAIN);
	send(1, STEP, SMALL);
	send(2, STEP, LONG);
	assert_int_equal(weft_step_abort(wf_world_node(2), STEP, WEFT_ABORTED, NULL), 0);
	wf_world_pass(20 * MS);
	/* Node 1 takes no part in what node 2 has aborted without one: its tensor stays. */
	assert_int_equal(waits(2), -EAGAIN);
	assert_int_equal(waits(1), 0);
	give_up_send(1);
	give_up_send(2);
	assert_int_equal(weft_step_end(wf_world_node(0), STEP), 0);
	assert_int_equal(waits(0), -EAGAIN);
	wf_world_end();
}

static void bytes_of_a_dead_peer_wait_and_its_offer_does_not(void **state)
{
	struct weft_probe_info info;

	(void)state;
	wf_world_lose_soon();
	open_world(WF_WORLD_CONNECTED, 3);
	send(1, STEP, SMALL);
	send(2, STEP, LONG);
	wf_world_kill(1);
	wf_world_kill(2);
	wf_world_pass(5 * S);
	assert_int_equal(probe(1, STEP, "", &info), 0);
	assert_int_equal(info.bytes, SMALL);
	assert_ptr_equal(info.peer, wf_world_peer(0, 1));
	assert_int_equal(waits(2), -EAGAIN);
	receive(0, 1, SMALL);
	wf_flight_land(receives, 1, S);
	assert_int_equal(receives[0].status, WEFT_OK);
	wf_flight_free(receives, 1);
	for (unsigned i = 1; i < 3; i++)
		weft_op_free(sends[i].op);
	assert_int_equal(wf_world_close(), 0);
}

static void a_peer_is_known_as_the_sender_after_an_operation_with_it(void **state)
{
	struct weft_probe_info info;
	struct wf_flight ping;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	send(1, STEP, SMALL);
	wf_world_pass(S);
	assert_int_equal(waits(1), -EAGAIN);
	assert_int_equal(probe(0, STEP, "", &info), 0);
	assert_non_null(info.peer);
	wf_flight_ping(&ping, 0, 1, S);
	wf_flight_land(&ping, 1, S);
	wf_flight_free(&ping, 1);
	assert_int_equal(waits(1), 0);
	assert_int_equal(weft_probe(wf_world_node(0), info.peer, STEP, NULL, 0, NULL), 0);
	receive(0, 1, SMALL);
	land(0, 1, SMALL);
	wf_world_end();
}

static void every_worker_is_asked(void **state)
{
	unsigned found = 0;

	(void)state;
	wf_world_set_workers(WORKERS);
	open_world(WF_WORLD_CONNECTED, 1 + PEERS);
	for (unsigned i = 1; i <= PEERS; i++)
		send(i, STEP, SMALL);
	for (unsigned i = 1; i <= PEERS; i++)
		assert_int_equal(waits(i), 0);
	while (!waits(0)) {
		struct weft_probe_info info;

		assert_int_equal(probe(0, STEP, "", &info), 0);
		for (unsigned i = 1; i <= PEERS; i++) {
			if (info.peer != wf_world_peer(0, i))
				continue;
			receive(i, i, SMALL);
			land(i, i, SMALL);
			found++;
		}
	}
	assert_int_equal(found, PEERS);
	wf_world_end();
}

static void probe_inside(struct weft_op *op, void *arg)
{
	(void)op;
	*(int *)arg = waits(0);
}

static void a_callback_may_probe(void **state)
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;
	struct weft_op *ping;
	int found = 1;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	send(1, STEP, SMALL);
	options.done = probe_inside;
	options.arg = &found;
	assert_int_equal(weft_ping(wf_world_peer(0, 1), &options, &ping), 0);
	wf_world_pass(20 * MS);
	assert_int_equal(found, 0);
	weft_op_free(ping);
	receive(0, 1, SMALL);
	land(0, 1, SMALL);
	wf_world_end();
}

static void a_description_is_written_up_to_its_size(void **state)
{
	struct weft_probe_info info = WEFT_PROBE_INFO_INIT;
	struct weft_node *node;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	node = wf_world_node(0);
	send(1, STEP, SMALL);
	info.size = offsetof(struct weft_probe_info, flags);
	info.flags = 77;
	assert_int_equal(weft_probe(node, NULL, STEP, NULL, 0, &info), 0);
	assert_int_equal(info.bytes, SMALL);
	assert_int_equal(info.flags, 77);
	assert_int_equal(info.size, offsetof(struct weft_probe_info, flags));
	info.size = 0;
	assert_int_equal(weft_probe(node, NULL, STEP, NULL, 0, &info), -EINVAL);
	assert_int_equal(weft_probe(node, NULL, STEP, NULL, 1, NULL), -EINVAL);
	assert_int_equal(weft_probe(node, wf_world_peer(1, 0), STEP, NULL, 0, NULL), -EINVAL);
	receive(0, 1, SMALL);
	land(0, 1, SMALL);
	wf_world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tensor_that_waits_is_described_and_stays),
		cmocka_unit_test(a_dead_tensor_is_described_with_its_shape),
		cmocka_unit_test(a_probe_of_any_peer_finds_the_first_and_of_one_its_own),
		cmocka_unit_test(a_tensor_with_a_receive_does_not_wait),
		cmocka_unit_test(a_tensor_of_a_cancelled_receive_waits_again_in_its_place),
		cmocka_unit_test(a_tensor_that_is_taken_back_or_dropped_waits_no_more),
		cmocka_unit_test(bytes_of_a_dead_peer_wait_and_its_offer_does_not),
		cmocka_unit_test(a_peer_is_known_as_the_sender_after_an_operation_with_it),
		cmocka_unit_test(every_worker_is_asked),
		cmocka_unit_test(a_callback_may_probe),
		cmocka_unit_test(a_description_is_written_up_to_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
