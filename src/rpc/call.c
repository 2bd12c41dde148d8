/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/progress.h"
#include "util/status.h"
#include "wire/pair.h"

#define CALLS_MAX (1u << 20)

void wf_call_init(struct wf_calls *calls, struct wf_streams *streams)
{
	calls->streams = streams;
	calls->transfer = streams->transfer;
	wf_table_init(&calls->table, CALLS_MAX);
}

void wf_call_fini(struct wf_calls *calls)
{
	wf_table_fini(&calls->table);
}

void wf_call_request(struct wf_call *call, const struct wf_codec_packed *request)
{
	call->request = request->buffer;
	call->compressed = request->compressed;
	call->outgoing.body = request->buffer.at;
	call->outgoing.body_bytes = request->bytes;
}

void wf_call_drop(struct wf_call *call)
{
	wf_buffer_give(&call->request);
}

/* Count @bytes more of messages as held, or, negative, fewer. */
static void hold(struct wf_call *call, int64_t bytes)
{
	struct wf_counters *c = &call->calls->transfer->engine->counters;

	wf_counters_add(&c->message_bytes, (uint64_t)bytes);
}

/* Count a call.  @runs 1: it begins to run; -1: it ends. */
static void count(struct wf_call *call, int runs)
{
	struct wf_counters *c = &call->calls->transfer->engine->counters;

	wf_counters_add(&c->calls, (uint64_t)(int64_t)runs);
	hold(call, runs * (int64_t)call->outgoing.body_bytes);
}

static void try_free(struct wf_call *call)
{
	const struct wf_call_run *run = &call->run;

	if (!run->ended || run->request_busy || run->reply_busy || run->cancel_busy)
		return;
	wf_link_put(call->link);
	if (call->reply.at)
		hold(call, -(int64_t)call->record.body.bytes);
	wf_buffer_give(&call->reply);
	count(call, -1);
	if (!call->run.again)
		wf_call_drop(call);
	call->quiet(call);
}

static void broken(struct wf_stream *stream, const struct wf_error *e)
{
	wf_call_stop(stream->owner, e);
}

/*
 * End the stream of a call: messages that have come can be read, if the server has ended the
 * call.
 */
static void end_stream(struct wf_call *call, const struct wf_error *e)
{
	struct wf_error ended;

	call->stream->owner = NULL;
	if (call->run.reply == WF_CALL_OWED) {
		wf_stream_stop(call->stream, e);
		return;
	}
	wf_error_set(&ended, -ECANCELED, "%s has ended the call",
		     wf_link_label(wf_link_real(call->link)));
	wf_stream_mute(call->stream, e ? e : &ended);
	wf_stream_over(call->stream, e);
}

/* Tell the outcome; the buffers may still be busy. */
static void end(struct wf_call *call, const struct wf_error *e, enum weft_executed executed,
		const uint8_t *reply, size_t bytes)
{
	if (call->run.ended)
		return;
	call->run.ended = true;
	wf_table_remove(&call->calls->table, call->id);
	wf_list_remove(&call->node);
	wf_link_unwatch(call->link);
	if (call->stream)
		end_stream(call, e);
	call->done(call, e, executed, reply, bytes);
	call->calls->streams->attachments.drop(call->run.attachment_set);
	call->run.attachment_set = NULL;
}

static struct wf_record_call record_of(const struct wf_call *call, const struct wf_body *body)
{
	uint64_t now = WF_MAX(call->calls->transfer->engine->loop.now_ns, call->began_ns);

	return (struct wf_record_call){
		.call = call->id,
		/* Time spent in queues is taken off. */
		.left_ns = call->deadline_ns == UINT64_MAX ? UINT64_MAX
			   : call->deadline_ns > now	   ? call->deadline_ns - now
							   : 0,
		.flags = (uint16_t)((call->stream ? WF_CALL_STREAM : 0) |
				    (call->request_id ? WF_CALL_REQUEST : 0) |
				    (call->compressed ? WF_CALL_COMPRESSED : 0) |
				    (call->incarnation ? WF_CALL_AGAIN : 0)),
		.request = call->request_id,
		.incarnation = call->incarnation,
		.service_bytes = (uint16_t)strlen(call->service),
		.method_bytes = (uint16_t)strlen(call->method),
		.attachments = call->attachments,
		.service = (const uint8_t *)call->service,
		.method = (const uint8_t *)call->method,
		.metadata = call->metadata,
		.metadata_bytes = call->metadata_bytes,
		.body = *body,
	};
}

static int put_head(struct wf_outgoing *p, const struct wf_body *body)
{
	struct wf_record_call c = record_of(WF_CONTAINER(p, struct wf_call, outgoing), body);
	struct wf_bytes_writer head;
	int err = wf_outgoing_head(p, wf_record_call_bytes(&c), &head);

	if (!err)
		wf_record_call_put(&head, &c);
	return err;
}

static void cancel_sent(struct wf_message_control *c, const struct wf_error *e)
{
	struct wf_call *call = WF_CONTAINER(c, struct wf_call, cancel);

	(void)e;
	call->run.cancel_busy = false;
	try_free(call);
}

/* Tell the server, which may be handling the call, that nobody waits for its reply. */
static void send_cancel(struct wf_call *call)
{
	struct wf_link *link = wf_link_real(call->link);

	if (!wf_link_greeted(link))
		return;
	call->run.cancel_busy = true;
	call->cancel = (struct wf_message_control){
		.type = WF_RECORD_CANCEL, .id = call->id, .sent = cancel_sent,
	};
	wf_link_control(link, &call->cancel);
}

static void request_done(struct wf_outgoing *p, const struct wf_error *e)
{
	struct wf_call *call = WF_CONTAINER(p, struct wf_call, outgoing);

	call->run.request_busy = false;
	/* The reply of a server that did not take the request says why. */
	if (e && !p->refused && !call->run.ended) {
		end(call, e, p->sent ? WEFT_EXECUTED_MAYBE : WEFT_EXECUTED_NO, NULL, 0);
		/* The next attempt, if there is one, is to find the handler. */
		if (p->sent && !call->run.again)
			send_cancel(call);
	}
	try_free(call);
}

static const struct wf_outgoing_class request_class = {
	.put_head = put_head,
	.done = request_done,
};

int wf_call_start(struct wf_calls *calls, struct wf_link *link, struct wf_call *call)
{
	int err = wf_table_add(&calls->table, call, &call->id);

	if (err)
		return err;
	call->calls = calls;
	call->link = link;
	call->run = (struct wf_call_run){ .request_busy = true };
	call->reply_path = (struct wf_path){ 0 };
	count(call, 1);
	call->outgoing.type = WF_RECORD_CALL;
	call->outgoing.class = &request_class;
	call->outgoing.terms = &call->terms;
	wf_list_append(&wf_link_real(link)->work[WF_ABOVE_CALLS], &call->node);
	wf_link_get(link);
	wf_link_watch(link, true);
	wf_outgoing_post(calls->transfer, link, &call->outgoing);
	if (call->stream) {
		call->stream->owner = call;
		call->stream->broken = broken;
		call->stream->terms = call->terms;
		wf_stream_begin(calls->streams, link, call->id, call->stream);
	}
	return 0;
}

int wf_call_take_back(struct wf_call *call)
{
	int err = wf_outgoing_take_back(&call->outgoing);

	if (err)
		return err;
	call->run.request_busy = false;
	count(call, -1);
	if (call->stream)
		wf_stream_take_back(call->stream);
	wf_table_remove(&call->calls->table, call->id);
	wf_list_remove(&call->node);
	wf_link_unwatch(call->link);
	wf_link_put(call->link);
	return 0;
}

/* Call back buffers that are still busy, and free the rest, after the outcome is told. */
static void settle(struct wf_call *call)
{
	struct wf_error e;

	if (!call->run.request_busy) {
		try_free(call);
		return;
	}
	/* A server that refuses a call has no use for its request. */
	wf_error_set(&e, -ECANCELED, "the call has ended");
	wf_outgoing_stop(&call->outgoing, &e);
}

void wf_call_stop(struct wf_call *call, const struct wf_error *e)
{
	struct wf_link *link = wf_link_real(call->link);
	bool sent = wf_outgoing_has_left(&call->outgoing);
	enum weft_executed executed = call->run.reply != WF_CALL_OWED ? WEFT_EXECUTED_YES
				      : sent			      ? WEFT_EXECUTED_MAYBE
								      : WEFT_EXECUTED_NO;

	/* The reference outlives the call, which may be freed inside. */
	wf_link_get(link);
	if (sent)
		send_cancel(call);
	end(call, e, executed, NULL, 0);
	if (call->run.reply_busy)
		wf_pull_stop(&call->pull, e);
	settle(call);
	wf_link_put(link);
}

/* End a call that was executed, with @reply, or with @e if that can't be taken. */
static void end_replied(struct wf_call *call, const struct wf_error *e, const uint8_t *reply)
{
	end(call, e, WEFT_EXECUTED_YES, reply, e ? 0 : call->record.body.bytes);
	settle(call);
}

/* End a call whose reply is damaged, and name the call. */
static void end_damaged(struct wf_call *call, const struct wf_error *e)
{
	struct wf_error why = *e;

	wf_error_within(&why, "the reply of %s of %s", call->method, call->service);
	end_replied(call, &why, NULL);
}

/* Go on, now that the reply lies in the call's own memory. */
static void reply_whole(struct wf_call *call)
{
	call->run.reply = WF_CALL_WHOLE;
	if (!call->run.partial)
		end_replied(call, NULL, call->reply.at);
}

/* Go on, now that all attachments of the reply have come. */
static void complete(void *owner)
{
	struct wf_call *call = owner;

	call->run.partial = false;
	if (call->run.reply == WF_CALL_WHOLE)
		end_replied(call, NULL, call->reply.at);
}

/* Await attachments.  -EBADMSG, -ENOMEM. */
static int expect(struct wf_call *call, struct wf_link *link, uint16_t count)
{
	const struct wf_attachment_ops *attachments = &call->calls->streams->attachments;
	int err = attachments->expect(attachments->ctx, link, call->id, true, 0, count, complete,
				      call, &call->run.attachment_set);

	call->run.partial = !err;
	return err;
}

static void reply_pulled(struct wf_pull *pull, const struct wf_error *e)
{
	struct wf_call *call = WF_CONTAINER(pull, struct wf_call, pull);

	call->run.reply_busy = false;
	call->reply_path = pull->path;
	if (pull->damaged)
		end_damaged(call, e);
	else if (e)
		end_replied(call, e, NULL);
	else
		reply_whole(call);
}

/* -ENOBUFS: the reply is longer than the call takes. */
static int check_length(const struct wf_call *call, struct wf_error *e)
{
	uint64_t bytes = call->record.body.bytes;

	if (bytes <= call->bytes_max)
		return 0;
	return wf_error_set(e, -ENOBUFS, "the reply of %llu bytes is over the limit of %llu",
			    (unsigned long long)bytes, (unsigned long long)call->bytes_max);
}

/* Take memory for the reply, held as messages are.  -ENOMEM. */
static int find_memory(struct wf_call *call, struct wf_error *e)
{
	uint64_t bytes = call->record.body.bytes;

	if (bytes && wf_buffer_take(&call->reply, &call->calls->transfer->engine->pool, bytes))
		return wf_error_set(e, -ENOMEM, "no memory for a reply of %llu bytes",
				    (unsigned long long)bytes);
	if (call->reply.at)
		hold(call, (int64_t)bytes);
	return 0;
}

/* Pull the reply.  Takes @answer. */
static void pull_reply(struct wf_call *call, struct wf_link *link, struct wf_answer *answer)
{
	struct wf_error e;

	if (find_memory(call, &e)) {
		wf_answer_pulled(answer, link, WEFT_RESOURCE_EXHAUSTED);
		end_replied(call, &e, NULL);
		return;
	}
	call->pull.job = (struct wf_pull_job){
		.into = call->reply.at,
		.terms = &call->terms,
		.done = reply_pulled,
	};
	call->pull.path = call->reply_path;
	call->run.reply_busy = true;
	if (!wf_pull_start(call->calls->transfer, link, &call->record.body, answer, &call->pull))
		return;
	call->run.reply_busy = false;
	wf_error_set(&e, -ENOMEM, "no memory to pull a reply");
	end_replied(call, &e, NULL);
}

/* Keep a short reply that must wait for its attachments. */
static void keep_reply(struct wf_call *call, const uint8_t *eager)
{
	struct wf_error e;

	if (find_memory(call, &e)) {
		end_replied(call, &e, NULL);
		return;
	}
	if (call->reply.at)
		memcpy(call->reply.at, eager, call->record.body.bytes);
	reply_whole(call);
}

/* Note a part of the answer.  -EBADMSG: the bytes are no metadata.  -ENOMEM. */
static int note(struct wf_call *call, enum wf_call_note what, const uint8_t *bytes, uint32_t count)
{
	if (!count)
		return 0;
	if (what == WF_CALL_DETAILS ? count > WF_PAIRS_BYTES_MAX
				    : wf_pairs_check(bytes, count) < 0)
		return -EBADMSG;
	return call->noted ? call->noted(call, what, bytes, count) : 0;
}

static int note_all(struct wf_call *call, const struct wf_record_reply *r)
{
	int err = note(call, WF_CALL_INITIAL, r->initial, r->initial_bytes);

	if (!err)
		err = note(call, WF_CALL_TRAILING, r->trailing, r->trailing_bytes);
	return err ? err : note(call, WF_CALL_DETAILS, r->details, r->details_bytes);
}

static struct wf_call *find(struct wf_calls *calls, struct wf_link *link, uint64_t id)
{
	struct wf_call *call = wf_table_get(&calls->table, id);

	return call && wf_link_real(call->link) == link ? call : NULL;
}

static int take_response(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_calls *calls = ctx;
	struct wf_stream_arrived a;
	struct wf_call *call;
	int err = wf_stream_arrive(link, record, &a);

	if (err)
		return err;
	call = find(calls, link, a.record.call);
	if (!call) {
		wf_stream_refuse(link, &a); /* the deadline was first */
		return 0;
	}
	if (!call->stream || a.record.flags & WF_MESSAGE_LAST)
		err = -EBADMSG;
	else
		err = note(call, WF_CALL_INITIAL, a.record.metadata, a.record.metadata_bytes);
	if (!err)
		return wf_stream_take(call->stream, link, &a);
	wf_stream_unarrive(link, &a);
	return err;
}

static int take_grant(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_calls *calls = ctx;
	struct wf_record_small small;
	struct wf_call *call;

	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	call = find(calls, link, small.id);
	if (call && !call->stream)
		return -EBADMSG;
	if (call)
		wf_stream_granted(call->stream, small.other);
	return 0;
}

/* Drop the reply to a call that has ended.  -EBADMSG, -ENOMEM: as wf_answer_late(). */
static int drop_late(struct wf_calls *calls, struct wf_link *link, const struct wf_record_reply *r)
{
	int err = r->body.way == WF_BODY_PULL ? wf_answer_late(link, &r->body) : 0;

	if (!err)
		wf_counters_add(&calls->transfer->engine->counters.late_dropped, 1);
	return err;
}

static int take_reply(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_calls *calls = ctx;
	struct wf_answer *answer = NULL;
	struct wf_record_reply r;
	struct wf_call *call;
	struct wf_error e;
	int err;

	if (wf_record_reply_get(record->bytes, record->count, &r))
		return -EBADMSG;
	call = find(calls, link, r.call);
	if (!call || call->run.reply != WF_CALL_OWED)
		return drop_late(calls, link, &r);
	err = r.body.way == WF_BODY_PULL ? wf_answer_open(link, &r.body, &answer) : 0;
	if (err)
		return err;
	err = call->stream && (r.body.way != WF_BODY_NONE || r.attachments) ? -EBADMSG
									    : note_all(call, &r);
	if (!err && r.attachments)
		err = expect(call, link, r.attachments);
	if (err) {
		wf_answer_close(answer);
		return err;
	}
	call->run.reply = WF_CALL_TOLD;
	call->record = r;
	if (r.status != WEFT_OK) {
		if (answer)
			wf_answer_pulled(answer, link, WEFT_CANCELLED);
		if (r.text_bytes)
			wf_error_set(&e, wf_status_code(r.status), "%.*s", (int)r.text_bytes,
				     (const char *)r.text);
		else
			wf_error_set(&e, wf_status_code(r.status), "%s fails the call: %s",
				     wf_link_label(link), wf_status_name(r.status));
		end(call, &e, r.executed, NULL, 0);
		settle(call);
		return 0;
	}
	wf_path_come(link, &r.body, &call->reply_path);
	call->reply_path.matched_ns = link->engine->loop.now_ns;
	if (wf_terms_body(&call->terms, link, &r.body, &e) || check_length(call, &e)) {
		if (answer)
			wf_answer_pulled(answer, link, wf_status_of(e.code));
		end_replied(call, &e, NULL);
	} else if (answer) {
		pull_reply(call, link, answer);
	} else if (call->reply_path.caps &&
		   wf_terms_rail(&call->terms, link, call->reply_path.caps, &e)) {
		end_replied(call, &e, NULL);
	} else if (wf_reader_sums_check(&r.body, r.eager, link, call->reply_path.caps, &e)) {
		end_damaged(call, &e);
	} else if (call->run.partial) {
		keep_reply(call, r.eager);
	} else {
		end_replied(call, NULL, r.eager);
	}
	return 0;
}

void wf_call_route(struct wf_calls *calls, struct wf_routes *routes)
{
	wf_route_set(routes, WF_RECORD_REPLY, take_reply, calls);
	wf_route_set(routes, WF_RECORD_RESPONSE, take_response, calls);
	wf_route_set(routes, WF_RECORD_GRANT_REQUESTS, take_grant, calls);
}

void wf_call_down(struct wf_link *link, const struct wf_error *e)
{
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_CALLS])
		wf_call_stop(WF_CONTAINER(node, struct wf_call, node), e);
}

void wf_call_describe(const struct wf_call *call, char *text, size_t bytes)
{
	const struct wf_link *link = wf_link_real(call->link);
	char part[WF_ERROR_BYTES];

	if (call->run.reply_busy) {
		wf_pull_describe(&call->pull, part, sizeof(part));
		(void)snprintf(text, bytes, "the reply: %s", part);
	} else if (call->run.partial) {
		(void)snprintf(text, bytes, "the reply has come, and not all of its attachments");
	} else if (call->run.request_busy) {
		wf_outgoing_describe(&call->outgoing, part, sizeof(part));
		(void)snprintf(text, bytes, "the request: %s", part);
	} else if (!wf_list_empty(&link->out.frames)) {
		(void)snprintf(text, bytes, "the request has left, and %s has not confirmed it",
			       wf_link_label(link));
	} else {
		(void)snprintf(text, bytes, "the request is delivered, and %s owes the reply",
			       wf_link_label(link));
	}
}

uint64_t wf_call_offered_bytes(const struct wf_call *call)
{
	return call->run.request_busy ? wf_outgoing_offered_bytes(&call->outgoing) : 0;
}

uint64_t wf_call_progress(const struct wf_call *call)
{
	uint64_t progress = wf_progress_add(call->id, call->run.reply == WF_CALL_WHOLE);

	if (call->run.request_busy)
		progress = wf_progress_add(progress, wf_outgoing_progress(&call->outgoing));
	if (call->run.reply_busy)
		progress = wf_progress_add(progress, wf_pull_progress(&call->pull));
	if (call->run.partial)
		progress = wf_progress_add(progress, call->calls->streams->attachments.progress(
							     call->run.attachment_set));
	return call->stream ? wf_progress_add(progress, wf_stream_progress(call->stream)) : progress;
}
