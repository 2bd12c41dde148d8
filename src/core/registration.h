/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration: the object behind struct weft_region, memory of the program's that is an arena of
 * every worker.
 */
#ifndef WF_REGISTRATION_H
#define WF_REGISTRATION_H

#include <weft/weft.h>

/* Register memory with all workers.  Failures are recorded.  Threads: any but callbacks. */
int wf_registration_open(struct weft_node *node, void *memory, size_t bytes,
			 struct weft_region **region);

/* Undo one wf_registration_open().  Failures are recorded.  Threads: any but callbacks. */
int wf_registration_close(struct weft_region *region);

/* Free what is left, after all workers have closed. */
void wf_registration_fini(struct weft_node *node);

#endif
