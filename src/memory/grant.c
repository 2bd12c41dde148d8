/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/grant.h"

#include <errno.h>
#include <unistd.h>

/* Make a new registration of a device's memory. */
static int open_device(struct wf_rail *rail, const struct wf_grant_span *span, unsigned access,
		       struct wf_mr **mr, struct wf_error *e)
{
	struct wf_mr_device device = { .cuda = span->device->device, .dma_buf = -1 };
	const struct wf_rail_caps *caps = wf_rail_caps(rail);
	int err;

	if (!caps->memory.device)
		return wf_error_set(e, -EOPNOTSUPP, "%s on %s does not reach memory of devices",
				    caps->provider, caps->domain);
	err = wf_cuda_open_to_cards(span->device->device, span->at, e);
	/* Bytes that land there must be seen by the device. */
	if (!err && access & WF_ACCESS_LOCAL)
		err = wf_cuda_flush(span->device->device, e);
	if (err) {
		e->code = -EOPNOTSUPP; /* the body is staged then, with that sentence as the reason */
		return e->code;
	}
	/* Without a dma-buf the provider may have a way of its own. */
	(void)wf_cuda_dma_buf(span->at, span->bytes, &device.dma_buf, &device.offset, e);
	err = wf_mr_open_device(rail, span->at, span->bytes, &device, access, mr, e);
	if (device.dma_buf >= 0)
		close(device.dma_buf);
	return err;
}

/* Get the registration to use: that of @region if there is one, else a new one. */
static int find_mr(struct wf_grant *grant, struct wf_rail *rail, struct wf_region *region,
		   const struct wf_grant_span *span, unsigned access, struct wf_mr **mr,
		   struct wf_error *e)
{
	int err;

	if (region)
		return wf_region_mr(region, rail, mr, e);
	err = span->device ? open_device(rail, span, access, mr, e)
			   : wf_mr_open(rail, span->at, span->bytes, access, mr, e);
	if (!err)
		grant->own = *mr;
	return err;
}

/*
 * Let @grant use the arena that holds @span, or memory that is kept registered where that is dear.
 * Returns the region, or NULL: there is none.
 */
static struct wf_region *find_arena(struct wf_grant *grant, struct wf_rail *rail,
				    struct wf_pool *pool, const struct wf_grant_span *span, bool show)
{
	struct wf_arena *arena = wf_arena_find(&pool->arenas, span->at, span->bytes);

	if (arena)
		wf_arena_hold(arena);
	else if (!wf_rail_caps(rail)->memory.reg_cheap)
		arena = wf_cache_take(&pool->cache, rail, span->at, span->bytes, show);
	grant->arena = arena;
	if (!arena)
		return NULL;
	return show ? &arena->shown : &arena->own;
}

/* End @grant, which was not given out. */
static int undo(struct wf_grant *grant, int err)
{
	if (grant->arena)
		wf_arena_release(grant->arena);
	return err;
}

int wf_grant_local(struct wf_grant *grant, struct wf_rail *rail, struct wf_pool *pool,
		   const struct wf_grant_span *span, struct wf_error *e)
{
	struct wf_region *slab = NULL;
	struct wf_grant g = { 0 };
	struct wf_mr *mr;
	int err;

	if (wf_rail_caps(rail)->memory.local || span->device) {
		if (!span->device)
			slab = wf_pool_region(pool, span->at, span->bytes);
		if (!span->device && !slab)
			slab = find_arena(&g, rail, pool, span, false);
		err = find_mr(&g, rail, slab, span, WF_ACCESS_LOCAL, &mr, e);
		if (err)
			return undo(&g, err);
		g.desc = wf_mr_desc(mr);
	}
	*grant = g;
	return 0;
}

int wf_grant_remote(struct wf_grant *grant, struct wf_rail *rail, struct wf_pool *pool,
		    const struct wf_grant_span *span, struct wf_error *e)
{
	struct wf_region *chunk = NULL;
	struct wf_grant g = { 0 };
	struct wf_mr *mr;
	int err;

	if (!wf_rail_caps(rail)->memory.reg_cheap && !span->device)
		chunk = wf_pool_shown(pool, span->at, span->bytes);
	if (!wf_rail_caps(rail)->memory.reg_cheap && !span->device && !chunk)
		chunk = find_arena(&g, rail, pool, span, true);
	err = find_mr(&g, rail, chunk, span, WF_ACCESS_REMOTE_READ, &mr, e);
	if (err)
		return undo(&g, err);
	g.address = wf_mr_address(mr, span->at);
	g.key = wf_mr_key(mr);
	*grant = g;
	return 0;
}

void wf_grant_close(struct wf_grant *grant)
{
	struct wf_arena *arena = grant->arena;

	wf_mr_close(grant->own);
	*grant = (struct wf_grant){ 0 };
	if (arena)
		wf_arena_release(arena);
}
