/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/match.h"

#include <errno.h>
#include <string.h>

#include "core/node.h"
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
		.flags = t->flags,
		.dtype = t->dtype,
		.ndim = t->rank,
	};

	for (unsigned i = 0; i < t->rank; i++)
		known.shape[i] = wf_record_tensor_dim(t, i);
	memcpy(info, &known, WF_MIN(info->size, sizeof(known)));
}

/* Lock what waits at the worker that has the link of @peer. */
static struct wf_worker *lock_home(const struct weft_peer *peer)
{
	for (;;) {
		struct wf_worker *worker = peer->at;

		pthread_mutex_lock(&worker->unexpected_queue.lock);
		if (peer->at == worker)
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
		struct wf_worker *worker = peer ? lock_home(peer) : &node->workers[i];

		if (!peer)
			pthread_mutex_lock(&worker->unexpected_queue.lock);
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
