/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Same: are the peers of two links one node?  Proofs of that, and what becomes of the two.
 *
 * Threads: owner.
 */
#ifndef WF_SAME_H
#define WF_SAME_H

#include "loop/timer.h"
#include "wire/greet.h"

struct wf_link;
struct wf_worker;

/* A question that the peer is to answer with a proof, by ids of links. */
struct wf_same_question {
	uint64_t about;  /* is it the peer of that one, too? */
	uint64_t waiter; /* whose rails wait for the answer; 0: none do */
};

/* Is the peer that of another link?  Until the peer dies. */
struct wf_same_proofs {
	bool proving;              /* rails wait until that is settled */
	unsigned awaited;          /* answers, and offers that were announced */
	uint32_t due;              /* of these, the offers */
	unsigned heard;            /* offers through this connection */
	struct wf_same_question asked[WF_GREET_PROOFS_MAX]; /* through it, and not answered yet */
	unsigned asked_count;
	uint64_t same_id;          /* of the other link; 0: none is known */
	struct wf_timer timer;     /* a rail is up: until no proof is expected any more */
};

/* Of two nodes the one of the lower incarnation decides. */
bool wf_same_decides(const struct wf_worker *w, const uint8_t *incarnation);

/* The peer has dialled: answer its hello with @hello, which is filled in, and offers of proofs. */
void wf_same_accepted(struct wf_link *link, struct wf_greet *hello);

/* The peer has answered our dial: look for a rail, at once if it can't be another link's. */
void wf_same_dialled(struct wf_link *link);
void wf_same_heard(struct wf_link *link, const struct wf_greet *greet);

/* The same before this worker has taken the peer: it knows of no other link. */
void wf_same_unknown(struct wf_link *link, const struct wf_greet *greet);

/* Its door has closed for good: true if its peer has proved to be another link's, whose name it is now. */
bool wf_same_closed(struct wf_link *link);

/* A rail is up.  Offers and answers may still be on their way through the door. */
void wf_same_up(struct wf_link *link);

/* The peer is dead. */
void wf_same_forget(struct wf_link *link);

#endif
