/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/landed.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t shape[2] = { 3, -2 };
static const uint8_t bytes[WF_LANDED_FIXED_BYTES + 16] = {
	7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
	2, 32, 4, 0, 2,
	3, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

/* Get from a copy of exactly @count bytes, so that a sanitizer sees a read beyond. */
static int get(const uint8_t *from, size_t count, struct wf_landed *l)
{
	uint8_t *exact = malloc(count + !count);
	int rc;

	memcpy(exact, from, count);
	rc = wf_landed_get(exact, count, l);
	free(exact);
	return rc;
}

static void a_note_is_put_and_got_as_the_page_says(void **state)
{
	const struct wf_landed l = { 7, 256, { WEFT_FLOAT, 32, 4 }, 2, NULL };
	uint8_t put[WF_LANDED_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(put, sizeof(put));
	struct wf_landed got;

	(void)state;
	wf_landed_put(&w, &l, shape);
	assert_int_equal(w.at - put, sizeof(bytes));
	assert_memory_equal(put, bytes, sizeof(bytes));
	assert_int_equal(wf_landed_get(put, sizeof(bytes), &got), 0);
	assert_int_equal(got.serial, 7);
	assert_int_equal(got.number, 256);
	assert_int_equal(got.dtype.lanes, 4);
	assert_int_equal(got.rank, 2);
	assert_int_equal(wf_landed_dim(&got, 0), 3);
	assert_int_equal(wf_landed_dim(&got, 1), -2);
	wf_landed_set_serial(put, 8);
	assert_int_equal(wf_landed_get(put, sizeof(bytes), &got), 0);
	assert_int_equal(got.serial, 8);
	assert_int_equal(got.number, 256);
}

static void notes_of_another_length_are_refused(void **state)
{
	uint8_t longer[sizeof(bytes) + 1] = { 0 };
	struct wf_landed got;

	(void)state;
	memcpy(longer, bytes, sizeof(bytes));
	for (size_t count = 0; count <= sizeof(longer); count++)
		assert_int_equal(get(longer, count, &got), count == sizeof(bytes) ? 0 : -EBADMSG);
}

static void types_and_ranks_that_there_are_not_are_refused(void **state)
{
	static uint8_t note[WF_LANDED_FIXED_BYTES + 255 * 8];
	struct wf_landed got;

	(void)state;
	memcpy(note, bytes, sizeof(bytes));
	note[17] = 0;
	assert_int_equal(get(note, sizeof(bytes), &got), -EBADMSG);
	note[17] = 8;
	note[18] = 0;
	assert_int_equal(get(note, sizeof(bytes), &got), -EBADMSG);
	note[18] = 1;
	for (size_t rank = 0; rank < 256; rank++) {
		note[20] = (uint8_t)rank;
		assert_int_equal(get(note, WF_LANDED_FIXED_BYTES + rank * 8, &got),
				 rank <= WEFT_RANK_MAX ? 0 : -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_note_is_put_and_got_as_the_page_says),
		cmocka_unit_test(notes_of_another_length_are_refused),
		cmocka_unit_test(types_and_ranks_that_there_are_not_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
