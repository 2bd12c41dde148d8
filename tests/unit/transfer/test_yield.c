/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads of bulk while records of a higher priority come and go. */
#include "transfer/yield.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "link/link.h"
#include "transfer/reads.h"
#include "transfer/transfer.h"
#include "util/clock.h"

#define NOW_NS (1000 * WF_NS_PER_S)

/* A pull of 64 MiB over a rail whose reads last until they are done, and its helper. */
static struct wf_rail_caps caps;
static struct wf_engine *engine;
static struct wf_transfer *transfer;
static struct wf_link *link;
static struct wf_pull *pull;

static int set_up(void **state)
{
	(void)state;
	engine = calloc(1, sizeof(*engine));
	transfer = calloc(1, sizeof(*transfer));
	link = calloc(1, sizeof(*link));
	pull = calloc(1, sizeof(*pull));
	if (!engine || !transfer || !link || !pull)
		return -1;
	caps = (struct wf_rail_caps){ .sync_read = true };
	engine->loop.now_ns = NOW_NS;
	transfer->engine = engine;
	pull->transfer = transfer;
	pull->link = link;
	pull->path.caps = &caps;
	pull->body.bytes = 64 * MIB;
	pull->rail = (struct wf_pull_rail){ .chunk_bytes = MIB, .depth = 1, .helper = true };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(pull);
	free(link);
	free(transfer);
	free(engine);
	return 0;
}

static void without_urgent_records_the_helper_reads_chunks(void **state)
{
	(void)state;
	assert_true(wf_reads_for_helper(pull));
	assert_false(wf_yield_pauses(pull));
	assert_int_equal(wf_yield_chunk_bytes(pull), MIB);
}

static void beside_urgent_records_reads_are_short_and_the_helper_has_none(void **state)
{
	(void)state;
	link->yields.urgent_ns[1] = NOW_NS - WF_NS_PER_MS;
	assert_false(wf_reads_for_helper(pull));
	assert_true(wf_yield_pauses(pull));
	assert_int_equal(wf_yield_chunk_bytes(pull), 8 * KIB);
}

static void the_helper_reads_again_when_no_urgent_record_has_come_for_long(void **state)
{
	(void)state;
	link->yields.urgent_ns[1] = NOW_NS - WF_NS_PER_S;
	assert_true(wf_reads_for_helper(pull));
	assert_int_equal(wf_yield_chunk_bytes(pull), MIB);
}

static void records_of_its_own_priority_leave_a_pull_its_helper(void **state)
{
	(void)state;
	pull->yield.priority = 1;
	link->yields.urgent_ns[1] = NOW_NS;
	assert_true(wf_reads_for_helper(pull));
	assert_int_equal(wf_yield_chunk_bytes(pull), MIB);
}

static void a_read_that_the_wire_carries_needs_no_pause(void **state)
{
	(void)state;
	caps.sync_read = false;
	link->yields.urgent_ns[3] = NOW_NS;
	assert_false(wf_yield_pauses(pull));
	assert_int_equal(wf_yield_chunk_bytes(pull), 16 * KIB);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FRESH(without_urgent_records_the_helper_reads_chunks),
		FRESH(beside_urgent_records_reads_are_short_and_the_helper_has_none),
		FRESH(the_helper_reads_again_when_no_urgent_record_has_come_for_long),
		FRESH(records_of_its_own_priority_leave_a_pull_its_helper),
		FRESH(a_read_that_the_wire_carries_needs_no_pause),
	};
#undef FRESH
	return cmocka_run_group_tests(tests, NULL, NULL);
}
