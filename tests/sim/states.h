/* SPDX-License-Identifier: BSD-2-Clause */
/* States of the protocol, as the library's own fields say. */
#ifndef WF_SIM_STATES_H
#define WF_SIM_STATES_H

#include "tests/sim/tally.h"
#include "tests/sim/traffic.h"

/*
 * Count in @tally the states that @fault hits: of all between the two nodes, of @leg and its
 * server call, or of @op alone.
 */
void wf_states_count(struct wf_tally *tally, enum wf_fault fault, unsigned node, unsigned other);
void wf_states_count_leg(struct wf_tally *tally, enum wf_fault fault, const struct wf_leg *leg);
void wf_states_count_op(struct wf_tally *tally, enum wf_fault fault, const struct weft_op *op);

#endif
