/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/reason.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_kept_reason_comes_back_as_it_was_given(void **state)
{
	struct wf_reason r = { 0 };
	struct wf_error e, got;

	(void)state;
	wf_error_set(&e, -ENOMEM, "the first");
	wf_reason_keep(&r, &e);
	wf_error_set(&e, -EIO, "%s", "100%s of it");
	wf_reason_keep(&r, &e);

	assert_ptr_equal(wf_reason_get(&r, &got), &got);
	assert_int_equal(got.code, -EIO);
	assert_string_equal(got.text, "100%s of it");
	assert_string_equal(wf_reason_text(&r), "100%s of it");
	wf_reason_drop(&r);
}

static void without_memory_the_name_of_the_code_is_left(void **state)
{
	struct wf_reason r = { .code = -EIO };

	(void)state;
	assert_string_equal(wf_reason_text(&r), wf_error_name(-EIO));
}

static void no_reason_is_no_error(void **state)
{
	struct wf_reason r = { 0 };
	struct wf_error e;

	(void)state;
	assert_null(wf_reason_get(&r, &e));
	assert_string_equal(wf_reason_text(&r), "");
	wf_error_set(&e, -EIO, "gone");
	wf_reason_keep(&r, &e);
	wf_reason_drop(&r);
	wf_reason_drop(&r);
	assert_null(wf_reason_get(&r, &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kept_reason_comes_back_as_it_was_given),
		cmocka_unit_test(without_memory_the_name_of_the_code_is_left),
		cmocka_unit_test(no_reason_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
