/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that are made again when they fail.
 *
 * Each attempt is a call of the rpc floor, in the memory of the attempt before.
 * An attempt begins when the pause is over and all that the last one held is
 * free, from the start, as an operation that was just submitted.  Deadline and
 * waiters are the operation's, and know of no attempts.
 */
#include "core/retry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/last.h"
#include "core/metadata.h"
#include "core/node.h"
#include "core/notes.h"
#include "core/op.h"
#include "core/peer.h"
#include "util/clock.h"
#include "util/random.h"
#include "wire/pair.h"

/* Not tuned: long enough for a peer to restart, and to leave an overloaded one alone. */
#define PAUSE_NS (100 * WF_NS_PER_MS)
#define PAUSE_MAX_NS (5 * WF_NS_PER_S)

#define KNOWN_STATUSES (((uint32_t)1 << (WEFT_UNAUTHENTICATED + 1)) - 1)

/*
 * Returns an id by which a server knows attempts of one call, counted up from a random start.
 * Each server has a start of its own: a peer that knows a call's id, and claims the caller's
 * incarnation, gets the answer, so no server may learn the ids of another.
 */
static uint64_t next_id(struct weft_peer *peer)
{
	struct weft_node *node = peer->owner;
	uint64_t id;

	pthread_mutex_lock(&node->lock);
	if (!peer->request_id)
		peer->request_id = wf_random_u64();
	id = peer->request_id++;
	if (!peer->request_id)
		peer->request_id = 1;
	pthread_mutex_unlock(&node->lock);
	return id;
}

int wf_retry_open(struct weft_op *op, const struct weft_retry *given)
{
	struct weft_retry policy;
	struct wf_retry *r;
	int err = wf_check_options(given, &policy, sizeof(policy));

	if (err)
		return err;
	if (!policy.attempts || policy.statuses & ~KNOWN_STATUSES || policy.statuses & 1u << WEFT_OK)
		return wf_last_set(-EINVAL, "a retry of %u attempts after statuses %#x",
				   policy.attempts, policy.statuses);
	r = calloc(1, sizeof(*r));
	if (!r)
		return wf_last_set(-ENOMEM, "no memory for a retry");
	r->op = op;
	r->policy = policy;
	if (!r->policy.pause_max_ns)
		r->policy.pause_max_ns = PAUSE_MAX_NS;
	if (!r->policy.pause_ns)
		r->policy.pause_ns = WF_MIN(PAUSE_NS, r->policy.pause_max_ns);
	op->call.retry = r;
	op->call.call.request_id = next_id(op->peer);
	return 0;
}

/* A pause doubles each time; a draw from its upper half parts callers that failed together. */
static uint64_t pause_ns(const struct wf_retry *r)
{
	uint64_t ns = r->policy.pause_ns;

	for (unsigned i = 1; i < r->failed && ns < r->policy.pause_max_ns; i++)
		ns = ns < UINT64_MAX / 2 ? 2 * ns : UINT64_MAX;
	ns = WF_MIN(ns, r->policy.pause_max_ns);
	return ns - wf_random_u64() % (ns / 2 + 1);
}

/* Returns whether the failure is the server's answer. */
static bool is_answered(const struct wf_call *call)
{
	return call->run.reply != WF_CALL_OWED && call->record.status != WEFT_OK;
}

/*
 * A call may be made again if it was surely not handled, or may be handled twice, or if no answer
 * came, as the server knows the call by its id.
 */
static bool is_safe(const struct wf_retry *r, enum weft_executed executed)
{
	return r->policy.idempotent || executed == WEFT_EXECUTED_NO ||
	       !is_answered(&r->op->call.call);
}

/* Set what the next attempt tells the server of earlier ones. */
static void mark(struct wf_retry *r, enum weft_executed executed)
{
	struct wf_call *call = &r->op->call.call;

	if (executed == WEFT_EXECUTED_NO)
		return;
	r->known = !r->policy.idempotent || !is_answered(call);
	if (r->policy.idempotent) {
		/* A new id keeps the reply cache from giving that failure again. */
		if (!r->known)
			call->request_id = next_id(r->op->peer);
		return;
	}
	if (call->incarnation)
		return;
	memcpy(r->incarnation, wf_link_real(call->link)->peer->incarnation, sizeof(r->incarnation));
	call->incarnation = r->incarnation;
}

/* Add the number of earlier attempts to the metadata; without memory it is left out. */
static void say_attempts(struct weft_op *op)
{
	struct wf_retry *r = op->call.retry;
	struct wf_call *call = &op->call.call;
	char text[12];
	struct wf_pair pair = { .key = (const uint8_t *)"weft-attempts", .key_bytes = 13,
				.value = (const uint8_t *)text };
	uint32_t own_bytes = r->failed == 1 ? call->metadata_bytes : r->metadata_bytes;
	struct wf_bytes_writer w;
	uint32_t bytes;
	uint8_t *at;

	r->metadata_bytes = own_bytes;
	pair.value_bytes = (uint32_t)snprintf(text, sizeof(text), "%u", r->failed);
	bytes = (uint32_t)wf_pair_bytes(&pair);
	if (wf_metadata_grow(op, own_bytes, bytes, &at))
		return;
	w = wf_bytes_writer(at, bytes);
	wf_pair_put(&w, &pair);
}

/* Begin the next attempt, which may move to another worker, and then begins there once more. */
static void next(struct wf_retry *r)
{
	r->waiting = false;
	wf_counters_add(&r->op->worker->engine.counters.calls_repeated, 1);
	wf_notes_forget(r->op);
	say_attempts(r->op);
	wf_op_again(r->op);
}

static void pause_over(struct wf_timer *timer)
{
	struct wf_retry *r = WF_CONTAINER(timer, struct wf_retry, timer);

	if (r->quiet)
		next(r);
}

bool wf_retry_again(struct weft_op *op, const struct wf_error *e, enum weft_executed executed)
{
	struct wf_engine *engine = &op->worker->engine;
	struct wf_retry *r = op->call.retry;
	uint64_t at_ns;

	if (!r || op->owner->closing || atomic_load(&op->cancel_asked) ||
	    ++r->failed >= r->policy.attempts || !is_safe(r, executed) ||
	    !(r->policy.statuses & 1u << wf_status_of(e->code)))
		return false;
	at_ns = wf_clock_after(engine->loop.now_ns, pause_ns(r));
	if (at_ns >= op->time.deadline_ns)
		return false;
	mark(r, executed);
	r->waiting = true;
	r->quiet = false;
	r->last = *e;
	op->outcome.executed = WF_MAX(op->outcome.executed, executed);
	op->call.call.run.again = true;
	wf_loop_timer(&engine->loop, &r->timer, at_ns, pause_over);
	return true;
}

void wf_retry_quiet(struct weft_op *op)
{
	struct wf_retry *r = op->call.retry;

	if (!r || !r->waiting)
		return;
	r->quiet = true;
	if (!r->timer.armed)
		next(r);
}

void wf_retry_stop(struct weft_op *op, const struct wf_error *e)
{
	struct wf_retry *r = op->call.retry;
	struct wf_error why = *e;

	if (!r || !r->waiting)
		return;
	r->waiting = false;
	wf_timer_stop(&op->worker->engine.loop.timers, &r->timer);
	op->call.call.run.again = false;
	if (r->quiet)
		wf_call_drop(&op->call.call);
	wf_error_set(&why, e->code, "%s; attempt %u had failed: %s", e->text, r->failed,
		     r->last.text);
	wf_op_finish(op, &why, op->outcome.executed);
}

bool wf_retry_waits(const struct weft_op *op)
{
	return op->call.retry && op->call.retry->waiting;
}

void wf_retry_describe(const struct weft_op *op, char *text, size_t bytes)
{
	const struct wf_retry *r = op->call.retry;
	uint64_t now_ns = op->worker->engine.loop.now_ns;

	if (!wf_retry_waits(op))
		return;
	(void)snprintf(text, bytes, "attempt %u of %u, in %.3f s; the last failed: %s",
		       r->failed + 1, r->policy.attempts,
		       r->timer.at_ns > now_ns ? (double)(r->timer.at_ns - now_ns) / WF_NS_PER_S : 0,
		       r->last.text);
}
