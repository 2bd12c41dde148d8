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
#include "tensor/sending.h"
#include "tensor/step.h"
#include "transfer/pull.h"
#include "util/map.h"

struct wf_channels {
	struct wf_worker *worker;
	struct wf_transfer *transfer;
	struct wf_sendings sendings;
	struct wf_map map;
	struct wf_list receives; /* that have not ended */
	struct wf_list kept;     /* arrivals that nobody has received yet, the oldest first */
	struct wf_list offers;   /* arrivals whose body is still at the sender */
	size_t arrival_count;
	struct wf_timer kept_timer;     /* when the oldest has been kept for too long */
	struct wf_steps aborted, ended; /* ending.h */
	struct wf_timer brief_timer;    /* when peers that could not be told of an abort are told again */
};

struct wf_channel;
struct wf_arrival;

enum wf_receiving_state {
	WF_RECEIVING_ENDED,
	WF_RECEIVING_WAITING, /* for a tensor */
	WF_RECEIVING_MEMORY,  /* for the pool */
	WF_RECEIVING_PULLING
};

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
	void (*done)(struct wf_receiving *r, const struct wf_error *e);

	/* what it got; valid when it ended well */
	struct weft_tensor got; /* ->shape is allocated */
	unsigned got_flags;
	struct wf_link *got_from; /* a reference */
	uint64_t got_bytes;
	void *chunk;              /* of the pool: the owner gives it back; NULL: none */
	struct wf_path path;

	/* its own */
	struct wf_channels *channels;
	enum wf_receiving_state state;
	struct wf_channel *channel;
	struct wf_list node;     /* in the channel, while it waits for a tensor */
	struct wf_list all_node; /* in channels->receives */
	struct wf_arrival *arrival;
	struct wf_pool_waiter waiter;
	struct wf_pull pull;
};

void wf_channels_init(struct wf_channels *c, struct wf_worker *worker, struct wf_transfer *t);

/* End every receive that waits, with CANCELLED. */
void wf_channels_cancel(struct wf_channels *c);
void wf_channels_fini(struct wf_channels *c);

/* As wf_sending_start; but of a step that is over done may run inside. */
void wf_channels_send(struct wf_channels *c, struct wf_link *link, struct wf_sending *s);

/* Borrows @r, its key and its buffer until done, which may run inside. */
void wf_channels_receive(struct wf_channels *c, struct wf_receiving *r);

/* End it early with @e; done follows, maybe inside.  Harmless after the end. */
void wf_channels_stop_receive(struct wf_receiving *r, const struct wf_error *e);

/* For people: what a receive waits for.  And a number that differs once it has come further. */
void wf_channels_describe(const struct wf_receiving *r, char *text, size_t bytes);
uint64_t wf_channels_progress(const struct wf_receiving *r);

/* The tensors that came, @from at @since_ns, and wait for a receive; the oldest first. */
void wf_channels_unmatched(const struct wf_channels *c,
			   void (*each)(void *ctx, const struct wf_tensor_record *t,
					const struct wf_link *from, uint64_t since_ns),
			   void *ctx);

/* Give up what a receive got: shape, link, pool chunk. */
void wf_channels_release(struct wf_channels *c, struct wf_receiving *r);

/* A TENSOR record.  -EBADMSG, -ENOSPC.  -ENOMEM: nothing was done. */
int wf_channels_record(struct wf_channels *c, struct wf_link *link,
		       const struct wf_record *record);

/* Drop what came of @step and was not received; senders that still have it hear @status. */
void wf_channels_drop(struct wf_channels *c, uint64_t step, enum weft_status status);

/* What the floors below tell. */
void wf_channels_down(struct wf_channels *c, struct wf_link *link, const struct wf_error *e);
void wf_channels_merged(struct wf_channels *c);
void wf_channels_withdrawn(struct wf_channels *c, struct wf_link *link, uint64_t offer);

#endif
