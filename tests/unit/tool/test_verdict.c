/* SPDX-License-Identifier: BSD-2-Clause */
/* The verdict on a value that ran beside the present one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tool/verdict.h"

/* Rounds of two measures, each of which has one ratio in every round. */
static struct verdict_rounds steady(size_t rounds, double first, double second)
{
	struct verdict_rounds r = { .rounds = rounds, .measures = 2 };

	for (size_t i = 0; i < rounds; i++) {
		r.ratios[i][0] = first;
		r.ratios[i][1] = second;
	}
	return r;
}

static void kept(const struct verdict_rounds *r, const char *why)
{
	assert_string_equal(verdict_of(r).keep, why);
}

static void better(const struct verdict_rounds *r)
{
	assert_null(verdict_of(r).keep);
}

static void a_median_is_the_middle_or_the_mean_of_the_middle_two(void **state)
{
	double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };

	(void)state;
	assert_float_equal(verdict_median(odd, 3), 2, 1e-9);
	assert_float_equal(verdict_median(even, 4), 2.5, 1e-9);
	assert_float_equal(verdict_median(odd, 0), 0, 1e-9);
}

static void a_value_that_is_better_throughout_is_taken(void **state)
{
	struct verdict_rounds r = steady(4, 1.2, 1.25);
	struct verdict v = verdict_of(&r);

	(void)state;
	assert_null(v.keep);
	assert_float_equal(v.mean, 1.22474, 1e-4);
	assert_float_equal(v.worst, 1.2, 1e-9);
	assert_float_equal(v.gain, 0.40547, 1e-4);
	assert_int_equal(v.better, 4);
}

static void nothing_is_judged_by_few_rounds(void **state)
{
	struct verdict_rounds none = { .measures = 2 }, few = steady(3, 2, 2);

	(void)state;
	kept(&none, "not measured");
	kept(&few, "too few rounds");
}

static void a_gain_of_five_percent_is_noise(void **state)
{
	struct verdict_rounds noise = steady(9, 1.05, 1.05), more = steady(9, 1.06, 1.06);
	struct verdict_rounds loss = steady(9, 0.97, 1.01);

	(void)state;
	kept(&noise, "better by 5 % or less");
	better(&more);
	kept(&loss, "no better");
}

static void a_size_that_loses_more_than_ten_percent_outweighs_a_gain(void **state)
{
	struct verdict_rounds loses = steady(5, 1.5, 0.89), holds = steady(5, 1.5, 0.91);

	(void)state;
	kept(&loses, "worse by more than 10 % at one size");
	better(&holds);
}

static void one_round_may_be_worse_of_seven_and_none_of_six(void **state)
{
	struct verdict_rounds six = steady(6, 1.3, 1.3), seven = steady(7, 1.3, 1.3);

	(void)state;
	better(&six);
	six.ratios[2][0] = six.ratios[2][1] = 0.5;
	kept(&six, "better in too few rounds");
	seven.ratios[2][0] = seven.ratios[2][1] = 0.5;
	better(&seven);
	seven.ratios[5][0] = seven.ratios[5][1] = 0.5;
	kept(&seven, "better in too few rounds");
}

static void a_wild_round_does_not_move_the_medians(void **state)
{
	struct verdict_rounds r = steady(7, 1.01, 1.01);

	(void)state;
	r.ratios[3][0] = 40;
	kept(&r, "better by 5 % or less");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_median_is_the_middle_or_the_mean_of_the_middle_two),
		cmocka_unit_test(a_value_that_is_better_throughout_is_taken),
		cmocka_unit_test(nothing_is_judged_by_few_rounds),
		cmocka_unit_test(a_gain_of_five_percent_is_noise),
		cmocka_unit_test(a_size_that_loses_more_than_ten_percent_outweighs_a_gain),
		cmocka_unit_test(one_round_may_be_worse_of_seven_and_none_of_six),
		cmocka_unit_test(a_wild_round_does_not_move_the_medians),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
