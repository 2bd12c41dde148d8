/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels: where sends and receives of tensors meet, by step and key.
 *
 * A channel holds the tensors that came and wait for a receive, and the
 * receives that wait for a tensor, each in order.  Both at once only when
 * receives name peers from which nothing came yet.  An eager tensor that
 * waits is kept in memory the sender knows about (the link's room); an
 * offered one stays where it is, at the sender, until it is matched.  What
 * nobody receives within WEFT_STEP_TIMEOUT is dropped, and so is what comes of
 * a step that is over.
 *
 * Threads: owner.
 */
#ifndef WF_CHANNEL_H
#define WF_CHANNEL_H

#include <weft/tensor.h>
#include "tensor/receiving.h"
#include "tensor/sending.h"
#include "tensor/part.h"
#include "tensor/step.h"
#include "tensor/use.h"
#include "util/map.h"

struct wf_channels {
	struct wf_worker *worker;
	struct wf_arrivals *arrivals;
	struct wf_sendings sendings;
	struct wf_map map;
	struct wf_uses uses;     /* the steps of what follows, and of sends, */
	struct wf_parts parts;   /* and who takes part in them */
	struct wf_list receives; /* that name no peer and have not ended; see link.h for the others */
	struct wf_list kept;     /* arrivals that nobody has received yet, the oldest first */
	struct wf_list leftovers; /* of those, what strangers that are gone have left */
	struct wf_timer kept_timer;     /* when the oldest has been kept for too long */
	struct wf_steps aborted, ended; /* ending.h */
	bool closed; /* no receive gets a tensor any more */
	struct wf_timer brief_timer;    /* when peers that could not be told of an abort are told again */
	/* A peer has aborted @step, and other workers are to hear of it.  -ENOMEM: ask again. */
	int (*aborted_by_peer)(void *ctx, const struct wf_step *step);
	void *ctx;
};

/* Borrows @arrivals. */
void wf_channels_init(struct wf_channels *c, struct wf_arrivals *arrivals,
		      int (*aborted)(void *ctx, const struct wf_step *step), void *ctx);

/* End every receive that waits, with CANCELLED. */
void wf_channels_cancel(struct wf_channels *c);
void wf_channels_fini(struct wf_channels *c);

/* As wf_sending_start; but of a step that is over done may run inside. */
void wf_channels_send(struct wf_channels *c, struct wf_link *link, struct wf_sending *s);

/* Borrows @r, its key and its buffer until done, which may run inside. */
void wf_channels_receive(struct wf_channels *c, struct wf_receiving *r);

/* End it early with @e; done follows, maybe inside.  Harmless after the end. */
void wf_channels_stop_receive(struct wf_receiving *r, const struct wf_error *e);

/* The same, because its owner wants it no more: a tensor that it has met waits for another, see wf_receiving_cancel. */
void wf_channels_cancel_receive(struct wf_receiving *r, const struct wf_error *e);

/* As if it had not begun, while it waits for a peer that was never met: it may begin again.  -EALREADY. */
int wf_channels_take_back(struct wf_receiving *r);

/* The tensors that came, @from at @since_ns, and wait for a receive; the oldest first. */
void wf_channels_unmatched(const struct wf_channels *c,
			   void (*each)(void *ctx, const struct wf_tensor_record *t,
					const struct wf_link *from, uint64_t since_ns),
			   void *ctx);

/* A TENSOR record.  -EBADMSG.  -ENOMEM: nothing was done. */
int wf_channels_record(struct wf_channels *c, struct wf_link *link,
		       const struct wf_record *record);

/* Drop what came of @part and was not received; a sender that still has it hears @status. */
void wf_channels_drop(struct wf_part *part, enum weft_status status);

/* What the floors below tell. */
void wf_channels_down(struct wf_channels *c, struct wf_link *link, const struct wf_error *e);
void wf_channels_merged(struct wf_channels *c, struct wf_link *link, struct wf_link *into);

#endif
