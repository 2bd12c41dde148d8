/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define F32 { WEFT_FLOAT, 32, 1 }
#define U8 { WEFT_UINT, 8, 1 }

static void bytes_are_elements_times_shape(void **state)
{
	static const struct {
		struct weft_dtype dtype;
		int32_t rank;
		int64_t shape[4];
		uint64_t bytes;
	} rows[] = {
		{ F32, 0, { 0 }, 4 },
		{ F32, 2, { 784, 100 }, 313600 },
		{ F32, 3, { 5, 0, 7 }, 0 },
		{ U8, 1, { INT64_MAX }, INT64_MAX },
		{ { WEFT_FLOAT, 32, 4 }, 1, { 3 }, 48 },
		{ { WEFT_COMPLEX, 128, 1 }, 1, { 3 }, 48 },
		{ { WEFT_BOOL, 8, 1 }, 2, { 3, 3 }, 9 },
		/* Elements take whole bytes, lanes do not. */
		{ { WEFT_INT, 4, 1 }, 1, { 3 }, 3 },
		{ { WEFT_INT, 4, 2 }, 1, { 3 }, 3 },
		{ { WEFT_UINT, 1, 9 }, 1, { 3 }, 6 },
		{ { 200, 8, 1 }, 1, { 3 }, 3 },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		uint64_t bytes = 77;

		assert_int_equal(wf_shape_bytes(rows[i].dtype, rows[i].rank, rows[i].shape, &bytes),
				 0);
		assert_int_equal(bytes, rows[i].bytes);
	}
}

static void no_such_tensor_is_refused(void **state)
{
	static const struct {
		struct weft_dtype dtype;
		int32_t rank;
		int64_t shape[4];
		int err;
	} rows[] = {
		{ { WEFT_FLOAT, 0, 1 }, 1, { 3 }, -EINVAL },
		{ { WEFT_FLOAT, 32, 0 }, 1, { 3 }, -EINVAL },
		{ F32, -1, { 3 }, -EINVAL },
		{ F32, WEFT_RANK_MAX + 1, { 3 }, -EINVAL },
		{ F32, 2, { 3, -1 }, -EINVAL },
		{ F32, 2, { 0, -1 }, -EINVAL },
		{ F32, 1, { INT64_MAX }, -EOVERFLOW },
		{ U8, 2, { INT64_MAX, 2 }, -EOVERFLOW },
		{ U8, 2, { (int64_t)1 << 32, (int64_t)1 << 31 }, -EOVERFLOW },
		{ U8, 4, { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX }, -EOVERFLOW },
		/* A zero does not excuse it: offsets are computed all the same. */
		{ U8, 3, { INT64_MAX, 0, 4 }, -EOVERFLOW },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		uint64_t bytes = 77;

		assert_int_equal(wf_shape_bytes(rows[i].dtype, rows[i].rank, rows[i].shape, &bytes),
				 rows[i].err);
		assert_int_equal(bytes, 77);
	}
	assert_int_equal(wf_shape_bytes((struct weft_dtype)F32, 1, NULL, &(uint64_t){ 0 }), -EINVAL);
}

static void contiguous_is_last_index_fastest(void **state)
{
	static const struct {
		int32_t rank;
		int64_t shape[3], strides[3];
		bool contiguous;
	} rows[] = {
		{ 0, { 0 }, { 0 }, true },
		{ 1, { 5 }, { 1 }, true },
		{ 1, { 5 }, { 2 }, false },
		{ 1, { 5 }, { -1 }, false },
		{ 1, { 5 }, { 0 }, false },
		{ 3, { 2, 3, 4 }, { 12, 4, 1 }, true },
		{ 3, { 2, 3, 4 }, { 1, 2, 6 }, false },
		{ 3, { 2, 3, 4 }, { 24, 4, 1 }, false },
		/* Nobody steps along a dimension of one element, or where there is none. */
		{ 3, { 2, 1, 4 }, { 4, 99, 1 }, true },
		{ 1, { 1 }, { -7 }, true },
		{ 2, { 3, 0 }, { 1, 1 }, true },
		{ 2, { 0, 3 }, { -5, 9 }, true },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		struct weft_tensor t = { .dtype = F32, .ndim = rows[i].rank };
		int64_t shape[3], strides[3];

		memcpy(shape, rows[i].shape, sizeof(shape));
		memcpy(strides, rows[i].strides, sizeof(strides));
		t.shape = shape;
		t.strides = strides;
		if (wf_shape_contiguous(&t) != rows[i].contiguous)
			fail_msg("row %zu", i);
		t.strides = NULL;
		assert_true(wf_shape_contiguous(&t));
	}
}

/* The plainest way to gather: an index for each element, by division. */
static void gather_naively(const struct weft_tensor *t, size_t bytes, uint64_t count,
			   unsigned char *to)
{
	for (uint64_t n = 0; n < count; n++) {
		uint64_t rest = n;
		int64_t at = 0;

		for (int32_t i = t->ndim - 1; i >= 0; i--) {
			at += (int64_t)(rest % (uint64_t)t->shape[i]) * t->strides[i];
			rest /= (uint64_t)t->shape[i];
		}
		memcpy(to + n * bytes,
		       (unsigned char *)t->data + t->byte_offset + at * (int64_t)bytes, bytes);
	}
}

static void gathering_is_as_the_naive_way(void **state)
{
	static const struct {
		struct weft_dtype dtype;
		int32_t rank;
		int64_t shape[4], strides[4];
		uint64_t byte_offset;
	} rows[] = {
		{ F32, 0, { 0 }, { 0 }, 12 },
		{ F32, 1, { 7 }, { 3 }, 0 },
		{ F32, 1, { 7 }, { -1 }, 100 },
		{ F32, 1, { 7 }, { 0 }, 4 },
		{ F32, 2, { 5, 3 }, { 1, 5 }, 8 },
		{ U8, 3, { 2, 3, 4 }, { 1, 2, 6 }, 1 },
		{ U8, 3, { 2, 3, 4 }, { -12, 4, -1 }, 40 },
		{ { WEFT_FLOAT, 24, 1 }, 2, { 4, 4 }, { 1, 4 }, 3 },
		{ { WEFT_FLOAT, 64, 2 }, 2, { 3, 2 }, { 1, 4 }, 0 },
		{ U8, 4, { 3, 1, 2, 5 }, { 60, 7, 20, 2 }, 0 },
	};
	unsigned char data[512], got[512], want[512];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7 + i / 256);
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		struct weft_tensor t = { .data = data, .ndim = rows[i].rank,
					 .dtype = rows[i].dtype,
					 .byte_offset = rows[i].byte_offset };
		int64_t shape[4], strides[4];
		uint64_t bytes, element;
		bool all;

		memcpy(shape, rows[i].shape, sizeof(shape));
		memcpy(strides, rows[i].strides, sizeof(strides));
		t.shape = shape;
		t.strides = strides;
		assert_int_equal(wf_shape_bytes(t.dtype, t.ndim, shape, &bytes), 0);
		assert_int_equal(wf_shape_bytes(t.dtype, 0, NULL, &element), 0);
		memset(want, 0xee, sizeof(want));
		gather_naively(&t, element, bytes / element, want);
		/* At once, and in pieces of any length, even shorter than an element. */
		for (size_t piece = 1; piece <= bytes + 1; piece++) {
			size_t done = 0, before;

			memset(got, 0xee, sizeof(got));
			do {
				before = done;
				all = wf_shape_gather(&t, got, &done, piece);
				assert_in_range(done, before + 1,
						before + WF_MAX(piece, (size_t)element));
			} while (!all);
			assert_int_equal(done, bytes);
			assert_memory_equal(got, want, sizeof(want));
		}
	}
}

static void gathering_nothing_touches_nothing(void **state)
{
	int64_t shape[] = { 3, 0 }, strides[] = { 1, 1 };
	struct weft_tensor t = { .ndim = 2, .shape = shape, .strides = strides, .dtype = F32 };
	unsigned char got = 0xee;
	size_t done = 0;

	(void)state;
	assert_true(wf_shape_gather(&t, &got, &done, SIZE_MAX));
	assert_int_equal(done, 0);
	assert_int_equal(got, 0xee);
}

static void texts_are_as_people_write_them(void **state)
{
	static const int64_t shape[] = { 784, 100 };
	char text[WF_SHAPE_TEXT_BYTES];

	(void)state;
	wf_shape_text((struct weft_dtype)F32, 2, shape, text);
	assert_string_equal(text, "float32[784,100]");
	wf_shape_text((struct weft_dtype){ WEFT_BFLOAT, 16, 1 }, 0, NULL, text);
	assert_string_equal(text, "bfloat16[]");
	wf_shape_text((struct weft_dtype){ WEFT_INT, 8, 4 }, 1, shape, text);
	assert_string_equal(text, "int8x4[784]");
	wf_shape_text((struct weft_dtype){ WEFT_BOOL, 8, 1 }, 1, shape, text);
	assert_string_equal(text, "bool8[784]");
	wf_shape_text((struct weft_dtype){ 9, 8, 1 }, 1, shape, text);
	assert_string_equal(text, "type9.8[784]");
}

static void a_long_text_is_cut(void **state)
{
	int64_t shape[WEFT_RANK_MAX];
	char text[WF_SHAPE_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(shape); i++)
		shape[i] = INT64_MAX;
	wf_shape_text((struct weft_dtype)F32, WEFT_RANK_MAX, shape, text);
	assert_in_range(strlen(text), WF_SHAPE_TEXT_BYTES / 2, WF_SHAPE_TEXT_BYTES - 1);
	assert_int_equal(text[strlen(text) - 1], ']');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_elements_times_shape),
		cmocka_unit_test(no_such_tensor_is_refused),
		cmocka_unit_test(contiguous_is_last_index_fastest),
		cmocka_unit_test(gathering_is_as_the_naive_way),
		cmocka_unit_test(gathering_nothing_touches_nothing),
		cmocka_unit_test(texts_are_as_people_write_them),
		cmocka_unit_test(a_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
