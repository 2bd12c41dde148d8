/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that sleep until something is over: who asks whether it is, and who is woken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/await.h"
#include "core/node.h"
#include "util/clock.h"

#define LIMIT_NS (20 * WF_NS_PER_S)
#define WAKES 100

static struct weft_node *node;

static int set_up(void **state)
{
	(void)state;
	setenv("FI_PROVIDER", "tcp", 1);
	setenv("WEFT_SPIN", "0", 1);
	return weft_node_open(NULL, &node);
}

static int tear_down(void **state)
{
	(void)state;
	weft_node_close(node);
	return 0;
}

/* A thread that waits until @over. */
struct waiter {
	pthread_t thread;
	atomic_bool over;
	unsigned own_looks; /* of the thread's own */
	int err;
};

static bool look(void *ctx)
{
	struct waiter *w = ctx;

	w->own_looks += pthread_equal(pthread_self(), w->thread);
	return atomic_load(&w->over);
}

static void *wait(void *arg)
{
	struct waiter *w = arg;

	w->thread = pthread_self();
	w->err = wf_await_that(&node->workers[0], look, w, wf_clock_now() + LIMIT_NS);
	return NULL;
}

static unsigned asleep(void)
{
	unsigned count;

	pthread_mutex_lock(&node->lock);
	count = atomic_load(&node->waiting);
	pthread_mutex_unlock(&node->lock);
	return count;
}

static void start(struct waiter *w, unsigned at)
{
	pthread_t thread;
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;

	assert_int_equal(pthread_create(&thread, NULL, wait, w), 0);
	while (asleep() < at && wf_clock_now() < until_ns)
		usleep(1000);
	assert_int_equal(asleep(), at);
}

static void end(struct waiter *w)
{
	atomic_store(&w->over, true);
	wf_await_wake(node);
	assert_int_equal(pthread_join(w->thread, NULL), 0);
	assert_int_equal(w->err, 0);
}

static void the_end_of_one_wait_wakes_no_other_thread(void **state)
{
	struct waiter first = { .err = -1 }, second = { .err = -1 };
	unsigned looks;

	(void)state;
	start(&first, 1);
	start(&second, 2);
	looks = second.own_looks;
	for (unsigned i = 0; i < WAKES; i++) {
		wf_await_wake(node);
		usleep(100);
	}
	end(&first);
	end(&second);
	/* A thread looks once when it was woken, and the system may wake it for nothing. */
	assert_in_range(second.own_looks - looks, 1, WAKES / 4);
}

static void a_wait_in_vain_lasts_until_its_time_and_leaves_nothing_behind(void **state)
{
	struct waiter w = { .thread = pthread_self() };
	uint64_t until_ns = wf_clock_now() + 10 * WF_NS_PER_MS;

	(void)state;
	assert_int_equal(wf_await_that(&node->workers[0], look, &w, until_ns), -ETIMEDOUT);
	assert_true(wf_clock_now() >= until_ns);
	assert_int_equal(asleep(), 0);
	assert_true(wf_list_empty(&node->waits));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_end_of_one_wait_wakes_no_other_thread, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_wait_in_vain_lasts_until_its_time_and_leaves_nothing_behind, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
