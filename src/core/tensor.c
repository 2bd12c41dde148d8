/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/op.h"
#include "core/worker.h"
#include "tensor/shape.h"

/* Record why @t has no size.  -EINVAL. */
static int say_what_is_wrong(const struct weft_tensor *t)
{
	if (!t->dtype.bits || !t->dtype.lanes)
		return wf_last_set(-EINVAL, "dtype has %u bits and %u lanes: expected at least 1",
				   t->dtype.bits, t->dtype.lanes);
	if (t->ndim < 0 || t->ndim > WEFT_RANK_MAX)
		return wf_last_set(-EINVAL, "ndim is %d: expected 0 to %d", t->ndim, WEFT_RANK_MAX);
	if (!t->shape)
		return wf_last_set(-EINVAL, "shape is NULL, and ndim is %d", t->ndim);
	for (int32_t i = 0; i < t->ndim; i++)
		if (t->shape[i] < 0)
			return wf_last_set(-EINVAL, "dimension %d of the shape is negative: %lld", i,
					   (long long)t->shape[i]);
	return wf_last_set(-EINVAL, "no such dtype or shape");
}

int wf_tensor_bytes(const struct weft_tensor *tensor, uint64_t *bytes)
{
	int err = wf_shape_bytes(tensor->dtype, tensor->ndim, tensor->shape, bytes);

	if (err == -EOVERFLOW)
		return wf_last_set(err, "the tensor is larger than any memory");
	return err ? say_what_is_wrong(tensor) : 0;
}

int wf_tensor_check(const struct weft_tensor *t, uint64_t *bytes)
{
	int err = wf_tensor_bytes(t, bytes);

	if (err)
		return err;
	if (*bytes && !t->data)
		return wf_last_set(-EINVAL, "a tensor of %llu bytes without data",
				   (unsigned long long)*bytes);
	return 0;
}

int wf_tensor_find_device(const struct weft_op *op, const struct weft_tensor *t, uint64_t bytes,
			  void *stream, struct wf_kind_body **device)
{
	const struct wf_options *options = &op->worker->engine.options;
	struct wf_error e;

	if (t->device.type == WEFT_CPU || !bytes)
		return 0;
	if (wf_kind_open(t->device.type, t->device.id, (char *)t->data + t->byte_offset, bytes,
			 options->cuda, stream, device, &e))
		return wf_last_copy(&e);
	return 0;
}

int wf_tensor_copy_names(struct weft_op *op, const void *key, size_t key_bytes,
			 const struct weft_tensor *t, const int64_t **shape, const void **key_copy)
{
	size_t shape_bytes = t ? (size_t)t->ndim * sizeof(int64_t) : 0;
	char *at = op->names;

	if (2 * shape_bytes + key_bytes > sizeof(op->names)) {
		at = op->memory = malloc(2 * shape_bytes + key_bytes);
		if (!at)
			return wf_last_set(-ENOMEM, "no memory for a key");
	}
	if (shape_bytes)
		memcpy(at, t->shape, shape_bytes);
	if (shape_bytes && t->strides)
		memcpy(at + shape_bytes, t->strides, shape_bytes);
	if (key_bytes)
		memcpy(at + 2 * shape_bytes, key, key_bytes);
	*shape = (const int64_t *)(void *)at;
	*key_copy = at + 2 * shape_bytes;
	return 0;
}

int wf_tensor_check_channel(const struct weft_node *node, const struct weft_peer *peer,
			    const void *key, size_t key_bytes)
{
	if (peer && peer->owner != node)
		return wf_last_set(-EINVAL, "the peer belongs to another node");
	return wf_tensor_check_key(key, key_bytes);
}

int wf_tensor_check_key(const void *key, size_t key_bytes)
{
	if (key_bytes && !key)
		return wf_last_set(-EINVAL, "key is NULL, and key_bytes is %zu", key_bytes);
	if (key_bytes > WEFT_KEY_BYTES_MAX)
		return wf_last_set(-EINVAL, "a key of %zu bytes: at most %d", key_bytes,
				   WEFT_KEY_BYTES_MAX);
	return 0;
}
