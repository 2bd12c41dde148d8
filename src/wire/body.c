/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/body.h"

#include <errno.h>

#define SHORT_BYTES 10 /* u8 way, u64 bytes, u8 sum and priority */
#define PRIORITY_SHIFT 4 /* the priority is in the upper half of its byte */
#define PULL_BYTES 28 /* u64 offer, u32 epoch, u64 address, u64 key */
#define VIEW_BYTES 20 /* u64 file, u64 offset, u32 place */
#define BOUNCE_BYTES 8
#define PARCEL_BYTES (12 + WF_PARCEL_SECRET_BYTES + WF_PARCEL_TAG_BYTES) /* u64 id, u32 bytes */
#define PIECE_BYTES MIB /* a read of most providers, so that a sum finds its bytes in the cache */

uint64_t wf_body_piece_bytes(uint64_t bytes)
{
	uint64_t piece = PIECE_BYTES;

	while (bytes && (bytes - 1) / piece >= WF_BODY_PIECES_MAX)
		piece *= 2;
	return piece;
}

uint32_t wf_body_piece_count(uint64_t bytes)
{
	return bytes ? (uint32_t)((bytes - 1) / wf_body_piece_bytes(bytes) + 1) : 0;
}

/* Does the checksum of @body stand in the record? */
static bool has_sum(const struct wf_body *body)
{
	return body->sum_kind != WF_BODY_SUM_NONE && body->way < WF_BODY_STAGED &&
	       wf_body_piece_count(body->bytes) == 1;
}

size_t wf_body_bytes(const struct wf_body *body)
{
	return SHORT_BYTES + (wf_body_is_offer(body) ? PULL_BYTES : 0) +
	       (body->parcel.id ? PARCEL_BYTES : 0) +
	       (body->way == WF_BODY_VIEW ? VIEW_BYTES : 0) +
	       (body->way == WF_BODY_STAGED ? BOUNCE_BYTES : 0) +
	       (body->way == WF_BODY_HANDLE ? WF_BODY_HANDLE_BYTES : 0) +
	       (has_sum(body) ? sizeof(body->sum) : 0);
}

void wf_body_put(struct wf_bytes_writer *w, const struct wf_body *body)
{
	struct wf_bytes_writer fixed;

	if (!wf_bytes_reserve(w, SHORT_BYTES, &fixed))
		return;
	wf_bytes_put_u8(&fixed, body->parcel.id ? WF_BODY_PARCEL : body->way);
	wf_bytes_put_u64(&fixed, body->bytes);
	wf_bytes_put_u8(&fixed, (uint8_t)(body->sum_kind | body->priority << PRIORITY_SHIFT));
	if (wf_body_is_offer(body)) {
		wf_bytes_put_u64(w, body->offer);
		wf_bytes_put_u32(w, body->epoch);
		wf_bytes_put_u64(w, body->address);
		wf_bytes_put_u64(w, body->key);
	}
	if (body->parcel.id) {
		wf_bytes_put_u64(w, body->parcel.id);
		wf_bytes_put_u32(w, body->parcel.bytes);
		wf_bytes_put(w, body->parcel.secret, sizeof(body->parcel.secret));
		wf_bytes_put(w, body->parcel.tag, sizeof(body->parcel.tag));
	}
	if (body->way == WF_BODY_VIEW) {
		wf_bytes_put_u64(w, body->file);
		wf_bytes_put_u64(w, body->offset);
		wf_bytes_put_u32(w, body->place);
	}
	if (body->way == WF_BODY_STAGED)
		wf_bytes_put_u64(w, body->bounce_bytes);
	if (body->way == WF_BODY_HANDLE)
		wf_bytes_put(w, body->handle, WF_BODY_HANDLE_BYTES);
	if (has_sum(body))
		wf_bytes_put_u64(w, body->sum);
}

/* Read an offer.  Offsets are added to its address, so their sum may not wrap. */
static bool get_offer(struct wf_bytes_reader *r, struct wf_body *b)
{
	b->offer = wf_bytes_get_u64(r);
	b->epoch = wf_bytes_get_u32(r);
	b->address = wf_bytes_get_u64(r);
	b->key = wf_bytes_get_u64(r);
	if (b->way == WF_BODY_VIEW) {
		b->file = wf_bytes_get_u64(r);
		b->offset = wf_bytes_get_u64(r);
		b->place = wf_bytes_get_u32(r);
	}
	if (b->way == WF_BODY_STAGED)
		b->bounce_bytes = wf_bytes_get_u64(r);
	if (b->way == WF_BODY_HANDLE)
		b->handle = wf_bytes_view(r, WF_BODY_HANDLE_BYTES);
	return b->bytes && b->bytes <= UINT64_MAX - b->address &&
	       b->bytes <= UINT64_MAX - b->offset &&
	       b->bounce_bytes <= b->bytes;
}

/* Read an offer with a parcel. */
static bool get_parcel(struct wf_bytes_reader *r, struct wf_body *b)
{
	bool good;

	b->way = WF_BODY_PULL;
	good = get_offer(r, b);
	b->parcel.id = wf_bytes_get_u64(r);
	b->parcel.bytes = wf_bytes_get_u32(r);
	wf_bytes_get(r, b->parcel.secret, sizeof(b->parcel.secret));
	wf_bytes_get(r, b->parcel.tag, sizeof(b->parcel.tag));
	return good && b->parcel.id && b->parcel.bytes && b->parcel.bytes <= b->bytes &&
	       b->parcel.bytes <= WF_PARCEL_BYTES_MAX;
}

int wf_body_get(struct wf_bytes_reader *r, struct wf_body *body)
{
	struct wf_bytes_reader fixed;
	struct wf_body b = { 0 };
	bool good;

	if (!wf_bytes_fixed(r, SHORT_BYTES, &fixed))
		return -EBADMSG;
	b.way = wf_bytes_get_u8(&fixed);
	b.bytes = wf_bytes_get_u64(&fixed);
	b.sum_kind = wf_bytes_get_u8(&fixed);
	b.priority = b.sum_kind >> PRIORITY_SHIFT;
	b.sum_kind &= (1 << PRIORITY_SHIFT) - 1;
	switch (b.way) {
	case WF_BODY_NONE:
		good = !b.bytes;
		break;
	case WF_BODY_EAGER:
		good = true; /* the bytes must follow, as the record's get checks */
		break;
	case WF_BODY_PULL:
	case WF_BODY_VIEW:
	case WF_BODY_STAGED:
	case WF_BODY_HANDLE:
		good = get_offer(r, &b);
		break;
	case WF_BODY_PARCEL:
		good = get_parcel(r, &b);
		break;
	default:
		good = false;
		break;
	}
	if (has_sum(&b))
		b.sum = wf_bytes_get_u64(r);
	if (r->bad || !good || b.sum_kind > WF_BODY_SUM_XXH3 || b.priority > WEFT_PRIORITY_MAX)
		return -EBADMSG;
	*body = b;
	return 0;
}

int wf_body_end(struct wf_bytes_reader *r, const struct wf_body *body, const uint8_t **eager)
{
	bool is_eager = body->way == WF_BODY_EAGER;

	if (r->bad || wf_bytes_reader_left(r) != (is_eager ? body->bytes : 0))
		return -EBADMSG;
	*eager = is_eager ? wf_bytes_view(r, wf_bytes_reader_left(r)) : NULL;
	return 0;
}
