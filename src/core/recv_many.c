/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each worker to which tensors may come has a part of the receive: one worker, if the peer is
 * named, else all.  A part waits in its channel until the receive is stopped, and never has a
 * tensor itself: it claims each for a new receive, which is an operation as if the program had
 * begun it at that moment.  The end of the whole is told after those of all tensors.
 *
 * A part that would have more tensors out than it may leaves them in the channel, unexpected; so
 * credit holds their sender back.  The free of a handle has it claim again.
 *
 * References to the operation: one of each part until it has ended, one of each tensor's
 * operation, and one of each task.
 */
#include "core/recv_many.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/describe.h"
#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/recv.h"
#include "core/tensor.h"
#include "core/turn.h"
#include "core/watch.h"
#include "core/worker.h"

#define MAX_DEFAULT 1024

/* OPEN: tensors are claimed.  FULL: the next free of a handle asks for claiming again. */
enum claiming { OPEN, FULL, ASKED };

struct wf_recv_many_part {
	struct weft_op *op;
	struct wf_worker *worker;
	struct wf_receiving receiving;
	_Atomic enum claiming claiming;
	unsigned moving; /* tensors that are on their way */
	bool stopping;   /* told to stop; op->worker only */
	bool stopped;    /* maybe before its start */
	bool ended;      /* the receiving has ended, because of @why */
	struct wf_error why;
	struct wf_list held; /* notices of tensors, until the submitting call is over */
	struct wf_loop_notice held_notice, end_notice;
	struct wf_loop_task start_task, stop_task, claim_task, end_task;
};

static struct wf_recv_many_part *part_of(struct wf_receiving *r)
{
	return WF_CONTAINER(r, struct wf_recv_many_part, receiving);
}

static void submit(struct wf_recv_many_part *part, struct wf_loop_task *task,
		   void (*run)(struct wf_loop_task *task))
{
	task->run = run;
	wf_loop_submit(&part->worker->engine.loop, task);
}

/* The end */

/* Have @part end, at its worker, when its tensors have.  The whole has a reason of its own. */
static void stop_here(struct wf_recv_many_part *part)
{
	struct wf_error e;

	part->stopped = true;
	wf_error_set(&e, -ECANCELED, "the receive has ended");
	if (part->receiving.state == WF_RECEIVING_WAITING)
		wf_channels_stop_receive(&part->receiving, &e);
}

static void stop_there(struct wf_loop_task *task)
{
	struct wf_recv_many_part *part = WF_CONTAINER(task, struct wf_recv_many_part, stop_task);

	stop_here(part);
	wf_op_put(part->op);
}

/* Have all parts end.  Threads: owner of op->worker. */
static void stop_parts(struct weft_op *op)
{
	for (unsigned i = 0; i < op->recv_many.count; i++) {
		struct wf_recv_many_part *part = &op->recv_many.parts[i];

		if (part->stopping)
			continue;
		part->stopping = true;
		if (part->worker == op->worker) {
			stop_here(part);
		} else {
			atomic_fetch_add(&op->refs, 1);
			submit(part, &part->stop_task, stop_there);
		}
	}
}

/* @part has ended, as the last or the first, whose reason is that of the whole. */
static void end(struct wf_loop_task *task)
{
	struct wf_recv_many_part *part = WF_CONTAINER(task, struct wf_recv_many_part, end_task);
	struct weft_op *op = part->op;

	if (!op->outcome.error.code)
		wf_reason_keep(&op->outcome.error, &part->why);
	if (--op->recv_many.running)
		stop_parts(op);
	else
		wf_op_finish_kept(op);
	wf_op_put(op);
}

static void go_home(struct wf_loop_notice *notice)
{
	struct wf_recv_many_part *part = WF_CONTAINER(notice, struct wf_recv_many_part, end_notice);
	struct wf_worker *home = part->op->worker;

	part->end_task.run = end;
	if (home == part->worker)
		end(&part->end_task);
	else
		wf_loop_submit(&home->engine.loop, &part->end_task);
}

/* Tell the end of @part, if this is it, behind the notices of its last tensors. */
static void check_end(struct wf_recv_many_part *part)
{
	if (!part->ended || part->moving || !wf_list_empty(&part->held))
		return;
	part->end_notice.run = go_home;
	wf_loop_defer(&part->worker->engine.loop, &part->end_notice);
}

static void done(struct wf_receiving *r, const struct wf_error *e)
{
	struct wf_recv_many_part *part = part_of(r);

	part->ended = true;
	if (!part->why.code)
		part->why = *e;
	check_end(part);
}

/* Tensors */

/* Tell the tensors that @part holds, in their order, once the submitting call is over. */
static void tell_held(struct wf_loop_notice *notice)
{
	struct wf_recv_many_part *part =
		WF_CONTAINER(notice, struct wf_recv_many_part, held_notice);
	struct wf_loop *loop = &part->worker->engine.loop;
	struct wf_list *node;

	if (!wf_op_submission_is_over(part->op)) {
		wf_loop_defer(loop, notice);
		return;
	}
	while ((node = wf_list_pop(&part->held)))
		wf_loop_defer(loop, WF_CONTAINER(node, struct wf_loop_notice, node));
	check_end(part);
}

/* Hold the notice of @tensor, which has just been deferred, and those that follow. */
static void hold(struct wf_recv_many_part *part, struct weft_op *tensor)
{
	wf_list_remove(&tensor->notice.node);
	if (wf_list_empty(&part->held)) {
		part->held_notice.run = tell_held;
		wf_loop_defer(&part->worker->engine.loop, &part->held_notice);
	}
	wf_list_append(&part->held, &tensor->notice.node);
}

static void tensor_done(struct wf_receiving *r, const struct wf_error *e)
{
	struct weft_op *tensor = WF_CONTAINER(r, struct weft_op, recv.receiving);
	struct wf_recv_many_part *part = tensor->recv.one_of;

	wf_recv_done(r, e);
	/* The tensor was claimed by its worker, and nobody has submitted it. */
	if (!atomic_load(&part->op->submitted) || !wf_list_empty(&part->held))
		hold(part, tensor);
	part->moving--;
	check_end(part);
}

static void claim_again(struct wf_loop_task *task)
{
	struct wf_recv_many_part *part = WF_CONTAINER(task, struct wf_recv_many_part, claim_task);

	atomic_store(&part->claiming, OPEN);
	if (!part->ended)
		wf_channels_claim_again(&part->receiving);
	wf_op_put(part->op);
}

/* Ask @part to claim again, if it is full.  Threads: any. */
static void ask_to_claim(struct wf_recv_many_part *part)
{
	enum claiming full = FULL;

	if (!atomic_compare_exchange_strong(&part->claiming, &full, ASKED))
		return;
	atomic_fetch_add(&part->op->refs, 1);
	submit(part, &part->claim_task, claim_again);
}

void wf_recv_many_freed(struct wf_recv_many_part *part, bool closed)
{
	struct weft_op *op = part->op;

	atomic_fetch_sub(&op->recv_many.out, 1);
	for (unsigned i = 0; !closed && i < op->recv_many.count; i++)
		ask_to_claim(&op->recv_many.parts[i]);
	wf_op_put(op);
}

/* Returns whether another tensor may be out, and is counted. */
static bool take_place(struct wf_recv_many_part *part)
{
	struct wf_op_recv_many *many = &part->op->recv_many;
	unsigned out = atomic_load(&many->out);

	if (atomic_load(&part->claiming) != OPEN)
		return false;
	/* A count that went beyond the limit for a moment would keep another part from a place. */
	while (out < many->max)
		if (atomic_compare_exchange_weak(&many->out, &out, out + 1))
			return true;
	atomic_store(&part->claiming, FULL);
	/* A handle may have been freed just before, by a thread that saw no need to ask. */
	if (atomic_load(&many->out) < many->max)
		ask_to_claim(part);
	return false;
}

/* Make an operation for a tensor that has come to @part.  NULL: no memory. */
static struct weft_op *make(struct wf_recv_many_part *part)
{
	const struct weft_op *op = part->op;
	const struct wf_op_recv_many *many = &op->recv_many;
	struct wf_receiving *r;
	struct weft_op *fresh;

	if (wf_op_new(op->owner, NULL, &wf_recv_class, &many->told, &fresh))
		return NULL;
	fresh->worker = part->worker;
	fresh->terms = op->terms;
	fresh->time.deadline_ns = UINT64_MAX;
	fresh->entry.sole = true;
	fresh->recv.one_of = part;
	r = &fresh->recv.receiving;
	r->step = many->step;
	r->key = many->key;
	r->key_bytes = many->key_bytes;
	r->flags = many->flags;
	r->alloc = many->alloc;
	r->alloc_arg = many->alloc_arg;
	r->came = many->came;
	r->came_arg = many->came_arg;
	r->terms = &fresh->terms;
	r->done = tensor_done;
	return fresh;
}

static void fail(struct wf_loop_task *task)
{
	struct wf_recv_many_part *part = WF_CONTAINER(task, struct wf_recv_many_part, claim_task);

	if (!part->ended)
		wf_error_set(&part->why, -ENOMEM,
			     "no memory for a tensor that came, which waits for another receive");
	stop_here(part);
	wf_op_put(part->op);
}

static struct wf_receiving *claim(struct wf_receiving *r)
{
	struct wf_recv_many_part *part = part_of(r);
	struct weft_op *tensor;

	if (!take_place(part))
		return NULL;
	atomic_fetch_add(&part->op->refs, 1);
	tensor = make(part);
	if (!tensor) {
		atomic_fetch_sub(&part->op->recv_many.out, 1);
		atomic_store(&part->claiming, ASKED);
		submit(part, &part->claim_task, fail);
		return NULL;
	}
	part->moving++;
	wf_op_begin(tensor);
	atomic_store_explicit(&tensor->submitted, true, memory_order_release);
	wf_watch_begin(tensor);
	return &tensor->recv.receiving;
}

/* The beginning */

static void start_part(struct wf_loop_task *task)
{
	struct wf_recv_many_part *part = WF_CONTAINER(task, struct wf_recv_many_part, start_task);
	struct wf_receiving *r = &part->receiving;
	struct weft_peer *peer = part->op->peer;
	struct wf_link *link = NULL;
	struct wf_error e = { 0 };

	if (part->worker->node->closing)
		wf_error_set(&e, -ECANCELED, "this node has closed");
	else if (part->stopped)
		wf_error_set(&e, -ECANCELED, "the receive has ended");
	else if (peer)
		wf_peer_link(peer, part->worker, &link, &e);
	if (e.code) {
		done(r, &e);
		return;
	}
	r->from = link;
	wf_channels_receive(&part->worker->channels, r);
}

static struct wf_recv_many_part *own_part(const struct weft_op *op)
{
	const struct wf_op_recv_many *many = &op->recv_many;

	return &many->parts[many->count > 1 ? op->worker - op->owner->workers : 0];
}

static void start(struct weft_op *op)
{
	start_part(&own_part(op)->start_task);
}

static void fan_out(struct weft_op *op, uint64_t now_ns)
{
	const struct wf_recv_many_part *own = own_part(op);

	for (unsigned i = 0; i < op->recv_many.count; i++)
		if (&op->recv_many.parts[i] != own)
			wf_turn_run(op->recv_many.parts[i].worker,
				    &op->recv_many.parts[i].start_task, now_ns);
}

static void stop(struct weft_op *op, const struct wf_error *e)
{
	if (!op->outcome.error.code)
		wf_reason_keep(&op->outcome.error, e);
	stop_parts(op);
}

static int take_back(struct weft_op *op)
{
	struct wf_recv_many_part *part = own_part(op);
	enum claiming full = FULL;

	/* Tasks and notices of a part run at the worker that it had when they were begun. */
	if (part->moving || !wf_list_empty(&part->held))
		return -EALREADY;
	/* A full part has none.  It finds out that it is full again, wherever that is. */
	if (!atomic_compare_exchange_strong(&part->claiming, &full, OPEN) && full != OPEN)
		return -EALREADY;
	return wf_channels_take_back(&part->receiving);
}

static void moved(struct weft_op *op, struct wf_worker *to)
{
	own_part(op)->worker = to;
}

static void free_recv_many(struct weft_op *op)
{
	free(op->recv_many.parts);
}

static uint64_t step(const struct weft_op *op)
{
	return op->recv_many.step;
}

static void describe(const struct weft_op *op, char *text)
{
	wf_describe_add(text, "recv many");
	wf_recv_describe(op, op->recv_many.step, op->recv_many.key, op->recv_many.key_bytes, text);
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	unsigned out = atomic_load(&op->recv_many.out);

	(void)snprintf(text, bytes, "%u tensors are out, of %u that may be%s", out,
		       op->recv_many.max,
		       out < op->recv_many.max ? "" : ": it goes on when one is freed");
}

static void late(const struct weft_op *op, const char *who, struct wf_error *e)
{
	(void)op;
	(void)who;
	wf_error_set(e, -ETIMEDOUT, "the deadline of the receive passed");
}

#define BYTES (offsetof(struct weft_op, recv_many) + sizeof(struct wf_op_recv_many))

const struct wf_op_class wf_recv_many_class = {
	.kind = WF_OP_RECV_MANY,
	.recorded = WF_RECORDER_RECV,
	.bytes = BYTES,
	.zero_to = BYTES,
	.patient = true,
	.start = start,
	.fan_out = fan_out,
	.refuse = wf_op_refuse_parts,
	.stop = stop,
	.take_back = take_back,
	.moved = moved,
	.free = free_recv_many,
	.step = step,
	.describe = describe,
	.describe_wait = describe_wait,
	.late = late,
};

/* Tensors of a named peer come to one worker alone. */
static int make_parts(struct weft_op *op)
{
	struct wf_op_recv_many *many = &op->recv_many;

	many->count = op->peer ? 1 : op->owner->worker_count;
	many->parts = calloc(many->count, sizeof(*many->parts));
	if (!many->parts)
		return wf_last_set(-ENOMEM, "no memory for a receive");
	many->running = many->count;
	atomic_fetch_add(&op->refs, many->count);
	for (unsigned i = 0; i < many->count; i++) {
		struct wf_recv_many_part *part = &many->parts[i];

		part->op = op;
		wf_list_init(&part->held);
		part->worker = op->peer ? op->worker : &op->owner->workers[i];
		part->start_task.run = start_part;
		part->receiving.step = many->step;
		part->receiving.key = many->key;
		part->receiving.key_bytes = many->key_bytes;
		part->receiving.flags = many->flags;
		part->receiving.terms = &op->terms;
		part->receiving.claim = claim;
		part->receiving.done = done;
	}
	return 0;
}

int wf_recv_many(struct weft_node *node, struct weft_peer *peer, uint64_t step, const void *key,
		 size_t key_bytes, const struct weft_tensor *into,
		 const struct weft_recv_options *options, struct weft_op **op)
{
	const struct weft_op_options *nested;
	struct wf_op_recv_many *many;
	struct weft_op *fresh;
	const int64_t *shape;
	int err;

	if (options->flags & ~(unsigned)(WEFT_RECV_MANY | WEFT_ANY_KEY))
		return wf_last_set(-EINVAL, "flags %#x are not for a receive of many",
				   options->flags);
	if (into)
		return wf_last_set(-EINVAL, "a receive of many has no buffer for each");
	if (!options->op.done && !options->op.queue)
		return wf_last_set(-EINVAL, "a receive of many needs a callback or a queue");
	if (!op && options->op.done)
		return wf_last_set(-EINVAL, "a receive of many whose callback is told of tensors and of "
					    "its own end needs an operation to tell them apart");
	err = wf_op_nested(&options->op, &nested);
	if (!err)
		err = wf_op_new(node, peer, &wf_recv_many_class, nested, &fresh);
	if (err)
		return err;
	many = &fresh->recv_many;
	many->step = step;
	many->key_bytes = (uint16_t)key_bytes;
	many->flags = options->flags & WEFT_ANY_KEY;
	many->alloc = options->alloc;
	many->alloc_arg = options->alloc_arg;
	many->came = options->came;
	many->came_arg = options->came_arg;
	many->max = options->many_max ? options->many_max : MAX_DEFAULT;
	many->told = (struct weft_op_options){
		.size = sizeof(many->told),
		.done = options->op.done,
		.arg = options->op.arg,
		.queue = options->op.queue,
	};
	err = wf_tensor_copy_names(fresh, key, key_bytes, NULL, &shape, &many->key);
	if (many->flags)
		many->key = NULL;
	if (!err)
		err = make_parts(fresh);
	if (err) {
		wf_op_drop(fresh);
		return err;
	}
	if (!fresh->timed)
		fresh->time.deadline_ns = UINT64_MAX;
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}
