/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/ledger.h"
#include "rpc/call.h"
#include "util/progress.h"

#define AHEAD_BYTES (1 * MIB) /* bytes pulled before a read is posted; not tuned */
#define GRANT_STEP (WF_STREAM_WINDOW / 2)

/* A message that has come; the bytes of a short one lie behind it. */
struct incoming {
	struct wf_list node;
	struct wf_stream *stream;
	enum { OFFERED, PULLING, LOST, WHOLE } state;
	uint8_t *data;   /* behind the struct, or in the buffer of a long message */
	uint64_t count;
	uint64_t eager_bytes; /* eager credit to be given back, of a short message */
	void *attachment_set; /* attachments of the message; NULL: none */
	bool partial;  /* attachments are missing */
	bool compressed;
};

/* A long message. */
struct offered {
	struct incoming in;
	struct wf_body body;
	struct wf_buffer buffer;
	struct wf_answer *answer; /* while OFFERED; NULL: the peer has no use for one */
	struct wf_pull pull;
};

void wf_streams_init(struct wf_streams *streams, struct wf_transfer *t,
		     const struct wf_attachment_ops *attachments)
{
	streams->transfer = t;
	streams->attachments = *attachments;
	wf_list_init(&streams->all);
}

void wf_streams_fini(struct wf_streams *streams)
{
	struct wf_list *node;
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "this node has closed");
	while ((node = wf_list_first(&streams->all))) {
		struct wf_stream *s = WF_CONTAINER(node, struct wf_stream, node);

		wf_stream_stop(s, &e);
		wf_stream_release(s);
	}
}

void wf_stream_init(struct wf_stream *s)
{
	s->message_bytes_max = WF_CALL_BYTES_MAX;
	s->out.may_write = WF_STREAM_WINDOW;
	s->in.granted = WF_STREAM_WINDOW;
	wf_list_init(&s->node);
	wf_list_init(&s->link_node);
	wf_list_init(&s->go_on.node);
	wf_list_init(&s->out.pending);
	wf_list_init(&s->out.posted);
	wf_list_init(&s->in.incoming);
	wf_list_init(&s->in.readers);
}

static void go_on_later(struct wf_stream *s);

void wf_stream_begin(struct wf_streams *streams, struct wf_link *link, uint64_t call,
		     struct wf_stream *s)
{
	s->streams = streams;
	s->link = link;
	s->call = call;
	wf_link_get(link);
	wf_list_append(&streams->all, &s->node);
	wf_list_append(&wf_link_real(link)->work[WF_ABOVE_STREAMS], &s->link_node);
	if (s->lost_why.code)
		go_on_later(s);
}

void wf_stream_take_back(struct wf_stream *s)
{
	wf_list_remove(&s->node);
	wf_list_remove(&s->link_node);
	wf_link_put(s->link);
	s->streams = NULL;
	s->link = NULL;
	s->out.held = false;
	if (wf_list_empty(&s->go_on.node))
		return;
	wf_list_remove(&s->go_on.node);
	s->busy--;
}

static void try_quiet(struct wf_stream *s)
{
	if (s->life != WF_STREAM_RELEASED || s->busy)
		return;
	s->life = WF_STREAM_QUIET;
	wf_list_remove(&s->node);
	wf_list_remove(&s->link_node);
	if (s->link)
		wf_link_put(s->link);
	s->link = NULL;
	free(s->initial);
	s->quiet(s);
}

static void idle(struct wf_stream *s)
{
	s->busy--;
	try_quiet(s);
}

/* Break the stream off: a message is lost, and so is all after it, both ways. */
static void break_off(struct wf_stream *s, const struct wf_error *e)
{
	struct wf_error why = *e;

	s->busy++;
	wf_stream_stop(s, &why);
	if (s->owner)
		s->broken(s, &why);
	idle(s);
}

static void post_granted(struct wf_stream *s);

static void go_on(struct wf_loop_notice *notice)
{
	struct wf_stream *s = WF_CONTAINER(notice, struct wf_stream, go_on);

	if (s->lost_why.code && !(s->out.mute && s->in.state == WF_STREAM_DEAF))
		break_off(s, &s->lost_why);
	post_granted(s);
	idle(s);
}

static void go_on_later(struct wf_stream *s)
{
	if (!wf_list_empty(&s->go_on.node))
		return;
	s->busy++;
	s->go_on.run = go_on;
	wf_loop_defer(&s->streams->transfer->engine->loop, &s->go_on);
}

/* Break the stream off when the caller is done: a link that is dying must not be told anything. */
static void break_off_later(struct wf_stream *s, const struct wf_error *e)
{
	if (!s->lost_why.code)
		s->lost_why = *e;
	go_on_later(s);
}

/* Writes. */

static struct wf_record_message record_of(const struct wf_write *w, const struct wf_body *body)
{
	const struct wf_stream *s = w->stream;
	bool initial = w->flags & WF_MESSAGE_INITIAL;

	return (struct wf_record_message){
		.call = s->call,
		.flags = w->flags,
		.attachments = w->attachments,
		.metadata = initial ? s->initial : NULL,
		.metadata_bytes = initial ? s->initial_bytes : 0,
		.body = *body,
	};
}

static int put_head(struct wf_outgoing *p, const struct wf_body *body)
{
	const struct wf_write *w = WF_CONTAINER(p, struct wf_write, outgoing);
	struct wf_record_message m = record_of(w, body);
	struct wf_stream *s = w->stream;
	struct wf_bytes_writer head;
	int err = wf_outgoing_head(p, wf_record_message_bytes(&m), &head);

	if (err)
		return err;
	wf_record_message_put(&head, &m);
	if (s->out.held)
		go_on_later(s);
	s->out.held = false;
	return 0;
}

/* Count @bytes more of messages as held, or, negative, fewer. */
static void hold(struct wf_transfer *t, int64_t bytes)
{
	wf_counters_add(&t->engine->counters.message_bytes, (uint64_t)bytes);
}

static void end_write(struct wf_write *w, const struct wf_error *e)
{
	if (w->posted)
		hold(w->outgoing.transfer, -(int64_t)w->outgoing.body_bytes);
	wf_list_remove(&w->node);
	wf_buffer_give(&w->buffer);
	w->done(w, e);
}

/*
 * Stop all writes that were posted after @w, of which nothing has left: from the last on, or one
 * would overtake.
 */
static void take_back_after(struct wf_write *w, const struct wf_error *e)
{
	struct wf_stream *s = w->stream;
	struct wf_list *at, *before;

	if (s->owner && s->unsaid)
		s->unsaid(s, e);
	for (at = s->out.posted.prev; at != &w->node; at = before) {
		before = at->prev;
		wf_outgoing_stop(&WF_CONTAINER(at, struct wf_write, node)->outgoing, e);
	}
}

/* End a write.  The peer's side of the call says why it refused a message. */
static void message_sent(struct wf_outgoing *p, const struct wf_error *e)
{
	struct wf_write *w = WF_CONTAINER(p, struct wf_write, outgoing);
	struct wf_stream *s = w->stream;

	if (e && !p->refused && !s->out.mute) {
		break_off_later(s, e);
		if (!p->sent)
			take_back_after(w, e);
	}
	end_write(w, e);
	idle(s);
}

static const struct wf_outgoing_class message_class = {
	.needs_room = true,
	.put_head = put_head,
	.done = message_sent,
};

static void post(struct wf_stream *s, struct wf_write *w)
{
	wf_list_remove(&w->node);
	wf_list_append(&s->out.posted, &w->node);
	w->posted = true;
	hold(s->streams->transfer, (int64_t)w->outgoing.body_bytes);
	s->busy++;
	if (!(w->flags & WF_MESSAGE_NONE))
		s->out.written++;
	if (s->initial && !s->initial_sent)
		w->flags |= WF_MESSAGE_INITIAL;
	s->initial_sent = true;
	w->outgoing.type = s->serves ? WF_RECORD_RESPONSE : WF_RECORD_REQUEST;
	w->outgoing.class = &message_class;
	w->outgoing.terms = &s->terms;
	wf_outgoing_post(s->streams->transfer, s->link, &w->outgoing);
	s->out.held = w->outgoing.state != WF_OUTGOING_QUEUED;
	if (w->begun)
		w->begun(w, s->link, s->call, s->out.written - 1);
}

static bool is_stuck(const struct wf_stream *s)
{
	return !s->out.mute && (s->out.held || s->lost_why.code);
}

static void post_granted(struct wf_stream *s)
{
	struct wf_list *node;

	while (!is_stuck(s) && (node = wf_list_first(&s->out.pending))) {
		struct wf_write *w = WF_CONTAINER(node, struct wf_write, node);

		if (!(w->flags & WF_MESSAGE_NONE) && s->out.written >= s->out.may_write)
			return;
		post(s, w);
	}
	if (!is_stuck(s) && s->owner && s->flushed)
		s->flushed(s);
}

void wf_stream_write(struct wf_stream *s, struct wf_write *w)
{
	w->stream = s;
	w->posted = false;
	wf_list_init(&w->node);
	if (s->out.mute) {
		end_write(w, &s->out.mute_why);
		return;
	}
	wf_list_append(&s->out.pending, &w->node);
	if (wf_list_first(&s->out.pending) == &w->node)
		post_granted(s);
}

/* Undo post() before there was a rail for @w.  -EALREADY. */
static int unpost(struct wf_write *w)
{
	struct wf_stream *s = w->stream;

	if (!w->posted)
		return 0;
	if (wf_outgoing_take_back(&w->outgoing))
		return -EALREADY;
	hold(w->outgoing.transfer, -(int64_t)w->outgoing.body_bytes);
	w->posted = false;
	s->out.held = false;
	s->busy--;
	if (!(w->flags & WF_MESSAGE_NONE))
		s->out.written--;
	if (w->flags & WF_MESSAGE_INITIAL)
		s->initial_sent = false;
	w->flags &= (uint16_t)~WF_MESSAGE_INITIAL;
	return 0;
}

int wf_stream_take_write_back(struct wf_write *w)
{
	if (w->stream->streams || unpost(w))
		return -EALREADY;
	wf_list_remove(&w->node);
	return 0;
}

void wf_stream_stop_write(struct wf_write *w, const struct wf_error *e)
{
	struct wf_stream *s = w->stream;

	if (unpost(w)) {
		wf_outgoing_stop(&w->outgoing, e);
		return;
	}
	end_write(w, e);
	post_granted(s);
}

void wf_stream_mute(struct wf_stream *s, const struct wf_error *e)
{
	struct wf_list *at;

	if (s->out.mute)
		return;
	s->out.mute = true;
	s->out.mute_why = *e;
	s->busy++; /* the stream stays while they end */
	while ((at = wf_list_first(&s->out.pending)))
		end_write(WF_CONTAINER(at, struct wf_write, node), e);
	WF_LIST_EACH(node, &s->out.posted)
		wf_outgoing_stop(&WF_CONTAINER(node, struct wf_write, node)->outgoing, e);
	idle(s);
}

bool wf_stream_is_flushed(const struct wf_stream *s)
{
	return wf_list_empty(&s->out.pending) && !is_stuck(s);
}

void wf_stream_granted(struct wf_stream *s, uint64_t total)
{
	if (total <= s->out.may_write)
		return;
	s->out.may_write = total;
	post_granted(s);
}

/* Grants. */

static void grant(struct wf_stream *s);

static void grant_sent(struct wf_message *m, const struct wf_error *e)
{
	struct wf_stream *s = WF_CONTAINER(m, struct wf_stream, in.grant);

	s->in.grant_busy = false;
	if (!e)
		grant(s);
	idle(s);
}

/* Grant more messages, now and then: each grant costs a record. */
static void grant(struct wf_stream *s)
{
	struct wf_bytes_writer w = wf_bytes_writer(s->in.grant_bytes, sizeof(s->in.grant_bytes));
	struct wf_record_small small = { .id = s->call, .other = s->in.taken + WF_STREAM_WINDOW };

	if (s->in.grant_busy || s->in.state != WF_STREAM_OPEN ||
	    small.other < s->in.granted + GRANT_STEP)
		return;
	s->in.granted = small.other;
	s->in.grant_busy = true;
	s->busy++;
	wf_record_small_put(&w, &small);
	s->in.grant = (struct wf_message){
		.type = s->serves ? WF_RECORD_GRANT_REQUESTS : WF_RECORD_GRANT_RESPONSES,
		.priority = s->terms.priority,
		.head = s->in.grant_bytes,
		.head_bytes = sizeof(s->in.grant_bytes),
		.sent = grant_sent,
	};
	wf_list_init(&s->in.grant.node);
	wf_link_post(s->link, &s->in.grant);
}

/* Reads. */

static void end_reading(struct wf_reading *r, const struct wf_error *e)
{
	wf_list_remove(&r->node);
	r->stream->in.reader_count--;
	r->done(r, e, NULL);
}

static struct offered *offered(struct incoming *in)
{
	return WF_CONTAINER(in, struct offered, in);
}

static bool is_long(const struct incoming *in)
{
	return in->data != (const uint8_t *)(in + 1);
}

/* Bytes charged to the sender, beside pool memory. */
static uint64_t charged_bytes(const struct incoming *in)
{
	return is_long(in) ? sizeof(struct offered) : sizeof(*in) + in->count;
}

static void free_incoming(struct incoming *in)
{
	wf_list_remove(&in->node);
	wf_ledger_discharge(in->stream->link, WF_LEDGER_RECEIVED, charged_bytes(in));
	if (in->data)
		hold(in->stream->streams->transfer, -(int64_t)in->count);
	if (in->eager_bytes)
		wf_eager_credit_give(wf_link_real(in->stream->link), in->eager_bytes);
	in->stream->streams->attachments.drop(in->attachment_set);
	if (is_long(in)) {
		wf_buffer_give(&offered(in)->buffer);
		free(offered(in));
	} else {
		free(in);
	}
}

static void forget(struct incoming *in, const struct wf_error *e)
{
	struct wf_stream *s = in->stream;

	if (in->state == PULLING) {
		wf_list_remove(&in->node);
		wf_pull_stop(&offered(in)->pull, e);
		return;
	}
	if (in->state == OFFERED && offered(in)->answer)
		wf_answer_pulled(offered(in)->answer, wf_link_real(s->link), WEFT_CANCELLED);
	free_incoming(in);
}

static void pulled(struct wf_pull *pull, const struct wf_error *e);

/* Pull a long message.  -ENOMEM: it is as before, or lost. */
static int start_pull(struct wf_stream *s, struct incoming *in)
{
	struct offered *o = offered(in);

	if (wf_buffer_take(&o->buffer, &s->streams->transfer->engine->pool, in->count))
		return -ENOMEM;
	in->data = o->buffer.at;
	hold(s->streams->transfer, (int64_t)in->count);
	in->state = PULLING;
	o->pull.job = (struct wf_pull_job){
		.into = in->data,
		.terms = &s->terms,
		.done = pulled,
	};
	o->pull.path = (struct wf_path){ 0 };
	s->busy++;
	s->in.ahead_bytes += in->count;
	if (!wf_pull_start(s->streams->transfer, wf_link_real(s->link), &o->body, o->answer,
			   &o->pull))
		return 0;
	s->busy--;
	in->state = LOST;
	return -ENOMEM;
}

static void lack_memory(struct wf_stream *s)
{
	struct wf_error e;

	wf_error_set(&e, -ENOMEM, "no memory for a message of the stream");
	break_off(s, &e);
}

/* End the first read with @got. */
static void end_first_read(struct wf_stream *s, const struct wf_reading_message *got)
{
	struct wf_reading *r = WF_CONTAINER(wf_list_first(&s->in.readers), struct wf_reading, node);

	s->in.taken++;
	wf_list_remove(&r->node);
	s->in.reader_count--;
	r->done(r, NULL, got);
}

/* Deliver the first message to the first read. */
static void deliver(struct wf_stream *s, struct incoming *in)
{
	const struct wf_reading_message got = {
		.bytes = in->data,
		.count = in->count,
		.compressed = in->compressed,
		.attachment_set = in->attachment_set,
	};

	if (is_long(in))
		s->in.ahead_bytes -= in->count;
	in->attachment_set = NULL;
	end_first_read(s, &got);
	free_incoming(in);
}

/* Pull messages that reads wait for, however long, and somewhat more.  -ENOMEM. */
static int look_ahead(struct wf_stream *s)
{
	unsigned awaited = s->in.reader_count;

	WF_LIST_EACH(node, &s->in.incoming) {
		struct incoming *in = WF_CONTAINER(node, struct incoming, node);
		bool is_awaited = awaited && awaited--;

		if (in->state != OFFERED)
			continue;
		if (!is_awaited && s->in.ahead_bytes + in->count > AHEAD_BYTES)
			break;
		if (start_pull(s, in))
			return -ENOMEM;
	}
	return 0;
}

/* Give waiting reads the messages that have come. */
static void feed(struct wf_stream *s)
{
	struct wf_list *node;

	while (!wf_list_empty(&s->in.readers) && (node = wf_list_first(&s->in.incoming))) {
		struct incoming *in = WF_CONTAINER(node, struct incoming, node);

		if (in->state != WHOLE || in->partial)
			break;
		deliver(s, in);
	}
	if (look_ahead(s)) {
		lack_memory(s);
		return;
	}
	while (s->in.state != WF_STREAM_OPEN && wf_list_empty(&s->in.incoming) &&
	       (node = wf_list_first(&s->in.readers)))
		end_reading(WF_CONTAINER(node, struct wf_reading, node),
			    s->in.why.code ? &s->in.why : NULL);
	grant(s);
}

static void pulled(struct wf_pull *pull, const struct wf_error *e)
{
	struct offered *o = WF_CONTAINER(pull, struct offered, pull);
	struct wf_stream *s = o->in.stream;

	o->in.state = e ? LOST : WHOLE;
	if (s->in.state == WF_STREAM_DEAF)
		free_incoming(&o->in);
	else if (e)
		break_off_later(s, e);
	else
		feed(s);
	idle(s);
}

void wf_stream_read(struct wf_stream *s, struct wf_reading *r)
{
	r->stream = s;
	wf_list_init(&r->node);
	wf_list_append(&s->in.readers, &r->node);
	s->in.reader_count++;
	feed(s);
}

int wf_stream_take_read_back(struct wf_reading *r)
{
	if (r->stream->streams)
		return -EALREADY;
	r->stream->in.reader_count--;
	wf_list_remove(&r->node);
	return 0;
}

void wf_stream_stop_read(struct wf_reading *r, const struct wf_error *e)
{
	end_reading(r, e);
}

void wf_stream_over(struct wf_stream *s, const struct wf_error *e)
{
	if (s->in.state != WF_STREAM_OPEN)
		return;
	s->in.state = WF_STREAM_OVER;
	if (e)
		s->in.why = *e;
	feed(s);
}

void wf_stream_deafen(struct wf_stream *s, const struct wf_error *e)
{
	struct wf_list *node;

	if (s->in.state == WF_STREAM_DEAF)
		return;
	s->in.state = WF_STREAM_DEAF;
	s->in.why = *e;
	s->busy++;
	while ((node = wf_list_first(&s->in.incoming)))
		forget(WF_CONTAINER(node, struct incoming, node), e);
	while ((node = wf_list_first(&s->in.readers)))
		end_reading(WF_CONTAINER(node, struct wf_reading, node), e);
	idle(s);
}

void wf_stream_stop(struct wf_stream *s, const struct wf_error *e)
{
	s->busy++;
	wf_stream_mute(s, e);
	wf_stream_deafen(s, e);
	idle(s);
}

void wf_stream_release(struct wf_stream *s)
{
	if (s->life == WF_STREAM_OWNED)
		s->life = WF_STREAM_RELEASED;
	try_quiet(s);
}

/* Has a message come whose rest never will, for the peer is dead? */
static bool lacks(const struct wf_stream *s)
{
	WF_LIST_EACH(at, &s->in.incoming) {
		const struct incoming *in = WF_CONTAINER(at, struct incoming, node);

		if (in->partial || in->state == OFFERED)
			return true;
	}
	return false;
}

void wf_streams_down(struct wf_link *link, const struct wf_error *e)
{
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_STREAMS]) {
		struct wf_stream *s = WF_CONTAINER(node, struct wf_stream, link_node);

		if (lacks(s))
			break_off(s, e);
	}
}

/* Messages that arrive. */

int wf_stream_arrive(struct wf_link *link, const struct wf_record *record,
		     struct wf_stream_arrived *a)
{
	if (wf_record_message_get(record->bytes, record->count, &a->record))
		return -EBADMSG;
	return wf_answer_meet(link, &a->record.body, &a->answer);
}

void wf_stream_unarrive(struct wf_link *link, struct wf_stream_arrived *a)
{
	wf_answer_unmeet(link, &a->record.body, a->answer);
}

void wf_stream_refuse(struct wf_link *link, struct wf_stream_arrived *a)
{
	wf_counters_add(&link->engine->counters.late_dropped, 1);
	wf_answer_refuse(link, &a->record.body, a->answer, WEFT_CANCELLED);
}

/* Go on, now that all attachments of a message have come. */
static void complete(void *owner)
{
	struct incoming *in = owner;
	struct wf_stream *s = in->stream;

	in->partial = false;
	s->busy++;
	feed(s);
	idle(s);
}

/* Await attachments.  -EBADMSG, -ENOMEM, -ENOBUFS. */
static int expect(struct incoming *in, struct wf_link *link, uint16_t count)
{
	const struct wf_stream *s = in->stream;
	const struct wf_attachment_ops *attachments = &s->streams->attachments;

	if (!count)
		return 0;
	in->partial = true;
	return attachments->expect(attachments->ctx, link, s->call, !s->serves, s->in.came, count,
				   complete, in, &in->attachment_set);
}

/* The peer takes back a message that is not pulled yet. */
static void withdrawn(struct wf_answer *answer)
{
	struct offered *o = answer->owner;
	struct wf_link *link = answer->link;
	struct wf_error e;

	o->answer = NULL;
	wf_error_set(&e, -ECANCELED, "%s took a message of the stream back", wf_link_label(link));
	break_off(o->in.stream, &e);
	wf_answer_withdrawn(answer, link);
}

static void lost(struct wf_answer *answer, const struct wf_error *e)
{
	struct offered *o = answer->owner;

	(void)e; /* wf_streams_down tells */
	o->answer = NULL;
	wf_answer_close(answer);
}

static const struct wf_answer_keeper keeper = {
	.withdrawn = withdrawn,
	.lost = lost,
};

/* Keep a message that has come.  -EBADMSG, -ENOMEM, -ENOBUFS: nothing was done. */
static int keep(struct wf_stream *s, struct wf_link *link, struct wf_stream_arrived *a)
{
	const struct wf_body *body = &a->record.body;
	struct incoming *in;
	int err;

	if (a->answer) {
		struct offered *o = calloc(1, sizeof(*o));

		if (!o)
			return -ENOMEM;
		o->body = *body;
		in = &o->in;
		in->state = OFFERED;
	} else {
		in = malloc(sizeof(*in) + body->bytes);
		if (!in)
			return -ENOMEM;
		*in = (struct incoming){
			.state = WHOLE, .data = (uint8_t *)(in + 1), .eager_bytes = body->bytes,
		};
		if (body->bytes)
			memcpy(in->data, a->record.eager, body->bytes);
	}
	in->stream = s;
	in->count = body->bytes;
	in->compressed = a->record.flags & WF_MESSAGE_COMPRESSED;
	err = expect(in, link, a->record.attachments);
	if (err) {
		free(a->answer ? (void *)offered(in) : in);
		return err;
	}
	if (a->answer) {
		offered(in)->answer = a->answer;
		a->answer->keeper = &keeper;
		a->answer->owner = offered(in);
	}
	if (in->data)
		hold(s->streams->transfer, (int64_t)in->count);
	wf_ledger_charge(link, WF_LEDGER_RECEIVED, charged_bytes(in));
	wf_list_init(&in->node);
	wf_list_append(&s->in.incoming, &in->node);
	return 0;
}

/* Is the message whole, and is there a read that has waited for it and for none before it? */
static bool meets_a_read(const struct wf_stream *s, const struct wf_stream_arrived *a)
{
	return s->in.reader_count && wf_list_empty(&s->in.incoming) && !a->answer &&
	       !a->record.attachments;
}

/* Deliver a message out of its frame, which spares a copy. */
static void deliver_at_once(struct wf_stream *s, struct wf_link *link,
			    const struct wf_stream_arrived *a)
{
	const struct wf_body *body = &a->record.body;
	const struct wf_reading_message got = {
		.bytes = a->record.eager,
		.count = body->bytes,
		.compressed = a->record.flags & WF_MESSAGE_COMPRESSED,
	};

	end_first_read(s, &got);
	if (body->bytes)
		wf_eager_credit_give(link, body->bytes);
}

/* Check whether a message may come; @e says why the stream can't go on. */
static int admit(struct wf_stream *s, struct wf_link *link, const struct wf_stream_arrived *a,
		 struct wf_error *e)
{
	const struct wf_body *body = &a->record.body;

	if (body->bytes > s->message_bytes_max)
		return wf_error_set(e, -ENOBUFS,
				    "a message of %llu bytes is over the limit of %llu",
				    (unsigned long long)body->bytes,
				    (unsigned long long)s->message_bytes_max);
	if (wf_terms_body(&s->terms, link, body, e))
		return e->code;
	if (a->answer)
		return 0;
	return wf_reader_sums_check(body, a->record.eager, link, wf_link_caps(link), e);
}

int wf_stream_take(struct wf_stream *s, struct wf_link *link, struct wf_stream_arrived *a)
{
	uint16_t flags = a->record.flags;
	bool message = !(flags & WF_MESSAGE_NONE);
	struct wf_error e;
	int err = 0;

	if (s->in.state == WF_STREAM_DEAF) {
		wf_stream_refuse(link, a);
		return 0;
	}
	if (s->in.state == WF_STREAM_OVER || (message && s->in.came >= s->in.granted)) {
		wf_stream_refuse(link, a);
		return -EBADMSG;
	}
	if (message && admit(s, link, a, &e)) {
		wf_stream_refuse(link, a);
		break_off(s, &e);
		return 0;
	}
	if (message && meets_a_read(s, a))
		deliver_at_once(s, link, a);
	else if (message)
		err = keep(s, link, a);
	if (err == -ENOBUFS) {
		/* The message would come again for ever, and nothing behind it be heard. */
		wf_error_set(&e, err, "a message with %u attachments is over WEFT_PEER_BYTES",
			     a->record.attachments);
		wf_stream_refuse(link, a);
		break_off(s, &e);
		return 0;
	}
	if (err) {
		wf_stream_unarrive(link, a);
		return err;
	}
	s->in.came += message;
	if (flags & WF_MESSAGE_LAST)
		wf_stream_over(s, NULL);
	else
		feed(s);
	return 0;
}

/* Text for people. */

void wf_stream_describe_read(const struct wf_reading *r, char *text, size_t bytes)
{
	const struct wf_stream *s = r->stream;
	struct wf_list *node = wf_list_first(&s->in.incoming);

	if (!s->link)
		(void)snprintf(text, bytes, "the call has not begun");
	else if (node && WF_CONTAINER(node, struct incoming, node)->state == PULLING)
		wf_pull_describe(&offered(WF_CONTAINER(node, struct incoming, node))->pull, text,
				 bytes);
	else if (node)
		(void)snprintf(text, bytes, "a message has come, and not all of its attachments");
	else
		(void)snprintf(text, bytes, "%s has written %llu messages, and they are read",
			       wf_link_label(wf_link_real(s->link)), (unsigned long long)s->in.came);
}

void wf_stream_describe_write(const struct wf_write *w, char *text, size_t bytes)
{
	const struct wf_stream *s = w->stream;

	if (!s->link)
		(void)snprintf(text, bytes, "the call has not begun");
	else if (w->posted)
		wf_outgoing_describe(&w->outgoing, text, bytes);
	else if (s->out.held)
		(void)snprintf(text, bytes, "the message before it has not left yet");
	else
		(void)snprintf(text, bytes, "%s has read %llu messages, and takes no more yet",
			       wf_link_label(wf_link_real(s->link)),
			       (unsigned long long)s->out.may_write - WF_STREAM_WINDOW);
}

uint64_t wf_stream_progress(const struct wf_stream *s)
{
	struct wf_list *at = wf_list_first(&s->in.incoming);
	struct incoming *in = at ? WF_CONTAINER(at, struct incoming, node) : NULL;
	uint64_t progress = wf_progress_add(s->out.written, s->in.came);

	progress = wf_progress_add(progress, s->in.taken);
	progress = wf_progress_add(progress, s->out.may_write);
	if (in && in->state == PULLING)
		progress = wf_progress_add(progress, wf_pull_progress(&offered(in)->pull));
	if (in && in->partial)
		progress = wf_progress_add(progress,
					   s->streams->attachments.progress(in->attachment_set));
	WF_LIST_EACH(node, &s->out.posted) {
		struct wf_write *w = WF_CONTAINER(node, struct wf_write, node);

		progress = wf_progress_add(progress, wf_outgoing_progress(&w->outgoing));
	}
	return progress;
}

uint64_t wf_stream_offered_bytes(const struct wf_stream *s)
{
	uint64_t bytes = 0;

	WF_LIST_EACH(node, &s->out.posted)
		bytes += wf_outgoing_offered_bytes(&WF_CONTAINER(node, struct wf_write, node)->outgoing);
	return bytes;
}
