/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/perf_server.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/pattern.h"
#include "tool/perf.pb-c.h"
#include "tool/perf_run.h"

/* Not tuned: more than anyone runs at once, few enough to be harmless. */
#define CALLERS_MAX 64u
#define RUNS_MAX    64u

/* Nothing is ever sent under this key: a receive that ends says that the peer has gone. */
#define CALLER_KEY "weft.perf.caller"

struct caller {
	struct caller *next;
	struct perf_server *server;
	struct weft_op *watch;
	uint64_t number;
	bool left;
	char name[128];
};

/* One receive of a run. */
struct slot {
	struct run *run;
	struct weft_op *op; /* NULL: none is under way */
	void *memory;
	int64_t shape;
	uint64_t index; /* of the tensor it waits for */
};

struct run {
	struct run *next;
	struct perf_server *server;
	uint64_t number, bytes;
	uint64_t posted, received;
	unsigned window, pending; /* receives under way, and one for a function that works on it */
	bool pool, check, ending;
	struct weft_path path;
	Weft__Perf__RunReport_Closure end; /* NULL: nobody has asked for the end */
	void *end_data;
	struct slot slots[];
};

struct perf_server {
	Weft__Perf__Perf_Service service; /* first: handlers are given its address */
	const struct tool_command *command;
	struct weft_node *node;
	struct caller *callers;
	struct run *runs;
	unsigned caller_count, run_count;
	unsigned left, lost;
};

static struct perf_server *server_of(Weft__Perf__Perf_Service *service)
{
	return (struct perf_server *)(void *)service;
}

/* Callers */

static void caller_drop(struct caller *caller)
{
	struct caller **at = &caller->server->callers;

	while (*at != caller)
		at = &(*at)->next;
	*at = caller->next;
	caller->server->caller_count--;
	free(caller);
}

static void watch_ended(struct weft_op *op, void *arg)
{
	struct caller *caller = arg;
	struct perf_server *server = caller->server;

	/* A server that ends misses nobody; CANCELLED is its own node, closing. */
	if (caller->left || weft_op_status(op) == WEFT_CANCELLED || tool_ending()) {
		server->left++;
	} else {
		server->lost++;
		tool_op_failed(server->command, op, caller->name);
	}
	weft_op_free(op);
	caller_drop(caller);
}

static void serve_join(Weft__Perf__Perf_Service *service, const Weft__Perf__Caller *request,
		       Weft__Perf__Nothing_Closure reply, void *call)
{
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = WEFT_FOREVER, .done = watch_ended },
	};
	struct weft_peer *peer = weft_call_peer(call);
	struct perf_server *server = server_of(service);
	Weft__Perf__Nothing nothing = WEFT__PERF__NOTHING__INIT;
	struct caller *caller = NULL;

	if (server->caller_count < CALLERS_MAX)
		caller = calloc(1, sizeof(*caller));
	if (!caller) {
		weft_call_fail(call, WEFT_RESOURCE_EXHAUSTED, "too many callers");
		return;
	}
	caller->server = server;
	caller->number = request->number;
	snprintf(caller->name, sizeof(caller->name), "%s", weft_peer_name(peer));
	options.op.arg = caller;
	if (weft_recv(server->node, peer, request->number, CALLER_KEY, strlen(CALLER_KEY), NULL,
		      &options, &caller->watch)) {
		weft_call_fail(call, WEFT_INTERNAL, weft_error());
		free(caller);
		return;
	}
	caller->next = server->callers;
	server->callers = caller;
	server->caller_count++;
	reply(&nothing, call);
}

static void serve_leave(Weft__Perf__Perf_Service *service, const Weft__Perf__Caller *request,
			Weft__Perf__Nothing_Closure reply, void *call)
{
	Weft__Perf__Nothing nothing = WEFT__PERF__NOTHING__INIT;
	struct perf_server *server = server_of(service);

	for (struct caller *c = server->callers; c; c = c->next)
		if (c->number == request->number)
			c->left = true;
	reply(&nothing, call);
}

/* Runs */

static void run_free(struct run *run)
{
	for (unsigned i = 0; i < run->window; i++)
		perf_run_give(run->server->node, run->pool, run->slots[i].memory);
	free(run);
}

static struct run *run_new(struct perf_server *server, const Weft__Perf__Run *request)
{
	struct run *run = calloc(1, sizeof(*run) + request->window * sizeof(run->slots[0]));

	if (!run)
		return NULL;
	run->server = server;
	run->number = request->number;
	run->bytes = request->bytes;
	run->window = request->window;
	run->pool = request->pool;
	run->check = request->check;
	run->path.size = sizeof(run->path);
	for (unsigned i = 0; i < run->window; i++) {
		run->slots[i].run = run;
		run->slots[i].memory = perf_run_take(server->node, run->pool, run->bytes);
		if (!run->slots[i].memory) {
			run_free(run);
			return NULL;
		}
	}
	return run;
}

/* Done with it?  Then answer who asked for the end, and forget the run. */
static void run_settle(struct run *run)
{
	Weft__Perf__RunReport report = WEFT__PERF__RUN_REPORT__INIT;
	struct run **at = &run->server->runs;

	if (run->pending)
		return;
	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
	run->server->run_count--;

	report.received = run->received;
	report.copies = run->path.copies;
	report.registered = run->path.registered;
	if (run->end)
		run->end(&report, run->end_data);
	run_free(run);
}

static void received(struct weft_op *op, void *arg);

static int slot_post(struct slot *slot, struct weft_peer *peer)
{
	struct run *run = slot->run;
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = {
			.size = sizeof(options.op),
			.timeout_ns = WEFT_FOREVER,
			.done = received,
			.arg = slot,
		},
	};
	struct weft_tensor into = perf_run_tensor(slot->memory, &slot->shape, run->bytes);
	int err;

	slot->index = run->posted;
	err = weft_recv(run->server->node, peer, run->number, PERF_KEY, strlen(PERF_KEY), &into,
			&options, &slot->op);
	if (err)
		return err;
	run->posted++;
	run->pending++;
	return 0;
}

static int acknowledge(struct run *run, struct weft_peer *peer, uint64_t index, uint64_t wrong)
{
	struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SNAPSHOT };
	struct perf_ack ack = { htole64(index), htole64(wrong) };
	struct weft_tensor tensor;
	struct weft_op *op;
	int64_t shape;
	int err;

	options.op.size = sizeof(options.op);
	tensor = perf_run_tensor(&ack, &shape, sizeof(ack));
	err = weft_send(peer, run->number, PERF_ACK_KEY, strlen(PERF_ACK_KEY), &tensor, &options,
			&op);
	if (!err)
		weft_op_free(op); /* if it fails, so does what the caller waits for */
	return err;
}

static void received(struct weft_op *op, void *arg)
{
	struct slot *slot = arg;
	struct run *run = slot->run;
	struct weft_peer *peer;
	uint64_t index = slot->index, wrong = 0;

	slot->op = NULL;
	if (weft_op_status(op) == WEFT_OK) {
		peer = weft_op_peer(op);
		run->received++;
		weft_op_path(op, &run->path);
		if (run->check)
			wrong = pattern_wrong(slot->memory, run->bytes, run->number, index);
		/* First the receive, then the word that lets the caller send into it. */
		if ((!run->ending && slot_post(slot, peer)) ||
		    acknowledge(run, peer, index, wrong))
			tool_fail(run->server->command, "%s: %s", weft_peer_name(peer),
				  weft_error());
	}
	weft_op_free(op);
	run->pending--;
	run_settle(run);
}

static void serve_start(Weft__Perf__Perf_Service *service, const Weft__Perf__Run *request,
			Weft__Perf__Nothing_Closure reply, void *call)
{
	Weft__Perf__Nothing nothing = WEFT__PERF__NOTHING__INIT;
	struct perf_server *server = server_of(service);
	struct run *run = NULL;
	int err = 0;

	if (request->bytes > PERF_BYTES_MAX || request->window < 1 ||
	    request->window > PERF_WINDOW_MAX ||
	    request->bytes * request->window > PERF_MEMORY_MAX) {
		weft_call_fail(call, WEFT_OUT_OF_RANGE, "the run is larger than this server allows");
		return;
	}
	if (server->run_count < RUNS_MAX)
		run = run_new(server, request);
	if (!run) {
		weft_call_fail(call, WEFT_RESOURCE_EXHAUSTED, "no memory for another run");
		return;
	}
	run->next = server->runs;
	server->runs = run;
	server->run_count++;

	run->pending++;
	for (unsigned i = 0; i < run->window && !err; i++)
		err = slot_post(&run->slots[i], weft_call_peer(call));
	if (err)
		weft_call_fail(call, WEFT_INTERNAL, weft_error());
	else
		reply(&nothing, call);
	run->pending--;
	run_settle(run);
}

static void serve_end(Weft__Perf__Perf_Service *service, const Weft__Perf__RunEnd *request,
		      Weft__Perf__RunReport_Closure reply, void *call)
{
	struct run *run = server_of(service)->runs;

	while (run && run->number != request->number)
		run = run->next;
	if (!run || run->end) {
		weft_call_fail(call, WEFT_NOT_FOUND, "there is no such run");
		return;
	}
	run->ending = true;
	run->end = reply;
	run->end_data = call;

	run->pending++;
	for (unsigned i = 0; i < run->window; i++)
		if (run->slots[i].op)
			weft_cancel(run->slots[i].op);
	run->pending--;
	run_settle(run);
}

static void serve_put(Weft__Perf__Perf_Service *service, const Weft__Perf__Body *request,
		      Weft__Perf__BodyReport_Closure reply, void *call)
{
	Weft__Perf__BodyReport report = WEFT__PERF__BODY_REPORT__INIT;
	size_t bytes = request->bytes.len;
	void *back;

	(void)service;
	if (!request->check) {
		reply(&report, call);
		return;
	}
	back = malloc(bytes ? bytes : 1);
	if (!back) {
		weft_call_fail(call, WEFT_RESOURCE_EXHAUSTED, "no memory for the reply");
		return;
	}
	report.wrong = pattern_wrong(request->bytes.data, bytes, request->run, request->index);
	pattern_fill(back, bytes, request->run, ~request->index);
	report.bytes = (ProtobufCBinaryData){ .len = bytes, .data = back };
	reply(&report, call);
	free(back);
}

int perf_server_open(const struct tool_command *command, struct weft_node *node,
		     struct perf_server **server)
{
	struct perf_server *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->service = (Weft__Perf__Perf_Service)WEFT__PERF__PERF__INIT(serve_);
	s->command = command;
	s->node = node;
	err = weft_serve(node, &s->service.base);
	if (err) {
		free(s);
		return err;
	}
	*server = s;
	return 0;
}

void perf_server_close(struct perf_server *server)
{
	free(server);
}

unsigned perf_server_present(const struct perf_server *server)
{
	return server->caller_count;
}

unsigned perf_server_left(const struct perf_server *server)
{
	return server->left;
}

unsigned perf_server_lost(const struct perf_server *server)
{
	return server->lost;
}
