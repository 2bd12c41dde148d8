/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the library, with signals blocked, as signals are the program's, and with names that
 * ps, top and debuggers show.
 */
#ifndef WF_THREAD_H
#define WF_THREAD_H

#include <pthread.h>
#include "util/base.h"

/*
 * Begin @run(@arg) in a thread, to be joined or detached, which is called @name, of at most 15
 * bytes.  A negative code.  Threads: any.
 */
int wf_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

/* Set up @cond, whose waits end by the clock of wf_clock_now().  A negative code.  Threads: any. */
int wf_thread_cond_init(pthread_cond_t *cond);

#endif
