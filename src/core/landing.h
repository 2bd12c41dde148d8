/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Landing: the object behind struct weft_landing, and the service by which its slots are announced
 * (landings.proto).
 *
 * A landing is a window whose puts are looked at before their bodies are read: each must go into a
 * slot that is announced to the peer, with the note of wire/landed.h.  The slot is taken from then
 * on, until the put fails or the operation that took the tensor is freed (landing_next.h).  A
 * sender is a stream of the service, at the worker of its peer.
 *
 * Threads: any, callback, unless a function says otherwise.
 */
#ifndef WF_CORE_LANDING_H
#define WF_CORE_LANDING_H

#include <stdatomic.h>
#include <weft/weft.h>
#include "core/shares.h"

struct weft_landing {
	struct wf_list node;        /* in the node's landings, until it closes */
	struct weft_node *owner;
	struct weft_window *window;
	void *memory;
	size_t slot_bytes;
	atomic_uint refs;           /* the user's, and one of each sender and operation */
	bool closed;                /* under shares.lock: senders end */
	struct wf_shares shares;
};

/* The landings of a node. */
struct wf_landings {
	struct wf_list all; /* under the node's lock */
	atomic_bool serves; /* the service is served, or about to be */
};

/* Open a landing.  Failures are recorded. */
int wf_landing_open(struct weft_node *node, void *memory, size_t slot_bytes, size_t slots,
		    struct weft_landing **landing);

/* Close @landing, whose memory is quiet then.  -EOWNERDEAD: recorded.  Threads: any. */
int wf_landing_close(struct weft_landing *landing);

/* End the senders of @node, which drains.  Threads: any. */
void wf_landing_drain(struct weft_node *node);

/* Free the landings of @node, whose windows and operations are gone. */
void wf_landing_forget(struct weft_node *node);

void wf_landing_get(struct weft_landing *landing);
void wf_landing_put(struct weft_landing *landing);

#endif
