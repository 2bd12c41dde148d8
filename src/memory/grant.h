/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A grant: what one operation needs to use a range of memory on a rail.
 *
 * Where registering is cheap the range gets a key of its own, exact and
 * random, that dies with the grant; elsewhere the slab's registration serves,
 * or the memory is registered for this operation.
 *
 * Threads: owner.
 */
#ifndef WF_GRANT_H
#define WF_GRANT_H

#include "memory/pool.h"

struct wf_grant {
	struct wf_mr *own; /* made for this grant, else NULL */
	void *desc;
	uint64_t address, key; /* for the peer; only of a remote grant */
};

/* For our own sends and reads: nothing is done where the rail needs nothing. */
int wf_grant_local(struct wf_grant *grant, struct wf_rail *rail, struct wf_pool *pool, void *at,
		   size_t bytes, struct wf_error *e);

/* For a peer's reads. */
int wf_grant_remote(struct wf_grant *grant, struct wf_rail *rail, struct wf_pool *pool, void *at,
		    size_t bytes, struct wf_error *e);

/* Accepts a zeroed grant. */
void wf_grant_close(struct wf_grant *grant);

#endif
