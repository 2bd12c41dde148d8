/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/outgoing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "link/lease.h"
#include "transfer/plan.h"
#include "util/checksum.h"
#include "util/progress.h"
#include "util/status.h"

/*
 * How long a withdrawn offer waits for the peer's answer.  Connected: WF_TRANSFER_CLOSE_NS, and
 * then the endpoint is closed over it.  Shared: for the lease, when the peer is frozen; a peer that
 * lives, though nothing gets through to it, hears through the door that this rail is given up, and
 * has the rest of the time for that.
 */
#define PROBE_NS (500 * WF_NS_PER_MS)
#define QUIET_COPIES_NS (10 * WF_NS_PER_S) /* a device that takes longer hangs */
#define FENCE_NS (400 * WF_NS_PER_MS)
#define HEAD_NS WF_NS_PER_MS /* pause before memory for the head of a record is asked for again */
#define LEAVE_NS (5 * WF_NS_PER_MS) /* pause before memory for a copy is asked for again */

static void close_grants(struct wf_outgoing *p)
{
	wf_grant_close(&p->offer.grant);
	wf_stripe_take_back(p->offer.spread);
	p->offer.spread = NULL;
}

static void wait_for_rail(struct wf_outgoing *p)
{
	wf_list_append(&wf_link_real(p->link)->work[WF_ABOVE_OUTGOING_WAITING], &p->node);
	p->transfer->waiting_count++;
}

static void wait_no_more(struct wf_outgoing *p)
{
	wf_timer_stop(&p->transfer->engine->loop.timers, &p->quiet_timer);
	wf_list_remove(&p->node);
	p->transfer->waiting_count--;
}

/*
 * Take @p out of the line of its link: outgoing bodies that wait for nothing but their turn go on.
 */
static void step_aside(struct wf_outgoing *p)
{
	wait_no_more(p);
	wf_transfer_start(wf_link_real(p->link));
}

static void drop_record(struct wf_outgoing *p)
{
	if (p->record && p->record->spare)
		wf_freelist_give(&p->transfer->records, p->record);
	else
		free(p->record);
	p->record = NULL;
}

/* Free the parcel that went with the offer, unless its reader has another in its place. */
static void drop_parcel(struct wf_outgoing *p)
{
	if (p->offer.parcel)
		wf_parcels_offer_ended(&p->transfer->parcels, wf_link_real(p->link), p->offer.id);
	p->offer.parcel = false;
}

static int open_staging(struct wf_outgoing *p)
{
	p->staging = calloc(1, sizeof(*p->staging));
	if (!p->staging)
		return -ENOMEM;
	p->staging->outgoing = p;
	wf_list_init(&p->staging->bounce_waiter.node);
	return 0;
}

static void close_staging(struct wf_outgoing *p)
{
	if (p->staging)
		wf_pool_unwait(&p->transfer->engine->pool, &p->staging->bounce_waiter);
	free(p->staging);
	p->staging = NULL;
}

static void end(struct wf_outgoing *p, const struct wf_error *e)
{
	struct wf_engine *engine = p->transfer->engine;
	struct wf_link *link = p->link;

	if (p->state == WF_OUTGOING_WAITING)
		step_aside(p);
	p->state = WF_OUTGOING_ENDED;
	wf_timer_stop(&engine->loop.timers, &p->quiet_timer);
	wf_sender_sums_close(p->summing);
	p->summing = NULL;
	close_staging(p);
	wf_stage_stop(p->stage);
	wf_recall_close(p->offer.recall);
	p->offer.recall = NULL;
	p->path.lanes = p->offer.spread ? p->offer.spread->count : 0;
	close_grants(p);
	drop_parcel(p);
	if (p->offer.lent)
		wf_shm_export_end(engine->shm_export, p->offer.place);
	p->offer.lent = false;
	if (p->offer.id) {
		wf_link_record(wf_link_real(link), WF_RECORDER_OFFER_END, p->offer.id,
			       e ? (uint64_t)e->code : 0);
		wf_table_remove(&p->transfer->outgoing, p->offer.id);
		wf_list_remove(&p->node);
		wf_link_real(link)->offers.ours_count--;
	}
	drop_record(p);
	wf_reason_drop(&p->why);
	wf_link_unwatch(link);
	p->class->done(p, e);
	wf_link_put(link);
}

/* End @p with the reason that is kept. */
static void end_why(struct wf_outgoing *p)
{
	struct wf_error e;

	end(p, wf_reason_get(&p->why, &e));
}

static void end_later(struct wf_timer *timer)
{
	end_why(WF_CONTAINER(timer, struct wf_outgoing, quiet_timer));
}

/* End @p with @e in the next turn, not inside the caller's own call. */
static void fail_later(struct wf_outgoing *p, const struct wf_error *e)
{
	struct wf_engine *engine = p->transfer->engine;

	wf_reason_keep(&p->why, e);
	p->state = WF_OUTGOING_WITHDRAWING;
	wf_loop_timer(&engine->loop, &p->quiet_timer, engine->loop.now_ns, end_later);
}

static void withdraw(struct wf_outgoing *p);

/* End @p, whose eager body is all in frames.  The rail may be another than when it was planned. */
static void left(struct wf_outgoing *p)
{
	struct wf_link *link = wf_link_real(p->link);
	struct wf_error e;

	p->path.caps = wf_link_caps(link);
	p->path.cipher = wf_path_cipher(link, link->seals.on);
	p->path.chunks = p->record->message.frames;
	p->path.first_ns = p->record->message.first_ns;
	p->path.last_ns = link->engine->loop.now_ns;
	wf_counters_add(&link->engine->counters.bytes_eager, p->body_bytes);
	end(p, wf_terms_rail(p->terms, link, p->path.caps, &e) ? &e : NULL);
}

static void message_sent(struct wf_message *m, const struct wf_error *e)
{
	struct wf_outgoing *p = WF_CONTAINER(m, struct wf_outgoing_record, message)->outgoing;

	p->sent |= !e || m->done_bytes;
	if (e && p->why.code) {
		end_why(p);
	} else if (e) {
		end(p, e);
	} else if (p->plan != WF_BODY_PULL) {
		left(p);
	} else {
		p->state = WF_OUTGOING_OFFERED;
		drop_record(p);
		if (p->why.code)
			withdraw(p);
	}
}

/* The memory that rails read: the body, or the buffer it passes through. */
static struct wf_grant_span readable(const struct wf_outgoing *p)
{
	if (p->stage && !p->offer.direct)
		return (struct wf_grant_span){ .at = p->stage->bounce,
					       .bytes = p->stage->bounce_bytes };
	return (struct wf_grant_span){
		.at = p->body,
		.bytes = p->body_bytes,
		.device = p->offer.direct ? &p->stage->body->place : NULL,
	};
}

/* Make the body readable for the peer on the rail in use. */
static int grant(struct wf_outgoing *p, struct wf_error *e)
{
	struct wf_link *link = wf_link_real(p->link);
	struct wf_grant_span span = readable(p);
	bool sealed = wf_seals_bodies(link);
	int err = 0;

	p->path.cipher = wf_path_cipher(link, sealed);
	/* The peer gets parcels of a sealed body, and no key. */
	if (sealed) {
		close_grants(p);
		p->path.registered = p->path.straight = false;
		return 0;
	}
	if (p->offer.grant_epoch != link->probe.epoch || !p->offer.grant.key) {
		close_grants(p);
		err = wf_grant_remote(&p->offer.grant, link->on->rail, &link->engine->pool, &span, e);
		p->offer.grant_epoch = link->probe.epoch;
	}
	p->path.registered = p->offer.grant.own != NULL;
	p->path.straight = p->offer.direct;
	return err;
}

static struct wf_body describe(const struct wf_outgoing *p)
{
	return (struct wf_body){
		.way = p->stage && !p->offer.direct ? WF_BODY_STAGED : WF_BODY_PULL,
		.bytes = p->body_bytes,
		.offer = p->offer.id,
		.epoch = wf_link_real(p->link)->probe.epoch,
		.address = p->offer.grant.address,
		.key = p->offer.grant.key,
		.bounce_bytes = p->stage && p->stage->bounce ? p->stage->bounce_bytes : 0,
		.sum_kind = p->path.sum_kind,
		.sum = p->sum,
		.priority = p->terms->priority,
	};
}

static void make_plan(struct wf_outgoing *p, const struct wf_rail_caps *caps)
{
	struct wf_link *link = wf_link_real(p->link);
	const struct wf_options *options = &link->engine->options;
	uint32_t record_max = wf_link_record_bytes_max(link);
	struct wf_plan plan;

	wf_plan_make(caps, options, p->body_bytes,
		     !p->stage && !(p->class->offers && p->body_bytes), record_max, &plan);
	if (plan.way == WF_BODY_EAGER && p->class->needs_room &&
	    !wf_eager_credit_take(link, p->body_bytes))
		wf_plan_make(caps, options, p->body_bytes, false, record_max, &plan);
	p->plan = (uint8_t)plan.way;
}

/* Give the credit of an eager body back: nothing of its record has left. */
static void unmake_plan(const struct wf_outgoing *p)
{
	if (p->plan == WF_BODY_EAGER && p->class->needs_room)
		wf_eager_credit_untake(p->link, p->body_bytes);
}

/*
 * Check the terms, and choose a checksum, if one is wanted.  The sums of a longer body are made
 * when the reader asks for them.
 */
static int agree(struct wf_outgoing *p, const struct wf_rail_caps *caps, struct wf_error *e)
{
	const struct wf_link *link = wf_link_real(p->link);
	int err = wf_terms_rail(p->terms, link, caps, e);

	if (!err)
		err = wf_terms_sum(p->terms, link, &p->path.sum_kind, e);
	if (!err && p->path.sum_kind != WF_BODY_SUM_NONE && !p->stage &&
	    wf_body_piece_count(p->body_bytes) == 1)
		p->sum = wf_checksum(p->body, p->body_bytes);
	return err;
}

/* Let a peer of this host view the body in place, if it likes. */
static void lend(struct wf_outgoing *p, struct wf_body *body)
{
	struct wf_link *link = wf_link_real(p->link);
	struct wf_shm_export *shm_export = link->engine->shm_export;

	if (!p->lend || !shm_export || !link->side.gate_open || !wf_link_caps(link)->same_host ||
	    wf_shm_export_lend(shm_export, link, p->offer.id, p->body, body))
		return;
	body->way = WF_BODY_VIEW;
	p->offer.lent = true;
	p->offer.place = body->place;
}

/* Send the first bytes of a sealed body with its offer, if one peer alone is to read it all. */
static void offer_parcel(struct wf_outgoing *p, struct wf_body *body)
{
	struct wf_link *link = wf_link_real(p->link);

	if (!wf_seals_bodies(link) || p->stage || p->class->offers || p->class->shared)
		return;
	wf_parcels_offer(&p->transfer->parcels, link, p->body, body);
	p->offer.parcel = body->parcel.id != 0;
}

/*
 * Is the body open on its device over this very connection?  No read has failed there, which would
 * have ended the connection: a RESUME came twice, or the answer to it could not leave.
 */
static bool is_reached(const struct wf_outgoing *p)
{
	const struct wf_link *link = wf_link_real(p->link);

	return p->offer.direct && p->offer.grant.key && wf_link_caps(link)->connected &&
	       p->offer.grant_epoch == link->probe.epoch;
}

/*
 * Could the rail reach the body on its device?  Not once some of the body has gone through the
 * host, nor where the rail did and the body has to be offered again, unless there is nothing
 * else.
 */
static bool may_reach(const struct wf_outgoing *p)
{
	bool only = p->terms->no_staging;

	return p->stage && !p->stage->bounce && p->path.sum_kind == WF_BODY_SUM_NONE &&
	       (only || is_reached(p) || p->staging->reached_by != wf_link_real(p->link)->on) &&
	       wf_stage_is_reached(p->stage, wf_link_real(p->link), only);
}

/* Register the body on its device.  Returns false: the rail does not reach it, and it is staged. */
static bool reach(struct wf_outgoing *p)
{
	struct wf_link *link = wf_link_real(p->link);
	struct wf_error e;

	p->offer.direct = true;
	if (!grant(p, &e)) {
		p->staging->reached_by = link->on;
		return true;
	}
	wf_log(&link->engine->log, WF_LOG_INFO, "%s: a body goes through the host: %s",
	       wf_link_label(link), e.text);
	return false;
}

/* Check that a body that has to be staged may be.  -EBADFD with a sentence. */
static int agree_to_stage(const struct wf_outgoing *p, struct wf_error *e)
{
	if (!p->stage || p->offer.direct)
		return 0;
	return wf_terms_stage(p->terms, p->stage->body->place.device, e);
}

static int offer(struct wf_outgoing *p, struct wf_body *body, struct wf_error *e)
{
	const struct wf_rail_caps *caps = wf_link_caps(wf_link_real(p->link));
	bool may = may_reach(p), ready = may && wf_stage_ready(p->stage);
	bool waits = may && !ready;
	int err;

	if (wf_table_add(&p->transfer->outgoing, p, &p->offer.id))
		return wf_error_set(e, -ENOMEM, "no memory for another offer");
	wf_list_append(&wf_link_real(p->link)->work[WF_ABOVE_OUTGOING], &p->node);
	wf_link_real(p->link)->offers.ours_count++;
	if (wf_recall_open(p->offer.id, &p->offer.recall))
		return wf_error_set(e, -ENOMEM, "no memory for another offer");
	/*
	 * A buffer is taken when the reader asks for it: many readers may never, and none is to
	 * wait for them.
	 */
	p->offer.direct = ready && reach(p);
	err = wf_terms_seal(p->terms, wf_link_real(p->link), e);
	if (!err && !p->stage)
		err = grant(p, e);
	/*
	 * A stream that has to come so far first, or a reader of this host that may want a
	 * handle, is asked later.
	 */
	if (!err && !caps->same_host && !waits)
		err = agree_to_stage(p, e);
	if (err)
		return err;
	*body = describe(p);
	if (p->offer.direct)
		p->path.way = body->way;
	lend(p, body);
	offer_parcel(p, body);
	return 0;
}

static bool follows(const struct wf_message *m, const struct wf_message *before)
{
	const struct wf_outgoing *p = WF_CONTAINER(m, struct wf_outgoing_record, message)->outgoing;
	const struct wf_outgoing *first =
		WF_CONTAINER(before, struct wf_outgoing_record, message)->outgoing;

	return p->class == first->class && p->class->follows(p, first);
}

/* Most heads are short, and are free again as soon as their record has left. */
int wf_outgoing_head(struct wf_outgoing *p, size_t bytes, struct wf_bytes_writer *head)
{
	bool spare = bytes <= WF_OUTGOING_HEAD_BYTES;

	p->record = spare ? wf_freelist_take(&p->transfer->records)
			  : malloc(sizeof(*p->record) + bytes);
	if (!p->record)
		return -ENOMEM;
	p->record->outgoing = p;
	p->record->spare = spare;
	p->record->message = (struct wf_message){
		.type = p->type,
		.priority = p->class->in_order ? 0 : p->terms->priority,
		.head = p->record->head,
		.head_bytes = bytes,
		.sent = message_sent,
		.follows = p->class->follows ? follows : NULL,
	};
	*head = wf_bytes_writer(p->record->head, bytes);
	return 0;
}

/* Plan and post @p, whose link has a rail.  -EAGAIN: @p insists, and there is no memory for now. */
static int start(struct wf_outgoing *p, const struct wf_rail_caps *caps)
{
	struct wf_body body = { .bytes = p->body_bytes };
	struct wf_error e;

	if (agree(p, caps, &e)) {
		fail_later(p, &e);
		return 0;
	}
	make_plan(p, caps);
	if (p->plan == WF_BODY_PULL && p->transfer->closing) {
		wf_error_set(&e, -ECANCELED, "this node has closed");
		fail_later(p, &e);
		return 0;
	}
	p->path.caps = caps;
	p->path.way = p->stage ? WF_BODY_STAGED : p->plan;
	p->offer.connected = caps->connected;
	body.way = p->plan;
	body.sum_kind = p->path.sum_kind;
	body.sum = p->sum;
	body.priority = p->terms->priority;
	if (p->plan == WF_BODY_PULL && offer(p, &body, &e)) {
		fail_later(p, &e);
		return 0;
	}
	if (p->class->put_head(p, &body)) {
		unmake_plan(p);
		if (p->insists)
			return -EAGAIN;
		wf_error_set(&e, -ENOMEM, "no memory for the head of a record");
		fail_later(p, &e);
		return 0;
	}
	if (p->offer.id)
		wf_link_record(wf_link_real(p->link), WF_RECORDER_OFFER, p->offer.id, p->body_bytes);
	p->state = WF_OUTGOING_QUEUED;
	p->path.queued_ns = p->transfer->engine->loop.now_ns;
	if (p->plan == WF_BODY_EAGER) {
		p->record->message.body = p->body;
		p->record->message.body_bytes = p->body_bytes;
	}
	wf_link_post(p->link, &p->record->message);
	if (p->class->posted)
		p->class->posted(p);
	return 0;
}

static void look_again(struct wf_timer *timer)
{
	struct wf_outgoing *p = WF_CONTAINER(timer, struct wf_outgoing, quiet_timer);

	wf_transfer_start(wf_link_real(p->link));
}

/* Let @p look again in @ns whether it can go. */
static void look_later(struct wf_outgoing *p, uint64_t ns)
{
	struct wf_loop *loop = &p->transfer->engine->loop;

	wf_loop_timer(loop, &p->quiet_timer, loop->now_ns + ns, look_again);
}

bool wf_outgoing_up(struct wf_outgoing *p)
{
	struct wf_link *link = wf_link_real(p->link);

	if (wf_terms_wait(p->terms, link)) {
		look_later(p, WF_TERMS_WAIT_NS);
		return false;
	}
	wait_no_more(p);
	if (!start(p, wf_link_caps(link)))
		return true;
	wait_for_rail(p);
	look_later(p, HEAD_NS);
	return false;
}

void wf_outgoing_post(struct wf_transfer *t, struct wf_link *link, struct wf_outgoing *p)
{
	struct wf_link *real = wf_link_real(link);
	bool first = wf_list_empty(&real->work[WF_ABOVE_OUTGOING_WAITING]);
	struct wf_error e;

	p->transfer = t;
	p->link = link;
	p->state = WF_OUTGOING_WAITING;
	p->path = (struct wf_path){ .bytes = p->body_bytes };
	p->offer = (struct wf_outgoing_offer){ 0 };
	p->sent = p->refused = p->told = p->fenced = false;
	p->record = NULL;
	p->staging = NULL;
	p->sum = 0;
	p->summing = NULL;
	p->quiet_timer = (struct wf_timer){ 0 };
	p->quiet_ns = p->probed_ns = 0;
	p->why = (struct wf_reason){ 0 };
	wf_list_init(&p->node);
	wf_link_get(link);
	wf_link_watch(link, true);
	if (real->state == WF_LINK_GONE) {
		wf_error_set(&e, -ENOTCONN, "%s is gone, and its address is not known",
			     wf_link_label(link));
		fail_later(p, &e);
		return;
	}
	if (p->stage && open_staging(p)) {
		wf_error_set(&e, -ENOMEM, "no memory to stage a body");
		fail_later(p, &e);
		return;
	}
	wait_for_rail(p);
	if (first && wf_link_caps(real))
		wf_outgoing_up(p);
}

int wf_outgoing_take_back(struct wf_outgoing *p)
{
	struct wf_link *link = p->link;

	if (p->state != WF_OUTGOING_WAITING)
		return -EALREADY;
	step_aside(p);
	close_staging(p);
	p->state = WF_OUTGOING_ENDED;
	wf_link_unwatch(link);
	wf_link_put(link);
	return 0;
}

static const char unanswered[] = "the peer does not answer a withdrawn offer";

/* Withdraw the offer of @p, as the abort that was said in place of that was perhaps denied. */
static bool recall_late(struct wf_outgoing *p, struct wf_link *link)
{
	if (!p->told || !p->offer.recall || !wf_link_greeted(link))
		return false;
	wf_recall_post(p->offer.recall, link);
	p->offer.recall = NULL;
	return true;
}

/* When @timeout_ns from now is over; half of it before recall_late(), and half after it. */
static uint64_t quiet_until(const struct wf_outgoing *p, uint64_t timeout_ns)
{
	return p->transfer->engine->loop.now_ns + (p->told ? timeout_ns / 2 : timeout_ns);
}

static void quiet_shared(struct wf_timer *timer)
{
	struct wf_outgoing *p = WF_CONTAINER(timer, struct wf_outgoing, quiet_timer);
	struct wf_link *link = wf_link_real(p->link);
	struct wf_engine *engine = link->engine;

	if (recall_late(p, link)) {
		wf_loop_timer(&engine->loop, timer, quiet_until(p, PROBE_NS), quiet_shared);
	} else if (!p->probed_ns) {
		p->probed_ns = engine->loop.now_ns;
		wf_keepalive_probe(link);
		wf_loop_timer(&engine->loop, timer, engine->loop.now_ns + PROBE_NS, quiet_shared);
	} else if (!p->fenced && wf_keepalive_has_answered(&link->keepalive, p->probed_ns)) {
		p->fenced = true;
		p->quiet_ns = WF_MAX(p->quiet_ns, engine->loop.now_ns + FENCE_NS);
		wf_loop_timer(&engine->loop, timer, p->quiet_ns, quiet_shared);
		wf_link_rail_failed(link, unanswered);
	} else if (engine->loop.now_ns < p->quiet_ns) {
		wf_loop_timer(&engine->loop, timer, p->quiet_ns, quiet_shared);
	} else {
		end_why(p);
	}
}

static void quiet_connected(struct wf_timer *timer)
{
	struct wf_outgoing *p = WF_CONTAINER(timer, struct wf_outgoing, quiet_timer);
	struct wf_link *link = wf_link_real(p->link);
	const struct wf_rail_caps *caps = wf_link_caps(link);

	/* Closing the endpoint of its offer ends @p as well, see wf_outgoing_paused. */
	if (recall_late(p, link))
		wf_loop_timer(&link->engine->loop, timer, quiet_until(p, WF_TRANSFER_CLOSE_NS),
			      quiet_connected);
	else if (caps && caps->connected)
		wf_link_rail_failed(link, unanswered);
	else
		end_why(p);
}

/* Does the reader copy the body by a handle? */
static bool is_handed(const struct wf_outgoing *p)
{
	return p->path.way == WF_BODY_HANDLE;
}

/* End @p: its reader alone knows of its copies, and a device of the reader has failed. */
static void quiet_copies(struct wf_timer *timer)
{
	struct wf_outgoing *p = WF_CONTAINER(timer, struct wf_outgoing, quiet_timer);

	if (recall_late(p, wf_link_real(p->link)))
		wf_loop_timer(&p->transfer->engine->loop, timer, quiet_until(p, QUIET_COPIES_NS),
			      quiet_copies);
	else
		end_why(p);
}

static void withdraw(struct wf_outgoing *p)
{
	struct wf_link *link = wf_link_real(p->link);
	struct wf_engine *engine = link->engine;

	p->state = WF_OUTGOING_WITHDRAWING;
	wf_link_record(link, WF_RECORDER_WITHDRAW, p->offer.id, 0);
	wf_sender_sums_stop(p->summing);
	wf_stage_stop(p->stage);
	/* A peer that is given up is told nothing: with its link all offers end. */
	if (!p->told && wf_link_greeted(link)) {
		wf_recall_post(p->offer.recall, link);
		p->offer.recall = NULL;
	}
	p->quiet_ns = engine->loop.now_ns + WF_KEEPALIVE_LEASE_NS;
	if (is_handed(p))
		wf_loop_timer(&engine->loop, &p->quiet_timer, quiet_until(p, QUIET_COPIES_NS),
			      quiet_copies);
	else if (p->offer.connected)
		wf_loop_timer(&engine->loop, &p->quiet_timer, quiet_until(p, WF_TRANSFER_CLOSE_NS),
			      quiet_connected);
	else
		wf_loop_timer(&engine->loop, &p->quiet_timer, quiet_until(p, PROBE_NS),
			      quiet_shared);
}

bool wf_outgoing_has_left(const struct wf_outgoing *p)
{
	/* A long record may be in the middle of its frames. */
	return p->sent || (p->state == WF_OUTGOING_QUEUED && p->record->message.done_bytes);
}

static void leave_again(struct wf_timer *timer)
{
	struct wf_outgoing *p = WF_CONTAINER(timer, struct wf_outgoing, quiet_timer);
	struct wf_error e;

	wf_outgoing_stop(p, wf_reason_get(&p->why, &e));
}

void wf_outgoing_stop(struct wf_outgoing *p, const struct wf_error *e)
{
	struct wf_engine *engine = p->transfer->engine;

	p->sent = wf_outgoing_has_left(p);
	switch (p->state) {
	case WF_OUTGOING_WAITING:
		end(p, e);
		break;
	case WF_OUTGOING_QUEUED:
		/*
		 * The peer reads as soon as it has the rest of an offer: that is withdrawn once it
		 * has left, and the body stays until then.
		 */
		if (!wf_link_unpost(p->link, &p->record->message)) {
			unmake_plan(p);
			end(p, e);
			break;
		}
		if (!p->offer.id && !wf_message_finish_copy(&p->record->message, p->link)) {
			end(p, e);
			break;
		}
		if (!p->why.code)
			wf_reason_keep(&p->why, e);
		if (!p->offer.id)
			wf_loop_timer(&engine->loop, &p->quiet_timer,
				      engine->loop.now_ns + LEAVE_NS, leave_again);
		break;
	case WF_OUTGOING_OFFERED:
		wf_reason_keep(&p->why, e);
		withdraw(p);
		break;
	case WF_OUTGOING_WITHDRAWING:
	case WF_OUTGOING_ENDED:
		break;
	}
}

void wf_outgoing_pulled(struct wf_outgoing *p, enum weft_status status, uint32_t chunks)
{
	struct wf_error e;

	p->path.chunks = chunks;
	if (status == WEFT_OK) {
		if (p->offer.lent && !chunks)
			p->path.way = WF_BODY_VIEW;
		end(p, NULL);
		return;
	}
	/* The reason that we gave first is why the peer does not want the body any more. */
	if (p->state == WF_OUTGOING_WITHDRAWING) {
		end_why(p);
		return;
	}
	p->refused = true;
	wf_error_set(&e, wf_status_code(status), "%s did not %s: %s", wf_link_label(p->link),
		     status == WEFT_DATA_LOSS ? "get it whole" : "take it", wf_status_name(status));
	end(p, &e);
}

void wf_outgoing_withdrawn(struct wf_outgoing *p)
{
	if (p->state == WF_OUTGOING_WITHDRAWING)
		end_why(p);
}

static void wait_for_room(struct wf_outgoing *p);

static void resume_again(struct wf_timer *timer)
{
	struct wf_outgoing *p = WF_CONTAINER(timer, struct wf_outgoing, quiet_timer);
	struct wf_engine *engine = p->transfer->engine;

	if (p->state == WF_OUTGOING_OFFERED && wf_link_caps(wf_link_real(p->link)) &&
	    wf_outgoing_resume(p, p->offer.resuming, p->offer.resume_status))
		wf_loop_timer(&engine->loop, timer, engine->loop.now_ns + WF_TERMS_WAIT_NS,
			      resume_again);
}

static void retry_room(struct wf_pool_waiter *waiter)
{
	struct wf_outgoing *p =
		WF_CONTAINER(waiter, struct wf_outgoing_staging, bounce_waiter)->outgoing;

	/* Without a rail the reader asks again. */
	if (wf_link_caps(wf_link_real(p->link)) &&
	    wf_outgoing_resume(p, p->offer.resuming, p->offer.resume_status))
		wait_for_room(p);
}

static void wait_for_room(struct wf_outgoing *p)
{
	struct wf_pool *pool = &p->transfer->engine->pool;
	struct wf_pool_waiter *waiter = &p->staging->bounce_waiter;

	waiter->retry = retry_room;
	wf_link_record(wf_link_real(p->link), WF_RECORDER_POOL_WAIT, p->stage->bounce_bytes, 0);
	wf_pool_unwait(pool, waiter);
	wf_pool_wait(pool, waiter);
}

/*
 * Fill as much as there is room for: pieces that the reader has, and that are summed up if they
 * must be, are overwritten.
 */
static void fill(struct wf_outgoing *p)
{
	uint64_t gone = p->staging->taken;

	if (p->path.sum_kind != WF_BODY_SUM_NONE)
		gone = WF_MIN(gone, wf_sender_sums_over(p->summing));
	wf_stage_go(p->stage, WF_MIN(gone + p->stage->bounce_bytes, p->body_bytes));
}

static void summed(struct wf_sender_sums *s)
{
	fill(s->owner);
}

static int tell_sums(struct wf_sender_sums *s, const struct wf_record_sums *record)
{
	const struct wf_outgoing *p = s->owner;
	uint8_t bytes[WF_RECORD_SUMS_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	wf_record_sums_put(&w, record);
	return wf_message_post_copy(p->link, p->terms->priority, WF_RECORD_SUMS, bytes,
				    (size_t)(w.at - bytes));
}

static int need_summing(struct wf_outgoing *p)
{
	if (p->summing)
		return 0;
	p->summing = wf_sender_sums_open(&p->transfer->summers, p, tell_sums);
	if (!p->summing)
		return -ENOMEM;
	/* Staged pieces can be overwritten as far as sums have come. */
	if (p->stage)
		p->summing->moved = summed;
	return 0;
}

void wf_outgoing_filled(struct wf_outgoing *p, const struct wf_error *e)
{
	const struct wf_stage *stage = p->stage;
	struct wf_outgoing_staging *staging = p->staging;
	struct wf_error why;

	if (e) {
		wf_outgoing_stop(p, e);
		return;
	}
	if (p->state != WF_OUTGOING_OFFERED)
		return;
	if (staging->awaited) {
		staging->awaited = false;
		/* Without a rail the reader asks again. */
		if (wf_link_caps(wf_link_real(p->link)) &&
		    wf_outgoing_resume(p, p->offer.resuming, p->offer.resume_status)) {
			wf_error_set(&why, -ENOMEM, "no memory to offer a body");
			wf_outgoing_stop(p, &why);
		}
		return;
	}
	if (p->summing)
		wf_sender_sums_ready(p->summing, stage->bounce, stage->bounce_bytes, stage->ended);
	if (stage->ended == staging->filled)
		return;
	staging->filled = stage->ended;
	if (wf_message_post_small(p->link, p->terms->priority, WF_RECORD_FILLED, staging->reader,
				  staging->filled, 0)) {
		wf_error_set(&why, -ENOMEM, "no memory to say how far a body can be read");
		wf_outgoing_stop(p, &why);
	}
}

/* The reader has read the first @bytes of the staged body.  -EBADMSG. */
int wf_outgoing_taken(struct wf_outgoing *p, uint64_t bytes)
{
	struct wf_outgoing_staging *staging = p->staging;

	if (!staging || !p->stage->bounce || bytes < staging->taken || bytes > staging->filled)
		return -EBADMSG;
	staging->taken = bytes;
	if (p->state == WF_OUTGOING_OFFERED)
		fill(p);
	return 0;
}

/*
 * May a reader that would take a handle have one?  A reader that has one goes on so over any
 * rail, for it is not known here how much is copied.
 */
static bool may_hand(const struct wf_outgoing *p, const struct wf_rail_caps *caps)
{
	return is_handed(p) || (p->stage && !p->stage->bounce && caps->same_host &&
			     p->path.sum_kind == WF_BODY_SUM_NONE);
}

/* Offer the body by its handle.  Returns false: its memory has none, as in a memory pool. */
static bool hand(struct wf_outgoing *p, struct wf_cuda_export *export, struct wf_body *body)
{
	struct wf_error e;

	if (wf_cuda_export(p->body, export, &e))
		return false;
	*body = describe(p);
	body->way = WF_BODY_HANDLE;
	body->address = export->offset;
	body->key = export->number;
	body->handle = (const uint8_t *)export->handle.bytes;
	p->path.way = WF_BODY_HANDLE;
	close_grants(p);
	p->offer.direct = false;
	return true;
}

/*
 * Offer a body that is read: in place, or from its bounce buffer.  WF_TRANSFER_LATER: the pool has
 * none yet.
 */
static int open_again(struct wf_outgoing *p, struct wf_body *body, struct wf_error *e)
{
	int err = agree_to_stage(p, e);

	if (!err && p->stage && !p->offer.direct)
		err = wf_stage_take_bounce(p->stage, e);
	if (err == -EAGAIN) {
		wait_for_room(p);
		return WF_TRANSFER_LATER;
	}
	if (!err)
		err = grant(p, e);
	if (err)
		return err;
	*body = describe(p);
	/* A reader that had a handle can't have mapped it. */
	p->path.way = body->way;
	return 0;
}

/* Offer the body on the rail in use, if that meets the terms.  WF_TRANSFER_LATER: not yet. */
static int offer_again(struct wf_outgoing *p, bool handle, struct wf_cuda_export *export,
		       struct wf_body *body, struct wf_error *e)
{
	const struct wf_rail_caps *caps = wf_link_caps(wf_link_real(p->link));
	int err = wf_terms_rail(p->terms, wf_link_real(p->link), caps, e);
	bool may_direct, was_direct = p->offer.direct;

	if (!err)
		err = wf_terms_seal(p->terms, wf_link_real(p->link), e);
	if (err)
		return err;
	drop_parcel(p);
	handle = handle && may_hand(p, caps);
	may_direct = may_reach(p);
	if ((handle || may_direct) && !wf_stage_ready(p->stage)) {
		p->staging->awaited = true;
		return WF_TRANSFER_LATER;
	}
	if (handle && hand(p, export, body))
		return 0;
	p->offer.direct = may_direct && reach(p);
	/* The registration of the device is not that of the buffer, which gets its own. */
	if (was_direct && !p->offer.direct)
		close_grants(p);
	return open_again(p, body, e);
}

int wf_outgoing_tell(struct wf_link *link, uint8_t priority, const struct wf_record_offer *offer)
{
	uint8_t bytes[WF_RECORD_OFFER_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	wf_record_offer_put(&w, offer);
	return wf_message_post_copy(link, priority, WF_RECORD_OFFER, bytes, (size_t)(w.at - bytes));
}

/*
 * Has one of several readers been told that @p can't be offered anew?  No recall tells the others,
 * which ask by themselves.
 */
static bool is_void(const struct wf_outgoing *p)
{
	return p->class->shared && p->offer.recall && !p->told;
}

/*
 * Answer a peer that lost its rail in the middle, or wants a body that has to be staged, by its
 * handle if that can be; or that has copied all by a handle.  -ENOMEM: the peer is to ask again.
 */
int wf_outgoing_resume(struct wf_outgoing *p, uint64_t pull, uint8_t status)
{
	bool handle = status == WF_RESUME_HANDLE || status == WF_RESUME_COPIED;
	struct wf_record_offer offer = { .pull = pull };
	struct wf_outgoing_staging *staging = p->staging;
	struct wf_link *link = wf_link_real(p->link);
	struct wf_cuda_export export;
	struct wf_error why;
	int err;

	if (p->state == WF_OUTGOING_WITHDRAWING)
		return is_void(p) ? wf_outgoing_tell(p->link, p->terms->priority, &offer) : 0;
	if (p->stage && p->path.sum_kind != WF_BODY_SUM_NONE && need_summing(p))
		return -ENOMEM;
	p->offer.resuming = pull;
	p->offer.resume_status = status;
	if (staging) {
		staging->awaited = false;
		wf_pool_unwait(&link->engine->pool, &staging->bounce_waiter);
	}
	if (wf_terms_wait(p->terms, link)) {
		wf_loop_timer(&link->engine->loop, &p->quiet_timer,
			      link->engine->loop.now_ns + WF_TERMS_WAIT_NS, resume_again);
		return 0;
	}
	wf_link_record(link, WF_RECORDER_OFFER_AGAIN, p->offer.id, pull);
	p->path.retries += status != WF_RESUME_COPIED &&
			   (!staging || staging->reader || p->offer.direct || is_handed(p));
	/* Bytes that have passed through the buffer for one reader are gone for another. */
	if (staging && staging->reader && staging->reader != pull)
		err = wf_error_set(&why, -EPROTO, "%s reads a staged body twice",
				   wf_link_label(link));
	else
		err = offer_again(p, handle, &export, &offer.body, &why);
	if (err == WF_TRANSFER_LATER)
		return 0;
	if (wf_outgoing_tell(p->link, p->terms->priority, &offer))
		return -ENOMEM;
	if (err) {
		fail_later(p, &why);
		return 0;
	}
	p->path.caps = wf_link_caps(link);
	/* Closing an endpoint stops no copy of the reader's. */
	p->offer.connected = p->path.caps->connected && !is_handed(p);
	if (offer.body.way == WF_BODY_STAGED) {
		staging->reader = pull;
		fill(p);
	}
	return 0;
}

/* Open the body on the lanes, too, as the reader asks.  -ENOMEM: the peer is to ask again. */
int wf_outgoing_spread(struct wf_outgoing *p, uint64_t pull)
{
	struct wf_link *link = wf_link_real(p->link);
	struct wf_grant_span span = readable(p);

	if (!p->offer.grant.key || !p->offer.connected ||
	    p->offer.grant_epoch != link->probe.epoch || p->state != WF_OUTGOING_OFFERED)
		return 0;
	return wf_stripe_tell(&p->offer.spread, link, pull, p->terms->priority, p->class->shared,
			      &span);
}

/* Encrypt bytes of the body for a read of the peer's.  -ENOMEM: the peer is to ask again. */
int wf_outgoing_seal(struct wf_outgoing *p, const struct wf_parcel_ask *ask)
{
	struct wf_link *link = wf_link_real(p->link);
	struct wf_grant_span span = readable(p);
	struct iovec from[WF_PARCEL_RANGES_MAX];

	if (!wf_link_caps(link) || !wf_seals_bodies(link))
		return wf_parcels_refuse(&p->transfer->parcels, link, ask, WEFT_RESOURCE_EXHAUSTED);
	if (p->state != WF_OUTGOING_OFFERED || !span.at ||
	    (p->stage && p->staging->reader != ask->pull))
		return wf_parcels_refuse(&p->transfer->parcels, link, ask, WEFT_NOT_FOUND);
	/* Bytes of a buffer that is not filled yet are another's. */
	if (p->stage)
		span.bytes = WF_MIN(span.bytes, p->staging->filled);
	for (unsigned i = 0; i < ask->count; i++) {
		const struct wf_parcel_range *range = &ask->ranges[i];

		if (range->at > span.bytes || range->bytes > span.bytes - range->at)
			return -EBADMSG;
		from[i] = (struct iovec){ (uint8_t *)span.at + range->at, range->bytes };
	}
	return wf_parcels_seal(&p->transfer->parcels, link, ask, from);
}

/* Tell the reader the sums of the next pieces of the body.  -ENOMEM: the peer is to ask again. */
int wf_outgoing_check(struct wf_outgoing *p, uint64_t pull)
{
	if (p->state != WF_OUTGOING_OFFERED || p->path.sum_kind == WF_BODY_SUM_NONE)
		return 0;
	if (need_summing(p))
		return -ENOMEM;
	if (!p->summing->asked)
		p->path.matched_ns = p->transfer->engine->loop.now_ns;
	if (!p->stage)
		wf_sender_sums_ready(p->summing, p->body, p->body_bytes, p->body_bytes);
	wf_sender_sums_ask(p->summing, p->body_bytes, pull);
	return 0;
}

/* Handle the loss of the rail.  On a connected rail that makes the body quiet. */
void wf_outgoing_paused(struct wf_outgoing *p)
{
	if (!p->offer.connected)
		return;
	if (p->state == WF_OUTGOING_WITHDRAWING)
		end_why(p);
	else
		close_grants(p);
}

void wf_outgoing_fail(struct wf_outgoing *p, const struct wf_error *e)
{
	if (p->state == WF_OUTGOING_WITHDRAWING || p->why.code)
		end_why(p);
	else if (p->state != WF_OUTGOING_ENDED)
		end(p, e);
}

void wf_outgoing_describe(const struct wf_outgoing *p, char *text, size_t bytes)
{
	const char *peer = p->link ? wf_link_label(wf_link_real(p->link)) : "";
	char wait[WF_POOL_TEXT_BYTES];

	switch (p->state) {
	case WF_OUTGOING_ENDED:
		(void)snprintf(text, bytes, "it has left");
		break;
	case WF_OUTGOING_WAITING:
		(void)snprintf(text, bytes, "no rail to %s yet", peer);
		break;
	case WF_OUTGOING_QUEUED:
		(void)snprintf(text, bytes, "not all of it has left yet");
		break;
	case WF_OUTGOING_OFFERED:
		if (p->staging && !wf_list_empty(&p->staging->bounce_waiter.node)) {
			wf_pool_describe(&p->transfer->engine->pool, p->stage->bounce_bytes, wait);
			(void)snprintf(text, bytes, "%s", wait);
			break;
		}
		if (p->staging && p->staging->awaited) {
			(void)snprintf(text, bytes, "the program's stream has not come so far");
			break;
		}
		(void)snprintf(text, bytes, "offered over %s, and %s has not received it",
			       p->path.caps->provider, peer);
		break;
	case WF_OUTGOING_WITHDRAWING:
		(void)snprintf(text, bytes, "taken back, and %s has not answered: %s", peer,
			       wf_reason_text(&p->why));
		break;
	}
}

uint64_t wf_outgoing_progress(const struct wf_outgoing *p)
{
	uint64_t progress = wf_progress_add(0, p->state);

	/* An outgoing body in a link's queue comes further when the queue does. */
	if (p->state == WF_OUTGOING_QUEUED)
		progress = wf_progress_add(progress, wf_link_real(p->link)->tx.sequence.acked);
	/* A reader that reads in place says nothing before the end. */
	if (p->state == WF_OUTGOING_OFFERED) {
		if (p->staging) {
			progress = wf_progress_add(progress, p->staging->filled);
			progress = wf_progress_add(progress, p->staging->taken);
		}
		if (p->summing)
			progress = wf_progress_add(progress, p->summing->told);
	}
	return progress;
}
