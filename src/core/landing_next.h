/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Landing next: the operation that takes the next tensor of a landing, which comes as a note of the
 * landing's window (note.h), and gives the slot back when it is freed.
 */
#ifndef WF_CORE_LANDING_NEXT_H
#define WF_CORE_LANDING_NEXT_H

#include <weft/weft.h>
#include "core/note.h"

struct wf_op_landed {
	struct wf_op_note note;       /* the first member, as in op->note */
	struct weft_landing *landing; /* a reference; NULL: the node has closed */
	uint64_t number;              /* the sender's */
	struct weft_tensor tensor;    /* the view of the slot */
	int64_t shape[WEFT_RANK_MAX]; /* the last member */
};

/* Make an operation that takes a tensor, and submit it.  Failures are recorded. */
int wf_landing_next(struct weft_landing *landing, const struct weft_op_options *options,
		    struct weft_op **op);

/* Returns what @op took; NULL: it is no such operation, or has taken nothing. */
const struct wf_op_landed *wf_landing_next_got(const struct weft_op *op);

#endif
