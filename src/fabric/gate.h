/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gate before an endpoint that several processes reach into through shared
 * memory: its owner, who looks what has come, and whoever sends to it.
 *
 * libfabric 1.17's shm has a spinning lock there.  Who is stopped or killed
 * inside leaves it held, and all others spin in libfabric until he goes on, or
 * for ever.  So everyone goes through the gate first, one at a time, and who
 * finds it shut comes back later.  Where it stays shut the owner opens another
 * endpoint, and nobody touches the old one any more.
 *
 * The page of the gate is the owner's; peers map it and write to it.  What they
 * write decides only who waits.
 *
 * Threads: owner.
 */
#ifndef WF_GATE_H
#define WF_GATE_H

#include <stdatomic.h>

#include "util/sealed.h"

#define WF_GATE_BYTES 4096

struct wf_gate_page {
	uint64_t magic;
	_Atomic uint32_t inside; /* 1: somebody is */
};

struct wf_gate {
	struct wf_sealed shared;
	struct wf_gate_page *page; /* NULL: there is no gate, and anybody may go in */
};

/* Our own.  As wf_sealed_open. */
int wf_gate_open(struct wf_gate *gate);

/* That of process @pid, which has it as @fd.  -ESRCH; -EPERM; -EBADMSG: it is something else. */
int wf_gate_take(struct wf_gate *gate, uint32_t pid, int fd);

/* Accepts a zeroed one. */
void wf_gate_close(struct wf_gate *gate);

/* false: somebody is inside, and has been for as long as we looked. */
bool wf_gate_enter(struct wf_gate *gate);

static inline void wf_gate_leave(struct wf_gate *gate)
{
	if (gate->page)
		atomic_store_explicit(&gate->page->inside, 0, memory_order_release);
}

#endif
