/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes and layouts of tensors.  Pure: no I/O, no state.
 *
 * Threads: any.
 */
#ifndef WF_SHAPE_H
#define WF_SHAPE_H

#include <weft/tensor.h>
#include "util/error.h"

#define WF_SHAPE_TEXT_BYTES 128

/*
 * Count the bytes of a tensor with this dtype and shape.  -EINVAL: no such dtype, rank or
 * dimension; -EOVERFLOW.
 */
int wf_shape_bytes(struct weft_dtype dtype, int32_t rank, const int64_t *shape, uint64_t *bytes);

/* Returns whether the elements lie one after the other, last index fastest. */
bool wf_shape_contiguous(const struct weft_tensor *t);

/*
 * Copy elements of @t, whatever its strides, one after the other to @to: the ones after the
 * first *@done bytes there, as many as @bytes_max hold but at least one, and move *@done.
 * Returns whether all are copied.
 */
bool wf_shape_gather(const struct weft_tensor *t, void *to, size_t *done, size_t bytes_max);

/* Write a shape as "float32[784,100]", cut if too long. */
void wf_shape_text(struct weft_dtype dtype, int32_t rank, const int64_t *shape,
		   char text[WF_SHAPE_TEXT_BYTES]);

#endif
