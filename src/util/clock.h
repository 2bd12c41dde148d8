/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one source of time.  Tests replace it when they link, and own it.
 *
 * Threads: any, callback.
 */
#ifndef WF_CLOCK_H
#define WF_CLOCK_H

#include <time.h>

#include "util/base.h"

/* Nanoseconds of a clock that never goes back.  Never 0. */
uint64_t wf_clock_now(void);

/* @time_ns after @now_ns; UINT64_MAX: never. */
static inline uint64_t wf_clock_after(uint64_t now_ns, uint64_t time_ns)
{
	return time_ns >= UINT64_MAX - now_ns ? UINT64_MAX : now_ns + time_ns;
}

/* As pthread_cond_timedwait wants it. */
static inline struct timespec wf_clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / WF_NS_PER_S),
				  .tv_nsec = (long)(ns % WF_NS_PER_S) };
}

#endif
