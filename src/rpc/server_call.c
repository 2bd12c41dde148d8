/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/server_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/ledger.h"
#include "link/rights.h"
#include "rpc/dedup.h"
#include "rpc/call.h"
#include "rpc/early.h"
#include "rpc/reply.h"
#include "util/clock.h"
#include "util/status.h"
#include "wire/pair.h"

#define ALONE_NS (10 * WF_NS_PER_S) /* for a lost caller to come back; not tuned: links take less */

static void turn_come(struct wf_limit_ticket *ticket);

void wf_server_call_init(struct wf_server_calls *serving, struct wf_streams *streams,
			 struct wf_services *services)
{
	*serving = (struct wf_server_calls){
		.transfer = streams->transfer, .streams = streams, .services = services,
	};
	wf_map_init(&serving->map);
	wf_limit_turns_init(&serving->turns, &services->limits, &streams->transfer->engine->loop,
			    turn_come);
	wf_list_init(&serving->alone);
	wf_reply_cache_init(&serving->replies, streams->transfer->engine, &services->forgot);
	wf_freelist_init(&serving->spare, sizeof(struct wf_server_call), 0,
			 sizeof(struct wf_server_call));
}

struct wf_pool *wf_server_call_pool(const struct wf_server_call *s)
{
	return &s->serving->transfer->engine->pool;
}

void wf_server_call_charge(struct wf_server_call *s, uint64_t bytes)
{
	if (!bytes)
		return;
	s->charged_bytes += bytes;
	wf_ledger_charge(s->link, WF_LEDGER_OWED, bytes);
}

void wf_server_call_hold(struct wf_server_call *s, const struct wf_buffer *buffer, uint64_t bytes)
{
	if (!buffer->pool)
		wf_server_call_charge(s, bytes);
	s->held_bytes += bytes;
	wf_counters_add(&s->serving->transfer->engine->counters.message_bytes, bytes);
}

static void set_waits(struct wf_server_call *s, bool waits)
{
	struct wf_counters *c = &s->serving->transfer->engine->counters;

	if (s->waits != waits)
		wf_counters_add(&c->calls_waiting, waits ? 1 : -(uint64_t)1);
	s->waits = waits;
}

void wf_server_call_leave(struct wf_server_call *s)
{
	wf_limit_leave(&s->ticket);
	set_waits(s, false);
}

/* Outcome of a call that has ended: a caller that waits no more sees only that it gave up. */
static enum weft_status outcome(const struct wf_server_call *s)
{
	if (atomic_load(&s->cancelled))
		return s->serving->transfer->engine->loop.now_ns < s->deadline_ns
			       ? WEFT_CANCELLED
			       : WEFT_DEADLINE_EXCEEDED;
	return atomic_load(&s->replied) ? s->reply.status : WEFT_CANCELLED; /* the node closes */
}

/* Free the rest, once all interceptors have been told. */
static void forget(struct wf_server_call *s)
{
	/* A reply that was about to fail when the node closed keeps a reason. */
	if (s->reply.outgoing.state != WF_OUTGOING_ENDED)
		wf_reason_drop(&s->reply.outgoing.why);
	wf_reason_drop(&s->reply.why);
	free(s->request.pull);
	wf_ledger_discharge(s->link, WF_LEDGER_OWED, s->charged_bytes);
	wf_link_put(s->link);
	if (s->entered)
		wf_link_put(s->entered);
	free(s->request.metadata);
	free(s->request.pairs);
	wf_freelist_give(&s->serving->spare, s);
}

static void tell_end(struct wf_loop_notice *notice)
{
	struct wf_server_call *s = WF_CONTAINER(notice, struct wf_server_call, notice);

	s->serving->told(s, outcome(s));
	forget(s);
}

static void end(struct wf_server_call *s)
{
	struct wf_server_calls *serving = s->serving;
	struct wf_counters *c = &serving->transfer->engine->counters;

	if (s->place == WF_SERVER_CALL_MAPPED)
		wf_map_remove(&serving->map, &s->node);
	wf_server_call_leave(s);
	wf_counters_add(&c->served, -(uint64_t)1);
	wf_counters_add(&c->served_ended[outcome(s)], 1);
	wf_counters_add(&c->message_bytes, -s->held_bytes);
	wf_timer_stop(&serving->transfer->engine->loop.timers, &s->timer);
	wf_list_remove(&s->notice.node);
	wf_list_remove(&s->link_node);
	if (s->handler.user)
		s->handler.free_user(s->handler.user);
	if (serving->gone)
		serving->gone(s);
	wf_answer_close(s->request.answer);
	serving->streams->attachments.drop(s->request.attachment_set);
	wf_buffer_give(&s->request.buffer);
	free(s->reply.initial.at);
	free(s->reply.trailing.at);
	free(s->reply.details.at);
	if (s->stream) {
		s->stream->owner = NULL;
		wf_stream_release(s->stream);
	}
	wf_reply_drop(s);
}

void wf_server_call_free(struct wf_server_call *s)
{
	end(s);
	if (!s->asked) {
		forget(s);
		return;
	}
	s->notice.run = tell_end;
	wf_loop_defer(&s->serving->transfer->engine->loop, &s->notice);
}

/* End a call when no notice runs any more. */
static void end_now(struct wf_server_call *s)
{
	end(s);
	if (s->asked)
		s->serving->told(s, outcome(s));
	forget(s);
}

void wf_server_call_end_all(struct wf_server_calls *serving)
{
	struct wf_map_node *node;
	struct wf_list *at;

	while ((node = wf_map_first(&serving->map)))
		end_now(WF_CONTAINER(node, struct wf_server_call, node));
	while ((at = wf_list_first(&serving->alone)))
		end_now(WF_CONTAINER(at, struct wf_server_call, link_node));
}

void wf_server_call_fini(struct wf_server_calls *serving)
{
	wf_server_call_end_all(serving);
	wf_reply_cache_fini(&serving->replies);
	wf_map_fini(&serving->map);
	wf_freelist_fini(&serving->spare);
}

void wf_server_call_close(struct wf_server_calls *serving)
{
	serving->closed = true;
}

/* The request. */

/* Ask interceptors.  A refusal goes as any reply of a handler does. */
static bool may_begin(struct wf_server_call *s)
{
	const char *text = NULL;
	enum weft_status status;

	if (!s->serving->admit)
		return true;
	status = s->serving->admit(s, &text);
	if (status != WEFT_OK)
		(void)wf_reply_submit(s, status, text, NULL);
	return !atomic_load(&s->replied);
}

static void hand_over(struct wf_loop_notice *notice)
{
	struct wf_server_call *s = WF_CONTAINER(notice, struct wf_server_call, notice);
	struct wf_error e;

	if (atomic_load(&s->cancelled) || s->serving->closed) {
		wf_error_set(&e, -ECANCELED, "this node has closed");
		if (s->stream)
			wf_stream_stop(s->stream, &e); /* messages that have come are not read */
		wf_server_call_free(s);
		return;
	}
	if (!may_begin(s) || (s->again.request_id && !wf_dedup_is_first(s)))
		return;
	s->handler.begun = true;
	if (s->stream)
		s->service->begin(s->service, s->method, s);
	else
		s->service->handle(s->service, s->method, s, s->request.buffer.at, s->request.bytes);
}

/* Begin the handler, if there is nothing more to wait for. */
static void begin(struct wf_server_call *s)
{
	if (!s->request.whole || s->waits)
		return;
	/* Attachments of a call that is given up may never come. */
	if (s->request.partial && !atomic_load(&s->cancelled))
		return;
	/* The last attachment may come all the same, when hand_over() is due already. */
	if (!wf_list_empty(&s->notice.node))
		return;
	s->notice.run = hand_over;
	wf_loop_defer(&s->serving->transfer->engine->loop, &s->notice);
}

static void request_whole(struct wf_server_call *s)
{
	s->request.whole = true;
	begin(s);
}

/* Go on, now that all attachments of the request have come. */
static void complete(void *owner)
{
	struct wf_server_call *s = owner;

	s->request.partial = false;
	begin(s);
}

static void turn_come(struct wf_limit_ticket *ticket)
{
	struct wf_server_call *s = WF_CONTAINER(ticket, struct wf_server_call, ticket);

	set_waits(s, false);
	begin(s);
}

/* Await attachments.  -EBADMSG, -ENOMEM, -ENOBUFS. */
static int expect(struct wf_server_call *s, uint16_t count)
{
	const struct wf_attachment_ops *attachments = &s->serving->streams->attachments;
	int err;

	if (!count)
		return 0;
	err = attachments->expect(attachments->ctx, s->link, s->call, false, 0, count, complete, s,
				  &s->request.attachment_set);
	s->request.partial = !err;
	return err;
}

static void request_damaged(struct wf_server_call *s, const struct wf_error *e)
{
	struct wf_error why = *e;

	wf_error_within(&why, "the request");
	wf_reply_fail(s, wf_status_of(why.code), why.text);
}

static void request_pulled(struct wf_pull *pull, const struct wf_error *e)
{
	struct wf_server_call *s = pull->job.owner;

	s->request.pull = NULL;
	wf_server_call_charge(s, -(uint64_t)sizeof(*pull));
	if (!e)
		request_whole(s);
	else if (pull->damaged)
		request_damaged(s, e);
	else
		wf_reply_fail(s, wf_status_of(e->code), e->text);
	free(pull); /* @e may have been in the pull, and @s may be gone */
}

static void tell_cancel(struct wf_loop_notice *notice)
{
	struct wf_server_call *s = WF_CONTAINER(notice, struct wf_server_call, notice);

	if (!atomic_load(&s->replied))
		s->handler.on_cancel(s->handler.on_cancel_arg);
}

/* Tell a handler that has not answered yet: later there is nothing that it could stop. */
static void notify(struct wf_server_call *s)
{
	if (!s->handler.begun || !s->handler.on_cancel || !atomic_load(&s->cancelled) ||
	    !wf_list_empty(&s->notice.node))
		return;
	s->notice.run = tell_cancel;
	wf_loop_defer(&s->serving->transfer->engine->loop, &s->notice);
}

void wf_server_call_on_cancel(struct wf_server_call *s, void (*tell)(void *arg), void *arg)
{
	s->handler.on_cancel = tell;
	s->handler.on_cancel_arg = arg;
	notify(s);
}

/* Give up a call whose caller has given up, and ends its own side itself. */
static void give_up(struct wf_server_call *s, const struct wf_error *e)
{
	if (atomic_exchange(&s->cancelled, true))
		return;
	if (s->stream)
		wf_stream_stop(s->stream, e);
	if (s->serving->given_up)
		s->serving->given_up(s);
	if (s->reply.state == WF_REPLY_WAITING ||
	    (s->request.whole && (s->request.partial || s->waits))) {
		wf_server_call_free(s);
		return;
	}
	if (s->waits)
		wf_server_call_leave(s);
	notify(s);
}

static void deadline(struct wf_timer *timer)
{
	struct wf_error e;

	wf_error_set(&e, -ETIMEDOUT, "the caller's deadline has passed");
	give_up(WF_CONTAINER(timer, struct wf_server_call, timer), &e);
}

uint64_t wf_server_call_left_ns(const struct wf_server_call *s)
{
	uint64_t now = wf_clock_now();

	if (s->deadline_ns == UINT64_MAX)
		return UINT64_MAX;
	return s->deadline_ns > now ? s->deadline_ns - now : 0;
}

static struct wf_server_call *find(struct wf_server_calls *serving, struct wf_link *link,
				   uint64_t call, uint64_t hash)
{
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&serving->map, hash, node))) {
		struct wf_server_call *s = WF_CONTAINER(node, struct wf_server_call, node);

		if (s->link == link && s->call == call)
			return s;
	}
	return NULL;
}

static uint64_t hash_of(const struct wf_server_calls *serving, struct wf_link *link, uint64_t call)
{
	return wf_map_hash(&serving->map, call, &link, sizeof(link));
}

static struct wf_server_call *lookup(struct wf_server_calls *serving, struct wf_link *link,
				     uint64_t call)
{
	return find(serving, link, call, hash_of(serving, link, call));
}

void wf_server_call_join(struct wf_server_call *first, struct wf_server_call *s)
{
	struct wf_server_calls *serving = s->serving;
	struct wf_engine *engine = serving->transfer->engine;
	struct wf_link *link = first->link;

	wf_ledger_discharge(first->link, WF_LEDGER_OWED, first->charged_bytes);
	wf_ledger_discharge(s->link, WF_LEDGER_OWED, s->charged_bytes);
	if (!first->entered) {
		first->entered = link;
		link = s->link;
		wf_link_get(link);
	}
	if (first->place == WF_SERVER_CALL_MAPPED)
		wf_map_remove(&serving->map, &first->node);
	wf_map_remove(&serving->map, &s->node);
	s->place = WF_SERVER_CALL_NOWHERE;
	first->link = s->link;
	s->link = link;
	wf_ledger_charge(first->link, WF_LEDGER_OWED, first->charged_bytes);
	wf_ledger_charge(s->link, WF_LEDGER_OWED, s->charged_bytes);
	first->call = s->call;
	wf_map_add(&serving->map, &first->node, hash_of(serving, first->link, first->call));
	first->place = WF_SERVER_CALL_MAPPED;
	wf_list_remove(&first->link_node);
	wf_list_append(&first->link->work[WF_ABOVE_SERVED], &first->link_node);
	if (first->deadline_ns != UINT64_MAX)
		wf_loop_timer(&engine->loop, &first->timer, first->deadline_ns, deadline);
	else
		wf_timer_stop(&engine->loop.timers, &first->timer);
	wf_server_call_free(s);
}

static void begin_stream(struct wf_server_call *s)
{
	struct wf_stream *stream = s->service->open(s->service, s->method, s);

	if (!stream) {
		wf_reply_fail(s, WEFT_RESOURCE_EXHAUSTED, "no memory for a stream");
		return;
	}
	wf_stream_init(stream);
	stream->serves = true;
	stream->owner = s;
	stream->broken = wf_reply_broken;
	stream->unsaid = wf_reply_unsaid;
	stream->flushed = wf_reply_flushed;
	stream->terms = s->terms;
	stream->message_bytes_max = s->service->message_bytes_max;
	wf_stream_begin(s->serving->streams, s->link, s->call, stream);
	s->stream = stream;
	request_whole(s);
}

static void refuse_draining(struct wf_server_call *s)
{
	struct wf_error e;

	wf_error_set(&e, -ESHUTDOWN, "%s is draining", s->serving->transfer->engine->name);
	wf_reply_refuse(s, WEFT_UNAVAILABLE, e.text);
}

/* Check the size and enter the limits.  Returns false: the call has been refused. */
static bool enter(struct wf_server_call *s, const struct wf_record_call *c)
{
	uint64_t bytes_max = s->service->message_bytes_max;
	struct wf_error e;
	int err;

	if (c->body.bytes > bytes_max) {
		wf_error_set(&e, -ENOBUFS, "the request of %llu bytes is over the limit of %llu of service %s",
			     (unsigned long long)c->body.bytes, (unsigned long long)bytes_max,
			     s->service->name);
		wf_reply_fail(s, WEFT_RESOURCE_EXHAUSTED, e.text);
		return false;
	}
	/* A known attempt takes no place, so it begins no handler once the earlier one's reply goes. */
	if (s->again.request_id && wf_dedup_is_known(s)) {
		s->again.earlier = WF_DEDUP_KNOWN;
		return true;
	}
	err = wf_limit_enter(&s->service->limit, &s->serving->turns, s->link, &s->ticket, &e);
	if (err && err != -EINPROGRESS) {
		wf_error_within(&e, "service %s", s->service->name);
		wf_reply_refuse(s, WEFT_RESOURCE_EXHAUSTED, e.text);
		return false;
	}
	set_waits(s, err);
	return true;
}

/* Find the method, of that kind. */
static int find_method(struct wf_server_call *s, const struct wf_record_call *c, struct wf_error *e)
{
	int method_bytes = WF_MIN((int)c->method_bytes, 100);
	const char *method = (const char *)c->method;
	bool streams = c->flags & WF_CALL_STREAM;

	s->service = wf_services_find(s->serving->services, (const char *)c->service,
				      c->service_bytes);
	if (!s->service)
		return wf_error_set(e, -ENOSYS, "no service %.*s is served here",
				    WF_MIN((int)c->service_bytes, 200), (const char *)c->service);
	s->method = s->service->find(s->service, method, c->method_bytes);
	if (s->method < 0)
		return wf_error_set(e, -ENOSYS, "service %s has no method %.*s", s->service->name,
				    method_bytes, method);
	if (streams != (s->service->streams && s->service->streams(s->service, s->method)))
		return wf_error_set(e, -ENOSYS, "%.*s of service %s is %sa method with a stream",
				    method_bytes, method, s->service->name, streams ? "not " : "");
	return 0;
}

/* Pull the request into its buffer. */
static void pull_request(struct wf_server_call *s, const struct wf_body *body)
{
	struct wf_pull *pull = malloc(sizeof(*pull));
	struct wf_answer *answer = s->request.answer;

	if (!pull)
		goto fail;
	pull->job = (struct wf_pull_job){
		.into = s->request.buffer.at,
		.terms = &s->terms,
		.owner = s,
		.done = request_pulled,
	};
	pull->path = (struct wf_path){ 0 };
	s->request.answer = NULL;
	if (wf_pull_start(s->serving->transfer, s->link, body, answer, pull))
		goto free_pull;
	s->request.pull = pull;
	wf_server_call_charge(s, sizeof(*pull));
	return;

free_pull:
	free(pull);
fail:
	wf_reply_fail(s, WEFT_RESOURCE_EXHAUSTED, "no memory to pull the request");
}

/* Copy an eager request into its buffer. */
static void copy_request(struct wf_server_call *s, const struct wf_record_call *c)
{
	struct wf_error e;

	if (s->request.bytes)
		memcpy(s->request.buffer.at, c->eager, s->request.bytes);
	if (wf_reader_sums_check(&c->body, s->request.buffer.at, s->link, wf_link_caps(s->link),
				 &e))
		request_damaged(s, &e);
	else
		request_whole(s);
}

/* Begin to take the request; a refused one is answered here. */
static void take_request(struct wf_server_call *s, const struct wf_record_call *c)
{
	struct wf_error e;
	int err = wf_rights_check_call(s->link, c->service, c->service_bytes, c->method,
				       c->method_bytes, &e);

	if (err) {
		wf_reply_refuse(s, wf_status_of(err), e.text);
		return;
	}
	if (find_method(s, c, &e)) {
		wf_reply_fail(s, WEFT_UNIMPLEMENTED, e.text);
		return;
	}
	if (!enter(s, c))
		return;
	if (c->flags & WF_CALL_STREAM) {
		begin_stream(s);
		return;
	}
	if (wf_terms_body(&s->terms, s->link, &c->body, &e)) {
		wf_reply_fail(s, WEFT_FAILED_PRECONDITION, e.text);
		return;
	}
	if (expect(s, c->attachments)) {
		wf_reply_fail(s, WEFT_RESOURCE_EXHAUSTED, "no memory for attachments");
		return;
	}
	s->request.bytes = c->body.bytes;
	if (wf_buffer_take(&s->request.buffer, wf_server_call_pool(s), s->request.bytes)) {
		wf_reply_fail(s, WEFT_RESOURCE_EXHAUSTED, "no memory for the request");
		return;
	}
	wf_server_call_hold(s, &s->request.buffer, s->request.bytes);
	if (c->body.way == WF_BODY_PULL)
		pull_request(s, &c->body);
	else
		copy_request(s, c);
}

/* Copy the metadata.  -ENOMEM. */
static int copy_metadata(struct wf_server_call *s, const struct wf_record_call *c)
{
	if (!c->metadata_bytes)
		return 0;
	s->request.metadata = malloc(c->metadata_bytes);
	if (!s->request.metadata)
		return -ENOMEM;
	memcpy(s->request.metadata, c->metadata, c->metadata_bytes);
	s->request.metadata_bytes = c->metadata_bytes;
	return 0;
}

/* The caller takes back a request that is refused, and not read. */
static void request_withdrawn(struct wf_answer *answer)
{
	struct wf_server_call *s = answer->owner;

	s->request.answer = NULL;
	wf_answer_withdrawn(answer, answer->link);
}

static void request_lost(struct wf_answer *answer, const struct wf_error *e)
{
	struct wf_server_call *s = answer->owner;

	(void)e; /* wf_server_call_down tells */
	s->request.answer = NULL;
	wf_answer_close(answer);
}

static const struct wf_answer_keeper request_keeper = {
	.withdrawn = request_withdrawn,
	.lost = request_lost,
};

/* Open an answer to the request's offer.  -EBADMSG, -ENOMEM. */
static int open_answer(struct wf_server_call *s, const struct wf_body *body)
{
	int err = wf_answer_open(s->link, body, &s->request.answer);

	if (err)
		return err;
	s->request.answer->keeper = &request_keeper;
	s->request.answer->owner = s;
	return 0;
}

/* Refuse a caller with too much under way here, by the shortest reply that says so.  -ENOMEM. */
static int refuse_over_account(struct wf_engine *engine, struct wf_link *link,
			       const struct wf_record_call *c)
{
	static const char text[] = "more is under way here than WEFT_PEER_BYTES allows";
	uint8_t bytes[WF_MESSAGE_COPY_BYTES_MAX];
	struct wf_bytes_writer writer = wf_bytes_writer(bytes, sizeof(bytes));
	const struct wf_record_reply refusal = {
		.call = c->call,
		.status = WEFT_RESOURCE_EXHAUSTED,
		.executed = WEFT_EXECUTED_NO,
		.text_bytes = sizeof(text) - 1,
		.text = (const uint8_t *)text,
	};

	if (wf_record_reply_bytes(&refusal) > sizeof(bytes))
		return -ENOMEM;
	wf_record_reply_put(&writer, &refusal);
	if (wf_message_post_copy(link, c->body.priority, WF_RECORD_REPLY, bytes,
				 (size_t)(writer.at - bytes)))
		return -ENOMEM;
	wf_counters_add(&engine->counters.calls_refused, 1);
	return 0;
}

/*
 * Drop the call @c, which comes after its caller has cancelled it.  -EBADMSG, -ENOMEM: it comes
 * again.
 */
static int drop_cancelled(struct wf_link *link, const struct wf_record_call *c)
{
	struct wf_answer *answer;
	int err = 0;

	if (c->body.way == WF_BODY_PULL) {
		err = wf_answer_open(link, &c->body, &answer);
		if (!err)
			wf_answer_pulled(answer, link, WEFT_CANCELLED);
	}
	if (err == -ENOMEM)
		wf_early_add(&link->above.early, c->call);
	else
		wf_counters_add(&link->engine->counters.late_dropped, 1);
	return err;
}

static enum wf_dedup_earlier earlier_than(const struct wf_engine *engine,
					  const struct wf_record_call *c)
{
	if (!c->incarnation)
		return WF_DEDUP_NONE;
	return memcmp(c->incarnation, engine->directory->incarnation, WF_INCARNATION_BYTES)
		       ? WF_DEDUP_ELSEWHERE
		       : WF_DEDUP_HERE;
}

/* Set up @s, from the freelist, all zero. */
static void set_up(struct wf_server_call *s, struct wf_server_calls *serving, struct wf_link *link,
		   const struct wf_record_call *c)
{
	struct wf_engine *engine = serving->transfer->engine;

	s->serving = serving;
	s->link = link;
	s->call = c->call;
	s->deadline_ns = wf_clock_after(engine->loop.now_ns, c->left_ns);
	s->began_ns = engine->loop.now_ns;
	s->understood = wf_link_real(link)->peer->compressions;
	s->request.was_compressed = c->flags & WF_CALL_COMPRESSED;
	s->again.request_id = c->request;
	s->again.earlier = earlier_than(engine, c);
	s->terms.checksum = engine->options.checksum || c->body.sum_kind != WF_BODY_SUM_NONE;
	s->terms.priority = c->body.priority;
	wf_list_init(&s->notice.node);
	wf_list_init(&s->children);
	wf_list_init(&s->reply.attached);
	wf_list_init(&s->link_node);
	wf_counters_add(&engine->counters.served, 1);
	wf_link_get(link);
	wf_server_call_charge(s, sizeof(*s) + c->metadata_bytes);
}

int wf_server_call_begin(struct wf_server_calls *serving, struct wf_link *link,
			 const struct wf_record *record)
{
	struct wf_engine *engine = serving->transfer->engine;
	struct wf_record_call c;
	struct wf_server_call *s;
	uint64_t hash;
	int err = 0;

	if (wf_record_call_get(record->bytes, record->count, &c) ||
	    wf_pairs_check(c.metadata, c.metadata_bytes) < 0)
		return -EBADMSG;
	hash = hash_of(serving, link, c.call);
	if (find(serving, link, c.call, hash))
		return -EBADMSG;
	if (wf_early_take(link->above.early, c.call))
		return drop_cancelled(link, &c);
	if (!wf_ledger_takes_call(link, sizeof(*s) + c.metadata_bytes))
		return refuse_over_account(engine, link, &c);
	s = wf_freelist_take(&serving->spare);
	if (!s)
		return -ENOMEM;
	set_up(s, serving, link, &c);
	if (c.body.way == WF_BODY_PULL)
		err = open_answer(s, &c.body);
	if (!err)
		err = copy_metadata(s, &c);
	if (err) {
		wf_server_call_free(s);
		return err;
	}
	wf_map_add(&serving->map, &s->node, hash);
	wf_list_append(&link->work[WF_ABOVE_SERVED], &s->link_node);
	s->place = WF_SERVER_CALL_MAPPED;
	wf_link_record(link, WF_RECORDER_SERVE, s->call, c.body.bytes);
	if (s->deadline_ns != UINT64_MAX)
		wf_loop_timer(&engine->loop, &s->timer, s->deadline_ns, deadline);
	/* An attempt whose handler has begun before is no new call. */
	if (serving->draining && !(s->again.request_id && wf_dedup_is_known(s)))
		refuse_draining(s);
	else
		take_request(s, &c);
	return 0;
}

static int take_cancel(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_server_calls *serving = ctx;
	struct wf_record_small small;
	struct wf_server_call *s;
	struct wf_error e;

	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	s = lookup(serving, link, small.id);
	if (s) {
		wf_error_set(&e, -ECANCELED, "the caller has cancelled");
		give_up(s, &e);
	} else {
		wf_early_add(&link->above.early, small.id);
	}
	return 0;
}

static int take_message(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_server_calls *serving = ctx;
	struct wf_stream_arrived a;
	struct wf_server_call *s;
	int err = wf_stream_arrive(link, record, &a);

	if (err)
		return err;
	if (a.record.flags & WF_MESSAGE_INITIAL) {
		wf_stream_unarrive(link, &a);
		return -EBADMSG;
	}
	s = lookup(serving, link, a.record.call);
	if (s && s->stream)
		return wf_stream_take(s->stream, link, &a);
	/* The call was answered before, if only to say that there is no such method. */
	wf_stream_refuse(link, &a);
	return 0;
}

static int take_grant(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_server_calls *serving = ctx;
	struct wf_record_small small;
	struct wf_server_call *s;

	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	s = lookup(serving, link, small.id);
	if (s && s->stream)
		wf_stream_granted(s->stream, small.other);
	return 0;
}

void wf_server_call_route(struct wf_server_calls *serving, struct wf_routes *routes)
{
	wf_route_set(routes, WF_RECORD_REQUEST, take_message, serving);
	wf_route_set(routes, WF_RECORD_GRANT_RESPONSES, take_grant, serving);
	wf_route_set(routes, WF_RECORD_CANCEL, take_cancel, serving);
}

static void not_come_back(struct wf_timer *timer)
{
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "the caller was lost and has not come back");
	give_up(WF_CONTAINER(timer, struct wf_server_call, timer), &e);
}

/* Take @s, whose caller is lost, from the map: a call of the peer's next life may get its id. */
static void go_alone(struct wf_server_call *s)
{
	wf_map_remove(&s->serving->map, &s->node);
	s->place = WF_SERVER_CALL_ALONE;
	wf_list_remove(&s->link_node);
	wf_list_append(&s->serving->alone, &s->link_node);
}

/* Let the handler go on for a while, not told that the caller is lost: it may come back. */
static void await_caller(struct wf_server_call *s)
{
	struct wf_engine *engine = s->serving->transfer->engine;

	if (s->deadline_ns > engine->loop.now_ns + ALONE_NS)
		wf_loop_timer(&engine->loop, &s->timer, engine->loop.now_ns + ALONE_NS,
			      not_come_back);
}

void wf_server_call_down(struct wf_link *link, const struct wf_error *e)
{
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_SERVED]) {
		struct wf_server_call *s = WF_CONTAINER(node, struct wf_server_call, link_node);

		go_alone(s);
		if (s->again.running && !atomic_load(&s->cancelled))
			await_caller(s);
		else
			give_up(s, e);
	}
}

void wf_server_call_describe(const struct wf_server_call *s, char *text, size_t bytes)
{
	const char *peer = wf_link_label(wf_link_real(s->link));
	bool found = s->service && s->method >= 0;
	char wait[WF_ERROR_BYTES] = "its reply is about to leave";

	if (s->reply.outgoing.state != WF_OUTGOING_ENDED)
		wf_outgoing_describe(&s->reply.outgoing, wait, sizeof(wait));
	else if (s->waits)
		wf_limit_describe(&s->ticket, wait, sizeof(wait));
	else if (s->handler.begun)
		(void)snprintf(wait, sizeof(wait), "the handler has not replied");
	else if (s->request.pull)
		wf_pull_describe(s->request.pull, wait, sizeof(wait));
	else if (s->request.partial)
		(void)snprintf(wait, sizeof(wait), "not all attachments of the request have come");
	(void)snprintf(text, bytes, "%s/%s from %s: %s%s", found ? s->service->name : "unknown",
		       found ? s->service->method_name(s->service, s->method) : "unknown", peer,
		       wait, atomic_load(&s->cancelled)    ? ", and the caller has given up"
			     : s->place == WF_SERVER_CALL_ALONE ? ", and the caller is lost for now"
							   : "");
}
