/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/pull.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transfer/plan.h"
#include "transfer/reads.h"
#include "transfer/yield.h"
#include "util/clock.h"
#include "util/progress.h"
#include "util/status.h"

/*
 * Bounds before a pull gives up: failures in a row, and time since the first.  Connected: each
 * failure ends a connection, at once where the offer is broken; a connection that ends for other
 * reasons does so less often, though on a lossy network some may end before a chunk is there.
 * Shared: a spell of errors that meets some reads is no broken offer.
 */
#define TRIES_CONNECTED_MAX 15
#define TRIES_SHARED_MAX 7
#define FAILING_CONNECTED_NS (5 * WF_NS_PER_S)
#define FAILING_SHARED_NS (50 * WF_NS_PER_MS)
#define FETCH_RETRY_NS WF_NS_PER_MS /* pause before memory for a fetch is asked for again */
#define RETRY_NS (20 * WF_NS_PER_US)         /* pause after the rail returned -EAGAIN */
#define STOP_SHARED_NS (1500 * WF_NS_PER_MS) /* until the endpoint is reopened over the reads */

static void read_done(struct wf_engine_read *read, int status);
static void timer(struct wf_timer *t);
static bool judge(struct wf_pull *pull);

static void go_on(struct wf_pace_share *share)
{
	wf_pull_feed(WF_CONTAINER(share, struct wf_pull, share));
}

/* Note whether the rail takes no read of @pull: a refused read counts as one that does not end. */
static void note_refusal(struct wf_pull *pull, bool refused)
{
	if (refused && !pull->refused)
		wf_depth_read_begins(&pull->link->reads, pull->link->engine->loop.now_ns);
	else if (!refused && pull->refused)
		wf_depth_reads_end(&pull->link->reads, 1, pull->link->engine->loop.now_ns);
	pull->link->yields.refused += refused - pull->refused;
	pull->refused = refused;
}

static void count_failure(struct wf_pull *pull)
{
	if (!pull->failures.count++)
		pull->failures.since_ns = pull->transfer->engine->loop.now_ns;
}

/*
 * A connection ends for other peers' sake, too, which says nothing of these reads: a peer that
 * gives up several others in a row closes it once for each.
 */
static bool is_hopeless(const struct wf_pull *pull)
{
	uint64_t for_ns = pull->transfer->engine->loop.now_ns - pull->failures.since_ns;

	if (pull->rail.connected)
		return pull->failures.count > TRIES_CONNECTED_MAX && for_ns >= FAILING_CONNECTED_NS;
	return pull->failures.count > TRIES_SHARED_MAX && for_ns >= FAILING_SHARED_NS;
}

/* Returns what the sender of the body hears of a failure with @code. */
static enum weft_status told(const struct wf_pull *pull, int code)
{
	bool on_the_way = code == -EIO || code == -EPROTO;

	return pull->job.way_only && !on_the_way ? WEFT_OK : wf_status_of(code);
}

/* Send the answer about the offer. */
static void say(struct wf_pull *pull, struct wf_link *link, int code)
{
	if (pull->stop.tell_withdrawn)
		wf_answer_withdrawn(pull->answer, link);
	else
		wf_answer_pulled(pull->answer, link, told(pull, code));
	pull->answer = NULL;
}

/* Make bytes that a card has written to a device visible to the program's kernels. */
static int flush(struct wf_pull *pull)
{
	if (pull->way != WF_PULL_WAY_STRAIGHT)
		return 0;
	return wf_cuda_flush(pull->job.stage->body->place.device, &pull->stop.why);
}

/*
 * Could another pull begin with the body?  Not where the owner counts sums or staged pieces that
 * it gave to this one.
 */
static bool may_be_released(const struct wf_pull *pull)
{
	return pull->stop.releases && !pull->stop.tell_withdrawn && pull->sums.count <= 1 &&
	       pull->way != WF_PULL_WAY_IMPORTED &&
	       (pull->body.way != WF_BODY_STAGED || !pull->began_staged);
}

/* Note in the path which way the body has really gone. */
static void note_way(struct wf_pull *pull)
{
	if (pull->way == WF_PULL_WAY_IMPORTED)
		pull->path.way = WF_BODY_HANDLE;
	pull->path.straight = pull->way == WF_PULL_WAY_STRAIGHT;
	if (pull->path.straight)
		pull->path.way = pull->body.way;
}

/* End @pull, whose destination is quiet: tell the owner of the bytes, then ours. */
static void finish(struct wf_pull *pull)
{
	struct wf_engine *engine = pull->transfer->engine;
	struct wf_link *link = pull->link;
	bool well = pull->state != WF_PULL_STOPPING && !flush(pull);
	bool view = pull->way == WF_PULL_WAY_VIEW;
	struct wf_error why = pull->stop.why;

	wf_link_record(link, WF_RECORDER_PULL_END, pull->id, well ? 0 : (uint64_t)why.code);
	wf_timer_stop(&engine->loop.timers, &pull->timer);
	wf_pool_unwait(&engine->pool, &pull->bounce_waiter);
	wf_pace_leave(&pull->share);
	wf_yield_leave(pull);
	note_refusal(pull, false);
	wf_yield_next(link);
	wf_grant_close(&pull->grant);
	pull->path.lanes = wf_stripe_carried(pull->spread);
	note_way(pull);
	wf_stripe_close(pull->spread);
	pull->spread = NULL;
	wf_fetch_close(pull);
	wf_reader_sums_close(&pull->sums);
	wf_table_remove(&pull->transfer->pulls, pull->id);
	wf_list_remove(&pull->node);
	if (well)
		wf_counters_add(view ? &engine->counters.bytes_viewed
				     : &engine->counters.bytes_pulled,
				pull->body.bytes);
	/* The buffer is given back before the owner of the stage may free it. */
	if (pull->way == WF_PULL_WAY_IMPORTED)
		wf_stage_give_bounce(pull->job.stage);
	/* All bytes are on the device. */
	if (pull->way == WF_PULL_WAY_STRAIGHT && well)
		wf_stage_skip(pull->job.stage, pull->body.bytes);
	/* An owner that hears of a failure takes a body of no chunks for one that was not read. */
	if (pull->answer)
		pull->answer->chunks = !well && pull->writes ? WF_MAX(pull->path.chunks, 1U)
							      : pull->path.chunks;
	if (pull->answer && (well || !may_be_released(pull)))
		say(pull, link, well ? 0 : why.code);
	wf_link_unwatch(link);
	pull->job.done(pull, well ? NULL : &why);
	wf_link_put(link);
}

/* Is there nothing left to wait for? */
static bool whole(const struct wf_pull *pull)
{
	return pull->at.got_bytes == pull->body.bytes && wf_reader_sums_right(&pull->sums) &&
	       (pull->way != WF_PULL_WAY_IMPORTED || pull->confirmed) &&
	       (!pull->job.drains || pull->way != WF_PULL_WAY_STAGED ||
		pull->job.stage->ended == pull->body.bytes);
}

/* Is anything under way that reads the owner's memory? */
static bool reads(const struct wf_pull *pull)
{
	return pull->busy || (pull->way == WF_PULL_WAY_IMPORTED && !wf_stage_quiet(pull->job.stage));
}

/* Is anything under way that touches the destination? */
static bool is_busy(const struct wf_pull *pull)
{
	return reads(pull) || (pull->job.drains && !wf_stage_quiet(pull->job.stage));
}

/* Stop copies that end with @pull. */
static void stop_copies(struct wf_pull *pull)
{
	if (pull->way == WF_PULL_WAY_IMPORTED || pull->job.drains)
		wf_stage_stop(pull->job.stage);
}

static void arm(struct wf_pull *pull, uint64_t in_ns)
{
	struct wf_engine *engine = pull->transfer->engine;

	wf_loop_timer(&engine->loop, &pull->timer, engine->loop.now_ns + in_ns, timer);
}

void wf_pull_go_on(struct wf_pull *pull)
{
	arm(pull, wf_yield_pauses(pull) ? 1 : 0);
}

/* Ask for sums in time for the bytes up to @end.  -ENOMEM: later. */
static int ask_sums(struct wf_pull *pull, uint64_t end)
{
	while (wf_reader_sums_ask(&pull->sums, end)) {
		int err = wf_message_post_small(pull->link, pull->yield.priority, WF_RECORD_CHECK,
						pull->body.offer, pull->id, 0);

		if (err)
			return err;
		wf_reader_sums_asked(&pull->sums);
	}
	return 0;
}

/* Sum up the next piece of a view; one in a turn, for a body may be long. */
static bool sum_view(struct wf_pull *pull)
{
	uint64_t at = pull->at.summed_bytes;
	uint64_t bytes = WF_MIN(wf_body_piece_bytes(pull->body.bytes), pull->body.bytes - at);

	if (pull->way != WF_PULL_WAY_VIEW || pull->state == WF_PULL_STOPPING ||
	    !pull->sums.count || !bytes)
		return false;
	if (ask_sums(pull, at + bytes)) {
		arm(pull, RETRY_NS);
		return true;
	}
	pull->at.summed_bytes += bytes;
	wf_reader_sums_arrived(&pull->sums, pull->into, pull->into_bytes, at, bytes);
	judge(pull);
	if (pull->state != WF_PULL_STOPPING)
		arm(pull, 0);
	return true;
}

/*
 * Have the rail end the reads of @pull, which stops.  A rail that the link has left was closed or
 * reopened for it then, and the one in use now is not to blame.
 */
static void end_reads(struct wf_pull *pull)
{
	struct wf_engine_rail *on = pull->link->on;

	if (!on || on != pull->rail.on)
		return;
	if (pull->rail.connected)
		wf_link_rail_failed(pull->link, "reads do not end");
	else
		on->reopen = true;
}

static void timer(struct wf_timer *t)
{
	struct wf_pull *pull = WF_CONTAINER(t, struct wf_pull, timer);
	bool stopping = pull->state == WF_PULL_STOPPING;

	if (sum_view(pull))
		return;
	if (whole(pull) || (stopping && !is_busy(pull))) {
		finish(pull);
	} else if (stopping && !pull->busy) {
		return; /* nothing hastens the copies */
	} else if (pull->state == WF_PULL_EARLY) {
		pull->state = WF_PULL_WAITING;
		if (pull->link->state == WF_LINK_UP)
			wf_pull_up(pull);
	} else if (!stopping && is_hopeless(pull)) {
		wf_link_rail_failed(pull->link, "reads are refused");
	} else if (!stopping) {
		wf_pull_feed(pull);
	} else {
		end_reads(pull);
	}
}

static void stop(struct wf_pull *pull, const struct wf_error *e)
{
	/* The limit of a stop runs already: another reason to stop gives no more time. */
	if (pull->state == WF_PULL_STOPPING && pull->timer.armed)
		return;
	if (pull->state != WF_PULL_STOPPING) {
		pull->state = WF_PULL_STOPPING;
		pull->stop.why = *e;
		wf_pace_leave(&pull->share);
		wf_yield_leave(pull);
		stop_copies(pull);
		wf_fetch_end_asked(pull);
	}
	/* A pull never ends inside a caller's own call: in the next turn at the soonest. */
	arm(pull, !pull->busy ? 0 : pull->rail.connected ? WF_TRANSFER_CLOSE_NS : STOP_SHARED_NS);
}

static void read_no_more(struct wf_pull *pull)
{
	if (pull->state == WF_PULL_READING)
		pull->state = WF_PULL_WAITING;
	wf_yield_leave(pull);
}

/* Ask the owner for an offer that holds on the rail in use. */
static void ask(struct wf_pull *pull)
{
	bool copied = pull->way == WF_PULL_WAY_IMPORTED && pull->at.got_bytes == pull->body.bytes;
	uint8_t how = copied ? WF_RESUME_COPIED : pull->job.handle ? WF_RESUME_HANDLE : 0;
	struct wf_error e;

	/* The owner may assume that its bytes are not read until it has answered. */
	if (pull->state == WF_PULL_ASKED || reads(pull))
		return;
	wf_link_record(pull->link, WF_RECORDER_PULL_ASK, pull->id, pull->at.got_bytes);
	wf_grant_close(&pull->grant);
	if (wf_message_post_small(pull->link, pull->yield.priority, WF_RECORD_RESUME,
				  pull->body.offer, pull->id, how)) {
		wf_error_set(&e, -ENOMEM, "no memory to resume a pull");
		stop(pull, &e);
		return;
	}
	pull->state = WF_PULL_ASKED;
	/* By any answer the owner may stage the body for this pull from now on. */
	pull->began_staged |= pull->body.way == WF_BODY_STAGED;
}

/* Is the rest long enough for lanes, and are there any? */
static bool may_spread(const struct wf_pull *pull)
{
	return pull->state == WF_PULL_READING && wf_lane_count(pull->link) && !pull->fetches &&
	       pull->body.bytes - pull->at.next >= WF_STRIPE_CHUNKS_MIN * pull->rail.chunk_bytes;
}

void wf_pull_lane_up(struct wf_pull *pull)
{
	/* Without memory to ask, the pull goes on over the rail alone. */
	if (may_spread(pull))
		(void)wf_message_post_small(pull->link, pull->yield.priority, WF_RECORD_SPREAD,
					    pull->body.offer, pull->id, 0);
}

/*
 * Go back to the beginning of a piece: bytes of a piece that is begun are gone from the buffer at
 * one end or the other.
 */
static void restart(struct wf_pull *pull)
{
	uint64_t piece = wf_body_piece_bytes(pull->body.bytes);

	wf_reads_rewind(pull, wf_reads_got(pull) / piece * piece);
	wf_stripe_close(pull->spread);
	pull->spread = NULL;
}

/* The memory that reads write: the destination, or the buffer before it. */
static struct wf_grant_span target(const struct wf_pull *pull)
{
	return (struct wf_grant_span){
		.at = pull->into,
		.bytes = pull->into_bytes,
		.device = pull->way == WF_PULL_WAY_STRAIGHT ? &pull->job.stage->body->place : NULL,
	};
}

static int open_target(struct wf_pull *pull, const struct wf_grant_span *span, struct wf_error *e)
{
	struct wf_link *link = pull->link;

	if (pull->fetches)
		return 0;
	return wf_grant_local(&pull->grant, link->on->rail, &link->engine->pool, span, e);
}

/* Does one allocation hold all of the destination, so that one registration does? */
static bool is_in_one(const struct wf_pull *pull)
{
	const struct wf_kind_place *place = &pull->job.stage->body->place;
	uintptr_t at = (uintptr_t)pull->job.into;

	return !pull->job.blocks ||
	       (at >= place->start && at < place->end && pull->job.blocks_span <= place->end - at);
}

/*
 * May reads go to the device itself?  All of them do, or none; and not over a rail on which they
 * have failed, unless there is nothing else.
 */
static bool may_be_straight(const struct wf_pull *pull)
{
	bool only = pull->job.terms->no_staging, straight = pull->way == WF_PULL_WAY_STRAIGHT;

	if (pull->sums.count || (pull->at.next && !straight) || !is_in_one(pull) ||
	    (straight && pull->rail.on == pull->link->on && !only))
		return false;
	return wf_stage_is_reached(pull->job.stage, pull->link, only);
}

/*
 * Register the body on its device.  WF_TRANSFER_LATER, or -EOPNOTSUPP with a sentence: the rail
 * does not reach it.
 */
static int aim_straight(struct wf_pull *pull, struct wf_error *e)
{
	struct wf_grant_span body = {
		.at = pull->job.blocks ? pull->job.into : pull->job.stage->at,
		.bytes = pull->job.blocks ? pull->job.blocks_span : pull->body.bytes,
		.device = &pull->job.stage->body->place,
	};
	int err;

	if (!wf_stage_ready(pull->job.stage))
		return WF_TRANSFER_LATER;
	err = open_target(pull, &body, e);
	if (err) {
		wf_log(&pull->transfer->engine->log, WF_LOG_INFO,
		       "%s: a body goes through the host: %s", wf_link_label(pull->link), e->text);
		return -EOPNOTSUPP;
	}
	wf_stage_give_bounce(pull->job.stage);
	pull->way = WF_PULL_WAY_STRAIGHT;
	pull->into = body.at;
	pull->into_bytes = body.bytes;
	return 0;
}

static void retry_bounce(struct wf_pool_waiter *waiter)
{
	struct wf_pull *pull = WF_CONTAINER(waiter, struct wf_pull, bounce_waiter);

	if (pull->state != WF_PULL_STOPPING)
		arm(pull, 0);
}

/* Take a buffer for the stage.  WF_TRANSFER_LATER: the pool has none. */
static int take_room(struct wf_pull *pull, struct wf_error *e)
{
	int err = wf_stage_take_bounce(pull->job.stage, e);

	if (err != -EAGAIN)
		return err;
	wf_link_record(pull->link, WF_RECORDER_POOL_WAIT, pull->job.stage->bounce_bytes, 0);
	pull->bounce_waiter.retry = retry_bounce;
	wf_pool_wait(&pull->transfer->engine->pool, &pull->bounce_waiter);
	return WF_TRANSFER_LATER;
}

/* Send reads through the stage's buffer; bytes that a card has brought so far are on the device. */
static int aim_at_room(struct wf_pull *pull, struct wf_error *e)
{
	struct wf_grant_span bounce;
	int err;

	err = wf_terms_stage(pull->job.terms, pull->job.stage->body->place.device, e);
	if (!err)
		err = take_room(pull, e);
	if (!err && pull->way == WF_PULL_WAY_STRAIGHT)
		err = wf_cuda_flush(pull->job.stage->body->place.device, e);
	if (err)
		return err;
	if (pull->way == WF_PULL_WAY_STRAIGHT) {
		restart(pull);
		wf_stage_skip(pull->job.stage, pull->at.next);
	}
	bounce = (struct wf_grant_span){ .at = pull->job.stage->bounce,
				       .bytes = pull->job.stage->bounce_bytes };
	pull->way = WF_PULL_WAY_STAGED;
	pull->into = bounce.at;
	pull->into_bytes = bounce.bytes;
	return open_target(pull, &bounce, e);
}

/*
 * Register the destination on the rail in use.  WF_TRANSFER_LATER: not yet; the pull goes on by
 * itself.
 */
static int aim(struct wf_pull *pull, struct wf_error *e)
{
	struct wf_grant_span span = target(pull);
	int err = -EOPNOTSUPP;

	wf_pool_unwait(&pull->transfer->engine->pool, &pull->bounce_waiter);
	if (pull->way == WF_PULL_WAY_READ)
		return open_target(pull, &span, e);
	if (may_be_straight(pull))
		err = aim_straight(pull, e);
	return err == -EOPNOTSUPP ? aim_at_room(pull, e) : err;
}

/* Let fetches make the reads where bodies are sealed.  -ENOMEM, -EBADFD with a sentence. */
static int choose_reads(struct wf_pull *pull, struct wf_error *e)
{
	int err = wf_terms_seal(pull->job.terms, pull->link, e);

	if (err)
		return err;
	if (!wf_seals_bodies(pull->link))
		wf_fetch_close(pull);
	else if (wf_fetch_open(pull))
		return wf_error_set(e, -ENOMEM, "no memory for the reads of a sealed body");
	return 0;
}

/* Set up the reads over the rail in use, as the plan says. */
static void plan_reads(struct wf_pull *pull, const struct wf_rail_caps *caps)
{
	const struct wf_options *options = &pull->link->engine->options;
	struct wf_plan plan;

	/* Chunk and depth alone are asked for: the way was the owner's choice. */
	wf_plan_make(caps, options, pull->body.bytes, false, 0, &plan);
	pull->rail = (struct wf_pull_rail){
		.on = pull->link->on,
		.chunk_bytes = plan.chunk_bytes,
		.depth = plan.depth,
		.spans_max = caps->read_spans_max,
		.helper = plan.helper,
		.connected = caps->connected,
		.quiet_by_close = caps->connected || caps->sync_read,
	};
	/* A read that fails may be made again over a rail where it is a fetch. */
	if (pull->link->seals.bodies)
		pull->rail.chunk_bytes = WF_MIN(plan.chunk_bytes, WF_PARCEL_BYTES_MAX);
	if (!pull->fetches)
		return;
	/* As many bytes are under way, in parcels. */
	pull->rail.chunk_bytes = WF_MIN(plan.chunk_bytes, WF_FETCH_BYTES);
	pull->rail.depth = (uint32_t)WF_MIN(plan.depth * plan.chunk_bytes / pull->rail.chunk_bytes,
					    (uint64_t)WF_PULL_DEPTH_MAX);
	pull->rail.spans_max = WF_PARCEL_RANGES_MAX;
	pull->rail.helper = false;
}

/* Register the destination and read: the offer holds on the rail in use. */
static void begin(struct wf_pull *pull)
{
	struct wf_link *link = pull->link;
	const struct wf_rail_caps *caps = wf_link_caps(link);
	uint32_t spans_max = pull->rail.spans_max;
	struct wf_error e;
	int err;

	wf_grant_close(&pull->grant);
	if (wf_terms_wait(pull->job.terms, link)) {
		pull->state = WF_PULL_EARLY;
		arm(pull, WF_TERMS_WAIT_NS);
		return;
	}
	/* The terms hold for each rail that the pull goes on over. */
	if (wf_terms_rail(pull->job.terms, link, caps, &e)) {
		stop(pull, &e);
		return;
	}
	err = choose_reads(pull, &e);
	/* A parcel's address is not the body's: the owner seals bodies, and here none are. */
	if (!err && pull->body.parcel.id && !pull->fetches) {
		ask(pull);
		return;
	}
	if (!err)
		err = aim(pull, &e);
	if (err == WF_TRANSFER_LATER) {
		pull->state = WF_PULL_EARLY;
		return;
	}
	if (err) {
		stop(pull, &e);
		return;
	}
	plan_reads(pull, caps);
	/* A read of several blocks may be too much for this rail. */
	if (pull->job.blocks && pull->rail.spans_max < spans_max)
		wf_reads_rewind(pull, wf_reads_got(pull));
	pull->path.registered = pull->grant.own != NULL;
	pull->path.cipher = wf_path_cipher(link, pull->fetches);
	pull->path.caps = caps;
	pull->state = WF_PULL_READING;
	wf_pull_lane_up(pull);
	wf_pull_feed(pull);
}

/* Post as many reads as depth, the pace of all bodies and the rails allow. */
void wf_pull_feed(struct wf_pull *pull)
{
	struct wf_link *link = pull->link;
	struct wf_stripe_way *over;
	struct wf_pull_read *r;
	int rc;

	while (pull->state == WF_PULL_READING && link->state == WF_LINK_UP &&
	       (r = wf_reads_next(pull))) {
		bool has_way = wf_reads_find_way(pull, &over);

		r->read.done = read_done;
		if (wf_yield_must(pull))
			return;
		if (!has_way && !wf_reads_for_helper(pull))
			return;
		if (!wf_pace_admits(&pull->share, r->count, wf_reads_alone_bytes(pull)))
			return;
		if (ask_sums(pull, r->offset + r->count)) {
			arm(pull, RETRY_NS);
			return;
		}
		r->aside = !over && wf_reads_post_aside(pull, r);
		if (!r->aside && !has_way)
			return;
		rc = r->aside ? 0 : wf_reads_post(pull, r, over);
		if (rc && over && rc != -EAGAIN) {
			wf_lane_failed(over->lane, wf_error_name(rc));
			continue;
		}
		if (rc) {
			if (rc != -EAGAIN)
				count_failure(pull);
			if (pull->fetches)
				wf_yield_leave(pull); /* others may have the memory */
			else if (!over)
				note_refusal(pull, true);
			arm(pull, pull->fetches ? FETCH_RETRY_NS : RETRY_NS);
			return;
		}
		if (!over)
			note_refusal(pull, false);
		if (r->state == WF_PULL_READ_FREE)
			wf_reads_asked(pull, r);
		else if (!wf_fetch_was_put_off(pull, r))
			pull->path.retries++;
		r->state = WF_PULL_READ_BUSY;
		pull->writes = true;
		wf_reads_begin(pull, r, over);
		wf_yield_took(pull);
	}
	wf_yield_done(pull);
}

/* Drain the bytes that have come, and let the owner fill its buffer anew. */
static void pass_on(struct wf_pull *pull)
{
	uint64_t piece = wf_body_piece_bytes(pull->body.bytes), end = wf_reads_got(pull);
	struct wf_error e;

	if (pull->way == WF_PULL_WAY_STAGED)
		wf_stage_go(pull->job.stage, end);
	/*
	 * More may have come before the body was staged there; and the rest of a piece may be
	 * read again.
	 */
	end = WF_MIN(end, pull->at.filled) / piece * piece;
	if (pull->body.way != WF_BODY_STAGED || end == pull->body.bytes || end <= pull->at.taken)
		return;
	pull->at.taken = end;
	if (wf_message_post_small(pull->link, pull->yield.priority, WF_RECORD_TAKEN,
				  pull->body.offer, end, 0)) {
		wf_error_set(&e, -ENOMEM, "no memory to say how far a body is read");
		stop(pull, &e);
	}
}

void wf_pull_report(struct wf_pull *pull, uint64_t bytes)
{
	if (!pull->job.came || bytes <= pull->at.reported)
		return;
	pull->at.reported = bytes;
	pull->job.came(pull, bytes);
}

static enum wf_body_way way_of(const struct wf_pull *pull)
{
	if (pull->way == WF_PULL_WAY_VIEW)
		return WF_BODY_VIEW;
	return pull->job.stage || pull->body.way == WF_BODY_STAGED ? WF_BODY_STAGED : WF_BODY_PULL;
}

/* Check sums and size after news.  Returns whether all bytes have come, or the pull stops. */
static bool judge(struct wf_pull *pull)
{
	struct wf_error e;

	if (wf_reader_sums_wrong(&pull->sums, pull->link, pull->path.caps,
				 way_of(pull), &e)) {
		pull->damaged = true;
		stop(pull, &e);
		return true;
	}
	/*
	 * The pull ends in the next turn: a withdrawal that came before the last bytes is seen
	 * first.
	 */
	if (whole(pull))
		arm(pull, 0);
	return pull->at.got_bytes == pull->body.bytes;
}

static void read_done(struct wf_engine_read *read, int status)
{
	struct wf_pull_read *r = WF_CONTAINER(read, struct wf_pull_read, read);
	struct wf_pull *pull = r->pull;
	struct wf_error e;
	const struct wf_loop *loop = &pull->transfer->engine->loop;
	uint64_t turn_ns = loop->now_ns, offset = r->offset, count = r->count;
	struct wf_stripe_way *over = r->over;

	/* A process that was stopped meanwhile may have read bytes no longer offered. */
	if (!status && wf_keepalive_may_be_given_up(pull->link, wf_clock_now() - loop->looked_ns))
		status = -ESTALE;
	if (status)
		wf_link_record(pull->link, WF_RECORDER_READ_FAILED, r->count, (uint64_t)status);
	r->state = status ? WF_PULL_READ_AGAIN : WF_PULL_READ_FREE;
	pull->aside -= r->aside;
	/*
	 * Reads that fail together count once; a stale read is no failure, and a lane counts its
	 * own.
	 */
	if (status && !over && pull->state == WF_PULL_READING && status != -ESTALE)
		count_failure(pull);
	if (!status) {
		pull->failures.count = 0;
		pull->at.got_bytes += r->count;
		pull->path.chunks++;
		pull->path.helped += r->aside;
		pull->path.last_ns = turn_ns;
		wf_reads_learn(pull, r);
		if (!pull->path.first_ns)
			pull->path.first_ns = turn_ns;
		if (over)
			pull->spread->carried |= 1u << (over - pull->spread->ways);
		else
			wf_tx_progress(&pull->link->tx, pull->link->engine->loop.now_ns);
	}
	if (over)
		wf_reads_end_over(pull, over, 1, count);
	else
		wf_reads_end(pull, 1, count);
	wf_yield_next(pull->link);
	/* A share that went on inside may have found the lane closed. */
	if (status && over && over->lane)
		wf_lane_failed(over->lane, wf_error_name(status));
	if (!status) {
		/* The wire has new reads while the bytes are summed up. */
		if (wf_yield_pauses(pull))
			wf_pull_go_on(pull);
		else
			wf_pull_feed(pull);
		wf_reader_sums_arrived(&pull->sums, pull->into, pull->into_bytes, offset, count);
		if (pull->job.stage || pull->body.way == WF_BODY_STAGED)
			pass_on(pull);
		/* The job's owner knows how far a bounce buffer is drained. */
		if (pull->job.came && pull->way != WF_PULL_WAY_STAGED)
			wf_pull_report(pull, WF_MIN(wf_reads_got(pull), pull->at.filled));
	}
	if (pull->state == WF_PULL_STOPPING) {
		if (!is_busy(pull))
			finish(pull);
	} else if (is_hopeless(pull)) {
		wf_error_set(&e, -EIO, "reading from %s failed %u times: %s",
			     wf_link_label(pull->link), pull->failures.count,
			     wf_error_name(status));
		stop(pull, &e);
	} else if (!judge(pull) && !over && (status || pull->state != WF_PULL_READING)) {
		/*
		 * On a connected rail the endpoint's end follows; on a shared one the offer is
		 * made anew.
		 */
		read_no_more(pull);
		if (!pull->rail.connected || pull->fetches)
			ask(pull);
	}
}

void wf_pull_put_back(struct wf_pull *pull, struct wf_pull_read *r, int code)
{
	uint64_t pause_ns = 0;
	struct wf_error e;

	wf_link_record(pull->link, WF_RECORDER_READ_FAILED, r->count, (uint64_t)code);
	r->state = WF_PULL_READ_AGAIN;
	wf_reads_end(pull, 1, r->count);
	wf_yield_next(pull->link);
	if (pull->state == WF_PULL_STOPPING) {
		if (!is_busy(pull))
			finish(pull);
		return;
	}
	if (code == -ENOENT) {
		read_no_more(pull);
	} else {
		pause_ns = wf_fetch_pause_ns(pull, code);
		if (!pause_ns) {
			wf_error_set(&e, -EIO, "parts of a sealed body of %s failed in a row: %s",
				     wf_link_label(pull->link), wf_error_name(code));
			stop(pull, &e);
			return;
		}
	}
	if (pull->state != WF_PULL_READING)
		ask(pull);
	else
		arm(pull, pause_ns);
}

/* Finish a view: all its bytes are there, by no read of ours. */
static void see(struct wf_pull *pull)
{
	pull->path.way = WF_BODY_VIEW;
	pull->path.caps = wf_link_caps(pull->link);
	pull->path.first_ns = pull->path.last_ns = pull->transfer->engine->loop.now_ns;
	arm(pull, 0);
}

static void withdrawn(struct wf_answer *answer)
{
	struct wf_pull *pull = answer->owner;
	struct wf_error e;

	pull->stop.tell_withdrawn = true;
	wf_error_set(&e, -ECANCELED, "%s took its offer back", wf_link_label(pull->link));
	stop(pull, &e);
}

void wf_pull_lost(struct wf_pull *pull, const struct wf_error *e)
{
	if (pull->state != WF_PULL_STOPPING)
		pull->stop.why = *e;
	pull->state = WF_PULL_STOPPING;
	wf_pace_leave(&pull->share);
	wf_yield_leave(pull);
	stop_copies(pull);
	wf_fetch_end_asked(pull);
	if (pull->rail.quiet_by_close || !pull->busy)
		wf_pull_quiet(pull);
	/* On another rail, reopening it ends the reads, and wf_pull_quiet() follows. */
}

static void lost(struct wf_answer *answer, const struct wf_error *e)
{
	struct wf_pull *pull = answer->owner;

	/* Should reads outlive the link, another life of the peer's must not get the answer. */
	wf_answer_close(answer);
	pull->answer = NULL;
	wf_pull_lost(pull, e);
}

static const struct wf_answer_keeper keeper = {
	.withdrawn = withdrawn,
	.lost = lost,
};

/* Set all of @pull but for the part that its owner has set. */
static void set_up(struct wf_pull *pull, struct wf_transfer *t, struct wf_link *link,
		   const struct wf_body *body)
{
	const struct wf_stage *stage = pull->job.stage;
	bool view = pull->job.view, staged = body->way == WF_BODY_STAGED;

	/* Reads are set up one by one: a short body has one of them. */
	memset(&pull->damaged, 0, offsetof(struct wf_pull, reads) - offsetof(struct wf_pull, damaged));
	pull->transfer = t;
	pull->link = link;
	pull->yield.priority = WF_MAX(pull->job.terms->priority, body->priority);
	pull->body = *body;
	pull->way = view ? WF_PULL_WAY_VIEW : stage ? WF_PULL_WAY_STAGED : WF_PULL_WAY_READ;
	pull->into = pull->job.into;
	pull->into_bytes = stage ? stage->bounce_bytes : body->bytes;
	pull->from_bytes = pull->offered_bytes = body->bytes;
	/* All bytes of a view are there. */
	pull->at.next = pull->at.got_bytes = view ? body->bytes : 0;
	pull->at.filled = staged ? 0 : body->bytes;
	if (pull->job.blocks) {
		pull->body.bytes = pull->job.blocks_bytes;
		pull->at.filled = pull->job.blocks_known;
		pull->into_bytes = stage ? stage->bounce_bytes : pull->job.blocks_span;
	}
	/* The owner has no buffer yet. */
	pull->job.doubted |= staged;
	wf_list_init(&pull->bounce_waiter.node);
	wf_list_init(&pull->yield.node);
	wf_pace_share_init(&pull->share, &t->pace, pull->yield.priority, go_on);
}

int wf_pull_start(struct wf_transfer *t, struct wf_link *link, const struct wf_body *body,
		  struct wf_answer *answer, struct wf_pull *pull)
{
	int err;

	set_up(pull, t, link, body);
	err = wf_reader_sums_open(&pull->sums, body);
	if (err)
		goto refuse;
	err = wf_table_add(&t->pulls, pull, &pull->id);
	if (err)
		goto close_sums;
	err = ask_sums(pull, 0);
	if (err)
		goto forget;
	pull->answer = answer;
	if (answer) {
		/* The answer comes after all that is said of the offer before. */
		answer->priority = pull->yield.priority;
		answer->keeper = &keeper;
		answer->owner = pull;
	}
	wf_list_append(&link->work[WF_ABOVE_PULLS], &pull->node);
	wf_link_get(link);
	wf_link_watch(link, false);
	wf_link_record(link, WF_RECORDER_PULL, pull->id, body->bytes);
	if (pull->way == WF_PULL_WAY_VIEW)
		see(pull);
	else if (link->state == WF_LINK_UP)
		wf_pull_up(pull);
	return 0;

forget:
	wf_table_remove(&t->pulls, pull->id);
close_sums:
	wf_reader_sums_close(&pull->sums);
refuse:
	if (answer)
		wf_answer_pulled(answer, link, told(pull, -ENOMEM));
	return err;
}

void wf_pull_stop(struct wf_pull *pull, const struct wf_error *e)
{
	if (pull->state != WF_PULL_STOPPING)
		stop(pull, e);
}

void wf_pull_more(struct wf_pull *pull, uint32_t count, uint64_t bytes)
{
	pull->job.block_count += count;
	pull->job.blocks_known += bytes;
	pull->at.filled += bytes;
	if (pull->state != WF_PULL_STOPPING)
		wf_pull_feed(pull);
}

void wf_pull_release(struct wf_pull *pull, const struct wf_error *e)
{
	if (pull->state == WF_PULL_STOPPING)
		return;
	pull->stop.releases = true;
	stop(pull, e);
}

/* Does the body begin or cease to be staged?  Rails differ in which devices they reach. */
static bool changes(const struct wf_pull *pull, const struct wf_body *body)
{
	return (body->way == WF_BODY_STAGED) != (pull->body.way == WF_BODY_STAGED);
}

static bool is_expected(const struct wf_pull *pull, const struct wf_body *body)
{
	if (body->way == WF_BODY_HANDLE)
		return true;
	if (pull->way == WF_PULL_WAY_IMPORTED ||
	    (body->way != WF_BODY_PULL && body->way != WF_BODY_STAGED))
		return false;
	/* Blocks have no order in which a bounce buffer could pass. */
	if (pull->job.blocks && body->way != WF_BODY_PULL)
		return false;
	return (!changes(pull, body) ||
		(pull->way != WF_PULL_WAY_VIEW && !pull->sums.count)) &&
	       (body->way == WF_BODY_PULL || body->bounce_bytes);
}

/* Copy by the handle in @body; bytes that were copied before a rail failed are there still. */
static void copy_from(struct wf_pull *pull, const struct wf_body *body)
{
	struct wf_engine *engine = pull->transfer->engine;
	struct wf_link *link = pull->link;
	struct wf_error e;

	/* The terms hold for each rail that the pull goes on over. */
	if (wf_terms_rail(pull->job.terms, link, wf_link_caps(link), &e)) {
		stop(pull, &e);
		return;
	}
	if (pull->way != WF_PULL_WAY_IMPORTED &&
	    wf_stage_import(pull->job.stage, body, &e)) {
		wf_log(&engine->log, WF_LOG_INFO, "%s: a body goes through the host: %s",
		       wf_link_label(link), e.text);
		pull->job.handle = false;
		ask(pull);
		return;
	}
	pull->way = WF_PULL_WAY_IMPORTED;
	pull->writes = true;
	pull->path.caps = wf_link_caps(link);
	pull->body.epoch = body->epoch;
	/* The body was offered all the while: nobody has written to it. */
	if (pull->at.got_bytes == body->bytes) {
		pull->confirmed = true;
		arm(pull, 0);
		return;
	}
	wf_stage_hold(pull->job.stage, false);
	wf_stage_go(pull->job.stage, body->bytes);
}

/* Note @body, the offer of which a pull of blocks reads a part. */
static void offer_anew(struct wf_pull *pull, const struct wf_body *body)
{
	uint64_t bytes = pull->body.bytes;

	pull->body = *body;
	pull->body.bytes = bytes;
}

/* Go on by an offer that the owner has made anew. */
void wf_pull_again(struct wf_pull *pull, const struct wf_body *body)
{
	struct wf_error e;

	/* An owner that was asked twice may offer a handle again that has been of no use here. */
	if (pull->state != WF_PULL_ASKED ||
	    (body->way == WF_BODY_HANDLE && !pull->job.handle))
		return;
	pull->state = WF_PULL_WAITING;
	if (body->way == WF_BODY_NONE) {
		/*
		 * The owner's deadline passed, or it was cancelled, while there was no rail to
		 * say so on.
		 */
		wf_error_set(&e, -ECANCELED, "%s took its offer back", wf_link_label(pull->link));
		stop(pull, &e);
		return;
	}
	if (body->bytes != pull->offered_bytes || !is_expected(pull, body)) {
		wf_error_set(&e, -EPROTO, "%s offers the rest of another body",
			     wf_link_label(pull->link));
		stop(pull, &e);
		return;
	}
	if (body->way == WF_BODY_HANDLE) {
		copy_from(pull, body);
		return;
	}
	if (pull->job.terms->no_staging && body->way == WF_BODY_STAGED) {
		wf_error_set(&e, -EBADFD, "no staging was asked for, and %s stages it",
			     wf_link_label(pull->link));
		stop(pull, &e);
		return;
	}
	if (changes(pull, body)) {
		restart(pull);
		pull->at.filled = body->way == WF_BODY_STAGED ? 0 : body->bytes;
		pull->at.taken = 0;
	}
	offer_anew(pull, body);
	pull->job.doubted = false;
	pull->job.handle = false;
	pull->from_bytes = body->way == WF_BODY_STAGED ? body->bounce_bytes : body->bytes;
	wf_pull_up(pull);
}

/* Read further: the owner has filled more.  -EBADMSG. */
int wf_pull_filled(struct wf_pull *pull, uint64_t bytes)
{
	/* A stopping pull may have ignored the offer that began the staging. */
	if (pull->state == WF_PULL_STOPPING)
		return 0;
	if (pull->body.way != WF_BODY_STAGED || bytes < pull->at.filled || bytes > pull->body.bytes)
		return -EBADMSG;
	pull->at.filled = bytes;
	pass_on(pull);
	wf_pull_feed(pull);
	return 0;
}

void wf_pull_drained(struct wf_pull *pull)
{
	uint64_t piece = pull->job.stage->piece_bytes, fresh;

	if (pull->way != WF_PULL_WAY_IMPORTED) {
		/* An early pull may have waited for the program's stream. */
		if (pull->state == WF_PULL_EARLY)
			arm(pull, 0);
		wf_pull_feed(pull);
		/* The pull ends at once: a node that closes has no other turn. */
		if (pull->job.drains &&
		    (whole(pull) || (pull->state == WF_PULL_STOPPING && !is_busy(pull))))
			finish(pull);
		return;
	}
	fresh = pull->job.stage->ended - pull->at.got_bytes;
	pull->at.got_bytes += fresh;
	pull->path.chunks += (uint32_t)((fresh + piece - 1) / piece);
	pull->path.last_ns = pull->transfer->engine->loop.now_ns;
	if (!pull->path.first_ns)
		pull->path.first_ns = pull->path.last_ns;
	if (is_busy(pull))
		return;
	/* The pull ends at once: a node that closes has no other turn. */
	if (pull->state == WF_PULL_STOPPING)
		finish(pull);
	/* All is copied, or the rest must be offered again; without a rail the pull asks later. */
	else if (pull->link->state == WF_LINK_UP &&
		 (pull->job.stage->held || pull->at.got_bytes == pull->body.bytes))
		ask(pull);
}

void wf_pull_staged(struct wf_stage *stage, const struct wf_error *e)
{
	struct wf_pull *pull = stage->owner;

	if (e)
		wf_pull_stop(pull, e);
	wf_pull_drained(pull);
}

/* Compare sums that the owner has told.  -EBADMSG. */
int wf_pull_told(struct wf_pull *pull, const struct wf_record_sums *sums)
{
	if (wf_reader_sums_told(&pull->sums, sums))
		return -EBADMSG;
	if (pull->state == WF_PULL_STOPPING)
		return 0;
	if (pull->job.told)
		pull->job.told(pull);
	judge(pull);
	return 0;
}

void wf_pull_up(struct wf_pull *pull)
{
	/* Two links that become one call this, though nothing has changed. */
	if ((pull->state != WF_PULL_WAITING && pull->state != WF_PULL_EARLY) ||
	    (pull->at.got_bytes == pull->body.bytes && pull->way != WF_PULL_WAY_IMPORTED))
		return;
	if (pull->body.epoch == pull->link->probe.epoch && !pull->job.doubted)
		begin(pull);
	else
		ask(pull);
}

/* Handle the end of the endpoint.  On a connected rail its reads have ended without a word. */
void wf_pull_paused(struct wf_pull *pull)
{
	read_no_more(pull);
	wf_fetch_end_asked(pull);
	if (pull->state == WF_PULL_ASKED)
		pull->state = WF_PULL_WAITING;
	note_refusal(pull, false);
	if (pull->way == WF_PULL_WAY_IMPORTED)
		wf_stage_hold(pull->job.stage, true);
	if (pull->rail.quiet_by_close)
		wf_pull_quiet(pull);
}

/* Read over a lane on which the owner has opened the body, if it has not closed since. */
void wf_pull_lane(struct wf_pull *pull, const struct wf_record_lane *record)
{
	struct wf_lane *lane = wf_lane_find(pull->link, record->lane);
	struct wf_grant_span span;

	if (!lane || !lane->ready || pull->state != WF_PULL_READING || pull->fetches ||
	    pull->at.next == pull->body.bytes)
		return;
	span = target(pull);
	if (!wf_stripe_add(&pull->spread, lane, record, &span))
		wf_pull_feed(pull);
}

/* Make the reads of a closed lane, which have ended without a word, again over the other ways. */
void wf_pull_lane_closed(struct wf_pull *pull, const struct wf_lane *lane)
{
	struct wf_stripe_way *over = wf_stripe_find(pull->spread, lane);
	uint32_t count = 0;
	uint64_t bytes = 0;

	if (!over)
		return;
	for (uint32_t i = 0; i < pull->read_count; i++) {
		struct wf_pull_read *r = &pull->reads[i];

		if (r->state != WF_PULL_READ_BUSY || r->over != over)
			continue;
		r->state = WF_PULL_READ_AGAIN;
		count++;
		bytes += r->count;
	}
	wf_reads_end_over(pull, over, count, bytes);
	wf_stripe_close_way(over);
	/* A timer goes on: the caller may be closing the rail, too. */
	if (pull->state != WF_PULL_STOPPING || !pull->busy)
		arm(pull, 0);
}

void wf_pull_quiet(struct wf_pull *pull)
{
	for (uint32_t i = 0; i < pull->read_count; i++)
		if (pull->reads[i].state == WF_PULL_READ_BUSY)
			pull->reads[i].state = WF_PULL_READ_AGAIN;
	pull->aside = 0;
	wf_fetch_quiet(pull);
	wf_reads_end(pull, pull->busy, pull->share.bytes);
	wf_grant_close(&pull->grant);
	if (pull->state == WF_PULL_STOPPING && !is_busy(pull))
		finish(pull);
}

uint64_t wf_pull_progress(const struct wf_pull *pull)
{
	uint64_t progress = wf_progress_add(pull->at.got_bytes, pull->at.summed_bytes);

	progress = wf_progress_add(progress, pull->at.filled);
	return pull->job.stage ? wf_progress_add(progress, pull->job.stage->ended) : progress;
}

void wf_pull_describe(const struct wf_pull *pull, char *text, size_t bytes)
{
	const char *peer = wf_link_label(pull->link);
	bool imported = pull->way == WF_PULL_WAY_IMPORTED;
	char wait[WF_POOL_TEXT_BYTES];
	int used = snprintf(text, bytes, "%llu of %llu bytes are read",
			    (unsigned long long)pull->at.got_bytes,
			    (unsigned long long)pull->body.bytes);

	if (used < 0 || (size_t)used >= bytes)
		return;
	text += used;
	bytes -= (size_t)used;
	if (imported && pull->at.got_bytes == pull->body.bytes)
		(void)snprintf(text, bytes, ", and %s has not said that it offers them still", peer);
	else if (imported)
		(void)snprintf(text, bytes, ", and the others are copied from the device of %s", peer);
	else if (pull->state == WF_PULL_STOPPING)
		(void)snprintf(text, bytes, ", %u reads have to end: %s", pull->busy,
			       pull->stop.why.text);
	else if (pull->busy)
		(void)snprintf(text, bytes, ", %u reads from %s are under way over %s", pull->busy,
			       peer, pull->path.caps->provider);
	else if (pull->at.got_bytes == pull->body.bytes)
		(void)snprintf(text, bytes, ", and %s has not sent their checksums", peer);
	else if (pull->link->state != WF_LINK_UP)
		(void)snprintf(text, bytes, ", and there is no rail to %s", peer);
	else if (pull->state == WF_PULL_ASKED)
		(void)snprintf(text, bytes, ", and %s has not offered the rest again", peer);
	else if (!wf_list_empty(&pull->bounce_waiter.node)) {
		wf_pool_describe(&pull->transfer->engine->pool, pull->job.stage->bounce_bytes,
				 wait);
		(void)snprintf(text, bytes, ", and %s", wait);
	} else if (pull->state == WF_PULL_EARLY && pull->job.stage && pull->job.stage->awaited)
		(void)snprintf(text, bytes, ", and the program's stream has not come so far");
	else if (wf_pace_waits(&pull->share) || !wf_list_empty(&pull->yield.node))
		(void)snprintf(text, bytes, ", and the reads of others come first");
	else if (pull->state == WF_PULL_READING && pull->at.next == pull->at.filled)
		(void)snprintf(text, bytes, ", and %s has not copied the next from its device",
			       peer);
	else if (pull->state == WF_PULL_READING && pull->at.next == wf_reads_limit(pull))
		(void)snprintf(text, bytes, ", and the next have to be copied to a device");
	else if (pull->state == WF_PULL_READING && pull->fetches)
		(void)snprintf(text, bytes, ", and there is no room to encrypt the next, here or at %s",
			       peer);
	else if (pull->state == WF_PULL_READING)
		(void)snprintf(text, bytes, ", and %s takes no read",
			       pull->path.caps->provider);
}
