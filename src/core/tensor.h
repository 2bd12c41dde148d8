/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensor: what the arguments of sends and receives have in common; codes are recorded.
 */
#ifndef WF_CORE_TENSOR_H
#define WF_CORE_TENSOR_H

#include <weft/weft.h>
#include "memory/kind.h"

/* How long it is; and that it has data, too.  -EINVAL, -EOVERFLOW. */
int wf_tensor_bytes(const struct weft_tensor *t, uint64_t *bytes);
int wf_tensor_check(const struct weft_tensor *t, uint64_t *bytes);
int wf_tensor_check_key(const void *key, size_t key_bytes);

/* Where the @bytes of @t lie, if no CPU and no rail reaches them there. */
int wf_tensor_find_device(const struct weft_op *op, const struct weft_tensor *t, uint64_t bytes,
			  void *stream, struct wf_kind_body **device);

/* Key, shape and behind it the strides belong to the operation from now on.  @t may be NULL. */
int wf_tensor_copy_names(struct weft_op *op, const void *key, size_t key_bytes,
			 const struct weft_tensor *t, const int64_t **shape, const void **key_copy);

#endif
