/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Post: one operation that the provider holds, and the notice by which the rail's owner hears of
 * the end.
 *
 * Every event that waits for the owner is a notice in one list of the rail, and lies inside the
 * object that it is about, so telling never needs memory.
 *
 * Threads: owner.
 */
#ifndef WF_POST_H
#define WF_POST_H

#include "fabric/rail.h"
#include "util/list.h"

struct wf_rail_notice {
	struct wf_list node; /* in rail->notices, or in no list */
	struct wf_rail_event event;
};

enum wf_post_kind { WF_POST_SLOT, WF_POST_SEND, WF_POST_READ };

/*
 * An operation that the provider holds.  The provider knows only @id, so a completion
 * that comes late or twice finds nothing.
 */
struct wf_post {
	enum wf_post_kind kind;
	uint64_t id;          /* 0: the provider does not hold the post */
	struct wf_ep *ep;     /* NULL for a slot */
	bool held;            /* a slot whose message is the owner's until wf_rail_give */
	struct wf_list node;  /* in ep->posts, or rail->spare, or slots->refused */
	struct wf_rail_notice notice;
};

int wf_post_take(struct wf_rail *rail, struct wf_ep *ep, enum wf_post_kind kind, void *cookie,
		 struct wf_post **post);
void wf_post_give(struct wf_rail *rail, struct wf_post *post);
void wf_post_tell(struct wf_rail *rail, struct wf_rail_notice *notice);
/* Tell @notice after the next look at the provider. */
void wf_post_delay(struct wf_rail *rail, struct wf_rail_notice *notice);
void wf_post_late(struct wf_rail *rail); /* count a completion that nobody waits for */
void wf_post_drop_all(struct wf_ep *ep); /* forget all posts of @ep */

#endif
