/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* What @print writes of @text is @expected. */
static void says(void (*print)(FILE *out, const char *text), const char *text,
		 const char *expected)
{
	char *written = NULL;
	size_t bytes;
	FILE *out = open_memstream(&written, &bytes);

	assert_non_null(out);
	print(out, text);
	fclose(out);
	assert_string_equal(written, expected);
	free(written);
}

static void words_of_any_script_are_printed_as_they_are(void **state)
{
	static const char words[] = "node-1 \"a\\b\" \xc3\xa9 \xe2\x82\xac \xf0\x9f\xa7\xb6";

	(void)state;
	says(text_print, words, words);
}

static void text_that_steers_a_terminal_is_shown_and_not_done(void **state)
{
	(void)state;
	says(text_print, "a\x1b[2Jb\r\n\a", "a\\x1b[2Jb\\x0d\\x0a\\x07");
	says(text_print, "\x7f \xc2\x9b" "2J", "\\x7f \\x9b2J"); /* the longer form of the same */
	says(text_print, "a\xe2\x80\xae" "b", "a\\u202eb");
}

static void lines_of_a_dump_stay_lines(void **state)
{
	(void)state;
	says(text_print_lines, "a\x1b" "b\nc\td\n", "a\\x1b" "b\nc\\x09d\n");
}

static void bytes_that_are_no_utf8_are_shown_as_bytes(void **state)
{
	(void)state;
	says(text_print, "\x9b" "2J", "\\x9b2J");
	says(text_print, "\xc0\x9b", "\\xc0\\x9b");         /* longer than need be */
	says(text_print, "\xed\xa0\x80", "\\xed\\xa0\\x80"); /* half of a pair */
	says(text_print, "\xe2\x82", "\\xe2\\x82");          /* cut off */
	says(text_print, "\xf8", "\\xf8");
}

static void a_string_of_json_stays_one(void **state)
{
	(void)state;
	says(text_quote, "a\"b\\c", "\"a\\\"b\\\\c\"");
	says(text_quote, "\x1b\n\x7f\xc2\x9b", "\"\\u001b\\u000a\\u007f\\u009b\"");
	says(text_quote, "a\xff" "b", "\"a\\ufffdb\"");
	says(text_quote, "\xe2\x80\xae", "\"\\u202e\"");
}

static void whole_json_keeps_its_lines(void **state)
{
	(void)state;
	says(text_print_json, "{\n\t\"a\":\t\"\x7f\xc2\x9b\"\n}\n",
	     "{\n\t\"a\":\t\"\\u007f\\u009b\"\n}\n");
}

static void text_in_xml_stays_text(void **state)
{
	(void)state;
	says(text_print_xml, "a<b> & \"c\" 'd'", "a&#60;b&#62; &#38; &#34;c&#34; &#39;d&#39;");
	says(text_print_xml, "\xe2\x82\xac\x1b\n\xff\xef\xbf\xbf",
	     "\xe2\x82\xac&#xfffd;&#xfffd;&#xfffd;&#xfffd;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_any_script_are_printed_as_they_are),
		cmocka_unit_test(text_that_steers_a_terminal_is_shown_and_not_done),
		cmocka_unit_test(lines_of_a_dump_stay_lines),
		cmocka_unit_test(bytes_that_are_no_utf8_are_shown_as_bytes),
		cmocka_unit_test(a_string_of_json_stays_one),
		cmocka_unit_test(whole_json_keeps_its_lines),
		cmocka_unit_test(text_in_xml_stays_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
