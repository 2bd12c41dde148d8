/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ledger: the bytes that this node keeps on behalf of each peer.
 *
 * Memory that outlives the record that caused it is charged to the link while it is kept.  Pool
 * memory has a budget of its own and is not charged.  An account has two sides, and half of
 * WEFT_PEER_BYTES for each:
 *
 * - received: unmatched tensors and messages of streams that nobody has read.
 *   The program frees these by receiving, so the peer may wait for that: credit
 *   is promised only as far as there is room for what may come with it, and at
 *   the bound no record is taken; its frame stays at the peer, unconfirmed.
 * - owed: calls with all that is beside them, answers that the peer has not
 *   taken, frames that it has not confirmed, and the link itself.  The peer's
 *   own records free these, so they must go on coming: credit does not depend
 *   on this side.  Short of the bound calls are refused with
 *   RESOURCE_EXHAUSTED; at the bound records that would be answered are not
 *   taken.  Of a peer that somebody here has named some of these are taken
 *   nevertheless, or two nodes might wait for each other: it is dead when
 *   answers alone that have not left are four times the bound, and 16 MiB at least.
 *
 * So nothing that was confirmed is ever dropped, and neither side can lock the other up.
 *
 * A stranger is a peer that dialled this node, and whose address nobody here has named.  All
 * strangers of a node together have WEFT_STRANGERS_BYTES; when that is spent each still has
 * WF_LEDGER_LEAST_BYTES, so that a newcomer is served.  A record in parts takes memory for all of
 * them when it begins, and begins only where that fits one or the other.
 *
 * Threads: owner.
 */
#ifndef WF_LEDGER_H
#define WF_LEDGER_H

#include "util/list.h"

struct wf_link;
struct wf_engine;

/* The least bound of an account: half is room for some fifty calls; for a frame there always is. */
#define WF_LEDGER_LEAST_BYTES (512 * KIB)

enum wf_ledger_side {
	WF_LEDGER_RECEIVED, /* bytes kept until the program receives them */
	WF_LEDGER_OWED,     /* bytes kept until the peer takes or ends them */
	WF_LEDGER_SIDES
};

/* The account of a peer. */
struct wf_ledger {
	bool stranger;             /* the peer dialled us, and nobody here has named its address */
	struct wf_list kept;       /* tensors that wait for a receive, the oldest first */
	uint64_t bytes[WF_LEDGER_SIDES];
	uint64_t untaken_bytes;    /* answers that have not left yet, of the owed side */
};

/* Charge @bytes, kept on behalf of the peer of @link, until they are discharged. */
void wf_ledger_charge(struct wf_link *link, enum wf_ledger_side side, uint64_t bytes);
void wf_ledger_discharge(struct wf_link *link, enum wf_ledger_side side, uint64_t bytes);

/* Count @bytes, which are charged to the owed side, as an answer that waits to leave; or no more. */
void wf_ledger_answer_waits(struct wf_link *link, uint64_t bytes);
void wf_ledger_answer_left(struct wf_link *link, uint64_t bytes);

/* Returns the most that a side of the account of @link may hold as things stand. */
uint64_t wf_ledger_bound(const struct wf_link *link);

/* Is as much kept for the peer of @link to take as may be? */
bool wf_ledger_owes_most(const struct wf_link *link);

/*
 * Do far more answers wait for the peer of @link to take them than may be, because records that are
 * answered were taken of it nevertheless?
 */
bool wf_ledger_is_overdrawn(const struct wf_link *link);

/* May a call begin for which @bytes are kept? */
bool wf_ledger_takes_call(const struct wf_link *link, uint64_t bytes);

/* Will @bytes of a call that has begun find room at the latest when all other calls have ended? */
bool wf_ledger_fits_call(const struct wf_link *link, uint64_t bytes);

/* May a record of @bytes begin that comes in parts, for which all its bytes are kept at once? */
bool wf_ledger_takes_parts(const struct wf_link *link, uint32_t bytes);

/* Returns how many frames of the peer there is room for, whatever records are in them. */
uint32_t wf_ledger_frames(const struct wf_link *link);

/* Have the strangers of this node spent all that they have together? */
bool wf_ledger_strangers_full(const struct wf_engine *engine);

/* Open the account of @link, as a stranger's or not; for link.c. */
void wf_ledger_begin(struct wf_link *link, bool stranger);

/* Close the account of @link; for link.c. */
void wf_ledger_end(struct wf_link *link);

/*
 * Add the account of @link, which is another name of @into, to that of @into, which is no stranger
 * if one of them is none; for link.c.
 */
void wf_ledger_merge(struct wf_link *link, struct wf_link *into);

#endif
