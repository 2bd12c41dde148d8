/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives that stay: each tensor is told with an operation of its own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define STEP 5
#define COUNT 60
#define LONG_BYTES (3 * MIB)
#define WORKERS 3
#define PEERS 6

static uint8_t source[COUNT][LONG_BYTES];
static struct wf_flight sends[COUNT];

/* Tensors, and the end, that a receive that stays has told. */
static struct {
	struct weft_op *many;
	struct weft_op *held[COUNT];
	unsigned tensors, failed, ends;
	unsigned numbers[COUNT]; /* of the tensors, as they came */
	enum weft_status end;
	bool keeps; /* handles are not freed at once */
} heard;

/* Does the tensor come in a frame?  If not, it is read. */
static bool is_eager(unsigned number)
{
	return number % 5;
}

static size_t bytes_of(unsigned number)
{
	return is_eager(number) ? 100 + number : 200000 + number;
}

static void note_tensor(struct weft_op *op)
{
	const struct weft_tensor *t = weft_op_tensor(op, NULL);
	unsigned number = (unsigned)(t->shape[0] % 100);

	assert_int_equal(t->shape[0], bytes_of(number));
	assert_same_content(t->data, source[number], bytes_of(number));
	heard.numbers[heard.tensors++] = number;
}

static void told(struct weft_op *op, void *arg)
{
	assert_ptr_equal(arg, &heard);
	assert_int_equal(heard.ends, 0); /* the end of the whole is told last */
	if (op == heard.many) {
		heard.ends++;
		heard.end = weft_op_status(op);
		assert_null(weft_op_tensor(op, NULL));
		return;
	}
	if (weft_op_status(op) == WEFT_OK)
		note_tensor(op);
	else
		heard.failed++;
	if (heard.keeps)
		heard.held[heard.tensors - 1] = op;
	else
		weft_op_free(op);
}

static struct weft_recv_options options_of(unsigned max)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;

	options.flags = WEFT_RECV_MANY;
	options.many_max = max;
	options.op.done = told;
	options.op.arg = &heard;
	return options;
}

/* Receive at node 0 what @peer sends, or anybody for NULL, until cancelled. */
static void receive_of(struct weft_peer *peer, unsigned max)
{
	struct weft_recv_options options = options_of(max);

	memset(&heard, 0, sizeof(heard));
	assert_int_equal(weft_recv(wf_world_node(0), peer, STEP, "", 0, NULL, &options, &heard.many),
			 0);
}

/* Receive at node 0 what node @from sends, or anybody for 0, until cancelled. */
static void receive(unsigned from, unsigned max)
{
	receive_of(from ? wf_world_peer(0, from) : NULL, max);
}

static void send(unsigned from, unsigned number)
{
	wf_world_fill(source[number], bytes_of(number), number);
	wf_flight_send(&sends[number], from, 0, STEP, source[number], bytes_of(number), 10 * S);
}

static bool has_tensors(void *count)
{
	return heard.tensors >= *(unsigned *)count;
}

static bool has_ended(void *none)
{
	(void)none;
	return heard.ends;
}

static void hear(unsigned count)
{
	assert_true(wf_world_run(has_tensors, &count, 10 * S));
}

static void end_with(enum weft_status status)
{
	assert_true(wf_world_run(has_ended, NULL, 10 * S));
	assert_int_equal(heard.end, status);
	weft_op_free(heard.many);
}

static void open_world(enum wf_world_shape shape, unsigned count)
{
	memset(sends, 0, sizeof(sends));
	wf_world_open(shape, count, NULL);
}

static void end_world(unsigned sent)
{
	wf_flight_land(sends, sent, 10 * S);
	wf_flight_free(sends, sent);
	wf_world_end();
}

static void every_tensor_is_told_small_ones_in_their_order(void **state)
{
	unsigned last;

	(void)state;
	for (size_t s = 0; s < WF_COUNT(wf_world_shapes); s++) {
		open_world(wf_world_shapes[s], 2);
		/* Some were there before. */
		for (unsigned i = 0; i < COUNT / 2; i++)
			send(1, i);
		wf_world_pass(100 * MS);
		receive(1, 0);
		for (unsigned i = COUNT / 2; i < COUNT; i++)
			send(1, i);
		hear(COUNT);
		last = 0;
		for (unsigned i = 0; i < COUNT; i++) {
			if (!is_eager(heard.numbers[i]))
				continue;
			assert_true(heard.numbers[i] > last);
			last = heard.numbers[i];
		}
		assert_int_equal(heard.ends, 0);
		weft_cancel(heard.many);
		end_with(WEFT_CANCELLED);
		end_world(COUNT);
	}
}

static void no_more_are_out_than_the_receive_allows(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive(1, 4);
	heard.keeps = true;
	for (unsigned i = 0; i < COUNT; i++)
		send(1, i);
	wf_world_pass(S);
	assert_int_equal(heard.tensors, 4);
	weft_op_free(heard.held[2]);
	hear(5);
	wf_world_pass(S);
	assert_int_equal(heard.tensors, 5);
	heard.held[2] = NULL;
	while (heard.tensors < COUNT) {
		unsigned all = heard.tensors;

		for (unsigned i = 0; i < all; i++) {
			weft_op_free(heard.held[i]);
			heard.held[i] = NULL;
		}
		hear(all + 1);
	}
	weft_cancel(heard.many);
	end_with(WEFT_CANCELLED);
	for (unsigned i = 0; i < COUNT; i++)
		weft_op_free(heard.held[i]);
	end_world(COUNT);
}

static void another_receive_gets_what_is_beyond_that(void **state)
{
	static uint8_t target[1000];
	struct wf_flight other;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive(1, 1);
	heard.keeps = true;
	send(1, 1);
	hear(1);
	send(1, 2);
	wf_world_pass(100 * MS);
	wf_flight_receive(&other, 0, 1, STEP, target, bytes_of(2), S);
	wf_flight_land(&other, 1, S);
	assert_int_equal(other.status, WEFT_OK);
	assert_same_content(target, source[2], bytes_of(2));
	assert_int_equal(heard.tensors, 1);
	wf_flight_free(&other, 1);
	weft_op_free(heard.held[0]);
	weft_cancel(heard.many);
	end_with(WEFT_CANCELLED);
	wf_flight_land(&sends[1], 2, S);
	wf_flight_free(&sends[1], 2);
	wf_world_end();
}

static void tensors_on_their_way_are_told_before_the_end(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive(1, 0);
	wf_world_connect(1, 0);
	for (unsigned i = 0; i < COUNT; i += 5)
		send(1, i);
	hear(1);
	weft_cancel(heard.many);
	end_with(WEFT_CANCELLED);
	assert_true(heard.tensors > 1);
	/* Tensors that came later wait for another receive. */
	assert_int_equal(weft_step_end(wf_world_node(0), STEP), 0);
	for (unsigned i = 0; i < COUNT; i += 5) {
		wf_flight_land(&sends[i], 1, S);
		wf_flight_free(&sends[i], 1);
	}
	wf_world_end();
}

static void a_receive_that_stays_has_no_deadline_unless_one_is_named(void **state)
{
	struct weft_recv_options options = options_of(0);

	(void)state;
	setenv("WEFT_TIMEOUT", "50ms", 1);
	open_world(WF_WORLD_CONNECTED, 2);
	receive(1, 0);
	wf_world_pass(S);
	assert_int_equal(heard.ends, 0);
	send(1, 1);
	hear(1);
	weft_cancel(heard.many);
	end_with(WEFT_CANCELLED);

	memset(&heard, 0, sizeof(heard));
	options.op.timeout_ns = 20 * MS;
	assert_int_equal(weft_recv(wf_world_node(0), wf_world_peer(0, 1), STEP, "", 0, NULL,
				   &options, &heard.many), 0);
	end_with(WEFT_DEADLINE_EXCEEDED);
	wf_flight_land(&sends[1], 1, S);
	wf_flight_free(&sends[1], 1);
	wf_world_end();
}

static void a_receive_that_stays_ends_with_its_step_its_peer_or_its_node(void **state)
{
	(void)state;
	wf_world_lose_soon();
	open_world(WF_WORLD_CONNECTED, 2);
	receive(1, 0);
	wf_world_connect(0, 1);
	assert_int_equal(weft_step_end(wf_world_node(0), STEP), 0);
	end_with(WEFT_CANCELLED);

	assert_int_equal(wf_world_close(), 0);
	wf_world_lose_soon();
	open_world(WF_WORLD_CONNECTED, 2);
	receive(1, 0);
	wf_world_connect(0, 1);
	send(1, 1);
	hear(1);
	wf_flight_land(&sends[1], 1, S);
	wf_flight_free(&sends[1], 1);
	wf_world_kill(1);
	end_with(WEFT_UNAVAILABLE);

	receive(0, 0);
	wf_world_leave(0);
	assert_int_equal(heard.ends, 1);
	assert_int_equal(heard.end, WEFT_CANCELLED);
	weft_op_free(heard.many);
	assert_int_equal(wf_world_close(), 0);
}

static void a_receive_that_stays_gets_what_a_peer_that_is_gone_has_left_and_ends(void **state)
{
	struct weft_probe_info info = WEFT_PROBE_INFO_INIT;

	(void)state;
	for (unsigned max = 0; max < 2; max++) {
		wf_world_lose_soon();
		open_world(WF_WORLD_CONNECTED, 2);
		for (unsigned i = 1; i < 4; i++)
			send(1, i);
		wf_flight_land(&sends[1], 3, S);
		wf_flight_free(&sends[1], 3);
		wf_world_kill(1);
		wf_world_pass(5 * S);
		assert_int_equal(weft_probe(wf_world_node(0), NULL, STEP, "", 0, &info), 0);
		receive_of(info.peer, max);
		hear(3);
		end_with(WEFT_UNAVAILABLE);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_receive_from_anybody_stays_at_every_worker_and_ends_once(void **state)
{
	static const enum weft_status ends[] = { WEFT_CANCELLED, WEFT_CANCELLED };

	(void)state;
	for (unsigned round = 0; round < WF_COUNT(ends); round++) {
		wf_world_set_workers(WORKERS);
		open_world(WF_WORLD_CONNECTED, 1 + PEERS);
		/* Some peers are known before, and their tensors are there. */
		for (unsigned i = 0; i < COUNT / 2; i++)
			send(1 + i % PEERS, i);
		wf_world_pass(100 * MS);
		receive(0, 7);
		for (unsigned i = COUNT / 2; i < COUNT; i++)
			send(1 + i % PEERS, i);
		hear(COUNT);
		if (round)
			assert_int_equal(weft_step_end(wf_world_node(0), STEP), 0);
		else
			weft_cancel(heard.many);
		end_with(ends[round]);
		wf_flight_land(sends, COUNT, S);
		wf_flight_free(sends, COUNT);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_queue_has_the_tensors_and_at_last_the_receive(void **state)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct weft_op *ops[COUNT], *many;
	struct weft_queue *queue;
	unsigned got = 0;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	assert_int_equal(weft_queue_open(wf_world_node(0), &queue), 0);
	options.flags = WEFT_RECV_MANY;
	options.op.queue = queue;
	options.op.arg = &heard;
	memset(&heard, 0, sizeof(heard));
	assert_int_equal(weft_recv(wf_world_node(0), wf_world_peer(0, 1), STEP, "", 0, NULL,
				   &options, &many), 0);
	for (unsigned i = 0; i < COUNT; i++)
		send(1, i);
	while (got < COUNT) {
		int count = weft_queue_next(queue, ops, 7, S);

		assert_true(count > 0);
		for (int i = 0; i < count; i++, got++) {
			assert_ptr_equal(weft_op_peer(ops[i]), wf_world_peer(0, 1));
			assert_ptr_equal(weft_op_arg(ops[i]), &heard);
			note_tensor(ops[i]);
			weft_op_free(ops[i]);
		}
	}
	weft_cancel(many);
	assert_int_equal(weft_queue_next(queue, ops, 7, S), 1);
	assert_ptr_equal(ops[0], many);
	assert_int_equal(weft_op_status(many), WEFT_CANCELLED);
	weft_op_free(many);
	weft_queue_close(queue);
	end_world(COUNT);
}

static void handles_may_outlive_receive_and_node(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive(1, 3);
	heard.keeps = true;
	for (unsigned i = 0; i < 6; i++)
		send(1, i);
	hear(3);
	weft_op_free(heard.many); /* it goes on, and is told to the callback all the same */
	weft_op_free(heard.held[0]);
	hear(4);
	wf_world_leave(0);
	assert_int_equal(heard.ends, 1);
	for (unsigned i = 1; i < 4; i++)
		weft_op_free(heard.held[i]);
	wf_flight_land(sends, 6, S);
	wf_flight_free(sends, 6);
	assert_int_equal(wf_world_close(), 0);
}

static void a_receive_that_nobody_hears_or_with_one_buffer_is_refused(void **state)
{
	struct weft_recv_options options = options_of(0);
	int64_t shape = 4;
	uint8_t bytes[4];
	struct weft_tensor into = { .data = bytes, .device = { WEFT_CPU, 0 }, .ndim = 1,
				    .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };
	struct weft_op *op;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	assert_int_equal(weft_recv(wf_world_node(0), NULL, STEP, "", 0, &into, &options, &op), -EINVAL);
	options.flags |= WEFT_DROP;
	assert_int_equal(weft_recv(wf_world_node(0), NULL, STEP, "", 0, NULL, &options, &op), -EINVAL);
	options = options_of(0);
	options.op.done = NULL;
	assert_int_equal(weft_recv(wf_world_node(0), NULL, STEP, "", 0, NULL, &options, &op), -EINVAL);
	/* A callback could not tell the end, which is not its own, from a tensor that failed. */
	options = options_of(0);
	assert_int_equal(weft_recv(wf_world_node(0), NULL, STEP, "", 0, NULL, &options, NULL), -EINVAL);
	wf_world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tensor_is_told_small_ones_in_their_order),
		cmocka_unit_test(no_more_are_out_than_the_receive_allows),
		cmocka_unit_test(another_receive_gets_what_is_beyond_that),
		cmocka_unit_test(tensors_on_their_way_are_told_before_the_end),
		cmocka_unit_test(a_receive_that_stays_has_no_deadline_unless_one_is_named),
		cmocka_unit_test(a_receive_that_stays_ends_with_its_step_its_peer_or_its_node),
		cmocka_unit_test(
			a_receive_that_stays_gets_what_a_peer_that_is_gone_has_left_and_ends),
		cmocka_unit_test(a_receive_from_anybody_stays_at_every_worker_and_ends_once),
		cmocka_unit_test(a_queue_has_the_tensors_and_at_last_the_receive),
		cmocka_unit_test(handles_may_outlive_receive_and_node),
		cmocka_unit_test(a_receive_that_nobody_hears_or_with_one_buffer_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
