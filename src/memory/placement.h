/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Placement: the NUMA node and the pages that a pool's memory is to have, as the machine's owner
 * says.
 *
 * A node is preferred: when it is full memory comes from another.  Huge pages are of 2 MiB and
 * must have been set aside; memory for which there are none left has ordinary pages.
 *
 * Threads: any for use; setup for the rest.
 */
#ifndef WF_PLACEMENT_H
#define WF_PLACEMENT_H

#include <stdatomic.h>
#include "util/error.h"

#define WF_PLACEMENT_PAGE_BYTES (2 * MIB)

struct wf_placement {
	bool placed;  /* memory is to lie on @node */
	unsigned node;
	bool huge;    /* memory is to have huge pages */
	_Atomic int refused; /* why the system placed memory elsewhere; 0: it has not refused */
};

/*
 * Read the settings: @node as the number of a NUMA node, "": the kernel chooses.  @sysfs as for
 * wf_topology_open().  -EINVAL with a sentence: there is no such node, or it has no memory.
 */
int wf_placement_open(struct wf_placement *p, const char *node, bool huge, const char *sysfs,
		      struct wf_error *e);

/* Place memory that has been mapped and not been touched. */
void wf_placement_apply(struct wf_placement *p, void *base, size_t bytes);

/* Map plain memory, in huge pages with @huge.  MAP_FAILED: there is none. */
void *wf_placement_map(size_t bytes, bool huge);

#endif
