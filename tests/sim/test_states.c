/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadline, cancel and loss at every state of the protocol, on every shape of
 * rail: one at a time and always the same, where test_random takes what comes.
 * test_states PATTERN runs those whose names match.
 *
 * Node 0 owns the operation in question, node 1 is its peer, and node 2 has
 * traffic with both all the time, which must not notice anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "core/worker.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define STEP 7
#define SMALL 100
#define BIG (3 * MIB + 17)   /* pulled, in several chunks with a rest */
#define CANARY 0xee
#define LIMIT_NS (400 * MS)  /* of a deadline that comes: a stalled rail is not replaced before */
#define LONG_NS (30 * S)     /* of one that must not */
#define SETTLE_NS (30 * MS)  /* for what goes on until it must wait */
#define SLACK_NS (8 * MS)    /* from a deadline to the next look of the worker and the test */
#define LOST_NS (600 * MS)   /* silence of 300 ms, counted in beats of 100, or no redial for 500 */
#define CONNECT_NS (2500 * MS) /* for a peer that is not there yet; a lost SYN costs 1 s */

enum way_to_end {
	BY_DEADLINE, BY_CANCEL, BY_ABORT, BY_KILL, BY_FREEZE, BY_PART, BY_NOTHING, BY_BLINK,
	/* A deadline comes while the peer can't answer, and it is not given up for that. */
	BY_DEADLINE_FROZEN, BY_DEADLINE_PARTED, WAYS
};

struct row {
	const char *name;
	void (*stage)(uint64_t limit_ns); /* the operation begins, and comes into its state */
	bool (*is_there)(void);           /* it is in it, as the library's own fields say */
	enum { REACHED, TO_NOBODY, STUCK, NO_MEMORY } kind; /* stuck: by reads that never end */
};

static enum wf_world_shape shape;
static struct wf_flight subject, other, fillers[16]; /* other: of the peer, if it takes part */
static bool has_other, subject_seen, other_seen, source_is_free, target_is_free;
static unsigned filler_count;
static uint8_t source[BIG], target[BIG];
static size_t body_bytes;
static void *hoard; /* pool memory of node 0 */

/* Traffic of node 2. */

#define CHAT_BYTES (150 * KIB)

static struct chat {
	unsigned from, to;
	bool on;
	unsigned round;
	uint64_t next_ns;
	struct wf_flight flights[2];
	uint8_t source[CHAT_BYTES], target[CHAT_BYTES];
} chats[] = {
	{ .from = 0, .to = 2 }, { .from = 2, .to = 0 }, { .from = 1, .to = 2 }, { .from = 2, .to = 1 },
};

static bool is_busy(const struct chat *c)
{
	return c->flights[0].op;
}

/* Small and large by turns. */
static void begin_round(struct chat *c)
{
	size_t bytes = c->round % 2 ? CHAT_BYTES : SMALL;
	uint64_t step = 1000 + (uint64_t)(c - chats);

	wf_world_fill(c->source, bytes, ++c->round);
	wf_flight_receive(&c->flights[0], c->to, c->from, step, c->target, bytes, LONG_NS);
	wf_flight_send(&c->flights[1], c->from, c->to, step, c->source, bytes, LONG_NS);
}

static void end_round(struct chat *c)
{
	for (unsigned i = 0; i < 2; i++) {
		if (c->flights[i].status != WEFT_OK)
			fail_msg("traffic from node %u to node %u failed: %s", c->from, c->to,
				 weft_op_message(c->flights[i].op));
		assert_in_range(wf_flight_ns(&c->flights[i]), 0, 3 * S);
	}
	assert_true(wf_world_is_filled(c->target, c->round % 2 ? SMALL : CHAT_BYTES, c->round));
	wf_flight_free(c->flights, 2);
	c->next_ns = wf_clock_now() + 40 * MS;
}

static void run_chats(void)
{
	for (unsigned i = 0; i < WF_COUNT(chats); i++) {
		struct chat *c = &chats[i];

		if (is_busy(c) && c->flights[0].outcomes && c->flights[1].outcomes)
			end_round(c);
		if (!is_busy(c) && c->on && wf_clock_now() >= c->next_ns)
			begin_round(c);
	}
}

/* The buffer of what has ended is quiet; whoever touches it now is found out. */
static void give_up(const struct wf_flight *f, const struct weft_op *op)
{
	if (op->class->kind == WF_OP_SEND) {
		assert_false(wf_fake_is_open(source, body_bytes));
		if (shape == WF_WORLD_CONNECTED)
			assert_false(wf_fake_is_read(source, body_bytes));
		memset(source, CANARY, body_bytes);
		source_is_free = true;
	} else if (op->class->kind == WF_OP_RECV && op->recv.receiving.into) {
		if (f->status == WEFT_OK)
			assert_true(wf_world_is_filled(target, body_bytes, STEP));
		memset(target, CANARY, body_bytes);
		target_is_free = true;
	}
}

static void turn(void)
{
	wf_world_leap(wf_clock_now() + 5 * MS);
	run_chats();
	if (subject.outcomes && !subject_seen) {
		subject_seen = true;
		give_up(&subject, subject.op);
	}
	if (other.outcomes && !other_seen) {
		other_seen = true;
		give_up(&other, other.op);
	}
}

static void pass(uint64_t ns)
{
	uint64_t until_ns = wf_clock_now() + ns;

	while (wf_clock_now() < until_ns)
		turn();
}

/* Node 2 talks to both, to node 0 alone, or to nobody; what is under way ends well. */
static void talk_to(unsigned peers)
{
	bool busy = true;

	for (unsigned i = 0; i < WF_COUNT(chats); i++)
		chats[i].on = i < 2 * peers;
	while (busy) {
		turn();
		busy = false;
		for (unsigned i = 2 * peers; i < WF_COUNT(chats); i++)
			busy |= is_busy(&chats[i]);
	}
}

/* The states. */

static const struct wf_outgoing *outgoing(void)
{
	return subject.op->class->kind == WF_OP_SEND ? &subject.op->send.sending.outgoing
					      : &subject.op->call.call.outgoing;
}

static const struct wf_receiving *receiving(const struct wf_flight *f)
{
	return &f->op->recv.receiving;
}

static struct wf_link *link_to_peer(void)
{
	return wf_link_real(wf_world_peer(0, 1)->link);
}

static void send_subject(size_t bytes, uint64_t limit_ns)
{
	body_bytes = bytes;
	wf_world_fill(source, bytes, STEP);
	wf_flight_send(&subject, 0, 1, STEP, source, bytes, limit_ns);
}

/* NULL @into: memory of the pool. */
static void receive(struct wf_flight *f, unsigned at, uint8_t *into, uint64_t limit_ns)
{
	struct weft_recv_options options = {
		.size = sizeof(options), .op = wf_flight_begin(f, limit_ns),
		.flags = into ? WEFT_ANY_SHAPE : 0,
	};
	int64_t shape_of = (int64_t)body_bytes;
	struct weft_tensor t = {
		.data = into, .device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 },
		.shape = &shape_of,
	};

	assert_int_equal(weft_recv(wf_world_node(at), wf_world_peer(at, 1 - at), STEP, "", 0,
				   into ? &t : NULL, &options, &f->op), 0);
}

static void receive_subject(size_t bytes, uint64_t limit_ns)
{
	body_bytes = bytes;
	receive(&subject, 0, target, limit_ns);
}

/* Two rows with a byte between: they are gathered in memory of the pool. */
static void send_rows(uint64_t limit_ns)
{
	struct weft_send_options options = {
		.size = sizeof(options), .op = wf_flight_begin(&subject, limit_ns),
	};
	int64_t shape_of[] = { 2, BIG / 2 }, strides[] = { BIG / 2 + 1, 1 };
	struct weft_tensor t = {
		.data = source, .device = { WEFT_CPU, 0 }, .ndim = 2, .dtype = { WEFT_UINT, 8, 1 },
		.shape = shape_of, .strides = strides,
	};

	body_bytes = BIG / 2 * 2;
	wf_world_fill(source, body_bytes, STEP);
	memmove(source + BIG / 2 + 1, source + BIG / 2, BIG / 2);
	assert_int_equal(weft_send(wf_world_peer(0, 1), STEP, "", 0, &t, &options, &subject.op),
			 0);
}

static void call_subject(size_t bytes, uint64_t limit_ns)
{
	body_bytes = bytes;
	wf_world_fill(source, bytes, STEP);
	wf_flight_call(&subject, 0, 1, source, bytes, limit_ns);
}

/* The peer's side of a tensor. */
static void begin_other(void)
{
	has_other = true;
	if (subject.op && subject.op->class->kind == WF_OP_RECV) {
		wf_world_fill(source, body_bytes, STEP);
		wf_flight_send(&other, 1, 0, STEP, source, body_bytes, LONG_NS);
	} else {
		receive(&other, 1, target, LONG_NS);
	}
}

/* Reads that begin from here on never end; nobody else may begin some meanwhile. */
static void stick(bool on)
{
	if (on)
		talk_to(0);
	wf_fake_knobs()->stick = on ? 1000 : 0;
	if (!on)
		talk_to(2);
}

static void refuse_dials(bool on)
{
	wf_net_refuse(weft_node_address(wf_world_node(1)), on);
}

static void stage_send_to_nobody(uint64_t limit_ns)
{
	refuse_dials(true);
	send_subject(SMALL, limit_ns);
	pass(SETTLE_NS);
}

static void stage_receive_from_nobody(uint64_t limit_ns)
{
	refuse_dials(true);
	receive_subject(SMALL, limit_ns);
	pass(SETTLE_NS);
}

static void stage_call_to_nobody(uint64_t limit_ns)
{
	refuse_dials(true);
	call_subject(SMALL, limit_ns);
	pass(SETTLE_NS);
}

/* Frames go, and no word of them comes back. */
static void spend_credits(void)
{
	wf_world_connect(0, 1);
	wf_world_hold_way(1, 0, true);
	while (wf_credit_left(&link_to_peer()->tx.credit)) {
		assert_true(filler_count < WF_COUNT(fillers));
		wf_flight_ping(&fillers[filler_count++], 0, 1, LONG_NS);
		pass(MS);
	}
}

static void stage_send_behind_credits(uint64_t limit_ns)
{
	spend_credits();
	send_subject(SMALL, limit_ns);
	pass(SETTLE_NS);
}

static void stage_call_behind_credits(uint64_t limit_ns)
{
	spend_credits();
	call_subject(SMALL, limit_ns);
	pass(SETTLE_NS);
}

static void stage_send_offered(uint64_t limit_ns)
{
	wf_world_connect(0, 1);
	send_subject(BIG, limit_ns);
	pass(SETTLE_NS);
}

static void stage_send_being_pulled(uint64_t limit_ns)
{
	wf_world_connect(0, 1);
	stick(true);
	send_subject(BIG, limit_ns);
	begin_other();
	pass(SETTLE_NS);
	stick(false);
}

static void stage_send_unacknowledged(uint64_t limit_ns)
{
	wf_world_connect(0, 1);
	send_subject(BIG, limit_ns);
	begin_other();
	/* Before anybody else looks: its word of that is not on its way yet. */
	while (!other.outcomes) {
		turn();
		wf_world_poll(1);
	}
	wf_world_hold_way(1, 0, true);
	pass(SETTLE_NS);
}

static void stage_receive_waiting(uint64_t limit_ns)
{
	wf_world_connect(0, 1);
	receive_subject(BIG, limit_ns);
	pass(SETTLE_NS);
}

static void stage_receive_without_memory(uint64_t limit_ns)
{
	wf_world_connect(0, 1);
	assert_int_equal(weft_alloc(wf_world_node(0), 6 * MIB, &hoard), 0);
	body_bytes = BIG;
	receive(&subject, 0, NULL, limit_ns);
	begin_other();
	pass(SETTLE_NS);
}

static void stage_send_without_memory(uint64_t limit_ns)
{
	wf_world_connect(0, 1);
	assert_int_equal(weft_alloc(wf_world_node(0), 6 * MIB, &hoard), 0);
	send_rows(limit_ns);
	pass(SETTLE_NS);
}

static void stage_receive_being_pulled(uint64_t limit_ns)
{
	wf_world_connect(0, 1);
	stick(true);
	receive_subject(BIG, limit_ns);
	begin_other();
	pass(SETTLE_NS);
	stick(false);
}

static void stage_call_offered(uint64_t limit_ns)
{
	wf_world_connect(0, 1);
	wf_world_hold_way(0, 1, true);
	call_subject(BIG, limit_ns);
	pass(SETTLE_NS);
}

static void stage_call_request_being_pulled(uint64_t limit_ns)
{
	wf_world_connect(0, 1);
	stick(true);
	call_subject(BIG, limit_ns);
	pass(SETTLE_NS);
	stick(false);
}

static void stage_call_being_handled(uint64_t limit_ns)
{
	wf_world_connect(0, 1);
	wf_world_hold(1, true);
	call_subject(BIG, limit_ns);
	pass(SETTLE_NS);
}

static void stage_call_reply_being_pulled(uint64_t limit_ns)
{
	stage_call_being_handled(limit_ns);
	stick(true);
	wf_world_hold(1, false);
	pass(SETTLE_NS);
	stick(false);
}

static bool outgoing_waits(void)
{
	return outgoing()->state == WF_OUTGOING_WAITING;
}

static bool outgoing_is_queued(void)
{
	return outgoing()->state == WF_OUTGOING_QUEUED &&
	       !wf_credit_left(&link_to_peer()->tx.credit);
}

static bool outgoing_is_offered(void)
{
	return outgoing()->state == WF_OUTGOING_OFFERED && !has_other;
}

static bool outgoing_is_pulled(void)
{
	return outgoing()->state == WF_OUTGOING_OFFERED &&
	       wf_pace_bytes(&wf_world_node(1)->workers[0].transfer.pace, 0);
}

static bool outgoing_is_unacknowledged(void)
{
	return outgoing()->state == WF_OUTGOING_OFFERED && other.outcomes &&
	       other.status == WEFT_OK;
}

static bool send_waits_for_memory(void)
{
	return subject.op->send.sending.state == WF_SENDING_MEMORY;
}

static bool receive_waits_for_peer(void)
{
	return receiving(&subject)->state == WF_RECEIVING_WAITING &&
	       !wf_link_was_up(link_to_peer());
}

static bool receive_waits(void)
{
	return receiving(&subject)->state == WF_RECEIVING_WAITING && wf_link_was_up(link_to_peer());
}

static bool receive_waits_for_memory(void)
{
	return receiving(&subject)->state == WF_RECEIVING_MEMORY;
}

static bool receive_pulls(void)
{
	return receiving(&subject)->state == WF_RECEIVING_PULLING && receiving(&subject)->pull->busy;
}

static bool call_is_handled(void)
{
	return !subject.op->call.call.run.request_busy && wf_world_served(1) == 1;
}

static bool call_pulls_reply(void)
{
	return subject.op->call.call.run.reply_busy && subject.op->call.call.pull.busy;
}

static const struct row rows[] = {
	{ "send_to_nobody", stage_send_to_nobody, outgoing_waits, TO_NOBODY },
	{ "send_behind_credits", stage_send_behind_credits, outgoing_is_queued, REACHED },
	{ "send_offered", stage_send_offered, outgoing_is_offered, REACHED },
	{ "send_being_pulled", stage_send_being_pulled, outgoing_is_pulled, STUCK },
	{ "send_unacknowledged", stage_send_unacknowledged, outgoing_is_unacknowledged, REACHED },
	{ "send_without_memory", stage_send_without_memory, send_waits_for_memory, NO_MEMORY },
	{ "receive_from_nobody", stage_receive_from_nobody, receive_waits_for_peer,
	  TO_NOBODY },
	{ "receive_waiting", stage_receive_waiting, receive_waits, REACHED },
	{ "receive_without_memory", stage_receive_without_memory, receive_waits_for_memory,
	  NO_MEMORY },
	{ "receive_being_pulled", stage_receive_being_pulled, receive_pulls, STUCK },
	{ "call_to_nobody", stage_call_to_nobody, outgoing_waits, TO_NOBODY },
	{ "call_behind_credits", stage_call_behind_credits, outgoing_is_queued, REACHED },
	{ "call_offered", stage_call_offered, outgoing_is_offered, REACHED },
	{ "call_request_being_pulled", stage_call_request_being_pulled, outgoing_is_pulled,
	  STUCK },
	{ "call_being_handled", stage_call_being_handled, call_is_handled, REACHED },
	{ "call_reply_being_pulled", stage_call_reply_being_pulled, call_pulls_reply, STUCK },
};

/* What happens to it. */

static bool is_deadline(enum way_to_end way)
{
	return way == BY_DEADLINE || way == BY_DEADLINE_FROZEN || way == BY_DEADLINE_PARTED;
}

static bool freezes(enum way_to_end way)
{
	return way == BY_FREEZE || way == BY_DEADLINE_FROZEN;
}

static bool parts(enum way_to_end way)
{
	return way == BY_PART || way == BY_DEADLINE_PARTED || way == BY_BLINK;
}

/* Whatever was held back goes on. */
static void release(void)
{
	refuse_dials(false);
	wf_world_hold_way(0, 1, false);
	wf_world_hold_way(1, 0, false);
	wf_world_hold(1, false);
	weft_free(wf_world_node(0), hoard);
	hoard = NULL;
	if (!has_other && subject.op->class->kind != WF_OP_CALL && !subject.outcomes)
		begin_other();
}

static void strike(enum way_to_end way)
{
	if (way == BY_KILL || freezes(way))
		talk_to(1);
	if (way == BY_CANCEL)
		weft_cancel(subject.op);
	else if (way == BY_ABORT)
		assert_int_equal(weft_step_abort(wf_world_node(0), STEP, WEFT_DATA_LOSS, NULL), 0);
	else if (way == BY_KILL)
		wf_world_kill(1);
	else if (freezes(way))
		wf_world_freeze(1, true);
	else if (parts(way))
		wf_world_part(0, 1, true);
	if (way == BY_NOTHING)
		wf_world_cut_door(0, 1);
	if (way == BY_BLINK) {
		pass(150 * MS);
		wf_world_part(0, 1, false);
	}
}

static void end_strike(enum way_to_end way)
{
	if (freezes(way))
		wf_world_freeze(1, false);
	if (parts(way) && way != BY_BLINK)
		wf_world_part(0, 1, false);
}

static enum weft_status status_of(const struct row *row, enum way_to_end way)
{
	switch (way) {
	case BY_DEADLINE:
	case BY_DEADLINE_FROZEN:
	case BY_DEADLINE_PARTED:
		return row->kind == NO_MEMORY ? WEFT_RESOURCE_EXHAUSTED : WEFT_DEADLINE_EXCEEDED;
	case BY_CANCEL:
		return WEFT_CANCELLED;
	case BY_ABORT:
		return WEFT_DATA_LOSS;
	case BY_NOTHING:
	case BY_BLINK:
		return WEFT_OK;
	default:
		return WEFT_UNAVAILABLE;
	}
}

/* When the subject must have ended. */
static uint64_t due_ns(const struct row *row, enum way_to_end way)
{
	uint64_t bound_ns = (shape == WF_WORLD_CONNECTED ? 500 * MS : 2 * S) + SLACK_NS;

	switch (way) {
	case BY_DEADLINE:
	case BY_DEADLINE_FROZEN:
	case BY_DEADLINE_PARTED:
		return subject.started_ns + LIMIT_NS + bound_ns;
	case BY_CANCEL:
	case BY_ABORT:
		return wf_clock_now() + bound_ns;
	case BY_NOTHING:
	case BY_BLINK:
		return wf_clock_now() + 5 * S;
	default:
		return wf_clock_now() + (row->kind == TO_NOBODY ? CONNECT_NS : LOST_NS) + bound_ns;
	}
}

static void check_end(const struct row *row, enum way_to_end way)
{
	assert_int_equal(subject.outcomes, 1);
	if (subject.status != status_of(row, way))
		fail_msg("it ended with %s: %s", weft_status_name(subject.status),
			 weft_op_message(subject.op));
	if (is_deadline(way))
		assert_true(subject.ended_ns >= subject.started_ns + LIMIT_NS);
	if (subject.op->class->kind == WF_OP_CALL) {
		assert_int_equal(subject.closures, 1);
		assert_int_equal(subject.reply_right, subject.status == WEFT_OK);
	}
}

/* The same two nodes, or those that are left, go on. */
static void go_on(bool peer_lives)
{
	struct wf_flight f[2];
	static uint8_t more[BIG], came[BIG];

	if (!peer_lives)
		return;
	wf_world_connect(0, 1);
	wf_world_connect(1, 0);
	wf_world_fill(more, BIG, 1);
	wf_flight_receive(&f[0], 1, 0, STEP + 1, came, BIG, LONG_NS);
	wf_flight_send(&f[1], 0, 1, STEP + 1, more, BIG, LONG_NS);
	while (!f[0].outcomes || !f[1].outcomes)
		turn();
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	assert_true(wf_world_is_filled(came, BIG, 1));
	wf_flight_free(f, 2);
}

static void check_canary(const uint8_t *bytes)
{
	if (!wf_world_all_are(bytes, body_bytes, CANARY))
		fail_msg("a byte was written after the end");
}

/* What a receive was to get, and did not, is there for another. */
static void receive_again(void)
{
	static uint8_t came[BIG];
	struct wf_flight again;

	if (!other.outcomes) {
		wf_flight_receive(&again, 0, 1, STEP, came, body_bytes, LONG_NS);
		while (!again.outcomes || !other.outcomes)
			turn();
		assert_int_equal(again.status, WEFT_OK);
		assert_int_equal(other.status, WEFT_OK);
		wf_flight_free(&again, 1);
	}
	assert_int_equal(other.outcomes, 1);
}

/* All has ended; nothing of it may come late. */
static void settle(enum way_to_end way)
{
	bool lives = way != BY_KILL, unharmed = way != BY_KILL && way != BY_FREEZE && way != BY_PART;

	pass(2 * S);
	for (unsigned i = 0; i < filler_count; i++) {
		assert_int_equal(fillers[i].outcomes, 1);
		if (unharmed)
			assert_int_equal(fillers[i].status, WEFT_OK);
	}
	if (has_other && lives)
		receive_again();
	go_on(lives);
	talk_to(0);
	/* One that never knew it, or has no business with it, does not notice either. */
	assert_in_range(wf_world_count(2).peers_lost, 0, way == BY_KILL || way == BY_FREEZE);
	assert_in_range(wf_world_count(0).peers_lost, 0, !unharmed);
	if (source_is_free)
		check_canary(source);
	if (target_is_free)
		check_canary(target);
}

struct trial {
	char name[64];
	const struct row *row;
	enum way_to_end way;
	enum wf_world_shape shape;
};

static void open_world(enum way_to_end way)
{
	bool patient = way == BY_DEADLINE_FROZEN || way == BY_DEADLINE_PARTED;

	setenv("WEFT_HEARTBEAT", patient ? "1s" : "100ms", 1);
	setenv("WEFT_LOST", patient ? "6s" : "300ms", 1);
	setenv("WEFT_CONNECT_TIMEOUT", "2500ms", 1);
	setenv("WEFT_POOL_BYTES", "8M", 1);
	setenv("WEFT_WINDOW", "4", 1);
	setenv("WEFT_PACK_BYTES", "1", 1);
	wf_world_open(shape, 3, NULL);
	for (unsigned i = 0; i < WF_COUNT(chats); i++) {
		chats[i].round = 0;
		chats[i].next_ns = 0;
	}
	subject = other = (struct wf_flight){ 0 };
	has_other = subject_seen = other_seen = source_is_free = target_is_free = false;
	filler_count = 0;
	wf_world_connect(2, 0);
	wf_world_connect(2, 1);
	talk_to(2);
}

static void an_operation_ends_once_in_time_and_quietly(void **state)
{
	const struct trial *t = *state;
	bool fails = status_of(t->row, t->way) != WEFT_OK;
	uint64_t until_ns;

	shape = t->shape;
	open_world(t->way);
	t->row->stage(is_deadline(t->way) ? LIMIT_NS : LONG_NS);
	assert_int_equal(subject.outcomes, 0);
	assert_true(t->row->is_there());

	strike(t->way);
	if (!fails)
		release();
	until_ns = due_ns(t->row, t->way);
	while (!subject_seen && wf_clock_now() <= until_ns)
		turn();

	check_end(t->row, t->way);
	end_strike(t->way);
	if (fails)
		release();
	settle(t->way);
	wf_flight_free(&subject, 1);
	wf_flight_free(&other, has_other);
	wf_flight_free(fillers, filler_count);
	assert_int_equal(wf_world_close(), 0);
}

int main(int argc, char **argv)
{
	static const char *const way_names[] = {
		[BY_DEADLINE] = "deadline", [BY_CANCEL] = "cancel", [BY_ABORT] = "abort",
		[BY_KILL] = "kill",
		[BY_FREEZE] = "freeze", [BY_PART] = "part", [BY_NOTHING] = "door_reset",
		[BY_BLINK] = "short_part", [BY_DEADLINE_FROZEN] = "deadline_frozen",
		[BY_DEADLINE_PARTED] = "deadline_parted",
	};
	static const char *const shape_names[] = { "connected", "shared", "same_host" };
	static struct trial trials[WF_COUNT(rows) * WAYS * WF_COUNT(shape_names)];
	static struct CMUnitTest tests[WF_COUNT(trials)];
	size_t count = 0;

	for (unsigned i = 0; i < WF_COUNT(rows) * WAYS * WF_COUNT(shape_names); i++) {
		struct trial *t = &trials[count];

		t->shape = (enum wf_world_shape)(i % WF_COUNT(shape_names));
		t->way = (enum way_to_end)(i / WF_COUNT(shape_names) % WAYS);
		t->row = &rows[i / WF_COUNT(shape_names) / WAYS];
		/* There a read is one copy, done when its call returns; and nothing comes between. */
		if (t->shape == WF_WORLD_SAME_HOST &&
		    (t->row->kind == STUCK || parts(t->way)))
			continue;
		/* Calls belong to no step. */
		if (t->way == BY_ABORT && !strncmp(t->row->name, "call", 4))
			continue;
		/* What is stuck for good ends by its deadline, not by a door. */
		if (t->row->kind == STUCK && status_of(t->row, t->way) == WEFT_OK)
			continue;
		(void)snprintf(t->name, sizeof(t->name), "%s_%s (%s)", t->row->name,
			       way_names[t->way], shape_names[t->shape]);
		tests[count++] = (struct CMUnitTest){
			.name = t->name,
			.test_func = an_operation_ends_once_in_time_and_quietly,
			.initial_state = t,
		};
	}
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return _cmocka_run_group_tests("states", tests, count, NULL, NULL);
}
