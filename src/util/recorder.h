/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flight recorder of a worker: what it did last, and where it is now.
 *
 * The recorder is a ring of small events.  Its owner writes an event for the price of a few
 * stores: no clock is read, for an event has the time of its turn, nothing is allocated and
 * nothing can fail.  Any thread may read, also while the owner is stuck inside a call of the
 * provider; events that are overwritten meanwhile are left out.
 *
 * Threads: owner writes, any reads.
 */
#ifndef WF_RECORDER_H
#define WF_RECORDER_H

#include <stdatomic.h>
#include "util/base.h"

#define WF_RECORDER_EVENTS 4096u /* 128 KiB: a second of calls, minutes of a hang; a power of two */
#define WF_RECORDER_TEXT_BYTES 160

/* Kinds of events; their texts in recorder.c say what the two numbers of each mean. */
enum wf_recorder_kind {
	WF_RECORDER_NONE,

	/* a link's life */
	WF_RECORDER_DIAL,
	WF_RECORDER_DIAL_FAILED,
	WF_RECORDER_HELLO,
	WF_RECORDER_TRY,
	WF_RECORDER_FOLLOW,
	WF_RECORDER_TRY_FAILED,
	WF_RECORDER_UP,
	WF_RECORDER_RAIL_FAILED,
	WF_RECORDER_LANE_UP,
	WF_RECORDER_LANE_CLOSED,
	WF_RECORDER_REOPEN,
	WF_RECORDER_DOOR_CLOSED,
	WF_RECORDER_RESUMED,
	WF_RECORDER_BEAT_MISSED,
	WF_RECORDER_DEAD,

	/* frames */
	WF_RECORDER_FRAME_OUT,
	WF_RECORDER_FRAME_AGAIN,
	WF_RECORDER_FRAME_IN,
	WF_RECORDER_CONTROL_OUT,
	WF_RECORDER_CONTROL_IN,
	WF_RECORDER_RESYNC_OUT,
	WF_RECORDER_RESYNC_IN,
	WF_RECORDER_NO_CREDIT,
	WF_RECORDER_CREDIT,
	WF_RECORDER_FULL,
	WF_RECORDER_NOT_FULL,

	/* bodies */
	WF_RECORDER_OFFER,
	WF_RECORDER_OFFER_AGAIN,
	WF_RECORDER_WITHDRAW,
	WF_RECORDER_OFFER_END,
	WF_RECORDER_PULL,
	WF_RECORDER_PULL_ASK,
	WF_RECORDER_READ,
	WF_RECORDER_READ_FAILED,
	WF_RECORDER_PULL_END,

	/* operations and calls */
	WF_RECORDER_PING,
	WF_RECORDER_SEND,
	WF_RECORDER_RECV,
	WF_RECORDER_CALL,
	WF_RECORDER_STREAM_WRITE,
	WF_RECORDER_STREAM_READ,
	WF_RECORDER_GET,
	WF_RECORDER_PUT,
	WF_RECORDER_NOTE,
	WF_RECORDER_LANDED,
	WF_RECORDER_PUSH,
	WF_RECORDER_COMPOSITE,
	WF_RECORDER_OP_END,
	WF_RECORDER_SERVE,
	WF_RECORDER_REPLY,
	WF_RECORDER_STEP_ABORT,
	WF_RECORDER_STEP_END,

	/* the worker */
	WF_RECORDER_REGISTER_FAILED,
	WF_RECORDER_POOL_WAIT,
	WF_RECORDER_STOOD_STILL,

	WF_RECORDER_KINDS
};

struct wf_recorder_slot {
	_Atomic uint64_t time_ns;
	_Atomic uint64_t what; /* kind << 32 | link */
	_Atomic uint64_t a, b;
};

struct wf_recorder {
	_Atomic uint64_t turn_ns;       /* when this turn of the owner began */
	_Atomic(const char *) call;     /* the call that the owner is inside; NULL: none */
	_Atomic(const char *) provider; /* the provider of @call; NULL: none */
	_Atomic uint64_t count;         /* events ever written */
	struct wf_recorder_slot slots[WF_RECORDER_EVENTS];
};

/* Note that a turn begins at @now_ns.  Threads: owner. */
static inline void wf_recorder_turn(struct wf_recorder *r, uint64_t now_ns)
{
	atomic_store_explicit(&r->turn_ns, now_ns, memory_order_relaxed);
}

/*
 * Write an event of link number @link, 0: of no link.  @r NULL: write nothing.
 *
 * Each part is stored with release, so that a reader that sees a part of the new event also
 * sees a count by which the old event is gone.  Threads: owner.
 */
static inline void wf_recorder_add(struct wf_recorder *r, enum wf_recorder_kind kind,
				   uint32_t link, uint64_t a, uint64_t b)
{
	struct wf_recorder_slot *slot;
	uint64_t count;

	if (WF_SILENT || !r)
		return;
	count = atomic_load_explicit(&r->count, memory_order_relaxed);
	slot = &r->slots[count % WF_RECORDER_EVENTS];
	atomic_store_explicit(&slot->time_ns,
			      atomic_load_explicit(&r->turn_ns, memory_order_relaxed),
			      memory_order_release);
	atomic_store_explicit(&slot->what, (uint64_t)kind << 32 | link, memory_order_release);
	atomic_store_explicit(&slot->a, a, memory_order_release);
	atomic_store_explicit(&slot->b, b, memory_order_release);
	atomic_store_explicit(&r->count, count + 1, memory_order_release);
}

/*
 * Note that the owner enters @call of @provider; both texts live as long as @r.  The time is
 * the turn's, for a turn is short unless a call holds it up.  Threads: owner.
 */
static inline void wf_recorder_enter(struct wf_recorder *r, const char *call,
				     const char *provider)
{
	if (WF_SILENT || !r)
		return;
	atomic_store_explicit(&r->provider, provider, memory_order_relaxed);
	atomic_store_explicit(&r->call, call, memory_order_release);
}

/* Note that the owner is back from the call.  Threads: owner. */
static inline void wf_recorder_leave(struct wf_recorder *r)
{
	if (WF_SILENT || !r)
		return;
	atomic_store_explicit(&r->call, NULL, memory_order_relaxed);
}

struct wf_recorder_event {
	uint64_t time_ns;
	enum wf_recorder_kind kind;
	uint32_t link;
	uint64_t a, b;
};

/* Return the number of the oldest event that is kept. */
uint64_t wf_recorder_first(const struct wf_recorder *r);

/* Return the number of the next event: those from first to last - 1 are kept. */
uint64_t wf_recorder_last(const struct wf_recorder *r);

/* Read event number @n.  Returns false if it was overwritten. */
bool wf_recorder_get(const struct wf_recorder *r, uint64_t n, struct wf_recorder_event *event);

/* Describe @event, for people. */
void wf_recorder_text(const struct wf_recorder_event *event, char text[WF_RECORDER_TEXT_BYTES]);

#endif
