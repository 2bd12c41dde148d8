/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define COUNT 5000 /* beyond every length at which XXH3 changes its way */

static uint8_t bytes[COUNT + 64];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 167 + i / 251);
}

static void the_checksum_is_xxh3(void **state)
{
	(void)state;
	/* The published value of nothing, and that of a word: peers count on both. */
	assert_int_equal(wf_checksum("", 0), UINT64_C(0x2d06800538d394c2));
	assert_int_equal(wf_checksum("weft", 4), UINT64_C(0x15d05235f1304082));
}

static void every_processor_gets_the_same(void **state)
{
	(void)state;
	if (!wf_checksum_avx2_may_run())
		skip();
	fill();
	for (size_t count = 0; count <= COUNT; count++)
		assert_int_equal(wf_checksum_avx2(bytes + count % 64, count),
				 wf_checksum_plain(bytes + count % 64, count));
}

static void one_flipped_bit_is_seen_wherever_it_is(void **state)
{
	uint64_t right;

	(void)state;
	fill();
	right = wf_checksum(bytes, COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		bytes[i] ^= (uint8_t)(1 << i % 8);
		assert_int_not_equal(wf_checksum(bytes, COUNT), right);
		bytes[i] ^= (uint8_t)(1 << i % 8);
	}
	assert_int_equal(wf_checksum(bytes, COUNT), right);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_checksum_is_xxh3),
		cmocka_unit_test(every_processor_gets_the_same),
		cmocka_unit_test(one_flipped_bit_is_seen_wherever_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
