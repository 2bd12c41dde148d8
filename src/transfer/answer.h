/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An answer: the last word about an offer of the peer's.  Its memory is taken when the offer
 * comes, so that an offer can always be ended.
 *
 * Until it is sent, the answer stands for the offer here: link->offers finds it by the offer's
 * id, and it tells its keeper, an unexpected tensor, a pull or a stream, that the offer can't be
 * had any more.
 *
 * Threads: owner.
 */
#ifndef WF_ANSWER_H
#define WF_ANSWER_H

#include "link/link.h"
#include "util/status.h"
#include "wire/record.h"

struct wf_answer;

/* Callbacks of an answer's keeper, which holds the answer until it is sent. */
struct wf_answer_keeper {
	/*
	 * The peer takes the offer back: call wf_answer_withdrawn() when nothing reads it.
	 * Takes the answer.
	 */
	void (*withdrawn)(struct wf_answer *answer);

	/* The peer is dead, as @e says, and nobody awaits the answer.  Takes the answer. */
	void (*lost)(struct wf_answer *answer, const struct wf_error *e);
};

struct wf_answer {
	/* set by the keeper */
	const struct wf_answer_keeper *keeper;
	void *owner;

	/* read by the keeper */
	struct wf_link *link; /* link of the offer; NULL: the answer is sent, or the peer dead */

	/* private to answer.c */
	struct wf_map_node node;      /* in link->offers.map */
	struct wf_list all_node;      /* in link->offers.all */
	struct wf_message message; /* record PULLED */
	struct wf_message_control control; /* control WITHDRAWN, in place of PULLED */
	struct wf_link *account; /* peer whose ledger is charged; a reference */
	uint64_t offer;
	uint8_t priority;
	uint32_t chunks; /* reads that carried the body, for the offer's owner to know */
	uint8_t bytes[WF_RECORD_SMALL_BYTES];
};

/*
 * Make an answer to the offer of @body, which the peer of @link has made.  The answer must have a
 * keeper, or be sent, before the next record of the peer is handled.  -EBADMSG: the same offer is
 * not over yet.  -ENOMEM.
 */
int wf_answer_open(struct wf_link *link, const struct wf_body *body, struct wf_answer **answer);

/*
 * Account for a body that has come: an eager body uses the sender's eager credit, an offered one
 * gets an answer, any other NULL.  -EBADMSG: there was no such credit, or the same offer is not
 * over yet.  -ENOMEM: nothing was done.
 */
int wf_answer_meet(struct wf_link *link, const struct wf_body *body, struct wf_answer **answer);

/* Undo wf_answer_meet() for a body that could not be taken and comes again.  Takes @answer. */
void wf_answer_unmeet(struct wf_link *link, const struct wf_body *body, struct wf_answer *answer);

/*
 * Refuse a body that nobody will take: the sender gets its buffer, or its eager credit, back.
 * Takes @answer.
 */
void wf_answer_refuse(struct wf_link *link, const struct wf_body *body, struct wf_answer *answer,
		      enum weft_status status);

/* Tell the peer that the offer is used up: well, or why not.  Takes @answer. */
void wf_answer_pulled(struct wf_answer *answer, struct wf_link *link, enum weft_status status);

/*
 * Refuse the offer of @body, which comes when nobody waits for it any more, or was never asked for.
 * -EBADMSG: the same offer is not over yet.  -ENOMEM: nothing was done, and the offer is to come
 * again.
 */
int wf_answer_late(struct wf_link *link, const struct wf_body *body);

/* Tell the peer that its offer is no longer read, as it has asked.  Takes @answer. */
void wf_answer_withdrawn(struct wf_answer *answer, struct wf_link *link);

/* Drop an answer that nobody awaits any more.  Accepts NULL. */
void wf_answer_close(struct wf_answer *answer);

/* Tell the keeper that the peer of @link takes @offer back.  -ENOMEM: nothing was done. */
int wf_answers_withdraw(struct wf_link *link, uint64_t offer);

/* Tell all keepers that the peer of @link is dead: no offer of it can be had any more. */
void wf_answers_lost(struct wf_link *link, const struct wf_error *e);

#endif
