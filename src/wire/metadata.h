/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metadata on the wire: pairs of a key and a value, in the order in which they
 * were given.  A key may occur several times.
 *
 * A key is made of 0-9, a-z, '-', '_' and '.'.  The value of a key that ends in "-bin"
 * is any bytes, of another key printable ASCII, as in gRPC.
 *
 * Pure: no I/O, no allocation, no clock.
 */
#ifndef WF_METADATA_H
#define WF_METADATA_H

#include "util/bytes.h"

#define WF_METADATA_BYTES_MAX (64 * KIB) /* all pairs of one kind, as they are put */

struct wf_metadata_pair {
	const uint8_t *key, *value; /* not C strings */
	uint16_t key_bytes;
	uint32_t value_bytes;
};

/* Does @pair keep the rules above? */
bool wf_metadata_good(const struct wf_metadata_pair *pair);

size_t wf_metadata_bytes(const struct wf_metadata_pair *pair);
void wf_metadata_put(struct wf_bytes_writer *w, const struct wf_metadata_pair *pair);

/* Read the next pair of a block: 1, or 0 at the end.  -EBADMSG. */
int wf_metadata_get(struct wf_bytes_reader *r, struct wf_metadata_pair *pair);

/* Returns the count of pairs in a block of @count bytes.  -EBADMSG: no block, or too long. */
int wf_metadata_check(const uint8_t *bytes, size_t count);

#endif
