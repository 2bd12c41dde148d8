/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/reply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/again.h"
#include "util/status.h"

#define TEXT_BYTES_MAX 4096 /* of a failure's message; longer ones are cut */

void wf_reply_drop(struct wf_served *s)
{
	wf_buffer_give(&s->reply);
	s->parcel.body = NULL;
	s->parcel.body_bytes = 0;
	if (s->text != s->brief)
		free(s->text);
	s->text = NULL;
}

static enum weft_executed executed(const struct wf_served *s)
{
	if (s->unsure)
		return WEFT_EXECUTED_MAYBE;
	return s->handled ? WEFT_EXECUTED_YES : WEFT_EXECUTED_NO;
}

static struct wf_reply_record record_of(const struct wf_served *s, const struct wf_body *body)
{
	return (struct wf_reply_record){
		.call = s->call,
		.status = (uint8_t)s->status,
		.executed = (uint8_t)executed(s),
		.flags = s->status == WEFT_OK && s->compressed ? WF_REPLY_COMPRESSED : 0,
		.text_bytes = (uint16_t)(s->text ? strlen(s->text) : 0),
		.attachments = s->status == WEFT_OK ? s->attachments : 0,
		.text = (const uint8_t *)s->text,
		.initial = s->initial,
		.initial_bytes = s->initial_bytes,
		.trailing = s->trailing,
		.trailing_bytes = s->trailing_bytes,
		.details = s->details,
		.details_bytes = s->details_bytes,
		.body = *body,
	};
}

static int put_head(struct wf_parcel *p, const struct wf_body *body)
{
	struct wf_reply_record r = record_of(WF_CONTAINER(p, struct wf_served, parcel), body);
	struct wf_writer head;
	int err = wf_parcel_head(p, wf_reply_record_bytes(&r), &head);

	if (!err)
		wf_reply_record_put(&head, &r);
	return err;
}

static void post_reply(struct wf_served *s);

/* The caller's side tells the caller, but for a reply of which nothing got out. */
static void reply_done(struct wf_parcel *p, const struct wf_error *e)
{
	struct wf_served *s = WF_CONTAINER(p, struct wf_served, parcel);

	if (!e || p->sent || s->failed_to_reply || !wf_link_real(s->link)->greeted) {
		wf_served_free(s);
		return;
	}
	/* Short enough to need no memory, which may be what was missing. */
	s->failed_to_reply = true;
	wf_reply_drop(s);
	s->initial_bytes = s->trailing_bytes = s->details_bytes = 0;
	s->status = wf_status_of(e->code);
	s->text = s->brief;
	snprintf(s->brief, sizeof(s->brief), "the reply can't be sent: %.120s", e->text);
	post_reply(s);
}

static void post_reply(struct wf_served *s)
{
	static const struct wf_parcel_class class = {
		.put_head = put_head,
		.done = reply_done,
	};

	s->parcel.type = WF_RECORD_REPLY;
	s->parcel.class = &class;
	s->parcel.terms = &s->terms;
	wf_parcel_post(s->serving->transfer, s->link, &s->parcel);
	if (s->attachments && s->status == WEFT_OK)
		s->serving->answered(s);
}

void wf_reply_flushed(struct wf_stream *stream)
{
	struct wf_served *s = stream->owner;

	if (!s->finishing)
		return;
	/* What was still to be said has ended by that, and was not: the caller must not hear the end of it. */
	if (!wf_served_left_ns(s)) {
		wf_served_free(s);
		return;
	}
	s->finishing = false;
	post_reply(s);
}

void wf_reply_unsaid(struct wf_stream *stream, const struct wf_error *e)
{
	struct wf_served *s = stream->owner;

	/* The failure stays: it is told of each message that goes with the first. */
	if (s->parcel.state != WF_PARCEL_ENDED && !s->failed_to_reply)
		wf_parcel_stop(&s->parcel, e);
}

/* What was written goes before it, and nothing comes in any more; false: it must wait for that. */
static bool finish_stream(struct wf_served *s)
{
	struct wf_stream *stream = s->stream;
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "the call has been answered");
	wf_stream_deafen(stream, &e);
	if (!stream->initial_sent) {
		s->initial = stream->initial;
		s->initial_bytes = stream->initial_bytes;
		stream->initial = NULL;
	}
	s->finishing = !wf_stream_is_flushed(stream);
	return !s->finishing;
}

static void keep_reply(struct wf_served *s)
{
	struct wf_body body = { .bytes = s->parcel.body_bytes };
	struct wf_reply_record r = record_of(s, &body);

	r.eager = s->parcel.body;
	wf_again_keep(s, &r);
}

static void send_reply(struct wf_served *s)
{
	if (s->running)
		keep_reply(s);
	if (atomic_load(&s->cancelled) || s->alone) {
		wf_served_free(s);
		return;
	}
	wf_served_charge(s, s->initial_bytes + s->trailing_bytes + s->details_bytes);
	wf_link_record(wf_link_real(s->link), WF_RECORDER_REPLY, s->call, s->status);
	wf_timer_stop(&s->serving->transfer->worker->loop.timers, &s->timer);
	if (!s->stream || finish_stream(s))
		post_reply(s);
}

static void set_text(struct wf_served *s, const char *text)
{
	size_t bytes = text ? strlen(text) : 0;

	bytes = WF_MIN(bytes, (size_t)TEXT_BYTES_MAX);
	s->text = bytes < sizeof(s->brief) ? s->brief : malloc(bytes + 1);
	if (!s->text) {
		s->text = s->brief; /* as much of it as fits */
		bytes = sizeof(s->brief) - 1;
	}
	memcpy(s->text, text ? text : "", bytes);
	s->text[bytes] = '\0';
}

static void set_failure(struct wf_served *s, const struct wf_error *e)
{
	wf_reply_drop(s);
	s->status = wf_status_of(e->code);
	set_text(s, e->text);
}

/* Whatever the handler says: a stream that broke has not done what it was for. */
static void run_reply(struct wf_task *task)
{
	struct wf_served *s = WF_CONTAINER(task, struct wf_served, task);
	struct wf_error e;

	wf_served_hold(s, &s->reply, s->parcel.body_bytes);
	if (s->broken)
		set_failure(s, wf_reason_get(&s->why, &e));
	send_reply(s);
}

int wf_reply_submit(struct wf_served *s, enum weft_status status, const char *text,
		    const struct wf_packed *reply)
{
	struct wf_buffer late;

	if (atomic_exchange(&s->replied, true)) {
		late = reply ? reply->buffer : (struct wf_buffer){ 0 };
		wf_buffer_give(&late);
		return -EALREADY;
	}
	s->status = status;
	if (reply) {
		s->reply = reply->buffer;
		s->compressed = reply->compressed;
		s->parcel.body = reply->buffer.at;
		s->parcel.body_bytes = reply->bytes;
	}
	if (status != WEFT_OK)
		set_text(s, text);
	s->task.run = run_reply;
	wf_loop_submit(&s->serving->transfer->worker->loop, &s->task);
	return 0;
}

void wf_reply_fail(struct wf_served *s, enum weft_status status, const char *text)
{
	if (atomic_exchange(&s->replied, true))
		return;
	wf_served_leave(s);
	s->status = status;
	set_text(s, text);
	send_reply(s);
}

void wf_reply_refuse(struct wf_served *s, enum weft_status status, const char *text)
{
	wf_counters_add(&s->serving->transfer->worker->counters.calls_refused, 1);
	wf_reply_fail(s, status, text);
}

void wf_reply_broken(struct wf_stream *stream, const struct wf_error *e)
{
	struct wf_served *s = stream->owner;

	s->broken = true;
	wf_reason_keep(&s->why, e);
	/* What the answer waited for will not be said. */
	if (!s->finishing)
		return;
	s->finishing = false;
	set_failure(s, e);
	post_reply(s);
}
