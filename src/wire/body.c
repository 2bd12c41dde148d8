/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record.h"

#include <errno.h>

#define SHORT_BYTES 9 /* u8 way, u64 bytes */

size_t wf_body_bytes(const struct wf_body *body)
{
	return body->way == WF_BODY_PULL ? WF_BODY_BYTES_MAX : SHORT_BYTES;
}

void wf_body_put(struct wf_writer *w, const struct wf_body *body)
{
	wf_bytes_put_u8(w, body->way);
	wf_bytes_put_u64(w, body->bytes);
	if (body->way != WF_BODY_PULL)
		return;
	wf_bytes_put_u64(w, body->offer);
	wf_bytes_put_u32(w, body->epoch);
	wf_bytes_put_u64(w, body->address);
	wf_bytes_put_u64(w, body->key);
}

int wf_body_get(struct wf_reader *r, struct wf_body *body)
{
	struct wf_body b = { 0 };
	bool good;

	b.way = wf_bytes_get_u8(r);
	b.bytes = wf_bytes_get_u64(r);
	switch (b.way) {
	case WF_BODY_NONE:
		good = !b.bytes;
		break;
	case WF_BODY_EAGER:
		good = true; /* they must follow, which the record's get checks */
		break;
	case WF_BODY_PULL:
		b.offer = wf_bytes_get_u64(r);
		b.epoch = wf_bytes_get_u32(r);
		b.address = wf_bytes_get_u64(r);
		b.key = wf_bytes_get_u64(r);
		/* The reader adds offsets to the address: it may not wrap. */
		good = b.bytes && b.bytes <= UINT64_MAX - b.address;
		break;
	default:
		good = false;
		break;
	}
	if (r->bad || !good)
		return -EBADMSG;
	*body = b;
	return 0;
}

int wf_body_end(struct wf_reader *r, const struct wf_body *body, const uint8_t **eager)
{
	bool is_eager = body->way == WF_BODY_EAGER;

	if (r->bad || wf_reader_left(r) != (is_eager ? body->bytes : 0))
		return -EBADMSG;
	*eager = is_eager ? wf_bytes_view(r, wf_reader_left(r)) : NULL;
	return 0;
}
