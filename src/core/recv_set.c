/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set begins at the worker of its peer, in one task, and its items there with it.  Should the
 * peer turn out to be another worker's, items that run move there, and the set stays: it does
 * nothing but to count those that have ended, at whichever worker.
 *
 * Deadlines and losses are the items' own.  The last item to end ends the set.
 */
#include "core/recv_set.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/describe.h"
#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/recv.h"
#include "core/worker.h"

struct item {
	struct wf_recv_set *set;
	struct weft_op *recv;
};

struct wf_recv_set {
	struct weft_op *op;
	uint64_t step;
	void (*each)(void *arg, struct weft_op *op, size_t index);
	void *each_arg;
	atomic_size_t running; /* items whose end has not been told */
	struct wf_loop_task end_task;
	size_t count;
	struct item items[];
};

/* The end */

/* Returns the item that failed first, the lower one of two at one time; NULL: none has. */
static const struct item *first_failed(const struct wf_recv_set *set)
{
	const struct item *first = NULL;

	for (const struct item *item = set->items; item < set->items + set->count; item++)
		if (item->recv->outcome.error.code &&
		    (!first || item->recv->outcome.done_ns < first->recv->outcome.done_ns))
			first = item;
	return first;
}

static void finish(struct wf_recv_set *set)
{
	const struct item *failed = first_failed(set);
	enum weft_executed executed = WEFT_EXECUTED_NO;
	struct wf_error why, e;
	size_t came = 0;

	for (size_t i = 0; i < set->count; i++) {
		const struct weft_op *recv = set->items[i].recv;

		executed = WF_MAX(executed, recv->outcome.executed);
		came += !recv->outcome.error.code;
	}
	if (failed)
		wf_error_set(&e, failed->recv->outcome.error.code,
			     "%zu of %zu tensors came; item %zu failed first: %s", came, set->count,
			     (size_t)(failed - set->items),
			     wf_reason_get(&failed->recv->outcome.error, &why)->text);
	wf_op_finish(set->op, failed ? &e : NULL, WF_MIN(executed, WEFT_EXECUTED_MAYBE));
}

static void finish_there(struct wf_loop_task *task)
{
	finish(WF_CONTAINER(task, struct wf_recv_set, end_task));
}

static void item_ended(struct weft_op *recv, void *arg)
{
	const struct item *item = arg;
	struct wf_recv_set *set = item->set;
	struct wf_worker *home = set->op->worker;

	if (set->each)
		set->each(set->each_arg, set->op, (size_t)(item - set->items));
	/* A child that the callback forked ends nothing. */
	if (wf_check_node(recv->owner) || atomic_fetch_sub(&set->running, 1) > 1)
		return;
	if (recv->worker == home) {
		finish(set);
		return;
	}
	set->end_task.run = finish_there;
	wf_loop_submit(&home->engine.loop, &set->end_task);
}

/* Operations */

static void start(struct weft_op *op)
{
	const struct wf_recv_set *set = op->recv_set.set;

	for (size_t i = 0; i < set->count; i++)
		wf_op_start(set->items[i].recv);
}

static void fan_out(struct weft_op *op, uint64_t now_ns)
{
	const struct wf_recv_set *set = op->recv_set.set;

	for (size_t i = 0; i < set->count; i++)
		wf_op_submitted(set->items[i].recv, now_ns);
}

static void stop(struct weft_op *op, const struct wf_error *e)
{
	const struct wf_recv_set *set = op->recv_set.set;

	(void)e; /* the outcome is that of the items */
	for (size_t i = 0; i < set->count; i++)
		wf_op_cancel(set->items[i].recv);
}

/* The items are taken back, each for itself. */
static int take_back(struct weft_op *op)
{
	(void)op;
	return -EALREADY;
}

/* A set moves only before its start, and its items with it. */
static void moved(struct weft_op *op, struct wf_worker *to)
{
	const struct wf_recv_set *set = op->recv_set.set;

	for (size_t i = 0; i < set->count; i++)
		set->items[i].recv->worker = to;
}

static void free_recv_set(struct weft_op *op)
{
	struct wf_recv_set *set = op->recv_set.set;

	for (size_t i = 0; set && i < set->count; i++)
		wf_op_free(set->items[i].recv);
	free(set);
}

static uint64_t step(const struct weft_op *op)
{
	return op->recv_set.set->step;
}

static void describe(const struct weft_op *op, char *text)
{
	const struct wf_recv_set *set = op->recv_set.set;

	wf_describe_add(text, "recv set of %zu tensors step %llu from ", set->count,
			(unsigned long long)set->step);
	wf_describe_peer(op, text);
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	const struct wf_recv_set *set = op->recv_set.set;

	(void)snprintf(text, bytes, "%zu of %zu items have not ended", atomic_load(&set->running),
		       set->count);
}

#define BYTES (offsetof(struct weft_op, recv_set) + sizeof(struct wf_op_recv_set))

const struct wf_op_class wf_recv_set_class = {
	.kind = WF_OP_RECV_SET,
	.recorded = WF_RECORDER_RECV,
	.bytes = BYTES,
	.zero_to = BYTES,
	.patient = true, /* the items are watched */
	.start = start,
	.fan_out = fan_out,
	.refuse = wf_op_refuse_parts,
	.stop = stop,
	.take_back = take_back,
	.moved = moved,
	.free = free_recv_set,
	.step = step,
	.describe = describe,
	.describe_wait = describe_wait,
};

/* Making them */

/* Put the number of an item before the sentence of the last failure.  Returns @err. */
static int name_item(int err, size_t index)
{
	struct wf_error e;

	wf_error_set(&e, err, "item %zu: %s", index, wf_last_text());
	return wf_last_copy(&e);
}

/* Make the receive of the next item.  Failures are recorded. */
static int add_item(struct wf_recv_set *set, const struct weft_recv_item *wanted,
		    const struct weft_recv_options *options, uint64_t deadline_ns)
{
	struct item *item = &set->items[set->count];
	struct weft_recv_options o = *options;
	struct weft_op *recv;
	int err;

	o.op.arg = item;
	err = wf_recv_new(set->op->owner, set->op->peer, wanted->key, wanted->key_bytes,
			  wanted->into, &o, &recv);
	if (!err)
		err = wf_recv_at_step(recv, set->step);
	if (err)
		return name_item(err, set->count);
	recv->time.deadline_ns = deadline_ns;
	*item = (struct item){ .set = set, .recv = recv };
	set->count++;
	return 0;
}

static int add_items(struct wf_recv_set *set, const struct weft_recv_item *items, size_t count,
		     const struct weft_recv_set_options *o, uint64_t deadline_ns)
{
	struct weft_recv_options options = {
		.size = sizeof(options), .op = o->op, .flags = o->flags, .stream = o->stream,
	};
	int err = 0;

	options.op.size = sizeof(options.op);
	options.op.done = item_ended;
	options.op.queue = NULL;
	for (size_t i = 0; i < count && !err; i++)
		err = add_item(set, &items[i], &options, deadline_ns);
	return err;
}

/* Free @op, none of whose items is submitted. */
static void drop(struct weft_op *op)
{
	struct wf_recv_set *set = op->recv_set.set;

	while (set && set->count)
		wf_recv_drop(set->items[--set->count].recv);
	wf_op_drop(op);
}

static int check(const struct weft_node *node, const struct weft_peer *peer, size_t count,
		 const struct weft_recv_set_options *o)
{
	if (!count || count > WEFT_RECV_SET_MAX)
		return wf_last_set(-EINVAL, "a set of %zu items: expected 1 to %d", count,
				   WEFT_RECV_SET_MAX);
	if (o->flags & ~(unsigned)(WEFT_ANY_SHAPE | WEFT_DROP))
		return wf_last_set(-EINVAL, "flags %#x are not for a set of receives", o->flags);
	return peer && peer->owner != node
		       ? wf_last_set(-EINVAL, "the peer belongs to another node")
		       : 0;
}

int wf_recv_set(struct weft_node *node, struct weft_peer *peer, uint64_t step,
		const struct weft_recv_item *items, size_t count,
		const struct weft_recv_set_options *options, struct weft_op **op)
{
	const struct weft_op_options *nested;
	struct weft_recv_set_options o;
	struct wf_recv_set *set;
	struct weft_op *fresh;
	uint64_t deadline_ns;
	int err = wf_check_options(options, &o, sizeof(o));

	if (!err)
		err = check(node, peer, count, &o);
	if (!err)
		err = wf_op_nested(&o.op, &nested);
	if (!err)
		err = wf_op_new(node, peer, &wf_recv_set_class, nested, &fresh);
	if (err)
		return err;
	deadline_ns = fresh->time.deadline_ns;
	fresh->time.deadline_ns = UINT64_MAX; /* the items have it */
	set = fresh->recv_set.set = calloc(1, sizeof(*set) + count * sizeof(set->items[0]));
	if (!set) {
		drop(fresh);
		return wf_last_set(-ENOMEM, "no memory for a set of receives");
	}
	set->op = fresh;
	set->step = step;
	set->each = o.each;
	set->each_arg = o.each_arg;
	err = add_items(set, items, count, &o, deadline_ns);
	if (err) {
		drop(fresh);
		return err;
	}
	atomic_init(&set->running, count);
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}

struct weft_op *wf_recv_set_item(const struct weft_op *op, size_t index)
{
	const struct wf_recv_set *set = op->recv_set.set;

	return index < set->count ? set->items[index].recv : NULL;
}
