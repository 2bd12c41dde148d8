/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive: what it asks for, what it got, and where that goes.  channel.h
 * begins and ends it.
 *
 * Threads: owner.
 */
#ifndef WF_RECEIVING_H
#define WF_RECEIVING_H

#include <weft/tensor.h>
#include "transfer/pull.h"

struct wf_arrival;
struct wf_channel;
struct wf_channels;

enum wf_receiving_state {
	WF_RECEIVING_ENDED,
	WF_RECEIVING_WAITING, /* for a tensor */
	WF_RECEIVING_MEMORY,  /* for the pool */
	WF_RECEIVING_PULLING
};

#define WF_RECEIVING_RANK 4 /* of a tensor whose shape needs no memory of its own */

struct wf_receiving {
	/* set by the owner */
	uint64_t step;
	const void *key;
	uint16_t key_bytes;
	struct wf_link *from;           /* NULL: any */
	const struct weft_tensor *into; /* NULL: alloc, else the pool */
	unsigned flags;                 /* WEFT_ANY_SHAPE */
	void *(*alloc)(void *arg, const struct weft_tensor *want, uint64_t bytes);
	void *alloc_arg;
	const struct wf_terms *terms;
	/*
	 * A tensor is there: is it for this one?  No: another of its kind on another worker was
	 * first, and this one waits to be stopped.  NULL: it is alone.
	 */
	bool (*claim)(struct wf_receiving *r);
	void (*done)(struct wf_receiving *r, const struct wf_error *e);

	/* what it got; valid when it ended well */
	struct weft_tensor got;
	int64_t shape[WF_RECEIVING_RANK]; /* of it, or: */
	int64_t *long_shape;      /* allocated, for the owner to free; NULL: it is short */
	unsigned got_flags;
	struct wf_link *got_from; /* a reference */
	uint64_t got_bytes;
	void *chunk;              /* of the pool, or a view: the owner gives it back; NULL: none */
	bool readonly;            /* it is a view */
	struct wf_path path;

	/* its own */
	struct wf_channels *channels;
	enum wf_receiving_state state;
	struct wf_channel *channel;
	struct wf_list node;     /* in the channel, while it waits for a tensor */
	struct wf_list all_node; /* in channels->receives */
	struct wf_arrival *arrival;
	struct wf_pool_waiter waiter;
	struct wf_view *view;    /* until it has ended */
	struct wf_pull pull;
};

/* Note what the record says of the tensor that @r gets.  -ENOMEM. */
int wf_receiving_note(struct wf_receiving *r, struct wf_link *link,
		      const struct wf_tensor_record *t, struct wf_error *e);

/* Does what came fit the buffer that the receive brought?  -EBADFD. */
int wf_receiving_check(const struct wf_receiving *r, struct wf_error *e);

/* Look at @body where it is.  -ENOENT: that can't be done, or the receive brought memory. */
int wf_receiving_find_view(struct wf_receiving *r, struct wf_link *link,
			   const struct wf_body *body);

/* Find the destination.  -EAGAIN: the pool has none for now.  -ENOBUFS. */
int wf_receiving_find_memory(struct wf_receiving *r, struct wf_error *e);

/* Give up what it got: shape, link, pool chunk or view. */
void wf_receiving_release(struct wf_receiving *r);

/* For people: what it waits for.  And a number that differs once it has come further. */
void wf_receiving_describe(const struct wf_receiving *r, char *text, size_t bytes);
uint64_t wf_receiving_progress(const struct wf_receiving *r);

#endif
