/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Striping: a long body that is read over the link's lanes as well as over its rail.
 *
 * The reader asks for lanes once it reads on the rail, and goes on there meanwhile.  The owner
 * opens the body on its lanes and says where it is there.  Each way takes the next chunk when it
 * has room, so that the faster one takes more; near the end a slow one takes none, for the
 * others would have to wait for it.
 *
 * Threads: owner.
 */
#ifndef WF_STRIPE_H
#define WF_STRIPE_H

#include "link/link.h"
#include "memory/grant.h"

#define WF_STRIPE_CHUNKS_MIN 4 /* shorter bodies are there before their lanes are; not tuned */

/* A lane, for one reader. */
struct wf_stripe_way {
	struct wf_lane *lane;  /* NULL: the lane has closed */
	struct wf_grant grant; /* grant of the destination */
	uint64_t address, key; /* place of the body */
	uint32_t busy;         /* reads under way */
	uint64_t took_ns;      /* time of the last read; 0: none has ended */
};

struct wf_stripe {
	struct wf_stripe_way ways[WF_LANES_MAX];
	uint32_t count;
	uint32_t busy;    /* reads of all ways */
	uint32_t carried; /* bits of the ways that have brought anything */
};

/*
 * Add the way over @lane: the body is at @record there, and is read into @into.  *@spread is
 * made if it is NULL.  -EALREADY: the way is known.  -ENOMEM, or a code of registering: the lane
 * is not used.
 */
int wf_stripe_add(struct wf_stripe **spread, struct wf_lane *lane,
		  const struct wf_record_lane *record, const struct wf_grant_span *into);

/* Returns the way over @lane, or NULL.  Accepts NULL. */
struct wf_stripe_way *wf_stripe_find(struct wf_stripe *spread, const struct wf_lane *lane);

/* Drop a way whose lane has closed: none of its reads is under way any more. */
void wf_stripe_close_way(struct wf_stripe_way *way);

/* Returns how many lanes have brought anything.  Accepts NULL. */
uint32_t wf_stripe_carried(const struct wf_stripe *spread);

/* Free @spread.  Accepts NULL. */
void wf_stripe_close(struct wf_stripe *spread);

/* Registrations of a body on lanes, by its owner. */
struct wf_stripe_offer {
	struct {
		const struct wf_engine_rail *on;
		struct wf_grant grant;
	} all[WF_LANES_MAX];
	uint32_t count;
	uint64_t pull; /* the reader that was told last */
	uint32_t told; /* how often that reader was told of all lanes */
};

/*
 * Open @body on each lane of @link, and tell @pull.  *@offer is made if it is NULL.  -ENOMEM: to
 * be called again; a lane on which it can't be opened is left out.  Nothing is told once the
 * reader has asked more often than there have been lanes; @shared: once this @pull has.
 */
int wf_stripe_tell(struct wf_stripe_offer **offer, struct wf_link *link, uint64_t pull,
		   uint8_t priority, bool shared, const struct wf_grant_span *body);

/* Free @offer: the body is open on lanes no more.  Accepts NULL. */
void wf_stripe_take_back(struct wf_stripe_offer *offer);

#endif
