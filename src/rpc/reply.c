/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/reply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/dedup.h"
#include "rpc/server_call.h"
#include "util/status.h"

/* A caller keeps no more of a failure's message, in a struct wf_error: longer ones are cut. */
#define TEXT_BYTES_MAX (WF_ERROR_BYTES - 1)

void wf_reply_drop(struct wf_server_call *s)
{
	struct wf_reply *reply = &s->reply;

	wf_buffer_give(&reply->buffer);
	reply->outgoing.body = NULL;
	reply->outgoing.body_bytes = 0;
	if (reply->text != reply->brief)
		free(reply->text);
	reply->text = NULL;
}

static enum weft_executed executed(const struct wf_server_call *s)
{
	if (s->again.unsure)
		return WEFT_EXECUTED_MAYBE;
	return s->handler.begun ? WEFT_EXECUTED_YES : WEFT_EXECUTED_NO;
}

static struct wf_record_reply record_of(const struct wf_server_call *s, const struct wf_body *body)
{
	const struct wf_reply *reply = &s->reply;
	bool well = reply->status == WEFT_OK;

	return (struct wf_record_reply){
		.call = s->call,
		.status = (uint8_t)reply->status,
		.executed = (uint8_t)executed(s),
		.flags = well && reply->compressed ? WF_REPLY_COMPRESSED : 0,
		.text_bytes = (uint16_t)(reply->text ? strlen(reply->text) : 0),
		.attachments = well ? reply->attachments : 0,
		.text = (const uint8_t *)reply->text,
		.initial = reply->initial.at,
		.initial_bytes = reply->initial.bytes,
		.trailing = reply->trailing.at,
		.trailing_bytes = reply->trailing.bytes,
		.details = reply->details.at,
		.details_bytes = reply->details.bytes,
		.body = *body,
	};
}

static int put_head(struct wf_outgoing *p, const struct wf_body *body)
{
	struct wf_record_reply r =
		record_of(WF_CONTAINER(p, struct wf_server_call, reply.outgoing), body);
	struct wf_bytes_writer head;
	int err = wf_outgoing_head(p, wf_record_reply_bytes(&r), &head);

	if (!err)
		wf_record_reply_put(&head, &r);
	return err;
}

static void post_reply(struct wf_server_call *s, enum wf_reply_state state);

/* End the call: the caller's side tells the caller, but for a reply of which nothing got out. */
static void reply_done(struct wf_outgoing *p, const struct wf_error *e)
{
	struct wf_server_call *s = WF_CONTAINER(p, struct wf_server_call, reply.outgoing);
	struct wf_reply *reply = &s->reply;

	if (!e || p->sent || reply->state == WF_REPLY_FAILED ||
	    !wf_link_greeted(wf_link_real(s->link))) {
		wf_server_call_free(s);
		return;
	}
	/* The failure is short, and goes once there is memory, which may be what was missing. */
	s->terms = (struct wf_terms){ .priority = s->terms.priority };
	wf_reply_drop(s);
	reply->initial.bytes = reply->trailing.bytes = reply->details.bytes = 0;
	reply->status = wf_status_of(e->code);
	reply->text = reply->brief;
	snprintf(reply->brief, sizeof(reply->brief), "the reply can't be sent: %.120s", e->text);
	post_reply(s, WF_REPLY_FAILED);
}

static void post_reply(struct wf_server_call *s, enum wf_reply_state state)
{
	static const struct wf_outgoing_class class = {
		.put_head = put_head,
		.done = reply_done,
	};
	struct wf_reply *reply = &s->reply;

	reply->state = state;
	reply->outgoing.type = WF_RECORD_REPLY;
	reply->outgoing.class = &class;
	reply->outgoing.insists = state == WF_REPLY_FAILED;
	reply->outgoing.terms = &s->terms;
	wf_outgoing_post(s->serving->transfer, s->link, &reply->outgoing);
	if (reply->attachments && reply->status == WEFT_OK)
		s->serving->answered(s);
}

void wf_reply_flushed(struct wf_stream *stream)
{
	struct wf_server_call *s = stream->owner;

	if (s->reply.state != WF_REPLY_WAITING)
		return;
	/*
	 * By a passed deadline the last messages have ended unsent: the caller must not hear an
	 * end of the stream.
	 */
	if (!wf_server_call_left_ns(s)) {
		wf_server_call_free(s);
		return;
	}
	post_reply(s, WF_REPLY_POSTED);
}

void wf_reply_unsaid(struct wf_stream *stream, const struct wf_error *e)
{
	struct wf_server_call *s = stream->owner;

	/*
	 * A failure that is posted stays: unsaid comes once for each message that goes with the
	 * first.
	 */
	if (s->reply.outgoing.state != WF_OUTGOING_ENDED && s->reply.state == WF_REPLY_POSTED)
		wf_outgoing_stop(&s->reply.outgoing, e);
}

/*
 * Finish the stream: its messages go before the answer, and no more come in.  Returns false: the
 * answer must wait.
 */
static bool finish_stream(struct wf_server_call *s)
{
	struct wf_stream *stream = s->stream;
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "the call has been answered");
	wf_stream_deafen(stream, &e);
	if (!stream->initial_sent) {
		s->reply.initial = (struct wf_reply_block){
			.at = stream->initial, .bytes = stream->initial_bytes,
		};
		stream->initial = NULL;
	}
	if (wf_stream_is_flushed(stream))
		return true;
	s->reply.state = WF_REPLY_WAITING;
	return false;
}

static void keep_reply(struct wf_server_call *s)
{
	struct wf_body body = { .bytes = s->reply.outgoing.body_bytes };
	struct wf_record_reply r = record_of(s, &body);

	r.eager = s->reply.outgoing.body;
	wf_dedup_keep(s, &r);
}

static void send_reply(struct wf_server_call *s)
{
	if (s->again.running)
		keep_reply(s);
	/* A caller that is just given up must not be dialled for the answer. */
	if (atomic_load(&s->cancelled) || s->place == WF_SERVER_CALL_ALONE ||
	    !wf_link_greeted(wf_link_real(s->link))) {
		wf_server_call_free(s);
		return;
	}
	wf_server_call_charge(s, s->reply.initial.bytes + s->reply.trailing.bytes +
					 s->reply.details.bytes);
	wf_link_record(wf_link_real(s->link), WF_RECORDER_REPLY, s->call, s->reply.status);
	wf_timer_stop(&s->serving->transfer->engine->loop.timers, &s->timer);
	if (!s->stream || finish_stream(s))
		post_reply(s, WF_REPLY_POSTED);
}

static void set_text(struct wf_server_call *s, const char *text)
{
	size_t bytes = text ? strlen(text) : 0;

	bytes = WF_MIN(bytes, (size_t)TEXT_BYTES_MAX);
	s->reply.text = bytes < sizeof(s->reply.brief) ? s->reply.brief : malloc(bytes + 1);
	if (!s->reply.text) {
		s->reply.text = s->reply.brief; /* the text is cut */
		bytes = sizeof(s->reply.brief) - 1;
	}
	memcpy(s->reply.text, text ? text : "", bytes);
	s->reply.text[bytes] = '\0';
}

static void set_failure(struct wf_server_call *s, const struct wf_error *e)
{
	wf_reply_drop(s);
	s->reply.status = wf_status_of(e->code);
	set_text(s, e->text);
}

/* Send the handler's answer, unless the stream broke: then that is the answer. */
static void run_reply(struct wf_loop_task *task)
{
	struct wf_server_call *s = WF_CONTAINER(task, struct wf_server_call, reply.task);
	struct wf_error e;

	wf_server_call_hold(s, &s->reply.buffer, s->reply.outgoing.body_bytes);
	if (s->reply.why.code)
		set_failure(s, wf_reason_get(&s->reply.why, &e));
	send_reply(s);
}

int wf_reply_submit(struct wf_server_call *s, enum weft_status status, const char *text,
		    const struct wf_codec_packed *reply)
{
	struct wf_buffer late;

	if (atomic_exchange(&s->replied, true)) {
		late = reply ? reply->buffer : (struct wf_buffer){ 0 };
		wf_buffer_give(&late);
		return -EALREADY;
	}
	s->reply.status = status;
	if (reply) {
		s->reply.buffer = reply->buffer;
		s->reply.compressed = reply->compressed;
		s->reply.outgoing.body = reply->buffer.at;
		s->reply.outgoing.body_bytes = reply->bytes;
	}
	if (status != WEFT_OK)
		set_text(s, text);
	s->reply.task.run = run_reply;
	wf_loop_submit(&s->serving->transfer->engine->loop, &s->reply.task);
	return 0;
}

void wf_reply_fail(struct wf_server_call *s, enum weft_status status, const char *text)
{
	if (atomic_exchange(&s->replied, true))
		return;
	wf_server_call_leave(s);
	s->reply.status = status;
	set_text(s, text);
	send_reply(s);
}

void wf_reply_refuse(struct wf_server_call *s, enum weft_status status, const char *text)
{
	wf_counters_add(&s->serving->transfer->engine->counters.calls_refused, 1);
	wf_reply_fail(s, status, text);
}

void wf_reply_broken(struct wf_stream *stream, const struct wf_error *e)
{
	struct wf_server_call *s = stream->owner;

	wf_reason_keep(&s->reply.why, e);
	/* Messages that the answer waited for will not be sent. */
	if (s->reply.state != WF_REPLY_WAITING)
		return;
	set_failure(s, e);
	post_reply(s, WF_REPLY_POSTED);
}
