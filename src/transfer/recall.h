/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recall: the message that revokes an offer.  Its memory is taken with the offer, so that it
 * can always be sent; once it is sent it belongs to the link, which repeats it until the peer
 * has it, even when the outgoing body has ended before.  Else an offer that comes late would wait
 * there for ever.
 *
 * Threads: owner.
 */
#ifndef WF_RECALL_H
#define WF_RECALL_H

#include "link/link.h"

struct wf_recall {
	struct wf_message_control control;
};

/* Make a recall of @offer.  -ENOMEM. */
int wf_recall_open(uint64_t offer, struct wf_recall **recall);

/* Send the recall.  Takes @recall. */
void wf_recall_post(struct wf_recall *recall, struct wf_link *link);

/* Free a recall that is not needed.  Accepts NULL. */
void wf_recall_close(struct wf_recall *recall);

#endif
