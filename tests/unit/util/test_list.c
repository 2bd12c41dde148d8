/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct item {
	int number;
	struct wf_list node;
};

/* The numbers of @list as digits of one decimal, and its links checked both ways. */
static int digits(struct wf_list *list)
{
	int all = 0;

	WF_LIST_EACH(node, list) {
		assert_ptr_equal(node->next->prev, node);
		assert_ptr_equal(node->prev->next, node);
		all = 10 * all + WF_CONTAINER(node, struct item, node)->number;
	}
	return all;
}

static void fill(struct wf_list *list, struct item *items, int first, int count)
{
	wf_list_init(list);
	for (int i = 0; i < count; i++) {
		items[i].number = first + i;
		wf_list_append(list, &items[i].node);
	}
}

static void members_come_out_in_the_order_they_were_put(void **state)
{
	struct item items[3], front = { .number = 9 };
	struct wf_list list;

	(void)state;
	fill(&list, items, 1, 3);
	wf_list_prepend(&list, &front.node);
	assert_int_equal(digits(&list), 9123);

	assert_ptr_equal(wf_list_first(&list), &front.node);
	assert_ptr_equal(wf_list_pop(&list), &front.node);
	assert_ptr_equal(wf_list_pop(&list), &items[0].node);
	assert_int_equal(digits(&list), 23);
}

static void removing_twice_is_harmless(void **state)
{
	struct item items[3];
	struct wf_list list;

	(void)state;
	fill(&list, items, 1, 3);
	wf_list_remove(&items[1].node);
	wf_list_remove(&items[1].node);
	assert_int_equal(digits(&list), 13);
	assert_true(wf_list_empty(&items[1].node));
}

static void a_member_may_be_removed_inside_the_loop(void **state)
{
	struct item items[5];
	struct wf_list list;

	(void)state;
	fill(&list, items, 1, 5);
	WF_LIST_EACH(node, &list)
		if (WF_CONTAINER(node, struct item, node)->number % 2)
			wf_list_remove(node);
	assert_int_equal(digits(&list), 24);
}

static void any_member_may_be_removed_or_appended_inside_the_loop_of_now(void **state)
{
	struct item items[4], late = { .number = 9 };
	struct wf_list list;
	int seen = 0;

	(void)state;
	fill(&list, items, 1, 4);
	WF_LIST_EACH_OF_NOW(node, &list) {
		int number = WF_CONTAINER(node, struct item, node)->number;

		seen = 10 * seen + number;
		if (number == 2) {
			wf_list_remove(&items[0].node);
			wf_list_remove(&items[2].node);
			wf_list_append(&list, &late.node);
		}
	}
	assert_int_equal(seen, 124);
	assert_int_equal(digits(&list), 294);
}

static void splice_moves_everything_behind_what_is_there(void **state)
{
	struct item items[2], more[2];
	struct wf_list list, from;

	(void)state;
	fill(&list, items, 1, 2);
	fill(&from, more, 3, 2);
	wf_list_splice(&list, &from);
	assert_int_equal(digits(&list), 1234);
	assert_true(wf_list_empty(&from));

	wf_list_splice(&list, &from);
	assert_int_equal(digits(&list), 1234);
	wf_list_splice(&from, &list);
	assert_int_equal(digits(&from), 1234);
	assert_true(wf_list_empty(&list));
}

static void an_empty_list_has_no_first_member(void **state)
{
	struct wf_list list;

	(void)state;
	wf_list_init(&list);
	assert_null(wf_list_first(&list));
	assert_null(wf_list_pop(&list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_come_out_in_the_order_they_were_put),
		cmocka_unit_test(removing_twice_is_harmless),
		cmocka_unit_test(a_member_may_be_removed_inside_the_loop),
		cmocka_unit_test(any_member_may_be_removed_or_appended_inside_the_loop_of_now),
		cmocka_unit_test(splice_moves_everything_behind_what_is_there),
		cmocka_unit_test(an_empty_list_has_no_first_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
