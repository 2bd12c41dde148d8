/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Path probing: the side that dialled tries the pairs in rank order, half a second
 * each, and a rail is up only when a ping has gone both ways.  A peer that has answered on no pair
 * in time may be slow, not gone: it has longer in the next round, and at once where there is only
 * one pair.  Every probe has a new epoch, so that frames of earlier probes are known as such.
 */
#include "link/probe.h"
#include "link/link.h"
#include "link/internal.h"
#include "link/fit.h"
#include "link/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fabric/ep.h"
#include "util/clock.h"

#define PING_NS (100 * WF_NS_PER_MS) /* pause between repeated pings */
#define FULL_NS WF_NS_PER_MS         /* pause after a refused ping: shm, at first contact */
#define SPARE_NS (500 * WF_NS_PER_MS) /* time for messages through the door meanwhile */
#define REASON_NS (20 * WF_NS_PER_MS) /* time for the reason of a closed connection to come */
#define LONGER_MAX 4                 /* a pair has at most 16 times its time */
#define LATE_LIMITS 4                /* limits of silence, some seven dials; not tuned */
#define MISFITS_BYTES 240            /* two sentences fit */

static void try_timer(struct wf_timer *timer);

static void try_in(struct wf_link *link, uint64_t ns)
{
	struct wf_loop *loop = &link->engine->loop;

	wf_loop_timer(loop, &link->probe.timer, loop->now_ns + ns, try_timer);
}

/*
 * Returns the time for each rail once, and for word of the next; not less than a silent peer gets.
 * At first contact the dialled side has the patience of the dialling side, for either may be slow:
 * giving up a rail that has come up at the other end would be taken for a death.
 */
static uint64_t patience_ns(const struct wf_link *link)
{
	const struct wf_engine *engine = link->engine;
	uint64_t ns = SPARE_NS;

	for (uint32_t i = 0; i < engine->rail_count; i++)
		ns += wf_rail_caps(engine->rails[i].rail)->ping_ns;
	ns = WF_MAX(engine->options.lost_ns, ns);
	/* Without a rail in common only a gate that opens is worth waiting for. */
	if (link->dialler || wf_link_was_up(link) || !link->probe.pair_count)
		return ns;
	return WF_MAX(engine->options.connect_ns, ns);
}

/*
 * Returns the time of the pair that is tried.  At first contact the time grows with every round
 * without an answer, so that a slow peer is not kept busy with probes that are over.  Later the
 * time is less than the dialled side waits for word of the next pair, which is its limit of
 * silence at least.
 */
static uint64_t pair_ns(const struct wf_link *link, const struct wf_rail_caps *caps)
{
	bool was_up = wf_link_was_up(link), alone = link->probe.pair_count == 1 && !was_up;
	unsigned round = alone ? LONGER_MAX : link->probe.round;
	uint64_t ns = caps->ping_ns << WF_MIN(round, LONGER_MAX);
	uint64_t most_ns = link->peer->lost_ns - link->peer->lost_ns / 4;

	return was_up ? WF_MAX(caps->ping_ns, WF_MIN(ns, most_ns)) : ns;
}

static int pair_fits(const struct wf_link *link, uint32_t mine, uint32_t theirs,
		     struct wf_error *e)
{
	return wf_fit_check(link, wf_rail_caps(link->engine->rails[mine].rail),
			    &link->peer->rails[theirs], e);
}

/* Add a pair behind those of its provider that are more likely to be of one network. */
static void add_pair(struct wf_link *link, uint32_t mine, uint32_t theirs)
{
	const struct wf_engine *engine = link->engine;
	unsigned bits = wf_fit_nearness(link, mine, theirs);
	uint32_t at;

	for (at = link->probe.pair_count++; at; at--) {
		struct wf_probe_pair before = link->probe.pairs[at - 1];

		if (strcmp(wf_rail_caps(engine->rails[before.mine].rail)->provider,
			   wf_rail_caps(engine->rails[mine].rail)->provider) ||
		    wf_fit_nearness(link, before.mine, before.theirs) >= bits)
			break;
		link->probe.pairs[at] = before;
	}
	link->probe.pairs[at] = (struct wf_probe_pair){ (uint8_t)mine, (uint8_t)theirs };
}

/*
 * List pairs in our rank order; same-host rails come first in our list already.  A frame may have
 * to go again on any of them, so it fits the rail with the smallest frames.
 */
void wf_probe_list(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	link->probe.pair_count = link->probe.pair_at = 0;
	link->probe.frame_bytes = engine->frame_bytes; /* the memory of a frame */
	for (uint32_t mine = 0; mine < engine->rail_count; mine++) {
		for (uint32_t theirs = 0; theirs < link->peer->rail_count; theirs++) {
			if (pair_fits(link, mine, theirs, NULL))
				continue;
			add_pair(link, mine, theirs);
			link->probe.frame_bytes = WF_MIN(
				link->probe.frame_bytes,
				WF_MIN(wf_rail_caps(engine->rails[mine].rail)->frame_bytes,
				       link->peer->rails[theirs].frame_bytes));
		}
	}
	/* A seal comes behind the records. */
	if (link->seals.known)
		link->probe.frame_bytes -= WF_FRAME_SEAL_BYTES;
}

static void note(struct wf_link *link, const char *why)
{
	size_t used = strlen(link->probe.tried);
	const char *name = link->on ? wf_rail_caps(link->on->rail)->provider : "rail";

	snprintf(link->probe.tried + used, sizeof(link->probe.tried) - used, "%s%s: %s",
		 used ? "; " : "", name, why);
}

/* Give up the endpoint of this probe, and with it the operations posted there. */
void wf_probe_drop(struct wf_link *link)
{
	struct wf_ep *ep = link->rail.ep;

	wf_lane_drop(link);
	if (link->on) {
		const struct wf_rail_caps *caps = wf_rail_caps(link->on->rail);

		/*
		 * Only pings are under way before a rail is up: peers that all ping, and reopen
		 * for it, would begin again for ever.
		 */
		if (ep && !caps->connected && !caps->sync_read && wf_ep_busy(ep)) {
			if (link->state == WF_LINK_UP)
				link->on->reopen = true;
			else
				wf_engine_watch_abandoned(link->engine, link->on);
		}
		wf_tx_rail_gone(link);
		wf_rx_credit_leave(link);
	}
	link->rail = (struct wf_probe_rail){ 0 };
	wf_ep_close(ep);
}

void wf_probe_forget(struct wf_link *link)
{
	wf_probe_drop(link);
	wf_timer_stop(&link->engine->loop.timers, &link->probe.timer);
	link->probe = (struct wf_probe){ 0 };
}

/*
 * Say why no rail of a provider that both nodes have can be used; "" if there is no such provider.
 */
static void list_misfits(const struct wf_link *link, char text[MISFITS_BYTES])
{
	const struct wf_engine *engine = link->engine;
	size_t used = 0;
	struct wf_error e;

	text[0] = '\0';
	for (uint32_t mine = 0; mine < engine->rail_count; mine++) {
		const char *name = wf_rail_caps(engine->rails[mine].rail)->provider;

		for (uint32_t theirs = 0; theirs < link->peer->rail_count; theirs++) {
			if (strcmp(name, link->peer->rails[theirs].provider) ||
			    !pair_fits(link, mine, theirs, &e) || used >= MISFITS_BYTES)
				continue;
			used += (size_t)snprintf(text + used, MISFITS_BYTES - used, "; %s", e.text);
		}
	}
}

static void die_untried(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;
	struct wf_error e;
	char mine[200] = "", theirs[200] = "", misfits[MISFITS_BYTES];

	if (link->probe.tried[0] || link->probe.pair_count) {
		wf_error_set(&e, -EHOSTUNREACH, "no rail to %s works: %s", wf_link_label(link),
			     link->probe.tried[0] ? link->probe.tried : "the peer tried none");
	} else {
		for (uint32_t i = 0; i < engine->rail_count; i++)
			snprintf(mine + strlen(mine), sizeof(mine) - strlen(mine), "%s%s",
				 i ? ", " : "", wf_rail_caps(engine->rails[i].rail)->provider);
		for (uint32_t i = 0; i < link->peer->rail_count; i++)
			snprintf(theirs + strlen(theirs), sizeof(theirs) - strlen(theirs), "%s%s",
				 i ? ", " : "", link->peer->rails[i].provider);
		list_misfits(link, misfits);
		wf_error_set(&e, -EHOSTUNREACH,
			     "no provider in common with %s: this node has %s, the peer %s%s",
			     wf_link_label(link), mine, theirs, misfits);
	}
	wf_link_die(link, &e);
}

static void send_try(struct wf_link *link, enum wf_greet_kind kind, uint32_t mine,
		     uint32_t theirs, const char *text)
{
	struct wf_greet greet = { .kind = kind };

	greet.try.epoch = link->probe.epoch;
	greet.try.mine = mine;
	greet.try.yours = theirs;
	snprintf(greet.try.text, sizeof(greet.try.text), "%s", text);
	if (link->conn)
		wf_conn_send(link->conn, &greet);
}

/* Use rail @on from now on, for probe @epoch.  -ENOSPC: @on has no slots for a link; -ENOMEM. */
static int prepare(struct wf_link *link, struct wf_engine_rail *on, uint32_t epoch)
{
	int err;

	wf_probe_drop(link);
	link->probe.epoch = epoch;
	link->on = on;
	link->state = WF_LINK_TRYING;
	err = wf_seals_probe(link);
	if (!err && !wf_rx_credit_admit(link))
		return 0;
	link->on = NULL;
	return err ? err : -ENOSPC;
}

/* Returns why prepare() has failed, for both sides' people. */
static const char *untaken(int err)
{
	return err == -ENOSPC ? "no receive slots left for another link" :
				"no memory for the keys of a rail";
}

/*
 * Ping, and again soon if the rail did not take the ping, otherwise after a while; not again if it
 * takes none.
 */
static void ping(struct wf_link *link, enum wf_frame_kind kind)
{
	struct wf_engine *engine = link->engine;
	int rc = wf_tx_special(link, kind);

	if (kind == WF_FRAME_PONG)
		link->stage = WF_MAX(link->stage, WF_LINK_STAGE_PONGED);
	if (link->rail.closed[0] && !link->dialler) {
		note(link, link->rail.closed);
		send_try(link, WF_GREET_CANNOT, 0, 0, link->rail.closed);
		wf_probe_drop(link);
		rc = 0;
	} else if (link->rail.closed[0]) {
		link->probe.pair_until_ns = engine->loop.now_ns;
	}
	try_in(link, rc ? FULL_NS : PING_NS);
}

/* May the dialler ping, or must it wait for word that the other side knows it? */
static bool pings_first(const struct wf_link *link)
{
	return link->rail.ready && !wf_rail_caps(link->on->rail)->host.dialled_first;
}

/* Try pair number pair_at. */
static int probe(struct wf_link *link, struct wf_error *e)
{
	struct wf_engine *engine = link->engine;
	struct wf_probe_pair pair = link->probe.pairs[link->probe.pair_at];
	struct wf_engine_rail *on = &engine->rails[pair.mine];
	const struct wf_greet_rail *r = &link->peer->rails[pair.theirs];
	uint8_t data[WF_CONNECT_BYTES];
	struct wf_bytes_writer writer = wf_bytes_writer(data, sizeof(data));
	int err;

	err = prepare(link, on, link->probe.epoch + 1);
	if (err)
		return wf_error_set(e, err, "%s", untaken(err));
	wf_link_record(link, WF_RECORDER_TRY, wf_link_rail_number(link), link->probe.epoch);
	err = wf_request_put(link, 0, r, &writer);
	if (err)
		return wf_error_set(e, err, "no memory for its proof");
	send_try(link, WF_GREET_TRY, pair.mine, pair.theirs, "");
	if (wf_rail_caps(on->rail)->same_host)
		err = wf_sidedoor_ep_open(link, on->rail, pair.theirs, &link->rail.ep, e);
	else
		err = wf_ep_open(on->rail, r->address, r->address_bytes, data,
				 (size_t)(writer.at - data), link, &link->rail.ep, e);
	if (err)
		return err;
	link->probe.pair_until_ns = engine->loop.now_ns + pair_ns(link, wf_rail_caps(on->rail));
	try_in(link, PING_NS);
	link->rail.ready = !wf_rail_caps(on->rail)->connected;
	if (pings_first(link))
		ping(link, WF_FRAME_PING);
	return 0;
}

/*
 * Try the next pair, if the probe under way has failed because of @why (NULL: none is under
 * way).
 */
void wf_probe_next(struct wf_link *link, const char *why)
{
	struct wf_engine *engine = link->engine;
	struct wf_error e;

	for (;;) {
		if (why) {
			wf_link_record(link, WF_RECORDER_TRY_FAILED, link->probe.epoch, 0);
			note(link, why);
			link->probe.pair_at++;
		}
		if (link->probe.pair_at >= link->probe.pair_count) {
			/* Rounds repeat while time lasts. */
			if (!link->probe.pair_count || engine->loop.now_ns >= link->probe.until_ns)
				break;
			link->probe.pair_at = 0;
			link->probe.round++;
			link->probe.tried[0] = '\0';
			try_in(link, PING_NS);
			link->probe.pair_until_ns = 0;
			wf_probe_drop(link);
			return;
		}
		if (!probe(link, &e))
			return;
		why = e.text;
	}
	die_untried(link);
}

/* Returns until when pairs are tried that fail because nothing is heard. */
static uint64_t late_until_ns(const struct wf_link *link)
{
	if (!wf_link_was_up(link))
		return link->dial.until_ns;
	return link->probe.from_ns + LATE_LIMITS * link->engine->options.lost_ns;
}

/* End the probe of a pair that has not come up in its time. */
static void pair_late(struct wf_link *link)
{
	const char *why = link->rail.ready ? "no answer to a ping in time"
					   : "no connection in time";

	/*
	 * The peer has not refused the pair: at first contact there is as much time as to dial,
	 * and later enough for a network that loses each of a few dials.  Before that, a peer that
	 * is gone is missed at its door.
	 */
	if (!link->rail.closed[0])
		link->probe.until_ns = WF_MAX(link->probe.until_ns, late_until_ns(link));
	wf_probe_next(link, link->rail.closed[0] ? link->rail.closed : why);
}

static void try_timer(struct wf_timer *timer)
{
	struct wf_link *link = WF_CONTAINER(timer, struct wf_link, probe.timer);
	struct wf_engine *engine = link->engine;

	if (link->state != WF_LINK_TRYING)
		return;
	if (!link->dialler) {
		if (engine->loop.now_ns >= link->probe.until_ns) {
			die_untried(link);
			return;
		}
		if (link->rail.ready && link->probe.ponged) {
			ping(link, WF_FRAME_PONG);
			return;
		}
	} else if (link->probe.pair_until_ns == 0) {
		wf_probe_next(link, NULL);
		return;
	} else if (engine->loop.now_ns >= link->probe.pair_until_ns) {
		pair_late(link);
		return;
	} else if (pings_first(link)) {
		ping(link, WF_FRAME_PING);
		return;
	}
	try_in(link, PING_NS);
}

/* Look for a rail, in @in_ns. */
static void start(struct wf_link *link, uint64_t in_ns)
{
	struct wf_engine *engine = link->engine;

	link->state = WF_LINK_TRYING;
	link->probe.tried[0] = '\0';
	link->probe.round = 0;
	if (!link->probe.pair_count)
		wf_probe_list(link);
	link->probe.from_ns = engine->loop.now_ns;
	link->probe.until_ns = engine->loop.now_ns + patience_ns(link);
	if (link->dialler && !in_ns) {
		wf_probe_next(link, NULL);
		return;
	}
	link->probe.pair_until_ns = 0;
	try_in(link, link->dialler ? in_ns : PING_NS);
}

void wf_probe_start(struct wf_link *link)
{
	start(link, 0);
}

static void log_fallback(const struct wf_link *link)
{
	const struct wf_rail_caps *caps = wf_link_caps(link), *better = wf_fit_better(link, caps);
	char why[160];

	if (!better)
		return;
	wf_fit_why_not(link, better->provider, why, sizeof(why));
	wf_log(&link->engine->log, WF_LOG_INFO, "%s: by %s and not by %s: %s",
	       wf_link_label(link), caps->provider, better->provider, why);
}

static void up(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	if (link->state == WF_LINK_UP)
		return;
	link->state = WF_LINK_UP;
	link->stage = WF_LINK_STAGE_PROVED;
	if (link->conn)
		wf_conn_trust(link->conn);
	wf_same_up(link);
	wf_log(&engine->log, WF_LOG_DEBUG, "%s: connected by %s", wf_link_label(link),
	       wf_link_caps(link)->provider);
	log_fallback(link);
	link->reads.depth = wf_depth(wf_link_caps(link)->depth);
	wf_link_record(link, WF_RECORDER_UP, wf_link_rail_number(link), link->probe.epoch);
	wf_timer_stop(&engine->loop.timers, &link->probe.timer);
	wf_tx_up(link);
	wf_keepalive_start(link);
	wf_lane_start(link);
	engine->sink->up(engine->sink_ctx, link);
}

/*
 * Follow the dialling side, which has begun probe @epoch on our rail @on.  -errno: we can't, and
 * the peer is told.
 */
static int follow(struct wf_link *link, struct wf_engine_rail *on, uint32_t epoch)
{
	struct wf_engine *engine = link->engine;
	int err;

	wf_probe_leave(link, link->on);
	link->probe.ponged = false;
	link->probe.until_ns = engine->loop.now_ns + patience_ns(link);
	try_in(link, PING_NS);
	err = prepare(link, on, epoch);
	if (err)
		send_try(link, WF_GREET_CANNOT, 0, 0, untaken(err));
	else
		wf_link_record(link, WF_RECORDER_FOLLOW, wf_link_rail_number(link), epoch);
	return err;
}

/* Open our side of a shared rail, to the peer's @theirs. */
static int open_to(struct wf_link *link, uint32_t theirs, struct wf_error *e)
{
	struct wf_rail *rail = link->on->rail;
	const struct wf_greet_rail *r = &link->peer->rails[theirs];

	if (wf_rail_caps(rail)->same_host)
		return wf_sidedoor_ep_open(link, rail, theirs, &link->rail.ep, e);
	return wf_ep_open(rail, r->address, r->address_bytes, NULL, 0, link, &link->rail.ep, e);
}

/* Take a proposal of the dialling side: its rail @mine, our rail @theirs. */
void wf_probe_try(struct wf_link *link, uint32_t epoch, uint32_t mine, uint32_t theirs)
{
	struct wf_engine *engine = link->engine;
	struct wf_error e = { .text = "there is no such rail" };

	if (link->dialler || (int32_t)(epoch - link->probe.epoch) <= 0)
		return;
	wf_sidedoor_hear(link);
	if (theirs >= engine->rail_count || mine >= link->peer->rail_count ||
	    pair_fits(link, theirs, mine, &e)) {
		link->probe.epoch = epoch;
		send_try(link, WF_GREET_CANNOT, 0, 0, e.text);
		return;
	}
	if (follow(link, &engine->rails[theirs], epoch))
		return;
	if (wf_rail_caps(link->on->rail)->connected)
		return;
	if (open_to(link, mine, &e)) {
		send_try(link, WF_GREET_CANNOT, 0, 0, e.text);
		return;
	}
	link->rail.ready = true;
	if (wf_rail_caps(link->on->rail)->host.dialled_first) {
		link->probe.ponged = true;
		ping(link, WF_FRAME_PONG);
	}
}

void wf_probe_cannot(struct wf_link *link, uint32_t epoch, const char *why)
{
	if (!link->dialler || epoch != link->probe.epoch)
		return;
	if (link->state == WF_LINK_UP)
		wf_link_rail_failed(link, why);
	else if (link->state == WF_LINK_TRYING)
		wf_probe_next(link, why);
}

/* Is our rail @on one over which @link may come up, as the peer's hello stands now? */
static bool may_use(const struct wf_link *link, const struct wf_engine_rail *on)
{
	for (uint32_t theirs = 0; theirs < link->peer->rail_count; theirs++)
		if (!pair_fits(link, (uint32_t)(on - link->engine->rails), theirs, NULL))
			return true;
	return false;
}

/* Take a connection request on a connected rail: it must name a link, and prove that it may. */
void wf_probe_request(struct wf_engine *engine, struct wf_engine_rail *on,
		      const struct wf_rail_event *ev)
{
	uint32_t epoch, lane;
	struct wf_link *link = wf_request_get(engine, on, ev->bytes, ev->count, &epoch, &lane);
	struct wf_error e;

	if (!link || (int32_t)(epoch - link->probe.epoch) < 0 || !may_use(link, on)) {
		wf_counters_add(&engine->counters.frames_refused, 1);
		goto reject;
	}
	if (lane) {
		if (wf_lane_request(link, on, lane, epoch, ev->request))
			return;
		goto reject;
	}
	/* The request may have overtaken its Try on the door. */
	if ((epoch != link->probe.epoch || link->on != on) && follow(link, on, epoch))
		goto reject;
	if (link->rail.ep)
		goto reject;
	if (wf_ep_accept(on->rail, ev->request, link, &link->rail.ep, &e))
		send_try(link, WF_GREET_CANNOT, 0, 0, e.text);
	return;
reject:
	wf_ep_reject(on->rail, ev->request);
}

void wf_probe_connected(struct wf_ep *ep)
{
	struct wf_link *link = wf_ep_owner(ep);

	if (link->rail.ep != ep) {
		wf_lane_connected(link, ep);
		return;
	}
	link->rail.ready = true;
	if (link->dialler)
		ping(link, WF_FRAME_PING);
	else if (link->probe.ponged)
		ping(link, WF_FRAME_PONG);
}

void wf_probe_closed(struct wf_ep *ep, int status)
{
	struct wf_link *link = wf_ep_owner(ep);
	char why[200];

	if (link->rail.ep != ep) {
		wf_lane_closed(link, ep, status);
		return;
	}
	snprintf(why, sizeof(why), "the connection closed (%s)",
		 status ? wf_error_name(status) : "by the peer");
	if (link->state == WF_LINK_UP) {
		wf_link_rail_failed(link, why);
	} else if (link->dialler) {
		/*
		 * If the peer closed the connection on purpose, its reason comes through the door.
		 */
		snprintf(link->rail.closed, sizeof(link->rail.closed), "%s", why);
		wf_ep_close(link->rail.ep);
		link->rail.ep = NULL;
		link->rail.ready = false;
		link->probe.pair_until_ns = link->engine->loop.now_ns + REASON_NS;
		try_in(link, REASON_NS);
	} else {
		note(link, why);
		wf_probe_drop(link);
	}
}

/*
 * Take a ping, pong or ready of the epoch that is tried; data of that epoch does as well as ready.
 */
void wf_probe_frame(struct wf_link *link, const struct wf_frame *frame)
{
	switch (frame->kind) {
	case WF_FRAME_PING:
		if (link->dialler)
			break;
		/* A ping may overtake our own CONNECTED, before which nothing may be sent. */
		link->probe.ponged = true;
		if (link->rail.ready && link->state == WF_LINK_TRYING)
			ping(link, WF_FRAME_PONG);
		else if (link->rail.ready)
			wf_tx_special(link, WF_FRAME_PONG);
		break;
	case WF_FRAME_PONG:
		/* A pong that its connection has outlived says nothing any more. */
		if (link->dialler && link->rail.ready) {
			wf_tx_special(link, WF_FRAME_READY);
			up(link);
		}
		break;
	default:
		if (!link->dialler && link->rail.ready)
			up(link);
		break;
	}
}

/* Let go of the endpoint behind @on, which will be another, without looking for a rail yet. */
void wf_probe_leave(struct wf_link *link, const struct wf_engine_rail *on)
{
	struct wf_engine *engine = link->engine;
	bool was_up = link->state == WF_LINK_UP;

	if (link->on != on)
		return;
	wf_probe_drop(link);
	wf_timer_stop(&engine->loop.timers, &link->probe.timer);
	link->state = WF_LINK_TRYING;
	if (was_up)
		engine->sink->paused(engine->sink_ctx, link);
}

static bool same_rails(const struct wf_greet_hello *a, const struct wf_greet_hello *b)
{
	if (a->rail_count != b->rail_count)
		return false;
	for (uint32_t i = 0; i < a->rail_count; i++) {
		const struct wf_greet_rail *r = &a->rails[i], *s = &b->rails[i];

		if (strcmp(r->provider, s->provider) || r->address_bytes != s->address_bytes ||
		    r->edition != s->edition ||
		    memcmp(r->address, s->address, r->address_bytes))
			return false;
	}
	return true;
}

/*
 * Take the peer's rails anew: the peer opened one again, or comes back through another door.  Go
 * on where nothing has changed.
 */
void wf_probe_rails(struct wf_link *link, const struct wf_greet_hello *hello)
{
	bool changed = !same_rails(link->peer, hello);
	struct wf_error e;

	if (changed && wf_link_keep_hello(link, hello, &e)) {
		wf_link_die(link, &e);
		return;
	}
	if (changed)
		link->probe.pair_count = 0;
	/* Our word of a rail that failed was lost with the door. */
	if (link->state == WF_LINK_TRYING && !link->dialler && !link->on &&
	    link->stage >= WF_LINK_STAGE_PONGED)
		send_try(link, WF_GREET_CANNOT, 0, 0, "the rail has failed");
	if (link->state == WF_LINK_TRYING)
		wf_probe_start(link);
	else if (changed && link->state == WF_LINK_UP &&
		 !wf_rail_caps(link->on->rail)->connected)
		wf_probe_failed(link, "the peer has opened it anew");
}

/* Leave the rail of @link that is in use or tried, which has failed. */
void wf_probe_failed(struct wf_link *link, const char *why)
{
	struct wf_engine *engine = link->engine;
	const struct wf_rail_caps *caps = wf_rail_caps(link->on->rail);

	wf_log(&engine->log, WF_LOG_INFO, "%s: rail %s failed: %s", wf_link_label(link),
	       caps->provider, why);
	wf_link_record(link, WF_RECORDER_RAIL_FAILED, wf_link_rail_number(link), link->probe.epoch);
	wf_probe_leave(link, link->on);
	if (!link->dialler)
		send_try(link, WF_GREET_CANNOT, 0, 0, why);
	/*
	 * Without a door, the redial's greeting goes on from here.  A connection that closed may
	 * have a reason that comes through the door: a peer that has said goodbye is not dialled,
	 * and would leave the request lying.
	 */
	if (link->conn)
		start(link, caps->connected ? REASON_NS : 0);
}

void wf_probe_renew(struct wf_link *link)
{
	wf_probe_leave(link, link->on);
	start(link, 0);
}
