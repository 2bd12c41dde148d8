/* SPDX-License-Identifier: BSD-2-Clause */
/* fork() beside a thread that changes what a child looks at. */
#include "util/fork.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define CHILD_LIMIT_S 60
#define HOLD_US (200 * 1000) /* long enough for a fork that does not wait */

static sem_t held, let;

static void *hold_for_a_while(void *arg)
{
	(void)arg;
	wf_fork_hold();
	sem_post(&held);
	usleep(HOLD_US);
	wf_fork_let();
	sem_post(&let);
	return NULL;
}

/* No callback for children was named yet. */
static void a_child_forked_during_the_first_hold_can_hold(void **state)
{
	pthread_t thread;
	pid_t child;
	int status;

	(void)state;
	sem_init(&held, 0, 0);
	sem_init(&let, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, hold_for_a_while, NULL),
			 0);
	/* The child has no thread to join. */
	pthread_detach(thread);
	sem_wait(&held);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		alarm(CHILD_LIMIT_S);
		wf_fork_hold();
		wf_fork_let();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sem_wait(&let);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_forked_during_the_first_hold_can_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
