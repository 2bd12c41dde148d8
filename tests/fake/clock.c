/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/clock.h"

#define START_NS (1 * WF_NS_PER_S) /* not 0, as the contract says */

static uint64_t now_ns = START_NS;

uint64_t wf_clock_now(void)
{
	return now_ns;
}

uint64_t wf_clock_coarse(void)
{
	return now_ns;
}

void wf_fake_clock_set(uint64_t ns)
{
	now_ns = WF_MAX(now_ns, ns);
}

void wf_fake_clock_reset(void)
{
	now_ns = START_NS;
}
