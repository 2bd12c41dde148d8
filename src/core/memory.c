/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/memory.h"

#include <errno.h>

#include "core/last.h"
#include "core/near.h"
#include "core/node.h"
#include "core/worker.h"

int wf_memory_take(struct weft_node *node, struct wf_worker *first, size_t bytes, void **chunk)
{
	int err = wf_pool_take(&first->engine.pool, bytes, chunk);

	for (unsigned i = 0; err && i < node->worker_count; i++)
		if (&node->workers[i] != first &&
		    !wf_pool_take(&node->workers[i].engine.pool, bytes, chunk))
			return 0;
	if (err == -ENOMEM)
		return wf_last_set(err, "the system has no memory for %zu bytes", bytes);
	if (err)
		return wf_last_set(-ENOBUFS,
				   "the pool has no %zu bytes left of its %llu (WEFT_POOL_BYTES)",
				   bytes, (unsigned long long)first->engine.pool.budget_bytes *
					  node->worker_count);
	return 0;
}

int wf_memory_share(struct weft_node *node, const void *at, size_t bytes, void **chunk)
{
	for (unsigned i = 0; i < node->worker_count; i++)
		if (!wf_pool_share(&node->workers[i].engine.pool, at, bytes, chunk))
			return 0;
	return -EINVAL;
}

int wf_memory_give(struct weft_node *node, void *chunk)
{
	for (unsigned i = 0; i < node->worker_count; i++) {
		struct wf_engine *engine = &node->workers[i].engine;

		if (!wf_pool_give(&engine->pool, chunk)) {
			wf_loop_wake(&engine->loop); /* an operation may wait for the memory */
			return 0;
		}
	}
	return -EINVAL;
}

void wf_memory_free(struct weft_node *node, void *memory)
{
	if (!wf_memory_give(node, memory) || !wf_near_give(node, memory))
		return;
	for (unsigned i = 0; i < node->worker_count; i++)
		if (!wf_view_give(&node->workers[i].transfer.views, memory))
			return;
}

void wf_memory_late(struct wf_worker *worker, uint64_t bytes, struct wf_error *e)
{
	char wait[WF_POOL_TEXT_BYTES];

	wf_pool_describe(&worker->engine.pool, bytes, wait);
	wf_error_set(e, -ENOBUFS, "the deadline passed: %s", wait);
}

int wf_memory_retain(struct weft_node *node, void *memory)
{
	void *chunk;

	if (!wf_near_share(node, memory))
		return 0;
	if (wf_memory_share(node, memory, 1, &chunk))
		return wf_last_set(-EINVAL, "only memory of this node can be retained");
	if (chunk == memory)
		return 0;
	(void)wf_memory_give(node, chunk);
	return wf_last_set(-EINVAL, "memory is retained by its first byte's address, as it is freed");
}
