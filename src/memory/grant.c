/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/grant.h"

/* The registration to use: the slab's if @at is pool memory and sharing it is wanted, else a new one. */
static int find_mr(struct wf_grant *grant, struct wf_rail *rail, struct wf_pool *pool, void *at,
		   size_t bytes, unsigned access, bool share, struct wf_mr **mr,
		   struct wf_error *e)
{
	struct wf_region *region = share ? wf_pool_region(pool, at, bytes) : NULL;
	int err;

	if (region)
		return wf_region_mr(region, rail, mr, e);
	err = wf_mr_open(rail, at, bytes, access, mr, e);
	if (!err)
		grant->own = *mr;
	return err;
}

int wf_grant_local(struct wf_grant *grant, struct wf_rail *rail, struct wf_pool *pool, void *at,
		   size_t bytes, struct wf_error *e)
{
	struct wf_grant g = { 0 };
	struct wf_mr *mr;
	int err;

	if (wf_rail_caps(rail)->mr_local) {
		err = find_mr(&g, rail, pool, at, bytes, WF_ACCESS_LOCAL, true, &mr, e);
		if (err)
			return err;
		g.desc = wf_mr_desc(mr);
	}
	*grant = g;
	return 0;
}

int wf_grant_remote(struct wf_grant *grant, struct wf_rail *rail, struct wf_pool *pool, void *at,
		    size_t bytes, struct wf_error *e)
{
	struct wf_grant g = { 0 };
	struct wf_mr *mr;
	int err;

	err = find_mr(&g, rail, pool, at, bytes, WF_ACCESS_REMOTE_READ,
		      !wf_rail_caps(rail)->reg_cheap, &mr, e);
	if (err)
		return err;
	g.address = wf_mr_address(mr, at);
	g.key = wf_mr_key(mr);
	*grant = g;
	return 0;
}

void wf_grant_close(struct wf_grant *grant)
{
	wf_mr_close(grant->own);
	*grant = (struct wf_grant){ 0 };
}
