/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record.h"

#include <errno.h>

void wf_sums_record_put(struct wf_bytes_writer *w, const struct wf_sums_record *s)
{
	wf_bytes_put_u64(w, s->pull);
	wf_bytes_put_u32(w, s->first);
	for (uint32_t i = 0; i < s->count; i++)
		wf_bytes_put_u64(w, s->sums[i]);
}

int wf_sums_record_get(const uint8_t *bytes, size_t count, struct wf_sums_record *s)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_sums_record got = { 0 };

	got.pull = wf_bytes_get_u64(&r);
	got.first = wf_bytes_get_u32(&r);
	while (wf_bytes_reader_left(&r) && got.count < WF_SUMS_RECORD_MAX)
		got.sums[got.count++] = wf_bytes_get_u64(&r);
	if (r.bad || wf_bytes_reader_left(&r) || !got.count || got.first >= WF_BODY_PIECES_MAX ||
	    got.count > WF_BODY_PIECES_MAX - got.first)
		return -EBADMSG;
	*s = got;
	return 0;
}
