/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs of several hosts: what launchers say of hosts, and nodes that others can't reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/examples/process.h"
#include "tests/hosts/hosts.h"

#define RANKS 3 /* two on the first host, one on the second */

static struct process members[RANKS];

static unsigned host_of(unsigned rank)
{
	return rank / 2;
}

/* Start @rank on its host, with three @variables more. */
static void start(unsigned rank, bool within_reach, const char *const variables[3])
{
	char path[512], self[512], listen[64];
	const char *argv[] = { process_path("tests/hosts/test_groups", self), "--run",
			       process_path("tests/group/member", path), NULL };
	const char *list[] = { variables[0], variables[1], variables[2], "WEFT_JOIN_TIMEOUT=30s",
			       within_reach ? "WEFT_SECURITY=open" : NULL, listen, NULL };

	snprintf(listen, sizeof(listen), "WEFT_LISTEN=%s:0", hosts_address(host_of(rank), 0));
	hosts_start_on(host_of(rank), false);
	process_start(&members[rank], list, argv);
}

static void ends(unsigned rank)
{
	if (!process_wait(&members[rank], PROCESS_LIMIT_MS))
		fail_msg("rank %u does not end: %s", rank, process_err(&members[rank]));
}

static void all_met(const char *launcher)
{
	char line[100];

	for (unsigned i = 0; i < RANKS; i++) {
		ends(i);
		snprintf(line, sizeof(line), "rank %u of %u, local %u of %u, by %s\nmet all\n", i, RANKS,
			 i % 2, host_of(i) ? 1 : 2, launcher);
		if (members[i].status)
			fail_msg("rank %u: %s", i, process_err(&members[i]));
		assert_string_equal(process_out(&members[i]), line);
	}
}

static int need_hosts(void **state)
{
	(void)state;
	if (!hosts_count())
		skip();
	return 0;
}

static int stop_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RANKS; i++)
		process_stop(&members[i]);
	return 0;
}

static void processes_on_two_hosts_meet_at_the_address_of_one(void **state)
{
	char bootstrap[64], rank[32];

	need_hosts(state);
	snprintf(bootstrap, sizeof(bootstrap), "WEFT_BOOTSTRAP=%s:5000", hosts_address(0, 0));
	for (unsigned i = 0; i < RANKS; i++) {
		snprintf(rank, sizeof(rank), "WEFT_RANK=%u", i);
		start(i, true, (const char *const[]){ bootstrap, rank, "WEFT_SIZE=3" });
	}
	all_met("address");
}

/* The name of a host may stand for its loopback there, as Debian has it. */
static void rank_0_is_met_by_a_name_that_is_loopback_on_its_own_host(void **state)
{
	char rank[32];

	need_hosts(state);
	assert_true(hosts_do(0, "echo 127.0.1.1 first >>/etc/hosts"));
	assert_true(hosts_do(1, "echo %s first >>/etc/hosts", hosts_address(0, 0)));
	for (unsigned i = 0; i < RANKS; i++) {
		snprintf(rank, sizeof(rank), "WEFT_RANK=%u", i);
		start(i, true, (const char *const[]){ "WEFT_BOOTSTRAP=first:5000", rank, "WEFT_SIZE=3" });
	}
	all_met("address");
}

static void a_node_on_loopback_is_named_to_all(void **state)
{
	char bootstrap[64], rank[32];

	need_hosts(state);
	snprintf(bootstrap, sizeof(bootstrap), "WEFT_BOOTSTRAP=%s:5000", hosts_address(0, 0));
	for (unsigned i = 0; i < RANKS; i++) {
		snprintf(rank, sizeof(rank), "WEFT_RANK=%u", i);
		start(i, i < 2, (const char *const[]){ bootstrap, rank, "WEFT_SIZE=3" });
	}
	for (unsigned i = 0; i < RANKS; i++) {
		ends(i);
		assert_int_equal(members[i].status, 1);
		if (!strstr(process_err(&members[i]), "the job has 2 hosts, and the node of rank 2 is at "
						      "127.0.0.1:"))
			fail_msg("rank %u: %s", i, process_err(&members[i]));
	}
}

int main(int argc, char **argv)
{
	const struct hosts_plan plan = { .count = 2, .networks = 1 };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(processes_on_two_hosts_meet_at_the_address_of_one, stop_all),
		cmocka_unit_test_teardown(rank_0_is_met_by_a_name_that_is_loopback_on_its_own_host,
					  stop_all),
		cmocka_unit_test_teardown(a_node_on_loopback_is_named_to_all, stop_all),
	};
	char reason[HOSTS_REASON_BYTES];

	hosts_arrive(argc, argv);
	if (!hosts_make(&plan, reason))
		print_message("skip: %s\n", reason);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
