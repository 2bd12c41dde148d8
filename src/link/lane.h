/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane: one more way to a peer, for bodies alone.
 *
 * The frames of a link go over one rail.  Where both nodes have more rails of its provider, with an
 * endpoint for each peer, the side that dialled connects these as well, and long bodies are read
 * over all of them at once.  A lane carries reads and nothing else: it has no order and no credit,
 * and its end says nothing of the peer.
 *
 * Lanes belong to the epoch of the rail in use, and go with it.  A lane that closes, or on which
 * reads stand still, is connected again after a while.
 *
 * Threads: owner.
 */
#ifndef WF_LANE_H
#define WF_LANE_H

#include "link/depth.h"
#include "link/engine.h"

#define WF_LANES_MAX (WF_ENGINE_RAILS_MAX - 1)

struct wf_lane {
	struct wf_link *link;
	struct wf_list node;       /* place in link->lanes */
	struct wf_engine_rail *on;
	uint8_t theirs;            /* the peer's rail, on the side that dials */
	uint32_t number;           /* number of the connection for both sides; 0: none now */
	struct wf_ep *ep;          /* NULL: not connected */
	bool ready;
	struct wf_depth_reads reads;
	uint64_t pause_ns;         /* pause before the lane is connected again */
	struct wf_timer timer;
};

/* Find a lane that is ready, or that the peer may hold for ready; NULL: there is none. */
struct wf_lane *wf_lane_find(const struct wf_link *link, uint32_t number);

/* Returns the number of lanes that are ready. */
uint32_t wf_lane_count(const struct wf_link *link);

/* May more lanes come soon, because the rail came up a moment ago? */
bool wf_lane_may_come(const struct wf_link *link);

/* Close a lane that is of no use, over reads that are under way on it.  @why is a sentence. */
void wf_lane_failed(struct wf_lane *lane, const char *why);

#endif
