/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metadata: pairs as users give and get them, and the blocks that go over the wire.
 */
#ifndef WF_CORE_METADATA_H
#define WF_CORE_METADATA_H

#include <weft/weft.h>

/* Allocate a block of @pairs; NULL: there are none.  -EINVAL, -EMSGSIZE, -ENOMEM: recorded. */
int wf_metadata_pack(const struct weft_metadata *pairs, size_t count, uint8_t **block,
		     uint32_t *bytes);
/*
 * Resize the block of the call @op: its first @own_bytes stay, and @more_bytes are to be filled
 * at *@more.  -EMSGSIZE, -ENOMEM: recorded, and the block is as it was.
 */
int wf_metadata_grow(struct weft_op *op, uint32_t own_bytes, uint32_t more_bytes, uint8_t **more);
/*
 * Add @pairs to the call @op while interceptors are asked about it.  -EALREADY, and codes as
 * the two above: recorded.
 */
int wf_metadata_add(struct weft_op *op, const struct weft_metadata *pairs, size_t count);
/* Unpack the pairs of a checked block into one allocation.  NULL: none, or no memory. */
struct weft_metadata *wf_metadata_unpack(const uint8_t *block, size_t bytes, size_t *count);

#endif
