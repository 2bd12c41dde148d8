/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that their caller has cancelled before they came here.
 *
 * A CANCEL goes in a control frame, which needs no credit, and may overtake the frames of its
 * call that were lost or have no credit yet.  A call that then comes and waits for its
 * attachments would wait for ever.  The last cancels of each peer are remembered until their
 * calls come.
 *
 * Threads: owner.
 */
#ifndef WF_EARLY_H
#define WF_EARLY_H

#include "util/base.h"

#define WF_EARLY_MAX 256 /* cancels of a peer, not tuned; a later one replaces the oldest */

struct wf_early {
	uint32_t count, oldest;
	uint64_t calls[WF_EARLY_MAX];
};

/*
 * Remember that @call was cancelled.  *@early is made when it is first needed, for the caller to
 * free.  Without memory nothing is remembered.
 */
void wf_early_add(struct wf_early **early, uint64_t call);

/* Returns whether @call, which comes now, was cancelled, and forgets that.  Accepts NULL. */
bool wf_early_take(struct wf_early *early, uint64_t call);

#endif
