/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a step.
 *
 * The step of a tensor is a number that means the same on every node of a job.  A step that failed
 * is aborted, on all nodes; a step that is done may be ended, on each node for itself, so that
 * nothing of it is kept.  Calls belong to no step.
 */
#ifndef WEFT_STEP_H
#define WEFT_STEP_H

#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * End with @status every operation of @step, pending now or begun later, on this node and on every
 * node that exchanges tensors of @step with it, directly or through others.  The sentence of those
 * operations has @message, which may be NULL and is cut after 400 bytes.  A step that was aborted
 * already stays as it is: the first abort that a node hears of counts.
 * -EINVAL: @status is WEFT_OK, or no status.  -ENOMEM.  Threads: any, callback.
 */
WEFT_API int weft_step_abort(struct weft_node *node, uint64_t step, enum weft_status status,
			     const char *message);

/*
 * Say that nobody on this node uses @step any more.  Tensors that came and were not received are
 * dropped, pending operations end with CANCELLED, later ones with FAILED_PRECONDITION, and tensors
 * that come later are dropped and counted in late_dropped.  Peers are not told, and their sends end
 * with WEFT_OK.  -ENOMEM.  Threads: any, callback.
 */
WEFT_API int weft_step_end(struct weft_node *node, uint64_t step);

#ifdef __cplusplus
}
#endif
#endif
