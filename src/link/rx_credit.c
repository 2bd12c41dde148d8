/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive slots promised to peers.
 *
 * The slots of a rail are shared by its links.  Each link has two for frames that need no credit,
 * and one is promised to it, so that it can always begin.  A link that sends is promised more, and
 * twice as many whenever it has used half, up to the window.  Where there are too few for that,
 * links that have sent nothing for a while are asked to give theirs back; if nothing comes of that
 * more slots are made; and when there are as many as may be, the links that send have equal
 * shares.  So memory does not grow as peers times the window, and a peer that does nothing holds
 * three slots.
 *
 * A peer may keep promises and send nothing.  So the last eighth of the slots is only for links
 * that have none, and a peer that was asked and gives nothing back for WEFT_LOST has broken the
 * protocol.
 */
#include "link/rx_credit.h"
#include "link/link.h"
#include "link/internal.h"
#include "link/ledger.h"

#include <errno.h>

#define RESERVED 2 /* slots of a link for a control frame and an answer */
#define LEAST 1    /* slots promised to a link that does nothing */
#define START 8    /* slots promised to a link that begins to send: an eager body of 64 KiB fits */
#define IDLE_NS (100 * WF_NS_PER_MS)  /* time without a data frame; not tuned */
#define SHARE_NS (10 * WF_NS_PER_MS)  /* time between two looks at all links */
#define KEPT_PART 8 /* every eighth slot is only for links that have none; not tuned */
/*
 * Looks in WEFT_LOST at a peer that owes promises; one more is made, for this node may have stood
 * still.
 */
#define LOOKS 4

void wf_rx_credit_init(struct wf_rx_credit_controls *controls)
{
	wf_list_init(&controls->ask.node);
	wf_list_init(&controls->give.node);
}

void wf_rx_credit_forget(struct wf_link *link)
{
	wf_timer_stop(&link->engine->loop.timers, &link->slots.debt_timer);
	wf_list_remove(&link->controls.ask.node);
	wf_list_remove(&link->controls.give.node);
	link->slots = (struct wf_rx_credit){ 0 };
}

static uint32_t taken(const struct wf_engine_rail *on)
{
	return on->promised + RESERVED * on->link_count;
}

/* Returns how many of the rail's @slots are neither promised nor reserved. */
static uint32_t left_of(const struct wf_engine_rail *on, uint32_t slots)
{
	return slots - WF_MIN(taken(on), slots);
}

/* Returns how many slots, once they are made, windows beyond LEAST may use. */
static uint32_t most_for_windows(const struct wf_engine_rail *on)
{
	uint32_t most = wf_rail_slots_most(on->rail);

	return most - most / KEPT_PART;
}

static bool is_idle(const struct wf_link *link)
{
	return link->engine->loop.now_ns - link->slots.data_ns > IDLE_NS;
}

/* Returns how many data frames the peer may have under way, if there are slots. */
static uint32_t allowed(const struct wf_link *link)
{
	return WF_MIN(link->slots.window, link->on->share);
}

/* Promise as many frames as the link is allowed, if slots are free and its account has room. */
static void promise(struct wf_link *link)
{
	struct wf_engine_rail *on = link->on;
	uint32_t frames = wf_ledger_frames(link);
	uint32_t want = WF_MIN(allowed(link), frames), have = wf_rx_credit_open(link);
	uint32_t slots = wf_rail_slots(on->rail);
	uint32_t more;

	link->slots.kept_short = frames < allowed(link);
	if (have >= want)
		return;
	more = WF_MIN(want - have, left_of(on, WF_MIN(slots, most_for_windows(on))));
	if (have + more < LEAST)
		more = WF_MIN(LEAST - have, left_of(on, slots));
	on->hungry |= have + more < LEAST;
	link->slots.promised_total += more;
	on->promised += more;
}

/*
 * Hand out slots that have come free.  A link without any, up or not, is given one now, for no
 * frame will ever come to be the occasion; the others wait for theirs.
 */
static void feed(struct wf_engine *engine, struct wf_engine_rail *on)
{
	on->hungry = false;
	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->on != on || wf_rx_credit_open(link) >= LEAST)
			continue;
		promise(link);
		wf_link_mark(link);
	}
}

static void ask(struct wf_engine *engine, const struct wf_engine_rail *on);

static void look_at_debt(struct wf_timer *timer);

/* Start the time limit of the peer's debt from now. */
static void count_debt_anew(struct wf_link *link)
{
	link->slots.debt_ns = link->engine->loop.now_ns;
	link->slots.debt_looks = 0;
}

static void look_later(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	wf_loop_timer(&engine->loop, &link->slots.debt_timer,
		      engine->loop.now_ns + engine->options.lost_ns / LOOKS, look_at_debt);
}

/*
 * Check that promises which the peer was asked for have come back.  The peer's answer follows what
 * it has sent and our reads of its memory: while any of that comes, or the rail is dialled anew,
 * the peer is not late.
 */
static void look_at_debt(struct wf_timer *timer)
{
	struct wf_link *link = WF_CONTAINER(timer, struct wf_link, slots.debt_timer);
	uint64_t from_ns = WF_MAX(link->slots.data_ns, link->reads.ns);

	if ((int32_t)(link->slots.debt_end - wf_rx_credit_over(link)) <= 0)
		return;
	if (link->state != WF_LINK_UP || from_ns > link->slots.debt_ns)
		count_debt_anew(link);
	if (++link->slots.debt_looks <= LOOKS)
		look_later(link);
	else
		wf_link_violate(link, "it does not give back the credits that it was asked for");
}

/* Start the time limit of a peer that has been asked, maybe on an earlier rail. */
static void ask_heard(struct wf_message_control *c, const struct wf_error *e)
{
	struct wf_link *link = WF_CONTAINER(c, struct wf_link, controls.ask);

	if (e || !link->on)
		return;
	if (!link->slots.debt_timer.armed) {
		count_debt_anew(link);
		look_later(link);
	}
	ask(link->engine, link->on);
}

/* Ask the links with more than they are allowed to give the rest back. */
static void ask(struct wf_engine *engine, const struct wf_engine_rail *on)
{
	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);
		struct wf_message_control *c = &link->controls.ask;

		if (link->on != on || link->slots.return_asked ||
		    wf_rx_credit_open(link) <= allowed(link) || !wf_list_empty(&c->node))
			continue;
		c->type = WF_RECORD_RETURN;
		c->id = wf_rx_credit_open(link) - allowed(link);
		c->sent = ask_heard;
		if (!link->slots.debt_timer.armed)
			link->slots.debt_end = wf_rx_credit_over(link) + (uint32_t)c->id;
		link->slots.return_asked = true;
		wf_link_control(link, c);
	}
}

/* Close the windows of idle links.  Returns how many links are not idle. */
static uint32_t close_windows(struct wf_engine *engine, const struct wf_engine_rail *on)
{
	uint32_t busy = 0;

	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->on != on)
			continue;
		if (is_idle(link))
			link->slots.window = LEAST;
		else
			busy++;
	}
	return busy;
}

/*
 * Returns how many slots there must be: for links that have none, and where nothing can be
 * expected to come back from idle links, for all that links want.
 */
static uint32_t slots_wanted(struct wf_engine *engine, const struct wf_engine_rail *on)
{
	uint32_t must = taken(on), want = RESERVED * on->link_count;
	bool wait = false;

	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);
		uint32_t have = wf_rx_credit_open(link);

		if (link->on != on)
			continue;
		want += link->slots.window;
		if (have < LEAST)
			must += LEAST;
		/* A link that was asked in vain is not waited for. */
		wait |= have > link->slots.window && !link->slots.return_asked;
	}
	return wait ? must : WF_MAX(must, want);
}

/* Share the slots out anew: links want more than are free. */
static void share_out(struct wf_engine *engine, struct wf_engine_rail *on)
{
	uint32_t busy = close_windows(engine, on), idle = on->link_count - busy;
	uint32_t most = most_for_windows(on), fixed = RESERVED * on->link_count + LEAST * idle;
	struct wf_error e;

	on->shared_ns = engine->loop.now_ns;
	if (wf_rail_grow(on->rail, slots_wanted(engine, on), &e))
		most = WF_MIN(most, wf_rail_slots(on->rail)); /* no memory for more slots */
	on->share = busy ? WF_MAX(most > fixed ? (most - fixed) / busy : 0, LEAST)
			 : (uint32_t)engine->options.window;
	ask(engine, on);
	feed(engine, on);
}

/* Count @link on its rail.  -ENOSPC: there are too few slots. */
int wf_rx_credit_admit(struct wf_link *link)
{
	struct wf_engine_rail *on = link->on;
	uint32_t need = (RESERVED + LEAST) * (on->link_count + 1);
	struct wf_error e;

	if (need > wf_rail_slots_most(on->rail) || wf_rail_grow(on->rail, need, &e))
		return -ENOSPC;
	on->link_count++;
	on->promised += wf_rx_credit_open(link);
	link->slots.window = WF_MAX(link->slots.window, LEAST);
	promise(link);
	/* Share out before slots run out: the next link finds some when this one has begun. */
	if (taken(on) + START + RESERVED + LEAST > wf_rail_slots(on->rail))
		share_out(link->engine, on);
	return 0;
}

/* Note that a data frame has come: a link that uses its promises may have more. */
void wf_rx_credit_refill(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;
	struct wf_engine_rail *on = link->on;

	link->slots.data_ns = engine->loop.now_ns;
	/*
	 * The window grows once half of the told promises are used: a peer that needs no longer
	 * than that may be waiting for us.
	 */
	if (2 * wf_rx_credit_told(link) <= (int32_t)link->slots.window)
		link->slots.window = WF_MIN(WF_MAX(2 * link->slots.window, START),
				      (uint32_t)engine->options.window);
	promise(link);
	/* The link had more than it is allowed, or its account is full: its slot is for others. */
	if (on->hungry && taken(on) < wf_rail_slots(on->rail))
		feed(engine, on);
	if (link->slots.kept_short || wf_rx_credit_open(link) >= link->slots.window ||
	    (wf_rx_credit_open(link) && engine->loop.now_ns - on->shared_ns < SHARE_NS))
		return;
	share_out(engine, on);
	promise(link);
}

void wf_rx_credit_room(struct wf_link *link)
{
	link->slots.kept_less = false;
	if (!link->slots.kept_short || 2 * wf_rx_credit_open(link) > wf_ledger_frames(link))
		return;
	promise(link);
	/*
	 * Other links have the slots, and may have no frame that would let them be shared out
	 * anew.
	 */
	if (!wf_rx_credit_open(link) && link->on->hungry)
		share_out(link->engine, link->on);
}

void wf_rx_credit_leave(struct wf_link *link)
{
	struct wf_engine_rail *on = link->on;

	on->promised -= wf_rx_credit_open(link);
	on->link_count--;
	link->slots.return_asked = false;
	link->on = NULL;
	feed(link->engine, on);
}

static void give_back(struct wf_link *link);

static void give_heard(struct wf_message_control *c, const struct wf_error *e)
{
	struct wf_link *link = WF_CONTAINER(c, struct wf_link, controls.give);

	if (!e && c->id != link->slots.returned_total)
		give_back(link); /* more were given back since then */
}

/* Tell the peer how many of its promises we have given back. */
static void give_back(struct wf_link *link)
{
	struct wf_message_control *c = &link->controls.give;

	if (!wf_list_empty(&c->node))
		return; /* more is told when that control has been heard */
	c->type = WF_RECORD_RETURNED;
	c->id = link->slots.returned_total;
	c->sent = give_heard;
	wf_link_control(link, c);
}

/* Give back @count of the peer's promises, as it asks. */
void wf_rx_credit_asked(struct wf_link *link, uint32_t count)
{
	link->slots.returned_total += wf_credit_return(&link->tx.credit, count);
	give_back(link);
}

/* Take back promises: the peer has given back @total of them by now. */
void wf_rx_credit_returned(struct wf_link *link, uint32_t total)
{
	struct wf_engine_rail *on = link->on;
	uint32_t more = total - link->slots.returned_seen;

	link->slots.return_asked = false;
	if (more > wf_rx_credit_open(link)) {
		wf_link_violate(link, "it gave back more credits than it had");
		return;
	}
	/* A peer that gives nothing back makes no work for others. */
	if (!more)
		return;
	link->slots.returned_seen = total;
	on->promised -= more;
	feed(link->engine, on);
	/* The link may be allowed even less since the peer was asked. */
	ask(link->engine, on);
}
