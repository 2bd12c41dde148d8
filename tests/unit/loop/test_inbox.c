/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/inbox.h"

#include <pthread.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define SENDERS 4
#define LETTERS 20000

struct letter {
	struct wf_inbox_node node;
	unsigned sender, number;
};

static struct wf_inbox inbox;
static struct letter letters[SENDERS][LETTERS];
static _Atomic unsigned senders_done, wakes;

static void *send_all(void *arg)
{
	unsigned sender = (unsigned)((struct letter(*)[LETTERS])arg - letters);

	for (unsigned i = 0; i < LETTERS; i++) {
		struct letter *l = &letters[sender][i];

		l->sender = sender;
		l->number = i;
		if (wf_inbox_put(&inbox, &l->node))
			atomic_fetch_add(&wakes, 1);
	}
	atomic_fetch_add(&senders_done, 1);
	return NULL;
}

static void each_senders_order_is_kept_and_nothing_is_lost(void **state)
{
	pthread_t threads[SENDERS];
	unsigned next[SENDERS] = { 0 }, takes = 0;
	bool last;

	(void)state;
	for (unsigned i = 0; i < SENDERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, send_all, letters[i]), 0);

	/* The take after the last put was seen finds all the rest, so this ends. */
	do {
		struct wf_inbox_node *node;

		last = atomic_load(&senders_done) == SENDERS;
		wf_inbox_take(&inbox);
		takes += inbox.taken != NULL;
		while ((node = wf_inbox_next(&inbox))) {
			struct letter *l = WF_CONTAINER(node, struct letter, node);

			assert_int_equal(l->number, next[l->sender]++);
		}
	} while (!last);

	for (unsigned i = 0; i < SENDERS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(next[i], LETTERS);
	}
	/* Each batch was announced exactly once: a sleeper would miss none. */
	assert_int_equal(takes, wakes);
}

static void only_the_first_put_says_that_it_was_empty(void **state)
{
	struct wf_inbox box = { NULL };
	struct wf_inbox_node a, b;

	(void)state;
	assert_true(wf_inbox_empty(&box));
	wf_inbox_take(&box);
	assert_null(wf_inbox_next(&box));
	assert_true(wf_inbox_put(&box, &a));
	assert_false(wf_inbox_put(&box, &b));
	assert_false(wf_inbox_empty(&box));

	wf_inbox_take(&box);
	assert_ptr_equal(wf_inbox_next(&box), &a);
	assert_ptr_equal(wf_inbox_next(&box), &b);
	assert_null(wf_inbox_next(&box));
	assert_true(wf_inbox_empty(&box));
	assert_true(wf_inbox_put(&box, &a));
}

static void nodes_taken_are_handed_out_before_later_ones(void **state)
{
	struct wf_inbox box = { NULL };
	struct wf_inbox_node a, b, c;

	(void)state;
	wf_inbox_put(&box, &a);
	wf_inbox_put(&box, &b);
	wf_inbox_take(&box);
	assert_ptr_equal(wf_inbox_next(&box), &a);
	wf_inbox_put(&box, &c);
	wf_inbox_take(&box);
	assert_ptr_equal(wf_inbox_next(&box), &b);
	assert_null(wf_inbox_next(&box));
	assert_false(wf_inbox_empty(&box));
	wf_inbox_take(&box);
	assert_ptr_equal(wf_inbox_next(&box), &c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_senders_order_is_kept_and_nothing_is_lost),
		cmocka_unit_test(only_the_first_put_says_that_it_was_empty),
		cmocka_unit_test(nodes_taken_are_handed_out_before_later_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
