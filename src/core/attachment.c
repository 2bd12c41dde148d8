/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attachments: an outgoing one is a send that begins when its message is posted; an
 * incoming one is received out of its message's set.
 */
#include "core/attachment.h"

#include <errno.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/op.h"
#include "core/send.h"
#include "core/turn.h"
#include "core/watch.h"
#include "core/worker.h"
#include "util/clock.h"
#include "util/progress.h"
#include "wire/record.h"

/* Outgoing attachments. */

static struct weft_op *op_of(struct wf_list *node)
{
	return WF_CONTAINER(node, struct wf_attachment, node)->op;
}

/* End @op, which has not begun and will not. */
static void drop(struct weft_op *op, const struct wf_error *e)
{
	wf_list_remove(&op->send.attached->node);
	atomic_store(&op->submitted, true);
	if (op->send.sending.chunk)
		(void)wf_memory_give(op->owner, op->send.sending.chunk);
	wf_op_finish(op, e, WEFT_EXECUTED_NO);
}

void wf_attachments_await(struct wf_list *attached, struct wf_worker *worker)
{
	struct wf_error e;

	WF_LIST_EACH(node, attached) {
		struct weft_op *op = op_of(node);

		if (op->started)
			continue;
		op->worker = worker;
		wf_op_begin(op);
		if (atomic_load(&op->cancel_asked)) {
			wf_error_set(&e, -ECANCELED, "it was cancelled");
			wf_attachment_stop(op, &e);
		}
		wf_watch_begin(op);
		atomic_store(&op->submitted, true);
	}
}

/* Remove @op from its message; a call may wait for its attachments to end. */
static void leave(struct weft_op *op)
{
	struct weft_op *call = op->send.attached->call;

	wf_list_remove(&op->send.attached->node);
	if (call && call->call.waits && wf_list_empty(&call->call.attached))
		wf_op_finish_kept(call);
}

void wf_attachment_over(struct weft_op *op)
{
	leave(op);
	wf_op_put(op);
}

/* Turn @op into a loss notice, which has no body: pool memory may be what was missing. */
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
	s->outgoing.body = NULL;
	s->outgoing.body_bytes = 0;
	s->outgoing.insists = true;
	/* Terms that the attachment could not keep do not bind the notice, which follows its message. */
	op->terms = (struct wf_terms){ .priority = op->terms.priority };
	op->outcome.path = NULL; /* the notice will write its own path there */
	op->send.attached->lost = true;
	atomic_fetch_add(&op->refs, 1); /* held until wf_attachment_over */
}

/*
 * A peer that was promised an attachment waits for it, and so gets a loss notice instead.  The
 * notice goes after the end of @op if the message, or a rail, is not there yet.
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
		wf_send_start_attached(op, op->worker, s->link);
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

void wf_attachments_begin(struct wf_list *attached, struct wf_worker *worker, struct wf_link *link,
			  uint64_t call, struct wf_record_attachment_key key)
{
	wf_attachments_await(attached, worker);
	WF_LIST_EACH(node, attached) {
		struct weft_op *op = op_of(node);

		op->send.sending.step = call;
		wf_record_attachment_key_put(op->send.attached->key, &key);
		key.index++;
		wf_send_start_attached(op, worker, link);
	}
}

/* @known: the peer does not wait for the attachments. */
static void stop_all(struct wf_list *attached, struct wf_worker *worker, const struct wf_error *e,
		     bool known)
{
	WF_LIST_EACH(node, attached) {
		struct weft_op *op = op_of(node);

		if (op->send.attached->lost && !known)
			continue; /* a loss notice is under way */
		op->send.attached->dropped |= known;
		if (op->send.sending.state != WF_SENDING_ENDED) {
			wf_sending_stop(&op->send.sending, e);
		} else if (op->send.attached->lost) {
			wf_attachment_over(op);
		} else {
			op->worker = worker;
			drop(op, e);
		}
	}
}

void wf_attachments_stop(struct wf_list *attached, struct wf_worker *worker,
			 const struct wf_error *e)
{
	struct wf_error over;

	/* Most messages have no attachments, and writing a sentence takes time. */
	if (wf_list_empty(attached))
		return;
	if (!e) {
		wf_error_set(&over, -ECANCELED, "the call is over");
		e = &over;
	}
	stop_all(attached, worker, e, true);
}

void wf_attachments_lose(struct wf_list *attached, struct wf_worker *worker,
			 const struct wf_error *e)
{
	stop_all(attached, worker, e, false);
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
		wf_timer_stop(&op->worker->engine.loop.timers, &op->time.timer);
		op->started = false;
	}
}

static void forget(struct wf_loop_task *task)
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
			if (op->entry.sole)
				wf_op_put(op); /* nothing comes out of the queue any more */
			wf_op_put(op);
			continue;
		}
		op->start_task.run = forget;
		wf_turn_run(op->worker, &op->start_task, wf_clock_now());
	}
}

/* The peer waits for @op, unless it knows that the message is over, or is just given up. */
void wf_attachment_ended(struct weft_op *op, const struct wf_error *e)
{
	const struct wf_sending *s = &op->send.sending;
	const struct wf_link *link = wf_link_real(s->link);

	if (!e || op->send.attached->dropped || s->outgoing.sent ||
	    (link->dial.met && !wf_link_greeted(link))) {
		leave(op);
		return;
	}
	become_lost(op);
	wf_send_start_attached(op, op->worker, s->link);
}

/* Incoming attachments. */

int wf_attachments_expect(void *ctx, struct wf_link *link, uint64_t call, bool reply,
			  uint64_t number, uint16_t count, void (*whole)(void *owner),
			  void *owner, void **attachment_set)
{
	struct wf_attachment_set_name name = {
		.link = link, .life = link->id, .call = call, .reply = reply, .message = number,
	};
	struct wf_worker *worker = ctx;
	struct wf_attachment_set *b;
	int err = wf_attachment_set_open(&worker->attachment_sets, &name, count, &b);

	if (err)
		return err;
	b->whole = whole;
	b->owner = owner;
	*attachment_set = b;
	return 0;
}

void wf_attachments_drop(void *attachment_set)
{
	struct wf_attachment_set *b = attachment_set;

	if (!b)
		return;
	wf_attachment_set_close(b);
	wf_attachment_set_put(b);
}

uint64_t wf_attachments_progress(const void *attachment_set)
{
	return ((const struct wf_attachment_set *)attachment_set)->came;
}

static void close_set(struct wf_loop_task *task)
{
	wf_attachments_drop(WF_CONTAINER(task, struct wf_attachment_set, task));
}

void wf_attachments_free(struct weft_op *op, struct wf_attachment_set *b)
{
	if (!b)
		return;
	if (!op->owner) {
		wf_attachment_set_put(b); /* the node has closed the set */
		return;
	}
	b->task.run = close_set;
	wf_turn_run(op->worker, &b->task, wf_clock_now());
}
