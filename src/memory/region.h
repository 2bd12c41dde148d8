/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region: a range of memory and its registrations, one per rail, made when
 * first needed and kept.  That it is pinned for CUDA devices is one more.
 *
 * Threads: owner.
 */
#ifndef WF_REGION_H
#define WF_REGION_H

#include "fabric/mr.h"
#include "memory/cuda.h"

#define WF_REGION_RAILS_MAX 16 /* as many as a hello names */

struct wf_region {
	void *base;
	size_t bytes;
	unsigned access; /* enum wf_access */
	struct {
		struct wf_rail *rail;
		struct wf_mr *mr;
	} entries[WF_REGION_RAILS_MAX];
	unsigned count;
	bool pinned; /* for CUDA, by way of @pinned_by */
	int pinned_by;
};

void wf_region_init(struct wf_region *region, void *base, size_t bytes, unsigned access);

/* Does anything but its owner know of it? */
static inline bool wf_region_held(const struct wf_region *region)
{
	return region->count || region->pinned;
}

/* Close the registrations with @rail, NULL: all of them, and it is not pinned any more. */
void wf_region_forget(struct wf_region *region, const struct wf_rail *rail);

/* The same for all of them, because others need the room: counted. */
void wf_region_evict(struct wf_region *region);

/* The registration of @region with @rail.  -ENOSPC: too many rails; else as wf_mr_open. */
int wf_region_mr(struct wf_region *region, struct wf_rail *rail, struct wf_mr **mr,
		 struct wf_error *e);

/* Pin it, unless it is pinned, by way of CUDA device @ordinal, which is in use anyway.  As wf_cuda_pin. */
int wf_region_pin(struct wf_region *region, int ordinal, struct wf_error *e);

#endif
