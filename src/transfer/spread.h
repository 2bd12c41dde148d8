/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spread: a long body that is read over the link's lanes as well as over its
 * rail.
 *
 * The reader asks for it once it reads on the rail, and goes on there meanwhile.
 * The owner opens the body on its lanes and says where it is there.  Each way
 * takes the next chunk when it has room, so that the faster one takes more; near
 * the end a slow one takes none, for the others would have to wait for it.
 *
 * Threads: owner.
 */
#ifndef WF_SPREAD_H
#define WF_SPREAD_H

#include "link/link.h"
#include "memory/grant.h"

#define WF_SPREAD_CHUNKS_MIN 4 /* shorter bodies are there before their lanes are; not tuned */

/* One lane, for one reader. */
struct wf_spread_way {
	struct wf_lane *lane;  /* NULL: it has closed */
	struct wf_grant grant; /* of the destination */
	uint64_t address, key; /* of the body */
	uint32_t busy;         /* reads under way */
	uint64_t took_ns;      /* the last one did; 0: none has ended */
};

struct wf_spread {
	struct wf_spread_way ways[WF_LANES_MAX];
	uint32_t count;
	uint32_t busy;    /* reads of all ways */
	uint32_t carried; /* bits of the ways that have brought anything */
};

/*
 * Another way: the body is there, at @record, and is read into @into.  *@spread is made if it is
 * NULL.  -EALREADY: it is known.  -ENOMEM, or a code of registering: the lane is not used.
 */
int wf_spread_add(struct wf_spread **spread, struct wf_lane *lane,
		  const struct wf_lane_record *record, const struct wf_span *into);

/* The way over @lane, or NULL.  Accepts NULL. */
struct wf_spread_way *wf_spread_find(struct wf_spread *spread, const struct wf_lane *lane);

/* The lane has closed: none of its reads is under way any more. */
void wf_spread_close_way(struct wf_spread *spread, struct wf_spread_way *way);

/* How many lanes have brought anything.  Accepts NULL. */
uint32_t wf_spread_carried(const struct wf_spread *spread);

/* Frees it.  Accepts NULL. */
void wf_spread_close(struct wf_spread *spread);

/* What the owner has opened for that. */
struct wf_spread_offer {
	struct {
		const struct wf_worker_rail *on;
		struct wf_grant grant;
	} all[WF_LANES_MAX];
	uint32_t count;
	uint32_t told; /* how often */
};

/*
 * Open @body on each lane of @link, and tell @pull.  *@offer is made if it is NULL.
 * -ENOMEM: to be called again; a lane on which it can't be opened is left out.  Who has asked for
 * each lane that there has been, and once before, is told no more.
 */
int wf_spread_tell(struct wf_spread_offer **offer, struct wf_link *link, uint64_t pull,
		   const struct wf_span *body);

/* Frees it: the body is open there no more.  Accepts NULL. */
void wf_spread_take_back(struct wf_spread_offer *offer);

#endif
