/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Orphans: connections that a provider has accepted at a rail's port and that belong to no
 * endpoint, because the other end says nothing, or no more than half a request.  The provider
 * keeps orphans for ever, each with a descriptor.
 *
 * An orphan of some seconds is shut down, so that the provider reads the end and closes the
 * connection; of many orphans the oldest go at once.  An orphan that the provider has not closed
 * a while later has been forgotten there, and is closed here.
 *
 * Every look walks the descriptors of the process.  So a look is made only when something came
 * in that led to no event, and looks take no more than a small share of the time.
 *
 * Threads: owner.
 */
#ifndef WF_ORPHANS_H
#define WF_ORPHANS_H

#include "util/base.h"

#define WF_ORPHANS_MOST 64 /* orphans left alone while young; the oldest beyond go; not tuned */
#define WF_ORPHANS_SHUT_MAX 512 /* shut by one look; half of the usual limit of descriptors */

struct wf_rail;

/* A connection that was shut down here, by its number among the sockets of the host. */
struct wf_orphan {
	uint64_t inode, shut_ns;
};

struct wf_orphans {
	bool open;          /* the rail looks for orphans */
	int listener;       /* descriptor of the provider, or -1 */
	uint32_t suspects;  /* news of the event queue that led to no event, since the last look */
	uint32_t left;      /* orphans found by the last look, those shut down included */
	uint64_t not_before_ns;
	struct wf_orphan shut[WF_ORPHANS_SHUT_MAX];
	uint32_t shut_count;
};

/*
 * Let @rail, which listens, look for orphans if its provider keeps them.  Not if this process
 * has connections at the rail's port already: those are somebody else's.
 */
void wf_orphans_open(struct wf_rail *rail);

/* Connections that the provider has not accepted yet, as far as known. */
uint32_t wf_orphans_waiting(const struct wf_rail *rail);

/* Add @count suspects, and look if there are many. */
void wf_orphans_suspect(struct wf_rail *rail, uint32_t count);

/* Should a look be made soon, even without a new suspect? */
bool wf_orphans_expected(const struct wf_rail *rail);

/* Look for orphans now, if it is not too soon after the last look. */
void wf_orphans_look(struct wf_rail *rail);

#endif
