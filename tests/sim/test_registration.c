/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the program's that stays registered, over a provider where registering is dear. */
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
#define BYTES (20 * KIB) /* a body that is pulled */
#define ROUNDS 50
#define EACH 20 /* sends of a round */

static uint8_t source[EACH * BYTES], target[EACH * BYTES];

static void open_world(void)
{
	const struct wf_fake fake = { .seed = 1, .mr_mode = FI_MR_LOCAL };

	wf_world_open(WF_WORLD_SHARED, 2, &fake);
	wf_world_connect(0, 1);
}

static void registered_memory_is_sent_a_thousand_times_without_a_registration(void **state)
{
	struct weft_region *from, *to;
	uint64_t before[2];

	(void)state;
	open_world();
	assert_int_equal(weft_register(wf_world_node(0), source, sizeof(source), &from), 0);
	assert_int_equal(weft_register(wf_world_node(1), target, sizeof(target), &to), 0);
	for (unsigned i = 0; i < 2; i++)
		before[i] = wf_world_count(i).registrations;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct wf_flight f[2 * EACH];

		wf_world_fill(source, sizeof(source), round);
		for (unsigned i = 0; i < EACH; i++) {
			wf_flight_receive(&f[i], 1, 0, round * EACH + i, target + i * BYTES, BYTES, 0);
			wf_flight_send(&f[EACH + i], 0, 1, round * EACH + i, source + i * BYTES,
				       BYTES, 0);
		}
		wf_flight_land(f, WF_COUNT(f), 5 * S);
		for (unsigned i = 0; i < WF_COUNT(f); i++)
			assert_int_equal(f[i].status, WEFT_OK);
		assert_true(wf_world_is_filled(target, sizeof(target), round));
		wf_flight_free(f, WF_COUNT(f));
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(wf_world_count(i).registrations, before[i]);
	assert_int_equal(weft_unregister(from), 0);
	assert_int_equal(weft_unregister(to), 0);
	assert_int_equal(wf_world_close(), 0);
}

static void memory_that_is_registered_again_is_counted(void **state)
{
	struct weft_region *first, *again;
	uint64_t before, then;

	(void)state;
	open_world();
	before = wf_world_count(0).registered_bytes;
	assert_int_equal(weft_register(wf_world_node(0), source, sizeof(source) / 2, &first), 0);
	then = wf_world_count(0).registered_bytes;
	assert_true(then > before);
	assert_int_equal(weft_register(wf_world_node(0), source, sizeof(source) / 2, &again), 0);
	assert_ptr_equal(again, first);
	assert_int_equal(wf_world_count(0).registered_bytes, then);
	assert_int_equal(weft_unregister(first), 0);
	assert_int_equal(wf_world_count(0).registered_bytes, then);
	assert_int_equal(weft_unregister(again), 0);
	assert_int_equal(wf_world_count(0).registered_bytes, before);
	assert_int_equal(weft_unregister(NULL), 0);
	assert_int_equal(wf_world_close(), 0);
}

/* The program may unmap a region as soon as it is unregistered, whatever lies in it. */
static void a_region_is_given_back_whole_though_parts_of_it_stay_registered(void **state)
{
	struct weft_region *whole, *part, *beside;
	uint64_t before, each;

	(void)state;
	open_world();
	before = wf_world_count(0).registered_bytes;
	assert_int_equal(weft_register(wf_world_node(0), source, 100, &part), 0);
	each = wf_world_count(0).registered_bytes - before;
	assert_int_equal(weft_register(wf_world_node(0), source, sizeof(source) / 2, &whole), 0);
	assert_ptr_not_equal(whole, part);
	assert_int_equal(weft_register(wf_world_node(0), source + 1, 100, &beside), 0);
	assert_ptr_not_equal(beside, whole);
	assert_int_equal(weft_unregister(whole), 0);
	assert_int_equal(wf_world_count(0).registered_bytes, before + 2 * each);
	assert_int_equal(weft_unregister(part), 0);
	assert_int_equal(weft_unregister(beside), 0);
	assert_int_equal(wf_world_count(0).registered_bytes, before);
	assert_int_equal(wf_world_close(), 0);
}

/* Nobody receives what is sent, so that it is offered until its deadline. */
static void a_region_stays_until_what_uses_it_has_ended(void **state)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	int64_t shape = BYTES;
	struct weft_tensor tensor = { .data = source, .device = { WEFT_CPU, 0 }, .ndim = 1,
				      .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };
	struct weft_region *region;
	struct weft_op *op;
	uint64_t before;

	(void)state;
	open_world();
	before = wf_world_count(0).registered_bytes;
	assert_int_equal(weft_register(wf_world_node(0), source, sizeof(source), &region), 0);
	options.op.timeout_ns = S;
	assert_int_equal(weft_send(wf_world_peer(0, 1), 1, "", 0, &tensor, &options, &op), 0);
	wf_world_pass(100 * MS);
	assert_false(weft_op_ended(op));
	assert_int_equal(weft_unregister(region), 0);
	assert_true(weft_op_ended(op));
	assert_int_equal(weft_op_status(op), WEFT_DEADLINE_EXCEEDED);
	assert_int_equal(wf_world_count(0).registered_bytes, before);
	weft_op_free(op);
	assert_int_equal(wf_world_close(), 0);
}

static void a_refused_registration_leaves_nothing(void **state)
{
	struct weft_region *region;
	uint64_t before;

	(void)state;
	open_world();
	before = wf_world_count(0).registered_bytes;
	wf_fake_knobs()->refuse = 1000;
	assert_int_equal(weft_register(wf_world_node(0), source, sizeof(source), &region), -ENOMEM);
	assert_non_null(strstr(weft_error(), "registering"));
	wf_fake_knobs()->refuse = 0;
	assert_int_equal(wf_world_count(0).registered_bytes, before);
	assert_int_equal(weft_register(wf_world_node(0), source, sizeof(source), &region), 0);
	assert_int_equal(weft_unregister(region), 0);
	assert_int_equal(wf_world_close(), 0);
}

static void a_node_closes_with_memory_that_is_registered(void **state)
{
	struct weft_region *region;

	(void)state;
	open_world();
	assert_int_equal(weft_register(wf_world_node(0), source, sizeof(source), &region), 0);
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registered_memory_is_sent_a_thousand_times_without_a_registration),
		cmocka_unit_test(memory_that_is_registered_again_is_counted),
		cmocka_unit_test(
			a_region_is_given_back_whole_though_parts_of_it_stay_registered),
		cmocka_unit_test(a_region_stays_until_what_uses_it_has_ended),
		cmocka_unit_test(a_refused_registration_leaves_nothing),
		cmocka_unit_test(a_node_closes_with_memory_that_is_registered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
