/* SPDX-License-Identifier: BSD-2-Clause */
#include "group/exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/composite.h"
#include "core/describe.h"
#include "core/last.h"
#include "core/op.h"
#include "group/internal.h"

#define NO_CELL UINT32_MAX

static const char *const names[] = {
	[WF_EXCHANGE_BARRIER] = "barrier",
	[WF_EXCHANGE_ALL_REDUCE] = "all_reduce",
	[WF_EXCHANGE_REDUCE] = "reduce",
	[WF_EXCHANGE_REDUCE_SCATTER] = "reduce_scatter",
	[WF_EXCHANGE_ALL_GATHER] = "all_gather",
	[WF_EXCHANGE_GATHER] = "gather",
	[WF_EXCHANGE_SCATTER] = "scatter",
	[WF_EXCHANGE_ALL_TO_ALL] = "all_to_all",
	[WF_EXCHANGE_BROADCAST] = "broadcast",
};

/* One send or receive. */
struct transfer {
	struct wf_exchange *x;
	struct weft_op *op;  /* NULL: not begun */
	void *data;          /* NULL: a receive for a cell, or no bytes */
	size_t bytes;
	uint32_t rank, tag;
	uint32_t cell;       /* NO_CELL: none; of a receive or held send: it is needed there */
	bool is_send;
	bool waits;          /* the send begins when the cell is combined */
};

struct cell {
	const void *own;
	void *out;
	size_t count;
	uint32_t first;      /* receive of the lowest other rank; those of the others follow */
	uint32_t missing;    /* receives, and sends it is held by, that have not ended */
};

struct wf_exchange {
	struct weft_op *op;
	struct weft_group *group; /* a reference until the end */
	enum wf_exchange_kind kind;
	uint32_t number;
	struct wf_reduce reduce;

	pthread_mutex_t lock;     /* all below, while the exchange runs */
	bool started, failed;
	uint32_t running;         /* transfers under way, and one until all that can have begun */
	struct wf_error e;        /* first failure */
	struct wf_loop_task end_task;

	uint32_t transfer_count, cell_count;
	struct transfer *transfers;
	struct cell *cells;
	pthread_mutex_t combining; /* cells are combined one after the other */
	const void **arrays;       /* arrays of a cell, by rank; under combining */
};

/* Making an exchange */

int wf_exchange_new(struct weft_group *group, enum wf_exchange_kind kind, size_t transfers,
		    size_t cells, struct wf_exchange **x)
{
	struct wf_exchange *fresh = calloc(1, sizeof(*fresh));

	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for a collective");
	fresh->transfers = calloc(transfers + 1, sizeof(*fresh->transfers));
	fresh->cells = calloc(cells + 1, sizeof(*fresh->cells));
	fresh->arrays = calloc(group->job.size, sizeof(*fresh->arrays));
	if (!fresh->transfers || !fresh->cells || !fresh->arrays) {
		free(fresh->transfers);
		free(fresh->cells);
		free(fresh->arrays);
		free(fresh);
		return wf_last_set(-ENOMEM, "no memory for a collective");
	}
	fresh->group = group;
	atomic_fetch_add(&group->refs, 1);
	fresh->kind = kind;
	pthread_mutex_init(&fresh->lock, NULL);
	pthread_mutex_init(&fresh->combining, NULL);
	*x = fresh;
	return 0;
}

static struct transfer *add(struct wf_exchange *x, uint32_t rank, uint32_t tag, const void *data,
			    size_t bytes)
{
	struct transfer *t = &x->transfers[x->transfer_count++];

	*t = (struct transfer){ .x = x, .data = (void *)(uintptr_t)data, .bytes = bytes, .rank = rank,
				.tag = tag, .cell = NO_CELL };
	return t;
}

uint32_t wf_exchange_cell(struct wf_exchange *x, const struct wf_reduce *reduce, const void *own,
			  void *out, size_t count)
{
	x->reduce = *reduce;
	x->cells[x->cell_count] = (struct cell){ .own = own, .out = out, .count = count,
						 .first = x->transfer_count };
	return x->cell_count++;
}

void wf_exchange_recv_for_cell(struct wf_exchange *x, uint32_t rank, uint32_t tag, size_t bytes)
{
	uint32_t cell = x->cell_count - 1;

	add(x, rank, tag, NULL, bytes)->cell = cell;
	x->cells[cell].missing++;
}

void wf_exchange_recv(struct wf_exchange *x, uint32_t rank, uint32_t tag, void *into, size_t bytes)
{
	(void)add(x, rank, tag, into, bytes);
}

void wf_exchange_send(struct wf_exchange *x, uint32_t rank, uint32_t tag, const void *data,
		      size_t bytes, uint32_t after)
{
	struct transfer *t = add(x, rank, tag, data, bytes);

	t->is_send = true;
	t->waits = after != WF_EXCHANGE_AT_ONCE;
	t->cell = after;
}

void wf_exchange_hold(struct wf_exchange *x, uint32_t cell)
{
	x->transfers[x->transfer_count - 1].cell = cell;
	x->cells[cell].missing++;
}

static void free_exchange(void *maker)
{
	struct wf_exchange *x = maker;

	for (uint32_t i = 0; i < x->transfer_count; i++)
		if (x->transfers[i].op)
			weft_op_free(x->transfers[i].op);
	pthread_mutex_destroy(&x->combining);
	pthread_mutex_destroy(&x->lock);
	free(x->transfers);
	free(x->cells);
	free(x->arrays);
	free(x);
}

void wf_exchange_drop(struct wf_exchange *x)
{
	wf_group_put(x->group);
	free_exchange(x);
}

/* Ending */

static void finish(struct wf_loop_task *task)
{
	struct wf_exchange *x = WF_CONTAINER(task, struct wf_exchange, end_task);
	struct weft_group *group = x->group;

	x->group = NULL;
	wf_group_put(group);
	wf_op_finish(x->op, x->failed ? &x->e : NULL, WEFT_EXECUTED_MAYBE);
}

/* Give up one of the running.  The last ends the operation, at its own worker. */
static void leave(struct wf_exchange *x)
{
	bool last;

	pthread_mutex_lock(&x->lock);
	last = !--x->running;
	pthread_mutex_unlock(&x->lock);
	if (!last)
		return;
	x->end_task.run = finish;
	wf_loop_submit(&x->op->worker->engine.loop, &x->end_task);
}

/*
 * Note the first failure and stop what runs.  All others hear of it by the abort of the group's
 * step, in which all its collectives are.
 */
static void fail(struct wf_exchange *x, const struct wf_error *e)
{
	struct weft_group *group = x->group;
	bool first;

	pthread_mutex_lock(&x->lock);
	first = !x->failed;
	x->failed = true;
	if (first)
		x->e = *e;
	pthread_mutex_unlock(&x->lock);
	if (!first)
		return;
	wf_error_within(&x->e, "%s number %u of %u processes", names[x->kind], x->number,
			group->job.size);
	weft_step_abort(group->node, group->members.step, wf_status_of(e->code), x->e.text);
}

static void fail_by(struct wf_exchange *x, const struct weft_op *op)
{
	struct wf_error e;

	wf_error_set(&e, wf_status_code(weft_op_status(op)), "%s", weft_op_message(op));
	fail(x, &e);
}

/* Transfers */

static void begin(struct transfer *t);

/* Combine what has come for @cell, and give back the memory that it came in. */
static void combine(struct wf_exchange *x, struct cell *cell)
{
	uint32_t size = x->group->job.size, self = x->group->job.rank, next = cell->first;

	pthread_mutex_lock(&x->combining);
	for (uint32_t rank = 0; rank < size; rank++)
		x->arrays[rank] = rank == self
					  ? cell->own
					  : weft_op_tensor(x->transfers[next++].op, NULL)->data;
	wf_reduce_run(&x->reduce, cell->out, x->arrays, size, cell->count);
	pthread_mutex_unlock(&x->combining);
	for (uint32_t i = cell->first; i < next; i++) {
		weft_op_free(x->transfers[i].op);
		x->transfers[i].op = NULL;
	}
}

/* The cell of @t needs @t no longer.  The last that it needs lets it be combined. */
static void give_to_cell(struct transfer *t)
{
	struct wf_exchange *x = t->x;
	struct cell *cell = &x->cells[t->cell];
	bool complete;

	pthread_mutex_lock(&x->lock);
	complete = !--cell->missing && !x->failed;
	pthread_mutex_unlock(&x->lock);
	if (!complete)
		return;
	combine(x, cell);
	for (uint32_t i = 0; i < x->transfer_count; i++)
		if (x->transfers[i].waits && x->transfers[i].cell == t->cell)
			begin(&x->transfers[i]);
}

/*
 * Is what has come of the size and the collective that are expected?  A peer may send anything: a
 * dead tensor, or elements of another size.
 */
static bool fits(const struct transfer *t)
{
	const struct weft_tensor *came = weft_op_tensor(t->op, NULL);

	if (!came || came->ndim != 1 + (int32_t)t->x->kind || came->dtype.code != WEFT_UINT ||
	    came->dtype.bits != 8 || came->dtype.lanes != 1)
		return false;
	for (int32_t i = 0; i < came->ndim; i++)
		if (came->shape[i] != (i ? 1 : (int64_t)t->bytes))
			return false;
	return came->data || !t->bytes;
}

static void ended(struct weft_op *op, void *arg)
{
	struct transfer *t = arg;
	struct wf_exchange *x = t->x;
	struct wf_error e;

	if (weft_op_status(op) != WEFT_OK) {
		fail_by(x, op);
	} else if (!t->is_send && !fits(t)) {
		wf_error_set(&e, -EINVAL,
			     "rank %u has begun another collective, or with tensors of another size",
			     t->rank);
		fail(x, &e);
	} else if (t->cell != NO_CELL && !t->waits) {
		give_to_cell(t);
	}
	leave(x);
}

static int submit(struct transfer *t)
{
	struct weft_recv_options r = WEFT_RECV_OPTIONS_INIT;
	struct weft_send_options s = WEFT_SEND_OPTIONS_INIT;
	struct wf_exchange *x = t->x;
	struct weft_group *group = x->group;
	int64_t shape[1 + WF_EXCHANGE_BROADCAST];
	struct weft_tensor tensor = { .data = t->data, .device = { WEFT_CPU, 0 },
				      .ndim = 1 + (int32_t)x->kind, .dtype = { WEFT_UINT, 8, 1 },
				      .shape = shape };
	uint32_t key[2] = { x->number, t->tag };
	struct weft_peer *peer;
	int err;

	for (int32_t i = 0; i < tensor.ndim; i++)
		shape[i] = i ? 1 : (int64_t)t->bytes;
	s.op.timeout_ns = r.op.timeout_ns = WEFT_FOREVER;
	s.op.done = r.op.done = ended;
	s.op.arg = r.op.arg = t;
	err = weft_group_peer(group, t->rank, &peer);
	if (err)
		return err;
	if (t->is_send)
		return weft_send(peer, group->members.step, key, sizeof(key), &tensor, &s, &t->op);
	return weft_recv(group->node, peer, group->members.step, key, sizeof(key), t->data ? &tensor : NULL,
			 &r, &t->op);
}

static void begin(struct transfer *t)
{
	struct wf_exchange *x = t->x;
	struct wf_error e;
	int err;

	pthread_mutex_lock(&x->lock);
	x->running++;
	pthread_mutex_unlock(&x->lock);
	err = submit(t);
	if (!err)
		return;
	wf_error_set(&e, err, "%s", wf_last_text());
	fail(x, &e);
	leave(x);
}

/* The operation */

static void start(void *maker)
{
	struct wf_exchange *x = maker;

	x->started = true;
	for (uint32_t i = 0; i < x->transfer_count; i++)
		if (!x->transfers[i].is_send)
			begin(&x->transfers[i]);
	for (uint32_t i = 0; i < x->transfer_count; i++)
		if (x->transfers[i].is_send && !x->transfers[i].waits)
			begin(&x->transfers[i]);
	leave(x);
}

static void stop(void *maker, const struct wf_error *e)
{
	struct wf_exchange *x = maker;

	fail(x, e);
	if (!x->started)
		leave(x);
}

static void describe(const void *maker, char *text)
{
	const struct wf_exchange *x = maker;

	wf_describe_add(text, "%s number %u", names[x->kind], x->number);
}

static void describe_wait(const void *maker, char *text, size_t bytes)
{
	const struct wf_exchange *x = maker;
	uint32_t ranks[8] = { 0 }, count = 0, total = 0, last = UINT32_MAX;
	char list[120];

	for (uint32_t i = 0; i < x->transfer_count; i++) {
		const struct transfer *t = &x->transfers[i];

		if (t->is_send || !t->op || weft_op_ended(t->op) || t->rank == last)
			continue;
		last = t->rank;
		if (count < WF_COUNT(ranks))
			ranks[count++] = t->rank;
		total++;
	}
	wf_join_ranks(ranks, count, total, list, sizeof(list));
	if (total)
		snprintf(text, bytes, "not all has come from %s", list);
	else
		snprintf(text, bytes, "not all that was sent is taken");
}

int wf_exchange_launch(struct wf_exchange *x, const struct weft_op_options *options,
		       struct weft_op **op)
{
	static const struct wf_composite_functions functions = {
		.start = start,
		.stop = stop,
		.free = free_exchange,
		.describe = describe,
		.describe_wait = describe_wait,
	};
	struct weft_group *group = x->group;
	struct weft_op *fresh;
	int err = wf_composite_new(group->node, options, &functions, x, &fresh);

	if (err) {
		wf_exchange_drop(x);
		return err;
	}
	x->op = fresh;
	x->running = 1;
	pthread_mutex_lock(&group->lock);
	x->number = group->exchanges++;
	pthread_mutex_unlock(&group->lock);
	wf_op_launch(fresh, fresh->made_ns, op);
	return 0;
}
