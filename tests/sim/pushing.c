/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/pushing.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/chance.h"
#include "tests/sim/checker.h"
#include "tests/sim/faults.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define LANDINGS_MAX 2
#define SLOTS_MAX 6
#define PUSHES_MAX 60
#define HOLDS 4                  /* tensors of a landing that are taken or waited for at once */
#define HOLD_NS (30 * MS)        /* longest time that a tensor is held */
#define SLACK_NS (8 * MS)        /* as the checker's */
#define LOSS_NS WF_NS_PER_S      /* as the checker's */
#define LATE_NS WF_NS_PER_S      /* until the last tensor is taken, after the last push */
#define RETRY_NS MS              /* after memory was missing */

/* An operation that waits for a tensor, or has one. */
struct hold {
	struct wf_flight flight;
	bool waits, holds;
	uint64_t until_ns;
	uint8_t *copy; /* the tensor as it was taken */
};

struct landing {
	/* the plan */
	unsigned owner, slots;
	size_t slot_bytes;
	uint64_t open_ns, close_ns; /* @close_ns 0: when all is over */

	/* the run */
	bool opened, refused, closed;
	unsigned life; /* life of its owner */
	struct weft_landing *landing;
	uint8_t *memory;
	uint8_t *copy; /* memory when the landing had closed; NULL: before */
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t descriptor_bytes;
	struct weft_remote *remotes[WF_WORLD_NODES_MAX];
	unsigned remote_lives[WF_WORLD_NODES_MAX];
	struct hold holds[HOLDS];
};

struct push {
	/* the plan */
	struct landing *landing;
	unsigned node;
	uint64_t begin_ns, limit_ns, cancel_ns; /* @cancel_ns 0: never */
	size_t bytes;
	uint64_t seed;
	bool summed;

	/* the run */
	bool begun, refused;
	unsigned life;
	uint64_t bereft_ns;
	struct wf_flight flight;
	bool cancelled, seen;
	enum weft_executed executed;
	uint8_t *buffer;
	unsigned taken;
};

static struct landing landings[LANDINGS_MAX];
static struct push pushes[PUSHES_MAX];
static unsigned landing_count, push_count, node_count;
static const struct wf_checker_config *checks;
static uint64_t busy_until_ns, over_ns;
static bool idle; /* no tensor comes any more */

/* The plan. */

static void plan_landing(const struct wf_traffic_config *config)
{
	struct landing *l = &landings[landing_count++];
	uint64_t span_ns = config->until_ns - config->from_ns;

	*l = (struct landing){
		.owner = (unsigned)wf_chance_below(config->nodes),
		.slots = 1 + (unsigned)wf_chance_below(SLOTS_MAX),
		.slot_bytes = 1 + wf_chance_below(wf_chance_in_100(50) ? 8 * KIB : 200 * KIB),
		.open_ns = config->from_ns + wf_chance_below(span_ns / 2),
	};
	if (wf_chance_in_100(30))
		l->close_ns = l->open_ns + wf_chance_below(span_ns);
}

static void plan_push(const struct wf_traffic_config *config)
{
	struct push *p = &pushes[push_count++];
	struct landing *l = &landings[wf_chance_below(landing_count)];

	*p = (struct push){
		.landing = l,
		.node = (l->owner + 1 + (unsigned)wf_chance_below(config->nodes - 1)) % config->nodes,
		.begin_ns = l->open_ns + wf_chance_below(config->until_ns - l->open_ns),
		.limit_ns = wf_chance_in_100(75) ? WF_TRAFFIC_LONG_NS : wf_traffic_soon_ns(),
		.bytes = wf_chance_in_100(5) ? 0
			 : wf_chance_in_100(95) ? 1 + wf_chance_below(l->slot_bytes)
						: l->slot_bytes + 1,
		.seed = wf_chance_below(UINT64_MAX),
		.summed = wf_chance_in_100(15),
	};
	if (push_count > 1 && wf_chance_in_100(50) && pushes[push_count - 2].landing == l)
		p->begin_ns = pushes[push_count - 2].begin_ns;
	if (wf_chance_in_100(15))
		p->cancel_ns = p->begin_ns + wf_traffic_soon_ns();
}

void wf_pushing_plan(const struct wf_traffic_config *config, const struct wf_checker_config *given)
{
	uint64_t here = wf_chance_here();
	unsigned count, most;

	wf_chance_seed(here ^ 0x4c414e44);
	count = wf_chance_in_100(25) ? 6 + (unsigned)wf_chance_below(PUSHES_MAX - 5) : 0;
	most = count ? 1 + (unsigned)wf_chance_below(LANDINGS_MAX) : 0;
	landing_count = push_count = 0;
	node_count = config->nodes;
	over_ns = 0;
	idle = false;
	busy_until_ns = config->until_ns;
	checks = given;
	while (landing_count < most)
		plan_landing(config);
	while (push_count < count)
		plan_push(config);
	wf_chance_seed(here);
}

/* Checks. */

static bool is_quiet_run(void)
{
	return checks->harmless || checks->connected;
}

static bool is_gone(const struct landing *l)
{
	return wf_faults_is_gone(l->owner) || l->life != wf_faults_life(l->owner);
}

static bool is_live(const struct push *p)
{
	return p->begun && !p->refused && !p->flight.outcomes && !wf_faults_is_gone(p->node) &&
	       p->life == wf_faults_life(p->node);
}

static void wrong(const struct push *p, const char *what)
{
	const struct wf_flight *f = &p->flight;

	print_error("  landing of n%u, %u slots of %zu, opened %d, closed %d\n", p->landing->owner,
		    p->landing->slots, p->landing->slot_bytes, p->landing->opened, p->landing->closed);
	print_error("  %zu bytes, summed %d, began %.6f, limit %.6f, cancel %.6f, taken %u, ended %.6f %s\n",
		    p->bytes, p->summed, (double)f->started_ns / 1e9, (double)p->limit_ns / 1e9,
		    (double)p->cancel_ns / 1e9, p->taken, (double)f->ended_ns / 1e9,
		    f->outcomes ? weft_status_name(f->status) : "");
	for (unsigned i = 0; getenv("WORLD_LOG") && i < 2; i++)
		if (!wf_faults_is_gone(i ? p->landing->owner : p->node))
			(void)weft_dump(wf_world_node(i ? p->landing->owner : p->node), stderr);
	fail_msg("push %u of node %u %s: %s", (unsigned)(p - pushes), p->node, what,
		 f->op ? weft_op_message(f->op) : "");
}

/* Could nothing but the run's faults keep @p from going well?  With few slots it may get none. */
static bool is_plain(const struct push *p)
{
	return !p->cancel_ns && p->limit_ns == WF_TRAFFIC_LONG_NS && !p->landing->close_ns &&
	       p->bytes <= p->landing->slot_bytes && p->landing->slots + 1 >= node_count &&
	       !wf_faults_is_draining(p->landing->owner);
}

static void check_end(const struct push *p)
{
	const struct wf_flight *f = &p->flight;
	uint64_t deadline_ns = f->started_ns + p->limit_ns, due_ns = deadline_ns;

	if (p->bereft_ns)
		due_ns = WF_MIN(due_ns,
				WF_MAX(p->bereft_ns, wf_faults_thawed_ns(p->node)) + LOSS_NS);
	due_ns = WF_MAX(due_ns, wf_faults_thawed_ns(p->node));
	if (f->outcomes != 1)
		wrong(p, "ended more than once");
	if (f->ended_ns > due_ns + checks->quiet_ns + SLACK_NS)
		wrong(p, "ended too late");
	if (f->status == WEFT_DEADLINE_EXCEEDED && f->ended_ns < deadline_ns)
		wrong(p, "missed its deadline before it came");
	if (f->status == WEFT_CANCELLED && !p->cancelled && checks->harmless)
		wrong(p, "was cancelled by nobody");
	if (f->status == WEFT_ABORTED || f->status == WEFT_ALREADY_EXISTS ||
	    f->status == WEFT_PERMISSION_DENIED || f->status == WEFT_OUT_OF_RANGE)
		wrong(p, "was refused what it may do");
	if (f->status == WEFT_OK && p->bytes > p->landing->slot_bytes)
		wrong(p, "is longer than its slot");
	if (checks->harmless && is_plain(p) && f->status != WEFT_OK)
		wrong(p, "should have gone well");
}

void wf_pushing_look(void)
{
	for (struct push *p = pushes; p < pushes + push_count; p++) {
		if (!p->flight.outcomes || p->seen)
			continue;
		p->seen = true;
		p->executed = weft_op_executed(p->flight.op);
		check_end(p);
		if (p->bytes && wf_fake_is_open(p->buffer, p->bytes))
			wrong(p, "left its memory open to others");
		if (p->taken && p->executed == WEFT_EXECUTED_NO)
			wrong(p, "was not executed, and its tensor was taken");
		memset(p->buffer, WF_TRAFFIC_CANARY, p->bytes);
		wf_flight_free(&p->flight, 1);
		p->flight.op = NULL;
	}
}

/* Tensors. */

static void check_taken(struct landing *l, struct hold *h)
{
	const struct weft_tensor *tensor = weft_op_tensor(h->flight.op, NULL);
	uint64_t number;
	struct push *p;

	assert_non_null(tensor);
	assert_int_equal(weft_op_landed(h->flight.op, &number), 0);
	if (number >= push_count)
		fail_msg("a tensor has number %llu", (unsigned long long)number);
	p = &pushes[number];
	if (!p->begun || p->refused || p->landing != l || tensor->ndim != 1 ||
	    tensor->shape[0] != (int64_t)p->bytes ||
	    ((uint8_t *)tensor->data - l->memory) % (ptrdiff_t)l->slot_bytes)
		wrong(p, "has landed elsewhere, or as another");
	if (p->taken++)
		wrong(p, "has landed twice");
	if (p->seen && p->executed == WEFT_EXECUTED_NO)
		wrong(p, "was not executed, and has landed");
	if (!wf_world_is_filled(tensor->data, p->bytes, p->seed) &&
	    (p->summed || !checks->tally->injected[WF_FAULT_FLIP]))
		wrong(p, "has landed with other bytes");
	h->copy = malloc(p->bytes + 1);
	assert_non_null(h->copy);
	memcpy(h->copy, tensor->data, p->bytes);
	h->holds = true;
	h->until_ns = wf_clock_now() + p->seed % HOLD_NS;
}

static void next_ended(struct weft_op *op, void *arg)
{
	struct hold *h = arg;
	struct landing *l = landings;

	while (h < l->holds || h >= l->holds + HOLDS)
		l++;
	h->flight.outcomes++;
	h->waits = false;
	/* The run may have given up its handle before. */
	if (h->flight.op && weft_op_status(op) == WEFT_OK)
		check_taken(l, h);
	else
		wf_flight_free(&h->flight, 1);
}

/* Nothing has changed in the slot of @h.  Whoever wrote there from now on would be seen by the next. */
static void give_back(struct landing *l, struct hold *h)
{
	const struct weft_tensor *tensor = weft_op_tensor(h->flight.op, NULL);
	size_t bytes = (size_t)tensor->shape[0];

	if (!l->closed && !is_gone(l) && is_quiet_run() && memcmp(h->copy, tensor->data, bytes))
		fail_msg("a slot of node %u was written while its tensor was held", l->owner);
	if (!l->closed && !is_gone(l))
		memset(tensor->data, WF_TRAFFIC_CANARY, bytes);
	free(h->copy);
	h->copy = NULL;
	h->holds = false;
	wf_flight_free(&h->flight, 1);
}

static uint64_t run_hold(struct landing *l, struct hold *h, uint64_t now)
{
	struct weft_op_options options;

	if (h->waits && idle)
		weft_cancel(h->flight.op);
	if (h->holds && h->until_ns > now && !idle)
		return h->until_ns;
	if (h->holds)
		give_back(l, h);
	if (h->waits || idle || l->closed)
		return UINT64_MAX;
	options = wf_flight_begin(&h->flight, 5 * MS << 2 * (h - l->holds));
	options.done = next_ended;
	options.arg = h;
	h->waits = true;
	if (!weft_landing_next(l->landing, &options, &h->flight.op))
		return UINT64_MAX;
	h->waits = false;
	return now + RETRY_NS;
}

/* Landings. */

static void open_landing(struct landing *l)
{
	size_t bytes = l->slots * l->slot_bytes;
	int err;

	l->memory = malloc(bytes);
	assert_non_null(l->memory);
	memset(l->memory, WF_TRAFFIC_CANARY, bytes);
	err = weft_landing_open(wf_world_node(l->owner), l->memory, l->slot_bytes, l->slots,
				&l->landing);
	if (err && err != -ENOMEM)
		fail_msg("a landing can't be opened: %s", weft_error());
	l->refused = err != 0;
	l->opened = !err;
	if (err)
		return;
	l->life = wf_faults_life(l->owner);
	l->descriptor_bytes = sizeof(l->descriptor);
	assert_int_equal(weft_landing_describe(l->landing, l->descriptor, &l->descriptor_bytes), 0);
}

static void check_closed(struct landing *l)
{
	size_t bytes = l->slots * l->slot_bytes;

	l->closed = true;
	l->copy = malloc(bytes);
	assert_non_null(l->copy);
	memcpy(l->copy, l->memory, bytes);
}

static void close_landing(struct landing *l)
{
	uint64_t begin_ns = wf_clock_now();

	if (weft_landing_close(l->landing))
		fail_msg("a landing can't be closed: %s", weft_error());
	if (wf_clock_now() - begin_ns > checks->quiet_ns + SLACK_NS)
		fail_msg("a landing of node %u took %llu ms to close", l->owner,
			 (unsigned long long)((wf_clock_now() - begin_ns) / MS));
	for (unsigned i = 0; i < HOLDS; i++)
		if (l->holds[i].waits)
			fail_msg("a landing of node %u has closed, and somebody waits for it", l->owner);
	check_closed(l);
}

static uint64_t run_landing(struct landing *l, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (!l->opened && !l->refused) {
		if (l->open_ns > now)
			return l->open_ns;
		if (wf_faults_is_gone(l->owner))
			l->refused = true;
		else if (!wf_faults_is_away(l->owner))
			open_landing(l);
	}
	if (!l->opened || is_gone(l) || wf_faults_is_away(l->owner))
		return next;
	for (unsigned i = 0; i < HOLDS; i++) {
		uint64_t hold_ns = run_hold(l, &l->holds[i], now);

		next = WF_MIN(next, hold_ns);
	}
	if (!l->close_ns || l->closed)
		return next;
	if (l->close_ns > now)
		return WF_MIN(next, l->close_ns);
	close_landing(l);
	return next;
}

/* Pushes. */

static struct weft_remote *remote_of(const struct push *p)
{
	struct landing *l = p->landing;
	struct weft_remote **remote = &l->remotes[p->node];
	int err;

	if (*remote && l->remote_lives[p->node] == wf_faults_life(p->node))
		return *remote;
	*remote = NULL;
	err = weft_window_import(wf_world_peer(p->node, l->owner), l->descriptor, l->descriptor_bytes,
				 remote);
	if (err && err != -ENOMEM)
		fail_msg("a landing can't be imported: %s", weft_error());
	l->remote_lives[p->node] = wf_faults_life(p->node);
	return *remote;
}

static void ended(struct weft_op *op, void *arg)
{
	struct push *p = arg;

	p->flight.outcomes++;
	p->flight.status = weft_op_status(op);
	p->flight.ended_ns = wf_clock_now();
}

static void begin(struct push *p)
{
	struct weft_remote *remote = remote_of(p);
	int64_t shape = (int64_t)p->bytes;
	struct weft_tensor tensor = {
		.device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape,
	};
	struct weft_push_options options = { .size = sizeof(options),
					     .number = (uint64_t)(p - pushes) };
	int err;

	p->begun = true;
	p->life = wf_faults_life(p->node);
	p->refused = !remote;
	if (p->refused)
		return;
	p->buffer = malloc(p->bytes + 1);
	assert_non_null(p->buffer);
	wf_world_fill(p->buffer, p->bytes, p->seed);
	tensor.data = p->buffer;
	options.op = wf_flight_begin(&p->flight, p->limit_ns);
	options.op.done = ended;
	options.op.arg = p;
	options.op.flags = p->summed ? WEFT_CHECKSUM : 0;
	err = weft_push(remote, &tensor, &options, &p->flight.op);
	if (err && err != -ENOMEM)
		fail_msg("a push can't be begun: %s", weft_error());
	p->refused = err != 0;
}

static uint64_t run_push(struct push *p, uint64_t now)
{
	if (!p->begun) {
		if (p->begin_ns > now)
			return p->begin_ns;
		if (p->landing->opened && !wf_faults_is_away(p->node))
			begin(p);
		return UINT64_MAX;
	}
	if (!is_live(p) || wf_faults_is_away(p->node) || !p->cancel_ns || p->cancelled)
		return UINT64_MAX;
	if (p->cancel_ns > now)
		return p->cancel_ns;
	p->cancelled = true;
	wf_faults_strike_op(WF_FAULT_CANCEL, p->flight.op);
	weft_cancel(p->flight.op);
	return UINT64_MAX;
}

uint64_t wf_pushing_run(uint64_t now)
{
	uint64_t next = UINT64_MAX, until_ns;

	for (unsigned i = 0; i < push_count; i++) {
		until_ns = run_push(&pushes[i], now);
		next = WF_MIN(next, until_ns);
	}
	for (unsigned i = 0; i < landing_count; i++) {
		until_ns = run_landing(&landings[i], now);
		next = WF_MIN(next, until_ns);
	}
	return next;
}

static bool are_over(void)
{
	for (const struct push *p = pushes; p < pushes + push_count; p++)
		if (p->begun ? is_live(p) : !p->landing->refused && !wf_faults_is_gone(p->node))
			return false;
	return true;
}

bool wf_pushing_is_over(void)
{
	bool busy = false;

	if (!are_over()) {
		over_ns = 0;
		return false;
	}
	if (!over_ns)
		over_ns = wf_clock_now();
	if (landing_count && wf_clock_now() < WF_MAX(over_ns, busy_until_ns) + LATE_NS)
		return false;
	idle = true;
	for (unsigned i = 0; i < landing_count; i++)
		for (unsigned k = 0; k < HOLDS; k++)
			busy |= !is_gone(&landings[i]) &&
				(landings[i].holds[k].waits || landings[i].holds[k].holds);
	return !busy;
}

void wf_pushing_bereave(unsigned number)
{
	for (struct push *p = pushes; p < pushes + push_count; p++)
		if (p->landing->owner == number && is_live(p) && wf_traffic_is_linked(p->node, number))
			p->bereft_ns = wf_clock_now();
}

/* The end of the run. */

void wf_pushing_close(void)
{
	for (struct landing *l = landings; l < landings + landing_count; l++) {
		for (unsigned node = 0; node < WF_WORLD_NODES_MAX; node++)
			if (l->remotes[node] && !wf_faults_is_gone(node) &&
			    l->remote_lives[node] == wf_faults_life(node))
				weft_remote_close(l->remotes[node]);
		if (l->opened && !l->closed && !is_gone(l))
			close_landing(l);
	}
}

void wf_pushing_finish(void)
{
	for (const struct landing *l = landings; l < landings + landing_count; l++)
		if (l->copy && is_quiet_run() && memcmp(l->copy, l->memory, l->slots * l->slot_bytes))
			fail_msg("a closed landing of node %u was written", l->owner);
	for (const struct push *p = pushes; p < pushes + push_count; p++) {
		if (p->seen && p->flight.status == WEFT_OK && !p->taken && !p->landing->close_ns &&
		    !is_gone(p->landing))
			wrong(p, "ended well, and has not landed");
		checks->tally->operations += p->begun && !p->refused;
		checks->tally->ended_well += p->seen && p->flight.status == WEFT_OK;
		checks->tally->pushes += p->begun && !p->refused;
		checks->tally->landed += p->taken;
	}
}

void wf_pushing_release(void)
{
	for (unsigned i = 0; i < push_count; i++) {
		weft_op_free(pushes[i].flight.op);
		pushes[i].flight.op = NULL;
	}
	for (unsigned i = 0; i < landing_count; i++)
		for (unsigned k = 0; k < HOLDS; k++) {
			struct hold *h = &landings[i].holds[k];

			if (h->waits || h->holds)
				wf_flight_free(&h->flight, 1);
		}
}

void wf_pushing_free(void)
{
	for (unsigned i = 0; i < push_count; i++)
		free(pushes[i].buffer);
	for (unsigned i = 0; i < landing_count; i++) {
		for (unsigned k = 0; k < HOLDS; k++)
			free(landings[i].holds[k].copy);
		free(landings[i].memory);
		free(landings[i].copy);
	}
	landing_count = push_count = 0;
}
