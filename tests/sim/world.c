/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <cmocka.h>

#include "core/op.h"
#include "core/turn.h"
#include "core/worker.h"
#include "link/lease.h"
#include "tests/fake/random.h"
#include "tests/sim/mirror.pb-c.h"
#include "util/clock.h"

#define STEP_NS WF_NS_PER_MS /* as far as the clock moves at once: workers look at doors so often */
#define LEAP_NS (5 * WF_NS_PER_MS) /* shorter than what looks like standing still to a worker */
#define LIVES_MAX 64               /* nodes opened in one world, restarts included */

/* A call that waits for its answer. */
struct held {
	struct wf_list node; /* in citizen->held */
	Sim__Bytes_Closure closure;
	void *data;
	uint64_t at_ns; /* UINT64_MAX: until it is let go */
	bool fails;
	size_t count;
	uint8_t bytes[];
};

/* A stream that is said back: one message is read or written at any time. */
struct talk {
	struct citizen *citizen;
	struct weft_stream *stream;
};

struct citizen {
	Sim__Mirror_Service service; /* the first member: handlers get its address */
	unsigned number;
	struct weft_node *node;
	char address[64];
	bool dead, frozen;
	struct weft_peer *peers[WF_WORLD_NODES_MAX];
	struct weft_stub *stubs[WF_WORLD_NODES_MAX];
	unsigned served;
	unsigned talked, talking;
	bool holds;
	struct wf_list held;
};

const enum wf_world_shape wf_world_shapes[] = {
	WF_WORLD_CONNECTED, WF_WORLD_SHARED, WF_WORLD_SAME_HOST,
};

static struct citizen lives[LIVES_MAX]; /* by what the fake calls a node */
static unsigned life_count;
static struct citizen *citizens[WF_WORLD_NODES_MAX]; /* the last life of each */
static unsigned citizen_count;
static bool cut[WF_WORLD_NODES_MAX][WF_WORLD_NODES_MAX];
static unsigned workers = 1;  /* of nodes that are opened from here on */
static struct weft_serve_options limits; /* likewise */
static const struct weft_interceptor *const *interceptors; /* of those, too */
static uint64_t arrived_ns; /* when something last came through the net */
static uint64_t (*on_call)(unsigned number, void *call, const uint8_t *bytes, size_t count);
static void (*on_request)(unsigned number, void *call);
static Sim__Bytes_Closure answer_request; /* of any call */
static void (*on_stream)(unsigned number, struct weft_stream *stream);

static unsigned life_of(unsigned number)
{
	return (unsigned)(citizens[number] - lives);
}

unsigned wf_world_number(unsigned fake_node)
{
	return lives[fake_node].number;
}

/* What nodes serve. */

static void reply(struct held *h)
{
	Sim__Bytes answer = SIM__BYTES__INIT;

	wf_list_remove(&h->node);
	answer.body.data = h->bytes;
	answer.body.len = h->count;
	if (h->fails)
		weft_served_fail(h->data, WEFT_ABORTED, "as the test wants");
	else
		h->closure(&answer, h->data);
	free(h);
}

static void reflect(Sim__Mirror_Service *service, const Sim__Bytes *input,
		    Sim__Bytes_Closure closure, void *data)
{
	struct citizen *c = (void *)service;
	uint64_t wait_ns = c->holds ? UINT64_MAX : 0;
	struct held *h;

	c->served++;
	answer_request = closure;
	if (on_request) {
		on_request(c->number, data);
		return;
	}
	if (on_call)
		wait_ns = on_call(c->number, data, input->body.data, input->body.len);
	if (on_call && wait_ns == WF_WORLD_KEPT)
		return;
	h = malloc(sizeof(*h) + input->body.len);
	assert_non_null(h);
	*h = (struct held){ .closure = closure, .data = data, .count = input->body.len };
	h->at_ns = c->holds ? UINT64_MAX : wf_clock_now() + wait_ns;
	h->fails = on_call && wait_ns == UINT64_MAX;
	wf_list_append(&c->held, &h->node);
	if (h->count)
		memcpy(h->bytes, input->body.data, h->count);
	if (!wait_ns || h->fails)
		reply(h);
}

/* Answer what has waited long enough. */
static void answer_due(struct citizen *c)
{
	WF_LIST_EACH(node, &c->held) {
		struct held *h = WF_CONTAINER(node, struct held, node);

		if (h->at_ns <= wf_clock_now())
			reply(h);
	}
}

unsigned wf_world_served(unsigned number)
{
	return citizens[number]->served;
}

static void let_go(struct citizen *c)
{
	struct wf_list *node;

	c->holds = false;
	while ((node = wf_list_first(&c->held)))
		reply(WF_CONTAINER(node, struct held, node));
}

void wf_world_hold(unsigned number, bool hold)
{
	citizens[number]->holds = hold;
	if (!hold)
		let_go(citizens[number]);
}

void wf_world_on_call(uint64_t (*handle)(unsigned number, void *call, const uint8_t *bytes,
					 size_t count))
{
	on_call = handle;
}

void wf_world_on_request(void (*handle)(unsigned number, void *call))
{
	on_request = handle;
}

void wf_world_answer(void *call, const void *data, size_t bytes)
{
	Sim__Bytes answer = SIM__BYTES__INIT;

	answer.body.data = (void *)(uintptr_t)data;
	answer.body.len = bytes;
	answer_request(&answer, call);
}

/* Streams. */

static void finish(struct talk *t, enum weft_status status, const char *message)
{
	t->citizen->talking--;
	weft_stream_finish(t->stream, status, message);
	free(t);
}

static void listen(struct talk *t);

static void said(struct weft_op *op, void *arg)
{
	struct talk *t = arg;
	enum weft_status status = weft_op_status(op);

	if (status == WEFT_OK)
		listen(t);
	else
		finish(t, status, weft_op_message(op));
	weft_op_free(op);
}

static void say_back(struct talk *t, const ProtobufCMessage *message)
{
	struct weft_op_options options = { .size = sizeof(options), .done = said, .arg = t };
	struct weft_op *op;

	if (weft_stream_write(t->stream, message, &options, &op))
		finish(t, WEFT_RESOURCE_EXHAUSTED, weft_error());
}

static void asked(struct weft_op *op, void *arg)
{
	const ProtobufCMessage *message = weft_stream_message(op);
	struct talk *t = arg;

	if (message)
		say_back(t, message);
	else
		finish(t, weft_op_status(op), weft_op_message(op));
	weft_op_free(op);
}

static void listen(struct talk *t)
{
	struct weft_op_options options = { .size = sizeof(options), .done = asked, .arg = t };
	struct weft_op *op;

	if (weft_stream_read(t->stream, &options, &op))
		finish(t, WEFT_RESOURCE_EXHAUSTED, weft_error());
}

static void talk(struct weft_stream *stream, void *arg)
{
	struct citizen *c = arg;
	struct talk *t;

	if (on_stream) {
		on_stream(c->number, stream);
		return;
	}
	t = malloc(sizeof(*t));
	assert_non_null(t);
	*t = (struct talk){ .citizen = c, .stream = stream };
	c->talked++;
	c->talking++;
	listen(t);
}

void wf_world_on_stream(void (*handle)(unsigned number, struct weft_stream *stream))
{
	on_stream = handle;
}

unsigned wf_world_talked(unsigned number)
{
	return citizens[number]->talked;
}

unsigned wf_world_talking(unsigned number)
{
	return citizens[number]->talking;
}

/* Time. */

/* Somebody's worker would not sleep now. */
/* A read of memory of this host has been made, and the next turn hears of it. */
static bool reads(const struct wf_engine *engine)
{
	WF_LIST_EACH(node, &engine->link_list) {
		const struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->reads.count && link->on && wf_rail_caps(link->on->rail)->sync_read)
			return true;
	}
	return false;
}

static bool is_busy(const struct wf_engine *engine)
{
	return !wf_list_empty(&engine->dirty) || !wf_list_empty(&engine->loop.notices) ||
	       !wf_inbox_empty(&engine->loop.inbox) || atomic_load(&engine->pool.freed) ||
	       reads(engine);
}

static uint64_t node_next_ns(const struct weft_node *node, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < node->worker_count; i++) {
		const struct wf_engine *engine = &node->workers[i].engine;

		if (is_busy(engine))
			return now + STEP_NS;
		next = WF_MIN(next, wf_timer_next_ns(&engine->loop.timers));
		next = WF_MIN(next, wf_door_next_ns(engine->door));
	}
	return next;
}

/* When a node has something to do, as far as it knows itself. */
static uint64_t nodes_next_ns(uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < citizen_count; i++) {
		const struct citizen *c = citizens[i];

		if (c->node && !c->dead && !c->frozen)
			next = WF_MIN(next, node_next_ns(c->node, now));
	}
	return next;
}

static void move_clock(uint64_t most_ns)
{
	uint64_t now = wf_clock_now(), net_ns = wf_net_next_ns();
	uint64_t next = WF_MIN(net_ns, wf_fake_next_ns());

	/* By a microsecond at least: what is due already may wait for somebody who sleeps. */
	next = WF_MAX(WF_MIN(next, most_ns), now + WF_NS_PER_US);
	if (net_ns <= next)
		arrived_ns = next;
	wf_fake_clock_set(next);
}

static void poll_all(void)
{
	for (unsigned i = 0; i < citizen_count; i++)
		wf_world_poll(i);
}

/* Messages of the fake arrive when their senders have left the gate: nobody knocks then. */
static void look_behind_gates(struct wf_engine *engine)
{
	for (uint32_t i = 0; i < engine->rail_count; i++)
		if (wf_rail_caps(engine->rails[i].rail)->wait == WF_WAIT_DOORBELL)
			wf_rail_woken(engine->rails[i].rail);
}

void wf_world_poll(unsigned number)
{
	struct citizen *c = citizens[number];

	if (!c->node || c->dead || c->frozen)
		return;
	answer_due(c);
	/* Not one that sleeps in a call of its own. */
	for (unsigned i = 0; i < c->node->worker_count; i++) {
		struct wf_worker *worker = &c->node->workers[i];

		look_behind_gates(&worker->engine);
		if (!worker->driver)
			wf_turn_until(worker, 0);
	}
}

void wf_world_step(void)
{
	poll_all();
	move_clock(wf_clock_now() + STEP_NS);
}

void wf_world_leap(uint64_t until_ns)
{
	uint64_t now = wf_clock_now();

	poll_all();
	/* Workers look at their doors, and try refused posts again, in steps. */
	if (now - arrived_ns <= 2 * STEP_NS || wf_fake_knobs()->eagain)
		move_clock(WF_MIN(until_ns, now + STEP_NS));
	else
		move_clock(WF_MIN(until_ns, WF_MIN(now + LEAP_NS, nodes_next_ns(now))));
}

bool wf_world_run(bool (*done)(void *ctx), void *ctx, uint64_t limit_ns)
{
	uint64_t until_ns = wf_clock_now() + limit_ns;

	while (!done(ctx)) {
		if (wf_clock_now() >= until_ns)
			return false;
		wf_world_step();
	}
	return true;
}

static bool never(void *ctx)
{
	(void)ctx;
	return false;
}

void wf_world_pass(uint64_t ns)
{
	(void)wf_world_run(never, NULL, ns);
}

static void (*on_sleep)(void);
static uint32_t (*draw_priority)(void);

void wf_world_on_sleep(void (*sleep)(void))
{
	on_sleep = sleep;
}

/* Takes the place of the system's: a node that sleeps lets the others live for a step. */
int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
	if (timeout_ms && on_sleep)
		on_sleep();
	if (timeout_ms)
		wf_world_step();
	return epoll_pwait(fd, events, max, 0, NULL);
}

/* Birth and death. */

static void (*heard)(unsigned number, int level, const char *line);

void wf_world_hear(void (*hear)(unsigned number, int level, const char *line))
{
	heard = hear;
}

static void log_line(void *arg, int level, const char *line)
{
	unsigned number = (unsigned)(uintptr_t)arg;

	if (getenv("WORLD_LOG"))
		(void)fprintf(stderr, "%.6f n%u %s\n", (double)wf_clock_now() / WF_NS_PER_S,
			      number, line);
	if (heard)
		heard(number, level, line);
}

/* A life of node @number; at @address, NULL: wherever. */
static int begin_life(unsigned number, const char *address)
{
	struct wf_fake *fake = wf_fake_knobs(), before = *fake;
	struct citizen *c = &lives[life_count];
	char name[16];
	struct weft_node_options options = {
		.size = sizeof(options), .mode = WEFT_MANUAL, .name = name, .listen = address,
		.log = getenv("WORLD_LOG") || heard ? log_line : NULL,
		.log_arg = (void *)(uintptr_t)number,
		.interceptors = interceptors,
	};
	struct wf_options settings;
	int err;

	assert_true(life_count < LIVES_MAX);
	(void)snprintf(name, sizeof(name), "n%u", number);
	assert_int_equal(wf_node_settings(&options, &settings), 0);
	*c = (struct citizen){ .service.base = SIM__MIRROR__BASE_INIT, .number = number };
	c->service.reflect = reflect;
	wf_list_init(&c->held);
	wf_fake_enter(life_count);
	/*
	 * A fresh endpoint refuses only when it is full, and a node that finds no memory is none.
	 */
	fake->eagain = fake->refuse = 0;
	err = wf_node_open(&options, &settings, workers, &c->node);
	fake->eagain = before.eagain;
	fake->refuse = before.refuse;
	if (err)
		return err;
	(void)snprintf(c->address, sizeof(c->address), "%s", weft_node_address(c->node));
	citizens[number] = c;
	life_count++;
	return 0;
}

void wf_world_intercept(const struct weft_interceptor *const *given)
{
	interceptors = given;
}

void wf_world_set_workers(unsigned count)
{
	workers = count;
}

void wf_world_set_limits(const struct weft_serve_options *given)
{
	limits = given ? *given : (struct weft_serve_options){ 0 };
}

int wf_world_try_add(unsigned *added)
{
	int err;

	assert_true(citizen_count < WF_WORLD_NODES_MAX);
	err = begin_life(citizen_count, NULL);
	if (!err)
		*added = citizen_count++;
	return err;
}

int wf_world_try_serve(unsigned number)
{
	struct citizen *c = citizens[number];
	const struct weft_stream_method method = { "Talk", talk, c };

	limits.size = sizeof(limits);
	limits.methods = &method;
	limits.method_count = 1;
	return weft_serve_with(c->node, &c->service.base, &limits);
}

unsigned wf_world_add(void)
{
	unsigned number = 0;

	assert_int_equal(wf_world_try_add(&number), 0);
	assert_int_equal(wf_world_try_serve(number), 0);
	return number;
}

void wf_world_lie(unsigned number, unsigned whom, unsigned lies)
{
	struct weft_node *liar = citizens[number]->node;

	if (lies & WF_WORLD_LIE_INCARNATION)
		memcpy(liar->directory.incarnation, citizens[whom]->node->directory.incarnation,
		       sizeof(liar->directory.incarnation));
	for (unsigned i = 0; lies & WF_WORLD_LIE_ADDRESS && i < liar->worker_count; i++)
		(void)snprintf(liar->workers[i].engine.address,
			       sizeof(liar->workers[i].engine.address), "%s",
			       citizens[whom]->address);
}

void wf_world_restart(unsigned number)
{
	char address[sizeof(lives[0].address)];

	assert_true(citizens[number]->dead);
	(void)snprintf(address, sizeof(address), "%s", citizens[number]->address);
	assert_int_equal(begin_life(number, address), 0);
	assert_int_equal(wf_world_try_serve(number), 0);
	for (unsigned i = 0; i < citizen_count; i++)
		if (cut[number][i])
			wf_fake_cut(life_of(number), life_of(i), true);
}

static void open_two_networks(void)
{
	wf_fake_offer(FI_EP_MSG, "tcp", WF_WORLD_NET_1, "10.0.1.1");
	wf_fake_offer(FI_EP_MSG, "tcp", WF_WORLD_NET_2, "10.0.2.1");
	assert_int_equal(setenv("WEFT_DEVICE", WF_WORLD_NET_1 "," WF_WORLD_NET_2, 1), 0);
	assert_int_equal(setenv("WEFT_LISTEN", "10.0.1.1:0", 1), 0);
	wf_net_set_host("10.0.1.1");
	/* Without keys other hosts need a word. */
	if (!getenv("WEFT_KEY_FILE"))
		assert_int_equal(setenv("WEFT_SECURITY", "open", 1), 0);
}

void wf_world_open(enum wf_world_shape shape, unsigned count, const struct wf_fake *fake)
{
	static const struct wf_fake calm = {
		.seed = 1, .delay_min_ns = 5 * WF_NS_PER_US, .delay_max_ns = 50 * WF_NS_PER_US,
	};

	static const char *const providers[] = {
		"tcp", "efa", "shm", "tcp", "verbs,tcp", WF_WORLD_STRANGE,
	};

	if (citizen_count)
		fail_msg("an earlier test has failed and left its world behind");
	if (!fake)
		fake = &calm;
	/* The providers that the fake offers; a busy loop would wait for time that stands still. */
	assert_int_equal(setenv("WEFT_PROVIDER", providers[shape], 1), 0);
	assert_int_equal(setenv("WEFT_SPIN", "0", 1), 0);
	/* Eager bodies of several frames, too. */
	assert_int_equal(setenv("WEFT_FRAME_BYTES", "16K", 0), 0);
	wf_fake_random_seed(fake->seed);
	wf_net_reset(fake->seed);
	wf_net_set_same_host(shape == WF_WORLD_SAME_HOST);
	wf_fake_open(fake);
	wf_fake_offer(FI_EP_RDM, "shm", "shm", NULL);
	if (shape == WF_WORLD_LANES)
		open_two_networks();
	if (shape == WF_WORLD_UNDESCRIBED)
		wf_fake_offer(FI_EP_RDM, WF_WORLD_STRANGE, "warp0", "127.0.0.1");
	if (shape == WF_WORLD_REACHING) {
		wf_fake_offer(FI_EP_MSG, "verbs", WF_WORLD_NIC, "127.0.0.1");
		wf_fake_offer_device();
	}
	while (count--)
		wf_world_add();
}

static void close_one(struct citizen *c)
{
	for (unsigned i = 0; i < citizen_count; i++)
		weft_stub_close(c->stubs[i]);
	assert_int_equal(weft_node_close(c->node), 0);
	c->node = NULL;
}

void wf_world_leave(unsigned number)
{
	let_go(citizens[number]);
	close_one(citizens[number]);
}

size_t wf_world_take_pool(unsigned number, void **pieces, size_t count)
{
	size_t taken = 0;

	for (size_t bytes = 4 * MIB; bytes >= 64; bytes /= 2)
		while (taken < count && !weft_alloc(wf_world_node(number), bytes, &pieces[taken]))
			taken++;
	assert_true(taken < count);
	return taken;
}

static void forget_settings(void)
{
	struct weft_option option = WEFT_OPTION_INIT;

	for (size_t i = 0; i < weft_option_count(); i++) {
		assert_int_equal(weft_option_get(i, &option), 0);
		assert_int_equal(unsetenv(option.name), 0);
	}
}

/* Something of the pool was never given back. */
static bool keeps_memory(struct weft_node *node)
{
	struct weft_counters counters = { .size = sizeof(counters) };

	for (unsigned i = 0; i < node->worker_count; i++)
		if (node->workers[i].engine.fetched.used_bytes ||
		    node->workers[i].engine.parcels.used_bytes)
			return true;
	assert_int_equal(weft_node_counters(node, &counters), 0);
	/* But for messages whose last word is still on its way. */
	return counters.pool_bytes_used > 0 && !counters.message_bytes;
}

void wf_world_lose_soon(void)
{
	assert_int_equal(setenv("WEFT_HEARTBEAT", "100ms", 1), 0);
	assert_int_equal(setenv("WEFT_LOST", "300ms", 1), 0);
}

bool wf_world_account_is_empty(const struct wf_link *link)
{
	uint64_t owed = link->account.bytes[WF_LEDGER_OWED] - link->rx.assembly_bytes;

	if (link->account.bytes[WF_LEDGER_RECEIVED])
		return false;
	return link->out.waiting || !wf_list_empty(&link->out.frames) ||
	       !wf_list_empty(&link->out.controls) || !wf_list_empty(&link->out.controls_out) ||
	       owed % sizeof(*link) == 0;
}

void wf_world_assert_free(unsigned number)
{
	struct weft_node *node = wf_world_node(number);

	assert_true(wf_list_empty(&node->streams));
	for (unsigned i = 0; i < node->worker_count; i++) {
		const struct wf_worker *worker = &node->workers[i];
		uint32_t from = 0;

		assert_null(wf_table_next(&worker->transfer.outgoing, &from));
		assert_int_equal(worker->transfer.waiting_count, 0);
		from = 0;
		assert_null(wf_table_next(&worker->transfer.pulls, &from));
		from = 0;
		assert_null(wf_table_next(&worker->calls.table, &from));
		assert_null(wf_map_next(&worker->serving.map, NULL));
		assert_true(wf_list_empty(&worker->streams.all));
		assert_null(wf_map_next(&worker->attachment_sets.map, NULL));
		assert_int_equal(worker->unexpected_queue.count, 0);
		assert_true(wf_list_empty(&worker->attachments.all));
		WF_LIST_EACH(at, &worker->engine.link_list) {
			const struct wf_link *link = WF_CONTAINER(at, struct wf_link, node);

			assert_int_equal(link->offers.ours_count, 0);
			assert_int_equal(link->keepalive.watch_count, 0);
			assert_int_equal(link->eager_credit.held, 0);
			assert_true(wf_world_account_is_empty(link));
		}
	}
	assert_int_equal(wf_world_count(number).pool_bytes_used, 0);
}

size_t wf_world_close(void)
{
	size_t leaked = 0;

	for (unsigned i = 0; i < citizen_count; i++)
		if (citizens[i]->frozen)
			wf_world_freeze(i, false);
	/* The dead are closed when nobody is left who could hear of it. */
	for (unsigned dead = 0; dead < 2; dead++) {
		for (unsigned i = 0; i < life_count; i++) {
			struct citizen *c = &lives[i];

			if (!c->node || c->dead != dead)
				continue;
			let_go(c);
			if (!dead)
				leaked += keeps_memory(c->node);
			close_one(c);
		}
	}
	citizen_count = life_count = 0;
	memset(cut, 0, sizeof(cut));
	on_call = NULL;
	on_request = NULL;
	on_stream = NULL;
	on_sleep = NULL;
	draw_priority = NULL;
	workers = 1;
	wf_world_set_limits(NULL);
	interceptors = NULL;
	forget_settings();
	return leaked + wf_fake_close();
}

void wf_world_end(void)
{
	wf_world_pass(100 * WF_NS_PER_MS);
	for (unsigned i = 0; i < citizen_count; i++) {
		if (!wf_world_node(i))
			continue;
		wf_world_assert_free(i);
		assert_int_equal(wf_world_count(i).calls, 0);
		assert_int_equal(wf_world_count(i).served, 0);
		assert_int_equal(wf_world_count(i).message_bytes, 0);
		assert_int_equal(wf_world_count(i).pool_bytes_used, 0);
	}
	assert_int_equal(wf_world_close(), 0);
}

unsigned wf_world_population(void)
{
	return citizen_count;
}

struct weft_node *wf_world_node(unsigned number)
{
	return citizens[number]->node;
}

struct wf_link *wf_world_link(unsigned number)
{
	const struct wf_engine *engine = &wf_world_node(number)->workers[0].engine;

	return WF_CONTAINER(wf_list_first(&engine->link_list), struct wf_link, node);
}

struct weft_peer *wf_world_known(unsigned from, unsigned to)
{
	return citizens[from]->peers[to];
}

struct weft_peer *wf_world_peer(unsigned from, unsigned to)
{
	struct weft_peer **peer = &citizens[from]->peers[to];
	const char *address = citizens[to]->address;
	char alias[32];

	/* Which worker has it does not show by its name then. */
	(void)snprintf(alias, sizeof(alias), WF_NET_ALIAS "%s", strrchr(address, ':'));
	if (!*peer)
		assert_int_equal(weft_peer_open(citizens[from]->node,
						workers > 1 && (from + to) % 2 ? alias : address,
						peer), 0);
	return *peer;
}

struct weft_stub *wf_world_stub(unsigned from, unsigned to)
{
	struct weft_stub **stub = &citizens[from]->stubs[to];

	if (!*stub)
		assert_int_equal(weft_stub_open(wf_world_peer(from, to), &sim__mirror__descriptor,
						stub), 0);
	return *stub;
}

void wf_world_connect(unsigned from, unsigned to)
{
	struct wf_flight f;

	wf_flight_ping(&f, from, to, 0);
	wf_flight_land(&f, 1, 5 * WF_NS_PER_S);
	assert_int_equal(f.status, WEFT_OK);
	wf_flight_free(&f, 1);
}

void wf_world_kill(unsigned number)
{
	struct citizen *c = citizens[number];

	c->dead = true;
	c->frozen = false;
	wf_fake_kill(life_of(number));
	wf_net_kill(c->address);
	wf_net_kill_process(life_of(number) + 1); /* as net.c counts them */
	for (unsigned i = 0; i < c->node->worker_count; i++) /* the kernel's part */
		wf_shm_imports_forked(&c->node->workers[i].engine.shm_imports);
}

void wf_world_freeze(unsigned number, bool frozen)
{
	citizens[number]->frozen = frozen;
	wf_fake_freeze(life_of(number), frozen);
}

void wf_world_cut_door(unsigned a, unsigned b)
{
	wf_net_cut(citizens[a]->address, citizens[b]->address);
}

void wf_world_forget_door(unsigned who, unsigned whom)
{
	wf_net_forget(citizens[who]->address, citizens[whom]->address);
}

void wf_world_part(unsigned a, unsigned b, bool parted)
{
	cut[a][b] = cut[b][a] = parted;
	wf_fake_cut(life_of(a), life_of(b), parted);
	wf_net_silence(citizens[a]->address, citizens[b]->address, parted);
	wf_net_silence(citizens[b]->address, citizens[a]->address, parted);
}

void wf_world_hold_way(unsigned from, unsigned to, bool hold)
{
	wf_fake_hold(life_of(from), life_of(to), hold);
}

void wf_world_break_rail(unsigned a, unsigned b, bool broken)
{
	wf_fake_break(life_of(a), life_of(b), broken);
}

struct weft_counters wf_world_count(unsigned number)
{
	struct weft_counters counters = { .size = sizeof(counters) };

	assert_int_equal(weft_node_counters(citizens[number]->node, &counters), 0);
	return counters;
}

/* Flights. */

static void landed(struct weft_op *op, void *arg)
{
	struct wf_flight *f = arg;

	assert_true(!f->op || f->op == op);
	f->outcomes++;
	f->status = weft_op_status(op);
	f->ended_ns = wf_clock_now();
}

void wf_world_prefer(uint32_t (*draw)(void))
{
	draw_priority = draw;
}

bool wf_world_prefers(void)
{
	return draw_priority;
}

struct weft_op_options wf_flight_begin(struct wf_flight *f, uint64_t timeout_ns)
{
	*f = (struct wf_flight){ .started_ns = wf_clock_now() };
	return (struct weft_op_options){
		.size = sizeof(struct weft_op_options),
		.timeout_ns = timeout_ns,
		.done = landed,
		.arg = f,
		.priority = draw_priority ? draw_priority() : 0,
	};
}

/* @shape is the caller's: one row of bytes. */
static struct weft_tensor row_of(const void *data, int64_t *shape)
{
	return (struct weft_tensor){
		.data = (void *)(uintptr_t)data,
		.device = { WEFT_CPU, 0 },
		.ndim = 1,
		.dtype = { WEFT_UINT, 8, 1 },
		.shape = shape,
	};
}

void wf_flight_send(struct wf_flight *f, unsigned from, unsigned to, uint64_t step,
		    const void *data, size_t bytes, uint64_t timeout_ns)
{
	struct weft_send_options options = { .size = sizeof(options), .op = wf_flight_begin(f, timeout_ns) };
	int64_t shape = (int64_t)bytes;
	struct weft_tensor t = row_of(data, &shape);

	assert_int_equal(weft_send(wf_world_peer(from, to), step, "", 0, &t, &options, &f->op), 0);
}

void wf_flight_share(struct wf_flight *f, unsigned from, unsigned to, uint64_t step, void *data,
		     size_t bytes)
{
	struct weft_send_options options = { .size = sizeof(options), .op = wf_flight_begin(f, 0),
					     .flags = WEFT_SHARE };
	int64_t shape = (int64_t)bytes;
	struct weft_tensor t = row_of(data, &shape);

	assert_int_equal(weft_send(wf_world_peer(from, to), step, "", 0, &t, &options, &f->op), 0);
}

void wf_flight_receive(struct wf_flight *f, unsigned to, unsigned from, uint64_t step, void *into,
		       size_t bytes, uint64_t timeout_ns)
{
	struct weft_recv_options options = { .size = sizeof(options), .op = wf_flight_begin(f, timeout_ns) };
	int64_t shape = (int64_t)bytes;
	struct weft_tensor t = row_of(into, &shape);

	assert_int_equal(weft_recv(citizens[to]->node, from == to ? NULL : wf_world_peer(to, from),
				   step, "", 0, &t, &options, &f->op), 0);
}

static void answered(const Sim__Bytes *answer, void *arg)
{
	struct wf_flight *f = arg;

	f->closures++;
	if (!answer)
		return;
	f->reply_bytes = answer->body.len;
	f->reply_right = f->reply_bytes == f->request_bytes &&
			 (!f->reply_bytes ||
			  !memcmp(answer->body.data, f->request, f->reply_bytes));
}

void wf_flight_call(struct wf_flight *f, unsigned from, unsigned to, const void *data,
		    size_t bytes, uint64_t timeout_ns)
{
	Sim__Bytes question = SIM__BYTES__INIT;
	struct weft_call_options options = { .size = sizeof(options) };
	ProtobufCService *service;

	options.op = wf_flight_begin(f, timeout_ns);
	f->request = data;
	f->request_bytes = bytes;
	question.body.data = (void *)(uintptr_t)data;
	question.body.len = bytes;
	assert_int_equal(weft_call_open(wf_world_stub(from, to), &options, &service, &f->op), 0);
	sim__mirror__reflect(service, &question, answered, f);
}

void wf_flight_open(struct wf_flight *f, unsigned from, unsigned to, uint64_t timeout_ns,
		    struct weft_stream **stream)
{
	struct weft_call_options options = { .size = sizeof(options) };

	options.op = wf_flight_begin(f, timeout_ns);
	assert_int_equal(weft_stream_open(wf_world_stub(from, to), "Talk", &options, stream, &f->op),
			 0);
}

void wf_flight_write(struct wf_flight *f, struct weft_stream *stream, const void *data,
		     size_t bytes, uint64_t timeout_ns)
{
	struct weft_op_options options = wf_flight_begin(f, timeout_ns);
	Sim__Bytes message = SIM__BYTES__INIT;

	message.body.data = (void *)(uintptr_t)data;
	message.body.len = bytes;
	assert_int_equal(weft_stream_write(stream, &message.base, &options, &f->op), 0);
}

void wf_flight_read(struct wf_flight *f, struct weft_stream *stream, uint64_t timeout_ns)
{
	struct weft_op_options options = wf_flight_begin(f, timeout_ns);

	assert_int_equal(weft_stream_read(stream, &options, &f->op), 0);
}

void wf_flight_ping(struct wf_flight *f, unsigned from, unsigned to, uint64_t timeout_ns)
{
	struct weft_op_options options = wf_flight_begin(f, timeout_ns);

	assert_int_equal(weft_ping(wf_world_peer(from, to), &options, &f->op), 0);
}

struct flights {
	struct wf_flight *all;
	size_t count;
};

static bool all_landed(void *ctx)
{
	const struct flights *flights = ctx;

	for (size_t i = 0; i < flights->count; i++)
		if (!flights->all[i].outcomes)
			return false;
	return true;
}

void wf_flight_land(struct wf_flight *all, size_t count, uint64_t limit_ns)
{
	struct flights flights = { all, count };

	assert_true(wf_world_run(all_landed, &flights, limit_ns));
	for (size_t i = 0; i < count; i++)
		assert_int_equal(all[i].outcomes, 1);
}

void wf_flight_free(struct wf_flight *flights, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		weft_op_free(flights[i].op);
		flights[i].op = NULL;
	}
}

/* Bytes. */

/* Neighbours, and the same place in other chunks and bodies, differ. */
static uint64_t word_at(size_t i, uint64_t seed)
{
	uint64_t z = i * 0x9e3779b97f4a7c15 + (seed + 1) * 0xbf58476d1ce4e5b9;

	return (z ^ z >> 32) * 0x94d049bb133111eb;
}

void wf_world_fill(void *bytes, size_t count, uint64_t seed)
{
	size_t whole = count / sizeof(uint64_t) * sizeof(uint64_t);
	uint8_t *at = bytes;
	uint64_t word;

	for (size_t i = 0; i < whole; i += sizeof(word)) {
		word = word_at(i, seed);
		memcpy(at + i, &word, sizeof(word));
	}
	word = word_at(whole, seed);
	/* A body of no bytes may be nowhere. */
	if (whole < count)
		memcpy(at + whole, &word, count - whole);
}

bool wf_world_is_filled(const void *bytes, size_t count, uint64_t seed)
{
	size_t whole = count / sizeof(uint64_t) * sizeof(uint64_t);
	const uint8_t *at = bytes;
	uint64_t word;

	for (size_t i = 0; i < whole; i += sizeof(word)) {
		memcpy(&word, at + i, sizeof(word));
		if (word != word_at(i, seed))
			return false;
	}
	word = word_at(whole, seed);
	return whole == count || !memcmp(at + whole, &word, count - whole);
}

bool wf_world_all_are(const void *bytes, size_t count, uint8_t value)
{
	const uint8_t *at = bytes;

	/* If the first has it, and each is as its neighbour, all have it. */
	return !count || (*at == value && !memcmp(at, at + 1, count - 1));
}
