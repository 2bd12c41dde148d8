/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Match: what any thread may ask of the tensors that wait at the workers.
 *
 * Matching belongs to each worker's thread; a lock, unexpected_queue.lock, is held while the list
 * of what waits changes, and while another thread looks.
 */
#ifndef WF_CORE_MATCH_H
#define WF_CORE_MATCH_H

#include <weft/weft.h>

/*
 * Describe the tensor of a channel that waits for a receive in @info, maybe NULL, up to its size.
 * -EAGAIN: none does.  -EINVAL: recorded.  Threads: any, callback.
 */
int wf_match_probe(struct weft_node *node, struct weft_peer *peer, uint64_t step, const void *key,
		   size_t key_bytes, struct weft_probe_info *info);

/* Returns the key of the receive @op as weft_op_key() does.  Threads: any, callback. */
const void *wf_match_key(const struct weft_op *op, size_t *key_bytes);

#endif
