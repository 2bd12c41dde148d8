/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases: chunks of a pool that other processes of this host read in place.
 *
 * An exporter has a page of sealed memory with a place for each offer, which holds the offer's id
 * for as long as an importer may begin to look.  An importer locks the place's byte of that file,
 * through a description of its own, and then looks whether the offer still stands there.  The
 * exporter first takes the offer out and then asks whether anybody has the lock.  So one of the two
 * sees the other: a chunk that is looked at stays as it is, however slow or cut off the importer
 * may be, and the kernel gives back what the dead had locked.
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

#define WF_LEASES_MAX 1023 /* leases of one exporter at once; with @retired they fill two pages */

/* The page that the processes share. */
struct wf_lease_page {
	_Atomic uint64_t retired;               /* files of the exporter's pool that are gone */
	_Atomic uint64_t offers[WF_LEASES_MAX]; /* ids of offers; 0: nothing to look at */
};

/*
 * Returns the byte of the file that stands for @place; apart, so that no two locks ever become one.
 */
static inline int64_t wf_lease_byte(uint32_t place)
{
	return 2 * (int64_t)place;
}

/* Open the exporter of @engine->pool, whose chunks other processes can look at from now on. */
int wf_shm_export_open(struct wf_engine *engine, struct wf_shm_export **shm_export,
		       struct wf_error *e);

/* Close the exporter; accepts NULL.  An importer that looks keeps what it sees. */
void wf_shm_export_close(struct wf_shm_export *shm_export);

/* Returns the page for importers. */
int wf_shm_export_fd(const struct wf_shm_export *shm_export);

/*
 * Lend the body of @offer, @body->bytes at @at in a chunk of the pool, to the peer of @link; fills
 * in @body's lease.  -ENOSPC: too much is lent; -ENOENT, -EINVAL, -EAGAIN, -ENOTCONN: the peer
 * can't see the body.
 */
int wf_shm_export_lend(struct wf_shm_export *shm_export, struct wf_link *link, uint64_t offer,
		       const void *at, struct wf_body *body);

/*
 * End the offer at @place: no importer begins to look any more.  The chunk has one user less as
 * soon as no importer looks.
 */
void wf_shm_export_end(struct wf_shm_export *shm_export, uint32_t place);

/* Hear from a peer that it does not look at @offer any more. */
void wf_shm_export_released(struct wf_shm_export *shm_export, uint64_t offer, uint32_t place);

/* Look for leases that a dead peer has left. */
void wf_shm_export_look(struct wf_shm_export *shm_export);

/* Returns how many chunks are still looked at though their offers are over.  Threads: any. */
uint32_t wf_shm_export_held(const struct wf_shm_export *shm_export);

/* In a forked child: let go of the page, which is the parent's. */
void wf_shm_export_forked(struct wf_shm_export *shm_export);

/* Everything that a peer lends: its page, and its slabs seen so far. */
struct wf_shm_import;
struct wf_shm_imported; /* a slab of the peer */

struct wf_lease_hold {
	struct wf_shm_import *shm_import; /* a reference */
	struct wf_shm_imported *slab;
	uint32_t place;
	const void *at;
};

/*
 * Look at the body that the peer of @link offers: @hold->at can be read until it is let go, even
 * beyond the peer's death.  -ESTALE: the body is not offered any more.  -EBADMSG: the body is not
 * what was said.  -ENOENT, -ENOSPC, -EMFILE, ...: the body can't be looked at from here.
 */
int wf_shm_import_hold(struct wf_link *link, const struct wf_body *body,
		       struct wf_lease_hold *hold);

/* Let go of a body; the exporter may use its chunk anew. */
void wf_shm_import_let(struct wf_lease_hold *hold);

/* Does @hold belong to the present life of the peer of @link? */
bool wf_shm_import_is_of(const struct wf_lease_hold *hold, const struct wf_link *link);

/* Part the importer from its link, which is over; views that are held stay.  Accepts NULL. */
void wf_shm_import_part(struct wf_shm_import *shm_import);

/* Let go of all @importers of a worker: in a forked child, or as the kernel does for the dead. */
void wf_shm_imports_forked(struct wf_list *shm_imports);

#endif
