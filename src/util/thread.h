/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the library, with signals blocked: signals are the program's.
 */
#ifndef WF_THREAD_H
#define WF_THREAD_H

#include <pthread.h>
#include "util/base.h"

/* Begin @run(@arg) in a thread, to be joined or detached.  Threads: any. */
int wf_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* Set up @cond, whose waits end by the clock of wf_clock_now().  A negative code.  Threads: any. */
int wf_thread_cond_init(pthread_cond_t *cond);

#endif
