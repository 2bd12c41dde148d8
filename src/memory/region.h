/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region: a range of memory and its registrations, one per rail, made when first needed and
 * kept.  Pinning for CUDA devices counts as one more.
 *
 * Threads: owner.
 */
#ifndef WF_REGION_H
#define WF_REGION_H

#include "fabric/mr.h"
#include "memory/cuda.h"

#define WF_REGION_RAILS_MAX 16 /* the rails that a hello can name */

struct wf_region {
	void *base;
	size_t bytes;
	unsigned access; /* enum wf_mr_access */
	enum wf_counters_memory kind;
	struct {
		struct wf_rail *rail;
		struct wf_mr *mr;
	} entries[WF_REGION_RAILS_MAX];
	unsigned count;
	bool pinned; /* pinned for CUDA, by way of @pinned_by */
	int pinned_by;
	_Atomic uint64_t *pinned_bytes; /* sum that a pinned region is counted in; NULL: none */
};

/* Make a region of memory of the pool's, until @kind is set to another. */
void wf_region_init(struct wf_region *region, void *base, size_t bytes, unsigned access);

/* Return whether a rail or CUDA knows of the region. */
static inline bool wf_region_held(const struct wf_region *region)
{
	return region->count || region->pinned;
}

/* Return whether @region is registered with @rail. */
bool wf_region_knows(const struct wf_region *region, const struct wf_rail *rail);

/* Close the registrations with @rail; NULL: all registrations, and unpin the region. */
void wf_region_forget(struct wf_region *region, const struct wf_rail *rail);

/* Close all registrations and unpin, because others need the room: counted as evictions. */
void wf_region_evict(struct wf_region *region);

/* Get the registration of @region with @rail.  -ENOSPC: too many rails; else as wf_mr_open. */
int wf_region_mr(struct wf_region *region, struct wf_rail *rail, struct wf_mr **mr,
		 struct wf_error *e);

/*
 * Pin @region, unless it is pinned, by way of CUDA device @ordinal, which is in use anyway.
 * Codes as wf_cuda_pin.
 */
int wf_region_pin(struct wf_region *region, int ordinal, struct wf_error *e);

#endif
