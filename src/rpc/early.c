/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/early.h"

#include <stdlib.h>

void wf_early_add(struct wf_early **early, uint64_t call)
{
	struct wf_early *e = *early;

	if (!e)
		e = *early = calloc(1, sizeof(*e));
	if (!e)
		return;
	if (e->count < WF_EARLY_MAX)
		e->calls[e->count++] = call;
	else
		e->calls[e->oldest++ % WF_EARLY_MAX] = call;
}

bool wf_early_take(struct wf_early *early, uint64_t call)
{
	for (uint32_t i = 0; early && i < early->count; i++) {
		if (early->calls[i] != call)
			continue;
		early->calls[i] = early->calls[--early->count];
		return true;
	}
	return false;
}
