/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record.h"

#include <errno.h>

#define FIXED_BYTES 11 /* before the text */

size_t wf_abort_record_bytes(const struct wf_abort_record *a)
{
	return FIXED_BYTES + a->text_bytes;
}

void wf_abort_record_put(struct wf_bytes_writer *w, const struct wf_abort_record *a)
{
	wf_bytes_put_u64(w, a->step);
	wf_bytes_put_u8(w, a->status);
	wf_bytes_put_u16(w, a->text_bytes);
	wf_bytes_put(w, a->text, a->text_bytes);
}

int wf_abort_record_get(const uint8_t *bytes, size_t count, struct wf_abort_record *a)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_abort_record got;

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
