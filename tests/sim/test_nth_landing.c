/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every allocation, and every call of the fabric, fails in turn, as in test_nth: of a landing and
 * pushes into it.  Each operation ends once and in time, a push that ends well has its tensor
 * taken, whole and once, no slot is lost, and nothing is left.
 *
 * test_nth_landing SHAPE KIND N COUNT CODE does one of them again, as a failure prints it.
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
#define DEADLINE_NS (5 * S) /* far beyond what anything here takes */
#define SLOT_BYTES ((size_t)100 * KIB)
#define SLOTS 2
#define PUSHES 4

static struct weft_peer *peer;
static struct weft_landing *landing;
static struct weft_remote *remote;
static uint8_t memory[SLOTS * SLOT_BYTES], sources[PUSHES][SLOT_BYTES];
static struct wf_flight pushes[PUSHES];
static unsigned taken[PUSHES]; /* times that the tensor of each push was taken */
static uint64_t attempts;      /* numbers of an attempt are beyond those of all before */

static void push(unsigned i, size_t bytes)
{
	struct weft_push_options options = WEFT_PUSH_OPTIONS_INIT;
	int64_t shape = (int64_t)bytes;
	const struct weft_tensor t = { .data = sources[i], .device = { WEFT_CPU, 0 }, .ndim = 1,
				       .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };

	options.number = attempts * PUSHES + i;
	wf_world_fill(sources[i], bytes, options.number);
	options.op = wf_flight_begin(&pushes[i], DEADLINE_NS);
	taken[i] = 0;
	while (wf_nth_again(weft_push(remote, &t, &options, &pushes[i].op)))
		;
}

/* Take a tensor, if one comes soon, and give it back. */
static bool take(void)
{
	const struct weft_tensor *t;
	struct weft_op_options options;
	struct wf_flight f;
	uint64_t number;

	options = wf_flight_begin(&f, 20 * MS);
	while (wf_nth_again(weft_landing_next(landing, &options, &f.op)))
		;
	wf_flight_land(&f, 1, S);
	if (f.status == WEFT_OK) {
		t = weft_op_tensor(f.op, NULL);
		assert_int_equal(weft_op_landed(f.op, &number), 0);
		assert_int_equal(number / PUSHES, attempts);
		assert_true(wf_world_is_filled(t->data, (size_t)t->shape[0], number));
		assert_int_equal(taken[number % PUSHES]++, 0);
	}
	wf_flight_free(&f, 1);
	return f.status == WEFT_OK;
}

/* Returns whether all pushes, twice as many as there are slots, ended well. */
static bool push_and_take(void)
{
	uint64_t until_ns = wf_clock_now() + DEADLINE_NS + 2 * S;
	unsigned ended = 0;
	bool well = true;

	attempts++;
	for (unsigned i = 0; i < PUSHES; i++)
		push(i, i == 1 ? 0 : SLOT_BYTES - i);
	while (ended < PUSHES || take()) {
		if (wf_clock_now() > until_ns)
			fail_msg("a push does not end");
		(void)take();
		ended = 0;
		for (unsigned i = 0; i < PUSHES; i++)
			ended += pushes[i].outcomes;
	}
	for (unsigned i = 0; i < PUSHES; i++) {
		assert_int_equal(pushes[i].outcomes, 1);
		if (pushes[i].status == WEFT_OK)
			assert_int_equal(taken[i], 1);
		else if (!wf_nth_failed())
			fail_msg("with nothing amiss: %s", weft_op_message(pushes[i].op));
		else if (!*weft_op_message(pushes[i].op))
			fail_msg("%s without a sentence", weft_status_name(pushes[i].status));
		well &= pushes[i].status == WEFT_OK;
	}
	wf_flight_free(pushes, PUSHES);
	return well;
}

static void import(void)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);

	assert_int_equal(weft_landing_describe(landing, descriptor, &bytes), 0);
	while (wf_nth_again(weft_window_import(peer, descriptor, bytes, &remote)))
		;
}

static void run_script(unsigned shape)
{
	const struct wf_fake fake = { .seed = 1, .delay_min_ns = 5 * WF_NS_PER_US,
				      .delay_max_ns = 50 * WF_NS_PER_US, .veto = wf_nth_veto };
	unsigned number;

	attempts = 0;
	wf_world_lose_soon();
	setenv("WEFT_SLOTS", "24", 1);
	wf_world_open((enum wf_world_shape)shape, 0, &fake);
	for (unsigned i = 0; i < 2; i++)
		while (wf_nth_again(wf_world_try_add(&number)))
			;
	while (wf_nth_again(weft_peer_open(wf_world_node(1), weft_node_address(wf_world_node(0)),
					   &peer)))
		;
	while (wf_nth_again(weft_landing_open(wf_world_node(0), memory, SLOT_BYTES, SLOTS, &landing)))
		;
	import();
	wf_nth_try(push_and_take);
	wf_nth_try(push_and_take);
	weft_remote_close(remote);
	import();
	wf_nth_try(push_and_take);
	push(0, SLOT_BYTES);
	push(1, SLOT_BYTES);
	wf_world_pass(MS);
	assert_int_equal(weft_landing_close(landing), 0);
	wf_flight_land(pushes, 2, DEADLINE_NS + S);
	wf_flight_free(pushes, 2);
	weft_remote_close(remote);
	assert_int_equal(wf_world_close(), 0);
}

static const struct wf_nth_script script = {
	"test_nth_landing", wf_nth_shapes, { 1, 12 }, run_script,
};

int main(int argc, char **argv)
{
	return wf_nth_on_rails(&script, argc, argv);
}
