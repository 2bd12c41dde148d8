/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recv many: a receive that stays.  Each tensor that it gets is told with an operation of its own,
 * an ordinary receive that has ended.
 */
#ifndef WF_CORE_RECV_MANY_H
#define WF_CORE_RECV_MANY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weft/weft.h>

struct wf_recv_many_part;

struct wf_op_recv_many {
	uint64_t step;
	const void *key;
	uint16_t key_bytes;
	unsigned flags;         /* WEFT_ANY_KEY */
	void *(*alloc)(void *arg, const struct weft_tensor *want, uint64_t bytes);
	void *alloc_arg;
	void (*came)(void *arg, const struct weft_tensor *tensor, uint64_t bytes);
	void *came_arg;
	struct weft_op_options told; /* the listener to each tensor */
	unsigned max;
	atomic_uint out;        /* tensors that are on their way, or whose handle is not freed */
	unsigned running;       /* parts that have not ended; op->worker only */
	unsigned count;         /* length of parts */
	struct wf_recv_many_part *parts; /* one for each worker that tensors may come to */
};

/* Make a receive that stays and submit it.  Failures are recorded. */
int wf_recv_many(struct weft_node *node, struct weft_peer *peer, uint64_t step, const void *key,
		 size_t key_bytes, const struct weft_tensor *into,
		 const struct weft_recv_options *options, struct weft_op **op);

/* The handle of a tensor that @part got is freed; the node may have closed.  Threads: any. */
void wf_recv_many_freed(struct wf_recv_many_part *part, bool closed);

#endif
