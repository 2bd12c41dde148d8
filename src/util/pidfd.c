/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/pidfd.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

int wf_pidfd_open(uint64_t pid)
{
	int pidfd;

	if (!pid || pid > INT_MAX)
		return -EBADMSG;
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	return pidfd < 0 ? -errno : pidfd;
}
