/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Same: proofs that the peers of two links are one node, and the merge of the two links.
 *
 * Threads: owner.
 */
#ifndef WF_SAME_H
#define WF_SAME_H

#include "loop/timer.h"
#include "wire/greet.h"

struct wf_link;
struct wf_engine;

/* A question that the peer is to answer with a proof, by ids of links. */
struct wf_same_question {
	uint64_t about;  /* the link that may have the same peer */
	uint64_t waiter; /* the link whose rails wait for the answer; 0: none do */
};

/* Proofs that the peer is that of another link.  Valid until the peer dies. */
struct wf_same_proofs {
	bool proving;              /* rails wait until the proofs are settled */
	unsigned awaited;          /* answers awaited, and offers that were announced */
	uint32_t due;              /* offers among the awaited */
	unsigned heard;            /* offers that came through this connection */
	/* Questions that went through this connection and are not answered yet. */
	struct wf_same_question asked[WF_GREET_PROOFS_MAX];
	unsigned asked_count;
	uint64_t same_id;          /* id of the other link; 0: none is known */
	struct wf_timer timer;     /* a rail is up: runs until no proof is expected any more */
};

/* Does this node decide?  Of two nodes the one with the lower incarnation does. */
bool wf_same_decides(const struct wf_engine *engine, const uint8_t *incarnation);

/*
 * Answer the hello of a peer that has dialled with @hello, which is filled in, and offers of
 * proofs.
 */
void wf_same_accepted(struct wf_link *link, struct wf_greet *hello);

/*
 * Go on after the peer has answered our dial: look for a rail, at once if the peer can't be another
 * link's.
 */
void wf_same_dialled(struct wf_link *link);

/* Take an offer, a question or an answer from the peer. */
void wf_same_heard(struct wf_link *link, const struct wf_greet *greet);

/* Take a message about proofs before this worker has taken the peer: it knows of no other link. */
void wf_same_unknown(struct wf_link *link, const struct wf_greet *greet);

/*
 * End the proofs when the door of @link has closed for good: true if its peer has proved to be
 * another link's, whose name @link is now.
 */
bool wf_same_closed(struct wf_link *link);

/* Wait for offers and answers on their way through the door, now that a rail is up. */
void wf_same_up(struct wf_link *link);

/* Reset the proofs of @link, whose peer is dead. */
void wf_same_forget(struct wf_link *link);

#endif
