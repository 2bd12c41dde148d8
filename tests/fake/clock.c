/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/clock.h"

static uint64_t now_ns = 1 * WF_NS_PER_S; /* not 0, as the contract says */

uint64_t wf_clock_now(void)
{
	return now_ns;
}

void wf_fake_clock_set(uint64_t ns)
{
	now_ns = WF_MAX(now_ns, ns);
}
