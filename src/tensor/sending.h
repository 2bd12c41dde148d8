/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends: tensors on their way out.
 *
 * What is not contiguous is gathered into the pool first, piece by piece, and
 * waits if that is full; so does what is on a device, if it is short.  Longer ones
 * are staged as their reader asks for them.  Later sends of the same channel wait
 * in line behind one that has to go into the pool first, for they are to be
 * received in order.
 *
 * Threads: owner.
 */
#ifndef WF_SENDING_H
#define WF_SENDING_H

#include <weft/tensor.h>
#include "tensor/part.h"
#include "transfer/parcel.h"

/* Those of a worker. */
struct wf_sendings {
	struct wf_transfer *transfer;
	uint8_t type;        /* of their records: TENSOR or ATTACHMENT */
	struct wf_list all;  /* that have not ended */
	struct wf_list line; /* turns of those that have not been posted, each behind the earlier ones of its channel */
	uint64_t line_progress; /* grows with each piece that one in line gathers, and each that leaves */
};

enum wf_sending_state {
	WF_SENDING_ENDED, /* or not begun */
	WF_SENDING_BEHIND, /* another of its channel */
	WF_SENDING_MEMORY, /* waits for the pool */
	WF_SENDING_GATHERING,
	WF_SENDING_FILLING, /* its stage, from a device */
	WF_SENDING_MOVING,
	WF_SENDING_QUIET /* over, as its parcel's why says, but for copies under way */
};

/* The place in line of a send: few have one. */
struct wf_sending_turn {
	struct wf_list node; /* in sendings->line */
	struct wf_sending *sending;
	struct wf_pool_waiter waiter;
	struct wf_timer timer;
	size_t gathered_bytes;
};

/* The owner keeps key, shape and body until done. */
struct wf_sending {
	struct weft_tensor *strided; /* the body is gathered from here; NULL: it is set */
	struct wf_kind_body *device; /* NULL: body is set, or gathered; else it is there */
	uint64_t step;
	const void *key;
	const int64_t *shape;
	struct weft_dtype dtype;
	uint16_t key_bytes;
	uint8_t flags; /* WEFT_DEAD, WEFT_OPAQUE */
	uint8_t rank;
	void (*done)(struct wf_sending *s, const struct wf_error *e);
	/* of its step, until it ends; zero: it is of none, or begins */
	struct wf_use_member use;
	struct wf_part *part;

	void *chunk; /* of the pool, with the body: the owner gives it back; NULL: none */

	/* its own */
	struct wf_sendings *sendings;
	struct wf_link *link;
	enum wf_sending_state state;
	struct wf_list node;      /* in sendings->all */
	struct wf_sending_turn *turn; /* while it is in line */
	struct wf_stage *stage;  /* from a device; NULL: none, or not yet */
	struct wf_parcel parcel; /* body, body_bytes are the owner's to set; the last, see wf_op_init */
};

void wf_sending_init(struct wf_sendings *sendings, struct wf_transfer *t, uint8_t type);

/* Borrows @s, its key, shape and body until done, which may run inside. */
void wf_sending_start(struct wf_sendings *sendings, struct wf_link *link, struct wf_sending *s);

/* End it early with @e; done follows, maybe inside.  No other send ends by that.  Harmless after the end. */
void wf_sending_stop(struct wf_sending *s, const struct wf_error *e);

/* As if it had not been started, before it had a rail: it may be started again.  -EALREADY. */
int wf_sending_take_back(struct wf_sending *s);

/* @link is dead: what waits in line for it ends with @e. */
void wf_sending_down(struct wf_sendings *sendings, const struct wf_link *link,
		     const struct wf_error *e);

/* For people: what it waits for.  And a number that differs once it has come further. */
void wf_sending_describe(const struct wf_sending *s, char *text, size_t bytes);
uint64_t wf_sending_progress(const struct wf_sending *s);

/* Bytes of it that the peer may be reading just now, without a word. */
static inline uint64_t wf_sending_offered_bytes(const struct wf_sending *s)
{
	return s->state == WF_SENDING_MOVING ? wf_parcel_offered_bytes(&s->parcel) : 0;
}

#endif
