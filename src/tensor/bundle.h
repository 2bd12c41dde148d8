/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bundles: the tensors that come beside one message of a call.
 *
 * The message says how many there are, and each comes after it in a record of its own, with its
 * index.  When all have come they can be received, each once; tensors not received are refused
 * when the bundle is closed.  A tensor of a message that nobody waits for any more is refused at
 * once, so that nothing of it is kept.
 *
 * Threads: owner, but for references and reads of a bundle that is whole.
 */
#ifndef WF_BUNDLE_H
#define WF_BUNDLE_H

#include <stdatomic.h>
#include "tensor/receiving.h"
#include "util/map.h"

/* Bundles of a worker. */
struct wf_bundles {
	struct wf_unexpected_queue *unexpected_queue;
	struct wf_map map;
};

/* The name of a message: its call, as its caller counts, with @link. */
struct wf_bundle_name {
	struct wf_link *link;
	uint64_t call;
	bool reply; /* the message goes to the caller */
	uint64_t message;
};

/* A tensor of a bundle, as far as it is known before it is received. */
struct wf_bundled {
	struct weft_tensor tensor; /* without data */
	unsigned flags; /* WEFT_DEAD, WEFT_OPAQUE */
	uint64_t bytes;
	bool lost;      /* the sender has failed to send it, or took it back */
	struct wf_unexpected *unexpected; /* NULL: lost, received, or the bundle is closed */
	int64_t shape[];
};

struct wf_bundle {
	/* set by the owner */
	void (*whole)(void *owner); /* all tensors have come */
	void *owner;
	struct wf_loop_task task;   /* for use by the owner */

	/* private to bundle.c */
	struct wf_map_node node;
	struct wf_bundles *bundles; /* NULL: the bundle is closed */
	struct wf_bundle_name name; /* holds a reference to the link */
	atomic_uint refs;
	uint32_t count, came;
	struct wf_bundled *tensors[];
};

void wf_bundles_init(struct wf_bundles *bundles, struct wf_unexpected_queue *unexpected_queue);
/* Close each bundle that is left, and tear @bundles down. */
void wf_bundles_fini(struct wf_bundles *bundles);

/*
 * Await @count tensors, 1 at least, beside message @name; whole is never called inside.
 * *@bundle: with one reference.  -EBADMSG: they are awaited already.  -ENOMEM.
 */
int wf_bundle_open(struct wf_bundles *bundles, const struct wf_bundle_name *name, uint32_t count,
		   struct wf_bundle **bundle);

/* Refuse the tensors of @b that were not received.  Harmless when it is closed. */
void wf_bundle_close(struct wf_bundle *b);

/* Take a reference.  Threads: any. */
void wf_bundle_get(struct wf_bundle *b);

/* Drop a reference; the last one frees @b.  Threads: any. */
void wf_bundle_put(struct wf_bundle *b);

/* Receive tensor @index of a bundle that is whole by @r.  done follows, maybe inside. */
void wf_bundle_receive(struct wf_bundle *b, uint32_t index, struct wf_receiving *r);

/* Take ATTACHMENT records.  Threads: setup. */
void wf_bundles_route(struct wf_bundles *bundles, struct wf_routes *routes);

#endif
