/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/spin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define US WF_NS_PER_US

static void a_sleep_that_ends_soon_makes_the_next_wait_spin_longer(void **state)
{
	struct wf_spin spin = wf_spin(50 * US);

	(void)state;
	wf_spin_slept(&spin, 45 * US);
	assert_int_equal(spin.limit_ns, 200 * US);
	wf_spin_slept(&spin, 149 * US);
	assert_int_equal(spin.limit_ns, 200 * US);
}

static void long_sleeps_bring_it_back(void **state)
{
	struct wf_spin spin = wf_spin(50 * US);

	(void)state;
	wf_spin_slept(&spin, 0);
	wf_spin_slept(&spin, 1000 * US);
	assert_int_equal(spin.limit_ns, 100 * US);
	wf_spin_slept(&spin, 150 * US);
	assert_int_equal(spin.limit_ns, 50 * US);
	wf_spin_slept(&spin, UINT64_MAX);
	assert_int_equal(spin.limit_ns, 50 * US);
}

static void a_loop_that_never_spins_never_begins_to(void **state)
{
	struct wf_spin spin = wf_spin(0);

	(void)state;
	wf_spin_slept(&spin, 0);
	wf_spin_slept(&spin, 1000 * US);
	assert_int_equal(spin.limit_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleep_that_ends_soon_makes_the_next_wait_spin_longer),
		cmocka_unit_test(long_sleeps_bring_it_back),
		cmocka_unit_test(a_loop_that_never_spins_never_begins_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
