/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/sending.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/shape.h"
#include "util/progress.h"

#define STAGE_FIRST_BYTES (64 * KIB) /* longest eager body; not tuned */
#define GATHER_BYTES MIB /* bytes a turn: about 1 ms of small elements; not tuned yet */

static struct wf_record_tensor record_of(const struct wf_sending *s, const struct wf_body *body)
{
	return (struct wf_record_tensor){
		.step = s->step,
		.flags = s->flags,
		.dtype = s->dtype,
		.rank = s->rank,
		.key_bytes = s->key_bytes,
		.key = s->key,
		.body = *body,
	};
}

static int put_head(struct wf_outgoing *p, const struct wf_body *body)
{
	const struct wf_sending *s = WF_CONTAINER(p, struct wf_sending, outgoing);
	struct wf_record_tensor t = record_of(s, body);
	struct wf_bytes_writer head;
	int err = wf_outgoing_head(p, wf_record_tensor_bytes(&t), &head);

	if (!err)
		wf_record_tensor_put(&head, &t, s->shape);
	return err;
}

static void leave_step(struct wf_sending *s)
{
	wf_use_leave(&s->use);
	wf_part_put(s->part);
	s->part = NULL;
}

static void end(struct wf_sending *s, const struct wf_error *e)
{
	struct wf_error why;

	if (e)
		why = *e; /* @e may be the outgoing body's, or the stage's */
	s->state = WF_SENDING_ENDED;
	wf_list_remove(&s->node);
	leave_step(s);
	wf_stage_close(s->stage);
	s->outgoing.stage = s->stage = NULL;
	s->done(s, e ? &why : NULL);
}

/* End @s once no copy reads its body, which is borrowed till then; till then it holds its link. */
static void end_when_quiet(struct wf_sending *s, const struct wf_error *e)
{
	if (!s->stage || wf_stage_quiet(s->stage)) {
		end(s, e);
		return;
	}
	wf_stage_stop(s->stage);
	wf_link_get(s->link);
	s->state = WF_SENDING_QUIET;
	if (e)
		wf_reason_keep(&s->outgoing.why, e);
	else
		wf_reason_drop(&s->outgoing.why);
}

static void sent(struct wf_outgoing *p, const struct wf_error *e)
{
	end_when_quiet(WF_CONTAINER(p, struct wf_sending, outgoing), e);
}

static void post(struct wf_sending *s)
{
	s->state = WF_SENDING_MOVING;
	wf_outgoing_post(s->sendings->transfer, s->link, &s->outgoing);
}

/* The line of sends that wait for the pool. */

static bool same_channel(const struct wf_sending *a, const struct wf_sending *b)
{
	return a->step == b->step && a->key_bytes == b->key_bytes &&
	       wf_link_real(a->link) == wf_link_real(b->link) &&
	       !memcmp(a->key, b->key, a->key_bytes);
}

/* Returns the first send in line of the channel of @s, or NULL. */
static struct wf_sending *first_in_line(const struct wf_sending *s)
{
	WF_LIST_EACH(node, &s->sendings->line) {
		struct wf_sending *first = WF_CONTAINER(node, struct wf_sending_turn, node)->sending;

		if (same_channel(first, s))
			return first;
	}
	return NULL;
}

static void go_on_later(struct wf_timer *timer);

static int enter_line(struct wf_sending *s)
{
	s->turn = calloc(1, sizeof(*s->turn));
	if (!s->turn)
		return -ENOMEM;
	s->turn->sending = s;
	wf_list_init(&s->turn->waiter.node);
	s->state = WF_SENDING_BEHIND;
	wf_list_append(&s->sendings->line, &s->turn->node);
	wf_link_get(s->link);
	/* The peer is dialled, so that its death, or its absence, ends a send that waits for it. */
	wf_link_watch(s->link, true);
	return 0;
}

/*
 * Take @s out of the line.  The next send goes on by a timer: it may end, and its owner must not
 * be called inside.
 */
static void leave_line(struct wf_sending *s)
{
	struct wf_engine *engine = s->sendings->transfer->engine;
	struct wf_sending *next;

	wf_pool_unwait(&engine->pool, &s->turn->waiter);
	wf_timer_stop(&engine->loop.timers, &s->turn->timer);
	wf_list_remove(&s->turn->node);
	free(s->turn);
	s->turn = NULL;
	s->sendings->line_progress++;
	next = first_in_line(s);
	if (next && next->state == WF_SENDING_BEHIND)
		wf_loop_timer(&engine->loop, &next->turn->timer, engine->loop.now_ns, go_on_later);
	wf_link_unwatch(s->link);
	wf_link_put(s->link);
}

static void retry_memory(struct wf_pool_waiter *waiter);

static void wait_for_memory(struct wf_sending *s, uint64_t bytes)
{
	struct wf_pool *pool = &s->sendings->transfer->engine->pool;

	s->state = WF_SENDING_MEMORY;
	s->turn->waiter.retry = retry_memory;
	wf_link_record(s->link, WF_RECORDER_POOL_WAIT, bytes, 0);
	wf_pool_wait(pool, &s->turn->waiter);
}

/* Take memory for the elements.  -EAGAIN: the pool has none for now, and tells when to go on. */
static int find_memory(struct wf_sending *s, struct wf_error *e)
{
	struct wf_pool *pool = &s->sendings->transfer->engine->pool;
	int err = wf_pool_take(pool, s->outgoing.body_bytes, &s->chunk);

	if (err == -EAGAIN)
		wait_for_memory(s, s->outgoing.body_bytes);
	else if (err)
		wf_error_set(e, err, "no memory to gather a tensor of %llu bytes",
			     (unsigned long long)s->outgoing.body_bytes);
	return err;
}

/* Gather elements into the pool.  -EAGAIN: the rest is gathered later. */
static int gather(struct wf_sending *s, struct wf_error *e)
{
	struct wf_engine *engine = s->sendings->transfer->engine;
	int err = s->chunk ? 0 : find_memory(s, e);

	if (err)
		return err;
	s->outgoing.body = s->chunk;
	if (wf_shape_gather(s->strided, s->chunk, &s->turn->gathered_bytes, GATHER_BYTES))
		return 0;
	s->state = WF_SENDING_GATHERING;
	s->sendings->line_progress++;
	wf_loop_timer(&engine->loop, &s->turn->timer, engine->loop.now_ns, go_on_later);
	return -EAGAIN;
}

static void staged(struct wf_stage *stage, const struct wf_error *e);

/*
 * Stage a body on a device.  A short body goes into the pool before it is posted, for it may go
 * eagerly.  A longer one does when its reader asks: many may wait long for theirs.  -EAGAIN:
 * later.
 */
static int go_by_stage(struct wf_sending *s, struct wf_error *e)
{
	uint64_t bytes = s->outgoing.body_bytes;
	int err;

	if (!s->stage && wf_stage_open(s->sendings->transfer, s->device, bytes,
				       WF_KIND_INTO_CHUNK, &s->stage))
		return wf_error_set(e, -ENOMEM, "no memory to stage a tensor");
	s->stage->moved = staged;
	s->stage->owner = s;
	if (bytes > STAGE_FIRST_BYTES || s->outgoing.terms->no_staging) {
		s->outgoing.stage = s->stage;
		return 0;
	}
	err = wf_stage_take_bounce(s->stage, e);
	if (err == -EAGAIN)
		wait_for_memory(s, s->stage->bounce_bytes);
	if (err)
		return err;
	s->state = WF_SENDING_FILLING;
	s->outgoing.body = s->stage->bounce;
	wf_stage_go(s->stage, bytes);
	return -EAGAIN;
}

static void post_from_line(struct wf_sending *s)
{
	wf_link_get(s->link);
	leave_line(s);
	post(s);
	wf_link_put(s->link);
}

/* Go on with @s, the first of its channel. */
static void go_on(struct wf_sending *s)
{
	struct wf_error e;
	int err = 0;

	if (s->device)
		err = go_by_stage(s, &e);
	else if (s->strided)
		err = gather(s, &e);
	if (!err)
		post_from_line(s);
	else if (err != -EAGAIN)
		wf_sending_stop(s, &e);
}

static void end_quiet(struct wf_sending *s)
{
	struct wf_link *link = s->link;
	struct wf_reason why = s->outgoing.why;
	struct wf_error e;

	/* The owner may free @s inside end(). */
	s->outgoing.why = (struct wf_reason){ 0 };
	end(s, wf_reason_get(&why, &e));
	wf_reason_drop(&why);
	wf_link_put(link);
}

static void staged(struct wf_stage *stage, const struct wf_error *e)
{
	struct wf_sending *s = stage->owner;

	switch (s->state) {
	case WF_SENDING_FILLING:
		s->sendings->line_progress++;
		if (e)
			wf_sending_stop(s, e);
		else if (stage->ended == s->outgoing.body_bytes)
			post_from_line(s);
		break;
	case WF_SENDING_MOVING:
		if (s->outgoing.stage)
			wf_outgoing_filled(&s->outgoing, e);
		break;
	case WF_SENDING_QUIET:
		if (wf_stage_quiet(stage))
			end_quiet(s);
		break;
	default:
		break;
	}
}

static void go_on_later(struct wf_timer *timer)
{
	go_on(WF_CONTAINER(timer, struct wf_sending_turn, timer)->sending);
}

static void retry_memory(struct wf_pool_waiter *waiter)
{
	go_on(WF_CONTAINER(waiter, struct wf_sending_turn, waiter)->sending);
}

/* Start, stop and end of a send. */

static bool follows(const struct wf_outgoing *p, const struct wf_outgoing *before)
{
	return same_channel(WF_CONTAINER(p, struct wf_sending, outgoing),
			    WF_CONTAINER(before, struct wf_sending, outgoing));
}

static const struct wf_outgoing_class class = {
	.needs_room = true,
	.follows = follows,
	.put_head = put_head,
	.done = sent,
};

void wf_sending_init(struct wf_sendings *sendings, struct wf_transfer *t, uint8_t type)
{
	sendings->type = type;
	sendings->transfer = t;
	wf_list_init(&sendings->all);
	wf_list_init(&sendings->line);
}

void wf_sending_start(struct wf_sendings *sendings, struct wf_link *link, struct wf_sending *s)
{
	struct wf_error e;
	bool behind;

	s->sendings = sendings;
	s->link = link;
	s->turn = NULL;
	wf_list_append(&sendings->all, &s->node);
	s->outgoing.why = (struct wf_reason){ 0 };
	s->outgoing.type = sendings->type;
	s->outgoing.class = &class;
	behind = first_in_line(s) != NULL;
	if ((!behind && !s->strided && !s->device) || wf_link_real(link)->state == WF_LINK_GONE) {
		post(s);
		return;
	}
	if (enter_line(s)) {
		wf_error_set(&e, -ENOMEM, "no memory for a send that has to wait in line");
		end(s, &e);
	} else if (!behind) {
		go_on(s);
	}
}

void wf_sending_stop(struct wf_sending *s, const struct wf_error *e)
{
	struct wf_link *link = s->link;

	switch (s->state) {
	case WF_SENDING_ENDED:
	case WF_SENDING_QUIET:
		break;
	case WF_SENDING_BEHIND:
	case WF_SENDING_MEMORY:
	case WF_SENDING_GATHERING:
	case WF_SENDING_FILLING:
		wf_link_get(link);
		leave_line(s);
		end_when_quiet(s, e);
		wf_link_put(link);
		break;
	case WF_SENDING_MOVING:
		wf_outgoing_stop(&s->outgoing, e);
		break;
	}
}

int wf_sending_take_back(struct wf_sending *s)
{
	int err = 0;

	switch (s->state) {
	case WF_SENDING_ENDED:
	case WF_SENDING_QUIET:
		return -EALREADY;
	case WF_SENDING_FILLING:
		/* The stage is reading the body. */
		if (!wf_stage_quiet(s->stage))
			return -EALREADY;
		leave_line(s);
		break;
	case WF_SENDING_BEHIND:
	case WF_SENDING_MEMORY:
	case WF_SENDING_GATHERING:
		leave_line(s);
		break;
	case WF_SENDING_MOVING:
		err = wf_outgoing_take_back(&s->outgoing);
		break;
	}
	if (err)
		return err;
	s->state = WF_SENDING_ENDED;
	wf_list_remove(&s->node);
	leave_step(s);
	wf_stage_close(s->stage);
	s->outgoing.stage = s->stage = NULL;
	return 0;
}

void wf_sending_down(struct wf_sendings *sendings, const struct wf_link *link,
		     const struct wf_error *e)
{
	WF_LIST_EACH(node, &sendings->line) {
		struct wf_sending *s = WF_CONTAINER(node, struct wf_sending_turn, node)->sending;

		if (wf_link_real(s->link) == link)
			wf_sending_stop(s, e);
	}
}

void wf_sending_describe(const struct wf_sending *s, char *text, size_t bytes)
{
	char wait[WF_POOL_TEXT_BYTES];

	switch (s->state) {
	case WF_SENDING_BEHIND:
		(void)snprintf(text, bytes,
			       "behind an earlier one of its step and key, which is not gathered yet");
		break;
	case WF_SENDING_MEMORY:
		wf_pool_describe(&s->sendings->transfer->engine->pool,
				 s->stage ? s->stage->bounce_bytes : s->outgoing.body_bytes, wait);
		(void)snprintf(text, bytes, "%s", wait);
		break;
	case WF_SENDING_GATHERING:
		(void)snprintf(text, bytes, "its elements are being gathered");
		break;
	case WF_SENDING_FILLING:
		(void)snprintf(text, bytes, "it is being copied from its device");
		break;
	case WF_SENDING_QUIET:
		(void)snprintf(text, bytes, "a copy from its device has to end");
		break;
	case WF_SENDING_ENDED:
		(void)snprintf(text, bytes, "its message waits");
		break;
	case WF_SENDING_MOVING:
		wf_outgoing_describe(&s->outgoing, text, bytes);
		break;
	}
}

uint64_t wf_sending_progress(const struct wf_sending *s)
{
	uint64_t progress = wf_progress_add(s->state, s->turn ? s->turn->gathered_bytes : 0);

	if (s->state == WF_SENDING_MOVING)
		return wf_progress_add(progress, wf_outgoing_progress(&s->outgoing));
	if (s->state == WF_SENDING_FILLING)
		return wf_progress_add(progress, s->stage->ended);
	/*
	 * Progress of all channels together: to look for the send ahead would cost as much as
	 * the line is long.
	 */
	if (s->state == WF_SENDING_BEHIND)
		return wf_progress_add(progress, s->sendings->line_progress);
	return progress;
}
