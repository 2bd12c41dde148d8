/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bundles: the tensors that come beside one message of a call.
 *
 * The message says how many there are, and each comes after it in a record of its own,
 * that says which one it is.  When all have come they can be received, each once; those
 * that are not are refused when the bundle is closed.  A tensor of a message that nobody
 * waits for any more is refused at once, so that nothing of it is kept.
 *
 * Threads: owner, but for references and what is read of a bundle that is whole.
 */
#ifndef WF_BUNDLE_H
#define WF_BUNDLE_H

#include <stdatomic.h>
#include "tensor/receiving.h"
#include "util/map.h"

/* Of a worker. */
struct wf_bundles {
	struct wf_arrivals *arrivals;
	struct wf_map map;
};

/* Which message: by its call, as its caller counts, with @link. */
struct wf_bundle_name {
	struct wf_link *link;
	uint64_t call;
	bool reply; /* it goes to the caller */
	uint64_t message;
};

/* What is known of a tensor before it is received. */
struct wf_bundled {
	struct weft_tensor tensor; /* without data */
	unsigned flags; /* WEFT_DEAD, WEFT_OPAQUE */
	uint64_t bytes;
	bool lost;      /* its sender has failed to send it, or took it back */
	struct wf_arrival *arrival; /* NULL: it is lost, was received, or the bundle is closed */
	int64_t shape[];
};

struct wf_bundle {
	/* set by the owner */
	void (*whole)(void *owner); /* all have come */
	void *owner;
	struct wf_task task;        /* for it to use */

	/* its own */
	struct wf_map_node node;
	struct wf_bundles *bundles; /* NULL: it is closed */
	struct wf_bundle_name name; /* with a reference to the link */
	atomic_uint refs;
	uint32_t count, came;
	struct wf_bundled *tensors[];
};

void wf_bundles_init(struct wf_bundles *bundles, struct wf_arrivals *arrivals);
/* Closes each that is left. */
void wf_bundles_fini(struct wf_bundles *bundles);

/*
 * @count tensors, 1 at least, will come beside message @name; whole is never called inside.
 * *@bundle: with one reference.  -EBADMSG: they are awaited already.  -ENOMEM.
 */
int wf_bundle_open(struct wf_bundles *bundles, const struct wf_bundle_name *name, uint32_t count,
		   struct wf_bundle **bundle);

/* Nobody receives any more of it.  Harmless when it is closed. */
void wf_bundle_close(struct wf_bundle *b);

/* References.  Threads: any. */
void wf_bundle_get(struct wf_bundle *b);
void wf_bundle_put(struct wf_bundle *b);

/* @r gets tensor @index of a bundle that is whole.  done follows, maybe inside. */
void wf_bundle_receive(struct wf_bundle *b, uint32_t index, struct wf_receiving *r);

/* Bundles take ATTACHMENT records.  Threads: setup. */
void wf_bundles_route(struct wf_bundles *bundles, struct wf_routes *routes);

#endif
