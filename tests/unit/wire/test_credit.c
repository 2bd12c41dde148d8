/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/credit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define WINDOW 64

static void a_new_link_has_no_credit(void **state)
{
	struct wf_credit c = { 0 };

	(void)state;
	assert_int_equal(wf_credit_left(&c), 0);
	assert_int_equal(wf_credit_spend(&c, 1), -EAGAIN);
}

static void a_grant_heard_twice_counts_once(void **state)
{
	struct wf_credit c = { 0 };

	(void)state;
	assert_int_equal(wf_credit_update(&c, 4, WINDOW), 0);
	assert_int_equal(wf_credit_update(&c, 4, WINDOW), 0);
	assert_int_equal(wf_credit_left(&c), 4);
}

static void spending_more_than_is_left_changes_nothing(void **state)
{
	struct wf_credit c = { .granted = 3 };

	(void)state;
	assert_int_equal(wf_credit_spend(&c, 4), -EAGAIN);
	assert_int_equal(wf_credit_left(&c), 3);
	assert_int_equal(wf_credit_spend(&c, 3), 0);
	assert_int_equal(wf_credit_spend(&c, 1), -EAGAIN);
}

static void a_grant_overtaken_on_the_way_is_ignored(void **state)
{
	struct wf_credit c = { .granted = 10, .spent = 5 };

	(void)state;
	assert_int_equal(wf_credit_update(&c, 9, WINDOW), -ESTALE);
	/* Older than what was spent since: still no offence of the peer's. */
	assert_int_equal(wf_credit_update(&c, 2, WINDOW), -ESTALE);
	assert_int_equal(c.granted, 10);
	assert_int_equal(c.spent, 5);
}

static void a_grant_beyond_the_window_breaks_the_protocol(void **state)
{
	struct wf_credit c = { .granted = 10, .spent = 8 };

	(void)state;
	assert_int_equal(wf_credit_update(&c, 8 + WINDOW + 1, WINDOW), -EPROTO);
	/* As far ahead as a total can be without being behind. */
	assert_int_equal(wf_credit_update(&c, 10 + (uint32_t)INT32_MAX, WINDOW), -EPROTO);
	assert_int_equal(wf_credit_left(&c), 2);
	assert_int_equal(wf_credit_update(&c, 8 + WINDOW, WINDOW), 0);
	assert_int_equal(wf_credit_left(&c), WINDOW);
}

static void totals_wrap_without_a_seam(void **state)
{
	struct wf_credit c = { .granted = UINT32_MAX - 1, .spent = UINT32_MAX - 1 };

	(void)state;
	assert_int_equal(wf_credit_update(&c, 2, WINDOW), 0);
	assert_int_equal(wf_credit_left(&c), 4);
	assert_int_equal(wf_credit_spend(&c, 3), 0);
	assert_int_equal(c.spent, 1);
	assert_int_equal(wf_credit_update(&c, UINT32_MAX, WINDOW), -ESTALE);
	assert_int_equal(wf_credit_update(&c, 1 + WINDOW + 1, WINDOW), -EPROTO);
	assert_int_equal(wf_credit_left(&c), 1);
}

static void credits_given_back_can_not_be_spent(void **state)
{
	struct wf_credit c = { .granted = 2, .spent = UINT32_MAX };

	(void)state;
	assert_int_equal(wf_credit_return(&c, 2), 2);
	assert_int_equal(wf_credit_left(&c), 1);
	assert_int_equal(wf_credit_return(&c, UINT32_MAX), 1);
	assert_int_equal(wf_credit_return(&c, 1), 0);
	assert_int_equal(wf_credit_spend(&c, 1), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_link_has_no_credit),
		cmocka_unit_test(a_grant_heard_twice_counts_once),
		cmocka_unit_test(spending_more_than_is_left_changes_nothing),
		cmocka_unit_test(a_grant_overtaken_on_the_way_is_ignored),
		cmocka_unit_test(a_grant_beyond_the_window_breaks_the_protocol),
		cmocka_unit_test(totals_wrap_without_a_seam),
		cmocka_unit_test(credits_given_back_can_not_be_spent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
