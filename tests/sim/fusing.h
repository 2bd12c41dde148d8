/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sets of receives of a simulated run, and the tensors that are sent to them: planned from a
 * source of chance of their own, begun as time comes, and held to account.
 *
 * Each set has a step of its own, and a tensor for nearly every item, from one peer or from
 * several. Some sets are cancelled, or have little time, or their step ends; some items are
 * cancelled alone, or have a buffer that is too short.  The checks: each item is told once, before
 * the end of its set, and ends well only with the bytes of a tensor that no other item has got; a
 * set ends once, and well only if all items do, else as one of them; and an item whose tensor was
 * sent gets it, whatever becomes of the others.
 */
#ifndef WF_SIM_FUSING_H
#define WF_SIM_FUSING_H

#include "tests/sim/traffic.h"

struct wf_checker_config;

/* Plan sets, in some runs; other draws are as without. */
void wf_fusing_plan(const struct wf_traffic_config *config, const struct wf_checker_config *checks);

/* Do what is due.  Returns when the next thing is. */
uint64_t wf_fusing_run(uint64_t now);

/* Is nothing left to begin, or to end? */
bool wf_fusing_is_over(void);

/* Let every node that is left end the steps of all sets. */
void wf_fusing_end_steps(void);

/* Check the sets, and count operations in the tally, when nothing runs any more. */
void wf_fusing_finish(void);

/* Give up the handles, before the nodes close. */
void wf_fusing_release(void);
/* Free the buffers, after the nodes have closed. */
void wf_fusing_free(void);

#endif
