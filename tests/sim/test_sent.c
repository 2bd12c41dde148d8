/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the end of a send says: the same of a tensor that leaves at once, in a frame, and of one
 * that its receiver reads.  Each test has both lengths; the last is of a send that ends early.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define BIG (3 * MIB + 17) /* pulled, in several chunks */
#define STEP 7
#define READING (25 * MS) /* reads are under way then: each way takes 10 ms */

static const struct wf_fake slow = { .seed = 1, .delay_min_ns = 10 * MS, .delay_max_ns = 10 * MS };
static const size_t lengths[] = { 100, BIG };

static uint8_t source[BIG], target[2][BIG];

static void open_world(void)
{
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_world_connect(0, 1);
	wf_world_fill(source, BIG, 1);
}

/* Receive @count elements of @bits bits into @into, or into what @options say. */
static void receive(struct wf_flight *f, void *into, int64_t count, uint8_t bits, uint64_t limit_ns,
		    struct weft_recv_options options)
{
	struct weft_tensor t = {
		.data = into, .device = { WEFT_CPU, 0 }, .ndim = 1,
		.dtype = { WEFT_UINT, bits, 1 }, .shape = &count,
	};

	options.op = wf_flight_begin(f, limit_ns);
	assert_int_equal(weft_recv(wf_world_node(1), wf_world_peer(1, 0), STEP, "", 0,
				   into ? &t : NULL, &options, &f->op), 0);
}

static struct weft_recv_options with_flags(unsigned flags)
{
	return (struct weft_recv_options){ .size = sizeof(struct weft_recv_options), .flags = flags };
}

static void land_as(struct wf_flight *f, enum weft_status status)
{
	wf_flight_land(f, 1, 20 * S);
	assert_int_equal(f->status, status);
}

/* The send has ended well, and says no more; nothing of its tensor is kept. */
static void end_well(struct wf_flight *sent)
{
	land_as(sent, WEFT_OK);
	assert_string_equal(weft_op_message(sent->op), "");
	assert_int_equal(weft_op_executed(sent->op), WEFT_EXECUTED_YES);
	wf_flight_free(sent, 1);
	wf_world_end();
}

static void a_send_ends_well_where_its_tensor_does_not_fit_the_receive(void **state)
{
	static const struct {
		unsigned flags;
		int wider, longer; /* the receive's dtype has 16 bits, its shape so many more */
	} rows[] = { { 0, 1, 0 }, { 0, 0, 1 }, { WEFT_ANY_SHAPE, 0, -1 } };
	struct wf_flight sent, got;

	(void)state;
	for (size_t i = 0; i < 4 * WF_COUNT(rows); i++) {
		size_t bytes = lengths[i % 2], row = i / 4;
		bool late = i % 4 >= 2;

		open_world();
		if (late)
			wf_flight_send(&sent, 0, 1, STEP, source, bytes, 0);
		wf_world_pass(late ? S : 0);
		receive(&got, target[0], (int64_t)bytes / (1 + rows[row].wider) + rows[row].longer,
			(uint8_t)(8 + 8 * rows[row].wider), 0, with_flags(rows[row].flags));
		if (!late)
			wf_flight_send(&sent, 0, 1, STEP, source, bytes, 0);
		land_as(&got, WEFT_FAILED_PRECONDITION);
		wf_flight_free(&got, 1);
		end_well(&sent);
	}
}

static void *refuse(void *arg, const struct weft_tensor *want, uint64_t bytes)
{
	(void)arg;
	(void)want;
	(void)bytes;
	return NULL;
}

static void a_send_ends_well_where_the_receives_callback_gives_no_memory(void **state)
{
	struct weft_recv_options options = with_flags(0);
	struct wf_flight sent, got;

	(void)state;
	options.alloc = refuse;
	for (size_t i = 0; i < WF_COUNT(lengths); i++) {
		open_world();
		receive(&got, NULL, 0, 8, 0, options);
		wf_flight_send(&sent, 0, 1, STEP, source, lengths[i], 0);
		land_as(&got, WEFT_RESOURCE_EXHAUSTED);
		wf_flight_free(&got, 1);
		end_well(&sent);
	}
}

static void a_send_ends_well_where_its_receive_demands_another_rail(void **state)
{
	struct weft_recv_options options = with_flags(0);
	int64_t shape;
	struct wf_flight sent, got;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(lengths); i++) {
		struct weft_tensor t = { .data = target[0], .device = { WEFT_CPU, 0 }, .ndim = 1,
					 .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };

		open_world();
		shape = (int64_t)lengths[i];
		options.op = wf_flight_begin(&got, 0);
		options.op.provider = "none";
		assert_int_equal(weft_recv(wf_world_node(1), wf_world_peer(1, 0), STEP, "", 0, &t,
					   &options, &got.op), 0);
		wf_flight_send(&sent, 0, 1, STEP, source, lengths[i], 0);
		land_as(&got, WEFT_FAILED_PRECONDITION);
		wf_flight_free(&got, 1);
		end_well(&sent);
	}
}

/* The receive is out of time, or cancelled; what it was to get is dropped, or for the next. */
static void a_send_ends_well_where_the_pool_is_full(void **state)
{
	struct wf_flight sent, got, next;
	void *all[256];
	size_t count;

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		size_t bytes = lengths[i % 2];
		bool cancel = i & 2, drop = i & 4;

		assert_int_equal(setenv("WEFT_POOL_BYTES", "8M", 1), 0);
		open_world();
		count = wf_world_take_pool(1, all, WF_COUNT(all));
		wf_flight_send(&sent, 0, 1, STEP, source, bytes, 0);
		receive(&got, NULL, 0, 8, cancel ? 0 : S, with_flags(drop ? WEFT_DROP : 0));
		wf_world_pass(S / 2);
		assert_int_equal(got.outcomes, 0);
		if (cancel)
			weft_cancel(got.op);
		land_as(&got, cancel ? WEFT_CANCELLED : WEFT_RESOURCE_EXHAUSTED);
		wf_flight_free(&got, 1);
		if (!drop) {
			wf_flight_receive(&next, 1, 0, STEP, target[1], bytes, 0);
			land_as(&next, WEFT_OK);
			assert_same_content(target[1], source, bytes);
			wf_flight_free(&next, 1);
		}
		while (count--)
			weft_free(wf_world_node(1), all[count]);
		end_well(&sent);
	}
}

/* A short tensor is here before anybody can give it up; a long one is being read. */
static void a_send_ends_well_where_its_tensor_is_dropped_while_it_comes(void **state)
{
	struct wf_flight sent, got;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		bool cancel = i % 2;

		open_world();
		wf_flight_send(&sent, 0, 1, STEP, source, lengths[i / 2], 0);
		receive(&got, target[0], (int64_t)lengths[i / 2], 8, cancel ? 0 : READING,
			with_flags(WEFT_DROP));
		wf_world_pass(READING);
		if (cancel)
			weft_cancel(got.op);
		land_as(&got, lengths[i / 2] < BIG ? WEFT_OK : cancel ? WEFT_CANCELLED :
						     WEFT_DEADLINE_EXCEEDED);
		wf_flight_free(&got, 1);
		end_well(&sent);
	}
}

/* The step ends before the tensor comes, while it waits for a receive, or while it is received. */
static void a_send_ends_well_where_its_step_has_ended_at_the_receiver(void **state)
{
	struct wf_flight sent, got;

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		size_t bytes = lengths[i % 2];
		unsigned when = (unsigned)i / 2;

		open_world();
		if (!when)
			assert_int_equal(weft_step_end(wf_world_node(1), STEP), 0);
		wf_flight_send(&sent, 0, 1, STEP, source, bytes, 0);
		if (when == 2)
			wf_flight_receive(&got, 1, 0, STEP, target[0], bytes, 0);
		wf_world_pass(when == 2 ? READING : S);
		if (when)
			assert_int_equal(weft_step_end(wf_world_node(1), STEP), 0);
		if (when == 2)
			land_as(&got, bytes < BIG ? WEFT_OK : WEFT_CANCELLED);
		if (when == 2)
			wf_flight_free(&got, 1);
		end_well(&sent);
	}
}

static void a_send_ends_well_where_nobody_receives_its_tensor_in_time(void **state)
{
	struct wf_flight sent;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(lengths); i++) {
		assert_int_equal(setenv("WEFT_STEP_TIMEOUT", "10s", 1), 0);
		open_world();
		wf_flight_send(&sent, 0, 1, STEP, source, lengths[i], WEFT_FOREVER);
		wf_world_pass(11 * S);
		end_well(&sent);
	}
}

/* The peer is dead, or the step is over by an abort, or by its end at the sender itself. */
static void a_send_fails_where_its_tensor_can_not_be_handed_over(void **state)
{
	static const enum weft_status ends[] = {
		WEFT_UNAVAILABLE, WEFT_ABORTED, WEFT_FAILED_PRECONDITION,
	};
	struct wf_flight sent;

	(void)state;
	for (size_t i = 0; i < 2 * WF_COUNT(ends); i++) {
		size_t how = i / 2;

		wf_world_lose_soon();
		open_world();
		if (how == 0)
			wf_world_kill(1);
		else if (how == 1)
			assert_int_equal(weft_step_abort(wf_world_node(0), STEP, ends[how], ""), 0);
		else
			assert_int_equal(weft_step_end(wf_world_node(0), STEP), 0);
		wf_world_pass(S);
		wf_flight_send(&sent, 0, 1, STEP, source, lengths[i % 2], 0);
		land_as(&sent, ends[how]);
		assert_int_equal(weft_op_executed(sent.op), WEFT_EXECUTED_NO);
		wf_flight_free(&sent, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

enum { SENDS = 150, BYTES = 64 * KIB, KEY = 1000 };

static uint8_t bodies[SENDS][BYTES], into[SENDS][BYTES];
static const char long_key[KEY];

static struct weft_tensor tensor_of(void *data, int64_t *bytes)
{
	return (struct weft_tensor){ .data = data, .device = { WEFT_CPU, 0 }, .ndim = 1,
				     .dtype = { WEFT_UINT, 8, 1 }, .shape = bytes };
}

/* Begin receives, and sends that a peer which stands still does not take. */
static void begin_all(struct wf_flight *got, struct wf_flight *sent)
{
	int64_t bytes = BYTES;

	for (unsigned i = 0; i < SENDS; i++) {
		struct weft_tensor t = tensor_of(into[i], &bytes);
		struct weft_recv_options options = with_flags(0);

		options.op = wf_flight_begin(&got[i], 2 * S);
		assert_int_equal(weft_recv(wf_world_node(1), wf_world_peer(1, 0), STEP, long_key, KEY,
					   &t, &options, &got[i].op), 0);
	}
	wf_world_pass(30 * MS);
	wf_world_freeze(1, true);
	for (unsigned i = 0; i < SENDS; i++) {
		struct weft_tensor t = tensor_of(bodies[i], &bytes);
		struct weft_send_options options = { .size = sizeof(options) };

		options.op = wf_flight_begin(&sent[i], 0);
		assert_int_equal(weft_send(wf_world_peer(0, 1), STEP, long_key, KEY, &t, &options,
					   &sent[i].op), 0);
	}
	wf_world_pass(30 * MS);
}

/*
 * Offers fill the frames that a peer takes, up to the middle of one, whose rest leaves when the peer
 * goes on and reads what is offered, before it hears that the send is cancelled.
 */
static void a_cancelled_send_keeps_its_body_where_half_of_its_offer_has_left(void **state)
{
	static struct wf_flight sent[SENDS], got[SENDS];
	unsigned ended = 0;

	(void)state;
	setenv("WEFT_SLOTS", "24", 1);
	wf_world_open(WF_WORLD_SHARED, 2, &slow);
	wf_world_connect(0, 1);
	begin_all(got, sent);
	for (unsigned i = 0; i < SENDS; i++)
		weft_cancel(sent[i].op);
	wf_world_pass(30 * MS);
	for (unsigned i = 0; i < SENDS; i++) {
		ended += sent[i].outcomes;
		/* The peer may read the body of an offer that has left, be it in part. */
		assert_false(sent[i].outcomes && weft_op_executed(sent[i].op) != WEFT_EXECUTED_NO);
	}
	assert_in_range(ended, 1, SENDS - 1);
	wf_world_freeze(1, false);
	wf_flight_land(sent, SENDS, 5 * S);
	wf_flight_land(got, SENDS, 5 * S);
	wf_flight_free(sent, SENDS);
	wf_flight_free(got, SENDS);
	wf_world_end();
	unsetenv("WEFT_SLOTS");
}

/* The bodies of sends that stay in line behind others, of all the room at the peer. */
enum { SHORTS = 8, SHORT = 64 * KIB / SHORTS };

static void a_send_cancelled_in_line_leaves_its_room_at_the_peer_to_later_ones(void **state)
{
	static struct wf_flight sent[SENDS], got[SENDS], in_line[SHORTS], later;
	struct weft_path path = { .size = sizeof(path) };

	(void)state;
	setenv("WEFT_SLOTS", "24", 1);
	setenv("WEFT_UNEXPECTED_BYTES", "64K", 1);
	wf_world_open(WF_WORLD_SHARED, 2, &slow);
	wf_world_connect(0, 1);
	begin_all(got, sent);
	for (unsigned i = 0; i < SHORTS; i++)
		wf_flight_send(&in_line[i], 0, 1, STEP + 1, source, SHORT, 0);
	wf_world_pass(30 * MS);
	for (unsigned i = 0; i < SHORTS; i++)
		weft_cancel(in_line[i].op);
	wf_flight_land(in_line, SHORTS, 30 * MS);
	for (unsigned i = 0; i < SHORTS; i++)
		assert_int_equal(weft_op_executed(in_line[i].op), WEFT_EXECUTED_NO);
	wf_world_freeze(1, false);
	wf_flight_land(sent, SENDS, 5 * S);
	wf_flight_land(got, SENDS, 5 * S);
	wf_flight_send(&later, 0, 1, STEP + 1, source, SHORT, 0);
	land_as(&later, WEFT_OK);
	assert_int_equal(weft_op_path(later.op, &path), 0);
	assert_string_equal(path.way, "eager");

	wf_flight_free(in_line, SHORTS);
	wf_flight_free(sent, SENDS);
	wf_flight_free(got, SENDS);
	wf_flight_free(&later, 1);
	assert_int_equal(wf_world_close(), 0);
	unsetenv("WEFT_SLOTS");
	unsetenv("WEFT_UNEXPECTED_BYTES");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_ends_well_where_its_tensor_does_not_fit_the_receive),
		cmocka_unit_test(a_send_ends_well_where_the_receives_callback_gives_no_memory),
		cmocka_unit_test(a_send_ends_well_where_its_receive_demands_another_rail),
		cmocka_unit_test(a_send_ends_well_where_the_pool_is_full),
		cmocka_unit_test(a_send_ends_well_where_its_tensor_is_dropped_while_it_comes),
		cmocka_unit_test(a_send_ends_well_where_its_step_has_ended_at_the_receiver),
		cmocka_unit_test(a_send_ends_well_where_nobody_receives_its_tensor_in_time),
		cmocka_unit_test(a_send_fails_where_its_tensor_can_not_be_handed_over),
		cmocka_unit_test(a_cancelled_send_keeps_its_body_where_half_of_its_offer_has_left),
		cmocka_unit_test(a_send_cancelled_in_line_leaves_its_room_at_the_peer_to_later_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
