/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An answer: the last word about an offer of the peer's.  Its memory is taken
 * when the offer comes, so that an offer can always be ended.
 *
 * Until it is said, the answer is what stands for the offer here: link->offers
 * finds it by the offer's id, and it tells whoever keeps it, an arrival, a pull
 * or a stream, that the offer can't be had any more.
 *
 * Threads: owner.
 */
#ifndef WF_ANSWER_H
#define WF_ANSWER_H

#include "link/link.h"
#include "util/status.h"
#include "wire/record.h"

struct wf_answer;

/* Whoever keeps an answer until it is said. */
struct wf_answer_keeper {
	/*
	 * The peer takes the offer back: say wf_answer_withdrawn when nothing
	 * reads it.  Takes the answer.
	 */
	void (*withdrawn)(struct wf_answer *answer);

	/* The peer is dead, as @e says: there is nobody to answer.  Takes the answer. */
	void (*lost)(struct wf_answer *answer, const struct wf_error *e);
};

struct wf_answer {
	/* set by whoever keeps it */
	const struct wf_answer_keeper *keeper;
	void *owner;

	/* read by the keeper */
	struct wf_link *link; /* whose offer it is; NULL: it is said, or the peer is dead */

	/* its own */
	struct wf_map_node node;      /* in link->offers */
	struct wf_list all_node;      /* in link->offers */
	struct wf_message message; /* PULLED, or: */
	struct wf_control control; /* WITHDRAWN */
	struct wf_link *account; /* it is charged to; a reference */
	uint64_t offer;
	uint32_t chunks; /* reads that carried the body, for its owner to know */
	uint8_t bytes[WF_SMALL_RECORD_BYTES];
};

/*
 * The peer of @link has made @offer.  The answer has a keeper, or is said, before
 * the next record of the peer is handled.  -EBADMSG: the same offer is not over yet.
 * -ENOMEM.
 */
int wf_answer_open(struct wf_link *link, uint64_t offer, struct wf_answer **answer);

/*
 * A body has come: an eager one uses the sender's room, an offered one gets an answer, any
 * other NULL.  -EBADMSG: there was no such room, or the same offer is not over yet.
 * -ENOMEM: nothing was done.
 */
int wf_answer_meet(struct wf_link *link, const struct wf_body *body, struct wf_answer **answer);

/* It could not be taken after all, and comes again.  Takes @answer. */
void wf_answer_unmeet(struct wf_link *link, const struct wf_body *body, struct wf_answer *answer);

/* Nobody will take it: the sender gets its buffer, or its room, back.  Takes @answer. */
void wf_answer_refuse(struct wf_link *link, const struct wf_body *body, struct wf_answer *answer,
		      enum weft_status status);

/* Say that the offer is used up: well, or why not.  Takes @answer. */
void wf_answer_pulled(struct wf_answer *answer, struct wf_link *link, enum weft_status status);

/* Say that it is no longer read, as its owner has asked.  Takes @answer. */
void wf_answer_withdrawn(struct wf_answer *answer, struct wf_link *link);

/* There is nobody left to tell.  Accepts NULL. */
void wf_answer_close(struct wf_answer *answer);

/* The peer of @link takes @offer back.  -ENOMEM: nothing was done. */
int wf_answers_withdraw(struct wf_link *link, uint64_t offer);

/* The peer of @link is dead: no offer of it can be had any more. */
void wf_answers_lost(struct wf_link *link, const struct wf_error *e);

#endif
