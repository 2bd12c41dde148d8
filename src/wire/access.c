/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/access.h"

#include <errno.h>
#include <weft/base.h>

#define PUSH_FIXED_BYTES (8 + WF_ACCESS_TOKEN_BYTES + 8 + 1 + 4 + 2)
#define LIST_FIXED_BYTES (4 + 8)
#define PUSH_FLAGS                                                             \
	(WF_ACCESS_PUSH_LAST | WF_ACCESS_PUSH_NOTED | WF_ACCESS_PUSH_GOT | WF_ACCESS_PUSH_LIST)
#define ASK_FLAGS (WF_ACCESS_ASK_STAY | WF_ACCESS_ASK_SUM)
#define DESCRIPTOR_MAGIC 0x777774 /* "tww", and the version in the fourth byte */
#define DESCRIPTOR_VERSION 1

static void put_name(struct wf_bytes_writer *w, const struct wf_access_name *name)
{
	wf_bytes_put_u64(w, name->id);
	wf_bytes_put(w, name->token, sizeof(name->token));
}

static struct wf_access_name get_name(struct wf_bytes_reader *r)
{
	struct wf_access_name name = { .id = wf_bytes_get_u64(r) };

	wf_bytes_get(r, name.token, sizeof(name.token));
	return name;
}

size_t wf_access_push_bytes(const struct wf_access_push *p)
{
	return PUSH_FIXED_BYTES + p->note_bytes +
	       (p->flags & WF_ACCESS_PUSH_LIST ? LIST_FIXED_BYTES : 0) + wf_body_bytes(&p->body);
}

void wf_access_push_put(struct wf_bytes_writer *w, const struct wf_access_push *p)
{
	put_name(w, &p->window);
	wf_bytes_put_u64(w, p->at);
	wf_bytes_put_u8(w, p->flags);
	wf_bytes_put_u32(w, p->number);
	wf_bytes_put_u16(w, p->note_bytes);
	wf_bytes_put(w, p->note, p->note_bytes);
	if (p->flags & WF_ACCESS_PUSH_LIST) {
		wf_bytes_put_u32(w, p->block_count);
		wf_bytes_put_u64(w, p->block_bytes);
	}
	wf_body_put(w, &p->body);
}

/* A varint: units of seven bits, the lowest first; the eighth bit says that more follow. */
static void put_varint(struct wf_bytes_writer *w, uint64_t n)
{
	for (; n >= 0x80; n >>= 7)
		wf_bytes_put_u8(w, (uint8_t)(n | 0x80));
	wf_bytes_put_u8(w, (uint8_t)n);
}

static uint64_t get_varint(struct wf_bytes_reader *r)
{
	uint64_t n = 0;
	uint8_t unit;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		unit = wf_bytes_get_u8(r);
		n |= (uint64_t)(unit & 0x7f) << shift;
		if (!(unit & 0x80))
			return n;
	}
	r->bad = true;
	return 0;
}

/* Returns a distance either way as a number that is small if the distance is. */
static uint64_t zigzag(uint64_t distance)
{
	return distance << 1 ^ -(distance >> 63);
}

static uint64_t unzigzag(uint64_t n)
{
	return n >> 1 ^ -(n & 1);
}

void wf_access_block_put(struct wf_bytes_writer *w, struct wf_access_block *last,
			 const struct wf_access_block *block)
{
	put_varint(w, block->bytes == last->bytes ? 0 : block->bytes);
	put_varint(w, zigzag(block->to - (last->to + last->bytes)));
	put_varint(w, zigzag(block->from - (last->from + last->bytes)));
	*last = *block;
}

int wf_access_block_get(struct wf_bytes_reader *r, struct wf_access_block *block)
{
	uint64_t bytes = get_varint(r);
	struct wf_access_block got = { .bytes = bytes ? bytes : block->bytes };

	got.to = block->to + block->bytes + unzigzag(get_varint(r));
	got.from = block->from + block->bytes + unzigzag(get_varint(r));
	if (r->bad || !got.bytes)
		return -EBADMSG;
	*block = got;
	return 0;
}

static bool is_read(const struct wf_body *body)
{
	return (body->way == WF_BODY_PULL && !body->parcel.id) || body->way == WF_BODY_STAGED;
}

/* A list has blocks of a body that can be read in any order; without one nothing follows. */
static bool is_good_list(const struct wf_access_push *p)
{
	if (!(p->flags & WF_ACCESS_PUSH_LIST))
		return !p->list_bytes;
	return p->block_count && p->block_count <= WF_ACCESS_BLOCKS_MAX && p->block_bytes &&
	       !p->at && p->body.way == WF_BODY_PULL && p->body.sum_kind == WF_BODY_SUM_NONE;
}

int wf_access_push_get(const uint8_t *bytes, size_t count, struct wf_access_push *p)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_access_push got = { .window = get_name(&r) };

	got.at = wf_bytes_get_u64(&r);
	got.flags = wf_bytes_get_u8(&r);
	got.number = wf_bytes_get_u32(&r);
	got.note_bytes = wf_bytes_get_u16(&r);
	got.note = wf_bytes_view(&r, got.note_bytes);
	if (got.flags & WF_ACCESS_PUSH_LIST) {
		got.block_count = wf_bytes_get_u32(&r);
		got.block_bytes = wf_bytes_get_u64(&r);
	}
	if (wf_body_get(&r, &got.body) || r.bad)
		return -EBADMSG;
	got.list_bytes = wf_bytes_reader_left(&r);
	got.list = wf_bytes_view(&r, got.list_bytes);
	if (!is_good_list(&got))
		return -EBADMSG;
	if (got.flags & ~PUSH_FLAGS || got.note_bytes > WF_ACCESS_NOTE_BYTES_MAX)
		return -EBADMSG;
	if (!(got.flags & WF_ACCESS_PUSH_NOTED) && (got.note_bytes || got.number))
		return -EBADMSG;
	if (got.body.way != WF_BODY_NONE && !is_read(&got.body))
		return -EBADMSG;
	/* The right to read is enough for GOT, so nothing may be written. */
	if (got.flags & WF_ACCESS_PUSH_GOT &&
	    (got.flags & WF_ACCESS_PUSH_LAST || got.body.way != WF_BODY_NONE))
		return -EBADMSG;
	*p = got;
	return 0;
}

void wf_access_ask_put(struct wf_bytes_writer *w, const struct wf_access_ask *a)
{
	wf_bytes_put_u64(w, a->id);
	put_name(w, &a->window);
	wf_bytes_put_u64(w, a->at);
	wf_bytes_put_u64(w, a->bytes);
	wf_bytes_put_u8(w, a->flags);
}

int wf_access_ask_get(const uint8_t *bytes, size_t count, struct wf_access_ask *a)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_access_ask got = { .id = wf_bytes_get_u64(&r) };

	got.window = get_name(&r);
	got.at = wf_bytes_get_u64(&r);
	got.bytes = wf_bytes_get_u64(&r);
	got.flags = wf_bytes_get_u8(&r);
	if (r.bad || wf_bytes_reader_left(&r) || !got.bytes || got.flags & ~ASK_FLAGS)
		return -EBADMSG;
	*a = got;
	return 0;
}

size_t wf_access_lend_bytes(const struct wf_access_lend *l)
{
	return 9 + wf_body_bytes(&l->body);
}

void wf_access_lend_put(struct wf_bytes_writer *w, const struct wf_access_lend *l)
{
	wf_bytes_put_u64(w, l->id);
	wf_bytes_put_u8(w, l->status);
	wf_body_put(w, &l->body);
}

int wf_access_lend_get(const uint8_t *bytes, size_t count, struct wf_access_lend *l)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_access_lend got = { .id = wf_bytes_get_u64(&r) };

	got.status = wf_bytes_get_u8(&r);
	if (wf_body_get(&r, &got.body) || r.bad || wf_bytes_reader_left(&r))
		return -EBADMSG;
	if (got.status > WEFT_UNAUTHENTICATED || (got.status == WEFT_OK) != is_read(&got.body))
		return -EBADMSG;
	if (got.status != WEFT_OK && got.body.way != WF_BODY_NONE)
		return -EBADMSG;
	*l = got;
	return 0;
}

void wf_access_descriptor_put(struct wf_bytes_writer *w, const struct wf_access_descriptor *d)
{
	wf_bytes_put_u32(w, DESCRIPTOR_MAGIC | (uint32_t)DESCRIPTOR_VERSION << 24);
	put_name(w, &d->window);
	wf_bytes_put_u64(w, d->bytes);
	wf_bytes_put_u8(w, d->rights);
}

int wf_access_descriptor_get(const uint8_t *bytes, size_t count, struct wf_access_descriptor *d)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	uint32_t head = wf_bytes_get_u32(&r);
	struct wf_access_descriptor got = { .window = get_name(&r) };

	if (!r.bad && (head & 0xffffff) == DESCRIPTOR_MAGIC && head >> 24 > DESCRIPTOR_VERSION)
		return -EPROTONOSUPPORT;
	got.bytes = wf_bytes_get_u64(&r);
	got.rights = wf_bytes_get_u8(&r);
	if (r.bad || wf_bytes_reader_left(&r) ||
	    head != (DESCRIPTOR_MAGIC | (uint32_t)DESCRIPTOR_VERSION << 24))
		return -EBADMSG;
	if (!got.bytes || !got.rights || got.rights > WF_ACCESS_LANDING)
		return -EBADMSG;
	*d = got;
	return 0;
}
