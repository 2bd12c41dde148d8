/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of receives: many tensors of one step by one operation, which tells of each as it comes and
 * of all together.
 */
#ifndef WEFT_RECV_SET_H
#define WEFT_RECV_SET_H

#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_RECV_SET_MAX 65536 /* items of one set: each takes about 1 KiB */

/* A tensor that a set is to receive. */
struct weft_recv_item {
	const void *key;
	size_t key_bytes;
	const struct weft_tensor *into; /* the buffer, as weft_recv() has it; NULL: of the pool */
};

struct weft_recv_set_options {
	size_t size;
	struct weft_op_options op; /* the deadline is that of each item; a queue gets the set alone */
	unsigned flags;            /* WEFT_ANY_SHAPE, WEFT_DROP: for every item */
	void *stream;              /* as weft_recv_options has it */
	/*
	 * Called for each item that has ended, well or not, before the end of the set is told.  @op
	 * is the set; the item is weft_recv_set_item(op, index).  The callback runs on the worker,
	 * as that of weft_op_options does, and may do what that may; the handle @op is not to be
	 * freed there.
	 */
	void (*each)(void *arg, struct weft_op *op, size_t index);
	void *each_arg;
};
#define WEFT_RECV_SET_OPTIONS_INIT WEFT_SIZED_OP_INIT(struct weft_recv_set_options)

/*
 * Receive @count tensors of @step, 1 to WEFT_RECV_SET_MAX, from @peer, or each from any peer when
 * @peer is NULL.  Every item is a receive of its own, begun as if by weft_recv() in the order of
 * @items: one that fails, or does not come, costs the others nothing, and items of one key get a
 * tensor each.  Copies @items, keys and shapes; borrows a buffer until its item ends.
 *
 * The operation ends when all items have: with WEFT_OK if all have a tensor, else with the outcome
 * of the item that failed first, and a message that says how many tensors came.  A cancel, the
 * deadline, the end of the step and the loss of the peer end the items that are missing; those that
 * came stay.
 *
 * Codes as weft_recv() has them, with the number of the item in the sentence; nothing is begun
 * then.  -EINVAL: no items, or too many.  Threads: any, callback.
 */
WEFT_API int weft_recv_set(struct weft_node *node, struct weft_peer *peer, uint64_t step,
			   const struct weft_recv_item *items, size_t count,
			   const struct weft_recv_set_options *options, struct weft_op **op);

/*
 * Returns the receive of item number @index, from 0, of the set @op.  It is an operation like any,
 * to be read, waited for, cancelled or taken from, at any time until weft_op_free(op), which frees
 * it; the program must not.  NULL: @op is no set, or has no such item.  Threads: any, callback.
 */
WEFT_API struct weft_op *weft_recv_set_item(const struct weft_op *op, size_t index);

#ifdef __cplusplus
}
#endif
#endif
