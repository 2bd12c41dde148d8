/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "core/broadcast.h"
#include "core/check.h"
#include "core/last.h"
#include "core/op.h"

int weft_broadcast(struct weft_peer *const *peers, size_t count, uint64_t step, const void *key,
		   size_t key_bytes, const struct weft_tensor *tensor,
		   const struct weft_broadcast_options *options, struct weft_op **op)
{
	if (WF_NEED(peers))
		return -EINVAL;
	if (!count)
		return wf_last_set(-EINVAL, "a broadcast to no peers");
	for (size_t i = 0; i < count; i++) {
		int err = peers[i] ? wf_check_node(peers[i]->owner)
				   : wf_last_set(-EINVAL, "peers[%zu] is NULL", i);

		if (err)
			return err;
	}
	return wf_broadcast(peers, count, step, key, key_bytes, tensor, options, op);
}

static int check(const struct weft_op *op)
{
	if (WF_NEED(op))
		return -EINVAL;
	return op->class->kind == WF_OP_BROADCAST ? 0
						  : wf_last_set(-EINVAL, "the operation is no broadcast");
}

int weft_broadcast_add(struct weft_op *op, struct weft_peer *peer)
{
	int err = check(op);

	if (!err)
		err = WF_NEED(peer) ? -EINVAL : wf_check_node(peer->owner);
	return err ? err : wf_broadcast_add(op, peer);
}

int weft_broadcast_outcome(const struct weft_op *op, size_t index, enum weft_status *status,
			   const char **message)
{
	const struct weft_op *send;
	int err = check(op);

	if (!err && op->owner) /* in a forked child the lock may be held for ever */
		err = wf_check_node(op->owner);
	if (err || WF_NEED(status))
		return err ? err : -EINVAL;
	send = wf_broadcast_send_to(op, index);
	if (!send)
		return wf_last_set(-ENOENT, "the broadcast has no peer number %zu", index);
	*status = wf_op_status(send);
	if (message)
		*message = wf_op_message(send);
	return 0;
}
