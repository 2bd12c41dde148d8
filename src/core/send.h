/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send: the operation that sends a tensor, or an attachment.
 */
#ifndef WF_CORE_SEND_H
#define WF_CORE_SEND_H

#include <weft/weft.h>
#include "tensor/sending.h"

struct wf_attached;
struct wf_desk;

struct wf_op_send {
	struct wf_attached *attached; /* NULL: it is no attachment */
	struct wf_sending sending; /* the last: see wf_op_init */
};

/* A send that is not submitted; all but its step.  Recorded. */
int wf_send_new(struct weft_node *node, struct weft_peer *peer, const void *key,
		size_t key_bytes, const struct weft_tensor *tensor,
		const struct weft_send_options *options, struct weft_op **op);

/* The same, submitted.  Recorded. */
int wf_send(struct weft_peer *peer, uint64_t step, const void *key, size_t key_bytes,
	    const struct weft_tensor *tensor, const struct weft_send_options *options,
	    struct weft_op **op);

/* Begin one that is an attachment: its message is posted over @link. */
void wf_send_start_attached(struct weft_op *op, struct wf_desk *desk, struct wf_link *link);

#endif
