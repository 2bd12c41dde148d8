/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A grant: what one operation needs to use a range of memory on a rail.
 *
 * Where registering is cheap a peer gets a key for the range, exact and random, that dies with the
 * grant.  Elsewhere the peer gets the key of the pool's chunk, which dies with the chunk, of an
 * arena (arena.h), or of memory that stays registered as long as there is room (cache.h); else the
 * memory is registered for this operation.  So is a device's memory, where the rail reaches it.
 * Our own use has the slab's registration, whose key no peer gets.
 *
 * Threads: owner.
 */
#ifndef WF_GRANT_H
#define WF_GRANT_H

#include "memory/kind.h"

struct wf_grant {
	struct wf_mr *own; /* registration made for this grant, else NULL */
	struct wf_arena *arena; /* the arena whose registration is used, else NULL */
	void *desc;
	uint64_t address, key; /* the peer's view of the range; set in a remote grant only */
};

/* A range of memory. */
struct wf_grant_span {
	void *at;
	uint64_t bytes;
	const struct wf_kind_place *device; /* the device that holds it; NULL: the host's memory */
};

/*
 * Grant a range to our own sends and reads: nothing is done where the rail needs nothing.
 * -EOPNOTSUPP with a sentence: the rail does not reach the device.
 */
int wf_grant_local(struct wf_grant *grant, struct wf_rail *rail, struct wf_pool *pool,
		   const struct wf_grant_span *span, struct wf_error *e);

/*
 * Grant a range to a peer's reads.  -EOPNOTSUPP with a sentence: the rail does not reach the
 * device.
 */
int wf_grant_remote(struct wf_grant *grant, struct wf_rail *rail, struct wf_pool *pool,
		    const struct wf_grant_span *span, struct wf_error *e);

/* End @grant.  Accepts a zeroed grant. */
void wf_grant_close(struct wf_grant *grant);

#endif
