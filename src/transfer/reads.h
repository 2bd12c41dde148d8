/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reads of a pull: which comes next, over which way, from where to where; and the
 * books about those under way.
 *
 * Of a body that is staged, at either end, byte n is at n % of the room there.
 *
 * Threads: owner.
 */
#ifndef WF_READS_H
#define WF_READS_H

#include "transfer/pull.h"

/* So far the body may be read: as it is filled at its owner's, and drained here. */
uint64_t wf_reads_limit(const struct wf_pull *pull);

/* So much of it has come, from its beginning on and without a gap. */
uint64_t wf_reads_got(const struct wf_pull *pull);

/* A read that is to be made (again), or NULL. */
struct wf_pull_read *wf_reads_next(struct wf_pull *pull);

/* Is it for the rail's helper? */
bool wf_reads_for_helper(const struct wf_pull *pull);

/* Has a way room for another read?  *@over is it, NULL: the rail in use. */
bool wf_reads_find_way(const struct wf_pull *pull, struct wf_spread_way **over);

/* What a body may have under way when it is alone. */
uint64_t wf_reads_alone_bytes(const struct wf_pull *pull);

/* Give it to the helper, if it is for that; or post it, as wf_ep_read.  @over as above. */
bool wf_reads_post_aside(struct wf_pull *pull, struct wf_pull_read *r);
int wf_reads_post(struct wf_pull *pull, struct wf_pull_read *r, const struct wf_spread_way *over);

/* It is under way. */
void wf_reads_begin(struct wf_pull *pull, struct wf_pull_read *r, struct wf_spread_way *over);

/* It has ended well: what that says of the wire. */
void wf_reads_learn(struct wf_pull *pull, const struct wf_pull_read *r);

/* @count of the rail in use, or of a lane, are over.  Others may go on inside. */
void wf_reads_end(struct wf_pull *pull, uint32_t count, uint64_t bytes);
void wf_reads_end_over(struct wf_pull *pull, struct wf_spread_way *over, uint32_t count,
		       uint64_t bytes);

#endif
