/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a step.
 *
 * The step of a tensor is a number that means the same on every node of a job.
 * One that failed is aborted, on all nodes; one that is done may be ended, on
 * each node for itself, so that nothing of it is kept.  Calls belong to no step.
 */
#ifndef WEFT_STEP_H
#define WEFT_STEP_H

#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * End with @status whatever is pending of @step, and what is begun later, on
 * this node and on every one that exchanges tensors of @step with it, directly
 * or through others.  The sentence of those operations has @message, which may be NULL and
 * is cut after 400 bytes.  Where the step was aborted already nothing changes:
 * the first abort that a node hears of counts.
 * -EINVAL: WEFT_OK, or no status.  -ENOMEM.  Threads: any, callback.
 */
WEFT_API int weft_step_abort(struct weft_node *node, uint64_t step, enum weft_status status,
			     const char *message);

/*
 * Nobody on this node uses @step any more.  What came and was not received is
 * dropped, pending operations end with CANCELLED, later ones with
 * FAILED_PRECONDITION, and what comes later is dropped and counted in
 * late_dropped.  Peers are not told; their sends that are not wanted end with
 * FAILED_PRECONDITION.  -ENOMEM.  Threads: any, callback.
 */
WEFT_API int weft_step_end(struct weft_node *node, uint64_t step);

#ifdef __cplusplus
}
#endif
#endif
