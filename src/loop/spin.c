/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/spin.h"

void wf_spin_slept(struct wf_spin *spin, uint64_t slept_ns)
{
	uint64_t most_ns = WF_SPIN_FACTOR * spin->least_ns;

	if (slept_ns < most_ns - spin->least_ns)
		spin->limit_ns = most_ns;
	else
		spin->limit_ns = WF_MAX(spin->limit_ns / 2, spin->least_ns);
}
