/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spin: how long a loop looks for work before it sleeps.
 *
 * Waking from a sleep costs some 25 us, so a sleep that ends soon was not worth it: the next
 * wait spins for longer.  After a sleep that lasts the next wait spins less again.
 *
 * Pure: no clock.  Threads: owner.
 */
#ifndef WF_SPIN_H
#define WF_SPIN_H

#include "util/base.h"

/*
 * Longest spin, in times the least: 200 us where the least is 50.  A MiB takes 75 us through
 * shared memory and 150 over loopback, and a loop that waits for it should be awake.
 */
#define WF_SPIN_FACTOR 4

struct wf_spin {
	uint64_t least_ns; /* WEFT_SPIN; 0: a wait never spins */
	uint64_t limit_ns; /* spin of the next wait */
};

static inline struct wf_spin wf_spin(uint64_t least_ns)
{
	return (struct wf_spin){ .least_ns = least_ns, .limit_ns = least_ns };
}

/* Adapt the limit: the last wait spun to it in vain, and something came @slept_ns later. */
void wf_spin_slept(struct wf_spin *spin, uint64_t slept_ns);

#endif
