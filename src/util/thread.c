/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/thread.h"

#include <signal.h>

/* Signals that a crash raises in the thread itself: a program's handlers want them. */
static const int crashes[] = {
	SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP,
};

int wf_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
	sigset_t blocked, old;
	int code;

	sigfillset(&blocked);
	for (size_t i = 0; i < WF_COUNT(crashes); i++)
		sigdelset(&blocked, crashes[i]);
	/* A thread begins with the signal mask of its creator. */
	pthread_sigmask(SIG_SETMASK, &blocked, &old);
	code = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!code)
		(void)pthread_setname_np(*thread, name);
	return -code;
}

int wf_thread_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int code;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	code = pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
	return -code;
}
