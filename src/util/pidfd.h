/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that stand for processes.
 *
 * Threads: any.
 */
#ifndef WF_PIDFD_H
#define WF_PIDFD_H

#include "util/base.h"

/*
 * Open a descriptor that stands for process @pid.  -EBADMSG: @pid is no process number; -ESRCH;
 * -EMFILE, ...
 */
int wf_pidfd_open(uint64_t pid);

#endif
