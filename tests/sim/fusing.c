/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/fusing.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/chance.h"
#include "tests/sim/checker.h"
#include "tests/sim/faults.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define SETS_MAX 2
#define ITEMS_MAX 10
#define FIRST_STEP 300000 /* far beyond the steps of other traffic */

/* An item, and the tensor that is sent for it. */
struct item {
	/* the plan */
	struct set *set;
	uint64_t key;
	uint64_t cancel_ns;   /* 0: never */
	bool misfits;         /* the buffer is too short */
	unsigned node;        /* the sender */
	uint64_t send_ns;     /* UINT64_MAX: no tensor is sent */
	uint64_t send_limit_ns;
	size_t bytes;
	uint64_t seed;

	/* the run */
	bool cancelled;
	unsigned told;
	enum weft_status status;
	uint8_t *buffer;      /* memory of the receive */
	bool sent, refused;   /* refused: there was no memory to send, or the node was gone */
	unsigned life;        /* life of the sender, when the send began */
	struct wf_flight flight; /* the send */
	uint8_t *source;
	unsigned got;         /* items that got the tensor */
};

struct set {
	/* the plan */
	uint64_t step;
	unsigned node, from;  /* equal: from anybody */
	uint64_t begin_ns, limit_ns;
	uint64_t cancel_ns, stop_ns; /* 0: never; the step ends at the set's node */
	unsigned count;
	struct item items[ITEMS_MAX];

	/* the run */
	bool begun, refused, cancelled, stopped;
	unsigned life;        /* life of its node, when the set began */
	unsigned told;
	struct wf_flight flight;
};

static struct set sets[SETS_MAX];
static unsigned set_count, node_count;
static const struct wf_checker_config *checks;

/* The plan. */

static void plan_item(struct set *s, const struct wf_traffic_config *config, bool pairs)
{
	struct item *item = &s->items[s->count];
	size_t bytes = wf_chance_in_100(70) ? wf_chance_below(2 * KIB) : wf_traffic_some_bytes();

	*item = (struct item){
		.set = s,
		.key = pairs ? s->count / 2 : s->count,
		.node = s->from,
		.send_ns = s->begin_ns - 5 * MS + wf_chance_below(40 * MS),
		.send_limit_ns = WF_TRAFFIC_LONG_NS,
		.bytes = 1 + WF_MIN(bytes, 100 * KIB),
		.seed = wf_chance_below(UINT64_MAX),
	};
	if (s->from == s->node)
		item->node = (s->node + 1 + (unsigned)wf_chance_below(config->nodes - 1)) % config->nodes;
	s->count++;
	/* Each item of two with one key can have either tensor. */
	if (pairs) {
		item->bytes = 100;
		return;
	}
	if (wf_chance_in_100(4))
		item->send_ns = UINT64_MAX;
	else if (wf_chance_in_100(8))
		item->cancel_ns = s->begin_ns + wf_traffic_soon_ns();
	else
		item->misfits = wf_chance_in_100(8);
}

static void plan_set(const struct wf_traffic_config *config)
{
	struct set *s = &sets[set_count++];
	unsigned count = 1 + (unsigned)wf_chance_below(ITEMS_MAX);
	bool pairs = wf_chance_in_100(25);

	*s = (struct set){
		.step = FIRST_STEP + set_count,
		.node = (unsigned)wf_chance_below(config->nodes),
		.begin_ns = config->from_ns + 5 * MS + wf_chance_below(config->until_ns - config->from_ns),
		.limit_ns = wf_chance_in_100(85) ? WF_TRAFFIC_LONG_NS : wf_traffic_soon_ns(),
	};
	s->from = wf_chance_in_100(30) ? s->node
				       : (s->node + 1 + (unsigned)wf_chance_below(config->nodes - 1)) %
						 config->nodes;
	if (wf_chance_in_100(12))
		s->cancel_ns = s->begin_ns + wf_traffic_soon_ns();
	else if (wf_chance_in_100(8))
		s->stop_ns = s->begin_ns + wf_traffic_soon_ns();
	while (s->count < count)
		plan_item(s, config, pairs);
}

void wf_fusing_plan(const struct wf_traffic_config *config, const struct wf_checker_config *given)
{
	uint64_t here = wf_chance_here();
	unsigned count;

	wf_chance_seed(here ^ 0x465553494e47);
	count = wf_chance_in_100(40) ? 1 + (unsigned)wf_chance_below(SETS_MAX) : 0;
	set_count = 0;
	node_count = config->nodes;
	checks = given;
	while (count--)
		plan_set(config);
	wf_chance_seed(here);
}

/* Failures. */

static const char *sentence(const struct wf_flight *f)
{
	return f->op ? weft_op_message(f->op) : "";
}

static void wrong(const struct set *s, const char *what)
{
	print_error("  set of n%u from n%u, began %d, told %u of %u, cancelled %d, stopped %d\n", s->node,
		    s->from, s->begun, s->told, s->count, s->cancelled, s->stopped);
	for (unsigned i = 0; i < s->count; i++)
		print_error("   item %u of key %u, %zu bytes of n%u, cancelled %d, misfits %d: %s; sent %d: %s\n",
			    i, (unsigned)s->items[i].key, s->items[i].bytes, s->items[i].node,
			    s->items[i].cancelled, s->items[i].misfits,
			    weft_status_name(s->items[i].status), s->items[i].sent,
			    weft_status_name(s->items[i].flight.status));
	fail_msg("set %u of node %u %s: %s", (unsigned)(s - sets), s->node, what, sentence(&s->flight));
}

static bool is_of_the_past(unsigned node, unsigned life)
{
	return wf_faults_is_gone(node) || life != wf_faults_life(node);
}

static bool is_live(const struct set *s)
{
	return s->begun && !s->refused && !s->flight.outcomes && !is_of_the_past(s->node, s->life);
}

static bool is_send_live(const struct item *item)
{
	return item->sent && !item->refused && !item->flight.outcomes &&
	       !is_of_the_past(item->node, item->life);
}

static bool is_refused(int err)
{
	if (err && err != -ENOMEM && err != -ENOBUFS)
		fail_msg("a set, or a send to one, can't be begun: %s", weft_error());
	return err;
}

/* Items. */

/* Find the tensor that @item got, which no other may have. */
static void check_tensor(const struct item *item, const struct weft_tensor *t)
{
	struct set *s = item->set;

	for (struct item *from = s->items; from < s->items + s->count; from++) {
		if (from->key != item->key || (uint64_t)t->shape[0] != from->bytes || !from->sent ||
		    !wf_world_is_filled(t->data, from->bytes, from->seed))
			continue;
		if (from->got++)
			wrong(s, "has got a tensor twice");
		return;
	}
	wrong(s, "has an item with other bytes than were sent for it");
}

/* Without faults an item is cancelled, or misses its deadline, for a reason. */
static void check_failure(const struct item *item)
{
	const struct set *s = item->set;
	bool is_late = wf_clock_now() >= s->flight.started_ns + s->limit_ns;

	if (item->status == WEFT_DEADLINE_EXCEEDED && !is_late)
		wrong(s, "has an item that missed its deadline before it came");
	if (item->status == WEFT_CANCELLED && checks->harmless && !item->cancelled && !s->cancelled &&
	    !s->stopped && !wf_faults_is_away(item->node))
		wrong(s, "has an item that nobody has cancelled");
}

static void each(void *arg, struct weft_op *op, size_t index)
{
	struct set *s = arg;
	struct item *item = &s->items[index];
	const struct weft_op *recv = weft_recv_set_item(op, index);

	if (s->flight.outcomes)
		wrong(s, "tells an item after its end");
	if (item->told++)
		wrong(s, "tells an item twice");
	s->told++;
	item->status = weft_op_status(recv);
	if (item->status == WEFT_OK)
		check_tensor(item, weft_op_tensor(recv, NULL));
	else if (!weft_op_message(recv)[0])
		wrong(s, "has an item that failed without a sentence");
	else
		check_failure(item);
}

/* The set ends well if all items do, and else as one that failed. */
static void check_end(const struct set *s)
{
	bool all_well = true, like_one = false;

	if (s->flight.outcomes != 1)
		wrong(s, "ended more than once");
	if (s->told != s->count)
		wrong(s, "ended before its items");
	for (unsigned i = 0; i < s->count; i++) {
		all_well &= s->items[i].status == WEFT_OK;
		like_one |= s->items[i].status == s->flight.status;
	}
	if (!like_one || all_well != (s->flight.status == WEFT_OK))
		wrong(s, "ended as none of its items");
}

/* Time. */

static void begin(struct set *s)
{
	struct weft_recv_set_options options = WEFT_RECV_SET_OPTIONS_INIT;
	struct weft_recv_item wanted[ITEMS_MAX];
	struct weft_tensor tensors[ITEMS_MAX];
	int64_t shapes[ITEMS_MAX];

	s->begun = true;
	s->life = wf_faults_life(s->node);
	for (unsigned i = 0; i < s->count; i++) {
		struct item *item = &s->items[i];

		item->buffer = malloc(item->bytes);
		assert_non_null(item->buffer);
		shapes[i] = (int64_t)item->bytes - item->misfits;
		tensors[i] = (struct weft_tensor){ .data = item->buffer, .device = { WEFT_CPU, 0 }, .ndim = 1,
						   .dtype = { WEFT_UINT, 8, 1 }, .shape = &shapes[i] };
		wanted[i] = (struct weft_recv_item){ &item->key, sizeof(item->key), &tensors[i] };
	}
	options.op = wf_flight_begin(&s->flight, s->limit_ns);
	options.each = each;
	options.each_arg = s;
	s->refused = is_refused(weft_recv_set(wf_world_node(s->node),
					      s->from == s->node ? NULL : wf_world_peer(s->node, s->from),
					      s->step, wanted, s->count, &options, &s->flight.op));
}

static void send(struct item *item)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	int64_t shape = (int64_t)item->bytes;
	struct weft_tensor t = { .device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 },
				 .shape = &shape };

	item->sent = true;
	item->life = wf_faults_life(item->node);
	t.data = item->source = malloc(item->bytes);
	assert_non_null(item->source);
	wf_world_fill(item->source, item->bytes, item->seed);
	options.op = wf_flight_begin(&item->flight, item->send_limit_ns);
	item->refused = is_refused(weft_send(wf_world_peer(item->node, item->set->node), item->set->step,
					     &item->key, sizeof(item->key), &t, &options,
					     &item->flight.op));
}

/* Cancel item @one of @s; NULL: all of them. */
static void cancel(struct set *s, struct item *one)
{
	struct weft_op *op = one ? weft_recv_set_item(s->flight.op, (size_t)(one - s->items))
				 : s->flight.op;

	for (unsigned i = 0; i < s->count; i++)
		if (!one || one == &s->items[i])
			wf_faults_strike_op(WF_FAULT_CANCEL, weft_recv_set_item(s->flight.op, i));
	weft_cancel(op);
}

static uint64_t run_item(struct item *item, uint64_t now)
{
	struct set *s = item->set;
	uint64_t next = UINT64_MAX;

	if (!item->sent && item->send_ns > now)
		next = item->send_ns;
	else if (!item->sent && !wf_faults_is_away(item->node))
		send(item);
	if (!item->cancel_ns || item->cancelled || !is_live(s) || wf_faults_is_away(s->node))
		return next;
	if (item->cancel_ns > now)
		return WF_MIN(next, item->cancel_ns);
	item->cancelled = true;
	cancel(s, item);
	return next;
}

static uint64_t run_set(struct set *s, uint64_t now)
{
	if (!s->begun) {
		if (s->begin_ns > now)
			return s->begin_ns;
		if (!wf_faults_is_away(s->node))
			begin(s);
		return UINT64_MAX;
	}
	if (!is_live(s) || wf_faults_is_away(s->node))
		return UINT64_MAX;
	if (s->cancel_ns && !s->cancelled) {
		if (s->cancel_ns > now)
			return s->cancel_ns;
		s->cancelled = true;
		cancel(s, NULL);
	}
	if (s->stop_ns && !s->stopped) {
		if (s->stop_ns > now)
			return s->stop_ns;
		s->stopped = true;
		/* Without memory it is done again. */
		s->stopped = !weft_step_end(wf_world_node(s->node), s->step);
	}
	return UINT64_MAX;
}

uint64_t wf_fusing_run(uint64_t now)
{
	uint64_t next = UINT64_MAX, until_ns;

	for (struct set *s = sets; s < sets + set_count; s++) {
		until_ns = run_set(s, now);
		next = WF_MIN(next, until_ns);
		for (unsigned i = 0; i < s->count; i++) {
			until_ns = run_item(&s->items[i], now);
			next = WF_MIN(next, until_ns);
		}
	}
	return next;
}

/* The end of the run. */

bool wf_fusing_is_over(void)
{
	for (const struct set *s = sets; s < sets + set_count; s++) {
		if (is_live(s) || (!s->begun && !wf_faults_is_gone(s->node)))
			return false;
		for (const struct item *item = s->items; item < s->items + s->count; item++)
			if (is_send_live(item) || (!item->sent && item->send_ns != UINT64_MAX &&
						   !wf_faults_is_gone(item->node)))
				return false;
	}
	return true;
}

void wf_fusing_end_steps(void)
{
	for (unsigned i = 0; i < set_count; i++)
		for (unsigned node = 0; node < node_count; node++)
			if (!wf_faults_is_gone(node))
				assert_int_equal(weft_step_end(wf_world_node(node), sets[i].step), 0);
}

/* An item gets the tensor that was sent for it, unless something happened to itself or to all. */
static void check_delivery(const struct set *s, const struct item *item)
{
	bool is_plain = !s->cancel_ns && !s->stop_ns && s->limit_ns == WF_TRAFFIC_LONG_NS &&
			!item->cancel_ns && !item->misfits;

	if (checks->harmless && is_plain && !s->refused && item->sent && !item->refused &&
	    (item->status != WEFT_OK || item->flight.status != WEFT_OK))
		wrong(s, "has an item that did not get its tensor");
}

static void finish(const struct set *s)
{
	if (s->flight.outcomes)
		check_end(s);
	for (const struct item *item = s->items; item < s->items + s->count; item++) {
		if (item->flight.outcomes > 1)
			wrong(s, "has a send that ended again");
		if (s->flight.outcomes)
			check_delivery(s, item);
		checks->tally->operations += item->sent && !item->refused;
		checks->tally->ended_well += item->flight.outcomes && item->flight.status == WEFT_OK;
		checks->tally->fused += item->told;
		checks->tally->fused_well += item->told && item->status == WEFT_OK;
	}
	checks->tally->operations += s->begun && !s->refused;
	checks->tally->ended_well += s->flight.outcomes && s->flight.status == WEFT_OK;
	checks->tally->sets += s->begun && !s->refused;
}

void wf_fusing_finish(void)
{
	for (unsigned i = 0; i < set_count; i++)
		finish(&sets[i]);
}

static void free_flight(struct wf_flight *f)
{
	weft_op_free(f->op);
	f->op = NULL;
}

void wf_fusing_release(void)
{
	for (struct set *s = sets; s < sets + set_count; s++) {
		free_flight(&s->flight);
		for (unsigned i = 0; i < s->count; i++)
			free_flight(&s->items[i].flight);
	}
}

void wf_fusing_free(void)
{
	for (struct set *s = sets; s < sets + set_count; s++)
		for (unsigned i = 0; i < s->count; i++) {
			free(s->items[i].buffer);
			free(s->items[i].source);
		}
	set_count = 0;
}
