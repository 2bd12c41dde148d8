/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Near: memory near to the devices that use it.
 */
#ifndef WF_CORE_NEAR_H
#define WF_CORE_NEAR_H

#include <weft/weft.h>
#include "util/list.h"
#include "util/options.h"

struct wf_orchestrator;

/* Memory of a node that is near to devices; under the node's lock. */
struct wf_near {
	struct wf_orchestrator *orchestrator; /* NULL: not needed yet */
	struct wf_list all; /* all memory of weft_alloc_near */
};

/* Check the rules in @options.  Codes as wf_rules_open: recorded. */
int wf_near_check(const struct wf_options *options);

/* Take and register memory.  Codes as weft_alloc_near: recorded.  Threads: any but workers. */
int wf_near_take(struct weft_node *node, size_t bytes, const struct weft_near_options *options,
		 void **memory);

/* Tell where @memory is, as far as placement->size goes.  -EINVAL: recorded.  Threads: any. */
int wf_near_place(struct weft_node *node, const void *memory, struct weft_placement *placement);

/* Give back what is left of such memory, when all workers have closed and no copy is under way. */
void wf_near_fini(struct weft_node *node);

/* Add a user to @memory that is in no pool.  -EINVAL: it is no such memory. */
int wf_near_share(struct weft_node *node, const void *memory);
/* Remove a user of @memory that is in no pool.  -EINVAL: it is no such memory. */
int wf_near_give(struct weft_node *node, const void *memory);

#endif
