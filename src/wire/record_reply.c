/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record_call.h"

#include <errno.h>

#define FIXED_BYTES 28 /* before the body: call to details_bytes */

size_t wf_record_reply_bytes(const struct wf_record_reply *r)
{
	return FIXED_BYTES + wf_body_bytes(&r->body) + r->text_bytes + r->initial_bytes +
	       r->trailing_bytes + r->details_bytes;
}

void wf_record_reply_put(struct wf_bytes_writer *w, const struct wf_record_reply *r)
{
	struct wf_bytes_writer fixed;

	if (!wf_bytes_reserve(w, FIXED_BYTES, &fixed))
		return;
	wf_bytes_put_u64(&fixed, r->call);
	wf_bytes_put_u8(&fixed, r->status);
	wf_bytes_put_u8(&fixed, r->executed);
	wf_bytes_put_u16(&fixed, r->flags);
	wf_bytes_put_u16(&fixed, r->text_bytes);
	wf_bytes_put_u16(&fixed, r->attachments);
	wf_bytes_put_u32(&fixed, r->initial_bytes);
	wf_bytes_put_u32(&fixed, r->trailing_bytes);
	wf_bytes_put_u32(&fixed, r->details_bytes);
	wf_body_put(w, &r->body);
	wf_bytes_put(w, r->text, r->text_bytes);
	wf_bytes_put(w, r->initial, r->initial_bytes);
	wf_bytes_put(w, r->trailing, r->trailing_bytes);
	wf_bytes_put(w, r->details, r->details_bytes);
}

int wf_record_reply_get(const uint8_t *bytes, size_t count, struct wf_record_reply *r)
{
	struct wf_bytes_reader reader = wf_bytes_reader(bytes, count), fixed;
	struct wf_record_reply got;

	if (!wf_bytes_fixed(&reader, FIXED_BYTES, &fixed))
		return -EBADMSG;
	got.call = wf_bytes_get_u64(&fixed);
	got.status = wf_bytes_get_u8(&fixed);
	got.executed = wf_bytes_get_u8(&fixed);
	got.flags = wf_bytes_get_u16(&fixed);
	got.text_bytes = wf_bytes_get_u16(&fixed);
	got.attachments = wf_bytes_get_u16(&fixed);
	got.initial_bytes = wf_bytes_get_u32(&fixed);
	got.trailing_bytes = wf_bytes_get_u32(&fixed);
	got.details_bytes = wf_bytes_get_u32(&fixed);
	if (wf_body_get(&reader, &got.body) || wf_body_is_tensors(&got.body))
		return -EBADMSG;
	got.text = wf_bytes_view(&reader, got.text_bytes);
	got.initial = wf_bytes_view(&reader, got.initial_bytes);
	got.trailing = wf_bytes_view(&reader, got.trailing_bytes);
	got.details = wf_bytes_view(&reader, got.details_bytes);
	if (wf_body_end(&reader, &got.body, &got.eager))
		return -EBADMSG;
	if (got.status > WEFT_UNAUTHENTICATED || got.executed > WEFT_EXECUTED_YES)
		return -EBADMSG;
	if (got.flags & ~WF_REPLY_COMPRESSED || got.attachments > WF_RECORD_ATTACHMENTS_MAX ||
	    (got.attachments && got.status != WEFT_OK))
		return -EBADMSG;
	*r = got;
	return 0;
}
