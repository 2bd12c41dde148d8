/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record_call.h"

#include <errno.h>

#define FIXED_BYTES 16 /* before the body: call to metadata_bytes */
#define FLAGS (WF_MESSAGE_NONE | WF_MESSAGE_LAST | WF_MESSAGE_INITIAL | WF_MESSAGE_COMPRESSED)

size_t wf_record_message_bytes(const struct wf_record_message *m)
{
	return FIXED_BYTES + wf_body_bytes(&m->body) + m->metadata_bytes;
}

void wf_record_message_put(struct wf_bytes_writer *w, const struct wf_record_message *m)
{
	struct wf_bytes_writer fixed;

	if (!wf_bytes_reserve(w, FIXED_BYTES, &fixed))
		return;
	wf_bytes_put_u64(&fixed, m->call);
	wf_bytes_put_u16(&fixed, m->flags);
	wf_bytes_put_u16(&fixed, m->attachments);
	wf_bytes_put_u32(&fixed, m->metadata_bytes);
	wf_body_put(w, &m->body);
	wf_bytes_put(w, m->metadata, m->metadata_bytes);
}

int wf_record_message_get(const uint8_t *bytes, size_t count, struct wf_record_message *m)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count), fixed;
	struct wf_record_message got;

	if (!wf_bytes_fixed(&r, FIXED_BYTES, &fixed))
		return -EBADMSG;
	got.call = wf_bytes_get_u64(&fixed);
	got.flags = wf_bytes_get_u16(&fixed);
	got.attachments = wf_bytes_get_u16(&fixed);
	got.metadata_bytes = wf_bytes_get_u32(&fixed);
	if (wf_body_get(&r, &got.body) || wf_body_is_tensors(&got.body))
		return -EBADMSG;
	got.metadata = wf_bytes_view(&r, got.metadata_bytes);
	if (wf_body_end(&r, &got.body, &got.eager))
		return -EBADMSG;
	if (got.flags & ~FLAGS || (got.flags & WF_MESSAGE_NONE && got.body.way != WF_BODY_NONE) ||
	    (got.metadata_bytes && !(got.flags & WF_MESSAGE_INITIAL)))
		return -EBADMSG;
	if (got.attachments > WF_RECORD_ATTACHMENTS_MAX ||
	    (got.attachments && got.flags & WF_MESSAGE_NONE))
		return -EBADMSG;
	*m = got;
	return 0;
}
