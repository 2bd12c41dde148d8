/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/priority.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define ALL ((1u << WF_PRIORITIES) - 1)

/* Give @count turns while queues @waiting have something, and count them by priority. */
static void give_turns(struct wf_priority *p, unsigned waiting, unsigned count,
		       unsigned turns[WF_PRIORITIES])
{
	while (count--) {
		unsigned next = wf_priority_next(p, waiting);

		assert_true(waiting & 1u << next);
		turns[next]++;
		wf_priority_took(p, waiting, next);
	}
}

static void the_highest_priority_that_waits_goes_first(void **state)
{
	struct wf_priority p = { 0 };

	(void)state;
	assert_int_equal(wf_priority_next(&p, 1), 0);
	assert_int_equal(wf_priority_next(&p, 1 | 4), 2);
	assert_int_equal(wf_priority_next(&p, ALL), WEFT_PRIORITY_MAX);
}

static void one_that_was_passed_over_so_often_has_the_next_turn(void **state)
{
	struct wf_priority p = { 0 };
	unsigned turns[WF_PRIORITIES] = { 0 };

	(void)state;
	give_turns(&p, 1 | 8, WF_PRIORITY_PASSES, turns);
	assert_int_equal(turns[3], WF_PRIORITY_PASSES);
	assert_int_equal(wf_priority_next(&p, 1 | 8), 0);
	wf_priority_took(&p, 1 | 8, 0);
	assert_int_equal(wf_priority_next(&p, 1 | 8), 3);
}

static void every_priority_gets_turns_while_the_highest_never_pauses(void **state)
{
	struct wf_priority p = { 0 };
	unsigned turns[WF_PRIORITIES] = { 0 };

	(void)state;
	give_turns(&p, ALL, 10 * (WF_PRIORITY_PASSES + 1), turns);
	for (unsigned i = 0; i < WEFT_PRIORITY_MAX; i++)
		assert_in_range(turns[i], 5, 10);
	assert_true(turns[WEFT_PRIORITY_MAX] > 10 * (WF_PRIORITY_PASSES + 1) * 3 / 4);
}

static void turns_do_not_pass_over_a_queue_that_has_nothing(void **state)
{
	struct wf_priority p = { 0 };
	unsigned turns[WF_PRIORITIES] = { 0 };

	(void)state;
	give_turns(&p, 8, 10 * WF_PRIORITY_PASSES, turns);
	assert_int_equal(wf_priority_next(&p, 1 | 8), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_highest_priority_that_waits_goes_first),
		cmocka_unit_test(one_that_was_passed_over_so_often_has_the_next_turn),
		cmocka_unit_test(every_priority_gets_turns_while_the_highest_never_pauses),
		cmocka_unit_test(turns_do_not_pass_over_a_queue_that_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
