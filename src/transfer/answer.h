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

struct wf_answer {
	struct wf_message message; /* PULLED, or: */
	struct wf_control control; /* WITHDRAWN */
	uint64_t offer;
	uint32_t chunks; /* reads that carried the body, for its owner to know */
	uint8_t bytes[WF_SMALL_RECORD_BYTES];
};

/* -ENOMEM. */
int wf_answer_open(uint64_t offer, struct wf_answer **answer);

/* Say that the offer is used up: well, or why not.  Takes @answer. */
void wf_answer_pulled(struct wf_answer *answer, struct wf_link *link, enum weft_status status);

/* Say that it is no longer read, as its owner has asked.  Takes @answer. */
void wf_answer_withdrawn(struct wf_answer *answer, struct wf_link *link);

/* There is nobody left to tell.  Accepts NULL. */
void wf_answer_close(struct wf_answer *answer);

#endif
