/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/side.h"

#include <assert.h>
#include <errno.h>

#include "util/bytes.h"

#define MAGIC_BYTES 4

enum flag { FLAG_BELL = 1, FLAG_LENDS = 2 };
enum rail_flag { FLAG_GATE = 1 };

static bool has_rails(enum wf_side_kind kind)
{
	return kind == WF_SIDE_MEET || kind == WF_SIDE_RAILS;
}

unsigned wf_side_fds(const struct wf_side_packet *p)
{
	unsigned count = 0;

	if (p->kind == WF_SIDE_SLAB)
		return 1;
	if (!has_rails(p->kind))
		return 0;
	if (p->kind == WF_SIDE_MEET)
		count = (p->bell ? 2 : 0) + (p->lends ? 1 : 0);
	for (uint32_t i = 0; i < p->rail_count; i++)
		count += p->rails[i].gate;
	return count;
}

static void put_meet(struct wf_bytes_writer *w, const struct wf_side_packet *p)
{
	wf_bytes_put_u64(w, p->link);
	wf_bytes_put_u64(w, p->token);
	wf_bytes_put_u64(w, p->peer_link);
	wf_bytes_put_u64(w, p->peer_token);
	wf_bytes_put(w, p->nonce, sizeof(p->nonce));
	wf_bytes_put_u64(w, p->nonce_address);
	wf_bytes_put_u64(w, p->side);
	wf_bytes_put_u32(w, (p->bell ? FLAG_BELL : 0) | (p->lends ? FLAG_LENDS : 0));
}

static void put_rails(struct wf_bytes_writer *w, const struct wf_side_packet *p)
{
	assert(p->rail_count <= WF_SIDE_RAILS_MAX);
	wf_bytes_put_u32(w, p->rail_count);
	for (uint32_t i = 0; i < p->rail_count; i++) {
		const struct wf_side_rail *r = &p->rails[i];

		assert(r->address_bytes <= WF_SIDE_ADDRESS_BYTES);
		wf_bytes_put_u32(w, r->index);
		wf_bytes_put_u32(w, r->edition);
		wf_bytes_put_u32(w, r->gate ? FLAG_GATE : 0);
		wf_bytes_put_u32(w, r->address_bytes);
		wf_bytes_put(w, r->address, r->address_bytes);
	}
}

size_t wf_side_put(const struct wf_side_packet *p, uint8_t *bytes)
{
	struct wf_bytes_writer w = wf_bytes_writer(bytes, WF_SIDE_BYTES_MAX);

	wf_bytes_put(&w, WF_SIDE_MAGIC, MAGIC_BYTES);
	wf_bytes_put_u32(&w, p->kind);
	if (p->kind == WF_SIDE_MEET)
		put_meet(&w, p);
	if (has_rails(p->kind))
		put_rails(&w, p);
	else
		wf_bytes_put_u64(&w, p->file);
	return (size_t)(w.at - bytes);
}

static void get_meet(struct wf_bytes_reader *r, struct wf_side_packet *p)
{
	uint32_t flags;

	p->link = wf_bytes_get_u64(r);
	p->token = wf_bytes_get_u64(r);
	p->peer_link = wf_bytes_get_u64(r);
	p->peer_token = wf_bytes_get_u64(r);
	wf_bytes_get(r, p->nonce, sizeof(p->nonce));
	p->nonce_address = wf_bytes_get_u64(r);
	p->side = wf_bytes_get_u64(r);
	flags = wf_bytes_get_u32(r);
	p->bell = flags & FLAG_BELL;
	p->lends = flags & FLAG_LENDS;
}

static bool get_rails(struct wf_bytes_reader *r, struct wf_side_packet *p)
{
	p->rail_count = wf_bytes_get_u32(r);
	if (p->rail_count > WF_SIDE_RAILS_MAX)
		return false;
	for (uint32_t i = 0; i < p->rail_count; i++) {
		struct wf_side_rail *rail = &p->rails[i];

		rail->index = wf_bytes_get_u32(r);
		rail->edition = wf_bytes_get_u32(r);
		rail->gate = wf_bytes_get_u32(r) & FLAG_GATE;
		rail->address_bytes = wf_bytes_get_u32(r);
		if (rail->address_bytes > sizeof(rail->address))
			return false;
		wf_bytes_get(r, rail->address, rail->address_bytes);
	}
	return true;
}

int wf_side_get(const uint8_t *bytes, size_t count, struct wf_side_packet *packet,
		struct wf_error *e)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_side_packet p = { 0 };
	char magic[MAGIC_BYTES] = "";
	uint32_t kind;
	bool good = true;

	wf_bytes_get(&r, magic, sizeof(magic));
	kind = wf_bytes_get_u32(&r);
	if (r.bad || memcmp(magic, WF_SIDE_MAGIC, MAGIC_BYTES) || kind < WF_SIDE_MEET ||
	    kind > WF_SIDE_DROPPED)
		return wf_error_set(e, -EBADMSG, "it is no packet of a side door");
	p.kind = (enum wf_side_kind)kind;
	if (p.kind == WF_SIDE_MEET)
		get_meet(&r, &p);
	if (has_rails(p.kind))
		good = get_rails(&r, &p);
	else
		p.file = wf_bytes_get_u64(&r);
	if (!good || r.bad || wf_bytes_reader_left(&r))
		return wf_error_set(e, -EBADMSG, "a packet of the side door is broken");
	*packet = p;
	return 0;
}
