/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/log.h"

#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static char heard[1024];
static int heard_count;

static void hear(void *arg, int level, const char *text)
{
	heard_count++;
	(void)snprintf(heard, sizeof(heard), "%s %d %s", (const char *)arg, level, text);
}

static void lines_above_the_level_are_dropped(void **state)
{
	struct wf_log log = { .line = hear, .arg = "node", .level = WF_LOG_INFO };

	(void)state;
	heard_count = 0;
	wf_log(&log, WF_LOG_DEBUG, "step %d", 1);
	assert_int_equal(heard_count, 0);
	wf_log(&log, WF_LOG_INFO, "step %d", 2);
	assert_int_equal(heard_count, 1);
	assert_string_equal(heard, "node 2 step 2");
}

static void without_a_listener_nothing_happens(void **state)
{
	struct wf_log silent = { .level = WF_LOG_DEBUG };

	(void)state;
	wf_log(NULL, WF_LOG_WARN, "nobody");
	wf_log(&silent, WF_LOG_WARN, "nobody");
}

static void a_peers_name_cannot_begin_a_line_of_its_own(void **state)
{
	struct wf_log log = { .line = hear, .arg = "node", .level = WF_LOG_WARN };

	(void)state;
	wf_log(&log, WF_LOG_WARN, "lost %s", "a\nall is well\x1b[2J\x7f");
	assert_string_equal(heard, "node 1 lost a all is well [2J ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_above_the_level_are_dropped),
		cmocka_unit_test(without_a_listener_nothing_happens),
		cmocka_unit_test(a_peers_name_cannot_begin_a_line_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
