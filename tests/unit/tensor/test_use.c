/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/use.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define MANY 1000000

static struct wf_uses uses;

static int set_up(void **state)
{
	(void)state;
	wf_uses_init(&uses);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(uses.map.count, 0);
	wf_uses_fini(&uses);
	return 0;
}

static void join(struct wf_use_member *m, uint64_t step)
{
	struct wf_use *use = wf_use_get(&uses, step);

	assert_non_null(use);
	wf_use_enter(use, &use->parts, m);
	wf_use_put(use);
}

static void a_step_is_in_use_until_its_last_member_leaves(void **state)
{
	struct wf_use_member a = { 0 }, b = { 0 };

	(void)state;
	join(&a, 7);
	join(&b, 7);
	assert_int_equal(uses.map.count, 1);
	assert_null(wf_use_find(&uses, 8));

	wf_use_leave(&a);
	wf_use_leave(&a);
	assert_ptr_equal(wf_use_find(&uses, 7), b.use);
	wf_use_leave(&b);
	assert_null(wf_use_find(&uses, 7));
}

static void a_step_that_is_held_lives_without_members(void **state)
{
	struct wf_use_member a = { 0 };
	struct wf_use *use;

	(void)state;
	join(&a, 7);
	use = a.use;
	wf_use_hold(use);
	wf_use_leave(&a);
	assert_ptr_equal(wf_use_find(&uses, 7), use);
	wf_use_put(use);
	assert_null(wf_use_find(&uses, 7));
}

/* However many there are: the members of one step are all that its end meets. */
static void a_step_is_found_beside_a_million_members_of_others(void **state)
{
	struct wf_use_member *others = calloc(MANY, sizeof(*others)), mine = { 0 };
	size_t longest = 0, count = 0;
	struct wf_use *use;

	(void)state;
	assert_non_null(others);
	/* Half of them of one step, the others of a step each. */
	for (size_t i = 0; i < MANY; i++)
		join(&others[i], i % 2 ? i : 0);
	join(&mine, MANY);

	use = wf_use_find(&uses, MANY);
	WF_LIST_EACH(node, &use->parts)
		count++;
	assert_int_equal(count, 1);
	assert_null(wf_use_find(&uses, MANY + 1));
	for (size_t i = 0; i < uses.map.bucket_count; i++) {
		size_t length = 0;

		for (struct wf_map_node *at = uses.map.buckets[i]; at; at = at->next)
			length++;
		longest = WF_MAX(longest, length);
	}
	/* Of as many buckets as steps; 16 in one of them has a chance of 2^-25. */
	assert_true(longest < 16);

	for (size_t i = 0; i < MANY; i++)
		wf_use_leave(&others[i]);
	wf_use_leave(&mine);
	free(others);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_step_is_in_use_until_its_last_member_leaves,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_step_that_is_held_lives_without_members, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_step_is_found_beside_a_million_members_of_others,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
