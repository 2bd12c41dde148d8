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

WEFT_STREAM_TYPES(flow, Weft__Perf__Body, Weft__Perf__BodyReport);

/* Not tuned: more than anyone runs at once, few enough to be harmless. */
#define CALLERS_MAX PERF_CALLERS_MAX
#define RUNS_MAX    PERF_CALLERS_MAX

/* Nothing is ever sent under this key: a receive that ends says that the peer has gone. */
#define CALLER_KEY "weft.perf.caller"

struct caller {
	struct caller *next;
	struct perf_server *server;
	struct weft_op *watch;
	Weft__Perf__Nothing_Closure joined; /* reply of Join; NULL: answered */
	void *joined_data;
	uint64_t number;
	bool left;
	char name[128];
};

/* A receive of a run, for a tensor of a body. */
struct part {
	struct body *body;
	struct weft_op *op; /* NULL: no receive is under way */
	void *memory;
	uint64_t bytes;
	int64_t shape;
};

/* Room for a body: all its tensors. */
struct body {
	struct run *run;
	struct part *parts;
	uint64_t index; /* index of the body that is awaited */
	uint64_t wrong; /* wrong bytes of the body so far */
	size_t left;    /* tensors of the body that are still to come */
};

struct run {
	struct run *next;
	struct perf_server *server;
	struct weft_peer *peer;
	uint64_t number;
	uint64_t posted, received; /* bodies posted, bodies received */
	uint64_t sent;             /* bodies that the caller sent, once that is known */
	uint64_t damaged;          /* damaged bytes */
	unsigned pending; /* receives under way, and 1 for a function that works on the run */
	bool check, one_way, beside, ending;
	struct perf_place place;
	uint64_t memory; /* bytes that all bodies take */
	/* Operation of the last body so far: to ask each for its path would be measured. */
	struct weft_op *newest;
	Weft__Perf__RunReport_Closure end; /* reply of End; NULL: nobody has asked for it */
	void *end_data;
	struct body *bodies;
	struct part *parts;
	size_t window, part_count;
};

struct perf_server {
	Weft__Perf__Perf_Service service; /* first: handlers are given its address */
	const struct tool_command *command;
	struct weft_node *node;
	struct caller *callers;
	struct run *runs;
	unsigned caller_count, run_count;
	unsigned awaited; /* callers that must join before any begins */
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

static void caller_answer(struct caller *caller)
{
	Weft__Perf__Nothing nothing = WEFT__PERF__NOTHING__INIT;

	if (caller->joined)
		caller->joined(&nothing, caller->joined_data);
	caller->joined = NULL;
}

static void watch_ended(struct weft_op *op, void *arg)
{
	struct caller *caller = arg;
	struct perf_server *server = caller->server;

	/* A server that ends misses no caller; CANCELLED says that its own node is closing. */
	if (caller->left || weft_op_status(op) == WEFT_CANCELLED || tool_ending()) {
		server->left++;
	} else {
		server->lost++;
		tool_op_failed(server->command, op, caller->name);
	}
	weft_op_free(op);
	caller_answer(caller);
	caller_drop(caller);
}

static void serve_join(Weft__Perf__Perf_Service *service, const Weft__Perf__Caller *request,
		       Weft__Perf__Nothing_Closure reply, void *call)
{
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = WEFT_FOREVER, .done = watch_ended },
	};
	struct weft_peer *peer = weft_served_peer(weft_served(call));
	struct perf_server *server = server_of(service);
	struct caller *caller = NULL;

	if (server->caller_count < CALLERS_MAX)
		caller = calloc(1, sizeof(*caller));
	if (!caller) {
		weft_served_fail(weft_served(call), WEFT_RESOURCE_EXHAUSTED, "too many callers");
		return;
	}
	caller->server = server;
	caller->number = request->number;
	snprintf(caller->name, sizeof(caller->name), "%s", weft_peer_name(peer));
	options.op.arg = caller;
	if (weft_recv(server->node, peer, request->number, CALLER_KEY, strlen(CALLER_KEY), NULL,
		      &options, &caller->watch)) {
		weft_served_fail(weft_served(call), WEFT_INTERNAL, weft_error());
		free(caller);
		return;
	}
	caller->joined = reply;
	caller->joined_data = call;
	caller->next = server->callers;
	server->callers = caller;
	server->caller_count++;
	if (server->caller_count < server->awaited)
		return;
	server->awaited = 0;
	for (caller = server->callers; caller; caller = caller->next)
		caller_answer(caller);
}

static void serve_leave(Weft__Perf__Perf_Service *service, const Weft__Perf__Caller *request,
			Weft__Perf__Nothing_Closure reply, void *call)
{
	Weft__Perf__Nothing nothing = WEFT__PERF__NOTHING__INIT;
	struct perf_server *server = server_of(service);

	for (struct caller *c = server->callers; c; c = c->next) {
		if (c->number != request->number)
			continue;
		c->left = true;
		/* The goodbye would end the watch as a failure, which the log would tell. */
		weft_cancel(c->watch);
	}
	reply(&nothing, call);
}

/* Runs */

static void run_free(struct run *run)
{
	for (size_t i = 0; run->parts && i < run->window * run->part_count; i++)
		perf_run_give(run->server->node, &run->place, run->parts[i].memory);
	weft_op_free(run->newest);
	free(run->parts);
	free(run->bodies);
	free(run);
}

/* Take memory for every tensor that may be on the way.  -ENOMEM: call run_free() then. */
static int run_memory(struct run *run, const uint64_t *bytes)
{
	run->bodies = calloc(run->window, sizeof(run->bodies[0]));
	run->parts = calloc(run->window * run->part_count, sizeof(run->parts[0]));
	if (!run->bodies || !run->parts)
		return -ENOMEM;
	for (size_t i = 0; i < run->window * run->part_count; i++) {
		struct body *body = &run->bodies[i / run->part_count];
		struct part *part = &run->parts[i];

		body->run = run;
		body->parts = part - i % run->part_count;
		part->body = body;
		part->bytes = bytes[i % run->part_count];
		part->memory = perf_run_take(run->server->node, &run->place, part->bytes);
		if (!part->memory)
			return -ENOMEM;
	}
	return 0;
}

static uint64_t run_room(const Weft__Perf__Run *request)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < request->n_bytes; i++)
		bytes += perf_run_room(request->bytes[i]);
	return bytes * request->window;
}

static struct run *run_new(struct perf_server *server, struct weft_peer *peer,
			   const Weft__Perf__Run *request)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->server = server;
	run->peer = peer;
	run->number = request->number;
	run->window = request->window;
	run->part_count = request->n_bytes;
	run->place = (struct perf_place){ request->pool, request->cuda };
	run->check = request->check;
	run->one_way = request->one_way;
	run->beside = request->beside;
	run->memory = run_room(request);
	if (run_memory(run, request->bytes)) {
		run_free(run);
		return NULL;
	}
	return run;
}

static void run_cancel(struct run *run)
{
	run->pending++;
	for (size_t i = 0; i < run->window * run->part_count; i++)
		if (run->parts[i].op)
			weft_cancel(run->parts[i].op);
	run->pending--;
}

/* Answer End and free the run, if all bodies have come and no receive is under way. */
static void run_settle(struct run *run)
{
	Weft__Perf__RunReport report = WEFT__PERF__RUN_REPORT__INIT;
	struct weft_path path = { .size = sizeof(path) };
	struct run **at = &run->server->runs;

	if (run->ending && run->received >= run->sent)
		run_cancel(run);
	if (run->pending)
		return;
	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
	run->server->run_count--;

	report.received = run->received;
	report.damaged = run->damaged;
	if (run->newest)
		weft_op_path(run->newest, &path);
	report.copies = path.copies;
	report.registered = path.registered;
	if (run->end)
		run->end(&report, run->end_data);
	run_free(run);
}

static void received(struct weft_op *op, void *arg);

static int part_post(struct part *part)
{
	struct run *run = part->body->run;
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = {
			.size = sizeof(options.op),
			.timeout_ns = WEFT_FOREVER,
			.done = received,
			.arg = part,
		},
		.stream = WEFT_NO_STREAM,
	};
	struct weft_tensor into =
		perf_run_tensor(&run->place, part->memory, &part->shape, part->bytes);
	int err = weft_recv(run->server->node, run->peer, run->number, PERF_KEY,
			    strlen(PERF_KEY), &into, &options, &part->op);

	if (!err)
		run->pending++;
	return err;
}

/* Post the receives of the next body into the room of @body. */
static int body_post(struct body *body)
{
	struct run *run = body->run;
	int err = 0;

	body->index = run->posted++;
	body->wrong = 0;
	body->left = run->part_count;
	for (size_t i = 0; i < run->part_count && !err; i++)
		err = part_post(&body->parts[i]);
	return err;
}

static int acknowledge(struct run *run, uint64_t index, uint64_t wrong)
{
	struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SNAPSHOT };
	struct perf_ack ack = { htole64(index), htole64(wrong) };
	struct weft_tensor tensor;
	struct weft_op *op;
	int64_t shape;
	int err;

	if (run->one_way)
		return 0;
	options.op.size = sizeof(options.op);
	tensor = perf_run_tensor(NULL, &ack, &shape, sizeof(ack));
	err = weft_send(run->peer, run->number, PERF_ACK_KEY, strlen(PERF_ACK_KEY), &tensor,
			&options, &op);
	if (!err)
		weft_op_free(op); /* if the send fails, so does the receive of the caller */
	return err;
}

/* All tensors of a body are there. */
static void body_received(struct body *body)
{
	struct run *run = body->run;
	uint64_t index = body->index, wrong = body->wrong;

	run->received++;
	/* Receives come first: the acknowledgement lets the caller send into them. */
	if (((!run->ending || run->posted < run->sent) && body_post(body)) ||
	    acknowledge(run, index, wrong))
		tool_fail(run->server->command, "%s: %s", weft_peer_name(run->peer), weft_error());
}

/* Keep @op, which has ended, until a newer one comes if it is the @last of a body; else free it. */
static void run_keep(struct run *run, struct weft_op *op, bool last)
{
	weft_op_free(last ? run->newest : op);
	if (last)
		run->newest = op;
}

/* Note a tensor that has come, as it was sent or @damaged.  true: the last of its body. */
static bool part_came(struct part *part, bool damaged)
{
	struct body *body = part->body;
	struct run *run = body->run;

	if (damaged)
		run->damaged += part->bytes;
	else if (run->check)
		body->wrong += perf_run_wrong(&run->place, part->memory, part->bytes, run->number,
					      body->index * run->part_count +
						      (size_t)(part - body->parts));
	return --body->left == 0;
}

/* A damaged tensor is acknowledged, too: its caller waits for that. */
static void received(struct weft_op *op, void *arg)
{
	struct part *part = arg;
	struct body *body = part->body;
	struct run *run = body->run;
	enum weft_status status = weft_op_status(op);
	bool last = false;

	part->op = NULL;
	if (status == WEFT_OK || status == WEFT_DATA_LOSS)
		last = part_came(part, status != WEFT_OK);
	if (last)
		body_received(body);
	run_keep(run, op, last);
	run->pending--;
	run_settle(run);
}

/*
 * Post the receives of the first bodies.  Where all bodies come beside calls nothing is sent for
 * the one receive that there is: it ends with the run, or with its caller.
 */
static int run_post(struct run *run)
{
	int err = 0;

	if (run->beside)
		return part_post(&run->parts[0]);
	for (size_t i = 0; i < run->window && !err; i++)
		err = body_post(&run->bodies[i]);
	return err;
}

/* Find the run @number of the caller that makes @call: another caller's is none of its business. */
static struct run *run_find(const struct perf_server *server, void *call, uint64_t number)
{
	const struct weft_peer *peer = weft_served_peer(weft_served(call));
	struct run *run = server->runs;

	while (run && (run->number != number || run->peer != peer))
		run = run->next;
	return run;
}

static bool run_allowed(const Weft__Perf__Run *request)
{
	uint64_t bytes = 0;

	if (request->n_bytes < 1 || request->n_bytes > PERF_PARTS_MAX || request->window < 1 ||
	    request->window > PERF_WINDOW_MAX || request->n_bytes * request->window > PERF_OPS_MAX)
		return false;
	for (size_t i = 0; i < request->n_bytes; i++) {
		if (request->bytes[i] > PERF_BYTES_MAX)
			return false;
		bytes += request->bytes[i];
	}
	return bytes * request->window <= PERF_MEMORY_MAX;
}

/* Tell whether there is memory for a run that is allowed, beside others of @peer and of all. */
static bool run_fits(const struct perf_server *server, const struct weft_peer *peer,
		     const Weft__Perf__Run *request)
{
	uint64_t own = 0, all = 0, more = run_room(request);

	for (const struct run *run = server->runs; run; run = run->next) {
		all += run->memory;
		if (run->peer == peer)
			own += run->memory;
	}
	/* With its pages one run may be somewhat larger than PERF_MEMORY_MAX. */
	return server->run_count < RUNS_MAX && (!own || own + more <= PERF_MEMORY_MAX) &&
	       all + more <= PERF_SERVER_MEMORY_MAX;
}

static void serve_start(Weft__Perf__Perf_Service *service, const Weft__Perf__Run *request,
			Weft__Perf__Nothing_Closure reply, void *call)
{
	Weft__Perf__Nothing nothing = WEFT__PERF__NOTHING__INIT;
	struct perf_server *server = server_of(service);
	const struct perf_place place = { request->pool, request->cuda };
	struct weft_peer *peer = weft_served_peer(weft_served(call));
	struct run *run = NULL;
	const char *why;
	int err;

	if (!run_allowed(request)) {
		weft_served_fail(weft_served(call), WEFT_OUT_OF_RANGE,
				 "the run is larger than this server allows");
		return;
	}
	why = perf_run_open(&place);
	if (why) {
		weft_served_fail(weft_served(call), WEFT_FAILED_PRECONDITION, why);
		return;
	}
	if (run_fits(server, peer, request))
		run = run_new(server, peer, request);
	if (!run) {
		weft_served_fail(weft_served(call), WEFT_RESOURCE_EXHAUSTED,
				 "no memory for another run");
		return;
	}
	run->next = server->runs;
	server->runs = run;
	server->run_count++;

	run->pending++;
	err = run_post(run);
	if (err)
		weft_served_fail(weft_served(call), WEFT_INTERNAL, weft_error());
	else
		reply(&nothing, call);
	run->pending--;
	run_settle(run);
}

static void serve_end(Weft__Perf__Perf_Service *service, const Weft__Perf__RunEnd *request,
		      Weft__Perf__RunReport_Closure reply, void *call)
{
	struct run *run = run_find(server_of(service), call, request->number);

	if (!run || run->end) {
		weft_served_fail(weft_served(call), WEFT_NOT_FOUND, "there is no such run");
		return;
	}
	run->ending = true;
	run->sent = request->sent;
	run->end = reply;
	run->end_data = call;
	run_settle(run);
}

static void serve_spent(Weft__Perf__Perf_Service *service, const Weft__Perf__Nothing *request,
			Weft__Perf__Time_Closure reply, void *call)
{
	Weft__Perf__Time time = WEFT__PERF__TIME__INIT;

	(void)service;
	(void)request;
	time.ns = tool_spent_ns();
	reply(&time, call);
}

/* Make the report of @body; its bytes, if any, are to be freed.  false: no memory. */
static bool report_of(const Weft__Perf__Body *body, Weft__Perf__BodyReport *report)
{
	size_t bytes = body->bytes.len;
	void *back;

	*report = (Weft__Perf__BodyReport)WEFT__PERF__BODY_REPORT__INIT;
	if (!body->check)
		return true;
	back = malloc(bytes ? bytes : 1);
	if (!back)
		return false;
	report->wrong = pattern_wrong(body->bytes.data, bytes, body->run, body->index);
	pattern_fill(back, bytes, body->run, ~body->index);
	report->bytes = (ProtobufCBinaryData){ .len = bytes, .data = back };
	return true;
}

/* A body of tensors beside a call: each is received into the pool, or into its place in a run. */
struct attached {
	struct body *body; /* NULL: the tensors go to the pool */
	Weft__Perf__BodyReport_Closure reply;
	void *call;
	bool check;
	uint64_t run, index; /* number of the run, index of the first tensor */
	unsigned count;      /* receives that were begun */
	unsigned left;       /* receives under way, and 1 for a function that begins more */
	bool failed;
	struct weft_op *ops[];
};

/* Count the bytes of the tensor @part that are not as they should be. */
static uint64_t attached_wrong(const struct attached *a, unsigned part)
{
	static const struct perf_place pool = { .pool = true };
	const struct weft_tensor *tensor = weft_op_tensor(a->ops[part], NULL);
	uint64_t bytes;

	if (!tensor || weft_tensor_bytes(tensor, &bytes))
		return 1;
	return perf_run_wrong(a->body ? &a->body->run->place : &pool, tensor->data, bytes, a->run,
			      a->index + part);
}

/* Give the place back to the run before the reply tells the caller to go on. */
static struct run *attached_leave(struct attached *a)
{
	struct run *run = a->body ? a->body->run : NULL;

	if (!run)
		return NULL;
	run->received++;
	a->body->left = 0;
	return run;
}

static void attached_settle(struct attached *a)
{
	Weft__Perf__BodyReport report = WEFT__PERF__BODY_REPORT__INIT;
	struct run *run;

	if (--a->left)
		return;
	run = attached_leave(a);
	for (unsigned i = 0; i < a->count; i++) {
		a->failed |= weft_op_status(a->ops[i]) != WEFT_OK;
		if (a->check)
			report.wrong += attached_wrong(a, i);
		if (run)
			run_keep(run, a->ops[i], i + 1 == a->count);
		else
			weft_op_free(a->ops[i]);
	}
	if (a->failed)
		weft_served_fail(weft_served(a->call), WEFT_ABORTED,
				 "an attachment can't be received");
	else
		a->reply(&report, a->call);
	free(a);
	if (!run)
		return;
	run->pending--;
	run_settle(run);
}

static void attached_got(struct weft_op *op, void *arg)
{
	(void)op;
	attached_settle(arg);
}

/* Take the place of @a in its run, if the run has any.  -EBUSY: it is taken. */
static int attached_enter(const struct perf_server *server, struct attached *a, unsigned count)
{
	struct run *run = run_find(server, a->call, a->run);
	struct body *body;

	if (!run || !run->beside)
		return 0;
	body = &run->bodies[a->index / run->part_count % run->window];
	if (body->left || count != run->part_count)
		return -EBUSY;
	body->left = count;
	run->pending++;
	a->body = body;
	return 0;
}

static int attached_begin(struct attached *a, const struct weft_recv_options *options)
{
	struct part *part = a->body ? &a->body->parts[a->count] : NULL;
	struct weft_tensor into;

	if (part)
		into = perf_run_tensor(&a->body->run->place, part->memory, &part->shape,
				       part->bytes);
	return weft_served_receive(weft_served(a->call), a->count, part ? &into : NULL, options,
				   &a->ops[a->count]);
}

static void attached_receive(const struct perf_server *server, const Weft__Perf__Body *request,
			     Weft__Perf__BodyReport_Closure reply, void *call)
{
	unsigned count = weft_served_attachments(weft_served(call));
	struct attached *a = calloc(1, sizeof(*a) + count * sizeof(a->ops[0]));
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .done = attached_got, .arg = a },
		.stream = WEFT_NO_STREAM,
	};

	if (!a) {
		weft_served_fail(weft_served(call), WEFT_RESOURCE_EXHAUSTED,
				 "no memory for attachments");
		return;
	}
	a->reply = reply;
	a->call = call;
	a->check = request->check;
	a->run = request->run;
	a->index = request->index;
	a->left = 1;
	if (attached_enter(server, a, count)) {
		weft_served_fail(weft_served(call), WEFT_OUT_OF_RANGE,
				 "the run has no room for it");
		free(a);
		return;
	}
	while (a->count < count && !a->failed) {
		if (attached_begin(a, &options)) {
			a->failed = true;
			break;
		}
		a->count++;
		a->left++;
	}
	attached_settle(a);
}

static void serve_put(Weft__Perf__Perf_Service *service, const Weft__Perf__Body *request,
		      Weft__Perf__BodyReport_Closure reply, void *call)
{
	Weft__Perf__BodyReport report;

	if (weft_served_attachments(weft_served(call))) {
		attached_receive(server_of(service), request, reply, call);
		return;
	}
	if (!report_of(request, &report)) {
		weft_served_fail(weft_served(call), WEFT_RESOURCE_EXHAUSTED,
				 "no memory for the reply");
		return;
	}
	reply(&report, call);
	free(report.bytes.data);
}

/* Reads under way on a stream of bodies: several, so that a turn of the node takes many. */
#define FLOW_READS 16u

struct flow {
	struct weft_stream *stream;
	unsigned reads;  /* reads under way */
	unsigned writes; /* reports that have not left, each in the place of a read */
	bool over;       /* a read has ended without a message */
	bool failed;     /* a report can't be written, or no read begun */
};

static void flow_go_on(struct flow *flow);

static void flow_wrote(struct weft_op *op, void *arg)
{
	struct flow *flow = arg;

	(void)op; /* a call that has failed fails its reads, too */
	flow->writes--;
	flow_go_on(flow);
}

static void flow_report(struct flow *flow, const Weft__Perf__Body *body)
{
	const struct weft_op_options options = { .size = sizeof(options),
						 .done = flow_wrote,
						 .arg = flow };
	Weft__Perf__BodyReport report;

	if (!report_of(body, &report)) {
		flow->failed = true;
		return;
	}
	if (flow_answer(flow->stream, &report, &options, NULL))
		flow->failed = true;
	else
		flow->writes++;
	free(report.bytes.data);
}

static void flow_got(struct weft_op *op, void *arg)
{
	const Weft__Perf__Body *body = flow_asked(op);
	struct flow *flow = arg;

	flow->reads--;
	if (!body)
		flow->over = true;
	else if (!body->silent)
		flow_report(flow, body);
	weft_op_free(op);
	flow_go_on(flow);
}

static void flow_read(struct flow *flow)
{
	struct weft_op_options options = { .size = sizeof(options), .done = flow_got, .arg = flow };
	struct weft_op *op;

	while (!flow->over && !flow->failed && flow->reads + flow->writes < FLOW_READS) {
		if (weft_stream_read(flow->stream, &options, &op))
			flow->failed = true;
		else
			flow->reads++;
	}
}

static void flow_go_on(struct flow *flow)
{
	flow_read(flow);
	if (flow->reads || flow->writes)
		return;
	weft_stream_finish(flow->stream, flow->failed ? WEFT_RESOURCE_EXHAUSTED : WEFT_OK,
			   "no memory for a report");
	free(flow);
}

static void serve_flow(struct weft_stream *stream, void *arg)
{
	struct flow *flow = calloc(1, sizeof(*flow));

	(void)arg;
	if (flow) {
		flow->stream = stream;
		flow_read(flow);
	}
	if (flow && flow->reads)
		return;
	weft_stream_finish(stream, WEFT_RESOURCE_EXHAUSTED, "no memory for a flow");
	free(flow);
}

int perf_server_open(const struct tool_command *command, struct weft_node *node,
		     unsigned callers, struct perf_server **server)
{
	static const struct weft_stream_method flow = { "Flow", serve_flow, NULL };
	struct perf_server *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->service = (Weft__Perf__Perf_Service){
		.base = WEFT__PERF__PERF__BASE_INIT,
		.join = serve_join,
		.start = serve_start,
		.end = serve_end,
		.put = serve_put,
		.spent = serve_spent,
		.leave = serve_leave,
	};
	s->command = command;
	s->node = node;
	s->awaited = callers;
	err = weft_serve_streams(node, &s->service.base, &flow, 1);
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
