/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Above: lists and notes of the floors above, kept with a link.  The link carries them and does not
 * look inside.
 *
 * Threads: owner.
 */
#ifndef WF_ABOVE_H
#define WF_ABOVE_H

#include "util/list.h"
#include "util/map.h"
#include "util/priority.h"

struct wf_early;
struct wf_window_list;

/* Work of the floors above for the peer, in lists, each used by its floor alone. */
enum wf_above_work {
	WF_ABOVE_OUTGOING_WAITING, /* outgoing bodies that wait for a rail, or for more */
	WF_ABOVE_OUTGOING,        /* outgoing bodies that have an offer */
	WF_ABOVE_PULLS,
	WF_ABOVE_RECEIVES,        /* receives that name the peer */
	WF_ABOVE_CALLS,
	WF_ABOVE_SERVED,          /* calls by the peer */
	WF_ABOVE_STREAMS,
	WF_ABOVE_ECHOES,
	WF_ABOVE_GETS,            /* gets that wait for a rail */
	WF_ABOVE_PARCELS,         /* parts of bodies, encrypted for the peer to read */
	WF_ABOVE_ASKS,            /* ranges of the peer's windows that are asked for */
	WF_ABOVE_WORKS
};

/* Notes on the peer, each of one floor alone.  Valid until the peer dies. */
struct wf_above_notes {
	bool briefed;           /* the peer was told what a new one is to know */
	bool drain_told;        /* the peer was told that this node takes no more calls */
	bool drains;            /* the peer has said that it takes no more calls */
	struct wf_early *early; /* allocated: calls cancelled before they came */
	struct wf_window_list *listing; /* list of blocks that is not whole yet; NULL: none */
};

/* How pulls from the peer make way for others (transfer/yield.h). */
struct wf_above_yields {
	uint32_t wanting[WF_PRIORITIES];  /* pulls that have bytes to ask for; not of priority 0 */
	struct wf_list held[WF_PRIORITIES]; /* struct wf_pull: pulls that make way */
	uint32_t held_count;              /* pulls that make way, of all priorities */
	struct wf_priority turns;
	uint32_t refused; /* pulls whose next read the rail refuses: it counts among the link's reads */
	uint64_t urgent_ns[WF_PRIORITIES]; /* when a record of that priority last came or left */
};

/* Offers to the peer, and the peer's: struct wf_answer of the transfer floor. */
struct wf_above_offers {
	uint32_t ours_count;    /* our offers that the peer may be reading */
	struct wf_map map;      /* answers by the peer's id of the offer */
	struct wf_list all;     /* answers, the oldest first */
	uint64_t fetched_bytes; /* buffers into which the peer's sealed bodies are read now */
	uint64_t sealed_ns, sealed_bytes; /* bytes encrypted for the peer in the turn of that time */
};

/* Parts in steps: struct wf_part of the tensor floor. */
struct wf_above_parts {
	struct wf_list all;
	struct wf_list heard;   /* parts for which the peer has sent an abort that does not count */
	uint32_t heard_count;
};

#endif
