/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of a link on their way out.
 *
 * Messages are packed into numbered frames, which are kept until the peer has confirmed them, so
 * that they can be sent again on another rail.  While the rail has a frame, posted messages wait
 * for the next one, unless they fill it, and while the peer has not confirmed a frame they wait at
 * least for the turn of the loop; so an idle link adds no delay and a busy one packs.
 */
#include "link/tx.h"
#include "link/link.h"
#include "link/internal.h"
#include "link/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fabric/ep.h"
#include "memory/grant.h"

#define ACK_NS (10 * WF_NS_PER_MS)      /* wait of an acknowledgement for a frame to ride on */
#define OVERDUE_MIN_NS (50 * WF_NS_PER_MS)
#define OVERDUE_MAX_NS WF_NS_PER_S
#define RESYNC_NS (20 * WF_NS_PER_MS)   /* time between two resyncs */
#define REPLAY_NS (RESYNC_NS / 2)       /* time between two replays; less, as resyncs may bunch up */
#define UNCONFIRMED_MAX 1024            /* the largest WEFT_WINDOW: a peer may promise so many */
#define STALLED_NS WF_NS_PER_S          /* no progress behind a living door: change rails */
#define STALLS_MAX 3                    /* a rail has at most 8 times STALLED_NS; not tuned */

static void overdue(struct wf_timer *timer);

void wf_tx_init(struct wf_tx_out *out)
{
	for (unsigned i = 0; i < WF_PRIORITIES; i++)
		wf_list_init(&out->queues[i]);
	wf_list_init(&out->frames);
	wf_list_init(&out->held);
	wf_list_init(&out->controls);
	wf_list_init(&out->controls_out);
}

static size_t message_bytes(const struct wf_message *m)
{
	return m->head_bytes + m->body_bytes;
}

/* Does @m follow a message of @queue?  The one that was queued last is the likeliest. */
static bool follows_one(const struct wf_message *m, const struct wf_list *queue)
{
	for (const struct wf_list *node = queue->prev; node != queue; node = node->prev) {
		const struct wf_message *before = WF_CONTAINER(node, struct wf_message, node);

		if (before->follows == m->follows && m->follows(m, before))
			return true;
	}
	return false;
}

void wf_tx_queue(struct wf_tx_out *out, struct wf_message *m)
{
	unsigned others = m->follows ? out->waiting & ~(1u << m->priority) : 0;

	/* All that follow each other are in one queue, so that one other queue at most has any. */
	for (uint8_t i = 0; others >> i; i++) {
		if (!(others >> i & 1) || !follows_one(m, &out->queues[i]))
			continue;
		m->priority = i;
		break;
	}
	wf_list_append(&out->queues[m->priority], &m->node);
	out->waiting |= (uint8_t)(1u << m->priority);
	out->queued_bytes += message_bytes(m);
}

void wf_tx_unqueue(struct wf_tx_out *out, struct wf_message *m)
{
	out->queued_bytes -= message_bytes(m) - m->done_bytes;
	wf_list_remove(&m->node);
	if (wf_list_empty(&out->queues[m->priority]))
		out->waiting &= (uint8_t)~(1u << m->priority);
}

void wf_tx_move(struct wf_tx_out *to, struct wf_tx_out *from)
{
	struct wf_list *node;

	for (unsigned i = WF_PRIORITIES; i-- > 0;)
		while ((node = wf_list_pop(&from->queues[i])))
			wf_tx_queue(to, WF_CONTAINER(node, struct wf_message, node));
	from->waiting = 0;
	from->queued_bytes = 0;
}

static struct wf_message *first_of(const struct wf_tx_out *out, unsigned priority)
{
	struct wf_list *node = wf_list_first(&out->queues[priority]);

	return node ? WF_CONTAINER(node, struct wf_message, node) : NULL;
}

/* Returns the message whose bytes are next, or NULL. */
static struct wf_message *next_message(const struct wf_tx_out *out)
{
	struct wf_message *m;

	for (unsigned i = 0; out->waiting >> i; i++) {
		m = first_of(out, i);
		if (m && m->done_bytes)
			return m;
	}
	return out->waiting ? first_of(out, wf_priority_next(&out->turns, out->waiting)) : NULL;
}

static struct wf_outframe *take_frame(struct wf_link *link, enum wf_frame_kind kind)
{
	struct wf_outframe *f = wf_outframe_take(link->engine);

	if (!f)
		return NULL;
	f->link = link;
	f->kind = kind;
	f->posted_ns = link->engine->loop.now_ns; /* an unposted frame must not look the oldest */
	return f;
}

/* Give back a frame that nobody needs any more; while the rail has it, it is only held. */
static void give_frame(struct wf_outframe *f)
{
	struct wf_link *link = f->link;

	wf_list_remove(&f->node);
	f->link = NULL;
	if (!f->posted)
		wf_outframe_give(f);
	else if (link)
		wf_list_append(&link->out.held, &f->node);
}

/*
 * Record the start of a spell of refusals.  The recorder gets one event for it, and one for its
 * end.
 */
static void begin_full(struct wf_link *link, const struct wf_outframe *f, int code)
{
	if (link->tx.rail.full_ns)
		return;
	link->tx.rail.full_ns = link->engine->loop.now_ns;
	wf_link_record(link, WF_RECORDER_FULL, f->header.seq, (uint64_t)code);
}

static void end_full(struct wf_link *link)
{
	if (!link->tx.rail.full_ns)
		return;
	wf_link_record(link, WF_RECORDER_NOT_FULL,
		       (link->engine->loop.now_ns - link->tx.rail.full_ns) / WF_NS_PER_US, 0);
	link->tx.rail.full_ns = 0;
}

static void begin_starved(struct wf_link *link)
{
	if (link->tx.starved_ns)
		return;
	link->tx.starved_ns = link->engine->loop.now_ns;
	wf_link_record(link, WF_RECORDER_NO_CREDIT, link->out.queued_bytes, 0);
}

static void end_starved(struct wf_link *link)
{
	if (!link->tx.starved_ns)
		return;
	wf_link_record(link, WF_RECORDER_CREDIT, wf_credit_left(&link->tx.credit),
		       (link->engine->loop.now_ns - link->tx.starved_ns) / WF_NS_PER_US);
	link->tx.starved_ns = 0;
}

static void record_sent(const struct wf_link *link, const struct wf_outframe *f)
{
	if (f->kind == WF_FRAME_DATA)
		wf_link_record(link, f->replayed ? WF_RECORDER_FRAME_AGAIN : WF_RECORDER_FRAME_OUT,
			       f->header.seq, f->count);
	else if (f->kind == WF_FRAME_CONTROL)
		wf_link_record(link, WF_RECORDER_CONTROL_OUT, f->header.seq, 0);
}

/*
 * Hand @f to the rail.  -EAGAIN: the rail is full, or about to say why it has closed.  Any other
 * error: the rail takes no frames, and link->rail.closed says why; the caller that tries the rail
 * or runs the link gives it up.
 */
static int hand_over(struct wf_link *link, struct wf_outframe *f)
{
	struct wf_rail *rail = link->on->rail;
	struct wf_grant grant;
	struct wf_error e;
	const struct wf_grant_span span = f->header.sealed ?
		(struct wf_grant_span){ .at = f->sealed, .bytes = f->count + WF_FRAME_SEAL_BYTES } :
		(struct wf_grant_span){ .at = f->bytes, .bytes = f->count };
	int rc = wf_grant_local(&grant, rail, &link->engine->frames.pool, &span, &e);

	if (!rc) {
		rc = wf_ep_send(link->rail.ep, span.at, span.bytes, grant.desc, f);
		if (rc >= 0 || rc == -EAGAIN || rc == -ENOTCONN)
			return rc;
		wf_error_set(&e, rc, "it refuses a frame: %s", wf_error_name(rc));
	}
	snprintf(link->rail.closed, sizeof(link->rail.closed), "%.190s", e.text);
	return rc;
}

/*
 * Write the header, and seal the frame if the link's are sealed.  -errno: the rail takes no frame
 * any more, as hand_over() says.
 */
static int finish_frame(struct wf_link *link, struct wf_outframe *f)
{
	int err;

	f->header.sealed = false;
	f->header.number = 0;
	if (!link->seals.on) {
		wf_frame_put(f->bytes, &f->header);
		return 0;
	}
	err = wf_seals_close(link, f);
	if (err == -ENOMEM)
		return -EAGAIN;
	if (err)
		(void)snprintf(link->rail.closed, sizeof(link->rail.closed),
			       "a frame can't be sealed: %s", wf_error_name(err));
	return err;
}

/* Write the header as things stand now, and post.  0, or -EAGAIN: @f waits. */
static int post_frame(struct wf_link *link, struct wf_outframe *f)
{
	struct wf_engine *engine = link->engine;
	int rc;

	f->header.link = link->peer->link;
	f->header.token = link->peer->token;
	f->header.epoch = link->probe.epoch;
	f->header.ack = link->tx.sequence.received;
	f->header.credit = link->slots.promised_total;
	f->header.eager_credit = link->eager_credit.total;
	rc = finish_frame(link, f);
	if (!rc)
		rc = hand_over(link, f);
	/* The bell rings also when the peer's queue is full: it must wake up to empty it. */
	if (link->side.remote_doorbell && wf_rail_caps(link->on->rail)->wait == WF_WAIT_DOORBELL)
		wf_remote_doorbell_ring(link->side.remote_doorbell);
	f->waiting = rc < 0;
	if (rc < 0) {
		link->out.frames_wait = true;
		begin_full(link, f, rc);
		wf_link_mark(link);
		return -EAGAIN;
	}
	end_full(link);
	f->posted = rc == 0;
	if (!f->replayed)
		f->posted_ns = engine->loop.now_ns;
	if (f->posted && f->kind == WF_FRAME_DATA)
		link->tx.rail.posted_count++;
	link->tx.ack_told = f->header.ack;
	/*
	 * Credits, of frames and of eager bytes, count as told only in frames that are repeated
	 * until they are heard: the peer asks for an acknowledgement, not for these.  And only in
	 * the first copy: it may be the one that is heard, and the others lost with what they say
	 * besides.
	 */
	if ((f->kind == WF_FRAME_DATA || f->kind == WF_FRAME_CONTROL) && !f->counted) {
		f->counted = true;
		link->slots.promised_told = f->header.credit;
		link->eager_credit.told = f->header.eager_credit;
	}
	link->tx.ack_now = false;
	wf_timer_stop(&engine->loop.timers, &link->tx.ack_timer);
	wf_counters_add(&engine->counters.frames_sent, 1);
	record_sent(link, f);
	return 0;
}

/*
 * Send a frame without records; a lost one is not replayed, and is sent again where it is needed.
 */
int wf_tx_special(struct wf_link *link, enum wf_frame_kind kind)
{
	struct wf_outframe *f = take_frame(link, kind);
	struct wf_pack pack;
	int rc;

	if (!f) {
		wf_link_mark(link);
		return -ENOMEM;
	}
	f->header.kind = (uint8_t)kind;
	if (kind == WF_FRAME_ANSWER)
		f->header.seq = link->rx.control_received;
	wf_pack_begin(&pack, f->bytes, link->probe.frame_bytes);
	f->count = (uint32_t)wf_pack_end(&pack, &f->header);
	rc = post_frame(link, f);
	give_frame(f);
	return rc;
}

/* The peer waits for WEFT_LOST for what a lost frame says: some copies of it must fit in there. */
static uint64_t overdue_ns(const struct wf_link *link)
{
	const struct wf_tx *tx = &link->tx;
	uint64_t ns = WF_MAX(4 * tx->rtt_ns, OVERDUE_MIN_NS) << WF_MIN(tx->overdue_count, 5u);
	uint64_t most_ns = WF_MAX(link->engine->options.lost_ns / 8, OVERDUE_MIN_NS);

	return WF_MIN(ns, WF_MIN(most_ns, OVERDUE_MAX_NS));
}

static void expect(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	if (!link->tx.overdue_timer.armed)
		wf_loop_timer(&engine->loop, &link->tx.overdue_timer,
			      engine->loop.now_ns + overdue_ns(link), overdue);
}

/* Note that some bytes of @m, the first ones, are in a frame. */
static void begin_message(struct wf_link *link, struct wf_message *m)
{
	wf_priority_took(&link->out.turns, link->out.waiting, m->priority);
	m->first_ns = link->engine->loop.now_ns;
	link->yields.urgent_ns[m->priority] = m->first_ns;
}

/* Fill a frame from the queues; @finished gets the messages that are complete. */
static void fill(struct wf_link *link, struct wf_pack *pack, struct wf_list *finished)
{
	uint64_t alone = link->engine->options.pack_bytes;
	struct wf_message *m;

	while ((m = next_message(&link->out))) {
		bool big = alone && message_bytes(m) > alone;
		size_t before = m->done_bytes;
		int rc;

		if (big && pack->record_count)
			return;
		rc = wf_pack_add(pack, m->type, m->head, m->head_bytes, m->body, m->body_bytes,
				 &m->done_bytes);
		link->out.queued_bytes -= m->done_bytes - before;
		if (m->done_bytes > before && !m->frames++)
			begin_message(link, m);
		if (rc)
			return;
		wf_tx_unqueue(&link->out, m);
		wf_list_append(finished, &m->node);
		if (big)
			return;
	}
}

static int send_data(struct wf_link *link)
{
	struct wf_outframe *f = take_frame(link, WF_FRAME_DATA);
	struct wf_list finished, *node;
	struct wf_pack pack;
	int rc;

	if (!f) {
		wf_link_mark(link);
		return -EAGAIN;
	}
	wf_list_init(&finished);
	wf_credit_spend(&link->tx.credit, 1);
	f->header.kind = WF_FRAME_DATA;
	f->header.seq = wf_sequence_next(&link->tx.sequence);
	wf_pack_begin(&pack, f->bytes, link->probe.frame_bytes);
	fill(link, &pack, &finished);
	f->count = (uint32_t)wf_pack_end(&pack, &f->header);
	wf_list_append(&link->out.frames, &f->node);
	wf_ledger_charge(link, WF_LEDGER_OWED, link->engine->frame_bytes);
	rc = post_frame(link, f);
	expect(link);
	wf_keepalive_start(link);
	/* The bytes of these messages are in the frame, posted or not. */
	while ((node = wf_list_pop(&finished))) {
		struct wf_message *m = WF_CONTAINER(node, struct wf_message, node);

		m->sent(m, NULL);
	}
	return rc;
}

static void send_control(struct wf_link *link)
{
	struct wf_outframe *f = take_frame(link, WF_FRAME_CONTROL);
	uint8_t bytes[WF_RECORD_SMALL_BYTES];
	struct wf_pack pack;
	struct wf_list *node;

	if (!f) {
		wf_link_mark(link);
		return;
	}
	f->header.kind = WF_FRAME_CONTROL;
	f->header.seq = ++link->tx.control_seq;
	wf_pack_begin(&pack, f->bytes, link->probe.frame_bytes);
	while ((node = wf_list_first(&link->out.controls)) &&
	       wf_pack_room(&pack) >= WF_RECORD_SMALL_BYTES) {
		struct wf_message_control *c = WF_CONTAINER(node, struct wf_message_control, node);
		struct wf_bytes_writer writer = wf_bytes_writer(bytes, sizeof(bytes));
		/* A control speaks of records in frames up to here: it must not overtake them. */
		struct wf_record_small small = { .id = c->id, .other = link->tx.sequence.sent };
		size_t done = 0;

		wf_record_small_put(&writer, &small);
		wf_pack_add(&pack, c->type, bytes, sizeof(bytes), NULL, 0, &done);
		wf_list_remove(node);
		wf_list_append(&link->out.controls_out, node);
	}
	f->count = (uint32_t)wf_pack_end(&pack, &f->header);
	link->out.control_frame = f;
	post_frame(link, f);
	expect(link);
}

/* Post waiting frames again, in order; -EAGAIN: the rail is full. */
static int post_waiting(struct wf_link *link)
{
	if (link->out.frames_wait) {
		WF_LIST_EACH(node, &link->out.frames) {
			struct wf_outframe *f = WF_CONTAINER(node, struct wf_outframe, node);

			if (f->waiting && post_frame(link, f))
				return -EAGAIN;
		}
		link->out.frames_wait = false;
	}
	if (link->out.control_frame && link->out.control_frame->waiting)
		return post_frame(link, link->out.control_frame);
	return 0;
}

static bool must_tell(const struct wf_link *link)
{
	uint32_t window = wf_rx_credit_open(link);

	return link->tx.ack_now || wf_rx_credit_told(link) < (int32_t)(window + 1) / 2 ||
	       link->tx.sequence.received - link->tx.ack_told >= WF_MAX(window / 2, 1u) ||
	       link->eager_credit.total - link->eager_credit.told >
		       link->engine->options.unexpected_bytes / 2;
}

/* May another data frame leave?  Frames that the peer does not confirm are kept here. */
static bool may_send(const struct wf_link *link)
{
	return wf_credit_left(&link->tx.credit) &&
	       link->tx.sequence.sent - link->tx.sequence.acked < UNCONFIRMED_MAX;
}

static void send_all(struct wf_link *link)
{
	if (link->tx.answer_owed) {
		if (wf_tx_special(link, WF_FRAME_ANSWER))
			return;
		link->tx.answer_owed = false;
	}
	if (post_waiting(link))
		return;
	while (link->state == WF_LINK_UP && link->out.waiting) {
		if (!may_send(link)) {
			begin_starved(link);
			break;
		}
		end_starved(link);
		if (link->tx.rail.posted_count &&
		    link->out.queued_bytes < link->probe.frame_bytes)
			break;
		if (send_data(link))
			return;
	}
	/* A message that was told of its end may have ended the link. */
	if (link->state != WF_LINK_UP)
		return;
	if (!link->out.control_frame && (!wf_list_empty(&link->out.controls) || must_tell(link)))
		send_control(link);
}

/* Send frames, answers and controls that are due, unless the link is not up. */
void wf_tx_run(struct wf_link *link)
{
	char why[sizeof(link->rail.closed)];
	struct wf_error e;

	if (link->state == WF_LINK_GONE) {
		wf_error_set(&e, -ENOTCONN, "%s is gone, and its address is not known",
			     wf_link_label(link));
		wf_tx_fail(link, &e);
	}
	if (link->state != WF_LINK_UP)
		return;
	if (link->slots.kept_less)
		wf_rx_credit_room(link);
	send_all(link);
	if (link->rail.closed[0]) {
		memcpy(why, link->rail.closed, sizeof(why));
		wf_link_rail_failed(link, why);
	}
}

/* Take back @f, with which the rail is done. */
void wf_tx_sent(struct wf_outframe *f, int status)
{
	struct wf_link *link = f->link;

	f->posted = false;
	if (!link) {
		give_frame(f);
		return;
	}
	if (f->kind == WF_FRAME_DATA)
		link->tx.rail.posted_count--;
	if (status) {
		f->waiting = link->out.frames_wait = true;
		wf_link_rail_failed(link, wf_error_name(status));
	} else if (link->out.waiting) {
		wf_link_mark(link);
	}
}

static void learn_rtt(struct wf_tx *tx, uint64_t rtt_ns)
{
	tx->rtt_ns = tx->rtt_ns ? tx->rtt_ns - tx->rtt_ns / 8 + rtt_ns / 8 : rtt_ns;
}

/* Drop frames that are confirmed: the peer has received @ack data frames in order. */
void wf_tx_confirm(struct wf_link *link, uint32_t ack)
{
	struct wf_engine *engine = link->engine;
	int count = wf_sequence_ack(&link->tx.sequence, ack);
	uint64_t frames = (uint64_t)WF_MAX(count, 0);

	if (count < 0) {
		wf_link_violate(link, "it confirms frames that were never sent");
		return;
	}
	if (!count)
		return;
	while (count--) {
		struct wf_list *node = wf_list_first(&link->out.frames);
		struct wf_outframe *f = WF_CONTAINER(node, struct wf_outframe, node);

		if (!count && !f->replayed) {
			learn_rtt(&link->tx, engine->loop.now_ns - f->posted_ns);
			link->tx.stalls = 0;
		}
		if (f->posted)
			link->tx.rail.posted_count--;
		give_frame(f);
	}
	wf_ledger_discharge(link, WF_LEDGER_OWED, frames * engine->frame_bytes);
	link->tx.overdue_count = 0;
	wf_timer_stop(&engine->loop.timers, &link->tx.overdue_timer);
	if (!wf_list_empty(&link->out.frames) || link->out.control_frame)
		expect(link);
}

/* Send the control frame again, unless the rail has it. */
static void replay_control(struct wf_link *link)
{
	struct wf_outframe *f = link->out.control_frame;

	if (!f || f->posted || f->waiting)
		return;
	f->waiting = true;
	f->replayed = true;
	wf_link_mark(link);
}

/* Send every unconfirmed frame again that the rail does not have. */
static void replay(struct wf_link *link)
{
	link->tx.replay_ns = link->engine->loop.now_ns;
	WF_LIST_EACH(node, &link->out.frames) {
		struct wf_outframe *f = WF_CONTAINER(node, struct wf_outframe, node);

		if (f->posted || f->waiting)
			continue;
		f->waiting = link->out.frames_wait = true;
		f->replayed = true;
		wf_counters_add(&link->engine->counters.frames_replayed, 1);
	}
	replay_control(link);
	wf_link_mark(link);
}

/* Say which frames we have.  The peer says the same, unless @answer. */
static void send_resync(struct wf_link *link, bool answer)
{
	struct wf_engine *engine = link->engine;
	struct wf_greet greet = { .kind = WF_GREET_RESYNC };

	if (!link->conn || engine->loop.now_ns < link->tx.resync_ns + RESYNC_NS)
		return;
	link->tx.resync_ns = engine->loop.now_ns;
	greet.resync.epoch = link->probe.epoch;
	greet.resync.received = link->tx.sequence.received;
	greet.resync.answer = answer;
	wf_link_record(link, WF_RECORDER_RESYNC_OUT, link->tx.sequence.received, 0);
	wf_conn_send(link->conn, &greet);
}

void wf_tx_ask(struct wf_link *link)
{
	send_resync(link, false);
}

/*
 * Replay to a peer that misses frames, or our acknowledgements.  Copies that have just left are on
 * their way: a peer which asks all the time makes no more.
 */
void wf_tx_resync(struct wf_link *link, const struct wf_greet *greet)
{
	uint64_t now_ns = link->engine->loop.now_ns;

	if (link->state != WF_LINK_UP || greet->resync.epoch != link->probe.epoch)
		return;
	wf_link_record(link, WF_RECORDER_RESYNC_IN, greet->resync.received, 0);
	wf_tx_confirm(link, greet->resync.received);
	if (link->state != WF_LINK_UP)
		return;
	if (now_ns >= link->tx.replay_ns + REPLAY_NS)
		replay(link);
	else
		wf_link_mark(link); /* messages may wait behind frames that are confirmed now */
	if (!greet->resync.answer)
		send_resync(link, true);
}

/*
 * Has the rail brought nothing since it first had @oldest, though the peer lives?  That a copy of
 * a frame has left says nothing: a rail that swallows frames completes them, too.
 */
static bool is_stalled(const struct wf_link *link, const struct wf_outframe *oldest)
{
	/* Read responses fill the rail for as long as a chunk takes, before what was said behind them. */
	uint64_t least_ns = link->offers.ours_count || link->reads.count ?
		WF_LINK_READING_NS : STALLED_NS << WF_MIN(link->tx.stalls, STALLS_MAX);

	return link->keepalive.beat_answered_ns >
	       WF_MAX(oldest->posted_ns, link->tx.progress_ns) + least_ns;
}

/*
 * Ask the peer when no acknowledgement came in time, or leave the rail: not before a question more
 * has had its time, for a peer that stood still answers at its door first.
 */
static void overdue(struct wf_timer *timer)
{
	struct wf_link *link = WF_CONTAINER(timer, struct wf_link, tx.overdue_timer);
	struct wf_outframe *oldest = link->out.control_frame;
	bool was_stalled = link->tx.stalled;

	if (link->state != WF_LINK_UP)
		return;
	if (!wf_list_empty(&link->out.frames))
		oldest = WF_CONTAINER(wf_list_first(&link->out.frames), struct wf_outframe, node);
	if (!oldest)
		return;
	link->tx.stalled = is_stalled(link, oldest);
	if (link->tx.stalled && was_stalled) {
		link->tx.stalls++;
		wf_link_rail_failed(link, "no progress while the peer is alive");
		return;
	}
	link->tx.overdue_count++;
	replay_control(link);
	wf_tx_ask(link);
	expect(link);
}

/* Start on a rail that works: frames that the old one lost go out first. */
void wf_tx_up(struct wf_link *link)
{
	link->tx.overdue_count = 0;
	link->tx.stalled = false;
	replay(link);
	WF_LIST_EACH(node, &link->out.frames)
		WF_CONTAINER(node, struct wf_outframe, node)->posted_ns = link->engine->loop.now_ns;
	if (link->out.control_frame)
		link->out.control_frame->posted_ns = link->engine->loop.now_ns;
	if (!wf_list_empty(&link->out.frames) || link->out.control_frame)
		expect(link);
}

/*
 * Returns the frame that goes on in place of @f when its endpoint is closed.  A connected rail
 * gives every buffer back by that.  A shared rail may still read its buffers, so a copy goes on
 * and the original stays with the rail until its end.
 */
static struct wf_outframe *go_on(struct wf_link *link, struct wf_outframe *f)
{
	bool shared = !wf_rail_caps(link->on->rail)->connected;
	struct wf_outframe *copy = f->posted && shared ? take_frame(link, f->kind) : NULL;

	if (!copy) {
		/*
		 * Without memory for a copy @f goes on, too: better a stale frame than a lost one.
		 */
		f->posted = false;
		return f;
	}
	memcpy(copy->bytes, f->bytes, f->count);
	copy->header = f->header;
	copy->count = f->count;
	copy->counted = f->counted;
	f->link = NULL;
	wf_list_remove(&f->node);
	wf_list_append(&link->on->abandoned, &f->node);
	return copy;
}

/* Take frames off an endpoint that is about to be closed: they must go again. */
void wf_tx_rail_gone(struct wf_link *link)
{
	bool shared = !wf_rail_caps(link->on->rail)->connected;
	struct wf_list again, *held;

	wf_timer_stop(&link->engine->loop.timers, &link->tx.overdue_timer);
	while (shared && (held = wf_list_pop(&link->out.held)))
		wf_list_append(&link->on->abandoned, held);
	while ((held = wf_list_pop(&link->out.held))) {
		struct wf_outframe *f = WF_CONTAINER(held, struct wf_outframe, node);

		f->posted = false;
		give_frame(f);
	}
	wf_list_init(&again);
	WF_LIST_EACH(node, &link->out.frames) {
		struct wf_outframe *f = go_on(link, WF_CONTAINER(node, struct wf_outframe, node));

		wf_list_remove(&f->node);
		wf_list_append(&again, &f->node);
	}
	wf_list_splice(&link->out.frames, &again);
	link->tx.rail = (struct wf_tx_rail){ 0 };
	if (link->out.control_frame)
		link->out.control_frame = go_on(link, link->out.control_frame);
}

/* Drop the frames of @link, the control frame too. */
static void drop_frames(struct wf_link *link)
{
	struct wf_list *node;

	while ((node = wf_list_first(&link->out.frames))) {
		give_frame(WF_CONTAINER(node, struct wf_outframe, node));
		wf_ledger_discharge(link, WF_LEDGER_OWED, link->engine->frame_bytes);
	}
	if (link->out.control_frame)
		give_frame(link->out.control_frame);
	link->out.control_frame = NULL;
}

/* Fail what is queued now. */
static void fail_queued(struct wf_link *link, const struct wf_error *e)
{
	struct wf_list messages, controls, *node;

	wf_list_init(&messages);
	wf_list_init(&controls);
	for (unsigned i = WF_PRIORITIES; i-- > 0;)
		wf_list_splice(&messages, &link->out.queues[i]);
	link->out.waiting = 0;
	wf_list_splice(&controls, &link->out.controls_out);
	wf_list_splice(&controls, &link->out.controls);
	while ((node = wf_list_pop(&messages))) {
		struct wf_message *m = WF_CONTAINER(node, struct wf_message, node);

		/*
		 * Messages end one by one: each upcall may take back others that are still to be
		 * told.
		 */
		link->out.queued_bytes -= message_bytes(m) - m->done_bytes;
		m->sent(m, e);
	}
	while ((node = wf_list_pop(&controls))) {
		struct wf_message_control *c = WF_CONTAINER(node, struct wf_message_control, node);

		c->sent(c, e);
	}
}

/*
 * Fail all that the link was to send, with @e: the link is dead.  What an upcall posts meanwhile is
 * about the dead peer, and must not reach another life of it.
 */
void wf_tx_fail(struct wf_link *link, const struct wf_error *e)
{
	drop_frames(link);
	do
		fail_queued(link, e);
	while (link->out.waiting || !wf_list_empty(&link->out.controls));
}

void wf_tx_forget(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	wf_timer_stop(&engine->loop.timers, &link->tx.overdue_timer);
	wf_timer_stop(&engine->loop.timers, &link->tx.ack_timer);
	link->tx = (struct wf_tx){ .rtt_ns = link->tx.rtt_ns };
}

static void ack_late(struct wf_timer *timer)
{
	struct wf_link *link = WF_CONTAINER(timer, struct wf_link, tx.ack_timer);

	link->tx.ack_now = true;
	wf_link_mark(link);
}

/* Confirm data that has come with a frame that goes back anyhow, alone only if none does. */
void wf_tx_confirm_later(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	if (must_tell(link))
		wf_link_mark(link);
	else if (!link->tx.ack_timer.armed)
		wf_loop_timer(&engine->loop, &link->tx.ack_timer, engine->loop.now_ns + ACK_NS,
			      ack_late);
}

/* End the controls in the control frame @seq, which the peer has. */
void wf_tx_answered(struct wf_link *link, uint32_t seq)
{
	struct wf_list done, *node;

	if (!link->out.control_frame || seq != link->out.control_frame->header.seq)
		return;
	give_frame(link->out.control_frame);
	link->out.control_frame = NULL;
	wf_list_init(&done);
	wf_list_splice(&done, &link->out.controls_out);
	while ((node = wf_list_pop(&done))) {
		struct wf_message_control *c = WF_CONTAINER(node, struct wf_message_control, node);

		c->sent(c, NULL);
	}
	wf_link_mark(link);
}
