/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compilers turn the loops into vectors.  Gcc does so from -O3 on, where they are short and of a
 * count that nobody knows.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include "group/reduce.h"

#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* Bytes of each array that are combined at a time: all of them stay in the nearest cache. */
#define BLOCK_BYTES 4096

/* A step: combine @count elements of @in into @into. */
typedef void (*step_function)(void *into, const void *in, size_t count);

#define STEP(name, type, expression)                                     \
	static void name(void *into, const void *in, size_t count)        \
	{                                                                 \
		type *a = into;                                           \
		const type *b = in;                                       \
									  \
		for (size_t i = 0; i < count; i++)                        \
			a[i] = (type)(expression);                        \
	}

#define SMALLER(a, b) ((b) < (a) ? (b) : (a))
#define LARGER(a, b) ((b) > (a) ? (b) : (a))

/* A number that is none (NaN) goes before every other. */
#define SMALLER_OR_NAN(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#define LARGER_OR_NAN(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))

#define INTEGER_STEPS(bits)                                               \
	STEP(sum_##bits, uint##bits##_t, a[i] + b[i])                     \
	STEP(product_##bits, uint##bits##_t, (uint64_t)a[i] * b[i])       \
	STEP(min_s##bits, int##bits##_t, SMALLER(a[i], b[i]))             \
	STEP(max_s##bits, int##bits##_t, LARGER(a[i], b[i]))              \
	STEP(min_u##bits, uint##bits##_t, SMALLER(a[i], b[i]))            \
	STEP(max_u##bits, uint##bits##_t, LARGER(a[i], b[i]))             \
	STEP(and_##bits, uint##bits##_t, a[i] & b[i])                     \
	STEP(or_##bits, uint##bits##_t, a[i] | b[i])                      \
	STEP(xor_##bits, uint##bits##_t, a[i] ^ b[i])

#define FLOAT_STEPS(type)                                                 \
	STEP(sum_##type, type, a[i] + b[i])                               \
	STEP(product_##type, type, a[i] * b[i])                           \
	STEP(min_##type, type, SMALLER_OR_NAN(a[i], b[i]))                \
	STEP(max_##type, type, LARGER_OR_NAN(a[i], b[i]))

INTEGER_STEPS(8)
INTEGER_STEPS(16)
INTEGER_STEPS(32)
INTEGER_STEPS(64)
FLOAT_STEPS(float)
FLOAT_STEPS(double)

/* A boolean is a byte that is 0 or not. */
STEP(both, uint8_t, a[i] && b[i])
STEP(either, uint8_t, a[i] || b[i])
STEP(one_of_two, uint8_t, !a[i] != !b[i])

/* Blocks of arrays, in a copy that no array has part in: @out may be one of them. */
static void in_blocks(void *out, const void *const *in, unsigned arrays, size_t bytes,
		      size_t element_bytes, step_function step)
{
	_Alignas(64) unsigned char block[BLOCK_BYTES];

	for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
		size_t now = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;

		memcpy(block, (const char *)in[0] + at, now);
		for (unsigned i = 1; i < arrays; i++)
			step(block, (const char *)in[i] + at, now / element_bytes);
		memcpy((char *)out + at, block, now);
	}
}

#define RUN(step, type)                                                            \
	static void run_##step(void *out, const void *const *in, unsigned arrays,  \
			       size_t count)                                       \
	{                                                                          \
		in_blocks(out, in, arrays, count * sizeof(type), sizeof(type), step); \
	}

#define INTEGER_RUNS(bits)                                                 \
	RUN(sum_##bits, uint##bits##_t) RUN(product_##bits, uint##bits##_t) \
	RUN(min_s##bits, int##bits##_t) RUN(max_s##bits, int##bits##_t)    \
	RUN(min_u##bits, uint##bits##_t) RUN(max_u##bits, uint##bits##_t)  \
	RUN(and_##bits, uint##bits##_t) RUN(or_##bits, uint##bits##_t)     \
	RUN(xor_##bits, uint##bits##_t)

#define FLOAT_RUNS(type)                                  \
	RUN(sum_##type, type) RUN(product_##type, type)   \
	RUN(min_##type, type) RUN(max_##type, type)

INTEGER_RUNS(8)
INTEGER_RUNS(16)
INTEGER_RUNS(32)
INTEGER_RUNS(64)
FLOAT_RUNS(float)
FLOAT_RUNS(double)
RUN(both, uint8_t)
RUN(either, uint8_t)
RUN(one_of_two, uint8_t)

/* Numbers of 16 bits, as floats. */

static float from_bits(uint32_t bits)
{
	float number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

static uint32_t to_bits(float number)
{
	uint32_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits;
}

static float from_bfloat(uint16_t half)
{
	return from_bits((uint32_t)half << 16);
}

/* Rounded to the nearest, the even one of two; what is no number stays none. */
static uint16_t to_bfloat(float number)
{
	uint32_t bits = to_bits(number);
	uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);

	return (uint16_t)((number != number ? bits | 0x400000 : rounded) >> 16);
}

/* Exact, also where a thread takes numbers below 2^-126 for zero. */
static float from_half(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
	float small = (float)(half & 0x3ff) * 0x1p-24f;

	if (rest < 1u << 23) /* below 2^-14 */
		return from_bits(to_bits(small) | sign);
	if (rest >= 0x7c00u << 13) /* infinite, or no number */
		return from_bits(rest | 0x7f800000 | sign);
	return from_bits((rest + (112u << 23)) | sign); /* 112: between the two biases */
}

static uint16_t to_half(float number)
{
	uint32_t bits = to_bits(number), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
	uint32_t half;

	if (rest > 0x7f800000) /* no number */
		return (uint16_t)(sign | 0x7e00);
	if (rest >= 0x477ff000) /* from 65520 on */
		return (uint16_t)(sign | 0x7c00);
	/* Below 2^-14 the sum with 0.5 leaves the number's bits, rounded, at the end. */
	if (rest < 113u << 23)
		half = to_bits(from_bits(rest) + 0.5f) - to_bits(0.5f);
	else
		half = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
	return (uint16_t)(sign | half);
}

#define HALF_BLOCK (BLOCK_BYTES / sizeof(float))

static void halves_in_blocks(void *out, const void *const *in, unsigned arrays, size_t count,
			     float (*from)(uint16_t), uint16_t (*to)(float), step_function step,
			     float divisor)
{
	float block[HALF_BLOCK], next[HALF_BLOCK];

	for (size_t at = 0; at < count; at += HALF_BLOCK) {
		size_t now = count - at < HALF_BLOCK ? count - at : HALF_BLOCK;

		for (unsigned i = 0; i < arrays; i++) {
			const uint16_t *a = (const uint16_t *)in[i] + at;

			for (size_t k = 0; k < now; k++)
				(i ? next : block)[k] = from(a[k]);
			if (i)
				step(block, next, now);
		}
		for (size_t k = 0; k < now; k++)
			((uint16_t *)out)[at + k] = to(block[k] / divisor);
	}
}

#define HALF_RUN(name, kind, step, divisor)                                                  \
	static void run_##name##_##kind(void *out, const void *const *in, unsigned arrays,   \
					size_t count)                                        \
	{                                                                                    \
		halves_in_blocks(out, in, arrays, count, from_##kind, to_##kind, step, divisor); \
	}

#define HALF_RUNS(kind)                                    \
	HALF_RUN(sum, kind, sum_float, 1)                  \
	HALF_RUN(product, kind, product_float, 1)          \
	HALF_RUN(min, kind, min_float, 1)                  \
	HALF_RUN(max, kind, max_float, 1)                  \
	HALF_RUN(average, kind, sum_float, (float)arrays)

HALF_RUNS(half)
HALF_RUNS(bfloat)

#define AVERAGE_RUN(type)                                                                \
	static void run_average_##type(void *out, const void *const *in, unsigned arrays, \
				       size_t count)                                     \
	{                                                                                \
		type *numbers = out;                                                     \
											 \
		run_sum_##type(out, in, arrays, count);                                  \
		for (size_t i = 0; i < count; i++)                                       \
			numbers[i] /= (type)arrays;                                      \
	}

AVERAGE_RUN(float)
AVERAGE_RUN(double)

/* The table. */

struct row {
	uint8_t code, bits;
	size_t lanes; /* numbers of an element: two of a complex one */
	size_t bytes; /* bytes of a number */
	wf_reduce_function runs[WEFT_BIT_XOR + 1]; /* NULL: there is none */
};

#define INTEGER_ROW(dtype, letter, width)                                              \
	{ .code = dtype, .bits = width, .bytes = width / 8,                            \
	  .runs = { [WEFT_SUM] = run_sum_##width, [WEFT_PRODUCT] = run_product_##width, \
		    [WEFT_MIN] = run_min_##letter##width,                              \
		    [WEFT_MAX] = run_max_##letter##width,                              \
		    [WEFT_BIT_AND] = run_and_##width, [WEFT_BIT_OR] = run_or_##width,  \
		    [WEFT_BIT_XOR] = run_xor_##width } }
#define FLOAT_ROW(dtype, width, kind)                                            \
	{ .code = dtype, .bits = width, .bytes = width / 8,                      \
	  .runs = { [WEFT_SUM] = run_sum_##kind, [WEFT_PRODUCT] = run_product_##kind, \
		    [WEFT_MIN] = run_min_##kind, [WEFT_MAX] = run_max_##kind,    \
		    [WEFT_AVERAGE] = run_average_##kind } }
#define COMPLEX_ROW(width, kind)                                       \
	{ .code = WEFT_COMPLEX, .bits = width, .lanes = 2,             \
	  .bytes = width / 16, .runs = { [WEFT_SUM] = run_sum_##kind, \
					 [WEFT_AVERAGE] = run_average_##kind } }

static const struct row rows[] = {
	FLOAT_ROW(WEFT_FLOAT, 32, float),
	FLOAT_ROW(WEFT_BFLOAT, 16, bfloat),
	FLOAT_ROW(WEFT_FLOAT, 16, half),
	FLOAT_ROW(WEFT_FLOAT, 64, double),
	COMPLEX_ROW(64, float),
	COMPLEX_ROW(128, double),
	INTEGER_ROW(WEFT_INT, s, 8),
	INTEGER_ROW(WEFT_INT, s, 16),
	INTEGER_ROW(WEFT_INT, s, 32),
	INTEGER_ROW(WEFT_INT, s, 64),
	INTEGER_ROW(WEFT_UINT, u, 8),
	INTEGER_ROW(WEFT_UINT, u, 16),
	INTEGER_ROW(WEFT_UINT, u, 32),
	INTEGER_ROW(WEFT_UINT, u, 64),
	{ .code = WEFT_BOOL, .bits = 8, .bytes = 1,
	  .runs = { [WEFT_SUM] = run_either, [WEFT_PRODUCT] = run_both, [WEFT_MIN] = run_both,
		    [WEFT_MAX] = run_either, [WEFT_BIT_AND] = run_both,
		    [WEFT_BIT_OR] = run_either, [WEFT_BIT_XOR] = run_one_of_two } },
};

int wf_reduce_find(struct weft_dtype dtype, enum weft_reduction reduction,
		   struct wf_reduce *reduce, struct wf_error *e)
{
	for (size_t i = 0; i < WF_COUNT(rows) && (unsigned)reduction <= WEFT_BIT_XOR; i++) {
		const struct row *row = &rows[i];

		if (row->code != dtype.code || row->bits != dtype.bits || dtype.lanes != 1)
			continue;
		if (!row->runs[reduction])
			break;
		*reduce = (struct wf_reduce){
			.run = row->runs[reduction],
			.element_bytes = row->bytes * (row->lanes ? row->lanes : 1),
			.lanes = row->lanes ? row->lanes : 1,
		};
		return 0;
	}
	return wf_error_set(e, -EINVAL, "numbers of DLPack's code %u with %u bits are not combined by "
					"reduction %u", dtype.code, dtype.bits, (unsigned)reduction);
}

void wf_reduce_run(const struct wf_reduce *reduce, void *out, const void *const *in,
		   unsigned arrays, size_t count)
{
	fenv_t callers;

	/* Threads may round in ways of their own, or flush small numbers to zero: bits would differ. */
	fegetenv(&callers);
	fesetenv(FE_DFL_ENV);
	reduce->run(out, in, arrays, count * reduce->lanes);
	fesetenv(&callers);
}
