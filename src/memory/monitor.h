/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monitor: which ranges of the program's memory still lie in the pages where they lay.
 *
 * The process has one, for all nodes: a userfaultfd, by which the kernel tells of munmap, mremap
 * and madvise before the call returns to the program, and a thread that reads what it tells.  The
 * ranges are registered for write protection, which is never used: no access to them faults.
 *
 * Only private anonymous memory is watched: other mappings can change by way of their file, and of
 * that the kernel tells nothing.
 *
 * Threads: any.
 */
#ifndef WF_MONITOR_H
#define WF_MONITOR_H

#include <stdatomic.h>
#include "util/error.h"
#include "util/list.h"

/* A range that is watched; the owner's memory. */
struct wf_monitor_watch {
	struct wf_list node;
	uintptr_t from, to;   /* whole pages */
	/* hull of what was unmapped, empty at first; under the monitor's lock */
	uintptr_t gone_from, gone_to;
	_Atomic bool changed; /* a part lies elsewhere now, or is gone */
};

/*
 * Begin to use the monitor.  A negative code, with a sentence that says what the system lacks:
 * nothing can be watched.
 */
int wf_monitor_open(struct wf_error *e);

/* End one wf_monitor_open(), with no watch of that user left. */
void wf_monitor_close(void);

/*
 * Watch the @bytes at @at.  -EAGAIN: some memory is being unmapped just now.  Other codes: this
 * memory can't be watched.
 */
int wf_monitor_watch(struct wf_monitor_watch *watch, const void *at, size_t bytes);

void wf_monitor_unwatch(struct wf_monitor_watch *watch);

/*
 * Check that the range is what it was when the watch began.  -ESTALE: it is not.  -EAGAIN: some
 * memory is being unmapped just now, maybe this.
 */
int wf_monitor_check(struct wf_monitor_watch *watch);

/* Return how often watched memory has changed. */
uint64_t wf_monitor_changes(void);

/* Leave the monitor to the parent, in a forked child: nothing is open here. */
void wf_monitor_forked(void);

#endif
