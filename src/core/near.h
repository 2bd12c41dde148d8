/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Near: memory near to what uses it.
 */
#ifndef WF_CORE_NEAR_H
#define WF_CORE_NEAR_H

#include <weft/weft.h>
#include "util/options.h"

/* What options say of it is sound.  Codes as wf_rules_open: recorded. */
int wf_near_check(const struct wf_options *options);

/* Choose, take and register.  Codes as weft_alloc_near: recorded.  Threads: any but workers. */
int wf_near_take(struct weft_node *node, size_t bytes, const struct weft_near_options *options,
		 void **memory);

/* Where @memory is, as far as placement->size goes.  -EINVAL: recorded.  Threads: any. */
int wf_near_place(struct weft_node *node, const void *memory, struct weft_placement *placement);

/* Every desk has closed, and no copy is under way: what there is still of such memory is given back. */
void wf_near_fini(struct weft_node *node);

/* Memory that is in no pool has one user more, or one less.  -EINVAL: it is no such memory. */
int wf_near_share(struct weft_node *node, const void *memory);
int wf_near_give(struct weft_node *node, const void *memory);

#endif
