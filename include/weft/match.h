/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching: what waits for a receive, without taking it.
 */
#ifndef WEFT_MATCH_H
#define WEFT_MATCH_H

#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor that has been sent here, and waits for a receive. */
struct weft_probe_info {
	size_t size;
	struct weft_peer *peer; /* the sender; open until the node closes, not to be closed */
	uint64_t bytes;         /* length of the body; 0: it is dead, or has no elements */
	unsigned flags;         /* WEFT_DEAD, WEFT_OPAQUE */
	struct weft_dtype dtype;
	int32_t ndim;
	int64_t shape[WEFT_RANK_MAX]; /* ndim lengths; the rest is 0 */
};
#define WEFT_PROBE_INFO_INIT WEFT_SIZED_INIT(struct weft_probe_info)

/*
 * Ask whether a tensor of @step and @key, from @peer or from any when @peer is NULL, waits for a
 * receive now.  Never blocks, and takes nothing: the tensor stays for a later receive, unless that
 * step ends or the sender takes it back.  If several wait, the answer is the one that a receive of
 * the same @peer, @step and @key would get; from any peer at a node of several workers, it is the
 * first of one worker's.  A tensor that a receive has got, and has not ended for, does not wait.
 *
 * A peer that was opened by its address is known as a sender once an operation with it was begun.
 *
 * @info gets the description, as far as its size goes; NULL: none is wanted.  -EAGAIN: no such
 * tensor waits.  -EINVAL: the peer belongs to another node, the key is too long or the size is not
 * set.  Threads: any, callback.
 */
WEFT_API int weft_probe(struct weft_node *node, struct weft_peer *peer, uint64_t step,
			const void *key, size_t key_bytes, struct weft_probe_info *info);

/*
 * Returns the key that the receive @op has, valid until weft_op_free(op), and its length in
 * @key_bytes, which may be NULL.  With WEFT_ANY_KEY it is the key of the tensor that was met; NULL:
 * none was met, or the receive has not ended.  NULL also for other operations than receives.
 * Threads: any, callback.
 */
WEFT_API const void *weft_op_key(const struct weft_op *op, size_t *key_bytes);

#ifdef __cplusplus
}
#endif
#endif
