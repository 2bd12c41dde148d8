/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive: its demands, its tensor, and the destination.  Matching is in channel.h.
 *
 * Threads: owner.
 */
#ifndef WF_RECEIVING_H
#define WF_RECEIVING_H

#include <weft/tensor.h>
#include "tensor/unexpected.h"
#include "transfer/pull.h"

struct wf_attachment_set;
struct wf_receiving;
struct wf_channel;
struct wf_channels;

enum wf_receiving_state {
	WF_RECEIVING_ENDED,
	WF_RECEIVING_WAITING, /* waits for a tensor */
	WF_RECEIVING_MEMORY,  /* waits for the pool */
	WF_RECEIVING_RELAYING, /* waits for the body, which another receiver passes on */
	WF_RECEIVING_PULLING,
	WF_RECEIVING_DRAINING /* the stage copies to a device: all has come, or no more comes */
};

/* Functions of whoever passes bodies of broadcasts on, for receives with WEFT_RELAY. */
struct wf_receiving_relay {
	/* @r has its destination: wf_receiving_relayed() follows, never inside. */
	void (*begin)(struct wf_receiving *r);
	/* @r is about to be stopped, and what it reads may take a while to end. */
	void (*stopping)(struct wf_receiving *r);
	/* Bring nothing more to @r, because of @e: wf_receiving_relayed() follows, maybe inside. */
	void (*stop)(struct wf_receiving *r, const struct wf_error *e);
	/*
	 * The first *@bytes of what @r pulls are there, and @sure of them are not damaged: make
	 * *@bytes bytes of the body.  Returns whether more of it is there than was told before.
	 */
	bool (*came)(struct wf_receiving *r, uint64_t *bytes, uint64_t sure);
};

#define WF_RECEIVING_RANK 4 /* rank of a shape that needs no memory of its own */

/* The tensor that came. */
struct wf_receiving_got {
	struct weft_tensor tensor;
	int64_t shape[WF_RECEIVING_RANK]; /* shape, or: */
	int64_t *long_shape;  /* shape of a higher rank, for the owner to free; else NULL */
	struct wf_link *from; /* a reference */
	uint64_t bytes;
	void *chunk; /* chunk of the pool, or a view: the owner gives it back; NULL: none */
	unsigned flags;
	bool readonly;        /* @chunk is a view */
};

struct wf_receiving {
	/* set by the owner */
	uint64_t step;
	const void *key; /* with WEFT_ANY_KEY that of the tensor that came, for the owner to free */
	uint16_t key_bytes;
	bool attached; /* attachment number @step of a message, without step and key */
	unsigned flags;                 /* WEFT_ANY_SHAPE, WEFT_DROP, WEFT_ANY_KEY, WEFT_RELAY */
	struct wf_link *from; /* named peer, or NULL: any; a reference while the receive runs */
	const struct weft_tensor *into; /* NULL: alloc, else the pool */
	struct wf_kind_body *device;    /* device of @into; NULL: host memory */
	void *(*alloc)(void *arg, const struct weft_tensor *want, uint64_t bytes);
	void *alloc_arg;
	/* The first @bytes of the body are there; may be NULL. */
	void (*came)(void *arg, const struct weft_tensor *tensor, uint64_t bytes);
	void *came_arg;
	const struct wf_terms *terms;
	/*
	 * A tensor came that @r may have.  Returns the receive that gets it: @r, or a new one of
	 * its owner's for the same step and key.  NULL: none, now; a receive on another worker was
	 * first, or @r, which stays, has too many.  NULL @claim: @r gets it.
	 */
	struct wf_receiving *(*claim)(struct wf_receiving *r);
	/* The receive is cancelled: bring its tensor @a back to the queue or set.  Takes @a. */
	void (*give_back)(struct wf_receiving *r, struct wf_unexpected *a);
	void (*done)(struct wf_receiving *r, const struct wf_error *e);

	struct wf_receiving_got got; /* valid when the receive ended well */

	/* private to receiving.c and channel.c */
	bool doubted;             /* the offer may be over: see pull.h */
	bool returns;            /* the tensor is given back at the end */
	bool aborted;            /* the sender of a tensor that is dropped hears why */
	enum wf_receiving_state state;
	struct wf_path path;      /* valid as @got is */
	struct wf_unexpected_queue *unexpected_queue;
	union { /* where the tensor is given back to */
		struct wf_channels *channels;
		struct wf_attachment_set *attachment_set; /* the owner sets it, and has a reference */
	};
	union {
		struct { /* WAITING */
			struct wf_channel *channel; /* NULL: any key */
			struct wf_list node; /* in channel->receives, or in any_key of the step */
		};
		struct wf_pool_waiter waiter; /* MEMORY */
	};
	struct wf_list all_node; /* in link->work of the named peer, or in channels->receives */
	struct wf_use_member use; /* in the step's receives, until the end */
	struct wf_part *part; /* the peer's part in the step, until the end; or NULL */
	/* The unexpected tensor that matched, while it can be given back; or NULL. */
	struct wf_unexpected *unexpected;
	struct wf_view *view;    /* NULL once the receive has ended */
	struct wf_stage *stage;  /* stage to a device; NULL: none, or not yet */
	struct wf_pull *pull;    /* until the end; NULL: not needed yet */
};

/* Set @r up, after its owner has. */
void wf_receiving_init(struct wf_receiving *r, struct wf_unexpected_queue *unexpected_queue);

/*
 * Give @r the tensor of @t, which is in @kept if it waited, else in a frame and gone on return.
 * Takes @kept and @answer.  @came: path of the tensor up to here.
 */
void wf_receiving_meet(struct wf_receiving *r, struct wf_link *link,
		       const struct wf_record_tensor *t, const struct wf_path *came,
		       struct wf_unexpected *kept, struct wf_answer *answer);

/* Give @r the tensor that waited in @a, which is taken. */
void wf_receiving_meet_kept(struct wf_receiving *r, struct wf_unexpected *a);

/*
 * Go on with @r: all of its body was brought, or @rest of it is to be pulled, which is borrowed
 * until the end; or @e says why it ends.
 */
void wf_receiving_relayed(struct wf_receiving *r, const struct wf_pull_block *rest,
			  const struct wf_error *e);

/* End @r; @e is NULL: well.  For receives that wait for a tensor, and for receiving.c. */
void wf_receiving_end(struct wf_receiving *r, const struct wf_error *e);

/* Let go of the link of the peer that @r names.  Harmless if it names none. */
void wf_receiving_leave(struct wf_receiving *r);

/* Returns how often the body was copied here. */
unsigned wf_receiving_copies(const struct wf_receiving *r);

/*
 * End a receive early that has met its tensor; done follows, maybe inside.  Harmless before and
 * after.
 */
void wf_receiving_stop(struct wf_receiving *r, const struct wf_error *e);

/*
 * End a receive as wf_receiving_stop() does; the tensor is given back before done, unless
 * WEFT_DROP says otherwise or it is too late.  The sender of one that is dropped hears that it is
 * used up.
 */
void wf_receiving_cancel(struct wf_receiving *r, const struct wf_error *e);

/* Say for people what @r waits for. */
void wf_receiving_describe(const struct wf_receiving *r, char *text, size_t bytes);

/* Returns a number that differs once @r has come further. */
uint64_t wf_receiving_progress(const struct wf_receiving *r);

#endif
