/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/staying.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "tests/sim/chance.h"
#include "tests/sim/checker.h"
#include "tests/sim/faults.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define CHANNELS_MAX 3
#define RECEIVES_MAX (4 * CHANNELS_MAX)
#define SENDS_OF_CHANNEL 28
#define SENDS_MAX (SENDS_OF_CHANNEL * CHANNELS_MAX)
#define BYTES_MAX (100 * KIB)
#define FIRST_STEP 100000           /* far beyond the steps of other traffic */
#define HEAD_BYTES sizeof(uint32_t) /* a body begins with the number of its send */
#define DEAD_BYTES 9
#define SLACK_NS (8 * MS)   /* as the checker's */
#define LOSS_NS WF_NS_PER_S /* as the checker's */
#define LATE_NS WF_NS_PER_S /* until the last tensor is told, after all else */

/* A tensor that was told, whose handle is not freed. */
struct held {
	struct weft_op *op;
	struct wf_staying_receive *receive;
	const struct wf_staying_send *send;
	const uint8_t *data; /* a closed node tells of no tensor */
	uint64_t until_ns;
};

/* Memory that a receive's callback has given. */
struct given {
	uint8_t *memory;
	size_t bytes;
	bool ours; /* the handle is freed, so nobody else may write */
};

static struct wf_staying_channel channels[CHANNELS_MAX];
static struct wf_staying_receive receives[RECEIVES_MAX];
static struct wf_staying_send sends[SENDS_MAX];
static struct held held[SENDS_MAX];
static struct given given[SENDS_MAX];
static unsigned channel_count, receive_count, send_count, held_count, given_count, node_count;
static const struct wf_checker_config *checks;
static uint64_t busy_until_ns; /* end of the faults */
static uint64_t event_ns;      /* when something was begun, told, ended or freed last */
static bool sent;              /* no send is left */
static bool judged;            /* the channels have been checked, and receives cancelled */
static bool released;          /* the run is over, and nothing that is told counts */

struct wf_staying_receive *wf_staying_receives(unsigned *count)
{
	*count = receive_count;
	return receives;
}

struct wf_staying_send *wf_staying_sends(unsigned *count)
{
	*count = send_count;
	return sends;
}

/* Keys of channels. */
static const char *const keys[WF_STAYING_KEYS] = { "stays", "stays here", "", "a key that is longer than most" };

static unsigned key_of(const struct wf_staying_send *s)
{
	return (unsigned)(s - sends) % s->channel->keys;
}

/* The plan. */

static unsigned other_than(unsigned node)
{
	return (node + 1 + (unsigned)wf_chance_below(node_count - 1)) % node_count;
}

static struct wf_staying_receive *add_receive(struct wf_staying_channel *ch, uint64_t begin_ns)
{
	struct wf_staying_receive *r = &receives[receive_count++];

	assert_true(receive_count <= RECEIVES_MAX);
	*r = (struct wf_staying_receive){ .channel = ch, .begin_ns = begin_ns };
	return r;
}

static void plan_guest(struct wf_staying_channel *ch, uint64_t at_ns)
{
	struct wf_staying_receive *r = add_receive(ch, at_ns + wf_chance_below(50 * MS));

	r->guest = true;
	r->limit_ns = wf_traffic_soon_ns();
}

static void plan_receive(struct wf_staying_channel *ch, uint64_t at_ns, bool last)
{
	struct wf_staying_receive *r = add_receive(ch, at_ns);

	r->max = wf_chance_in_100(40) ? 0 : 1 + (unsigned)wf_chance_below(4);
	r->hold_ns = wf_chance_in_100(50) ? 0 : 1 + wf_chance_below(60 * MS);
	r->allocs = wf_chance_in_100(50);
	/* Memory of the pool would be missing elsewhere. */
	r->keeps = r->allocs && wf_chance_in_100(15);
	r->refuses = r->allocs && wf_chance_in_100(6);
	r->last = last;
	if (last)
		r->detached = wf_chance_in_100(10);
	else if (wf_chance_in_100(60))
		r->cancel_ns = at_ns + wf_traffic_soon_ns();
	else
		r->limit_ns = wf_traffic_soon_ns();
	ch->lonely |= r->refuses || (r->keeps && r->max);
}

static void plan_send(struct wf_staying_channel *ch, unsigned node, uint64_t at_ns)
{
	struct wf_staying_send *s = &sends[send_count++];
	size_t drawn = wf_traffic_some_bytes(), bytes = WF_MIN(drawn, (size_t)BYTES_MAX);

	*s = (struct wf_staying_send){
		.channel = ch,
		.node = node,
		.begin_ns = at_ns,
		.limit_ns = ch->lonely || wf_chance_in_100(10) ? wf_traffic_soon_ns() :
								 WF_TRAFFIC_LONG_NS,
		.bytes = bytes < HEAD_BYTES ? 0 : bytes,
		.seed = wf_chance_below(UINT64_MAX),
		.detached = wf_chance_in_100(2),
	};
	if (wf_chance_in_100(5))
		s->cancel_ns = at_ns + wf_traffic_soon_ns();
	if (wf_chance_in_100(12))
		s->flags = WEFT_SNAPSHOT;
	else if (s->bytes && wf_chance_in_100(40))
		s->flags = WEFT_SHARE;
	if (wf_chance_in_100(4)) {
		s->flags = WEFT_DEAD;
		s->bytes = 0;
	}
}

static void plan_channel(const struct wf_traffic_config *config)
{
	struct wf_staying_channel *ch = &channels[channel_count++];
	uint64_t span_ns = config->until_ns - config->from_ns;
	uint64_t at_ns = config->from_ns + wf_chance_below(span_ns / 4 * 3), receive_ns = at_ns;
	unsigned receive_most = wf_chance_in_100(60) ? 1 : 2 + (unsigned)wf_chance_below(2);
	unsigned send_most = 1 + (unsigned)wf_chance_below(SENDS_OF_CHANNEL);
	uint64_t gap_ns = wf_chance_in_100(40) ? 0 : wf_chance_below(10 * MS);
	bool lasts = wf_chance_in_100(80);
	unsigned sender;

	*ch = (struct wf_staying_channel){
		.step = FIRST_STEP + channel_count,
		.receiver = (unsigned)wf_chance_below(config->nodes),
		.lonely = !lasts,
	};
	sender = other_than(ch->receiver);
	ch->from = wf_chance_in_100(50) ? sender : ch->receiver;
	if (wf_chance_in_100(12)) {
		ch->stop_ns = at_ns + wf_traffic_soon_ns();
		ch->stopper = wf_chance_in_100(50) ? sender : ch->receiver;
		ch->ends = wf_chance_in_100(40);
		ch->lonely = true;
	}
	for (unsigned i = 0; i < receive_most; i++) {
		receive_ns += wf_chance_below(i ? 150 * MS : 20 * MS);
		plan_receive(ch, receive_ns, lasts && i + 1 == receive_most);
	}
	if (wf_chance_in_100(25))
		plan_guest(ch, at_ns);
	at_ns += wf_chance_below(20 * MS);
	for (unsigned i = 0; i < send_most; i++, at_ns += wf_chance_below(gap_ns))
		plan_send(ch, ch->from == ch->receiver ? other_than(ch->receiver) : sender, at_ns);
}

/* Plan keys by draws of their own, so that all else is as without. */
static void plan_keys(uint64_t here)
{
	wf_chance_seed(here ^ 0x4b455953);
	for (struct wf_staying_channel *ch = channels; ch < channels + channel_count; ch++) {
		ch->any_key = wf_chance_in_100(50);
		ch->keys = ch->any_key ? 1 + (unsigned)wf_chance_below(WF_COUNT(keys)) : 1;
	}
	for (struct wf_staying_receive *r = receives; r < receives + receive_count; r++) {
		r->any_key = r->channel->any_key && (!r->guest || wf_chance_in_100(40));
		r->key = (unsigned)wf_chance_below(r->channel->keys);
	}
}

void wf_staying_plan(const struct wf_traffic_config *config, const struct wf_checker_config *given_checks)
{
	uint64_t here = wf_chance_here();
	unsigned count;

	wf_chance_seed(here ^ 0x5354415953);
	count = wf_chance_in_100(60) ? 1 + (unsigned)wf_chance_below(CHANNELS_MAX) : 0;
	channel_count = receive_count = send_count = held_count = given_count = 0;
	sent = judged = released = false;
	node_count = config->nodes;
	busy_until_ns = config->until_ns;
	event_ns = 0;
	checks = given_checks;
	while (count--)
		plan_channel(config);
	plan_keys(here);
	wf_chance_seed(here);
}

/* Failures. */

static double seconds(uint64_t ns)
{
	return (double)ns / WF_NS_PER_S;
}

static void show_flight(const struct wf_flight *f)
{
	if (f->started_ns)
		print_error(", began %.6f", seconds(f->started_ns));
	if (f->outcomes)
		print_error(", ended %.6f %s", seconds(f->ended_ns), weft_status_name(f->status));
	print_error("\n");
}

static void show_channel(const struct wf_staying_channel *ch)
{
	print_error("  step %llu at n%u, of n%u, stopped %d, lonely %d, dropped %u\n",
		    (unsigned long long)ch->step, ch->receiver, ch->from, ch->stopped, ch->lonely,
		    ch->dropped);
	for (const struct wf_staying_receive *r = receives; r < receives + receive_count; r++) {
		if (r->channel != ch)
			continue;
		print_error("  %s, at most %u, hold %.6f, keeps %d, allocs %d, limit %.6f, held %u",
			    r->guest ? "guest" : "receive", r->max, seconds(r->hold_ns), r->keeps,
			    r->allocs, seconds(r->limit_ns), r->held);
		show_flight(&r->flight);
	}
	for (const struct wf_staying_send *s = sends; s < sends + send_count; s++) {
		if (s->channel != ch)
			continue;
		print_error("  send %u of n%u, %zu bytes, flags %#x, limit %.6f, told %u",
			    (unsigned)(s - sends), s->node, s->bytes, s->flags,
			    seconds(s->limit_ns), s->told);
		show_flight(&s->flight);
	}
	if (getenv("WORLD_LOG") && !wf_faults_is_gone(ch->receiver))
		(void)weft_dump(wf_world_node(ch->receiver), stderr);
}

static void wrong_receive(const struct wf_staying_receive *r, const char *what)
{
	show_channel(r->channel);
	fail_msg("%s %u of node %u %s: %s", r->guest ? "a guest" : "a receive that stays",
		 (unsigned)(r - receives), r->channel->receiver, what,
		 r->flight.op ? weft_op_message(r->flight.op) : "(detached)");
}

static void wrong_send(const struct wf_staying_send *s, const char *what)
{
	show_channel(s->channel);
	fail_msg("send %u of node %u to a receive that stays %s: %s", (unsigned)(s - sends), s->node,
		 what, s->flight.op ? weft_op_message(s->flight.op) : "(detached)");
}

/* Nodes. */

static bool is_of_the_past(unsigned node, unsigned life)
{
	return wf_faults_is_gone(node) || life != wf_faults_life(node);
}

/* Has @node closed, and not died? */
static bool has_left(unsigned node, unsigned life)
{
	return life == wf_faults_life(node) && !wf_world_node(node);
}

bool wf_staying_receive_is_live(const struct wf_staying_receive *r)
{
	return r->begun && !r->refused && !r->flight.outcomes &&
	       !is_of_the_past(r->channel->receiver, r->life);
}

bool wf_staying_send_is_live(const struct wf_staying_send *s)
{
	return s->begun && !s->refused && !s->flight.outcomes && !is_of_the_past(s->node, s->life);
}

static bool has_lost(unsigned node)
{
	return wf_world_count(node).peers_lost;
}

/* May frames of @s be lost, or come by another link, although it ended well? */
static bool may_be_lost(const struct wf_staying_send *s)
{
	unsigned receiver = s->channel->receiver;

	return is_of_the_past(s->node, s->life) || is_of_the_past(receiver, s->receiver_life) ||
	       has_lost(s->node) || has_lost(receiver);
}

/* Tensors. */

static bool has_ended_well(const struct wf_staying_send *s)
{
	return s->flight.outcomes && s->flight.status == WEFT_OK;
}

/* Does nothing of the plan keep @s from ending well? */
static bool is_plain(const struct wf_staying_send *s)
{
	return !s->channel->lonely && !s->cancel_ns && !s->cancelled &&
	       s->limit_ns == WF_TRAFFIC_LONG_NS;
}

static void fill(const struct wf_staying_send *s, uint8_t *bytes)
{
	uint32_t number = (uint32_t)(s - sends);

	memcpy(bytes, &number, HEAD_BYTES);
	wf_world_fill(bytes + HEAD_BYTES, s->bytes - HEAD_BYTES, s->seed);
}

static bool is_whole(const struct wf_staying_send *s, const uint8_t *bytes)
{
	return !s->bytes ||
	       wf_world_is_filled(bytes + HEAD_BYTES, s->bytes - HEAD_BYTES, s->seed);
}

static bool has_key(const struct weft_op *op, const char *key)
{
	size_t bytes;
	const void *has = weft_op_key(op, &bytes);

	return has && bytes == strlen(key) && !memcmp(has, key, bytes);
}

/* Returns the send of the tensor that @op, which @r told, has got. */
static struct wf_staying_send *find_send(const struct wf_staying_receive *r, const struct weft_op *op)
{
	unsigned flags;
	const struct weft_tensor *t = weft_op_tensor(op, &flags);
	struct wf_staying_send *s;
	uint32_t number;

	assert_int_equal(t->ndim, 2);
	number = (uint32_t)t->shape[0];
	if (t->data)
		memcpy(&number, t->data, HEAD_BYTES);
	if (number >= send_count)
		wrong_receive(r, "got what nobody sent");
	s = &sends[number];
	if (!s->begun || s->channel != r->channel || !t->data != !s->bytes ||
	    (s->bytes && (uint64_t)t->shape[1] != s->bytes) || !is_whole(s, t->data))
		wrong_send(s, "came as something else");
	if ((flags & ~(unsigned)WEFT_READONLY) != (s->flags & WEFT_DEAD))
		wrong_send(s, "came with other flags");
	if (!weft_op_peer(op))
		wrong_send(s, "came from nobody");
	if (!has_key(op, keys[key_of(s)]))
		wrong_send(s, "came under another key");
	if (s->told++)
		wrong_send(s, "was told twice");
	return s;
}

/* Has a guest begun that got nothing for good?  It may have given a tensor back. */
static bool may_have_given_back(const struct wf_staying_channel *ch)
{
	for (const struct wf_staying_receive *r = receives; r < receives + receive_count; r++)
		if (r->guest && r->channel == ch && r->begun &&
		    !(r->flight.outcomes && r->flight.status == WEFT_OK))
			return true;
	return false;
}

/* Was the tensor of @op there when it was claimed?  In frames, that is, and with memory to copy it to. */
static bool was_there(const struct wf_staying_receive *r, const struct weft_op *op)
{
	struct weft_path path = WEFT_PATH_INIT;

	assert_int_equal(weft_op_path(op, &path), 0);
	return !strcmp(path.way, "none") || (r->allocs && !strcmp(path.way, "eager"));
}

/*
 * A tensor that was there when it was claimed is told before those that its sender has sent later;
 * with priorities, before those of its key.
 */
static void check_order(struct wf_staying_receive *r, const struct wf_staying_send *s,
			const struct weft_op *op)
{
	unsigned number = (unsigned)(s - sends) + 1, *last = r->last_of[s->node], latest = 0;

	for (unsigned key = 0; key < WF_STAYING_KEYS; key++)
		if (key == key_of(s) || !wf_world_prefers())
			latest = WF_MAX(latest, last[key]);
	if (number < latest && was_there(r, op) && !may_be_lost(s) &&
	    !may_have_given_back(r->channel))
		wrong_send(s, "was overtaken");
	last[key_of(s)] = WF_MAX(last[key_of(s)], number);
}

/* Has the guest @g waited since before @s was sent, for a tensor of its key? */
static bool waits_for(const struct wf_staying_receive *g, const struct wf_staying_send *s)
{
	const struct weft_op *op = g->flight.op;

	return g->guest && g->channel == s->channel && !g->any_key && g->key == key_of(s) &&
	       wf_staying_receive_is_live(g) && g->flight.started_ns < s->flight.started_ns && op &&
	       op->started && op->owner->worker_count == 1 &&
	       op->recv.receiving.state == WF_RECEIVING_WAITING;
}

/* A receive of any key gets what no receive of the key waits for. */
static void check_guests(const struct wf_staying_receive *r, const struct wf_staying_send *s)
{
	for (const struct wf_staying_receive *g = receives; g < receives + receive_count; g++)
		if (r->any_key && waits_for(g, s))
			wrong_send(s, "went to a receive of any key, while one of its key waits");
}

/* Spoil memory of a callback that is the test's again. */
static void take_memory_back(const uint8_t *memory)
{
	struct given *g = given;

	while (g->memory != memory)
		g++;
	g->ours = true;
	memset(g->memory, WF_TRAFFIC_CANARY, g->bytes);
}

/* Free the handle of a tensor. */
static void let_go(const struct held *h)
{
	struct wf_staying_receive *r = h->receive;
	unsigned node = r->channel->receiver;

	if (h->data && (r->allocs || !is_of_the_past(node, r->life))) {
		if (!is_whole(h->send, h->data))
			wrong_send(h->send, "has changed where it was received");
		if (!r->allocs && h->send->seed % 4 == 0)
			weft_free(wf_world_node(node), weft_op_take(h->op));
	}
	weft_op_free(h->op);
	if (h->data && r->allocs)
		take_memory_back(h->data);
	r->held--;
	event_ns = wf_clock_now();
}

static void hold(struct wf_staying_receive *r, const struct wf_staying_send *s, struct weft_op *op)
{
	struct held h = {
		.op = op,
		.receive = r,
		.send = s,
		.data = weft_op_tensor(op, NULL)->data,
		.until_ns = wf_clock_now() + (r->hold_ns ? s->seed % r->hold_ns : 0),
	};

	if (r->keeps) {
		h.until_ns = UINT64_MAX;
	} else if (!r->hold_ns) {
		let_go(&h);
		return;
	}
	held[held_count++] = h;
}

static void note_failed(struct wf_staying_receive *r, struct weft_op *op)
{
	enum weft_status status = weft_op_status(op);

	/* The sender hears of damage alone: all else is its receiver's own. */
	r->channel->dropped += status != WEFT_DATA_LOSS;
	if (weft_op_tensor(op, NULL))
		wrong_receive(r, "told a tensor that has failed, and is there");
	if (!weft_op_message(op)[0])
		wrong_receive(r, "told a failed tensor without a sentence");
	if (status == WEFT_DATA_LOSS &&
	    (checks->sealed || !checks->tally->injected[WF_FAULT_FLIP]))
		wrong_receive(r, "missed bytes that nobody touched");
	weft_op_free(op);
}

static void note_tensor(struct wf_staying_receive *r, struct weft_op *op)
{
	const struct wf_staying_send *s;

	r->told_ns = event_ns = wf_clock_now();
	r->held++;
	if (r->max && r->held > r->max)
		wrong_receive(r, "has more tensors out than it may");
	if (weft_op_status(op) != WEFT_OK) {
		r->held--;
		note_failed(r, op);
		return;
	}
	s = find_send(r, op);
	check_order(r, s, op);
	check_guests(r, s);
	hold(r, s, op);
}

/* Ends of receives. */

static bool has_reason(const struct wf_staying_receive *r)
{
	const struct wf_flight *f = &r->flight;
	const struct wf_staying_channel *ch = r->channel;

	switch (f->status) {
	case WEFT_CANCELLED:
		return r->cancelled || ch->stopped || wf_faults_is_gone(ch->receiver);
	case WEFT_ABORTED:
		return ch->stopped && !ch->ends;
	case WEFT_FAILED_PRECONDITION: /* it began after the end of its step, or is refused for lack of memory */
		return (r->stopped_ns && ch->ends && f->started_ns >= r->stopped_ns) ||
		       (ch->from != ch->receiver && wf_faults_has(WF_FAULT_MEMORY));
	case WEFT_DEADLINE_EXCEEDED:
		return r->limit_ns && f->ended_ns >= f->started_ns + r->limit_ns;
	case WEFT_UNAVAILABLE:
		return ch->from != ch->receiver && !checks->harmless;
	case WEFT_UNAUTHENTICATED:
		return ch->from != ch->receiver && wf_faults_keys_differ();
	case WEFT_RESOURCE_EXHAUSTED:
		return wf_faults_has(WF_FAULT_MEMORY);
	default:
		return false;
	}
}

/* A receive that is to end waits for tensors that are on their way, and for nothing else. */
static void check_time(const struct wf_staying_receive *r)
{
	const struct wf_flight *f = &r->flight;
	uint64_t thawed_ns = wf_faults_thawed_ns(r->channel->receiver), due_ns = UINT64_MAX;

	if (r->limit_ns)
		due_ns = f->started_ns + r->limit_ns;
	if (r->cancelled)
		due_ns = WF_MIN(due_ns, r->cancel_ns);
	if (r->stopped_ns)
		due_ns = WF_MIN(due_ns, WF_MAX(r->stopped_ns, f->started_ns));
	if (r->bereft_ns)
		due_ns = WF_MIN(due_ns, WF_MAX(r->bereft_ns, thawed_ns) + LOSS_NS);
	due_ns = WF_MAX(due_ns, WF_MAX(thawed_ns, r->told_ns));
	if (due_ns != UINT64_MAX && f->ended_ns > due_ns + checks->quiet_ns + SLACK_NS)
		wrong_receive(r, "ended too late");
}

static void note_end(struct wf_staying_receive *r, struct weft_op *op)
{
	struct wf_flight *f = &r->flight;

	r->self = NULL;
	f->outcomes++;
	f->status = weft_op_status(op);
	f->ended_ns = event_ns = wf_clock_now();
	check_time(r);
	if (r->guest && f->status == WEFT_OK)
		(void)find_send(r, op);
	if (!r->guest && weft_op_tensor(op, NULL))
		wrong_receive(r, "ended with a tensor");
	if (!r->guest && !has_reason(r))
		wrong_receive(r, "ended for no reason");
	if (f->status != WEFT_OK && !weft_op_message(op)[0])
		wrong_receive(r, "ended without a sentence");
	weft_op_free(f->op);
	f->op = NULL;
}

static void told(struct weft_op *op, void *arg)
{
	struct wf_staying_receive *r = arg;

	if (released) {
		if (op != r->self)
			weft_op_free(op);
		return;
	}
	if (r->flight.outcomes)
		wrong_receive(r, "told something after its end");
	if (op == r->self)
		note_end(r, op);
	else
		note_tensor(r, op);
}

/* Ends of sends. */

static void check_send(const struct wf_staying_send *s)
{
	const struct wf_flight *f = &s->flight;
	uint64_t deadline_ns = f->started_ns + s->limit_ns, due_ns = deadline_ns;
	uint64_t thawed_ns = wf_faults_thawed_ns(s->node);

	if (s->bereft_ns)
		due_ns = WF_MIN(due_ns, WF_MAX(s->bereft_ns, thawed_ns) + LOSS_NS);
	due_ns = WF_MAX(due_ns, thawed_ns);
	if (f->outcomes != 1)
		wrong_send(s, "ended more than once");
	if (f->ended_ns > due_ns + checks->quiet_ns + SLACK_NS)
		wrong_send(s, "ended too late");
	if (checks->harmless && is_plain(s) && f->status != WEFT_OK)
		wrong_send(s, "should have gone well");
	if (s->buffer && s->bytes && !(s->flags & WEFT_SNAPSHOT)) {
		if (wf_fake_is_open(s->buffer, s->bytes))
			wrong_send(s, "left its buffer open to others");
		if ((checks->harmless || checks->connected) && wf_fake_is_read(s->buffer, s->bytes))
			wrong_send(s, "ended while somebody read its buffer");
	}
}

static void look_at_send(struct wf_staying_send *s)
{
	s->seen = true;
	s->executed = s->flight.op ? weft_op_executed(s->flight.op) : WEFT_EXECUTED_MAYBE;
	check_send(s);
	if (s->buffer)
		memset(s->buffer, WF_TRAFFIC_CANARY, s->bytes);
	if (s->shared && !is_of_the_past(s->node, s->life))
		weft_free(wf_world_node(s->node), s->shared);
	s->shared = NULL;
	weft_op_free(s->flight.op);
	s->flight.op = NULL;
	event_ns = wf_clock_now();
}

void wf_staying_look(void)
{
	for (struct wf_staying_send *s = sends; s < sends + send_count; s++)
		if (s->flight.outcomes && !s->seen)
			look_at_send(s);
}

/* Begins. */

/* Only memory may be missing. */
static bool is_refused(int err)
{
	if (err && err != -ENOMEM && err != -ENOBUFS)
		fail_msg("a receive that stays, or a send to it, can't be begun: %s", weft_error());
	return err;
}

static void *alloc(void *arg, const struct weft_tensor *want, uint64_t bytes)
{
	struct wf_staying_receive *r = arg;
	struct given *g;

	(void)want;
	if (r->refuses && bytes % 4 == 0)
		return NULL;
	assert_true(given_count < SENDS_MAX);
	g = &given[given_count++];
	*g = (struct given){ .memory = malloc(bytes), .bytes = bytes };
	assert_non_null(g->memory);
	return g->memory;
}

static void begin_receive(struct wf_staying_receive *r)
{
	const struct wf_staying_channel *ch = r->channel;
	struct weft_peer *from =
		ch->from == ch->receiver ? NULL : wf_world_peer(ch->receiver, ch->from);
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = wf_flight_begin(&r->flight, r->limit_ns),
		.flags = (r->guest ? 0 : WEFT_RECV_MANY) | (r->any_key ? WEFT_ANY_KEY : 0),
		.many_max = r->max,
		.alloc = r->allocs ? alloc : NULL,
		.alloc_arg = r,
	};

	const char *key = r->any_key ? NULL : keys[r->key];

	options.op.done = told;
	options.op.arg = r;
	r->begun = true;
	r->life = wf_faults_life(ch->receiver);
	/* A node that has started anew knows nothing of a step that it ended before. */
	if (r->life != r->stopped_life)
		r->stopped_ns = 0;
	r->refused = is_refused(weft_recv(wf_world_node(ch->receiver), from, ch->step, key,
					  key ? strlen(key) : 0, NULL, &options, &r->flight.op));
	event_ns = wf_clock_now();
	if (r->refused)
		return;
	r->self = r->flight.op;
	if (r->detached) {
		weft_op_free(r->flight.op);
		r->flight.op = NULL;
	}
}

/* Returns the memory that @s sends.  NULL: the pool has none. */
static void *make_body(struct wf_staying_send *s)
{
	void *memory = NULL;

	if (s->flags & WEFT_SHARE) {
		if (weft_alloc(wf_world_node(s->node), s->bytes, &memory))
			return NULL;
	} else {
		memory = s->buffer = malloc(s->bytes + 1);
		assert_non_null(memory);
	}
	if (s->bytes)
		fill(s, memory);
	return memory;
}

static void post_send(struct wf_staying_send *s, void *memory)
{
	struct weft_send_options options = {
		.size = sizeof(options),
		.op = wf_flight_begin(&s->flight, s->limit_ns),
		.flags = s->flags,
	};
	const char *key = keys[key_of(s)];
	int64_t shape[2] = { 1, (int64_t)s->bytes };
	struct weft_tensor t = {
		.data = s->flags & WEFT_DEAD ? NULL : memory, .device = { WEFT_CPU, 0 }, .ndim = 2,
		.dtype = { WEFT_UINT, 8, 1 }, .shape = shape,
	};

	if (!s->bytes)
		shape[0] = s - sends;
	if (s->flags & WEFT_DEAD)
		shape[1] = DEAD_BYTES;
	s->refused = is_refused(weft_send(wf_world_peer(s->node, s->channel->receiver),
					  s->channel->step, key, strlen(key), &t, &options,
					  &s->flight.op));
}

static void begin_send(struct wf_staying_send *s)
{
	void *memory = make_body(s);

	s->begun = true;
	s->life = wf_faults_life(s->node);
	s->receiver_life = wf_faults_life(s->channel->receiver);
	event_ns = wf_clock_now();
	if (memory)
		post_send(s, memory);
	else
		s->refused = true;
	if (s->flags & WEFT_SHARE && memory && !s->refused && s->seed % 2)
		s->shared = memory;
	else if (s->flags & WEFT_SHARE && memory)
		weft_free(wf_world_node(s->node), memory);
	if (s->flags & WEFT_SNAPSHOT)
		memset(s->buffer, WF_TRAFFIC_CANARY, s->bytes);
	if (!s->refused && s->detached) {
		weft_op_free(s->flight.op);
		s->flight.op = NULL;
	}
}

/* Time. */

static void cancel(struct weft_op *op)
{
	wf_faults_strike_op(WF_FAULT_CANCEL, op);
	weft_cancel(op);
}

static void pass_deadline(const struct wf_flight *f, uint64_t limit_ns, uint64_t now, bool *hit)
{
	if (*hit || !limit_ns || now < f->started_ns + limit_ns)
		return;
	*hit = true;
	if (f->op)
		wf_faults_strike_op(WF_FAULT_DEADLINE, f->op);
}

static uint64_t run_receive(struct wf_staying_receive *r, uint64_t now)
{
	unsigned node = r->channel->receiver;

	if (!r->begun) {
		if (r->begin_ns > now)
			return r->begin_ns;
		if (!wf_faults_is_away(node))
			begin_receive(r);
		return UINT64_MAX;
	}
	if (!wf_staying_receive_is_live(r) || wf_faults_is_away(node))
		return UINT64_MAX;
	pass_deadline(&r->flight, r->limit_ns, now, &r->hit_deadline);
	if (!r->cancel_ns || r->cancelled || !r->flight.op)
		return UINT64_MAX;
	if (r->cancel_ns > now)
		return r->cancel_ns;
	r->cancelled = true;
	r->cancel_ns = now;
	cancel(r->flight.op);
	return UINT64_MAX;
}

static uint64_t run_send(struct wf_staying_send *s, uint64_t now)
{
	if (!s->begun) {
		if (s->begin_ns > now)
			return s->begin_ns;
		if (!wf_faults_is_away(s->node))
			begin_send(s);
		return UINT64_MAX;
	}
	if (!wf_staying_send_is_live(s) || wf_faults_is_away(s->node))
		return UINT64_MAX;
	pass_deadline(&s->flight, s->limit_ns, now, &s->hit_deadline);
	if (!s->cancel_ns || s->cancelled || !s->flight.op)
		return UINT64_MAX;
	if (s->cancel_ns > now)
		return s->cancel_ns;
	s->cancelled = true;
	cancel(s->flight.op);
	return UINT64_MAX;
}

static void strike(const struct wf_staying_channel *ch)
{
	enum wf_fault fault = ch->ends ? WF_FAULT_END : WF_FAULT_ABORT;

	for (struct wf_staying_receive *r = receives; r < receives + receive_count; r++) {
		if (r->channel != ch || ch->receiver != ch->stopper)
			continue;
		r->stopped_ns = wf_clock_now();
		r->stopped_life = wf_faults_life(ch->receiver);
		if (wf_staying_receive_is_live(r) && r->flight.op)
			wf_faults_strike_op(fault, r->flight.op);
	}
	for (const struct wf_staying_send *s = sends; s < sends + send_count; s++)
		if (s->channel == ch && s->node == ch->stopper && wf_staying_send_is_live(s) &&
		    s->flight.op)
			wf_faults_strike_op(fault, s->flight.op);
}

static uint64_t run_channel(struct wf_staying_channel *ch, uint64_t now)
{
	struct weft_node *node;
	int err;

	if (!ch->stop_ns || ch->stopped)
		return UINT64_MAX;
	if (ch->stop_ns > now)
		return ch->stop_ns;
	if (wf_faults_is_away(ch->stopper))
		return UINT64_MAX;
	strike(ch);
	node = wf_world_node(ch->stopper);
	ch->stopped = true;
	if (ch->ends)
		err = weft_step_end(node, ch->step);
	else
		err = weft_step_abort(node, ch->step, WEFT_ABORTED, "as the test wants");
	/* Without memory it is done again. */
	ch->stopped = err != -ENOMEM;
	return UINT64_MAX;
}

static bool is_due(const struct held *h, uint64_t now)
{
	const struct wf_staying_receive *r = h->receive;
	unsigned node = r->channel->receiver;

	if (has_left(node, r->life))
		return true;
	if (is_of_the_past(node, r->life) || wf_faults_is_away(node))
		return false;
	return h->until_ns <= now || (r->keeps && (sent || r->flight.outcomes));
}

/* Free the handles that are due.  Returns when the next is. */
static uint64_t run_held(uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < held_count;) {
		struct held h = held[i];

		if (is_due(&h, now)) {
			held[i] = held[--held_count];
			let_go(&h);
			continue;
		}
		if (h.until_ns > now)
			next = WF_MIN(next, h.until_ns);
		i++;
	}
	return next;
}

/* May a tensor like @info wait, under key number @key of @ch? */
static bool may_wait(const struct wf_staying_channel *ch, unsigned key,
		     const struct weft_probe_info *info)
{
	for (const struct wf_staying_send *s = sends; s < sends + send_count; s++)
		if (s->channel == ch && key_of(s) == key && s->begun && !s->told &&
		    s->bytes == info->bytes && info->ndim == 2 &&
		    (s->bytes || info->shape[0] == s - sends) &&
		    info->flags == (s->flags & WEFT_DEAD))
			return true;
	return false;
}

/* Ask for a tensor of @ch that waits, and again: a probe takes nothing. */
static void probe(const struct wf_staying_channel *ch, uint64_t now)
{
	struct weft_probe_info info = WEFT_PROBE_INFO_INIT, again = WEFT_PROBE_INFO_INIT;
	unsigned key = (unsigned)(now / 7 % ch->keys);
	struct weft_peer *from = NULL;
	struct weft_node *node;

	if (wf_faults_is_away(ch->receiver))
		return;
	node = wf_world_node(ch->receiver);
	if (now % 2 && ch->from != ch->receiver)
		from = wf_world_known(ch->receiver, ch->from);
	if (weft_probe(node, from, ch->step, keys[key], strlen(keys[key]), &info))
		return;
	checks->tally->probed++;
	if (!may_wait(ch, key, &info) || !info.peer || (from && info.peer != from))
		fail_msg("a probe found what nobody sent, or what was told");
	if (weft_probe(node, from, ch->step, keys[key], strlen(keys[key]), &again) ||
	    memcmp(&info, &again, sizeof(info)) != 0)
		fail_msg("a probe has changed what waits");
}

uint64_t wf_staying_run(uint64_t now)
{
	uint64_t next = run_held(now), until_ns;

	for (unsigned i = 0; i < channel_count; i++) {
		probe(&channels[i], now);
		until_ns = run_channel(&channels[i], now);
		next = WF_MIN(next, until_ns);
	}
	for (unsigned i = 0; i < receive_count; i++) {
		until_ns = run_receive(&receives[i], now);
		next = WF_MIN(next, until_ns);
	}
	for (unsigned i = 0; i < send_count; i++) {
		until_ns = run_send(&sends[i], now);
		next = WF_MIN(next, until_ns);
	}
	return next;
}

void wf_staying_bereave(unsigned number)
{
	for (struct wf_staying_receive *r = receives; r < receives + receive_count; r++) {
		const struct wf_staying_channel *ch = r->channel;

		if (ch->from == number && ch->receiver != number && wf_staying_receive_is_live(r) &&
		    wf_traffic_is_linked(ch->receiver, number))
			r->bereft_ns = wf_clock_now();
	}
	for (struct wf_staying_send *s = sends; s < sends + send_count; s++)
		if (s->channel->receiver == number && wf_staying_send_is_live(s) &&
		    wf_traffic_is_linked(s->node, number))
			s->bereft_ns = wf_clock_now();
}

/* The end of the run. */

static bool are_sent(void)
{
	for (const struct wf_staying_send *s = sends; s < sends + send_count; s++)
		if (wf_staying_send_is_live(s) || (!s->begun && !wf_faults_is_gone(s->node)))
			return false;
	return true;
}

/* Is a receive left that is to begin, or will end by itself? */
static bool any_is_to_end(void)
{
	for (const struct wf_staying_receive *r = receives; r < receives + receive_count; r++)
		if ((!r->begun && !wf_faults_is_gone(r->channel->receiver)) ||
		    (wf_staying_receive_is_live(r) && (r->limit_ns || r->cancel_ns)))
			return true;
	return false;
}

static bool any_is_held(void)
{
	for (unsigned i = 0; i < held_count; i++)
		if (!is_of_the_past(held[i].receive->channel->receiver, held[i].receive->life))
			return true;
	return false;
}

/* Check that all was told that was sent well: @r has stayed, and may have more out. */
static void judge(const struct wf_staying_receive *r)
{
	const struct wf_staying_channel *ch = r->channel;
	unsigned missing = 0, excused = 0;

	for (const struct wf_staying_send *s = sends; s < sends + send_count; s++)
		missing += s->channel == ch && has_ended_well(s) && !s->told && !may_be_lost(s);
	for (const struct wf_staying_receive *o = receives; o < receives + receive_count; o++)
		if (o->channel == ch && o->guest && o->begun && o->flight.status != WEFT_OK)
			excused++;
	excused += ch->dropped;
	if (missing > excused && !ch->stopped)
		wrong_receive(r, "has stayed, and not told all that was sent");
}

/* Check the channels whose receive has stayed, and cancel some of those, for others end with the step. */
static void judge_all(uint64_t now)
{
	judged = true;
	for (struct wf_staying_receive *r = receives; r < receives + receive_count; r++) {
		if (r->guest || !wf_staying_receive_is_live(r))
			continue;
		judge(r);
		if (r->channel->step % 2)
			r->cancel_ns = r->flight.op ? now : 0;
	}
}

bool wf_staying_is_over(void)
{
	uint64_t now = wf_clock_now();

	if (!channel_count)
		return true;
	sent = are_sent();
	if (!sent || any_is_to_end() || any_is_held())
		return false;
	if (now < WF_MAX(event_ns, busy_until_ns) + LATE_NS && !judged)
		return false;
	if (!judged)
		judge_all(now);
	return !any_is_to_end();
}

void wf_staying_end_steps(void)
{
	for (unsigned i = 0; i < channel_count; i++) {
		channels[i].stopped = true;
		for (unsigned node = 0; node < node_count; node++)
			if (!wf_faults_is_gone(node))
				assert_int_equal(weft_step_end(wf_world_node(node),
							       channels[i].step), 0);
	}
}

static void finish_receive(const struct wf_staying_receive *r)
{
	unsigned node = r->channel->receiver;

	if (!r->begun || r->refused || r->flight.outcomes)
		return;
	if (has_left(node, r->life) || !is_of_the_past(node, r->life))
		wrong_receive(r, "has outlived its step");
}

static void finish_send(const struct wf_staying_send *s)
{
	if (s->flight.outcomes > 1)
		wrong_send(s, "ended again");
	if (s->seen && s->executed == WEFT_EXECUTED_NO && s->told)
		wrong_send(s, "says that it was not executed, and was");
	if (checks->harmless && is_plain(s) && !s->refused && s->told != 1)
		wrong_send(s, "should have been told");
	if (s->seen && s->buffer && !wf_world_all_are(s->buffer, s->bytes, WF_TRAFFIC_CANARY))
		wrong_send(s, "had its buffer written after its end");
}

void wf_staying_finish(void)
{
	struct wf_tally *tally = checks->tally;

	for (const struct wf_staying_receive *r = receives; r < receives + receive_count; r++) {
		finish_receive(r);
		tally->operations += r->begun && !r->refused;
		tally->staying += r->begun && !r->refused && !r->guest;
	}
	for (const struct wf_staying_send *s = sends; s < sends + send_count; s++) {
		finish_send(s);
		tally->operations += (s->begun && !s->refused) + s->told;
		tally->ended_well += has_ended_well(s) + s->told;
		tally->told += s->told;
	}
	for (unsigned i = 0; i < given_count; i++)
		if (given[i].ours &&
		    !wf_world_all_are(given[i].memory, given[i].bytes, WF_TRAFFIC_CANARY))
			fail_msg("memory of a receive that stays was written after its end");
}

void wf_staying_release(void)
{
	released = true;
	for (unsigned i = 0; i < held_count; i++)
		weft_op_free(held[i].op);
	held_count = 0;
	for (unsigned i = 0; i < receive_count; i++) {
		weft_op_free(receives[i].flight.op);
		receives[i].flight.op = NULL;
	}
	for (unsigned i = 0; i < send_count; i++) {
		weft_op_free(sends[i].flight.op);
		sends[i].flight.op = NULL;
	}
}

void wf_staying_free(void)
{
	for (unsigned i = 0; i < send_count; i++)
		free(sends[i].buffer);
	for (unsigned i = 0; i < given_count; i++)
		free(given[i].memory);
	channel_count = receive_count = send_count = given_count = 0;
}
