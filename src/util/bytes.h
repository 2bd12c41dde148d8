/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cursors over bytes: little-endian put and get that never run past the end.
 *
 * A cursor that would overrun turns bad and stays bad: later puts write
 * nothing, later gets give zeros.  So a parser reads all its fields and asks
 * once, at the end, whether the bytes were there.
 */
#ifndef WF_BYTES_H
#define WF_BYTES_H

#include <string.h>
#include "util/base.h"

struct wf_writer {
	uint8_t *at, *end;
	bool bad;
};

struct wf_reader {
	const uint8_t *at, *end;
	bool bad;
};

static inline struct wf_writer wf_writer(void *bytes, size_t count)
{
	return (struct wf_writer){ bytes, (uint8_t *)bytes + count, false };
}

static inline struct wf_reader wf_reader(const void *bytes, size_t count)
{
	return (struct wf_reader){ bytes, (const uint8_t *)bytes + count, false };
}

static inline size_t wf_reader_left(const struct wf_reader *r)
{
	return (size_t)(r->end - r->at);
}

static inline size_t wf_writer_left(const struct wf_writer *w)
{
	return (size_t)(w->end - w->at);
}

/* Room for the next @count bytes, or NULL (the cursor is then bad). */
uint8_t *wf_bytes_room(struct wf_writer *w, size_t count);

/* The next @count bytes in place, or NULL (the cursor is then bad). */
const uint8_t *wf_bytes_view(struct wf_reader *r, size_t count);

void wf_bytes_put(struct wf_writer *w, const void *bytes, size_t count);
void wf_bytes_put_u8(struct wf_writer *w, uint8_t v);
void wf_bytes_put_u16(struct wf_writer *w, uint16_t v);
void wf_bytes_put_u32(struct wf_writer *w, uint32_t v);
void wf_bytes_put_u64(struct wf_writer *w, uint64_t v);

uint8_t wf_bytes_get_u8(struct wf_reader *r);
uint16_t wf_bytes_get_u16(struct wf_reader *r);
uint32_t wf_bytes_get_u32(struct wf_reader *r);
uint64_t wf_bytes_get_u64(struct wf_reader *r);

#endif
