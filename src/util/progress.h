/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress: a number that differs once something has come further, for the watchdog.
 *
 * The number is folded from the parts that may move, and differs if any one of them does; its
 * value has no other meaning.
 *
 * Pure.  Threads: any.
 */
#ifndef WF_PROGRESS_H
#define WF_PROGRESS_H

#include "util/base.h"

#define WF_PROGRESS_MIX UINT64_C(0x9e3779b97f4a7c15) /* odd: no product hides a difference */

static inline uint64_t wf_progress_add(uint64_t progress, uint64_t part)
{
	return (progress ^ part) * WF_PROGRESS_MIX;
}

#endif
