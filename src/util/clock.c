/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/clock.h"

#include <time.h>

uint64_t wf_clock_now(void)
{
	struct timespec now;
	uint64_t ns;

	/* clock_gettime() can't fail: Linux always has this clock. */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * WF_NS_PER_S + (uint64_t)now.tv_nsec;
	return ns ? ns : 1;
}
