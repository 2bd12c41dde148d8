/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the times that a histogram has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tool/histogram.h"

/* The last @slow of @count times are of 1000 ns, the others of 10. */
static uint64_t part_of(uint64_t count, uint64_t slow, double part)
{
	struct histogram h = { 0 };

	for (uint64_t i = 0; i < count; i++)
		histogram_add(&h, i + slow < count ? 10 : 1000);
	return histogram_part_ns(&h, part);
}

static void no_fewer_than_the_part_took_no_longer(void **state)
{
	(void)state;
	/* 99 % of 155 are 153.45, and 99.9 % of 600 are 599.4. */
	assert_int_equal(part_of(155, 2, .99), 1000);
	assert_int_equal(part_of(155, 1, .99), 10);
	assert_int_equal(part_of(600, 1, .999), 1000);
	assert_int_equal(part_of(1000, 1, .999), 10);
	assert_int_equal(part_of(2, 1, .5), 10);
	assert_int_equal(part_of(1, 1, .5), 1000);
}

static void a_histogram_without_times_has_none(void **state)
{
	(void)state;
	assert_int_equal(part_of(0, 0, .5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_fewer_than_the_part_took_no_longer),
		cmocka_unit_test(a_histogram_without_times_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
