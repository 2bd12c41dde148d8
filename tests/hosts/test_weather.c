/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with a long way between them, on which packets get lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "crossing.h"

#define MIB ((size_t)1024 * 1024)
#define DELAY_MS 20u
#define LOST_PERCENT 5u

/* Small and large, both ways. */
static void exchange(struct pair *pair)
{
	for (unsigned i = 0; i < 20; i++)
		pair_ping(pair->peer);
	for (unsigned i = 0; i < 3; i++)
		pair_exchange(pair, &pair->other);
	pair_do(&pair->other, "send 3 body %zu 4", 2 * MIB);
	pair_received(pair_recv(pair->node, pair->peer, 3, "body"), 2 * MIB, 4);
	pair_do(&pair->other, "finish");
}

static void a_long_way_only_takes_longer(void **state)
{
	const char *provider;
	struct pair pair;
	uint64_t began;

	(void)state;
	for (provider = pair_first(); provider; provider = pair_next()) {
		crossing_open(&pair, provider, 1);
		pair_ping(pair.peer);
		began = pair_now_ns();
		pair_ping(pair.peer);
		need(pair_now_ns() - began >= 2 * DELAY_MS * PAIR_MS);
		exchange(&pair);
		crossing_close(&pair);
	}
}

static void packets_that_get_lost_only_cost_time(void **state)
{
	struct weft_counters counters = { .size = sizeof(counters) };
	char reason[HOSTS_REASON_BYTES];
	const char *provider;
	struct pair pair;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		crossing_skip_unless(hosts_lose(i, LOST_PERCENT, reason), reason);
	for (provider = pair_first(); provider; provider = pair_next()) {
		crossing_open(&pair, provider, 1);
		exchange(&pair);
		need(!weft_node_counters(pair.node, &counters));
		need(!counters.peers_lost);
		crossing_close(&pair);
	}
}

int main(int argc, char **argv)
{
	static const struct hosts_plan plan = { .count = 2, .networks = 1, .delay_ms = DELAY_MS };
	const struct CMUnitTest tests[] = {
		crossing_test(a_long_way_only_takes_longer),
		crossing_test(packets_that_get_lost_only_cost_time),
	};
	int status;

	if (!crossing_begin(argc, argv, &plan, NULL, &status))
		return status;
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
