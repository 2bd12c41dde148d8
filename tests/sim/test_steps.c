/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a step: aborted for all nodes, ended for one, or dropped after a time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "core/worker.h"
#include "tensor/part.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define SMALL 100       /* in one frame */
#define MIDDLE (40 * KIB) /* in a few frames, over the connected rail */
#define BIG (3 * MIB + 17) /* pulled, in several chunks */
#define SOON (50 * MS)  /* less than any limit that helps out when somebody does not answer */
#define STEP 7
#define WHY "the loss is nan"
#define SENTENCE "step 7 was aborted: " WHY
#define ENDED "step 7 has ended on this node"

static uint8_t source[BIG], target[BIG];

static void abort_step(unsigned node, uint64_t step)
{
	assert_int_equal(weft_step_abort(wf_world_node(node), step, WEFT_DATA_LOSS, WHY), 0);
}

static void end_step(unsigned node, uint64_t step)
{
	assert_int_equal(weft_step_end(wf_world_node(node), step), 0);
}

/* All @count end so, within @limit_ns. */
static void land_as(struct wf_flight *f, size_t count, enum weft_status status,
		    const char *sentence, uint64_t limit_ns)
{
	wf_flight_land(f, count, limit_ns);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(f[i].status, status);
		assert_string_equal(weft_op_message(f[i].op), sentence);
	}
	wf_flight_free(f, count);
}

/* A tensor of @step gets from @from to @to. */
static void carry(unsigned from, unsigned to, uint64_t step, size_t bytes)
{
	struct wf_flight f[2];

	wf_flight_receive(&f[0], to, from, step, target, bytes, 0);
	wf_flight_send(&f[1], from, to, step, source, bytes, 0);
	land_as(f, 2, WEFT_OK, "", S);
}

/* Abort. */

static void an_abort_ends_what_is_pending_and_nothing_else(void **state)
{
	struct wf_flight f[3], others[2];
	uint64_t before;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		wf_world_open(wf_world_shapes[i], 2, NULL);
		wf_world_connect(0, 1);
		wf_flight_receive(&f[0], 0, 0, STEP, target, SMALL, 0);
		wf_flight_receive(&f[1], 0, 1, STEP, target, SMALL, 0);
		wf_flight_send(&f[2], 0, 1, STEP, source, BIG, 0); /* offered, and nobody receives it */
		wf_flight_receive(&others[0], 0, 1, STEP + 1, target, SMALL, 0);
		wf_flight_send(&others[1], 0, 1, STEP - 1, source, BIG, 0);
		wf_world_pass(100 * MS);
		before = wf_world_count(1).late_dropped;

		abort_step(0, STEP);
		land_as(f, 3, WEFT_DATA_LOSS, SENTENCE, SOON);

		assert_int_equal(wf_world_count(1).late_dropped, before + 1); /* the offer */
		assert_int_equal(others[0].outcomes + others[1].outcomes, 0);
		wf_flight_send(&f[0], 1, 0, STEP + 1, source, SMALL, 0);
		wf_flight_receive(&f[1], 1, 0, STEP - 1, target, BIG, 0);
		land_as(f, 2, WEFT_OK, "", S);
		land_as(others, 2, WEFT_OK, "", S);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_later_tensor_of_an_aborted_step_ends_at_once(void **state)
{
	struct wf_flight f[3];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	wf_world_connect(1, 0);
	abort_step(0, STEP);
	for (unsigned node = 0; node < 2; node++) {
		wf_flight_receive(&f[0], node, node, STEP, target, SMALL, 0);
		wf_flight_receive(&f[1], node, !node, STEP, target, SMALL, 0);
		wf_flight_send(&f[2], node, !node, STEP, source, SMALL, 0);
		wf_flight_land(f, 3, MS);
		assert_int_equal(weft_op_executed(f[2].op), WEFT_EXECUTED_NO);
		land_as(f, 3, WEFT_DATA_LOSS, SENTENCE, 0);
		wf_world_pass(SOON); /* now the other one knows as well */
	}
	carry(0, 1, STEP + 1, BIG);
	assert_int_equal(wf_world_close(), 0);
}

static void the_receives_of_peers_end_as_well(void **state)
{
	struct wf_flight f[2];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		wf_world_open(wf_world_shapes[i], 2, NULL);
		wf_world_connect(0, 1);
		wf_flight_receive(&f[0], 1, 1, STEP, target, SMALL, 0);
		wf_flight_receive(&f[1], 1, 0, STEP, target, SMALL, 0);
		wf_world_pass(100 * MS);
		abort_step(0, STEP);
		land_as(f, 2, WEFT_DATA_LOSS, SENTENCE, SOON);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_step_may_be_aborted_in_the_middle_of_a_pull(void **state)
{
	static uint8_t at_the_end[BIG];
	struct wf_fake slow = { .seed = 1, .delay_min_ns = 10 * MS, .delay_max_ns = 10 * MS };
	struct wf_flight f[2];

	(void)state;
	for (size_t i = 0; i < 4; i++) { /* not on one host: reads have no middle there */
		wf_world_open(wf_world_shapes[i / 2], 2, &slow);
		wf_world_connect(0, 1);
		memset(target, 0, BIG);
		wf_world_fill(source, BIG, i);
		wf_flight_receive(&f[0], 1, 0, STEP, target, BIG, 0);
		wf_flight_send(&f[1], 0, 1, STEP, source, BIG, 0);
		wf_world_pass(15 * MS); /* the offer has come, its reads are under way */
		assert_int_equal(f[0].outcomes + f[1].outcomes, 0);

		/* By the one that sends, or by the one that receives. */
		abort_step(i % 2, STEP);
		land_as(f, 2, WEFT_DATA_LOSS, SENTENCE, SOON);

		memcpy(at_the_end, target, BIG);
		wf_world_pass(S);
		assert_same_content(at_the_end, target, BIG);
		assert_int_equal(wf_world_count(0).peers_lost, 0);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Also when the abort must wait in its queue, and a control frame would not. */
static void the_first_that_a_peer_hears_is_the_abort(void **state)
{
	struct wf_fake slow = {
		.seed = 1, .send_ns = 30 * MS, .delay_min_ns = 100 * MS, .delay_max_ns = 100 * MS,
	};
	struct wf_flight f[3];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_world_connect(0, 1);
	wf_world_pass(S); /* no control frame is under way */
	wf_flight_receive(&f[0], 1, 0, STEP, target, BIG, 0);
	wf_flight_send(&f[1], 0, 1, STEP, source, BIG, 0);
	wf_world_pass(140 * MS); /* it is being read */
	wf_flight_send(&f[2], 0, 1, STEP + 1, source, SMALL, 0);
	wf_world_poll(0); /* a frame is under way, and the next waits for it */
	abort_step(0, STEP);
	land_as(f, 2, WEFT_DATA_LOSS, SENTENCE, S);
	land_as(&f[2], 1, WEFT_OK, "", 0);
	assert_int_equal(wf_world_close(), 0);
}

static void a_third_node_hears_through_the_second(void **state)
{
	struct wf_flight f[3];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 4, NULL);
	for (unsigned i = 0; i < 3; i++) {
		wf_world_connect(i, i + 1);
		wf_flight_receive(&f[i], i + 1, i, STEP, target, SMALL, 0);
	}
	abort_step(0, STEP);
	land_as(f, 3, WEFT_DATA_LOSS, SENTENCE, SOON);
	assert_int_equal(wf_world_close(), 0);
}

static void each_node_keeps_its_own_of_two_aborts_at_once(void **state)
{
	struct wf_flight f[3];
	uint64_t frames = 0;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 3, NULL);
	for (unsigned i = 0; i < 3; i++)
		wf_world_connect(i, (i + 1) % 3);
	for (unsigned i = 0; i < 3; i++)
		wf_flight_receive(&f[i], i, (i + 1) % 3, STEP, target, SMALL, 0);
	abort_step(0, STEP);
	assert_int_equal(weft_step_abort(wf_world_node(1), STEP, WEFT_UNAVAILABLE, "lost"), 0);
	wf_flight_land(f, 3, SOON);
	assert_true(f[2].status == WEFT_DATA_LOSS || f[2].status == WEFT_UNAVAILABLE);
	wf_flight_free(&f[2], 1);
	land_as(&f[0], 1, WEFT_DATA_LOSS, SENTENCE, 0);
	land_as(&f[1], 1, WEFT_UNAVAILABLE, "step 7 was aborted: lost", 0);

	/* And that is all that is said. */
	wf_world_pass(S);
	for (unsigned i = 0; i < 3; i++)
		frames += wf_world_count(i).frames_sent;
	wf_world_pass(S);
	for (unsigned i = 0; i < 3; i++)
		frames -= wf_world_count(i).frames_sent;
	assert_int_equal(frames, 0);
	assert_int_equal(wf_world_close(), 0);
}

static void the_first_abort_counts(void **state)
{
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	carry(0, 1, STEP, SMALL);
	abort_step(0, STEP);
	wf_world_pass(SOON);
	for (unsigned node = 0; node < 2; node++) {
		assert_int_equal(weft_step_abort(wf_world_node(node), STEP, WEFT_CANCELLED, "2nd"),
				 0);
		wf_flight_receive(&f, node, node, STEP, target, SMALL, 0);
		land_as(&f, 1, WEFT_DATA_LOSS, SENTENCE, SOON);
	}
	assert_int_equal(wf_world_close(), 0);
}

static void a_peer_that_joins_late_is_told_of_the_abort(void **state)
{
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	carry(0, 1, STEP, SMALL);
	abort_step(0, STEP);
	wf_world_pass(SOON);
	assert_int_equal(wf_world_add(), 2);
	/* By one that has heard of it itself. */
	wf_flight_receive(&f, 2, 1, STEP, target, SMALL, 0);
	land_as(&f, 1, WEFT_DATA_LOSS, SENTENCE, S);
	assert_int_equal(wf_world_close(), 0);
}

static void a_tensor_under_way_to_an_aborted_step_is_dropped(void **state)
{
	struct wf_fake slow = { .seed = 1, .delay_min_ns = 10 * MS, .delay_max_ns = 10 * MS };
	struct weft_path path = { .size = sizeof(path) };
	struct wf_flight f[2];
	uint64_t before;

	(void)state;
	assert_int_equal(setenv("WEFT_UNEXPECTED_BYTES", "64K", 1), 0);
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_world_connect(0, 1);
	before = wf_world_count(1).late_dropped;
	/* These have left when node 0 hears of the abort. */
	abort_step(1, STEP);
	wf_flight_send(&f[0], 0, 1, STEP, source, MIDDLE, 0);
	wf_flight_send(&f[1], 0, 1, STEP, source, BIG, 0);
	land_as(&f[0], 1, WEFT_OK, "", 9 * MS);
	land_as(&f[1], 1, WEFT_DATA_LOSS, SENTENCE, SOON);
	assert_int_equal(wf_world_count(1).late_dropped, before + 2);

	/* The eager credit of what was dropped is there again. */
	wf_world_pass(SOON);
	wf_flight_send(&f[0], 0, 1, STEP + 1, source, MIDDLE, 0);
	wf_flight_land(f, 1, SOON);
	assert_int_equal(weft_op_path(f[0].op, &path), 0);
	assert_string_equal(path.way, "eager");
	wf_flight_free(f, 1);
	assert_int_equal(wf_world_close(), 0);
}

/* The rail is dead and nobody has noticed: the abort waits, the operation does not. */
static void an_abort_ends_operations_whose_peer_does_not_hear_it(void **state)
{
	struct wf_flight f[2];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		uint64_t quiet_ns = wf_world_shapes[i] == WF_WORLD_CONNECTED ? S / 2 : 2 * S;

		wf_world_open(wf_world_shapes[i], 2, NULL);
		wf_world_connect(0, 1);
		wf_flight_send(&f[0], 0, 1, STEP, source, BIG, 0);
		wf_flight_receive(&f[1], 1, 0, STEP + 1, target, BIG, 0);
		wf_world_pass(100 * MS);
		wf_world_part(0, 1, true);
		abort_step(0, STEP);
		abort_step(0, STEP + 1);
		land_as(f, 1, WEFT_DATA_LOSS, SENTENCE, quiet_ns);
		assert_int_equal(f[1].outcomes, 0);
		wf_world_part(0, 1, false);
		land_as(&f[1], 1, WEFT_DATA_LOSS, "step 8 was aborted: " WHY, 3 * S);
		assert_int_equal(wf_world_count(0).peers_lost, 0);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* More than anybody remembers, and everybody tells everybody. */
static void a_flood_of_aborts_ends_at(unsigned workers)
{
	enum { COUNT = 3 * 4096, NODES = 3 };
	uint64_t frames = 0;
	struct wf_flight f;

	wf_world_set_workers(workers);
	wf_world_open(WF_WORLD_CONNECTED, NODES, NULL);
	for (unsigned i = 0; i < NODES; i++)
		wf_world_connect(i, (i + 1) % NODES);
	wf_flight_receive(&f, 2, 0, 9 + COUNT - 1, target, SMALL, 0);
	for (uint64_t i = 0; i < COUNT; i++)
		abort_step(0, 9 + i);
	wf_flight_land(&f, 1, 10 * S);
	assert_int_equal(f.status, WEFT_DATA_LOSS);
	wf_flight_free(&f, 1);
	wf_world_pass(5 * S);
	/* Every worker of who hears of so many, and takes them, keeps the first. */
	for (unsigned i = 0; workers > 1 && i < workers; i++)
		assert_non_null(wf_steps_find(&wf_world_node(1)->workers[i].channels.aborted, 9));
	for (unsigned i = 0; i < NODES; i++)
		frames += wf_world_count(i).frames_sent;
	wf_world_pass(S);
	for (unsigned i = 0; i < NODES; i++)
		frames -= wf_world_count(i).frames_sent;
	assert_int_equal(frames, 0);
	assert_int_equal(wf_world_close(), 0);
}

static void a_flood_of_aborts_ends(void **state)
{
	(void)state;
	a_flood_of_aborts_ends_at(1);
}

static void a_flood_of_aborts_ends_at_nodes_of_several_workers_that_take_any(void **state)
{
	(void)state;
	setenv("WEFT_ABORT_ANY", "yes", 1);
	a_flood_of_aborts_ends_at(2);
	wf_world_set_workers(1);
	unsetenv("WEFT_ABORT_ANY");
}

/* A crowded node does not remember an abort that it hears of, and yet tells the peer's reason. */
static void an_abort_counts_once_its_peer_takes_part_also_at_a_crowded_node(void **state)
{
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 3, NULL);
	wf_world_connect(0, 2);
	abort_step(2, STEP);
	wf_world_pass(SOON);
	for (uint64_t i = 0; i < 4096; i++)
		abort_step(0, STEP + 1 + i);
	wf_flight_send(&f, 0, 2, STEP, source, SMALL, 0);
	land_as(&f, 1, WEFT_DATA_LOSS, SENTENCE, S);
	assert_int_equal(wf_world_close(), 0);
}

/* Node 2 has nothing to do with the step of 0 and 1: however it speaks of it. */
static void an_abort_of_a_peer_that_takes_no_part_ends_nothing(void **state)
{
	struct wf_flight f[3], own[2];
	uint64_t before;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		wf_world_open(wf_world_shapes[i], 3, NULL);
		wf_world_connect(0, 1);
		wf_world_connect(1, 2);
		wf_flight_receive(&f[0], 1, 0, STEP, target, SMALL, 0);
		wf_flight_send(&f[1], 1, 0, STEP, source, BIG, 0);
		wf_flight_receive(&f[2], 1, 2, STEP + 1, target, SMALL, 0);
		/* That nobody receives what it sends makes it no part of the step. */
		wf_flight_send(&own[0], 2, 1, STEP, source, SMALL, 0);
		wf_flight_send(&own[1], 2, 1, STEP, source, BIG, 0);
		wf_world_pass(100 * MS);
		land_as(own, 1, WEFT_OK, "", 0);
		before = wf_world_count(1).late_dropped;

		abort_step(2, STEP);
		land_as(&own[1], 1, WEFT_DATA_LOSS, SENTENCE, SOON);
		wf_world_pass(SOON);
		assert_int_equal(f[0].outcomes + f[1].outcomes + f[2].outcomes, 0);
		assert_int_equal(wf_world_count(1).aborts_ignored, 1);
		assert_int_equal(wf_world_count(0).aborts_ignored, 0);
		/* What was its own is dropped, and is in nobody's way. */
		assert_int_equal(wf_world_count(1).late_dropped, before + 2);
		wf_flight_receive(&own[0], 1, 1, STEP, target, SMALL, 0);
		wf_world_pass(SOON);
		assert_int_equal(own[0].outcomes, 0);

		wf_flight_send(&own[1], 0, 1, STEP, source, SMALL, 0);
		land_as(&own[1], 1, WEFT_OK, "", S);
		land_as(f, 1, WEFT_OK, "", S);
		wf_flight_receive(f, 0, 1, STEP, target, BIG, 0);
		land_as(f, 2, WEFT_OK, "", S);
		wf_flight_send(f, 0, 1, STEP, source, SMALL, 0);
		land_as(f, 1, WEFT_OK, "", S);
		land_as(own, 1, WEFT_OK, "", S);
		wf_flight_send(f, 2, 1, STEP + 1, source, SMALL, 0);
		land_as(f, 1, WEFT_OK, "", S);
		land_as(&f[2], 1, WEFT_OK, "", S);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void an_abort_counts_once_its_peer_takes_part(void **state)
{
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 3, NULL);
	wf_world_connect(0, 1);
	wf_world_connect(1, 2);
	for (uint64_t step = STEP; step < STEP + 2; step++) {
		wf_flight_receive(&f[0], 1, 0, step, target, SMALL, 0);
		assert_int_equal(weft_step_abort(wf_world_node(2), step, WEFT_DATA_LOSS, WHY), 0);
		wf_world_pass(SOON);
		assert_int_equal(f[0].outcomes, 0);
		/* By a receive that names it, or by a send. */
		if (step == STEP)
			wf_flight_receive(&f[1], 1, 2, step, target, SMALL, 0);
		else
			wf_flight_send(&f[1], 1, 2, step, source, SMALL, 0);
		wf_flight_land(f, 2, SOON);
		assert_int_equal(f[0].status, WEFT_DATA_LOSS);
		assert_int_equal(f[1].status, WEFT_DATA_LOSS);
		wf_flight_free(f, 2);
	}
	assert_int_equal(wf_world_close(), 0);
}

static unsigned refusals;

/* Refuse to pass an abort on, as without memory: often enough that a test sees it, not for ever. */
static int refuse_to_tell(void *ctx, const struct wf_step *step)
{
	(void)ctx;
	(void)step;
	return refusals++ < 100 ? -ENOMEM : 0;
}

/* The second name of the peer takes part in both steps: each abort is tried once. */
static void aborts_that_a_merge_has_no_memory_for_are_tried_once_each(void **state)
{
	struct wf_flight f[2];

	(void)state;
	refusals = 0;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	for (unsigned i = 0; i < 2; i++)
		abort_step(0, STEP + i);
	wf_world_pass(SOON);
	assert_int_equal(wf_world_count(1).aborts_ignored, 2);

	wf_world_node(1)->workers[0].channels.aborted_by_peer = refuse_to_tell;
	for (unsigned i = 0; i < 2; i++)
		wf_flight_receive(&f[i], 1, 0, STEP + i, target, SMALL, S);
	wf_flight_land(f, 2, 2 * S);
	assert_int_equal(refusals, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(f[i].status, WEFT_DEADLINE_EXCEEDED);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void a_peer_that_was_received_from_takes_part(void **state)
{
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 3, NULL);
	wf_world_connect(0, 1);
	/* By a receive from anybody, whichever side comes first. */
	for (uint64_t step = STEP; step < STEP + 2; step++) {
		wf_flight_receive(&f[0], 1, 0, step, target, SMALL, 0);
		wf_flight_send(&f[1], 2, 1, step, source, SMALL, 0);
		if (step == STEP)
			wf_world_pass(SOON);
		land_as(&f[1], 1, WEFT_OK, "", S);
		wf_flight_receive(&f[1], 1, 1, step, target, SMALL, 0);
		land_as(&f[1], 1, WEFT_OK, "", S);
		assert_int_equal(f[0].outcomes, 0);
		assert_int_equal(weft_step_abort(wf_world_node(2), step, WEFT_DATA_LOSS, WHY), 0);
		wf_flight_land(f, 1, SOON);
		assert_int_equal(f[0].status, WEFT_DATA_LOSS);
		wf_flight_free(f, 1);
	}
	assert_int_equal(wf_world_count(1).aborts_ignored, 0);
	assert_int_equal(wf_world_close(), 0);
}

static void a_node_may_let_any_peer_abort_its_steps(void **state)
{
	struct wf_flight f;

	(void)state;
	assert_int_equal(setenv("WEFT_ABORT_ANY", "yes", 1), 0);
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	wf_flight_receive(&f, 1, 1, STEP, target, SMALL, 0);
	abort_step(0, STEP);
	land_as(&f, 1, WEFT_DATA_LOSS, SENTENCE, SOON);
	assert_int_equal(wf_world_count(1).aborts_ignored, 0);
	assert_int_equal(wf_world_close(), 0);
}

/* End. */

static void ending_drops_what_nobody_has_received(void **state)
{
	struct weft_path path = { .size = sizeof(path) };
	struct wf_flight f[2];

	(void)state;
	assert_int_equal(setenv("WEFT_UNEXPECTED_BYTES", "64K", 1), 0);
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_flight_send(&f[0], 0, 1, STEP, source, MIDDLE, 0);
	wf_flight_send(&f[1], 0, 1, STEP, source, BIG, 0);
	wf_world_pass(100 * MS);
	land_as(&f[0], 1, WEFT_OK, "", 0);
	end_step(1, STEP);
	land_as(&f[1], 1, WEFT_OK, "", SOON);
	assert_int_equal(wf_world_count(1).late_dropped, 2);

	/* A later tensor is dropped too; its eager credit is the sender's again each time. */
	for (unsigned i = 0; i < 10; i++) {
		wf_world_pass(SOON);
		wf_flight_send(&f[0], 0, 1, STEP, source, MIDDLE, 0);
		wf_flight_land(f, 1, SOON);
		assert_int_equal(weft_op_path(f[0].op, &path), 0);
		assert_string_equal(path.way, "eager");
		wf_flight_free(f, 1);
	}
	wf_world_pass(SOON);
	assert_int_equal(wf_world_count(1).late_dropped, 12);
	assert_int_equal(wf_world_close(), 0);
}

/* The part of the first peer comes to rest, and that of the second makes room for it. */
static void ending_gives_up_the_idle_part_of_another_peer(void **state)
{
	struct wf_flight f[2];

	(void)state;
	for (unsigned aborted = 0; aborted < 2; aborted++) {
		wf_world_open(WF_WORLD_CONNECTED, 3, NULL);
		for (unsigned i = 0; i < 2; i++)
			wf_flight_send(&f[i], 1, 0, STEP, source, SMALL, 0);
		wf_flight_land(f, 2, S);
		wf_flight_free(f, 2);
		wf_flight_receive(&f[0], 0, 1, STEP, target, SMALL, 0);
		land_as(f, 1, WEFT_OK, "", S); /* the other one is kept */
		carry(2, 0, STEP, SMALL);
		for (unsigned i = 1; i < WF_PARTS_IDLE_MAX; i++)
			carry(2, 0, STEP + i, SMALL);
		if (aborted)
			abort_step(0, STEP);
		else
			end_step(0, STEP);
		wf_world_pass(SOON);
		assert_int_equal(wf_world_count(0).late_dropped, 1);
		carry(1, 0, STEP + WF_PARTS_IDLE_MAX, SMALL);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void ending_cancels_what_is_pending_here_and_refuses_what_comes_later(void **state)
{
	struct wf_flight f[3], peers;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		wf_world_open(wf_world_shapes[i], 3, NULL);
		wf_world_connect(0, 1);
		wf_flight_receive(&f[0], 0, 0, STEP, target, SMALL, 0);
		wf_flight_receive(&f[1], 0, 1, STEP, target, SMALL, 0);
		wf_flight_send(&f[2], 0, 1, STEP, source, BIG, 0);
		wf_flight_receive(&peers, 1, 2, STEP, target, SMALL, 0);
		wf_world_pass(100 * MS);
		end_step(0, STEP);
		land_as(f, 3, WEFT_CANCELLED, ENDED, SOON);

		wf_flight_receive(&f[0], 0, 0, STEP, target, SMALL, 0);
		wf_flight_send(&f[1], 0, 1, STEP, source, SMALL, 0);
		land_as(f, 2, WEFT_FAILED_PRECONDITION, ENDED, SOON);

		/* Its peers go on with the step. */
		wf_flight_send(&f[0], 2, 1, STEP, source, SMALL, 0);
		land_as(f, 1, WEFT_OK, "", S);
		land_as(&peers, 1, WEFT_OK, "", S);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void an_abort_says_more_than_an_end(void **state)
{
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 3, NULL);
	wf_world_connect(0, 1);
	wf_world_connect(1, 2);
	/* One that has ended the step passes the abort on. */
	carry(0, 1, STEP, SMALL);
	end_step(1, STEP);
	wf_flight_receive(&f, 2, 1, STEP, target, SMALL, 0);
	abort_step(0, STEP);
	land_as(&f, 1, WEFT_DATA_LOSS, SENTENCE, SOON);
	end_step(2, STEP);
	for (unsigned node = 0; node < 3; node++) {
		wf_flight_receive(&f, node, node, STEP, target, SMALL, 0);
		land_as(&f, 1, WEFT_DATA_LOSS, SENTENCE, SOON);
	}
	assert_int_equal(wf_world_close(), 0);
}

/* The time limit. */

static void a_tensor_that_nobody_receives_in_time_is_dropped(void **state)
{
	struct wf_flight f[4];

	(void)state;
	assert_int_equal(setenv("WEFT_STEP_TIMEOUT", "10s", 1), 0);
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	wf_flight_send(&f[0], 0, 1, STEP, source, SMALL, 0);
	wf_flight_send(&f[1], 0, 1, STEP, source, BIG, WEFT_FOREVER);
	wf_world_pass(5 * S);
	wf_flight_send(&f[2], 0, 1, STEP + 1, source, BIG, WEFT_FOREVER);
	land_as(&f[0], 1, WEFT_OK, "", 0);
	wf_world_pass(5 * S - SOON);
	assert_int_equal(wf_world_count(1).late_dropped, 0);
	assert_int_equal(f[1].outcomes, 0);

	land_as(&f[1], 1, WEFT_OK, "", 2 * SOON);
	assert_int_equal(wf_world_count(1).late_dropped, 2);
	assert_int_equal(f[2].outcomes, 0);
	wf_flight_receive(&f[3], 1, 0, STEP + 1, target, BIG, 0);
	land_as(&f[2], 2, WEFT_OK, "", S);

	/* The step itself goes on. */
	carry(0, 1, STEP, BIG);
	assert_int_equal(wf_world_close(), 0);
}

static void without_a_limit_tensors_wait_for_ever(void **state)
{
	struct wf_flight f[2];

	(void)state;
	assert_int_equal(setenv("WEFT_STEP_TIMEOUT", "0", 1), 0);
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_flight_send(&f[0], 0, 1, STEP, source, BIG, WEFT_FOREVER);
	wf_world_pass(2000 * S);
	wf_flight_receive(&f[1], 1, 0, STEP, target, BIG, 0);
	land_as(f, 2, WEFT_OK, "", S);
	assert_int_equal(wf_world_close(), 0);
}

/* Node 0 is to receive from 1 what 2 computes, and to end the step; it is killed. */
static void tensors_that_a_killed_coordinator_leaves_behind_go(void **state)
{
	struct wf_flight f[4];
	uint64_t before;

	(void)state;
	assert_int_equal(setenv("WEFT_STEP_TIMEOUT", "10s", 1), 0);
	wf_world_open(WF_WORLD_CONNECTED, 3, NULL);
	wf_world_connect(0, 1);
	wf_world_connect(0, 2);
	wf_world_connect(1, 2);
	wf_flight_send(&f[0], 0, 1, STEP, source, SMALL, 0);  /* never received: 0 was to say when */
	wf_flight_send(&f[1], 2, 1, STEP, source, SMALL, 0);
	wf_flight_send(&f[2], 2, 1, STEP, source, BIG, WEFT_FOREVER);
	wf_flight_send(&f[3], 1, 0, STEP, source, BIG, WEFT_FOREVER);
	wf_world_pass(S);
	wf_world_kill(0);
	wf_flight_land(&f[3], 1, 2 * S);
	assert_int_equal(f[3].status, WEFT_UNAVAILABLE);
	assert_int_equal(f[2].outcomes, 0);
	before = wf_world_count(1).late_dropped;

	wf_flight_land(&f[2], 1, 10 * S);
	assert_int_equal(f[2].status, WEFT_OK);
	assert_int_equal(wf_world_count(1).late_dropped, before + 3);
	wf_flight_free(f, 4);
	carry(2, 1, STEP + 1, BIG);
	assert_int_equal(wf_world_close(), 0);
}

static void an_abort_needs_a_status(void **state)
{
	static const int wrong[] = { WEFT_OK, WEFT_UNAUTHENTICATED + 1, -1 };

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 1, NULL);
	for (size_t i = 0; i < WF_COUNT(wrong); i++) {
		assert_int_equal(weft_step_abort(wf_world_node(0), STEP,
						 (enum weft_status)wrong[i], WHY), -EINVAL);
		assert_non_null(strstr(weft_error(), "status"));
	}
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_abort_ends_what_is_pending_and_nothing_else),
		cmocka_unit_test(a_later_tensor_of_an_aborted_step_ends_at_once),
		cmocka_unit_test(the_receives_of_peers_end_as_well),
		cmocka_unit_test(a_step_may_be_aborted_in_the_middle_of_a_pull),
		cmocka_unit_test(the_first_that_a_peer_hears_is_the_abort),
		cmocka_unit_test(a_third_node_hears_through_the_second),
		cmocka_unit_test(each_node_keeps_its_own_of_two_aborts_at_once),
		cmocka_unit_test(the_first_abort_counts),
		cmocka_unit_test(a_peer_that_joins_late_is_told_of_the_abort),
		cmocka_unit_test(a_tensor_under_way_to_an_aborted_step_is_dropped),
		cmocka_unit_test(an_abort_ends_operations_whose_peer_does_not_hear_it),
		cmocka_unit_test(a_flood_of_aborts_ends),
		cmocka_unit_test(
			a_flood_of_aborts_ends_at_nodes_of_several_workers_that_take_any),
		cmocka_unit_test(
			an_abort_counts_once_its_peer_takes_part_also_at_a_crowded_node),
		cmocka_unit_test(an_abort_of_a_peer_that_takes_no_part_ends_nothing),
		cmocka_unit_test(an_abort_counts_once_its_peer_takes_part),
		cmocka_unit_test(aborts_that_a_merge_has_no_memory_for_are_tried_once_each),
		cmocka_unit_test(a_peer_that_was_received_from_takes_part),
		cmocka_unit_test(a_node_may_let_any_peer_abort_its_steps),
		cmocka_unit_test(ending_drops_what_nobody_has_received),
		cmocka_unit_test(ending_gives_up_the_idle_part_of_another_peer),
		cmocka_unit_test(ending_cancels_what_is_pending_here_and_refuses_what_comes_later),
		cmocka_unit_test(an_abort_says_more_than_an_end),
		cmocka_unit_test(a_tensor_that_nobody_receives_in_time_is_dropped),
		cmocka_unit_test(without_a_limit_tensors_wait_for_ever),
		cmocka_unit_test(tensors_that_a_killed_coordinator_leaves_behind_go),
		cmocka_unit_test(an_abort_needs_a_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
