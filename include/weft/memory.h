/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that transfers need not register: the node's pool.
 */
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Take @bytes from the node's pool, aligned to 64.  Free with weft_free.
 * -ENOBUFS: the pool's budget is spent (WEFT_POOL_BYTES raises it).
 * Threads: any, callback.
 */
WEFT_API int weft_alloc(struct weft_node *node, size_t bytes, void **memory);

/* Give it back; accepts NULL.  No operation may be using it.  Threads: any, callback. */
WEFT_API void weft_free(struct weft_node *node, void *memory);

#ifdef __cplusplus
}
#endif
#endif
