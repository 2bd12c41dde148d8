/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data that a forked child looks at must be whole: fork() waits while it is changed.
 *
 * The process has one lock for that, held for a few instructions or system calls that return at
 * once, and never while a callback runs, so that a callback may fork.
 *
 * Threads: any.
 */
#ifndef WF_FORK_H
#define WF_FORK_H

#include "util/base.h"

/* Keep forks from beginning until wf_fork_let(). */
void wf_fork_hold(void);

/* Let forks begin again. */
void wf_fork_let(void);

/*
 * Run @run in every child forked from now on, before fork() returns there, with no hold.  A
 * process has one @run, the same in every call.
 */
void wf_fork_watch(void (*run)(void));

#endif
