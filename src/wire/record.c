/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record.h"

#include <errno.h>

#define ABORT_FIXED_BYTES 11 /* before the text */

size_t wf_record_abort_bytes(const struct wf_record_abort *a)
{
	return ABORT_FIXED_BYTES + a->text_bytes;
}

void wf_record_abort_put(struct wf_bytes_writer *w, const struct wf_record_abort *a)
{
	wf_bytes_put_u64(w, a->step);
	wf_bytes_put_u8(w, a->status);
	wf_bytes_put_u16(w, a->text_bytes);
	wf_bytes_put(w, a->text, a->text_bytes);
}

int wf_record_abort_get(const uint8_t *bytes, size_t count, struct wf_record_abort *a)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_record_abort got;

	got.step = wf_bytes_get_u64(&r);
	got.status = wf_bytes_get_u8(&r);
	got.text_bytes = wf_bytes_get_u16(&r);
	got.text = wf_bytes_view(&r, got.text_bytes);
	if (r.bad || wf_bytes_reader_left(&r) || got.text_bytes > WF_ABORT_TEXT_BYTES_MAX)
		return -EBADMSG;
	if (got.status == WEFT_OK || got.status > WEFT_UNAUTHENTICATED)
		return -EBADMSG;
	*a = got;
	return 0;
}

void wf_record_small_put(struct wf_bytes_writer *w, const struct wf_record_small *s)
{
	wf_bytes_put_u64(w, s->id);
	wf_bytes_put_u64(w, s->other);
	wf_bytes_put_u8(w, s->status);
}

int wf_record_small_get(const uint8_t *bytes, size_t count, struct wf_record_small *s)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_record_small got;

	got.id = wf_bytes_get_u64(&r);
	got.other = wf_bytes_get_u64(&r);
	got.status = wf_bytes_get_u8(&r);
	if (r.bad || wf_bytes_reader_left(&r) || got.status > WEFT_UNAUTHENTICATED)
		return -EBADMSG;
	*s = got;
	return 0;
}

void wf_record_offer_put(struct wf_bytes_writer *w, const struct wf_record_offer *o)
{
	wf_bytes_put_u64(w, o->pull);
	wf_body_put(w, &o->body);
}

int wf_record_offer_get(const uint8_t *bytes, size_t count, struct wf_record_offer *o)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_record_offer got;

	got.pull = wf_bytes_get_u64(&r);
	if (wf_body_get(&r, &got.body) || got.body.way == WF_BODY_EAGER ||
	    got.body.way == WF_BODY_VIEW || got.body.parcel.id || wf_bytes_reader_left(&r))
		return -EBADMSG;
	*o = got;
	return 0;
}

void wf_record_sums_put(struct wf_bytes_writer *w, const struct wf_record_sums *s)
{
	wf_bytes_put_u64(w, s->pull);
	wf_bytes_put_u32(w, s->first);
	for (uint32_t i = 0; i < s->count; i++)
		wf_bytes_put_u64(w, s->sums[i]);
}

int wf_record_sums_get(const uint8_t *bytes, size_t count, struct wf_record_sums *s)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_record_sums got = { 0 };

	got.pull = wf_bytes_get_u64(&r);
	got.first = wf_bytes_get_u32(&r);
	while (wf_bytes_reader_left(&r) && got.count < WF_RECORD_SUMS_MAX)
		got.sums[got.count++] = wf_bytes_get_u64(&r);
	if (r.bad || wf_bytes_reader_left(&r) || !got.count || got.first >= WF_BODY_PIECES_MAX ||
	    got.count > WF_BODY_PIECES_MAX - got.first)
		return -EBADMSG;
	*s = got;
	return 0;
}

void wf_record_lane_put(struct wf_bytes_writer *w, const struct wf_record_lane *l)
{
	wf_bytes_put_u64(w, l->pull);
	wf_bytes_put_u32(w, l->lane);
	wf_bytes_put_u64(w, l->address);
	wf_bytes_put_u64(w, l->key);
}

int wf_record_lane_get(const uint8_t *bytes, size_t count, struct wf_record_lane *l)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_record_lane got;

	got.pull = wf_bytes_get_u64(&r);
	got.lane = wf_bytes_get_u32(&r);
	got.address = wf_bytes_get_u64(&r);
	got.key = wf_bytes_get_u64(&r);
	if (r.bad || wf_bytes_reader_left(&r) || !got.lane)
		return -EBADMSG;
	*l = got;
	return 0;
}

void wf_record_attachment_key_put(uint8_t key[WF_RECORD_ATTACHMENT_KEY_BYTES],
				  const struct wf_record_attachment_key *k)
{
	struct wf_bytes_writer w = wf_bytes_writer(key, WF_RECORD_ATTACHMENT_KEY_BYTES);

	wf_bytes_put_u8(&w, k->reply);
	wf_bytes_put_u64(&w, k->message);
	wf_bytes_put_u32(&w, k->index);
}

int wf_record_attachment_key_get(const uint8_t *key, size_t bytes,
				 struct wf_record_attachment_key *k)
{
	struct wf_bytes_reader r = wf_bytes_reader(key, bytes);
	struct wf_record_attachment_key got;

	got.reply = wf_bytes_get_u8(&r);
	got.message = wf_bytes_get_u64(&r);
	got.index = wf_bytes_get_u32(&r);
	if (r.bad || wf_bytes_reader_left(&r) || got.reply > 1 ||
	    got.index >= WF_RECORD_ATTACHMENTS_MAX)
		return -EBADMSG;
	*k = got;
	return 0;
}
