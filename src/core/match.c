/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/match.h"

#include <errno.h>
#include <string.h>

#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/tensor.h"
#include "core/worker.h"

/* Describe @a, as far as info->size goes. */
static void describe(const struct wf_unexpected *a, struct weft_probe_info *info)
{
	const struct wf_record_tensor *t = &a->record;
	struct wf_link *link = wf_link_real(a->link);
	struct weft_probe_info known = {
		.size = info->size,
		/* A link that has just taken the place of another gets that one's peer soon. */
		.peer = link->user ? link->user : a->link->user,
		.bytes = t->body.bytes,
		.flags = t->flags & (WEFT_DEAD | WEFT_OPAQUE), /* others are the wire's own */
		.dtype = t->dtype,
		.ndim = t->rank,
	};

	wf_peer_tell(known.peer);
	for (unsigned i = 0; i < t->rank; i++)
		known.shape[i] = wf_record_tensor_dim(t, i);
	memcpy(info, &known, WF_MIN(info->size, sizeof(known)));
}

/* Lock what waits at the worker that has the link of @peer; NULL: at worker @number of @node. */
static struct wf_worker *lock(struct weft_node *node, const struct weft_peer *peer, unsigned number)
{
	for (;;) {
		struct wf_worker *worker = peer ? peer->at : &node->workers[number];

		pthread_mutex_lock(&worker->unexpected_queue.lock);
		if (!peer || peer->at == worker)
			return worker;
		pthread_mutex_unlock(&worker->unexpected_queue.lock);
	}
}

int wf_match_probe(struct weft_node *node, struct weft_peer *peer, uint64_t step, const void *key,
		   size_t key_bytes, struct weft_probe_info *info)
{
	const struct wf_unexpected *a = NULL;
	int err = wf_tensor_check_channel(node, peer, key, key_bytes);

	if (err)
		return err;
	if (!key)
		key = "";
	for (unsigned i = 0; i < (peer ? 1 : node->worker_count) && !a; i++) {
		struct wf_worker *worker = lock(node, peer, i);

		/* No tensor has come from a peer without a link. */
		if (!peer || peer->link)
			a = wf_channels_first(&worker->channels,
					      peer ? wf_link_real(peer->link) : NULL, step, key,
					      (uint16_t)key_bytes);
		if (a && info)
			describe(a, info);
		pthread_mutex_unlock(&worker->unexpected_queue.lock);
	}
	return a ? 0 : -EAGAIN;
}

/* Tell @key, and its length if a tensor of that key is known. */
static const void *tell(const void *key, size_t bytes, size_t *key_bytes)
{
	if (key_bytes)
		*key_bytes = key ? bytes : 0;
	return key;
}

const void *wf_match_key(const struct weft_op *op, size_t *key_bytes)
{
	const struct wf_receiving *r = &op->recv.receiving;

	if (op->class->kind == WF_OP_RECV_MANY)
		return tell(op->recv_many.key, op->recv_many.key_bytes, key_bytes);
	/* The key of an attachment is the number of its message, and not the program's. */
	if (op->class->kind != WF_OP_RECV || r->attached ||
	    (r->flags & WEFT_ANY_KEY && !wf_op_ended(op)))
		return tell(NULL, 0, key_bytes);
	return tell(r->key, r->key_bytes, key_bytes);
}
