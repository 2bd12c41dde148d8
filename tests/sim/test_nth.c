/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every allocation and every call of the fabric fails in turn.  A script of all
 * that two nodes do is counted once, then run again for each call that can
 * fail: with that one alone failing, and with a row of them.  Each time: nothing
 * crashes, hangs or leaks; a call that fails says so with a sentence and can be
 * repeated; an operation ends once and in time; in the end all has gone well.
 *
 * test_nth SHAPE KIND N COUNT CODE does one of them again, as a failure prints it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rdma/fi_domain.h>

#include "core/node.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/nth_script.h"
#include "tests/sim/world.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define SMALL 100            /* in one frame */
#define MIDDLE (40 * KIB)    /* eager, in three frames of a connected rail */
#define BIG (130 * KIB)      /* pulled, in three chunks */
#define LONG (MIB + 2)       /* pulled, and summed up in two pieces, which the reader asks for */
#define DEADLINE_NS (5 * S)  /* far beyond what anything here takes */
#define CANARY 0xee


/* One operation of an attempt. */
struct trip {
	struct weft_op *op;
	unsigned outcomes;
	enum weft_status status, want;
	uint64_t begun_ns, ended_ns;
	uint8_t *source; /* spoilt when the operation has ended: nobody may read it then */
	size_t source_bytes;
	uint8_t *target; /* the same, if nothing came */
	const uint8_t *answer;
	unsigned closures;
	bool right;
};

static struct weft_peer *peer;  /* node 1, as node 0 knows it */
static struct weft_peer *back;  /* the other way round */
static struct weft_stub *stub;
static uint64_t step;           /* a new one for every tensor */
static uint8_t source[LONG], want[LONG], target[LONG];

/* Calls of the interface. */

static void ended(struct weft_op *op, void *arg)
{
	struct trip *t = arg;

	t->outcomes++;
	t->ended_ns = wf_clock_now();
	t->status = weft_op_status(op);
	if (t->source)
		memset(t->source, CANARY, t->source_bytes);
	if (t->target && t->status != WEFT_OK)
		memset(t->target, CANARY, BIG);
}

static struct weft_op_options options_of(struct trip *t)
{
	t->begun_ns = wf_clock_now();
	return (struct weft_op_options){
		.size = sizeof(struct weft_op_options),
		.timeout_ns = DEADLINE_NS,
		.done = ended,
		.arg = t,
	};
}

/* Two rows; when they are strided the second lies first. */
static void send(struct trip *t, size_t bytes, unsigned flags, bool strided)
{
	struct weft_send_options options = {
		.size = sizeof(options), .op = options_of(t), .flags = flags,
	};
	int64_t shape[2] = { 2, (int64_t)bytes / 2 }, strides[2] = { (int64_t)bytes / 2, 1 };
	struct weft_tensor tensor = {
		.data = source, .device = { WEFT_CPU, 0 }, .ndim = 2,
		.dtype = { WEFT_UINT, 8, 1 }, .shape = shape,
	};

	wf_world_fill(want, bytes, step);
	memcpy(source, want, bytes);
	*t = (struct trip){ .source = source, .source_bytes = bytes };
	if (strided) {
		memcpy(source, want + bytes / 2, bytes / 2);
		memcpy(source + bytes / 2, want, bytes / 2);
		tensor.byte_offset = bytes / 2;
		strides[0] = -strides[0];
		tensor.strides = strides;
	}
	if (flags & WEFT_SHARE) {
		while (wf_nth_again(weft_alloc(wf_world_node(0), bytes, &tensor.data)))
			;
		memcpy(tensor.data, want, bytes);
	}
	while (wf_nth_again(weft_send(peer, step, "key", 3, &tensor, &options, &t->op)))
		;
	if (flags & WEFT_SNAPSHOT)
		memset(source, CANARY, bytes);
	if (flags & WEFT_SHARE)
		weft_free(wf_world_node(0), tensor.data);
}

enum place { INTO_BUFFER, INTO_POOL, INTO_CALLBACK };

static void *give_target(void *arg, const struct weft_tensor *tensor, uint64_t bytes)
{
	(void)arg, (void)tensor;
	assert_true(bytes <= BIG);
	return target;
}

/* Receive a tensor under "key", or with WEFT_ANY_KEY in @flags under any. */
static void receive(struct trip *t, struct weft_peer *from, size_t bytes, enum place place,
		    unsigned flags)
{
	const char *key = flags & WEFT_ANY_KEY ? NULL : "key";
	struct weft_recv_options options = {
		.size = sizeof(options), .op = options_of(t), .flags = flags,
		.alloc = place == INTO_CALLBACK ? give_target : NULL,
	};
	int64_t shape[2] = { 2, (int64_t)bytes / 2 };
	struct weft_tensor into = {
		.data = target, .device = { WEFT_CPU, 0 }, .ndim = 2,
		.dtype = { WEFT_UINT, 8, 1 }, .shape = shape,
	};

	memset(target, 0, bytes);
	*t = (struct trip){ .target = target };
	while (wf_nth_again(weft_recv(wf_world_node(1), from, step, key, key ? 3 : 0,
			       place == INTO_BUFFER ? &into : NULL, &options, &t->op)))
		;
}

static void answered(const Sim__Bytes *answer, void *arg)
{
	struct trip *t = arg;

	t->closures++;
	t->right = answer && (!answer->body.len ||
			      !memcmp(answer->body.data, want, answer->body.len));
}

static void call(struct trip *t, size_t bytes)
{
	struct weft_call_options options = { .size = sizeof(options), .op = options_of(t) };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;

	wf_world_fill(want, bytes, step);
	question.body.data = want;
	question.body.len = bytes;
	while (wf_nth_again(weft_call_open(stub, &options, &service, &t->op)))
		;
	sim__mirror__reflect(service, &question, answered, t);
}

/* Ends. */

struct trips {
	struct trip *all;
	size_t count;
};

static bool all_ended(void *ctx)
{
	const struct trips *trips = ctx;

	for (size_t i = 0; i < trips->count; i++)
		if (!trips->all[i].outcomes)
			return false;
	return true;
}

/* Wait for all, which must end in time; have they ended as they should? */
static bool land(struct trip *all, size_t count)
{
	struct trips trips = { all, count };
	bool well = true;

	if (!wf_world_run(all_ended, &trips, DEADLINE_NS + 2 * S))
		fail_msg("an operation does not end");
	for (size_t i = 0; i < count; i++) {
		struct trip *t = &all[i];
		const char *message = weft_op_message(t->op);

		assert_int_equal(t->outcomes, 1);
		if (t->status != WEFT_OK && !message[0])
			fail_msg("%s without a sentence", weft_status_name(t->status));
		if (t->status == t->want)
			continue;
		well = false;
		if (!wf_nth_failed())
			fail_msg("with nothing amiss: %s", message);
		/* Whoever knows of a failure tells the other side; nobody has to wait. */
		if (t->status == WEFT_DEADLINE_EXCEEDED && wf_nth_row() == 1)
			fail_msg("it took until the deadline: %s", message);
	}
	return well;
}

static void free_all(struct trip *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		weft_op_free(all[i].op);
}

/* Attempts: each does something, and says whether all went well. */

static bool ping(void)
{
	struct trip t = { 0 };
	struct weft_op_options options = options_of(&t);
	bool well;

	while (wf_nth_again(weft_ping(peer, &options, &t.op)))
		;
	well = land(&t, 1);
	free_all(&t, 1);
	return well;
}

/* A tensor on its way. */
struct carriage {
	size_t bytes;
	enum place place;
	unsigned flags;
	bool strided, late, any_key;
	struct trip ends[2];
};

enum { SENDER, RECEIVER };

static void start_end(struct carriage *c, unsigned end)
{
	if (end == SENDER)
		send(&c->ends[end], c->bytes, c->flags, c->strided);
	else
		receive(&c->ends[end], c->late ? NULL : back, c->bytes, c->place,
			c->any_key ? WEFT_ANY_KEY : 0);
}

static bool is_over(const struct trip *t)
{
	return t->outcomes > 0;
}

/* Has one end failed, so that the other may wait for nothing? */
static bool is_half(const struct carriage *c)
{
	return is_over(&c->ends[0]) != is_over(&c->ends[1]) &&
	       (c->ends[0].status != WEFT_OK || c->ends[1].status != WEFT_OK);
}

static bool over_or_half(void *ctx)
{
	const struct carriage *c = ctx;

	return (is_over(&c->ends[0]) && is_over(&c->ends[1])) || is_half(c);
}

/*
 * An end that failed on its own is tried again, and meets the other end, which
 * still waits; unless that is told, which does not take long.
 */
static void mend(struct carriage *c)
{
	unsigned tries = 0;

	while (wf_world_run(over_or_half, c, DEADLINE_NS + 2 * S) && is_half(c)) {
		unsigned failed = is_over(&c->ends[RECEIVER]) ? RECEIVER : SENDER;

		wf_world_pass(50 * MS);
		if (!is_half(c))
			continue;
		if (tries++ > wf_nth_row())
			fail_msg("one end fails for ever: %s", weft_op_message(c->ends[failed].op));
		weft_op_free(c->ends[failed].op);
		start_end(c, failed);
	}
}

static void check_target(struct carriage *c)
{
	struct weft_op *op = c->ends[RECEIVER].op;
	const struct weft_tensor *got = weft_op_tensor(op, NULL);
	void *taken;

	assert_int_equal(got->shape[1], c->bytes / 2);
	assert_same_content(got->data, want, c->bytes);
	assert_non_null(weft_op_peer(op));
	assert_same_content(weft_op_key(op, NULL), "key", 3);
	taken = weft_op_take(op);
	assert_int_equal(taken != NULL, c->place == INTO_POOL);
	weft_free(wf_world_node(1), taken);
}

/* The receive waits for the send, or, when it is late, the other way round. */
static bool carry(struct carriage c)
{
	bool well;

	step++;
	start_end(&c, c.late ? SENDER : RECEIVER);
	if (c.late)
		wf_world_pass(2 * MS);
	start_end(&c, c.late ? RECEIVER : SENDER);
	mend(&c);
	well = land(c.ends, 2);
	if (c.ends[RECEIVER].status == WEFT_OK)
		check_target(&c);
	free_all(c.ends, 2);
	return well;
}

static bool carry_eager(void)
{
	return carry((struct carriage){ .bytes = SMALL, .place = INTO_BUFFER });
}

static bool carry_eager_late(void)
{
	return carry((struct carriage){ .bytes = SMALL, .place = INTO_POOL,
					.flags = WEFT_SNAPSHOT, .late = true });
}

static bool carry_pulled(void)
{
	return carry((struct carriage){ .bytes = BIG, .place = INTO_BUFFER });
}

static bool carry_pulled_late(void)
{
	return carry((struct carriage){ .bytes = BIG, .place = INTO_POOL, .strided = true,
					.late = true });
}

/* Pulled ones alone: an eager tensor is lost where there is no memory for its key. */
static bool carry_any_key(void)
{
	return carry((struct carriage){ .bytes = BIG, .place = INTO_POOL, .any_key = true });
}

static bool carry_any_key_late(void)
{
	return carry((struct carriage){ .bytes = BIG, .place = INTO_BUFFER, .any_key = true,
					.late = true });
}

static bool carry_pieces(void)
{
	return carry((struct carriage){ .bytes = LONG, .place = INTO_BUFFER });
}

static bool carry_shared(void)
{
	return carry((struct carriage){ .bytes = BIG, .place = INTO_POOL, .flags = WEFT_SHARE });
}

static bool carry_snapshot(void)
{
	return carry((struct carriage){ .bytes = BIG, .place = INTO_CALLBACK,
					.flags = WEFT_SNAPSHOT });
}

/*
 * A receive that stays, with one tensor out at a time, and three for it, of which the second is
 * pulled.
 */
#define STAYING 3

static struct {
	struct trip receive, sends[STAYING];
	uint8_t sources[STAYING][BIG];
	unsigned told[STAYING], failed;
} staying;

/* Each has its own length. */
static size_t staying_bytes(unsigned number)
{
	return number == 1 ? BIG : SMALL + number;
}

static void note_tensor(struct weft_op *op)
{
	const struct weft_tensor *t = weft_op_tensor(op, NULL);
	unsigned number = t->shape[0] == BIG ? 1 : (unsigned)t->shape[0] - SMALL;

	assert_true(number < STAYING);
	assert_int_equal(t->shape[0], staying_bytes(number));
	assert_true(wf_world_is_filled(t->data, staying_bytes(number), step + number));
	assert_int_equal(staying.told[number]++, 0);
}

static void told(struct weft_op *op, void *arg)
{
	struct trip *t = arg;

	assert_int_equal(t->outcomes, 0); /* the end of the receive is told last */
	if (op == t->op) {
		t->outcomes++;
		t->ended_ns = wf_clock_now();
		t->status = weft_op_status(op);
		assert_int_not_equal(t->status, WEFT_OK);
		return;
	}
	if (weft_op_status(op) == WEFT_OK)
		note_tensor(op);
	else
		staying.failed++;
	weft_op_free(op);
}

static void begin_staying(struct weft_peer *from)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;

	staying.receive = (struct trip){ .want = WEFT_CANCELLED };
	options.flags = WEFT_RECV_MANY;
	options.many_max = 1;
	options.op.done = told;
	options.op.arg = &staying.receive;
	while (wf_nth_again(weft_recv(wf_world_node(1), from, step, "key", 3, NULL, &options,
				      &staying.receive.op)))
		;
}

static void send_with_key(unsigned number, const char *key)
{
	struct trip *t = &staying.sends[number];
	struct weft_send_options options = { .size = sizeof(options), .op = options_of(t) };
	int64_t shape = (int64_t)staying_bytes(number);
	struct weft_tensor tensor = {
		.data = staying.sources[number], .device = { WEFT_CPU, 0 }, .ndim = 1,
		.dtype = { WEFT_UINT, 8, 1 }, .shape = &shape,
	};

	*t = (struct trip){ .source = staying.sources[number], .source_bytes = (size_t)shape };
	wf_world_fill(t->source, t->source_bytes, step + number);
	while (wf_nth_again(weft_send(peer, step, key, strlen(key), &tensor, &options, &t->op)))
		;
}

/* Tensors that were sent well, and neither were told nor have failed. */
static unsigned missing(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < STAYING; i++)
		count += staying.sends[i].status == WEFT_OK && !staying.told[i];
	return count > staying.failed ? count - staying.failed : 0;
}

static bool staying_is_over(void *none)
{
	(void)none;
	return staying.receive.outcomes ||
	       (all_ended(&(struct trips){ staying.sends, STAYING }) && !missing());
}

static uint64_t peers_lost(void)
{
	return wf_world_count(0).peers_lost + wf_world_count(1).peers_lost;
}

/*
 * A receive for which there is no memory ends, and what has come waits for the next.  Returns false
 * when a tensor is lost, which may be only with its peer.
 */
static bool tell_all(void)
{
	unsigned tries = 0;

	while (wf_world_run(staying_is_over, NULL, DEADLINE_NS + 2 * S)) {
		const struct trip *t = &staying.receive;

		if (!t->outcomes)
			return true;
		if (t->status == WEFT_CANCELLED || t->status == WEFT_DEADLINE_EXCEEDED)
			fail_msg("a receive that stays ends with %s: %s", weft_status_name(t->status),
				 weft_op_message(t->op));
		if (!wf_nth_failed() || !weft_op_message(t->op)[0] || tries++ > wf_nth_row())
			fail_msg("a receive does not stay: %s", weft_op_message(t->op));
		weft_op_free(t->op);
		begin_staying(back);
	}
	return false;
}

static bool stay(void)
{
	uint64_t lost = peers_lost();
	bool well;

	step += STAYING;
	memset(staying.told, 0, sizeof(staying.told));
	staying.failed = 0;
	begin_staying(back);
	for (unsigned i = 0; i < STAYING; i++)
		send_with_key(i, "key");
	if (!tell_all() && peers_lost() == lost)
		fail_msg("%u tensors are lost", missing());
	weft_cancel(staying.receive.op);
	well = land(staying.sends, STAYING) & land(&staying.receive, 1);
	for (unsigned i = 0; i < STAYING; i++)
		well &= staying.told[i] == 1;
	free_all(staying.sends, STAYING);
	free_all(&staying.receive, 1);
	while (wf_nth_again(weft_step_end(wf_world_node(1), step)))
		;
	step += STAYING;
	return well;
}

/* A set of receives for the same tensors, each under a key of its own. */

static struct trip set;
static unsigned items_told[STAYING];
static const char *const item_keys[STAYING] = { "a", "b", "c" };

static void item_told(void *arg, struct weft_op *op, size_t index)
{
	const struct weft_tensor *t = weft_op_tensor(weft_recv_set_item(op, index), NULL);

	(void)arg;
	assert_int_equal(set.outcomes, 0);
	items_told[index]++;
	if (!t)
		return;
	assert_int_equal(t->shape[0], staying_bytes((unsigned)index));
	assert_true(wf_world_is_filled(t->data, (size_t)t->shape[0], step + index));
}

static void begin_set(struct weft_peer *from)
{
	struct weft_recv_set_options options = WEFT_RECV_SET_OPTIONS_INIT;
	struct weft_recv_item items[STAYING] = { { 0 } };

	set = (struct trip){ 0 };
	memset(items_told, 0, sizeof(items_told));
	for (unsigned i = 0; i < STAYING; i++)
		items[i] = (struct weft_recv_item){ .key = item_keys[i], .key_bytes = 1 };
	options.op = options_of(&set);
	options.each = item_told;
	while (wf_nth_again(weft_recv_set(wf_world_node(1), from, step, items, STAYING, &options, &set.op)))
		;
}

/* Have all ended, or has an item or a send failed, so that another one may wait for nothing? */
static bool set_is_over_or_broken(void *none)
{
	bool over = set.outcomes;

	(void)none;
	for (unsigned i = 0; i < STAYING; i++) {
		enum weft_status item = weft_op_status(weft_recv_set_item(set.op, i));

		if ((staying.sends[i].outcomes && staying.sends[i].status != WEFT_OK) ||
		    (item != WEFT_OK && item != WEFT_UNKNOWN))
			return true;
		over &= staying.sends[i].outcomes > 0;
	}
	return over;
}

/* The set ends well if all items do, and each was told once. */
static void check_set(void)
{
	bool all_well = true;

	for (unsigned i = 0; i < STAYING; i++) {
		assert_int_equal(items_told[i], 1);
		all_well &= weft_op_status(weft_recv_set_item(set.op, i)) == WEFT_OK;
	}
	assert_int_equal(set.status == WEFT_OK, all_well);
}

static bool get_set(void)
{
	bool well;

	step += STAYING;
	begin_set(back);
	for (unsigned i = 0; i < STAYING; i++)
		send_with_key(i, item_keys[i]);
	if (!wf_world_run(set_is_over_or_broken, NULL, DEADLINE_NS + 2 * S))
		fail_msg("a set does not end");
	wf_world_pass(50 * MS);
	for (unsigned i = 0; i < 2; i++)
		while (wf_nth_again(weft_step_end(wf_world_node(i), step)))
			;
	well = land(&set, 1) & land(staying.sends, STAYING);
	check_set();
	free_all(staying.sends, STAYING);
	free_all(&set, 1);
	step += STAYING;
	return well;
}

static bool do_call(size_t bytes, enum weft_status status)
{
	struct trip t = { .want = status };
	bool well;

	step++;
	call(&t, bytes);
	well = land(&t, 1);
	assert_int_equal(t.closures, 1);
	assert_int_equal(t.right, t.status == WEFT_OK);
	free_all(&t, 1);
	return well;
}

static bool call_nobody(void)
{
	return do_call(SMALL, WEFT_UNIMPLEMENTED);
}

static bool call_small(void)
{
	return do_call(SMALL, WEFT_OK);
}

static bool call_big(void)
{
	return do_call(BIG, WEFT_OK);
}

/* A stream, whose messages are said back: one in a frame, an empty one, one that is pulled. */
static const size_t said[] = { SMALL, 0, BIG };
#define SAID WF_COUNT(said)

struct talk {
	struct weft_stream *stream;
	struct trip all[1 + SAID + SAID + 1]; /* the call, writes, reads */
};

static void begin_talk(struct talk *talk)
{
	struct weft_call_options options = { .size = sizeof(options),
					     .op = options_of(&talk->all[0]) };
	Sim__Bytes message = SIM__BYTES__INIT;
	struct trip *t = &talk->all[1];

	wf_world_fill(want, BIG, ++step);
	while (wf_nth_again(weft_stream_open(stub, "Talk", &options, &talk->stream,
					     &talk->all[0].op)))
		;
	message.body.data = want;
	for (size_t i = 0; i < SAID; i++, t++) {
		options.op = options_of(t);
		message.body.len = said[i];
		while (wf_nth_again(weft_stream_write(talk->stream, &message.base, &options.op,
						      &t->op)))
			;
	}
}

/* Each read takes one message, if that can't be told, too. */
static bool is_said(const struct trip *t, size_t i)
{
	const Sim__Bytes *got = (const Sim__Bytes *)(const void *)weft_stream_message(t->op);

	if (i == SAID)
		return !got;
	return got && got->body.len == said[i] &&
	       (!said[i] || !memcmp(got->body.data, want, said[i]));
}

static bool talk(void)
{
	struct talk talk = { 0 };
	struct trip *reads = &talk.all[1 + SAID];
	bool well;

	begin_talk(&talk);
	while (wf_nth_again(weft_stream_half_close(talk.stream)))
		;
	for (size_t i = 0; i <= SAID; i++) {
		struct weft_op_options options = options_of(&reads[i]);

		while (wf_nth_again(weft_stream_read(talk.stream, &options, &reads[i].op)))
			;
	}
	well = land(talk.all, WF_COUNT(talk.all));
	for (size_t i = 0; i <= SAID; i++)
		assert_true(reads[i].status != WEFT_OK || is_said(&reads[i], i));
	weft_stream_close(talk.stream);
	free_all(talk.all, WF_COUNT(talk.all));
	return well;
}

/* A call with tensors beside its request, one of them gathered, and one beside its reply. */
enum { CALL, SHORT, GATHERED, RECEIVED_SHORT, RECEIVED_GATHERED, REPLIED, RECEIVED, TRIPS };

static void *served; /* the call, as its handler knows it */

static void keep_call(unsigned number, void *call)
{
	(void)number;
	served = call;
}

static struct weft_send_options attaching(struct trip *t)
{
	return (struct weft_send_options){ .size = sizeof(struct weft_send_options),
					   .op = options_of(t) };
}

static struct weft_recv_options receiving(struct trip *t)
{
	return (struct weft_recv_options){ .size = sizeof(struct weft_recv_options),
					   .op = options_of(t) };
}

static void begin_attached(struct trip *all)
{
	struct weft_send_options shorter = attaching(&all[SHORT]), longer = attaching(&all[GATHERED]);
	struct weft_call_options options = { .size = sizeof(options), .op = options_of(&all[CALL]) };
	int64_t shape[2] = { 2, SMALL / 2 }, strides[2] = { BIG / 2, 1 };
	struct weft_tensor tensor = {
		.data = want, .device = { WEFT_CPU, 0 }, .ndim = 2,
		.dtype = { WEFT_UINT, 8, 1 }, .shape = shape,
	};
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;

	wf_world_fill(want, BIG, ++step);
	while (wf_nth_again(weft_call_open(stub, &options, &service, &all[CALL].op)))
		;
	while (wf_nth_again(weft_call_attach(all[CALL].op, &tensor, &shorter, &all[SHORT].op)))
		;
	/* All but the end of each row. */
	shape[1] = BIG / 2 - 1;
	tensor.strides = strides;
	while (wf_nth_again(weft_call_attach(all[CALL].op, &tensor, &longer, &all[GATHERED].op)))
		;
	sim__mirror__reflect(service, &question, answered, &all[CALL]);
}

static void receive_both(struct trip *all)
{
	for (unsigned i = 0; i < 2; i++) {
		struct trip *t = &all[RECEIVED_SHORT + i];
		struct weft_recv_options options = receiving(t);

		while (wf_nth_again(weft_served_receive(served, i, NULL, &options, &t->op)))
			;
	}
}

static bool have_both(const struct trip *all)
{
	const struct weft_tensor *shorter = weft_op_tensor(all[RECEIVED_SHORT].op, NULL);
	const struct weft_tensor *longer = weft_op_tensor(all[RECEIVED_GATHERED].op, NULL);

	return shorter && !memcmp(shorter->data, want, SMALL) && longer &&
	       !memcmp(longer->data, want, BIG / 2 - 1);
}

static void answer_attached(struct trip *all)
{
	struct weft_send_options options = attaching(&all[REPLIED]);
	int64_t shape = BIG;
	struct weft_tensor tensor = {
		.data = want, .device = { WEFT_CPU, 0 }, .ndim = 1,
		.dtype = { WEFT_UINT, 8, 1 }, .shape = &shape,
	};
	void *call = served;

	served = NULL;
	if (!have_both(all)) {
		weft_served_fail(call, WEFT_ABORTED, "they are not there");
		return;
	}
	while (wf_nth_again(weft_served_attach(call, &tensor, &options, &all[REPLIED].op)))
		;
	wf_world_answer(call, want, 0);
}

/* Both ends do what they can; is all over that was begun? */
static bool attached_is_over(void *ctx)
{
	struct trip *all = ctx;

	if (served && !all[RECEIVED_SHORT].op)
		receive_both(all);
	if (served && all[RECEIVED_SHORT].outcomes && all[RECEIVED_GATHERED].outcomes)
		answer_attached(all);
	if (all[CALL].outcomes && all[CALL].status == WEFT_OK && !all[RECEIVED].op) {
		struct weft_recv_options options = receiving(&all[RECEIVED]);

		while (wf_nth_again(weft_op_receive(all[CALL].op, 0, NULL, &options,
						    &all[RECEIVED].op)))
			;
	}
	for (unsigned i = 0; i < TRIPS; i++)
		if (all[i].op && !all[i].outcomes)
			return false;
	return all[CALL].outcomes;
}

static bool attached(void)
{
	struct trip all[TRIPS] = { { 0 } };
	bool well = true;

	served = NULL;
	wf_world_on_request(keep_call);
	begin_attached(all);
	assert_true(wf_world_run(attached_is_over, all, 2 * DEADLINE_NS));
	for (unsigned i = 0; i < TRIPS; i++)
		well &= all[i].op && land(&all[i], 1);
	assert_true(!well || !memcmp(weft_op_tensor(all[RECEIVED].op, NULL)->data, want, BIG));
	assert_int_equal(all[CALL].closures, 1);
	wf_world_on_request(NULL);
	free_all(all, TRIPS);
	return well;
}

/*
 * A window of node 1, and what node 0 does with it: a get of several blocks, and puts with notes of
 * several blocks, of one, and of several in registered memory.
 */
enum { GOT, PUT, PUT_LISTED, PUT_ONE, NEXT, NEXT_ONE, NEXT_LISTED, ACCESSES };

static uint8_t opened[BIG]; /* the window's memory */
static uint8_t mine[2][BIG];

static struct weft_access_options accessing(struct trip *t, bool noted)
{
	return (struct weft_access_options){
		.size = sizeof(struct weft_access_options),
		.op = options_of(t),
		.flags = noted ? WEFT_NOTE : 0,
		.number = noted ? 7 : 0,
		.note = noted ? "note" : NULL,
		.note_bytes = noted ? 4 : 0,
	};
}

static void begin_get(struct trip *t, struct weft_remote *remote)
{
	const struct weft_block blocks[] = {
		{ mine[0], BIG / 2, BIG / 4 }, { mine[0] + BIG / 2, 3, SMALL },
	};
	struct weft_access_options options = accessing(t, false);

	memset(mine[0], CANARY, BIG);
	while (wf_nth_again(weft_get(remote, blocks, WF_COUNT(blocks), &options, &t->op)))
		;
}

static void begin_put(struct trip *t, struct weft_remote *remote, unsigned count)
{
	const struct weft_block blocks[] = {
		{ mine[1] + 5, 0, MIDDLE }, { mine[1] + BIG / 2, BIG / 2, SMALL },
		{ mine[1] + BIG / 4, BIG / 4 * 3, SMALL },
	};
	struct weft_access_options options = accessing(t, true);

	while (wf_nth_again(weft_put(remote, blocks, count, &options, &t->op)))
		;
}

static void begin_next(struct trip *t, struct weft_window *window)
{
	struct weft_op_options options = options_of(t);

	/* A note may not come, if its put has failed. */
	options.timeout_ns = S;
	while (wf_nth_again(weft_window_next(window, &options, &t->op)))
		;
}

static bool has_note(const struct trip *t)
{
	const struct weft_note *note = weft_op_note(t->op);

	return note && note->number == 7 && note->bytes == 4 && !memcmp(note->data, "note", 4) &&
	       weft_op_peer(t->op);
}

/* Has each of the notes come that were sent, if no put has failed? */
static bool have_notes(const struct trip *all)
{
	unsigned came = 0;

	for (unsigned i = NEXT; i < ACCESSES; i++) {
		assert_int_equal(all[i].status == WEFT_OK, has_note(&all[i]));
		came += all[i].status == WEFT_OK;
	}
	return came == 3;
}

/* Wait for all.  A note may be missing because of a put that has failed, until the time is over. */
static bool land_accesses(struct trip *all)
{
	bool well = land(all, NEXT);

	for (unsigned i = NEXT; i < ACCESSES; i++) {
		struct trips one = { &all[i], 1 };

		assert_true(wf_world_run(all_ended, &one, 2 * S));
		assert_true(well || wf_nth_failed());
		if (all[i].status != WEFT_OK)
			well = false;
	}
	return well && have_notes(all);
}

static struct weft_window *open_window(struct weft_remote **remote)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	struct weft_window *window;

	wf_world_fill(opened, BIG, ++step);
	wf_world_fill(mine[1], BIG, step + 1);
	while (wf_nth_again(weft_window_open(wf_world_node(1), opened, BIG,
					     WEFT_WINDOW_READ | WEFT_WINDOW_WRITE, &window)))
		;
	assert_int_equal(weft_window_describe(window, descriptor, &bytes), 0);
	while (wf_nth_again(weft_window_import(peer, descriptor, bytes, remote)))
		;
	return window;
}

/* Let both nodes want checksums, or not, from now on, over the link that they have, too. */
static void want_sums(bool wanted)
{
	for (unsigned i = 0; i < 2; i++) {
		struct weft_node *node = wf_world_node(i);
		struct wf_engine *engine = &node->workers[0].engine;

		node->terms.checksum = wanted;
		engine->options.checksum = wanted;
		WF_LIST_EACH(at, &engine->link_list)
			WF_CONTAINER(at, struct wf_link, node)->peer->checksum = wanted;
	}
}

static bool use_window(void)
{
	struct trip all[ACCESSES] = { { 0 } };
	struct weft_region *region;
	struct weft_window *window;
	struct weft_remote *remote;
	bool well;

	window = open_window(&remote);
	for (unsigned i = NEXT; i < ACCESSES; i++)
		begin_next(&all[i], window);
	begin_get(&all[GOT], remote);
	well = land(&all[GOT], 1);
	if (all[GOT].status == WEFT_OK) {
		assert_same_content(mine[0], opened + BIG / 2, BIG / 4);
		assert_same_content(mine[0] + BIG / 2, opened + 3, SMALL);
	}
	begin_put(&all[PUT], remote, 3);
	begin_put(&all[PUT_ONE], remote, 1);
	well &= land(&all[PUT], 1) & land(&all[PUT_ONE], 1);
	while (wf_nth_again(weft_register(wf_world_node(0), mine[1], BIG, &region)))
		;
	begin_put(&all[PUT_LISTED], remote, 3);
	well &= land_accesses(all);
	assert_int_equal(weft_unregister(region), 0);
	if (all[PUT_LISTED].status == WEFT_OK) {
		assert_same_content(opened, mine[1] + 5, MIDDLE);
		assert_same_content(opened + BIG / 2, mine[1] + BIG / 2, SMALL);
		assert_same_content(opened + BIG / 4 * 3, mine[1] + BIG / 4, SMALL);
	}
	weft_remote_close(remote);
	while (wf_nth_again(weft_window_close(window)))
		;
	free_all(all, ACCESSES);
	return well;
}

/* Without checksums a window is lent as a whole, and the blocks of registered memory are a list. */
static bool use_window_without_sums(void)
{
	bool well;

	want_sums(false);
	well = use_window();
	want_sums(true);
	return well;
}

/* What is cancelled in each state: offered, waiting, called. */
static bool cancel_all(void)
{
	struct trip t[3] = { { 0 } };
	uint64_t begin_ns;
	bool well;

	wf_world_hold(1, true);
	step++;
	send(&t[0], BIG, 0, false);
	step++;
	receive(&t[1], NULL, SMALL, INTO_BUFFER, 0);
	call(&t[2], BIG);
	for (size_t i = 0; i < 3; i++)
		t[i].want = WEFT_CANCELLED;
	wf_world_pass(3 * MS);
	begin_ns = wf_clock_now();
	for (size_t i = 0; i < 3; i++)
		weft_cancel(t[i].op);
	well = land(t, 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(t[i].ended_ns <= begin_ns + 2 * S);
	wf_world_hold(1, false);
	free_all(t, 3);
	return well;
}

/* What waits on the other node, and what is begun later, ends with the step. */
static bool abort_step(void)
{
	struct trip t[2] = { { 0 } };
	bool well;

	/* Only who is connected hears of it. */
	if (!ping())
		return false;
	step++;
	receive(&t[0], back, SMALL, INTO_BUFFER, 0);
	while (wf_nth_again(weft_step_abort(wf_world_node(0), step, WEFT_ABORTED, "enough")))
		;
	send(&t[1], SMALL, 0, false);
	t[0].want = t[1].want = WEFT_ABORTED;
	well = land(t, 2);
	free_all(t, 2);
	while (wf_nth_again(weft_step_end(wf_world_node(0), step)))
		;
	while (wf_nth_again(weft_step_end(wf_world_node(1), step)))
		;
	return well;
}

static bool look(void)
{
	struct weft_info *info;

	while (wf_nth_again(weft_info_open(NULL, &info)))
		;
	assert_true(weft_info_count(info) > 0);
	weft_info_close(info);
	return true;
}

static bool dump(void)
{
	FILE *nowhere = fopen("/dev/null", "w");

	assert_non_null(nowhere);
	while (wf_nth_again(weft_dump(wf_world_node(0), nowhere)))
		;
	assert_int_equal(fclose(nowhere), 0);
	return true;
}

/* The script. */

static void open_nodes(enum wf_world_shape shape)
{
	/* A connected rail as tcp's, a shared one as efa's, which has to register what it sends. */
	const struct wf_fake fake = {
		.seed = 1, .delay_min_ns = 5 * WF_NS_PER_US, .delay_max_ns = 50 * WF_NS_PER_US,
		.mr_mode = shape == WF_WORLD_SHARED ? FI_MR_LOCAL | FI_MR_VIRT_ADDR : 0,
		.veto = wf_nth_veto,
	};
	unsigned number, failed = 0;

	wf_world_lose_soon();
	setenv("WEFT_SLOTS", "24", 1);
	setenv("WEFT_CHUNK_BYTES", "64K", 1);
	setenv("WEFT_CHECKSUM", "yes", 1);
	wf_world_open(shape, 0, &fake);
	for (unsigned i = 0; i < 2; i++)
		while (wf_nth_again(wf_world_try_add(&number)))
			failed++;
	/* A node that lacks a descriptor does not open, unless it can do without that one. */
	if (wf_nth_kind() == WF_NTH_FILE && wf_nth_row() == 1)
		assert_true(failed <= wf_nth_failed());
	while (wf_nth_again(weft_peer_open(wf_world_node(0), weft_node_address(wf_world_node(1)), &peer)))
		;
	while (wf_nth_again(weft_peer_open(wf_world_node(1), weft_node_address(wf_world_node(0)), &back)))
		;
	while (wf_nth_again(weft_stub_open(peer, &sim__mirror__descriptor, &stub)))
		;
}

/* One node leaves with work under way, then the other: all of it ends. */
static void close_nodes(void)
{
	struct trip t[5] = { { 0 } }, accesses[ACCESSES] = { { 0 } };
	struct talk unread = { 0 };
	struct weft_remote *remote;

	begin_next(&accesses[NEXT], open_window(&remote));
	begin_get(&accesses[GOT], remote);
	begin_put(&accesses[PUT], remote, 3);
	begin_talk(&unread);
	wf_world_pass(5 * MS);
	wf_world_hold(1, true);
	step++;
	send(&t[0], BIG, 0, false);
	step++;
	receive(&t[1], back, SMALL, INTO_BUFFER, 0);
	step++;
	receive(&t[2], NULL, SMALL, INTO_BUFFER, 0);
	begin_staying(NULL);
	begin_set(NULL);
	call(&t[3], BIG);
	wf_world_pass(3 * MS);
	weft_stub_close(stub);
	wf_world_leave(0);
	assert_int_equal(t[0].outcomes, 1);
	assert_int_equal(t[3].outcomes, 1);
	assert_int_equal(accesses[GOT].outcomes, 1);
	assert_int_equal(accesses[PUT].outcomes, 1);
	for (size_t i = 0; i < 1 + SAID; i++)
		assert_int_equal(unread.all[i].outcomes, 1);
	weft_stream_close(unread.stream);
	free_all(unread.all, 1 + SAID);
	wf_world_pass(2 * S);
	assert_int_equal(t[1].outcomes, 1);
	wf_world_leave(1);
	assert_int_equal(t[2].outcomes, 1);
	assert_int_equal(staying.receive.outcomes, 1);
	assert_int_equal(set.outcomes, 1);
	assert_int_equal(accesses[NEXT].outcomes, 1);
	free_all(t, 4);
	free_all(&staying.receive, 1);
	free_all(&set, 1);
	free_all(accesses, ACCESSES);
	assert_int_equal(wf_world_close(), 0);
}

static void run_script(unsigned shape)
{
	static bool (*const attempts[])(void) = {
		/* The receive that stays comes first, for later ones find memory of earlier operations. */
		ping, stay, get_set, carry_eager, carry_eager_late, carry_pulled, carry_pulled_late,
		carry_snapshot, carry_shared, carry_any_key, carry_any_key_late, call_small, call_big, talk, attached, use_window,
		use_window_without_sums, cancel_all, abort_step,
		look, dump, ping,
	};

	open_nodes((enum wf_world_shape)shape);
	wf_nth_try(call_nobody);
	while (wf_nth_again(wf_world_try_serve(1)))
		;
	for (size_t i = 0; i < WF_COUNT(attempts); i++)
		wf_nth_try(attempts[i]);
	/* It is long, and nothing of it is a matter of the rail. */
	if (shape == WF_WORLD_CONNECTED)
		wf_nth_try(carry_pieces);
	close_nodes();
}

static const char *const shapes[] = { "connected", "shared", "same-host", NULL };
static const struct wf_nth_script script = { "test_nth", shapes, { 1, 12, 40 }, run_script };

/* Runs. */

static void memory_fails_on_a_connected_rail(void **state)
{
	(void)state;
	wf_nth_each(&script, WF_WORLD_CONNECTED, WF_NTH_MEMORY);
}

static void memory_fails_on_a_shared_rail(void **state)
{
	(void)state;
	wf_nth_each(&script, WF_WORLD_SHARED, WF_NTH_MEMORY);
}

static void memory_fails_on_one_host(void **state)
{
	(void)state;
	wf_nth_each(&script, WF_WORLD_SAME_HOST, WF_NTH_MEMORY);
}

static void the_fabric_fails_on_a_connected_rail(void **state)
{
	(void)state;
	wf_nth_each(&script, WF_WORLD_CONNECTED, WF_NTH_FABRIC);
}

static void the_fabric_fails_on_a_shared_rail(void **state)
{
	(void)state;
	wf_nth_each(&script, WF_WORLD_SHARED, WF_NTH_FABRIC);
}

static void the_fabric_fails_on_one_host(void **state)
{
	(void)state;
	wf_nth_each(&script, WF_WORLD_SAME_HOST, WF_NTH_FABRIC);
}

static void descriptors_fail(void **state)
{
	(void)state;
	wf_nth_each(&script, WF_WORLD_CONNECTED, WF_NTH_FILE);
	wf_nth_each(&script, WF_WORLD_SAME_HOST, WF_NTH_FILE);
}

/* A rail that never takes a frame again is given up, and its own sentence is told. */

static const char *refused; /* names of calls */

static int veto(const char *call)
{
	return refused && strstr(refused, call) ? -EIO : 0;
}

static void give_up_a_rail(const char *calls, bool connected, const char *sentence)
{
	const struct wf_fake fake = { .seed = 1, .mr_mode = FI_MR_LOCAL, .veto = veto };
	struct trip t = { 0 };
	struct weft_op_options options = options_of(&t);

	refused = NULL;
	wf_world_open(WF_WORLD_SHARED, 2, &fake);
	if (connected)
		wf_world_connect(0, 1);
	refused = calls;
	assert_int_equal(weft_ping(wf_world_peer(0, 1), &options, &t.op), 0);
	assert_true(wf_world_run(all_ended, &(struct trips){ &t, 1 }, 2 * DEADLINE_NS));
	assert_int_equal(t.status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_op_message(t.op), sentence));
	assert_true(t.ended_ns < t.begun_ns + DEADLINE_NS);
	weft_op_free(t.op);
	refused = NULL;
	wf_world_connect(0, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void a_rail_that_registers_no_frames_is_given_up(void **state)
{
	(void)state;
	if (!wf_nth_is_child())
		give_up_a_rail("fi_mr_reg", false, "registering");
}

static void a_rail_that_sends_no_frames_is_given_up(void **state)
{
	(void)state;
	if (!wf_nth_is_child())
		give_up_a_rail("fi_send fi_inject", true, "it refuses a frame");
}

/* A body is given back although a part of its record is out and there is no memory to copy the rest, as soon as there is. */
static void a_record_half_sent_is_left_when_memory_comes_back(void **state)
{
	static struct trip trips[20];
	const struct wf_nth_fault fault = { .kind = WF_NTH_MEMORY, .first = 1, .count = 1 };

	(void)state;
	if (wf_nth_is_child())
		return;
	setenv("WEFT_SLOTS", "24", 1);
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	peer = wf_world_peer(0, 1);
	/* With nobody to take them they fill the window, in the middle of one. */
	wf_world_freeze(1, true);
	for (size_t i = 0; i < WF_COUNT(trips); i++) {
		step++;
		send(&trips[i], MIDDLE, 0, false);
	}
	wf_world_pass(10 * MS);
	for (size_t i = WF_COUNT(trips); i--;) {
		wf_nth_fail(&fault);
		weft_cancel(trips[i].op);
	}
	wf_world_pass(20 * MS);
	assert_true(all_ended(&(struct trips){ trips, WF_COUNT(trips) }));
	wf_world_freeze(1, false);
	wf_world_pass(S);
	free_all(trips, WF_COUNT(trips));
	assert_int_equal(wf_world_close(), 0);
}

static void *kept[40];
static size_t kept_count;

static void keep_all(unsigned number, void *call)
{
	(void)number;
	kept[kept_count++] = call;
}

static bool all_are_kept(void *ctx)
{
	(void)ctx;
	return kept_count == WF_COUNT(kept);
}

/* More calls fail at once than there are heads to reuse, and a head takes memory. */
static void callers_hear_of_failures_when_memory_comes_back(void **state)
{
	static struct trip trips[WF_COUNT(kept)];
	const struct wf_nth_fault none_left = { .kind = WF_NTH_MEMORY, .first = 1, .count = UINT64_MAX };
	const struct wf_nth_fault nothing = { .kind = WF_NTH_MEMORY };

	(void)state;
	if (wf_nth_is_child())
		return;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_on_request(keep_all);
	peer = wf_world_peer(0, 1);
	assert_int_equal(weft_stub_open(peer, &sim__mirror__descriptor, &stub), 0);
	for (size_t i = 0; i < WF_COUNT(trips); i++)
		call(&trips[i], SMALL);
	assert_true(wf_world_run(all_are_kept, NULL, S));
	wf_nth_fail(&none_left);
	for (size_t i = 0; i < WF_COUNT(kept); i++)
		weft_served_fail(kept[i], WEFT_ABORTED, "as the test wants");
	wf_world_pass(20 * MS);
	assert_false(all_ended(&(struct trips){ trips, WF_COUNT(trips) }));
	wf_nth_fail(&nothing);
	assert_true(wf_world_run(all_ended, &(struct trips){ trips, WF_COUNT(trips) }, S));
	for (size_t i = 0; i < WF_COUNT(trips); i++)
		assert_true(trips[i].status == WEFT_ABORTED ||
			    trips[i].status == WEFT_RESOURCE_EXHAUSTED);
	wf_world_on_request(NULL);
	free_all(trips, WF_COUNT(trips));
	weft_stub_close(stub);
	assert_int_equal(wf_world_close(), 0);
}

static void a_call_says_that_there_is_no_memory_for_its_request(void **state)
{
	const struct wf_nth_fault fault = { .kind = WF_NTH_MEMORY, .first = 1, .count = 1 };
	struct trip t = { 0 };
	struct weft_call_options options = { .size = sizeof(options), .op = options_of(&t) };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;

	(void)state;
	if (wf_nth_is_child())
		return;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	peer = wf_world_peer(0, 1);
	assert_int_equal(weft_stub_open(peer, &sim__mirror__descriptor, &stub), 0);
	question.body.data = want;
	question.body.len = SMALL;
	assert_int_equal(weft_call_open(stub, &options, &service, &t.op), 0);
	wf_nth_fail(&fault);
	sim__mirror__reflect(service, &question, answered, &t);
	assert_true(wf_world_run(all_ended, &(struct trips){ &t, 1 }, S));
	assert_int_equal(t.status, WEFT_RESOURCE_EXHAUSTED);
	assert_string_equal(weft_op_message(t.op), "no memory for a request of 102 bytes");
	free_all(&t, 1);
	weft_stub_close(stub);
	assert_int_equal(wf_world_close(), 0);
}

/* No memory is left from one allocation on, for a while. */
static void run_out(bool summed, uint64_t first)
{
	const struct wf_nth_fault none_left = { .kind = WF_NTH_MEMORY, .first = first, .count = UINT64_MAX };
	const struct wf_nth_fault nothing = { .kind = WF_NTH_MEMORY };
	struct trip all[2] = { { 0 } };
	struct weft_window *window;
	struct weft_remote *remote;

	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	peer = wf_world_peer(0, 1);
	want_sums(summed);
	window = open_window(&remote);
	begin_get(&all[0], remote);
	begin_put(&all[1], remote, 3);
	wf_nth_fail(&none_left);
	wf_world_pass(20 * MS);
	wf_nth_fail(&nothing);
	assert_true(wf_world_run(all_ended, &(struct trips){ all, 2 }, 2 * S));
	weft_remote_close(remote);
	assert_int_equal(weft_window_close(window), 0);
	free_all(all, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void gets_and_puts_end_when_memory_comes_back(void **state)
{
	(void)state;
	for (uint64_t first = 1; first <= 30 && !wf_nth_is_child(); first++) {
		run_out(false, first);
		run_out(true, first);
	}
}

static bool reads_wait;

static int put_reads_off(const char *call)
{
	return reads_wait && !strcmp(call, "fi_read") ? -FI_EAGAIN : 0;
}

/*
 * Cancel a receive amid its pull, where allocation @nth has failed since the send, and receive the
 * tensor again.  Is it gone, for want of memory to keep it?
 */
static bool cancel_amid_pull(uint64_t nth)
{
	const struct wf_nth_fault fault = { .kind = WF_NTH_MEMORY, .first = nth, .count = 1 };
	struct trip t[3] = { { 0 } };
	bool failed, gone;

	step++;
	receive(&t[0], NULL, BIG, INTO_BUFFER, 0);
	wf_world_pass(MS);
	reads_wait = true;
	wf_nth_fail(&fault);
	send(&t[1], BIG, 0, false);
	wf_world_pass(20 * MS);
	failed = is_over(&t[0]) || is_over(&t[1]);
	weft_cancel(t[0].op);
	wf_world_pass(MS);
	reads_wait = false;
	receive(&t[2], NULL, BIG, INTO_BUFFER, 0);
	assert_true(wf_world_run(all_ended, &(struct trips){ t, 2 }, 2 * S));
	wf_world_pass(MS);
	gone = !failed && !is_over(&t[2]);
	weft_cancel(t[2].op);
	assert_true(wf_world_run(all_ended, &(struct trips){ t, 3 }, 2 * S));
	free_all(t, 3);
	return gone;
}

static void the_sender_hears_at_once_of_a_receive_that_could_not_keep_its_tensor(void **state)
{
	unsigned gone = 0;

	(void)state;
	if (wf_nth_is_child())
		return;
	wf_world_open(WF_WORLD_CONNECTED, 2, &(struct wf_fake){ .seed = 1, .veto = put_reads_off });
	wf_world_connect(0, 1);
	peer = wf_world_peer(0, 1);
	for (uint64_t nth = 1; nth <= 20; nth++)
		gone += cancel_amid_pull(nth);
	assert_int_not_equal(gone, 0);
	assert_int_equal(wf_world_close(), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_fails_on_a_connected_rail),
		cmocka_unit_test(memory_fails_on_a_shared_rail),
		cmocka_unit_test(memory_fails_on_one_host),
		cmocka_unit_test(the_fabric_fails_on_a_connected_rail),
		cmocka_unit_test(the_fabric_fails_on_a_shared_rail),
		cmocka_unit_test(the_fabric_fails_on_one_host),
		cmocka_unit_test(descriptors_fail),
		cmocka_unit_test(a_rail_that_registers_no_frames_is_given_up),
		cmocka_unit_test(a_rail_that_sends_no_frames_is_given_up),
		cmocka_unit_test(a_record_half_sent_is_left_when_memory_comes_back),
		cmocka_unit_test(callers_hear_of_failures_when_memory_comes_back),
		cmocka_unit_test(a_call_says_that_there_is_no_memory_for_its_request),
		cmocka_unit_test(gets_and_puts_end_when_memory_comes_back),
		cmocka_unit_test(
			the_sender_hears_at_once_of_a_receive_that_could_not_keep_its_tensor),
	};

	if (argc == 6) {
		wf_nth_once(&script, argv);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
