/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Landings: slots of memory that peers push tensors into, without being asked; receive buffers with
 * credits, of which an announced slot is one.
 *
 * The owner opens a landing over some slots of its memory, and gives the descriptor to its peers by
 * any way it likes.  The slots are announced to the peers that use the landing.  A peer pushes a
 * tensor into a slot that was announced to it, and the owner takes the tensor there, without a
 * copy: the slot is the owner's until it frees the operation that took the tensor, and is announced
 * again only then.  A push waits while its sender has no slot, so a slow owner stops its senders.
 *
 * A landing is a window of host memory, with its promises: only reads of the owner's own write the
 * memory, and each begins only if that slot is announced to that peer.  Whatever a peer does, a
 * slot that holds a tensor keeps it, and a slot that was not announced to the peer is not touched
 * by it.
 */
#ifndef WEFT_LANDING_H
#define WEFT_LANDING_H

#include <weft/tensor.h>
#include <weft/window.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_landing;

#define WEFT_LANDING_SLOTS_MAX 4096

/*
 * Open a landing over @slots slots of @slot_bytes each, one after the other from @memory on, which
 * is host memory.  Borrows the memory until weft_landing_close() has returned 0, or the node has
 * closed.  Returns @landing owned.
 *
 * Slots are shared out evenly among senders, each of which is a weft_remote that was pushed into:
 * of n senders one has at most slots/n, rounded up, announced or with a tensor in them.  A free
 * slot goes to the sender that has the fewest, and a sender that comes later gets its share of
 * those that are announced and not in use.  With more senders than slots some have none until
 * others push or go: open with as many slots as senders, at least.
 *
 * -EINVAL: no bytes, no slots or more than WEFT_LANDING_SLOTS_MAX.  -ENOTSUP: memory of a CUDA
 * device, as weft_window_open() knows it.  -ENOMEM.  -ENOSPC: the node has a million windows.
 * Threads: any.
 */
WEFT_API int weft_landing_open(struct weft_node *node, void *memory, size_t slot_bytes,
			       size_t slots, struct weft_landing **landing);

/*
 * Write the landing's descriptor to @descriptor, as weft_window_describe() does.  Whoever has it
 * may push.  -ENOSPC: there is not room enough.  Threads: any, callback.
 */
WEFT_API int weft_landing_describe(const struct weft_landing *landing, void *descriptor,
				   size_t *bytes);

/*
 * Publish @landing by @key until it closes, as weft_window_publish() does, for weft_window_find().
 * Codes are those of weft_window_publish().  Threads: any.
 */
WEFT_API int weft_landing_publish(struct weft_landing *landing, const void *key, size_t key_bytes);

/*
 * Take the next tensor that has landed; each comes once, and those of one peer in the order in
 * which its pushes ended.  weft_op_tensor() is the tensor in its slot, which may be written to,
 * weft_op_peer() the sender, and weft_op_landed() the sender's number.  weft_op_free() gives the
 * slot back: the tensor is gone then.  Threads: any, callback.
 */
WEFT_API int weft_landing_next(struct weft_landing *landing, const struct weft_op_options *options,
			       struct weft_op **op);

/*
 * Read the number that the sender gave the tensor that @op took.  -EINVAL: @op has taken none.
 * Threads: any, callback.
 */
WEFT_API int weft_op_landed(const struct weft_op *op, uint64_t *number);

/*
 * Close @landing as weft_window_close() closes a window: no byte of the memory moves any more.
 * Pushes that wait or are under way end with NOT_FOUND; operations that wait for a tensor end with
 * CANCELLED; tensors that nobody took are dropped, and those that were taken stay where they are,
 * in memory that is the program's again.  Accepts NULL.  To be called before the node closes, which
 * ends the landing too.  -EDEADLK inside a callback: nothing was done.  Threads: any, while no
 * other is in a function on @landing.  The owner of a manual node drives it meanwhile.
 */
WEFT_API int weft_landing_close(struct weft_landing *landing);

struct weft_push_options {
	size_t size;
	struct weft_op_options op;
	uint64_t number; /* for the owner, as immediate data: weft_op_landed() */
};
#define WEFT_PUSH_OPTIONS_INIT WEFT_SIZED_OP_INIT(struct weft_push_options)

/*
 * Push @tensor, which is contiguous, into the landing @remote, which came from weft_window_import()
 * or weft_window_find().  Copies the shape; borrows the data until the operation ends.  The first
 * push asks the owner for slots, and those of the peer's share are announced from then on, until
 * weft_remote_close(); a push takes one at once if there is one, or waits for one in line.  When
 * the operation has ended well the tensor is whole in its slot.  A tensor of no bytes takes a slot,
 * too.
 *
 * FAILED_PRECONDITION: the tensor is longer than a slot.  NOT_FOUND: the landing is closed, or its
 * node has started anew.  RESOURCE_EXHAUSTED: this node pushes into the landing by more than four
 * weft_remote, or it has 4096 senders.  UNAVAILABLE: the peer is lost, or drains, so that its calls
 * end.  After a failure the next push asks for slots again.
 *
 * -EACCES: @remote is no landing.  -EINVAL: bad dtype, rank or data, or not contiguous.  -ENOTSUP:
 * memory of another device than WEFT_CPU, WEFT_CUDA_HOST and WEFT_CUDA_MANAGED.  Threads: any,
 * callback.
 */
WEFT_API int weft_push(struct weft_remote *remote, const struct weft_tensor *tensor,
		       const struct weft_push_options *options, struct weft_op **op);

#ifdef __cplusplus
}
#endif
#endif
