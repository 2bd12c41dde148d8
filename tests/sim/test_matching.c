/* SPDX-License-Identifier: BSD-2-Clause */
/* Matching beyond one receive for one key: what waits is asked for, and received by step alone. */
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
	assert_same_content(target, source[from], bytes);
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
	assert_same_content(info.shape, shape, sizeof(shape));
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

/* Tensors under keys of their own, and receives of any key. */

#define KEYS 24

static struct keyed {
	struct wf_flight flight;
	const char *key;
	size_t bytes;
	uint8_t source[LONG];
	unsigned told;
} keyed[KEYS];

static struct any {
	struct wf_flight flight;
	uint8_t target[LONG];
} any[KEYS];

static struct weft_tensor row(void *data, int64_t *bytes)
{
	return (struct weft_tensor){ .data = data, .device = { WEFT_CPU, 0 }, .ndim = 1,
				     .dtype = { WEFT_UINT, 8, 1 }, .shape = bytes };
}

/* Send tensor @number of node @from to node 0. */
static void send_keyed(unsigned number, unsigned from, const char *key, size_t bytes)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	struct keyed *k = &keyed[number];
	int64_t shape = (int64_t)bytes;
	struct weft_tensor t = row(k->source, &shape);

	k->key = key;
	k->bytes = bytes;
	k->told = 0;
	wf_world_fill(k->source, bytes, number);
	options.op = wf_flight_begin(&k->flight, 10 * S);
	assert_int_equal(weft_send(wf_world_peer(from, 0), STEP, key, strlen(key), &t, &options,
				   &k->flight.op), 0);
}

static void end_sends(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		wf_flight_land(&keyed[i].flight, 1, 10 * S);
		wf_flight_free(&keyed[i].flight, 1);
	}
}

/* Begin receive @number at node 0, from node @from, or anybody for 0.  NULL @key: any key. */
static void receive_keyed(unsigned number, unsigned from, const char *key, uint64_t timeout_ns)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct any *r = &any[number];
	int64_t shape = LONG;
	struct weft_tensor into = row(r->target, &shape);

	options.flags = WEFT_ANY_SHAPE | (key ? 0 : WEFT_ANY_KEY);
	options.op = wf_flight_begin(&r->flight, timeout_ns);
	assert_int_equal(weft_recv(wf_world_node(0), from ? wf_world_peer(0, from) : NULL, STEP,
				   key, key ? strlen(key) : 0, &into, &options, &r->flight.op), 0);
}

/* Is the key of @op that of tensor @number? */
static void assert_key(const struct weft_op *op, unsigned number)
{
	size_t bytes;
	const void *key = weft_op_key(op, &bytes);

	assert_non_null(key);
	assert_int_equal(bytes, strlen(keyed[number].key));
	assert_same_content(key, keyed[number].key, bytes);
}

static void end_receive(unsigned number, enum weft_status status)
{
	wf_flight_land(&any[number].flight, 1, 10 * S);
	assert_int_equal(any[number].flight.status, status);
}

/* Receive @number gets tensor @which. */
static void gets(unsigned number, unsigned which)
{
	struct any *r = &any[number];

	end_receive(number, WEFT_OK);
	assert_key(r->flight.op, which);
	assert_int_equal(weft_op_tensor(r->flight.op, NULL)->shape[0], keyed[which].bytes);
	assert_same_content(r->target, keyed[which].source, keyed[which].bytes);
	wf_flight_free(&r->flight, 1);
}

static void a_receive_of_any_key_gets_what_came_first_and_its_key(void **state)
{
	static const char *const keys[] = { "first", "", "third, and a key that is longer than most of them" };

	(void)state;
	for (size_t i = 0; i < 4 * WF_COUNT(wf_world_shapes); i++) {
		bool early = i % 2, named = i / 2 % 2;

		open_world(wf_world_shapes[i / 4], 2);
		for (unsigned n = 0; n < 3 && early; n++)
			receive_keyed(n, named, NULL, 10 * S);
		for (unsigned n = 0; n < 3; n++)
			send_keyed(n, 1, keys[n], n == 1 ? LONG : SMALL + n);
		wf_world_pass(20 * MS);
		for (unsigned n = 0; n < 3 && !early; n++)
			receive_keyed(n, named, NULL, 10 * S);
		for (unsigned n = 0; n < 3; n++)
			gets(n, n);
		end_sends(3);
		wf_world_end();
	}
}

static void a_key_is_told_when_a_receive_of_any_key_has_ended(void **state)
{
	size_t bytes = 7;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive_keyed(0, 1, NULL, 10 * S);
	receive_keyed(1, 1, "exact", 10 * S);
	assert_null(weft_op_key(any[0].flight.op, &bytes));
	assert_int_equal(bytes, 0);
	assert_same_content(weft_op_key(any[1].flight.op, &bytes), "exact", 5);
	assert_int_equal(bytes, 5);
	send_keyed(0, 1, "a", SMALL);
	send_keyed(1, 1, "exact", SMALL);
	assert_null(weft_op_key(keyed[0].flight.op, &bytes));
	gets(0, 0);
	gets(1, 1);
	end_sends(2);
	wf_world_end();
}

static void an_exact_receive_goes_before_one_of_any_key(void **state)
{
	(void)state;
	for (unsigned late = 0; late < 2; late++) {
		open_world(WF_WORLD_CONNECTED, 2);
		receive_keyed(late, 1, late ? "k" : NULL, 10 * S);
		receive_keyed(!late, 0, late ? NULL : "k", 10 * S);
		send_keyed(0, 1, "k", SMALL);
		send_keyed(1, 1, "k", SMALL + 1);
		gets(1, 0);
		gets(0, 1);
		end_sends(2);
		wf_world_end();
	}
}

static void receives_of_any_key_get_tensors_in_the_order_in_which_they_began(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 3);
	receive_keyed(0, 2, NULL, 10 * S);
	receive_keyed(1, 0, NULL, 10 * S);
	receive_keyed(2, 1, NULL, 10 * S);
	send_keyed(0, 1, "a", SMALL);
	gets(1, 0);
	send_keyed(1, 1, "b", SMALL);
	gets(2, 1);
	send_keyed(2, 2, "a", LONG);
	gets(0, 2);
	end_sends(3);
	wf_world_end();
}

static void a_receive_of_any_key_from_one_peer_leaves_what_others_sent(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 3);
	send_keyed(0, 2, "a", SMALL);
	wf_world_pass(20 * MS);
	receive_keyed(0, 1, NULL, 100 * MS);
	wf_world_pass(20 * MS);
	assert_int_equal(any[0].flight.outcomes, 0);
	send_keyed(1, 1, "b", SMALL);
	gets(0, 1);
	receive_keyed(0, 1, NULL, 20 * MS);
	end_receive(0, WEFT_DEADLINE_EXCEEDED);
	assert_null(weft_op_key(any[0].flight.op, NULL));
	assert_non_null(strstr(weft_op_message(any[0].flight.op), "any key"));
	wf_flight_free(&any[0].flight, 1);
	receive_keyed(0, 0, "a", 10 * S);
	gets(0, 0);
	end_sends(2);
	wf_world_end();
}

static void a_tensor_of_a_cancelled_receive_of_any_key_is_first_again(void **state)
{
	(void)state;
	for (unsigned exact = 0; exact < 2; exact++) {
		open_world(WF_WORLD_CONNECTED, 2);
		send_keyed(0, 1, "a", LONG);
		send_keyed(1, 1, "b", SMALL);
		send_keyed(2, 1, "a", SMALL + 1);
		wf_world_pass(20 * MS);
		wf_world_hold_way(1, 0, true);
		receive_keyed(0, 1, NULL, 10 * S);
		wf_world_pass(5 * MS);
		weft_cancel(any[0].flight.op);
		wf_world_hold_way(1, 0, false);
		end_receive(0, WEFT_CANCELLED);
		assert_key(any[0].flight.op, 0);
		wf_flight_free(&any[0].flight, 1);
		receive_keyed(0, 1, exact ? "a" : NULL, 10 * S);
		receive_keyed(1, 0, NULL, 10 * S);
		receive_keyed(2, 0, NULL, 10 * S);
		for (unsigned n = 0; n < 3; n++)
			gets(n, n);
		end_sends(3);
		wf_world_end();
	}
}

static void a_receive_of_any_key_ends_with_its_step_its_peer_or_its_node(void **state)
{
	(void)state;
	wf_world_lose_soon();
	open_world(WF_WORLD_CONNECTED, 3);
	receive_keyed(0, 0, NULL, 10 * S);
	assert_int_equal(weft_step_end(wf_world_node(0), STEP), 0);
	end_receive(0, WEFT_CANCELLED);
	wf_flight_free(&any[0].flight, 1);
	assert_int_equal(wf_world_close(), 0);

	wf_world_lose_soon();
	open_world(WF_WORLD_CONNECTED, 3);
	receive_keyed(0, 1, NULL, 10 * S);
	receive_keyed(1, 2, NULL, 10 * S);
	receive_keyed(2, 0, NULL, 10 * S);
	wf_world_pass(20 * MS);
	wf_world_kill(1);
	end_receive(0, WEFT_UNAVAILABLE);
	assert_int_equal(any[1].flight.outcomes + any[2].flight.outcomes, 0);
	assert_int_equal(weft_step_abort(wf_world_node(0), STEP, WEFT_INTERNAL, "no"), 0);
	end_receive(1, WEFT_INTERNAL);
	end_receive(2, WEFT_INTERNAL);
	for (unsigned n = 0; n < 3; n++)
		wf_flight_free(&any[n].flight, 1);
	assert_int_equal(wf_world_close(), 0);

	open_world(WF_WORLD_CONNECTED, 2);
	receive_keyed(0, 0, NULL, 10 * S);
	wf_world_leave(0);
	assert_int_equal(any[0].flight.status, WEFT_CANCELLED);
	weft_op_free(any[0].flight.op);
	assert_int_equal(wf_world_close(), 0);
}

static void receives_of_any_key_match_what_came_by_a_link_that_is_the_same_peer(void **state)
{
	(void)state;
	for (unsigned early = 0; early < 2; early++) {
		memset(any, 0, sizeof(any));
		wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
		send_keyed(0, 1, "a", SMALL);
		send_keyed(1, 1, "b", LONG);
		if (!early)
			wf_world_pass(S);
		/* The first names the peer that node 1 turns out to be; the second has a key. */
		receive_keyed(0, 1, NULL, 10 * S);
		receive_keyed(1, 1, "a", 10 * S);
		gets(1, 0);
		gets(0, 1);
		end_sends(2);
		wf_world_end();
	}
}

static void exact_receives_and_those_of_any_key_share_the_tensors_of_all_workers(void **state)
{
	static const char *const keys[] = { "a", "b", "c", "d" };

	(void)state;
	for (unsigned round = 0; round < 8; round++) {
		unsigned first = round * KEYS / 8;

		wf_world_set_workers(WORKERS);
		open_world(WF_WORLD_CONNECTED, 1 + PEERS);
		/* Some tensors are there before the receives, which are as many in all. */
		for (unsigned n = 0; n < first; n++)
			send_keyed(n, 1 + n % PEERS, keys[n % 4], n % 5 ? SMALL + n : LONG - n);
		wf_world_pass(20 * MS);
		for (unsigned n = 0; n < KEYS; n++)
			receive_keyed(n, n % 7 ? 0 : 1 + n % PEERS,
				      n % 7 && n % 3 == 1 ? keys[n % 4] : NULL, 2 * S);
		for (unsigned n = first; n < KEYS; n++)
			send_keyed(n, 1 + n % PEERS, keys[n % 4], n % 5 ? SMALL + n : LONG - n);
		for (unsigned n = 0; n < KEYS; n++) {
			wf_flight_land(&any[n].flight, 1, 5 * S);
			if (any[n].flight.status == WEFT_OK) {
				const struct weft_tensor *t = weft_op_tensor(any[n].flight.op, NULL);
				unsigned which = (unsigned)(t->shape[0] < LONG / 2
								    ? t->shape[0] - SMALL
								    : LONG - t->shape[0]);

				assert_true(which < KEYS);
				assert_int_equal(keyed[which].told++, 0);
				assert_key(any[n].flight.op, which);
				assert_same_content(any[n].target, keyed[which].source,
						    keyed[which].bytes);
			} else {
				assert_int_equal(any[n].flight.status, WEFT_DEADLINE_EXCEEDED);
			}
			wf_flight_free(&any[n].flight, 1);
		}
		/* The tensors that are left wait, each once. */
		for (unsigned n = 0; n < KEYS; n++) {
			if (keyed[n].told)
				continue;
			receive_keyed(0, 1 + n % PEERS, keyed[n].key, 10 * S);
			gets(0, n);
		}
		end_sends(KEYS);
		wf_world_end();
	}
}

/* Receives that stay, of any key. */

static struct {
	struct weft_op *many, *held[KEYS];
	unsigned count, ended;
} stay;

static void stay_told(struct weft_op *op, void *arg)
{
	(void)arg;
	if (op == stay.many)
		stay.ended++;
	else
		stay.held[stay.count++] = op;
}

static void begin_stay(unsigned from, unsigned max)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;

	memset(&stay, 0, sizeof(stay));
	options.flags = WEFT_RECV_MANY | WEFT_ANY_KEY;
	options.many_max = max;
	options.op.done = stay_told;
	assert_int_equal(weft_recv(wf_world_node(0), from ? wf_world_peer(0, from) : NULL, STEP,
				   NULL, 0, NULL, &options, &stay.many), 0);
}

static void end_stay(void)
{
	weft_cancel(stay.many);
	wf_world_pass(20 * MS);
	assert_int_equal(stay.ended, 1);
	assert_null(weft_op_key(stay.many, NULL));
	weft_op_free(stay.many);
}

static void a_receive_of_any_key_that_stays_tells_each_tensor_with_its_key(void **state)
{
	static const char *const keys[] = { "x", "y", "z", "" };

	(void)state;
	for (unsigned workers = 1; workers <= WORKERS; workers += WORKERS - 1) {
		wf_world_set_workers(workers);
		open_world(WF_WORLD_CONNECTED, 1 + PEERS);
		for (unsigned n = 0; n < KEYS; n++) {
			send_keyed(n, 1 + n % PEERS, keys[n % 4], SMALL + n);
			if (n != KEYS / 2)
				continue;
			wf_world_pass(20 * MS);
			begin_stay(0, 0);
			receive_keyed(0, 0, "x", 10 * S);
			wf_world_pass(20 * MS);
		}
		wf_world_pass(S);
		/* The exact receive got the first of its key that came after it began. */
		assert_int_equal(stay.count, KEYS - 1);
		for (unsigned i = 0; i < stay.count; i++) {
			const struct weft_tensor *t = weft_op_tensor(stay.held[i], NULL);
			unsigned n = (unsigned)t->shape[0] - SMALL;

			assert_int_equal(keyed[n].told++, 0);
			assert_key(stay.held[i], n);
			assert_same_content(t->data, keyed[n].source, keyed[n].bytes);
			weft_op_free(stay.held[i]);
		}
		end_receive(0, WEFT_OK);
		assert_same_content(weft_op_key(any[0].flight.op, NULL), "x", 1);
		wf_flight_free(&any[0].flight, 1);
		end_stay();
		end_sends(KEYS);
		wf_world_end();
	}
}

static void another_receive_gets_what_one_that_stays_has_no_room_for(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	begin_stay(1, 1);
	send_keyed(0, 1, "a", SMALL);
	send_keyed(1, 1, "b", SMALL);
	send_keyed(2, 1, "c", SMALL);
	wf_world_pass(20 * MS);
	assert_int_equal(stay.count, 1);
	receive_keyed(0, 0, NULL, 10 * S);
	gets(0, 1);
	weft_op_free(stay.held[0]);
	wf_world_pass(20 * MS);
	assert_int_equal(stay.count, 2);
	assert_key(stay.held[1], 2);
	weft_op_free(stay.held[1]);
	end_stay();
	end_sends(3);
	wf_world_end();
}

static void the_longest_key_is_told(void **state)
{
	char *key = malloc(WEFT_KEY_BYTES_MAX + 1);

	(void)state;
	memset(key, 'k', WEFT_KEY_BYTES_MAX);
	key[WEFT_KEY_BYTES_MAX] = '\0';
	open_world(WF_WORLD_CONNECTED, 2);
	for (unsigned early = 0; early < 2; early++) {
		if (early)
			receive_keyed(0, 1, NULL, 10 * S);
		send_keyed(0, 1, key, SMALL);
		wf_world_pass(20 * MS);
		if (!early)
			receive_keyed(0, 1, NULL, 10 * S);
		gets(0, 0);
		end_sends(1);
	}
	wf_world_end();
	free(key);
}

static void a_key_beside_any_key_is_refused(void **state)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct weft_op *op;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	options.flags = WEFT_ANY_KEY;
	assert_int_equal(weft_recv(wf_world_node(0), NULL, STEP, "", 0, NULL, &options, &op), -EINVAL);
	assert_int_equal(weft_recv(wf_world_node(0), NULL, STEP, NULL, 1, NULL, &options, &op), -EINVAL);
	options.flags |= WEFT_RECV_MANY;
	options.op.done = stay_told;
	assert_int_equal(weft_recv(wf_world_node(0), NULL, STEP, "k", 1, NULL, &options, &op), -EINVAL);
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
		cmocka_unit_test(a_receive_of_any_key_gets_what_came_first_and_its_key),
		cmocka_unit_test(a_key_is_told_when_a_receive_of_any_key_has_ended),
		cmocka_unit_test(an_exact_receive_goes_before_one_of_any_key),
		cmocka_unit_test(receives_of_any_key_get_tensors_in_the_order_in_which_they_began),
		cmocka_unit_test(a_receive_of_any_key_from_one_peer_leaves_what_others_sent),
		cmocka_unit_test(a_tensor_of_a_cancelled_receive_of_any_key_is_first_again),
		cmocka_unit_test(a_receive_of_any_key_ends_with_its_step_its_peer_or_its_node),
		cmocka_unit_test(receives_of_any_key_match_what_came_by_a_link_that_is_the_same_peer),
		cmocka_unit_test(exact_receives_and_those_of_any_key_share_the_tensors_of_all_workers),
		cmocka_unit_test(a_receive_of_any_key_that_stays_tells_each_tensor_with_its_key),
		cmocka_unit_test(another_receive_gets_what_one_that_stays_has_no_room_for),
		cmocka_unit_test(the_longest_key_is_told),
		cmocka_unit_test(a_key_beside_any_key_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
