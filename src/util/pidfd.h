/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that stand for processes.
 *
 * Threads: any.
 */
#ifndef WF_PIDFD_H
#define WF_PIDFD_H

#include "util/base.h"

/* A descriptor that stands for process @pid.  -EBADMSG: no such number; -ESRCH; -EMFILE, ... */
int wf_pidfd_open(uint64_t pid);

#endif
