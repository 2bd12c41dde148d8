/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/frame.h"

#include <errno.h>

#define SEALED 1u

void wf_frame_put(uint8_t *at, const struct wf_frame *frame)
{
	struct wf_bytes_writer w = wf_bytes_writer(at, WF_FRAME_HEADER_BYTES);

	wf_bytes_put_u8(&w, WF_WIRE_VERSION);
	wf_bytes_put_u8(&w, frame->kind);
	wf_bytes_put_u16(&w, frame->sealed ? SEALED : 0);
	wf_bytes_put_u32(&w, frame->body_bytes);
	wf_bytes_put_u64(&w, frame->link);
	wf_bytes_put_u64(&w, frame->token);
	wf_bytes_put_u32(&w, frame->epoch);
	wf_bytes_put_u32(&w, frame->seq);
	wf_bytes_put_u32(&w, frame->ack);
	wf_bytes_put_u32(&w, frame->credit);
	wf_bytes_put_u64(&w, frame->eager_credit);
	wf_bytes_put_u16(&w, frame->record_count);
	wf_bytes_put_u16(&w, (uint16_t)(frame->number >> 32));
	wf_bytes_put_u32(&w, (uint32_t)frame->number);
}

/* Only data and control carry records. */
static bool body_fits_kind(const struct wf_frame *f)
{
	if (f->kind == WF_FRAME_DATA || f->kind == WF_FRAME_CONTROL)
		return true;
	return f->kind >= WF_FRAME_ANSWER && f->kind <= WF_FRAME_READY && !f->record_count &&
	       !f->body_bytes;
}

int wf_frame_get(const uint8_t *at, size_t count, struct wf_frame *frame)
{
	struct wf_bytes_reader all = wf_bytes_reader(at, count), r;
	struct wf_frame f;
	uint16_t flags;
	uint8_t version;

	if (!wf_bytes_fixed(&all, WF_FRAME_HEADER_BYTES, &r))
		return -EBADMSG;
	/* Members are read in the order of the bytes. */
	version = wf_bytes_get_u8(&r);
	f.kind = wf_bytes_get_u8(&r);
	flags = wf_bytes_get_u16(&r);
	f.sealed = flags == SEALED;
	f.body_bytes = wf_bytes_get_u32(&r);
	f.link = wf_bytes_get_u64(&r);
	f.token = wf_bytes_get_u64(&r);
	f.epoch = wf_bytes_get_u32(&r);
	f.seq = wf_bytes_get_u32(&r);
	f.ack = wf_bytes_get_u32(&r);
	f.credit = wf_bytes_get_u32(&r);
	f.eager_credit = wf_bytes_get_u64(&r);
	f.record_count = wf_bytes_get_u16(&r);
	f.number = (uint64_t)wf_bytes_get_u16(&r) << 32;
	f.number |= wf_bytes_get_u32(&r);
	if (version != WF_WIRE_VERSION || flags & ~SEALED ||
	    (f.sealed ? f.token : f.number) || !body_fits_kind(&f) ||
	    f.body_bytes + (f.sealed ? (size_t)WF_FRAME_SEAL_BYTES : 0) != wf_bytes_reader_left(&all))
		return -EBADMSG;
	*frame = f;
	return 0;
}
