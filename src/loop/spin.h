/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spin: how long a loop looks for work before it sleeps.
 *
 * A sleep costs some 25 us to wake from, so one that ends soon was not worth
 * it: the next wait spins for longer.  One that lasts was, and the next spins
 * less again.
 *
 * Pure: no clock.  Threads: owner.
 */
#ifndef WF_SPIN_H
#define WF_SPIN_H

#include "util/base.h"

/*
 * Times the least is the most: 200 us where the least is 50.  A MiB takes 75 us
 * through shared memory and 150 over loopback, and who waits for it should be awake.
 */
#define WF_SPIN_FACTOR 4

struct wf_spin {
	uint64_t least_ns; /* as WEFT_SPIN says; 0: it never spins */
	uint64_t limit_ns; /* of the next wait */
};

static inline struct wf_spin wf_spin(uint64_t least_ns)
{
	return (struct wf_spin){ .least_ns = least_ns, .limit_ns = least_ns };
}

/* The last wait spun to its limit in vain, and something came @slept_ns later. */
void wf_spin_slept(struct wf_spin *spin, uint64_t slept_ns);

#endif
