/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/error.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void the_code_comes_back_also_when_nobody_listens(void **state)
{
	struct wf_error e = { 0 };

	(void)state;
	assert_int_equal(wf_error_set(NULL, -EPROTO, "peer %d", 7), -EPROTO);
	assert_int_equal(wf_error_set(&e, -EPROTO, "peer %d", 7), -EPROTO);
	assert_int_equal(e.code, -EPROTO);
	assert_string_equal(e.text, "peer 7");
}

static void context_goes_before_the_sentence(void **state)
{
	struct wf_error e = { 0 };

	(void)state;
	wf_error_set(&e, -EPROTO, "speaks wire 9");
	assert_int_equal(wf_error_within(&e, "hello from %s", "b:1"), -EPROTO);
	assert_string_equal(e.text, "hello from b:1: speaks wire 9");
	assert_int_equal(e.code, -EPROTO);
}

static void a_sentence_may_quote_the_one_before(void **state)
{
	struct wf_error e = { 0 };

	(void)state;
	wf_error_set(&e, -EIO, "first");
	wf_error_set(&e, -EPIPE, "second after %s", e.text);
	assert_string_equal(e.text, "second after first");
	wf_error_within(&e, "(%s)", e.text);
	assert_string_equal(e.text, "(second after first): second after first");
}

static void a_sentence_that_is_too_long_is_cut(void **state)
{
	char most[WF_ERROR_BYTES], longer[2 * WF_ERROR_BYTES];
	struct wf_error e = { 0 };

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	memset(most, 'x', sizeof(most) - 1);
	most[sizeof(most) - 1] = '\0';

	wf_error_set(&e, -EIO, "%s", longer);
	assert_string_equal(e.text, most);
	wf_error_within(&e, "%s", longer);
	assert_string_equal(e.text, most);

	wf_error_set(&e, -EIO, "%s", longer);
	wf_error_within(&e, "here");
	memcpy(most, "here: ", 6);
	assert_string_equal(e.text, most);
}

static void every_code_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(wf_error_name(-ENOENT), strerror(ENOENT));
	assert_non_null(strstr(wf_error_name(-EMFILE), "RLIMIT_NOFILE"));
	assert_string_equal(wf_error_name(-256), "Unspecified error of the provider");
	assert_string_equal(wf_error_name(-265), "Message was cut short");
	assert_string_equal(wf_error_name(-270), "No memory can be registered any more");
	assert_string_equal(wf_error_name(-271), "Unknown error");
	assert_string_equal(wf_error_name(5), "Unknown error");
	assert_string_equal(wf_error_name(INT_MIN), "Unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_code_comes_back_also_when_nobody_listens),
		cmocka_unit_test(context_goes_before_the_sentence),
		cmocka_unit_test(a_sentence_may_quote_the_one_before),
		cmocka_unit_test(a_sentence_that_is_too_long_is_cut),
		cmocka_unit_test(every_code_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
