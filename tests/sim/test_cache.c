/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the program's that stays registered unasked, where registering is dear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "util/clock.h"

#define S WF_NS_PER_S
#define BYTES (20 * KIB) /* a body that is pulled */
#define TIMES 1000
#define BUFFERS 4

static uint8_t source[BUFFERS * BYTES], target[BUFFERS * BYTES];
static uint64_t step;

static int forget_settings(void **state)
{
	(void)state;
	return unsetenv("WEFT_CACHED_BYTES") || unsetenv("WEFT_CACHED_KEYS");
}

static void open_world(const char *cached_bytes)
{
	const struct wf_fake fake = { .seed = 1, .mr_mode = FI_MR_LOCAL };

	setenv("WEFT_CACHED_BYTES", cached_bytes, 1);
	setenv("WEFT_CACHED_KEYS", "yes", 1);
	wf_world_open(WF_WORLD_SHARED, 2, &fake);
	wf_world_connect(0, 1);
	step = 0;
}

/* Send @bytes from buffer @from to buffer @into, both whole unless @bytes says less. */
static void move(unsigned from, unsigned into, size_t bytes)
{
	struct wf_flight f[2];

	step++;
	wf_world_fill(source + from * BYTES, bytes, step);
	wf_flight_receive(&f[0], 1, 0, step, target + into * BYTES, bytes, 0);
	wf_flight_send(&f[1], 0, 1, step, source + from * BYTES, bytes, 0);
	wf_flight_land(f, WF_COUNT(f), 5 * S);
	for (unsigned i = 0; i < WF_COUNT(f); i++)
		assert_int_equal(f[i].status, WEFT_OK);
	assert_true(wf_world_is_filled(target + into * BYTES, bytes, step));
	wf_flight_free(f, WF_COUNT(f));
}

static void a_buffer_sent_a_thousand_times_is_registered_once(void **state)
{
	uint64_t before[2];

	(void)state;
	open_world("1M");
	for (unsigned i = 0; i < 2; i++)
		before[i] = wf_world_count(i).registrations;
	for (unsigned i = 0; i < TIMES; i++)
		move(0, 0, BYTES);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wf_world_count(i).registrations, before[i] + 1);
		assert_int_equal(wf_world_count(i).registration_evictions, 0);
	}
	assert_int_equal(wf_world_close(), 0);
}

static void nothing_is_kept_without_bytes_for_it(void **state)
{
	uint64_t before, bytes;

	(void)state;
	open_world("0");
	before = wf_world_count(0).registrations;
	bytes = wf_world_count(0).registered_bytes;
	for (unsigned i = 0; i < 3; i++)
		move(0, 0, BYTES);
	assert_int_equal(wf_world_count(0).registrations, before + 3);
	assert_int_equal(wf_world_count(0).registered_bytes, bytes);
	assert_int_equal(wf_world_close(), 0);
}

/* Unless the program says so: a reader's own registrations are kept, and no peer's key. */
static void no_key_outlives_its_operation(void **state)
{
	const struct wf_fake fake = { .seed = 1, .mr_mode = FI_MR_LOCAL };
	uint64_t before[2];

	(void)state;
	assert_int_equal(forget_settings(NULL), 0);
	wf_world_open(WF_WORLD_SHARED, 2, &fake);
	wf_world_connect(0, 1);
	for (unsigned i = 0; i < 2; i++)
		before[i] = wf_world_count(i).registrations;
	for (unsigned i = 0; i < 3; i++) {
		move(0, 0, BYTES);
		assert_false(wf_fake_is_open(source, BYTES));
	}
	assert_int_equal(wf_world_count(0).registrations, before[0] + 3);
	assert_int_equal(wf_world_count(1).registrations, before[1] + 1);
	assert_int_equal(wf_world_close(), 0);
}

static void memory_mapped_anew_is_registered_anew(void **state)
{
	uint64_t before, bytes;

	(void)state;
	open_world("1M");
	before = wf_world_count(0).registrations;
	bytes = wf_world_count(0).registered_bytes;
	move(0, 0, BYTES);
	wf_fake_changed(source + 100, 1);
	move(0, 0, BYTES);
	assert_int_equal(wf_world_count(0).registrations, before + 2);
	assert_int_equal(wf_world_count(0).registered_bytes, bytes + BYTES);
	/* A range that changed and is not used again leaves in the next turn. */
	wf_fake_changed(source, BYTES);
	wf_world_pass(S);
	assert_int_equal(wf_world_count(0).registered_bytes, bytes);
	assert_int_equal(wf_world_close(), 0);
}

/* Nobody receives what is sent, so that it is offered until its deadline. */
static void memory_that_changes_while_an_operation_uses_it_serves_no_other(void **state)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	int64_t shape = BYTES;
	struct weft_tensor tensor = { .data = source, .device = { WEFT_CPU, 0 }, .ndim = 1,
				      .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };
	uint64_t before, bytes;
	struct weft_op *op;

	(void)state;
	open_world("1M");
	before = wf_world_count(0).registrations;
	bytes = wf_world_count(0).registered_bytes;
	options.op.timeout_ns = S;
	assert_int_equal(weft_send(wf_world_peer(0, 1), TIMES, "", 0, &tensor, &options, &op), 0);
	wf_world_pass(S / 10);
	assert_false(weft_op_ended(op));
	assert_int_equal(wf_world_count(0).registrations, before + 1);
	wf_fake_changed(source, BYTES);
	move(0, 0, BYTES);
	assert_int_equal(wf_world_count(0).registrations, before + 2);
	assert_int_equal(wf_world_count(0).registered_bytes, bytes + 2 * BYTES);
	wf_world_pass(5 * S);
	assert_int_equal(weft_op_status(op), WEFT_DEADLINE_EXCEEDED);
	assert_int_equal(wf_world_count(0).registered_bytes, bytes + BYTES);
	weft_op_free(op);
	assert_int_equal(wf_world_close(), 0);
}

static void the_least_recently_used_makes_room(void **state)
{
	uint64_t before, bytes;

	(void)state;
	open_world("50K"); /* room for two */
	bytes = wf_world_count(0).registered_bytes;
	move(0, 0, BYTES);
	move(1, 0, BYTES);
	move(0, 0, BYTES);
	before = wf_world_count(0).registrations;
	move(2, 0, BYTES);
	assert_int_equal(wf_world_count(0).registration_evictions, 1);
	move(0, 0, BYTES);
	assert_int_equal(wf_world_count(0).registrations, before + 1);
	move(1, 0, BYTES);
	assert_int_equal(wf_world_count(0).registrations, before + 2);
	assert_int_equal(wf_world_count(0).registration_evictions, 2);
	assert_int_equal(wf_world_count(0).registered_bytes, bytes + 2 * BYTES);
	assert_int_equal(wf_world_close(), 0);
}

static void memory_in_use_makes_no_room(void **state)
{
	struct wf_flight f[2 * BUFFERS];
	uint64_t bytes;

	(void)state;
	open_world("50K"); /* room for two */
	bytes = wf_world_count(0).registered_bytes;
	for (unsigned i = 0; i < BUFFERS; i++)
		wf_flight_send(&f[i], 0, 1, i, source + i * BYTES, BYTES, 0);
	wf_world_pass(S / 10);
	assert_int_equal(wf_world_count(0).registered_bytes, bytes + BUFFERS * BYTES);
	assert_int_equal(wf_world_count(0).registration_evictions, 0);
	for (unsigned i = 0; i < BUFFERS; i++)
		wf_flight_receive(&f[BUFFERS + i], 1, 0, i, target + i * BYTES, BYTES, 0);
	wf_flight_land(f, WF_COUNT(f), 5 * S);
	for (unsigned i = 0; i < WF_COUNT(f); i++)
		assert_int_equal(f[i].status, WEFT_OK);
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_count(0).registered_bytes, bytes + 2 * BYTES);
	assert_int_equal(wf_world_close(), 0);
}

static void a_peer_gets_a_key_of_exactly_the_range_it_may_read(void **state)
{
	uint64_t before[2];

	(void)state;
	open_world("1M");
	move(0, 0, 2 * BYTES);
	for (unsigned i = 0; i < 2; i++)
		before[i] = wf_world_count(i).registrations;
	/* The reader's own use of a part needs nothing more. */
	move(0, 0, BYTES);
	assert_int_equal(wf_world_count(0).registrations, before[0] + 1);
	assert_int_equal(wf_world_count(1).registrations, before[1]);
	assert_int_equal(wf_world_close(), 0);
}

/* Open a world whose node 0 keeps two bodies, up to its limit.  Returns the bytes before those. */
static uint64_t open_at_limit(void)
{
	uint64_t bytes;

	open_world("1M");
	bytes = wf_world_count(0).registered_bytes;
	move(0, 0, BYTES);
	move(1, 0, BYTES);
	wf_fake_knobs()->mr_bytes_max = bytes + 2 * BYTES;
	return bytes;
}

static void kept_memory_gives_way_at_a_limit_of_the_system(void **state)
{
	uint64_t bytes = open_at_limit();

	(void)state;
	move(2, 0, BYTES);
	wf_fake_knobs()->mr_bytes_max = 0;
	assert_int_equal(wf_world_count(0).registered_bytes, bytes + BYTES);
	assert_int_equal(wf_world_count(0).registration_evictions, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void kept_memory_gives_way_to_memory_that_the_program_registers(void **state)
{
	uint64_t bytes = open_at_limit();
	struct weft_region *region;

	(void)state;
	/* The region is registered twice: for the node's own use, and for peers. */
	assert_int_equal(weft_register(wf_world_node(0), source + 2 * BYTES, BYTES, &region), 0);
	wf_fake_knobs()->mr_bytes_max = 0;
	assert_int_equal(wf_world_count(0).registered_bytes, bytes + 2 * BYTES);
	assert_int_equal(wf_world_count(0).registration_evictions, 2);
	assert_int_equal(weft_unregister(region), 0);
	assert_int_equal(wf_world_close(), 0);
}

static void registered_bytes_are_told_by_kind(void **state)
{
	struct weft_counters before, then;
	struct weft_region *region;

	(void)state;
	open_world("1M");
	before = wf_world_count(0);
	assert_int_equal(before.registered_bytes, before.registered_pool);
	move(0, 0, BYTES);
	assert_int_equal(weft_register(wf_world_node(0), source + BYTES, BYTES, &region), 0);
	then = wf_world_count(0);
	assert_int_equal(then.registered_cached, BYTES);
	assert_int_equal(then.registered_user, 2 * BYTES); /* for its own use, and for peers */
	assert_int_equal(then.registered_device, 0);
	assert_int_equal(then.pinned_bytes, 0);
	assert_int_equal(then.registered_bytes, then.registered_pool + 3 * BYTES);
	assert_int_equal(weft_unregister(region), 0);
	assert_int_equal(wf_world_count(0).registered_user, 0);
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_sent_a_thousand_times_is_registered_once),
		cmocka_unit_test(nothing_is_kept_without_bytes_for_it),
		cmocka_unit_test(no_key_outlives_its_operation),
		cmocka_unit_test(memory_mapped_anew_is_registered_anew),
		cmocka_unit_test(memory_that_changes_while_an_operation_uses_it_serves_no_other),
		cmocka_unit_test(the_least_recently_used_makes_room),
		cmocka_unit_test(memory_in_use_makes_no_room),
		cmocka_unit_test(a_peer_gets_a_key_of_exactly_the_range_it_may_read),
		cmocka_unit_test(registered_bytes_are_told_by_kind),
		cmocka_unit_test(kept_memory_gives_way_at_a_limit_of_the_system),
		cmocka_unit_test(kept_memory_gives_way_to_memory_that_the_program_registers),
	};

	return cmocka_run_group_tests(tests, NULL, forget_settings);
}
