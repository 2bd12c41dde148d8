/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tool's figures rest on: counted times and comparable bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tool/histogram.h"
#include "tool/pattern.h"

static void a_histogram_of_nothing_says_nothing(void **state)
{
	static struct histogram h;

	(void)state;
	assert_int_equal(histogram_part_ns(&h, 0.5), 0);
	assert_int_equal(h.most_ns, 0);
}

static void parts_are_within_a_hundredth_of_the_truth(void **state)
{
	static struct histogram h;

	(void)state;
	/* 10000 times of 1 to 10000 us: the truth is easy to say. */
	for (uint64_t i = 1; i <= 10000; i++)
		histogram_add(&h, i * 1000);
	assert_in_range(histogram_part_ns(&h, 0.5), 5000000, 5050000);
	assert_in_range(histogram_part_ns(&h, 0.99), 9900000, 9999000);
	assert_in_range(histogram_part_ns(&h, 0.999), 9990000, 10000000);
	assert_int_equal(h.most_ns, 10000000);
	assert_int_equal(histogram_part_ns(&h, 1), 10000000);
}

static void every_time_has_a_cell(void **state)
{
	static const uint64_t times[] = { 0, 1, 127, 128, 129, 255, 256, 1ull << 40, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		static struct histogram h;

		memset(&h, 0, sizeof(h));
		histogram_add(&h, times[i]);
		assert_true(histogram_part_ns(&h, 0.5) == times[i]);
	}
}

static void a_part_of_few_is_one_of_them(void **state)
{
	static struct histogram h;

	(void)state;
	histogram_add(&h, 10);
	histogram_add(&h, 20);
	histogram_add(&h, 30);
	assert_int_equal(histogram_part_ns(&h, 0.5), 20);
	assert_int_equal(histogram_part_ns(&h, 0.999), 30);
}

static void a_pattern_is_recognised_at_any_length(void **state)
{
	uint8_t memory[40];

	(void)state;
	for (size_t bytes = 0; bytes <= 32; bytes++) {
		memset(memory, 0x55, sizeof(memory));
		pattern_fill(memory, bytes, 7, 9);
		assert_int_equal(pattern_wrong(memory, bytes, 7, 9), 0);
		assert_int_equal(memory[bytes], 0x55);
	}
}

static void each_wrong_byte_is_counted(void **state)
{
	uint8_t memory[29];

	(void)state;
	pattern_fill(memory, sizeof(memory), 1, 2);
	memory[0] ^= 1;
	memory[15] ^= 0x80;
	memory[28] ^= 0xff;
	assert_int_equal(pattern_wrong(memory, sizeof(memory), 1, 2), 3);
}

static void another_run_or_place_has_another_pattern(void **state)
{
	uint8_t memory[64];

	(void)state;
	pattern_fill(memory, sizeof(memory), 1, 2);
	assert_true(pattern_wrong(memory, sizeof(memory), 1, 3) > 48);
	assert_true(pattern_wrong(memory, sizeof(memory), 2, 2) > 48);
	assert_true(pattern_wrong(memory, sizeof(memory), 2, 1) > 48);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_histogram_of_nothing_says_nothing),
		cmocka_unit_test(parts_are_within_a_hundredth_of_the_truth),
		cmocka_unit_test(every_time_has_a_cell),
		cmocka_unit_test(a_part_of_few_is_one_of_them),
		cmocka_unit_test(a_pattern_is_recognised_at_any_length),
		cmocka_unit_test(each_wrong_byte_is_counted),
		cmocka_unit_test(another_run_or_place_has_another_pattern),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
