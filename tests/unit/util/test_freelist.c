/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/freelist.h"

#define BYTES 2000
#define FROM 500
#define TO 1500
#define KEPT (WF_FREELIST_BYTES_MAX / BYTES)

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
_Static_assert(!WF_FREELIST_BYTES_MAX, "a sanitizer misses a use of a piece that was given back");
#endif

static void a_piece_is_used_again_and_comes_clean_where_it_is_to_be(void **state)
{
	static const uint8_t zeros[TO - FROM];
	struct wf_freelist s;
	uint8_t *first, *again;

	(void)state;
	wf_freelist_init(&s, BYTES, FROM, TO);
	first = wf_freelist_take(&s);
	assert_memory_equal(first + FROM, zeros, TO - FROM);
	memset(first, 0x5a, BYTES);
	wf_freelist_give(&s, first);
	again = wf_freelist_take(&s);
	if (WF_FREELIST_BYTES_MAX)
		assert_ptr_equal(again, first);
	assert_memory_equal(again + FROM, zeros, TO - FROM);
	/* Not touched, or filled so that who expects zeros there is seen. */
	assert_int_equal(again[FROM - 1], WF_FREELIST_BYTES_MAX ? 0x5a : 0xa5);
	assert_int_equal(again[TO], WF_FREELIST_BYTES_MAX ? 0x5a : 0xa5);
	wf_freelist_give(&s, again);
	wf_freelist_fini(&s);
}

static void no_more_are_kept_than_its_limit(void **state)
{
	void *pieces[KEPT + 10];
	struct wf_freelist s;

	(void)state;
	wf_freelist_init(&s, BYTES, 0, 0);
	for (size_t i = 0; i < WF_COUNT(pieces); i++)
		pieces[i] = wf_freelist_take(&s);
	for (size_t i = 0; i < WF_COUNT(pieces); i++)
		wf_freelist_give(&s, pieces[i]);
	assert_int_equal(s.count, KEPT);
	wf_freelist_give(&s, NULL);
	assert_int_equal(s.count, KEPT);
	wf_freelist_fini(&s);
	assert_int_equal(s.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_piece_is_used_again_and_comes_clean_where_it_is_to_be),
		cmocka_unit_test(no_more_are_kept_than_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
