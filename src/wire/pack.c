/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/pack.h"

#include <assert.h>
#include <errno.h>

#define CAPACITY_MIN 256
/* A shorter part costs the receiver more than the bytes it saves; not tuned yet. */
#define PART_BYTES_MIN 64

_Static_assert(CAPACITY_MIN >= WF_FRAME_HEADER_BYTES + WF_RECORD_HEADER_BYTES + PART_BYTES_MIN,
	       "an empty frame takes a part of any record");

void wf_pack_begin(struct wf_pack *p, uint8_t *frame, size_t capacity)
{
	assert(capacity >= CAPACITY_MIN);
	*p = (struct wf_pack){
		.frame = frame,
		.body = wf_bytes_writer(frame + WF_FRAME_HEADER_BYTES,
					capacity - WF_FRAME_HEADER_BYTES),
	};
}

static bool has_header_room(const struct wf_pack *p)
{
	return wf_bytes_writer_left(&p->body) >= WF_RECORD_HEADER_BYTES &&
	       p->record_count < UINT16_MAX;
}

size_t wf_pack_room(const struct wf_pack *p)
{
	return has_header_room(p) ? wf_bytes_writer_left(&p->body) - WF_RECORD_HEADER_BYTES : 0;
}

int wf_pack_add(struct wf_pack *p, uint8_t type, const void *head, size_t head_bytes,
		const void *body, size_t body_bytes, size_t *done)
{
	size_t total = head_bytes + body_bytes, from = *done, rest = total - from;
	size_t count = WF_MIN(rest, wf_pack_room(p));
	struct wf_bytes_writer header;
	size_t from_head = 0;
	uint8_t flags = 0;

	assert(total <= UINT32_MAX && (from < total || !from));
	if (!has_header_room(p) || (count < rest && count < PART_BYTES_MIN) ||
	    !wf_bytes_reserve(&p->body, WF_RECORD_HEADER_BYTES, &header))
		return -ENOSPC;
	if (count < rest)
		flags |= WF_RECORD_MORE;
	if (from)
		flags |= WF_RECORD_CONTINUED;
	wf_bytes_put_u8(&header, type);
	wf_bytes_put_u8(&header, flags);
	wf_bytes_put_u16(&header, 0);
	wf_bytes_put_u32(&header, (uint32_t)count);
	wf_bytes_put_u32(&header, (uint32_t)total);
	if (from < head_bytes) {
		from_head = WF_MIN(count, head_bytes - from);
		wf_bytes_put(&p->body, (const uint8_t *)head + from, from_head);
	}
	if (count > from_head)
		wf_bytes_put(&p->body, (const uint8_t *)body + (from + from_head - head_bytes),
			     count - from_head);
	p->record_count++;
	*done = from + count;
	return count < rest;
}

size_t wf_pack_end(struct wf_pack *p, struct wf_frame *header)
{
	size_t frame_bytes = (size_t)(p->body.at - p->frame);

	header->record_count = p->record_count;
	header->body_bytes = (uint32_t)(frame_bytes - WF_FRAME_HEADER_BYTES);
	wf_frame_put(p->frame, header);
	return frame_bytes;
}
