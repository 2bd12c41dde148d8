/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Landed: the note that comes with a tensor which is put into an announced slot: it names the
 * announcement, and describes the tensor.
 *
 * Pure: no I/O, no allocation, no clock.  A get's pointers lie in its input.
 */
#ifndef WF_LANDED_H
#define WF_LANDED_H

#include <weft/tensor.h>
#include "util/bytes.h"

struct wf_landed {
	uint64_t serial; /* serial of the announcement */
	uint64_t number; /* number of the sender's own */
	struct weft_dtype dtype;
	uint8_t rank;
	const uint8_t *shape; /* see wf_landed_dim() */
};

#define WF_LANDED_FIXED_BYTES (8 + 8 + 1 + 1 + 2 + 1)
#define WF_LANDED_BYTES_MAX (WF_LANDED_FIXED_BYTES + WEFT_RANK_MAX * 8)

/* Write @l with @shape, at most WF_LANDED_BYTES_MAX. */
void wf_landed_put(struct wf_bytes_writer *w, const struct wf_landed *l, const int64_t *shape);

/* Write @serial over that of a note at @note. */
void wf_landed_set_serial(uint8_t *note, uint64_t serial);

/* -EBADMSG: lengths, no bits or lanes, or a rank above WEFT_RANK_MAX. */
int wf_landed_get(const uint8_t *bytes, size_t count, struct wf_landed *l);

/* Returns dimension @index, which is below the rank, and may be negative. */
int64_t wf_landed_dim(const struct wf_landed *l, unsigned index);

#endif
