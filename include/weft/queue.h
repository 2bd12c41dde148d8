/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: operations that have ended, for threads and event loops that take them when
 * they like.
 *
 * An operation whose options name a queue comes out of it once, when it has ended, with the handle
 * that the caller has: whoever takes it reads its outcome and frees it.  If the caller asked for
 * no handle (op NULL), the queue's is the only one.  An operation that is freed before is not put
 * into the queue.  A node may have any number of queues, and any number of threads may take from
 * one.
 */
#ifndef WEFT_QUEUE_H
#define WEFT_QUEUE_H

#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_queue;

/*
 * Open a completion queue for operations of @node.  Returns @queue owned: free it with
 * weft_queue_close().  -ENOMEM.  Threads: any, callback.
 */
WEFT_API int weft_queue_open(struct weft_node *node, struct weft_queue **queue);

/*
 * Close a queue; accepts NULL.  Operations that name it go on, and nobody is told of their ends;
 * handles that only the queue has are freed.  The node may have closed before.
 * Threads: any, callback, while no other uses the queue.
 */
WEFT_API void weft_queue_close(struct weft_queue *queue);

/*
 * Take up to @max ended operations into @ops, the first to end first, and wait for the first for
 * at most @timeout_ns.  Returns their number; 0: the time has passed.  The owner of a manual node
 * drives it by this function.  -ECANCELED: the queue is empty, and its node has closed.  -EDEADLK
 * inside a callback: the queue is empty.  Threads: any, callback.
 */
WEFT_API int weft_queue_next(struct weft_queue *queue, struct weft_op **ops, size_t max,
			     uint64_t timeout_ns);

/*
 * Returns a descriptor for an event loop, which is ready to be read while the queue is not empty;
 * it is the queue's, and only to be polled.  -EMFILE, -ENFILE, -ENOMEM.  Threads: any, callback.
 */
WEFT_API int weft_queue_fd(struct weft_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
