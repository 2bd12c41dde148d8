/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker of a simulated run: holds every operation, byte and resource to
 * account.  It asserts; a line says what was wrong.
 *
 * Each operation has exactly one outcome, by its deadline and the stated bound, those of
 * attachments included, for which their call waits;
 * no byte of its buffer moves after that; what was delivered is what was sent,
 * once and in the order of the channel or stream; what is looked at stays as it is as long as
 * that lasts, and is given back; a handler runs at most once for a call,
 * and not at all for one that says so; where nothing may harm it an operation
 * goes well; and when all is over nothing is held for anybody.
 */
#ifndef WF_SIM_CHECKER_H
#define WF_SIM_CHECKER_H

#include "tests/sim/tally.h"
#include "tests/sim/traffic.h"

struct wf_checker_config {
	bool connected;     /* the shape of rail */
	bool harmless;      /* no fault may cost anybody a peer */
	struct wf_tally *tally;
	uint64_t quiet_ns;  /* how long after its deadline an operation may end */
	uint64_t healed_ns; /* when the last fault is over that keeps word from anybody; 0: none does for long */
};

void wf_checker_start(const struct wf_checker_config *config);

/* Look at what has ended since. */
void wf_checker_look(void);

/* Give up what is looked at still. */
void wf_checker_let_go(void);

/* Nothing runs any more: look at channels and buffers as a whole, and at what @nodes still hold. */
void wf_checker_finish(unsigned nodes);

#endif
