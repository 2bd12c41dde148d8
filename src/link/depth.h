/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Depth: how many reads of a peer's memory keep the wire to it busy.
 *
 * A provider's row has the number for a way within a rack.  On a longer way so many reads leave the
 * wire idle, and that shows: a read takes hardly longer among others than alone.  Then there is
 * room for one more.  Where each read stands behind those before it a read takes twice as long, and
 * one fewer will do.
 *
 * Pure: no clock.  Threads: owner.
 */
#ifndef WF_DEPTH_H
#define WF_DEPTH_H

#include "util/base.h"

#define WF_DEPTH_MAX 16

struct wf_depth {
	uint32_t least;    /* number in the provider's row */
	uint32_t count;    /* reads to have under way now */
	uint64_t alone_ns; /* shortest time of a read that was alone; UINT64_MAX: none was yet */
};

static inline struct wf_depth wf_depth(uint32_t least)
{
	return (struct wf_depth){ .least = least, .count = least, .alone_ns = UINT64_MAX };
}

/* Reads of a peer's memory that are under way on one rail. */
struct wf_depth_reads {
	uint32_t count; /* reads; on the rail of the frames also those that it has refused */
	uint64_t ns;    /* when a read last ended, or the first of the present ones began */
	struct wf_depth depth; /* depth for the reads of one body */
};

/* Count a read that begins, or that the rail does not take. */
static inline void wf_depth_read_begins(struct wf_depth_reads *reads, uint64_t now_ns)
{
	if (!reads->count++)
		reads->ns = now_ns;
}

/* Count @count reads that have ended, or that need no rail any more. */
static inline void wf_depth_reads_end(struct wf_depth_reads *reads, uint32_t count, uint64_t now_ns)
{
	reads->count -= count;
	reads->ns = now_ns;
}

/*
 * Learn from a read of a whole chunk that took @took_ns; @among reads were under way when it was
 * posted, itself included.
 */
void wf_depth_learn(struct wf_depth *depth, uint32_t among, uint64_t took_ns);

#endif
