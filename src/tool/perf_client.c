/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/perf_client.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tool/pattern.h"
#include "tool/perf.pb-c.h"
#include "tool/perf_run.h"

/* A server that is there answers at once; one still starting gets this long. */
#define JOIN_NS 10000000000ull

/* Not timed: caches, page tables and TCP's windows settle in them. */
#define WARM_COUNT 8u

/* A body on the way. */
struct slot {
	struct perf_client *client;
	struct weft_op *send; /* of the tensor; NULL for a call */
	struct weft_op *word; /* the receiver's: its acknowledgement, or the call */
	void *memory;
	int64_t shape, ack_shape;
	uint64_t index, start_ns;
	struct perf_ack ack;
};

struct perf_client {
	const struct tool_command *command;
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_stub *stub;
	uint64_t number;     /* as a caller */
	uint64_t run;        /* number of the run */
	uint64_t next;       /* index of its next body */
	uint64_t wrong;      /* bytes, in this run */
	bool check;          /* this run */
	unsigned slot_count; /* with memory */
	bool pool;           /* where that lies */
	const struct perf_plan *plan;
	struct weft_path path;
	char address[128];
	struct slot slots[PERF_WINDOW_MAX];
};

static uint64_t draw(void)
{
	uint64_t v;

	while (getrandom(&v, sizeof(v), 0) != sizeof(v))
		;
	return v;
}

static int failed(const struct perf_client *c)
{
	return tool_fail(c->command, "%s: %s", c->address, weft_error());
}

/* Wait for @op.  TOOL_OK: it ended well. */
static int settle(const struct perf_client *c, struct weft_op *op)
{
	int err = tool_wait(op);

	if (err == -EINTR)
		return TOOL_INTERRUPTED;
	if (err)
		return failed(c);
	if (weft_op_status(op) != WEFT_OK)
		return tool_ending() ? TOOL_INTERRUPTED
				     : tool_op_failed(c->command, op, c->address);
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
}

/* Begin a call.  Returns TOOL_OK or, after saying why, TOOL_FAILED. */
static int call_open(const struct perf_client *c, uint64_t timeout_ns, ProtobufCService **service,
		     struct weft_op **op)
{
	struct weft_op_options options = { .size = sizeof(options), .timeout_ns = timeout_ns };

	return weft_call_open(c->stub, &options, service, op) ? failed(c) : TOOL_OK;
}

static int call_close(const struct perf_client *c, struct weft_op *op)
{
	int status = settle(c, op);

	weft_op_free(op);
	return status;
}

static int join(struct perf_client *c)
{
	Weft__Perf__Caller request = WEFT__PERF__CALLER__INIT;
	ProtobufCService *service;
	struct weft_op *op;
	int status = call_open(c, JOIN_NS, &service, &op);

	if (status)
		return status;
	request.number = c->number;
	weft__perf__perf__join(service, &request, got_nothing, NULL);
	return call_close(c, op);
}

int perf_client_leave(struct perf_client *c)
{
	Weft__Perf__Caller request = WEFT__PERF__CALLER__INIT;
	ProtobufCService *service;
	struct weft_op *op;
	int status = call_open(c, 0, &service, &op);

	if (status)
		return status;
	request.number = c->number;
	weft__perf__perf__leave(service, &request, got_nothing, NULL);
	return call_close(c, op);
}

static int run_start(struct perf_client *c, unsigned window, bool check)
{
	Weft__Perf__Run request = WEFT__PERF__RUN__INIT;
	ProtobufCService *service;
	struct weft_op *op;
	int status;

	c->run = draw();
	c->next = 0;
	c->wrong = 0;
	c->check = check;
	if (c->plan->test == PERF_CALL)
		return TOOL_OK;
	status = call_open(c, 0, &service, &op);
	if (status)
		return status;
	request.number = c->run;
	request.bytes = c->plan->bytes;
	request.window = window;
	request.pool = c->plan->pool;
	request.check = check;
	weft__perf__perf__start(service, &request, got_nothing, NULL);
	return call_close(c, op);
}

static int run_end(struct perf_client *c)
{
	Weft__Perf__RunEnd request = WEFT__PERF__RUN_END__INIT;
	ProtobufCService *service;
	struct weft_op *op;
	int status;

	if (c->plan->test == PERF_CALL)
		return TOOL_OK;
	status = call_open(c, 0, &service, &op);
	if (status)
		return status;
	request.number = c->run;
	weft__perf__perf__end(service, &request, got_report, c);
	return call_close(c, op);
}

/* Bodies */

static int send_tensor(struct slot *slot)
{
	struct perf_client *c = slot->client;
	struct weft_tensor tensor, ack;

	ack = perf_run_tensor(&slot->ack, &slot->ack_shape, sizeof(slot->ack));
	if (weft_recv(c->node, c->peer, c->run, PERF_ACK_KEY, strlen(PERF_ACK_KEY), &ack, NULL,
		      &slot->word))
		return failed(c);
	tensor = perf_run_tensor(slot->memory, &slot->shape, c->plan->bytes);
	slot->start_ns = tool_now_ns();
	if (weft_send(c->peer, c->run, PERF_KEY, strlen(PERF_KEY), &tensor, NULL, &slot->send))
		return failed(c);
	return TOOL_OK;
}

static void got_body(const Weft__Perf__BodyReport *reply, void *data)
{
	struct slot *slot = data;
	struct perf_client *c = slot->client;

	if (!reply)
		return;
	slot->ack.wrong = htole64(reply->wrong);
	if (!c->check)
		return;
	if (reply->bytes.len != c->plan->bytes)
		c->wrong += c->plan->bytes;
	else
		c->wrong += pattern_wrong(reply->bytes.data, reply->bytes.len, c->run, ~slot->index);
}

static int send_call(struct slot *slot)
{
	Weft__Perf__Body request = WEFT__PERF__BODY__INIT;
	struct perf_client *c = slot->client;
	ProtobufCService *service;
	int status;

	request.bytes = (ProtobufCBinaryData){ .len = c->plan->bytes, .data = slot->memory };
	request.check = c->check;
	request.run = c->run;
	request.index = slot->index;
	slot->start_ns = tool_now_ns();
	status = call_open(c, 0, &service, &slot->word);
	if (!status)
		weft__perf__perf__put(service, &request, got_body, slot);
	return status;
}

static int begin(struct perf_client *c, struct slot *slot)
{
	slot->index = c->next++;
	if (c->check)
		pattern_fill(slot->memory, c->plan->bytes, c->run, slot->index);
	return c->plan->test == PERF_CALL ? send_call(slot) : send_tensor(slot);
}

/* Wait for the receiver's word, and for the memory to be ours again. */
static int finish(struct perf_client *c, struct slot *slot, struct histogram *latency)
{
	int status = settle(c, slot->word);

	if (status)
		return status;
	if (latency)
		histogram_add(latency, tool_now_ns() - slot->start_ns);
	if (slot->send) {
		status = settle(c, slot->send);
		if (status)
			return status;
	}
	weft_op_path(slot->send ? slot->send : slot->word, &c->path);
	c->wrong += le64toh(slot->ack.wrong);
	weft_op_free(slot->word);
	weft_op_free(slot->send);
	slot->word = slot->send = NULL;
	return TOOL_OK;
}

/*
 * Move bodies, @window at once, until @count have gone or @until_ns is reached,
 * whichever is first, and wait for them all.
 */
static int move(struct perf_client *c, unsigned window, uint64_t count, uint64_t until_ns,
		struct histogram *latency)
{
	uint64_t begun = 0, done = 0;
	int status = TOOL_OK;

	while (!status) {
		while (!status && begun < count && begun - done < window &&
		       (begun == 0 || tool_now_ns() < until_ns))
			status = begin(c, &c->slots[begun++ % window]);
		if (status || begun == done)
			break;
		status = finish(c, &c->slots[done++ % window], latency);
		if (!status && tool_ending())
			status = TOOL_INTERRUPTED;
	}
	return status;
}

/* Compare some bodies; each buffer is used twice, so that what is stale shows. */
static int check(struct perf_client *c, struct perf_result *result)
{
	int status = run_start(c, c->plan->window, true);

	if (!status)
		status = move(c, c->plan->window, 2ull * c->plan->window, UINT64_MAX, NULL);
	if (!status)
		status = run_end(c);
	result->wrong = c->wrong;
	result->checked = true;
	return status;
}

/* One of the two halves: a run of its own, warmed up, then timed. */
static int half(struct perf_client *c, unsigned window, struct histogram *latency,
		struct perf_result *result)
{
	uint64_t count = c->plan->count ? c->plan->count : UINT64_MAX;
	uint64_t until_ns = UINT64_MAX, first, start_ns;
	int status = run_start(c, window, false);

	if (!status)
		status = move(c, window, WARM_COUNT, UINT64_MAX, NULL);
	first = c->next;
	start_ns = tool_now_ns();
	if (!c->plan->count)
		until_ns = start_ns + c->plan->time_ns / 2;
	if (!status)
		status = move(c, window, count, until_ns, latency);
	result->took_ns = tool_now_ns() - start_ns;
	result->count = c->next - first;
	return status ? status : run_end(c);
}

static void give_memory(struct perf_client *c)
{
	while (c->slot_count)
		perf_run_give(c->node, c->pool, c->slots[--c->slot_count].memory);
}

static int take_memory(struct perf_client *c)
{
	c->pool = c->plan->pool;
	for (; c->slot_count < c->plan->window; c->slot_count++) {
		struct slot *slot = &c->slots[c->slot_count];

		*slot = (struct slot){ .client = c };
		slot->memory = perf_run_take(c->node, c->pool, c->plan->bytes);
		if (!slot->memory)
			return tool_fail(c->command, "no memory for %u buffers of %llu bytes",
					 c->plan->window, (unsigned long long)c->plan->bytes);
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
	if (!status && plan->check)
		status = check(c, result);
	if (!status)
		status = half(c, 1, &result->latency, result);
	if (!status)
		status = half(c, plan->window, NULL, result);
	/* After a failure an operation may still own the memory: then it stays until close. */
	if (!status)
		give_memory(c);
	result->path = c->path;
	return status;
}

int perf_client_open(const struct tool_command *command, const char *listen,
		     const char *address, struct perf_client **client)
{
	struct perf_client *c = calloc(1, sizeof(*c));
	int status;

	if (!c)
		return tool_fail(command, "no memory");
	c->command = command;
	c->number = draw();
	snprintf(c->address, sizeof(c->address), "%s", address);
	if (tool_node_open(command, listen, &c->node)) {
		status = tool_fail(command, "%s", weft_error());
		goto free_client;
	}
	if (weft_peer_open(c->node, address, &c->peer)) {
		status = tool_fail(command, "%s", weft_error());
		goto close_client;
	}
	status = weft_stub_open(c->peer, &weft__perf__perf__descriptor, &c->stub) ? failed(c)
										  : join(c);
	if (status)
		goto close_client;
	*client = c;
	return TOOL_OK;

close_client:
	perf_client_close(c);
	return status;
free_client:
	free(c);
	return status;
}

void perf_client_close(struct perf_client *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->slot_count; i++) {
		weft_op_free(c->slots[i].word);
		weft_op_free(c->slots[i].send);
	}
	weft_stub_close(c->stub);
	weft_peer_close(c->peer);
	tool_node_close(c->node);
	/* Pool memory went with the node. */
	if (!c->pool)
		give_memory(c);
	free(c);
}
