/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/internal.h"

#include <errno.h>

int weft_alloc(struct weft_node *node, size_t bytes, void **memory)
{
	struct wf_pool *pool = &node->desk.worker.pool;
	int err = wf_node_check(node);

	if (err)
		return err;
	err = wf_pool_take(pool, bytes, memory);
	if (err == -ENOMEM)
		return wf_last_set(err, "the system has no memory for %zu bytes", bytes);
	if (err)
		return wf_last_set(-ENOBUFS,
				   "the pool has no %zu bytes left of its %llu (WEFT_POOL_BYTES)",
				   bytes, (unsigned long long)pool->budget_bytes);
	return 0;
}

void weft_free(struct weft_node *node, void *memory)
{
	struct wf_desk *desk = &node->desk;

	if (!memory || wf_node_check(node))
		return;
	if (!wf_pool_give(&desk->worker.pool, memory))
		wf_worker_wake(&desk->worker); /* somebody may wait for it */
	else
		(void)wf_view_give(&desk->transfer.views, memory);
}
