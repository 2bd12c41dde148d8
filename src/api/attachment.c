/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attachments: one that goes out is a send that begins when its message is posted; one
 * that has come is received out of its message's bundle.
 */
#include "api/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "util/clock.h"
#include "util/progress.h"
#include "wire/record.h"

_Static_assert(WEFT_ATTACHMENTS_MAX == WF_ATTACHMENTS_MAX, "the public limit is the wire's");

/* On their way out. */

static struct weft_op *op_of(struct wf_list *node)
{
	return WF_CONTAINER(node, struct wf_attached, node)->op;
}

/* It has not begun, and will not. */
static void drop(struct weft_op *op, const struct wf_error *e)
{
	wf_list_remove(&op->send.attached->node);
	atomic_store(&op->submitted, true);
	if (op->send.sending.chunk)
		(void)wf_memory_give(op->owner, op->send.sending.chunk);
	wf_op_finish(op, e, WEFT_EXECUTED_NO);
}

void wf_attachments_await(struct wf_list *attached, struct wf_desk *desk)
{
	struct wf_error e;

	WF_LIST_EACH(node, attached) {
		struct weft_op *op = op_of(node);

		if (op->started)
			continue;
		op->desk = desk;
		wf_op_begin(op);
		if (atomic_load(&op->cancel_asked)) {
			wf_error_set(&e, -ECANCELED, "it was cancelled");
			wf_attachment_stop(op, &e);
		}
		wf_watch_begin(op);
		atomic_store(&op->submitted, true);
	}
}

/* Its part in its message is over, for which a call may wait. */
static void leave(struct weft_op *op)
{
	struct weft_op *call = op->send.attached->call;

	wf_list_remove(&op->send.attached->node);
	if (call && call->call.waits && wf_list_empty(&call->call.attached))
		wf_rpc_finish(call);
}

void wf_attachment_over(struct weft_op *op)
{
	leave(op);
	wf_op_put(op);
}

/* What goes in its place needs no memory: that may be what was missing. */
static void become_lost(struct weft_op *op)
{
	struct wf_sending *s = &op->send.sending;

	if (s->chunk)
		(void)wf_memory_give(op->owner, s->chunk);
	s->chunk = NULL;
	s->flags = WEFT_DEAD | WF_TENSOR_LOST;
	free(s->strided);
	s->strided = NULL;
	wf_kind_close(s->device);
	s->device = NULL;
	s->parcel.body = NULL;
	s->parcel.body_bytes = 0;
	op->path = NULL; /* what goes in its place has one of its own there */
	op->send.attached->lost = true;
	atomic_fetch_add(&op->refs, 1); /* until wf_attachment_over */
}

/*
 * Whoever is told that it would come waits for it: in its place goes that it is lost.  When
 * there is no way there yet, or its message waits, that is later than its own end.
 */
void wf_attachment_stop(struct weft_op *op, const struct wf_error *e)
{
	struct wf_sending *s = &op->send.sending;
	bool posted = s->state != WF_SENDING_ENDED;

	if (posted && wf_sending_take_back(s)) {
		wf_sending_stop(s, e);
		return;
	}
	become_lost(op);
	wf_op_finish(op, e, WEFT_EXECUTED_NO);
	if (posted)
		wf_send_start_attached(op, op->desk, s->link);
}

uint64_t wf_attachments_sent_progress(const struct wf_list *attached)
{
	uint64_t progress = 0;

	WF_LIST_EACH(node, attached)
		progress = wf_progress_add(progress,
					   wf_sending_progress(&op_of(node)->send.sending));
	return progress;
}

uint64_t wf_attachments_offered_bytes(const struct wf_list *attached)
{
	uint64_t bytes = 0;

	WF_LIST_EACH(node, attached)
		bytes += wf_sending_offered_bytes(&op_of(node)->send.sending);
	return bytes;
}

void wf_attachments_begin(struct wf_list *attached, struct wf_desk *desk, struct wf_link *link,
			  uint64_t call, struct wf_attachment_key key)
{
	wf_attachments_await(attached, desk);
	WF_LIST_EACH(node, attached) {
		struct weft_op *op = op_of(node);

		op->send.sending.step = call;
		wf_attachment_key_put(op->send.attached->key, &key);
		key.index++;
		wf_send_start_attached(op, desk, link);
	}
}

/* @known: their peer does not wait for them. */
static void stop_all(struct wf_list *attached, struct wf_desk *desk, const struct wf_error *e,
		     bool known)
{
	WF_LIST_EACH(node, attached) {
		struct weft_op *op = op_of(node);

		if (op->send.attached->lost && !known)
			continue; /* it is just told so */
		op->send.attached->dropped |= known;
		if (op->send.sending.state != WF_SENDING_ENDED) {
			wf_sending_stop(&op->send.sending, e);
		} else if (op->send.attached->lost) {
			wf_attachment_over(op);
		} else {
			op->desk = desk;
			drop(op, e);
		}
	}
}

void wf_attachments_stop(struct wf_list *attached, struct wf_desk *desk, const struct wf_error *e)
{
	struct wf_error over;

	/* Most messages have none, and a sentence takes its time. */
	if (wf_list_empty(attached))
		return;
	if (!e) {
		wf_error_set(&over, -ECANCELED, "the call is over");
		e = &over;
	}
	stop_all(attached, desk, e, true);
}

void wf_attachments_lose(struct wf_list *attached, struct wf_desk *desk, const struct wf_error *e)
{
	stop_all(attached, desk, e, false);
}

void wf_attachments_take_back(struct wf_list *attached)
{
	WF_LIST_EACH(node, attached) {
		struct weft_op *op = op_of(node);

		if (op->send.sending.state != WF_SENDING_ENDED &&
		    wf_sending_take_back(&op->send.sending))
			continue;
		if (op->send.attached->lost)
			continue;
		wf_timer_stop(&op->desk->worker.loop.timers, &op->timer);
		op->started = false;
	}
}

static void forget(struct wf_task *task)
{
	struct weft_op *op = WF_CONTAINER(task, struct weft_op, start_task);
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "the message that it was attached to was not sent");
	drop(op, &e);
}

void wf_attachments_forget(struct wf_list *attached)
{
	struct wf_list *node;

	while ((node = wf_list_pop(attached))) {
		struct weft_op *op = op_of(node);

		if (!op->owner) {
			wf_op_put(op);
			continue;
		}
		op->start_task.run = forget;
		wf_desk_run(op->desk, &op->start_task, wf_clock_now());
	}
}

/* Its peer awaits it, unless that has been told that the message is over, or is just given up. */
void wf_attachment_ended(struct weft_op *op, const struct wf_error *e)
{
	const struct wf_sending *s = &op->send.sending;
	const struct wf_link *link = wf_link_real(s->link);

	if (!e || op->send.attached->dropped || s->parcel.sent || (link->met && !link->greeted)) {
		leave(op);
		return;
	}
	become_lost(op);
	wf_send_start_attached(op, op->desk, s->link);
}

static int check_node(const struct weft_node *node)
{
	return node ? wf_node_check(node) : wf_last_set(-EINVAL, "the node has closed");
}

/* A send beside a message of which @count have been attached, to go as @terms say.  Recorded. */
static int attach(struct weft_node *node, struct weft_peer *peer, struct wf_desk *desk,
		  const struct wf_terms *terms, unsigned count, const struct weft_tensor *tensor,
		  const struct weft_send_options *options, struct weft_op **op)
{
	static const uint8_t key[WF_ATTACHMENT_KEY_BYTES];
	struct wf_attached *attached;
	struct weft_op *fresh;
	int err;

	if (count == WF_ATTACHMENTS_MAX)
		return wf_last_set(-E2BIG, "a message has %d attachments at most",
				   WF_ATTACHMENTS_MAX);
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
	fresh->desk = desk;
	fresh->terms.checksum |= terms->checksum;
	fresh->send.sending.key = attached->key;
	*op = fresh;
	return 0;
}

/* It is in the list of its message: @op is the caller's, if he wants it. */
static void hand_out(struct weft_op *fresh, struct weft_op **op)
{
	if (op)
		*op = fresh;
	else
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
	if (call->class != &wf_rpc_class || call->call.stream)
		return wf_last_set(-EINVAL, "only a call of one request and one reply has any");
	if (call->call.retry)
		return wf_last_set(-EINVAL, "a call that may be made again has no attachments");
	if (call->call.begun)
		return wf_last_set(-EALREADY, "the call has been invoked");
	err = attach(call->owner, call->peer, call->desk, &call->terms, c->attachments, tensor,
		     options, &fresh);
	if (err)
		return err;
	if (!fresh->timed)
		fresh->deadline_ns = UINT64_MAX; /* the call's end is its own */
	fresh->send.attached->call = call;
	c->attachments++;
	wf_list_append(&call->call.attached, &fresh->send.attached->node);
	hand_out(fresh, op);
	return 0;
}

int weft_reply_attach(void *closure_data, const struct weft_tensor *tensor,
		      const struct weft_send_options *options, struct weft_op **op)
{
	struct wf_served *served = closure_data;
	struct wf_desk *desk;
	struct weft_op *fresh;
	int err;

	if (WF_NEED(closure_data))
		return -EINVAL;
	desk = wf_desk_of(served);
	err = check_node(desk->node);
	if (err)
		return err;
	if (served->stream)
		return wf_last_set(-EINVAL, "a stream's attachments go with its messages");
	err = attach(desk->node, NULL, desk, &served->terms, served->attachments, tensor, options,
		     &fresh);
	if (err)
		return err;
	if (!fresh->timed)
		fresh->deadline_ns = served->deadline_ns;
	served->attachments++;
	wf_list_append(&served->attached, &fresh->send.attached->node);
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
		fresh->deadline_ns = call ? call->deadline_ns : stream->served->deadline_ns;
	atomic_fetch_add(&stream->refs, 1);
	fresh->send.attached->stream = stream;
	stream->attachments++;
	wf_list_append(&stream->attached, &fresh->send.attached->node);
	hand_out(fresh, op);
	return 0;
}

/* What has come. */

int wf_attachments_expect(void *ctx, struct wf_link *link, uint64_t call, bool reply,
			  uint64_t number, uint16_t count, void (*whole)(void *owner),
			  void *owner, void **bundle)
{
	struct wf_bundle_name name = {
		.link = link, .call = call, .reply = reply, .message = number,
	};
	struct wf_desk *desk = ctx;
	struct wf_bundle *b;
	int err = wf_bundle_open(&desk->bundles, &name, count, &b);

	if (err)
		return err;
	b->whole = whole;
	b->owner = owner;
	*bundle = b;
	return 0;
}

void wf_attachments_drop(void *bundle)
{
	struct wf_bundle *b = bundle;

	if (!b)
		return;
	wf_bundle_close(b);
	wf_bundle_put(b);
}

uint64_t wf_attachments_progress(const void *bundle)
{
	return ((const struct wf_bundle *)bundle)->came;
}

static void close_bundle(struct wf_task *task)
{
	wf_attachments_drop(WF_CONTAINER(task, struct wf_bundle, task));
}

void wf_attachments_free(struct weft_op *op, struct wf_bundle *b)
{
	if (!b)
		return;
	if (!op->owner) {
		wf_bundle_put(b); /* its node has closed it */
		return;
	}
	b->task.run = close_bundle;
	wf_desk_run(op->desk, &b->task, wf_clock_now());
}

static const struct weft_tensor *look(const struct wf_bundle *b, unsigned index, unsigned *flags)
{
	if (!b || index >= b->count)
		return NULL;
	if (flags)
		*flags = b->tensors[index]->flags;
	return &b->tensors[index]->tensor;
}

/* By @deadline_ns, unless @options say otherwise; 0: by what the node says. */
static int receive(struct weft_node *node, struct wf_desk *desk, struct wf_bundle *b,
		   unsigned index, uint64_t deadline_ns, const struct weft_tensor *into,
		   const struct weft_recv_options *options, struct weft_op **op)
{
	struct weft_op *fresh;
	int err = check_node(node);

	if (err)
		return err;
	if (!b || index >= b->count)
		return wf_last_set(-EINVAL, "there is no attachment %u", index);
	err = wf_recv_new(node, NULL, NULL, 0, into, options, &fresh);
	if (err)
		return err;
	if (deadline_ns && !fresh->timed)
		fresh->deadline_ns = deadline_ns;
	fresh->desk = desk;
	wf_bundle_get(b);
	fresh->recv.receiving.bundle = b;
	fresh->recv.receiving.attached = true;
	fresh->recv.receiving.step = index;
	wf_op_launch(fresh, fresh->made_ns, op);
	return 0;
}

static struct wf_bundle *bundle_of_call(void *closure_data)
{
	const struct wf_served *served = closure_data;

	return WF_NEED(closure_data) ? NULL : served->bundle;
}

unsigned weft_call_attachments(void *closure_data)
{
	const struct wf_bundle *b = bundle_of_call(closure_data);

	return b ? b->count : 0;
}

const struct weft_tensor *weft_call_attachment(void *closure_data, unsigned index,
					       unsigned *flags)
{
	return look(bundle_of_call(closure_data), index, flags);
}

int weft_call_receive(void *closure_data, unsigned index, const struct weft_tensor *into,
		      const struct weft_recv_options *options, struct weft_op **op)
{
	const struct wf_served *served = closure_data;
	struct wf_desk *desk;

	if (WF_NEED(closure_data))
		return -EINVAL;
	desk = wf_desk_of(served);
	return receive(desk->node, desk, served->bundle, index, served->deadline_ns, into, options,
		       op);
}

/* Of a call in its closure, or of what has ended; NULL: nothing has come beside it. */
static struct wf_bundle *bundle_of(const struct weft_op *op)
{
	if (WF_NEED(op) || (!weft_op_ended(op) && !(op->owner && wf_node_inside(op->owner))))
		return NULL;
	if (op->class == &wf_rpc_class)
		return op->call.bundle;
	return op->class == &wf_stream_read_class ? op->read.bundle : NULL;
}

unsigned weft_op_attachments(const struct weft_op *op)
{
	const struct wf_bundle *b = bundle_of(op);

	return b ? b->count : 0;
}

const struct weft_tensor *weft_op_attachment(const struct weft_op *op, unsigned index,
					     unsigned *flags)
{
	return look(bundle_of(op), index, flags);
}

int weft_op_receive(struct weft_op *op, unsigned index, const struct weft_tensor *into,
		    const struct weft_recv_options *options, struct weft_op **receiver)
{
	if (WF_NEED(op))
		return -EINVAL;
	return receive(op->owner, op->desk, bundle_of(op), index, 0, into, options, receiver);
}
