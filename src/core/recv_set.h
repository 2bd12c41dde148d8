/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recv set: the operation that receives many tensors of a step, by a receive for each.
 *
 * The set owns these receives, which its items are called, until it is freed itself.
 */
#ifndef WF_CORE_RECV_SET_H
#define WF_CORE_RECV_SET_H

#include <weft/weft.h>

struct wf_recv_set;

struct wf_op_recv_set {
	struct wf_recv_set *set;
};

/* Make a set of receives and submit it.  Failures are recorded.  Threads: any, callback. */
int wf_recv_set(struct weft_node *node, struct weft_peer *peer, uint64_t step,
		const struct weft_recv_item *items, size_t count,
		const struct weft_recv_set_options *options, struct weft_op **op);

/* Returns item number @index of @op, a set; NULL: there is none.  Threads: any, callback. */
struct weft_op *wf_recv_set_item(const struct weft_op *op, size_t index);

#endif
