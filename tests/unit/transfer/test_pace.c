/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "util/clock.h"

#define ROOM WF_PACE_BYTES_MAX
#define STILL_NS (100 * WF_NS_PER_MS)

/* A body that is fetched, and whether it was told to go on. */
struct fetch {
	struct wf_pace_share share;
	unsigned went_on;
	uint64_t next_bytes; /* asked for at once when it goes on; 0: nothing */
};

static struct wf_loop loop; /* its timers and its clock, which the tests move */
static struct wf_pace pace;
static struct fetch a, b, c;
static struct fetch urgent; /* of the highest priority */

static void go_on(struct wf_pace_share *share)
{
	struct fetch *f = WF_CONTAINER(share, struct fetch, share);

	f->went_on++;
	if (f->next_bytes)
		wf_pace_begin(share, f->next_bytes);
}

static int set_up(void **state)
{
	struct fetch *const fetches[] = { &a, &b, &c };

	(void)state;
	loop = (struct wf_loop){ .now_ns = WF_NS_PER_S };
	wf_pace_init(&pace, &loop);
	for (size_t i = 0; i < WF_COUNT(fetches); i++) {
		*fetches[i] = (struct fetch){ 0 };
		wf_pace_share_init(&fetches[i]->share, &pace, 0, go_on);
	}
	urgent = (struct fetch){ 0 };
	wf_pace_share_init(&urgent.share, &pace, WEFT_PRIORITY_MAX, go_on);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	wf_pace_fini(&pace);
	assert_int_equal(wf_timer_next_ns(&loop.timers), UINT64_MAX);
	return 0;
}

static void pass(uint64_t ns)
{
	loop.now_ns += ns;
	wf_timer_run(&loop.timers, loop.now_ns, SIZE_MAX);
}

static bool ask(struct fetch *f, uint64_t bytes)
{
	return wf_pace_admits(&f->share, bytes, 0);
}

static void all_together_get_the_room_and_no_byte_more(void **state)
{
	(void)state;
	assert_true(ask(&a, ROOM - 10));
	wf_pace_begin(&a.share, ROOM - 10);
	assert_true(ask(&b, 10));
	wf_pace_begin(&b.share, 10);
	assert_false(ask(&c, 1));
	assert_true(wf_pace_waits(&c.share));
	assert_false(wf_pace_waits(&b.share));
}

static void bytes_that_have_come_make_room_for_waiting_shares(void **state)
{
	(void)state;
	wf_pace_begin(&a.share, ROOM);
	assert_false(ask(&b, 10));
	wf_pace_end(&a.share, 9);
	assert_int_equal(b.went_on, 0);
	wf_pace_end(&a.share, 1);
	assert_int_equal(b.went_on, 1);
	assert_false(wf_pace_waits(&b.share));
}

static void the_share_that_has_waited_longest_goes_first_and_is_not_overtaken(void **state)
{
	(void)state;
	wf_pace_begin(&a.share, ROOM);
	assert_false(ask(&b, 100));
	assert_false(ask(&c, 1));
	wf_pace_end(&a.share, 50);
	assert_int_equal(b.went_on, 0);
	assert_int_equal(c.went_on, 0); /* there is room, but not for the first in line */
	wf_pace_end(&a.share, 50);
	assert_int_equal(b.went_on, 1);
}

static void a_share_that_asks_again_keeps_its_place(void **state)
{
	(void)state;
	wf_pace_begin(&a.share, ROOM);
	assert_false(ask(&b, 10));
	assert_false(ask(&c, 10));
	assert_false(ask(&b, 20));
	wf_pace_end(&a.share, 10);
	assert_int_equal(c.went_on, 0);
	wf_pace_end(&a.share, 10);
	assert_int_equal(b.went_on, 1);
}

static void one_alone_may_have_more_than_the_room(void **state)
{
	(void)state;
	assert_true(wf_pace_admits(&a.share, ROOM + 1, 2 * ROOM));
	wf_pace_begin(&a.share, ROOM + 1);
	assert_true(wf_pace_admits(&a.share, ROOM - 1, 2 * ROOM));
	assert_false(wf_pace_admits(&a.share, ROOM, 2 * ROOM));
	wf_pace_leave(&a.share);
	assert_false(ask(&b, 1));
}

static void a_share_that_left_the_line_is_not_told_to_go_on(void **state)
{
	(void)state;
	wf_pace_begin(&a.share, ROOM);
	assert_false(ask(&b, 1));
	assert_false(ask(&c, 1));
	wf_pace_leave(&b.share);
	wf_pace_end(&a.share, 1);
	assert_int_equal(b.went_on, 0);
	assert_int_equal(c.went_on, 1);
}

static void one_that_gets_nothing_for_long_leaves_its_room_to_others(void **state)
{
	(void)state;
	wf_pace_begin(&a.share, ROOM);
	pass(STILL_NS / 2);
	assert_false(ask(&b, ROOM));
	pass(STILL_NS - 1);
	assert_int_equal(b.went_on, 0);
	pass(1);
	assert_int_equal(b.went_on, 1);
}

static void one_that_moves_again_counts_again(void **state)
{
	(void)state;
	wf_pace_begin(&a.share, ROOM);
	assert_false(ask(&b, 10));
	pass(STILL_NS);
	assert_int_equal(b.went_on, 1);
	wf_pace_begin(&a.share, 5); /* while it stands still it takes no room */
	assert_true(ask(&c, ROOM));
	wf_pace_end(&a.share, 6);
	assert_false(ask(&c, 2));
	assert_true(ask(&b, 1));
	wf_pace_leave(&c.share);
	wf_pace_end(&a.share, 1);
	assert_true(ask(&c, 2));
	assert_false(ask(&c, 3));
}

static void one_that_moves_now_and_then_keeps_its_room(void **state)
{
	(void)state;
	wf_pace_begin(&a.share, ROOM);
	assert_false(ask(&b, 10));
	for (int i = 0; i < 5; i++) {
		pass(STILL_NS - 1);
		wf_pace_end(&a.share, 1);
	}
	assert_int_equal(b.went_on, 0);
}

static void nobody_looks_at_the_clock_when_nobody_waits(void **state)
{
	(void)state;
	wf_pace_begin(&a.share, ROOM);
	assert_int_equal(wf_timer_next_ns(&loop.timers), UINT64_MAX);
	assert_false(ask(&b, 1));
	assert_true(wf_timer_next_ns(&loop.timers) != UINT64_MAX);
	wf_pace_end(&a.share, ROOM);
	pass(STILL_NS);
	assert_int_equal(wf_timer_next_ns(&loop.timers), UINT64_MAX);
}

static void bytes_of_a_lower_priority_take_no_room_of_an_urgent_share(void **state)
{
	(void)state;
	wf_pace_begin(&a.share, ROOM);
	assert_true(ask(&urgent, ROOM));
	wf_pace_begin(&urgent.share, ROOM);
	assert_false(ask(&urgent, 1));
	assert_false(ask(&b, 1));
	assert_int_equal(wf_pace_bytes(&pace, 0), 2 * ROOM);
	wf_pace_end(&a.share, ROOM);
	assert_int_equal(b.went_on, 0); /* bytes of a higher priority do take room */
	wf_pace_end(&urgent.share, 2);
	assert_int_equal(urgent.went_on, 1);
	assert_int_equal(b.went_on, 1);
}

static void a_share_that_was_passed_over_for_long_goes_on_beyond_the_room(void **state)
{
	unsigned passes = 0;

	(void)state;
	urgent.next_bytes = a.next_bytes = MIB;
	wf_pace_begin(&urgent.share, ROOM);
	assert_false(ask(&a, MIB));
	while (!a.went_on) {
		assert_false(ask(&urgent, MIB));
		wf_pace_end(&urgent.share, MIB);
		assert_in_range(++passes, 1, WF_PRIORITY_PASSES);
	}
	assert_int_equal(passes, WF_PRIORITY_PASSES);
	assert_int_equal(wf_pace_bytes(&pace, 0), ROOM + MIB);
	assert_false(ask(&a, MIB));
}

#define ON_A_NEW_PACE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_NEW_PACE(all_together_get_the_room_and_no_byte_more),
		ON_A_NEW_PACE(bytes_that_have_come_make_room_for_waiting_shares),
		ON_A_NEW_PACE(the_share_that_has_waited_longest_goes_first_and_is_not_overtaken),
		ON_A_NEW_PACE(a_share_that_asks_again_keeps_its_place),
		ON_A_NEW_PACE(one_alone_may_have_more_than_the_room),
		ON_A_NEW_PACE(a_share_that_left_the_line_is_not_told_to_go_on),
		ON_A_NEW_PACE(one_that_gets_nothing_for_long_leaves_its_room_to_others),
		ON_A_NEW_PACE(one_that_moves_again_counts_again),
		ON_A_NEW_PACE(one_that_moves_now_and_then_keeps_its_room),
		ON_A_NEW_PACE(nobody_looks_at_the_clock_when_nobody_waits),
		ON_A_NEW_PACE(bytes_of_a_lower_priority_take_no_room_of_an_urgent_share),
		ON_A_NEW_PACE(a_share_that_was_passed_over_for_long_goes_on_beyond_the_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
