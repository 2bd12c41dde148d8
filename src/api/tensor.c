/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "core/check.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/recv.h"
#include "core/send.h"
#include "core/tensor.h"

int weft_send(struct weft_peer *peer, uint64_t step, const void *key, size_t key_bytes,
	      const struct weft_tensor *tensor, const struct weft_send_options *options,
	      struct weft_op **op)
{
	return WF_NEED(peer) ? -EINVAL
			     : wf_send(peer, step, key, key_bytes, tensor, options, op);
}

int weft_recv(struct weft_node *node, struct weft_peer *peer, uint64_t step, const void *key,
	      size_t key_bytes, const struct weft_tensor *into,
	      const struct weft_recv_options *options, struct weft_op **op)
{
	return WF_NEED(node) ? -EINVAL
			     : wf_recv(node, peer, step, key, key_bytes, into, options, op);
}

const struct weft_tensor *weft_op_tensor(const struct weft_op *op, unsigned *flags)
{
	const struct wf_op_landed *landed;
	const struct wf_receiving *r;

	if (WF_NEED(op))
		return NULL;
	landed = wf_landing_next_got(op);
	if (landed) {
		if (flags)
			*flags = 0;
		return &landed->tensor;
	}
	if (op->class->kind != WF_OP_RECV || weft_op_status(op) != WEFT_OK || !weft_op_ended(op) ||
	    op->recv.lost)
		return NULL;
	r = &op->recv.receiving;
	if (flags)
		*flags = r->got.flags | (r->got.readonly ? WEFT_READONLY : 0);
	return &r->got.tensor;
}

struct weft_peer *weft_op_peer(const struct weft_op *op)
{
	if (WF_NEED(op))
		return NULL;
	if (op->class->kind != WF_OP_RECV)
		return op->owner ? op->peer : NULL;
	return weft_op_ended(op) ? op->recv.from : NULL;
}

void *weft_op_take(struct weft_op *op)
{
	void *chunk;

	if (WF_NEED(op) || op->class->kind != WF_OP_RECV || !weft_op_ended(op) ||
	    (op->owner && wf_check_node(op->owner)))
		return NULL;
	chunk = op->recv.receiving.got.chunk;
	op->recv.receiving.got.chunk = NULL;
	return chunk;
}

int weft_tensor_bytes(const struct weft_tensor *tensor, uint64_t *bytes)
{
	if (WF_NEED(tensor) || WF_NEED(bytes))
		return -EINVAL;
	return wf_tensor_bytes(tensor, bytes);
}
