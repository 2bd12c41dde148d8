/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/lane.h"
#include "link/fit.h"
#include "link/internal.h"
#include "link/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/ep.h"
#include "util/clock.h"

#define DIAL_NS WF_NS_PER_S          /* time for a connection to come up */
#define PAUSE_NS WF_NS_PER_S         /* pause before a redial; doubles while none comes up */
#define PAUSE_MAX_NS (30 * WF_NS_PER_S)
#define SETTLE_NS (500 * WF_NS_PER_MS) /* wait of bodies for lanes when a rail has come up */
#define AHEAD_MAX 65536u /* numbers that a dialler may have used since, for others or in vain */
#define STUCK_NS (2 * WF_NS_PER_S)   /* time without the end of a read, while the peer answers */

static void dial_again(struct wf_timer *timer);

static const char *name_of(const struct wf_lane *lane)
{
	return wf_rail_caps(lane->on->rail)->domain;
}

static void tell(struct wf_lane *lane, bool open)
{
	const struct wf_engine *engine = lane->link->engine;

	engine->sink->lane(engine->sink_ctx, lane, open);
}

/* Close the endpoint of @lane, whose reads end without a completion. */
static void close_ep(struct wf_lane *lane)
{
	struct wf_ep *ep = lane->ep;
	bool was_ready = lane->ready;

	lane->ep = NULL;
	lane->ready = false;
	wf_ep_close(ep);
	if (was_ready)
		tell(lane, false);
	lane->number = 0;
	lane->reads.count = 0;
}

static void end(struct wf_lane *lane)
{
	close_ep(lane);
	wf_timer_stop(&lane->link->engine->loop.timers, &lane->timer);
	wf_list_remove(&lane->node);
	free(lane);
}

static struct wf_lane *begin(struct wf_link *link, struct wf_engine_rail *on)
{
	struct wf_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->link = link;
	lane->on = on;
	lane->pause_ns = PAUSE_NS;
	wf_list_append(&link->lanes, &lane->node);
	return lane;
}

struct wf_lane *wf_lane_find(const struct wf_link *link, uint32_t number)
{
	WF_LIST_EACH(node, &link->lanes) {
		struct wf_lane *lane = WF_CONTAINER(node, struct wf_lane, node);

		if (lane->ep && lane->number == number)
			return lane;
	}
	return NULL;
}

static struct wf_lane *find_on(const struct wf_link *link, const struct wf_engine_rail *on)
{
	WF_LIST_EACH(node, &link->lanes) {
		struct wf_lane *lane = WF_CONTAINER(node, struct wf_lane, node);

		if (lane->on == on)
			return lane;
	}
	return NULL;
}

static struct wf_lane *find_ep(const struct wf_link *link, const struct wf_ep *ep)
{
	WF_LIST_EACH(node, &link->lanes) {
		struct wf_lane *lane = WF_CONTAINER(node, struct wf_lane, node);

		if (lane->ep == ep)
			return lane;
	}
	return NULL;
}

uint32_t wf_lane_count(const struct wf_link *link)
{
	uint32_t count = 0;

	WF_LIST_EACH(node, &link->lanes)
		count += WF_CONTAINER(node, struct wf_lane, node)->ready;
	return count;
}

static uint32_t lanes_max(const struct wf_link *link)
{
	return WF_MIN(link->peer->lanes, WF_LANES_MAX);
}

/* Returns the number of our rails of the provider in use. */
static uint32_t our_rails(const struct wf_link *link)
{
	const struct wf_engine *engine = link->engine;
	uint32_t count = 0;

	for (uint32_t i = 0; i < engine->rail_count; i++)
		count += !strcmp(wf_rail_caps(engine->rails[i].rail)->provider,
				 wf_link_caps(link)->provider);
	return count;
}

/* Returns the number of the peer's rails of the provider in use. */
static uint32_t their_rails(const struct wf_link *link)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < link->peer->rail_count; i++)
		count += !strcmp(link->peer->rails[i].provider, wf_link_caps(link)->provider);
	return count;
}

bool wf_lane_may_come(const struct wf_link *link)
{
	uint32_t rails;

	if (link->state != WF_LINK_UP || link->engine->loop.now_ns >= link->probe.lanes_until_ns)
		return false;
	rails = WF_MIN(our_rails(link), their_rails(link));
	return 1 + wf_lane_count(link) < WF_MIN(rails, 1 + lanes_max(link));
}

/* Dial @lane again later; or free it, if dialling is the peer's part. */
static void give_up(struct wf_lane *lane)
{
	struct wf_engine *engine = lane->link->engine;

	if (!lane->link->dialler) {
		end(lane);
		return;
	}
	close_ep(lane);
	wf_loop_timer(&engine->loop, &lane->timer, engine->loop.now_ns + lane->pause_ns,
		      dial_again);
	lane->pause_ns = WF_MIN(2 * lane->pause_ns, PAUSE_MAX_NS);
}

void wf_lane_failed(struct wf_lane *lane, const char *why)
{
	struct wf_link *link = lane->link;

	wf_log(&link->engine->log, lane->ready ? WF_LOG_INFO : WF_LOG_DEBUG,
	       "%s: the lane on %s failed: %s", wf_link_label(link), name_of(lane), why);
	wf_link_record(link, WF_RECORDER_LANE_CLOSED, lane->number, link->probe.epoch);
	give_up(lane);
}

static void dial_late(struct wf_timer *timer)
{
	wf_lane_failed(WF_CONTAINER(timer, struct wf_lane, timer), "no connection in time");
}

static void dial(struct wf_lane *lane)
{
	struct wf_link *link = lane->link;
	struct wf_engine *engine = link->engine;
	const struct wf_greet_rail *r = &link->peer->rails[lane->theirs];
	uint8_t data[WF_CONNECT_BYTES];
	struct wf_bytes_writer writer = wf_bytes_writer(data, sizeof(data));
	struct wf_error e = { .text = "the peer has that rail no more" };

	/* The peer may have said anew what rails it has. */
	if (lane->theirs >= link->peer->rail_count ||
	    wf_fit_check(link, wf_rail_caps(lane->on->rail), r, &e)) {
		wf_lane_failed(lane, e.text);
		return;
	}
	lane->number = ++link->probe.lane_number;
	link->probe.lane_total++;
	if (wf_request_put(link, lane->number, r, &writer)) {
		wf_lane_failed(lane, "no memory for its proof");
		return;
	}
	if (wf_ep_open(lane->on->rail, r->address, r->address_bytes, data,
		       (size_t)(writer.at - data), link, &lane->ep, &e))
		wf_lane_failed(lane, e.text);
	else
		wf_loop_timer(&engine->loop, &lane->timer, engine->loop.now_ns + DIAL_NS,
			      dial_late);
}

static void dial_again(struct wf_timer *timer)
{
	dial(WF_CONTAINER(timer, struct wf_lane, timer));
}

/* Returns the rail of the peer, none of @taken, that is nearest to ours; or -1. */
static int nearest(const struct wf_link *link, uint32_t mine, uint32_t taken)
{
	const struct wf_rail_caps *caps = wf_rail_caps(link->engine->rails[mine].rail);
	int best = -1;
	unsigned best_bits = 0;

	for (uint32_t theirs = 0; theirs < link->peer->rail_count; theirs++) {
		unsigned bits;

		if (taken & 1u << theirs ||
		    wf_fit_check(link, caps, &link->peer->rails[theirs], NULL))
			continue;
		bits = wf_fit_nearness(link, mine, theirs);
		if (best < 0 || bits > best_bits) {
			best = (int)theirs;
			best_bits = bits;
		}
	}
	return best;
}

void wf_lane_start(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;
	const char *provider = wf_rail_caps(link->on->rail)->provider;
	uint32_t taken, left = lanes_max(link);

	link->probe.lanes_until_ns = engine->loop.now_ns + SETTLE_NS;
	if (!link->dialler || !wf_rail_caps(link->on->rail)->connected)
		return;
	taken = 1u << link->probe.pairs[link->probe.pair_at].theirs;
	for (uint32_t mine = 0; mine < engine->rail_count && left; mine++) {
		struct wf_lane *lane;
		int theirs;

		if (&engine->rails[mine] == link->on ||
		    strcmp(wf_rail_caps(engine->rails[mine].rail)->provider, provider))
			continue;
		theirs = nearest(link, mine, taken);
		if (theirs < 0)
			continue;
		lane = begin(link, &engine->rails[mine]);
		if (!lane)
			return; /* no memory: the link does without */
		lane->theirs = (uint8_t)theirs;
		taken |= 1u << theirs;
		left--;
		dial(lane);
	}
}

void wf_lane_drop(struct wf_link *link)
{
	struct wf_list *node;

	while ((node = wf_list_first(&link->lanes)))
		end(WF_CONTAINER(node, struct wf_lane, node));
	link->probe.lane_total = 0;
}

bool wf_lane_request(struct wf_link *link, struct wf_engine_rail *on, uint32_t number,
		     uint32_t epoch, struct wf_rail_request *request)
{
	uint32_t *last = &link->probe.lanes_taken[on - link->engine->rails];
	struct wf_lane *lane = find_on(link, on);
	struct wf_error e;

	if (epoch != link->probe.epoch || !link->rail.ready || on == link->on ||
	    !wf_rail_caps(on->rail)->connected)
		return false;
	/* A request is repeated by whoever has read it on the network. */
	if (number - *last - 1 >= AHEAD_MAX)
		return false;
	*last = number;
	/* The peer has given up the lane before. */
	if (lane)
		end(lane);
	lane = begin(link, on);
	if (!lane)
		return false;
	lane->number = number;
	link->probe.lane_total++;
	if (wf_ep_accept(on->rail, request, link, &lane->ep, &e))
		end(lane);
	return true;
}

void wf_lane_connected(struct wf_link *link, const struct wf_ep *ep)
{
	struct wf_lane *lane = find_ep(link, ep);

	if (!lane || lane->ready)
		return;
	wf_timer_stop(&link->engine->loop.timers, &lane->timer);
	wf_link_record(link, WF_RECORDER_LANE_UP, lane->number, link->probe.epoch);
	lane->ready = true;
	lane->pause_ns = PAUSE_NS;
	lane->reads.depth = wf_depth(wf_rail_caps(lane->on->rail)->depth);
	tell(lane, true);
}

void wf_lane_closed(struct wf_link *link, const struct wf_ep *ep, int status)
{
	struct wf_lane *lane = find_ep(link, ep);

	if (lane)
		wf_lane_failed(lane, status ? wf_error_name(status) : "closed by the peer");
}

void wf_lane_look(struct wf_link *link)
{
	WF_LIST_EACH(node, &link->lanes) {
		struct wf_lane *lane = WF_CONTAINER(node, struct wf_lane, node);

		if (!lane->reads.count ||
		    !wf_keepalive_has_answered(&link->keepalive, lane->reads.ns + STUCK_NS))
			continue;
		wf_lane_failed(lane, "reads do not end while the peer is alive");
		return; /* other lanes may have failed with it; the next heartbeat looks at them */
	}
}
