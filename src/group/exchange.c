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

/* Cells whose parts are on their way: those of one come while another is combined. */
#define CELLS_AT_ONCE 2

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
	struct weft_op *op;  /* NULL: not begun; under the exchange's lock, as is ended */
	void *data;          /* NULL: no bytes, or a receive for a cell that has not begun */
	size_t bytes;
	uint32_t rank, tag;
	uint32_t cell;       /* NO_CELL: none; of a receive or held send: it is needed there */
	bool is_send;
	bool waits;          /* the send begins when the cell is combined */
	bool ended;
	bool misfits;        /* the tensor that came is no part of this collective */
};

struct cell {
	const void *own;
	void *out;
	size_t count;
	uint32_t first;      /* receive of the lowest other rank; those of the others follow */
	uint32_t missing;    /* receives, and sends it is held by, that have not ended */
	uint32_t waiting;    /* sends that begin when the cell is combined, all behind @first */
};

struct wf_exchange {
	struct weft_op *op;
	struct weft_group *group; /* a reference until the end */
	enum wf_exchange_kind kind;
	uint32_t number, size, self;
	struct wf_reduce reduce;

	pthread_mutex_t lock;     /* all below, while the exchange runs */
	bool started, failed;
	uint32_t running;         /* transfers under way, and one until all that can have begun */
	uint32_t ended_count;     /* transfers that have ended */
	struct wf_error e;        /* first failure */
	struct wf_loop_task end_task;

	/* Constant while the exchange runs, but for what each transfer and cell has of its own. */
	uint32_t transfer_count, cell_count;
	struct transfer *transfers;
	struct cell *cells;
	const void **arrays;      /* arrays of each cell at once, by rank */
	unsigned char *parts;     /* memory for the parts of each cell at once */
	size_t part_bytes, parts_bytes; /* room of one part; of all */
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
	fresh->arrays = calloc((size_t)CELLS_AT_ONCE * group->job.size, sizeof(*fresh->arrays));
	if (!fresh->transfers || !fresh->cells || !fresh->arrays ||
	    pthread_mutex_init(&fresh->lock, NULL)) {
		free(fresh->transfers);
		free(fresh->cells);
		free(fresh->arrays);
		free(fresh);
		return wf_last_set(-ENOMEM, "no memory for a collective");
	}
	fresh->group = group;
	atomic_fetch_add(&group->refs, 1);
	fresh->kind = kind;
	fresh->size = group->job.size;
	fresh->self = group->job.rank;
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
	/* No two parts share a line of the cache. */
	x->part_bytes = WF_MAX(x->part_bytes, (bytes + 63) / 64 * 64);
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
	if (t->waits)
		x->cells[after].waiting++;
}

void wf_exchange_hold(struct wf_exchange *x, uint32_t cell)
{
	x->transfers[x->transfer_count - 1].cell = cell;
	x->cells[cell].missing++;
}

/*
 * Find memory for the parts of the cells at once.  It is the exchange's own: parts in the pool of
 * the node, which others fill too, might all wait for the one that finds no room.
 */
static int take_parts(struct wf_exchange *x)
{
	struct weft_group *group = x->group;

	x->parts_bytes = x->part_bytes * (x->size - 1) * WF_MIN(x->cell_count, CELLS_AT_ONCE);
	if (!x->parts_bytes)
		return 0;
	pthread_mutex_lock(&group->lock);
	if (group->spare_bytes >= x->parts_bytes) {
		x->parts = group->spare;
		x->parts_bytes = group->spare_bytes;
		group->spare = NULL;
		group->spare_bytes = 0;
	}
	pthread_mutex_unlock(&group->lock);
	if (!x->parts)
		x->parts = aligned_alloc(64, x->parts_bytes);
	return x->parts ? 0 : wf_last_set(-ENOMEM, "no memory for a collective");
}

/* Leave the memory for parts to the group's next exchange, unless that has more. */
static void give_parts(struct wf_exchange *x)
{
	struct weft_group *group = x->group;
	unsigned char *unused = x->parts;

	pthread_mutex_lock(&group->lock);
	if (x->parts_bytes > group->spare_bytes) {
		unused = group->spare;
		group->spare = x->parts;
		group->spare_bytes = x->parts_bytes;
	}
	pthread_mutex_unlock(&group->lock);
	x->parts = NULL;
	free(unused);
}

static void free_exchange(void *maker)
{
	struct wf_exchange *x = maker;

	for (uint32_t i = 0; i < x->transfer_count; i++)
		if (x->transfers[i].op)
			weft_op_free(x->transfers[i].op);
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

	give_parts(x);
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

/* Stop the transfers of this process, which others hear of by their deadlines. */
static void cancel_all(struct wf_exchange *x)
{
	for (uint32_t i = 0; i < x->transfer_count; i++) {
		struct transfer *t = &x->transfers[i];
		struct weft_op *op;

		pthread_mutex_lock(&x->lock);
		op = t->ended ? NULL : t->op;
		pthread_mutex_unlock(&x->lock);
		if (op)
			weft_cancel(op);
	}
}

/* Note the failure of @x as the group's, for its later collectives, unless there is one. */
static void fail_group(const struct wf_exchange *x)
{
	struct weft_group *group = x->group;

	pthread_mutex_lock(&group->lock);
	if (!group->failure.code)
		group->failure = x->e;
	pthread_mutex_unlock(&group->lock);
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
	wf_error_within(&x->e, "%s number %u of %u processes", names[x->kind], x->number, x->size);
	fail_group(x);
	if (weft_step_abort(group->node, group->members.step, wf_status_of(e->code), x->e.text))
		cancel_all(x);
}

/* Transfers */

static void begin(struct transfer *t);

/* Begin the receives of cell number @index, if there is one, in the memory of one that is combined. */
static void begin_cell(struct wf_exchange *x, uint32_t index)
{
	uint32_t others = x->size - 1;
	unsigned char *part;

	if (index >= x->cell_count)
		return;
	part = x->parts + x->part_bytes * others * (index % CELLS_AT_ONCE);
	for (uint32_t i = 0; i < others; i++) {
		struct transfer *t = &x->transfers[x->cells[index].first + i];

		t->data = part + x->part_bytes * i;
		begin(t);
	}
}

static void combine(struct wf_exchange *x, uint32_t index)
{
	const struct cell *cell = &x->cells[index];
	const void **arrays = x->arrays + (size_t)x->size * (index % CELLS_AT_ONCE);
	uint32_t next = cell->first;

	for (uint32_t rank = 0; rank < x->size; rank++)
		arrays[rank] = rank == x->self ? cell->own : x->transfers[next++].data;
	wf_reduce_run(&x->reduce, cell->out, arrays, x->size, cell->count);
}

/* Begin the sends that wait for cell number @index, which is combined. */
static void begin_waiting(struct wf_exchange *x, uint32_t index)
{
	uint32_t left = x->cells[index].waiting;

	for (struct transfer *t = &x->transfers[x->cells[index].first]; left; t++) {
		if (!t->waits || t->cell != index)
			continue;
		left--;
		begin(t);
	}
}

/* The cell of @t needs @t no longer.  The last that it needs lets it be combined. */
static void give_to_cell(struct transfer *t)
{
	struct wf_exchange *x = t->x;
	bool complete;

	pthread_mutex_lock(&x->lock);
	complete = !--x->cells[t->cell].missing && !x->failed;
	pthread_mutex_unlock(&x->lock);
	if (!complete)
		return;
	combine(x, t->cell);
	begin_cell(x, t->cell + CELLS_AT_ONCE);
	begin_waiting(x, t->cell);
}

/*
 * Is @came of the size and the collective that are expected?  A peer may send anything: a dead
 * tensor, or elements of another size.
 */
static bool fits(const struct transfer *t, const struct weft_tensor *came)
{
	if (came->ndim != 1 + (int32_t)t->x->kind || came->dtype.code != WEFT_UINT ||
	    came->dtype.bits != 8 || came->dtype.lanes != 1)
		return false;
	for (int32_t i = 0; i < came->ndim; i++)
		if (came->shape[i] != (i ? 1 : (int64_t)t->bytes))
			return false;
	return true;
}

static void *find_room(void *arg, const struct weft_tensor *want, uint64_t bytes)
{
	struct transfer *t = arg;

	(void)bytes;
	t->misfits = !fits(t, want);
	return t->misfits ? NULL : t->data;
}

/* Does what has come for @t fit?  Where there are no bytes, nobody has asked for room. */
static bool has_come(const struct transfer *t, struct weft_op *op)
{
	const struct weft_tensor *came = weft_op_tensor(op, NULL);

	return came && fits(t, came) && (came->data || !t->bytes);
}

static void ended(struct weft_op *op, void *arg)
{
	struct transfer *t = arg;
	struct wf_exchange *x = t->x;
	enum weft_status status = weft_op_status(op);
	struct wf_error e;

	pthread_mutex_lock(&x->lock);
	t->ended = true;
	x->ended_count++;
	pthread_mutex_unlock(&x->lock);
	if (t->misfits || (status == WEFT_OK && !t->is_send && !has_come(t, op))) {
		wf_error_set(&e, -EINVAL,
			     "rank %u has begun another collective, or with tensors of another size",
			     t->rank);
		fail(x, &e);
	} else if (status != WEFT_OK) {
		wf_error_set(&e, wf_status_code(status), "%s", weft_op_message(op));
		fail(x, &e);
	} else if (t->cell != NO_CELL && !t->waits) {
		give_to_cell(t);
	}
	leave(x);
}

/* Returns options of @t, of which is asked what was asked of the collective. */
static struct weft_op_options options_of(struct transfer *t)
{
	const struct wf_terms *terms = &t->x->op->terms;
	struct weft_op_options o = WEFT_OP_OPTIONS_INIT;

	o.timeout_ns = WEFT_FOREVER;
	o.done = ended;
	o.arg = t;
	o.flags = (terms->checksum ? WEFT_CHECKSUM : 0) |
		  (terms->no_staging ? WEFT_STRICT_NO_STAGING : 0) |
		  (terms->no_fallback ? WEFT_STRICT_NO_FALLBACK : 0);
	o.priority = terms->priority;
	o.rails_min = terms->rails_min;
	o.provider = terms->provider;
	return o;
}

static int submit(struct transfer *t, struct weft_op **op)
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
	s.op = r.op = options_of(t);
	err = weft_group_peer(group, t->rank, &peer);
	if (err)
		return err;
	if (t->is_send)
		return weft_send(peer, group->members.step, key, sizeof(key), &tensor, &s, op);
	r.alloc = find_room;
	r.alloc_arg = t;
	return weft_recv(group->node, peer, group->members.step, key, sizeof(key), NULL, &r, op);
}

static void begin(struct transfer *t)
{
	struct wf_exchange *x = t->x;
	struct weft_op *op = NULL;
	struct wf_error e;
	bool failed;
	int err;

	pthread_mutex_lock(&x->lock);
	x->running++;
	pthread_mutex_unlock(&x->lock);
	err = submit(t, &op);
	pthread_mutex_lock(&x->lock);
	t->op = op;
	failed = x->failed;
	pthread_mutex_unlock(&x->lock);
	if (!err && failed)
		weft_cancel(op);
	if (!err)
		return;
	wf_error_set(&e, err, "%s", wf_last_text());
	fail(x, &e);
	leave(x);
}

/* The operation */

/* Fail @x as an earlier collective of the group has, before it begins.  Returns whether one has. */
static bool fail_as_group(struct wf_exchange *x)
{
	struct weft_group *group = x->group;

	pthread_mutex_lock(&group->lock);
	x->e = group->failure;
	pthread_mutex_unlock(&group->lock);
	x->failed = x->e.code;
	return x->failed;
}

static void start(void *maker)
{
	struct wf_exchange *x = maker;

	x->started = true;
	if (fail_as_group(x)) {
		leave(x);
		return;
	}
	for (uint32_t i = 0; i < CELLS_AT_ONCE; i++)
		begin_cell(x, i);
	for (uint32_t i = 0; i < x->transfer_count; i++)
		if (!x->transfers[i].is_send && x->transfers[i].cell == NO_CELL)
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

static uint64_t progress(void *maker)
{
	struct wf_exchange *x = maker;
	uint64_t count;

	pthread_mutex_lock(&x->lock);
	count = x->ended_count;
	pthread_mutex_unlock(&x->lock);
	return count;
}

/*
 * Note in @awaited, by rank, to whom sends, or from whom receives, have begun and not ended.
 * Returns how many ranks those are.  Under the lock.
 */
static uint32_t note_awaited(const struct wf_exchange *x, bool sends, bool *awaited)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < x->transfer_count; i++) {
		const struct transfer *t = &x->transfers[i];

		if (t->is_send != sends || !t->op || t->ended)
			continue;
		count += !awaited[t->rank];
		awaited[t->rank] = true;
	}
	return count;
}

static void describe_wait(const void *maker, char *text, size_t bytes)
{
	struct wf_exchange *x = (struct wf_exchange *)(uintptr_t)maker;
	bool *awaited = calloc(x->size, sizeof(*awaited));
	uint32_t ranks[8] = { 0 }, count = 0, total;
	bool sends;
	char list[120];

	if (!awaited) {
		snprintf(text, bytes, "there is no memory to say what for");
		return;
	}
	pthread_mutex_lock(&x->lock);
	total = note_awaited(x, false, awaited);
	sends = !total;
	if (sends)
		total = note_awaited(x, true, awaited);
	pthread_mutex_unlock(&x->lock);
	for (uint32_t rank = 0; rank < x->size && count < WF_COUNT(ranks); rank++)
		if (awaited[rank])
			ranks[count++] = rank;
	free(awaited);
	wf_join_ranks(ranks, count, total, list, sizeof(list));
	if (total)
		snprintf(text, bytes, "not all %s %s", sends ? "that was sent is taken by" : "has come from",
			 list);
	else
		snprintf(text, bytes, "it waits for no other process");
}

int wf_exchange_launch(struct wf_exchange *x, const struct weft_op_options *options,
		       struct weft_op **op)
{
	static const struct wf_composite_functions functions = {
		.start = start,
		.stop = stop,
		.free = free_exchange,
		.progress = progress,
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
	err = take_parts(x);
	if (err) {
		wf_group_put(group);
		wf_op_drop(fresh);
		return err;
	}
	x->op = fresh;
	x->running = 1;
	pthread_mutex_lock(&group->lock);
	x->number = group->exchanges++;
	pthread_mutex_unlock(&group->lock);
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}
