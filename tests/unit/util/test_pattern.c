/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_pattern_matches_text_as_its_stars_allow(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} rows[] = {
		{ "node", "node", true },
		{ "node", "nod", false },
		{ "node", "node1", false },
		{ "node", "Node", false },
		{ "", "", true },
		{ "", "node", false },
		{ "node", "", false },
		{ "*", "", true },
		{ "*", "node", true },
		{ "**", "", true },
		{ "***", "node", true },
		{ "node*", "node", true },
		{ "node*", "node-1", true },
		{ "node*", "nod", false },
		{ "node*", "a-node", false },
		{ "*.example.org", "a.example.org", true },
		{ "*.example.org", "a.b.example.org", true },
		{ "*.example.org", "example.org", false },
		{ "*.example.org", "a.example.org.evil.net", false },
		{ "*a", "aaaa", true },
		{ "*ab", "aaab", true },
		{ "*ab", "aabaab", true },
		{ "*ab", "aabaa", false },
		{ "a*b*c", "abc", true },
		{ "a*b*c", "a--b--c", true },
		{ "a*b*c", "abbbcbc", true },
		{ "a*b*c", "acb", false },
		{ "a*b*c", "ab", false },
		{ "a**c", "ac", true },
		{ "*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
		{ "spiffe://one/*/trainer", "spiffe://one/job/7/trainer", true },
		{ "spiffe://one/*/trainer", "spiffe://two/job/trainer", false },
		{ "a?c", "abc", false },
		{ "a?c", "a?c", true },
		{ "*", "*", true },
		{ "a", "*", false },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++)
		if (wf_pattern_matches(rows[i].pattern, strlen(rows[i].pattern), rows[i].text,
				       strlen(rows[i].text)) !=
		    rows[i].matches)
			fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].text);
}

static void a_pattern_ends_where_its_count_says(void **state)
{
	(void)state;
	assert_true(wf_pattern_matches("node,other", 4, "node", 4));
	assert_false(wf_pattern_matches("node,other", 4, "node,other", 10));
	assert_false(wf_pattern_matches("node*", 4, "node-1", 6));
	assert_true(wf_pattern_matches("*", 0, "", 0));
	assert_false(wf_pattern_matches("*", 0, "node", 4));
}

static void a_pattern_matches_text_that_has_any_bytes(void **state)
{
	(void)state;
	assert_true(wf_pattern_matches("a*b", 3, "a\0\xff" "b", 4));
	assert_false(wf_pattern_matches("a", 1, "a\0", 2));
	assert_false(wf_pattern_matches("a*b", 3, "a\0b\0", 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_matches_text_as_its_stars_allow),
		cmocka_unit_test(a_pattern_ends_where_its_count_says),
		cmocka_unit_test(a_pattern_matches_text_that_has_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
