/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of receives: each item is told as it ends, and the set when all have. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define STEP 5
#define ITEMS 6
#define LONG_BYTES ((size_t)300 * KIB) /* pulled */
#define LONG_NS (10 * S)
#define WORKERS 3

static uint8_t source[ITEMS][LONG_BYTES], target[ITEMS][LONG_BYTES];
static struct wf_flight sends[ITEMS];

static struct {
	struct wf_flight flight;
	unsigned told;
	unsigned order[ITEMS];              /* items, as they were told */
	unsigned times[ITEMS];
	enum weft_status statuses[ITEMS];   /* as the callback saw them */
} set;

/* Every second tensor is read, the others come in a frame. */
static size_t bytes_of(unsigned number)
{
	return number % 2 ? LONG_BYTES - number : 100 + number;
}

/* Every third tensor goes into memory of the pool. */
static bool is_of_pool(unsigned number)
{
	return number % 3 == 2;
}

static struct weft_tensor row(void *data, int64_t *shape)
{
	return (struct weft_tensor){ .data = data, .device = { WEFT_CPU, 0 }, .ndim = 1,
				     .dtype = { WEFT_UINT, 8, 1 }, .shape = shape };
}

static void open_world(enum wf_world_shape shape, unsigned nodes)
{
	memset(sends, 0, sizeof(sends));
	memset(target, 0, sizeof(target));
	for (unsigned i = 0; i < ITEMS; i++)
		wf_world_fill(source[i], LONG_BYTES, i + 1);
	wf_world_lose_soon();
	wf_world_open(shape, nodes, NULL);
}

/* Let node @from send tensor @number to node 0 under @key. */
static void send_as(unsigned from, unsigned number, uint64_t key)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	int64_t shape = (int64_t)bytes_of(number);
	struct weft_tensor t = row(source[number], &shape);

	options.op = wf_flight_begin(&sends[number], LONG_NS);
	assert_int_equal(weft_send(wf_world_peer(from, 0), STEP, &key, sizeof(key), &t, &options,
				   &sends[number].op),
			 0);
}

static void send(unsigned number)
{
	send_as(1, number, number);
}

static void send_all(void)
{
	for (unsigned i = 0; i < ITEMS; i++)
		send(i);
}

static void each(void *arg, struct weft_op *op, size_t index)
{
	const struct weft_op *item = weft_recv_set_item(op, index);

	assert_ptr_equal(arg, &set);
	assert_true(index < ITEMS);
	assert_true(weft_op_ended(item));
	assert_false(weft_op_ended(op));
	assert_int_equal(set.flight.outcomes, 0); /* the whole is told last */
	set.order[set.told++] = (unsigned)index;
	set.times[index]++;
	set.statuses[index] = weft_op_status(item);
}

static struct weft_recv_set_options options_of(uint64_t timeout_ns)
{
	struct weft_recv_set_options options = WEFT_RECV_SET_OPTIONS_INIT;

	memset(&set, 0, sizeof(set));
	options.op = wf_flight_begin(&set.flight, timeout_ns);
	options.each = each;
	options.each_arg = &set;
	return options;
}

/* Receive @count tensors of @keys at node 0, from node @from, or 0: from any. */
static int receive_with(unsigned from, const uint64_t *keys, unsigned count,
			const struct weft_recv_set_options *options, struct weft_op **op)
{
	struct weft_recv_item items[ITEMS] = { { 0 } };
	struct weft_tensor tensors[ITEMS];
	int64_t shapes[ITEMS];

	for (unsigned i = 0; i < count; i++) {
		shapes[i] = (int64_t)bytes_of(i);
		tensors[i] = row(target[i], &shapes[i]);
		items[i] = (struct weft_recv_item){ .key = &keys[i], .key_bytes = sizeof(keys[i]),
						    .into = is_of_pool(i) ? NULL : &tensors[i] };
	}
	return weft_recv_set(wf_world_node(0), from ? wf_world_peer(0, from) : NULL, STEP, items,
			     count, options, op);
}

static const uint64_t numbers[ITEMS] = { 0, 1, 2, 3, 4, 5 };

static void receive_from(unsigned from, uint64_t timeout_ns)
{
	struct weft_recv_set_options options = options_of(timeout_ns);

	assert_int_equal(receive_with(from, numbers, ITEMS, &options, &set.flight.op), 0);
}

static void receive(uint64_t timeout_ns)
{
	receive_from(1, timeout_ns);
}

static struct weft_op *item_of(unsigned index)
{
	struct weft_op *item = weft_recv_set_item(set.flight.op, index);

	assert_non_null(item);
	return item;
}

/* Item @index has got tensor @number. */
static void assert_got(unsigned index, unsigned number)
{
	const struct weft_tensor *t = weft_op_tensor(item_of(index), NULL);

	if (!t)
		fail_msg("item %u: %s", index, weft_op_message(item_of(index)));
	assert_int_equal(t->shape[0], bytes_of(number));
	assert_same_content(t->data, source[number], bytes_of(number));
	if (!is_of_pool(index))
		assert_ptr_equal(t->data, target[index]);
}

static bool has_told(void *count)
{
	return set.told >= *(unsigned *)count;
}

static void hear(unsigned count)
{
	assert_true(wf_world_run(has_told, &count, LONG_NS));
	assert_int_equal(set.told, count);
}

/* Run until the set has ended, with @status.  Each item was told once, and those that came are right. */
static void land(enum weft_status status)
{
	unsigned came = 0;

	wf_flight_land(&set.flight, 1, LONG_NS + S);
	assert_int_equal(set.told, ITEMS);
	for (unsigned i = 0; i < ITEMS; i++) {
		assert_int_equal(set.times[i], 1);
		assert_int_equal(weft_op_status(item_of(i)), set.statuses[i]);
		came += set.statuses[i] == WEFT_OK;
		if (set.statuses[i] == WEFT_OK)
			assert_got(i, i);
	}
	if (set.flight.status != status)
		fail_msg("%s", weft_op_message(set.flight.op));
	assert_int_equal(came == ITEMS, status == WEFT_OK);
}

/* The message of the set says that @came tensors came, and that item @failed failed first. */
static void assert_says(unsigned came, unsigned failed, const char *why)
{
	const char *message = weft_op_message(set.flight.op);
	char begin[64];

	(void)snprintf(begin, sizeof(begin), "%u of %u tensors came; item %u failed first: ", came, ITEMS,
		       failed);
	if (strncmp(message, begin, strlen(begin)) || !strstr(message, why))
		fail_msg("%s", message);
}

/* Drop what was not received, on both sides, and free all. */
static void end_world(void)
{
	for (unsigned i = 0; i < wf_world_population(); i++)
		assert_int_equal(weft_step_end(wf_world_node(i), STEP), 0);
	for (unsigned i = 0; i < ITEMS; i++)
		if (sends[i].op)
			wf_flight_land(&sends[i], 1, LONG_NS + S);
	wf_flight_free(sends, ITEMS);
	wf_flight_free(&set.flight, 1);
	wf_world_end();
}

static void every_item_gets_its_tensor_whichever_comes_first(void **state)
{
	(void)state;
	for (size_t s = 0; s < WF_COUNT(wf_world_shapes); s++) {
		for (unsigned late = 0; late < 2; late++) {
			open_world(wf_world_shapes[s], 2);
			if (late)
				send_all();
			wf_world_pass(late * 50 * MS);
			receive(LONG_NS);
			if (!late)
				send_all();
			land(WEFT_OK);
			assert_string_equal(weft_op_message(set.flight.op), "");
			for (unsigned i = 0; i < ITEMS; i++)
				assert_ptr_equal(weft_op_peer(item_of(i)), wf_world_peer(0, 1));
			assert_ptr_equal(weft_op_peer(set.flight.op), wf_world_peer(0, 1));
			assert_null(weft_op_tensor(set.flight.op, NULL));
			assert_null(weft_recv_set_item(set.flight.op, ITEMS));
			end_world();
		}
	}
}

static void an_item_can_be_read_as_soon_as_it_is_told(void **state)
{
	static const unsigned order[ITEMS] = { 3, 0, 5, 2, 1, 4 };

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive(LONG_NS);
	for (unsigned n = 0; n < ITEMS; n++) {
		send(order[n]);
		hear(n + 1);
		assert_int_equal(set.order[n], order[n]);
		assert_got(order[n], order[n]);
		for (unsigned k = n + 1; k < ITEMS; k++)
			assert_int_equal(weft_op_status(item_of(order[k])), WEFT_UNKNOWN);
	}
	land(WEFT_OK);
	end_world();
}

static void memory_that_was_taken_from_an_item_outlives_the_set(void **state)
{
	struct weft_op *item;
	void *memory;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive(LONG_NS);
	send_all();
	land(WEFT_OK);
	item = item_of(2);
	assert_true(is_of_pool(2));
	memory = weft_op_take(item);
	assert_ptr_equal(memory, weft_op_tensor(item, NULL)->data);
	wf_flight_free(&set.flight, 1);
	assert_same_content(memory, source[2], bytes_of(2));
	weft_free(wf_world_node(0), memory);
	set.flight.op = NULL;
	wf_flight_land(sends, ITEMS, S);
	wf_flight_free(sends, ITEMS);
	assert_int_equal(weft_step_end(wf_world_node(0), STEP), 0);
	assert_int_equal(weft_step_end(wf_world_node(1), STEP), 0);
	wf_world_end();
}

/* Open a world where items 1 and 4 have come, and the others are missing. */
static void get_two_of_them(enum wf_world_shape shape, uint64_t timeout_ns)
{
	open_world(shape, 2);
	receive(timeout_ns);
	send(1);
	send(4);
	hear(2);
}

static void assert_kept_two(enum weft_status others)
{
	for (unsigned i = 0; i < ITEMS; i++)
		assert_int_equal(set.statuses[i], i == 1 || i == 4 ? WEFT_OK : others);
}

static void a_deadline_ends_the_items_that_are_missing(void **state)
{
	(void)state;
	for (size_t s = 0; s < WF_COUNT(wf_world_shapes); s++) {
		get_two_of_them(wf_world_shapes[s], S);
		land(WEFT_DEADLINE_EXCEEDED);
		assert_true(wf_flight_ns(&set.flight) < S + 50 * MS);
		assert_kept_two(WEFT_DEADLINE_EXCEEDED);
		assert_says(2, 0, "the deadline passed before");
		end_world();
	}
}

static void a_cancel_ends_the_items_that_are_missing(void **state)
{
	(void)state;
	get_two_of_them(WF_WORLD_CONNECTED, LONG_NS);
	weft_cancel(set.flight.op);
	land(WEFT_CANCELLED);
	assert_true(wf_flight_ns(&set.flight) < S);
	assert_kept_two(WEFT_CANCELLED);
	assert_says(2, 0, "it was cancelled");
	assert_int_equal(weft_op_executed(set.flight.op), WEFT_EXECUTED_MAYBE);
	end_world();
}

static void the_death_of_the_peer_ends_the_items_that_are_missing(void **state)
{
	(void)state;
	for (size_t s = 0; s < WF_COUNT(wf_world_shapes); s++) {
		get_two_of_them(wf_world_shapes[s], LONG_NS);
		wf_flight_land(&sends[1], 1, S);
		wf_flight_land(&sends[4], 1, S);
		wf_flight_free(sends, ITEMS);
		memset(sends, 0, sizeof(sends));
		wf_world_kill(1);
		land(WEFT_UNAVAILABLE);
		assert_true(wf_flight_ns(&set.flight) < 2 * S);
		assert_kept_two(WEFT_UNAVAILABLE);
		wf_flight_free(&set.flight, 1);
		wf_world_assert_free(0);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void the_end_of_a_step_ends_the_items_that_are_missing(void **state)
{
	(void)state;
	get_two_of_them(WF_WORLD_CONNECTED, LONG_NS);
	assert_int_equal(weft_step_end(wf_world_node(0), STEP), 0);
	land(WEFT_CANCELLED);
	assert_kept_two(WEFT_CANCELLED);
	end_world();
}

static void an_abort_of_a_step_ends_the_items_that_are_missing(void **state)
{
	(void)state;
	get_two_of_them(WF_WORLD_CONNECTED, LONG_NS);
	assert_int_equal(weft_step_abort(wf_world_node(1), STEP, WEFT_ABORTED, "it is enough"), 0);
	land(WEFT_ABORTED);
	assert_kept_two(WEFT_ABORTED);
	assert_says(2, 0, "it is enough");
	end_world();
}

static void a_node_that_closes_ends_the_set(void **state)
{
	(void)state;
	get_two_of_them(WF_WORLD_CONNECTED, LONG_NS);
	wf_world_leave(0);
	assert_int_equal(set.flight.outcomes, 1);
	assert_kept_two(WEFT_CANCELLED);
	assert_int_equal(set.flight.status, WEFT_CANCELLED);
	/* Handles outlive the node. */
	assert_int_equal(weft_op_status(item_of(0)), WEFT_CANCELLED);
	wf_flight_land(&sends[1], 1, S);
	wf_flight_land(&sends[4], 1, S);
	wf_flight_free(sends, ITEMS);
	wf_flight_free(&set.flight, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void an_item_that_fails_costs_the_others_nothing(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive(LONG_NS);
	send_as(1, 3, 0); /* longer than the buffer of item 0 */
	hear(1);
	assert_int_equal(set.statuses[0], WEFT_FAILED_PRECONDITION);
	wf_world_pass(S);
	assert_int_equal(set.flight.outcomes, 0);
	wf_flight_land(&sends[3], 1, S);
	wf_flight_free(&sends[3], 1);
	for (unsigned i = 1; i < ITEMS; i++)
		send(i);
	land(WEFT_FAILED_PRECONDITION);
	assert_says(ITEMS - 1, 0, "a buffer of 100 bytes");
	end_world();
}

static void an_item_can_be_cancelled_alone(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive(LONG_NS);
	weft_cancel(item_of(2));
	hear(1);
	assert_int_equal(set.order[0], 2);
	for (unsigned i = 0; i < ITEMS; i++)
		if (i != 2)
			send(i);
	land(WEFT_CANCELLED);
	assert_says(ITEMS - 1, 2, "it was cancelled");
	end_world();
}

static void the_outcome_is_that_of_the_item_that_failed_first(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive(S);
	weft_cancel(item_of(4));
	hear(1);
	land(WEFT_CANCELLED);
	assert_says(0, 4, "it was cancelled");
	end_world();
}

static void items_of_one_key_get_a_tensor_each_in_order(void **state)
{
	static const uint64_t keys[ITEMS] = { 7, 7, 7, 7, 7, 7 };
	struct weft_recv_set_options options;

	(void)state;
	for (unsigned late = 0; late < 2; late++) {
		open_world(WF_WORLD_CONNECTED, 2);
		options = options_of(LONG_NS);
		if (!late)
			assert_int_equal(receive_with(1, keys, ITEMS, &options, &set.flight.op), 0);
		for (unsigned i = 0; i < ITEMS; i++)
			send_as(1, i, 7);
		wf_world_pass(late * 50 * MS);
		if (late)
			assert_int_equal(receive_with(1, keys, ITEMS, &options, &set.flight.op), 0);
		land(WEFT_OK);
		end_world();
	}
}

static void a_tensor_that_no_item_got_stays_for_the_next_receive(void **state)
{
	struct wf_flight next;
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	const uint64_t key = 3;

	(void)state;
	get_two_of_them(WF_WORLD_CONNECTED, LONG_NS);
	weft_cancel(set.flight.op);
	land(WEFT_CANCELLED);
	send(3);
	options.op = wf_flight_begin(&next, LONG_NS);
	assert_int_equal(weft_recv(wf_world_node(0), wf_world_peer(0, 1), STEP, &key, sizeof(key), NULL,
				   &options, &next.op),
			 0);
	wf_flight_land(&next, 1, S);
	assert_int_equal(next.status, WEFT_OK);
	wf_flight_free(&next, 1);
	end_world();
}

static void a_set_without_a_peer_gets_tensors_of_all(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= WORKERS; workers += WORKERS - 1) {
		wf_world_set_workers(workers);
		open_world(WF_WORLD_CONNECTED, 1 + ITEMS);
		for (unsigned i = 0; i < ITEMS; i++)
			wf_world_connect(0, 1 + i); /* a sender is known by the peer that was opened */
		receive_from(0, LONG_NS);
		for (unsigned i = 0; i < ITEMS; i++)
			send_as(1 + i, i, i);
		land(WEFT_OK);
		for (unsigned i = 0; i < ITEMS; i++)
			assert_ptr_equal(weft_op_peer(item_of(i)), wf_world_peer(0, 1 + i));
		assert_null(weft_op_peer(set.flight.op));
		end_world();
	}
}

static void a_set_without_a_peer_can_be_cancelled_at_all_workers(void **state)
{
	(void)state;
	wf_world_set_workers(WORKERS);
	open_world(WF_WORLD_SHARED, 1 + ITEMS);
	receive_from(0, LONG_NS);
	send_as(2, 1, 1);
	send_as(3, 4, 4);
	hear(2);
	weft_cancel(set.flight.op);
	land(WEFT_CANCELLED);
	assert_kept_two(WEFT_CANCELLED);
	end_world();
}

/* Two nodes dial at once, so that one of them may find the other at another worker of its own. */
static void the_items_go_where_the_peer_is(void **state)
{
	(void)state;
	for (unsigned cancelled = 0; cancelled < 2; cancelled++) {
		wf_world_set_workers(WORKERS);
		open_world(WF_WORLD_CONNECTED, 1 + ITEMS);
		for (unsigned i = 1; i < ITEMS; i++)
			wf_world_connect(i, 0); /* its home is not the first worker */
		receive_from(ITEMS, LONG_NS);
		for (unsigned i = 0; i < ITEMS; i++)
			send_as(ITEMS, i, i);
		if (cancelled)
			weft_cancel(set.flight.op);
		land(cancelled ? WEFT_CANCELLED : WEFT_OK);
		end_world();
	}
}

static void a_queue_gets_the_set_alone(void **state)
{
	struct weft_recv_set_options options;
	struct weft_queue *queue;
	struct weft_op *ops[ITEMS + 1];

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	assert_int_equal(weft_queue_open(wf_world_node(0), &queue), 0);
	options = options_of(LONG_NS);
	options.op.done = NULL;
	options.op.queue = queue;
	assert_int_equal(receive_with(1, numbers, ITEMS, &options, NULL), 0);
	send_all();
	hear(ITEMS);
	wf_flight_land(sends, ITEMS, S);
	wf_world_pass(50 * MS);
	assert_int_equal(weft_queue_next(queue, ops, WF_COUNT(ops), 0), 1);
	assert_int_equal(weft_op_status(ops[0]), WEFT_OK);
	set.flight.op = ops[0];
	assert_got(1, 1);
	weft_queue_close(queue);
	end_world();
}

static void a_set_that_nobody_waits_for_tells_its_items(void **state)
{
	struct weft_recv_set_options options;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	options = options_of(LONG_NS);
	options.op.done = NULL;
	assert_int_equal(receive_with(1, numbers, ITEMS, &options, NULL), 0);
	send_all();
	hear(ITEMS);
	for (unsigned i = 0; i < ITEMS; i++)
		assert_int_equal(set.statuses[i], WEFT_OK);
	wf_flight_land(sends, ITEMS, S);
	wf_flight_free(sends, ITEMS);
	assert_int_equal(weft_step_end(wf_world_node(0), STEP), 0);
	assert_int_equal(weft_step_end(wf_world_node(1), STEP), 0);
	wf_world_end();
}

static void a_thread_can_wait_for_an_item_and_for_the_set(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 2);
	receive(LONG_NS);
	send(1);
	assert_int_equal(weft_wait(item_of(1), LONG_NS), 0);
	assert_got(1, 1);
	assert_int_equal(weft_wait(set.flight.op, MS), -ETIMEDOUT);
	for (unsigned i = 0; i < ITEMS; i++)
		if (i != 1)
			send(i);
	assert_int_equal(weft_wait(set.flight.op, LONG_NS), 0);
	land(WEFT_OK);
	end_world();
}

static void a_dump_names_the_set_and_what_is_missing(void **state)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	get_two_of_them(WF_WORLD_CONNECTED, LONG_NS);
	assert_int_equal(weft_dump(wf_world_node(0), out), 0);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "recv set of 6 tensors step 5 from "));
	assert_non_null(strstr(text, "4 of 6 items have not ended"));
	free(text);
	weft_cancel(set.flight.op);
	land(WEFT_CANCELLED);
	end_world();
}

/* Node 0 refuses a set of @count @items, with @why, and keeps nothing of it. */
static void refuse(const struct weft_recv_item *items, size_t count,
		   const struct weft_recv_set_options *options, const char *why)
{
	struct weft_op *op = NULL;

	assert_int_equal(weft_recv_set(wf_world_node(0), NULL, STEP, items, count, options, &op),
			 -EINVAL);
	assert_string_equal(weft_error(), why);
	assert_null(op);
}

static void refuse_bad_items(void)
{
	static const char key[WEFT_KEY_BYTES_MAX + 1];
	struct weft_recv_item items[3] = { { "a", 1, NULL }, { "b", 1, NULL }, { "c", 1, NULL } };
	int64_t shape = 3, strides = 2;
	struct weft_tensor strided = row(target[0], &shape);

	refuse(items, 0, NULL, "a set of 0 items: expected 1 to 65536");
	refuse(items, WEFT_RECV_SET_MAX + 1, NULL, "a set of 65537 items: expected 1 to 65536");
	items[2] = (struct weft_recv_item){ key, sizeof(key), NULL };
	refuse(items, 3, NULL, "item 2: a key of 65536 bytes: at most 65535");
	items[2] = (struct weft_recv_item){ NULL, 1, NULL };
	refuse(items, 3, NULL, "item 2: key is NULL, and key_bytes is 1");
	strided.strides = &strides;
	items[1].into = &strided;
	refuse(items, 2, NULL, "item 1: a buffer to receive into must be contiguous");
}

static void refuse_bad_options(void)
{
	const struct weft_recv_item item = { "a", 1, NULL };
	struct weft_recv_set_options options = WEFT_RECV_SET_OPTIONS_INIT;
	struct weft_op *op;

	options.flags = WEFT_RELAY;
	refuse(&item, 1, &options, "flags 0x200 are not for a set of receives");
	options = (struct weft_recv_set_options){ .size = 3 };
	refuse(&item, 1, &options, "options->size is not set");
	options = (struct weft_recv_set_options){ .size = sizeof(options), .op.timeout_ns = 1 };
	refuse(&item, 1, &options, "options->op.size is not set, and other fields of options->op are");
	assert_int_equal(weft_recv_set(wf_world_node(0), wf_world_peer(1, 0), STEP, &item, 1, NULL, &op),
			 -EINVAL);
	assert_string_equal(weft_error(), "the peer belongs to another node");
}

static void a_bad_set_is_refused_as_a_whole(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= WORKERS; workers += WORKERS - 1) {
		wf_world_set_workers(workers);
		open_world(WF_WORLD_CONNECTED, 2);
		refuse_bad_items();
		refuse_bad_options();
		wf_world_assert_free(0);
		wf_world_end();
	}
}

/* Events that may happen in the middle, after each step of a set and its sends. */

enum event { CANCEL, KILL_SENDER, LEAVE, BREAK_RAIL, CUT_DOOR };

static void happen(enum event event)
{
	switch (event) {
	case CANCEL:
		weft_cancel(set.flight.op);
		break;
	case KILL_SENDER:
		wf_world_kill(1);
		break;
	case LEAVE:
		wf_world_leave(1);
		break;
	case BREAK_RAIL:
		wf_world_break_rail(0, 1, true);
		wf_world_pass(50 * MS);
		wf_world_break_rail(0, 1, false);
		break;
	case CUT_DOOR:
		wf_world_cut_door(0, 1);
		break;
	}
}

/* False: the set was over before @step steps. */
static bool try_event(enum wf_world_shape shape, enum event event, unsigned step)
{
	bool was_over = false, is_gone = event == KILL_SENDER || event == LEAVE;

	open_world(shape, 2);
	receive(LONG_NS);
	send_all();
	for (unsigned i = 0; i < step && !was_over; i++) {
		was_over = set.flight.outcomes;
		wf_world_step();
	}
	happen(event);
	wf_flight_land(&set.flight, 1, LONG_NS + S);
	land(set.flight.status);
	if (event == CANCEL && set.flight.status != WEFT_OK) /* a cancel may be late */
		assert_int_equal(set.flight.status, WEFT_CANCELLED);
	else if (!is_gone)
		assert_int_equal(set.flight.status, WEFT_OK);
	if (!is_gone) {
		end_world();
		return !was_over;
	}
	wf_world_pass(WF_WORLD_LOST_NS);
	wf_flight_free(&set.flight, 1);
	wf_flight_free(sends, ITEMS);
	wf_world_assert_free(0);
	(void)wf_world_close();
	return !was_over;
}

static void try_everywhere(enum event event)
{
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		unsigned step = 0;

		while (try_event(wf_world_shapes[i], event, step))
			step++;
		assert_true(step > 3);
	}
}

static void a_cancelled_set_frees_everything_wherever_it_is(void **state)
{
	(void)state;
	try_everywhere(CANCEL);
}

static void a_dead_sender_costs_nothing_but_what_is_missing(void **state)
{
	(void)state;
	try_everywhere(KILL_SENDER);
}

static void a_sender_that_leaves_ends_the_set(void **state)
{
	(void)state;
	try_everywhere(LEAVE);
}

static void a_rail_that_fails_loses_no_item(void **state)
{
	(void)state;
	try_everywhere(BREAK_RAIL);
}

static void a_door_that_is_cut_loses_no_item(void **state)
{
	(void)state;
	try_everywhere(CUT_DOOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_item_gets_its_tensor_whichever_comes_first),
		cmocka_unit_test(an_item_can_be_read_as_soon_as_it_is_told),
		cmocka_unit_test(memory_that_was_taken_from_an_item_outlives_the_set),
		cmocka_unit_test(a_deadline_ends_the_items_that_are_missing),
		cmocka_unit_test(a_cancel_ends_the_items_that_are_missing),
		cmocka_unit_test(the_death_of_the_peer_ends_the_items_that_are_missing),
		cmocka_unit_test(the_end_of_a_step_ends_the_items_that_are_missing),
		cmocka_unit_test(an_abort_of_a_step_ends_the_items_that_are_missing),
		cmocka_unit_test(a_node_that_closes_ends_the_set),
		cmocka_unit_test(an_item_that_fails_costs_the_others_nothing),
		cmocka_unit_test(an_item_can_be_cancelled_alone),
		cmocka_unit_test(the_outcome_is_that_of_the_item_that_failed_first),
		cmocka_unit_test(items_of_one_key_get_a_tensor_each_in_order),
		cmocka_unit_test(a_tensor_that_no_item_got_stays_for_the_next_receive),
		cmocka_unit_test(a_set_without_a_peer_gets_tensors_of_all),
		cmocka_unit_test(a_set_without_a_peer_can_be_cancelled_at_all_workers),
		cmocka_unit_test(the_items_go_where_the_peer_is),
		cmocka_unit_test(a_queue_gets_the_set_alone),
		cmocka_unit_test(a_set_that_nobody_waits_for_tells_its_items),
		cmocka_unit_test(a_thread_can_wait_for_an_item_and_for_the_set),
		cmocka_unit_test(a_dump_names_the_set_and_what_is_missing),
		cmocka_unit_test(a_bad_set_is_refused_as_a_whole),
		cmocka_unit_test(a_cancelled_set_frees_everything_wherever_it_is),
		cmocka_unit_test(a_dead_sender_costs_nothing_but_what_is_missing),
		cmocka_unit_test(a_sender_that_leaves_ends_the_set),
		cmocka_unit_test(a_rail_that_fails_loses_no_item),
		cmocka_unit_test(a_door_that_is_cut_loses_no_item),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
