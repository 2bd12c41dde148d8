/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room in /dev/shm, where a provider keeps memory in files: Docker gives a container 64 MiB
 * there.  A page of such a file that is touched first when there is no room left ends the
 * process by SIGBUS, so room is asked for before a provider takes it, and taken for good
 * as soon as the file has its name.
 *
 * Threads: any.
 */
#ifndef WF_DEVSHM_H
#define WF_DEVSHM_H

#include "util/error.h"

/* -ENOSPC: /dev/shm has less room than @bytes; the sentence says how much is missing. */
int wf_devshm_check(size_t bytes, struct wf_error *e);

/* Give every page of the file @name there its memory now.  -ENOSPC: there is none. */
int wf_devshm_fill(const char *name, struct wf_error *e);

#endif
