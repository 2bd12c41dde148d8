/* SPDX-License-Identifier: BSD-2-Clause */
/* In which state of the protocol something is, as the library's own fields say. */
#ifndef WF_SIM_STATES_H
#define WF_SIM_STATES_H

#include "tests/sim/tally.h"
#include "tests/sim/traffic.h"

/* Count in @tally what @fault hits: all between the two nodes, @leg and what serves it, or @op alone. */
void wf_states_count(struct wf_tally *tally, enum wf_fault fault, unsigned node, unsigned other);
void wf_states_count_leg(struct wf_tally *tally, enum wf_fault fault, const struct wf_leg *leg);
void wf_states_count_op(struct wf_tally *tally, enum wf_fault fault, const struct weft_op *op);

#endif
