/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/recv_set.h"

#include <errno.h>

#include "core/check.h"
#include "core/last.h"
#include "core/op.h"

int weft_recv_set(struct weft_node *node, struct weft_peer *peer, uint64_t step,
		  const struct weft_recv_item *items, size_t count,
		  const struct weft_recv_set_options *options, struct weft_op **op)
{
	int err = wf_check_node(node);

	if (err || WF_NEED(items))
		return err ? err : -EINVAL;
	return wf_recv_set(node, peer, step, items, count, options, op);
}

struct weft_op *weft_recv_set_item(const struct weft_op *op, size_t index)
{
	return WF_NEED(op) || op->class->kind != WF_OP_RECV_SET ? NULL : wf_recv_set_item(op, index);
}
