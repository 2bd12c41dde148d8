/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ask: a receive from any peer in a node of several workers, each of which may get it.
 */
#ifndef WF_CORE_ASK_H
#define WF_CORE_ASK_H

#include <weft/weft.h>
#include "util/error.h"

struct wf_desk;

/* An ask for each desk, when all else of the receive is set.  -ENOMEM. */
int wf_ask_open(struct weft_op *op);

/* Begin those of other desks, so that no later receive is there first.  Threads: any, callback. */
void wf_ask_submit(struct weft_op *op, uint64_t now_ns); /* as wf_turn_run */

/* Begin that of the operation's desk, also one of a node that closes.  Threads: owner. */
void wf_ask_start(struct weft_op *op);
void wf_ask_stop(struct weft_op *op, const struct wf_error *e);

/* As the class's. */
void wf_ask_starve(struct weft_op *op, struct wf_desk *desk, const struct wf_error *e);
void wf_ask_describe(const struct weft_op *op, char *text, size_t bytes);
uint64_t wf_ask_progress(struct weft_op *op);

#endif
