/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec now;
	uint64_t ns;

	/* clock_gettime() can't fail: Linux always has these clocks. */
	(void)clock_gettime(id, &now);
	ns = (uint64_t)now.tv_sec * WF_NS_PER_S + (uint64_t)now.tv_nsec;
	return ns ? ns : 1;
}

uint64_t wf_clock_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t wf_clock_coarse(void)
{
	return read_clock(CLOCK_MONOTONIC_COARSE);
}
