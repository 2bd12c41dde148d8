/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/gate.h"

#include <errno.h>
#include <unistd.h>

#define MAGIC 0x3265746167746677ull
#define TRIES 1000 /* 0.3 us in vain; by then the process inside may have been stopped there */

int wf_gate_open(struct wf_gate *gate)
{
	int err = wf_sealed_open(&gate->shared, "weft-gate", WF_GATE_BYTES, WF_SEALED_ALL);

	if (err)
		return err;
	gate->page = gate->shared.base;
	gate->page->magic = MAGIC;
	gate->heard = 0;
	return 0;
}

int wf_gate_take(struct wf_gate *gate, int fd)
{
	int err = wf_sealed_map(&gate->shared, fd, WF_GATE_BYTES, WF_SEALED_ALL);

	if (err)
		return err;
	gate->page = gate->shared.base;
	if (gate->shared.bytes == WF_GATE_BYTES && gate->page->magic == MAGIC)
		return 0;
	wf_gate_close(gate);
	return -EBADMSG;
}

void wf_gate_close(struct wf_gate *gate)
{
	wf_sealed_close(&gate->shared);
	gate->page = NULL;
}

bool wf_gate_enter(struct wf_gate *gate)
{
	if (!gate->page)
		return true;
	for (int i = 0; i < TRIES; i++) {
		uint32_t nobody = 0;

		if (!atomic_load_explicit(&gate->page->inside, memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&gate->page->inside, &nobody, 1,
							    memory_order_acquire,
							    memory_order_relaxed))
			return true;
	}
	return false;
}
