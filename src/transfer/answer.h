/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An answer: the last word about an offer of the peer's.  Its memory is taken
 * when the offer comes, so that an offer can always be ended.
 *
 * Threads: owner.
 */
#ifndef WF_ANSWER_H
#define WF_ANSWER_H

#include "link/link.h"
#include "util/status.h"
#include "wire/record.h"

struct wf_answer {
	struct wf_message message; /* PULLED, or: */
	struct wf_control control; /* WITHDRAWN */
	uint64_t offer;
	uint32_t chunks; /* reads that carried the body, for its owner to know */
	uint8_t bytes[WF_SMALL_RECORD_BYTES];
};

/* -ENOMEM. */
int wf_answer_open(uint64_t offer, struct wf_answer **answer);

/*
 * A body has come: an eager one uses the sender's room, an offered one gets an answer, any
 * other NULL.  -EBADMSG: there was no such room.  -ENOMEM: nothing was done.
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

#endif
