/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slurm: lists of hosts as srun gives them, "gpu[07-09,12],login".
 *
 * Threads: any.
 */
#ifndef WF_GROUP_SLURM_H
#define WF_GROUP_SLURM_H

#include <stddef.h>

/* Write the first host of @list to @host.  -EINVAL: there is none, or it is longer than @bytes. */
int wf_slurm_first_host(const char *list, char *host, size_t bytes);

#endif
