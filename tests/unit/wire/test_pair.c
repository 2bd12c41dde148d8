/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define TEXT(text) ((const uint8_t *)(text))
#define FIXED_BYTES 6 /* of a pair on the wire */

/* Every pair is this table's way: the struct, and its bytes. */
static const struct row {
	const char *name;
	size_t count;
	struct wf_pair pair;
	uint8_t bytes[24];
} rows[] = {
	{
		"a text", 6 + 4 + 9,
		{ TEXT("user"), TEXT("A. Nobody"), 4, 9 },
		{
			4, 0, 9, 0, 0, 0,
			'u', 's', 'e', 'r',
			'A', '.', ' ', 'N', 'o', 'b', 'o', 'd', 'y',
		},
	},
	{
		"some bytes", 6 + 9 + 4,
		{ TEXT("trace-bin"), TEXT("\0\x80\xff\n"), 9, 4 },
		{
			9, 0, 4, 0, 0, 0,
			't', 'r', 'a', 'c', 'e', '-', 'b', 'i', 'n',
			0, 0x80, 0xff, '\n',
		},
	},
	{
		"no text", 6 + 1,
		{ TEXT("_"), NULL, 1, 0 },
		{ 1, 0, 0, 0, 0, 0, '_' },
	},
};

/* On a heap block of exactly its size, so that a sanitizer sees the first byte too many. */
static int check(const uint8_t *bytes, size_t count)
{
	uint8_t *exact = test_malloc(count + !count);
	int rc;

	memcpy(exact, bytes, count);
	rc = wf_pairs_check(exact, count);
	test_free(exact);
	return rc;
}

/* Metadata of one pair, whose characters are all the same. */
static int check_long(uint16_t key_bytes, uint32_t value_bytes)
{
	size_t count = FIXED_BYTES + (size_t)key_bytes + value_bytes;
	uint8_t *bytes = test_malloc(count);
	struct wf_pair pair = { bytes, bytes, key_bytes, value_bytes };
	struct wf_bytes_writer w;
	int rc;

	memset(bytes, 'k', count);
	w = wf_bytes_writer(bytes, FIXED_BYTES);
	wf_bytes_put_u16(&w, key_bytes);
	wf_bytes_put_u32(&w, value_bytes);
	assert_int_equal(wf_pair_bytes(&pair), count);
	rc = wf_pairs_check(bytes, count);
	test_free(bytes);
	return rc;
}

static bool good(const char *key, const void *value, size_t value_bytes)
{
	return wf_pair_good(&(struct wf_pair){ TEXT(key), value, (uint16_t)strlen(key),
						   (uint32_t)value_bytes });
}

static void a_pair_is_the_same_bytes_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		const struct row *row = &rows[i];
		uint8_t bytes[sizeof(row->bytes)];
		struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
		struct wf_bytes_reader r = wf_bytes_reader(row->bytes, row->count);
		struct wf_pair pair;

		wf_pair_put(&w, &row->pair);
		if ((size_t)(w.at - bytes) != row->count)
			fail_msg("%s: another length", row->name);
		assert_int_equal(wf_pair_bytes(&row->pair), row->count);
		assert_memory_equal(bytes, row->bytes, row->count);
		if (wf_pair_get(&r, &pair) != 1)
			fail_msg("%s: refused", row->name);
		assert_int_equal(pair.key_bytes, row->pair.key_bytes);
		assert_memory_equal(pair.key, row->pair.key, pair.key_bytes);
		assert_int_equal(pair.value_bytes, row->pair.value_bytes);
		if (pair.value_bytes)
			assert_memory_equal(pair.value, row->pair.value, pair.value_bytes);
		assert_int_equal(wf_pair_get(&r, &pair), 0);
	}
}

static void every_other_length_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		for (size_t count = 1; count <= sizeof(rows[i].bytes); count++)
			if (check(rows[i].bytes, count) != (count == rows[i].count ? 1 : -EBADMSG))
				fail_msg("%s: not right with %zu bytes", rows[i].name, count);
	}
}

static void lengths_beyond_the_end_are_refused(void **state)
{
	static const uint8_t blocks[][9] = {
		{ 4, 0, 0, 0, 0, 0, 'a', 'b', 'c' },
		{ 0xff, 0xff, 0, 0, 0, 0, 'a', 'b', 'c' },
		{ 1, 0, 3, 0, 0, 0, 'a', 'b', 'c' },
		{ 1, 0, 0xff, 0xff, 0xff, 0xff, 'a', 'b', 'c' },
		/* In 32 bits they are 3 together. */
		{ 4, 0, 0xff, 0xff, 0xff, 0xff, 'a', 'b', 'c' },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(blocks); i++)
		assert_int_equal(check(blocks[i], sizeof(blocks[i])), -EBADMSG);
}

static void a_key_is_of_few_characters(void **state)
{
	static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyz-_.";
	unsigned count = 0;

	(void)state;
	for (unsigned c = 0; c <= UINT8_MAX; c++) {
		bool may = c && strchr(allowed, (int)c);

		count += may;
		for (uint16_t at = 0; at < 3; at++) {
			uint8_t key[] = { 'a', 'b', 'z' };
			struct wf_pair pair = { .key = key, .key_bytes = sizeof(key) };

			key[at] = (uint8_t)c;
			assert_int_equal(wf_pair_good(&pair), may);
			pair.key_bytes = at + 1; /* it is the last */
			assert_int_equal(wf_pair_good(&pair), may);
		}
	}
	assert_int_equal(count, 10 + 26 + 3);
}

static void a_pair_without_a_key_is_refused(void **state)
{
	static const uint8_t block[] = { 0, 0, 1, 0, 0, 0, 'v' };

	(void)state;
	assert_false(good("", "v", 1));
	assert_false(good("", NULL, 0));
	assert_int_equal(check(block, sizeof(block)), -EBADMSG);
	assert_int_equal(check(block, FIXED_BYTES), -EBADMSG);
}

static void a_text_is_printable(void **state)
{
	static const char *const keys[] = { "k", "bin", "k-bi", "k-bin2", "-bin-", "k_bin" };

	(void)state;
	for (unsigned c = 0; c <= UINT8_MAX; c++) {
		for (size_t at = 0; at < 3; at++) {
			uint8_t value[] = { 'a', 'b', 'c' };

			value[at] = (uint8_t)c;
			for (size_t k = 0; k < WF_COUNT(keys); k++)
				assert_int_equal(good(keys[k], value, 3), c >= ' ' && c <= '~');
		}
	}
}

static void a_binary_value_is_any_bytes(void **state)
{
	static const char *const keys[] = { "k-bin", "-bin", "--bin", "k-bin-bin" };
	uint8_t value[UINT8_MAX + 1];

	(void)state;
	for (unsigned c = 0; c <= UINT8_MAX; c++)
		value[c] = (uint8_t)c;
	for (size_t k = 0; k < WF_COUNT(keys); k++)
		assert_true(good(keys[k], value, sizeof(value)));
	/* The key keeps its rules. */
	assert_false(good("K-bin", value, sizeof(value)));
	assert_false(good("k-Bin", value, sizeof(value)));
}

static void a_value_may_be_empty(void **state)
{
	(void)state;
	assert_true(good("k", NULL, 0));
	assert_true(good("k-bin", NULL, 0));
	assert_int_equal(check_long(1, 0), 1);
}

static void a_key_may_repeat_and_all_keep_their_order(void **state)
{
	static const uint8_t block[] = {
		1, 0, 1, 0, 0, 0, 'b', '1',
		1, 0, 1, 0, 0, 0, 'a', '2',
		1, 0, 1, 0, 0, 0, 'b', '3',
		1, 0, 1, 0, 0, 0, 'b', '1',
	};
	static const char expected[] = "b1a2b3b1";
	struct wf_bytes_reader r = wf_bytes_reader(block, sizeof(block));
	struct wf_pair pair;

	(void)state;
	assert_int_equal(check(block, sizeof(block)), 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(wf_pair_get(&r, &pair), 1);
		assert_int_equal(pair.key_bytes, 1);
		assert_int_equal(pair.value_bytes, 1);
		assert_int_equal(*pair.key, expected[2 * i]);
		assert_int_equal(*pair.value, expected[2 * i + 1]);
	}
	assert_int_equal(wf_pair_get(&r, &pair), 0);
}

static void one_bad_pair_spoils_all(void **state)
{
	uint8_t block[] = {
		1, 0, 1, 0, 0, 0, 'a', '1',
		1, 0, 1, 0, 0, 0, 'b', '2',
		1, 0, 1, 0, 0, 0, 'c', '3',
	};

	(void)state;
	assert_int_equal(check(block, sizeof(block)), 3);
	for (size_t pair = 0; pair < 3; pair++) {
		uint8_t *key = &block[pair * 8 + FIXED_BYTES], *value = key + 1;

		*key -= 'a' - 'A';
		assert_int_equal(check(block, sizeof(block)), -EBADMSG);
		*key += 'a' - 'A';
		*value |= 0x80;
		assert_int_equal(check(block, sizeof(block)), -EBADMSG);
		*value &= 0x7f;
	}
	assert_int_equal(check(block, sizeof(block)), 3);
}

static void all_pairs_together_have_a_limit(void **state)
{
	enum { SMALL = FIXED_BYTES + 1, PAIRS = WF_PAIRS_BYTES_MAX / SMALL + 1 };
	static uint8_t block[PAIRS * SMALL];

	(void)state;
	assert_int_equal(check_long(1, WF_PAIRS_BYTES_MAX - FIXED_BYTES - 1), 1);
	assert_int_equal(check_long(1, WF_PAIRS_BYTES_MAX - FIXED_BYTES), -EBADMSG);
	assert_int_equal(check_long(UINT16_MAX - FIXED_BYTES + 1, 0), 1);
	assert_int_equal(check_long(UINT16_MAX, 0), -EBADMSG);
	/* The number of pairs has none of its own. */
	for (size_t i = 0; i < PAIRS; i++) {
		block[i * SMALL] = 1;
		block[i * SMALL + FIXED_BYTES] = 'k';
	}
	assert_int_equal(check(block, (PAIRS - 1) * SMALL), PAIRS - 1);
	assert_int_equal(check(block, PAIRS * SMALL), -EBADMSG);
}

static void nothing_is_no_pairs(void **state)
{
	struct wf_bytes_reader r = wf_bytes_reader("", 0);
	struct wf_pair pair;

	(void)state;
	assert_int_equal(wf_pairs_check(TEXT(""), 0), 0);
	assert_int_equal(wf_pair_get(&r, &pair), 0);
	assert_int_equal(wf_pair_get(&r, &pair), 0);
}

static void after_its_cut_a_block_stays_bad(void **state)
{
	struct wf_bytes_reader r = wf_bytes_reader(rows[0].bytes, rows[0].count - 1);
	struct wf_pair pair;

	(void)state;
	assert_int_equal(wf_pair_get(&r, &pair), -EBADMSG);
	assert_int_equal(wf_pair_get(&r, &pair), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_is_the_same_bytes_both_ways),
		cmocka_unit_test(every_other_length_is_refused),
		cmocka_unit_test(lengths_beyond_the_end_are_refused),
		cmocka_unit_test(a_key_is_of_few_characters),
		cmocka_unit_test(a_pair_without_a_key_is_refused),
		cmocka_unit_test(a_text_is_printable),
		cmocka_unit_test(a_binary_value_is_any_bytes),
		cmocka_unit_test(a_value_may_be_empty),
		cmocka_unit_test(a_key_may_repeat_and_all_keep_their_order),
		cmocka_unit_test(one_bad_pair_spoils_all),
		cmocka_unit_test(all_pairs_together_have_a_limit),
		cmocka_unit_test(nothing_is_no_pairs),
		cmocka_unit_test(after_its_cut_a_block_stays_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
