/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/parcel.h"

#include <errno.h>
#include <string.h>

void wf_parcel_ask_put(struct wf_bytes_writer *w, const struct wf_parcel_ask *a)
{
	wf_bytes_put_u64(w, a->offer);
	wf_bytes_put_u64(w, a->pull);
	wf_bytes_put_u32(w, a->read);
	wf_bytes_put_u32(w, a->round);
	wf_bytes_put_u64(w, a->opened);
	wf_bytes_put_u8(w, a->priority);
	wf_bytes_put_u8(w, a->count);
	for (unsigned i = 0; i < a->count; i++) {
		wf_bytes_put_u64(w, a->ranges[i].at);
		wf_bytes_put_u64(w, a->ranges[i].bytes);
	}
}

/* Read the ranges of @got.  Returns false: they make no sense. */
static bool get_ranges(struct wf_bytes_reader *r, struct wf_parcel_ask *got)
{
	uint64_t left = WF_PARCEL_BYTES_MAX;

	if (!got->count || got->count > WF_PARCEL_RANGES_MAX)
		return false;
	for (unsigned i = 0; i < got->count; i++) {
		struct wf_parcel_range *range = &got->ranges[i];

		range->at = wf_bytes_get_u64(r);
		range->bytes = wf_bytes_get_u64(r);
		if (!range->bytes || range->bytes > left || range->at > UINT64_MAX - range->bytes)
			return false;
		left -= range->bytes;
	}
	return true;
}

int wf_parcel_ask_get(const uint8_t *bytes, size_t count, struct wf_parcel_ask *a)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_parcel_ask got = { 0 };

	got.offer = wf_bytes_get_u64(&r);
	got.pull = wf_bytes_get_u64(&r);
	got.read = wf_bytes_get_u32(&r);
	got.round = wf_bytes_get_u32(&r);
	got.opened = wf_bytes_get_u64(&r);
	got.priority = wf_bytes_get_u8(&r);
	got.count = wf_bytes_get_u8(&r);
	if (!get_ranges(&r, &got) || r.bad || wf_bytes_reader_left(&r) ||
	    got.priority > WEFT_PRIORITY_MAX)
		return -EBADMSG;
	*a = got;
	return 0;
}

uint64_t wf_parcel_ask_bytes(const struct wf_parcel_ask *a)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < a->count; i++)
		bytes += a->ranges[i].bytes;
	return bytes;
}

void wf_parcel_answer_put(struct wf_bytes_writer *w, const struct wf_parcel_answer *a)
{
	wf_bytes_put_u64(w, a->pull);
	wf_bytes_put_u32(w, a->read);
	wf_bytes_put_u32(w, a->round);
	wf_bytes_put_u8(w, a->status);
	wf_bytes_put_u64(w, a->parcel);
	wf_bytes_put_u32(w, a->epoch);
	wf_bytes_put_u64(w, a->address);
	wf_bytes_put_u64(w, a->key);
	wf_bytes_put(w, a->secret, sizeof(a->secret));
	wf_bytes_put(w, a->tag, sizeof(a->tag));
}

/* Does @a say anything of a parcel? */
static bool says_more(const struct wf_parcel_answer *a)
{
	uint8_t bits = 0;

	for (size_t i = 0; i < sizeof(a->secret); i++)
		bits |= a->secret[i];
	for (size_t i = 0; i < sizeof(a->tag); i++)
		bits |= a->tag[i];
	return bits || a->parcel || a->epoch || a->address || a->key;
}

int wf_parcel_answer_get(const uint8_t *bytes, size_t count, struct wf_parcel_answer *a)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_parcel_answer got = { 0 };
	const uint8_t *secret, *tag;

	got.pull = wf_bytes_get_u64(&r);
	got.read = wf_bytes_get_u32(&r);
	got.round = wf_bytes_get_u32(&r);
	got.status = wf_bytes_get_u8(&r);
	got.parcel = wf_bytes_get_u64(&r);
	got.epoch = wf_bytes_get_u32(&r);
	got.address = wf_bytes_get_u64(&r);
	got.key = wf_bytes_get_u64(&r);
	secret = wf_bytes_view(&r, sizeof(got.secret));
	tag = wf_bytes_view(&r, sizeof(got.tag));
	if (r.bad || wf_bytes_reader_left(&r) || got.status > WEFT_UNAUTHENTICATED)
		return -EBADMSG;
	memcpy(got.secret, secret, sizeof(got.secret));
	memcpy(got.tag, tag, sizeof(got.tag));
	if (got.status == WEFT_OK ? !got.parcel : says_more(&got))
		return -EBADMSG;
	*a = got;
	return 0;
}
