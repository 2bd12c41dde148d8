/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/cargo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/chance.h"
#include "tests/sim/faults.h"
#include "tests/sim/traffic.h"
#include "util/clock.h"
#include "util/list.h"

#define MS WF_NS_PER_MS
#define LOADS_MAX 128
#define ITEMS_MAX 512
#define MESSAGES_MAX 8 /* of a stream, each way */

/* A call that is served, and has not been answered. */
struct server {
	struct wf_list node; /* in servers */
	struct wf_leg *leg;
	void *call;
	unsigned number, life; /* of its node */
	uint64_t answer_ns;    /* 0: not known yet */
};

static struct wf_load loads[LOADS_MAX];
static struct wf_item items[ITEMS_MAX];
static unsigned load_count, item_count;
static struct wf_list servers = { &servers, &servers };

struct wf_item *wf_cargo_items(unsigned *count)
{
	*count = item_count;
	return items;
}

/* The plan. */

static void plan_tensor(struct wf_item *item)
{
	item->bytes = wf_traffic_some_bytes();
	item->seed = wf_chance_below(UINT64_MAX);
	if (item->bytes > 1 && wf_chance_in_100(30)) {
		item->row_bytes = 1 + wf_chance_below(WF_MIN(item->bytes, (size_t)1000));
		item->bytes -= item->bytes % item->row_bytes;
		if (wf_chance_in_100(50))
			item->pitch_bytes = item->row_bytes + 1 + wf_chance_below(50);
	}
	if (wf_chance_in_100(15))
		item->flags = item->row_bytes || wf_chance_in_100(50) ? WEFT_SNAPSHOT : WEFT_OPAQUE;
	if (!item->flags && !item->pitch_bytes && wf_chance_in_100(40))
		item->flags = WEFT_SHARE;
	if (wf_chance_in_100(5)) {
		item->flags = WEFT_DEAD;
		item->bytes = 0;
		item->pitch_bytes = 0;
	}
}

/* True: it may end early. */
static bool plan_end(struct wf_cargo_end *end, unsigned short_chance)
{
	if (wf_chance_in_100(short_chance))
		end->limit_ns = wf_traffic_soon_ns();
	if (wf_chance_in_100(5))
		end->patience_ns = wf_traffic_soon_ns();
	end->detached = wf_chance_in_100(3);
	return end->limit_ns || end->patience_ns;
}

static void plan_item(struct wf_load *load, bool wanted)
{
	struct wf_item *item = &items[item_count++];
	struct wf_group *g = load->leg->group;

	assert_true(item_count <= ITEMS_MAX);
	*item = (struct wf_item){ .load = load, .wanted = wanted && wf_chance_in_100(85) };
	plan_tensor(item);
	g->lonely |= plan_end(&item->sent, 6);
	item->unwatched = !item->sent.patience_ns && wf_chance_in_100(15);
	g->lonely |= plan_end(&item->got, 10);
	/* Only a call that is served has a deadline for its receives. */
	if (!item->got.limit_ns && (load->back || load->leg->kind == WF_LEG_STREAM))
		item->got.limit_ns = WF_TRAFFIC_LONG_NS;
	item->memory = (enum wf_cargo_memory)wf_chance_below(3);
	item->any_shape = wf_chance_in_100(20);
	if (wf_chance_in_100(40))
		item->wait_ns = wf_chance_below(60 * MS);
	if (wf_chance_in_100(3)) {
		item->misfits = item->memory == WF_CARGO_OWN && !item->any_shape;
		item->refuses = item->memory == WF_CARGO_ALLOC;
		g->lonely |= item->misfits || item->refuses;
	}
}

static struct wf_load *plan_loads(struct wf_leg *leg, unsigned messages, bool back)
{
	struct wf_load *first = &loads[load_count];

	for (unsigned i = 0; i < messages; i++) {
		struct wf_load *load = &loads[load_count++];
		unsigned count = (unsigned)wf_chance_below(wf_chance_in_100(85) ? 4 : 8);
		bool wanted = wf_chance_in_100(90);

		assert_true(load_count <= LOADS_MAX);
		*load = (struct wf_load){
			.leg = leg, .back = back, .backwards = wf_chance_in_100(30),
			.items = &items[item_count],
		};
		while (load->count++ < count)
			plan_item(load, wanted);
		load->count = count;
	}
	return first;
}

void wf_cargo_plan(struct wf_leg *leg)
{
	struct wf_talk *t = &leg->talk;
	unsigned up = 1, down = 1;

	if (leg->kind == WF_LEG_STREAM) {
		up = t->up = WF_MIN(t->up, (unsigned)MESSAGES_MAX);
		down = t->down = WF_MIN(t->down, (unsigned)MESSAGES_MAX);
		t->asks = WF_MIN(t->asks, up + 1);
	}
	leg->cargo.hasty = wf_chance_in_100(10);
	leg->group->lonely |= leg->cargo.hasty;
	leg->cargo.up = plan_loads(leg, up, false);
	leg->cargo.down = plan_loads(leg, down, true);
}

/* Operations. */

unsigned wf_cargo_peer(const struct wf_item *item, const struct wf_cargo_end *end)
{
	const struct wf_leg *leg = item->load->leg;

	return end->node == leg->node ? leg->peer : leg->node;
}

bool wf_cargo_is_of_the_past(const struct wf_cargo_end *end)
{
	return wf_faults_is_gone(end->node) || end->life != wf_faults_life(end->node);
}

bool wf_cargo_is_live(const struct wf_cargo_end *end)
{
	return end->begun && !end->flight.outcomes && !wf_cargo_is_of_the_past(end);
}

static void make_buffer(struct wf_cargo_end *end, size_t bytes)
{
	end->buffer_bytes = bytes;
	end->buffer = malloc(bytes + 1);
	assert_non_null(end->buffer);
}

/* It could be begun at node @number, or, with @err, could not. */
static void note_begin(struct wf_item *item, struct wf_cargo_end *end, unsigned number, int err)
{
	if (err) {
		/* Only memory may be missing. */
		if (err != -ENOBUFS && err != -ENOMEM)
			fail_msg("an attachment can't be sent or received: %s", weft_error());
		item->load->leg->group->lonely = true;
		return;
	}
	end->begun = true;
	end->node = number;
	end->life = wf_faults_life(number);
	if (end->detached) {
		weft_op_free(end->flight.op);
		end->flight.op = NULL;
	}
}

/* Sends. */

static int attach(const struct wf_item *item, const struct wf_berth *berth,
		  const struct weft_tensor *t, const struct weft_send_options *options,
		  struct weft_op **op)
{
	if (item->unwatched)
		op = NULL;
	if (berth->request)
		return weft_call_attach(berth->request, t, options, op);
	if (berth->reply)
		return weft_served_attach(berth->reply, t, options, op);
	return weft_stream_attach(berth->stream, t, options, op);
}

/* When the call that goes with @berth is over, as its node sees it. */
static uint64_t call_due_ns(const struct wf_load *load, const struct wf_berth *berth)
{
	void *call = berth->reply ? berth->reply :
		     berth->stream ? weft_stream_served(berth->stream) : NULL;

	if (call)
		return wf_clock_now() + weft_served_left_ns(call);
	return load->leg->flight.started_ns + load->leg->limit_ns;
}

/* Memory of the pool, which the sender gives up at once, or later. */
static int attach_shared(struct wf_item *item, unsigned number, const struct wf_berth *berth,
			 const struct weft_send_options *options)
{
	struct weft_node *node = wf_world_node(number);
	int64_t shape[2], strides[2];
	struct weft_tensor t;
	void *memory;
	int err = weft_alloc(node, item->bytes, &memory);

	if (err)
		return err;
	wf_world_fill(memory, item->bytes, item->seed);
	t = wf_traffic_tensor(memory, item->bytes, item->row_bytes, 0, shape, strides);
	err = attach(item, berth, &t, options, &item->sent.flight.op);
	if (!err && !item->unwatched && item->seed % 2)
		item->shared = memory;
	else
		weft_free(node, memory);
	return err;
}

static int attach_buffer(struct wf_item *item, const struct wf_berth *berth,
			 const struct weft_send_options *options)
{
	struct wf_cargo_end *end = &item->sent;
	int64_t shape[2], strides[2];
	struct weft_tensor t;
	int err;

	make_buffer(end, item->pitch_bytes ? item->bytes / item->row_bytes * item->pitch_bytes :
					     item->bytes);
	wf_world_fill(end->buffer, item->bytes, item->seed);
	if (item->pitch_bytes)
		wf_traffic_spread(end->buffer, item->bytes, item->row_bytes, item->pitch_bytes);
	t = wf_traffic_tensor(item->flags & WEFT_DEAD ? NULL : end->buffer, item->bytes,
			      item->row_bytes, item->pitch_bytes, shape, strides);
	err = attach(item, berth, &t, options, &end->flight.op);
	if (item->flags & WEFT_SNAPSHOT)
		memset(end->buffer, WF_TRAFFIC_CANARY, end->buffer_bytes);
	return err;
}

static void attach_item(struct wf_item *item, unsigned number, const struct wf_berth *berth)
{
	struct wf_cargo_end *end = &item->sent;
	struct weft_send_options options = {
		.size = sizeof(options),
		.op = wf_flight_begin(&end->flight, end->limit_ns),
		.flags = item->flags,
	};
	int err;

	if (item->unwatched)
		options.op.done = NULL;
	end->due_ns = call_due_ns(item->load, berth);
	if (end->limit_ns && (berth->reply || end->limit_ns < end->due_ns - wf_clock_now()))
		end->due_ns = wf_clock_now() + end->limit_ns;
	if (item->flags & WEFT_SHARE)
		err = attach_shared(item, number, berth, &options);
	else
		err = attach_buffer(item, berth, &options);
	note_begin(item, end, number, err);
	if (!err)
		item->index = item->load->attached++;
}

void wf_cargo_attach(struct wf_load *load, const struct wf_berth *berth)
{
	if (!load)
		return;
	for (unsigned i = 0; i < load->count; i++)
		attach_item(&load->items[i], load->back ? load->leg->peer : load->leg->node, berth);
}

bool wf_cargo_is_sent(const struct wf_load *load)
{
	for (unsigned i = 0; load && i < load->count; i++)
		if (load->items[i].sent.begun && !load->items[i].unwatched &&
		    !load->items[i].sent.flight.outcomes)
			return false;
	return true;
}

/* Receives. */

static unsigned reader_of(const struct wf_load *load)
{
	return load->back ? load->leg->node : load->leg->peer;
}

static void *alloc(void *arg, const struct weft_tensor *want, uint64_t bytes)
{
	struct wf_item *item = arg;

	(void)want;
	assert_null(item->got.buffer); /* it is asked once */
	if (item->refuses)
		return NULL;
	make_buffer(&item->got, bytes);
	return item->got.buffer;
}

static void receive(struct wf_item *item)
{
	struct wf_load *load = item->load;
	struct wf_cargo_end *end = &item->got;
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = wf_flight_begin(&end->flight, end->limit_ns),
		.flags = item->any_shape && item->memory == WF_CARGO_OWN ? WEFT_ANY_SHAPE : 0,
		.alloc = item->memory == WF_CARGO_ALLOC ? alloc : NULL,
		.alloc_arg = item,
	};
	size_t bytes = item->bytes + (item->misfits ? WF_MAX(item->row_bytes, (size_t)1) : 0);
	const struct weft_tensor *into = NULL;
	int64_t shape[2], strides[2];
	struct weft_tensor t;
	int err;

	if (item->memory == WF_CARGO_OWN) {
		make_buffer(end, bytes);
		memset(end->buffer, 0, bytes);
		t = wf_traffic_tensor(end->buffer, bytes, item->row_bytes, 0, shape, strides);
		into = &t;
	}
	end->due_ns = wf_clock_now() +
		      (end->limit_ns ? end->limit_ns : weft_served_left_ns(load->call));
	if (load->call)
		err = weft_served_receive(load->call, item->index, into, &options, &end->flight.op);
	else
		err = weft_op_receive(load->op, item->index, into, &options, &end->flight.op);
	note_begin(item, end, reader_of(load), err);
	item->wanted = false;
}

static void close_load(struct wf_load *load)
{
	load->closed = true;
	if (load->leg->kind == WF_LEG_STREAM)
		weft_op_free(load->op);
	load->op = NULL;
	load->call = NULL;
}

/* Receive what is due; when the next is. */
static uint64_t run_load(struct wf_load *load, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (!load->came_ns || load->closed || wf_faults_is_away(reader_of(load)) ||
	    load->life != wf_faults_life(reader_of(load)))
		return next;
	for (unsigned i = 0; i < load->count; i++) {
		struct wf_item *item = &load->items[load->backwards ? load->count - 1 - i : i];
		uint64_t at_ns = load->came_ns + item->wait_ns;

		if (!item->wanted || !item->sent.begun)
			continue;
		if (at_ns <= now)
			receive(item);
		else
			next = WF_MIN(next, at_ns);
	}
	if (next == UINT64_MAX)
		close_load(load);
	return next;
}

static const struct weft_tensor *look(const struct wf_load *load, unsigned index, unsigned *flags)
{
	return load->call ? weft_served_attachment(load->call, index, flags) :
			    weft_op_attachment(load->op, index, flags);
}

/* What is said of an item before it is received; one that is lost looks dead. */
static bool is_announced(const struct wf_item *item)
{
	int64_t shape[2], strides[2];
	struct weft_tensor want = wf_traffic_tensor(NULL, item->bytes, item->row_bytes, 0, shape,
						    strides);
	unsigned flags;
	const struct weft_tensor *t = look(item->load, item->index, &flags);

	return t && !t->data && t->ndim == want.ndim &&
	       !memcmp(t->shape, want.shape, (size_t)want.ndim * sizeof(shape[0])) &&
	       !memcmp(&t->dtype, &want.dtype, sizeof(want.dtype)) &&
	       (flags & WEFT_DEAD || flags == (item->flags & WEFT_OPAQUE));
}

static void check_came(const struct wf_load *load)
{
	unsigned count = load->call ? weft_served_attachments(load->call) :
				      weft_op_attachments(load->op);

	if (count != load->attached)
		fail_msg("%u tensors come beside a message of group %llu, and %u were attached",
			 count, (unsigned long long)load->leg->group->step, load->attached);
	for (unsigned i = 0; i < load->count; i++)
		if (load->items[i].sent.begun && !is_announced(&load->items[i]))
			fail_msg("attachment %u of a message of group %llu looks like something else",
				 load->items[i].index, (unsigned long long)load->leg->group->step);
}

static void came(struct wf_load *load)
{
	load->came_ns = wf_clock_now();
	load->life = wf_faults_life(reader_of(load));
	check_came(load);
	(void)run_load(load, load->came_ns);
}

void wf_cargo_came(struct wf_load *load, struct weft_op *op)
{
	if (!load)
		return;
	assert_int_equal(load->came_ns, 0);
	load->op = op;
	load->closed = false;
	came(load);
}

/* One that its reader can't begin any more will not be. */
static bool is_closed(const struct wf_load *load)
{
	return !load->came_ns || load->closed || wf_faults_is_gone(reader_of(load)) ||
	       load->life != wf_faults_life(reader_of(load));
}

bool wf_cargo_is_begun(const struct wf_load *all, unsigned count)
{
	for (unsigned i = 0; all && i < count; i++)
		if (!is_closed(&all[i]))
			return false;
	return true;
}

bool wf_cargo_is_received(const struct wf_load *all, unsigned count)
{
	if (!wf_cargo_is_begun(all, count))
		return false;
	for (unsigned i = 0; all && i < count; i++)
		for (unsigned j = 0; j < all[i].count; j++)
			if (wf_cargo_is_live(&all[i].items[j].got))
				return false;
	return true;
}

/* Servers of calls. */

static bool has_died(const struct server *s)
{
	return wf_faults_is_gone(s->number) || s->life != wf_faults_life(s->number);
}

static void forget_server(struct server *s)
{
	wf_list_remove(&s->node);
	free(s);
}

/* In a hurry: nothing is received any more. */
static void give_up(struct server *s)
{
	struct wf_load *up = s->leg->cargo.up;

	if (!up->closed)
		close_load(up);
	weft_served_fail(s->call, WEFT_CANCELLED, "the handler can't go on");
	forget_server(s);
}

/* Half of the handlers give up at once when they hear of it; the rest answer when they would have. */
static void cancelled(void *arg)
{
	struct server *s = arg;

	if (s->leg->seed % 2 || has_died(s))
		give_up(s);
}

static void answer(struct server *s)
{
	const struct wf_berth berth = { .reply = s->call };
	struct wf_leg *leg = s->leg;

	if (!leg->cargo.up->closed)
		close_load(leg->cargo.up);
	wf_cargo_attach(leg->cargo.down, &berth);
	if (leg->hold_ns == UINT64_MAX)
		weft_served_fail(s->call, WEFT_ABORTED, "as the test wants");
	else
		wf_world_answer(s->call, leg->buffer, leg->bytes);
	forget_server(s);
}

/* When it can go on. */
static uint64_t run_server(struct server *s, uint64_t now)
{
	const struct wf_leg *leg = s->leg;

	if (has_died(s) || wf_faults_is_away(s->number))
		return UINT64_MAX;
	if (!leg->cargo.hasty && !wf_cargo_is_received(leg->cargo.up, 1))
		return UINT64_MAX;
	if (!s->answer_ns)
		s->answer_ns = now + (leg->hold_ns == UINT64_MAX ? 0 : leg->hold_ns);
	if (s->answer_ns > now)
		return s->answer_ns;
	answer(s);
	return UINT64_MAX;
}

void wf_cargo_serve(struct wf_leg *leg, unsigned number, void *call)
{
	struct server *s = malloc(sizeof(*s));

	assert_non_null(s);
	*s = (struct server){
		.leg = leg, .call = call, .number = number, .life = wf_faults_life(number),
	};
	wf_list_append(&servers, &s->node);
	assert_int_equal(leg->cargo.up->came_ns, 0);
	leg->cargo.up->call = call;
	weft_served_on_cancel(call, cancelled, s);
	came(leg->cargo.up);
	(void)run_server(s, wf_clock_now());
}

void wf_cargo_leave(unsigned number)
{
	WF_LIST_EACH(node, &servers) {
		struct server *s = WF_CONTAINER(node, struct server, node);

		if (s->number == number && s->life == wf_faults_life(number))
			give_up(s);
	}
}

/* Time. */

static uint64_t run_end(struct wf_cargo_end *end, uint64_t now)
{
	uint64_t at_ns = end->flight.started_ns + end->patience_ns;

	if (!wf_cargo_is_live(end) || wf_faults_is_away(end->node))
		return UINT64_MAX;
	if (now >= end->due_ns && !end->hit_deadline && end->flight.op) {
		end->hit_deadline = true;
		wf_faults_strike_op(WF_FAULT_DEADLINE, end->flight.op);
	}
	if (!end->patience_ns || !end->flight.op)
		return UINT64_MAX;
	if (at_ns > now)
		return at_ns;
	end->patience_ns = 0;
	wf_faults_strike_op(WF_FAULT_CANCEL, end->flight.op);
	weft_cancel(end->flight.op);
	return UINT64_MAX;
}

static void note_next(uint64_t *next_ns, uint64_t at_ns)
{
	*next_ns = WF_MIN(*next_ns, at_ns);
}

uint64_t wf_cargo_run(uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < load_count; i++)
		note_next(&next, run_load(&loads[i], now));
	for (unsigned i = 0; i < item_count; i++) {
		note_next(&next, run_end(&items[i].sent, now));
		note_next(&next, run_end(&items[i].got, now));
	}
	WF_LIST_EACH(node, &servers)
		note_next(&next, run_server(WF_CONTAINER(node, struct server, node), now));
	return next;
}

bool wf_cargo_is_over(void)
{
	for (unsigned i = 0; i < load_count; i++)
		if (!is_closed(&loads[i]))
			return false;
	for (unsigned i = 0; i < item_count; i++)
		if ((wf_cargo_is_live(&items[i].sent) && !items[i].unwatched) ||
		    wf_cargo_is_live(&items[i].got))
			return false;
	WF_LIST_EACH(node, &servers)
		if (!has_died(WF_CONTAINER(node, struct server, node)))
			return false;
	return true;
}

static void bereave(const struct wf_item *item, struct wf_cargo_end *end, unsigned number)
{
	if (wf_cargo_is_live(end) && wf_cargo_peer(item, end) == number &&
	    wf_traffic_is_linked(end->node, number))
		end->bereft_ns = wf_clock_now();
}

void wf_cargo_bereave(unsigned number)
{
	for (unsigned i = 0; i < item_count; i++) {
		bereave(&items[i], &items[i].sent, number);
		bereave(&items[i], &items[i].got, number);
	}
}

/* The end. */

void wf_cargo_release(void)
{
	for (unsigned i = 0; i < item_count; i++) {
		wf_flight_free(&items[i].sent.flight, 1);
		wf_flight_free(&items[i].got.flight, 1);
	}
	for (unsigned i = 0; i < load_count; i++)
		if (!loads[i].closed || loads[i].op)
			close_load(&loads[i]);
}

void wf_cargo_free(void)
{
	struct wf_list *node;

	wf_cargo_release(); /* reads that ended while nodes closed, and what was received of them */
	for (unsigned i = 0; i < item_count; i++) {
		free(items[i].sent.buffer);
		free(items[i].got.buffer);
	}
	while ((node = wf_list_pop(&servers)))
		free(WF_CONTAINER(node, struct server, node));
	load_count = item_count = 0;
}
