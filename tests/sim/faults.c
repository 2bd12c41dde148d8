/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/faults.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "core/worker.h"
#include "tests/sim/chance.h"
#include "tests/sim/keys.h"
#include "tests/sim/nth.h"
#include "tests/sim/states.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define SPELLS_MAX (4 * WF_FAULTS)
#define CHUNKS_MAX 64
#define SAMPLES_MAX 8 /* times that one run looks at what a fault of a kind hits */

/* How a kind of fault comes over a run. */
struct kind {
	bool harmless;      /* costs nobody a peer, while it is short */
	bool hosts_only;    /* nothing comes between processes of one host, nor between them and their reads */
	unsigned count;     /* most spells in a run */
	uint64_t harmless_ns, most_ns; /* how long one lasts */
	unsigned level;     /* most of the knob */
	unsigned weight;    /* how much more often than others, for it often finds nothing to strike; 0: no more */
};

static const struct kind kinds[WF_FAULTS] = {
	[WF_FAULT_DELAY] = { true, false, 2, 300 * MS, 300 * MS, 100 },
	[WF_FAULT_ORDER] = { true, false, 2, 500 * MS, 500 * MS, 1 },
	[WF_FAULT_AGAIN] = { true, false, 2, 150 * MS, 400 * MS, 1001 },
	[WF_FAULT_ERROR] = { true, false, 2, 200 * MS, 300 * MS, 100 },
	[WF_FAULT_LOSS] = { true, false, 2, 200 * MS, 300 * MS, 300 },
	[WF_FAULT_DUPLICATE] = { true, false, 2, 200 * MS, 300 * MS, 100 },
	[WF_FAULT_TWICE] = { true, false, 2, 500 * MS, 500 * MS, 300 },
	[WF_FAULT_STRAY] = { true, false, 2, 500 * MS, 500 * MS, 300 },
	[WF_FAULT_CREDIT] = { true, false, 2, 100 * MS, 400 * MS, 0 },
	[WF_FAULT_REGISTER] = { false, false, 2, 0, 400 * MS, 600, 4 },
	[WF_FAULT_POOL] = { true, false, 2, 200 * MS, 400 * MS, 0 },
	[WF_FAULT_STUCK] = { false, true, 3, 0, 500 * MS, 1001, 4 },
	[WF_FAULT_FLIP] = { false, true, 3, 0, 600 * MS, 1001, 7 },
	[WF_FAULT_RAIL] = { true, false, 2, 100 * MS, 600 * MS, 0 },
	[WF_FAULT_DOOR] = { true, false, 3, 0, 0, 0 },
	[WF_FAULT_PART] = { false, true, 2, 0, 700 * MS, 0 },
	[WF_FAULT_KILL] = { false, false, 1, 0, 0, 0 },
	[WF_FAULT_RESTART] = { false, false, 1, 0, 300 * MS, 0 },
	[WF_FAULT_FREEZE] = { true, false, 1, 150 * MS, 150 * MS, 0 },
	[WF_FAULT_STALL] = { false, false, 1, 0, 900 * MS, 0 },
	[WF_FAULT_LEAVE] = { false, false, 1, 0, 0, 0 },
	[WF_FAULT_MEMORY] = { false, false, 4, 0, 100 * MS, 12 },
	[WF_FAULT_DRAIN] = { true, false, 1, 0, 0, 0 },
	[WF_FAULT_LANE] = { true, false, 6, 300 * MS, 600 * MS, 4 },
	[WF_FAULT_REKEY] = { true, false, 2, 50 * MS, 100 * MS, 3 },
	[WF_FAULT_TAMPER] = { true, false, 2, 200 * MS, 300 * MS, 300, 3 },
};

static const char *const networks[] = { WF_WORLD_NET_1, WF_WORLD_NET_2 };

struct spell {
	enum wf_fault fault;
	unsigned node, other;
	unsigned life; /* of the node, when it began */
	unsigned level;
	uint64_t at_ns, until_ns;
	bool on;
	void *chunks[CHUNKS_MAX]; /* taken from the pool */
};

/* Everything that happens to a node. */
struct node {
	bool killed, left, frozen, returns;
	unsigned life;
	uint64_t thawed_ns;
	uint64_t drains_ns; /* since when; 0: it does not */
};

static struct wf_faults_config config;
static struct spell spells[SPELLS_MAX];
static unsigned spell_count;
static struct node nodes[WF_WORLD_NODES_MAX];
static unsigned samples[WF_FAULTS];
static uint64_t memory_failed; /* as last looked at */
static bool keys_differ;       /* a node had no memory for the new key */
static struct {
	bool struck;
	unsigned node, other;
} struck[WF_FAULTS]; /* by the fake, since the last look */

/* Counting. */

static void sample(enum wf_fault fault, unsigned node, unsigned other)
{
	if (samples[fault]++ < SAMPLES_MAX)
		wf_states_count(config.tally, fault, node, other);
}

void wf_faults_strike(enum wf_fault fault, unsigned node, unsigned other)
{
	config.tally->injected[fault]++;
	sample(fault, node, other);
}

void wf_faults_strike_leg(enum wf_fault fault, const struct wf_leg *leg)
{
	config.tally->injected[fault]++;
	wf_states_count_leg(config.tally, fault, leg);
}

void wf_faults_strike_op(enum wf_fault fault, const struct weft_op *op)
{
	config.tally->injected[fault]++;
	wf_states_count_op(config.tally, fault, op);
}

/* The fake is in the middle of something: only note it. */
static void told(enum wf_fake_fault fault, unsigned node, unsigned other)
{
	static const enum wf_fault ours[] = {
		[WF_FAKE_EAGAIN] = WF_FAULT_AGAIN,
		[WF_FAKE_FAIL] = WF_FAULT_ERROR,
		[WF_FAKE_LOSE] = WF_FAULT_LOSS,
		[WF_FAKE_AGAIN] = WF_FAULT_DUPLICATE,
		[WF_FAKE_STICK] = WF_FAULT_STUCK,
		[WF_FAKE_TWICE] = WF_FAULT_TWICE,
		[WF_FAKE_NOBODY] = WF_FAULT_STRAY,
		[WF_FAKE_SHUFFLE] = WF_FAULT_ORDER,
		[WF_FAKE_REORDER] = WF_FAULT_ORDER,
		[WF_FAKE_SLOW] = WF_FAULT_DELAY,
		[WF_FAKE_REFUSE] = WF_FAULT_REGISTER,
		[WF_FAKE_FLIP] = WF_FAULT_FLIP,
		[WF_FAKE_HOLD] = WF_FAULT_CREDIT,
		[WF_FAKE_BREAK] = WF_FAULT_RAIL,
		[WF_FAKE_TAMPER] = WF_FAULT_TAMPER,
	};
	enum wf_fault kind = ours[fault];

	config.tally->injected[kind]++;
	struck[kind].struck = true;
	struck[kind].node = wf_world_number(node);
	struck[kind].other = wf_world_number(other);
}

/* Allocations @first and so on from now on fail. */
static void fail_memory(uint64_t first, uint64_t count)
{
	const struct wf_nth_fault fault = { .kind = WF_NTH_MEMORY, .first = first, .count = count };

	wf_nth_fail(&fault);
	memory_failed = 0;
}

/* Whoever's allocation it was: a run has one heap. */
static void look_at_memory(void)
{
	uint64_t failed = wf_nth_failed();

	if (failed == memory_failed)
		return;
	if (failed > memory_failed)
		config.tally->injected[WF_FAULT_MEMORY] += failed - memory_failed;
	memory_failed = failed;
	sample(WF_FAULT_MEMORY, 0, 1);
	if (config.nodes > 2)
		sample(WF_FAULT_MEMORY, 1, 2);
}

static void look_at_struck(void)
{
	look_at_memory();
	for (unsigned i = 0; i < WF_FAULTS; i++) {
		if (struck[i].struck)
			sample(i, struck[i].node, struck[i].other);
		struck[i].struck = false;
	}
}

/* Nodes. */

bool wf_faults_is_away(unsigned number)
{
	return nodes[number].killed || nodes[number].left || nodes[number].frozen;
}

bool wf_faults_is_gone(unsigned number)
{
	return (nodes[number].killed && !nodes[number].returns) || nodes[number].left;
}

unsigned wf_faults_life(unsigned number)
{
	return nodes[number].life;
}

uint64_t wf_faults_thawed_ns(unsigned number)
{
	return nodes[number].thawed_ns;
}

/* Take all that the pool has. */
static void drain_pool(struct spell *s)
{
	struct weft_node *node = wf_world_node(s->node);
	unsigned count = 0;

	for (size_t bytes = 8 * MIB; bytes >= 256 && count < CHUNKS_MAX;) {
		if (weft_alloc(node, bytes, &s->chunks[count]))
			bytes /= 2;
		else
			count++;
	}
}

static void refill_pool(struct spell *s)
{
	for (unsigned i = 0; i < CHUNKS_MAX && s->chunks[i]; i++)
		weft_free(wf_world_node(s->node), s->chunks[i]);
}

static void freeze(unsigned number)
{
	nodes[number].frozen = true;
	wf_world_freeze(number, true);
}

static void thaw(unsigned number)
{
	nodes[number].frozen = false;
	nodes[number].thawed_ns = wf_clock_now();
	wf_world_freeze(number, false);
}

static void leave(unsigned number)
{
	nodes[number].left = true;
	wf_traffic_leave(number);
	wf_world_leave(number);
}

bool wf_faults_is_draining(unsigned number)
{
	return nodes[number].drains_ns;
}

void wf_faults_assert_serves(unsigned number, const struct wf_flight *f)
{
	if (nodes[number].drains_ns && f->started_ns > nodes[number].drains_ns)
		fail_msg("node %u drains since %llu ns, and takes a call of %llu ns", number,
			 (unsigned long long)nodes[number].drains_ns,
			 (unsigned long long)f->started_ns);
}

static void drain(unsigned number)
{
	int err;

	nodes[number].drains_ns = wf_clock_now();
	wf_traffic_drain(number);
	err = weft_node_drain(wf_world_node(number), 0);
	assert_true(!err || err == -ETIMEDOUT);
}

/* Spells. */

/* What a knob is turned to; false: @fault has none. */
static bool turn_knob(enum wf_fault fault, unsigned level)
{
	struct wf_fake *fake = wf_fake_knobs();

	switch (fault) {
	case WF_FAULT_DELAY:
		fake->slow = level;
		return true;
	case WF_FAULT_ORDER:
		fake->shuffle = fake->reorder = level > 0;
		return true;
	case WF_FAULT_AGAIN:
		fake->eagain = level;
		return true;
	case WF_FAULT_ERROR:
		fake->fail = level;
		return true;
	case WF_FAULT_LOSS:
		fake->lose = level;
		return true;
	case WF_FAULT_DUPLICATE:
		fake->again = level;
		return true;
	case WF_FAULT_TWICE:
		fake->twice = level;
		return true;
	case WF_FAULT_STRAY:
		fake->nobody = level;
		return true;
	case WF_FAULT_REGISTER:
		fake->refuse = level;
		return true;
	case WF_FAULT_STUCK:
		fake->stick = level;
		return true;
	case WF_FAULT_FLIP:
		fake->flip = level;
		return true;
	case WF_FAULT_TAMPER:
		fake->tamper = level;
		return true;
	default:
		return false;
	}
}

/* Is anything being read over a lane? */
static bool lanes_are_busy(void)
{
	for (unsigned i = 0; i < config.nodes; i++) {
		const struct weft_node *node = wf_world_node(i);

		for (unsigned d = 0; !wf_faults_is_away(i) && d < node->worker_count; d++)
			WF_LIST_EACH(at, &node->workers[d].engine.link_list)
				WF_LIST_EACH(lane, &WF_CONTAINER(at, struct wf_link, node)->lanes)
					if (WF_CONTAINER(lane, struct wf_lane, node)->reads.count)
						return true;
	}
	return false;
}

/* One that would find nothing to strike waits for that, while its time lasts. */
static bool is_due(const struct spell *s, uint64_t now)
{
	return s->at_ns && s->at_ns <= now &&
	       (s->fault != WF_FAULT_LANE || now >= s->until_ns || lanes_are_busy());
}

/* Have nodes read their key file anew: some when it has changed, the others at the @end. */
static void rekey(const struct spell *s, bool end)
{
	for (unsigned i = 0; i < config.nodes; i++) {
		bool late = (i + s->node) % (s->level + 1) != 0;
		int err = 0;

		if (late == end && !nodes[i].killed && !nodes[i].left)
			err = weft_node_rekey(wf_world_node(i));
		keys_differ |= err == -ENOMEM;
		if (err && err != -ENOMEM)
			fail_msg("node %u: %s", i, weft_error());
	}
}

/* It needs a node that is there. */
static bool may_begin(const struct spell *s)
{
	if (wf_faults_is_away(s->node))
		return false;
	/* Somebody must be left, and see it. */
	if (s->fault == WF_FAULT_KILL || s->fault == WF_FAULT_LEAVE)
		for (unsigned i = 0; i < config.nodes; i++)
			if (i != s->node && wf_faults_is_gone(i))
				return config.nodes > 2;
	return true;
}

static void begin(struct spell *s)
{
	if (!may_begin(s))
		return;
	if (turn_knob(s->fault, s->level)) {
		s->on = true;
		return;
	}
	if (s->fault == WF_FAULT_MEMORY) {
		fail_memory(1 + wf_chance_below(20), s->level);
		s->on = true;
		return;
	}
	/* The states are those before it. */
	if (s->fault != WF_FAULT_CREDIT && s->fault != WF_FAULT_RAIL)
		wf_faults_strike(s->fault, s->node, s->other);
	s->life = nodes[s->node].life;
	s->on = true;
	switch (s->fault) {
	case WF_FAULT_CREDIT:
		wf_world_hold_way(s->node, s->other, true);
		break;
	case WF_FAULT_POOL:
		drain_pool(s);
		break;
	case WF_FAULT_RAIL:
		wf_world_break_rail(s->node, s->other, true);
		break;
	case WF_FAULT_DOOR:
		wf_world_cut_door(s->node, s->other);
		break;
	case WF_FAULT_PART:
		wf_world_part(s->node, s->other, true);
		break;
	case WF_FAULT_KILL:
	case WF_FAULT_RESTART:
		nodes[s->node].killed = true;
		nodes[s->node].returns = s->fault == WF_FAULT_RESTART;
		wf_traffic_bereave(s->node);
		wf_world_kill(s->node);
		break;
	case WF_FAULT_FREEZE:
	case WF_FAULT_STALL:
		freeze(s->node);
		break;
	case WF_FAULT_LEAVE:
		leave(s->node);
		break;
	case WF_FAULT_DRAIN:
		drain(s->node);
		break;
	case WF_FAULT_REKEY:
		wf_keys_replace();
		rekey(s, false);
		break;
	case WF_FAULT_LANE:
		if (s->level <= 2)
			wf_fake_break_domain(networks[s->level % 2]);
		else
			wf_fake_cut_domain(networks[s->level % 2]);
		break;
	default:
		break;
	}
}

/* A node that stands still gives nothing back. */
static bool may_end(const struct spell *s)
{
	return s->fault != WF_FAULT_POOL || !nodes[s->node].frozen;
}

static void end(struct spell *s)
{
	bool same_life = s->life == nodes[s->node].life && !wf_faults_is_gone(s->node);

	s->on = false;
	if (s->fault == WF_FAULT_MEMORY) {
		look_at_memory();
		fail_memory(1, 0);
	}
	if (turn_knob(s->fault, 0))
		return;
	switch (s->fault) {
	case WF_FAULT_CREDIT:
		wf_world_hold_way(s->node, s->other, false);
		break;
	case WF_FAULT_POOL:
		if (same_life && !nodes[s->node].killed)
			refill_pool(s);
		break;
	case WF_FAULT_RAIL:
		wf_world_break_rail(s->node, s->other, false);
		break;
	case WF_FAULT_PART:
		wf_world_part(s->node, s->other, false);
		break;
	case WF_FAULT_LANE:
		wf_fake_cut_domain(NULL);
		break;
	case WF_FAULT_REKEY:
		rekey(s, true);
		break;
	case WF_FAULT_RESTART:
		/* A node that finds no memory is none. */
		fail_memory(1, 0);
		wf_world_restart(s->node);
		config.restarted(s->node);
		nodes[s->node].killed = nodes[s->node].returns = false;
		nodes[s->node].life++;
		nodes[s->node].drains_ns = 0;
		break;
	case WF_FAULT_FREEZE:
	case WF_FAULT_STALL:
		if (nodes[s->node].frozen)
			thaw(s->node);
		break;
	default:
		break;
	}
}

/* The plan. */

static void plan_kind(enum wf_fault fault)
{
	const struct kind *k = &kinds[fault];
	unsigned count = 1 + (unsigned)wf_chance_below(k->count);
	uint64_t span_ns = (config.until_ns - config.from_ns) / count;
	uint64_t most_ns = config.harmless ? k->harmless_ns : k->most_ns;

	/* One after the other: a knob has one hand. */
	for (unsigned i = 0; i < count; i++) {
		struct spell *s = &spells[spell_count++];

		*s = (struct spell){ .fault = fault };
		s->node = (unsigned)wf_chance_below(config.nodes);
		s->other = (s->node + 1 + (unsigned)wf_chance_below(config.nodes - 1)) %
			   config.nodes;
		s->level = 1 + (unsigned)wf_chance_below(k->level);
		s->at_ns = config.from_ns + i * span_ns + wf_chance_below(span_ns / 2);
		s->until_ns = s->at_ns + wf_chance_below(WF_MIN(most_ns, span_ns / 2) + 1);
		/* A supervisor is quick: the peer is back before anybody has missed it. */
		if (fault == WF_FAULT_RESTART && wf_chance_in_100(40))
			s->until_ns = s->at_ns;
	}
}

/* While a node closes, what lasts still ends in its time. */
static void end_due(void)
{
	uint64_t now = wf_clock_now();

	for (unsigned i = 0; i < spell_count; i++)
		if (spells[i].on && spells[i].until_ns <= now && may_end(&spells[i]) &&
		    spells[i].fault != WF_FAULT_RESTART)
			end(&spells[i]);
}

void wf_faults_plan(const struct wf_faults_config *given)
{
	config = *given;
	spell_count = 0;
	keys_differ = false;
	memset(nodes, 0, sizeof(nodes));
	memset(samples, 0, sizeof(samples));
	memset(struck, 0, sizeof(struck));
	fail_memory(1, 0);
	wf_world_on_sleep(end_due);
	wf_fake_knobs()->fault = told;
	wf_fake_knobs()->slow_ns = 1 * MS + wf_chance_below(50 * MS);
	for (unsigned i = 0; i < WF_FAULTS; i++) {
		unsigned chance = config.chance * WF_MAX(kinds[i].weight, 1u);

		if (!kinds[i].count || i == WF_FAULT_DRAIN || i == WF_FAULT_LANE || i == WF_FAULT_REKEY ||
		    i == WF_FAULT_TAMPER ||
		    !wf_chance_in_100(chance) ||
		    (config.harmless && !kinds[i].harmless) ||
		    (config.same_host && kinds[i].hosts_only) ||
		    (i == WF_FAULT_FLIP && !config.checksum))
			continue;
		plan_kind(i);
	}
}

void wf_faults_plan_drain(void)
{
	if (wf_chance_in_100(30))
		plan_kind(WF_FAULT_DRAIN);
}

void wf_faults_plan_lane(void)
{
	if (config.lanes && wf_chance_in_100(70))
		plan_kind(WF_FAULT_LANE);
}

void wf_faults_plan_rekey(void)
{
	if (wf_chance_in_100(60))
		plan_kind(WF_FAULT_REKEY);
}

void wf_faults_plan_tamper(void)
{
	if (wf_chance_in_100(50))
		plan_kind(WF_FAULT_TAMPER);
}

bool wf_faults_has(enum wf_fault fault)
{
	for (unsigned i = 0; i < spell_count; i++)
		if (spells[i].fault == fault)
			return true;
	return false;
}

bool wf_faults_keys_differ(void)
{
	return keys_differ;
}

uint64_t wf_faults_run(void)
{
	uint64_t now = wf_clock_now(), next = UINT64_MAX;

	look_at_struck();
	for (unsigned i = 0; i < spell_count; i++) {
		struct spell *s = &spells[i];

		if (is_due(s, now)) {
			s->at_ns = 0;
			begin(s);
		}
		if (s->on && s->until_ns <= now && may_end(s))
			end(s);
		if (s->at_ns)
			next = WF_MIN(next, s->at_ns > now ? s->at_ns : s->until_ns);
		else if (s->on)
			next = WF_MIN(next, s->until_ns);
	}
	return next;
}

void wf_faults_heal(void)
{
	look_at_struck();
	for (unsigned i = 0; i < config.nodes; i++)
		if (nodes[i].frozen)
			thaw(i);
	for (unsigned i = 0; i < spell_count; i++) {
		spells[i].at_ns = 0;
		if (spells[i].on)
			end(&spells[i]);
	}
}
