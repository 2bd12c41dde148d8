/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/shape.h"
#include "util/clock.h"

/* The sentence about a tensor that has no size.  -EINVAL. */
static int say_what_is_wrong(const struct weft_tensor *t)
{
	if (!t->dtype.bits || !t->dtype.lanes)
		return wf_last_set(-EINVAL, "an element of %u bits and %u lanes is none",
				   t->dtype.bits, t->dtype.lanes);
	if (t->ndim < 0 || t->ndim > WEFT_RANK_MAX)
		return wf_last_set(-EINVAL, "ndim is %d: expected 0 to %d", t->ndim, WEFT_RANK_MAX);
	if (!t->shape)
		return wf_last_set(-EINVAL, "shape is NULL, and ndim is %d", t->ndim);
	for (int32_t i = 0; i < t->ndim; i++)
		if (t->shape[i] < 0)
			return wf_last_set(-EINVAL, "dimension %d of the shape is negative: %lld", i,
					   (long long)t->shape[i]);
	return wf_last_set(-EINVAL, "no such dtype or shape");
}

int weft_tensor_bytes(const struct weft_tensor *tensor, uint64_t *bytes)
{
	int err;

	if (WF_NEED(tensor) || WF_NEED(bytes))
		return -EINVAL;
	err = wf_shape_bytes(tensor->dtype, tensor->ndim, tensor->shape, bytes);
	if (err == -EOVERFLOW)
		return wf_last_set(err, "the tensor is larger than any memory");
	return err ? say_what_is_wrong(tensor) : 0;
}

static int check_tensor(const struct weft_tensor *t, uint64_t *bytes)
{
	int err = weft_tensor_bytes(t, bytes);

	if (err)
		return err;
	if (*bytes && !t->data)
		return wf_last_set(-EINVAL, "a tensor of %llu bytes without data",
				   (unsigned long long)*bytes);
	return 0;
}

/* Where the @bytes of @t lie, if no CPU and no rail reaches them there. */
static int find_device(const struct weft_op *op, const struct weft_tensor *t, uint64_t bytes,
		       void *stream, struct wf_kind_body **device)
{
	const struct wf_options *options = &op->desk->worker.options;
	struct wf_error e;

	if (t->device.type == WEFT_CPU || !bytes)
		return 0;
	if (wf_kind_open(t->device.type, t->device.id, (char *)t->data + t->byte_offset, bytes,
			 options->cuda, stream, device, &e))
		return wf_last_copy(&e);
	return 0;
}

/* Key, shape and behind it the strides belong to the operation from now on. */
static int copy_names(struct weft_op *op, const void *key, size_t key_bytes,
		      const struct weft_tensor *t, const int64_t **shape, const void **key_copy)
{
	size_t shape_bytes = t ? (size_t)t->ndim * sizeof(int64_t) : 0;
	char *at = op->names;

	if (2 * shape_bytes + key_bytes > sizeof(op->names)) {
		at = op->memory = malloc(2 * shape_bytes + key_bytes);
		if (!at)
			return wf_last_set(-ENOMEM, "no memory for a key");
	}
	if (shape_bytes)
		memcpy(at, t->shape, shape_bytes);
	if (shape_bytes && t->strides)
		memcpy(at + shape_bytes, t->strides, shape_bytes);
	if (key_bytes)
		memcpy(at + 2 * shape_bytes, key, key_bytes);
	*shape = (const int64_t *)(void *)at;
	*key_copy = at + 2 * shape_bytes;
	return 0;
}

static int check_key(const void *key, size_t key_bytes)
{
	if (key_bytes && !key)
		return wf_last_set(-EINVAL, "key is NULL, and key_bytes is %zu", key_bytes);
	if (key_bytes > WEFT_KEY_BYTES_MAX)
		return wf_last_set(-EINVAL, "a key of %zu bytes: at most %d", key_bytes,
				   WEFT_KEY_BYTES_MAX);
	return 0;
}

/* Sends. */

static void send_done(struct wf_sending *s, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(s, struct weft_op, send.sending);
	const struct wf_parcel *p = &s->parcel;
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
	/* A call that waits for it ends behind it. */
	if (op->send.attached)
		wf_attachment_ended(op, e);
}

void wf_tensor_start_send(struct weft_op *op)
{
	struct wf_link *link;
	struct wf_error e;

	op->send.sending.done = send_done;
	if (wf_peer_link(op->peer, op->desk, &link, &e)) {
		send_done(&op->send.sending, &e);
		return;
	}
	wf_channels_send(&op->desk->channels, link, &op->send.sending);
}

void wf_tensor_start_attached(struct weft_op *op, struct wf_desk *desk, struct wf_link *link)
{
	op->send.sending.done = send_done;
	wf_sending_start(&desk->attachments, link, &op->send.sending);
}

/* Copy the elements, one after the other, before the call returns: the pool must have room now. */
static int take_snapshot(struct weft_op *op, const struct weft_tensor *t, uint64_t bytes)
{
	struct wf_sending *s = &op->send.sending;
	size_t done = 0;
	int err = wf_memory_take(op->owner, op->desk, bytes, &s->chunk);

	if (err)
		return err;
	if (wf_shape_contiguous(t))
		memcpy(s->chunk, (const char *)t->data + t->byte_offset, bytes);
	else
		(void)wf_shape_gather(t, s->chunk, &done, SIZE_MAX);
	s->parcel.body = s->chunk;
	return 0;
}

/* The worker will gather them, when the pool has room. */
static int leave_strided(struct weft_op *op, const struct weft_tensor *t, const int64_t *shape,
			 uint64_t bytes)
{
	struct wf_desk *desk = op->desk;
	const struct wf_pool *pool = &desk->worker.pool;
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

/* The send is one more user of the chunk, which the caller may free from now on. */
static int take_share(struct weft_op *op, const struct weft_tensor *t, uint64_t bytes)
{
	struct wf_sending *s = &op->send.sending;

	if (s->device)
		return wf_last_set(-ENOTSUP,
				   "memory of CUDA device %d can't be shared: no other process maps it so",
				   t->device.id);
	if (!wf_shape_contiguous(t))
		return wf_last_set(-EINVAL, "only a contiguous tensor can be shared");
	if (wf_memory_share(op->owner, s->parcel.body, bytes, &s->chunk))
		return wf_last_set(-EINVAL, "only memory of the node's pool can be shared");
	s->parcel.lend = true;
	return 0;
}

/* A snapshot, and what is not contiguous, goes from a copy in the pool. */
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

int wf_tensor_new_send(struct weft_node *node, struct weft_peer *peer, const void *key,
		       size_t key_bytes, const struct weft_tensor *tensor,
		       const struct weft_send_options *options, struct weft_op **op)
{
	const struct weft_op_options *nested;
	struct weft_send_options o;
	struct wf_sending *s;
	struct weft_op *fresh;
	uint64_t bytes;
	int err;

	err = wf_node_options(options, &o, sizeof(o));
	if (err)
		return err;
	if (o.flags & ~(unsigned)(WEFT_DEAD | WEFT_OPAQUE | WEFT_SNAPSHOT | WEFT_SHARE))
		return wf_last_set(-EINVAL, "flags %#x are not for a send", o.flags);
	if (o.flags & WEFT_SHARE && o.flags & WEFT_SNAPSHOT)
		return wf_last_set(-EINVAL, "a snapshot needs no sharing");
	err = WF_NEED(tensor);
	if (!err)
		err = check_key(key, key_bytes);
	if (!err)
		err = o.flags & WEFT_DEAD ? weft_tensor_bytes(tensor, &bytes)
					  : check_tensor(tensor, &bytes);
	if (err)
		return err;
	if (o.flags & WEFT_OPAQUE &&
	    (tensor->ndim != 1 || tensor->dtype.code != WEFT_UINT || tensor->dtype.bits != 8 ||
	     tensor->dtype.lanes != 1))
		return wf_last_set(-EINVAL, "an opaque tensor is one row of uint8");
	err = wf_op_nested(&o.op, &nested);
	if (!err)
		err = wf_op_new(node, peer, WF_OP_SEND, nested, &fresh);
	if (err)
		return err;
	s = &fresh->send.sending;
	err = copy_names(fresh, key, key_bytes, tensor, &s->shape, &s->key);
	if (err)
		goto drop_op;
	s->parcel.terms = &fresh->terms;
	s->key_bytes = (uint16_t)key_bytes;
	s->flags = (uint8_t)(o.flags & (WEFT_DEAD | WEFT_OPAQUE));
	s->dtype = tensor->dtype;
	s->rank = (uint8_t)tensor->ndim;
	if (!(o.flags & WEFT_DEAD) && bytes) {
		s->parcel.body = (char *)tensor->data + tensor->byte_offset;
		s->parcel.body_bytes = bytes;
		err = find_device(fresh, tensor, bytes, o.stream, &s->device);
	}
	if (!err && s->parcel.body_bytes)
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

int weft_send(struct weft_peer *peer, uint64_t step, const void *key, size_t key_bytes,
	      const struct weft_tensor *tensor, const struct weft_send_options *options,
	      struct weft_op **op)
{
	struct weft_op *fresh;
	int err = WF_NEED(peer) ? -EINVAL
				: wf_tensor_new_send(peer->owner, peer, key, key_bytes, tensor,
						     options, &fresh);

	if (err)
		return err;
	fresh->send.sending.step = step;
	/* A snapshot has taken its time. */
	wf_op_launch(fresh, fresh->send.sending.chunk ? wf_clock_now() : fresh->made_ns, op);
	return 0;
}

/* Receives. */

struct weft_peer *wf_tensor_received(struct wf_receiving *r, struct wf_desk *desk,
				     const struct wf_error *e)
{
	struct weft_peer *from;

	if (e) {
		r->path.bytes = 0;
		return NULL;
	}
	/* From here on any thread may free it: links are the worker's. */
	from = wf_peer_of(desk, r->got_from);
	wf_link_put(r->got_from);
	r->got_from = NULL;
	if (!r->got_bytes || r->got_flags & WEFT_DEAD)
		r->got.data = NULL;
	return from;
}

static void recv_done(struct wf_receiving *r, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(r, struct weft_op, recv.receiving);

	op->recv.from = wf_tensor_received(r, op->desk, e);
	wf_op_path_set(op, &r->path, wf_receiving_copies(r));
	wf_op_finish(op, e, WEFT_EXECUTED_MAYBE);
}

void wf_tensor_start_recv(struct weft_op *op)
{
	struct wf_receiving *r = &op->recv.receiving;
	struct wf_link *link = NULL;
	struct wf_error e;

	if (op->recv.asks) {
		wf_ask_start(op);
		return;
	}
	r->done = recv_done;
	if (r->attached) {
		wf_bundle_receive(r->bundle, (uint32_t)r->step, r);
		return;
	}
	if (op->peer && wf_peer_link(op->peer, op->desk, &link, &e)) {
		recv_done(r, &e);
		return;
	}
	r->from = link;
	wf_channels_receive(&op->desk->channels, r);
}

int wf_tensor_new_recv(struct weft_node *node, struct weft_peer *peer, const void *key,
		       size_t key_bytes, const struct weft_tensor *into,
		       const struct weft_recv_options *options, struct weft_op **op)
{
	const struct weft_op_options *nested;
	struct weft_recv_options o;
	struct wf_receiving *r;
	struct weft_op *fresh;
	const int64_t *shape;
	uint64_t bytes;
	int err;

	err = wf_node_options(options, &o, sizeof(o));
	if (err)
		return err;
	if (o.flags & ~(unsigned)(WEFT_ANY_SHAPE | WEFT_DROP))
		return wf_last_set(-EINVAL, "flags %#x are not for a receive", o.flags);
	if (peer && peer->owner != node)
		return wf_last_set(-EINVAL, "the peer belongs to another node");
	err = check_key(key, key_bytes);
	if (!err && into)
		err = check_tensor(into, &bytes);
	if (err)
		return err;
	if (into && !wf_shape_contiguous(into))
		return wf_last_set(-EINVAL, "a buffer to receive into must be contiguous");
	err = wf_op_nested(&o.op, &nested);
	if (!err)
		err = wf_op_new(node, peer, WF_OP_RECV, nested, &fresh);
	if (err)
		return err;
	r = &fresh->recv.receiving;
	err = copy_names(fresh, key, key_bytes, into, &shape, &r->key);
	if (err) {
		wf_op_drop(fresh);
		return err;
	}
	r->terms = &fresh->terms;
	r->key_bytes = (uint16_t)key_bytes;
	r->flags = o.flags;
	r->alloc = o.alloc;
	r->alloc_arg = o.alloc_arg;
	if (into) {
		fresh->recv.into = *into;
		fresh->recv.into.shape = (int64_t *)(uintptr_t)shape;
		r->into = &fresh->recv.into;
		err = find_device(fresh, into, bytes, o.stream, &r->device);
	}
	if (err) {
		wf_op_drop(fresh);
		return err;
	}
	*op = fresh;
	return 0;
}

int weft_recv(struct weft_node *node, struct weft_peer *peer, uint64_t step, const void *key,
	      size_t key_bytes, const struct weft_tensor *into,
	      const struct weft_recv_options *options, struct weft_op **op)
{
	struct weft_op *fresh;
	int err = WF_NEED(node) ? -EINVAL
				: wf_tensor_new_recv(node, peer, key, key_bytes, into, options,
						     &fresh);

	if (err)
		return err;
	fresh->recv.receiving.step = step;
	/* One desk alone may get what one peer sends. */
	if (!peer && node->desk_count > 1 && wf_ask_open(fresh)) {
		wf_op_drop(fresh);
		return wf_last_set(-ENOMEM, "no memory for a receive");
	}
	wf_op_launch(fresh, fresh->made_ns, op);
	return 0;
}

const struct weft_tensor *weft_op_tensor(const struct weft_op *op, unsigned *flags)
{
	const struct wf_receiving *r;

	if (WF_NEED(op) || op->kind != WF_OP_RECV || weft_op_status(op) != WEFT_OK || !weft_op_ended(op))
		return NULL;
	r = &op->recv.receiving;
	if (flags)
		*flags = r->got_flags | (r->readonly ? WEFT_READONLY : 0);
	return &r->got;
}

struct weft_peer *weft_op_peer(const struct weft_op *op)
{
	if (WF_NEED(op))
		return NULL;
	if (op->kind != WF_OP_RECV)
		return op->peer;
	return weft_op_ended(op) ? op->recv.from : NULL;
}

void *weft_op_take(struct weft_op *op)
{
	void *chunk;

	if (WF_NEED(op) || op->kind != WF_OP_RECV || !weft_op_ended(op) ||
	    (op->owner && wf_node_check(op->owner)))
		return NULL;
	chunk = op->recv.receiving.chunk;
	op->recv.receiving.chunk = NULL;
	return chunk;
}
