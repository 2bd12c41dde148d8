/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/region.h"

#include <errno.h>

void wf_region_init(struct wf_region *region, void *base, size_t bytes, unsigned access)
{
	*region = (struct wf_region){
		.base = base, .bytes = bytes, .access = access, .kind = WF_COUNTERS_POOL,
	};
}

bool wf_region_knows(const struct wf_region *region, const struct wf_rail *rail)
{
	for (unsigned i = 0; i < region->count; i++)
		if (region->entries[i].rail == rail)
			return true;
	return false;
}

static void unpin(struct wf_region *region)
{
	if (!region->pinned)
		return;
	wf_cuda_unpin(region->pinned_by, region->base);
	region->pinned = false;
	if (region->pinned_bytes)
		atomic_fetch_sub(region->pinned_bytes, region->bytes);
}

void wf_region_forget(struct wf_region *region, const struct wf_rail *rail)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < region->count; i++) {
		if (rail && region->entries[i].rail != rail)
			region->entries[kept++] = region->entries[i];
		else
			wf_mr_close(region->entries[i].mr);
	}
	region->count = kept;
	if (!rail)
		unpin(region);
}

void wf_region_evict(struct wf_region *region)
{
	while (region->count)
		wf_mr_evict(region->entries[--region->count].mr);
	unpin(region);
}

int wf_region_mr(struct wf_region *region, struct wf_rail *rail, struct wf_mr **mr,
		 struct wf_error *e)
{
	struct wf_mr *fresh;
	int err;

	for (unsigned i = 0; i < region->count; i++) {
		if (region->entries[i].rail == rail) {
			*mr = region->entries[i].mr;
			wf_mr_hit(*mr);
			return 0;
		}
	}
	if (region->count == WF_REGION_RAILS_MAX)
		return wf_error_set(e, -ENOSPC, "memory is registered with %d rails already",
				    WF_REGION_RAILS_MAX);
	err = wf_mr_open(rail, region->base, region->bytes, region->access, &fresh, e);
	if (err)
		return err;
	wf_mr_set_kind(fresh, region->kind);
	region->entries[region->count].rail = rail;
	region->entries[region->count++].mr = fresh;
	*mr = fresh;
	return 0;
}

int wf_region_pin(struct wf_region *region, int ordinal, struct wf_error *e)
{
	int err;

	if (region->pinned)
		return 0;
	err = wf_cuda_pin(ordinal, region->base, region->bytes, e);
	if (err)
		return err;
	region->pinned = true;
	if (region->pinned_bytes)
		atomic_fetch_add(region->pinned_bytes, region->bytes);
	region->pinned_by = ordinal;
	return 0;
}
