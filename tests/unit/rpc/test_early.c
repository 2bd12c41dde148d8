/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/early.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static void a_call_that_was_cancelled_is_found_once(void **state)
{
	struct wf_early *early = NULL;

	(void)state;
	assert_false(wf_early_take(early, 0));
	wf_early_add(&early, 7);
	wf_early_add(&early, 0);
	assert_false(wf_early_take(early, 8));
	assert_true(wf_early_take(early, 7));
	assert_false(wf_early_take(early, 7));
	assert_true(wf_early_take(early, 0));
	assert_false(wf_early_take(early, 0));
	free(early);
}

static void the_last_ones_are_remembered(void **state)
{
	struct wf_early *early = NULL;

	(void)state;
	for (uint64_t call = 0; call < 3 * WF_EARLY_MAX + 5; call++)
		wf_early_add(&early, call);
	assert_false(wf_early_take(early, 2 * WF_EARLY_MAX + 4));
	for (uint64_t call = 2 * WF_EARLY_MAX + 5; call < 3 * WF_EARLY_MAX + 5; call++)
		assert_true(wf_early_take(early, call));
	assert_int_equal(early->count, 0);
	free(early);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_was_cancelled_is_found_once),
		cmocka_unit_test(the_last_ones_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
