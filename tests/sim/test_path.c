/* SPDX-License-Identifier: BSD-2-Clause */
/* weft_op_path tells how bytes really went, and nothing that this side does not know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "util/clock.h"

#define US WF_NS_PER_US
#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define SMALL 300
#define MIDDLE (40 * KIB) /* eager over tcp, in three frames of 16 KiB */
#define BIG (3 * MIB + 17)

static uint8_t source[BIG], target[BIG];

/* Everything takes a millisecond one way. */
static const struct wf_fake slow = { .seed = 1, .delay_min_ns = MS, .delay_max_ns = MS };

static struct weft_path path_of(const struct wf_flight *f)
{
	struct weft_path path = { .size = sizeof(path) };

	assert_int_equal(weft_op_path(f->op, &path), 0);
	return path;
}

/* From node 0 to node 1, which know each other; f[0] is the receive. */
static void move(struct wf_flight *f, size_t bytes, uint64_t pause_ns)
{
	wf_world_fill(source, bytes, bytes);
	wf_flight_receive(&f[0], 1, 0, 7, target, bytes, 0);
	wf_world_pass(pause_ns);
	wf_flight_send(&f[1], 0, 1, 7, source, bytes, 0);
	wf_flight_land(f, 2, 20 * S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
}

static void a_pull_is_told_by_its_reads(void **state)
{
	struct weft_path in, out;
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_world_connect(0, 1);
	move(f, BIG, 50 * MS);
	in = path_of(&f[0]);
	out = path_of(&f[1]);

	assert_string_equal(in.provider, "tcp");
	assert_string_equal(in.device, "lo");
	assert_string_equal(in.way, "pull");
	assert_string_equal(in.checksum, "none");
	assert_int_equal(in.bytes, BIG);
	assert_int_equal(in.copies, 0);
	assert_int_equal(in.chunks, 4);
	assert_int_equal(in.retries, 0);
	/* The offer takes a millisecond, a read two, and there are two reads at once. */
	assert_in_range(in.queued_ns, 1, MS - 1);
	assert_in_range(in.matched_ns, 51 * MS, 53 * MS);
	assert_in_range(in.first_byte_ns, in.matched_ns + 2 * MS, in.matched_ns + 5 * MS);
	assert_in_range(in.last_byte_ns, in.first_byte_ns + 2 * MS, in.first_byte_ns + 5 * MS);
	assert_in_range(in.done_ns, in.last_byte_ns, in.last_byte_ns + 2 * MS);

	assert_string_equal(out.device, "lo");
	assert_string_equal(out.way, "pull");
	assert_int_equal(out.chunks, 4);
	assert_int_equal(out.retries, 0);
	assert_in_range(out.queued_ns, 1, MS);
	/* When it was read only the reader knows. */
	assert_int_equal(out.matched_ns, 0);
	assert_int_equal(out.first_byte_ns, 0);
	assert_int_equal(out.last_byte_ns, 0);
	assert_in_range(out.done_ns, 6 * MS, 20 * MS);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void with_a_checksum_the_owner_hears_when_it_is_read(void **state)
{
	struct weft_path in, out;
	struct wf_flight f[2];

	(void)state;
	assert_int_equal(setenv("WEFT_CHECKSUM", "yes", 1), 0);
	wf_world_open(WF_WORLD_SHARED, 2, &slow);
	wf_world_connect(0, 1);
	wf_world_connect(1, 0);
	move(f, BIG, 0);
	in = path_of(&f[0]);
	out = path_of(&f[1]);

	assert_string_equal(in.checksum, "xxh3");
	assert_string_equal(out.checksum, "xxh3");
	assert_string_equal(out.device, "fake0");
	assert_in_range(out.matched_ns, out.queued_ns + 2 * MS, out.queued_ns + 5 * MS);
	assert_in_range(out.matched_ns, 1, out.done_ns);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void an_eager_body_is_told_by_its_frames(void **state)
{
	static const struct {
		size_t bytes;
		unsigned frames;
	} rows[] = { { SMALL, 1 }, { MIDDLE, 3 } };
	struct weft_path in, out;
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_world_connect(0, 1);
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		move(f, rows[i].bytes, 10 * MS);
		in = path_of(&f[0]);
		out = path_of(&f[1]);

		assert_string_equal(out.way, "eager");
		assert_int_equal(out.copies, 1);
		assert_int_equal(out.chunks, rows[i].frames);
		assert_in_range(out.queued_ns, 1, out.first_byte_ns);
		assert_in_range(out.first_byte_ns, 1, out.last_byte_ns);
		assert_in_range(out.last_byte_ns, 1, out.done_ns);
		assert_int_equal(out.matched_ns, 0);

		assert_string_equal(in.way, "eager");
		assert_int_equal(in.chunks, rows[i].frames);
		assert_in_range(in.matched_ns, 11 * MS, in.done_ns);
		assert_int_equal(in.last_byte_ns, in.matched_ns);
		assert_int_equal(in.first_byte_ns, rows[i].frames == 1 ? in.last_byte_ns : 0);
		wf_flight_free(f, 2);
	}
	assert_int_equal(wf_world_close(), 0);
}

static void a_body_there_before_the_receive_counts_as_1(void **state)
{
	struct weft_path in;
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_world_connect(0, 1);
	wf_flight_send(&f[1], 0, 1, 7, source, SMALL, 0);
	wf_world_pass(S);
	wf_flight_receive(&f[0], 1, 0, 7, target, SMALL, 0);
	wf_flight_land(f, 2, S);
	in = path_of(&f[0]);
	assert_int_equal(in.first_byte_ns, 1);
	assert_int_equal(in.last_byte_ns, 1);
	assert_string_equal(in.provider, "tcp");
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static bool reads_are_under_way(void *ctx)
{
	(void)ctx;
	return wf_fake_is_read(source, BIG);
}

static void a_rail_that_fails_is_told_by_retries(void **state)
{
	struct weft_path in, out;
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_world_connect(0, 1);
	wf_world_fill(source, BIG, BIG);
	wf_flight_receive(&f[0], 1, 0, 7, target, BIG, 0);
	wf_flight_send(&f[1], 0, 1, 7, source, BIG, 0);
	/* The first two; the next two fail. */
	assert_true(wf_world_run(reads_are_under_way, NULL, S));
	wf_fake_knobs()->fail = 1000;
	wf_world_pass(3 * MS);
	wf_fake_knobs()->fail = 0;
	wf_flight_land(f, 2, 20 * S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_true(wf_world_is_filled(target, BIG, BIG));
	in = path_of(&f[0]);
	out = path_of(&f[1]);
	assert_int_equal(in.chunks, 4);
	assert_in_range(in.retries, 1, 3);
	assert_int_equal(out.chunks, 4);
	assert_in_range(out.retries, 1, 2);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

/* The mirror sends back what it gets, so the two ways are equally long but for what is held. */
static void a_call_tells_of_both_ways(void **state)
{
	struct weft_path path;
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_world_connect(0, 1);
	wf_world_hold(1, true);
	wf_flight_call(&f, 0, 1, source, BIG, 0);
	wf_world_pass(100 * MS);
	wf_world_hold(1, false);
	wf_flight_land(&f, 1, S);
	path = path_of(&f);

	assert_string_equal(path.way, "pull");
	assert_in_range(path.bytes, BIG, BIG + 10); /* packed */
	assert_int_equal(path.chunks, 4);
	assert_int_equal(path.copies, 1);
	assert_in_range(path.queued_ns, 1, MS);
	assert_in_range(path.matched_ns, 100 * MS, 103 * MS);
	assert_in_range(path.first_byte_ns, path.matched_ns + 2 * MS, path.matched_ns + 5 * MS);
	assert_in_range(path.last_byte_ns, path.first_byte_ns + 2 * MS, path.done_ns);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void a_body_that_never_moved_has_no_path(void **state)
{
	struct weft_path path;
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_flight_receive(&f, 1, 1, 7, target, SMALL, 20 * MS);
	wf_flight_land(&f, 1, S);
	assert_int_equal(f.status, WEFT_DEADLINE_EXCEEDED);
	path = path_of(&f);
	assert_string_equal(path.provider, "");
	assert_string_equal(path.device, "");
	assert_string_equal(path.way, "none");
	assert_int_equal(path.bytes, 0);
	assert_int_equal(path.chunks, 0);
	assert_int_equal(path.matched_ns, 0);
	assert_in_range(path.done_ns, 20 * MS, 25 * MS);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

/* A program built before the struct grew gets what it knows, and nothing beyond. */
static void a_shorter_struct_is_filled_as_far_as_it_goes(void **state)
{
	struct weft_path path;
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, &slow);
	wf_world_connect(0, 1);
	move(f, SMALL, 0);
	memset(&path, 0x5a, sizeof(path));
	path.size = offsetof(struct weft_path, device);
	assert_int_equal(weft_op_path(f[0].op, &path), 0);
	assert_string_equal(path.way, "eager");
	for (size_t i = path.size; i < sizeof(path); i++)
		assert_int_equal(((uint8_t *)&path)[i], 0x5a);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pull_is_told_by_its_reads),
		cmocka_unit_test(with_a_checksum_the_owner_hears_when_it_is_read),
		cmocka_unit_test(an_eager_body_is_told_by_its_frames),
		cmocka_unit_test(a_body_there_before_the_receive_counts_as_1),
		cmocka_unit_test(a_rail_that_fails_is_told_by_retries),
		cmocka_unit_test(a_call_tells_of_both_ways),
		cmocka_unit_test(a_body_that_never_moved_has_no_path),
		cmocka_unit_test(a_shorter_struct_is_filled_as_far_as_it_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
