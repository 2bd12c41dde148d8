/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void the_same_names_are_kept_once(void **state)
{
	const struct wf_names *tcp = wf_names_of("tcp", "eth0");

	(void)state;
	assert_non_null(tcp);
	assert_string_equal(tcp->provider, "tcp");
	assert_string_equal(tcp->device, "eth0");
	assert_ptr_equal(wf_names_of("tcp", "eth0"), tcp);
	assert_ptr_not_equal(wf_names_of("tcp", "eth1"), tcp);
	assert_ptr_not_equal(wf_names_of("tcp", ""), tcp);
}

static void a_name_that_is_too_long_is_cut(void **state)
{
	char name[2 * WF_NAMES_BYTES];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(strlen(wf_names_of(name, "")->provider), WF_NAMES_BYTES - 1);
}

static void there_is_a_bound_and_what_was_known_stays(void **state)
{
	const struct wf_names *known = wf_names_of("verbs", "mlx5_0");
	char name[32];

	(void)state;
	for (unsigned i = 0; i <= WF_NAMES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "made up %u", i);
		(void)wf_names_of(name, "");
	}
	assert_null(wf_names_of("one more", ""));
	assert_ptr_equal(wf_names_of("verbs", "mlx5_0"), known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_names_are_kept_once),
		cmocka_unit_test(a_name_that_is_too_long_is_cut),
		cmocka_unit_test(there_is_a_bound_and_what_was_known_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
