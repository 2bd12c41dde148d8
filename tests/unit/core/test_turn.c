/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guests of a worker's loop, and whether its thread expects them back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "core/node.h"
#include "core/turn.h"
#include "util/clock.h"

#define LIMIT_NS (20 * WF_NS_PER_S)

static struct weft_node *node;
static unsigned looks; /* of a visit at what it waits for: none, and the thread kept the loop */

static int set_up(void **state)
{
	(void)state;
	setenv("FI_PROVIDER", "tcp", 1);
	setenv("WEFT_SPIN", "50us", 1);
	return weft_node_open(NULL, &node);
}

static int tear_down(void **state)
{
	(void)state;
	weft_node_close(node);
	return 0;
}

static bool count_look(void *ctx)
{
	looks++;
	return *(bool *)ctx;
}

/* Wait on the node's loop for what comes at once or never.  Returns whether a guest is expected. */
static bool visit(bool comes, uint64_t until_ns)
{
	struct wf_worker *worker = &node->workers[0];
	bool ended = false, expected;

	for (looks = 0; !looks && wf_clock_now() < until_ns;)
		ended = wf_turn_visit(worker, count_look, &comes, until_ns);
	assert_int_equal(ended, comes);
	pthread_mutex_lock(&worker->baton.lock);
	expected = worker->baton.expected;
	pthread_mutex_unlock(&worker->baton.lock);
	return expected;
}

static void a_guest_that_spins_in_vain_is_not_expected_back(void **state)
{
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		assert_false(visit(false, until_ns));
	assert_true(wf_clock_now() < until_ns);
}

static void a_guest_whose_wait_is_over_is_expected_back(void **state)
{
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;

	(void)state;
	/* The thread may have waited for it in vain before this one could look. */
	while (!visit(true, until_ns))
		assert_true(wf_clock_now() < until_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_guest_that_spins_in_vain_is_not_expected_back,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_guest_whose_wait_is_over_is_expected_back,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
