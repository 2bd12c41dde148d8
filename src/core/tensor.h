/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensor: arguments that sends and receives have in common; codes are recorded.
 */
#ifndef WF_CORE_TENSOR_H
#define WF_CORE_TENSOR_H

#include <weft/weft.h>
#include "memory/kind.h"

/* Compute the length of @t.  -EINVAL, -EOVERFLOW. */
int wf_tensor_bytes(const struct weft_tensor *t, uint64_t *bytes);
/* Compute the length of @t, and check that it has data.  -EINVAL, -EOVERFLOW. */
int wf_tensor_check(const struct weft_tensor *t, uint64_t *bytes);
/* Check a key, and the peer, maybe NULL, that tensors come from to @node.  -EINVAL. */
int wf_tensor_check_channel(const struct weft_node *node, const struct weft_peer *peer,
			    const void *key, size_t key_bytes);
/* Check a key.  -EINVAL. */
int wf_tensor_check_key(const void *key, size_t key_bytes);

/* Find the @device of the @bytes of @t, if no CPU and no rail reaches them where they lie. */
int wf_tensor_find_device(const struct weft_op *op, const struct weft_tensor *t, uint64_t bytes,
			  void *stream, struct wf_kind_body **device);

/* Copy key, shape and behind it the strides into @op.  @t may be NULL.  -ENOMEM. */
int wf_tensor_copy_names(struct weft_op *op, const void *key, size_t key_bytes,
			 const struct weft_tensor *t, const int64_t **shape, const void **key_copy);

#endif
