/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory: chunks of the pool of whichever desk.
 */
#ifndef WF_CORE_MEMORY_H
#define WF_CORE_MEMORY_H

#include <weft/weft.h>

struct wf_desk;

int wf_memory_take(struct weft_node *node, struct wf_desk *first, size_t bytes, void **chunk);
int wf_memory_share(struct weft_node *node, const void *at, size_t bytes, void **chunk);
/* -EINVAL: it is of no pool of this node. */
int wf_memory_give(struct weft_node *node, void *chunk);

/* Memory of any kind that was given to a user has one user more.  -EINVAL: recorded; or one less. */
int wf_memory_retain(struct weft_node *node, void *memory);
void wf_memory_free(struct weft_node *node, void *memory);

#endif
