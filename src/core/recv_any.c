/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive from any peer in a node of several workers can't know which worker
 * will get a tensor for it.  Each worker therefore has a part, and the first part that
 * gets a tensor, or ends without, wins, by one atomic word.  All other parts are
 * stopped.  The winner's outcome goes back to the worker where the operation began,
 * and ends the operation there.
 *
 * A part is memory of the operation, and has two references to it: one until the part
 * has ended, and one until the part has been told to stop.
 */
#include "core/recv_any.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/recv.h"
#include "core/turn.h"
#include "core/worker.h"
#include "util/progress.h"

struct wf_recv_any {
	struct weft_op *op;
	struct wf_worker *worker;
	struct wf_receiving receiving;
	struct wf_loop_task start_task; /* the winner's way back, too */
	struct wf_error outcome;   /* the winner's; code 0: a tensor was received */
	struct weft_peer *from;
	_Atomic uint64_t progress; /* the worker's last look, for the watchdog */
	atomic_bool looking;       /* look_task is under way */
	struct wf_loop_task look_task;
	bool told;                 /* the part was told to stop; op->worker only */
	bool stopped;              /* maybe before its start */
	struct wf_loop_task stop_task;
	struct wf_error why;
};

/* The first part to claim wins. */
static struct wf_receiving *claim(struct wf_receiving *r)
{
	struct wf_recv_any *part = WF_CONTAINER(r, struct wf_recv_any, receiving), *winner = NULL;

	return atomic_compare_exchange_strong(&part->op->recv.winner, &winner, part) ||
			       winner == part
		       ? r
		       : NULL;
}

/*
 * Stop @part, at its worker, because of @why.  Whether a deadline that passes finds the tensor
 * waiting for the pool is known here alone.
 */
static void stop_here(struct wf_recv_any *part, const struct wf_error *why)
{
	const struct wf_receiving *r = &part->receiving;
	struct wf_error full;

	if (why->code == -ETIMEDOUT && r->state == WF_RECEIVING_MEMORY) {
		wf_memory_late(part->worker, r->got.bytes, &full);
		why = &full;
	}
	wf_channels_cancel_receive(&part->receiving, why);
}

static void stop(struct wf_loop_task *task)
{
	struct wf_recv_any *part = WF_CONTAINER(task, struct wf_recv_any, stop_task);

	part->stopped = true;
	stop_here(part, &part->why);
	wf_op_put(part->op);
}

static void tell(struct wf_recv_any *part, const struct wf_error *why)
{
	if (part->told)
		return;
	part->told = true;
	part->why = *why;
	part->stop_task.run = stop;
	wf_loop_submit(&part->worker->engine.loop, &part->stop_task);
}

/* Copy what was received, but not step and key, which other threads may be reading. */
static void take_over(struct wf_receiving *to, const struct wf_receiving *from)
{
	to->got.tensor = from->got.tensor;
	to->got.long_shape = from->got.long_shape; /* a short shape lasts as long as all parts */
	to->got.flags = from->got.flags;
	to->got.bytes = from->got.bytes;
	to->got.chunk = from->got.chunk;
	to->got.readonly = from->got.readonly;
	to->path = from->path;
	if (to->flags & WEFT_ANY_KEY) { /* nobody reads that key before the end */
		to->key = from->key;
		to->key_bytes = from->key_bytes;
	}
}

/* @part has won, and has ended.  Runs at the worker where the operation began. */
static void end(struct wf_recv_any *part)
{
	struct weft_op *op = part->op;
	struct wf_receiving *r = &op->recv.receiving;
	struct wf_error lost;

	take_over(r, &part->receiving);
	op->recv.from = part->from;
	wf_error_set(&lost, -ECANCELED, "another worker of this node was first");
	for (unsigned i = 0; i < op->owner->worker_count; i++)
		if (&op->recv.parts[i] != part)
			tell(&op->recv.parts[i], &lost);
	op->outcome.path = &r->path;
	wf_op_finish(op, part->outcome.code ? &part->outcome : NULL, wf_recv_executed(r));
	if (!part->told)
		wf_op_put(op);
	wf_op_put(op);
}

static void come_back(struct wf_loop_task *task)
{
	end(WF_CONTAINER(task, struct wf_recv_any, start_task));
}

/* Runs at the part's own worker. */
static void done(struct wf_receiving *r, const struct wf_error *e)
{
	struct wf_recv_any *part = WF_CONTAINER(r, struct wf_recv_any, receiving);
	struct weft_op *op = part->op;
	struct wf_worker *home = op->worker;

	if (!claim(r)) {
		wf_op_put(op);
		return;
	}
	part->outcome = e ? *e : (struct wf_error){ 0 };
	part->from = wf_recv_got(r, part->worker, e);
	/* The rail is there still: its worker may close it before the operation's own goes on. */
	wf_op_path_set(op, &r->path, wf_receiving_copies(r));
	if (home == part->worker) {
		end(part);
		return;
	}
	part->start_task.run = come_back;
	wf_loop_submit(&home->engine.loop, &part->start_task);
}

static void start(struct wf_loop_task *task)
{
	struct wf_recv_any *part = WF_CONTAINER(task, struct wf_recv_any, start_task);
	struct wf_error e;

	if (part->worker->node->closing) {
		wf_error_set(&e, -ECANCELED, "this node has closed");
		done(&part->receiving, &e);
		return;
	}
	if (part->stopped) {
		done(&part->receiving, &part->why);
		return;
	}
	wf_channels_receive(&part->worker->channels, &part->receiving);
}

static struct wf_recv_any *ask_at(const struct weft_op *op, const struct wf_worker *worker)
{
	return &op->recv.parts[worker - op->owner->workers];
}

int wf_recv_any_open(struct weft_op *op)
{
	struct weft_node *node = op->owner;
	struct wf_recv_any *parts = calloc(node->worker_count, sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	for (unsigned i = 0; i < node->worker_count; i++) {
		parts[i].op = op;
		parts[i].worker = &node->workers[i];
		parts[i].receiving = op->recv.receiving;
		parts[i].receiving.claim = claim;
		parts[i].receiving.done = done;
		parts[i].start_task.run = start;
	}
	op->recv.parts = parts;
	atomic_fetch_add(&op->refs, 2 * node->worker_count);
	return 0;
}

void wf_recv_any_drop(struct weft_op *op)
{
	atomic_fetch_sub(&op->refs, 2 * op->owner->worker_count);
}

/* The operation's own worker was told first, and so sees the begin before any outcome. */
void wf_recv_any_submit(struct weft_op *op, uint64_t now_ns)
{
	const struct wf_recv_any *own = ask_at(op, op->worker);

	for (unsigned i = 0; i < op->owner->worker_count; i++)
		if (&op->recv.parts[i] != own)
			wf_turn_run(op->recv.parts[i].worker, &op->recv.parts[i].start_task,
				    now_ns);
}

void wf_recv_any_start(struct weft_op *op)
{
	start(&ask_at(op, op->worker)->start_task);
}

void wf_recv_any_stop(struct weft_op *op, const struct wf_error *e)
{
	struct wf_recv_any *own = ask_at(op, op->worker);

	if (claim(&own->receiving))
		stop_here(own, e);
	else
		tell(op->recv.winner, e);
}

void wf_recv_any_starve(struct weft_op *op, struct wf_worker *worker, const struct wf_error *e)
{
	struct wf_receiving *r = &ask_at(op, worker)->receiving;

	if (r->state == WF_RECEIVING_MEMORY)
		wf_channels_stop_receive(r, e);
}

/* Another worker's part is not looked at, as it may change at any time. */
void wf_recv_any_describe(const struct weft_op *op, char *text, size_t bytes)
{
	const struct wf_recv_any *winner = op->recv.winner, *own = ask_at(op, op->worker);

	if (!winner || winner == own)
		wf_receiving_describe(&own->receiving, text, bytes);
	else
		(void)snprintf(text, bytes, "the tensor has come to worker %d, which receives it",
			       (int)(winner->worker - op->owner->workers) + 1);
}

static void look(struct wf_loop_task *task)
{
	struct wf_recv_any *part = WF_CONTAINER(task, struct wf_recv_any, look_task);

	atomic_store(&part->progress, wf_receiving_progress(&part->receiving));
	atomic_store(&part->looking, false);
	wf_op_put(part->op);
}

/* Returns the progress of another worker's part at the last look, and start the next look. */
static uint64_t look_at(struct wf_recv_any *part)
{
	if (!atomic_exchange(&part->looking, true)) {
		atomic_fetch_add(&part->op->refs, 1);
		part->look_task.run = look;
		wf_loop_submit(&part->worker->engine.loop, &part->look_task);
	}
	return wf_progress_add(1, atomic_load(&part->progress));
}

uint64_t wf_recv_any_progress(struct weft_op *op)
{
	struct wf_recv_any *winner = op->recv.winner, *own = ask_at(op, op->worker);

	return winner && winner != own ? look_at(winner) : wf_receiving_progress(&own->receiving);
}
