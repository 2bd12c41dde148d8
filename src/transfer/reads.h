/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reads of a pull: the next chunk, its way, source and destination; and the books about
 * reads under way.
 *
 * Byte n of a body that is staged, at either end, is at n % of the bounce buffer there.
 *
 * Threads: owner.
 */
#ifndef WF_READS_H
#define WF_READS_H

#include "transfer/pull.h"

/* Returns how far the body may be read: as it is filled at its owner's, and drained here. */
uint64_t wf_reads_limit(const struct wf_pull *pull);

/* Returns how much of the body has come, from its beginning on and without a gap. */
uint64_t wf_reads_got(const struct wf_pull *pull);

/* Returns a read that is to be made (again), or NULL. */
struct wf_pull_read *wf_reads_next(struct wf_pull *pull);

/*
 * List the bytes of @r, of a body that begins at @address, in @spans, and where they go.  Returns the
 * length of the list.
 */
uint32_t wf_reads_list(const struct wf_pull *pull, const struct wf_pull_read *r, uint64_t address,
		       struct wf_span spans[WF_READ_SPANS_MAX]);

/* Count the bytes of @r, of a new read, as asked for. */
void wf_reads_asked(struct wf_pull *pull, const struct wf_pull_read *r);

/* Read on from byte @end, up to which all bytes have come.  No read is under way. */
void wf_reads_rewind(struct wf_pull *pull, uint64_t end);

/* Returns whether the next read is for the rail's helper. */
bool wf_reads_for_helper(const struct wf_pull *pull);

/* Returns whether a way has room for another read.  *@over is that way, NULL: the rail in use. */
bool wf_reads_find_way(const struct wf_pull *pull, struct wf_stripe_way **over);

/* Returns how many bytes a body may have under way when it is alone. */
uint64_t wf_reads_alone_bytes(const struct wf_pull *pull);

/* Give @r to the rail's helper, if it is for that.  Returns whether it was given. */
bool wf_reads_post_aside(struct wf_pull *pull, struct wf_pull_read *r);

/* Post @r, as wf_ep_read() does.  @over: NULL for the rail in use. */
int wf_reads_post(struct wf_pull *pull, struct wf_pull_read *r, const struct wf_stripe_way *over);

/* Count @r as under way. */
void wf_reads_begin(struct wf_pull *pull, struct wf_pull_read *r, struct wf_stripe_way *over);

/* Learn about the wire from @r, which has ended well. */
void wf_reads_learn(struct wf_pull *pull, const struct wf_pull_read *r);

/* Count @count reads of the rail in use, or of a closed lane, as over.  Others may go on inside. */
void wf_reads_end(struct wf_pull *pull, uint32_t count, uint64_t bytes);

/* Count @count reads over @over as over.  Others may go on inside. */
void wf_reads_end_over(struct wf_pull *pull, struct wf_stripe_way *over, uint32_t count,
		       uint64_t bytes);

#endif
