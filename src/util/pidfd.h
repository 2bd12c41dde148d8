/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors of other processes of this host and user.
 *
 * Threads: any.
 */
#ifndef WF_PIDFD_H
#define WF_PIDFD_H

#include "util/base.h"

/* A descriptor that stands for process @pid.  -EBADMSG: no such number; -ESRCH; -EMFILE, ... */
int wf_pidfd_open(uint64_t pid);

/* Our copy of descriptor @fd of the process that @pidfd stands for.  -EBADMSG: it has no such; -ESRCH, -EPERM, -EMFILE. */
int wf_pidfd_take(int pidfd, int fd);

#endif
