/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attachment set: the tensors that come beside one message of a call.
 *
 * The message says how many there are, and each comes after it in a record of its own, with its
 * index.  When all have come they can be received, each once; tensors not received are refused
 * when the set is closed.  A tensor of a message that nobody waits for any more is refused at
 * once, so that nothing of it is kept.
 *
 * Threads: owner, but for references and reads of a set that is whole.
 */
#ifndef WF_ATTACHMENT_SET_H
#define WF_ATTACHMENT_SET_H

#include <stdatomic.h>
#include "tensor/receiving.h"
#include "util/map.h"

/* Attachment sets of a worker. */
struct wf_attachment_sets {
	struct wf_unexpected_queue *unexpected_queue;
	struct wf_map map;
};

/* The name of a message: its call, as its caller counts, in one life of the peer of @link. */
struct wf_attachment_set_name {
	struct wf_link *link;
	uint64_t life; /* id of the link, another one in each life of the peer */
	uint64_t call;
	bool reply; /* the message goes to the caller */
	uint64_t message;
};

/* A tensor of a set, as far as it is known before it is received. */
struct wf_attachment_set_tensor {
	struct weft_tensor tensor; /* without data */
	unsigned flags; /* WEFT_DEAD, WEFT_OPAQUE */
	uint64_t bytes;
	bool lost;      /* the sender has failed to send it, or took it back */
	struct wf_unexpected *unexpected; /* NULL: lost, received, or the set is closed */
	int64_t shape[];
};

struct wf_attachment_set {
	/* set by the owner */
	void (*whole)(void *owner); /* all tensors have come */
	void *owner;
	struct wf_loop_task task;   /* for use by the owner */

	/* private to attachment_set.c */
	struct wf_map_node node;
	struct wf_attachment_sets *sets; /* NULL: the set is closed */
	struct wf_attachment_set_name name; /* holds a reference to the link */
	atomic_uint refs;
	uint32_t count, came;
	struct wf_attachment_set_tensor *tensors[];
};

void wf_attachment_sets_init(struct wf_attachment_sets *sets,
			     struct wf_unexpected_queue *unexpected_queue);
/* Close each set that is left, and tear @sets down. */
void wf_attachment_sets_fini(struct wf_attachment_sets *sets);

/*
 * Await @count tensors, 1 at least, beside message @name; whole is never called inside.
 * *@attachment_set: with one reference.  -EBADMSG: they are awaited already.  -ENOMEM.
 * -ENOBUFS: the account of the peer has no room for so many, and never will.
 */
int wf_attachment_set_open(struct wf_attachment_sets *sets,
			   const struct wf_attachment_set_name *name, uint32_t count,
			   struct wf_attachment_set **attachment_set);

/* Refuse the tensors of @set that were not received.  Harmless when it is closed. */
void wf_attachment_set_close(struct wf_attachment_set *set);

/* Take a reference.  Threads: any. */
void wf_attachment_set_get(struct wf_attachment_set *set);

/* Drop a reference; the last one frees @set.  Threads: any. */
void wf_attachment_set_put(struct wf_attachment_set *set);

/* Receive tensor @index of a set that is whole by @r.  done follows, maybe inside. */
void wf_attachment_set_receive(struct wf_attachment_set *set, uint32_t index,
			       struct wf_receiving *r);

/* Take ATTACHMENT records.  Threads: setup. */
void wf_attachment_sets_route(struct wf_attachment_sets *sets, struct wf_routes *routes);

#endif
