/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/push.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/describe.h"
#include "core/op.h"
#include "core/rma.h"
#include "core/tensor.h"
#include "core/worker.h"
#include "tensor/shape.h"

static struct weft_op *op_of(struct wf_announced_wait *wait)
{
	return WF_CONTAINER(wait, struct weft_op, push.wait);
}

static void free_push(struct weft_op *op)
{
	if (op->push.remote)
		wf_rma_close(op->push.remote);
	free(op->push.slot);
}

static void let_go(struct weft_op *op)
{
	op->push.remote = NULL;
}

/* Give the slot up: @used if it is surely not to be pushed into again. */
static void leave_slot(struct weft_op *op, bool used)
{
	struct wf_announced_slot *slot = op->push.slot;

	op->push.slot = NULL;
	if (used)
		free(slot);
	else
		wf_announced_keep(&op->push.remote->announced, slot);
}

static void put_done(struct wf_putting *p, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(p, struct weft_op, push.putting);
	bool refused = e && e->code == wf_status_code(WEFT_ABORTED);

	/* The slot was withdrawn meanwhile, or used by an earlier push that has failed. */
	if (refused) {
		leave_slot(op, true);
		wf_announced_await(&op->push.remote->announced, &op->push.wait, true);
		return;
	}
	wf_op_path_set(op, &p->path, 0);
	wf_op_finish(op, e, p->sent ? WEFT_EXECUTED_MAYBE : WEFT_EXECUTED_NO);
	leave_slot(op, !e);
}

static void come(struct wf_announced_wait *wait, struct wf_announced_slot *slot)
{
	struct weft_op *op = op_of(wait);
	struct wf_op_push *push = &op->push;
	struct wf_putting *p = &push->putting;
	struct wf_link *link;
	struct wf_error e;
	int err;

	push->slot = slot;
	err = wf_peer_link(op->peer, op->worker, &link, &e);
	if (!err && push->block.bytes > slot->bytes)
		err = wf_error_set(&e, wf_status_code(WEFT_FAILED_PRECONDITION),
				   "a tensor of %llu bytes, and slots of %llu",
				   (unsigned long long)push->block.bytes,
				   (unsigned long long)slot->bytes);
	if (err) {
		wf_op_finish(op, &e, WEFT_EXECUTED_NO);
		leave_slot(op, false);
		return;
	}
	push->block.from = slot->number * slot->bytes;
	wf_landed_set_serial(push->note, slot->serial);
	p->number = slot->number;
	p->done = put_done;
	wf_putting_start(&op->worker->remotes, link, p);
}

static void fail(struct wf_announced_wait *wait, const struct wf_error *e)
{
	wf_op_finish(op_of(wait), e, WEFT_EXECUTED_NO);
}

static void start(struct weft_op *op)
{
	struct wf_op_push *push = &op->push;

	push->remote->worker = op->worker;
	push->wait.come = come;
	push->wait.fail = fail;
	wf_announced_await(&push->remote->announced, &push->wait, false);
}

static void stop(struct weft_op *op, const struct wf_error *e)
{
	if (op->push.slot) {
		wf_putting_stop(&op->push.putting, e);
		return;
	}
	wf_announced_leave(&op->push.wait);
	wf_op_finish(op, e, WEFT_EXECUTED_NO);
	if (e->code == -ETIMEDOUT)
		wf_announced_late(&op->push.remote->announced, op->worker->engine.options.lost_ns);
}

static int take_back(struct weft_op *op)
{
	int err = 0;

	if (!op->push.slot)
		wf_announced_leave(&op->push.wait);
	else
		err = wf_putting_take_back(&op->push.putting);
	/* The peer is yet to be met in this life of its link: the slot was of an earlier one. */
	if (!err && op->push.slot)
		leave_slot(op, true);
	return err;
}

/* A closing node hears of no slot any more. */
static void starve(struct weft_op *op, struct wf_worker *worker, const struct wf_error *e)
{
	if (op->worker == worker && !op->push.slot)
		wf_op_stop(op, e);
}

static uint64_t progress(struct weft_op *op)
{
	return op->push.slot ? wf_putting_progress(&op->push.putting) : 0;
}

static uint64_t offered_bytes(const struct weft_op *op)
{
	return op->push.slot ? wf_putting_offered_bytes(&op->push.putting) : 0;
}

static void describe(const struct weft_op *op, char *text)
{
	wf_describe_add(text, "push %llu bytes into a landing of ",
			(unsigned long long)op->push.block.bytes);
	wf_describe_peer(op, text);
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	if (op->push.slot)
		wf_putting_describe(&op->push.putting, text, bytes);
	else
		(void)snprintf(text, bytes, "no slot of the landing is announced");
}

static void late(const struct weft_op *op, const char *who, struct wf_error *e)
{
	wf_error_set(e, -ETIMEDOUT,
		     op->push.slot ? "the deadline passed before %s had read all into its slot"
				   : "the deadline passed before %s announced a slot", who);
}

const struct wf_op_class wf_push_class = {
	.kind = WF_OP_PUSH,
	.recorded = WF_RECORDER_PUSH,
	.bytes = offsetof(struct weft_op, push) + sizeof(struct wf_op_push),
	.zero_to = offsetof(struct weft_op, push.note),
	.start = start,
	.stop = stop,
	.take_back = take_back,
	.starve = starve,
	.free = free_push,
	.let_go = let_go,
	.progress = progress,
	.offered_bytes = offered_bytes,
	.describe = describe,
	.describe_wait = describe_wait,
	.late = late,
};

/* Making them */

static int check(const struct weft_remote *remote, const struct weft_tensor *tensor, uint64_t *bytes)
{
	int err = WF_NEED(tensor);

	if (!(remote->rights & WEFT_WINDOW_LAND))
		return wf_last_set(-EACCES, "the window is no landing");
	if (!err)
		err = wf_tensor_check(tensor, bytes);
	if (!err && !wf_shape_contiguous(tensor))
		err = wf_last_set(-EINVAL, "a tensor to push must be contiguous");
	if (!err && tensor->device.type != WEFT_CPU && tensor->device.type != WEFT_CUDA_HOST &&
	    tensor->device.type != WEFT_CUDA_MANAGED)
		err = wf_last_set(-ENOTSUP, "a tensor to push must be where the CPU reaches it");
	return err;
}

static void fill(struct weft_op *op, const struct weft_tensor *tensor, uint64_t bytes,
		 uint64_t number)
{
	struct wf_op_push *push = &op->push;
	struct wf_bytes_writer w = wf_bytes_writer(push->note, sizeof(push->note));
	const struct wf_landed landed = {
		.number = number, .dtype = tensor->dtype, .rank = (uint8_t)tensor->ndim,
	};

	wf_landed_put(&w, &landed, tensor->shape);
	push->note_bytes = (uint16_t)(w.at - push->note);
	push->block.to = bytes ? (char *)tensor->data + tensor->byte_offset : NULL;
	push->block.bytes = bytes;
	push->putting.window = push->remote->remote.name;
	push->putting.blocks = &push->block;
	push->putting.count = bytes > 0;
	push->putting.flags = WF_ACCESS_PUSH_LAST | WF_ACCESS_PUSH_NOTED;
	push->putting.note = push->note;
	push->putting.note_bytes = push->note_bytes;
	push->putting.span = push->block.to;
	push->putting.span_bytes = bytes;
	push->putting.terms = &op->terms;
	push->putting.bodies = &push->body;
}

int wf_push(struct weft_remote *remote, const struct weft_tensor *tensor,
	    const struct weft_push_options *options, struct weft_op **op)
{
	const struct weft_op_options *nested;
	struct weft_push_options o;
	struct weft_op *fresh;
	uint64_t bytes;
	int err = wf_check_options(options, &o, sizeof(o));

	if (!err)
		err = check(remote, tensor, &bytes);
	if (!err)
		err = wf_op_nested(&o.op, &nested);
	if (!err)
		err = wf_op_new(remote->peer->owner, remote->peer, &wf_push_class, nested, &fresh);
	if (err)
		return err;
	atomic_fetch_add(&remote->refs, 1);
	fresh->push.remote = remote;
	fill(fresh, tensor, bytes, o.number);
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}
