/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs: metadata on the wire, each a key and a value, in the order in which they were given.
 * A key may occur several times.
 *
 * A key is made of 0-9, a-z, '-', '_' and '.'.  The value of a key that ends in "-bin"
 * is any bytes, of another key printable ASCII, as in gRPC.
 *
 * Pure: no I/O, no allocation, no clock.
 */
#ifndef WF_PAIR_H
#define WF_PAIR_H

#include "util/bytes.h"

#define WF_PAIRS_BYTES_MAX (64 * KIB) /* all pairs of one kind, as they are put */

struct wf_pair {
	const uint8_t *key, *value; /* not C strings */
	uint16_t key_bytes;
	uint32_t value_bytes;
};

/* Does @pair keep the rules above? */
bool wf_pair_good(const struct wf_pair *pair);

size_t wf_pair_bytes(const struct wf_pair *pair);
void wf_pair_put(struct wf_bytes_writer *w, const struct wf_pair *pair);

/* Read the next pair of a block: 1, or 0 at the end.  -EBADMSG. */
int wf_pair_get(struct wf_bytes_reader *r, struct wf_pair *pair);

/* Returns the count of pairs in a block of @count bytes.  -EBADMSG: no block, or too long. */
int wf_pairs_check(const uint8_t *bytes, size_t count);

#endif
