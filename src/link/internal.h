/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that the files of the link object share; for src/link only.
 *
 * Threads: owner.
 */
#ifndef WF_LINK_INTERNAL_H
#define WF_LINK_INTERNAL_H

#include "link/ledger.h"
#include "link/link.h"

/*
 * Age at which reads, and frames behind a peer's reads, are stuck: their rail is replaced, if the
 * peer lives.
 */
#define WF_LINK_READING_NS (10 * WF_NS_PER_S)

/* Returns the place of the link's rail among the worker's rails, as the recorder has it. */
static inline uint64_t wf_link_rail_number(const struct wf_link *link)
{
	return (uint64_t)(link->on - link->engine->rails);
}

/* Keep the peer's hello in place of the one before (link.c); -ENOMEM. */
int wf_link_keep_hello(struct wf_link *link, const struct wf_greet_hello *hello,
		       struct wf_error *e);

/* Have frames of @link sent in this turn. */
static inline void wf_link_mark(struct wf_link *link)
{
	if (wf_list_empty(&link->dirty_node))
		wf_list_append(&link->engine->dirty, &link->dirty_node);
}

/* Is there room on @side?  Asked for each record: most links are far below the least. */
static inline bool wf_ledger_has_room(const struct wf_link *link, enum wf_ledger_side side)
{
	return link->account.bytes[side] < WF_LEDGER_LEAST_BYTES / 2 ||
	       link->account.bytes[side] < wf_ledger_bound(link);
}

/* Have @on reopened unless the frames in its list abandoned have left soon.  Of engine.c. */
void wf_engine_watch_abandoned(struct wf_engine *engine, struct wf_engine_rail *on);

/* Functions of lane.c: more rails, for bodies. */
void wf_lane_start(struct wf_link *link);
void wf_lane_drop(struct wf_link *link);

/* Take the peer's request for a lane.  Takes @request if it returns true. */
bool wf_lane_request(struct wf_link *link, struct wf_engine_rail *on, uint32_t number,
		     uint32_t epoch, struct wf_rail_request *request);
void wf_lane_connected(struct wf_link *link, const struct wf_ep *ep);
void wf_lane_closed(struct wf_link *link, const struct wf_ep *ep, int status);
void wf_lane_look(struct wf_link *link);

/* Returns the promises that the peer has used, or has given back. */
static inline uint32_t wf_rx_credit_over(const struct wf_link *link)
{
	return link->tx.sequence.received + link->slots.returned_seen;
}

/* Returns the data frames that the peer may still send: promised, neither given back nor come. */
static inline uint32_t wf_rx_credit_open(const struct wf_link *link)
{
	return link->slots.promised_total - wf_rx_credit_over(link);
}

/*
 * Returns how many of the open promises the peer knows of from frames that are repeated until it
 * has them.  Negative: the peer has used what another frame told.
 */
static inline int32_t wf_rx_credit_told(const struct wf_link *link)
{
	return (int32_t)(link->slots.promised_told - wf_rx_credit_over(link));
}

/* Make a link for a peer that dialled us (link.c); returns a reference. */
int wf_link_create(struct wf_engine *engine, struct wf_link **link);

/* Declare the peer dead.  @e is what everything that waits gets. */
void wf_link_die(struct wf_link *link, const struct wf_error *e);

/* Declare dead a peer that broke the protocol: @what says how. */
void wf_link_violate(struct wf_link *link, const char *what);

struct wf_link *wf_link_find(struct wf_engine *engine, const uint8_t *incarnation,
			     const struct wf_link *except);
void wf_link_forget_peer(struct wf_link *link);
void wf_link_renew(struct wf_link *link);
void wf_link_merge(struct wf_link *link, struct wf_link *into);
void wf_link_close_conn(struct wf_link *link);

/* Free the links without references.  Called where no function of a link is on the stack. */
void wf_link_free_unused(struct wf_engine *engine);

#endif
