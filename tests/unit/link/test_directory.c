/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/directory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "link/engine.h"

/* Workers are told apart by their addresses alone. */
static struct wf_engine workers[3];
static struct wf_directory d;
static const uint8_t one[WF_INCARNATION_BYTES] = { 1 }, two[WF_INCARNATION_BYTES] = { 2 };

static int open_directory(void **state)
{
	(void)state;
	if (wf_directory_init(&d))
		return -1;
	for (size_t i = 0; i < WF_COUNT(workers); i++)
		wf_directory_join(&d, &workers[i]);
	return 0;
}

static int close_directory(void **state)
{
	(void)state;
	wf_directory_fini(&d);
	return 0;
}

static void the_next_goes_where_there_are_fewest(void **state)
{
	struct wf_directory_home homes[6], more;
	unsigned counts[3] = { 0 };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(homes); i++) {
		wf_directory_place(&d, &homes[i], "", NULL);
		counts[homes[i].engine - workers]++;
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(counts[i], 2);
	wf_directory_leave(&d, &homes[4]);
	wf_directory_place(&d, &more, "", NULL);
	assert_ptr_equal(more.engine, homes[4].engine);
	wf_directory_leave(&d, &more);
	for (size_t i = 0; i < WF_COUNT(homes); i++)
		if (i != 4)
			wf_directory_leave(&d, &homes[i]);
}

static void a_peer_that_is_known_goes_to_the_worker_that_has_it(void **state)
{
	struct wf_directory_home named, met, by_address, by_both, unknown;

	(void)state;
	wf_directory_enter(&d, &named, &workers[1], "a:1");
	wf_directory_enter(&d, &met, &workers[2], "");
	assert_ptr_equal(wf_directory_claim(&d, &met, one), &workers[2]);
	wf_directory_place(&d, &by_address, "a:1", two);
	assert_ptr_equal(by_address.engine, &workers[1]);
	/* Who he is says more than where he can be reached. */
	wf_directory_place(&d, &by_both, "a:1", one);
	assert_ptr_equal(by_both.engine, &workers[2]);
	/* No address is nobody's. */
	wf_directory_place(&d, &unknown, "", NULL);
	assert_ptr_equal(unknown.engine, &workers[0]);
	wf_directory_leave(&d, &named);
	wf_directory_leave(&d, &met);
	wf_directory_leave(&d, &by_address);
	wf_directory_leave(&d, &by_both);
	wf_directory_leave(&d, &unknown);
}

static void one_worker_at_a_time_has_a_peer(void **state)
{
	struct wf_directory_home here, also_here, there;

	(void)state;
	wf_directory_enter(&d, &here, &workers[0], "");
	wf_directory_enter(&d, &also_here, &workers[0], "");
	wf_directory_enter(&d, &there, &workers[1], "");
	assert_null(wf_directory_find(&d, one));
	assert_ptr_equal(wf_directory_claim(&d, &here, one), &workers[0]);
	assert_ptr_equal(wf_directory_claim(&d, &also_here, one), &workers[0]);
	assert_ptr_equal(wf_directory_claim(&d, &there, one), &workers[0]);
	wf_directory_disclaim(&d, &here);
	assert_ptr_equal(wf_directory_find(&d, one), &workers[0]);
	wf_directory_leave(&d, &also_here);
	assert_null(wf_directory_find(&d, one));
	assert_ptr_equal(wf_directory_claim(&d, &there, one), &workers[1]);
	wf_directory_leave(&d, &here);
	wf_directory_leave(&d, &there);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_directory, close_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_next_goes_where_there_are_fewest),
		TEST(a_peer_that_is_known_goes_to_the_worker_that_has_it),
		TEST(one_worker_at_a_time_has_a_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
