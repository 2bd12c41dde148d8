/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps: the end of a step on all workers, by this node or by a peer.
 */
#ifndef WF_CORE_STEPS_H
#define WF_CORE_STEPS_H

#include <weft/weft.h>
#include "tensor/step_end.h"

/* Abort @step on all workers.  -ENOMEM: recorded, nothing was done.  Threads: any, callback. */
int wf_steps_abort(struct weft_node *node, uint64_t step, enum weft_status status,
		   const char *message);
/* End @step on all workers.  -ENOMEM: recorded, nothing was done.  Threads: any, callback. */
int wf_steps_end(struct weft_node *node, uint64_t step);

/* Tell all other workers of @step, which a peer has ended and told @worker of.  -ENOMEM. */
int wf_steps_relay(void *worker, const struct wf_step *step);

#endif
