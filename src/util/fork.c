/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/fork.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void (*child)(void);

static void before(void)
{
	pthread_mutex_lock(&lock);
}

void wf_fork_let(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	/* The thread that forked took the lock in before(). */
	wf_fork_let();
	if (child)
		child();
}

static void watch(void)
{
	pthread_atfork(before, wf_fork_let, in_child);
}

/*
 * Register the handlers at the first hold: a child forked during a hold would have the lock
 * held for ever.
 */
void wf_fork_hold(void)
{
	pthread_once(&once, watch);
	pthread_mutex_lock(&lock);
}

void wf_fork_watch(void (*run)(void))
{
	wf_fork_hold();
	child = run;
	wf_fork_let();
}
