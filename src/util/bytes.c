/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/bytes.h"

#include <endian.h>

uint8_t *wf_bytes_room(struct wf_writer *w, size_t count)
{
	uint8_t *room = w->at;

	if (w->bad || count > wf_writer_left(w)) {
		w->bad = true;
		return NULL;
	}
	w->at += count;
	return room;
}

const uint8_t *wf_bytes_view(struct wf_reader *r, size_t count)
{
	const uint8_t *view = r->at;

	if (r->bad || count > wf_reader_left(r)) {
		r->bad = true;
		return NULL;
	}
	r->at += count;
	return view;
}

void wf_bytes_put(struct wf_writer *w, const void *bytes, size_t count)
{
	uint8_t *room = wf_bytes_room(w, count);

	/* memcpy may not be given the NULL that goes with no bytes. */
	if (room && count)
		memcpy(room, bytes, count);
}

/* All zeros when they are not there. */
static void get(struct wf_reader *r, void *bytes, size_t count)
{
	const uint8_t *view = wf_bytes_view(r, count);

	if (view)
		memcpy(bytes, view, count);
	else
		memset(bytes, 0, count);
}

void wf_bytes_put_u8(struct wf_writer *w, uint8_t v)
{
	wf_bytes_put(w, &v, sizeof(v));
}

void wf_bytes_put_u16(struct wf_writer *w, uint16_t v)
{
	v = htole16(v);
	wf_bytes_put(w, &v, sizeof(v));
}

void wf_bytes_put_u32(struct wf_writer *w, uint32_t v)
{
	v = htole32(v);
	wf_bytes_put(w, &v, sizeof(v));
}

void wf_bytes_put_u64(struct wf_writer *w, uint64_t v)
{
	v = htole64(v);
	wf_bytes_put(w, &v, sizeof(v));
}

uint8_t wf_bytes_get_u8(struct wf_reader *r)
{
	uint8_t v;

	get(r, &v, sizeof(v));
	return v;
}

uint16_t wf_bytes_get_u16(struct wf_reader *r)
{
	uint16_t v;

	get(r, &v, sizeof(v));
	return le16toh(v);
}

uint32_t wf_bytes_get_u32(struct wf_reader *r)
{
	uint32_t v;

	get(r, &v, sizeof(v));
	return le32toh(v);
}

uint64_t wf_bytes_get_u64(struct wf_reader *r)
{
	uint64_t v;

	get(r, &v, sizeof(v));
	return le64toh(v);
}
