/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots of a landing and their senders, without a network.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/shares.h"

static unsigned long looks; /* of shares.c at a list */

/* Returns wf_list_empty() of @list, and counts the look. */
static bool count_look(const struct wf_list *list)
{
	looks++;
	return wf_list_empty(list);
}

#define wf_list_empty count_look
#include "core/shares.c"
#undef wf_list_empty

static void wake(struct wf_share *share)
{
	(void)share;
}

static bool is_same(const struct wf_share *share, const void *ctx)
{
	return share == ctx;
}

static void join(struct wf_shares *s, struct wf_share *share)
{
	assert_int_equal(wf_shares_join(s, share, is_same, share), 0);
}

static void free_slots_go_to_the_sender_with_the_fewest(void **state)
{
	static struct wf_shares_told told;
	struct wf_share first, second;
	struct wf_shares s;

	(void)state;
	assert_int_equal(wf_shares_init(&s, 4, wake), 0);
	join(&s, &first);
	wf_shares_tell(&s, &first, &told);
	assert_int_equal(told.count, 4);
	join(&s, &second);
	wf_shares_tell(&s, &first, &told);
	assert_int_equal(told.withdrawn_count, 2);
	wf_shares_tell(&s, &second, &told);
	assert_int_equal(told.count, 2);
	wf_shares_leave(&s, &first);
	wf_shares_tell(&s, &second, &told);
	assert_int_equal(told.count, 2);
	wf_shares_leave(&s, &second);
	wf_shares_fini(&s);
}

/* A slot is not withdrawn twice before the first holder has heard of it: who comes then waits. */
static void a_late_sender_gets_a_slot_once_withdrawals_are_told(void **state)
{
	static struct wf_shares_told told, first_told;
	struct wf_share first, second, third;
	struct wf_shares s;

	(void)state;
	assert_int_equal(wf_shares_init(&s, 4, wake), 0);
	join(&s, &first);
	wf_shares_tell(&s, &first, &first_told);
	join(&s, &second);
	wf_shares_tell(&s, &second, &told);
	assert_int_equal(told.count, 2);
	for (size_t i = 0, taken = 0; i < first_told.count && taken < 2; i++)
		taken += wf_shares_take(&s, first_told.numbers[i], first_told.serials[i], is_same,
					&first);
	join(&s, &third);
	wf_shares_tell(&s, &third, &told);
	assert_int_equal(told.count, 0);
	wf_shares_tell(&s, &first, &told);
	assert_int_equal(told.withdrawn_count, 2);
	wf_shares_tell(&s, &third, &told);
	assert_int_equal(told.count, 1);
	wf_shares_tell(&s, &second, &told);
	assert_int_equal(told.withdrawn_count, 1);
	wf_shares_leave(&s, &third);
	wf_shares_leave(&s, &second);
	wf_shares_leave(&s, &first);
	wf_shares_fini(&s);
}

/* Half of the slots move; the looks for each must not grow with the length of what was told. */
static void a_sender_that_joins_costs_few_looks_for_each_slot_that_moves(void **state)
{
	static struct wf_shares_told told;
	struct wf_share first, second;
	struct wf_shares s;

	(void)state;
	assert_int_equal(wf_shares_init(&s, WF_SHARES_MAX, wake), 0);
	join(&s, &first);
	do
		wf_shares_tell(&s, &first, &told);
	while (told.count);
	looks = 0;
	join(&s, &second);
	assert_int_equal(second.held, WF_SHARES_MAX / 2);
	assert_in_range(looks, 1, 20 * WF_SHARES_MAX);
	wf_shares_leave(&s, &second);
	wf_shares_leave(&s, &first);
	wf_shares_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_slots_go_to_the_sender_with_the_fewest),
		cmocka_unit_test(a_late_sender_gets_a_slot_once_withdrawals_are_told),
		cmocka_unit_test(a_sender_that_joins_costs_few_looks_for_each_slot_that_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
