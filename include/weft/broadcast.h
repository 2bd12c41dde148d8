/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcasts: one tensor to many peers.
 *
 * Each peer receives as from weft_send().  Receivers that say WEFT_RELAY help: each takes the body
 * from the one that joined before it, while that one still receives, so that the sender's network
 * carries the body about once.  A receiver that is late or dies costs the others time alone, and
 * peers may be added while the broadcast runs.
 */
#ifndef WEFT_BROADCAST_H
#define WEFT_BROADCAST_H

#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_broadcast_options {
	size_t size;
	struct weft_op_options op; /* the deadline is that of each peer */
	unsigned flags;   /* WEFT_DEAD, WEFT_OPAQUE, WEFT_SHARE */
	void *stream;     /* as weft_send_options has it */
	/* Receivers that read the sender's memory at once; 0: chosen, as a rule 1. */
	unsigned readers;
};
#define WEFT_BROADCAST_OPTIONS_INIT WEFT_SIZED_OP_INIT(struct weft_broadcast_options)

/*
 * Send @tensor to @count peers, all of one node, as weft_send() does to one; it must be
 * contiguous.  Copies @key, the shape and the list.  Borrows the data until the operation ends,
 * which is when the sends to all peers have ended: the outcome is that of the first that failed,
 * and weft_broadcast_outcome() has each, which says what that of weft_send() says.  Codes as
 * weft_send() has them; -EINVAL: no peers, or of several nodes.  Threads: any, callback.
 *
 * A receiver with WEFT_RELAY asks the sender from whom to take a long body, and shows its
 * destination, to read, to one other; its address must be one that others can dial.  It reads the
 * sender's memory itself if it is on the sender's host, if it is the first, or if another fails or
 * serves nothing for WEFT_LOST, and a quarter of that more for each receiver between, 16 at most.
 * Its receive may end after its last byte: it asks the sender whether another one reads there, for
 * WEFT_LOST at most, and if so it serves that one for as long again as it took itself at most, or
 * half a second if that is more.  A deadline or cancel meanwhile ends it with WEFT_OK.
 */
WEFT_API int weft_broadcast(struct weft_peer *const *peers, size_t count, uint64_t step,
			    const void *key, size_t key_bytes, const struct weft_tensor *tensor,
			    const struct weft_broadcast_options *options, struct weft_op **op);

/*
 * Add @peer to the broadcast @op, as the last of its peers.  -EALREADY: @op has ended, is about to,
 * or was cancelled.  Other codes as weft_broadcast() has them.  Threads: any, callback.
 */
WEFT_API int weft_broadcast_add(struct weft_op *op, struct weft_peer *peer);

/*
 * Read how the broadcast to peer number @index, from 0, has ended; WEFT_UNKNOWN: it has not.
 * @message, if not NULL, gets one sentence, "" for WEFT_OK, which lives as long as @op.  -EINVAL:
 * no broadcast; -ENOENT: no such peer.  Threads: any, callback.
 */
WEFT_API int weft_broadcast_outcome(const struct weft_op *op, size_t index,
				    enum weft_status *status, const char **message);

#ifdef __cplusplus
}
#endif
#endif
