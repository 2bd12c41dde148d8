/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers of a worker: bodies of bytes between two nodes.
 *
 * An outgoing body (outgoing.h) is a record with a body on its way out, a pull (pull.h) a body
 * on its way in.  The records that the two ends exchange about an offer are handled here.
 *
 * Threads: owner.
 */
#ifndef WF_TRANSFER_H
#define WF_TRANSFER_H

#include "link/link.h"
#include "memory/import.h"
#include "memory/kind.h"
#include "transfer/pace.h"
#include "transfer/parcels.h"
#include "transfer/sender_sums.h"
#include "transfer/view.h"
#include "util/freelist.h"

/* Time until a connected endpoint is closed over reads that do not end, ours or the peer's. */
#define WF_TRANSFER_CLOSE_NS (300 * WF_NS_PER_MS)

#define WF_TRANSFER_LATER 1 /* a code: not yet; the outgoing body or pull goes on by itself */

struct wf_transfer {
	struct wf_engine *engine;
	struct wf_table outgoing; /* by offer id */
	struct wf_table pulls;
	struct wf_freelist records; /* struct wf_outgoing_record with a short head */
	uint32_t waiting_count;  /* outgoing bodies whose link has no rail yet */
	struct wf_pace pace;     /* pace of all pulls */
	struct wf_parcels parcels;
	uint64_t fetched_bytes;  /* buffers of all fetches (fetch.h) */
	struct wf_list asked;    /* fetches that wait for their owners, the oldest first */
	bool taking_back;        /* buffers of such fetches are being taken back */
	struct wf_views views;
	struct wf_sender_sums_common summers;
	struct wf_kinds kinds;   /* for copies to and from devices */
	struct wf_imports imports;
	struct wf_timer trim; /* unmaps imports that are not used */
	struct wf_list stages;
	uint64_t draining_bytes; /* bytes of the rooms of bodies on their way in */
	bool closing;            /* nothing is offered any more */
	bool settled;            /* no copy is begun any more */
};

int wf_transfer_init(struct wf_transfer *t, struct wf_engine *engine);
/* End all views and tear @t down. */
void wf_transfer_fini(struct wf_transfer *t);

/* Take the records of offers and pulls.  Threads: setup. */
void wf_transfer_route(struct wf_transfer *t, struct wf_routes *routes);

/* Callbacks of the link floor: see struct wf_engine_sink. */
void wf_transfer_up(struct wf_link *link);
void wf_transfer_paused(struct wf_link *link);
void wf_transfer_down(struct wf_transfer *t, struct wf_link *link, const struct wf_error *e);

/* Start the outgoing bodies that wait for @link, which has a rail. */
void wf_transfer_start(struct wf_link *link);

/* Tell the pulls of the link that @lane is ready, or has closed. */
void wf_transfer_lane(const struct wf_lane *lane, bool open);

/*
 * Take back every offer, with @e, and make no more.  Returns false: some offers are not back
 * yet, records without an offer still wait, or copies of devices are under way.
 */
bool wf_transfer_recall(struct wf_transfer *t, const struct wf_error *e);

/*
 * Tell pulls that the shared rail @on was opened anew: reads stuck on it touch no memory any
 * more.
 */
void wf_transfer_quiet(struct wf_transfer *t, const struct wf_engine_rail *on);

#endif
