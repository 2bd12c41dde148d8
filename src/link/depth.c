/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/depth.h"

void wf_depth_learn(struct wf_depth *d, uint32_t among, uint64_t took_ns)
{
	if (among == 1) {
		d->alone_ns = WF_MIN(d->alone_ns, took_ns);
		return;
	}
	/*
	 * A read posted among more or fewer reads than the present depth says nothing about that
	 * depth.
	 */
	if (among != d->count || d->alone_ns == UINT64_MAX)
		return;
	if (took_ns <= d->alone_ns + d->alone_ns / 4 && d->count < WF_DEPTH_MAX)
		d->count++;
	else if (took_ns / 2 > d->alone_ns && d->count > d->least)
		d->count--;
}
