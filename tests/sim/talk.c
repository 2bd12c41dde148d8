/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/talk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/chance.h"
#include "tests/sim/faults.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/traffic.h"
#include "util/clock.h"
#include "util/list.h"

#define MS WF_NS_PER_MS
#define RETRY_NS MS /* after memory was missing for a read */

/* A server's end. */
struct server {
	struct wf_list node; /* in servers */
	struct wf_leg *leg;
	struct weft_stream *stream;
	unsigned number, life; /* of its node */
	unsigned writing;      /* writes under way */
	bool asking;           /* a read is */
	bool enough;           /* it has read what it wants */
	bool doomed;           /* something went wrong */
	bool finished;
};

static struct wf_list servers = { &servers, &servers };

/* The plan. */

static unsigned some_messages(size_t bytes)
{
	if (wf_chance_in_100(15))
		return 0;
	if (bytes > 20 * KIB)
		return 1 + (unsigned)wf_chance_below(5);
	return 1 + (unsigned)wf_chance_below(wf_chance_in_100(70) ? 10 : 150);
}

static uint64_t some_wait_ns(void)
{
	return wf_chance_in_100(60) ? 0 : wf_chance_below(100 * MS);
}

void wf_talk_plan(struct wf_leg *leg)
{
	struct wf_talk *t = &leg->talk;

	*t = (struct wf_talk){ .up_bytes = wf_traffic_some_bytes(),
			       .down_bytes = wf_traffic_some_bytes() };
	t->up = some_messages(t->up_bytes);
	t->down = some_messages(t->down_bytes);
	t->asks = t->up + 1;
	t->unwatched = wf_chance_in_100(30);
	t->listen_ns = leg->begin_ns + some_wait_ns();
	t->ask_ns = leg->begin_ns + some_wait_ns();
	if (wf_chance_in_100(15))
		t->asks = (unsigned)wf_chance_below(t->up + 2);
	t->fails = wf_chance_in_100(10);
	if (wf_chance_in_100(10))
		t->close_ns = leg->begin_ns + wf_chance_below(200 * MS);
	if (wf_chance_in_100(20))
		t->read_limit_ns = MS + wf_chance_below(20 * MS);
	leg->group->lonely |= t->asks <= t->up || t->fails || t->close_ns;
}

/* Messages: how long each is, and what it has, follows from its number. */

static size_t bytes_of(uint64_t seed, unsigned at, size_t most)
{
	return (size_t)((seed >> 20) + at * UINT64_C(2654435761)) % (most + 1);
}

/* As it is written; freed by the caller.  @data: what it points to. */
static Sim__Bytes make_message(uint64_t seed, unsigned at, size_t most, uint8_t **data)
{
	Sim__Bytes m = SIM__BYTES__INIT;

	m.body.len = bytes_of(seed, at, most);
	*data = malloc(m.body.len + 1);
	assert_non_null(*data);
	wf_world_fill(*data, m.body.len, seed + at);
	m.body.data = *data;
	return m;
}

static int write_message(struct weft_stream *stream, uint64_t seed, unsigned at, size_t most,
			 const struct weft_op_options *options, struct weft_op **op)
{
	uint8_t *data;
	Sim__Bytes m = make_message(seed, at, most, &data);
	int err = weft_stream_write(stream, &m.base, options, op);

	free(data);
	return err;
}

static void check_message(const struct wf_leg *leg, const char *who, const struct weft_op *op,
			  uint64_t seed, unsigned at, size_t most, unsigned count)
{
	const Sim__Bytes *m = (const Sim__Bytes *)(const void *)weft_stream_message(op);

	if (at >= count || m->body.len != bytes_of(seed, at, most) ||
	    !wf_world_is_filled(m->body.data, m->body.len, seed + at))
		fail_msg("the %s of stream %llu reads something else as message %u of %u", who,
			 (unsigned long long)leg->group->step, at, count);
}

/* The server. */

static void finish(struct server *s)
{
	const struct wf_talk *t = &s->leg->talk;

	s->finished = true;
	if (s->doomed)
		weft_stream_finish(s->stream, WEFT_CANCELLED, "the server can't go on");
	else
		weft_stream_finish(s->stream, t->fails ? WEFT_ABORTED : WEFT_OK,
				   "as the test wants");
}

/* It ends when it has read enough and received what came beside that, and is forgotten when its operations have ended too. */
static void settle(struct server *s)
{
	const struct wf_leg *leg = s->leg;
	bool received = leg->cargo.hasty || wf_cargo_is_received(leg->cargo.up, leg->talk.up);

	if (!s->finished && ((s->enough && received) || s->doomed))
		finish(s);
	if (!s->finished || s->writing || s->asking)
		return;
	wf_list_remove(&s->node);
	free(s);
}

/* A read that brought message @at. */
static void keep_or_free(struct wf_load *loads, unsigned at, struct weft_op *read)
{
	if (loads)
		wf_cargo_came(&loads[at], read);
	else
		weft_op_free(read);
}

static void ask(struct server *s);

static void asked(struct weft_op *op, void *arg)
{
	struct server *s = arg;
	struct wf_talk *t = &s->leg->talk;

	s->asking = false;
	if (s->finished) {
		/* It had finished before. */
	} else if (weft_op_status(op) != WEFT_OK) {
		s->doomed = true;
	} else if (weft_stream_message(op)) {
		check_message(s->leg, "server", op, s->leg->seed, t->asked++, t->up_bytes, t->up);
		s->enough = t->asked == t->asks;
		keep_or_free(s->leg->cargo.up, t->asked - 1, op);
		op = NULL;
	} else {
		if (t->asked != t->up)
			fail_msg("the server of stream %llu sees the end after %u of %u messages",
				 (unsigned long long)s->leg->group->step, t->asked, t->up);
		t->asked_end = s->enough = true;
	}
	weft_op_free(op);
	if (!s->finished && !s->enough && !s->doomed)
		ask(s);
	settle(s);
}

static void ask(struct server *s)
{
	struct weft_op_options options = { .size = sizeof(options), .done = asked, .arg = s };
	struct weft_op *op;

	s->doomed = weft_stream_read(s->stream, &options, &op) != 0;
	s->asking = !s->doomed;
}

static void answered(struct weft_op *op, void *arg)
{
	struct server *s = arg;

	s->writing--;
	s->doomed |= weft_op_status(op) != WEFT_OK;
	weft_op_free(op);
	settle(s);
}

static void answer(struct server *s)
{
	struct weft_op_options options = { .size = sizeof(options), .done = answered, .arg = s };
	const struct wf_berth berth = { .stream = s->stream };
	const struct wf_talk *t = &s->leg->talk;
	struct wf_load *loads = s->leg->cargo.down;
	struct weft_op *op;

	for (unsigned i = 0; i < t->down && !s->doomed; i++) {
		wf_cargo_attach(loads ? &loads[i] : NULL, &berth);
		s->doomed = write_message(s->stream, ~s->leg->seed, i, t->down_bytes,
					  t->unwatched ? NULL : &options,
					  t->unwatched ? NULL : &op) != 0;
		s->writing += !s->doomed && !t->unwatched;
	}
}

static void cancelled(void *arg)
{
	struct server *s = arg;

	if (s->finished)
		fail_msg("the server of stream %llu hears of its end, and had answered",
			 (unsigned long long)s->leg->group->step);
	s->doomed = true;
	settle(s);
}

static void serve(unsigned number, struct weft_stream *stream)
{
	void *call = weft_stream_served(stream);
	size_t count;
	const struct weft_metadata *pairs = weft_served_metadata(call, &count);
	struct server *s;

	/* No memory for them. */
	if (!pairs) {
		weft_stream_finish(stream, WEFT_RESOURCE_EXHAUSTED, "no metadata");
		return;
	}
	s = malloc(sizeof(*s));
	assert_non_null(s);
	*s = (struct server){ .stream = stream, .number = number,
			      .leg = wf_traffic_leg(strtoull(pairs[0].value, NULL, 10)),
			      .life = wf_faults_life(number) };
	assert_true(s->leg->kind == WF_LEG_STREAM && s->leg->peer == number);
	wf_list_append(&servers, &s->node);
	wf_faults_assert_serves(number, &s->leg->flight);
	s->leg->handled++;
	weft_served_on_cancel(call, cancelled, s);
	answer(s);
	s->enough = !s->leg->talk.asks;
	settle(s);
}

uint64_t wf_talk_serve(uint64_t now)
{
	uint64_t next = UINT64_MAX;

	wf_world_on_stream(serve);
	WF_LIST_EACH(node, &servers) {
		struct server *s = WF_CONTAINER(node, struct server, node);

		if (s->finished || s->asking || s->life != wf_faults_life(s->number) ||
		    wf_faults_is_away(s->number))
			continue;
		if (s->enough) {
			settle(s);
			continue;
		}
		if (s->leg->talk.ask_ns > now) {
			next = WF_MIN(next, s->leg->talk.ask_ns);
			continue;
		}
		ask(s);
		settle(s);
	}
	return next;
}

/* Those of nodes that closed while they were waiting. */
void wf_talk_forget_servers(void)
{
	struct wf_list *node;

	while ((node = wf_list_pop(&servers)))
		free(WF_CONTAINER(node, struct server, node));
}

/* The caller. */

static void let_go(struct wf_talk *t)
{
	weft_stream_close(t->stream);
	t->stream = NULL;
}

/* It can't go on. */
static void give_up(struct wf_leg *leg)
{
	leg->group->lonely = true;
	leg->talk.closed = true;
	let_go(&leg->talk);
}

static void write_all(struct wf_leg *leg)
{
	const struct wf_berth berth = { .stream = leg->talk.stream };
	struct wf_load *loads = leg->cargo.up;
	struct wf_talk *t = &leg->talk;

	for (; t->written < t->up; t->written++) {
		struct wf_flight *f = &t->writes[t->written];
		struct weft_op_options options = wf_flight_begin(f, 0);

		wf_cargo_attach(loads ? &loads[t->written] : NULL, &berth);
		if (write_message(t->stream, leg->seed, t->written, t->up_bytes, &options,
				  t->unwatched ? NULL : &f->op)) {
			give_up(leg);
			return;
		}
	}
	if (weft_stream_half_close(t->stream))
		give_up(leg);
}

int wf_talk_begin(struct wf_leg *leg)
{
	struct wf_talk *t = &leg->talk;
	char number[24];
	struct weft_metadata pair = { "leg", number, 0 };
	struct weft_call_options options = {
		.size = sizeof(options),
		.op = wf_flight_begin(&leg->flight, leg->limit_ns),
		.metadata = &pair,
		.metadata_count = 1,
	};
	int err;

	pair.bytes = (size_t)snprintf(number, sizeof(number), "%u", wf_traffic_number(leg));
	err = weft_stream_open(wf_world_stub(leg->node, leg->peer), "Talk", &options, &t->stream,
			       &leg->flight.op);
	if (err)
		return err;
	t->writes = calloc(t->up + 1, sizeof(*t->writes));
	assert_non_null(t->writes);
	write_all(leg);
	return 0;
}

static void listen(struct wf_leg *leg);

static void heard(struct weft_op *op, void *arg)
{
	struct wf_leg *leg = arg;
	struct wf_talk *t = &leg->talk;
	bool again = true;

	t->reading = false;
	if (weft_op_status(op) != WEFT_OK) {
		/* Its own time was over, and nothing is lost by that. */
		again = t->read_limit_ns && weft_op_status(op) == WEFT_DEADLINE_EXCEEDED &&
			(!leg->flight.outcomes ||
			 leg->flight.status != WEFT_DEADLINE_EXCEEDED);
		t->read_failed = !again;
	} else if (weft_stream_message(op)) {
		check_message(leg, "caller", op, ~leg->seed, t->heard++, t->down_bytes, t->down);
		keep_or_free(leg->cargo.down, t->heard - 1, op);
		op = NULL;
	} else {
		t->heard_end = true;
		again = false;
	}
	weft_op_free(op);
	if (again && t->stream)
		listen(leg);
}

static void listen(struct wf_leg *leg)
{
	struct wf_talk *t = &leg->talk;
	struct weft_op_options options = {
		.size = sizeof(options), .timeout_ns = t->read_limit_ns, .done = heard, .arg = leg,
	};
	struct weft_op *op;
	int err = weft_stream_read(t->stream, &options, &op);

	t->reading = !err;
	if (err && err != -ENOMEM)
		t->read_failed = true;
	if (err)
		t->listen_ns = wf_clock_now() + RETRY_NS;
}

static bool have_ended(const struct wf_talk *t)
{
	for (unsigned i = 0; i < t->written; i++)
		if (!t->writes[i].outcomes)
			return false;
	return !t->reading && (t->heard_end || t->read_failed || t->closed);
}

bool wf_talk_is_over(const struct wf_leg *leg)
{
	return leg->flight.outcomes && have_ended(&leg->talk) && !leg->talk.stream;
}

uint64_t wf_talk_run(struct wf_leg *leg, uint64_t now)
{
	struct wf_talk *t = &leg->talk;
	uint64_t next = UINT64_MAX;

	if (!t->stream)
		return next;
	if (t->close_ns && t->close_ns <= now) {
		wf_faults_strike_leg(WF_FAULT_CANCEL, leg);
		give_up(leg);
		return next;
	}
	if (t->close_ns)
		next = t->close_ns;
	if (!t->reading && !t->heard_end && !t->read_failed) {
		if (t->listen_ns > now)
			return WF_MIN(next, t->listen_ns);
		listen(leg);
	}
	if (leg->flight.outcomes && have_ended(t))
		let_go(t);
	return next;
}

void wf_talk_release(struct wf_leg *leg)
{
	struct wf_talk *t = &leg->talk;

	if (t->writes)
		wf_flight_free(t->writes, t->up);
}

void wf_talk_free(struct wf_leg *leg)
{
	let_go(&leg->talk);
	free(leg->talk.writes);
}
