/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of many messages, each way, and everything that may happen in the middle of one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "core/streaming.h"
#include "core/worker.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define SMALL 100          /* in one frame */
#define MIDDLE (40 * KIB)  /* in a few frames where that is chosen */
#define AHEAD (300 * KIB)  /* pulled, and short enough to be pulled before it is read */
#define BIG (3 * MIB + 17) /* pulled, and never before it is read */
#define LONG_NS (20 * S)
#define MANY 200

static uint8_t source[BIG];

static void open_world(enum wf_world_shape shape)
{
	wf_world_lose_soon();
	wf_world_fill(source, sizeof(source), 1);
	wf_world_open(shape, 2, NULL);
}

/* What a read got: the first @bytes of source, packed. */
static bool is_message(const struct wf_flight *f, size_t bytes)
{
	const Sim__Bytes *got = (const Sim__Bytes *)(const void *)weft_stream_message(f->op);

	return f->status == WEFT_OK && got && got->body.len == bytes &&
	       (!bytes || !memcmp(got->body.data, source, bytes));
}

static bool is_end(const struct wf_flight *f)
{
	return f->status == WEFT_OK && !weft_stream_message(f->op);
}

/* A server's end in the hands of the test. */

static struct weft_stream *served;
static unsigned cancels;

static void keep(unsigned number, struct weft_stream *stream)
{
	(void)number;
	assert_null(served);
	served = stream;
}

static void note_cancel(void *arg)
{
	(void)arg;
	cancels++;
}

static void keep_and_watch(unsigned number, struct weft_stream *stream)
{
	keep(number, stream);
	weft_served_on_cancel(weft_stream_served(stream), note_cancel, NULL);
}

static bool is_served(void *ctx)
{
	(void)ctx;
	return served != NULL;
}

static void open_kept(struct wf_flight *call, uint64_t timeout_ns, struct weft_stream **stream)
{
	served = NULL;
	cancels = 0;
	wf_world_on_stream(keep_and_watch);
	wf_flight_open(call, 0, 1, timeout_ns, stream);
	assert_true(wf_world_run(is_served, NULL, S));
}

static void finish(enum weft_status status, const char *message)
{
	weft_stream_finish(served, status, message);
	served = NULL;
}

/* A chat: messages of many sizes each way, and their ends. */

static const size_t sizes[] = { SMALL, 0, BIG, 1, MIDDLE, AHEAD, AHEAD, SMALL, BIG, 2 };
#define COUNT WF_COUNT(sizes)

struct chat {
	bool kept; /* the server's end is the test's: it speaks for itself, else it says back */
	struct weft_stream *stream;
	struct wf_flight call;
	struct wf_flight writes[COUNT], reads[COUNT + 1];
	struct wf_flight answers[COUNT], asked[COUNT + 1];
	bool answering, finished;
};

static bool have_landed(const struct wf_flight *f, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!f[i].outcomes)
			return false;
	return true;
}

static void begin_chat(struct chat *c, bool kept)
{
	*c = (struct chat){ .kept = kept };
	served = NULL;
	cancels = 0;
	wf_world_on_stream(kept ? keep_and_watch : NULL);
	wf_flight_open(&c->call, 0, 1, LONG_NS, &c->stream);
	for (size_t i = 0; i < COUNT; i++)
		wf_flight_write(&c->writes[i], c->stream, source, sizes[i], 0);
	assert_int_equal(weft_stream_half_close(c->stream), 0);
	for (size_t i = 0; i <= COUNT; i++)
		wf_flight_read(&c->reads[i], c->stream, 0);
}

/* The server's part, as soon as there is something to do. */
static void answer_chat(struct chat *c)
{
	if (!served)
		return;
	for (size_t i = 0; i <= COUNT && !c->answering; i++) {
		if (i < COUNT)
			wf_flight_write(&c->answers[i], served, source, sizes[i], 0);
		wf_flight_read(&c->asked[i], served, 0);
	}
	c->answering = true;
	if (!have_landed(c->answers, COUNT) || !have_landed(c->asked, COUNT + 1))
		return;
	c->finished = true;
	finish(is_end(&c->asked[COUNT]) ? WEFT_OK : WEFT_CANCELLED, "");
}

/* All of the caller's. */
static bool is_over(void *ctx)
{
	struct chat *c = ctx;

	answer_chat(c);
	return c->call.outcomes && have_landed(c->writes, COUNT) &&
	       have_landed(c->reads, COUNT + 1);
}

/* The first that were said, whole and in order, and then, if all went well, the end. */
static void check_said(const struct wf_flight *reads)
{
	size_t i = 0;

	while (i < COUNT && is_message(&reads[i], sizes[i]))
		i++;
	if (i == COUNT && is_end(&reads[i]))
		i++;
	for (; i <= COUNT; i++)
		assert_int_not_equal(reads[i].status, WEFT_OK);
}

static void check_once(const struct wf_flight *flights, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(flights[i].outcomes, 1);
}

static void assert_went_well(const struct chat *c)
{
	if (c->call.status != WEFT_OK)
		fail_msg("%s", weft_op_message(c->call.op));
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(c->writes[i].status, WEFT_OK);
	assert_true(is_end(&c->reads[COUNT]));
}

/* Where both nodes live. */
static void end_chat(struct chat *c)
{
	uint64_t until_ns = wf_clock_now() + LONG_NS;

	while (c->answering && !c->finished && wf_clock_now() < until_ns) {
		answer_chat(c);
		wf_world_step();
	}
	if (c->answering) {
		assert_true(c->finished);
		check_once(c->answers, COUNT);
		check_once(c->asked, COUNT + 1);
		check_said(c->asked);
		wf_flight_free(c->answers, COUNT);
		wf_flight_free(c->asked, COUNT + 1);
	}
	/* It had begun when all was over. */
	if (served)
		finish(WEFT_CANCELLED, "");
}

static void check_chat(const struct chat *c)
{
	check_once(&c->call, 1);
	check_once(c->writes, COUNT);
	check_once(c->reads, COUNT + 1);
	check_said(c->reads);
	if (c->call.status == WEFT_OK)
		assert_went_well(c);
}

static void free_chat(struct chat *c)
{
	wf_flight_free(&c->call, 1);
	wf_flight_free(c->writes, COUNT);
	wf_flight_free(c->reads, COUNT + 1);
}

static void messages_of_every_size_keep_their_order_both_ways(void **state)
{
	struct chat c;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		for (unsigned kept = 0; kept < 2; kept++) {
			open_world(wf_world_shapes[i]);
			begin_chat(&c, kept);
			assert_true(wf_world_run(is_over, &c, LONG_NS));
			check_chat(&c);
			assert_went_well(&c);
			end_chat(&c);
			free_chat(&c);
			weft_stream_close(c.stream);
			assert_int_equal(cancels, 0);
			wf_world_end();
		}
	}
}

static void many_messages_keep_their_order(void **state)
{
	static struct wf_flight reads[5 * MANY + 1];
	struct weft_stream *stream;
	struct wf_flight call;
	Sim__Bytes m = SIM__BYTES__INIT;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		wf_flight_open(&call, 0, 1, 0, &stream);
		m.body.data = source;
		for (m.body.len = 0; m.body.len < 5 * MANY; m.body.len++)
			assert_int_equal(weft_stream_write(stream, &m.base, NULL, NULL), 0);
		assert_int_equal(weft_stream_half_close(stream), 0);
		for (size_t j = 0; j < WF_COUNT(reads); j++)
			wf_flight_read(&reads[j], stream, 0);
		wf_flight_land(reads, WF_COUNT(reads), LONG_NS);
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_OK);
		for (size_t j = 0; j < 5 * MANY; j++)
			assert_true(is_message(&reads[j], j));
		assert_true(is_end(&reads[5 * MANY]));
		wf_flight_free(reads, WF_COUNT(reads));
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_end();
	}
}

static void an_empty_stream_ends_well(void **state)
{
	struct weft_stream *stream;
	struct wf_flight call, read;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	wf_flight_open(&call, 0, 1, 0, &stream);
	assert_int_equal(weft_stream_half_close(stream), 0);
	wf_flight_read(&read, stream, 0);
	wf_flight_land(&read, 1, S);
	wf_flight_land(&call, 1, S);
	assert_true(is_end(&read));
	assert_int_equal(call.status, WEFT_OK);
	assert_int_equal(wf_world_talked(1), 1);
	assert_int_equal(wf_world_talking(1), 0);
	/* And every read after it. */
	wf_flight_free(&read, 1);
	wf_flight_read(&read, stream, 0);
	wf_flight_land(&read, 1, S);
	assert_true(is_end(&read));
	wf_flight_free(&read, 1);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

static void a_server_goes_on_after_half_close(void **state)
{
	struct weft_stream *stream;
	struct wf_flight call, f[3];

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_kept(&call, 0, &stream);
	assert_int_equal(weft_stream_half_close(stream), 0);
	wf_flight_read(&f[0], served, 0);
	wf_flight_land(f, 1, S);
	assert_true(is_end(&f[0]));
	wf_world_pass(S);
	wf_flight_write(&f[1], served, source, BIG, 0);
	wf_flight_read(&f[2], stream, 0);
	wf_flight_land(f, 3, S);
	assert_true(is_message(&f[2], BIG));
	assert_int_equal(call.outcomes, 0);
	finish(WEFT_OK, "");
	wf_flight_land(&call, 1, S);
	wf_flight_free(f, 3);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

/* Who does not read. */

static unsigned count_landed(const struct wf_flight *f, size_t count)
{
	unsigned landed = 0;

	for (size_t i = 0; i < count; i++)
		landed += f[i].outcomes;
	return landed;
}

static void stop_writer(struct weft_stream *from, struct weft_stream *to)
{
	static struct wf_flight writes[MANY], reads[MANY];

	for (size_t i = 0; i < MANY; i++)
		wf_flight_write(&writes[i], from, source, i, 0);
	wf_world_pass(S);
	assert_int_equal(count_landed(writes, MANY), 64);
	assert_int_equal(to->stream.in.came, 64);
	/* A few that are read are not told at once; many are. */
	for (size_t i = 0; i < MANY; i++) {
		wf_flight_read(&reads[i], to, 0);
		wf_flight_land(&reads[i], 1, S);
		assert_true(is_message(&reads[i], i));
		wf_world_pass(MS);
		assert_true(count_landed(writes, MANY) <= i + 1 + 64);
		assert_true(count_landed(writes, MANY) >= WF_MIN(i + 1 + 32, (size_t)MANY));
	}
	assert_int_equal(count_landed(writes, MANY), MANY);
	wf_flight_free(writes, MANY);
	wf_flight_free(reads, MANY);
}

static void a_reader_that_does_not_read_stops_the_writer(void **state)
{
	struct weft_stream *stream;
	struct wf_flight call;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_kept(&call, LONG_NS, &stream);
	stop_writer(stream, served);
	stop_writer(served, stream);
	finish(WEFT_OK, "");
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_OK);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

/* What a write waits for can be given up, and the others go on. */
static void a_write_that_waits_for_the_reader_can_be_given_up(void **state)
{
	static struct wf_flight writes[67], reads[66];
	struct weft_stream *stream;
	struct wf_flight call;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_kept(&call, LONG_NS, &stream);
	for (size_t i = 0; i < 67; i++)
		wf_flight_write(&writes[i], stream, source, i, i == 64 ? 100 * MS : 0);
	wf_world_pass(50 * MS);
	weft_cancel(writes[65].op);
	weft_cancel(writes[1].op); /* it has left */
	wf_world_pass(200 * MS);
	assert_int_equal(count_landed(writes, 67), 66);
	assert_int_equal(writes[64].status, WEFT_DEADLINE_EXCEEDED);
	assert_int_equal(weft_op_executed(writes[64].op), WEFT_EXECUTED_NO);
	assert_int_equal(writes[65].status, WEFT_CANCELLED);
	assert_int_equal(writes[1].status, WEFT_OK);
	assert_int_equal(weft_stream_half_close(stream), 0);
	for (size_t i = 0; i < 66; i++)
		wf_flight_read(&reads[i], served, 0);
	wf_flight_land(reads, 66, S);
	wf_flight_land(&writes[66], 1, S);
	for (size_t i = 0; i < 64; i++)
		assert_true(is_message(&reads[i], i));
	assert_true(is_message(&reads[64], 66));
	assert_true(is_end(&reads[65]));
	finish(WEFT_OK, "");
	wf_flight_land(&call, 1, S);
	wf_flight_free(writes, 67);
	wf_flight_free(reads, 66);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

/* Nor are the others lost with one that waits for a rail. */
static void a_write_that_waits_for_a_rail_can_be_given_up(void **state)
{
	static const struct weft_metadata initial = { "a", "b", 1 };
	struct wf_flight call, writes[3], reads[2];
	struct weft_stream *stream, *from, *to;
	size_t count;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		open_world(WF_WORLD_CONNECTED);
		open_kept(&call, LONG_NS, &stream);
		from = i ? served : stream;
		to = i ? stream : served;
		assert_int_equal(weft_served_set_initial(weft_stream_served(served),
							 &initial, 1), 0);
		wf_world_break_rail(0, 1, true);
		wf_world_pass(10 * MS);
		wf_flight_write(&writes[0], from, source, BIG, 5 * MS);
		wf_flight_write(&writes[1], from, source, SMALL, 0);
		wf_flight_write(&writes[2], from, source, BIG, 0);
		wf_world_pass(10 * MS);
		assert_int_equal(writes[0].status, WEFT_DEADLINE_EXCEEDED);
		assert_int_equal(weft_op_executed(writes[0].op), WEFT_EXECUTED_NO);
		assert_int_equal(count_landed(writes, 3), 1);
		wf_world_break_rail(0, 1, false);
		for (size_t j = 0; j < 2; j++)
			wf_flight_read(&reads[j], to, 0);
		wf_flight_land(reads, 2, S);
		wf_flight_land(writes, 3, S);
		assert_true(is_message(&reads[0], SMALL));
		assert_true(is_message(&reads[1], BIG));
		finish(WEFT_OK, "");
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_OK);
		assert_string_equal(weft_call_initial(call.op, &count)->key, "a");
		wf_flight_free(writes, 3);
		wf_flight_free(reads, 2);
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_end();
	}
}

static void a_read_that_ends_early_leaves_the_message_to_the_next(void **state)
{
	struct weft_stream *stream;
	struct wf_flight call, f[3], write;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		open_kept(&call, LONG_NS, &stream);
		wf_flight_read(&f[0], served, 10 * MS);
		wf_flight_read(&f[1], served, 0);
		wf_flight_read(&f[2], served, 0);
		weft_cancel(f[1].op);
		wf_world_pass(50 * MS);
		assert_int_equal(f[0].status, WEFT_DEADLINE_EXCEEDED);
		assert_int_equal(f[1].status, WEFT_CANCELLED);
		wf_flight_write(&write, stream, source, BIG, 0);
		wf_flight_land(&f[2], 1, S);
		assert_true(is_message(&f[2], BIG));
		wf_flight_land(&write, 1, S);
		wf_flight_free(f, 3);
		wf_flight_free(&write, 1);
		/* Nor does one that ends while its message is pulled take that along. */
		wf_flight_write(&write, stream, source, BIG, 0);
		wf_flight_read(&f[0], served, 0);
		for (unsigned j = 0; j < 4; j++)
			wf_world_step();
		weft_cancel(f[0].op);
		wf_world_pass(50 * MS);
		wf_flight_read(&f[1], served, 0);
		wf_flight_land(f, 2, S);
		assert_true(is_message(&f[0], BIG) || is_message(&f[1], BIG));
		if (f[0].status == WEFT_OK)
			weft_cancel(f[1].op);
		finish(WEFT_OK, "");
		wf_flight_land(&write, 1, S);
		wf_flight_land(&call, 1, S);
		wf_flight_free(f, 2);
		wf_flight_free(&write, 1);
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_end();
	}
}

static void long_messages_are_not_pulled_far_ahead_of_the_reader(void **state)
{
	struct weft_stream *stream;
	struct wf_flight call, writes[8], reads[8];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		open_kept(&call, LONG_NS, &stream);
		for (size_t j = 0; j < 8; j++)
			wf_flight_write(&writes[j], stream, source, AHEAD, 0);
		wf_world_pass(S);
		assert_int_equal(count_landed(writes, 8), 3);
		for (size_t j = 0; j < 8; j++) {
			wf_flight_read(&reads[j], served, 0);
			wf_flight_land(&reads[j], 1, S);
			assert_true(is_message(&reads[j], AHEAD));
			wf_world_pass(100 * MS);
			assert_int_equal(count_landed(writes, 8), WF_MIN(j + 4, (size_t)8));
		}
		wf_flight_free(writes, 8);
		wf_flight_free(reads, 8);
		/* One that is longer than that waits for its reader. */
		wf_flight_write(&writes[0], stream, source, BIG, 0);
		wf_world_pass(S);
		assert_int_equal(writes[0].outcomes, 0);
		wf_flight_read(&reads[0], served, 0);
		wf_flight_land(reads, 1, S);
		wf_flight_land(writes, 1, S);
		assert_true(is_message(&reads[0], BIG));
		wf_flight_free(writes, 1);
		wf_flight_free(reads, 1);
		finish(WEFT_OK, "");
		wf_flight_land(&call, 1, S);
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_end();
	}
}

/* How it ends. */

static void a_status_comes_after_the_messages(void **state)
{
	static const enum weft_status statuses[] = { WEFT_OK, WEFT_ABORTED };
	struct weft_stream *stream;
	struct wf_flight call, writes[COUNT], reads[COUNT + 2];

	(void)state;
	for (size_t i = 0; i < 2 * WF_COUNT(wf_world_shapes); i++) {
		enum weft_status status = statuses[i % 2];

		open_world(wf_world_shapes[i / 2]);
		open_kept(&call, LONG_NS, &stream);
		for (size_t j = 0; j < COUNT; j++)
			wf_flight_write(&writes[j], served, source, sizes[j], 0);
		finish(status, "enough");
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, status);
		if (status != WEFT_OK)
			assert_string_equal(weft_op_message(call.op), "enough");
		assert_int_equal(weft_op_executed(call.op), WEFT_EXECUTED_YES);
		for (size_t j = 0; j < COUNT + 2; j++)
			wf_flight_read(&reads[j], stream, 0);
		wf_flight_land(reads, COUNT + 2, S);
		wf_flight_land(writes, COUNT, S);
		for (size_t j = 0; j < COUNT; j++) {
			assert_true(is_message(&reads[j], sizes[j]));
			assert_int_equal(writes[j].status, WEFT_OK);
		}
		for (size_t j = COUNT; j < COUNT + 2; j++) {
			assert_int_equal(reads[j].status, status);
			assert_null(weft_stream_message(reads[j].op));
		}
		wf_flight_free(writes, COUNT);
		wf_flight_free(reads, COUNT + 2);
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_end();
	}
}

/* More than the window, and then the status: that waits for the reader too. */
static void a_status_waits_for_the_messages_before_it(void **state)
{
	static struct wf_flight writes[MANY], reads[MANY + 1];
	struct weft_stream *stream;
	struct wf_flight call;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_kept(&call, LONG_NS, &stream);
	for (size_t i = 0; i < MANY; i++)
		wf_flight_write(&writes[i], served, source, i, 0);
	finish(WEFT_ABORTED, "at last");
	wf_world_pass(S);
	assert_int_equal(call.outcomes, 0);
	assert_int_equal(count_landed(writes, MANY), 64);
	for (size_t i = 0; i <= MANY; i++)
		wf_flight_read(&reads[i], stream, 0);
	wf_flight_land(reads, MANY + 1, S);
	wf_flight_land(&call, 1, S);
	for (size_t i = 0; i < MANY; i++)
		assert_true(is_message(&reads[i], i));
	assert_int_equal(reads[MANY].status, WEFT_ABORTED);
	assert_string_equal(weft_op_message(reads[MANY].op), "at last");
	wf_flight_free(writes, MANY);
	wf_flight_free(reads, MANY + 1);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

/* It waits for a grant while it answers: whoever gives up then, the call is gone. */
static void a_status_that_waits_goes_with_its_caller(void **state)
{
	static struct wf_flight writes[MANY];
	struct weft_stream *stream;
	struct wf_flight call;

	(void)state;
	for (unsigned way = 0; way < 4; way++) {
		open_world(WF_WORLD_CONNECTED);
		open_kept(&call, way == 2 ? 200 * MS : LONG_NS, &stream);
		for (size_t i = 0; i < MANY; i++)
			wf_flight_write(&writes[i], served, source, i, 0);
		finish(WEFT_OK, "");
		wf_world_pass(100 * MS);
		if (way == 0)
			weft_cancel(call.op);
		else if (way == 1)
			weft_stream_close(stream);
		else if (way == 3)
			wf_world_leave(0);
		wf_flight_land(&call, 1, S);
		assert_int_not_equal(call.status, WEFT_OK);
		wf_flight_land(writes, MANY, S);
		assert_int_equal(count_landed(writes, MANY), MANY);
		wf_flight_free(writes, MANY);
		wf_flight_free(&call, 1);
		if (way != 1)
			weft_stream_close(stream);
		wf_world_end();
	}
}

/* A message that can't be sent any more is the answer, also to who has finished before. */
static void a_status_that_waits_gives_way_to_what_broke_the_stream(void **state)
{
	static struct wf_flight writes[MANY], reads[MANY];
	struct weft_stream *stream;
	struct wf_flight call;

	(void)state;
	open_world(WF_WORLD_SHARED);
	open_kept(&call, LONG_NS, &stream);
	for (size_t i = 0; i < MANY; i++)
		wf_flight_write(&writes[i], served, source, i == 70 ? BIG : i, 0);
	finish(WEFT_OK, "");
	wf_world_pass(100 * MS);
	wf_fake_knobs()->refuse = 1000;
	for (size_t i = 0; i < MANY; i++)
		wf_flight_read(&reads[i], stream, 0);
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_RESOURCE_EXHAUSTED);
	wf_flight_land(writes, MANY, S);
	wf_flight_land(reads, MANY, S);
	for (size_t i = 0; i < 64; i++)
		assert_true(is_message(&reads[i], i));
	for (size_t i = 70; i < MANY; i++)
		assert_int_equal(reads[i].status, WEFT_RESOURCE_EXHAUSTED);
	wf_fake_knobs()->refuse = 0;
	wf_flight_free(reads, MANY);
	wf_flight_free(writes, MANY);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

/* One end speaks, and not all of it gets there. */
struct speech {
	bool serves; /* who speaks */
	struct weft_stream *stream, *from, *to;
	struct wf_flight call, writes[COUNT], reads[COUNT];
};

static void begin_speech(struct speech *s, enum wf_world_shape shape, bool serves)
{
	*s = (struct speech){ .serves = serves };
	open_world(shape);
	open_kept(&s->call, LONG_NS, &s->stream);
	s->from = serves ? served : s->stream;
	s->to = serves ? s->stream : served;
}

static void say_end(const struct speech *s)
{
	if (s->serves)
		finish(WEFT_OK, "");
	else
		assert_int_equal(weft_stream_half_close(s->from), 0);
}

static void hear(struct speech *s, size_t count)
{
	for (size_t i = 0; i < count; i++)
		wf_flight_read(&s->reads[i], s->to, 0);
}

/* The server that was spoken to has its say. */
static void give_up_hearing(const struct speech *s)
{
	if (!s->serves)
		finish(WEFT_CANCELLED, "");
}

static void end_speech(struct speech *s)
{
	wf_flight_free(s->reads, COUNT);
	wf_flight_free(s->writes, COUNT);
	wf_flight_free(&s->call, 1);
	weft_stream_close(s->stream);
	wf_world_end();
}

/* The first can't be sent, the second could be: its sender has no rail until both are written. */
static void lose_the_first(struct speech *s, bool late)
{
	if (late) {
		wf_world_break_rail(0, 1, true);
		wf_world_pass(5 * MS);
	}
	wf_fake_knobs()->refuse = 1000;
	wf_flight_write(&s->writes[0], s->from, source, BIG, 0);
	wf_flight_write(&s->writes[1], s->from, source, SMALL, 0);
	if (late)
		wf_world_break_rail(0, 1, false);
}

static void messages_after_a_lost_one_are_not_read(void **state)
{
	struct speech s;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		begin_speech(&s, WF_WORLD_SHARED, i % 2);
		hear(&s, 2);
		lose_the_first(&s, i / 2);
		/* It does not know yet. */
		if (s.serves)
			finish(WEFT_OK, "");
		wf_flight_land(&s.call, 1, 2 * S);
		assert_int_equal(s.call.status, WEFT_RESOURCE_EXHAUSTED);
		wf_flight_land(s.reads, 2, S);
		wf_flight_land(s.writes, 2, S);
		for (unsigned j = 0; j < 2; j++) {
			assert_int_not_equal(s.reads[j].status, WEFT_OK);
			assert_int_not_equal(s.writes[j].status, WEFT_OK);
		}
		wf_fake_knobs()->refuse = 0;
		give_up_hearing(&s);
		end_speech(&s);
	}
}

/*
 * What fills the peer's credit while it stands still, one message of @bytes more, and the end:
 * those two wait in the link's queue.
 */
static void say_to_the_frozen(struct speech *s, size_t bytes, uint64_t timeout_ns)
{
	wf_world_freeze(!s->serves, true);
	for (size_t i = 0; i < COUNT - 1; i++)
		wf_flight_write(&s->writes[i], s->from, source, MIDDLE, 0);
	wf_flight_write(&s->writes[COUNT - 1], s->from, source, bytes, timeout_ns);
	say_end(s);
	wf_world_pass(100 * MS);
}

/* Of what was said to it the reader hears no good end, nor does the caller. */
static void land_without_good_end(struct speech *s)
{
	wf_flight_land(s->reads, COUNT, S);
	for (size_t i = 0; i < COUNT; i++)
		assert_false(is_end(&s->reads[i]));
	wf_flight_land(&s->call, 1, S);
	assert_int_not_equal(s->call.status, WEFT_OK);
}

static void messages_after_one_that_was_given_up_are_not_sent(void **state)
{
	struct speech s;

	(void)state;
	for (unsigned i = 0; i < 2 * WF_COUNT(wf_world_shapes); i++) {
		begin_speech(&s, wf_world_shapes[i / 2], i % 2);
		say_to_the_frozen(&s, SMALL, 50 * MS);
		assert_int_equal(s.writes[COUNT - 1].status, WEFT_DEADLINE_EXCEEDED);
		wf_world_freeze(!s.serves, false);
		hear(&s, COUNT);
		land_without_good_end(&s);
		give_up_hearing(&s);
		wf_flight_land(s.writes, COUNT, S);
		end_speech(&s);
	}
}

/* It lies offered while what was written after it has come: that goes with it. */
static void messages_after_a_long_one_that_was_given_up_are_not_read(void **state)
{
	struct speech s;

	(void)state;
	for (unsigned i = 0; i < 2 * WF_COUNT(wf_world_shapes); i++) {
		begin_speech(&s, wf_world_shapes[i / 2], i % 2);
		wf_flight_write(&s.writes[0], s.from, source, BIG, 50 * MS);
		wf_flight_write(&s.writes[1], s.from, source, SMALL, 0);
		say_end(&s);
		wf_world_pass(100 * MS);
		hear(&s, 3);
		wf_flight_land(s.reads, 3, S);
		for (size_t j = 0; j < 3; j++)
			assert_int_not_equal(s.reads[j].status, WEFT_OK);
		give_up_hearing(&s);
		wf_flight_land(&s.call, 1, S);
		assert_int_equal(s.call.status == WEFT_OK, s.serves);
		wf_flight_land(s.writes, 2, 4 * S);
		assert_int_equal(s.writes[0].status, WEFT_DEADLINE_EXCEEDED);
		end_speech(&s);
	}
}

static void a_server_that_closes_says_no_good_end_without_what_it_said_before(void **state)
{
	struct speech s;

	(void)state;
	for (unsigned i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		begin_speech(&s, wf_world_shapes[i], true);
		say_to_the_frozen(&s, AHEAD, 0);
		wf_world_freeze(0, false);
		hear(&s, COUNT);
		wf_world_leave(1);
		land_without_good_end(&s);
		end_speech(&s);
	}
}

static void a_server_may_finish_before_the_caller_has(void **state)
{
	static const enum weft_status statuses[] = { WEFT_OK, WEFT_ABORTED };
	struct weft_stream *stream;
	struct wf_flight call, writes[COUNT], asked[2];

	(void)state;
	for (size_t i = 0; i < 2 * WF_COUNT(wf_world_shapes); i++) {
		/* While they are queued, offered, pulled, and behind that. */
		for (unsigned steps = 0; steps < 60; steps += 3) {
			open_world(wf_world_shapes[i / 2]);
			open_kept(&call, LONG_NS, &stream);
			for (size_t j = 0; j < COUNT; j++)
				wf_flight_write(&writes[j], stream, source, sizes[j], 0);
			for (size_t j = 0; j < 2; j++)
				wf_flight_read(&asked[j], served, 0);
			for (unsigned j = 0; j < steps; j++)
				wf_world_step();
			finish(statuses[i % 2], "enough");
			wf_flight_land(asked, 2, S);
			wf_flight_land(&call, 1, S);
			wf_flight_land(writes, COUNT, 2 * S);
			assert_int_equal(call.status, statuses[i % 2]);
			assert_int_not_equal(writes[COUNT - 2].status, WEFT_OK);
			assert_int_equal(cancels, 0);
			wf_flight_free(asked, 2);
			wf_flight_free(writes, COUNT);
			/* Whatever is written later. */
			wf_flight_write(&writes[0], stream, source, SMALL, 0);
			wf_flight_land(writes, 1, S);
			assert_int_not_equal(writes[0].status, WEFT_OK);
			wf_flight_free(writes, 1);
			wf_flight_free(&call, 1);
			weft_stream_close(stream);
			wf_world_end();
		}
	}
}

static void deadlines_end_both_sides(void **state)
{
	struct weft_stream *stream;
	struct wf_flight call, read, write, asked, answers[65];
	uint64_t left_ns;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		wf_world_connect(0, 1);
		open_kept(&call, 100 * MS, &stream);
		left_ns = weft_served_left_ns(weft_stream_served(served));
		assert_in_range(left_ns, 50 * MS, 100 * MS);
		wf_flight_read(&read, stream, 0);
		wf_flight_write(&write, stream, source, BIG, 0);
		for (size_t j = 0; j < WF_COUNT(answers); j++)
			wf_flight_write(&answers[j], served, source, BIG, 0);
		wf_world_hold_way(1, 0, true);
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_DEADLINE_EXCEEDED);
		assert_in_range(wf_flight_ns(&call), 100 * MS, 110 * MS);
		assert_int_equal(weft_served_cancelled(weft_stream_served(served)), 1);
		wf_world_hold_way(1, 0, false);
		wf_flight_land(&read, 1, S);
		assert_int_equal(read.status, WEFT_DEADLINE_EXCEEDED);
		wf_flight_land(&write, 1, 2 * S);
		assert_int_equal(write.status, WEFT_DEADLINE_EXCEEDED);
		wf_flight_read(&asked, served, 0);
		wf_flight_land(&asked, 1, S);
		assert_int_not_equal(asked.status, WEFT_OK);
		wf_flight_land(answers, WF_COUNT(answers), 2 * S);
		assert_int_equal(cancels, 1);
		finish(WEFT_OK, "");
		wf_flight_free(answers, WF_COUNT(answers));
		wf_flight_free(&asked, 1);
		wf_flight_free(&read, 1);
		wf_flight_free(&write, 1);
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_end();
	}
}

/* Whatever happens, at every moment. */

enum event {
	CANCEL, CLOSE, CANCEL_OPS, CUT_DOOR, BREAK_RAIL, KILL_SERVER, KILL_CALLER, LEAVE_SERVER,
	LEAVE_CALLER, RESTART, EVENTS
};

/* How it may end then. */
static bool is_harmless(enum event event)
{
	return event == CUT_DOOR || event == BREAK_RAIL;
}

static void cancel_ops(struct chat *c)
{
	for (size_t i = 0; i < COUNT; i += 2)
		weft_cancel(c->writes[i].op);
	weft_cancel(c->reads[1].op);
	weft_cancel(c->reads[COUNT].op);
	weft_cancel(c->call.op);
}

static void strike(struct chat *c, enum event event)
{
	switch (event) {
	case CANCEL:
		weft_cancel(c->call.op);
		break;
	case CLOSE:
		weft_stream_close(c->stream);
		break;
	case CANCEL_OPS:
		cancel_ops(c);
		break;
	case CUT_DOOR:
		wf_world_cut_door(0, 1);
		break;
	case BREAK_RAIL:
		wf_world_break_rail(0, 1, true);
		wf_world_pass(20 * MS);
		wf_world_break_rail(0, 1, false);
		break;
	case KILL_SERVER:
	case RESTART:
		wf_world_kill(1);
		served = NULL;
		break;
	case KILL_CALLER:
		wf_world_kill(0);
		break;
	case LEAVE_SERVER:
		wf_world_leave(1);
		served = NULL;
		break;
	case LEAVE_CALLER:
		wf_world_leave(0);
		break;
	case EVENTS:
		break;
	}
}

static void check_struck(struct chat *c, enum event event, bool met)
{
	uint64_t struck_ns = wf_clock_now();
	bool alone = event == KILL_SERVER || event == LEAVE_SERVER || event == RESTART;

	if (event == RESTART)
		wf_world_restart(1);
	if (event == KILL_CALLER) {
		wf_world_pass(4 * S); /* a lease, and who waits for it */
	} else {
		assert_true(wf_world_run(is_over, c, 2 * LONG_NS));
		check_chat(c);
		if (alone && met && c->call.status != WEFT_OK) {
			/* Who leaves takes its offers back first. */
			if (event != LEAVE_SERVER || c->call.status != WEFT_CANCELLED)
				assert_int_equal(c->call.status, WEFT_UNAVAILABLE);
			assert_true(c->call.ended_ns <= struck_ns + WF_WORLD_LOST_NS);
		}
		if (is_harmless(event))
			assert_went_well(c);
	}
	if (!alone)
		end_chat(c);
	wf_world_pass(S);
	if (event == LEAVE_SERVER || event == KILL_SERVER || event == RESTART) {
		wf_flight_free(c->answers, COUNT);
		wf_flight_free(c->asked, COUNT + 1);
	}
	free_chat(c);
	if (event != CLOSE && event != KILL_CALLER)
		weft_stream_close(c->stream);
	wf_world_pass(3 * S);
	if (event != KILL_CALLER && event != LEAVE_CALLER)
		wf_world_assert_free(0);
	if (event != KILL_SERVER && event != LEAVE_SERVER) {
		assert_int_equal(wf_world_talking(1), 0);
		wf_world_assert_free(1);
	}
}

/* It happens after so many steps; false: all was over before. */
static bool try_event(enum wf_world_shape shape, bool kept, enum event event, unsigned steps)
{
	struct chat c;
	bool over = false, met;

	open_world(shape);
	begin_chat(&c, kept);
	for (unsigned i = 0; i < steps && !over; i++) {
		wf_world_step();
		over = is_over(&c);
	}
	met = served || wf_world_talked(1);
	strike(&c, event);
	check_struck(&c, event, met);
	assert_int_equal(wf_world_close(), 0);
	/* A killed node was closed with the world only then. */
	if (event == KILL_CALLER)
		weft_stream_close(c.stream);
	return !over;
}

static void try_all(enum event event)
{
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++)
		for (unsigned kept = 0; kept < 2; kept++)
			for (unsigned steps = 0; try_event(wf_world_shapes[i], kept, event, steps);)
				steps += 1 + steps / 4;
}

static void a_call_may_be_cancelled_at_any_moment(void **state)
{
	(void)state;
	try_all(CANCEL);
	try_all(CANCEL_OPS);
}

static void a_stream_may_be_closed_at_any_moment(void **state)
{
	(void)state;
	try_all(CLOSE);
}

static void a_door_may_be_cut_at_any_moment(void **state)
{
	(void)state;
	try_all(CUT_DOOR);
}

static void a_rail_may_fail_at_any_moment(void **state)
{
	(void)state;
	try_all(BREAK_RAIL);
}

static void a_server_may_die_at_any_moment(void **state)
{
	(void)state;
	try_all(KILL_SERVER);
	try_all(RESTART);
}

static void a_caller_may_die_at_any_moment(void **state)
{
	(void)state;
	try_all(KILL_CALLER);
}

static void a_server_may_leave_at_any_moment(void **state)
{
	(void)state;
	try_all(LEAVE_SERVER);
}

static void a_caller_may_leave_at_any_moment(void **state)
{
	(void)state;
	try_all(LEAVE_CALLER);
}

/* Closing. */

static void a_stream_may_be_closed_with_operations_under_way(void **state)
{
	struct wf_flight call, writes[70], reads[3];
	struct weft_stream *stream;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		open_kept(&call, LONG_NS, &stream);
		for (size_t j = 0; j < 70; j++)
			wf_flight_write(&writes[j], stream, source, j ? j : BIG, 0);
		for (size_t j = 0; j < 3; j++)
			wf_flight_read(&reads[j], stream, 0);
		wf_world_pass(10 * MS);
		weft_stream_close(stream);
		wf_flight_land(&call, 1, S);
		wf_flight_land(reads, 3, S);
		wf_flight_land(writes, 70, 2 * S);
		assert_int_equal(call.status, WEFT_CANCELLED);
		assert_int_equal(reads[0].status, WEFT_CANCELLED);
		assert_int_equal(writes[0].status, WEFT_CANCELLED);
		assert_int_equal(writes[69].status, WEFT_CANCELLED);
		wf_world_pass(10 * MS);
		assert_int_equal(cancels, 1);
		finish(WEFT_OK, "");
		wf_flight_free(&call, 1);
		wf_flight_free(writes, 70);
		wf_flight_free(reads, 3);
		wf_world_end();
	}
}

/* In either order, with messages that are not read, and with operations that were not freed. */
static void a_node_may_close_before_its_streams(void **state)
{
	struct wf_flight call, writes[3], reads[3], answers[COUNT];
	struct weft_stream *stream;

	(void)state;
	for (unsigned way = 0; way < 8; way++) {
		bool answered = way & 2, early = way & 4;

		open_world(WF_WORLD_CONNECTED);
		open_kept(&call, LONG_NS, &stream);
		for (size_t i = 0; i < COUNT; i++)
			wf_flight_write(&answers[i], served, source, sizes[i], 0);
		if (answered)
			finish(WEFT_OK, "");
		for (size_t i = 0; i < 3; i++)
			wf_flight_write(&writes[i], stream, source, BIG, 0);
		wf_flight_read(&reads[0], stream, 0);
		wf_flight_read(&reads[1], stream, 0);
		wf_flight_read(&reads[2], stream, 0);
		wf_world_pass(early ? 0 : 200 * MS);
		if (way & 1)
			weft_stream_close(stream);
		wf_world_leave(0);
		check_once(&call, 1);
		check_once(writes, 3);
		check_once(reads, 3);
		wf_flight_land(answers, COUNT, 3 * S);
		if (!answered)
			finish(WEFT_OK, "");
		wf_flight_free(reads, 2);
		if (!(way & 1)) {
			Sim__Bytes message = SIM__BYTES__INIT;
			struct weft_op *op;

			assert_int_equal(weft_stream_write(stream, &message.base, NULL, &op),
					 -EINVAL);
			assert_int_equal(weft_stream_read(stream, NULL, &op), -EINVAL);
			assert_int_equal(weft_stream_half_close(stream), -EINVAL);
			weft_stream_close(stream);
		}
		wf_flight_free(&reads[2], 1);
		wf_flight_free(writes, 3);
		wf_flight_free(&call, 1);
		wf_flight_free(answers, COUNT);
		wf_world_end();
	}
}

/* Whatever it is about to do, its handler never says another word. */
/* Who stood still meanwhile hears of nothing that looks like a good end. */
static void a_message_not_sent_in_time_is_not_followed_by_a_good_end(void **state)
{
	struct weft_stream *stream;
	struct wf_flight call;
	Sim__Bytes message = SIM__BYTES__INIT;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_kept(&call, 200 * MS, &stream);
	message.body.data = source;
	message.body.len = SMALL;
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(weft_stream_write(served, &message.base, NULL, NULL), 0);
	finish(WEFT_OK, "");
	wf_world_pass(100 * MS);
	wf_world_freeze(0, true);
	wf_world_pass(150 * MS);
	wf_world_freeze(0, false);
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_DEADLINE_EXCEEDED);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

static void a_server_may_close_with_open_streams(void **state)
{
	struct wf_flight call, writes[3], reads[3];
	struct weft_stream *stream;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		open_kept(&call, LONG_NS, &stream);
		for (size_t j = 0; j < 3; j++) {
			wf_flight_write(&writes[j], served, source, BIG, 0);
			wf_flight_read(&reads[j], served, 0);
		}
		wf_world_pass(20 * MS);
		wf_world_leave(1);
		check_once(writes, 3);
		check_once(reads, 3);
		wf_flight_land(&call, 1, S);
		wf_flight_free(writes, 3);
		wf_flight_free(reads, 3);
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_end();
	}
}

/* What may not be done. */

static void writes_end_with_half_close(void **state)
{
	Sim__Bytes m = SIM__BYTES__INIT;
	struct weft_stream *stream;
	struct wf_flight call;
	struct weft_op *op;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_kept(&call, LONG_NS, &stream);
	assert_int_equal(weft_stream_half_close(served), -EINVAL);
	assert_int_equal(weft_stream_half_close(stream), 0);
	assert_int_equal(weft_stream_half_close(stream), -EPIPE);
	assert_int_equal(weft_stream_write(stream, &m.base, NULL, &op), -EPIPE);
	assert_int_equal(weft_stream_write(stream, &m.base, NULL, NULL), -EPIPE);
	finish(WEFT_OK, "");
	wf_flight_land(&call, 1, S);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

/* A thread that packs its message while another one half-closes has seen the stream open. */
static void a_write_that_a_half_close_overtakes_fails_alone(void **state)
{
	struct weft_op_options options;
	Sim__Bytes m = SIM__BYTES__INIT;
	struct weft_stream *stream;
	struct wf_flight call, write, read, ping;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_kept(&call, LONG_NS, &stream);
	assert_int_equal(weft_stream_half_close(stream), 0);
	options = wf_flight_begin(&write, 0);
	assert_int_equal(wf_streaming_write(stream, &m.base, &options, &write.op), 0);
	assert_int_equal(wf_streaming_half_close(stream), -EPIPE);

	wf_flight_read(&read, served, 0);
	wf_flight_ping(&ping, 0, 1, S);
	wf_flight_land(&write, 1, S);
	wf_flight_land(&read, 1, S);
	wf_flight_land(&ping, 1, S);
	assert_int_equal(write.status, WEFT_FAILED_PRECONDITION);
	assert_int_equal(weft_op_executed(write.op), WEFT_EXECUTED_NO);
	assert_true(is_end(&read));
	assert_int_equal(ping.status, WEFT_OK);

	finish(WEFT_OK, "");
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_OK);
	wf_flight_free(&call, 1);
	wf_flight_free(&write, 1);
	wf_flight_free(&read, 1);
	wf_flight_free(&ping, 1);
	weft_stream_close(stream);
	wf_world_end();
}

static void only_messages_of_the_method_are_taken(void **state)
{
	ProtobufCMessageDescriptor other = sim__bytes__descriptor;
	Sim__Bytes m = SIM__BYTES__INIT;
	struct weft_stream *stream;
	struct wf_flight call;
	struct weft_op *op;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_kept(&call, LONG_NS, &stream);
	m.base.descriptor = &other;
	assert_int_equal(weft_stream_write(stream, &m.base, NULL, &op), -EINVAL);
	assert_int_equal(weft_stream_write(served, &m.base, NULL, &op), -EINVAL);
	m.base.descriptor = &sim__bytes__descriptor;
	m.body.len = GIB;
	m.body.data = malloc(m.body.len);
	assert_non_null(m.body.data);
	assert_int_equal(weft_stream_write(stream, &m.base, NULL, &op), -EMSGSIZE);
	free(m.body.data);
	assert_int_equal(weft_stream_open(wf_world_stub(0, 1), "Shout", NULL, &stream, &op),
			 -ENOENT);
	finish(WEFT_OK, "");
	wf_flight_land(&call, 1, S);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

static void answered(const Sim__Bytes *answer, void *arg)
{
	unsigned *count = arg;

	assert_null(answer);
	assert_int_equal(weft_reply_status(NULL), WEFT_UNIMPLEMENTED);
	++*count;
}

static void a_method_is_called_as_it_is_served(void **state)
{
	struct weft_call_options options = { .size = sizeof(options) };
	Sim__Bytes question = SIM__BYTES__INIT;
	struct wf_flight call, write, read;
	struct weft_stream *stream;
	ProtobufCService *service;
	unsigned count = 0;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	/* One message, to a method of many. */
	options.op = wf_flight_begin(&call, 0);
	assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &call.op), 0);
	sim__mirror__talk(service, &question, answered, &count);
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_UNIMPLEMENTED);
	assert_int_equal(weft_op_executed(call.op), WEFT_EXECUTED_NO);
	assert_int_equal(count, 1);
	wf_flight_free(&call, 1);
	/* Many, to a method of one. */
	options.op = wf_flight_begin(&call, 0);
	assert_int_equal(weft_stream_open(wf_world_stub(0, 1), "Reflect", &options, &stream,
					  &call.op), 0);
	wf_flight_write(&write, stream, source, BIG, 0);
	wf_flight_read(&read, stream, 0);
	wf_flight_land(&call, 1, S);
	wf_flight_land(&write, 1, S);
	wf_flight_land(&read, 1, S);
	assert_int_equal(call.status, WEFT_UNIMPLEMENTED);
	assert_int_equal(read.status, WEFT_UNIMPLEMENTED);
	assert_int_not_equal(write.status, WEFT_OK);
	assert_int_equal(wf_world_served(1), 0);
	wf_flight_free(&call, 1);
	wf_flight_free(&write, 1);
	wf_flight_free(&read, 1);
	weft_stream_close(stream);
	wf_world_end();
}

/* Its own field, longer than the message. */
static void write_nonsense(struct weft_stream *stream)
{
	uint8_t length = 0x7f;
	ProtobufCMessageUnknownField field = {
		.tag = 1, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = 1,
		.data = &length,
	};
	Sim__Bytes m = SIM__BYTES__INIT;

	m.base.n_unknown_fields = 1;
	m.base.unknown_fields = &field;
	assert_int_equal(weft_stream_write(stream, &m.base, NULL, NULL), 0);
}

static void a_message_that_does_not_unpack_fails_its_read(void **state)
{
	struct wf_flight call, write, reads[2];
	struct weft_stream *stream;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_kept(&call, LONG_NS, &stream);
	for (unsigned way = 0; way < 2; way++) {
		write_nonsense(way ? stream : served);
		wf_flight_write(&write, way ? stream : served, source, SMALL, 0);
		wf_flight_read(&reads[0], way ? served : stream, 0);
		wf_flight_read(&reads[1], way ? served : stream, 0);
		wf_flight_land(reads, 2, S);
		wf_flight_land(&write, 1, S);
		assert_int_equal(reads[0].status, WEFT_INTERNAL);
		assert_true(is_message(&reads[1], SMALL));
		wf_flight_free(&write, 1);
		wf_flight_free(reads, 2);
	}
	finish(WEFT_OK, "");
	wf_flight_land(&call, 1, S);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

/* Metadata. */

#define PAIR(key, text) { key, text, sizeof(text) - 1 }

static void assert_pairs(const struct weft_metadata *got, size_t count,
			 const struct weft_metadata *want, size_t want_count)
{
	assert_int_equal(count, want_count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(got[i].key, want[i].key);
		assert_int_equal(got[i].bytes, want[i].bytes);
		assert_same_content(got[i].value, want[i].value, want[i].bytes);
		assert_int_equal(((const char *)got[i].value)[got[i].bytes], 0);
	}
}

static const struct weft_metadata asking[] = {
	PAIR("who", "n0"), PAIR("who", "again"), PAIR("raw-bin", "\0\xff\n"), PAIR("none", ""),
};
static const struct weft_metadata first[] = { PAIR("first", "1"), PAIR("first-bin", "\1") };
static const struct weft_metadata last[] = { PAIR("last", "2") };

static void assert_initial(struct weft_op *call, const struct weft_metadata *want, size_t count)
{
	const struct weft_metadata *got;
	size_t got_count;

	got = weft_call_initial(call, &got_count);
	assert_pairs(got, got_count, want, count);
}

static void assert_trailing(struct weft_op *call, const struct weft_metadata *want, size_t count)
{
	const struct weft_metadata *got;
	size_t got_count;

	got = weft_call_trailing(call, &got_count);
	assert_pairs(got, got_count, want, count);
}

/* With a first message, and with none. */
static void metadata_goes_both_ways(void **state)
{
	struct weft_call_options options = { .size = sizeof(options), .metadata = asking,
					     .metadata_count = WF_COUNT(asking) };
	struct wf_flight call, write, read;
	const struct weft_metadata *got;
	struct weft_stream *stream;
	const char *details;
	void *server;
	size_t count;

	(void)state;
	for (unsigned i = 0; i < 2 * WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i / 2]);
		served = NULL;
		wf_world_on_stream(keep);
		options.op = wf_flight_begin(&call, LONG_NS);
		assert_int_equal(weft_stream_open(wf_world_stub(0, 1), "Talk", &options, &stream,
						  &call.op), 0);
		assert_true(wf_world_run(is_served, NULL, S));
		server = weft_stream_served(served);
		got = weft_served_metadata(server, &count);
		assert_pairs(got, count, asking, WF_COUNT(asking));
		assert_int_equal(weft_served_set_initial(server, last, 1), 0);
		assert_int_equal(weft_served_set_initial(server, first, WF_COUNT(first)), 0);
		assert_int_equal(weft_served_set_trailing(server, last, WF_COUNT(last)), 0);
		assert_int_equal(weft_served_set_details(server, "why", 3), 0);
		if (i % 2) {
			wf_flight_write(&write, served, source, BIG, 0);
			assert_int_equal(weft_served_set_initial(server, last, 1), -EALREADY);
			wf_flight_read(&read, stream, 0);
			wf_flight_land(&read, 1, S);
			assert_true(is_message(&read, BIG));
			assert_initial(call.op, first, WF_COUNT(first));
			assert_trailing(call.op, NULL, 0);
			wf_flight_land(&write, 1, S);
			wf_flight_free(&write, 1);
			wf_flight_free(&read, 1);
		}
		finish(WEFT_ABORTED, "no");
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_ABORTED);
		assert_initial(call.op, first, WF_COUNT(first));
		assert_trailing(call.op, last, WF_COUNT(last));
		details = weft_call_details(call.op, &count);
		assert_int_equal(count, 3);
		assert_same_content(details, "why", 3);
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_end();
	}
}

/* Of 64 KiB all in all, and of more. */
static void metadata_may_be_long(void **state)
{
	static char text[64 * KIB];
	struct weft_metadata pair = { "long", text, sizeof(text) - 6 - 4 };
	struct weft_call_options options = { .size = sizeof(options), .metadata = &pair,
					     .metadata_count = 1 };
	struct wf_flight call, write, read;
	const struct weft_metadata *got;
	struct weft_stream *stream;
	void *server;
	size_t count;

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		served = NULL;
		wf_world_on_stream(keep);
		options.op = wf_flight_begin(&call, LONG_NS);
		pair.bytes++;
		assert_int_equal(weft_stream_open(wf_world_stub(0, 1), "Talk", &options, &stream,
						  &call.op), -EMSGSIZE);
		pair.bytes--;
		assert_int_equal(weft_stream_open(wf_world_stub(0, 1), "Talk", &options, &stream,
						  &call.op), 0);
		assert_true(wf_world_run(is_served, NULL, S));
		server = weft_stream_served(served);
		got = weft_served_metadata(server, &count);
		assert_pairs(got, count, &pair, 1);
		assert_int_equal(weft_served_set_initial(server, &pair, 1), 0);
		assert_int_equal(weft_served_set_trailing(server, &pair, 1), 0);
		assert_int_equal(weft_served_set_details(server, text, sizeof(text)), 0);
		assert_int_equal(weft_served_set_details(server, text, sizeof(text) + 1),
				 -EMSGSIZE);
		wf_flight_write(&write, served, source, SMALL, 0);
		wf_flight_read(&read, stream, 0);
		finish(WEFT_ABORTED, "no");
		wf_flight_land(&call, 1, S);
		wf_flight_land(&read, 1, S);
		assert_true(is_message(&read, SMALL));
		assert_initial(call.op, &pair, 1);
		assert_trailing(call.op, &pair, 1);
		assert_same_content(weft_call_details(call.op, &count), text, sizeof(text));
		wf_flight_free(&write, 1);
		wf_flight_free(&read, 1);
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_end();
	}
}

static void bad_metadata_is_refused(void **state)
{
	static const struct weft_metadata bad[] = {
		PAIR("", "x"), PAIR("Key", "x"), PAIR("a b", "x"), PAIR("k\xc3\xa4se", "x"),
		PAIR("grpc-status", "0"), PAIR("weft-", "x"), PAIR("key", "\n"),
		PAIR("key", "\x80"), { NULL, "x", 1 }, { "key", NULL, 1 },
	};
	struct weft_call_options options = { .size = sizeof(options), .metadata_count = 1 };
	struct weft_stream *stream;
	struct wf_flight call;
	struct weft_op *op;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_kept(&call, LONG_NS, &stream);
	for (size_t i = 0; i < WF_COUNT(bad); i++) {
		struct weft_stream *none;

		options.metadata = &bad[i];
		assert_int_equal(weft_stream_open(wf_world_stub(0, 1), "Talk", &options, &none,
						  &op), -EINVAL);
		assert_int_equal(weft_served_set_initial(weft_stream_served(served), &bad[i], 1),
				 -EINVAL);
		assert_int_equal(weft_served_set_trailing(weft_stream_served(served), &bad[i], 1),
				 -EINVAL);
	}
	finish(WEFT_OK, "");
	wf_flight_land(&call, 1, S);
	wf_flight_free(&call, 1);
	weft_stream_close(stream);
	wf_world_end();
}

/* Peers that break the rules. */

/* The link of node @from, which has one. */
static struct wf_link *link_of(unsigned from)
{
	return WF_CONTAINER(wf_list_first(&wf_world_node(from)->workers[0].engine.link_list),
			    struct wf_link, node);
}

static uint8_t crafted[200];
static struct wf_message offence;

static void offence_sent(struct wf_message *m, const struct wf_error *e)
{
	(void)m;
	(void)e;
}

/* A record that node @from would never send. */
static void offend(unsigned from, uint8_t type, size_t bytes)
{
	offence = (struct wf_message){ .type = type, .head = crafted, .head_bytes = bytes,
				       .sent = offence_sent };
	wf_list_init(&offence.node);
	wf_link_post(link_of(from), &offence);
	wf_engine_flush(&wf_world_node(from)->workers[0].engine);
}

static void offend_message(unsigned from, uint8_t type, uint64_t call, uint16_t flags)
{
	struct wf_record_message m = { .call = call, .flags = flags };
	struct wf_bytes_writer w = wf_bytes_writer(crafted, sizeof(crafted));

	wf_record_message_put(&w, &m);
	offend(from, type, wf_record_message_bytes(&m));
}

static void offend_grant(unsigned from, uint8_t type, uint64_t call)
{
	struct wf_bytes_writer w = wf_bytes_writer(crafted, sizeof(crafted));

	wf_record_small_put(&w, &(struct wf_record_small){ .id = call, .other = 1000 });
	offend(from, type, WF_RECORD_SMALL_BYTES);
}

static void offend_reply(uint64_t call)
{
	struct wf_record_reply r = { .call = call, .body = { .way = WF_BODY_EAGER, .bytes = 1 } };
	struct wf_bytes_writer w = wf_bytes_writer(crafted, sizeof(crafted));

	wf_record_reply_put(&w, &r);
	offend(1, WF_RECORD_REPLY, wf_record_reply_bytes(&r) + 1);
}

enum offence {
	MORE_REQUESTS, MORE_RESPONSES, LAST_TWICE, AFTER_LAST, LAST_RESPONSE, MESSAGE_AND_NONE,
	UNARY_RESPONSE, UNARY_GRANT, REPLY_WITH_BODY, OFFENCES
};

/* Node 0 or 1 breaks a rule, and the other gives it up. */
static void commit(enum offence what, uint64_t call)
{
	switch (what) {
	case MORE_REQUESTS:
		for (unsigned i = 0; i < 65; i++) {
			offend_message(0, WF_RECORD_REQUEST, call, 0);
			wf_world_pass(MS);
		}
		break;
	case MORE_RESPONSES:
		for (unsigned i = 0; i < 65; i++) {
			offend_message(1, WF_RECORD_RESPONSE, call, 0);
			wf_world_pass(MS);
		}
		break;
	case LAST_TWICE:
	case AFTER_LAST:
		offend_message(0, WF_RECORD_REQUEST, call, WF_MESSAGE_NONE | WF_MESSAGE_LAST);
		wf_world_pass(MS);
		assert_int_equal(wf_world_count(0).peers_lost, 0);
		offend_message(0, WF_RECORD_REQUEST, call,
			       what == AFTER_LAST ? 0 : WF_MESSAGE_NONE | WF_MESSAGE_LAST);
		break;
	case LAST_RESPONSE:
		offend_message(1, WF_RECORD_RESPONSE, call, WF_MESSAGE_NONE | WF_MESSAGE_LAST);
		break;
	case MESSAGE_AND_NONE:
		offend_message(0, WF_RECORD_REQUEST, call, 0x80);
		break;
	case UNARY_RESPONSE:
		offend_message(1, WF_RECORD_RESPONSE, call, 0);
		break;
	case UNARY_GRANT:
		offend_grant(1, WF_RECORD_GRANT_REQUESTS, call);
		break;
	case REPLY_WITH_BODY:
		offend_reply(call);
		break;
	case OFFENCES:
		break;
	}
}

static void a_peer_that_breaks_the_rules_of_streams_is_given_up(void **state)
{
	(void)state;
	for (unsigned what = 0; what < OFFENCES; what++) {
		bool unary = what == UNARY_RESPONSE || what == UNARY_GRANT;
		struct weft_stream *stream = NULL;
		struct wf_flight call, read;

		open_world(WF_WORLD_CONNECTED);
		wf_world_connect(0, 1);
		if (unary) {
			wf_world_hold(1, true);
			wf_flight_call(&call, 0, 1, source, SMALL, LONG_NS);
			wf_world_pass(10 * MS);
		} else {
			open_kept(&call, LONG_NS, &stream);
		}
		commit(what, call.op->call.call.id);
		wf_flight_land(&call, 1, 2 * S);
		/* It says so itself, or hears that the other has gone. */
		if (call.status != WEFT_UNAVAILABLE && call.status != WEFT_INTERNAL)
			fail_msg("offence %u: %s", what, weft_op_message(call.op));
		if (stream) {
			wf_flight_read(&read, stream, 0);
			wf_flight_land(&read, 1, S);
			assert_int_equal(read.status, call.status);
			wf_flight_free(&read, 1);
			wf_world_pass(S);
			finish(WEFT_OK, "");
		}
		wf_world_hold(1, false);
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_pass(2 * S); /* node 1 may have waited for a redial */
		wf_world_connect(0, 1);
		wf_world_end();
	}
}

/* What comes for a call that nobody knows is dropped. */
static void words_of_unknown_calls_are_dropped(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED);
	wf_world_connect(0, 1);
	for (unsigned from = 0; from < 2; from++) {
		offend_message(from, WF_RECORD_REQUEST, 77, 0);
		wf_world_pass(MS);
		offend_message(from, WF_RECORD_RESPONSE, 77, 0);
		wf_world_pass(MS);
		offend_grant(from, WF_RECORD_GRANT_REQUESTS, 77);
		wf_world_pass(MS);
		offend_grant(from, WF_RECORD_GRANT_RESPONSES, 77);
		wf_world_pass(MS);
	}
	assert_int_equal(wf_world_count(0).peers_lost + wf_world_count(1).peers_lost, 0);
	wf_world_end();
}

/* Several workers. */

/* The peer turns out to be another worker's than where the call began. */
static void a_stream_goes_where_its_peer_is(void **state)
{
	struct chat c[2];

	(void)state;
	for (unsigned kind = 0; kind < 2; kind++) {
		wf_world_set_workers(3);
		wf_world_lose_soon();
		wf_world_fill(source, sizeof(source), 1);
		wf_world_open(WF_WORLD_CONNECTED, 4, NULL);
		wf_world_connect(2, 0);
		if (kind)
			wf_world_connect(1, 0);
		/* Node 1 dials at the same time. */
		if (!kind) {
			struct wf_flight f;

			begin_chat(&c[0], false);
			wf_flight_ping(&f, 1, 0, S);
			wf_flight_land(&f, 1, S);
			wf_flight_free(&f, 1);
		} else {
			begin_chat(&c[0], false);
		}
		/* And once it is known. */
		assert_true(wf_world_run(is_over, &c[0], LONG_NS));
		begin_chat(&c[1], false);
		assert_true(wf_world_run(is_over, &c[1], LONG_NS));
		for (unsigned i = 0; i < 2; i++) {
			check_chat(&c[i]);
			assert_went_well(&c[i]);
			free_chat(&c[i]);
			weft_stream_close(c[i].stream);
		}
		wf_world_end();
	}
}

/* At any moment of that. */
static void a_stream_that_moves_may_be_closed(void **state)
{
	(void)state;
	for (unsigned steps = 0; steps < 40; steps++) {
		struct wf_flight f;
		struct chat c;

		wf_world_set_workers(3);
		wf_world_lose_soon();
		wf_world_open(WF_WORLD_CONNECTED, 4, NULL);
		wf_world_connect(2, 0);
		begin_chat(&c, false);
		wf_flight_ping(&f, 1, 0, S);
		for (unsigned i = 0; i < steps; i++)
			wf_world_step();
		weft_stream_close(c.stream);
		assert_true(wf_world_run(is_over, &c, LONG_NS));
		check_chat(&c);
		free_chat(&c);
		wf_flight_land(&f, 1, S);
		wf_flight_free(&f, 1);
		wf_world_pass(S);
		wf_world_end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_every_size_keep_their_order_both_ways),
		cmocka_unit_test(many_messages_keep_their_order),
		cmocka_unit_test(an_empty_stream_ends_well),
		cmocka_unit_test(a_server_goes_on_after_half_close),
		cmocka_unit_test(a_reader_that_does_not_read_stops_the_writer),
		cmocka_unit_test(a_write_that_waits_for_the_reader_can_be_given_up),
		cmocka_unit_test(a_write_that_waits_for_a_rail_can_be_given_up),
		cmocka_unit_test(a_read_that_ends_early_leaves_the_message_to_the_next),
		cmocka_unit_test(long_messages_are_not_pulled_far_ahead_of_the_reader),
		cmocka_unit_test(a_status_comes_after_the_messages),
		cmocka_unit_test(a_status_waits_for_the_messages_before_it),
		cmocka_unit_test(a_status_that_waits_goes_with_its_caller),
		cmocka_unit_test(a_status_that_waits_gives_way_to_what_broke_the_stream),
		cmocka_unit_test(messages_after_a_lost_one_are_not_read),
		cmocka_unit_test(messages_after_one_that_was_given_up_are_not_sent),
		cmocka_unit_test(messages_after_a_long_one_that_was_given_up_are_not_read),
		cmocka_unit_test(a_server_that_closes_says_no_good_end_without_what_it_said_before),
		cmocka_unit_test(a_server_may_finish_before_the_caller_has),
		cmocka_unit_test(deadlines_end_both_sides),
		cmocka_unit_test(a_call_may_be_cancelled_at_any_moment),
		cmocka_unit_test(a_stream_may_be_closed_at_any_moment),
		cmocka_unit_test(a_door_may_be_cut_at_any_moment),
		cmocka_unit_test(a_rail_may_fail_at_any_moment),
		cmocka_unit_test(a_server_may_die_at_any_moment),
		cmocka_unit_test(a_caller_may_die_at_any_moment),
		cmocka_unit_test(a_server_may_leave_at_any_moment),
		cmocka_unit_test(a_caller_may_leave_at_any_moment),
		cmocka_unit_test(a_stream_may_be_closed_with_operations_under_way),
		cmocka_unit_test(a_node_may_close_before_its_streams),
		cmocka_unit_test(a_message_not_sent_in_time_is_not_followed_by_a_good_end),
		cmocka_unit_test(a_server_may_close_with_open_streams),
		cmocka_unit_test(writes_end_with_half_close),
		cmocka_unit_test(a_write_that_a_half_close_overtakes_fails_alone),
		cmocka_unit_test(only_messages_of_the_method_are_taken),
		cmocka_unit_test(a_method_is_called_as_it_is_served),
		cmocka_unit_test(a_message_that_does_not_unpack_fails_its_read),
		cmocka_unit_test(metadata_goes_both_ways),
		cmocka_unit_test(metadata_may_be_long),
		cmocka_unit_test(bad_metadata_is_refused),
		cmocka_unit_test(a_peer_that_breaks_the_rules_of_streams_is_given_up),
		cmocka_unit_test(words_of_unknown_calls_are_dropped),
		cmocka_unit_test(a_stream_goes_where_its_peer_is),
		cmocka_unit_test(a_stream_that_moves_may_be_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
