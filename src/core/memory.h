/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory: chunks of the pools of all workers of a node.
 */
#ifndef WF_CORE_MEMORY_H
#define WF_CORE_MEMORY_H

#include <weft/weft.h>
#include "util/error.h"

struct wf_worker;

int wf_memory_take(struct weft_node *node, struct wf_worker *first, size_t bytes, void **chunk);
int wf_memory_share(struct weft_node *node, const void *at, size_t bytes, void **chunk);
/* Give @chunk back to its pool.  -EINVAL: no pool of this node has it. */
int wf_memory_give(struct weft_node *node, void *chunk);

/* Set @e: the deadline passed while @bytes of the pool of @worker were missing.  Threads: any. */
void wf_memory_late(struct wf_worker *worker, uint64_t bytes, struct wf_error *e);

/* Add a user to @memory, of any kind that was given to a user.  -EINVAL: recorded. */
int wf_memory_retain(struct weft_node *node, void *memory);
/* Remove a user of @memory; the last one frees it. */
void wf_memory_free(struct weft_node *node, void *memory);

#endif
