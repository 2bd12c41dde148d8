/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parcels: parts of bodies, encrypted for their readers, where bodies are sealed.
 *
 * There no rail reads a body.  A reader asks for some of it (fetch.h); the owner encrypts that into
 * a bounce buffer, which the reader may read, and says where, and by which key it opens, in a
 * sealed frame.  A parcel is kept until its reader has opened it; the next ask may take its place.
 * The first part of a body goes with its offer where there is room, which spares the way there and
 * back, and is kept until the offer ends.
 *
 * The key is used once, and only a frame of the link says it, with the pull and the read that it is
 * for: so order, length, rail and operation are proven with the bytes.
 *
 * Parcels have WF_PARCELS_BYTES together.  A peer that has some gets no more than half of what is
 * left, so that there is room for others; and those that were not opened for long are taken back
 * where one that has none finds no room.
 *
 * Threads: owner.
 */
#ifndef WF_PARCELS_H
#define WF_PARCELS_H

#include "link/link.h"
#include "secure/one_time.h"
#include "wire/parcel.h"

struct wf_parcels {
	struct wf_list asked; /* parcels that their readers have asked for, the oldest first */
	uint64_t last_id;
	uint64_t bytes; /* bytes of all buffers */
	uint64_t offered_bytes; /* bytes of those that went with offers, and nobody has opened */
	uint64_t turn_ns, turn_bytes; /* bytes encrypted in the turn of that time */
	uint64_t logged_ns; /* when it was last said that a parcel can't be opened to its reader */
	struct wf_one_time once; /* for fetches as well */
};

void wf_parcels_init(struct wf_parcels *parcels);
void wf_parcels_fini(struct wf_parcels *parcels);

/*
 * Take a buffer of at least @bytes, a parcel's, from @pool, which has nothing else; *@room is its
 * length.  -EAGAIN, -ENOMEM: there is none.
 */
int wf_parcels_take(struct wf_pool *pool, uint64_t bytes, uint8_t **chunk, uint64_t *room);

/*
 * May a peer that has @has bytes get @more of the @left?  One that has some gets no more than half,
 * so that there is some for others; one that has none may have whatever fits.
 */
static inline bool wf_parcels_may_share(uint64_t left, uint64_t has, uint64_t more)
{
	return !has || has + more <= left / 2;
}

/* Returns the length of a buffer for @bytes: few lengths let it serve more parcels. */
uint64_t wf_parcels_room(uint64_t bytes);

/*
 * Encrypt the bytes at the ranges @from, for @ask of the peer of @link, and say so; or why not: for
 * want of room or time the peer asks again.  -ENOMEM: nothing was done.
 */
int wf_parcels_seal(struct wf_parcels *parcels, struct wf_link *link,
		    const struct wf_parcel_ask *ask, const struct iovec *from);

/*
 * Encrypt the first of @body's bytes, which are at @from, with the offer of it to the peer of @link
 * that @body describes, and describe that, too.  Without room or time the peer asks for them.
 */
void wf_parcels_offer(struct wf_parcels *parcels, struct wf_link *link, const void *from,
		      struct wf_body *body);

/*
 * Tell the peer of @link that @ask gets no parcel, with @status; the one that it has opened is
 * freed.  -ENOMEM: nothing was told.
 */
int wf_parcels_refuse(struct wf_parcels *parcels, struct wf_link *link,
		      const struct wf_parcel_ask *ask, enum weft_status status);

/* Free the parcel that went with @offer to the peer of @link, if nobody has opened it. */
void wf_parcels_offer_ended(struct wf_parcels *parcels, struct wf_link *link, uint64_t offer);

/* Free a @parcel that the peer of @link has asked for, for its @pull; 0: all of them. */
void wf_parcels_opened(struct wf_parcels *parcels, struct wf_link *link, uint64_t pull,
		       uint64_t parcel);

/* Free all parcels of the peer of @link, which is dead. */
void wf_parcels_drop(struct wf_parcels *parcels, struct wf_link *link);

#endif
