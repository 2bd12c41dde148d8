/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/depth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/*
 * A way of @round_ns there and back, on which a chunk takes @chunk_ns: how long each of
 * @count reads takes that are always under way.
 */
static uint64_t took_ns(uint64_t round_ns, uint64_t chunk_ns, uint32_t count)
{
	return WF_MAX(round_ns + chunk_ns, count * chunk_ns);
}

/* What it comes to after bodies of many chunks. */
static uint32_t learned(struct wf_depth *d, uint64_t round_ns, uint64_t chunk_ns)
{
	wf_depth_learn(d, 1, round_ns + chunk_ns);
	for (unsigned i = 0; i < 100; i++)
		wf_depth_learn(d, d->count, took_ns(round_ns, chunk_ns, d->count));
	return d->count;
}

static void where_two_keep_the_wire_busy_two_it_stays(void **state)
{
	struct wf_depth d = wf_depth(2);

	(void)state;
	assert_int_equal(learned(&d, 10000, 100000), 2);
}

static void a_long_way_gets_as_many_as_fill_it_and_no_more(void **state)
{
	struct wf_depth d = wf_depth(2);
	uint32_t count = learned(&d, 900000, 100000);

	(void)state;
	/* 10 are on the way and back; some more stand in line. */
	assert_in_range(count, 10, 13);
}

static void there_are_never_more_than_the_most(void **state)
{
	struct wf_depth d = wf_depth(2);

	(void)state;
	assert_int_equal(learned(&d, 1000000000, 1), WF_DEPTH_MAX);
}

static void when_the_way_gets_shorter_there_are_fewer_again(void **state)
{
	struct wf_depth d = wf_depth(2);

	(void)state;
	learned(&d, 1000000, 100000);
	assert_int_equal(learned(&d, 10000, 100000), 2);
}

static void nothing_is_known_before_one_was_alone(void **state)
{
	struct wf_depth d = wf_depth(2);

	(void)state;
	wf_depth_learn(&d, 2, 1);
	assert_int_equal(d.count, 2);
}

static void one_that_was_among_others_than_are_meant_says_nothing(void **state)
{
	struct wf_depth d = wf_depth(2);

	(void)state;
	wf_depth_learn(&d, 1, 1000);
	wf_depth_learn(&d, 3, 1000);
	wf_depth_learn(&d, 0, 1000);
	assert_int_equal(d.count, 2);
}

static void one_at_a_time_it_stays(void **state)
{
	struct wf_depth d = wf_depth(1);

	(void)state;
	wf_depth_learn(&d, 1, 1000);
	wf_depth_learn(&d, 1, 10);
	assert_int_equal(d.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_two_keep_the_wire_busy_two_it_stays),
		cmocka_unit_test(a_long_way_gets_as_many_as_fill_it_and_no_more),
		cmocka_unit_test(there_are_never_more_than_the_most),
		cmocka_unit_test(when_the_way_gets_shorter_there_are_fewer_again),
		cmocka_unit_test(nothing_is_known_before_one_was_alone),
		cmocka_unit_test(one_that_was_among_others_than_are_meant_says_nothing),
		cmocka_unit_test(one_at_a_time_it_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
