/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-2-4 with 128 bits: a keyed function.  Without the key nobody can tell its value for
 * some bytes, however many values for other bytes are known.
 *
 * SipHash proves nothing against an adversary who knows the key: it is no hash for signing.
 *
 * Threads: any.
 */
#ifndef WF_SIPHASH_H
#define WF_SIPHASH_H

#include "util/base.h"

#define WF_SIPHASH_BYTES 16

struct wf_siphash {
	uint64_t v[4];
	uint64_t count;                 /* bytes added so far */
	uint8_t tail[sizeof(uint64_t)]; /* the last count % 8 bytes, which fill no word yet */
};

/* Begin with a key of 16 bytes: two little-endian words. */
void wf_siphash_begin(struct wf_siphash *s, uint64_t key0, uint64_t key1);
void wf_siphash_add(struct wf_siphash *s, const void *bytes, size_t count);
void wf_siphash_end(struct wf_siphash *s, uint8_t value[WF_SIPHASH_BYTES]);

#endif
