/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/fork.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void (*child)(void);

void wf_fork_hold(void)
{
	pthread_mutex_lock(&lock);
}

void wf_fork_let(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	/* Ours: the thread that forked took it before. */
	wf_fork_let();
	child();
}

static void watch(void)
{
	pthread_atfork(wf_fork_hold, wf_fork_let, in_child);
}

void wf_fork_watch(void (*run)(void))
{
	wf_fork_hold();
	child = run;
	wf_fork_let();
	pthread_once(&once, watch);
}
