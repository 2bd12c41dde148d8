/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a step ends: aborted by anybody for all nodes, or ended for this one.
 *
 * An abort is passed on from node to node, by each once and only as long as
 * it can be remembered, so that it reaches everybody and goes round for ever
 * nowhere.  The first that a node hears of a peer that takes part in the step (part.h)
 * counts.
 *
 * Threads: owner.
 */
#ifndef WF_ENDING_H
#define WF_ENDING_H

#include "tensor/channel.h"

/* This node aborts or ends the step @fresh.  Takes it.  Of a step that was over in the same way nothing changes. */
void wf_ending_abort(struct wf_channels *c, struct wf_step *fresh);
void wf_ending_end(struct wf_channels *c, struct wf_step *fresh);

/*
 * ABORT records are taken.  One of a peer that takes no part in the step ends nothing but what
 * that peer has sent itself.  Threads: setup.
 */
void wf_ending_route(struct wf_channels *c, struct wf_routes *routes);

/* The peer of @part, which has aborted the step before, takes part in it now.  -ENOMEM: nothing was done. */
int wf_ending_heard(struct wf_channels *c, struct wf_part *part);

/* @link has a rail (again): a new peer is told of the aborts that are remembered. */
void wf_ending_up(struct wf_channels *c, struct wf_link *link);

#endif
