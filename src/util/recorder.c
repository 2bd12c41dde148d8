/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/recorder.h"

#include <stdio.h>
#include <string.h>

#include "util/error.h"

/* The text of each kind, to which an event's two numbers are given. */
static const struct {
	const char *text;
	bool coded; /* the second number is an error code, whose name is added */
} rows[WF_RECORDER_KINDS] = {
	[WF_RECORDER_NONE] = { "nothing" },

	[WF_RECORDER_DIAL] = { "dials the door" },
	[WF_RECORDER_DIAL_FAILED] = { "has failed to dial, again in %llu ms", .coded = true },
	[WF_RECORDER_HELLO] = { "the peer's hello has come, with %llu rails" },
	[WF_RECORDER_TRY] = { "tries rail %llu, epoch %llu" },
	[WF_RECORDER_FOLLOW] = { "follows the peer to rail %llu, epoch %llu" },
	[WF_RECORDER_TRY_FAILED] = { "that rail does not work, epoch %llu" },
	[WF_RECORDER_UP] = { "is up on rail %llu, epoch %llu" },
	[WF_RECORDER_RAIL_FAILED] = { "rail %llu has failed, epoch %llu" },
	[WF_RECORDER_LANE_UP] = { "lane %llu is up, epoch %llu" },
	[WF_RECORDER_LANE_CLOSED] = { "lane %llu has closed, epoch %llu" },
	[WF_RECORDER_REOPEN] = { "rail %llu is opened anew" },
	[WF_RECORDER_DOOR_CLOSED] = { "the door has closed", .coded = true },
	[WF_RECORDER_RESUMED] = { "the door is back" },
	[WF_RECORDER_BEAT_MISSED] = { "no word of the peer for %llu ms" },
	[WF_RECORDER_DEAD] = { "the peer is gone", .coded = true },

	[WF_RECORDER_FRAME_OUT] = { "frame %llu sent, %llu bytes" },
	[WF_RECORDER_FRAME_AGAIN] = { "frame %llu goes out again" },
	[WF_RECORDER_FRAME_IN] = { "frame %llu received, ours are confirmed up to %llu" },
	[WF_RECORDER_CONTROL_OUT] = { "control frame %llu sent" },
	[WF_RECORDER_CONTROL_IN] = { "control frame %llu received" },
	[WF_RECORDER_RESYNC_OUT] = { "asks for what is missing, has frames up to %llu" },
	[WF_RECORDER_RESYNC_IN] = { "the peer misses frames, has those up to %llu" },
	[WF_RECORDER_NO_CREDIT] = { "%llu bytes of records wait for credit" },
	[WF_RECORDER_CREDIT] = { "has credit for %llu frames, after %llu us" },
	[WF_RECORDER_FULL] = { "the provider does not take frame %llu", .coded = true },
	[WF_RECORDER_NOT_FULL] = { "the provider takes frames again, after %llu us" },

	[WF_RECORDER_OFFER] = { "offer %llu, %llu bytes" },
	[WF_RECORDER_OFFER_AGAIN] = { "offer %llu is made anew for pull %llu" },
	[WF_RECORDER_WITHDRAW] = { "takes offer %llu back" },
	[WF_RECORDER_OFFER_END] = { "offer %llu has ended", .coded = true },
	[WF_RECORDER_PULL] = { "pull %llu begins, %llu bytes" },
	[WF_RECORDER_PULL_ASK] = { "pull %llu asks for a new offer, has %llu bytes" },
	[WF_RECORDER_READ] = { "reads %llu bytes from %llu on" },
	[WF_RECORDER_READ_FAILED] = { "a read of %llu bytes has failed", .coded = true },
	[WF_RECORDER_PULL_END] = { "pull %llu has ended", .coded = true },

	[WF_RECORDER_PING] = { "operation %llu begins: a ping" },
	[WF_RECORDER_SEND] = { "operation %llu begins: a send of step %llu" },
	[WF_RECORDER_RECV] = { "operation %llu begins: a receive of step %llu" },
	[WF_RECORDER_CALL] = { "operation %llu begins: a call" },
	[WF_RECORDER_STREAM_WRITE] = { "operation %llu begins: a write to a stream" },
	[WF_RECORDER_STREAM_READ] = { "operation %llu begins: a read of a stream" },
	[WF_RECORDER_GET] = { "operation %llu begins: a get from a window" },
	[WF_RECORDER_PUT] = { "operation %llu begins: a put into a window" },
	[WF_RECORDER_NOTE] = { "operation %llu begins: it takes a note of a window" },
	[WF_RECORDER_LANDED] = { "operation %llu begins: it takes a tensor of a landing" },
	[WF_RECORDER_PUSH] = { "operation %llu begins: a push into a landing" },
	[WF_RECORDER_COMPOSITE] = { "operation %llu begins: a collective of a group" },
	[WF_RECORDER_OP_END] = { "operation %llu has ended", .coded = true },
	[WF_RECORDER_SERVE] = { "call %llu is to be served, %llu bytes" },
	[WF_RECORDER_REPLY] = { "call %llu is answered with status %llu" },
	[WF_RECORDER_STEP_ABORT] = { "step %llu is aborted", .coded = true },
	[WF_RECORDER_STEP_END] = { "step %llu ends" },

	[WF_RECORDER_REGISTER_FAILED] = { "%llu bytes can't be registered", .coded = true },
	[WF_RECORDER_POOL_WAIT] = { "%llu bytes of the pool are waited for" },
	[WF_RECORDER_STOOD_STILL] = { "this node stood still for %llu ms" },
};

uint64_t wf_recorder_last(const struct wf_recorder *r)
{
	return atomic_load_explicit(&r->count, memory_order_acquire);
}

uint64_t wf_recorder_first(const struct wf_recorder *r)
{
	uint64_t last = wf_recorder_last(r);

	return last > WF_RECORDER_EVENTS ? last - WF_RECORDER_EVENTS : 0;
}

bool wf_recorder_get(const struct wf_recorder *r, uint64_t n, struct wf_recorder_event *event)
{
	const struct wf_recorder_slot *slot = &r->slots[n % WF_RECORDER_EVENTS];
	uint64_t what;

	*event = (struct wf_recorder_event){
		.time_ns = atomic_load_explicit(&slot->time_ns, memory_order_acquire),
		.a = atomic_load_explicit(&slot->a, memory_order_acquire),
		.b = atomic_load_explicit(&slot->b, memory_order_acquire),
	};
	what = atomic_load_explicit(&slot->what, memory_order_acquire);
	event->kind = (enum wf_recorder_kind)(what >> 32);
	event->link = (uint32_t)what;
	/* The owner may already be overwriting event number last - WF_RECORDER_EVENTS. */
	return wf_recorder_last(r) - n < WF_RECORDER_EVENTS;
}

void wf_recorder_text(const struct wf_recorder_event *event, char text[WF_RECORDER_TEXT_BYTES])
{
	unsigned kind = event->kind < WF_RECORDER_KINDS ? event->kind : WF_RECORDER_NONE;
	int used = 0;

	if (event->link)
		used = snprintf(text, WF_RECORDER_TEXT_BYTES, "link %u: ", event->link);
	used += snprintf(text + used, WF_RECORDER_TEXT_BYTES - (size_t)used, rows[kind].text,
			 (unsigned long long)event->a, (unsigned long long)event->b);
	if (rows[kind].coded && event->b)
		(void)snprintf(text + used, WF_RECORDER_TEXT_BYTES - (size_t)used, ": %s",
			       wf_error_name((int)event->b));
}
