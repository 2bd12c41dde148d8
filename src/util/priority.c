/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/priority.h"

unsigned wf_priority_next(const struct wf_priority *p, unsigned waiting)
{
	unsigned highest = 31 - (unsigned)__builtin_clz(waiting);

	for (unsigned at = highest; at-- > 0;)
		if (waiting & 1u << at && p->passed[at] >= WF_PRIORITY_PASSES)
			return at;
	return highest;
}

void wf_priority_took(struct wf_priority *p, unsigned waiting, unsigned taken)
{
	p->passed[taken] = 0;
	for (unsigned at = 0; at < taken; at++)
		if (waiting & 1u << at && p->passed[at] < WF_PRIORITY_PASSES)
			p->passed[at]++;
}
