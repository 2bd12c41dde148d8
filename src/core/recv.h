/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recv: the operation that receives a tensor, or an attachment.
 */
#ifndef WF_CORE_RECV_H
#define WF_CORE_RECV_H

#include <weft/weft.h>
#include "tensor/receiving.h"

struct wf_recv_any;
struct wf_recv_many_part;
struct wf_relay;
struct wf_worker;

struct wf_op_recv {
	struct weft_tensor into;
	struct weft_peer *from;   /* the tensor's sender */
	bool lost;                /* the tensor was in memory of the pool, whose node has closed */
	struct wf_recv_any *parts; /* one for each worker; NULL: one worker alone gets the tensor */
	union {
		/* with @parts: the one that gets the tensor, or ends without */
		struct wf_recv_any *_Atomic winner;
		/* without: the part of a receive that stays, which claimed the tensor; or NULL */
		struct wf_recv_many_part *one_of;
		/* with WEFT_RELAY */
		struct wf_relay *relay;
	};
	struct wf_receiving receiving; /* the last; an attachment's refers to its set */
};

/* Returns whether the sender may have noticed @r, which has failed: not before a tensor has come. */
static inline enum weft_executed wf_recv_executed(const struct wf_receiving *r)
{
	return r->path.matched_ns ? WEFT_EXECUTED_MAYBE : WEFT_EXECUTED_NO;
}

/* End the operation of @r. */
void wf_recv_done(struct wf_receiving *r, const struct wf_error *e);

struct weft_peer *wf_recv_got(struct wf_receiving *r, struct wf_worker *worker,
			      const struct wf_error *e);

/* Append to @text step, key and peer of @op; @key NULL: any. */
void wf_recv_describe(const struct weft_op *op, uint64_t step, const void *key, size_t key_bytes,
		      char *text);

/*
 * Make a receive without submitting it, set up but for its step, and its attachment set or parts.
 * Failures are recorded.
 */
int wf_recv_new(struct weft_node *node, struct weft_peer *peer, const void *key,
		size_t key_bytes, const struct weft_tensor *into,
		const struct weft_recv_options *options, struct weft_op **op);

/* Set the step of @op, which is dropped if that fails, and make its parts.  -ENOMEM: recorded. */
int wf_recv_at_step(struct weft_op *op, uint64_t step);

/* Free @op, which has its step, and will not be submitted. */
void wf_recv_drop(struct weft_op *op);

/* Make a receive and submit it.  Failures are recorded. */
int wf_recv(struct weft_node *node, struct weft_peer *peer, uint64_t step, const void *key,
	    size_t key_bytes, const struct weft_tensor *into,
	    const struct weft_recv_options *options, struct weft_op **op);

#endif
