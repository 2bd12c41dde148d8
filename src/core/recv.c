/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/recv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/describe.h"
#include "core/last.h"
#include "core/memory.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/recv_any.h"
#include "core/relay.h"
#include "core/tensor.h"
#include "core/worker.h"
#include "tensor/key.h"
#include "tensor/shape.h"

struct weft_peer *wf_recv_got(struct wf_receiving *r, struct wf_worker *worker,
			      const struct wf_error *e)
{
	struct weft_peer *from;

	if (e) {
		r->path.bytes = 0;
		return NULL;
	}
	/* Links are the worker's, and from here on any thread may free the operation. */
	from = wf_peer_of(worker, r->got.from);
	wf_link_put(r->got.from);
	r->got.from = NULL;
	if (!r->got.bytes || r->got.flags & WEFT_DEAD)
		r->got.tensor.data = NULL;
	return from;
}

/* Take what @r, which is over, has got.  Returns its operation. */
static struct weft_op *take_outcome(struct wf_receiving *r, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(r, struct weft_op, recv.receiving);

	op->recv.from = wf_recv_got(r, op->worker, e);
	wf_op_path_set(op, &r->path, wf_receiving_copies(r));
	return op;
}

void wf_recv_done(struct wf_receiving *r, const struct wf_error *e)
{
	wf_op_finish(take_outcome(r, e), e, wf_recv_executed(r));
}

static struct wf_relay *relay_of(const struct weft_op *op)
{
	return op->recv.receiving.flags & WEFT_RELAY ? op->recv.relay : NULL;
}

/* The receiving is over, and the relay may have others to serve. */
static void relayed(struct wf_receiving *r, const struct wf_error *e)
{
	wf_relay_done(take_outcome(r, e)->recv.relay, e);
}

static void start(struct weft_op *op)
{
	struct wf_receiving *r = &op->recv.receiving;
	struct wf_link *link = NULL;
	struct wf_error e;

	if (op->recv.parts) {
		wf_recv_any_start(op);
		return;
	}
	r->done = relay_of(op) ? relayed : wf_recv_done;
	if (r->attached) {
		wf_attachment_set_receive(r->attachment_set, (uint32_t)r->step, r);
		return;
	}
	if (op->peer && wf_peer_link(op->peer, op->worker, &link, &e)) {
		r->done(r, &e);
		return;
	}
	r->from = link;
	wf_channels_receive(&op->worker->channels, r);
}

static void fan_out(struct weft_op *op, uint64_t now_ns)
{
	if (op->recv.parts)
		wf_recv_any_submit(op, now_ns);
}

static void refuse(struct weft_op *op, const struct wf_error *e)
{
	if (!op->recv.parts) {
		wf_op_finish(op, e, WEFT_EXECUTED_NO);
		return;
	}
	/* Each worker ends its own part. */
	wf_op_begin(op);
	wf_recv_any_start(op);
}

static void stop(struct weft_op *op, const struct wf_error *e)
{
	if (op->recv.parts)
		wf_recv_any_stop(op, e);
	else if (!relay_of(op) || !wf_relay_stop(op->recv.relay))
		wf_channels_cancel_receive(&op->recv.receiving, e);
}

/* An attachment stays with its message. */
static int take_back(struct weft_op *op)
{
	return op->recv.receiving.attached ? -EALREADY : wf_channels_take_back(&op->recv.receiving);
}

static uint64_t missing_bytes(const struct weft_op *op)
{
	const struct wf_receiving *r = &op->recv.receiving;

	return r->state == WF_RECEIVING_MEMORY ? r->got.bytes : 0;
}

/* Has @op all bytes, and serves another receiver? */
static bool serves(const struct weft_op *op)
{
	return relay_of(op) && op->recv.receiving.state == WF_RECEIVING_ENDED;
}

static void starve(struct weft_op *op, struct wf_worker *worker, const struct wf_error *e)
{
	if (op->recv.parts)
		wf_recv_any_starve(op, worker, e);
	else if (op->worker == worker && (missing_bytes(op) || serves(op)))
		wf_op_stop(op, e);
}

static void free_recv(struct weft_op *op)
{
	struct wf_receiving *r = &op->recv.receiving;

	if (r->attached)
		wf_attachment_set_put(r->attachment_set);
	free(r->got.long_shape);
	if (r->flags & WEFT_ANY_KEY)
		free((void *)(uintptr_t)r->key);
	wf_kind_close(r->device);
	if (op->owner && r->got.chunk)
		wf_memory_free(op->owner, r->got.chunk);
	if (op->recv.parts)
		free(op->recv.parts);
	else if (r->flags & WEFT_RELAY)
		wf_relay_free(op->recv.relay);
	else if (op->recv.one_of)
		wf_recv_many_freed(op->recv.one_of, !op->owner);
}

/* The pool and the peers are freed with the node. */
static void let_go(struct weft_op *op)
{
	op->recv.lost = op->recv.receiving.got.chunk;
	op->recv.receiving.got.chunk = NULL;
	op->recv.from = NULL;
}

static uint64_t progress(struct weft_op *op)
{
	return op->recv.parts ? wf_recv_any_progress(op)
			      : wf_receiving_progress(&op->recv.receiving);
}

static const struct wf_link *source(const struct weft_op *op)
{
	return op->recv.receiving.got.from;
}

static uint64_t step(const struct weft_op *op)
{
	return op->recv.receiving.step;
}

void wf_recv_describe(const struct weft_op *op, uint64_t step, const void *key, size_t key_bytes,
		      char *text)
{
	if (key)
		wf_describe_channel(step, key, key_bytes, text);
	else
		wf_describe_add(text, " step %llu any key", (unsigned long long)step);
	wf_describe_add(text, " from ");
	wf_describe_peer(op, text);
}

static void describe(const struct weft_op *op, char *text)
{
	const struct wf_receiving *r = &op->recv.receiving;

	wf_describe_add(text, "recv");
	if (r->attached) {
		wf_describe_add(text, " attachment %llu", (unsigned long long)r->step);
		return;
	}
	wf_recv_describe(op, r->step, r->flags & WEFT_ANY_KEY ? NULL : r->key, r->key_bytes, text);
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	if (op->recv.parts)
		wf_recv_any_describe(op, text, bytes);
	else
		wf_receiving_describe(&op->recv.receiving, text, bytes);
}

/* Has a tensor come, of which not all is here? */
static bool has_met(const struct weft_op *op)
{
	return op->recv.parts ? op->recv.winner != NULL
			      : op->recv.receiving.state != WF_RECEIVING_WAITING;
}

/* The sentence names step and key, so that a wrong one is seen at once. */
static void late(const struct weft_op *op, const char *who, struct wf_error *e)
{
	const struct wf_receiving *r = &op->recv.receiving;
	const char *sent = has_met(op) ? "had sent all of" : "sent";
	char key[WF_KEY_TEXT_BYTES];

	if (r->attached) {
		wf_error_set(e, -ETIMEDOUT, "the deadline passed before the attachment was here");
		return;
	}
	if (r->got.from)
		who = wf_link_label(wf_link_real(r->got.from));
	if (!r->key) {
		wf_error_set(e, -ETIMEDOUT, "the deadline passed before %s %s step %llu, any key",
			     who, sent, (unsigned long long)r->step);
		return;
	}
	wf_key_text(r->key, r->key_bytes, key);
	wf_error_set(e, -ETIMEDOUT, "the deadline passed before %s %s step %llu, key %s", who, sent,
		     (unsigned long long)r->step, key);
}

#define BYTES (offsetof(struct weft_op, recv) + sizeof(struct wf_op_recv))

const struct wf_op_class wf_recv_class = {
	.kind = WF_OP_RECV,
	.recorded = WF_RECORDER_RECV,
	.bytes = BYTES,
	.zero_to = BYTES,
	.start = start,
	.fan_out = fan_out,
	.refuse = refuse,
	.stop = stop,
	.take_back = take_back,
	.starve = starve,
	.free = free_recv,
	.let_go = let_go,
	.missing_bytes = missing_bytes,
	.progress = progress,
	.source = source,
	.step = step,
	.describe = describe,
	.describe_wait = describe_wait,
	.late = late,
};

#define FLAGS ((unsigned)(WEFT_ANY_SHAPE | WEFT_DROP)) /* flags of every receive */

/* A program may have 100 000 receives open; tests/fabric/test_memory measures the rest. */
_Static_assert(BYTES <= 888, "a receive with its channel takes less than 1 KiB");

/* Check what all receives have, and read the options. */
static int check(const struct weft_node *node, const struct weft_peer *peer, const void *key,
		 size_t key_bytes, const struct weft_recv_options *options,
		 struct weft_recv_options *o)
{
	int err = wf_check_options(options, o, sizeof(*o));

	if (!err && o->flags & WEFT_ANY_KEY && (key || key_bytes))
		err = wf_last_set(-EINVAL, "a receive of any key has a key");
	return err ? err : wf_tensor_check_channel(node, peer, key, key_bytes);
}

/* Make a receive, which may have @flags, of what has been checked. */
static int make(struct weft_node *node, struct weft_peer *peer, const void *key, size_t key_bytes,
		const struct weft_tensor *into, const struct weft_recv_options *o,
		unsigned flags, struct weft_op **op)
{
	const struct weft_op_options *nested;
	struct wf_receiving *r;
	struct weft_op *fresh;
	const int64_t *shape;
	uint64_t bytes;
	int err = 0;

	if (o->flags & ~flags)
		return wf_last_set(-EINVAL, "flags %#x are not for a receive", o->flags);
	if (into)
		err = wf_tensor_check(into, &bytes);
	if (err)
		return err;
	if (into && !wf_shape_contiguous(into))
		return wf_last_set(-EINVAL, "a buffer to receive into must be contiguous");
	err = wf_op_nested(&o->op, &nested);
	if (!err)
		err = wf_op_new(node, peer, &wf_recv_class, nested, &fresh);
	if (err)
		return err;
	r = &fresh->recv.receiving;
	err = wf_tensor_copy_names(fresh, key, key_bytes, into, &shape, &r->key);
	if (err) {
		wf_op_drop(fresh);
		return err;
	}
	r->terms = &fresh->terms;
	if (o->flags & WEFT_ANY_KEY)
		r->key = NULL;
	r->key_bytes = (uint16_t)key_bytes;
	r->flags = o->flags;
	r->alloc = o->alloc;
	r->alloc_arg = o->alloc_arg;
	r->came = o->came;
	r->came_arg = o->came_arg;
	if (into) {
		fresh->recv.into = *into;
		fresh->recv.into.shape = (int64_t *)(uintptr_t)shape;
		r->into = &fresh->recv.into;
		err = wf_tensor_find_device(fresh, into, bytes, o->stream, &r->device);
	}
	if (err) {
		wf_op_drop(fresh);
		return err;
	}
	*op = fresh;
	return 0;
}

int wf_recv_new(struct weft_node *node, struct weft_peer *peer, const void *key,
		size_t key_bytes, const struct weft_tensor *into,
		const struct weft_recv_options *options, struct weft_op **op)
{
	struct weft_recv_options o;
	int err = check(node, peer, key, key_bytes, options, &o);

	return err ? err : make(node, peer, key, key_bytes, into, &o, FLAGS, op);
}

int wf_recv_at_step(struct weft_op *op, uint64_t step)
{
	op->recv.receiving.step = step;
	/* Tensors of a named peer come to one worker alone. */
	if (op->peer || op->owner->worker_count == 1 || !wf_recv_any_open(op))
		return 0;
	wf_op_drop(op);
	return wf_last_set(-ENOMEM, "no memory for a receive");
}

void wf_recv_drop(struct weft_op *op)
{
	if (op->recv.parts)
		wf_recv_any_drop(op);
	wf_op_drop(op);
}

int wf_recv(struct weft_node *node, struct weft_peer *peer, uint64_t step, const void *key,
	    size_t key_bytes, const struct weft_tensor *into,
	    const struct weft_recv_options *options, struct weft_op **op)
{
	struct weft_recv_options o;
	struct weft_op *fresh;
	bool relays;
	int err = check(node, peer, key, key_bytes, options, &o);

	if (err)
		return err;
	if (o.flags & WEFT_RECV_MANY)
		return wf_recv_many(node, peer, step, key, key_bytes, into, &o, op);
	if (o.flags & WEFT_RELAY && !peer)
		return wf_last_set(-EINVAL, "a receive of a broadcast names its sender");
	relays = o.flags & WEFT_RELAY && node->worker_count == 1;
	o.flags &= ~(unsigned)WEFT_RELAY;
	err = make(node, peer, key, key_bytes, into, &o, FLAGS | WEFT_ANY_KEY, &fresh);
	if (!err)
		err = wf_recv_at_step(fresh, step);
	if (err)
		return err;
	if (relays && wf_relay_open(fresh, &fresh->recv.relay)) {
		wf_op_drop(fresh);
		return wf_last_set(-ENOMEM, "no memory for a receive");
	}
	fresh->recv.receiving.flags |= relays ? WEFT_RELAY : 0;
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}
