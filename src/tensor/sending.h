/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends: tensors on their way out.
 *
 * Threads: owner.
 */
#ifndef WF_SENDING_H
#define WF_SENDING_H

#include <weft/tensor.h>
#include "transfer/parcel.h"

/* Those of a worker. */
struct wf_sendings {
	struct wf_transfer *transfer;
	struct wf_list all; /* that have not ended */
};

/* The owner keeps key, shape and body until done. */
struct wf_sending {
	struct wf_parcel parcel; /* body, body_bytes are the owner's to set */
	uint64_t step;
	const void *key;
	uint16_t key_bytes;
	uint8_t flags; /* WEFT_DEAD, WEFT_OPAQUE */
	struct weft_dtype dtype;
	uint8_t rank;
	const int64_t *shape;
	void (*done)(struct wf_sending *s, const struct wf_error *e);

	/* its own */
	struct wf_list node; /* in wf_sendings.all */
};

void wf_sending_init(struct wf_sendings *all, struct wf_transfer *t);

/* Borrows @s, its key, shape and body until done, which is never called inside. */
void wf_sending_start(struct wf_sendings *all, struct wf_link *link, struct wf_sending *s);

/* End it early with @e; done follows, maybe inside.  Harmless after the end. */
void wf_sending_stop(struct wf_sending *s, const struct wf_error *e);

#endif
