/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probe: finding a rail that works, and leaving one that does not.
 *
 * Threads: owner.
 */
#ifndef WF_PROBE_H
#define WF_PROBE_H

#include "link/engine.h"

/* A pair of rails that may work. */
struct wf_probe_pair {
	uint8_t mine, theirs;
};

/* Finding a rail that works, and the lanes beside it.  Valid until the peer dies. */
struct wf_probe {
	uint32_t epoch;         /* number of the probe, a new one for each */
	uint32_t frame_bytes;   /* the longest frame that both ends take on every rail they share */
	struct wf_probe_pair pairs[WF_ENGINE_RAILS_MAX * WF_GREET_RAILS_MAX];
	uint32_t pair_count, pair_at;
	uint32_t round;         /* number of times that all pairs have been tried */
	uint64_t from_ns;       /* when trying rails began */
	uint64_t until_ns;      /* when trying rails is given up altogether */
	uint64_t pair_until_ns; /* when the pair at hand is given up; 0: between two rounds */
	struct wf_timer timer;
	bool ponged;            /* the dialler's ping of this probe has come */
	/* How the last dial failed; each rail tried and why it failed, kept when a rail is up. */
	char tried[WF_GREET_TEXT_BYTES];
	uint32_t lane_number;   /* number of the last lane that this side has dialled */
	/* Number of the last lane that the peer has opened at each rail of ours. */
	uint32_t lanes_taken[WF_ENGINE_RAILS_MAX];
	uint32_t lane_total;    /* number of lanes in this epoch so far */
	uint64_t lanes_until_ns; /* when bodies that need lanes stop waiting for them */
};

/* Our end of the rail that is tried or in use.  Valid until that rail is left. */
struct wf_probe_rail {
	struct wf_ep *ep;       /* NULL: no endpoint is open */
	bool ready;             /* @ep takes frames */
	char closed[200];       /* why the rail carries nothing any more, "": the rail works */
};

void wf_probe_start(struct wf_link *link);
void wf_probe_list(struct wf_link *link); /* list the pairs of rails that fit */
void wf_probe_next(struct wf_link *link, const char *why);
void wf_probe_try(struct wf_link *link, uint32_t epoch, uint32_t mine, uint32_t theirs);
void wf_probe_cannot(struct wf_link *link, uint32_t epoch, const char *why);
void wf_probe_request(struct wf_engine *engine, struct wf_engine_rail *on,
		      const struct wf_rail_event *ev);
void wf_probe_connected(struct wf_ep *ep);
void wf_probe_closed(struct wf_ep *ep, int status);
void wf_probe_frame(struct wf_link *link, const struct wf_frame *frame);
void wf_probe_failed(struct wf_link *link, const char *why);
void wf_probe_renew(struct wf_link *link); /* probe the rail of a link that is up, for new keys */
void wf_probe_leave(struct wf_link *link, const struct wf_engine_rail *on);
void wf_probe_rails(struct wf_link *link, const struct wf_greet_hello *hello);
void wf_probe_drop(struct wf_link *link);

/* Reset the probes of @link, whose peer is dead. */
void wf_probe_forget(struct wf_link *link);

#endif
