/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one source of time.  Tests replace it when they link, and own it.
 *
 * Threads: any, callback.
 */
#ifndef WF_CLOCK_H
#define WF_CLOCK_H

#include "util/base.h"

/* Nanoseconds of a clock that never goes back.  Never 0. */
uint64_t wf_clock_now(void);

#endif
