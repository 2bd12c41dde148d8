/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record.h"

#include <errno.h>

void wf_lane_record_put(struct wf_bytes_writer *w, const struct wf_lane_record *l)
{
	wf_bytes_put_u64(w, l->pull);
	wf_bytes_put_u32(w, l->lane);
	wf_bytes_put_u64(w, l->address);
	wf_bytes_put_u64(w, l->key);
}

int wf_lane_record_get(const uint8_t *bytes, size_t count, struct wf_lane_record *l)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_lane_record got;

	got.pull = wf_bytes_get_u64(&r);
	got.lane = wf_bytes_get_u32(&r);
	got.address = wf_bytes_get_u64(&r);
	got.key = wf_bytes_get_u64(&r);
	if (r.bad || wf_bytes_reader_left(&r) || !got.lane)
		return -EBADMSG;
	*l = got;
	return 0;
}
