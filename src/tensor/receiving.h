/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive: what it asks for, what it got, and where that goes.  How it finds its
 * tensor is channel.h's.
 *
 * Threads: owner.
 */
#ifndef WF_RECEIVING_H
#define WF_RECEIVING_H

#include <weft/tensor.h>
#include "tensor/arrival.h"
#include "transfer/pull.h"

struct wf_bundle;
struct wf_channel;
struct wf_channels;

enum wf_receiving_state {
	WF_RECEIVING_ENDED,
	WF_RECEIVING_WAITING, /* for a tensor */
	WF_RECEIVING_MEMORY,  /* for the pool */
	WF_RECEIVING_PULLING,
	WF_RECEIVING_DRAINING /* all has come, or no more does: its stage, to a device */
};

#define WF_RECEIVING_RANK 4 /* of a tensor whose shape needs no memory of its own */

struct wf_receiving {
	/* set by the owner */
	uint64_t step;
	const void *key;
	uint16_t key_bytes;
	bool attached; /* it is not by step and key: it is attachment number @step of a message */
	unsigned flags;                 /* WEFT_ANY_SHAPE, WEFT_DROP */
	struct wf_link *from;           /* NULL: any; while it runs a reference */
	const struct weft_tensor *into; /* NULL: alloc, else the pool */
	struct wf_kind_body *device;    /* NULL: @into is not there */
	void *(*alloc)(void *arg, const struct weft_tensor *want, uint64_t bytes);
	void *alloc_arg;
	const struct wf_terms *terms;
	/*
	 * A tensor is there: is it for this one?  No: another of its kind on another worker was
	 * first, and this one waits to be stopped.  NULL: it is alone.
	 */
	bool (*claim)(struct wf_receiving *r);
	/* It is cancelled, and the tensor that it met, @a, goes back to where it waited.  Takes @a. */
	void (*give_back)(struct wf_receiving *r, struct wf_arrival *a);
	void (*done)(struct wf_receiving *r, const struct wf_error *e);

	/* what it got; valid when it ended well */
	struct weft_tensor got;
	int64_t shape[WF_RECEIVING_RANK]; /* of it, or: */
	int64_t *long_shape;      /* allocated, for the owner to free; NULL: it is short */
	struct wf_link *got_from; /* a reference */
	uint64_t got_bytes;
	void *chunk;              /* of the pool, or a view: the owner gives it back; NULL: none */
	unsigned got_flags;
	bool readonly;            /* it is a view */

	/* its own */
	bool doubted;             /* the offer may be over: see pull.h */
	bool returns;            /* to be given back when it ends */
	enum wf_receiving_state state;
	struct wf_path path;      /* valid like the above */
	struct wf_arrivals *arrivals;
	union { /* where its tensor goes back to */
		struct wf_channels *channels;
		struct wf_bundle *bundle; /* of an attachment: set by the owner, who has a reference */
	};
	struct wf_channel *channel; /* where it waits for a tensor */
	struct wf_list node;     /* in the channel, while it waits for a tensor */
	struct wf_list all_node; /* in a list of the link that it names, or in channels->receives */
	struct wf_use_member use; /* of its step, until it ends */
	struct wf_part *part;    /* of the peer that it names, or has met, in its step, until it ends; or NULL */
	struct wf_arrival *arrival; /* what it met, while it can be given back; or NULL */
	struct wf_pool_waiter waiter;
	struct wf_view *view;    /* until it has ended */
	struct wf_stage *stage;  /* to a device; NULL: none, or not yet */
	struct wf_pull *pull;    /* of the arrivals' spare ones, until it ends; NULL: not needed yet */
};

/* Set @r up, when its owner has. */
void wf_receiving_init(struct wf_receiving *r, struct wf_arrivals *arrivals);

/*
 * It gets the tensor of @t, that is in @kept if it waited, else in a frame and gone on
 * return.  Takes @kept and @answer.  @came: its path up to here.
 */
void wf_receiving_meet(struct wf_receiving *r, struct wf_link *link,
		       const struct wf_tensor_record *t, const struct wf_path *came,
		       struct wf_arrival *kept, struct wf_answer *answer);
void wf_receiving_meet_kept(struct wf_receiving *r, struct wf_arrival *a);

/* End it: NULL well.  For those that wait for a tensor, and what is below. */
void wf_receiving_end(struct wf_receiving *r, const struct wf_error *e);

/* @r lets go of the link of the peer that it names.  Harmless if it names none. */
void wf_receiving_leave(struct wf_receiving *r);

/* How often its body was copied here. */
unsigned wf_receiving_copies(const struct wf_receiving *r);

/* End one that has met its tensor early; done follows, maybe inside.  Harmless before and after. */
void wf_receiving_stop(struct wf_receiving *r, const struct wf_error *e);

/* The same, and the tensor is given back before done, unless WEFT_DROP says otherwise or it is too late. */
void wf_receiving_cancel(struct wf_receiving *r, const struct wf_error *e);

/* For people: what it waits for.  And a number that differs once it has come further. */
void wf_receiving_describe(const struct wf_receiving *r, char *text, size_t bytes);
uint64_t wf_receiving_progress(const struct wf_receiving *r);

#endif
