/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every allocation, and every call of the fabric, fails in turn, as in test_nth: of a broadcast to
 * two receivers, of which one passes the body on to the other.  Each operation ends once and in
 * time, a receive that ends well has the bytes, the broadcast ends as its members do, and nothing
 * is left.
 *
 * test_nth_casting SHAPE KIND N COUNT CODE does one of them again, as a failure prints it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/nth_script.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define DEADLINE_NS (5 * S)       /* far beyond what anything here takes */
#define BYTES ((size_t)600 * KIB) /* three pieces */
#define RECEIVERS 2               /* nodes 1 and 2; node 0 sends */
#define CANARY 0xee

static struct weft_peer *peers[RECEIVERS];   /* the receivers, as node 0 knows them */
static struct weft_peer *senders[RECEIVERS]; /* node 0, as the receivers know it */
static struct wf_flight broadcast, receives[RECEIVERS];
static uint8_t source[BYTES], targets[RECEIVERS][BYTES];
static uint64_t step;  /* a new one for every attempt */
static bool passed_on; /* a receiver has read the other */

/* Operations. */

static void receive(unsigned i)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	int64_t shape = BYTES;
	struct weft_tensor t = { .data = targets[i], .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };

	memset(targets[i], 0, BYTES);
	options.op = wf_flight_begin(&receives[i], DEADLINE_NS);
	options.flags = WEFT_RELAY;
	while (wf_nth_again(weft_recv(wf_world_node(i + 1), senders[i], step, "key", 3, &t, &options,
				      &receives[i].op)))
		;
}

/* Send shared memory to the first @count receivers, and give it up. */
static void begin(unsigned count, unsigned flags)
{
	struct weft_broadcast_options options = WEFT_BROADCAST_OPTIONS_INIT;
	int64_t shape = BYTES;
	struct weft_tensor t = { .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };

	while (wf_nth_again(weft_alloc(wf_world_node(0), BYTES, &t.data)))
		;
	wf_world_fill(source, BYTES, ++step);
	memcpy(t.data, source, BYTES);
	for (unsigned i = 0; i < RECEIVERS; i++)
		receive(i);
	options.op = wf_flight_begin(&broadcast, DEADLINE_NS);
	options.op.flags = flags;
	options.flags = WEFT_SHARE;
	while (wf_nth_again(weft_broadcast(peers, count, step, "key", 3, &t, &options,
					   &broadcast.op)))
		;
	weft_free(wf_world_node(0), t.data);
}

static bool have_ended(void *none)
{
	bool all = broadcast.outcomes;

	(void)none;
	for (unsigned i = 0; i < RECEIVERS; i++) {
		passed_on |= wf_fake_is_read(targets[i], BYTES);
		all &= receives[i].outcomes > 0;
	}
	return all;
}

/* Did @f end well?  Else something must have failed, and the operation says so. */
static bool ended_well(const struct wf_flight *f)
{
	assert_int_equal(f->outcomes, 1);
	if (f->status == WEFT_OK)
		return true;
	if (!wf_nth_failed())
		fail_msg("with nothing amiss: %s", weft_op_message(f->op));
	if (!*weft_op_message(f->op))
		fail_msg("%s without a sentence", weft_status_name(f->status));
	return false;
}

/* Assert that the broadcast to @count receivers ended as its members did.  Returns whether all is well. */
static bool check_outcomes(unsigned count)
{
	enum weft_status status, first = WEFT_OK;

	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(weft_broadcast_outcome(broadcast.op, i, &status, NULL), 0);
		if (first == WEFT_OK)
			first = status;
	}
	assert_int_equal(broadcast.status, first);
	return ended_well(&broadcast);
}

/* Wait for all operations, the broadcast of @count receivers.  Returns whether all has gone well. */
static bool land(unsigned count)
{
	bool well;

	if (!wf_world_run(have_ended, NULL, DEADLINE_NS + 2 * S))
		fail_msg("an operation does not end");
	well = check_outcomes(count);
	for (unsigned i = 0; i < RECEIVERS; i++) {
		if (ended_well(&receives[i]))
			assert_same_content(targets[i], source, BYTES);
		else
			well = false;
		assert_false(wf_fake_is_open(targets[i], BYTES));
		memset(targets[i], CANARY, BYTES);
		wf_flight_free(&receives[i], 1);
	}
	wf_flight_free(&broadcast, 1);
	for (unsigned i = 0; i <= RECEIVERS; i++)
		while (wf_nth_again(weft_step_end(wf_world_node(i), step)))
			;
	return well;
}

/* Attempts: each does something, and says whether all went well. */

static bool pass_on(void)
{
	begin(RECEIVERS, 0);
	return land(RECEIVERS);
}

static bool pass_on_with_checksums(void)
{
	begin(RECEIVERS, WEFT_CHECKSUM);
	return land(RECEIVERS);
}

static bool add_a_peer(void)
{
	begin(1, 0);
	while (wf_nth_again(weft_broadcast_add(broadcast.op, peers[1])))
		;
	return land(RECEIVERS);
}

/* The script. */

static void open_peer(unsigned from, unsigned to, struct weft_peer **peer)
{
	while (wf_nth_again(weft_peer_open(wf_world_node(from), weft_node_address(wf_world_node(to)),
					   peer)))
		;
}

static void open_nodes(enum wf_world_shape shape)
{
	const struct wf_fake fake = { .seed = 1, .delay_min_ns = 5 * WF_NS_PER_US,
				      .delay_max_ns = 50 * WF_NS_PER_US, .veto = wf_nth_veto };
	unsigned number;

	wf_world_lose_soon();
	setenv("WEFT_SLOTS", "24", 1);
	setenv("WEFT_CHECKSUM", "no", 1);
	wf_world_open(shape, 0, &fake);
	for (unsigned i = 0; i <= RECEIVERS; i++)
		while (wf_nth_again(wf_world_try_add(&number)))
			;
	for (unsigned i = 0; i < RECEIVERS; i++) {
		open_peer(0, i + 1, &peers[i]);
		open_peer(i + 1, 0, &senders[i]);
	}
}

/* The sender leaves with work under way, then the others: all of it ends. */
static void close_nodes(void)
{
	begin(RECEIVERS, 0);
	wf_world_pass(MS);
	wf_world_leave(0);
	assert_int_equal(broadcast.outcomes, 1);
	for (unsigned i = 0; i < RECEIVERS; i++) {
		wf_world_leave(i + 1);
		assert_int_equal(receives[i].outcomes, 1);
	}
	wf_flight_free(receives, RECEIVERS);
	wf_flight_free(&broadcast, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void run_script(unsigned shape)
{
	step = 0;
	passed_on = false;
	open_nodes((enum wf_world_shape)shape);
	/* The receivers come to know each other in the first. */
	wf_nth_try(pass_on);
	wf_nth_try(pass_on);
	wf_nth_try(pass_on_with_checksums);
	wf_nth_try(add_a_peer);
	if (!wf_nth_failed())
		assert_true(passed_on);
	close_nodes();
}

static const struct wf_nth_script script = {
	"test_nth_casting", wf_nth_shapes, { 1, 12 }, run_script,
};

int main(int argc, char **argv)
{
	return wf_nth_on_rails(&script, argc, argv);
}
