/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Push: the operation that puts a tensor into a slot of a peer's landing, once one is announced.
 */
#ifndef WF_CORE_PUSH_H
#define WF_CORE_PUSH_H

#include <weft/weft.h>
#include "core/announced.h"
#include "tensor/putting.h"
#include "wire/landed.h"

struct wf_op_push {
	struct weft_remote *remote;     /* a reference; NULL: the node has closed */
	struct wf_announced_wait wait;
	struct wf_announced_slot *slot; /* NULL: waits for one */
	struct wf_pull_block block;     /* the tensor, and its place in the window */
	struct wf_putting_body body;
	struct wf_putting putting;
	uint16_t note_bytes;
	uint8_t note[WF_LANDED_BYTES_MAX]; /* the last member */
};

/* Make a push and submit it.  Failures are recorded.  Threads: any, callback. */
int wf_push(struct weft_remote *remote, const struct weft_tensor *tensor,
	    const struct weft_push_options *options, struct weft_op **op);

#endif
