/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/perf_client.h"

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tool/arrivals.h"
#include "tool/pattern.h"
#include "tool/perf.pb-c.h"
#include "tool/perf_run.h"

WEFT_STREAM_TYPES(flow, Weft__Perf__Body, Weft__Perf__BodyReport);

/* Limit of a join: a server answers at once, unless it waits for more callers. */
#define JOIN_NS 60000000000ull

/* Bodies to each server that are not timed: caches and TCP's windows settle in them. */
#define WARM_COUNT 8u

/*
 * The client stays awake so long before a body is due: a node sleeps for whole milliseconds, wakes
 * up to 50 us late, and needs 25 for that.
 */
#define AWAKE_NS 1200000ull

/* Empty looks at the wire before others are let run, some 200 ns each. */
#define LOOKS_COUNT 64u

/* Longest wait between two looks at signals. */
#define SLICE_NS 100000000ull

struct flow {
	struct weft_stream *stream;
	struct weft_op *op;
};

/* A server, and how many bodies of the run it has been sent. */
struct target {
	const char *address;
	struct weft_peer *peer;
	struct weft_stub *stub;
	struct flow flow;         /* stream of this run, if the test is of streams */
	struct flow *idle;        /* streams that stay idle */
	size_t idle_count;
	uint64_t next;            /* index of the next body */
};

/* A tensor of a body, or the bytes of a call or of a message of a stream. */
struct part {
	struct weft_op *send; /* NULL for the bytes of a call */
	void *memory;
	uint64_t bytes;
	int64_t shape;
};

enum slot_state {
	SLOT_FREE,      /* no body, or its end has been looked at */
	SLOT_UNDER_WAY,
	SLOT_ENDED      /* the receiver's word has come; only bodies with a due time get here */
};

/* A body on the way. */
struct slot {
	enum slot_state state;
	struct perf_client *client;
	struct target *target;
	struct part *parts;
	/* The receiver's word: its acknowledgement, the call, or a read; or NULL. */
	struct weft_op *word;
	int64_t ack_shape;
	uint64_t index;
	uint64_t start_ns; /* when it was sent; of a body with a due time, that time */
	struct perf_ack ack;
};

struct perf_client {
	const struct tool_command *command;
	struct weft_node *node;
	uint64_t number; /* number as a caller */
	uint64_t run;    /* number of the run */
	uint64_t wrong;  /* wrong bytes in this run; damaged ones are added at its end */
	bool check;      /* bodies of this run are compared */
	bool one_way;    /* bodies of this run are not acknowledged */
	struct histogram *latency; /* times of the bodies; NULL: bodies are not timed */
	struct perf_place place;   /* place of the parts */
	const struct perf_plan *plan;
	struct weft_path path;
	void *metadata;
	struct slot *slots;
	struct part *parts;
	size_t slot_count, part_count;
	size_t under_way;    /* bodies with a due time that have not ended */
	struct slot *failed; /* a body with a due time that has failed; NULL: none */
	unsigned looks;      /* looks at the wire, between due times, at which nothing had ended */
	size_t target_count;
	struct target targets[];
};

static uint64_t draw(void)
{
	uint64_t v;

	while (getrandom(&v, sizeof(v), 0) != sizeof(v))
		;
	return v;
}

static int failed(const struct perf_client *c, const struct target *t)
{
	return tool_fail(c->command, "%s: %s", t->address, weft_error());
}

/* Wait for @op.  TOOL_OK: it ended well. */
static int settle(const struct perf_client *c, const struct target *t, struct weft_op *op)
{
	int err = tool_wait(op);

	if (err == -EINTR)
		return TOOL_INTERRUPTED;
	if (err)
		return failed(c, t);
	if (weft_op_status(op) != WEFT_OK)
		return tool_ending() ? TOOL_INTERRUPTED
				     : tool_op_failed(c->command, op, t->address);
	return TOOL_OK;
}

/* Control calls */

static void got_nothing(const Weft__Perf__Nothing *reply, void *data)
{
	(void)reply; /* the operation's status says how the call went */
	(void)data;
}

static void got_report(const Weft__Perf__RunReport *reply, void *data)
{
	struct perf_client *c = data;

	if (!reply)
		return;
	c->path.copies += reply->copies;
	c->path.registered |= reply->registered;
	c->wrong += reply->damaged;
}

static void got_time(const Weft__Perf__Time *reply, void *data)
{
	if (reply)
		*(uint64_t *)data += reply->ns;
}

/* Begin a call with options.  Returns TOOL_OK or, after saying why, TOOL_FAILED. */
static int call_open_with(const struct perf_client *c, const struct target *t,
			  const struct weft_op_options *op_options, ProtobufCService **service,
			  struct weft_op **op)
{
	const struct weft_metadata pair = { "weft.perf-bin", c->metadata,
					    c->metadata ? c->plan->metadata_bytes : 0 };
	struct weft_call_options options = {
		.size = sizeof(options),
		.op = *op_options,
		.metadata = &pair,
		.metadata_count = c->metadata != NULL,
	};

	return weft_call_open(t->stub, &options, service, op) ? failed(c, t) : TOOL_OK;
}

static int call_open(const struct perf_client *c, const struct target *t, uint64_t timeout_ns,
		     ProtobufCService **service, struct weft_op **op)
{
	const struct weft_op_options options = { .size = sizeof(options),
						 .timeout_ns = timeout_ns };

	return call_open_with(c, t, &options, service, op);
}

static int call_close(const struct perf_client *c, const struct target *t, struct weft_op *op)
{
	int status = settle(c, t, op);

	tool_drop(op);
	return status;
}

static int join(struct perf_client *c, struct target *t)
{
	Weft__Perf__Caller request = WEFT__PERF__CALLER__INIT;
	ProtobufCService *service;
	struct weft_op *op;
	int status = call_open(c, t, JOIN_NS, &service, &op);

	if (status)
		return status;
	request.number = c->number;
	weft__perf__perf__join(service, &request, got_nothing, NULL);
	return call_close(c, t, op);
}

static int leave(struct perf_client *c, struct target *t)
{
	Weft__Perf__Caller request = WEFT__PERF__CALLER__INIT;
	ProtobufCService *service;
	struct weft_op *op;
	int status = call_open(c, t, 0, &service, &op);

	if (status)
		return status;
	request.number = c->number;
	weft__perf__perf__leave(service, &request, got_nothing, NULL);
	return call_close(c, t, op);
}

static int start(struct perf_client *c, struct target *t, unsigned window)
{
	Weft__Perf__Run request = WEFT__PERF__RUN__INIT;
	ProtobufCService *service;
	struct weft_op *op;
	int status = call_open(c, t, 0, &service, &op);

	if (status)
		return status;
	request.number = c->run;
	request.n_bytes = c->plan->part_count;
	request.bytes = (uint64_t *)c->plan->parts; /* packed, never written to */
	request.window = window;
	request.pool = c->plan->place.pool;
	request.cuda = c->plan->place.cuda;
	request.check = c->check;
	request.one_way = c->one_way;
	request.beside = c->plan->test == PERF_ATTACHMENT;
	weft__perf__perf__start(service, &request, got_nothing, NULL);
	return call_close(c, t, op);
}

static int end(struct perf_client *c, struct target *t)
{
	Weft__Perf__RunEnd request = WEFT__PERF__RUN_END__INIT;
	ProtobufCService *service;
	struct weft_op *op;
	int status = call_open(c, t, 0, &service, &op);

	if (status)
		return status;
	request.number = c->run;
	request.sent = t->next;
	weft__perf__perf__end(service, &request, got_report, c);
	return call_close(c, t, op);
}

static int ask_spent(struct perf_client *c, struct target *t, uint64_t *ns)
{
	Weft__Perf__Nothing request = WEFT__PERF__NOTHING__INIT;
	ProtobufCService *service;
	struct weft_op *op;
	int status = call_open(c, t, 0, &service, &op);

	if (status)
		return status;
	weft__perf__perf__spent(service, &request, got_time, ns);
	return call_close(c, t, op);
}

/* Open a stream without a deadline: a run of it may take long. */
static int flow_open(struct perf_client *c, struct target *t, struct flow *flow)
{
	struct weft_call_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = WEFT_FOREVER },
	};

	return weft_stream_open(t->stub, "Flow", &options, &flow->stream, &flow->op) ? failed(c, t)
										     : TOOL_OK;
}

static void flow_drop(struct flow *flow)
{
	weft_stream_close(flow->stream);
	weft_op_free(flow->op);
	*flow = (struct flow){ NULL, NULL };
}

/* Close a stream, whose call ends well when the server has read all. */
static int flow_close(struct perf_client *c, struct target *t, struct flow *flow)
{
	int status = weft_stream_half_close(flow->stream) ? failed(c, t) : settle(c, t, flow->op);

	flow_drop(flow);
	return status;
}

/* Idle streams, each known to the server. */

static int idle_open(struct perf_client *c, struct target *t)
{
	int status = TOOL_OK;
	uint64_t ns;

	t->idle = calloc(c->plan->idle_streams, sizeof(*t->idle));
	if (!t->idle && c->plan->idle_streams)
		return tool_fail(c->command, "no memory");
	while (!status && t->idle_count < c->plan->idle_streams)
		status = flow_open(c, t, &t->idle[t->idle_count++]);
	return status ? status : ask_spent(c, t, &ns);
}

static void idle_drop(struct target *t)
{
	while (t->idle_count)
		flow_drop(&t->idle[--t->idle_count]);
	free(t->idle);
	t->idle = NULL;
}

/* Control calls to every server. */

int perf_client_leave(struct perf_client *c)
{
	int status = TOOL_OK;

	for (size_t i = 0; i < c->target_count && !status; i++)
		status = leave(c, &c->targets[i]);
	return status;
}

/* Tell whether the bodies come by receives that the server posts before. */
static bool is_received(const struct perf_plan *plan)
{
	return plan->test == PERF_TENSOR || plan->test == PERF_MESSAGE;
}

/* Tell whether the server is told of the run: it has memory for all bodies on the way. */
static bool is_told(const struct perf_plan *plan)
{
	return is_received(plan) || plan->place.cuda;
}

static int run_start(struct perf_client *c, unsigned window, bool check, bool one_way)
{
	int status = TOOL_OK;

	c->run = draw();
	c->wrong = 0;
	c->check = check;
	c->one_way = one_way;
	for (size_t i = 0; i < c->target_count && !status; i++) {
		c->targets[i].next = 0;
		if (c->plan->test == PERF_STREAM)
			status = flow_open(c, &c->targets[i], &c->targets[i].flow);
		else if (is_told(c->plan))
			status = start(c, &c->targets[i], window);
	}
	return status;
}

static int run_end(struct perf_client *c)
{
	int status = TOOL_OK;

	for (size_t i = 0; i < c->target_count && !status; i++)
		if (c->plan->test == PERF_STREAM)
			status = flow_close(c, &c->targets[i], &c->targets[i].flow);
		else if (is_told(c->plan))
			status = end(c, &c->targets[i]);
	return status;
}

/* Sum the processor time of this process and of all servers, up to now. */
static int spent(struct perf_client *c, uint64_t *ns)
{
	int status = TOOL_OK;

	*ns = 0;
	for (size_t i = 0; i < c->target_count && !status; i++)
		status = ask_spent(c, &c->targets[i], ns);
	*ns += tool_spent_ns();
	return status;
}

/* Bodies */

/* Tell whether the bodies of this run begin at due times. */
static bool is_paced(const struct perf_client *c)
{
	return c->latency && c->plan->rate;
}

/* The receiver's word of a body with a due time has come, in whatever order. */
static void word_ended(struct weft_op *op, void *arg)
{
	struct slot *slot = arg;
	struct perf_client *c = slot->client;

	slot->state = SLOT_ENDED;
	c->under_way--;
	if (weft_op_status(op) != WEFT_OK)
		c->failed = slot;
	else if (c->latency)
		histogram_add(c->latency, tool_now_ns() - slot->start_ns);
}

/* Returns the options of the operation that brings the receiver's word. */
static struct weft_op_options word_options(struct slot *slot)
{
	return (struct weft_op_options){ .size = sizeof(struct weft_op_options),
					 .done = is_paced(slot->client) ? word_ended : NULL,
					 .arg = slot };
}

/* Note the time of a body that is timed from its sending. */
static void note_start(struct slot *slot)
{
	if (slot->client->latency && !is_paced(slot->client))
		slot->start_ns = tool_now_ns();
}

/* Post the receive of the acknowledgement, unless none will come. */
static int await_word(struct slot *slot)
{
	struct perf_client *c = slot->client;
	struct target *t = slot->target;
	const struct weft_recv_options options = { .size = sizeof(options),
						   .op = word_options(slot) };
	struct weft_tensor ack;

	if (c->one_way)
		return TOOL_OK;
	ack = perf_run_tensor(NULL, &slot->ack, &slot->ack_shape, sizeof(slot->ack));
	if (weft_recv(c->node, t->peer, c->run, PERF_ACK_KEY, strlen(PERF_ACK_KEY), &ack,
		      &options, &slot->word))
		return failed(c, t);
	return TOOL_OK;
}

/* No CUDA stream writes what is sent. */
static const struct weft_send_options ready = { .size = sizeof(ready), .stream = WEFT_NO_STREAM };

static int send_tensors(struct slot *slot)
{
	struct perf_client *c = slot->client;
	struct target *t = slot->target;
	struct weft_tensor tensor;
	int status = await_word(slot);

	note_start(slot);
	for (size_t i = 0; i < c->part_count && !status; i++) {
		struct part *part = &slot->parts[i];

		tensor = perf_run_tensor(&c->place, part->memory, &part->shape, part->bytes);
		if (weft_send(t->peer, c->run, PERF_KEY, strlen(PERF_KEY), &tensor, &ready,
			      &part->send))
			status = failed(c, t);
	}
	return status;
}

static void got_body(const Weft__Perf__BodyReport *reply, void *data)
{
	struct slot *slot = data;
	struct perf_client *c = slot->client;
	uint64_t bytes = slot->parts[0].bytes;

	if (!reply)
		return;
	slot->ack.wrong = htole64(reply->wrong);
	if (!c->check || c->plan->test == PERF_ATTACHMENT)
		return;
	if (reply->bytes.len != bytes)
		c->wrong += bytes;
	else
		c->wrong += pattern_wrong(reply->bytes.data, reply->bytes.len, c->run,
					  ~slot->index);
}

static Weft__Perf__Body body_of(const struct slot *slot)
{
	const struct perf_client *c = slot->client;
	Weft__Perf__Body body = WEFT__PERF__BODY__INIT;

	body.bytes = (ProtobufCBinaryData){ .len = slot->parts[0].bytes,
					    .data = slot->parts[0].memory };
	body.check = c->check;
	body.run = c->run;
	body.index = slot->index;
	return body;
}

static int send_call(struct slot *slot)
{
	const struct weft_op_options options = word_options(slot);
	Weft__Perf__Body request = body_of(slot);
	struct perf_client *c = slot->client;
	ProtobufCService *service;
	int status;

	note_start(slot);
	status = call_open_with(c, slot->target, &options, &service, &slot->word);
	if (!status)
		weft__perf__perf__put(service, &request, got_body, slot);
	return status;
}

static int send_attached(struct slot *slot)
{
	const struct weft_op_options options = word_options(slot);
	Weft__Perf__Body request = body_of(slot);
	struct perf_client *c = slot->client;
	struct target *t = slot->target;
	ProtobufCService *service;
	struct weft_tensor tensor;
	int status;

	request.bytes.len = 0;
	request.index *= c->part_count;
	note_start(slot);
	status = call_open_with(c, t, &options, &service, &slot->word);
	for (size_t i = 0; i < c->part_count && !status; i++) {
		struct part *part = &slot->parts[i];

		tensor = perf_run_tensor(&c->place, part->memory, &part->shape, part->bytes);
		if (weft_call_attach(slot->word, &tensor, &ready, &part->send))
			status = failed(c, t);
	}
	if (!status)
		weft__perf__perf__put(service, &request, got_body, slot);
	return status;
}

static int send_flow(struct slot *slot)
{
	const struct weft_op_options options = word_options(slot);
	struct perf_client *c = slot->client;
	struct target *t = slot->target;
	Weft__Perf__Body body = body_of(slot);

	body.silent = c->one_way;
	note_start(slot);
	if (flow_ask(t->flow.stream, &body, NULL, &slot->parts[0].send) ||
	    (!c->one_way && weft_stream_read(t->flow.stream, &options, &slot->word)))
		return failed(c, t);
	return TOOL_OK;
}

/* Forget the body of @slot.  Operations that still run go on by themselves. */
static void clear(struct slot *slot)
{
	weft_op_free(slot->word);
	slot->word = NULL;
	for (size_t i = 0; i < slot->client->part_count; i++) {
		weft_op_free(slot->parts[i].send);
		slot->parts[i].send = NULL;
	}
}

static int begin(struct perf_client *c, struct slot *slot)
{
	clear(slot);
	slot->state = SLOT_UNDER_WAY;
	slot->index = slot->target->next++;
	slot->ack.wrong = 0;
	for (size_t i = 0; i < c->part_count && c->check; i++)
		if (perf_run_fill(&c->place, slot->parts[i].memory, slot->parts[i].bytes, c->run,
				  slot->index * c->part_count + i))
			return tool_fail(c->command, "memory of CUDA device %u can't be written",
					 c->place.cuda - 1);
	switch (c->plan->test) {
	case PERF_CALL:
		return send_call(slot);
	case PERF_STREAM:
		return send_flow(slot);
	case PERF_ATTACHMENT:
		return send_attached(slot);
	default:
		return send_tensors(slot);
	}
}

/* Wait for the receiver's word, and until the memory is the client's again. */
static int finish(struct perf_client *c, struct slot *slot)
{
	int status = slot->word ? settle(c, slot->target, slot->word) : TOOL_OK;

	if (!status && slot->word && c->plan->test == PERF_STREAM)
		got_body(flow_answered(slot->word), slot);
	slot->state = SLOT_FREE;
	if (!status && c->latency && !is_paced(c))
		histogram_add(c->latency, tool_now_ns() - slot->start_ns);
	for (size_t i = 0; i < c->part_count && !status; i++)
		if (slot->parts[i].send)
			status = settle(c, slot->target, slot->parts[i].send);
	c->wrong += le64toh(slot->ack.wrong);
	return status;
}

/*
 * Move bodies, @window at once to each server, until @count have gone or
 * @until_ns is reached, whichever is first, and wait for them all.  Those that are timed go
 * one by one, to the servers in turn.
 */
static int move(struct perf_client *c, unsigned window, uint64_t count, uint64_t until_ns)
{
	size_t places = window * c->target_count, at_once = c->latency ? 1 : places;
	uint64_t begun = 0, done = 0;
	struct slot *slot = NULL;
	int status = TOOL_OK;

	while (!status) {
		while (!status && begun < count && begun - done < at_once &&
		       (begun == 0 || tool_now_ns() < until_ns))
			status = begin(c, &c->slots[begun++ % places]);
		if (status || begun == done)
			break;
		slot = &c->slots[done++ % places];
		status = finish(c, slot);
		if (!status && tool_ending())
			status = TOOL_INTERRUPTED;
	}
	if (slot && !status)
		weft_op_path(c->plan->test == PERF_CALL ? slot->word
							: slot->parts[c->part_count - 1].send,
			     &c->path);
	return status;
}

/* Find room for a body, by turns. */
static struct slot *find_room(struct perf_client *c, uint64_t turn)
{
	while (c->slots[turn % c->slot_count].state == SLOT_UNDER_WAY)
		turn++;
	return &c->slots[turn % c->slot_count];
}

/* Begin a body that was due at @due_ns, in the room of one that has ended. */
static int begin_due(struct perf_client *c, struct slot *slot, uint64_t due_ns)
{
	int status = slot->state == SLOT_ENDED ? finish(c, slot) : TOOL_OK;

	if (status)
		return status;
	slot->start_ns = due_ns;
	c->under_way++;
	return begin(c, slot);
}

/* Let the library work until shortly before @due_ns, or until a body ends if there is no room. */
static int work_until(struct perf_client *c, uint64_t now_ns, uint64_t due_ns)
{
	uint64_t gap_ns = due_ns > now_ns + AWAKE_NS ? due_ns - now_ns - AWAKE_NS : 0;
	int ended;

	if (tool_ending())
		return TOOL_INTERRUPTED;
	if (c->under_way == c->slot_count || gap_ns > SLICE_NS)
		gap_ns = SLICE_NS;
	ended = weft_poll(c->node, gap_ns);
	if (ended < 0)
		return tool_fail(c->command, "%s", weft_error());
	/* The server may be waiting for this very processor. */
	if (!ended && ++c->looks % LOOKS_COUNT == 0)
		sched_yield();
	return TOOL_OK;
}

/*
 * Begin bodies when they are due, until @count have begun or are due after @until_ns, and wait for
 * them all.  A body that finds the window full waits; those that wait still at @limit_ns are
 * dropped.
 */
static int move_at_rate(struct perf_client *c, uint64_t count, uint64_t until_ns,
			uint64_t limit_ns)
{
	uint64_t begun = 0, now_ns = tool_now_ns();
	struct arrivals next;
	int status = TOOL_OK;

	arrivals_init(&next, c->plan->rate, now_ns);
	while (!status && begun < count && next.due_ns < until_ns && now_ns < limit_ns) {
		if (c->failed) {
			status = finish(c, c->failed);
		} else if (next.due_ns <= now_ns && c->under_way < c->slot_count) {
			status = begin_due(c, find_room(c, begun++), next.due_ns);
			arrivals_next(&next);
		} else {
			status = work_until(c, now_ns, next.due_ns);
		}
		now_ns = tool_now_ns();
	}
	for (size_t i = 0; i < c->slot_count && !status; i++)
		if (c->slots[i].state != SLOT_FREE)
			status = finish(c, &c->slots[i]);
	return status;
}

static uint64_t all_next(const struct perf_client *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->target_count; i++)
		sum += c->targets[i].next;
	return sum;
}

/* Compare some bodies; each buffer is used twice, so that stale bytes show. */
static int check(struct perf_client *c, struct perf_result *result)
{
	unsigned window = c->plan->window;
	int status = run_start(c, window, true, false);

	if (!status)
		status = move(c, window, 2ull * window * c->target_count, UINT64_MAX);
	if (!status)
		status = run_end(c);
	result->wrong = c->wrong;
	result->checked = true;
	return status;
}

/* Returns when bodies that are due before @until_ns begin at the latest: after twice the time. */
static uint64_t limit_of(const struct perf_client *c, uint64_t until_ns)
{
	return c->plan->count ? UINT64_MAX : until_ns + c->plan->time_ns / 2;
}

/* Measure a half: a run of its own, warmed up, then timed. */
static int half(struct perf_client *c, unsigned window, struct histogram *latency,
		struct perf_result *result)
{
	uint64_t count = c->plan->count ? c->plan->count : UINT64_MAX;
	uint64_t until_ns = UINT64_MAX, first, start_ns, before_ns;
	bool one_way = (c->plan->test == PERF_MESSAGE || c->plan->test == PERF_STREAM) && !latency;
	int status = run_start(c, window, false, one_way);

	if (!status)
		status = move(c, window, WARM_COUNT * c->target_count, UINT64_MAX);
	if (!status)
		status = spent(c, &before_ns);
	first = all_next(c);
	c->latency = latency;
	start_ns = tool_now_ns();
	if (!c->plan->count)
		until_ns = start_ns + c->plan->time_ns / 2;
	if (!status && is_paced(c))
		status = move_at_rate(c, count, until_ns, limit_of(c, until_ns));
	else if (!status)
		status = move(c, window, count, until_ns);
	if (!status && one_way)
		status = run_end(c);
	result->took_ns = tool_now_ns() - start_ns;
	c->latency = NULL;
	result->count = all_next(c) - first;
	if (!status)
		status = spent(c, &result->spent_ns);
	result->spent_ns -= status ? 0 : before_ns;
	if (!status && !one_way)
		status = run_end(c);
	result->wrong += c->wrong;
	return status;
}

static void give_memory(struct perf_client *c)
{
	for (size_t i = 0; i < c->slot_count; i++)
		for (size_t k = 0; k < c->part_count; k++)
			perf_run_give(c->node, &c->place, c->slots[i].parts[k].memory);
}

static void drop_slots(struct perf_client *c)
{
	for (size_t i = 0; i < c->slot_count; i++)
		clear(&c->slots[i]);
	free(c->parts);
	free(c->slots);
	c->slots = NULL;
	c->parts = NULL;
	c->slot_count = 0;
}

static int take_memory(struct perf_client *c)
{
	c->metadata = c->plan->metadata_bytes ? calloc(1, c->plan->metadata_bytes) : NULL;
	if (!c->metadata && c->plan->metadata_bytes)
		return tool_fail(c->command, "no memory");
	c->place = c->plan->place;
	c->part_count = c->plan->part_count;
	c->slot_count = c->plan->window * c->target_count;
	c->slots = calloc(c->slot_count, sizeof(*c->slots));
	c->parts = calloc(c->slot_count * c->part_count, sizeof(*c->parts));
	if (!c->slots || !c->parts) {
		c->slot_count = 0;
		return tool_fail(c->command, "no memory");
	}
	for (size_t i = 0; i < c->slot_count; i++)
		c->slots[i] = (struct slot){ .client = c, .target = &c->targets[i % c->target_count],
					     .parts = &c->parts[i * c->part_count] };
	for (size_t i = 0; i < c->slot_count * c->part_count; i++) {
		struct part *part = &c->parts[i];

		part->bytes = c->plan->parts[i % c->part_count];
		part->memory = perf_run_take(c->node, &c->place, part->bytes);
		if (!part->memory)
			return tool_fail(c->command, "no memory for a buffer of %llu bytes",
					 (unsigned long long)part->bytes);
	}
	return TOOL_OK;
}

int perf_client_measure(struct perf_client *c, const struct perf_plan *plan,
			struct perf_result *result)
{
	int status;

	memset(result, 0, sizeof(*result));
	c->plan = plan;
	c->path = (struct weft_path){ .size = sizeof(c->path) };
	status = take_memory(c);
	for (size_t i = 0; i < c->target_count && !status; i++)
		status = idle_open(c, &c->targets[i]);
	if (!status && plan->check)
		status = check(c, result);
	if (!status)
		status = half(c, plan->rate ? plan->window : 1, &result->latency, result);
	result->latency_spent_ns = result->spent_ns;
	result->latency_took_ns = result->took_ns;
	if (!status)
		status = half(c, plan->window, NULL, result);
	/* After a failure an operation may still own the memory, which then stays until close. */
	if (!status) {
		give_memory(c);
		drop_slots(c);
		for (size_t i = 0; i < c->target_count; i++)
			idle_drop(&c->targets[i]);
	}
	free(c->metadata);
	c->metadata = NULL;
	result->path = c->path;
	return status;
}

/* Ping a server: a missing one shows soon, for a join may wait for other callers much longer. */
static int reach(struct perf_client *c, const struct target *t)
{
	struct weft_op_options options = { .size = sizeof(options), .timeout_ns = TOOL_ANSWER_NS };
	struct weft_op *op;
	int status;

	if (weft_ping(t->peer, &options, &op))
		return failed(c, t);
	status = settle(c, t, op);
	weft_op_free(op);
	return status;
}

/* Reach the server of @t, and join it. */
static int target_open(struct perf_client *c, struct target *t)
{
	int status = tool_peer_open(c->command, c->node, t->address, &t->peer);

	if (!status)
		status = reach(c, t);
	if (status)
		return status;
	if (weft_stub_open(t->peer, &weft__perf__perf__descriptor, &t->stub))
		return failed(c, t);
	return join(c, t);
}

int perf_client_open(const struct tool_command *command, const char *listen,
		     char *const *addresses, size_t count, struct perf_client **client)
{
	struct perf_client *c = calloc(1, sizeof(*c) + count * sizeof(c->targets[0]));
	int status = TOOL_OK;

	if (!c)
		return tool_fail(command, "no memory");
	c->command = command;
	c->number = draw();
	c->target_count = count;
	if (tool_node_open(command, listen, &c->node)) {
		free(c);
		return tool_fail(command, "%s", weft_error());
	}
	for (size_t i = 0; i < count && !status; i++) {
		c->targets[i].address = addresses[i];
		status = target_open(c, &c->targets[i]);
	}
	if (status) {
		perf_client_close(c);
		return status;
	}
	*client = c;
	return TOOL_OK;
}

void perf_client_close(struct perf_client *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->slot_count; i++)
		clear(&c->slots[i]);
	for (size_t i = 0; i < c->target_count; i++) {
		flow_drop(&c->targets[i].flow);
		idle_drop(&c->targets[i]);
		weft_stub_close(c->targets[i].stub);
		weft_peer_close(c->targets[i].peer);
	}
	tool_node_close(c->node);
	/* Pool memory went with the node. */
	if (!c->place.pool)
		give_memory(c);
	drop_slots(c);
	free(c);
}
