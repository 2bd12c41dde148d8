/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels: where sends and receives of tensors meet, by step and key.
 *
 * A channel holds the unexpected tensors, which wait for a receive, and the receives that wait for
 * a tensor, each in order.  It holds both at once only when receives name peers from which nothing
 * came yet.  An eager tensor that waits is kept in memory the sender knows about (the link's eager
 * credit); an offered one stays where it is, at the sender, until it is matched.  A tensor that
 * nobody receives within WEFT_STEP_TIMEOUT is dropped, and so is one of a step that is over.
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
	struct wf_engine *engine;
	struct wf_unexpected_queue *unexpected_queue;
	struct wf_sendings sendings;
	struct wf_map map;
	struct wf_uses uses;     /* steps of sends, receives and parts */
	struct wf_parts parts;   /* peers' parts in steps */
	struct wf_list receives; /* running receives that name no peer; link.h has the others */
	struct wf_list kept;     /* unexpected tensors that wait for a receive, the oldest first */
	struct wf_list leftovers; /* unexpected tensors in @kept, left by strangers that are gone */
	struct wf_timer kept_timer; /* when the oldest of @kept has been kept for too long */
	struct wf_steps aborted, ended; /* steps that are over, see step_end.h */
	bool closed; /* no receive gets a tensor any more */
	struct wf_timer brief_timer; /* tells of aborts again, after -ENOMEM */
	/*
	 * A peer has aborted @step, and other workers must hear of it.  -ENOMEM: nothing was
	 * done.
	 */
	int (*aborted_by_peer)(void *ctx, const struct wf_step *step);
	void *ctx;
};

/* Set up @c.  Borrows @unexpected_queue. */
void wf_channels_init(struct wf_channels *c, struct wf_unexpected_queue *unexpected_queue,
		      int (*aborted)(void *ctx, const struct wf_step *step), void *ctx);

/* End every receive that waits, with CANCELLED. */
void wf_channels_cancel(struct wf_channels *c);
void wf_channels_fini(struct wf_channels *c);

/* Start a send as wf_sending_start() does; but if the step is over done may run inside. */
void wf_channels_send(struct wf_channels *c, struct wf_link *link, struct wf_sending *s);

/* Start a receive.  Borrows @r, its key and its buffer until done, which may run inside. */
void wf_channels_receive(struct wf_channels *c, struct wf_receiving *r);

/* Let @r, whose claim() gave no receive before, claim the tensors that wait.  Harmless after the end. */
void wf_channels_claim_again(struct wf_receiving *r);

/* End @r early with @e; done follows, maybe inside.  Harmless after the end. */
void wf_channels_stop_receive(struct wf_receiving *r, const struct wf_error *e);

/*
 * End @r, which its owner wants no more, as wf_channels_stop_receive() does; a tensor that it
 * has met waits for another receive, see wf_receiving_cancel.
 */
void wf_channels_cancel_receive(struct wf_receiving *r, const struct wf_error *e);

/*
 * Undo wf_channels_receive() while @r waits for a peer that was never met: it may begin again.
 * -EALREADY.
 */
int wf_channels_take_back(struct wf_receiving *r);

/*
 * Call @each for the tensors that came, @from at @since_ns, and wait for a receive; the oldest
 * first.
 */
void wf_channels_unmatched(const struct wf_channels *c,
			   void (*each)(void *ctx, const struct wf_record_tensor *t,
					const struct wf_link *from, uint64_t since_ns),
			   void *ctx);

/*
 * Returns the first tensor from @from, or NULL: from anybody, that waits in a channel; NULL: none.
 * Threads: any that has unexpected_queue->lock, which keeps the tensor.
 */
const struct wf_unexpected *wf_channels_first(const struct wf_channels *c,
					      const struct wf_link *from, uint64_t step,
					      const void *key, uint16_t key_bytes);

/* Take a TENSOR record.  -EBADMSG.  -ENOMEM: nothing was done. */
int wf_channels_record(struct wf_channels *c, struct wf_link *link,
		       const struct wf_record *record);

/* Drop the tensors of @part that were not received; a sender that still has one hears @status. */
void wf_channels_drop(struct wf_part *part, enum weft_status status);

/* End receives and sends of a peer that is dead; called by the floor below. */
void wf_channels_down(struct wf_channels *c, struct wf_link *link, const struct wf_error *e);

/* Match anew after @link was merged into @into; called by the floor below. */
void wf_channels_merged(struct wf_channels *c, struct wf_link *link, struct wf_link *into);

#endif
