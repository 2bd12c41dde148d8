/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attachments of messages, as this floor sees them: tensors that another floor keeps, and that
 * are all there before a message counts as come.
 *
 * Threads: owner.
 */
#ifndef WF_ATTACHMENT_OPS_H
#define WF_ATTACHMENT_OPS_H

#include "link/link.h"

struct wf_attachment_ops {
	/*
	 * Await @count tensors, 1 at least, over @link beside message @number of @call, the
	 * caller's id, for the caller if it is a @reply.  When all have come: whole, never
	 * inside.  *@attachment_set is owned, until drop.  -EBADMSG, -ENOMEM.
	 * -ENOBUFS: they are more than the peer's account will ever have room for.
	 */
	int (*expect)(void *ctx, struct wf_link *link, uint64_t call, bool reply, uint64_t number,
		      uint16_t count, void (*whole)(void *owner), void *owner,
		      void **attachment_set);
	/* Give up tensors that nobody wants any more.  Accepts NULL. */
	void (*drop)(void *attachment_set);
	/* Returns a number that differs once more of them have come. */
	uint64_t (*progress)(const void *attachment_set);
	void *ctx;
};

#endif
