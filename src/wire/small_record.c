/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record.h"

#include <errno.h>

void wf_small_record_put(struct wf_bytes_writer *w, const struct wf_small_record *s)
{
	wf_bytes_put_u64(w, s->id);
	wf_bytes_put_u64(w, s->other);
	wf_bytes_put_u8(w, s->status);
}

int wf_small_record_get(const uint8_t *bytes, size_t count, struct wf_small_record *s)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_small_record got;

	got.id = wf_bytes_get_u64(&r);
	got.other = wf_bytes_get_u64(&r);
	got.status = wf_bytes_get_u8(&r);
	if (r.bad || wf_bytes_reader_left(&r) || got.status > WEFT_UNAUTHENTICATED)
		return -EBADMSG;
	*s = got;
	return 0;
}
