/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/spare.h"

#define BYTES 2000

static void a_piece_is_used_again_and_comes_clean(void **state)
{
	static const uint8_t zeros[BYTES];
	struct wf_spare s;
	void *first, *again;

	(void)state;
	wf_spare_init(&s, BYTES);
	first = wf_spare_take(&s);
	assert_memory_equal(first, zeros, BYTES);
	memset(first, 0x5a, BYTES);
	wf_spare_give(&s, first);
	again = wf_spare_take(&s);
	if (WF_SPARE_MAX)
		assert_ptr_equal(again, first);
	assert_memory_equal(again, zeros, BYTES);
	wf_spare_give(&s, again);
	wf_spare_fini(&s);
}

static void no_more_are_kept_than_its_limit(void **state)
{
	void *pieces[WF_SPARE_MAX + 10];
	struct wf_spare s;

	(void)state;
	wf_spare_init(&s, BYTES);
	for (size_t i = 0; i < WF_COUNT(pieces); i++)
		pieces[i] = wf_spare_take(&s);
	for (size_t i = 0; i < WF_COUNT(pieces); i++)
		wf_spare_give(&s, pieces[i]);
	assert_int_equal(s.count, WF_SPARE_MAX);
	wf_spare_give(&s, NULL);
	assert_int_equal(s.count, WF_SPARE_MAX);
	wf_spare_fini(&s);
	assert_int_equal(s.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_piece_is_used_again_and_comes_clean),
		cmocka_unit_test(no_more_are_kept_than_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
