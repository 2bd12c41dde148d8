/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Orphans: connections that a provider has accepted at a rail's port and that belong to no
 * endpoint, because whoever connected says nothing, or no more than half a request.  The
 * provider keeps them for ever, each with a descriptor.
 *
 * An orphan of some seconds is shut down, so that the provider reads its end and closes
 * it; of many orphans the oldest go at once.  One that the provider has not closed a while
 * later is one that it has forgotten, and is closed here.
 *
 * Every look walks the descriptors of the process.  So there is one only when something came
 * in that led to no event, and looks take no more than a small share of the time.
 *
 * Threads: owner.
 */
#ifndef WF_ORPHANS_H
#define WF_ORPHANS_H

#include "util/base.h"

#define WF_ORPHANS_MOST 64 /* that wait for their first word; the oldest beyond go; not tuned */
#define WF_ORPHANS_SHUT_MAX 512 /* by one look; half of the descriptors that processes usually may have */

struct wf_rail;

/* A connection that was shut down here, by its number among the sockets of the host. */
struct wf_orphan {
	uint64_t inode, shut_ns;
};

struct wf_orphans {
	bool open;          /* this rail looks for them */
	int listener;       /* the provider's, or -1 */
	uint32_t suspects;  /* news of the event queue that led to no event, since the last look */
	uint32_t left;      /* found by the last look, the ones that were shut down included */
	uint64_t not_before_ns;
	struct wf_orphan shut[WF_ORPHANS_SHUT_MAX];
	uint32_t shut_count;
};

/*
 * From now on @rail, which listens, looks for orphans if its provider keeps them.  Not if this
 * process has connections at its port already: those are somebody else's.
 */
void wf_orphans_open(struct wf_rail *rail);

/* How many connections the provider has not accepted yet, as far as that is known. */
uint32_t wf_orphans_waiting(const struct wf_rail *rail);

/* @count suspects more; looks if they are many. */
void wf_orphans_suspect(struct wf_rail *rail, uint32_t count);

/* Should there be a look soon, although there is no suspect more? */
bool wf_orphans_expected(const struct wf_rail *rail);

/* Look now, if it is not too soon after the last time. */
void wf_orphans_look(struct wf_rail *rail);

#endif
