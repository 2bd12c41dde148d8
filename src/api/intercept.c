/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/check.h"
#include "core/metadata.h"
#include "core/op.h"

int weft_call_add_metadata(struct weft_op *op, const struct weft_metadata *pairs, size_t count)
{
	int err = WF_NEED(op);

	if (!err && op->owner)
		err = wf_check_node(op->owner);
	return err ? err : wf_metadata_add(op, pairs, count);
}
