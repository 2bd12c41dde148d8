/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/crowd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "util/clock.h"

#define START_NS (100 * WF_NS_PER_S)

static struct wf_crowd crowd;

static bool comes(const char *from, uint64_t now_ns)
{
	return wf_crowd_admits(&crowd, wf_crowd_source(&crowd, from), from, now_ns);
}

static unsigned come(const char *from, unsigned count, uint64_t now_ns)
{
	unsigned admitted = 0;

	while (count--)
		admitted += comes(from, now_ns);
	return admitted;
}

static void one_source_is_one_whatever_its_port(void **state)
{
	(void)state;
	wf_crowd_init(&crowd);
	assert_int_equal(wf_crowd_source(&crowd, "10.0.0.1:5"), wf_crowd_source(&crowd, "10.0.0.1:6"));
	assert_int_equal(wf_crowd_source(&crowd, "[2001:db8::1]:5"),
			 wf_crowd_source(&crowd, "[2001:db8::ffff:1]:6"));
}

static void neighbours_on_one_cable_are_one_source(void **state)
{
	(void)state;
	wf_crowd_init(&crowd);
	for (unsigned i = 2; i < 20; i++) {
		char from[32];

		(void)snprintf(from, sizeof(from), "[fe80::%x%%eth0]:5", i);
		assert_int_equal(wf_crowd_source(&crowd, from),
				 wf_crowd_source(&crowd, "[fe80::1%eth0]:5"));
	}
}

/*
 * Assert that hosts whose last byte differs, between @before and @after, are told apart from the
 * first.  They may share a number, one in a thousand; all of them do not.
 */
static void assert_told_apart(const char *before, const char *after)
{
	uint32_t first = 0;
	unsigned same = 0;

	for (unsigned i = 1; i < 100; i++) {
		char from[32];

		(void)snprintf(from, sizeof(from), "%s%u%s", before, i, after);
		if (i == 1)
			first = wf_crowd_source(&crowd, from);
		else
			same += wf_crowd_source(&crowd, from) == first;
	}
	assert_in_range(same, 0, 10);
}

static void sources_are_told_apart(void **state)
{
	(void)state;
	wf_crowd_init(&crowd);
	assert_told_apart("10.0.0.", ":5");
}

static void hosts_of_ipv4_are_themselves_at_a_socket_of_both_families(void **state)
{
	(void)state;
	wf_crowd_init(&crowd);
	assert_int_equal(wf_crowd_source(&crowd, "[::ffff:10.0.0.1]:5"),
			 wf_crowd_source(&crowd, "10.0.0.1:5"));
	assert_told_apart("[::ffff:10.0.0.", "]:5");
	assert_int_equal(come("[::ffff:127.0.0.1]:5", 10000, START_NS), 10000);
}

static void a_burst_comes_in_and_then_so_many_a_second(void **state)
{
	(void)state;
	wf_crowd_init(&crowd);
	assert_int_equal(come("10.0.0.1:5", 2 * WF_CROWD_BURST, START_NS), WF_CROWD_BURST);
	assert_int_equal(come("10.0.0.1:5", 1000, START_NS + WF_NS_PER_S), WF_CROWD_PER_SECOND);
	for (unsigned i = 1; i <= 10 * WF_CROWD_PER_SECOND; i++) {
		uint64_t at_ns = START_NS + WF_NS_PER_S + i * (WF_NS_PER_S / WF_CROWD_PER_SECOND);

		assert_int_equal(come("10.0.0.1:5", 3, at_ns), 1);
	}
	assert_int_equal(come("10.0.0.1:5", 1000, START_NS + 100 * WF_NS_PER_S), WF_CROWD_BURST);
}

static void loopback_has_no_limit(void **state)
{
	(void)state;
	wf_crowd_init(&crowd);
	assert_int_equal(come("127.0.0.1:5", 10000, START_NS), 10000);
	assert_int_equal(come("[::1]:5", 10000, START_NS), 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_source_is_one_whatever_its_port),
		cmocka_unit_test(neighbours_on_one_cable_are_one_source),
		cmocka_unit_test(sources_are_told_apart),
		cmocka_unit_test(hosts_of_ipv4_are_themselves_at_a_socket_of_both_families),
		cmocka_unit_test(a_burst_comes_in_and_then_so_many_a_second),
		cmocka_unit_test(loopback_has_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
