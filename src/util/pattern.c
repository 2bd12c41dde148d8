/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/pattern.h"

bool wf_pattern_matches(const char *pattern, size_t pattern_bytes, const char *text, size_t bytes)
{
	const char *pattern_end = pattern + pattern_bytes, *end = text + bytes;
	const char *star = NULL, *again = NULL;

	while (text < end) {
		if (pattern < pattern_end && *pattern == '*') {
			star = ++pattern;
			again = text;
		} else if (pattern < pattern_end && *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			/* The last star takes one character more. */
			pattern = star;
			text = ++again;
		} else {
			return false;
		}
	}
	while (pattern < pattern_end && *pattern == '*')
		pattern++;
	return pattern == pattern_end;
}
