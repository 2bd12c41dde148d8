/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only source of time.  Tests link a clock of their own in its place.
 *
 * Threads: any, callback.
 */
#ifndef WF_CLOCK_H
#define WF_CLOCK_H

#include <time.h>

#include "util/base.h"

/* Return nanoseconds of a clock that never goes back; never 0. */
uint64_t wf_clock_now(void);

/* Return the time of the last tick of the system, which takes a sixth as long. */
uint64_t wf_clock_coarse(void);

/* Return the time @time_ns after @now_ns; UINT64_MAX: never. */
static inline uint64_t wf_clock_after(uint64_t now_ns, uint64_t time_ns)
{
	return time_ns >= UINT64_MAX - now_ns ? UINT64_MAX : now_ns + time_ns;
}

/* Return @ns as pthread_cond_timedwait() takes it. */
static inline struct timespec wf_clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / WF_NS_PER_S),
				  .tv_nsec = (long)(ns % WF_NS_PER_S) };
}

#endif
