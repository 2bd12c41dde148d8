/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const uint8_t numbers[] = {
	0x11,
	0x22, 0x21,
	0x34, 0x33, 0x32, 0x31,
	0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41,
	'a', 'b', 'c',
};

static void put_numbers(struct wf_bytes_writer *w)
{
	wf_bytes_put_u8(w, 0x11);
	wf_bytes_put_u16(w, 0x2122);
	wf_bytes_put_u32(w, 0x31323334);
	wf_bytes_put_u64(w, 0x4142434445464748);
	wf_bytes_put(w, "abc", 3);
}

static void numbers_are_little_endian_both_ways(void **state)
{
	uint8_t bytes[sizeof(numbers)];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
	struct wf_bytes_reader r = wf_bytes_reader(numbers, sizeof(numbers));

	(void)state;
	put_numbers(&w);
	assert_false(w.bad);
	assert_int_equal(wf_bytes_writer_left(&w), 0);
	assert_memory_equal(bytes, numbers, sizeof(numbers));

	assert_int_equal(wf_bytes_get_u8(&r), 0x11);
	assert_int_equal(wf_bytes_get_u16(&r), 0x2122);
	assert_int_equal(wf_bytes_get_u32(&r), 0x31323334);
	assert_int_equal(wf_bytes_get_u64(&r), 0x4142434445464748);
	assert_memory_equal(wf_bytes_view(&r, 3), "abc", 3);
	assert_false(r.bad);
	assert_int_equal(wf_bytes_reader_left(&r), 0);
}

static void a_writer_short_of_room_turns_bad_and_stays_inside(void **state)
{
	(void)state;
	for (size_t room = 0; room < sizeof(numbers); room++) {
		uint8_t bytes[sizeof(numbers)];
		struct wf_bytes_writer w = wf_bytes_writer(bytes, room);

		memset(bytes, 0xee, sizeof(bytes));
		put_numbers(&w);

		assert_true(w.bad);
		for (size_t i = room; i < sizeof(bytes); i++)
			assert_int_equal(bytes[i], 0xee);
	}
}

static void a_bad_writer_writes_nothing_more(void **state)
{
	uint8_t byte = 0xee;
	struct wf_bytes_writer w = wf_bytes_writer(&byte, 1);

	(void)state;
	wf_bytes_put_u16(&w, 0);
	wf_bytes_put_u8(&w, 0);
	assert_true(w.bad);
	assert_int_equal(byte, 0xee);
}

static void a_reader_short_of_bytes_turns_bad_and_gives_zeros(void **state)
{
	(void)state;
	for (size_t count = 0; count < sizeof(uint64_t); count++) {
		struct wf_bytes_reader r = wf_bytes_reader(numbers, count);

		assert_int_equal(wf_bytes_get_u64(&r), 0);
		assert_true(r.bad);
		/* There is a byte for this one, but what it means is unknown by now. */
		assert_int_equal(wf_bytes_get_u8(&r), 0);
		assert_null(wf_bytes_view(&r, 0));
	}
}

static void a_count_near_the_end_of_memory_is_refused(void **state)
{
	uint8_t bytes[4] = { 0 };
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
	struct wf_bytes_reader r = wf_bytes_reader(bytes, sizeof(bytes));

	(void)state;
	assert_null(wf_bytes_room(&w, SIZE_MAX));
	assert_true(w.bad);
	assert_null(wf_bytes_view(&r, SIZE_MAX));
	assert_true(r.bad);
}

static void no_bytes_always_fit(void **state)
{
	uint8_t bytes[1];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, 0);
	struct wf_bytes_reader r = wf_bytes_reader(bytes, 0);

	(void)state;
	wf_bytes_put(&w, NULL, 0);
	assert_false(w.bad);
	assert_ptr_equal(wf_bytes_view(&r, 0), bytes);
	assert_false(r.bad);
}

static void a_fixed_part_is_there_whole_or_not_at_all(void **state)
{
	uint8_t bytes[sizeof(numbers)];

	(void)state;
	for (size_t count = 0; count <= sizeof(numbers); count++) {
		struct wf_bytes_writer w = wf_bytes_writer(bytes, count), head = { 0 };
		struct wf_bytes_reader r = wf_bytes_reader(numbers, count), fields = { 0 };
		bool there = count >= 7;

		assert_int_equal(wf_bytes_fixed(&r, 7, &fields), there);
		assert_int_equal(r.bad, !there);
		assert_int_equal(wf_bytes_reserve(&w, 7, &head), there);
		assert_int_equal(w.bad, !there);
		if (!there)
			continue;
		assert_int_equal(wf_bytes_get_u8(&fields), 0x11);
		assert_int_equal(wf_bytes_get_u16(&fields), 0x2122);
		assert_int_equal(wf_bytes_get_u32(&fields), 0x31323334);
		/* The part ends here, whatever comes behind it. */
		assert_int_equal(wf_bytes_get_u8(&fields), 0);
		assert_true(fields.bad);
		assert_int_equal(wf_bytes_reader_left(&r), count - 7);
		wf_bytes_put(&head, numbers, 7);
		assert_memory_equal(bytes, numbers, 7);
		wf_bytes_put_u8(&head, 0);
		assert_true(head.bad);
		assert_int_equal(wf_bytes_writer_left(&w), count - 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_little_endian_both_ways),
		cmocka_unit_test(a_writer_short_of_room_turns_bad_and_stays_inside),
		cmocka_unit_test(a_bad_writer_writes_nothing_more),
		cmocka_unit_test(a_reader_short_of_bytes_turns_bad_and_gives_zeros),
		cmocka_unit_test(a_count_near_the_end_of_memory_is_refused),
		cmocka_unit_test(no_bytes_always_fit),
		cmocka_unit_test(a_fixed_part_is_there_whole_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
