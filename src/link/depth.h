/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Depth: how many reads of a peer's memory keep the wire to it busy.
 *
 * A provider's row says how many do within a rack.  On a longer way they leave
 * the wire idle, and that shows: a read takes hardly longer among others than
 * alone.  Then there is room for one more.  Where each stands behind those
 * before it a read takes twice as long, and one fewer will do.
 *
 * Pure: no clock.  Threads: owner.
 */
#ifndef WF_DEPTH_H
#define WF_DEPTH_H

#include "util/base.h"

#define WF_DEPTH_MAX 16

struct wf_depth {
	uint32_t least;    /* as the row has it */
	uint32_t count;    /* to have under way now */
	uint64_t alone_ns; /* the shortest time of a read that was alone; UINT64_MAX: none was yet */
};

static inline struct wf_depth wf_depth(uint32_t least)
{
	return (struct wf_depth){ .least = least, .count = least, .alone_ns = UINT64_MAX };
}

/* Reads of a peer's memory that are under way by one rail. */
struct wf_depth_reads {
	uint32_t count; /* those that the rail has refused included, on the rail of the frames */
	uint64_t ns;    /* when one of them last ended, or the first of these began */
	struct wf_depth depth; /* of the reads of one body */
};

/* A read begins, or the rail does not take it; and some end, or need no rail any more. */
static inline void wf_depth_read_begins(struct wf_depth_reads *reads, uint64_t now_ns)
{
	if (!reads->count++)
		reads->ns = now_ns;
}

static inline void wf_depth_reads_end(struct wf_depth_reads *reads, uint32_t count, uint64_t now_ns)
{
	reads->count -= count;
	reads->ns = now_ns;
}

/*
 * A read of a whole chunk took @took_ns; when it was posted @among of them, itself
 * included, were under way.
 */
void wf_depth_learn(struct wf_depth *depth, uint32_t among, uint64_t took_ns);

#endif
