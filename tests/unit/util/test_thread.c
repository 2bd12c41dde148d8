/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>

#include "util/thread.h"

static void *read_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return NULL;
}

static void threads_take_no_signals_but_crashes(void **state)
{
	sigset_t mine, after, theirs;
	pthread_t thread;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	assert_int_equal(wf_thread_start(&thread, "masked", read_mask, &theirs), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sigismember(&theirs, SIGINT), 1);
	assert_int_equal(sigismember(&theirs, SIGTERM), 1);
	assert_int_equal(sigismember(&theirs, SIGCHLD), 1);
	assert_int_equal(sigismember(&theirs, SIGSEGV), 0);
	assert_int_equal(sigismember(&theirs, SIGABRT), 0);

	/* The maker's own mask is what it was. */
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s < NSIG; s++)
		assert_int_equal(sigismember(&mine, s), sigismember(&after, s));
}

/* Until the test has looked. */
static void *wait_for_lock(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

static void threads_have_their_names(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;
	char name[16];

	(void)state;
	pthread_mutex_lock(&lock);
	assert_int_equal(wf_thread_start(&thread, "weft test", wait_for_lock, &lock), 0);
	assert_int_equal(pthread_getname_np(thread, name, sizeof(name)), 0);
	pthread_mutex_unlock(&lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(name, "weft test");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_take_no_signals_but_crashes),
		cmocka_unit_test(threads_have_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
