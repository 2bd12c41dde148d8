/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/match.h"

#include <errno.h>

#include "core/check.h"

int weft_probe(struct weft_node *node, struct weft_peer *peer, uint64_t step, const void *key,
	       size_t key_bytes, struct weft_probe_info *info)
{
	int err = wf_check_node(node);

	if (err)
		return err;
	if (info && WF_NEED_SIZED(info))
		return -EINVAL;
	return wf_match_probe(node, peer, step, key, key_bytes, info);
}

const void *weft_op_key(const struct weft_op *op, size_t *key_bytes)
{
	return WF_NEED(op) ? NULL : wf_match_key(op, key_bytes);
}
