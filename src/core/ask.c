/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive from any peer in a node of several workers can't know which worker
 * will get a tensor for it.  Each desk therefore has an ask, and the first ask that
 * gets a tensor, or ends without, wins, by one atomic word.  All other asks are
 * stopped.  The winner's outcome goes back to the desk where the operation began,
 * and ends the operation there.
 *
 * An ask is part of the operation, and has two references to it: one until the ask
 * has ended, and one until the ask has been told to stop.
 */
#include "core/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/desk.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/recv.h"
#include "core/turn.h"
#include "util/progress.h"

struct wf_ask {
	struct weft_op *op;
	struct wf_desk *desk;
	struct wf_receiving receiving;
	struct wf_task start_task; /* the winner's way back, too */
	struct wf_error outcome;   /* the winner's; code 0: a tensor was received */
	struct weft_peer *from;
	_Atomic uint64_t progress; /* the desk's last look, for the watchdog */
	atomic_bool looking;       /* look_task is under way */
	struct wf_task look_task;
	bool told;                 /* the ask was told to stop; op->desk only */
	struct wf_task stop_task;
	struct wf_error why;
};

static bool claim(struct wf_receiving *r)
{
	struct wf_ask *ask = WF_CONTAINER(r, struct wf_ask, receiving), *winner = NULL;

	return atomic_compare_exchange_strong(&ask->op->recv.winner, &winner, ask) ||
	       winner == ask;
}

static void stop(struct wf_task *task)
{
	struct wf_ask *ask = WF_CONTAINER(task, struct wf_ask, stop_task);

	wf_channels_cancel_receive(&ask->receiving, &ask->why);
	wf_op_put(ask->op);
}

static void tell(struct wf_ask *ask, const struct wf_error *why)
{
	if (ask->told)
		return;
	ask->told = true;
	ask->why = *why;
	ask->stop_task.run = stop;
	wf_loop_submit(&ask->desk->worker.loop, &ask->stop_task);
}

/* Copy what was received, but not step and key, which other threads may be reading. */
static void take_over(struct wf_receiving *to, const struct wf_receiving *from)
{
	to->got = from->got;
	to->long_shape = from->long_shape; /* a short shape lasts as long as all asks */
	to->got_flags = from->got_flags;
	to->got_bytes = from->got_bytes;
	to->chunk = from->chunk;
	to->readonly = from->readonly;
	to->path = from->path;
}

/* @ask has won, and has ended.  Runs at the desk where the operation began. */
static void end(struct wf_ask *ask)
{
	struct weft_op *op = ask->op;
	struct wf_receiving *r = &op->recv.receiving;
	struct wf_error lost;

	take_over(r, &ask->receiving);
	op->recv.from = ask->from;
	wf_error_set(&lost, -ECANCELED, "another worker of this node was first");
	for (unsigned i = 0; i < op->owner->desk_count; i++)
		if (&op->recv.asks[i] != ask)
			tell(&op->recv.asks[i], &lost);
	wf_op_path_set(op, &r->path, wf_receiving_copies(r));
	wf_op_finish(op, ask->outcome.code ? &ask->outcome : NULL, WEFT_EXECUTED_MAYBE);
	if (!ask->told)
		wf_op_put(op);
	wf_op_put(op);
}

static void come_back(struct wf_task *task)
{
	end(WF_CONTAINER(task, struct wf_ask, start_task));
}

/* Runs at the ask's own desk. */
static void done(struct wf_receiving *r, const struct wf_error *e)
{
	struct wf_ask *ask = WF_CONTAINER(r, struct wf_ask, receiving);
	struct weft_op *op = ask->op;
	struct wf_desk *home = op->desk;

	if (!claim(r)) {
		wf_op_put(op);
		return;
	}
	ask->outcome = e ? *e : (struct wf_error){ 0 };
	ask->from = wf_recv_got(r, ask->desk, e);
	if (home == ask->desk) {
		end(ask);
		return;
	}
	ask->start_task.run = come_back;
	wf_loop_submit(&home->worker.loop, &ask->start_task);
}

static void start(struct wf_task *task)
{
	struct wf_ask *ask = WF_CONTAINER(task, struct wf_ask, start_task);
	struct wf_error e;

	if (ask->desk->node->closing) {
		wf_error_set(&e, -ECANCELED, "this node has closed");
		done(&ask->receiving, &e);
		return;
	}
	wf_channels_receive(&ask->desk->channels, &ask->receiving);
}

static struct wf_ask *ask_at(const struct weft_op *op, const struct wf_desk *desk)
{
	return &op->recv.asks[desk - op->owner->desks];
}

int wf_ask_open(struct weft_op *op)
{
	struct weft_node *node = op->owner;
	struct wf_ask *asks = calloc(node->desk_count, sizeof(*asks));

	if (!asks)
		return -ENOMEM;
	for (unsigned i = 0; i < node->desk_count; i++) {
		asks[i].op = op;
		asks[i].desk = &node->desks[i];
		asks[i].receiving = op->recv.receiving;
		asks[i].receiving.claim = claim;
		asks[i].receiving.done = done;
		asks[i].start_task.run = start;
	}
	op->recv.asks = asks;
	atomic_fetch_add(&op->refs, 2 * node->desk_count);
	return 0;
}

/* The operation's own desk was told first, and so sees the begin before any outcome. */
void wf_ask_submit(struct weft_op *op, uint64_t now_ns)
{
	const struct wf_ask *own = ask_at(op, op->desk);

	for (unsigned i = 0; i < op->owner->desk_count; i++)
		if (&op->recv.asks[i] != own)
			wf_turn_run(op->recv.asks[i].desk, &op->recv.asks[i].start_task, now_ns);
}

void wf_ask_start(struct weft_op *op)
{
	start(&ask_at(op, op->desk)->start_task);
}

void wf_ask_stop(struct weft_op *op, const struct wf_error *e)
{
	struct wf_ask *own = ask_at(op, op->desk);

	if (claim(&own->receiving))
		wf_channels_cancel_receive(&own->receiving, e);
	else
		tell(op->recv.winner, e);
}

void wf_ask_starve(struct weft_op *op, struct wf_desk *desk, const struct wf_error *e)
{
	struct wf_receiving *r = &ask_at(op, desk)->receiving;

	if (r->state == WF_RECEIVING_MEMORY)
		wf_channels_stop_receive(r, e);
}

/* Another desk's ask is not looked at, as it may change at any time. */
void wf_ask_describe(const struct weft_op *op, char *text, size_t bytes)
{
	const struct wf_ask *winner = op->recv.winner, *own = ask_at(op, op->desk);

	if (!winner || winner == own)
		wf_receiving_describe(&own->receiving, text, bytes);
	else
		(void)snprintf(text, bytes, "the tensor has come to worker %d, which receives it",
			       (int)(winner->desk - op->owner->desks) + 1);
}

static void look(struct wf_task *task)
{
	struct wf_ask *ask = WF_CONTAINER(task, struct wf_ask, look_task);

	atomic_store(&ask->progress, wf_receiving_progress(&ask->receiving));
	atomic_store(&ask->looking, false);
	wf_op_put(ask->op);
}

/* Returns the progress of another desk's ask at the last look, and start the next look. */
static uint64_t look_at(struct wf_ask *ask)
{
	if (!atomic_exchange(&ask->looking, true)) {
		atomic_fetch_add(&ask->op->refs, 1);
		ask->look_task.run = look;
		wf_loop_submit(&ask->desk->worker.loop, &ask->look_task);
	}
	return wf_progress_add(1, atomic_load(&ask->progress));
}

uint64_t wf_ask_progress(struct weft_op *op)
{
	struct wf_ask *winner = op->recv.winner, *own = ask_at(op, op->desk);

	return winner && winner != own ? look_at(winner) : wf_receiving_progress(&own->receiving);
}
