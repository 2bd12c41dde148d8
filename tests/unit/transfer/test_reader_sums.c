/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/reader_sums.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "util/checksum.h"

#define PIECES 8
#define BYTES (7 * MIB + 123) /* the last piece is short */

/* In one record. */
_Static_assert(WF_RECORD_SUMS_MAX == 4, "the tests tell four at a time");

static uint8_t body[BYTES];
static struct wf_link from = { .name = "ps0" };

static int fill(void **state)
{
	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		body[i] = (uint8_t)(i * 31 + i / 4093);
	return 0;
}

static struct wf_record_sums told(uint32_t first, uint32_t count)
{
	struct wf_record_sums record = { .first = first, .count = count };

	for (uint32_t i = 0; i < count; i++)
		record.sums[i] = wf_checksum(body + (first + i) * MIB,
					     WF_MIN(MIB, BYTES - (first + i) * MIB));
	return record;
}

static void tell(struct wf_reader_sums *s, uint32_t first, uint32_t count)
{
	struct wf_record_sums record = told(first, count);

	assert_int_equal(wf_reader_sums_told(s, &record), 0);
}

static void ask_all(struct wf_reader_sums *s)
{
	while (wf_reader_sums_ask(s, BYTES))
		wf_reader_sums_asked(s);
	assert_int_equal(s->asked, s->count);
}

static struct wf_reader_sums open_sums(void)
{
	struct wf_body b = { .way = WF_BODY_PULL, .bytes = BYTES, .sum_kind = WF_BODY_SUM_XXH3 };
	struct wf_reader_sums s;

	assert_int_equal(wf_reader_sums_open(&s, &b), 0);
	assert_false(wf_reader_sums_right(&s));
	ask_all(&s);
	return s;
}

static bool is_wrong(const struct wf_reader_sums *s, struct wf_error *e)
{
	return wf_reader_sums_wrong(s, &from, NULL, WF_BODY_PULL, e);
}

static void without_a_checksum_all_is_right(void **state)
{
	struct wf_body b = { .way = WF_BODY_PULL, .bytes = BYTES };
	struct wf_reader_sums s;
	struct wf_error e;

	(void)state;
	assert_int_equal(wf_reader_sums_open(&s, &b), 0);
	wf_reader_sums_arrived(&s, body, BYTES, 0, BYTES);
	assert_false(wf_reader_sums_ask(&s, BYTES));
	assert_true(wf_reader_sums_right(&s));
	assert_false(is_wrong(&s, &e));
	wf_reader_sums_close(&s);
}

static void a_body_of_one_piece_brings_its_sum(void **state)
{
	struct wf_body b = { .way = WF_BODY_PULL, .bytes = MIB, .sum_kind = WF_BODY_SUM_XXH3,
			     .sum = wf_checksum(body, MIB) };
	struct wf_reader_sums s;

	(void)state;
	assert_int_equal(wf_reader_sums_open(&s, &b), 0);
	assert_false(wf_reader_sums_ask(&s, MIB));
	wf_reader_sums_arrived(&s, body, BYTES, MIB / 2, MIB / 2);
	assert_false(wf_reader_sums_right(&s));
	wf_reader_sums_arrived(&s, body, BYTES, 0, MIB / 2);
	assert_true(wf_reader_sums_right(&s));
	wf_reader_sums_close(&s);
}

static void bytes_and_sums_may_come_in_any_order(void **state)
{
	/* Chunks that are not the pieces: 3/4 MiB each, the last one shorter. */
	const uint64_t chunk = 768 * KIB;
	const uint32_t chunks = (uint32_t)(BYTES / chunk + 1);

	(void)state;
	for (unsigned late = 0; late <= chunks; late++) {
		struct wf_reader_sums s = open_sums();
		struct wf_error e;

		for (uint32_t i = 0; i < chunks; i++) {
			uint64_t at = (i * 7 + late) % chunks * chunk; /* 7 and 10 have no common factor */

			if (i == late)
				tell(&s, 0, 2);
			wf_reader_sums_arrived(&s, body, BYTES, at, WF_MIN(chunk, BYTES - at));
			assert_false(is_wrong(&s, &e));
		}
		if (late == chunks)
			tell(&s, 0, 2);
		assert_false(wf_reader_sums_right(&s));
		tell(&s, 2, 4);
		assert_false(wf_reader_sums_right(&s));
		tell(&s, 6, 2);
		assert_true(wf_reader_sums_right(&s));
		assert_false(is_wrong(&s, &e));
		wf_reader_sums_close(&s);
	}
}

static void the_piece_that_is_wrong_is_named(void **state)
{
	static const struct {
		size_t at;
		const char *bytes;
	} flips[] = {
		{ 0, "bytes 0 to 1048575 came damaged from ps0" },
		{ MIB - 1, "bytes 0 to 1048575 came" },
		{ MIB, "bytes 1048576 to 2097151 came" },
		{ BYTES - 1, "bytes 7340032 to 7340154 came" },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(flips); i++) {
		struct wf_reader_sums s = open_sums();
		struct wf_error e;

		tell(&s, 0, 4);
		tell(&s, 4, 4);
		body[flips[i].at] ^= 4;
		wf_reader_sums_arrived(&s, body, BYTES, 0, BYTES);
		body[flips[i].at] ^= 4;
		assert_false(wf_reader_sums_right(&s));
		assert_true(is_wrong(&s, &e));
		assert_int_equal(e.code, -EIO);
		assert_non_null(strstr(e.text, flips[i].bytes));
		wf_reader_sums_close(&s);
	}
}

static void sums_come_in_order_and_once(void **state)
{
	struct wf_reader_sums s = open_sums();
	struct wf_record_sums record;

	(void)state;
	record = told(1, 1);
	assert_int_equal(wf_reader_sums_told(&s, &record), -EBADMSG);
	tell(&s, 0, 2);
	record = told(0, 1);
	assert_int_equal(wf_reader_sums_told(&s, &record), -EBADMSG);
	tell(&s, 2, 4);
	record = told(6, 2);
	record.count = 3; /* there are only eight pieces */
	assert_int_equal(wf_reader_sums_told(&s, &record), -EBADMSG);
	tell(&s, 6, 2);
	record = told(0, 1);
	record.first = PIECES;
	assert_int_equal(wf_reader_sums_told(&s, &record), -EBADMSG);
	wf_reader_sums_close(&s);
}

static void sums_are_asked_for_a_little_ahead_and_told_only_then(void **state)
{
	struct wf_body b = { .way = WF_BODY_PULL, .bytes = BYTES, .sum_kind = WF_BODY_SUM_XXH3 };
	struct wf_record_sums record = told(0, 4);
	struct wf_reader_sums s;

	(void)state;
	assert_int_equal(wf_reader_sums_open(&s, &b), 0);
	assert_int_equal(wf_reader_sums_told(&s, &record), -EBADMSG);
	assert_true(wf_reader_sums_ask(&s, 0));
	wf_reader_sums_asked(&s);
	assert_false(wf_reader_sums_ask(&s, 2 * MIB));
	assert_true(wf_reader_sums_ask(&s, 2 * MIB + 1));
	tell(&s, 0, 4);
	record = told(4, 1);
	assert_int_equal(wf_reader_sums_told(&s, &record), -EBADMSG);
	wf_reader_sums_asked(&s);
	assert_false(wf_reader_sums_ask(&s, BYTES));
	tell(&s, 4, 4);
	wf_reader_sums_close(&s);
}

static void an_eager_body_is_checked_at_once(void **state)
{
	struct wf_body b = { .way = WF_BODY_EAGER, .bytes = 100, .sum_kind = WF_BODY_SUM_XXH3,
			     .sum = wf_checksum(body, 100) };
	struct wf_error e;

	(void)state;
	assert_int_equal(wf_reader_sums_check(&b, body, &from, NULL, &e), 0);
	b.sum++;
	assert_int_equal(wf_reader_sums_check(&b, body, &from, NULL, &e), -EIO);
	assert_non_null(strstr(e.text, "bytes 0 to 99 came damaged from ps0 (eager over "));
	b.sum_kind = WF_BODY_SUM_NONE;
	assert_int_equal(wf_reader_sums_check(&b, body, &from, NULL, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_checksum_all_is_right),
		cmocka_unit_test(a_body_of_one_piece_brings_its_sum),
		cmocka_unit_test(bytes_and_sums_may_come_in_any_order),
		cmocka_unit_test(the_piece_that_is_wrong_is_named),
		cmocka_unit_test(sums_come_in_order_and_once),
		cmocka_unit_test(sums_are_asked_for_a_little_ahead_and_told_only_then),
		cmocka_unit_test(an_eager_body_is_checked_at_once),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}
