/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Yielding: pulls from one peer make way for those of a higher priority.
 *
 * All bodies of a peer come over the same wire, and a read that is under way can't be overtaken.
 * So while a pull has bytes to ask for, pulls of lower priorities from that peer post no read, but
 * for one in WF_PRIORITY_PASSES (util/priority.h).
 *
 * Calls and short tensors need no read.  So while records of a higher priority come and go, pulls
 * from that peer have one read under way together, a short one, behind which a record waits but a
 * moment.
 *
 * Threads: owner.
 */
#ifndef WF_YIELD_H
#define WF_YIELD_H

#include "transfer/pull.h"

/*
 * Returns whether @pull, which has bytes to ask for, must make way.  Then it is held: it goes on by
 * itself when it may.
 */
bool wf_yield_must(struct wf_pull *pull);

/*
 * Returns whether the next read of @pull is for the next turn: the rail's reads last until they are
 * done, and urgent records that have come are answered first.
 */
bool wf_yield_pauses(const struct wf_pull *pull);

/* Note that @pull has posted a read; one that makes way may have the next turn. */
void wf_yield_took(struct wf_pull *pull);

/* Note that @pull has no bytes to ask for.  Pulls that made way for it go on. */
void wf_yield_done(struct wf_pull *pull);

/* Let pulls of @link go on that have made way, if they may: a read has ended. */
void wf_yield_next(struct wf_link *link);

/* Returns how long the next read of @pull may be. */
uint64_t wf_yield_chunk_bytes(const struct wf_pull *pull);

/* Forget @pull, which posts no read for now. */
void wf_yield_leave(struct wf_pull *pull);

#endif
