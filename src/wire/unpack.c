/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/pack.h"

#include <errno.h>

int wf_unpack_begin(struct wf_unpack *u, const uint8_t *frame, size_t count,
		    struct wf_frame *header)
{
	struct wf_frame f;
	int err = wf_frame_get(frame, count, &f);

	if (err)
		return err;
	*header = f;
	*u = (struct wf_unpack){ wf_bytes_reader(frame + WF_FRAME_HEADER_BYTES, f.body_bytes),
				 f.record_count };
	return 0;
}

/* An empty part would be no progress, and a whole record is its own total. */
static bool lengths_agree(const struct wf_record *r)
{
	if (r->flags & ~(WF_RECORD_MORE | WF_RECORD_CONTINUED))
		return false;
	return r->flags ? r->count && r->count < r->total : r->count == r->total;
}

int wf_unpack_next(struct wf_unpack *u, struct wf_record *record)
{
	struct wf_bytes_reader head;
	struct wf_record r;
	uint16_t zero;

	if (u->body.bad)
		return -EBADMSG;
	if (!u->left)
		return wf_bytes_reader_left(&u->body) ? -EBADMSG : 0;
	if (!wf_bytes_fixed(&u->body, WF_RECORD_HEADER_BYTES, &head))
		return -EBADMSG;
	r.type = wf_bytes_get_u8(&head);
	r.flags = wf_bytes_get_u8(&head);
	zero = wf_bytes_get_u16(&head);
	r.count = wf_bytes_get_u32(&head);
	r.total = wf_bytes_get_u32(&head);
	r.bytes = wf_bytes_view(&u->body, r.count);
	if (!r.bytes || zero || !lengths_agree(&r)) {
		u->body.bad = true; /* nothing after the record can be trusted */
		return -EBADMSG;
	}
	u->left--;
	*record = r;
	return 1;
}
