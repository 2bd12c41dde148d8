/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room in /dev/shm, where a provider keeps memory in files: Docker gives a container 64 MiB
 * there.  The first touch of such a page when no room is left ends the process by SIGBUS, so
 * room is checked before a provider takes it, and taken for good as soon as the file has its
 * name.
 *
 * Threads: any.
 */
#ifndef WF_DEVSHM_H
#define WF_DEVSHM_H

#include "util/error.h"

/*
 * Check that /dev/shm has room for a file of @bytes.  -ENOSPC, and the sentence says how much is
 * missing.  -EFBIG: this process may make no such file.
 */
int wf_devshm_check(size_t bytes, struct wf_error *e);

/* Give every page of the file /dev/shm/@name its memory now.  -ENOSPC: no room is left. */
int wf_devshm_fill(const char *name, struct wf_error *e);

#endif
