/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/traffic.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "core/peer.h"
#include "tests/sim/casting.h"
#include "tests/sim/chance.h"
#include "tests/sim/faults.h"
#include "tests/sim/fusing.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/onesided.h"
#include "tests/sim/pushing.h"
#include "tests/sim/staying.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define GROUPS_MAX 128
#define LEGS_MAX 512
#define STREAM_MAX 8
#define STREAMS_MAX 16
#define CARGO_CALLS_MAX 8
#define CARGO_STREAMS_MAX 3
#define MEDDLERS_MAX 4
#define TREES_MAX 6
#define TREE_DEPTH_MAX 4
#define HEAD_BYTES sizeof(uint64_t) /* a request begins with the number of its leg */

static struct wf_group groups[GROUPS_MAX];
static unsigned group_count;
static struct wf_leg legs[LEGS_MAX];
static unsigned leg_count, node_count;

struct wf_group *wf_traffic_groups(unsigned *count)
{
	*count = group_count;
	return groups;
}

/* The plan. */

/* Most bodies are small, so that there can be many; a few take many chunks. */
size_t wf_traffic_some_bytes(void)
{
	unsigned at = (unsigned)wf_chance_below(1000);

	if (at < 60)
		return wf_chance_below(3);
	if (at < 600)
		return wf_chance_below(400);
	if (at < 800)
		return wf_chance_below(4 * KIB);
	if (at < 950)
		return wf_chance_below(20 * KIB);
	if (at < 996)
		return wf_chance_below(100 * KIB);
	return wf_chance_below(6 * MIB);
}

/* As likely to fall into a handshake as into a pull or a long wait: up to 1.3 s. */
uint64_t wf_traffic_soon_ns(void)
{
	uint64_t ns = 20 * WF_NS_PER_US << wf_chance_below(16);

	return ns + wf_chance_below(ns);
}

static struct wf_leg *add_leg(struct wf_group *g, enum wf_leg_kind kind, unsigned node,
			      unsigned peer, uint64_t begin_ns)
{
	struct wf_leg *leg = &legs[leg_count++];

	assert_true(leg_count <= LEGS_MAX);
	*leg = (struct wf_leg){
		.kind = kind,
		.group = g,
		.node = node,
		.peer = peer,
		.begin_ns = begin_ns,
		.limit_ns = wf_chance_in_100(60) ? WF_TRAFFIC_LONG_NS : wf_traffic_soon_ns(),
		.detached = wf_chance_in_100(2),
		.seed = wf_chance_below(UINT64_MAX),
	};
	if (wf_chance_in_100(10))
		leg->cancel_ns = begin_ns + wf_traffic_soon_ns();
	g->lonely |= leg->cancel_ns || leg->limit_ns != WF_TRAFFIC_LONG_NS;
	g->count++;
	return leg;
}

static void plan_send(struct wf_leg *leg, size_t bytes, size_t row_bytes)
{
	leg->bytes = bytes;
	leg->row_bytes = row_bytes;
	if (row_bytes && wf_chance_in_100(50))
		leg->pitch_bytes = row_bytes + 1 + wf_chance_below(50);
	if (wf_chance_in_100(15))
		leg->flags = row_bytes || wf_chance_in_100(50) ? WEFT_SNAPSHOT : WEFT_OPAQUE;
	if (!leg->flags && !leg->pitch_bytes && wf_chance_in_100(50))
		leg->flags = WEFT_SHARE;
	if (wf_chance_in_100(4)) {
		leg->flags = WEFT_DEAD;
		leg->dead_bytes = bytes;
		leg->bytes = 0;
		leg->pitch_bytes = 0;
	}
}

/* @bytes: of every send in the group, or @varied and no more than that. */
static void plan_receive(struct wf_leg *leg, size_t bytes, size_t row_bytes, bool varied)
{
	leg->bytes = bytes;
	leg->row_bytes = row_bytes;
	leg->memory = (enum wf_leg_memory)wf_chance_below(3);
	leg->any_shape = varied || wf_chance_in_100(20);
	if (wf_chance_in_100(20))
		leg->peer = leg->node;
	if (wf_chance_in_100(2)) {
		leg->misfits = leg->memory == WF_LEG_OWN && !leg->any_shape;
		leg->refuses = leg->memory == WF_LEG_ALLOC;
		leg->group->lonely |= leg->misfits || leg->refuses;
	}
}

static void plan_channel(struct wf_group *g, unsigned from, unsigned to, uint64_t at_ns,
			 unsigned sends, unsigned receives)
{
	size_t bytes = wf_traffic_some_bytes(), row_bytes = 0;
	bool varied = sends > 1 && wf_chance_in_100(50);
	uint64_t receive_ns = at_ns + wf_chance_below(20 * MS);
	uint64_t send_ns = at_ns + wf_chance_below(20 * MS);

	if (sends > 1)
		bytes = WF_MIN(bytes, (size_t)(100 * KIB));
	if (!varied && bytes > 1 && wf_chance_in_100(30)) {
		row_bytes = 1 + wf_chance_below(WF_MIN(bytes, (size_t)1000));
		bytes -= bytes % row_bytes;
	}
	g->lonely |= sends != receives;
	for (unsigned i = 0; i < sends; i++, send_ns += wf_chance_below(3 * MS))
		plan_send(add_leg(g, WF_LEG_SEND, from, to, send_ns),
			  varied ? wf_chance_below(bytes + 1) : bytes, row_bytes);
	if (wf_chance_in_100(12)) {
		g->stop_ns = at_ns + wf_traffic_soon_ns();
		g->stopper = wf_chance_in_100(50) ? from : to;
		g->ends = wf_chance_in_100(40);
		g->lonely = true;
	}
	for (unsigned i = 0; i < receives; i++, receive_ns += wf_chance_below(3 * MS))
		plan_receive(add_leg(g, WF_LEG_RECEIVE, to, from, receive_ns), bytes, row_bytes,
			     varied);
}

static void plan_request(struct wf_leg *leg)
{
	leg->bytes = HEAD_BYTES + wf_traffic_some_bytes();
	if (wf_chance_in_100(30))
		leg->hold_ns = wf_chance_below(100 * MS);
	if (wf_chance_in_100(5)) {
		leg->hold_ns = UINT64_MAX;
		leg->group->lonely = true;
	}
}

static void plan_group(const struct wf_traffic_config *config)
{
	struct wf_group *g = &groups[group_count++];
	unsigned from = (unsigned)wf_chance_below(config->nodes);
	unsigned to = (from + 1 + (unsigned)wf_chance_below(config->nodes - 1)) % config->nodes;
	uint64_t at_ns = config->from_ns + wf_chance_below(config->until_ns - config->from_ns);
	unsigned kind = (unsigned)wf_chance_below(100), count;

	*g = (struct wf_group){ .legs = &legs[leg_count], .step = group_count };
	if (kind < 36) {
		plan_channel(g, from, to, at_ns, 1, 1);
	} else if (kind < 50) {
		count = 2 + (unsigned)wf_chance_below(STREAM_MAX - 1);
		plan_channel(g, from, to, at_ns, count, count);
	} else if (kind < 55) {
		plan_channel(g, from, to, at_ns, 1, 0);
	} else if (kind < 60) {
		plan_channel(g, from, to, at_ns, 0, 1);
	} else if (kind < 88) {
		plan_request(add_leg(g, WF_LEG_CALL, from, to, at_ns));
	} else {
		add_leg(g, WF_LEG_PING, from, to, at_ns);
	}
	/* What nobody answers would wait for ever. */
	for (unsigned i = 0; kind >= 50 && kind < 60 && i < g->count; i++)
		if (g->legs[i].limit_ns == WF_TRAFFIC_LONG_NS)
			g->legs[i].limit_ns = wf_traffic_soon_ns();
}

void wf_traffic_plan(const struct wf_traffic_config *config)
{
	unsigned count = 40 + (unsigned)wf_chance_below(30);

	node_count = config->nodes;
	group_count = leg_count = 0;
	while (count--)
		plan_group(config);
}

/* A call or stream of its own. */
static struct wf_leg *add_conversation(const struct wf_traffic_config *config,
				       enum wf_leg_kind kind)
{
	struct wf_group *g = &groups[group_count++];
	unsigned from = (unsigned)wf_chance_below(config->nodes);
	unsigned to = (from + 1 + (unsigned)wf_chance_below(config->nodes - 1)) % config->nodes;
	uint64_t at_ns = config->from_ns + wf_chance_below(config->until_ns - config->from_ns);

	assert_true(group_count <= GROUPS_MAX);
	*g = (struct wf_group){ .legs = &legs[leg_count], .step = group_count };
	return add_leg(g, kind, from, to, at_ns);
}

void wf_traffic_plan_streams(const struct wf_traffic_config *config)
{
	unsigned count = wf_chance_in_100(60) ? 2 + (unsigned)wf_chance_below(STREAMS_MAX - 1) : 0;

	while (count--)
		wf_talk_plan(add_conversation(config, WF_LEG_STREAM));
}

void wf_traffic_plan_cargo(const struct wf_traffic_config *config)
{
	bool any = wf_chance_in_100(60);
	unsigned calls = any ? (unsigned)wf_chance_below(CARGO_CALLS_MAX + 1) : 0;
	unsigned streams = any ? (unsigned)wf_chance_below(CARGO_STREAMS_MAX + 1) : 0;
	struct wf_leg *leg;

	while (calls--) {
		leg = add_conversation(config, WF_LEG_CALL);
		plan_request(leg);
		wf_cargo_plan(leg);
	}
	while (streams--) {
		leg = add_conversation(config, WF_LEG_STREAM);
		wf_talk_plan(leg);
		wf_cargo_plan(leg);
	}
}

/* A call, whose handler makes a call, and so on; it may come back to where it was before. */
static void plan_tree(const struct wf_traffic_config *config)
{
	struct wf_leg *leg = add_conversation(config, WF_LEG_CALL);
	unsigned depth = 2 + (unsigned)wf_chance_below(TREE_DEPTH_MAX - 1);

	plan_request(leg);
	if (wf_chance_in_100(30)) {
		leg->cancel_ns = leg->begin_ns + wf_chance_below(150 * MS);
		leg->group->lonely = true;
	}
	while (--depth) {
		unsigned to = (leg->peer + 1 + (unsigned)wf_chance_below(config->nodes - 1)) %
			      config->nodes;

		leg->child = add_leg(leg->group, WF_LEG_CALL, leg->peer, to, leg->begin_ns);
		leg->child->parent = leg;
		leg = leg->child;
		plan_request(leg);
	}
	if (!leg->hold_ns)
		leg->hold_ns = wf_chance_below(200 * MS);
}

void wf_traffic_plan_trees(const struct wf_traffic_config *config)
{
	unsigned count = wf_chance_in_100(50) ? 1 + (unsigned)wf_chance_below(TREES_MAX) : 0;

	while (count--)
		plan_tree(config);
}

static bool has_part(const struct wf_group *g, unsigned node)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->legs[i].node == node || g->legs[i].peer == node)
			return true;
	return false;
}

void wf_traffic_plan_meddlers(const struct wf_traffic_config *config)
{
	unsigned count = wf_chance_in_100(30) ? 1 + (unsigned)wf_chance_below(MEDDLERS_MAX) : 0;

	while (count--) {
		struct wf_group *g = &groups[wf_chance_below(group_count)];
		unsigned node = (unsigned)wf_chance_below(config->nodes);
		uint64_t span_ns = config->until_ns - config->from_ns;

		if (has_part(g, node))
			continue;
		g->meddler = node;
		g->meddle_ns = config->from_ns + wf_chance_below(span_ns);
	}
}

struct wf_leg *wf_traffic_leg(uint64_t number)
{
	assert_true(number < leg_count);
	return &legs[number];
}

unsigned wf_traffic_number(const struct wf_leg *leg)
{
	return (unsigned)(leg - legs);
}

/* Tensors. */

struct weft_tensor wf_traffic_tensor(void *data, size_t bytes, size_t row_bytes,
				     size_t pitch_bytes, int64_t shape[2], int64_t strides[2])
{
	struct weft_tensor t = {
		.data = data,
		.device = { WEFT_CPU, 0 },
		.ndim = 1,
		.dtype = { WEFT_UINT, 8, 1 },
		.shape = shape,
	};

	shape[0] = (int64_t)bytes;
	if (row_bytes) {
		t.ndim = 2;
		shape[0] = (int64_t)(bytes / row_bytes);
		shape[1] = (int64_t)row_bytes;
	}
	if (pitch_bytes) {
		strides[0] = (int64_t)pitch_bytes;
		strides[1] = 1;
		t.strides = strides;
	}
	return t;
}

/* The last first, so that none is overwritten. */
void wf_traffic_spread(uint8_t *rows, size_t bytes, size_t row_bytes, size_t pitch_bytes)
{
	for (size_t row = bytes / row_bytes; row--;)
		memmove(rows + row * pitch_bytes, rows + row * row_bytes, row_bytes);
}

static struct weft_tensor describe(const struct wf_leg *leg, void *data, size_t bytes,
				   int64_t shape[2], int64_t strides[2])
{
	return wf_traffic_tensor(data, bytes, leg->row_bytes, leg->pitch_bytes, shape, strides);
}

static void make_buffer(struct wf_leg *leg, size_t bytes)
{
	leg->buffer_bytes = bytes;
	leg->buffer = malloc(bytes + 1);
	assert_non_null(leg->buffer);
}

bool wf_leg_sent(const struct wf_leg *leg, const void *bytes, size_t count)
{
	return leg->bytes == count && wf_world_is_filled(bytes, count, leg->seed);
}

/* What can be shared: memory of the pool, or a guest of it, if rails and place allow that now. */
static int take_shared(struct wf_leg *leg, void **memory)
{
	struct weft_node *node = wf_world_node(leg->node);

	if (leg->seed % 3 == 0 && !weft_alloc_near(node, leg->bytes, NULL, memory))
		return 0;
	return weft_alloc(node, leg->bytes, memory);
}

/* The sender gives it up at once, or later. */
static int begin_share(struct wf_leg *leg, const struct weft_send_options *options)
{
	struct weft_node *node = wf_world_node(leg->node);
	int64_t shape[2], strides[2];
	struct weft_tensor t;
	void *memory;
	int err = take_shared(leg, &memory);

	if (err)
		return err;
	wf_world_fill(memory, leg->bytes, leg->seed);
	t = describe(leg, memory, leg->bytes, shape, strides);
	err = weft_send(wf_world_peer(leg->node, leg->peer), leg->group->step, "", 0, &t, options,
			&leg->flight.op);
	if (!err && leg->seed % 2)
		leg->shared = memory;
	else
		weft_free(node, memory);
	return err;
}

static int begin_send(struct wf_leg *leg)
{
	struct weft_send_options options = {
		.size = sizeof(options),
		.op = wf_flight_begin(&leg->flight, leg->limit_ns),
		.flags = leg->flags,
	};
	int64_t shape[2], strides[2];
	struct weft_tensor t;
	int err;

	if (leg->flags & WEFT_SHARE)
		return begin_share(leg, &options);
	make_buffer(leg, leg->pitch_bytes ? leg->bytes / leg->row_bytes * leg->pitch_bytes :
					    leg->bytes);
	wf_world_fill(leg->buffer, leg->bytes, leg->seed);
	if (leg->pitch_bytes)
		wf_traffic_spread(leg->buffer, leg->bytes, leg->row_bytes, leg->pitch_bytes);
	if (leg->flags & WEFT_DEAD)
		t = describe(leg, NULL, leg->dead_bytes, shape, strides);
	else
		t = describe(leg, leg->buffer, leg->bytes, shape, strides);
	err = weft_send(wf_world_peer(leg->node, leg->peer), leg->group->step, "", 0, &t, &options,
			&leg->flight.op);
	if (leg->flags & WEFT_SNAPSHOT)
		memset(leg->buffer, WF_TRAFFIC_CANARY, leg->buffer_bytes);
	return err;
}

static void *alloc(void *arg, const struct weft_tensor *want, uint64_t bytes)
{
	struct wf_leg *leg = arg;

	(void)want;
	assert_null(leg->buffer); /* it is asked once */
	if (leg->refuses)
		return NULL;
	make_buffer(leg, bytes);
	return leg->buffer;
}

static int begin_receive(struct wf_leg *leg)
{
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = wf_flight_begin(&leg->flight, leg->limit_ns),
		.flags = leg->any_shape && leg->memory == WF_LEG_OWN ? WEFT_ANY_SHAPE : 0,
		.alloc = leg->memory == WF_LEG_ALLOC ? alloc : NULL,
		.alloc_arg = leg,
	};
	struct weft_peer *from = leg->node == leg->peer ? NULL : wf_world_peer(leg->node, leg->peer);
	size_t bytes = leg->bytes + (leg->misfits ? WF_MAX(leg->row_bytes, (size_t)1) : 0);
	int64_t shape[2], strides[2];
	struct weft_tensor t;

	if (leg->memory == WF_LEG_OWN) {
		make_buffer(leg, bytes);
		memset(leg->buffer, 0, bytes);
	}
	t = describe(leg, leg->buffer, bytes, shape, strides);
	return weft_recv(wf_world_node(leg->node), from, leg->group->step, "", 0,
			 leg->memory == WF_LEG_OWN ? &t : NULL, &options, &leg->flight.op);
}

/* Calls. */

/* The node whose handler made the child of @leg is no more. */
static bool has_died(const struct wf_leg *leg)
{
	return leg->child->life != wf_faults_life(leg->peer) || wf_faults_is_gone(leg->peer);
}

/* Answer a call whose handler has made another. */
static void answer_parent(struct wf_leg *leg, bool well)
{
	void *call = leg->served;

	leg->served = NULL;
	if (!call || has_died(leg))
		return;
	if (well)
		wf_world_answer(call, leg->buffer, leg->bytes);
	else
		weft_served_fail(call, WEFT_ABORTED, "the call that it made has failed");
}

static void answered(const Sim__Bytes *answer, void *arg)
{
	struct wf_leg *leg = arg;

	leg->flight.closures++;
	leg->flight.reply_right = answer && answer->body.len == leg->bytes &&
				  !memcmp(answer->body.data, leg->buffer, leg->bytes);
	if (!wf_cargo_is_sent(leg->cargo.up))
		fail_msg("a call of group %llu ends before what goes beside its request",
			 (unsigned long long)leg->group->step);
	if (answer && leg->flight.op)
		wf_cargo_came(leg->cargo.down, leg->flight.op);
	if (leg->parent)
		answer_parent(leg->parent, answer != NULL);
}

static void begin(struct wf_leg *leg);

/* Whoever waits for the call has given it up: so ends what it made. */
static void parent_given_up(void *arg)
{
	struct wf_leg *leg = arg;

	if (has_died(leg))
		return;
	if (!leg->served)
		fail_msg("a handler of group %llu hears of the end of a call that it has answered",
			 (unsigned long long)leg->group->step);
	leg->child->stopped_ns = wf_clock_now();
	leg->child->stopped_life = wf_faults_life(leg->peer);
}

static void make_child(struct wf_leg *leg, void *call)
{
	struct wf_leg *child = leg->child;
	uint64_t left_ns = weft_served_left_ns(call);

	leg->served = call;
	child->limit_ns = WF_MIN(child->limit_ns, left_ns);
	weft_served_on_cancel(call, parent_given_up, leg);
	begin(child);
	if (child->refused)
		answer_parent(leg, false);
}

/* What every node does with a call: as its leg says. */
static uint64_t handle(unsigned number, void *call, const uint8_t *bytes, size_t count)
{
	struct wf_leg *leg;
	uint64_t at;

	assert_true(count >= HEAD_BYTES);
	memcpy(&at, bytes, HEAD_BYTES);
	assert_true(at < leg_count);
	leg = &legs[at];
	assert_true(leg->kind == WF_LEG_CALL && leg->begun);
	if (leg->peer != number || leg->bytes != count || memcmp(leg->buffer, bytes, count))
		fail_msg("call %u came to node %u as something else", (unsigned)at, number);
	wf_faults_assert_serves(number, &leg->flight);
	leg->handled++;
	if (leg->child)
		make_child(leg, call);
	else if (leg->cargo.up)
		wf_cargo_serve(leg, number, call);
	else
		return leg->hold_ns;
	return WF_WORLD_KEPT;
}

/* Not drawn, so that the rest is as it was.  One with attachments can't be. */
static bool is_made_again(const struct wf_leg *leg)
{
	return leg->kind == WF_LEG_CALL && leg->seed % 3 == 0 && !leg->cargo.up && !leg->child;
}

static int begin_call(struct wf_leg *leg)
{
	static const struct weft_retry retry = {
		.size = sizeof(retry), .attempts = 4, .pause_ns = 5 * MS, .pause_max_ns = 50 * MS,
		.statuses = 1u << WEFT_UNAVAILABLE | 1u << WEFT_RESOURCE_EXHAUSTED,
	};
	struct weft_call_options options = { .size = sizeof(options), .op = wf_flight_begin(&leg->flight, leg->limit_ns) };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	uint64_t at = (uint64_t)(leg - legs);
	int err;

	make_buffer(leg, leg->bytes);
	wf_world_fill(leg->buffer, leg->bytes, leg->seed);
	memcpy(leg->buffer, &at, HEAD_BYTES);
	question.body.data = leg->buffer;
	question.body.len = leg->bytes;
	if (is_made_again(leg))
		options.retry = &retry;
	options.parent = leg->parent ? leg->parent->served : NULL;
	err = weft_call_open(wf_world_stub(leg->node, leg->peer), &options, &service,
			     &leg->flight.op);
	if (err)
		return err;
	wf_cargo_attach(leg->cargo.up, &(struct wf_berth){ .request = leg->flight.op });
	sim__mirror__reflect(service, &question, answered, leg);
	return 0;
}

static int begin_ping(struct wf_leg *leg)
{
	struct weft_op_options options = wf_flight_begin(&leg->flight, leg->limit_ns);

	return weft_ping(wf_world_peer(leg->node, leg->peer), &options, &leg->flight.op);
}

/* Time. */

static void begin(struct wf_leg *leg)
{
	static int (*const begin_kind[])(struct wf_leg *leg) = {
		[WF_LEG_SEND] = begin_send,
		[WF_LEG_RECEIVE] = begin_receive,
		[WF_LEG_CALL] = begin_call,
		[WF_LEG_PING] = begin_ping,
		[WF_LEG_STREAM] = wf_talk_begin,
	};
	int err;

	leg->begun = true;
	leg->life = wf_faults_life(leg->node);
	err = begin_kind[leg->kind](leg);
	if (err) {
		/* Only memory may be missing. */
		if (err != -ENOBUFS && err != -ENOMEM)
			fail_msg("an operation can't be begun: %s", weft_error());
		leg->refused = true;
		leg->group->lonely = true;
	} else if (leg->detached) {
		weft_op_free(leg->flight.op);
		leg->flight.op = NULL;
	}
}

bool wf_leg_has_ended(const struct wf_leg *leg)
{
	if (!leg->flight.outcomes)
		return false;
	if (leg->kind == WF_LEG_STREAM)
		return wf_talk_is_over(leg);
	return leg->kind != WF_LEG_CALL || wf_cargo_is_begun(leg->cargo.down, 1);
}

bool wf_leg_is_live(const struct wf_leg *leg)
{
	return leg->begun && !leg->refused && !wf_leg_has_ended(leg) &&
	       leg->life == wf_faults_life(leg->node) && !wf_faults_is_gone(leg->node);
}

bool wf_traffic_is_linked(unsigned node, unsigned peer)
{
	struct wf_link *link = wf_world_peer(node, peer)->link;

	return link && wf_link_was_up(wf_link_real(link));
}

/* Only an attempt ends with the peer: the next may wait for one of another life, as if never met. */
static bool may_find_another(const struct wf_leg *leg)
{
	return is_made_again(leg) && (!wf_faults_is_gone(leg->peer) || wf_faults_life(leg->peer));
}

void wf_traffic_bereave(unsigned number)
{
	for (unsigned i = 0; i < leg_count; i++) {
		struct wf_leg *leg = &legs[i];

		if (leg->peer == number && leg->node != number && wf_leg_is_live(leg) &&
		    wf_traffic_is_linked(leg->node, number) && !may_find_another(leg))
			leg->bereft_ns = wf_clock_now();
	}
	wf_cargo_bereave(number);
	wf_onesided_bereave(number);
	wf_staying_bereave(number);
	wf_casting_bereave(number);
	wf_pushing_bereave(number);
}

void wf_traffic_leave(unsigned number)
{
	for (unsigned i = 0; i < leg_count; i++) {
		struct wf_leg *leg = &legs[i];

		if (leg->peer == number && leg->served &&
		    leg->child->life == wf_faults_life(number)) {
			weft_served_fail(leg->served, WEFT_CANCELLED, "the handler can't go on");
			leg->served = NULL;
		}
	}
	wf_cargo_leave(number);
}

void wf_traffic_drain(unsigned number)
{
	for (unsigned i = 0; i < leg_count; i++)
		if ((legs[i].kind == WF_LEG_CALL || legs[i].kind == WF_LEG_STREAM) &&
		    legs[i].peer == number && !legs[i].handled)
			legs[i].group->lonely = true;
}

/* Sends of a channel begin in their order, and so do its receives. */
static bool is_next(const struct wf_leg *leg)
{
	const struct wf_leg *before = leg - 1;

	return leg == leg->group->legs || before->kind != leg->kind || before->begun;
}

/* When something is to be done about @leg next; what is due is done. */
static uint64_t run_leg(struct wf_leg *leg, uint64_t now)
{
	uint64_t deadline_ns, next = UINT64_MAX;

	if (!leg->begun) {
		if (leg->parent)
			return UINT64_MAX;
		if (leg->begin_ns > now)
			return leg->begin_ns;
		if (!wf_faults_is_away(leg->node) && is_next(leg))
			begin(leg);
		return UINT64_MAX;
	}
	if (!wf_leg_is_live(leg) || wf_faults_is_away(leg->node))
		return UINT64_MAX;
	deadline_ns = leg->flight.started_ns + leg->limit_ns;
	if (now >= deadline_ns && !leg->hit_deadline) {
		leg->hit_deadline = true;
		wf_faults_strike_leg(WF_FAULT_DEADLINE, leg);
	}
	if (leg->kind == WF_LEG_STREAM)
		next = wf_talk_run(leg, now);
	if (!leg->cancel_ns || !leg->flight.op)
		return next;
	if (leg->cancel_ns > now)
		return WF_MIN(next, leg->cancel_ns);
	leg->cancel_ns = 0;
	wf_faults_strike_leg(WF_FAULT_CANCEL, leg);
	weft_cancel(leg->flight.op);
	return next;
}

/* All that is pending of the step ends on the node that stops it, and what is begun later. */
static void stop_step(struct wf_group *g)
{
	struct weft_node *node = wf_world_node(g->stopper);

	g->stopped = true;
	for (unsigned i = 0; i < g->count; i++) {
		if (g->legs[i].node != g->stopper)
			continue;
		g->legs[i].stopped_ns = wf_clock_now();
		g->legs[i].stopped_life = wf_faults_life(g->stopper);
		if (wf_leg_is_live(&g->legs[i]))
			wf_faults_strike_leg(g->ends ? WF_FAULT_END : WF_FAULT_ABORT, &g->legs[i]);
	}
	/* Only memory may be missing. */
	if (g->ends)
		g->stopped = weft_step_end(node, g->step) != -ENOMEM;
	else
		g->stopped = weft_step_abort(node, g->step, WEFT_ABORTED, "as the test wants") != -ENOMEM;
}

/* When a node that takes no part in the step of @g aborts it; what is due is done. */
static uint64_t meddle(struct wf_group *g, uint64_t now)
{
	if (!g->meddle_ns || g->meddle_ns > now)
		return g->meddle_ns ? g->meddle_ns : UINT64_MAX;
	g->meddle_ns = 0;
	/* Without memory it does not. */
	if (!wf_faults_is_away(g->meddler))
		(void)weft_step_abort(wf_world_node(g->meddler), g->step, WEFT_ABORTED,
				      WF_TRAFFIC_MEDDLED);
	return UINT64_MAX;
}

static uint64_t run_group(struct wf_group *g, uint64_t now)
{
	if (!g->stop_ns || g->stopped)
		return UINT64_MAX;
	if (g->stop_ns > now)
		return g->stop_ns;
	if (!wf_faults_is_away(g->stopper))
		stop_step(g);
	return UINT64_MAX;
}

void wf_traffic_end_steps(void)
{
	for (unsigned i = 0; i < node_count; i++)
		for (unsigned j = 0; j < group_count && !wf_faults_is_gone(i); j++)
			assert_int_equal(weft_step_end(wf_world_node(i), groups[j].step), 0);
	wf_staying_end_steps();
	wf_casting_end_steps();
	wf_fusing_end_steps();
}

uint64_t wf_traffic_run(void)
{
	uint64_t now = wf_clock_now(), next, cargo_next, onesided_next, staying_next, casting_next;
	uint64_t fusing_next, pushing_next;

	wf_world_on_call(handle);
	next = wf_talk_serve(now);
	cargo_next = wf_cargo_run(now);
	onesided_next = wf_onesided_run(now);
	staying_next = wf_staying_run(wf_clock_now());
	casting_next = wf_casting_run(wf_clock_now());
	fusing_next = wf_fusing_run(wf_clock_now());
	pushing_next = wf_pushing_run(wf_clock_now());
	now = wf_clock_now();
	next = WF_MIN(WF_MIN(next, cargo_next), WF_MIN(onesided_next, staying_next));
	next = WF_MIN(next, WF_MIN(casting_next, WF_MIN(fusing_next, pushing_next)));
	for (unsigned i = 0; i < group_count; i++) {
		uint64_t meddle_ns = meddle(&groups[i], now), group_ns = run_group(&groups[i], now);

		next = WF_MIN(next, WF_MIN(meddle_ns, group_ns));
	}
	for (unsigned i = 0; i < leg_count; i++)
		if (!legs[i].seen)
			next = WF_MIN(next, run_leg(&legs[i], now));
	return next;
}

bool wf_traffic_is_over(void)
{
	bool windows_are_over, landings_are_over;

	for (unsigned i = 0; i < leg_count; i++) {
		const struct wf_leg *leg = &legs[i];

		if (wf_leg_is_live(leg) ||
		    (!leg->begun && !leg->parent && !wf_faults_is_gone(leg->node)))
			return false;
	}
	if (!wf_cargo_is_over() || !wf_casting_is_over() || !wf_fusing_is_over())
		return false;
	/* Gets and puts, pushes, and receives that stay, wait side by side for what may come late. */
	windows_are_over = wf_onesided_is_over();
	landings_are_over = wf_pushing_is_over();
	return wf_staying_is_over() && windows_are_over && landings_are_over;
}

void wf_traffic_release(void)
{
	for (unsigned i = 0; i < leg_count; i++) {
		weft_op_free(legs[i].flight.op);
		legs[i].flight.op = NULL;
		wf_talk_release(&legs[i]);
	}
	wf_cargo_release();
	wf_onesided_release();
	wf_staying_release();
	wf_casting_release();
	wf_fusing_release();
	wf_pushing_release();
}

void wf_traffic_free(void)
{
	for (unsigned i = 0; i < leg_count; i++) {
		free(legs[i].buffer);
		wf_talk_free(&legs[i]);
	}
	wf_talk_forget_servers();
	wf_cargo_free();
	wf_onesided_free();
	wf_staying_free();
	wf_casting_free();
	wf_fusing_free();
	wf_pushing_free();
	group_count = leg_count = 0;
}
