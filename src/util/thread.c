/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/thread.h"

#include <signal.h>

/* What a crash raises in the very thread: a program's handlers want to hear of it. */
static const int crashes[] = {
	SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP,
};

int wf_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t blocked, old;
	int code;

	sigfillset(&blocked);
	for (size_t i = 0; i < WF_COUNT(crashes); i++)
		sigdelset(&blocked, crashes[i]);
	/* A thread begins with the mask of its maker. */
	pthread_sigmask(SIG_SETMASK, &blocked, &old);
	code = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -code;
}
