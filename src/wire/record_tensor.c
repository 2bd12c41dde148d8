/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record.h"

#include <errno.h>

#define FIXED_BYTES 16 /* before the body: step to key_bytes */
/* Other flags concern one end only. */
#define FLAGS (WEFT_DEAD | WEFT_OPAQUE | WF_TENSOR_RELAYED | WF_TENSOR_LOST)

size_t wf_record_tensor_bytes(const struct wf_record_tensor *t)
{
	return FIXED_BYTES + wf_body_bytes(&t->body) + t->rank * sizeof(int64_t) + t->key_bytes;
}

void wf_record_tensor_put(struct wf_bytes_writer *w, const struct wf_record_tensor *t,
			  const int64_t *shape)
{
	struct wf_bytes_writer fixed;

	if (!wf_bytes_reserve(w, FIXED_BYTES, &fixed))
		return;
	wf_bytes_put_u64(&fixed, t->step);
	wf_bytes_put_u8(&fixed, t->flags);
	wf_bytes_put_u8(&fixed, t->dtype.code);
	wf_bytes_put_u8(&fixed, t->dtype.bits);
	wf_bytes_put_u8(&fixed, t->rank);
	wf_bytes_put_u16(&fixed, t->dtype.lanes);
	wf_bytes_put_u16(&fixed, t->key_bytes);
	wf_body_put(w, &t->body);
	for (unsigned i = 0; i < t->rank; i++)
		wf_bytes_put_u64(w, (uint64_t)shape[i]);
	wf_bytes_put(w, t->key, t->key_bytes);
}

/* Content bytes by dtype and shape.  -EBADMSG: a dimension is negative, or bytes are too many. */
static int content_bytes(const struct wf_record_tensor *t, uint64_t *bytes)
{
	uint64_t product = ((uint64_t)t->dtype.bits * t->dtype.lanes + 7) / 8;
	bool is_empty = false;

	for (unsigned i = 0; i < t->rank; i++) {
		int64_t dim = wf_record_tensor_dim(t, i);

		if (dim < 0)
			return -EBADMSG;
		if (dim == 0)
			is_empty = true;
		else if (__builtin_mul_overflow(product, (uint64_t)dim, &product))
			return -EBADMSG;
	}
	/* Strides of an empty tensor, too, and offsets by them, must fit an int64_t. */
	if (product > INT64_MAX)
		return -EBADMSG;
	*bytes = is_empty ? 0 : product;
	return 0;
}

static bool body_fits(const struct wf_record_tensor *t)
{
	uint64_t bytes;

	if (content_bytes(t, &bytes))
		return false;
	return t->flags & WEFT_DEAD ? t->body.way == WF_BODY_NONE : t->body.bytes == bytes;
}

static bool opaque_fits(const struct wf_record_tensor *t)
{
	if (!(t->flags & WEFT_OPAQUE))
		return true;
	return t->rank == 1 && t->dtype.code == WEFT_UINT && t->dtype.bits == 8 &&
	       t->dtype.lanes == 1;
}

int wf_record_tensor_get(const uint8_t *bytes, size_t count, struct wf_record_tensor *t)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count), fixed;
	struct wf_record_tensor got;

	if (!wf_bytes_fixed(&r, FIXED_BYTES, &fixed))
		return -EBADMSG;
	got.step = wf_bytes_get_u64(&fixed);
	got.flags = wf_bytes_get_u8(&fixed);
	got.dtype.code = wf_bytes_get_u8(&fixed);
	got.dtype.bits = wf_bytes_get_u8(&fixed);
	got.rank = wf_bytes_get_u8(&fixed);
	got.dtype.lanes = wf_bytes_get_u16(&fixed);
	got.key_bytes = wf_bytes_get_u16(&fixed);
	if (wf_body_get(&r, &got.body) || got.body.way == WF_BODY_HANDLE)
		return -EBADMSG;
	got.shape = wf_bytes_view(&r, got.rank * sizeof(int64_t));
	got.key = wf_bytes_view(&r, got.key_bytes);
	if (wf_body_end(&r, &got.body, &got.eager))
		return -EBADMSG;
	if (got.flags & ~FLAGS || !got.dtype.bits || !got.dtype.lanes || got.rank > WEFT_RANK_MAX)
		return -EBADMSG;
	if (!opaque_fits(&got) || !body_fits(&got))
		return -EBADMSG;
	if (got.flags & WF_TENSOR_LOST && !(got.flags & WEFT_DEAD))
		return -EBADMSG;
	*t = got;
	return 0;
}

int64_t wf_record_tensor_dim(const struct wf_record_tensor *t, unsigned index)
{
	return wf_bytes_i64_at(t->shape, index);
}
