/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "wire/call_record.h"

void wf_attachment_key_put(uint8_t key[WF_ATTACHMENT_KEY_BYTES],
			   const struct wf_attachment_key *k)
{
	struct wf_bytes_writer w = wf_bytes_writer(key, WF_ATTACHMENT_KEY_BYTES);

	wf_bytes_put_u8(&w, k->reply);
	wf_bytes_put_u64(&w, k->message);
	wf_bytes_put_u32(&w, k->index);
}

int wf_attachment_key_get(const uint8_t *key, size_t bytes, struct wf_attachment_key *k)
{
	struct wf_bytes_reader r = wf_bytes_reader(key, bytes);
	struct wf_attachment_key got;

	got.reply = wf_bytes_get_u8(&r);
	got.message = wf_bytes_get_u64(&r);
	got.index = wf_bytes_get_u32(&r);
	if (r.bad || wf_bytes_reader_left(&r) || got.reply > 1 || got.index >= WF_ATTACHMENTS_MAX)
		return -EBADMSG;
	*k = got;
	return 0;
}
