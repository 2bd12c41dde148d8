/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases: chunks of a pool that other processes of this host read in place.
 *
 * A lender has a page of sealed memory with a place for each offer, which holds the offer's id for
 * as long as a borrower may begin to look.  A borrower locks the place's byte of that file, through
 * a description of its own, and then looks whether the offer still stands there.  The lender first
 * takes the offer out and then asks whether anybody has the lock.  So one of the two sees the
 * other: a chunk that is looked at stays as it is, however slow or cut off the borrower may be, and
 * the kernel gives back what the dead had locked.
 *
 * Nothing of a peer's is trusted: a descriptor that is no sealed memory is not mapped, and places
 * and ranges are checked.
 *
 * Threads: owner.
 */
#ifndef WF_LEASE_H
#define WF_LEASE_H

#include "link/link.h"
#include "util/sealed.h"

#define WF_LEASES_MAX 1023 /* leases of one lender at once; with @retired they fill two pages */

/* The page that the processes share. */
struct wf_lease_page {
	_Atomic uint64_t retired;               /* files of the lender's pool that are gone */
	_Atomic uint64_t offers[WF_LEASES_MAX]; /* ids of offers; 0: nothing to look at */
};

/*
 * Returns the byte of the file that stands for @place; apart, so that no two locks ever become one.
 */
static inline int64_t wf_lease_byte(uint32_t place)
{
	return 2 * (int64_t)place;
}

/* Open the lender of @w->pool, whose chunks other processes can look at from now on. */
int wf_lender_open(struct wf_worker *w, struct wf_lender **lender, struct wf_error *e);

/* Close the lender; accepts NULL.  A borrower that looks keeps what it sees. */
void wf_lender_close(struct wf_lender *lender);

/* Returns the page for borrowers. */
int wf_lender_fd(const struct wf_lender *lender);

/*
 * Lend the body of @offer, @body->bytes at @at in a chunk of the pool, to the peer of @link; fills
 * in @body's lease.  -ENOSPC: too much is lent; -ENOENT, -EINVAL, -EAGAIN, -ENOTCONN: the peer
 * can't see the body.
 */
int wf_lender_lend(struct wf_lender *lender, struct wf_link *link, uint64_t offer, const void *at,
		   struct wf_body *body);

/*
 * End the offer at @place: no borrower begins to look any more.  The chunk has one user less as
 * soon as no borrower looks.
 */
void wf_lender_end(struct wf_lender *lender, uint32_t place);

/* Hear from a peer that it does not look at @offer any more. */
void wf_lender_released(struct wf_lender *lender, uint64_t offer, uint32_t place);

/* Look for leases that a dead peer has left. */
void wf_lender_look(struct wf_lender *lender);

/* Returns how many chunks are still looked at though their offers are over.  Threads: any. */
uint32_t wf_lender_held(const struct wf_lender *lender);

/* In a forked child: let go of the page, which is the parent's. */
void wf_lender_forked(struct wf_lender *lender);

/* Everything that a peer lends: its page, and its slabs seen so far. */
struct wf_borrower;
struct wf_borrowed; /* a slab of the peer */

struct wf_hold {
	struct wf_borrower *borrower; /* a reference */
	struct wf_borrowed *slab;
	uint32_t place;
	const void *at;
};

/*
 * Look at the body that the peer of @link offers: @hold->at can be read until it is let go, even
 * beyond the peer's death.  -ESTALE: the body is not offered any more.  -EBADMSG: the body is not
 * what was said.  -ENOENT, -ENOSPC, -EMFILE, ...: the body can't be looked at from here.
 */
int wf_borrower_hold(struct wf_link *link, const struct wf_body *body, struct wf_hold *hold);

/* Let go of a body; the lender may use its chunk anew. */
void wf_borrower_let(struct wf_hold *hold);

/* Does @hold belong to the present life of the peer of @link? */
bool wf_borrower_is_of(const struct wf_hold *hold, const struct wf_link *link);

/* Part the borrower from its link, which is over; views that are held stay.  Accepts NULL. */
void wf_borrower_part(struct wf_borrower *borrower);

/* Let go of all @borrowers of a worker: in a forked child, or as the kernel does for the dead. */
void wf_borrowers_forked(struct wf_list *borrowers);

#endif
