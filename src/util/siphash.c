/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/siphash.h"

#include <string.h>

#include "util/bytes.h"

#define WORD_BYTES sizeof(uint64_t)
#define ROUNDS_WORD 2 /* the 2 of SipHash-2-4; ROUNDS_END is the 4 */
#define ROUNDS_END 4

static uint64_t turn(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void mix(uint64_t v[4], unsigned rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = turn(v[1], 13) ^ v[0];
		v[3] = turn(v[3], 16) ^ v[2];
		v[0] = turn(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = turn(v[1], 17) ^ v[2];
		v[3] = turn(v[3], 21) ^ v[0];
		v[2] = turn(v[2], 32);
	}
}

static void add_word(struct wf_siphash *s, uint64_t word)
{
	s->v[3] ^= word;
	mix(s->v, ROUNDS_WORD);
	s->v[0] ^= word;
}

static void add_tail(struct wf_siphash *s)
{
	struct wf_bytes_reader r = wf_bytes_reader(s->tail, sizeof(s->tail));

	add_word(s, wf_bytes_get_u64(&r));
}

void wf_siphash_begin(struct wf_siphash *s, uint64_t key0, uint64_t key1)
{
	/*
	 * The constants spell "somepseudorandomlygeneratedbytes"; 0xee marks the variant of 128
	 * bits.
	 */
	*s = (struct wf_siphash){ .v = {
		UINT64_C(0x736f6d6570736575) ^ key0,
		UINT64_C(0x646f72616e646f6d) ^ key1 ^ 0xee,
		UINT64_C(0x6c7967656e657261) ^ key0,
		UINT64_C(0x7465646279746573) ^ key1,
	} };
}

void wf_siphash_add(struct wf_siphash *s, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;

	while (count) {
		size_t have = s->count % WORD_BYTES, part = WF_MIN(WORD_BYTES - have, count);

		memcpy(s->tail + have, at, part);
		s->count += part;
		at += part;
		count -= part;
		if (have + part == WORD_BYTES)
			add_tail(s);
	}
}

void wf_siphash_end(struct wf_siphash *s, uint8_t value[WF_SIPHASH_BYTES])
{
	struct wf_bytes_writer w = wf_bytes_writer(value, WF_SIPHASH_BYTES);
	size_t have = s->count % WORD_BYTES;

	memset(s->tail + have, 0, WORD_BYTES - have);
	s->tail[WORD_BYTES - 1] = (uint8_t)s->count;
	add_tail(s);
	s->v[2] ^= 0xee;
	mix(s->v, ROUNDS_END);
	wf_bytes_put_u64(&w, s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3]);
	s->v[1] ^= 0xdd;
	mix(s->v, ROUNDS_END);
	wf_bytes_put_u64(&w, s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3]);
}
