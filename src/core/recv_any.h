/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive from any: one worker's part of a receive from any peer, in a node of several workers.
 */
#ifndef WF_CORE_RECV_ANY_H
#define WF_CORE_RECV_ANY_H

#include <weft/weft.h>
#include "util/error.h"

struct wf_worker;

/* Make a part for each worker, once all else of the receive is set.  -ENOMEM. */
int wf_recv_any_open(struct weft_op *op);

/* Drop the references of the parts of @op, which will not be submitted. */
void wf_recv_any_drop(struct weft_op *op);

/* Begin the parts of other workers, ahead of any later receive there.  Threads: any, callback. */
void wf_recv_any_submit(struct weft_op *op, uint64_t now_ns); /* @now_ns: see wf_turn_run */

/* Begin the part of the operation's own worker, also in a closing node.  Threads: owner. */
void wf_recv_any_start(struct weft_op *op);

/* End the receive early because of @e.  Threads: owner. */
void wf_recv_any_stop(struct weft_op *op, const struct wf_error *e);

/* Implement starve, describe_wait and progress of struct wf_op_class. */
void wf_recv_any_starve(struct weft_op *op, struct wf_worker *worker, const struct wf_error *e);
void wf_recv_any_describe(const struct weft_op *op, char *text, size_t bytes);
uint64_t wf_recv_any_progress(struct weft_op *op);

#endif
