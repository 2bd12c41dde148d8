/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gate before an endpoint that several processes reach into through shared
 * memory: its owner, who looks what has come, and whoever sends to it.
 *
 * libfabric's shm has a spinning lock there.  Who is stopped or killed
 * inside leaves it held, and all others spin in libfabric until he goes on, or
 * for ever.  So everyone goes through the gate first, one at a time, and who
 * finds it shut comes back later.  Where it stays shut the owner opens another
 * endpoint, and nobody touches the old one any more.
 *
 * An owner that spins would take the gate from his senders all the time.  So a
 * sender knocks before he leaves, on a cache line that the owner only reads, and
 * the owner goes in when somebody has knocked.  Order needs no care: whoever goes
 * in sees what was done by all who were inside before, so a knock is a hint and
 * no more.  Who dies between his message and his knock leaves the gate shut.  The
 * owner must look without a knock, too: while the provider has something of his
 * own, before he sleeps, and now and then, for those who died or do not knock.
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
	_Alignas(64) _Atomic uint32_t knocks; /* ever; written by who is inside */
};

struct wf_gate {
	struct wf_sealed shared;
	struct wf_gate_page *page; /* NULL: there is no gate, and anybody may go in */
	uint32_t heard;            /* the owner's: knocks that he has answered */
};

/* Our own.  As wf_sealed_open. */
int wf_gate_open(struct wf_gate *gate);

/* A peer's, by a descriptor, which is closed in any case.  -EBADMSG: it is something else. */
int wf_gate_take(struct wf_gate *gate, int fd);

/* Accepts a zeroed one. */
void wf_gate_close(struct wf_gate *gate);

/* false: somebody is inside, and has been for as long as we looked. */
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

/* A sender, inside: he leaves something there. */
static inline void wf_gate_knock(struct wf_gate *gate)
{
	if (gate->page)
		atomic_store_explicit(&gate->page->knocks, wf_gate_knocks(gate) + 1,
				      memory_order_relaxed);
}

/* The owner, inside: he has found no more. */
static inline void wf_gate_hear(struct wf_gate *gate)
{
	if (gate->page)
		gate->heard = wf_gate_knocks(gate);
}

/* The owner, outside: may there be something?  Always true where there is no gate. */
static inline bool wf_gate_knocked(const struct wf_gate *gate)
{
	return !gate->page || wf_gate_knocks(gate) != gate->heard;
}

#endif
