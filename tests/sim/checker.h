/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker of a simulated run: holds every operation, byte and resource to
 * account.  It asserts; a line says what was wrong.
 *
 * Each operation has exactly one outcome, by its deadline and the stated bound, those of
 * attachments included, for which their call waits; no byte of its buffer moves after that;
 * delivered bytes are those that were sent, once and in the order of the channel or stream; a
 * view stays as it is as long as it lasts, and is given back; a handler runs at most once for a
 * call, and not at all for a call that says so; an operation that nothing may harm goes well;
 * and when all is over nothing is held for anybody.  Where bodies are sealed no key is ever open to
 * the buffer of a send.
 */
#ifndef WF_SIM_CHECKER_H
#define WF_SIM_CHECKER_H

#include "tests/sim/tally.h"
#include "tests/sim/traffic.h"

struct wf_checker_config {
	bool connected;     /* the shape of rail */
	bool harmless;      /* no fault may cost anybody a peer */
	bool sealed;        /* no rail may read a body, and none comes damaged */
	struct wf_tally *tally;
	uint64_t quiet_ns;  /* time after its deadline in which an operation may end */
	uint64_t healed_ns; /* end of the last long silence by a fault; 0: there is none */
};

void wf_checker_start(const struct wf_checker_config *config);

/* Check the operations that have ended since the last look. */
void wf_checker_look(void);

/* Give up all views that are still held. */
void wf_checker_let_go(void);

/* Check channels and buffers as a whole, and what @nodes still hold, when nothing runs any more. */
void wf_checker_finish(unsigned nodes);

#endif
