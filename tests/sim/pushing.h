/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The landings of a simulated run, and the pushes of other nodes: planned from a source of chance
 * of their own, begun as time comes, and held to account.
 *
 * Tensors are taken as they land, held for a while, and given back.  The checks: each push ends
 * once and in time; a tensor that is taken is whole, comes once, and was pushed into that landing;
 * nothing changes in its slot while it is held; a push that ended well has its tensor taken, and
 * one that was not executed has not; and a closed landing's memory stays as it is.
 */
#ifndef WF_SIM_PUSHING_H
#define WF_SIM_PUSHING_H

#include "tests/sim/traffic.h"

struct wf_checker_config;

/* Plan landings, in some runs; other draws are as without. */
void wf_pushing_plan(const struct wf_traffic_config *config, const struct wf_checker_config *checks);

/* Do what is due.  Returns when the next thing is.  Time passes while a landing closes. */
uint64_t wf_pushing_run(uint64_t now);

/* Is nothing left to begin, to end, or to take? */
bool wf_pushing_is_over(void);

/* Check the pushes that have ended since the last look. */
void wf_pushing_look(void);

/* Close all landings and remote windows that are left. */
void wf_pushing_close(void);

/* Check the landings as a whole, and count pushes in the tally, when nothing runs any more. */
void wf_pushing_finish(void);

/* Note that node @number is about to die, as wf_traffic_bereave(). */
void wf_pushing_bereave(unsigned number);

/* Give up the handles, before the nodes close. */
void wf_pushing_release(void);
/* Free the buffers, after the nodes have closed. */
void wf_pushing_free(void);

#endif
