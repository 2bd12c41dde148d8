/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cursors over bytes: little-endian put and get that never run past the end.
 *
 * A cursor that would overrun turns bad and stays bad: later puts write nothing, later gets
 * give zeros.  A parser reads all its fields and asks once, at the end, whether the bytes were
 * there.
 *
 * The functions are inline because a frame and a record have some thirty fields, each way.
 */
#ifndef WF_BYTES_H
#define WF_BYTES_H

#include <endian.h>
#include <string.h>
#include "util/base.h"

struct wf_bytes_writer {
	uint8_t *at, *end;
	bool bad;
};

struct wf_bytes_reader {
	const uint8_t *at, *end;
	bool bad;
};

static inline struct wf_bytes_writer wf_bytes_writer(void *bytes, size_t count)
{
	return (struct wf_bytes_writer){ bytes, (uint8_t *)bytes + count, false };
}

static inline struct wf_bytes_reader wf_bytes_reader(const void *bytes, size_t count)
{
	return (struct wf_bytes_reader){ bytes, (const uint8_t *)bytes + count, false };
}

static inline size_t wf_bytes_reader_left(const struct wf_bytes_reader *r)
{
	return (size_t)(r->end - r->at);
}

static inline size_t wf_bytes_writer_left(const struct wf_bytes_writer *w)
{
	return (size_t)(w->end - w->at);
}

/* Room for the next @count bytes, or NULL (the cursor is then bad). */
static inline uint8_t *wf_bytes_room(struct wf_bytes_writer *w, size_t count)
{
	uint8_t *room = w->at;

	if (w->bad || count > wf_bytes_writer_left(w)) {
		w->bad = true;
		return NULL;
	}
	w->at += count;
	return room;
}

/* The next @count bytes in place, or NULL (the cursor is then bad). */
static inline const uint8_t *wf_bytes_view(struct wf_bytes_reader *r, size_t count)
{
	const uint8_t *view = r->at;

	if (r->bad || count > wf_bytes_reader_left(r)) {
		r->bad = true;
		return NULL;
	}
	r->at += count;
	return view;
}

/*
 * Let @fixed read the next @count bytes.  false: they are not there, and @r is bad.  A constant
 * @count lets the compiler look once for all fields.
 */
static inline bool wf_bytes_fixed(struct wf_bytes_reader *r, size_t count,
				  struct wf_bytes_reader *fixed)
{
	const uint8_t *view = wf_bytes_view(r, count);

	if (view)
		*fixed = wf_bytes_reader(view, count);
	return view;
}

/* Let @fixed write the next @count bytes, as wf_bytes_fixed() reads them.  false: @w is bad. */
static inline bool wf_bytes_reserve(struct wf_bytes_writer *w, size_t count,
				    struct wf_bytes_writer *fixed)
{
	uint8_t *room = wf_bytes_room(w, count);

	if (room)
		*fixed = wf_bytes_writer(room, count);
	return room;
}

static inline void wf_bytes_put(struct wf_bytes_writer *w, const void *bytes, size_t count)
{
	uint8_t *room = wf_bytes_room(w, count);

	/* memcpy may not be given the NULL that goes with no bytes. */
	if (!w->bad && count)
		memcpy(room, bytes, count);
}

/* Get @count bytes; all zeros when they are not there. */
static inline void wf_bytes_get(struct wf_bytes_reader *r, void *bytes, size_t count)
{
	const uint8_t *view = wf_bytes_view(r, count);

	if (view)
		memcpy(bytes, view, count);
	else
		memset(bytes, 0, count);
}

static inline void wf_bytes_put_u8(struct wf_bytes_writer *w, uint8_t v)
{
	wf_bytes_put(w, &v, sizeof(v));
}

static inline uint8_t wf_bytes_get_u8(struct wf_bytes_reader *r)
{
	uint8_t v;

	wf_bytes_get(r, &v, sizeof(v));
	return v;
}

static inline void wf_bytes_put_u16(struct wf_bytes_writer *w, uint16_t v)
{
	v = htole16(v);
	wf_bytes_put(w, &v, sizeof(v));
}

static inline uint16_t wf_bytes_get_u16(struct wf_bytes_reader *r)
{
	uint16_t v;

	wf_bytes_get(r, &v, sizeof(v));
	return le16toh(v);
}

static inline void wf_bytes_put_u32(struct wf_bytes_writer *w, uint32_t v)
{
	v = htole32(v);
	wf_bytes_put(w, &v, sizeof(v));
}

static inline uint32_t wf_bytes_get_u32(struct wf_bytes_reader *r)
{
	uint32_t v;

	wf_bytes_get(r, &v, sizeof(v));
	return le32toh(v);
}

static inline void wf_bytes_put_u64(struct wf_bytes_writer *w, uint64_t v)
{
	v = htole64(v);
	wf_bytes_put(w, &v, sizeof(v));
}

static inline uint64_t wf_bytes_get_u64(struct wf_bytes_reader *r)
{
	uint64_t v;

	wf_bytes_get(r, &v, sizeof(v));
	return le64toh(v);
}

/* Returns number @index of the numbers from @at on, which are there. */
static inline int64_t wf_bytes_i64_at(const uint8_t *at, unsigned index)
{
	struct wf_bytes_reader r =
		wf_bytes_reader(at + index * sizeof(int64_t), sizeof(int64_t));

	return (int64_t)wf_bytes_get_u64(&r);
}

#endif
