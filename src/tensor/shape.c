/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/shape.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint64_t element_bytes(struct weft_dtype dtype)
{
	return ((uint64_t)dtype.bits * dtype.lanes + 7) / 8;
}

int wf_shape_bytes(struct weft_dtype dtype, int32_t rank, const int64_t *shape, uint64_t *bytes)
{
	uint64_t total = element_bytes(dtype);
	bool empty = false;

	if (!total || rank < 0 || rank > WEFT_RANK_MAX || (rank && !shape))
		return -EINVAL;
	for (int32_t i = 0; i < rank; i++) {
		if (shape[i] < 0)
			return -EINVAL;
		if (!shape[i])
			empty = true;
		else if (__builtin_mul_overflow(total, (uint64_t)shape[i], &total))
			return -EOVERFLOW;
	}
	/* Half the address space is more than any buffer; and it keeps offsets signed. */
	if (total > INT64_MAX)
		return -EOVERFLOW;
	*bytes = empty ? 0 : total;
	return 0;
}

bool wf_shape_contiguous(const struct weft_tensor *t)
{
	int64_t step = 1;

	if (!t->strides)
		return true;
	/* Without elements strides mean nothing. */
	for (int32_t i = 0; i < t->ndim; i++)
		if (!t->shape[i])
			return true;
	for (int32_t i = t->ndim - 1; i >= 0; i--) {
		/* A dimension of one element is never stepped along. */
		if (t->shape[i] != 1 && t->strides[i] != step)
			return false;
		step *= t->shape[i];
	}
	return true;
}

bool wf_shape_gather(const struct weft_tensor *t, void *to, size_t *done, size_t bytes_max)
{
	const char *from = (const char *)t->data + t->byte_offset;
	size_t bytes = element_bytes(t->dtype);
	size_t left = WF_MAX(bytes_max / bytes, (size_t)1);
	int64_t index[WEFT_RANK_MAX], at = (int64_t)(*done / bytes);
	int32_t rank = t->ndim;

	for (int32_t i = rank - 1; i >= 0; i--) {
		if (!t->shape[i])
			return true;
		index[i] = at % t->shape[i];
		at /= t->shape[i];
	}
	while (left--) {
		int64_t offset = 0;
		int32_t i;

		for (i = 0; i < rank; i++)
			offset += index[i] * t->strides[i];
		memcpy((char *)to + *done, from + offset * (int64_t)bytes, bytes);
		*done += bytes;
		/* Count up, last index fastest. */
		for (i = rank - 1; i >= 0 && ++index[i] == t->shape[i]; i--)
			index[i] = 0;
		if (i < 0)
			return true;
	}
	return false;
}

void wf_shape_text(struct weft_dtype dtype, int32_t rank, const int64_t *shape,
		   char text[WF_SHAPE_TEXT_BYTES])
{
	static const char *const names[] = {
		"int", "uint", "float", "handle", "bfloat", "complex", "bool",
	};
	size_t used;

	if (dtype.code < sizeof(names) / sizeof(names[0]))
		snprintf(text, WF_SHAPE_TEXT_BYTES, "%s%u", names[dtype.code], dtype.bits);
	else
		snprintf(text, WF_SHAPE_TEXT_BYTES, "type%u.%u", dtype.code, dtype.bits);
	used = strlen(text);
	if (dtype.lanes != 1)
		used += (size_t)snprintf(text + used, WF_SHAPE_TEXT_BYTES - used, "x%u",
					 dtype.lanes);
	text[used++] = '[';
	for (int32_t i = 0; i < rank && used < WF_SHAPE_TEXT_BYTES - 24; i++)
		used += (size_t)snprintf(text + used, WF_SHAPE_TEXT_BYTES - used, "%s%lld",
					 i ? "," : "", (long long)shape[i]);
	snprintf(text + used, WF_SHAPE_TEXT_BYTES - used, "]");
}
