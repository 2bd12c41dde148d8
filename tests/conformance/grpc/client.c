/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client of gRPC's interoperability tests: same names, sizes and codes.
 *
 *   client ADDRESS [CASE...]    runs the cases, or all; a line for each:
 *                               CASE PROVIDER passed | FAILED: what was expected
 *   client --list               prints their names
 *
 * The status is 1 if one has failed.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interop.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MS 1000000ull
#define LIMIT_NS (60000 * MS) /* of what takes milliseconds */
#define PARALLEL 1000
#define SOAK 1000

static const char *address; /* of the server */
static struct weft_node *node;
static struct weft_peer *peer;
static struct weft_stub *stub, *nowhere, *backends;

/* What a case expected in vain; longer ones are cut. */
static char failure[300];

static bool miss(const char *what, int line, const char *text)
{
	snprintf(failure, sizeof(failure), "%s (line %d)%s%s", what, line, *text ? ": " : "", text);
	return false;
}

#define EXPECT(what)                                                                           \
	do {                                                                                   \
		if (!(what))                                                                   \
			return miss(#what, __LINE__, weft_error());                            \
	} while (0)

static void check(int err)
{
	if (err) {
		fprintf(stderr, "client: %s\n", weft_error());
		exit(2);
	}
}

/* The outcome of @op, which it frees. */
static enum weft_status outcome(struct weft_op *op)
{
	enum weft_status status;

	check(weft_wait(op, LIMIT_NS));
	status = weft_op_status(op);
	weft_op_free(op);
	return status;
}

static struct weft_call_options call_options(uint64_t timeout_ns)
{
	return (struct weft_call_options){
		.size = sizeof(struct weft_call_options),
		.op = { .size = sizeof(struct weft_op_options),
			.timeout_ns = timeout_ns ? timeout_ns : LIMIT_NS },
	};
}

static bool zeros(const Payload *payload, size_t bytes)
{
	if (!payload)
		return !bytes;
	for (size_t i = 0; i < payload->body.len; i++)
		if (payload->body.data[i])
			return false;
	return payload->body.len == bytes;
}

/* A payload of @bytes zeros. */
static Payload payload_of(size_t bytes)
{
	static uint8_t none[1 << 20];
	Payload payload = GRPC__TESTING__PAYLOAD__INIT;

	payload.body.len = bytes;
	payload.body.data = none;
	return payload;
}

/* Unary calls. */

struct unary {
	size_t want;
	bool good;
	struct weft_op *op;
};

static void heard_empty(const Empty *reply, void *arg)
{
	((struct unary *)arg)->good = reply != NULL;
}

static void heard(const SimpleResponse *reply, void *arg)
{
	struct unary *call = arg;

	call->good = reply && zeros(reply->payload, call->want);
}

/* Begin a UnaryCall; what it said is known when its operation has ended. */
static void begin_unary(struct unary *call, const struct weft_call_options *options,
			size_t request_bytes, size_t reply_bytes)
{
	SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
	Payload payload = payload_of(request_bytes);
	ProtobufCService *service;

	*call = (struct unary){ .want = reply_bytes };
	request.payload = &payload;
	request.response_size = (int32_t)reply_bytes;
	check(weft_call_open(stub, options, &service, &call->op));
	grpc__testing__test_service__unary_call(service, &request, heard, call);
}

static bool large(size_t times)
{
	struct weft_call_options options = call_options(0);
	struct unary *calls = calloc(times, sizeof(*calls));
	size_t good = 0;

	for (size_t i = 0; i < times; i++)
		begin_unary(&calls[i], &options, 271828, 314159);
	for (size_t i = 0; i < times; i++)
		good += outcome(calls[i].op) == WEFT_OK && calls[i].good;
	free(calls);
	EXPECT(good == times);
	return true;
}

static bool empty_unary(void)
{
	struct weft_call_options options = call_options(0);
	Empty request = GRPC__TESTING__EMPTY__INIT;
	struct unary call = { 0 };
	ProtobufCService *service;

	check(weft_call_open(stub, &options, &service, &call.op));
	grpc__testing__test_service__empty_call(service, &request, heard_empty, &call);
	EXPECT(outcome(call.op) == WEFT_OK);
	EXPECT(call.good);
	return true;
}

static bool large_unary(void)
{
	return large(1);
}

static bool concurrent_large_unary(void)
{
	return large(PARALLEL);
}

static bool rpc_soak(void)
{
	for (int i = 0; i < SOAK; i++)
		if (!empty_unary())
			return false;
	return true;
}

/* A node and a connection for each. */
static bool channel_soak(void)
{
	struct weft_node *first_node = node;
	struct weft_peer *first_peer = peer;
	struct weft_stub *first_stub = stub;
	bool good = true;

	for (int i = 0; i < 10 && good; i++) {
		check(weft_node_open(NULL, &node));
		check(weft_peer_open(node, address, &peer));
		check(weft_stub_open(peer, &grpc__testing__test_service__descriptor, &stub));
		good = large_unary();
		weft_stub_close(stub);
		weft_peer_close(peer);
		check(weft_node_close(node));
	}
	node = first_node;
	peer = first_peer;
	stub = first_stub;
	return good;
}

static bool unimplemented_at(struct weft_stub *at)
{
	struct weft_call_options options = call_options(0);
	Empty request = GRPC__TESTING__EMPTY__INIT;
	struct unary call = { 0 };
	ProtobufCService *service;

	check(weft_call_open(at, &options, &service, &call.op));
	if (at == stub)
		grpc__testing__test_service__unimplemented_call(service, &request, heard_empty,
								&call);
	else
		grpc__testing__unimplemented_service__unimplemented_call(service, &request,
									 heard_empty, &call);
	EXPECT(outcome(call.op) == WEFT_UNIMPLEMENTED);
	EXPECT(!call.good);
	return true;
}

static bool unimplemented_method(void)
{
	return unimplemented_at(stub);
}

static bool unimplemented_service(void)
{
	return unimplemented_at(nowhere);
}

/* Streams. */

struct talk {
	struct weft_stream *stream;
	struct weft_op *call;
};

static struct talk begin(const char *method, const struct weft_call_options *options)
{
	struct talk t;

	check(weft_stream_open(stub, method, options, &t.stream, &t.call));
	return t;
}

static enum weft_status end(struct talk *t)
{
	enum weft_status status = outcome(t->call);

	weft_stream_close(t->stream);
	return status;
}

/* A request of @bytes that asks for replies of @sizes. */
static bool ask(struct talk *t, size_t bytes, const int32_t *sizes, size_t count)
{
	OutputRequest request = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
	ResponseParameters parameters[4], *pointers[4];
	Payload payload = payload_of(bytes);

	for (size_t i = 0; i < count; i++) {
		pointers[i] = &parameters[i];
		parameters[i] = (ResponseParameters)GRPC__TESTING__RESPONSE_PARAMETERS__INIT;
		parameters[i].size = sizes[i];
	}
	request.n_response_parameters = count;
	request.response_parameters = pointers;
	request.payload = &payload;
	return !output_ask(t->stream, &request, NULL, NULL);
}

/* Is the next reply of so many zeros? */
static bool hears(struct talk *t, size_t bytes)
{
	const OutputResponse *reply;
	struct weft_op *op;
	bool good;

	check(weft_stream_read(t->stream, NULL, &op));
	check(weft_wait(op, LIMIT_NS));
	reply = output_answered(op);
	good = reply && zeros(reply->payload, bytes);
	weft_op_free(op);
	return good;
}

/* The status with which the next read ends; OK: there is nothing more to read. */
static enum weft_status hears_end(struct talk *t)
{
	enum weft_status status;
	struct weft_op *op;

	check(weft_stream_read(t->stream, NULL, &op));
	check(weft_wait(op, LIMIT_NS));
	status = weft_stream_message(op) ? WEFT_OUT_OF_RANGE : weft_op_status(op);
	weft_op_free(op);
	return status;
}

/* There is nothing more to hear, and all went well. */
static bool ends_well(struct talk *t)
{
	EXPECT(hears_end(t) == WEFT_OK);
	EXPECT(end(t) == WEFT_OK);
	return true;
}

static bool client_streaming(void)
{
	static const size_t sizes[] = { 27182, 8, 1828, 45904 };
	struct weft_call_options options = call_options(0);
	struct talk t = begin("StreamingInputCall", &options);
	InputRequest request = GRPC__TESTING__STREAMING_INPUT_CALL_REQUEST__INIT;
	struct weft_op *op;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		Payload payload = payload_of(sizes[i]);

		request.payload = &payload;
		EXPECT(!input_ask(t.stream, &request, NULL, &op));
		EXPECT(outcome(op) == WEFT_OK);
	}
	EXPECT(!weft_stream_half_close(t.stream));
	check(weft_stream_read(t.stream, NULL, &op));
	check(weft_wait(op, LIMIT_NS));
	EXPECT(input_answered(op));
	EXPECT(input_answered(op)->aggregated_payload_size == 74922);
	weft_op_free(op);
	return ends_well(&t);
}

static const int32_t reply_sizes[] = { 31415, 9, 2653, 58979 };
static const size_t request_sizes[] = { 27182, 8, 1828, 45904 };

static bool server_streaming(void)
{
	struct weft_call_options options = call_options(0);
	struct talk t = begin("StreamingOutputCall", &options);

	EXPECT(ask(&t, 0, reply_sizes, COUNT(reply_sizes)));
	EXPECT(!weft_stream_half_close(t.stream));
	for (size_t i = 0; i < COUNT(reply_sizes); i++)
		EXPECT(hears(&t, (size_t)reply_sizes[i]));
	return ends_well(&t);
}

static bool ping_pong(void)
{
	struct weft_call_options options = call_options(0);
	struct talk t = begin("FullDuplexCall", &options);

	for (size_t i = 0; i < COUNT(reply_sizes); i++) {
		EXPECT(ask(&t, request_sizes[i], &reply_sizes[i], 1));
		EXPECT(hears(&t, (size_t)reply_sizes[i]));
	}
	EXPECT(!weft_stream_half_close(t.stream));
	return ends_well(&t);
}

static bool half_duplex(void)
{
	struct weft_call_options options = call_options(0);
	struct talk t = begin("HalfDuplexCall", &options);

	for (size_t i = 0; i < COUNT(reply_sizes); i++)
		EXPECT(ask(&t, request_sizes[i], &reply_sizes[i], 1));
	EXPECT(!weft_stream_half_close(t.stream));
	for (size_t i = 0; i < COUNT(reply_sizes); i++)
		EXPECT(hears(&t, (size_t)reply_sizes[i]));
	return ends_well(&t);
}

static bool empty_stream(void)
{
	struct weft_call_options options = call_options(0);
	struct talk t = begin("FullDuplexCall", &options);

	EXPECT(!weft_stream_half_close(t.stream));
	return ends_well(&t);
}

static bool cancel_after_begin(void)
{
	struct weft_call_options options = call_options(0);
	struct talk t = begin("StreamingInputCall", &options);

	weft_cancel(t.call);
	EXPECT(end(&t) == WEFT_CANCELLED);
	return true;
}

static bool cancel_after_first_response(void)
{
	struct weft_call_options options = call_options(0);
	struct talk t = begin("FullDuplexCall", &options);

	EXPECT(ask(&t, 27182, reply_sizes, 1));
	EXPECT(hears(&t, 31415));
	weft_cancel(t.call);
	EXPECT(hears_end(&t) == WEFT_CANCELLED);
	EXPECT(end(&t) == WEFT_CANCELLED);
	return true;
}

static bool timeout_on_sleeping_server(void)
{
	struct weft_call_options options = call_options(MS);
	struct talk t = begin("FullDuplexCall", &options);

	(void)ask(&t, 27182, NULL, 0); /* nobody answers, and it may be too late */
	EXPECT(hears_end(&t) == WEFT_DEADLINE_EXCEEDED);
	EXPECT(end(&t) == WEFT_DEADLINE_EXCEEDED);
	return true;
}

/* A reader who does not read: the writer stops, and all of it comes later. */
static bool server_pushback(void)
{
	enum { REPLIES = 400, BYTES = 4096 };
	struct weft_call_options options = call_options(0);
	struct talk t = begin("FullDuplexCall", &options);
	struct timespec pause = { .tv_nsec = 100 * MS };
	int32_t sizes[4] = { BYTES, BYTES, BYTES, BYTES };

	for (int i = 0; i < REPLIES / 4; i++)
		EXPECT(ask(&t, 1, sizes, 4));
	EXPECT(!weft_stream_half_close(t.stream));
	nanosleep(&pause, NULL);
	for (int i = 0; i < REPLIES; i++)
		EXPECT(hears(&t, BYTES));
	return ends_well(&t);
}

/* Compressed messages. */

/* What a peer understands is known when it has been met. */
static void meet(void)
{
	struct weft_op *op;

	check(weft_ping(peer, NULL, &op));
	check(weft_wait(op, LIMIT_NS));
	weft_op_free(op);
}

struct compressed {
	struct unary call;
	bool was;
};

static void heard_compressed(const SimpleResponse *reply, void *arg)
{
	struct compressed *c = arg;

	heard(reply, &c->call);
	c->was = weft_op_compressed(c->call.op);
}

/* A UnaryCall that goes as @as and says that it goes as @said; the answer is to be as @back. */
static enum weft_status call_compressed(struct compressed *c, enum weft_compression as, bool said,
					bool back)
{
	struct weft_call_options options = call_options(0);
	SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
	Grpc__Testing__BoolValue expected = GRPC__TESTING__BOOL_VALUE__INIT, wanted = expected;
	Payload payload = payload_of(271828);
	ProtobufCService *service;

	*c = (struct compressed){ .call.want = 314159 };
	expected.value = said;
	wanted.value = back;
	options.compression = as;
	request.payload = &payload;
	request.expect_compressed = &expected;
	request.response_compressed = &wanted;
	request.response_size = 314159;
	check(weft_call_open(stub, &options, &service, &c->call.op));
	grpc__testing__test_service__unary_call(service, &request, heard_compressed, c);
	return outcome(c->call.op);
}

static bool client_compressed_unary(void)
{
	struct compressed c;

	meet();
	EXPECT(call_compressed(&c, WEFT_UNCOMPRESSED, true, false) == WEFT_INVALID_ARGUMENT);
	EXPECT(call_compressed(&c, WEFT_ZSTD, true, false) == WEFT_OK);
	EXPECT(c.call.good);
	EXPECT(call_compressed(&c, WEFT_UNCOMPRESSED, false, false) == WEFT_OK);
	EXPECT(c.call.good);
	return true;
}

static bool server_compressed_unary(void)
{
	struct compressed c;

	meet();
	EXPECT(call_compressed(&c, WEFT_UNCOMPRESSED, false, true) == WEFT_OK);
	EXPECT(c.call.good && c.was);
	EXPECT(call_compressed(&c, WEFT_UNCOMPRESSED, false, false) == WEFT_OK);
	EXPECT(c.call.good && !c.was);
	return true;
}

/* A message that goes as @as and says that it goes as @said. */
static bool input_compressed(struct talk *t, size_t bytes, enum weft_compression as, bool said)
{
	InputRequest request = GRPC__TESTING__STREAMING_INPUT_CALL_REQUEST__INIT;
	Grpc__Testing__BoolValue expected = GRPC__TESTING__BOOL_VALUE__INIT;
	Payload payload = payload_of(bytes);

	expected.value = said;
	request.expect_compressed = &expected;
	request.payload = &payload;
	return !weft_stream_compress(t->stream, as) &&
	       !input_ask(t->stream, &request, NULL, NULL);
}

static bool client_compressed_streaming(void)
{
	struct weft_call_options options = call_options(0);
	struct talk probe, t;
	struct weft_op *op;

	meet();
	probe = begin("StreamingInputCall", &options);
	EXPECT(input_compressed(&probe, 27182, WEFT_UNCOMPRESSED, true));
	EXPECT(end(&probe) == WEFT_INVALID_ARGUMENT);

	t = begin("StreamingInputCall", &options);
	EXPECT(input_compressed(&t, 27182, WEFT_ZSTD, true));
	EXPECT(input_compressed(&t, 45904, WEFT_UNCOMPRESSED, false));
	EXPECT(!weft_stream_half_close(t.stream));
	check(weft_stream_read(t.stream, NULL, &op));
	check(weft_wait(op, LIMIT_NS));
	EXPECT(input_answered(op));
	EXPECT(input_answered(op)->aggregated_payload_size == 73086);
	weft_op_free(op);
	return ends_well(&t);
}

static bool server_compressed_streaming(void)
{
	static const int32_t sizes[] = { 31415, 92653 };
	struct weft_call_options options = call_options(0);
	OutputRequest request = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
	ResponseParameters parameters[2], *pointers[2];
	Grpc__Testing__BoolValue compressed[2];
	struct talk t;

	for (int i = 0; i < 2; i++) {
		compressed[i] = (Grpc__Testing__BoolValue)GRPC__TESTING__BOOL_VALUE__INIT;
		compressed[i].value = !i;
		parameters[i] = (ResponseParameters)GRPC__TESTING__RESPONSE_PARAMETERS__INIT;
		parameters[i].size = sizes[i];
		parameters[i].compressed = &compressed[i];
		pointers[i] = &parameters[i];
	}
	request.n_response_parameters = 2;
	request.response_parameters = pointers;
	t = begin("StreamingOutputCall", &options);
	EXPECT(!output_ask(t.stream, &request, NULL, NULL));
	EXPECT(!weft_stream_half_close(t.stream));
	for (int i = 0; i < 2; i++) {
		struct weft_op *op;
		bool good, was;

		check(weft_stream_read(t.stream, NULL, &op));
		check(weft_wait(op, LIMIT_NS));
		good = output_answered(op) && zeros(output_answered(op)->payload, (size_t)sizes[i]);
		was = weft_op_compressed(op);
		weft_op_free(op);
		EXPECT(good && was == !i);
	}
	return ends_well(&t);
}

/* A crowd: thousands of calls and streams at once, of which half end early. */

enum { CROWD_CALLS = 10000, CROWD_STREAMS = 1000 };

/* What is to become of one of the crowd. */
enum fate { LIVES, CANCELLED, TIMED_OUT };

static enum fate fate_of(unsigned i)
{
	/* Half of them, and spread so that no batch ends alike. */
	return i * 2654435761u >> 31 ? LIVES : i % 2 ? CANCELLED : TIMED_OUT;
}

/* An early end is a race, which either may win. */
static bool is_right(enum fate fate, enum weft_status status)
{
	return status == WEFT_OK || (fate == CANCELLED && status == WEFT_CANCELLED) ||
	       (fate == TIMED_OUT && status == WEFT_DEADLINE_EXCEEDED);
}

static bool crowd_of_calls(void)
{
	struct unary *calls = calloc(CROWD_CALLS, sizeof(*calls));
	unsigned wrong = 0;

	for (unsigned i = 0; i < CROWD_CALLS; i++) {
		struct weft_call_options options =
			call_options(fate_of(i) == TIMED_OUT ? (i % 20 + 1) * MS : 0);

		begin_unary(&calls[i], &options, 100, 1000);
		if (fate_of(i) == CANCELLED)
			weft_cancel(calls[i].op);
	}
	for (unsigned i = 0; i < CROWD_CALLS; i++) {
		enum weft_status status = outcome(calls[i].op);

		wrong += !is_right(fate_of(i), status) || (status == WEFT_OK) != calls[i].good;
	}
	free(calls);
	EXPECT(!wrong);
	return true;
}

static bool crowd_of_streams(void)
{
	struct talk *talks = calloc(CROWD_STREAMS, sizeof(*talks));
	int32_t sizes[] = { 1000, 1000 };
	unsigned wrong = 0;

	for (unsigned i = 0; i < CROWD_STREAMS; i++) {
		struct weft_call_options options =
			call_options(fate_of(i) == TIMED_OUT ? (i % 50 + 1) * MS : 0);

		talks[i] = begin("FullDuplexCall", &options);
		(void)ask(&talks[i], 100, sizes, 2);
	}
	for (unsigned i = 0; i < CROWD_STREAMS; i++)
		if (fate_of(i) == CANCELLED)
			weft_cancel(talks[i].call);
	for (unsigned i = 0; i < CROWD_STREAMS; i++) {
		bool whole = hears(&talks[i], 1000) && hears(&talks[i], 1000);
		enum weft_status status;

		(void)weft_stream_half_close(talks[i].stream);
		status = end(&talks[i]);
		wrong += !is_right(fate_of(i), status) || (status == WEFT_OK && !whole);
	}
	free(talks);
	EXPECT(!wrong);
	return true;
}

static struct weft_counters held(void)
{
	struct weft_counters counters = { .size = sizeof(counters) };

	check(weft_node_counters(node, &counters));
	return counters;
}

static size_t resident_bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	size_t all, resident = 0;

	malloc_trim(0);
	if (!statm || fscanf(statm, "%zu %zu", &all, &resident) != 2)
		resident = 0;
	if (statm)
		fclose(statm);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static bool thousands_of_calls(void)
{
	struct weft_counters before, after;
	struct timespec moment = { .tv_nsec = MS };
	size_t bytes;

	/* What the first ones leave is kept for the next. */
	if (!crowd_of_calls() || !crowd_of_streams())
		return false;
	before = held();
	bytes = resident_bytes();
	if (!crowd_of_calls() || !crowd_of_streams())
		return false;
	/* The last word of a cancelled call may still be on its way. */
	for (int i = 0; i < 10000; i++) {
		after = held();
		if (after.calls == before.calls && after.message_bytes == before.message_bytes)
			break;
		nanosleep(&moment, NULL);
	}
	EXPECT(after.calls == before.calls);
	EXPECT(after.message_bytes == before.message_bytes);
	EXPECT(after.pool_bytes_used == before.pool_bytes_used);
	EXPECT(resident_bytes() < bytes + (16 << 20));
	return true;
}

/* Servers that a case has to itself. */

struct backend {
	struct weft_peer *peer;
	struct weft_stub *stub;
	bool good;
};

static void heard_address(const Backend__Address *reply, void *arg)
{
	struct backend *b = arg;

	b->good = reply && !weft_peer_open(node, reply->address, &b->peer);
}

static bool open_backend(struct backend *b, unsigned calls_max)
{
	Backend__Limits limits = BACKEND__LIMITS__INIT;
	struct weft_call_options options = call_options(0);
	ProtobufCService *service;
	struct weft_op *op;

	*b = (struct backend){ 0 };
	limits.calls_max = calls_max;
	check(weft_call_open(backends, &options, &service, &op));
	backend__backend__open(service, &limits, heard_address, b);
	EXPECT(outcome(op) == WEFT_OK);
	EXPECT(b->good);
	check(weft_stub_open(b->peer, &grpc__testing__test_service__descriptor, &b->stub));
	return true;
}

static void heard_nothing(const Backend__Nothing *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

/* Its operation ends when the server is no more. */
static struct weft_op *drain_backend(void)
{
	Backend__Nothing nothing = BACKEND__NOTHING__INIT;
	struct weft_call_options options = call_options(0);
	ProtobufCService *service;
	struct weft_op *op;

	check(weft_call_open(backends, &options, &service, &op));
	backend__backend__drain(service, &nothing, heard_nothing, NULL);
	return op;
}

static void close_backend(struct backend *b)
{
	weft_stub_close(b->stub);
	weft_peer_close(b->peer);
}

/* How the next call of it ends; what is refused was not executed. */
static enum weft_status calls(struct backend *b)
{
	struct weft_call_options options = call_options(0);
	Empty request = GRPC__TESTING__EMPTY__INIT;
	struct unary call = { 0 };
	ProtobufCService *service;

	check(weft_call_open(b->stub, &options, &service, &call.op));
	grpc__testing__test_service__empty_call(service, &request, heard_empty, &call);
	check(weft_wait(call.op, LIMIT_NS));
	if (weft_op_status(call.op) == WEFT_UNAVAILABLE &&
	    weft_op_executed(call.op) != WEFT_EXECUTED_NO) {
		weft_op_free(call.op);
		return WEFT_DATA_LOSS;
	}
	return outcome(call.op);
}

static struct talk begin_at(struct backend *b, const struct weft_call_options *options)
{
	struct talk t;

	check(weft_stream_open(b->stub, "FullDuplexCall", options, &t.stream, &t.call));
	return t;
}

/* It drains in the middle of a stream, which goes on, while new calls go elsewhere. */
static bool goaway(void)
{
	struct weft_call_options options = call_options(0);
	struct weft_op *drained;
	enum weft_status status;
	struct talk t, late;
	struct backend b;

	if (!open_backend(&b, 0))
		return false;
	EXPECT(calls(&b) == WEFT_OK);
	t = begin_at(&b, &options);
	EXPECT(ask(&t, request_sizes[0], &reply_sizes[0], 1));
	EXPECT(hears(&t, (size_t)reply_sizes[0]));
	drained = drain_backend();
	while ((status = calls(&b)) == WEFT_OK)
		;
	EXPECT(status == WEFT_UNAVAILABLE);
	late = begin_at(&b, &options);
	EXPECT(hears_end(&late) == WEFT_UNAVAILABLE);
	EXPECT(end(&late) == WEFT_UNAVAILABLE);
	EXPECT(large_unary());
	for (size_t i = 1; i < COUNT(reply_sizes); i++) {
		EXPECT(ask(&t, request_sizes[i], &reply_sizes[i], 1));
		EXPECT(hears(&t, (size_t)reply_sizes[i]));
	}
	EXPECT(!weft_op_ended(drained));
	EXPECT(!weft_stream_half_close(t.stream));
	if (!ends_well(&t))
		return false;
	EXPECT(outcome(drained) == WEFT_OK);
	close_backend(&b);
	return true;
}

/* One stream at a time: the others wait for it, and all are served. */
static bool max_streams(void)
{
	struct weft_call_options options = call_options(0);
	struct talk talks[10];
	struct backend b;

	if (!open_backend(&b, 1))
		return false;
	EXPECT(calls(&b) == WEFT_OK);
	for (size_t i = 0; i < COUNT(talks); i++) {
		talks[i] = begin_at(&b, &options);
		EXPECT(ask(&talks[i], 27182, reply_sizes, 1));
		EXPECT(!weft_stream_half_close(talks[i].stream));
	}
	for (size_t i = 0; i < COUNT(talks); i++) {
		EXPECT(hears(&talks[i], (size_t)reply_sizes[0]));
		if (!ends_well(&talks[i]))
			return false;
	}
	EXPECT(outcome(drain_backend()) == WEFT_OK);
	close_backend(&b);
	return true;
}

/* Metadata and status. */

static bool has_pair(const struct weft_metadata *pairs, size_t count,
		     const struct weft_metadata *want)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(pairs[i].key, want->key) && pairs[i].bytes == want->bytes &&
		    !memcmp(pairs[i].value, want->value, want->bytes))
			return true;
	return false;
}

static bool has_both(struct weft_op *op, const struct weft_metadata sent[2])
{
	const struct weft_metadata *pairs;
	size_t count;

	pairs = weft_call_initial(op, &count);
	if (!has_pair(pairs, count, &sent[0]))
		return false;
	pairs = weft_call_trailing(op, &count);
	return has_pair(pairs, count, &sent[1]);
}

static bool metadata(const char *text, size_t bytes)
{
	const struct weft_metadata sent[] = {
		{ ECHO_INITIAL, text, bytes },
		{ ECHO_TRAILING, "\xab\xab\xab", 3 },
	};
	struct weft_call_options options = call_options(0);
	struct unary call;
	struct talk t;

	options.metadata = sent;
	options.metadata_count = 2;
	begin_unary(&call, &options, 271828, 314159);
	check(weft_wait(call.op, LIMIT_NS));
	EXPECT(has_both(call.op, sent));
	EXPECT(outcome(call.op) == WEFT_OK);
	EXPECT(call.good);

	t = begin("FullDuplexCall", &options);
	EXPECT(ask(&t, 27182, reply_sizes, 1));
	EXPECT(hears(&t, 31415));
	EXPECT(!weft_stream_half_close(t.stream));
	EXPECT(hears_end(&t) == WEFT_OK);
	check(weft_wait(t.call, LIMIT_NS));
	EXPECT(has_both(t.call, sent));
	EXPECT(end(&t) == WEFT_OK);
	return true;
}

static bool custom_metadata(void)
{
	return metadata("test_initial_metadata_value", strlen("test_initial_metadata_value"));
}

static bool large_metadata(void)
{
	static char text[63 * 1024];

	memset(text, 'x', sizeof(text));
	return metadata(text, sizeof(text));
}

static bool fails_with(int code, const char *message)
{
	Grpc__Testing__EchoStatus wanted = GRPC__TESTING__ECHO_STATUS__INIT;
	OutputRequest output = GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
	SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
	struct weft_call_options options = call_options(0);
	struct unary call = { 0 };
	ProtobufCService *service;
	struct talk t;

	wanted.code = code;
	wanted.message = (char *)(uintptr_t)message;
	request.response_status = output.response_status = &wanted;
	check(weft_call_open(stub, &options, &service, &call.op));
	grpc__testing__test_service__unary_call(service, &request, heard, &call);
	check(weft_wait(call.op, LIMIT_NS));
	EXPECT(!strcmp(weft_op_message(call.op), message));
	EXPECT(outcome(call.op) == (enum weft_status)code);

	t = begin("FullDuplexCall", &options);
	EXPECT(!output_ask(t.stream, &output, NULL, NULL));
	EXPECT(!weft_stream_half_close(t.stream));
	EXPECT(hears_end(&t) == (enum weft_status)code);
	check(weft_wait(t.call, LIMIT_NS));
	EXPECT(!strcmp(weft_op_message(t.call), message));
	EXPECT(end(&t) == (enum weft_status)code);
	return true;
}

static bool status_code_and_message(void)
{
	return fails_with(2, "test status message");
}

static bool special_status_message(void)
{
	return fails_with(2, "\t\ntest with whitespace\r\nand Unicode BMP \xe2\x98\xba and non-BMP "
			     "\xf0\x9f\x98\x88\t\n");
}

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "empty_unary", empty_unary },
	{ "large_unary", large_unary },
	{ "client_streaming", client_streaming },
	{ "server_streaming", server_streaming },
	{ "ping_pong", ping_pong },
	{ "half_duplex", half_duplex },
	{ "empty_stream", empty_stream },
	{ "custom_metadata", custom_metadata },
	{ "large_metadata", large_metadata },
	{ "status_code_and_message", status_code_and_message },
	{ "special_status_message", special_status_message },
	{ "unimplemented_method", unimplemented_method },
	{ "unimplemented_service", unimplemented_service },
	{ "cancel_after_begin", cancel_after_begin },
	{ "cancel_after_first_response", cancel_after_first_response },
	{ "timeout_on_sleeping_server", timeout_on_sleeping_server },
	{ "concurrent_large_unary", concurrent_large_unary },
	{ "client_compressed_unary", client_compressed_unary },
	{ "server_compressed_unary", server_compressed_unary },
	{ "client_compressed_streaming", client_compressed_streaming },
	{ "server_compressed_streaming", server_compressed_streaming },
	{ "thousands_of_calls", thousands_of_calls },
	{ "server_pushback", server_pushback },
	{ "goaway", goaway },
	{ "max_streams", max_streams },
	{ "rpc_soak", rpc_soak },
	{ "channel_soak", channel_soak },
};

static bool wanted(const char *name, char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return !count;
}

int main(int argc, char **argv)
{
	const char *provider = getenv("WEFT_PROVIDER");
	int status = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: client ADDRESS [CASE...], or client --list\n");
		return 2;
	}
	if (!strcmp(argv[1], "--list")) {
		for (size_t i = 0; i < COUNT(cases); i++)
			puts(cases[i].name);
		return 0;
	}
	check(weft_node_open(NULL, &node));
	address = argv[1];
	check(weft_peer_open(node, address, &peer));
	check(weft_stub_open(peer, &grpc__testing__test_service__descriptor, &stub));
	check(weft_stub_open(peer, &grpc__testing__unimplemented_service__descriptor, &nowhere));
	check(weft_stub_open(peer, &backend__backend__descriptor, &backends));
	for (size_t i = 0; i < COUNT(cases); i++) {
		bool good;

		if (!wanted(cases[i].name, argv + 2, argc - 2))
			continue;
		good = cases[i].run();
		printf("%-28s %-8s %s%s\n", cases[i].name, provider ? provider : "any",
		       good ? "passed" : "FAILED: ", good ? "" : failure);
		fflush(stdout);
		status |= !good;
	}
	weft_stub_close(backends);
	weft_stub_close(nowhere);
	weft_stub_close(stub);
	weft_peer_close(peer);
	check(weft_node_close(node));
	return status;
}
