/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Step relay: the end of a step, by this node or by a peer, told to all workers.
 */
#ifndef WF_STEP_RELAY_H
#define WF_STEP_RELAY_H

#include <weft/weft.h>
#include "tensor/step_end.h"

/* Abort @step on all workers.  -ENOMEM: recorded, nothing was done.  Threads: any, callback. */
int wf_step_relay_abort(struct weft_node *node, uint64_t step, enum weft_status status,
			const char *message);
/* End @step on all workers.  -ENOMEM: recorded, nothing was done.  Threads: any, callback. */
int wf_step_relay_end(struct weft_node *node, uint64_t step);

/* Tell all other workers of @step, which a peer has ended and told @worker of.  -ENOMEM. */
int wf_step_relay_tell(void *worker, const struct wf_step *step);

#endif
