/* SPDX-License-Identifier: BSD-2-Clause */
/* What a link promises, on a fabric and a door that fail on command. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/op.h"
#include "core/worker.h"
#include "fabric/gate.h"
#include "fabric/internal.h"
#include "link/internal.h"
#include "tests/sim/world.h"
#include "transfer/pace.h"
#include "util/bytes.h"
#include "util/clock.h"

#define US WF_NS_PER_US
#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define SMALL 100            /* in one frame */
#define BIG (5 * MIB + 17)   /* pulled, in several chunks with a rest */
#define MANY 200
#define CANARY 0xee

/* Every test runs on both shapes of rail. */
struct shape {
	enum wf_world_shape shape;
	bool connected;
	const char *provider;
	uint64_t quiet_ns; /* how long after its deadline an operation may end, as promised */
};

static const struct shape connected = { WF_WORLD_CONNECTED, true, "tcp", 500 * MS };
static const struct shape same_host = { WF_WORLD_SAME_HOST, false, "shm", 2 * S };
static const struct shape shared = { WF_WORLD_SHARED, false, "efa", 2 * S };

static uint8_t source[BIG], target[BIG], other_target[BIG];

static void set(const char *name, const char *value)
{
	assert_int_equal(setenv(name, value, 1), 0);
}

static const struct wf_fake slow = { .seed = 3, .delay_min_ns = 100 * US, .delay_max_ns = 2 * MS };

/* The link of node @number that is up; the only one in most tests. */
static struct wf_link *link_of(unsigned number)
{
	WF_LIST_EACH(node, &wf_world_node(number)->workers[0].engine.link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->state == WF_LINK_UP)
			return link;
	}
	return NULL;
}

/* No byte of @bytes is the canary, whatever the seed. */
static void fill_without_canary(uint8_t *bytes, size_t count)
{
	const uint8_t *end = bytes + count;

	wf_world_fill(bytes, count, 9);
	while ((bytes = memchr(bytes, CANARY, (size_t)(end - bytes))))
		*bytes++ = 0;
}

static bool has_no_canary(const uint8_t *bytes, size_t count)
{
	return !memchr(bytes, CANARY, count);
}

/* Order and loss. */

/* MANY small tensors through one channel, with calls among them: in order, each once. */
static void stream(unsigned from, unsigned to)
{
	static uint8_t bodies[MANY][SMALL], got[MANY][SMALL];
	static struct wf_flight f[3 * MANY];

	memset(got, 0, sizeof(got));
	for (unsigned i = 0; i < MANY; i++) {
		wf_world_fill(bodies[i], SMALL, i);
		wf_flight_receive(&f[i], to, from, 1, got[i], SMALL, 0);
		wf_flight_send(&f[MANY + i], from, to, 1, bodies[i], SMALL, 0);
		wf_flight_call(&f[2 * MANY + i], from, to, bodies[i], 1 + i % SMALL, 0);
		if (i % 16 == 0)
			wf_world_step();
	}
	wf_flight_land(f, 3 * MANY, 50 * S);
	for (unsigned i = 0; i < 3 * MANY; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	for (unsigned i = 0; i < MANY; i++) {
		assert_true(wf_world_is_filled(got[i], SMALL, i));
		assert_true(f[2 * MANY + i].reply_right);
	}
	wf_flight_free(f, 3 * MANY);
}

static void order_survives_completions_and_messages_in_any_order(void **state)
{
	const struct shape *s = *state;
	struct wf_fake fake = slow;

	fake.shuffle = true;
	fake.reorder = true;
	wf_world_open(s->shape, 2, &fake);
	stream(0, 1);
	stream(1, 0);
	assert_int_equal(wf_world_served(1), MANY);
	assert_int_equal(wf_world_close(), 0);
}

static void posts_that_are_refused_are_made_again(void **state)
{
	const struct shape *s = *state;

	wf_world_open(s->shape, 2, &slow);
	wf_fake_knobs()->eagain = 700;
	stream(0, 1);
	assert_int_equal(wf_world_close(), 0);
}

/* For 300 ms nothing at all can be posted. */
static void a_spell_of_refusals_loses_nothing(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[4];

	wf_world_open(s->shape, 2, NULL);
	wf_world_connect(0, 1);
	wf_world_fill(source, BIG, 1);
	wf_fake_knobs()->eagain = 1000;
	wf_flight_receive(&f[0], 1, 0, 1, target, BIG, 0);
	wf_flight_send(&f[1], 0, 1, 1, source, BIG, 0);
	wf_flight_call(&f[2], 0, 1, source, SMALL, 0);
	wf_flight_call(&f[3], 1, 0, source, SMALL, 0);
	wf_world_pass(300 * MS);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(f[i].outcomes, 0);
	wf_fake_knobs()->eagain = 0;
	wf_flight_land(f, 4, S);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	assert_true(wf_world_is_filled(target, BIG, 1));
	assert_int_equal(wf_world_count(0).peers_lost, 0);
	wf_flight_free(f, 4);
	assert_int_equal(wf_world_close(), 0);
}

static void operations_that_fail_on_the_rail_are_made_again(void **state)
{
	const struct shape *s = *state;
	struct wf_fake fake = slow;
	struct wf_flight f[2];

	fake.fail = 10;
	wf_world_open(s->shape, 2, &fake);
	stream(0, 1);
	assert_int_equal(wf_world_served(1), MANY);
	wf_fake_knobs()->fail = 50;
	for (unsigned i = 0; i < 10; i++) {
		wf_world_fill(source, BIG, i);
		wf_flight_receive(&f[0], 1, 0, i, target, BIG, 0);
		wf_flight_send(&f[1], 0, 1, i, source, BIG, 0);
		wf_flight_land(f, 2, 30 * S);
		assert_int_equal(f[0].status, WEFT_OK);
		assert_int_equal(f[1].status, WEFT_OK);
		assert_true(wf_world_is_filled(target, BIG, i));
		wf_flight_free(f, 2);
	}
	wf_fake_knobs()->fail = 0;
	assert_int_equal(wf_world_count(0).peers_lost, 0);
	assert_int_equal(wf_world_close(), 0);
}

static void a_frame_that_never_arrives_is_sent_again(void **state)
{
	const struct shape *s = *state;
	struct wf_fake fake = slow;

	set("WEFT_PACK_BYTES", "1"); /* a frame for each: some will be lost */
	wf_world_open(s->shape, 2, &fake);
	wf_world_connect(0, 1);
	wf_fake_knobs()->lose = 200;
	stream(0, 1);
	wf_fake_knobs()->lose = 0;
	assert_true(wf_world_count(0).frames_replayed > 0);
	assert_int_equal(wf_world_served(1), MANY);
	assert_int_equal(wf_world_count(0).peers_lost, 0);
	assert_int_equal(wf_world_close(), 0);
}

static bool has_refused(void *ctx)
{
	return wf_world_count(1).frames_refused > *(uint64_t *)ctx;
}

static void a_peer_that_confirms_frames_never_sent_is_given_up(void **state)
{
	const struct shape *s = *state;
	struct wf_greet greet = { .kind = WF_GREET_RESYNC };
	struct wf_flight f;
	uint64_t before;

	/* Node 1 was dialled and knows of no peer yet: only the door holds its link. */
	wf_world_open(s->shape, 2, NULL);
	wf_world_connect(0, 1);
	before = wf_world_count(1).frames_refused;
	greet.resync.epoch = link_of(1)->probe.epoch;
	greet.resync.received = 1000;
	assert_int_equal(wf_conn_send(link_of(0)->conn, &greet), 0);
	assert_true(wf_world_run(has_refused, &before, S));
	assert_null(link_of(1));
	wf_world_pass(S);
	wf_flight_call(&f, 0, 1, source, SMALL, 0);
	wf_flight_land(&f, 1, 5 * S);
	assert_int_equal(f.status, WEFT_OK);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

static bool has_arrived(void *ctx)
{
	return wf_fake_arrived() > *(uint64_t *)ctx;
}

static void a_lost_acknowledgement_is_asked_for(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[2];
	uint64_t arrived;

	wf_world_open(s->shape, 2, NULL);
	wf_world_connect(0, 1);
	wf_world_pass(S);
	assert_true(wf_list_empty(&link_of(0)->out.frames));

	/* The frame arrives, and nothing that goes back does. */
	arrived = wf_fake_arrived();
	wf_flight_receive(&f[0], 1, 0, 1, target, SMALL, 0);
	wf_flight_send(&f[1], 0, 1, 1, source, SMALL, 0);
	assert_true(wf_world_run(has_arrived, &arrived, S));
	wf_fake_knobs()->lose = 1000;
	wf_world_pass(40 * MS);
	assert_false(wf_list_empty(&link_of(0)->out.frames));
	wf_world_pass(40 * MS);
	assert_true(wf_list_empty(&link_of(0)->out.frames));
	wf_fake_knobs()->lose = 0;
	wf_flight_land(f, 2, S);
	assert_int_equal(f[0].status, WEFT_OK);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static uint64_t thirty_ms(void *ctx, uint64_t random)
{
	(void)ctx;
	(void)random;
	return 30 * MS;
}

/* 60 ms there and back, by the rail and by the door: the first frame is asked about. */
static void a_question_about_frames_has_one_answer(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[60];
	uint64_t asked_ns[2];

	wf_world_open(s->shape, 2, &slow);
	wf_world_connect(0, 1);
	wf_net_set_delay(thirty_ms, NULL);
	wf_fake_knobs()->delay_min_ns = wf_fake_knobs()->delay_max_ns = 30 * MS;
	for (unsigned i = 0; i < WF_COUNT(f); i++) {
		wf_flight_call(&f[i], 0, 1, source, SMALL, 0);
		wf_world_pass(10 * MS);
	}
	wf_flight_land(f, WF_COUNT(f), S);
	assert_true(link_of(0)->tx.resync_ns > 0);
	assert_in_range(wf_world_count(0).frames_replayed, 0, 20);
	assert_in_range(wf_world_count(1).frames_replayed, 0, 20);

	wf_world_pass(S);
	for (unsigned i = 0; i < 2; i++)
		asked_ns[i] = link_of(i)->tx.resync_ns;
	wf_world_pass(S);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(link_of(i)->tx.resync_ns, asked_ns[i]);
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_close(), 0);
}

/*
 * Who is granted two frames sends two.  The grant of the next goes out with a copy of a control
 * frame, and is lost; the copy before it, which knows nothing of that, is the one that is heard.
 */
static void credit_told_by_a_copy_that_is_lost_is_told_again(void **state)
{
	const struct shape *s = *state;
	struct wf_flight call, f[6];
	uint64_t replies;

	set("WEFT_WINDOW", "2");
	set("WEFT_PACK_BYTES", "1");
	wf_world_open(s->shape, 2, NULL);
	wf_world_connect(0, 1);
	stream(1, 0);
	wf_world_hold(1, true);
	wf_flight_call(&call, 0, 1, source, SMALL, 0);
	wf_world_pass(S);
	assert_int_equal(wf_credit_left(&link_of(1)->tx.credit), 2);

	wf_world_hold_way(0, 1, true);
	weft_cancel(call.op);
	wf_world_pass(MS);
	assert_non_null(link_of(0)->out.control_frame);
	replies = wf_fake_arrived() + 1;
	for (unsigned i = 0; i < 2; i++) {
		wf_flight_receive(&f[2 * i], 0, 1, 1, target, SMALL, 0);
		wf_flight_send(&f[2 * i + 1], 1, 0, 1, source, SMALL, 0);
	}
	assert_true(wf_world_run(has_arrived, &replies, S));
	wf_fake_knobs()->lose = 1000;
	wf_world_pass(200 * MS);
	wf_fake_knobs()->lose = 0;
	wf_world_hold_way(0, 1, false);
	wf_flight_land(f, 4, S);

	wf_flight_receive(&f[4], 0, 1, 1, target, SMALL, 0);
	wf_flight_send(&f[5], 1, 0, 1, source, SMALL, 0);
	wf_flight_land(&f[4], 2, 2 * S);
	wf_world_hold(1, false);
	wf_flight_land(&call, 1, 2 * S);
	assert_int_equal(call.status, WEFT_CANCELLED);
	wf_flight_free(&call, 1);
	wf_flight_free(f, 6);
	assert_int_equal(wf_world_count(1).peers_lost, 0);
	assert_int_equal(wf_world_close(), 0);
}

static void completions_that_come_twice_or_from_nowhere_are_dropped(void **state)
{
	const struct shape *s = *state;
	struct wf_fake fake = slow;
	struct wf_flight f[2];

	fake.twice = 500;
	fake.nobody = 300;
	wf_world_open(s->shape, 2, &fake);
	stream(0, 1);
	wf_world_fill(source, BIG, 2);
	wf_flight_receive(&f[0], 1, 0, 1, target, BIG, 0);
	wf_flight_send(&f[1], 0, 1, 1, source, BIG, 0);
	wf_flight_land(f, 2, 10 * S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_true(wf_world_is_filled(target, BIG, 2));
	assert_true(wf_world_count(0).late_dropped > 0);
	assert_int_equal(wf_world_count(0).peers_lost, 0);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

/* Packing. */

static void records_leave_at_once_when_idle_and_packed_when_busy(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[50];
	uint64_t sent;

	wf_world_open(s->shape, 2, NULL);
	wf_world_connect(0, 1);
	wf_world_pass(S);
	wf_fake_knobs()->send_ns = 3 * MS;
	sent = wf_fake_sent();

	wf_flight_send(&f[0], 0, 1, 0, source, 8, 0);
	wf_world_poll(0);
	assert_int_equal(wf_fake_sent() - sent, 1);

	/* Behind one that is under way they wait for each other, and fit one frame. */
	for (unsigned i = 1; i < 50; i++) {
		wf_flight_send(&f[i], 0, 1, i, source, 8, 0);
		wf_world_poll(0);
	}
	assert_int_equal(wf_fake_sent() - sent, 1);
	wf_fake_clock_set(wf_clock_now() + 3 * MS);
	wf_world_poll(0);
	assert_int_equal(wf_fake_sent() - sent, 2);
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	wf_flight_free(f, 50);
	assert_int_equal(wf_world_close(), 0);
}

/* Credits. */

static void receivers_with_few_slots_are_never_overrun(void **state)
{
	static uint8_t bodies[3 * MANY][SMALL], got[3 * MANY][SMALL];
	static struct wf_flight f[6 * MANY];
	const struct shape *s = *state;
	struct wf_engine_rail *on;

	set("WEFT_SLOTS", "16");
	set("WEFT_PACK_BYTES", "1"); /* a frame for each */
	wf_world_open(s->shape, 4, &slow);
	for (unsigned i = 0; i < 3 * MANY; i++) {
		unsigned from = 1 + i % 3;

		wf_world_fill(bodies[i], SMALL, i);
		wf_flight_receive(&f[2 * i], 0, from, 1, got[i], SMALL, 0);
		wf_flight_send(&f[2 * i + 1], from, 0, 1, bodies[i], SMALL, 0);
		/* The others join while the first has all the slots to itself. */
		if (i == 2 * MANY)
			wf_world_pass(10 * MS);
	}
	wf_flight_land(f, 6 * MANY, 50 * S);
	for (unsigned i = 0; i < 6 * MANY; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	for (unsigned i = 0; i < 3 * MANY; i++)
		assert_true(wf_world_is_filled(got[i], SMALL, i));
	assert_int_equal(wf_fake_overrun(), 0);
	on = &wf_world_node(0)->workers[0].engine.rails[0];
	assert_int_equal(on->link_count, 3);
	assert_true(on->promised + 2 * on->link_count <= 16);
	wf_flight_free(f, 6 * MANY);
	assert_int_equal(wf_world_close(), 0);
}

/* The link of node 0 with node @number; only who is known by name can be asked for. */
static struct wf_link *link_with(unsigned number)
{
	WF_LIST_EACH(node, &wf_world_node(0)->workers[0].engine.link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);
		char name[8];

		snprintf(name, sizeof(name), "n%u", number);
		if (link->state == WF_LINK_UP && !strcmp(link->name, name))
			return link;
	}
	return NULL;
}

/* What node 0 has promised to node @number; never more than that does it believe. */
static uint32_t promised_to(unsigned number)
{
	assert_true(wf_credit_left(&link_of(number)->tx.credit) <=
		    wf_rx_credit_open(link_with(number)));
	return wf_rx_credit_open(link_with(number));
}

static void a_sender_is_promised_more_and_gives_it_back_when_others_send(void **state)
{
	const struct shape *s = *state;
	const struct wf_engine_rail *on;

	set("WEFT_SLOTS", "32");
	set("WEFT_PACK_BYTES", "1");
	wf_world_open(s->shape, 3, &slow);
	wf_world_connect(1, 0);
	wf_world_connect(2, 0);
	wf_world_pass(S);
	on = &wf_world_node(0)->workers[0].engine.rails[0];
	stream(1, 0);
	wf_world_pass(S);
	assert_int_equal(promised_to(1), 32 - 32 / 8 - 2 * 2 - promised_to(2));

	stream(2, 0);
	wf_world_pass(S);
	assert_true(promised_to(2) >= 16);
	assert_int_equal(promised_to(1), 1);
	assert_true(on->promised + 2 * on->link_count <= 32);
	assert_int_equal(wf_fake_overrun(), 0);
	assert_int_equal(wf_world_close(), 0);
}

static void a_peer_that_keeps_the_credit_others_need_is_cut_off(void **state)
{
	const struct shape *s = *state;

	set("WEFT_SLOTS", "32");
	set("WEFT_PACK_BYTES", "1");
	wf_world_open(s->shape, 3, &slow);
	wf_world_connect(1, 0);
	wf_world_connect(2, 0);
	stream(1, 0);
	wf_world_pass(S);
	/* Node 1 will say that it has nothing to give back. */
	link_of(1)->tx.credit.spent += wf_credit_left(&link_of(1)->tx.credit);
	wf_world_pass(10 * S);
	assert_int_equal(wf_world_count(0).frames_refused, 0);
	assert_non_null(link_with(1));

	stream(2, 0);
	wf_world_pass(2 * S);
	assert_non_null(link_with(1));
	wf_world_pass(3 * S);
	assert_int_equal(wf_world_count(0).frames_refused, 1);
	assert_null(link_with(1));
	assert_non_null(link_with(2));
	assert_int_equal(wf_world_close(), 0);
}

/* Node 0 sends to all others at once. */
static void burst(unsigned nodes)
{
	static uint8_t bodies[8 * MANY][SMALL], got[8 * MANY][SMALL];
	static struct wf_flight f[16 * MANY];

	for (unsigned i = 0; i < 8 * MANY; i++) {
		unsigned to = 1 + i % (nodes - 1);

		wf_world_fill(bodies[i], SMALL, i);
		wf_flight_receive(&f[i], to, 0, 1, got[i], SMALL, 0);
		wf_flight_send(&f[8 * MANY + i], 0, to, 1, bodies[i], SMALL, 0);
	}
	wf_flight_land(f, 16 * MANY, 50 * S);
	wf_flight_free(f, 16 * MANY);
}

static void memory_of_a_burst_of_frames_goes_back(void **state)
{
	enum { NODES = 9 };
	const struct shape *s = *state;
	const struct wf_pool *frames;

	set("WEFT_PACK_BYTES", "1");
	wf_world_open(s->shape, NODES, &slow);
	frames = &wf_world_node(0)->workers[0].engine.frames.pool;
	burst(NODES);
	assert_true(frames->slab_bytes >= 2 * MIB);
	wf_world_pass(2 * S);
	assert_int_equal(frames->used_bytes, 0);
	assert_int_equal(frames->slab_bytes, 0);
	burst(NODES);
	assert_int_equal(wf_world_close(), 0);
}

static void slots_are_made_as_they_are_used(void **state)
{
	enum { NODES = 19 };
	const struct shape *s = *state;
	const struct wf_rail *rail;
	uint32_t few;

	set("WEFT_SLOTS", "1024");
	wf_world_open(s->shape, NODES, NULL);
	rail = wf_world_node(0)->workers[0].engine.rails[0].rail;
	few = wf_rail_slots(rail);
	for (unsigned i = 1; i < NODES; i++) {
		wf_world_connect(i, 0);
		wf_world_pass(S);
	}
	/* Three for each that does nothing. */
	assert_true(few >= 3 * (NODES - 1) && few < 4 * NODES);
	assert_int_equal(wf_rail_slots(rail), few);

	stream(1, 0);
	assert_true(wf_rail_slots(rail) >= few);
	assert_true(wf_rail_slots(rail) <= 3 * (NODES - 1) + 64 + 64);
	assert_int_equal(wf_rail_slots_most(rail), 1024);
	assert_int_equal(wf_fake_overrun(), 0);
	assert_int_equal(wf_world_close(), 0);
}

/* Registering them is refused, say; then those that there are must do. */
static void no_memory_for_more_slots_slows_down_and_breaks_nothing(void **state)
{
	const struct wf_fake fake = { .seed = 7, .mr_mode = FI_MR_LOCAL };
	const struct shape *s = *state;
	const struct wf_rail *rail;
	uint32_t few;

	set("WEFT_PACK_BYTES", "1");
	wf_world_open(s->shape, 3, &fake);
	rail = wf_world_node(0)->workers[0].engine.rails[0].rail;
	wf_world_connect(1, 0);
	wf_world_connect(2, 0);
	stream(2, 0);
	few = wf_rail_slots(rail);
	wf_fake_knobs()->refuse = 1000;
	stream(1, 0);
	stream(2, 0);
	assert_int_equal(wf_rail_slots(rail), few);
	assert_int_equal(wf_fake_overrun(), 0);
	wf_fake_knobs()->refuse = 0;
	assert_int_equal(wf_world_close(), 0);
}

static void a_link_that_would_get_no_slots_is_refused_with_a_sentence(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f;

	set("WEFT_SLOTS", "16"); /* three for each link */
	wf_world_open(s->shape, 7, NULL);
	for (unsigned i = 1; i < 6; i++)
		wf_world_connect(i, 0);
	wf_flight_ping(&f, 6, 0, 10 * S);
	wf_flight_land(&f, 1, 10 * S);
	assert_int_equal(f.status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_op_message(f.op), "no receive slots left"));
	wf_flight_free(&f, 1);
	for (unsigned i = 1; i < 6; i++)
		stream(i, 0);
	assert_int_equal(wf_fake_overrun(), 0);
	assert_int_equal(wf_world_close(), 0);
}

/* A machine under load, say: no rail is up in half a second, nor in two. */
static void a_slow_peer_is_waited_for_at_first_contact(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f;

	/* Shorter: up before the dialled side's three seconds are over.  Longer: up for one side only. */
	for (unsigned ms = 300; ms <= 900; ms += 50) {
		const struct wf_fake fake = { .seed = 5, .delay_min_ns = ms * MS,
					      .delay_max_ns = ms * MS };

		wf_world_open(s->shape, 2, &fake);
		wf_flight_ping(&f, 1, 0, 30 * S);
		wf_flight_land(&f, 1, 30 * S);
		assert_int_equal(f.status, WEFT_OK);
		wf_flight_free(&f, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Rails and doors that come and go. */

static void a_pull_goes_on_when_its_rail_dies_and_comes_back(void **state)
{
	const struct shape *s = *state;
	struct wf_fake fake = { .seed = 1, .delay_min_ns = 2 * MS, .delay_max_ns = 2 * MS };
	struct wf_flight f[2];

	wf_world_open(s->shape, 2, &fake);
	wf_world_connect(0, 1);
	/* Each time a bit later: before the offer, between all chunks, after the last. */
	for (unsigned i = 0; i < 20; i++) {
		uint64_t pulled = wf_world_count(1).bytes_pulled;

		wf_world_fill(source, BIG, i);
		memset(target, 0, BIG);
		wf_flight_receive(&f[0], 1, 0, i, target, BIG, 0);
		wf_flight_send(&f[1], 0, 1, i, source, BIG, 0);
		wf_world_pass((2 * i + 1) * MS);
		wf_fake_knobs()->fail = 1000;
		wf_world_pass(5 * MS);
		wf_fake_knobs()->fail = 0;
		wf_flight_land(f, 2, 4 * S);
		assert_int_equal(f[0].status, WEFT_OK);
		assert_int_equal(f[1].status, WEFT_OK);
		assert_true(wf_world_is_filled(target, BIG, i));
		assert_int_equal(wf_world_count(1).bytes_pulled - pulled, BIG);
		wf_flight_free(f, 2);
	}
	assert_int_equal(wf_world_count(0).peers_lost + wf_world_count(1).peers_lost, 0);
	assert_int_equal(wf_world_close(), 0);
}

/* As when its peer closes the connection over other reads that it gave up. */
static void a_pull_outlives_a_row_of_connections_that_close_over_its_reads(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[2];

	if (s != &connected)
		return; /* elsewhere reads end for no other's sake */
	wf_world_open(s->shape, 2, &slow);
	wf_world_connect(0, 1);
	wf_world_fill(source, BIG, 7);
	wf_flight_receive(&f[0], 0, 1, 1, target, BIG, 0);
	wf_flight_send(&f[1], 1, 0, 1, source, BIG, 0);
	wf_fake_knobs()->stick = 1000;
	for (unsigned i = 0; i < 12; i++) {
		while (!link_of(0) || !link_of(0)->reads.count)
			wf_world_pass(10 * US);
		wf_fake_break(0, 1, true);
		while (link_of(0))
			wf_world_pass(10 * US);
		wf_fake_break(0, 1, false);
		assert_int_equal(f[0].outcomes, 0);
	}
	wf_fake_knobs()->stick = 0;
	wf_flight_land(f, 2, 15 * S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	assert_true(wf_world_is_filled(target, BIG, 7));
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

/* 10 ms there and back: 2 reads at a time would take 400 ms for 81 chunks. */
static void a_long_way_gets_more_reads(void **state)
{
	const struct wf_fake far = { .seed = 5, .delay_min_ns = 5 * MS, .delay_max_ns = 5 * MS };
	const struct shape *s = *state;
	struct wf_flight f[2];
	uint64_t began_ns;

	if (s == &same_host)
		return; /* there a read is over at once */
	set("WEFT_CHUNK_BYTES", "64K");
	wf_world_open(s->shape, 2, &far);
	wf_world_connect(0, 1);
	wf_world_fill(source, BIG, 11);
	began_ns = wf_clock_now();
	wf_flight_receive(&f[0], 0, 1, 1, target, BIG, 0);
	wf_flight_send(&f[1], 1, 0, 1, source, BIG, 0);
	wf_flight_land(f, 2, S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	assert_true(wf_world_is_filled(target, BIG, 11));
	assert_true(wf_clock_now() - began_ns < 250 * MS);
	assert_true(link_of(0)->reads.depth.count > wf_link_caps(link_of(0))->depth);
	wf_flight_free(f, 2);
	unsetenv("WEFT_CHUNK_BYTES");
	assert_int_equal(wf_world_close(), 0);
}

/* Who asks for a depth has that one. */
static void a_depth_that_is_asked_for_stays(void **state)
{
	const struct wf_fake far = { .seed = 5, .delay_min_ns = 5 * MS, .delay_max_ns = 5 * MS };
	const struct shape *s = *state;
	struct wf_flight f[2];
	uint32_t most = 0;

	if (s == &same_host)
		return; /* there a read is over at once */
	set("WEFT_CHUNK_BYTES", "64K");
	set("WEFT_DEPTH", "3");
	wf_world_open(s->shape, 2, &far);
	wf_world_connect(0, 1);
	wf_flight_receive(&f[0], 0, 1, 1, target, BIG, 0);
	wf_flight_send(&f[1], 1, 0, 1, source, BIG, 0);
	while (!f[0].outcomes) {
		wf_world_pass(MS);
		most = WF_MAX(most, link_of(0)->reads.count);
	}
	assert_int_equal(most, 3);
	wf_flight_land(f, 2, S);
	wf_flight_free(f, 2);
	unsetenv("WEFT_CHUNK_BYTES");
	unsetenv("WEFT_DEPTH");
	assert_int_equal(wf_world_close(), 0);
}

/* There is no room for another read of a chunk. */
static bool all_bytes_are_asked_for(void *ctx)
{
	(void)ctx;
	return wf_pace_bytes(&wf_world_node(0)->workers[0].transfer.pace, 0) + MIB >
	       WF_PACE_BYTES_MAX;
}

/* Two have all that may be under way at once, and stand still with it. */
static void frozen_senders_do_not_hold_up_what_another_sends(void **state)
{
	enum { BODIES = 13, FLIGHTS = 2 * (BODIES + 1) };
	const struct wf_fake far = { .seed = 5, .delay_min_ns = 5 * MS, .delay_max_ns = 5 * MS };
	const struct shape *s = *state;
	struct wf_flight f[FLIGHTS];
	uint8_t *targets[BODIES + 1];

	set("WEFT_DEPTH", "6"); /* each asks for all of its body at once */
	wf_world_open(s->shape, 4, &far);
	wf_world_fill(source, BIG, 1);
	for (unsigned i = 0; i <= BODIES; i++)
		targets[i] = calloc(1, BIG);
	for (unsigned i = 1; i <= 3; i++)
		wf_world_connect(i, 0);
	for (unsigned i = 1; i <= BODIES; i++) {
		wf_flight_receive(&f[2 * i], 0, 1 + i % 2, i, targets[i], BIG, 0);
		wf_flight_send(&f[2 * i + 1], 1 + i % 2, 0, i, source, BIG, 0);
	}
	if (s != &same_host) /* there a read is over at once */
		assert_true(wf_world_run(all_bytes_are_asked_for, NULL, S));
	wf_world_freeze(1, true);
	wf_world_freeze(2, true);
	wf_flight_receive(&f[0], 0, 3, 1, targets[0], BIG, 0);
	wf_flight_send(&f[1], 3, 0, 1, source, BIG, 0);
	wf_flight_land(f, 2, S / 2);
	wf_world_freeze(1, false);
	wf_world_freeze(2, false);
	wf_flight_land(&f[2], FLIGHTS - 2, 4 * S);
	for (unsigned i = 0; i < FLIGHTS; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	for (unsigned i = 0; i <= BODIES; i++) {
		assert_true(wf_world_is_filled(targets[i], BIG, 1));
		free(targets[i]);
	}
	unsetenv("WEFT_DEPTH");
	wf_flight_free(f, FLIGHTS);
	assert_int_equal(wf_world_close(), 0);
}

/* The door lives and no frame is overdue: only the reads know. */
static void reads_that_hang_are_made_again_on_another_rail(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[2];

	for (unsigned i = 0; i < 10; i++) {
		wf_world_open(s->shape, 2, &slow);
		wf_world_connect(i % 2, 1 - i % 2);
		wf_world_fill(source, BIG, i);
		memset(target, 0, BIG);
		wf_flight_receive(&f[0], 0, 1, 1, target, BIG, 0);
		wf_flight_send(&f[1], 1, 0, 1, source, BIG, 0);
		wf_world_pass(i * MS);
		wf_fake_knobs()->stick = 1000;
		wf_world_pass(100 * MS);
		wf_fake_knobs()->stick = 0;
		wf_flight_land(f, 2, 15 * S);
		assert_int_equal(f[0].status, WEFT_OK);
		assert_int_equal(f[1].status, WEFT_OK);
		assert_true(wf_world_is_filled(target, BIG, i));
		assert_int_equal(wf_world_count(0).peers_lost + wf_world_count(1).peers_lost, 0);
		wf_flight_free(f, 2);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Also where the rail would carry on: it refuses every read. */
static void reads_that_are_refused_for_long_are_made_on_another_rail(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[2];

	if (s == &same_host)
		return; /* its reads ask no rail */
	wf_world_open(s->shape, 2, &slow);
	wf_world_connect(0, 1);
	wf_flight_send(&f[1], 1, 0, 1, source, BIG, 20 * S);
	wf_world_pass(100 * MS);
	wf_fake_knobs()->eagain = 1000;
	wf_flight_receive(&f[0], 0, 1, 1, target, BIG, 20 * S);
	wf_world_pass(13 * S);
	assert_true(link_of(0) == NULL || link_of(0)->probe.epoch > 1);
	wf_fake_knobs()->eagain = 0;
	wf_flight_land(f, 2, 10 * S);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static int refuse_to_connect(const char *call)
{
	return strcmp(call, "fi_connect") ? 0 : -FI_ECONNREFUSED;
}

static int refuse_to_accept(const char *call)
{
	return strcmp(call, "fi_accept") ? 0 : -FI_ENOMEM;
}

/* The rail's connection breaks, and dials of another are refused or go astray; the door lives. */
static void start_over_lost_rail(struct wf_flight f[2], unsigned i, int (*refuse)(const char *))
{
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_world_connect(i % 2, 1 - i % 2);
	wf_flight_receive(&f[0], 0, 1, 1, target, BIG, 60 * S);
	wf_fake_break_domain("lo");
	wf_fake_knobs()->veto = refuse;
	wf_fake_cut_domain(refuse ? NULL : "lo");
	wf_flight_send(&f[1], 1, 0, 1, source, BIG, 60 * S);
}

static void mend_rail(void)
{
	wf_fake_knobs()->veto = NULL;
	wf_fake_cut_domain(NULL);
}

static void land_over_mended_rail(struct wf_flight f[2])
{
	mend_rail();
	wf_flight_land(f, 2, 5 * S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	assert_int_equal(wf_world_count(0).peers_lost + wf_world_count(1).peers_lost, 0);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void land_without_rail(struct wf_flight f[2], uint64_t limit_ns)
{
	wf_flight_land(f, 2, limit_ns);
	assert_int_equal(f[0].status, WEFT_UNAVAILABLE);
	assert_int_equal(f[1].status, WEFT_UNAVAILABLE);
	mend_rail();
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void a_rail_is_dialled_for_longer_while_the_peer_answers_at_its_door(void **state)
{
	struct wf_flight f[2];

	(void)state;
	for (unsigned i = 0; i < 18; i++) {
		start_over_lost_rail(f, i, NULL);
		wf_world_pass((i + 2) / 2 * S);
		land_over_mended_rail(f);
	}
}

static void a_rail_that_stays_away_is_given_up_though_the_door_lives(void **state)
{
	struct wf_flight f[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		start_over_lost_rail(f, i, NULL);
		land_without_rail(f, 16 * S);
	}
}

static void a_rail_that_is_refused_is_given_up_after_the_limit_of_silence(void **state)
{
	struct wf_flight f[2];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		start_over_lost_rail(f, i, i / 2 ? refuse_to_accept : refuse_to_connect);
		wf_world_pass(2 * S);
		land_over_mended_rail(f);
		start_over_lost_rail(f, i, i / 2 ? refuse_to_accept : refuse_to_connect);
		land_without_rail(f, 5 * S);
	}
}

static void a_door_that_closes_is_dialled_again_and_nothing_fails(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[5];

	for (unsigned i = 0; i < 12; i++) {
		wf_world_open(s->shape, 2, &slow);
		wf_world_connect(i % 2, 1 - i % 2);
		wf_world_hold(1, true);
		wf_world_fill(source, BIG, i);
		wf_flight_call(&f[0], 0, 1, source, SMALL, 0);
		wf_flight_receive(&f[1], 0, 1, 9, other_target, SMALL, 0);
		wf_flight_receive(&f[2], 1, 0, 1, target, BIG, 0);
		wf_flight_send(&f[3], 0, 1, 1, source, BIG, 0);
		wf_world_pass(i * MS);
		wf_world_cut_door(0, 1);
		wf_world_pass(S);
		wf_world_cut_door(0, 1);
		wf_world_pass(S);
		assert_int_equal(f[0].outcomes, 0);
		assert_int_equal(f[1].outcomes, 0);
		wf_world_hold(1, false);
		wf_flight_send(&f[4], 1, 0, 9, source, SMALL, 0);
		wf_flight_land(f, 5, S);
		for (unsigned j = 0; j < 5; j++)
			assert_int_equal(f[j].status, WEFT_OK);
		assert_true(f[0].reply_right);
		assert_true(wf_world_is_filled(target, BIG, i));
		assert_int_equal(wf_world_count(0).links_resumed, 2);
		assert_int_equal(wf_world_count(0).peers_lost, 0);
		assert_int_equal(wf_world_served(1), 1);
		wf_flight_free(f, 5);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* A network that loses a connection loses more: dials that bring it back among it. */
static void a_door_that_closes_in_a_cut_is_dialled_again_after_it(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[2];

	for (unsigned i = 0; i < 12; i++) {
		wf_world_open(s->shape, 2, &slow);
		wf_world_connect(i % 2, 1 - i % 2);
		wf_world_fill(source, SMALL, i);
		wf_flight_receive(&f[0], 1, 0, 9, other_target, SMALL, 10 * S);
		wf_flight_receive(&f[1], 0, 1, 9, target, SMALL, 10 * S);
		wf_world_part(0, 1, true);
		wf_world_cut_door(0, 1);
		wf_world_pass(i * 100 * MS);
		wf_world_part(0, 1, false);
		wf_world_pass(2 * S);
		assert_int_equal(f[0].outcomes + f[1].outcomes, 0);
		assert_int_equal(wf_world_count(0).peers_lost + wf_world_count(1).peers_lost, 0);
		assert_int_equal(wf_world_count(0).links_resumed, 1);
		assert_int_equal(wf_world_close(), 0);
		wf_flight_free(f, 2);
	}
}

/* Who was dialled holds on to a connection that the dialler has lost, and nobody else would tell. */
static void a_door_forgotten_at_first_contact_is_dialled_anew(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[2];

	for (unsigned i = 0; i < 80; i++) {
		struct wf_fake fake = slow;

		fake.seed = 1 + i;
		wf_world_open(s->shape, 2, &fake);
		wf_flight_ping(&f[0], 0, 1, 20 * S);
		wf_world_pass(i / 2 * 100 * US);
		/* By the connection that has come, where one has. */
		wf_flight_ping(&f[1], 1, 0, 20 * S);
		wf_world_forget_door(0, 1);
		wf_flight_land(f, 2, 5 * S);
		assert_int_equal(f[0].status, WEFT_OK);
		assert_int_equal(f[1].status, WEFT_OK);
		wf_flight_free(f, 2);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* What is said while it is dialled leaves behind the hello: a stranger who says anything else is turned away. */
static void a_redial_begins_with_the_hello(void **state)
{
	const struct shape *s = *state;

	wf_world_open(s->shape, 2, &slow);
	wf_world_connect(0, 1);
	wf_world_cut_door(0, 1);
	while (!link_of(0)->redial.under_way || !link_of(0)->conn)
		wf_world_pass(10 * US);
	wf_keepalive_probe(link_of(0));
	wf_world_pass(50 * MS); /* less than the pause before another redial */
	assert_int_equal(wf_world_count(0).links_resumed, 1);
	assert_int_equal(wf_world_close(), 0);
}

static bool is_up(void *ctx)
{
	const struct wf_link *link = link_of(*(unsigned *)ctx);

	return link && link->state == WF_LINK_UP;
}

/* It was up for the dialler alone, and word that it has failed is lost with the door. */
static void a_rail_given_up_before_it_was_up_is_tried_again_after_a_redial(void **state)
{
	unsigned dialler = 0, other = 1;
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_SAME_HOST, 2, &slow);
	/* An offer, which the dialler does not hurry; whoever receives from anybody dials nobody. */
	wf_flight_send(&f[0], dialler, other, 1, source, BIG, 10 * S);
	wf_flight_receive(&f[1], other, other, 1, target, BIG, 10 * S);
	assert_true(wf_world_run(is_up, &dialler, S));
	assert_false(is_up(&other));
	wf_world_freeze(other, true);
	wf_world_cut_door(dialler, other);
	wf_world_pass(1200 * MS); /* long enough to doubt what was offered, too short to be lost */
	wf_world_freeze(other, false);
	wf_flight_land(f, 2, 3 * S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	assert_int_equal(wf_world_count(dialler).peers_lost, 0);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

/* Who dials on shared memory may be dead, and cleared away, when he is heard of for the first time. */
static void a_node_dialled_on_one_host_speaks_first(void **state)
{
	struct wf_flight f;
	bool spoken = false;

	(void)state;
	/* Frozen at any moment before it speaks, it hears nothing. */
	for (unsigned i = 0; !spoken; i++) {
		wf_world_open(WF_WORLD_SAME_HOST, 2, &slow);
		wf_flight_ping(&f, 0, 1, 10 * S);
		wf_world_pass(i * 100 * US);
		spoken = wf_fake_sent() > 0;
		wf_world_freeze(1, !spoken);
		wf_world_pass(200 * MS);
		assert_true(spoken || !wf_fake_sent());
		wf_world_freeze(1, false);
		wf_flight_land(&f, 1, 10 * S);
		wf_flight_free(&f, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* No rail but that of the host is there, and it waits for the side door. */
static void a_side_door_that_finds_no_descriptor_is_dialled_again(void **state)
{
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_SAME_HOST, 2, &slow);
	wf_net_starve(2);
	wf_flight_ping(&f, 0, 1, 10 * S);
	wf_flight_land(&f, 1, 10 * S);
	assert_int_equal(f.status, WEFT_OK);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

/* The gate of node @number's endpoint, entered; closed without leaving it is a death inside. */
static struct wf_gate enter_the_gate_of(unsigned number)
{
	int fd = fcntl(wf_rail_gate_fd(link_of(number)->on->rail), F_DUPFD_CLOEXEC, 0);
	struct wf_gate gate = { 0 };

	assert_int_equal(wf_gate_take(&gate, fd), 0);
	assert_true(wf_gate_enter(&gate));
	return gate;
}

static void a_peer_that_stays_in_an_endpoint_keeps_nobody_from_it(void **state)
{
	struct wf_flight f[6];
	struct wf_gate gate;

	(void)state;
	for (unsigned owner = 0; owner < 2; owner++) {
		wf_world_open(WF_WORLD_SAME_HOST, 2, &slow);
		wf_world_connect(0, 1);
		gate = enter_the_gate_of(owner);
		wf_gate_close(&gate);
		for (unsigned i = 0; i < 2; i++) {
			wf_flight_receive(&f[3 * i], i, 1 - i, 1, i ? target : other_target, BIG, 0);
			wf_flight_send(&f[3 * i + 1], 1 - i, i, 1, source, BIG, 0);
			wf_flight_call(&f[3 * i + 2], i, 1 - i, source, SMALL, 0);
		}
		wf_flight_land(f, 6, S);
		for (unsigned i = 0; i < 6; i++)
			assert_int_equal(f[i].status, WEFT_OK);
		assert_true(link_of(0)->probe.epoch > 1);
		assert_int_equal(wf_world_count(0).peers_lost + wf_world_count(1).peers_lost, 0);
		wf_flight_free(f, 6);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* For some time node 1 does not look: its program polls it rarely, or is busy. */
static void an_endpoint_that_is_looked_at_rarely_is_not_opened_anew(void **state)
{
	struct wf_gate gate;
	uint32_t edition;

	(void)state;
	wf_world_open(WF_WORLD_SAME_HOST, 2, &slow);
	wf_world_connect(0, 1);
	wf_world_pass(S);
	edition = link_of(1)->on->edition;
	gate = enter_the_gate_of(1);
	/* Each look meets another sender. */
	for (unsigned i = 0; i < 3; i++) {
		wf_world_poll(1);
		wf_gate_leave(&gate);
		wf_fake_clock_set(wf_clock_now() + 300 * MS);
		assert_true(wf_gate_enter(&gate));
	}
	/* All of many looks meet one sender, which leaves before the next. */
	for (unsigned i = 0; i < 20; i++)
		wf_world_poll(1);
	wf_gate_leave(&gate);
	wf_gate_close(&gate);
	wf_fake_clock_set(wf_clock_now() + 300 * MS);
	wf_world_poll(1);
	wf_world_pass(S);
	assert_int_equal(link_of(1)->on->edition, edition);
	assert_int_equal(wf_world_close(), 0);
}

static void dials_that_cross_leave_one_link(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[6];

	for (unsigned i = 0; i < 40; i++) {
		struct wf_fake fake = { .seed = i, .delay_min_ns = 5 * US, .delay_max_ns = 50 * US };

		wf_world_open(s->shape, 2, &fake);
		wf_world_fill(source, BIG, i);
		wf_flight_send(&f[0], 0, 1, 1, source, SMALL, 0);
		wf_flight_receive(&f[1], 0, 1, 2, target, BIG, 0);
		wf_flight_call(&f[2], 0, 1, source, SMALL, 0);
		/* From the same moment to when the first has come through. */
		if (i / 2 % 2)
			wf_world_pass(i * MS);
		wf_flight_send(&f[3], 1, 0, 2, source, BIG, 0);
		wf_flight_receive(&f[4], 1, 0, 1, other_target, SMALL, 0);
		wf_flight_call(&f[5], 1, 0, source, SMALL, 0);
		wf_flight_land(f, 6, 5 * S);
		for (unsigned j = 0; j < 6; j++)
			assert_int_equal(f[j].status, WEFT_OK);
		assert_true(wf_world_is_filled(target, BIG, i));
		assert_true(wf_world_is_filled(other_target, SMALL, i));
		assert_int_equal(wf_world_node(0)->workers[0].engine.rails[0].link_count, 1);
		assert_int_equal(wf_world_node(1)->workers[0].engine.rails[0].link_count, 1);
		wf_flight_free(f, 6);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Death. */

/* Everything that can wait for a peer, started by @from. */
#define WAITERS 6
static void start_waiters(struct wf_flight *f, unsigned from, unsigned to)
{
	fill_without_canary(source, BIG);
	memset(target, 0, BIG);
	memset(other_target, 0, SMALL);
	wf_flight_receive(&f[0], from, to, 1, target, BIG, 0);
	wf_flight_receive(&f[1], from, to, 2, other_target, SMALL, 0);
	wf_flight_send(&f[2], from, to, 3, source, BIG, 0);
	wf_flight_send(&f[3], from, to, 4, source, SMALL, 0);
	wf_flight_call(&f[4], from, to, source, SMALL, 0);
	wf_flight_ping(&f[5], from, to, 0);
}

/* Its rail's end may be seen before its goodbye is heard. */
static void a_leaving_node_is_not_dialled_on_its_way_out(void **state)
{
	/* Faster than the door. */
	struct wf_fake fast = { .delay_min_ns = 1 * US, .delay_max_ns = 5 * US };
	uint64_t dialled;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		fast.seed = 1 + i;
		wf_world_open(WF_WORLD_CONNECTED, 2, &fast);
		wf_world_connect(i % 2, 1 - i % 2);
		dialled = wf_fake_dialled();
		wf_world_leave(1);
		wf_world_pass(2 * S);
		assert_int_equal(wf_fake_dialled(), dialled);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Both know the other by its address, over the link that node 0 has dialled. */
static void meet(void)
{
	wf_world_connect(0, 1);
	wf_world_connect(1, 0);
}

static void a_killed_peer_ends_everything_at_any_moment(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[WAITERS], theirs[2];

	for (unsigned i = 0; i < 130; i++) {
		unsigned killed = i % 2, survivor = 1 - killed;
		bool met = i % 3;

		set("WEFT_CONNECT_TIMEOUT", "2s");
		wf_world_open(s->shape, 2, &slow);
		if (met)
			meet();
		wf_world_hold(killed, true);
		start_waiters(f, survivor, killed);
		wf_flight_send(&theirs[0], killed, survivor, 1, source, BIG, 0);
		wf_flight_receive(&theirs[1], killed, survivor, 3, other_target, BIG, 0);
		wf_world_pass(i * 500 * US);
		wf_world_kill(killed);
		/* Its socket has closed: refused at once, or no redial for a second and a half. */
		wf_flight_land(f, WAITERS, met ? 2 * S : 4 * S);
		for (unsigned j = 0; j < WAITERS; j++)
			assert_true(f[j].status == WEFT_OK || f[j].status == WEFT_UNAVAILABLE);
		assert_int_equal(f[1].status, WEFT_UNAVAILABLE);
		assert_int_equal(f[4].status, WEFT_UNAVAILABLE);
		/* Nothing moves any more. */
		memset(target, CANARY, BIG);
		wf_world_pass(S);
		assert_true(wf_world_all_are(target, BIG, CANARY));
		wf_flight_free(f, WAITERS);
		wf_flight_free(theirs, 2);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_frozen_peer_is_lost_after_its_limit_and_nothing_comes_late(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[WAITERS], theirs;

	for (unsigned i = 0; i < 20; i++) {
		unsigned frozen = i % 2, survivor = 1 - frozen;
		uint64_t frozen_ns;

		wf_world_open(s->shape, 2, &slow);
		meet();
		wf_world_hold(frozen, true);
		start_waiters(f, survivor, frozen);
		wf_flight_send(&theirs, frozen, survivor, 1, source, BIG, 0);
		wf_world_pass(i * MS);
		wf_world_freeze(frozen, true);
		frozen_ns = wf_clock_now();
		/* The limit, and what is left of a beat; then a shared rail gets quiet. */
		wf_flight_land(f, WAITERS, 5 * S + 100 * MS);
		for (unsigned j = 0; j < WAITERS; j++) {
			assert_true(f[j].status == WEFT_OK || f[j].status == WEFT_UNAVAILABLE);
			if (f[j].status != WEFT_OK)
				assert_true(f[j].ended_ns >= frozen_ns + 3 * S - i * MS);
		}
		assert_int_equal(f[1].status, WEFT_UNAVAILABLE);
		assert_int_equal(f[4].status, WEFT_UNAVAILABLE);

		/* It goes on as if nothing had been: what it says finds nobody. */
		memset(target, CANARY, BIG);
		memset(other_target, CANARY, SMALL);
		memset(source, CANARY, BIG);
		wf_world_freeze(frozen, false);
		wf_world_pass(2 * S);
		assert_true(wf_world_all_are(target, BIG, CANARY));
		assert_true(wf_world_all_are(other_target, SMALL, CANARY));
		assert_int_equal(theirs.outcomes, 1);

		/* And they may meet again. */
		wf_world_connect(survivor, frozen);
		wf_flight_free(f, WAITERS);
		wf_flight_free(&theirs, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Nor what it asks for before it has looked at anything else. */
static void a_thawed_peer_asks_before_it_takes_what_it_had_been_offered(void **state)
{
	const struct shape *s = *state;
	struct wf_flight sent, received;

	wf_world_open(s->shape, 2, NULL);
	wf_world_connect(0, 1);
	fill_without_canary(source, BIG);
	wf_flight_send(&sent, 0, 1, 1, source, BIG, 20 * S);
	wf_world_pass(100 * MS);
	wf_world_freeze(1, true);
	wf_flight_land(&sent, 1, 6 * S);
	assert_int_equal(sent.status, WEFT_UNAVAILABLE);
	memset(source, CANARY, BIG);
	wf_world_freeze(1, false);
	wf_flight_receive(&received, 1, 0, 1, target, BIG, 2 * S);
	wf_flight_land(&received, 1, 5 * S);
	assert_true(received.status != WEFT_OK);
	wf_flight_free(&sent, 1);
	wf_flight_free(&received, 1);
	assert_int_equal(wf_world_close(), 0);
}

/* Its last word may have brought the rail up for the other side, but not yet for itself. */
static void a_peer_thawed_at_first_contact_takes_nothing_that_was_given_up(void **state)
{
	const struct shape *s = *state;
	struct wf_flight sent, received;

	/* The first ping may come too early, the second after 100 ms. */
	for (unsigned i = 0; i < 130; i++) {
		wf_world_open(s->shape, 2, &slow);
		fill_without_canary(source, BIG);
		memset(target, 0, BIG);
		wf_flight_receive(&received, 1, 1, 1, target, BIG, 20 * S);
		wf_flight_send(&sent, 0, 1, 1, source, BIG, 20 * S);
		wf_world_pass(i * MS);
		wf_world_freeze(1, true);
		wf_flight_land(&sent, 1, 21 * S);
		memset(source, CANARY, BIG);
		wf_world_freeze(1, false);
		wf_flight_land(&received, 1, 30 * S);
		assert_true(received.status != WEFT_OK || has_no_canary(target, BIG));
		wf_flight_free(&sent, 1);
		wf_flight_free(&received, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Whatever the phase of the beat it falls silent in. */
static void a_silent_peer_is_lost_within_its_limit_and_a_second(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f;
	uint64_t silent_ns;

	for (unsigned i = 0; i < 20; i++) {
		wf_world_open(s->shape, 2, &slow);
		wf_world_connect(0, 1);
		wf_flight_receive(&f, 0, 1, 1, target, SMALL, 0);
		wf_world_pass(3 * S + i * 50 * MS);
		wf_world_freeze(1, true);
		silent_ns = wf_clock_now();
		wf_flight_land(&f, 1, 5 * S);
		assert_int_equal(f.status, WEFT_UNAVAILABLE);
		assert_true(f.ended_ns > silent_ns + 3 * S - S / 2);
		assert_true(f.ended_ns < silent_ns + 3 * S + 3 * S / 4);
		wf_flight_free(&f, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* What was offered while it was frozen waits for it, and is somebody else's by then. */
static void a_thawed_peer_delivers_nothing_that_was_given_up(void **state)
{
	const struct shape *s = *state;
	struct wf_flight sent, received;

	for (unsigned i = 0; i < 4; i++) {
		wf_world_open(s->shape, 2, NULL);
		wf_world_connect(i % 2, 1 - i % 2);
		wf_world_connect(1 - i % 2, i % 2);
		wf_world_pass(i / 2 * S);
		fill_without_canary(source, BIG);
		memset(target, 0, BIG);
		wf_flight_receive(&received, 1, 0, 1, target, BIG, 20 * S);
		wf_world_freeze(1, true);
		wf_flight_send(&sent, 0, 1, 1, source, BIG, 20 * S);
		wf_flight_land(&sent, 1, 6 * S);
		assert_int_equal(sent.status, WEFT_UNAVAILABLE);
		memset(source, CANARY, BIG);
		wf_world_freeze(1, false);
		wf_flight_land(&received, 1, 5 * S);
		assert_int_equal(received.status, WEFT_UNAVAILABLE);
		if (s != &same_host)
			assert_true(has_no_canary(target, BIG));
		wf_flight_free(&sent, 1);
		wf_flight_free(&received, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_short_freeze_fails_nothing(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[4];

	for (unsigned i = 0; i < 20; i++) {
		wf_world_open(s->shape, 2, &slow);
		wf_world_connect(i / 2 % 2, 1 - i / 2 % 2);
		wf_world_fill(source, BIG, i);
		wf_flight_receive(&f[0], 1, 0, 1, target, BIG, 0);
		wf_flight_send(&f[1], 0, 1, 1, source, BIG, 0);
		wf_flight_call(&f[2], 0, 1, source, SMALL, 0);
		wf_flight_call(&f[3], 1, 0, source, SMALL, 0);
		wf_world_pass(i * MS);
		wf_world_freeze(i % 2, true);
		wf_world_pass(2 * S);
		wf_world_freeze(i % 2, false);
		wf_flight_land(f, 4, 2 * S);
		for (unsigned j = 0; j < 4; j++)
			assert_int_equal(f[j].status, WEFT_OK);
		assert_true(wf_world_is_filled(target, BIG, i));
		assert_int_equal(wf_world_count(0).peers_lost + wf_world_count(1).peers_lost, 0);
		wf_flight_free(f, 4);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* When the peer goes on it answers at its door a moment before the rail brings anything. */
static void a_rail_outlives_a_peer_that_stands_still(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f;

	if (!s->connected)
		return; /* a node that stood still leaves a rail whose keys last */
	wf_world_open(s->shape, 2, &slow);
	wf_world_connect(0, 1);
	for (unsigned i = 0; i < 20; i++) {
		wf_world_hold_way(0, 1, true);
		wf_world_freeze(1, true);
		wf_flight_call(&f, 0, 1, source, SMALL, 0);
		wf_world_pass(1200 * MS + i * 20 * MS);
		wf_world_freeze(1, false);
		wf_world_pass(30 * MS);
		wf_world_hold_way(0, 1, false);
		wf_flight_land(&f, 1, 2 * S);
		assert_int_equal(f.status, WEFT_OK);
		assert_int_equal(link_of(0)->probe.epoch, 1);
		wf_flight_free(&f, 1);
	}
	assert_int_equal(wf_world_close(), 0);
}

/* Pings are quick, and what is longer takes three seconds. */
static void delay_long_messages(const void *bytes, size_t count)
{
	(void)bytes;
	wf_fake_knobs()->slow = count > SMALL ? 1000 : 0;
}

static void a_rail_that_is_slow_has_longer_each_time(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f;

	wf_world_open(s->shape, 2, &slow);
	wf_world_connect(0, 1);
	wf_fake_knobs()->slow_ns = 3 * S;
	wf_fake_knobs()->sent = delay_long_messages;
	wf_flight_call(&f, 0, 1, source, 10 * SMALL, 40 * S);
	wf_flight_land(&f, 1, 41 * S);
	assert_int_equal(f.status, WEFT_OK);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

/* It would have dialled again: on this host, who lives is waited for. */
static void a_short_freeze_as_the_door_closes_fails_nothing(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[4];

	wf_world_open(s->shape, 2, &slow);
	wf_world_connect(1, 0);
	wf_world_fill(source, BIG, 1);
	wf_flight_receive(&f[0], 1, 0, 1, target, BIG, 0);
	wf_flight_send(&f[1], 0, 1, 1, source, BIG, 0);
	wf_flight_call(&f[2], 0, 1, source, SMALL, 0);
	wf_flight_call(&f[3], 1, 0, source, SMALL, 0);
	wf_world_cut_door(0, 1);
	wf_world_freeze(1, true);
	wf_world_pass(S);
	wf_world_freeze(1, false);
	wf_flight_land(f, 4, 2 * S);
	for (unsigned j = 0; j < 4; j++)
		assert_int_equal(f[j].status, WEFT_OK);
	assert_true(wf_world_is_filled(target, BIG, 1));
	assert_int_equal(wf_world_count(0).peers_lost + wf_world_count(1).peers_lost, 0);
	wf_flight_free(f, 4);
	assert_int_equal(wf_world_close(), 0);
}

/* An operation of ours is stuck at a dead peer: others on the same endpoint don't suffer. */
static void the_death_of_one_peer_leaves_the_others_alone(void **state)
{
	const struct shape *s = *state;
	struct wf_flight dying[2], well[3];

	wf_world_open(s->shape, 3, &slow);
	wf_world_connect(0, 1);
	wf_world_connect(2, 0);
	wf_world_hold(2, true);
	wf_world_fill(source, BIG, 3);
	wf_flight_receive(&dying[0], 0, 1, 1, target, BIG, 0);
	wf_flight_send(&dying[1], 1, 0, 1, source, BIG, 0);
	wf_flight_call(&well[0], 0, 2, source, SMALL, 0);
	wf_fake_knobs()->stick = 1000;
	wf_world_pass(10 * MS);
	wf_fake_knobs()->stick = 0;
	wf_world_kill(1);
	wf_flight_receive(&well[1], 2, 0, 2, other_target, BIG, 0);
	wf_flight_send(&well[2], 0, 2, 2, source, BIG, 0);
	wf_flight_land(dying, 1, 2 * S);
	if (s != &same_host) /* there a read is over at once */
		assert_int_equal(dying[0].status, WEFT_UNAVAILABLE);
	wf_flight_land(&well[1], 2, 5 * S);
	wf_world_hold(2, false);
	wf_flight_land(well, 1, 5 * S);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(well[i].status, WEFT_OK);
	assert_true(wf_world_is_filled(other_target, BIG, 3));
	assert_int_equal(wf_world_count(0).peers_lost, 1);
	assert_int_equal(wf_world_count(2).peers_lost, 0);
	wf_flight_free(dying, 2);
	wf_flight_free(well, 3);
	assert_int_equal(wf_world_close(), 0);
}

/* Deadlines. */

#define LIMIT (700 * MS) /* of the operations below; a frozen peer is declared lost much later */

static void ends_by_its_deadline(const struct wf_flight *f, uint64_t bound_ns)
{
	assert_int_equal(f->outcomes, 1);
	assert_int_equal(f->status, WEFT_DEADLINE_EXCEEDED);
	/* 2 ms: a step of the clock, and a turn. */
	assert_in_range(wf_flight_ns(f), LIMIT, LIMIT + bound_ns + 2 * MS);
}

static void start_with_deadline(struct wf_flight *f, unsigned from, unsigned to)
{
	fill_without_canary(source, BIG);
	wf_flight_receive(&f[0], from, to, 1, target, BIG, LIMIT);
	wf_flight_send(&f[1], from, to, 3, source, BIG, LIMIT);
	wf_flight_send(&f[2], from, to, 4, source, SMALL, LIMIT);
	wf_flight_call(&f[3], from, to, source, SMALL, LIMIT);
	wf_flight_call(&f[4], from, to, source, BIG, LIMIT);
	wf_flight_ping(&f[5], from, to, LIMIT);
}

static void a_deadline_holds_while_nobody_answers_the_dial(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[WAITERS];

	for (unsigned i = 0; i < 3; i++) {
		wf_world_open(s->shape, 2, &slow);
		if (i == 0) /* refused */
			wf_net_refuse(weft_node_address(wf_world_node(1)), true);
		if (i == 1) /* silent */
			wf_world_part(0, 1, true);
		if (i == 2) /* the door answers, no rail does */
			wf_fake_cut(0, 1, true);
		start_with_deadline(f, 0, 1);
		wf_flight_land(f, WAITERS, 5 * S);
		for (unsigned j = 0; j < WAITERS; j++) {
			if (i < 2 || f[j].status == WEFT_DEADLINE_EXCEEDED)
				ends_by_its_deadline(&f[j], 0);
			else
				assert_int_equal(f[j].status, WEFT_UNAVAILABLE);
		}
		wf_flight_free(f, WAITERS);
		wf_fake_cut(0, 1, false);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_deadline_holds_while_the_peer_lives_and_does_not_match(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[WAITERS];

	wf_world_open(s->shape, 2, NULL);
	wf_world_connect(0, 1);
	wf_world_hold(1, true);
	start_with_deadline(f, 0, 1);
	wf_flight_land(f, WAITERS, 5 * S);
	/* The peer confirms a withdrawn offer: no bound is needed. */
	ends_by_its_deadline(&f[0], 0);
	ends_by_its_deadline(&f[1], 10 * MS);
	assert_int_equal(f[2].status, WEFT_OK);
	ends_by_its_deadline(&f[3], 0);
	ends_by_its_deadline(&f[4], 0);
	assert_int_equal(f[5].status, WEFT_OK);
	wf_flight_free(f, WAITERS);
	assert_int_equal(wf_world_count(0).peers_lost, 0);
	assert_int_equal(wf_world_close(), 0);
}

static void a_deadline_holds_while_the_peer_is_frozen(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[WAITERS], theirs;

	/* From before the offers arrive until they are being pulled. */
	for (unsigned i = 0; i < 20; i++) {
		wf_world_open(s->shape, 2, &slow);
		wf_world_connect(i % 2, 1 - i % 2);
		wf_world_hold(1, true);
		memset(target, 0, BIG);
		memset(other_target, 0, BIG);
		start_with_deadline(f, 0, 1);
		wf_flight_receive(&theirs, 1, 0, 3, other_target, BIG, 0);
		wf_world_pass(i * MS / 2);
		wf_world_freeze(1, true);
		wf_flight_land(f, WAITERS, 5 * S);
		for (unsigned j = 0; j < WAITERS; j++)
			if (f[j].status != WEFT_OK)
				ends_by_its_deadline(&f[j], s->quiet_ns);
		ends_by_its_deadline(&f[0], 0);
		/* The body is quiet: whatever the peer does now, it does not get the canary. */
		memset(source, CANARY, BIG);
		wf_world_freeze(1, false);
		wf_world_pass(2 * S);
		/* On one host it may read stale bytes, but delivers nothing of them. */
		if (s != &same_host || theirs.status == WEFT_OK)
			assert_true(has_no_canary(other_target, BIG));
		wf_flight_free(f, WAITERS);
		wf_flight_free(&theirs, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_deadline_holds_while_reads_are_stuck(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[3], theirs[2];

	for (unsigned i = 0; i < 10; i++) {
		wf_world_open(s->shape, 2, &slow);
		wf_world_connect(i % 2, 1 - i % 2);
		memset(other_target, 0, BIG);
		fill_without_canary(source, BIG);
		/* Node 0 pulls with a deadline of its own, and node 1 from an owner with one. */
		wf_flight_receive(&f[0], 0, 1, 1, target, BIG, LIMIT);
		wf_flight_send(&theirs[0], 1, 0, 1, source, BIG, 0);
		wf_flight_send(&f[1], 0, 1, 2, source, BIG, LIMIT);
		wf_flight_receive(&theirs[1], 1, 0, 2, other_target, BIG, 0);
		wf_flight_call(&f[2], 0, 1, source, BIG, LIMIT);
		wf_world_pass(i * MS);
		wf_fake_knobs()->stick = 1000;
		wf_flight_land(f, 3, 5 * S);
		wf_fake_knobs()->stick = 0;
		for (unsigned j = 0; j < 3; j++)
			if (f[j].status != WEFT_OK)
				ends_by_its_deadline(&f[j], s->quiet_ns);
		memset(target, CANARY, BIG);
		memset(source, CANARY, BIG);
		wf_world_pass(5 * S);
		assert_true(wf_world_all_are(target, BIG, CANARY));
		assert_true(has_no_canary(other_target, BIG));
		/* What the receive did not get waits for another. */
		if (f[0].status != WEFT_OK) {
			assert_int_equal(theirs[0].outcomes, 0);
			wf_flight_free(f, 1);
			wf_flight_receive(&f[0], 0, 1, 1, target, BIG, 0);
			wf_flight_land(f, 1, 5 * S);
			assert_int_equal(f[0].status, WEFT_OK);
		}
		wf_flight_land(theirs, 1, 5 * S);
		assert_int_equal(theirs[0].status, WEFT_OK);
		assert_int_equal(wf_world_count(0).peers_lost, 0);
		wf_flight_free(f, 3);
		wf_flight_free(theirs, 2);
		assert_int_equal(wf_world_close(), 0);
	}
}

static bool has_reads(void *link)
{
	return ((struct wf_link *)link)->reads.count;
}

/* Refuse the way to the peer over the shared rail. */
static int refuse_peer(const char *call)
{
	return strcmp(call, "fi_av_insert") ? 0 : -EIO;
}

/* The endpoint of efa cannot be replaced here, so its reads never end; tcp, in use now, is whole. */
static void stuck_reads_of_a_rail_that_was_left_cost_no_other_rail(void **state)
{
	struct wf_flight f[2];
	struct wf_link *link;
	uint32_t epoch;

	(void)state;
	wf_world_open(WF_WORLD_SHARED, 0, NULL);
	set("WEFT_PROVIDER", "efa,tcp");
	for (unsigned i = 0; i < 2; i++)
		wf_world_add();
	wf_world_connect(0, 1);
	link = link_of(0);
	assert_false(wf_link_caps(link)->connected);
	wf_fake_knobs()->stick = 1000;
	wf_flight_receive(&f[0], 0, 1, 1, target, BIG, 0);
	wf_flight_send(&f[1], 1, 0, 1, source, BIG, 0);
	assert_true(wf_world_run(has_reads, link, S));
	/* No memory is registered with efa from here on, which would be bound to the endpoint. */
	link->on->rail->info->domain_attr->mr_mode |= FI_MR_ENDPOINT;
	wf_fake_knobs()->veto = refuse_peer;
	wf_link_rail_failed(link, "the test leaves it");
	wf_world_connect(0, 1);
	assert_true(wf_link_caps(link)->connected);
	epoch = link->probe.epoch;

	weft_cancel(f[0].op);
	wf_world_pass(5 * S);
	assert_int_equal(link->probe.epoch, epoch);
	/* The close of the node takes the endpoint, and the reads with it. */
	assert_int_equal(f[0].outcomes, 0);
	wf_world_leave(0);
	wf_flight_land(f, 2, 5 * S);
	assert_int_equal(f[0].status, WEFT_CANCELLED);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void a_deadline_holds_without_credit(void **state)
{
	static struct wf_flight f[MANY];
	const struct shape *s = *state;
	unsigned late = 0;

	set("WEFT_SLOTS", "16");
	set("WEFT_PACK_BYTES", "1");
	wf_world_open(s->shape, 2, NULL);
	wf_world_connect(0, 1);
	wf_world_freeze(1, true);
	/* Some of them span frames, so that one is half under way. */
	for (unsigned i = 0; i < MANY; i++)
		wf_flight_send(&f[i], 0, 1, MANY + i, source, i % 2 ? SMALL : 12 * KIB, LIMIT);
	wf_flight_land(f, MANY, 5 * S);
	for (unsigned i = 0; i < MANY; i++) {
		if (f[i].status == WEFT_OK)
			continue;
		late++;
		ends_by_its_deadline(&f[i], s->quiet_ns);
	}
	assert_true(late > MANY / 2);
	wf_world_freeze(1, false);
	stream(0, 1);
	wf_flight_free(f, MANY);
	assert_int_equal(wf_world_close(), 0);
}

static void a_deadline_holds_while_the_pool_is_full(void **state)
{
	const struct shape *s = *state;
	struct weft_recv_options options = { .size = sizeof(options) };
	struct weft_op *op;
	struct wf_flight sent;
	uint64_t begin_ns;
	void *all;

	set("WEFT_POOL_BYTES", "8M");
	wf_world_open(s->shape, 2, NULL);
	wf_world_connect(0, 1);
	assert_int_equal(weft_alloc(wf_world_node(1), 7 * MIB, &all), 0);
	options.op = (struct weft_op_options){ .size = sizeof(options.op), .timeout_ns = LIMIT };
	begin_ns = wf_clock_now();
	wf_world_fill(source, BIG, 8);
	assert_int_equal(weft_recv(wf_world_node(1), NULL, 1, "", 0, NULL, &options, &op), 0);
	wf_flight_send(&sent, 0, 1, 1, source, BIG, 0);
	assert_int_equal(weft_wait(op, 5 * S), 0);
	assert_int_equal(weft_op_status(op), WEFT_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(weft_op_message(op), "WEFT_POOL_BYTES"));
	assert_in_range(wf_clock_now() - begin_ns, LIMIT, LIMIT + 10 * MS);
	weft_op_free(op);

	/* Memory comes back in time for the next receive. */
	assert_int_equal(weft_recv(wf_world_node(1), NULL, 1, "", 0, NULL, &options, &op), 0);
	wf_world_pass(100 * MS);
	assert_int_equal(sent.outcomes, 0);
	weft_free(wf_world_node(1), all);
	wf_flight_land(&sent, 1, 100 * MS);
	assert_int_equal(weft_wait(op, S), 0);
	assert_int_equal(weft_op_status(op), WEFT_OK);
	assert_true(wf_world_is_filled(weft_op_tensor(op, NULL)->data, BIG, 8));
	weft_op_free(op);
	wf_flight_free(&sent, 1);
	assert_int_equal(wf_world_close(), 0);
}

/* Cancelling. */

static void a_cancelled_send_is_quiet_when_it_has_ended(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[2];

	/* Before it leaves, offered, at every chunk, and after the end. */
	for (unsigned i = 0; i < 40; i++) {
		wf_world_open(s->shape, 2, &slow);
		wf_world_connect(i % 2, 1 - i % 2);
		fill_without_canary(source, BIG);
		memset(target, 0, BIG);
		memset(other_target, 0, BIG);
		if (i % 3)
			wf_flight_receive(&f[1], 1, 0, 1, target, BIG, 4 * S);
		wf_flight_send(&f[0], 0, 1, 1, source, BIG, 0);
		wf_world_pass(i * 500 * US);
		weft_cancel(f[0].op);
		/* The peer is alive and says so. */
		wf_flight_land(f, 1, 50 * MS);
		assert_true(f[0].status == WEFT_CANCELLED || f[0].status == WEFT_OK);
		memset(source, CANARY, BIG);
		if (i % 3) {
			wf_flight_land(&f[1], 1, 5 * S);
			assert_true(f[1].status != WEFT_OK || f[0].status == WEFT_OK);
		} else {
			wf_flight_receive(&f[1], 1, 0, 1, target, BIG, S);
			wf_flight_land(&f[1], 1, 2 * S);
			assert_int_equal(f[1].status, WEFT_DEADLINE_EXCEEDED);
		}
		wf_world_pass(100 * MS);
		assert_true(has_no_canary(target, BIG));
		stream(0, 1);
		wf_flight_free(f, 2);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* The peer lives, and the offer gets through to it long after the send has ended; its withdrawal never does. */
static void an_offer_that_comes_after_its_end_is_not_read(void **state)
{
	const struct shape *s = *state;
	struct wf_flight sent, received;

	for (unsigned i = 0; i < 2; i++) {
		wf_world_open(s->shape, 2, &slow);
		wf_world_connect(i, 1 - i);
		fill_without_canary(source, BIG);
		wf_flight_receive(&received, 1, 0, 1, target, BIG, 6 * S);
		wf_world_hold_way(0, 1, true);
		wf_flight_send(&sent, 0, 1, 1, source, BIG, LIMIT);
		wf_world_pass(LIMIT / 2);
		wf_fake_knobs()->lose = 1000;
		wf_flight_land(&sent, 1, 5 * S);
		wf_fake_knobs()->lose = 0;
		ends_by_its_deadline(&sent, s->quiet_ns);
		memset(source, CANARY, BIG);
		wf_world_hold_way(0, 1, false);
		wf_flight_land(&received, 1, 7 * S);
		assert_true(received.status != WEFT_OK);
		assert_int_equal(wf_world_count(0).peers_lost + wf_world_count(1).peers_lost, 0);
		wf_flight_free(&sent, 1);
		wf_flight_free(&received, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* The rail goes before the peer has heard of it: of the first it is on the way, of the other not even that. */
static void sends_cancelled_as_their_rail_dies_cancel_their_receives(void **state)
{
	struct wf_flight sends[2], receives[2];
	uint8_t *const into[2] = { target, other_target };
	unsigned taken_back = 0;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
		wf_world_connect(0, 1);
		for (unsigned j = 0; j < 2; j++) {
			wf_flight_receive(&receives[j], 1, 0, j, into[j], BIG, 0);
			wf_flight_send(&sends[j], 0, 1, j, source, BIG, 0);
		}
		wf_world_pass((i + 1) * 500 * US);
		for (unsigned j = 0; j < 2; j++) {
			weft_cancel(sends[j].op);
			wf_world_poll(0);
		}
		wf_fake_knobs()->fail = 1000;
		wf_world_pass(5 * MS);
		wf_fake_knobs()->fail = 0;
		wf_flight_land(sends, 2, S);
		/* What had not begun to move may wait for another tensor. */
		wf_world_pass(S);
		for (unsigned j = 0; j < 2; j++)
			weft_cancel(receives[j].op);
		wf_flight_land(receives, 2, S);
		for (unsigned j = 0; j < 2; j++) {
			assert_true(receives[j].status == WEFT_CANCELLED ||
				    receives[j].status == WEFT_OK);
			taken_back += strstr(weft_op_message(receives[j].op),
					     "took its offer back") != NULL;
		}
		wf_flight_free(sends, 2);
		wf_flight_free(receives, 2);
		assert_int_equal(wf_world_close(), 0);
	}
	assert_true(taken_back > 0);
}

static void a_cancelled_receive_is_quiet_when_it_has_ended(void **state)
{
	const struct shape *s = *state;
	struct wf_flight f[2];

	for (unsigned i = 0; i < 40; i++) {
		wf_world_open(s->shape, 2, &slow);
		wf_world_connect(i % 2, 1 - i % 2);
		fill_without_canary(source, BIG);
		wf_flight_receive(&f[0], 1, 0, 1, target, BIG, 0);
		wf_flight_send(&f[1], 0, 1, 1, source, BIG, S);
		wf_world_pass(i * 500 * US);
		weft_cancel(f[0].op);
		wf_flight_land(f, 1, 50 * MS);
		assert_true(f[0].status == WEFT_CANCELLED || f[0].status == WEFT_OK);
		memset(target, CANARY, BIG);
		wf_flight_land(&f[1], 1, 2 * S);
		wf_world_pass(100 * MS);
		assert_true(wf_world_all_are(target, BIG, CANARY));
		stream(0, 1);
		wf_flight_free(f, 2);
		assert_int_equal(wf_world_close(), 0);
	}
}

#define TEST(f)                                                                \
	{ #f " (connected)", f, NULL, NULL, (void *)(uintptr_t)&connected },   \
	{ #f " (shared)", f, NULL, NULL, (void *)(uintptr_t)&shared },         \
	{ #f " (same host)", f, NULL, NULL, (void *)(uintptr_t)&same_host }

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(order_survives_completions_and_messages_in_any_order),
		TEST(posts_that_are_refused_are_made_again),
		TEST(a_spell_of_refusals_loses_nothing),
		TEST(operations_that_fail_on_the_rail_are_made_again),
		TEST(a_frame_that_never_arrives_is_sent_again),
		TEST(a_lost_acknowledgement_is_asked_for),
		TEST(a_peer_that_confirms_frames_never_sent_is_given_up),
		TEST(a_question_about_frames_has_one_answer),
		TEST(credit_told_by_a_copy_that_is_lost_is_told_again),
		TEST(completions_that_come_twice_or_from_nowhere_are_dropped),
		TEST(records_leave_at_once_when_idle_and_packed_when_busy),
		TEST(receivers_with_few_slots_are_never_overrun),
		TEST(a_sender_is_promised_more_and_gives_it_back_when_others_send),
		TEST(a_peer_that_keeps_the_credit_others_need_is_cut_off),
		TEST(memory_of_a_burst_of_frames_goes_back),
		TEST(slots_are_made_as_they_are_used),
		TEST(no_memory_for_more_slots_slows_down_and_breaks_nothing),
		TEST(a_link_that_would_get_no_slots_is_refused_with_a_sentence),
		TEST(a_slow_peer_is_waited_for_at_first_contact),
		TEST(a_pull_goes_on_when_its_rail_dies_and_comes_back),
		TEST(a_pull_outlives_a_row_of_connections_that_close_over_its_reads),
		TEST(a_long_way_gets_more_reads),
		TEST(a_depth_that_is_asked_for_stays),
		TEST(frozen_senders_do_not_hold_up_what_another_sends),
		TEST(reads_that_hang_are_made_again_on_another_rail),
		TEST(reads_that_are_refused_for_long_are_made_on_another_rail),
		cmocka_unit_test(a_rail_is_dialled_for_longer_while_the_peer_answers_at_its_door),
		cmocka_unit_test(a_rail_that_stays_away_is_given_up_though_the_door_lives),
		cmocka_unit_test(a_rail_that_is_refused_is_given_up_after_the_limit_of_silence),
		TEST(a_door_that_closes_is_dialled_again_and_nothing_fails),
		TEST(a_door_that_closes_in_a_cut_is_dialled_again_after_it),
		TEST(a_door_forgotten_at_first_contact_is_dialled_anew),
		TEST(a_redial_begins_with_the_hello),
		cmocka_unit_test(a_rail_given_up_before_it_was_up_is_tried_again_after_a_redial),
		cmocka_unit_test(a_node_dialled_on_one_host_speaks_first),
		cmocka_unit_test(a_side_door_that_finds_no_descriptor_is_dialled_again),
		cmocka_unit_test(a_peer_that_stays_in_an_endpoint_keeps_nobody_from_it),
		cmocka_unit_test(an_endpoint_that_is_looked_at_rarely_is_not_opened_anew),
		TEST(dials_that_cross_leave_one_link),
		TEST(a_leaving_node_is_not_dialled_on_its_way_out),
		TEST(a_killed_peer_ends_everything_at_any_moment),
		TEST(a_frozen_peer_is_lost_after_its_limit_and_nothing_comes_late),
		TEST(a_thawed_peer_asks_before_it_takes_what_it_had_been_offered),
		TEST(a_peer_thawed_at_first_contact_takes_nothing_that_was_given_up),
		TEST(a_silent_peer_is_lost_within_its_limit_and_a_second),
		TEST(a_thawed_peer_delivers_nothing_that_was_given_up),
		TEST(a_short_freeze_fails_nothing),
		TEST(a_rail_outlives_a_peer_that_stands_still),
		TEST(a_rail_that_is_slow_has_longer_each_time),
		{ "a_short_freeze_as_the_door_closes_fails_nothing (same host)",
		  a_short_freeze_as_the_door_closes_fails_nothing, NULL, NULL,
		  (void *)(uintptr_t)&same_host },
		TEST(the_death_of_one_peer_leaves_the_others_alone),
		TEST(a_deadline_holds_while_nobody_answers_the_dial),
		TEST(a_deadline_holds_while_the_peer_lives_and_does_not_match),
		TEST(a_deadline_holds_while_the_peer_is_frozen),
		TEST(a_deadline_holds_while_reads_are_stuck),
		cmocka_unit_test(stuck_reads_of_a_rail_that_was_left_cost_no_other_rail),
		TEST(a_deadline_holds_without_credit),
		TEST(a_deadline_holds_while_the_pool_is_full),
		TEST(a_cancelled_send_is_quiet_when_it_has_ended),
		TEST(an_offer_that_comes_after_its_end_is_not_read),
		TEST(sends_cancelled_as_their_rail_dies_cancel_their_receives),
		TEST(a_cancelled_receive_is_quiet_when_it_has_ended),
	};

	/* test_link [PATTERN] runs those that match. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
