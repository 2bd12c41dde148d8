/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metadata: pairs as users give and get them, and the blocks that go over the wire.
 */
#ifndef WF_CORE_METADATA_H
#define WF_CORE_METADATA_H

#include <weft/weft.h>

/* A block of @pairs, allocated; NULL: there are none.  -EINVAL, -EMSGSIZE, -ENOMEM: recorded. */
int wf_metadata_pack(const struct weft_metadata *pairs, size_t count, uint8_t **block,
		     uint32_t *bytes);
/*
 * The block of @op, a call, is the first @own_bytes that it has, and @more_bytes that are to be
 * filled at *@more.  -EMSGSIZE, -ENOMEM: recorded, and it is as it was.
 */
int wf_metadata_grow(struct weft_op *op, uint32_t own_bytes, uint32_t more_bytes, uint8_t **more);
/* To the call @op, which interceptors are being asked about.  -EALREADY, and as the two above: recorded. */
int wf_metadata_add(struct weft_op *op, const struct weft_metadata *pairs, size_t count);
/* The pairs of a block that was checked, allocated in one piece.  NULL: none, or no memory. */
struct weft_metadata *wf_metadata_unpack(const uint8_t *block, size_t bytes, size_t *count);

#endif
