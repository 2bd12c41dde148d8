/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record_call.h"

#include <errno.h>

#define FIXED_BYTES 28 /* call to metadata_bytes */

/* Bytes between the fixed ones and the body. */
static size_t request_bytes(uint16_t flags)
{
	return (flags & WF_CALL_REQUEST ? sizeof(uint64_t) : 0) +
	       (flags & WF_CALL_AGAIN ? WF_CALL_INCARNATION_BYTES : 0);
}

/* Do the flags go together? */
static bool are_good(uint16_t flags)
{
	if (flags & ~(WF_CALL_STREAM | WF_CALL_REQUEST | WF_CALL_AGAIN | WF_CALL_COMPRESSED))
		return false;
	if (flags & WF_CALL_STREAM)
		return flags == WF_CALL_STREAM;
	return flags & WF_CALL_REQUEST || !(flags & WF_CALL_AGAIN);
}

size_t wf_record_call_bytes(const struct wf_record_call *c)
{
	return FIXED_BYTES + request_bytes(c->flags) + wf_body_bytes(&c->body) + c->service_bytes +
	       c->method_bytes + c->metadata_bytes;
}

void wf_record_call_put(struct wf_bytes_writer *w, const struct wf_record_call *c)
{
	struct wf_bytes_writer fixed;

	if (!wf_bytes_reserve(w, FIXED_BYTES, &fixed))
		return;
	wf_bytes_put_u64(&fixed, c->call);
	wf_bytes_put_u64(&fixed, c->left_ns);
	wf_bytes_put_u16(&fixed, c->flags);
	wf_bytes_put_u16(&fixed, c->service_bytes);
	wf_bytes_put_u16(&fixed, c->method_bytes);
	wf_bytes_put_u16(&fixed, c->attachments);
	wf_bytes_put_u32(&fixed, c->metadata_bytes);
	if (c->flags & WF_CALL_REQUEST)
		wf_bytes_put_u64(w, c->request);
	if (c->flags & WF_CALL_AGAIN)
		wf_bytes_put(w, c->incarnation, WF_CALL_INCARNATION_BYTES);
	wf_body_put(w, &c->body);
	wf_bytes_put(w, c->service, c->service_bytes);
	wf_bytes_put(w, c->method, c->method_bytes);
	wf_bytes_put(w, c->metadata, c->metadata_bytes);
}

int wf_record_call_get(const uint8_t *bytes, size_t count, struct wf_record_call *c)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count), fixed;
	struct wf_record_call got;

	if (!wf_bytes_fixed(&r, FIXED_BYTES, &fixed))
		return -EBADMSG;
	got.call = wf_bytes_get_u64(&fixed);
	got.left_ns = wf_bytes_get_u64(&fixed);
	got.flags = wf_bytes_get_u16(&fixed);
	got.service_bytes = wf_bytes_get_u16(&fixed);
	got.method_bytes = wf_bytes_get_u16(&fixed);
	got.attachments = wf_bytes_get_u16(&fixed);
	got.metadata_bytes = wf_bytes_get_u32(&fixed);
	if (!are_good(got.flags))
		return -EBADMSG;
	got.request = got.flags & WF_CALL_REQUEST ? wf_bytes_get_u64(&r) : 0;
	got.incarnation = got.flags & WF_CALL_AGAIN
				  ? wf_bytes_view(&r, WF_CALL_INCARNATION_BYTES)
				  : NULL;
	if (got.flags & WF_CALL_REQUEST && !got.request)
		return -EBADMSG;
	if (wf_body_get(&r, &got.body) || wf_body_is_tensors(&got.body))
		return -EBADMSG;
	got.service = wf_bytes_view(&r, got.service_bytes);
	got.method = wf_bytes_view(&r, got.method_bytes);
	got.metadata = wf_bytes_view(&r, got.metadata_bytes);
	if (wf_body_end(&r, &got.body, &got.eager))
		return -EBADMSG;
	if (got.attachments > WF_RECORD_ATTACHMENTS_MAX)
		return -EBADMSG;
	if (got.flags & WF_CALL_STREAM && (got.body.way != WF_BODY_NONE || got.attachments))
		return -EBADMSG;
	*c = got;
	return 0;
}
