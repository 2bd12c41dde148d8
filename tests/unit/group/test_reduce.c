/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of every type, combined in every way, beside one at a time. */
#include "group/reduce.h"

#include <errno.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#define ARRAYS 3
#define LENGTH 3001 /* more than a block of the widest, and no multiple of one */

static struct wf_error error;

static struct weft_dtype dtype_of(uint8_t code, uint8_t bits)
{
	return (struct weft_dtype){ code, bits, 1 };
}

static struct wf_reduce find(uint8_t code, uint8_t bits, enum weft_reduction reduction)
{
	struct wf_reduce reduce;

	if (wf_reduce_find(dtype_of(code, bits), reduction, &reduce, &error))
		fail_msg("%s", error.text);
	return reduce;
}

/* Combine two numbers, of @bits bits, as @reduction does. */
static int64_t combined(int64_t a, int64_t b, enum weft_reduction reduction)
{
	switch (reduction) {
	case WEFT_SUM:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case WEFT_PRODUCT:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case WEFT_MIN:
		return a < b ? a : b;
	case WEFT_MAX:
		return a > b ? a : b;
	case WEFT_BIT_AND:
		return a & b;
	case WEFT_BIT_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

static int64_t get(const void *array, size_t i, uint8_t code, uint8_t bits)
{
	uint64_t number = 0;

	memcpy(&number, (const char *)array + i * bits / 8, bits / 8);
	if (code == WEFT_INT && bits < 64)
		return (int64_t)(number << (64 - bits)) >> (64 - bits);
	return (int64_t)number;
}

static void integers_are_combined_as_one_by_one(void **state)
{
	static const enum weft_reduction reductions[] = {
		WEFT_SUM, WEFT_PRODUCT, WEFT_MIN, WEFT_MAX, WEFT_BIT_AND, WEFT_BIT_OR, WEFT_BIT_XOR,
	};
	static uint8_t arrays[ARRAYS][LENGTH * 8], out[LENGTH * 8];
	const void *in[ARRAYS];

	(void)state;
	srand(1);
	for (unsigned a = 0; a < ARRAYS; a++) {
		in[a] = arrays[a];
		for (size_t i = 0; i < sizeof(arrays[a]); i++)
			arrays[a][i] = (uint8_t)rand();
		/* Unsigned numbers of 64 bits are compared as signed ones here. */
		for (size_t i = 7; i < sizeof(arrays[a]); i += 8)
			arrays[a][i] &= 0x7f;
	}
	for (uint8_t bits = 8; bits && bits <= 64; bits *= 2) {
		for (uint8_t code = WEFT_INT; code <= WEFT_UINT; code++) {
			for (size_t n = 0; n < WF_COUNT(reductions); n++) {
				struct wf_reduce reduce = find(code, bits, reductions[n]);

				assert_int_equal(reduce.element_bytes, bits / 8);
				wf_reduce_run(&reduce, out, in, ARRAYS, LENGTH);
				for (size_t i = 0; i < LENGTH; i++) {
					int64_t expected = get(in[0], i, code, bits), mask;

					for (unsigned a = 1; a < ARRAYS; a++)
						expected = combined(expected, get(in[a], i, code, bits),
								    reductions[n]);
					mask = bits < 64 ? (int64_t)((1ull << bits) - 1) : -1;
					assert_true((get(out, i, code, bits) & mask) == (expected & mask));
				}
			}
		}
	}
}

static void floats_are_combined_in_the_order_of_the_arrays(void **state)
{
	static float a[LENGTH], b[LENGTH], c[LENGTH], out[LENGTH];
	static double da[LENGTH], db[LENGTH], dc[LENGTH], dout[LENGTH];
	const void *in[ARRAYS] = { a, b, c }, *din[ARRAYS] = { da, db, dc };
	struct wf_reduce sum = find(WEFT_FLOAT, 32, WEFT_SUM), sum64 = find(WEFT_FLOAT, 64, WEFT_SUM);

	(void)state;
	for (size_t i = 0; i < LENGTH; i++) {
		da[i] = a[i] = 1.0f / (float)(i + 1);
		db[i] = b[i] = 1e8f;
		dc[i] = c[i] = -1e8f;
	}
	wf_reduce_run(&sum, out, in, ARRAYS, LENGTH);
	wf_reduce_run(&sum64, dout, din, ARRAYS, LENGTH);
	for (size_t i = 0; i < LENGTH; i++) {
		assert_true(out[i] == (a[i] + b[i]) + c[i]);
		assert_true(dout[i] == (da[i] + db[i]) + dc[i]);
	}
}

static void a_result_may_lie_where_any_of_the_arrays_is(void **state)
{
	static float arrays[ARRAYS][LENGTH];
	struct wf_reduce sum = find(WEFT_FLOAT, 32, WEFT_SUM);
	const void *in[ARRAYS] = { arrays[0], arrays[1], arrays[2] };

	(void)state;
	for (unsigned place = 0; place < ARRAYS; place++) {
		for (unsigned a = 0; a < ARRAYS; a++)
			for (size_t i = 0; i < LENGTH; i++)
				arrays[a][i] = (float)(i * (a + 1));
		wf_reduce_run(&sum, arrays[place], in, ARRAYS, LENGTH);
		for (size_t i = 0; i < LENGTH; i++)
			assert_true(arrays[place][i] == (float)(6 * i));
	}
}

static void averages_are_sums_divided_by_the_arrays(void **state)
{
	static float a[LENGTH], out[LENGTH];
	static double complex_numbers[2 * LENGTH], complex_out[2 * LENGTH];
	const void *in[ARRAYS] = { a, a, a };
	const void *complex_in[ARRAYS] = { complex_numbers, complex_numbers, complex_numbers };
	struct wf_reduce average = find(WEFT_FLOAT, 32, WEFT_AVERAGE);
	struct wf_reduce complex_average = find(WEFT_COMPLEX, 128, WEFT_AVERAGE);

	(void)state;
	for (size_t i = 0; i < LENGTH; i++)
		a[i] = (float)i;
	for (size_t i = 0; i < 2 * LENGTH; i++)
		complex_numbers[i] = (double)i;
	wf_reduce_run(&average, out, in, ARRAYS, LENGTH);
	assert_int_equal(complex_average.element_bytes, 16);
	wf_reduce_run(&complex_average, complex_out, complex_in, ARRAYS, LENGTH);
	assert_memory_equal(a, out, sizeof(a));
	assert_memory_equal(complex_numbers, complex_out, sizeof(complex_numbers));
}

/* Rounding of a sum of two numbers: bits of each, and of the result. */
struct half {
	uint16_t a, b, sum;
};

static void sums_are(uint8_t code, const struct half *rows, size_t count)
{
	struct wf_reduce sum = find(code, 16, WEFT_SUM);

	for (size_t i = 0; i < count; i++) {
		const void *in[] = { &rows[i].a, &rows[i].b };
		uint16_t out;

		wf_reduce_run(&sum, &out, in, 2, 1);
		if (out != rows[i].sum)
			fail_msg("%#x + %#x is %#x, not %#x", rows[i].a, rows[i].b, out, rows[i].sum);
	}
}

static void float16_is_rounded_to_the_nearest(void **state)
{
	static const struct half rows[] = {
		{ 0x3c00, 0x3c00, 0x4000 }, /* 1 + 1 */
		{ 0x3c00, 0x1000, 0x3c00 }, /* 1 + 2^-11: a tie, to the even one */
		{ 0x3c01, 0x1000, 0x3c02 }, /* and from the odd one up */
		{ 0x3c00, 0x1001, 0x3c01 }, /* a little more than a tie */
		{ 0x0001, 0x0001, 0x0002 }, /* numbers without an exponent of their own */
		{ 0x03ff, 0x0001, 0x0400 },
		{ 0x0000, 0x8000, 0x0000 },
		{ 0x8000, 0x8000, 0x8000 },
		{ 0xbc00, 0x3c00, 0x0000 },
		{ 0x7bff, 0x4c00, 0x7c00 }, /* 65504 + 16, from which on there is infinity */
		{ 0x7bff, 0x4bff, 0x7bff },
		{ 0x7bff, 0x7bff, 0x7c00 },
		{ 0x7c00, 0x3c00, 0x7c00 },
	};
	uint16_t nothing = 0x7e01, one = 0x3c00, out;
	const void *in[] = { &nothing, &one };
	struct wf_reduce max = find(WEFT_FLOAT, 16, WEFT_MAX);

	(void)state;
	sums_are(WEFT_FLOAT, rows, WF_COUNT(rows));
	wf_reduce_run(&max, &out, in, 2, 1);
	assert_int_equal(out & 0x7fff, 0x7e00);
}

static void every_float16_comes_through_float32(void **state)
{
	struct wf_reduce max = find(WEFT_FLOAT, 16, WEFT_MAX);

	(void)state;
	for (uint32_t bits = 0; bits <= 0xffff; bits++) {
		uint16_t in = (uint16_t)bits, out;
		const void *arrays[] = { &in };

		wf_reduce_run(&max, &out, arrays, 1, 1);
		if ((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff))
			assert_int_equal(out & 0x7fff, 0x7e00);
		else
			assert_int_equal(out, in);
	}
}

static void bfloat16_is_rounded_to_the_nearest(void **state)
{
	static const struct half rows[] = {
		{ 0x3f80, 0x3f80, 0x4000 },
		{ 0x3f80, 0x3b80, 0x3f80 }, /* 1 + 2^-8: a tie, to the even one */
		{ 0x3f81, 0x3b80, 0x3f82 },
		{ 0x3f80, 0x3b81, 0x3f81 },
		{ 0x7f7f, 0x7f7f, 0x7f80 },
		{ 0x7f80, 0x3f80, 0x7f80 },
		{ 0x0001, 0x0001, 0x0002 },
	};

	(void)state;
	sums_are(WEFT_BFLOAT, rows, WF_COUNT(rows));
}

static void averages_of_16_bits_are_rounded_once(void **state)
{
	static const struct {
		uint8_t code;
		uint16_t in[3], average;
	} rows[] = {
		{ WEFT_FLOAT, { 0x7bff, 0x7bff, 0x7bff }, 0x7bff }, /* the sum would be infinite */
		{ WEFT_FLOAT, { 0x6800, 0x3c00, 0x0000 }, 0x6156 }, /* 2049 / 3; 2049 has no float16 */
		{ WEFT_BFLOAT, { 0x4044, 0x3f80, 0x3c80 }, 0x3fae }, /* (3.0625 + 1 + 1/64) / 3 */
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		struct wf_reduce average = find(rows[i].code, 16, WEFT_AVERAGE);
		const void *in[] = { &rows[i].in[0], &rows[i].in[1], &rows[i].in[2] };
		uint16_t out;

		wf_reduce_run(&average, &out, in, 3, 1);
		assert_int_equal(out, rows[i].average);
	}
}

static void no_number_stays_none(void **state)
{
	float nothing, one = 1, out;
	struct wf_reduce min = find(WEFT_FLOAT, 32, WEFT_MIN), max = find(WEFT_FLOAT, 32, WEFT_MAX);
	const void *first[] = { &nothing, &one }, *last[] = { &one, &nothing };

	(void)state;
	memset(&nothing, 0xff, sizeof(nothing));
	wf_reduce_run(&min, &out, first, 2, 1);
	assert_true(out != out);
	wf_reduce_run(&min, &out, last, 2, 1);
	assert_true(out != out);
	wf_reduce_run(&max, &out, first, 2, 1);
	assert_true(out != out);
	wf_reduce_run(&max, &out, last, 2, 1);
	assert_true(out != out);
}

static void booleans_are_true_or_not(void **state)
{
	static const struct {
		enum weft_reduction reduction;
		uint8_t of_2_and_1, of_2_and_0;
	} rows[] = {
		{ WEFT_SUM, 1, 1 },	{ WEFT_MAX, 1, 1 },	{ WEFT_BIT_OR, 1, 1 },
		{ WEFT_PRODUCT, 1, 0 }, { WEFT_MIN, 1, 0 },	{ WEFT_BIT_AND, 1, 0 },
		{ WEFT_BIT_XOR, 0, 1 },
	};
	uint8_t two = 2, one = 1, zero = 0, out;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		struct wf_reduce reduce = find(WEFT_BOOL, 8, rows[i].reduction);
		const void *with_one[] = { &two, &one }, *with_zero[] = { &two, &zero };

		wf_reduce_run(&reduce, &out, with_one, 2, 1);
		assert_int_equal(out, rows[i].of_2_and_1);
		wf_reduce_run(&reduce, &out, with_zero, 2, 1);
		assert_int_equal(out, rows[i].of_2_and_0);
	}
}

static void numbers_are_rounded_alike_in_threads_that_round_in_other_ways(void **state)
{
	const struct wf_reduce reduce = find(WEFT_FLOAT, 32, WEFT_SUM);
	const float one = 1, little = 0x1p-30f;
	const void *in[] = { &one, &little };
	float out;
	int kept;

	(void)state;
	assert_int_equal(fesetround(FE_UPWARD), 0);
	wf_reduce_run(&reduce, &out, in, 2, 1);
	kept = fegetround();
	fesetround(FE_TONEAREST);
	assert_true(out == 1);
	assert_int_equal(kept, FE_UPWARD);
}

/* Flush to zero is no part of standard C: a thread has it as its processor does. */
static void tiny_numbers_are_kept_in_threads_that_flush_them_to_zero(void **state)
{
#ifdef __SSE2__
	const struct wf_reduce reduce = find(WEFT_FLOAT, 32, WEFT_SUM);
	const float tiny = 0x1p-140f;
	const void *in[] = { &tiny, &tiny };
	const unsigned usual = _mm_getcsr(), flushing = usual | 0x8040;
	unsigned kept;
	float out;

	(void)state;
	_mm_setcsr(flushing);
	wf_reduce_run(&reduce, &out, in, 2, 1);
	kept = _mm_getcsr();
	_mm_setcsr(usual);
	assert_true(out == 0x1p-139f);
	assert_int_equal(kept & 0x8040, 0x8040);
#else
	(void)state;
	puts("this processor is no x86");
	skip();
#endif
}

static void a_reduction_without_meaning_is_refused(void **state)
{
	struct wf_reduce reduce;

	(void)state;
	assert_int_equal(wf_reduce_find(dtype_of(WEFT_INT, 32), WEFT_AVERAGE, &reduce, &error), -EINVAL);
	assert_int_equal(wf_reduce_find(dtype_of(WEFT_FLOAT, 32), WEFT_BIT_OR, &reduce, &error), -EINVAL);
	assert_int_equal(wf_reduce_find(dtype_of(WEFT_COMPLEX, 64), WEFT_MAX, &reduce, &error), -EINVAL);
	assert_int_equal(wf_reduce_find(dtype_of(WEFT_INT, 4), WEFT_SUM, &reduce, &error), -EINVAL);
	assert_int_equal(wf_reduce_find(dtype_of(WEFT_INT, 32), (enum weft_reduction)8, &reduce, &error),
			 -EINVAL);
	assert_int_equal(wf_reduce_find((struct weft_dtype){ WEFT_FLOAT, 32, 4 }, WEFT_SUM, &reduce,
					&error),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_combined_as_one_by_one),
		cmocka_unit_test(floats_are_combined_in_the_order_of_the_arrays),
		cmocka_unit_test(a_result_may_lie_where_any_of_the_arrays_is),
		cmocka_unit_test(averages_are_sums_divided_by_the_arrays),
		cmocka_unit_test(averages_of_16_bits_are_rounded_once),
		cmocka_unit_test(float16_is_rounded_to_the_nearest),
		cmocka_unit_test(every_float16_comes_through_float32),
		cmocka_unit_test(bfloat16_is_rounded_to_the_nearest),
		cmocka_unit_test(no_number_stays_none),
		cmocka_unit_test(booleans_are_true_or_not),
		cmocka_unit_test(numbers_are_rounded_alike_in_threads_that_round_in_other_ways),
		cmocka_unit_test(tiny_numbers_are_kept_in_threads_that_flush_them_to_zero),
		cmocka_unit_test(a_reduction_without_meaning_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
