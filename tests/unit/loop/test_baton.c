/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/baton.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "util/clock.h"

#define US WF_NS_PER_US

static struct wf_baton baton;

static int set_up(void **state)
{
	(void)state;
	baton = (struct wf_baton){ 0 };
	return wf_baton_init(&baton);
}

static int tear_down(void **state)
{
	(void)state;
	wf_baton_fini(&baton);
	return 0;
}

static void a_guest_gets_the_baton_of_a_resident_that_sleeps(void **state)
{
	(void)state;
	wf_baton_enter(&baton);
	assert_false(wf_baton_take(&baton, 1000));
	wf_baton_sleep(&baton);
	assert_true(wf_baton_take(&baton, 1000));
	assert_false(wf_baton_take(&baton, 1000)); /* there is one baton */
	assert_true(wf_baton_give(&baton, 2000, true));
	assert_true(wf_baton_wake(&baton));
	wf_baton_sleep(&baton);
	assert_false(wf_baton_wake(&baton)); /* nobody was there */
	wf_baton_leave(&baton);
}

/* A resident that turns the loop of nobody's gives the baton within a turn. */
static void *spin(void *arg)
{
	_Atomic bool *over = arg;

	wf_baton_enter(&baton);
	while (!atomic_load(over))
		if (wf_baton_is_wanted(&baton))
			wf_baton_yield(&baton);
	wf_baton_leave(&baton);
	return NULL;
}

/* Start a thread that spins with the baton until @over. */
static pthread_t start_resident(_Atomic bool *over)
{
	pthread_t resident;

	assert_int_equal(pthread_create(&resident, NULL, spin, over), 0);
	while (atomic_load(&baton.holder) != WF_BATON_RESIDENT)
		;
	return resident;
}

static void a_guest_that_asks_gets_the_baton_of_a_resident_that_spins(void **state)
{
	_Atomic bool over = false;
	pthread_t resident;

	(void)state;
	resident = start_resident(&over);
	for (int i = 0; i < 100; i++) {
		/* A promise that this thread was too slow for lapses, and it asks again. */
		do {
			wf_baton_ask(&baton, true);
			sched_yield();
		} while (!wf_baton_take(&baton, wf_clock_now()));
		assert_false(wf_baton_is_wanted(&baton));
		(void)wf_baton_give(&baton, wf_clock_now(), i % 2);
	}
	atomic_store(&over, true);
	assert_int_equal(pthread_join(resident, NULL), 0);
}

/* The resident lets go for a guest that gives up just then, or the guest sees that it has. */
static void a_guest_that_gives_up_leaves_no_baton_that_is_promised_to_nobody(void **state)
{
	_Atomic bool over = false;
	pthread_t resident;

	(void)state;
	resident = start_resident(&over);
	for (int i = 0; i < 1000000; i++) {
		bool promised;

		wf_baton_ask(&baton, true);
		wf_baton_ask(&baton, false);
		if (wf_baton_take(&baton, wf_clock_now())) {
			(void)wf_baton_give(&baton, wf_clock_now(), false);
			continue;
		}
		pthread_mutex_lock(&baton.lock);
		promised = baton.promised;
		pthread_mutex_unlock(&baton.lock);
		assert_false(promised);
	}
	atomic_store(&over, true);
	assert_int_equal(pthread_join(resident, NULL), 0);
}

static void a_guest_that_comes_back_is_expected(void **state)
{
	(void)state;
	/* Nobody has said that guests stay away: the first is trusted. */
	assert_true(wf_baton_take(&baton, 1000 * US));
	(void)wf_baton_give(&baton, 1001 * US, true);
	assert_true(wf_baton_resume(&baton, 1002 * US));
	(void)wf_baton_give(&baton, 1003 * US, true);
	assert_true(wf_baton_resume(&baton, 1004 * US));
	/* Another thread waits, and only the resident can end its wait. */
	(void)wf_baton_give(&baton, 1005 * US, false);
	assert_false(wf_baton_resume(&baton, 1006 * US));
}

static void a_resident_takes_over_from_a_guest_that_stays_away(void **state)
{
	(void)state;
	assert_true(wf_baton_take(&baton, wf_clock_now()));
	(void)wf_baton_give(&baton, wf_clock_now(), true);
	wf_baton_enter(&baton); /* returns after WF_BATON_ALONE_NS, or a little more */
	wf_baton_sleep(&baton);
	/* A guest that has not come back once must come back twice to be expected again. */
	assert_true(wf_baton_take(&baton, wf_clock_now() + 1000 * US));
	(void)wf_baton_give(&baton, 1001 * US, true);
	assert_false(wf_baton_resume(&baton, 1002 * US));
	assert_true(wf_baton_take(&baton, 1002 * US));
	(void)wf_baton_give(&baton, 1003 * US, true);
	assert_true(wf_baton_take(&baton, 1004 * US));
	(void)wf_baton_give(&baton, 1005 * US, true);
	assert_true(wf_baton_resume(&baton, 1006 * US));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_guest_gets_the_baton_of_a_resident_that_sleeps,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_guest_that_asks_gets_the_baton_of_a_resident_that_spins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_guest_that_gives_up_leaves_no_baton_that_is_promised_to_nobody, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_guest_that_comes_back_is_expected, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_resident_takes_over_from_a_guest_that_stays_away,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
