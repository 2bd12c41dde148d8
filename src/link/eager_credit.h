/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eager credit: how many bytes of eager tensors may wait, unexpected, at either end of a link.
 *
 * Threads: owner.
 */
#ifndef WF_EAGER_CREDIT_H
#define WF_EAGER_CREDIT_H

#include "util/base.h"

struct wf_link;

/*
 * Eager bytes, counted up.  Valid until the peer dies, but for @held: tensors of earlier lives wait
 * on.
 */
struct wf_eager_credit {
	uint64_t granted, spent;    /* credit at the peer for our tensors */
	uint64_t total, told, used; /* credit here for its tensors: granted, told, and used */
	uint64_t held;              /* bytes of its tensors that wait here, of earlier lives, too */
};

/*
 * Start the credit of a peer that has been greeted: tensors left by its earlier lives take their
 * part.
 */
void wf_eager_credit_begin(struct wf_link *link);

/* May the peer take @bytes more of eager tensors?  Takes the credit if so. */
bool wf_eager_credit_take(struct wf_link *link, uint64_t bytes);

/* Undo wf_eager_credit_take(): nothing of the tensor has left, and nothing will. */
void wf_eager_credit_untake(struct wf_link *link, uint64_t bytes);

/*
 * Use credit here for an eager tensor of @bytes from the peer.  false: the peer had no credit for
 * it.
 */
bool wf_eager_credit_use(struct wf_link *link, uint64_t bytes);

/* Undo wf_eager_credit_use(): the tensor could not be taken after all, and comes again. */
void wf_eager_credit_unuse(struct wf_link *link, uint64_t bytes);

/* Return credit: @bytes of eager tensors of this peer have found their receiver. */
void wf_eager_credit_give(struct wf_link *link, uint64_t bytes);

#endif
