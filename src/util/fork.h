/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a forked child looks at must be whole: fork() waits while somebody
 * changes it.
 *
 * One lock for the process, held for a few instructions or system calls that
 * return at once, and never while a callback runs: so a callback may fork.
 *
 * Threads: any.
 */
#ifndef WF_FORK_H
#define WF_FORK_H

#include "util/base.h"

/* Let no fork begin. */
void wf_fork_hold(void);
void wf_fork_let(void);

/*
 * From now on @run runs in every forked child, before fork() returns there,
 * and nothing is held then.  A process has one @run, the same in every call.
 */
void wf_fork_watch(void (*run)(void));

#endif
