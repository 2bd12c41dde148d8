/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of a worker.  The owner alone writes them, with relaxed stores, so that any thread
 * may read; totals only grow.
 */
#ifndef WF_COUNTERS_H
#define WF_COUNTERS_H

#include <stdatomic.h>
#include <weft/base.h>
#include "util/base.h"

/* Kinds of memory that is registered. */
enum wf_counters_memory {
	WF_COUNTERS_USER,   /* the program's, for an operation or by weft_register */
	WF_COUNTERS_POOL,   /* memory of weft's own: pool, frames and receive slots */
	WF_COUNTERS_DEVICE, /* memory of a device */
	WF_COUNTERS_CACHED, /* the program's, kept for the next operation */
	WF_COUNTERS_MEMORY
};

struct wf_counters {
	_Atomic uint64_t frames_sent, frames_received, frames_replayed, frames_refused;
	_Atomic uint64_t bytes_eager, bytes_pulled, bytes_viewed;
	_Atomic uint64_t peers_lost, links_resumed;
	_Atomic uint64_t links_rekeyed;  /* links whose frames got keys of new credentials */
	_Atomic uint64_t rights_refused; /* acts of peers that WEFT_ALLOW has no line for */
	_Atomic uint64_t aborts_ignored; /* aborts by peers that take no part in the step */
	_Atomic uint64_t late_dropped; /* completions and records that came too late */
	_Atomic uint64_t registered_bytes; /* bytes registered now, not a total */
	_Atomic uint64_t registered[WF_COUNTERS_MEMORY]; /* the same by kind */
	_Atomic uint64_t kept_bytes;       /* bytes kept now on behalf of peers */
	_Atomic uint64_t records_refused;  /* no room in a peer's account; a record comes again */
	_Atomic uint64_t registrations, registration_hits, registration_evictions;
	_Atomic uint64_t calls, served, message_bytes; /* counted now, not a total */
	_Atomic uint64_t unpack_failures;
	_Atomic uint64_t calls_waiting; /* counted now, not a total */
	_Atomic uint64_t calls_refused;
	_Atomic uint64_t calls_repeated, served_repeated;
	/* The index is enum weft_status. */
	_Atomic uint64_t calls_ended[WEFT_UNAUTHENTICATED + 1];
	_Atomic uint64_t served_ended[WEFT_UNAUTHENTICATED + 1];
};

/* Add @n by a load and a store: with one writer no locked add is needed. */
static inline void wf_counters_add(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t was = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, was + n, memory_order_relaxed);
}

#endif
