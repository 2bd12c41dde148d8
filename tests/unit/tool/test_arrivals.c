/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrivals of a Poisson process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tool/arrivals.h"

#define NS_PER_S 1000000000ull
#define START_NS (3 * NS_PER_S)
#define COUNT    100000u /* the mean of so many is within 1 % of its limit by three deviations */

static void the_first_arrival_is_at_the_start(void **state)
{
	struct arrivals a;

	(void)state;
	arrivals_init(&a, 10, START_NS);
	assert_int_equal(a.due_ns, START_NS);
}

static void arrivals_are_as_many_in_a_second_as_asked_for(void **state)
{
	static const uint64_t rates[] = { 1, 3, 1000, 777777, ARRIVALS_RATE_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct arrivals a;
		double mean_ns;

		arrivals_init(&a, rates[i], START_NS);
		for (unsigned k = 0; k < COUNT; k++)
			arrivals_next(&a);
		mean_ns = (double)(a.due_ns - START_NS) / COUNT;
		assert_true(mean_ns * (double)rates[i] > 0.99 * NS_PER_S);
		assert_true(mean_ns * (double)rates[i] < 1.01 * NS_PER_S);
	}
}

static void intervals_are_spread_as_those_of_callers_who_know_nothing_of_each_other(void **state)
{
	/* Intervals of an exponential distribution: exp(-k) of them exceed k times the mean. */
	static const double parts[] = { 1, 0.3679, 0.1353, 0.0498 };
	unsigned longer[4] = { 0 };
	struct arrivals a;

	(void)state;
	arrivals_init(&a, 1000, START_NS);
	for (unsigned k = 0; k < COUNT; k++) {
		uint64_t before_ns = a.due_ns;

		arrivals_next(&a);
		for (unsigned n = 0; n < 4; n++)
			longer[n] += a.due_ns - before_ns > n * 1000000ull;
	}
	for (unsigned n = 0; n < 4; n++) {
		assert_true(longer[n] > (parts[n] - 0.01) * COUNT);
		assert_true(longer[n] < (parts[n] + 0.01) * COUNT);
	}
}

static void every_run_has_the_same(void **state)
{
	struct arrivals one, other;

	(void)state;
	arrivals_init(&one, 1000, START_NS);
	arrivals_init(&other, 1000, 2 * START_NS);
	for (unsigned k = 0; k < COUNT; k++) {
		arrivals_next(&one);
		arrivals_next(&other);
		assert_int_equal(one.due_ns + START_NS, other.due_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_arrival_is_at_the_start),
		cmocka_unit_test(arrivals_are_as_many_in_a_second_as_asked_for),
		cmocka_unit_test(
			intervals_are_spread_as_those_of_callers_who_know_nothing_of_each_other),
		cmocka_unit_test(every_run_has_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
