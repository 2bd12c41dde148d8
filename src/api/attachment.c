/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "core/attachment.h"
#include "core/check.h"
#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/recv.h"
#include "core/send.h"
#include "core/streaming.h"
#include "core/worker.h"
#include "wire/record.h"

_Static_assert(WEFT_ATTACHMENTS_MAX == WF_RECORD_ATTACHMENTS_MAX, "the public limit is the wire's");

static int check_node(const struct weft_node *node)
{
	return node ? wf_check_node(node) : wf_last_set(-EINVAL, "the node has closed");
}

/* Make a send on @terms for a message with @count attachments so far.  Failures are recorded. */
static int attach(struct weft_node *node, struct weft_peer *peer, struct wf_worker *worker,
		  const struct wf_terms *terms, unsigned count, const struct weft_tensor *tensor,
		  const struct weft_send_options *options, struct weft_op **op)
{
	static const uint8_t key[WF_RECORD_ATTACHMENT_KEY_BYTES];
	struct wf_attachment *attached;
	struct weft_op *fresh;
	int err;

	if (count == WF_RECORD_ATTACHMENTS_MAX)
		return wf_last_set(-E2BIG, "a message has %d attachments at most",
				   WF_RECORD_ATTACHMENTS_MAX);
	attached = calloc(1, sizeof(*attached));
	if (!attached)
		return wf_last_set(-ENOMEM, "no memory for an attachment");
	err = wf_send_new(node, peer, key, sizeof(key), tensor, options, &fresh);
	if (err) {
		free(attached);
		return err;
	}
	attached->op = fresh;
	wf_list_init(&attached->node);
	fresh->send.attached = attached;
	fresh->worker = worker;
	fresh->terms.checksum |= terms->checksum;
	/* An attachment must not overtake its message. */
	fresh->terms.priority = terms->priority;
	fresh->send.sending.key = attached->key;
	*op = fresh;
	return 0;
}

/* Put @fresh, which is in its message's list, into *@op.  @op NULL: as wf_op_launch() says. */
static void hand_out(struct weft_op *fresh, struct weft_op **op)
{
	fresh->entry.sole = !op && wf_op_queue(fresh);
	if (op)
		*op = fresh;
	else if (!fresh->entry.sole)
		wf_op_put(fresh);
}

int weft_call_attach(struct weft_op *call, const struct weft_tensor *tensor,
		     const struct weft_send_options *options, struct weft_op **op)
{
	struct wf_call *c;
	struct weft_op *fresh;
	int err = WF_NEED(call) ? -EINVAL : check_node(call->owner);

	if (err)
		return err;
	c = &call->call.call;
	if (call->class->kind != WF_OP_CALL || call->call.stream)
		return wf_last_set(-EINVAL, "only a call of one request and one reply can have attachments");
	if (call->call.retry)
		return wf_last_set(-EINVAL, "a call that may be made again has no attachments");
	if (call->call.begun)
		return wf_last_set(-EALREADY, "the call has been invoked");
	err = attach(call->owner, call->peer, call->worker, &call->terms, c->attachments, tensor,
		     options, &fresh);
	if (err)
		return err;
	if (!fresh->timed)
		fresh->time.deadline_ns = UINT64_MAX; /* the attachment ends with the call */
	fresh->send.attached->call = call;
	c->attachments++;
	wf_list_append(&call->call.attached, &fresh->send.attached->node);
	hand_out(fresh, op);
	return 0;
}

int weft_served_attach(struct weft_served *call, const struct weft_tensor *tensor,
		       const struct weft_send_options *options, struct weft_op **op)
{
	struct wf_server_call *served = wf_worker_served(call);
	struct wf_worker *worker;
	struct weft_op *fresh;
	int err;

	if (WF_NEED(call))
		return -EINVAL;
	worker = wf_worker_of(served);
	err = check_node(worker->node);
	if (err)
		return err;
	if (served->stream)
		return wf_last_set(-EINVAL, "a stream's attachments go with its messages");
	err = attach(worker->node, NULL, worker, &served->terms, served->reply.attachments, tensor,
		     options, &fresh);
	if (err)
		return err;
	if (!fresh->timed)
		fresh->time.deadline_ns = served->deadline_ns;
	served->reply.attachments++;
	wf_list_append(&served->reply.attached, &fresh->send.attached->node);
	hand_out(fresh, op);
	return 0;
}

int weft_stream_attach(struct weft_stream *stream, const struct weft_tensor *tensor,
		       const struct weft_send_options *options, struct weft_op **op)
{
	struct weft_op *call, *fresh;
	const struct wf_terms *terms;
	int err = WF_NEED(stream) ? -EINVAL : check_node(stream->owner);

	if (err)
		return err;
	call = stream->call;
	terms = call ? &call->terms : &stream->served->terms;
	if (atomic_load(&stream->half_closed))
		return wf_last_set(-EPIPE, "the stream is half-closed");
	err = attach(stream->owner, call ? call->peer : NULL, stream->first, terms,
		     stream->attachments, tensor, options, &fresh);
	if (err)
		return err;
	if (!fresh->timed)
		fresh->time.deadline_ns =
			call ? call->time.deadline_ns : stream->served->deadline_ns;
	atomic_fetch_add(&stream->refs, 1);
	fresh->send.attached->stream = stream;
	stream->attachments++;
	wf_list_append(&stream->attached, &fresh->send.attached->node);
	hand_out(fresh, op);
	return 0;
}

/* Incoming attachments. */

static const struct weft_tensor *look(const struct wf_attachment_set *b, size_t index,
				      unsigned *flags)
{
	if (!b || index >= b->count)
		return NULL;
	if (flags)
		*flags = b->tensors[index]->flags;
	return &b->tensors[index]->tensor;
}

/* @deadline_ns: unless @options set one; 0: the node's default. */
static int receive(struct weft_node *node, struct wf_worker *worker, struct wf_attachment_set *b,
		   size_t index, uint64_t deadline_ns, const struct weft_tensor *into,
		   const struct weft_recv_options *options, struct weft_op **op)
{
	struct weft_op *fresh;
	int err = check_node(node);

	if (err)
		return err;
	if (!b || index >= b->count)
		return wf_last_set(-EINVAL, "there is no attachment %zu", index);
	err = wf_recv_new(node, NULL, NULL, 0, into, options, &fresh);
	if (err)
		return err;
	if (deadline_ns && !fresh->timed)
		fresh->time.deadline_ns = deadline_ns;
	fresh->worker = worker;
	wf_attachment_set_get(b);
	fresh->recv.receiving.attachment_set = b;
	fresh->recv.receiving.attached = true;
	fresh->recv.receiving.step = index;
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}

static struct wf_attachment_set *set_of_call(struct weft_served *call)
{
	const struct wf_server_call *served = wf_worker_served(call);

	return WF_NEED(call) ? NULL : served->request.attachment_set;
}

size_t weft_served_attachments(struct weft_served *call)
{
	const struct wf_attachment_set *b = set_of_call(call);

	return b ? b->count : 0;
}

const struct weft_tensor *weft_served_attachment(struct weft_served *call, size_t index,
						 unsigned *flags)
{
	return look(set_of_call(call), index, flags);
}

int weft_served_receive(struct weft_served *call, size_t index, const struct weft_tensor *into,
			const struct weft_recv_options *options, struct weft_op **op)
{
	const struct wf_server_call *served = wf_worker_served(call);
	struct wf_worker *worker;

	if (WF_NEED(call))
		return -EINVAL;
	worker = wf_worker_of(served);
	return receive(worker->node, worker, served->request.attachment_set, index,
		       served->deadline_ns, into, options, op);
}

/* Returns the attachments of a call in its closure, or of an ended operation; NULL: none. */
static struct wf_attachment_set *set_of(const struct weft_op *op)
{
	if (WF_NEED(op) || (!weft_op_ended(op) && !(op->owner && wf_node_inside(op->owner))))
		return NULL;
	if (op->class->kind == WF_OP_CALL)
		return op->call.attachment_set;
	return op->class->kind == WF_OP_READ ? op->read.attachment_set : NULL;
}

size_t weft_op_attachments(const struct weft_op *op)
{
	const struct wf_attachment_set *b = set_of(op);

	return b ? b->count : 0;
}

const struct weft_tensor *weft_op_attachment(const struct weft_op *op, size_t index,
					     unsigned *flags)
{
	return look(set_of(op), index, flags);
}

int weft_op_receive(struct weft_op *op, size_t index, const struct weft_tensor *into,
		    const struct weft_recv_options *options, struct weft_op **receiver)
{
	if (WF_NEED(op))
		return -EINVAL;
	return receive(op->owner, op->worker, set_of(op), index, 0, into, options, receiver);
}
