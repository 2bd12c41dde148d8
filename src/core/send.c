/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/attachment.h"
#include "core/check.h"
#include "core/describe.h"
#include "core/last.h"
#include "core/memory.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/streaming.h"
#include "core/tensor.h"
#include "core/worker.h"
#include "tensor/key.h"
#include "tensor/shape.h"
#include "util/clock.h"

static void send_done(struct wf_sending *s, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(s, struct weft_op, send.sending);
	const struct wf_outgoing *p = &s->outgoing;
	bool eager = p->plan == WF_BODY_EAGER;
	bool staged = s->device && p->path.way != WF_BODY_HANDLE && !p->path.straight;

	if (op->send.attached && op->send.attached->lost) {
		wf_attachment_over(op);
		return;
	}
	wf_op_path_set(op, &p->path,
		       (unsigned)eager + (staged || (s->chunk && !p->lend)));
	if (s->chunk)
		(void)wf_memory_give(op->owner, s->chunk);
	s->chunk = NULL;
	wf_op_finish(op, e, p->sent ? WEFT_EXECUTED_MAYBE : WEFT_EXECUTED_NO);
	/* A call that waits for this attachment ends after it. */
	if (op->send.attached)
		wf_attachment_ended(op, e);
}

static void start(struct weft_op *op)
{
	struct wf_link *link;
	struct wf_error e;

	op->send.sending.done = send_done;
	if (wf_peer_link(op->peer, op->worker, &link, &e)) {
		send_done(&op->send.sending, &e);
		return;
	}
	wf_channels_send(&op->worker->channels, link, &op->send.sending);
}

void wf_send_start_attached(struct weft_op *op, struct wf_worker *worker, struct wf_link *link)
{
	op->send.sending.done = send_done;
	wf_sending_start(&worker->attachments, link, &op->send.sending);
}

static void stop(struct weft_op *op, const struct wf_error *e)
{
	if (op->send.attached)
		wf_attachment_stop(op, e);
	else
		wf_sending_stop(&op->send.sending, e);
}

/* An attachment stays with its message. */
static int take_back(struct weft_op *op)
{
	return op->send.attached ? -EALREADY : wf_sending_take_back(&op->send.sending);
}

static uint64_t missing_bytes(const struct weft_op *op)
{
	const struct wf_sending *s = &op->send.sending;

	return s->state == WF_SENDING_MEMORY ? s->outgoing.body_bytes : 0;
}

static void starve(struct weft_op *op, struct wf_worker *worker, const struct wf_error *e)
{
	if (op->worker == worker && missing_bytes(op))
		wf_op_stop(op, e);
}

static void free_send(struct weft_op *op)
{
	wf_kind_close(op->send.sending.device);
	free(op->send.sending.strided);
	if (op->send.attached && op->send.attached->stream)
		wf_streaming_put(op->send.attached->stream);
	free(op->send.attached);
}

static uint64_t progress(struct weft_op *op)
{
	return wf_sending_progress(&op->send.sending);
}

static uint64_t offered_bytes(const struct weft_op *op)
{
	return wf_sending_offered_bytes(&op->send.sending);
}

static uint64_t step(const struct weft_op *op)
{
	return op->send.sending.step;
}

static void describe(const struct weft_op *op, char *text)
{
	const struct wf_sending *s = &op->send.sending;

	wf_describe_add(text, "send");
	if (op->send.attached)
		wf_describe_add(text, " attachment");
	else
		wf_describe_channel(s->step, s->key, s->key_bytes, text);
	wf_describe_add(text, " %llu bytes to ", (unsigned long long)s->outgoing.body_bytes);
	if (op->send.attached && !op->peer)
		wf_describe_add(text, "a caller");
	else
		wf_describe_peer(op, text);
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	wf_sending_describe(&op->send.sending, text, bytes);
}

/* The sentence names step and key, so that a wrong one is seen at once. */
static void late(const struct weft_op *op, const char *who, struct wf_error *e)
{
	const struct wf_sending *s = &op->send.sending;
	char key[WF_KEY_TEXT_BYTES];

	if (op->send.attached) {
		wf_error_set(e, -ETIMEDOUT, "the deadline passed before the attachment was received");
		return;
	}
	wf_key_text(s->key, s->key_bytes, key);
	wf_error_set(e, -ETIMEDOUT, "the deadline passed before %s received step %llu, key %s", who,
		     (unsigned long long)s->step, key);
}

/* Members that an outgoing body sets up by itself are not zeroed. */
const struct wf_op_class wf_send_class = {
	.kind = WF_OP_SEND,
	.recorded = WF_RECORDER_SEND,
	.bytes = offsetof(struct weft_op, send) + sizeof(struct wf_op_send),
	.zero_to = offsetof(struct weft_op, send.sending.outgoing.transfer),
	.start = start,
	.stop = stop,
	.take_back = take_back,
	.starve = starve,
	.free = free_send,
	.missing_bytes = missing_bytes,
	.progress = progress,
	.offered_bytes = offered_bytes,
	.step = step,
	.describe = describe,
	.describe_wait = describe_wait,
	.late = late,
};

/* A program may have 100 000 sends open; tests/fabric/test_memory measures the rest. */
_Static_assert(offsetof(struct weft_op, send) + sizeof(struct wf_op_send) <= 896,
	       "a send with its offer takes less than 1.5 KiB");

/* Copy the elements in order before the call returns: the pool must have room now. */
static int take_snapshot(struct weft_op *op, const struct weft_tensor *t, uint64_t bytes)
{
	struct wf_sending *s = &op->send.sending;
	size_t done = 0;
	int err = wf_memory_take(op->owner, op->worker, bytes, &s->chunk);

	if (err)
		return err;
	if (wf_shape_contiguous(t))
		memcpy(s->chunk, (const char *)t->data + t->byte_offset, bytes);
	else
		(void)wf_shape_gather(t, s->chunk, &done, SIZE_MAX);
	s->outgoing.body = s->chunk;
	return 0;
}

/* Leave @t for the worker to gather when the pool has room. */
static int leave_strided(struct weft_op *op, const struct weft_tensor *t, const int64_t *shape,
			 uint64_t bytes)
{
	struct wf_worker *worker = op->worker;
	const struct wf_pool *pool = &worker->engine.pool;
	struct weft_tensor *strided;

	if (!wf_pool_fits(pool, bytes))
		return wf_last_set(-ENOBUFS,
				   "a copy of %llu bytes does not fit the pool of %llu (WEFT_POOL_BYTES)",
				   (unsigned long long)bytes,
				   (unsigned long long)pool->budget_bytes);
	strided = malloc(sizeof(*strided));
	if (!strided)
		return wf_last_set(-ENOMEM, "no memory for a strided tensor");
	*strided = *t;
	strided->shape = (int64_t *)(uintptr_t)shape;
	strided->strides = strided->shape + t->ndim;
	op->send.sending.strided = strided;
	return 0;
}

/* Share the chunk with the caller, who may free it from now on. */
static int take_share(struct weft_op *op, const struct weft_tensor *t, uint64_t bytes)
{
	struct wf_sending *s = &op->send.sending;

	if (s->device)
		return wf_last_set(-ENOTSUP,
				   "memory of CUDA device %d can't be shared: no other process maps it so",
				   t->device.id);
	if (!wf_shape_contiguous(t))
		return wf_last_set(-EINVAL, "only a contiguous tensor can be shared");
	if (wf_memory_share(op->owner, s->outgoing.body, bytes, &s->chunk))
		return wf_last_set(-EINVAL, "only memory of the node's pool can be shared");
	s->outgoing.lend = true;
	return 0;
}

/* Snapshots and strided tensors are sent from a copy in the pool. */
static int stage(struct weft_op *op, const struct weft_tensor *t, unsigned flags, uint64_t bytes)
{
	bool contiguous = wf_shape_contiguous(t), snapshot = flags & WEFT_SNAPSHOT;

	if (contiguous && !snapshot)
		return 0;
	if (op->send.sending.device)
		return wf_last_set(-ENOTSUP, "%s of device memory is not supported",
				   snapshot ? "a snapshot" : "a strided tensor");
	if (op->terms.no_staging)
		return wf_last_set(-EBADFD, "%s is copied into the pool first, and no staging was asked for",
				   snapshot ? "a snapshot" : "a strided tensor");
	return snapshot ? take_snapshot(op, t, bytes)
			: leave_strided(op, t, op->send.sending.shape, bytes);
}

int wf_send_new(struct weft_node *node, struct weft_peer *peer, const void *key,
		size_t key_bytes, const struct weft_tensor *tensor,
		const struct weft_send_options *options, struct weft_op **op)
{
	const struct weft_op_options *nested;
	struct weft_send_options o;
	struct wf_sending *s;
	struct weft_op *fresh;
	uint64_t bytes;
	int err;

	err = wf_check_options(options, &o, sizeof(o));
	if (err)
		return err;
	if (o.flags & ~(unsigned)(WEFT_DEAD | WEFT_OPAQUE | WEFT_SNAPSHOT | WEFT_SHARE))
		return wf_last_set(-EINVAL, "flags %#x are not for a send", o.flags);
	if (o.flags & WEFT_SHARE && o.flags & WEFT_SNAPSHOT)
		return wf_last_set(-EINVAL, "a snapshot needs no sharing");
	err = WF_NEED(tensor);
	if (!err)
		err = wf_tensor_check_key(key, key_bytes);
	if (!err)
		err = o.flags & WEFT_DEAD ? wf_tensor_bytes(tensor, &bytes)
					  : wf_tensor_check(tensor, &bytes);
	if (err)
		return err;
	if (o.flags & WEFT_OPAQUE &&
	    (tensor->ndim != 1 || tensor->dtype.code != WEFT_UINT || tensor->dtype.bits != 8 ||
	     tensor->dtype.lanes != 1))
		return wf_last_set(-EINVAL, "an opaque tensor is one row of uint8");
	err = wf_op_nested(&o.op, &nested);
	if (!err)
		err = wf_op_new(node, peer, &wf_send_class, nested, &fresh);
	if (err)
		return err;
	s = &fresh->send.sending;
	err = wf_tensor_copy_names(fresh, key, key_bytes, tensor, &s->shape, &s->key);
	if (err)
		goto drop_op;
	s->outgoing.terms = &fresh->terms;
	s->key_bytes = (uint16_t)key_bytes;
	s->flags = (uint8_t)(o.flags & (WEFT_DEAD | WEFT_OPAQUE));
	s->dtype = tensor->dtype;
	s->rank = (uint8_t)tensor->ndim;
	if (!(o.flags & WEFT_DEAD) && bytes) {
		s->outgoing.body = (char *)tensor->data + tensor->byte_offset;
		s->outgoing.body_bytes = bytes;
		err = wf_tensor_find_device(fresh, tensor, bytes, o.stream, &s->device);
	}
	if (!err && s->outgoing.body_bytes)
		err = o.flags & WEFT_SHARE ? take_share(fresh, tensor, bytes)
					   : stage(fresh, tensor, o.flags, bytes);
	if (err)
		goto drop_op;
	*op = fresh;
	return 0;

drop_op:
	wf_op_drop(fresh);
	return err;
}

int wf_send(struct weft_peer *peer, uint64_t step, const void *key, size_t key_bytes,
	    const struct weft_tensor *tensor, const struct weft_send_options *options,
	    struct weft_op **op)
{
	struct weft_op *fresh;
	int err = wf_send_new(peer->owner, peer, key, key_bytes, tensor, options, &fresh);

	if (err)
		return err;
	fresh->send.sending.step = step;
	/* A snapshot takes time, so the clock is read again. */
	wf_op_launch(fresh, fresh->send.sending.chunk ? wf_clock_now() : fresh->time.made_ns, op);
	return 0;
}
