/* SPDX-License-Identifier: BSD-2-Clause */
/* The beginning of a long body, which a receive tells of while the rest is on its way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define STEP 3
#define BYTES (12 * MIB)
#define EAGER_BYTES 1000

static uint8_t source[BYTES], target[BYTES];

static struct {
	unsigned calls;
	uint64_t bytes;
} told;

static void came(void *arg, const struct weft_tensor *tensor, uint64_t bytes)
{
	assert_ptr_equal(arg, &told);
	assert_true(bytes > told.bytes && bytes <= BYTES);
	assert_int_equal(tensor->shape[0], BYTES);
	assert_same_content((uint8_t *)tensor->data + told.bytes, source + told.bytes,
			    bytes - told.bytes);
	told.bytes = bytes;
	told.calls++;
}

/* Node 1 sends @bytes to node 0, which tells of their beginning. */
static void begin(struct wf_flight f[2], size_t bytes, void *into)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	int64_t shape = (int64_t)bytes;
	struct weft_tensor t = { .data = into, .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };

	memset(&told, 0, sizeof(told));
	memset(target, 0, sizeof(target));
	options.op = wf_flight_begin(&f[0], 20 * S);
	options.came = came;
	options.came_arg = &told;
	assert_int_equal(weft_recv(wf_world_node(0), wf_world_peer(0, 1), STEP, "", 0,
				   into ? &t : NULL, &options, &f[0].op), 0);
	wf_flight_send(&f[1], 1, 0, STEP, source, bytes, 20 * S);
}

static void end(struct wf_flight f[2])
{
	wf_flight_land(f, 2, 20 * S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	assert_same_content(weft_op_tensor(f[0].op, NULL)->data, source, BYTES);
	wf_flight_free(f, 2);
	wf_world_end();
}

static void open_world(enum wf_world_shape shape)
{
	wf_world_open(shape, 2, NULL);
	wf_world_fill(source, sizeof(source), 1);
}

static void a_long_body_is_told_of_while_it_comes(void **state)
{
	static const enum wf_world_shape shapes[] = {
		WF_WORLD_CONNECTED, WF_WORLD_SHARED, WF_WORLD_SAME_HOST, WF_WORLD_LANES,
	};
	struct wf_flight f[2];

	(void)state;
	for (size_t s = 0; s < WF_COUNT(shapes); s++) {
		open_world(shapes[s]);
		begin(f, BYTES, s % 2 ? NULL : target);
		wf_flight_land(&f[0], 1, 20 * S);
		assert_true(told.calls > 3);
		end(f);
	}
}

static bool has_come_half(void *none)
{
	(void)none;
	return told.bytes >= BYTES / 2;
}

static void no_byte_is_told_of_twice_where_the_rail_fails_between(void **state)
{
	struct wf_flight f[2];
	uint64_t bytes;

	(void)state;
	for (size_t s = 0; s < WF_COUNT(wf_world_shapes); s++) {
		open_world(wf_world_shapes[s]);
		begin(f, BYTES, target);
		assert_true(wf_world_run(has_come_half, NULL, 20 * S));
		wf_world_break_rail(0, 1, true);
		wf_world_pass(20 * MS);
		bytes = told.bytes;
		wf_world_break_rail(0, 1, false);
		wf_flight_land(f, 2, 20 * S);
		assert_true(told.bytes >= bytes);
		end(f);
	}
}

static void a_short_body_has_no_beginning(void **state)
{
	struct wf_flight f[2];

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	begin(f, EAGER_BYTES, target);
	wf_flight_land(f, 2, S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(told.calls, 0);
	wf_flight_free(f, 2);
	wf_world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_body_is_told_of_while_it_comes),
		cmocka_unit_test(no_byte_is_told_of_twice_where_the_rail_fails_between),
		cmocka_unit_test(a_short_body_has_no_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
