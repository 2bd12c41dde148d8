/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes beside messages, as this floor sees it: tensors that another one keeps, and
 * that are all there before a message counts as come.
 *
 * Threads: owner.
 */
#ifndef WF_BESIDE_H
#define WF_BESIDE_H

#include "link/link.h"

struct wf_beside {
	/*
	 * @count tensors, 1 at least, will come over @link beside message @number of @call, the
	 * caller's id, for the caller if it is a @reply.  When all have: whole, never inside.
	 * *@bundle is whose it is told.  -EBADMSG, -ENOMEM.
	 */
	int (*expect)(void *ctx, struct wf_link *link, uint64_t call, bool reply, uint64_t number,
		      uint16_t count, void (*whole)(void *owner), void *owner, void **bundle);
	/* Nobody wants them any more.  Accepts NULL. */
	void (*drop)(void *bundle);
	/* A number that differs once more of them have come. */
	uint64_t (*progress)(const void *bundle);
	void *ctx;
};

#endif
