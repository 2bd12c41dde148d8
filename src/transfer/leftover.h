/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A leftover: the rest of a record of which a part has left.  The record must be finished,
 * though its owner has ended: a copy does that, so that head and body are free.
 *
 * Threads: owner.
 */
#ifndef WF_LEFTOVER_H
#define WF_LEFTOVER_H

#include "transfer/recall.h"

/*
 * Put a copy in the place of @message, which is on its way over @link and is forgotten.  If it
 * is an offer, *@recall takes it back after that, and is taken; else *@recall is NULL.  -ENOMEM:
 * nothing was done.
 */
int wf_leftover_post(struct wf_message *message, struct wf_recall **recall, struct wf_link *link);

#endif
