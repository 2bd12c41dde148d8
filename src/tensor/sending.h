/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends: tensors on their way out.
 *
 * A tensor that is not contiguous is gathered into the pool first, piece by piece, and waits if
 * that is full; so is a short one on a device.  Longer ones are staged as their reader asks for
 * them.  Later sends of the same channel wait in line behind one that has to go into the pool
 * first, for they are to be received in order.
 *
 * Threads: owner.
 */
#ifndef WF_SENDING_H
#define WF_SENDING_H

#include <weft/tensor.h>
#include "tensor/part.h"
#include "transfer/outgoing.h"

/* Sends of a worker. */
struct wf_sendings {
	struct wf_transfer *transfer;
	uint8_t type;        /* type of the records: TENSOR or ATTACHMENT */
	struct wf_list all;  /* sends that have not ended */
	struct wf_list line; /* turns of sends that are not posted, in order of start */
	/* grows with each piece gathered in line, and each send that leaves the line */
	uint64_t line_progress;
};

enum wf_sending_state {
	WF_SENDING_ENDED, /* ended, or not begun */
	WF_SENDING_BEHIND, /* waits in line behind another of its channel */
	WF_SENDING_MEMORY, /* waits for the pool */
	WF_SENDING_GATHERING,
	WF_SENDING_FILLING, /* the stage copies from a device */
	WF_SENDING_MOVING,
	WF_SENDING_QUIET /* over, as its outgoing body's why says, but for copies under way */
};

/* The place in line of a send: few sends have one. */
struct wf_sending_turn {
	struct wf_list node; /* in sendings->line */
	struct wf_sending *sending;
	struct wf_pool_waiter waiter;
	struct wf_timer timer;
	size_t gathered_bytes;
};

/* A send.  The owner keeps key, shape and body until done. */
struct wf_sending {
	struct weft_tensor
		*strided; /* tensor to gather; NULL: outgoing.body is set, or @device */
	struct wf_kind_body
		*device; /* body on a device; NULL: outgoing.body is set, or gathered */
	uint64_t step;
	const void *key;
	const int64_t *shape;
	struct weft_dtype dtype;
	uint16_t key_bytes;
	uint8_t flags; /* WEFT_DEAD, WEFT_OPAQUE */
	uint8_t rank;
	void (*done)(struct wf_sending *s, const struct wf_error *e);
	/* in the step's sends, until the end; zero: the send begins, or has no step */
	struct wf_use_member use;
	struct wf_part *part;

	void *chunk; /* chunk of the pool, with the body: the owner gives it back; NULL: none */

	/* private to sending.c */
	struct wf_sendings *sendings;
	struct wf_link *link;
	enum wf_sending_state state;
	struct wf_list node;      /* in sendings->all */
	struct wf_sending_turn *turn; /* NULL: not in line */
	struct wf_stage *stage;  /* stage from a device; NULL: none, or not yet */
	struct wf_outgoing outgoing; /* the owner sets body, body_bytes; last, see wf_op_init */
};

/* Set @sendings up; @type: TENSOR or ATTACHMENT. */
void wf_sending_init(struct wf_sendings *sendings, struct wf_transfer *t, uint8_t type);

/* Start a send.  Borrows @s, its key, shape and body until done, which may run inside. */
void wf_sending_start(struct wf_sendings *sendings, struct wf_link *link, struct wf_sending *s);

/*
 * End @s early with @e; done follows, maybe inside.  No other send ends by that.  Harmless after
 * the end.
 */
void wf_sending_stop(struct wf_sending *s, const struct wf_error *e);

/* Undo wf_sending_start() before @s had a rail: it may be started again.  -EALREADY. */
int wf_sending_take_back(struct wf_sending *s);

/* End with @e the sends that wait in line for @link, which is dead. */
void wf_sending_down(struct wf_sendings *sendings, const struct wf_link *link,
		     const struct wf_error *e);

/* Say for people what @s waits for. */
void wf_sending_describe(const struct wf_sending *s, char *text, size_t bytes);

/* Returns a number that differs once @s has come further. */
uint64_t wf_sending_progress(const struct wf_sending *s);

/* Returns how many bytes of the body the peer may be reading just now, without a word. */
static inline uint64_t wf_sending_offered_bytes(const struct wf_sending *s)
{
	return s->state == WF_SENDING_MOVING ? wf_outgoing_offered_bytes(&s->outgoing) : 0;
}

#endif
