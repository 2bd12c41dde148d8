/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resident: loaded before a program (LD_PRELOAD), gives it memory of its own for all that it may
 * write to.  ucx_perftest sends a buffer that it has never written: the kernel has one page of
 * zeros for all of it, which no cache loses.  Nobody's tensors are like that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

__attribute__((constructor)) static void make_resident(void)
{
	if (!mlockall(MCL_CURRENT | MCL_FUTURE))
		return;
	perror("resident: mlockall");
	exit(1);
}
