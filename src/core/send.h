/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send: the operation that sends a tensor, or an attachment.
 */
#ifndef WF_CORE_SEND_H
#define WF_CORE_SEND_H

#include <weft/weft.h>
#include "tensor/sending.h"

struct wf_attachment;
struct wf_worker;

struct wf_op_send {
	struct wf_attachment *attached; /* NULL: the send is no attachment */
	struct wf_sending sending; /* the last: see wf_op_init */
};

/* Make a send without submitting it, set up but for its step.  Failures are recorded. */
int wf_send_new(struct weft_node *node, struct weft_peer *peer, const void *key,
		size_t key_bytes, const struct weft_tensor *tensor,
		const struct weft_send_options *options, struct weft_op **op);

/* Make a send and submit it.  Failures are recorded. */
int wf_send(struct weft_peer *peer, uint64_t step, const void *key, size_t key_bytes,
	    const struct weft_tensor *tensor, const struct weft_send_options *options,
	    struct weft_op **op);

/* Begin the attachment @op, whose message is posted over @link. */
void wf_send_start_attached(struct weft_op *op, struct wf_worker *worker, struct wf_link *link);

#endif
