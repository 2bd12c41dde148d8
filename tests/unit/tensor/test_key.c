/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void shows(const void *key, size_t bytes, const char *expected)
{
	char text[WF_KEY_TEXT_BYTES];

	wf_key_text(key, bytes, text);
	assert_string_equal(text, expected);
}

static void a_name_is_shown_in_quotes(void **state)
{
	(void)state;
	shows("layer-1/w ~", 11, "\"layer-1/w ~\"");
	shows(NULL, 0, "\"\"");
}

static void a_key_that_is_no_name_is_shown_in_digits(void **state)
{
	(void)state;
	shows("a\0b", 3, "0x610062");
	shows("\x1f", 1, "0x1f");
	shows("\x7f", 1, "0x7f");
	shows("\xff\xfe", 2, "0xfffe");
}

static void a_long_key_is_cut(void **state)
{
	char key[WF_KEY_SHOWN + 1], expected[WF_KEY_TEXT_BYTES];

	(void)state;
	memset(key, 'k', sizeof(key));
	memset(expected, 'k', sizeof(expected));
	expected[0] = '"';
	strcpy(expected + 1 + WF_KEY_SHOWN, "\"");
	shows(key, WF_KEY_SHOWN, expected);
	strcpy(expected + 1 + WF_KEY_SHOWN, "\"...");
	shows(key, WF_KEY_SHOWN + 1, expected);

	memset(key, 0, sizeof(key));
	memset(expected, '0', sizeof(expected));
	expected[1] = 'x';
	strcpy(expected + 2 + WF_KEY_SHOWN, "...");
	shows(key, sizeof(key), expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_shown_in_quotes),
		cmocka_unit_test(a_key_that_is_no_name_is_shown_in_digits),
		cmocka_unit_test(a_long_key_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
