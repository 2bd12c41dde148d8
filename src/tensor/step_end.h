/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a step: aborted by anybody for all nodes, or ended for this one.
 *
 * An abort is passed on from node to node, by each once and only as long as it can be
 * remembered, so that it reaches every node and never goes round for ever.  The first abort that
 * a node hears of a peer that takes part in the step (part.h) counts.
 *
 * Threads: owner.
 */
#ifndef WF_STEP_END_H
#define WF_STEP_END_H

#include "tensor/channel.h"

/*
 * Abort the step @fresh by this node; @heard: another worker has heard that of a peer.  Takes
 * @fresh.  Harmless when the step was aborted.
 */
void wf_step_end_abort(struct wf_channels *c, struct wf_step *fresh, bool heard);

/* End the step @fresh on this node.  Takes @fresh.  Harmless when the step has ended. */
void wf_step_end_here(struct wf_channels *c, struct wf_step *fresh);

/*
 * Take ABORT records.  An abort of a peer that takes no part in the step ends only tensors that
 * the peer has sent itself.  Threads: setup.
 */
void wf_step_end_route(struct wf_channels *c, struct wf_routes *routes);

/*
 * Obey an earlier abort by the peer of @part, which takes part in the step now.  -ENOMEM:
 * nothing was done.
 */
int wf_step_end_heard(struct wf_channels *c, struct wf_part *part);

/* Tell a new peer, whose @link has a rail (again), of the aborts that are remembered. */
void wf_step_end_up(struct wf_channels *c, struct wf_link *link);

#endif
