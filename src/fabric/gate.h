/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gate: a try-lock before an endpoint that several processes reach into through shared
 * memory: the owner, which receives there, and the peers that send.
 *
 * libfabric's shm has a spinning lock there.  A process that is stopped or killed inside leaves
 * that lock held, and all others spin in libfabric until it goes on, or for ever.  So every
 * process passes the gate first, one at a time, and comes back later where the gate is shut.
 * Where the gate stays shut the owner opens another endpoint, and nobody touches the old one
 * any more.
 *
 * An owner that spins would take the gate from its senders all the time.  So a sender knocks
 * before it leaves, on a cache line that the owner only reads, and the owner goes in when
 * somebody has knocked.  Order needs no care: a process that goes in sees all that was done
 * inside before, so a knock is a hint and no more.  A sender that dies between message and
 * knock leaves the gate shut.  The owner must look without a knock, too: while the provider
 * holds operations of its own, before a sleep, and now and then, for senders that died or do
 * not knock.
 *
 * The page of the gate is the owner's; peers map it and write to it.  Their writes decide only
 * which process waits.
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
	_Atomic uint32_t inside; /* 1: a process is inside */
	_Alignas(64) _Atomic uint32_t knocks; /* a running total; written by the process inside */
};

struct wf_gate {
	struct wf_sealed shared;
	struct wf_gate_page *page; /* NULL: there is no gate, and any process may go in */
	uint32_t heard;            /* value of @knocks that the owner has answered */
};

/* Open our own gate.  Codes as of wf_sealed_open. */
int wf_gate_open(struct wf_gate *gate);

/* Map a peer's gate by @fd, which is closed in any case.  -EBADMSG: @fd is no gate. */
int wf_gate_take(struct wf_gate *gate, int fd);

/* Unmap @gate; accepts a zeroed one. */
void wf_gate_close(struct wf_gate *gate);

/* Go in.  false: another process was inside, for as long as we looked. */
bool wf_gate_enter(struct wf_gate *gate);

static inline void wf_gate_leave(struct wf_gate *gate)
{
	if (gate->page)
		atomic_store_explicit(&gate->page->inside, 0, memory_order_release);
}

static inline uint32_t wf_gate_knocks(const struct wf_gate *gate)
{
	return atomic_load_explicit(&gate->page->knocks, memory_order_relaxed);
}

/* Knock, as a sender that is inside and leaves a message there. */
static inline void wf_gate_knock(struct wf_gate *gate)
{
	if (gate->page)
		atomic_store_explicit(&gate->page->knocks, wf_gate_knocks(gate) + 1,
				      memory_order_relaxed);
}

/* Answer all knocks, as the owner that is inside and has found no more. */
static inline void wf_gate_hear(struct wf_gate *gate)
{
	if (gate->page)
		gate->heard = wf_gate_knocks(gate);
}

/* May the endpoint have something for its owner?  Always true where there is no gate. */
static inline bool wf_gate_knocked(const struct wf_gate *gate)
{
	return !gate->page || wf_gate_knocks(gate) != gate->heard;
}

#endif
