/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast: the operation that sends one tensor to many peers, by a send to each, and the service
 * by which receivers find the one to take the body from (broadcast.proto, relay.h).
 *
 * Receivers form chains in the order in which they join: each reads the last one that joined
 * before and still receives.  Only so many read the sender at once as the broadcast allows.
 */
#ifndef WF_CORE_BROADCAST_H
#define WF_CORE_BROADCAST_H

#include <stdatomic.h>
#include <weft/weft.h>
#include "util/list.h"

struct wf_broadcast;
struct wf_worker;

/* The broadcasts of a node. */
struct wf_broadcasts {
	struct wf_list all; /* broadcasts that run; under the node's lock */
	atomic_bool serves; /* the service is served, or about to be */
};

struct wf_op_broadcast {
	struct wf_broadcast *all; /* members under the node's lock */
};

/* Make a broadcast and submit it.  Failures are recorded.  Threads: any, callback. */
int wf_broadcast(struct weft_peer *const *peers, size_t count, uint64_t step, const void *key,
		 size_t key_bytes, const struct weft_tensor *tensor,
		 const struct weft_broadcast_options *options, struct weft_op **op);

/* Add @peer to @op, a broadcast.  Failures are recorded.  Threads: any, callback. */
int wf_broadcast_add(struct weft_op *op, struct weft_peer *peer);

/* Returns the send to peer number @index of @op, a broadcast; NULL: there is none. */
struct weft_op *wf_broadcast_send_to(const struct weft_op *op, size_t index);

#endif
