/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Above: what the floors above keep with a link.  The link carries it and does not look inside.
 *
 * Threads: owner.
 */
#ifndef WF_ABOVE_H
#define WF_ABOVE_H

#include "util/list.h"
#include "util/map.h"

struct wf_early;

/* Lists of what the floors above have for the peer, each used by its floor alone. */
enum wf_above_work {
	WF_ABOVE_PARCELS_WAITING, /* for a rail, or for more */
	WF_ABOVE_PARCELS,         /* offered */
	WF_ABOVE_PULLS,
	WF_ABOVE_RECEIVES,        /* that name the peer */
	WF_ABOVE_CALLS,
	WF_ABOVE_SERVED,          /* calls of the peer's */
	WF_ABOVE_STREAMS,
	WF_ABOVE_ECHOES,
	WF_ABOVE_WORKS
};

/* Notes on the peer, each of one floor alone.  Until the peer dies. */
struct wf_above_notes {
	bool briefed;           /* the peer was told what a new one is to know */
	bool drain_told;        /* and that this node takes no more calls */
	bool drains;            /* the peer has said that it takes none */
	struct wf_early *early; /* allocated: calls cancelled before they came */
};

/* Offers of the peer: struct wf_answer of the transfer floor. */
struct wf_above_offers {
	struct wf_map map;      /* by the peer's id of the offer */
	struct wf_list all;     /* the oldest first */
};

/* Parts in steps: struct wf_part of the tensor floor. */
struct wf_above_parts {
	struct wf_list all;
	struct wf_list heard;   /* of which the peer has said an abort that does not count */
	uint32_t heard_count;
};

#endif
