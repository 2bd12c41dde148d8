/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recv: the operation that receives a tensor, or an attachment.
 */
#ifndef WF_CORE_RECV_H
#define WF_CORE_RECV_H

#include <weft/weft.h>
#include "tensor/receiving.h"

struct wf_ask;
struct wf_desk;

struct wf_op_recv {
	struct weft_tensor into;
	struct weft_peer *from;   /* it came from */
	struct wf_ask *asks;      /* one for each desk; NULL: one desk alone gets it */
	struct wf_ask *_Atomic winner; /* of them: it gets the tensor, or ends without */
	struct wf_receiving receiving; /* the last; of an attachment with a reference to the bundle */
};

struct weft_peer *wf_recv_got(struct wf_receiving *r, struct wf_desk *desk,
			      const struct wf_error *e);

/*
 * A receive that is not submitted; all but its step, and where it meets its other half.
 * Recorded.
 */
int wf_recv_new(struct weft_node *node, struct weft_peer *peer, const void *key,
		size_t key_bytes, const struct weft_tensor *into,
		const struct weft_recv_options *options, struct weft_op **op);

/* The same, submitted.  Recorded. */
int wf_recv(struct weft_node *node, struct weft_peer *peer, uint64_t step, const void *key,
	    size_t key_bytes, const struct weft_tensor *into,
	    const struct weft_recv_options *options, struct weft_op **op);

#endif
