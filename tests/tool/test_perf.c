/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft perf` and `weft serve` when what is measured comes damaged or fails: each against this
 * program, which plays the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <endian.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/examples/process.h"
#include "tests/fabric/pair.h"
#include "tool/perf.pb-c.h"
#include "tool/perf_run.h"

#define BODY_BYTES (256 * 1024) /* one that is pulled, with one sum for all of it */

WEFT_STREAM_TYPES(flow, Weft__Perf__Body, Weft__Perf__BodyReport);

static const char *const variables[] = { "FI_PROVIDER=tcp", "WEFT_STALL=0", NULL };

static struct weft_node *node_open(enum weft_mode mode)
{
	struct weft_node_options options = pair_options("tcp");
	struct weft_node *node;

	options.mode = mode;
	need(!weft_node_open(&options, &node));
	return node;
}

/* The caller of a server. */

struct caller {
	struct process serve;
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_stub *stub;
};

static void caller_open(struct caller *c, enum weft_mode mode)
{
	char path[512], address[128];
	const char *argv[] = { process_path("weft", path), "serve", NULL };

	process_start(&c->serve, variables, argv);
	process_address(&c->serve, address);
	c->node = node_open(mode);
	need(!weft_peer_open(c->node, address, &c->peer));
	need(!weft_stub_open(c->peer, &weft__perf__perf__descriptor, &c->stub));
}

static void caller_close(struct caller *c)
{
	weft_stub_close(c->stub);
	weft_peer_close(c->peer);
	need(!weft_node_close(c->node));
	process_signal(&c->serve, SIGINT);
	assert_true(process_wait(&c->serve, PROCESS_LIMIT_MS));
	assert_int_equal(c->serve.status, 0);
	assert_string_equal(process_err(&c->serve), "");
	process_stop(&c->serve);
}

static ProtobufCService *once(struct caller *c, struct weft_op **op)
{
	ProtobufCService *service;

	need(!weft_call_open(c->stub, NULL, &service, op));
	return service;
}

static void answered(struct weft_op *op)
{
	pair_ended(op, WEFT_OK);
	weft_op_free(op);
}

static void got_nothing(const Weft__Perf__Nothing *reply, void *data)
{
	(void)reply;
	(void)data;
}

static void got_time(const Weft__Perf__Time *reply, void *data)
{
	(void)reply;
	(void)data;
}

static void got_report(const Weft__Perf__RunReport *reply, void *data)
{
	if (reply)
		*(Weft__Perf__RunReport *)data = *reply;
}

/* Ask the server for its processor time. */
static struct weft_op *ask_time(struct caller *c, Weft__Perf__Time_Closure got, void *data)
{
	const Weft__Perf__Nothing nothing = WEFT__PERF__NOTHING__INIT;
	struct weft_op *op;

	weft__perf__perf__spent(once(c, &op), &nothing, got, data);
	return op;
}

/* Begin to send a body of the run @number that has its sum already, and then another byte. */
static struct pair_send send_damaged(struct caller *c, uint64_t number)
{
	struct weft_send_options options = { .size = sizeof(options),
					     .op = { .size = sizeof(options.op),
						     .flags = WEFT_CHECKSUM } };
	struct pair_send send = { .bytes = calloc(1, BODY_BYTES) };
	int64_t shape = BODY_BYTES;
	struct weft_tensor tensor = pair_tensor(send.bytes, &shape);

	need(!weft_send(c->peer, number, PERF_KEY, strlen(PERF_KEY), &tensor, &options, &send.op));
	/* It is offered once the server has answered what was asked after it. */
	answered(ask_time(c, got_time, NULL));
	((char *)send.bytes)[BODY_BYTES / 2]++;
	return send;
}

/* A run of one such body: what the server says at its end. */
static Weft__Perf__RunReport run_damaged(struct caller *c, uint64_t number, bool one_way)
{
	Weft__Perf__RunReport report = WEFT__PERF__RUN_REPORT__INIT;
	Weft__Perf__RunEnd end = WEFT__PERF__RUN_END__INIT;
	Weft__Perf__Run run = WEFT__PERF__RUN__INIT;
	struct pair_send send = send_damaged(c, number);
	uint64_t bytes = BODY_BYTES;
	ProtobufCService *service;
	struct weft_op *op;

	run.number = end.number = number;
	run.bytes = &bytes;
	run.n_bytes = run.window = 1;
	run.one_way = one_way;
	end.sent = 1;

	service = once(c, &op);
	weft__perf__perf__start(service, &run, got_nothing, NULL);
	answered(op);
	pair_ended(send.op, WEFT_DATA_LOSS);
	weft_op_free(send.op);
	free(send.bytes);
	if (!one_way)
		answered(pair_recv(c->node, c->peer, number, PERF_ACK_KEY));

	service = once(c, &op);
	weft__perf__perf__end(service, &end, got_report, &report);
	answered(op);
	return report;
}

static void a_server_acknowledges_and_counts_a_body_that_comes_damaged(void **state)
{
	static struct caller c;

	(void)state;
	caller_open(&c, WEFT_THREADED);
	for (int one_way = 0; one_way < 2; one_way++) {
		Weft__Perf__RunReport report = run_damaged(&c, 100 + (unsigned)one_way, one_way);

		assert_int_equal(report.received, 1);
		assert_int_equal(report.damaged, BODY_BYTES);
	}
	caller_close(&c);
}

/* Start a run of one tensor, which the server answers with @status. */
static void start_run(struct caller *c, uint64_t number, uint64_t bytes, unsigned window,
		      enum weft_status status)
{
	Weft__Perf__Run run = WEFT__PERF__RUN__INIT;
	ProtobufCService *service;
	struct weft_op *op;

	run.number = number;
	run.bytes = &bytes;
	run.n_bytes = 1;
	run.window = window;
	service = once(c, &op);
	weft__perf__perf__start(service, &run, got_nothing, NULL);
	pair_ended(op, status);
	weft_op_free(op);
}

static void all_runs_of_a_caller_have_no_more_memory_than_one_may_have(void **state)
{
	static struct caller c;

	(void)state;
	caller_open(&c, WEFT_THREADED);
	start_run(&c, 1, 8, 1, WEFT_OK);
	start_run(&c, 2, PERF_BYTES_MAX, PERF_MEMORY_MAX / PERF_BYTES_MAX, WEFT_RESOURCE_EXHAUSTED);
	start_run(&c, 3, 8, 1, WEFT_OK);
	caller_close(&c);
}

/* A stream whose reports nobody reads. */

#define BODIES 1000    /* two windows of a stream and what a server reads ahead are far fewer */
#define ROUNDS 200     /* more than grants for all bodies would take */
#define TAKEN_MAX 200u /* bodies that a server takes then, and the window of those it does not */

static void count_well(struct weft_op *op, void *arg)
{
	*(unsigned *)arg += weft_op_status(op) == WEFT_OK;
}

static struct weft_stream *begin_flow(struct caller *c, unsigned *written, struct weft_op **call)
{
	const struct weft_op_options options = { .size = sizeof(options),
						 .done = count_well,
						 .arg = written };
	const Weft__Perf__Body body = WEFT__PERF__BODY__INIT;
	struct weft_stream *stream;

	need(!weft_stream_open(c->stub, "Flow", NULL, &stream, call));
	for (int i = 0; i < BODIES; i++)
		need(!flow_ask(stream, &body, &options, NULL));
	return stream;
}

static void a_server_takes_no_more_bodies_of_a_stream_while_its_reports_are_not_read(void **state)
{
	static struct caller c;
	struct weft_stream *stream;
	struct weft_op *call, *op;
	unsigned written = 0;

	(void)state;
	caller_open(&c, WEFT_THREADED);
	stream = begin_flow(&c, &written, &call);
	for (int i = 0; i < ROUNDS; i++)
		answered(ask_time(&c, got_time, NULL));
	assert_in_range(written, 1, TAKEN_MAX);

	need(!weft_stream_half_close(stream));
	for (int i = 0; i < BODIES; i++) {
		need(!weft_stream_read(stream, NULL, &op));
		pair_ended(op, WEFT_OK);
		assert_non_null(flow_answered(op));
		weft_op_free(op);
	}
	answered(call);
	assert_int_equal(written, BODIES);
	weft_stream_close(stream);
	caller_close(&c);
}

static void count_reply(const Weft__Perf__Time *reply, void *data)
{
	*(unsigned *)data += reply != NULL;
}

static void a_call_that_is_dropped_gets_no_reply_afterwards(void **state)
{
	unsigned replies = 0, before;
	static struct caller c;
	struct weft_op *op;

	(void)state;
	caller_open(&c, WEFT_MANUAL);
	answered(ask_time(&c, got_time, NULL));
	op = ask_time(&c, count_reply, &replies);
	pair_sleep_ms(200); /* the reply comes, and nobody drives the node */
	tool_drop(op);
	before = replies;
	caller_close(&c);
	assert_int_equal(replies, before);
}

/* A server that says that a body of each run came damaged. */

#define DAMAGED 8
#define SENT 9 /* in each half: one that is timed, and eight before it */

static struct weft_node *server;

static void begin_ack(struct weft_peer *peer, uint64_t run)
{
	struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SNAPSHOT };
	struct perf_ack ack = { 0 };
	int64_t shape = sizeof(ack);
	struct weft_tensor tensor = pair_tensor(&ack, &shape);
	struct weft_op *op;

	options.op.size = sizeof(options.op);
	if (!weft_send(peer, run, PERF_ACK_KEY, strlen(PERF_ACK_KEY), &tensor, &options, &op))
		weft_op_free(op);
}

static void serve_join(Weft__Perf__Perf_Service *service, const Weft__Perf__Caller *request,
		       Weft__Perf__Nothing_Closure reply, void *call)
{
	const Weft__Perf__Nothing nothing = WEFT__PERF__NOTHING__INIT;

	(void)service;
	(void)request;
	reply(&nothing, call);
}

static void serve_start(Weft__Perf__Perf_Service *service, const Weft__Perf__Run *request,
			Weft__Perf__Nothing_Closure reply, void *call)
{
	const Weft__Perf__Nothing nothing = WEFT__PERF__NOTHING__INIT;
	struct weft_peer *peer = weft_served_peer(call);
	struct weft_op *op;

	(void)service;
	for (int i = 0; i < SENT; i++) {
		if (!weft_recv(server, peer, request->number, PERF_KEY,
			       strlen(PERF_KEY), NULL, NULL, &op))
			weft_op_free(op);
		begin_ack(peer, request->number);
	}
	reply(&nothing, call);
}

static void serve_end(Weft__Perf__Perf_Service *service, const Weft__Perf__RunEnd *request,
		      Weft__Perf__RunReport_Closure reply, void *call)
{
	Weft__Perf__RunReport report = WEFT__PERF__RUN_REPORT__INIT;

	(void)service;
	report.received = request->sent;
	report.damaged = DAMAGED;
	reply(&report, call);
}

static void serve_spent(Weft__Perf__Perf_Service *service, const Weft__Perf__Nothing *request,
			Weft__Perf__Time_Closure reply, void *call)
{
	const Weft__Perf__Time time = WEFT__PERF__TIME__INIT;

	(void)service;
	(void)request;
	reply(&time, call);
}

/* The first of the calls that are timed fails. */
static void serve_put(Weft__Perf__Perf_Service *service, const Weft__Perf__Body *request,
		      Weft__Perf__BodyReport_Closure reply, void *call)
{
	const Weft__Perf__BodyReport report = WEFT__PERF__BODY_REPORT__INIT;
	static unsigned count;

	(void)service;
	(void)request;
	if (++count < SENT)
		reply(&report, call);
	else
		weft_served_fail(call, WEFT_INTERNAL, "no more");
}

static Weft__Perf__Perf_Service service = {
	.base = WEFT__PERF__PERF__BASE_INIT,
	.join = serve_join,
	.start = serve_start,
	.put = serve_put,
	.end = serve_end,
	.spent = serve_spent,
	.leave = serve_join,
};

static void a_client_fails_by_what_came_damaged_in_any_run(void **state)
{
	static struct process perf;
	char path[512];
	const char *argv[] = { process_path("weft", path), "perf", "--no-validate", "--sizes",
			       "8", "--window", "1", "--count", "1", NULL, NULL };

	(void)state;
	server = node_open(WEFT_THREADED);
	argv[9] = weft_node_address(server);
	need(!weft_serve(server, &service.base));
	process_start(&perf, variables, argv);
	assert_true(process_wait(&perf, PROCESS_LIMIT_MS));
	assert_string_equal(process_err(&perf),
			    "weft perf: 16 bytes arrived otherwise than sent\n");
	assert_int_equal(perf.status, 1);
	process_stop(&perf);
	need(!weft_node_close(server));
}

static void a_client_with_a_rate_hears_of_a_failure_before_its_room_is_needed_again(void **state)
{
	static struct process perf;
	char path[512];
	const char *argv[] = { process_path("weft", path), "perf", "--no-validate", "--test", "call",
			       "--sizes", "0", "--window", "1000", "--count", "1000", "--rate", "1",
			       NULL, NULL };

	(void)state;
	server = node_open(WEFT_THREADED);
	argv[13] = weft_node_address(server);
	need(!weft_serve(server, &service.base));
	process_start(&perf, variables, argv);
	assert_true(process_wait(&perf, PROCESS_LIMIT_MS));
	assert_non_null(strstr(process_err(&perf), "INTERNAL: no more"));
	assert_int_equal(perf.status, 1);
	process_stop(&perf);
	need(!weft_node_close(server));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_acknowledges_and_counts_a_body_that_comes_damaged),
		cmocka_unit_test(all_runs_of_a_caller_have_no_more_memory_than_one_may_have),
		cmocka_unit_test(
			a_server_takes_no_more_bodies_of_a_stream_while_its_reports_are_not_read),
		cmocka_unit_test(a_call_that_is_dropped_gets_no_reply_afterwards),
		cmocka_unit_test(a_client_fails_by_what_came_damaged_in_any_run),
		cmocka_unit_test(
			a_client_with_a_rate_hears_of_a_failure_before_its_room_is_needed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
