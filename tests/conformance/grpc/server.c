/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server of gRPC's interoperability tests.
 *
 *   server             prints its address, and serves until its input ends
 *
 * A call with a stream has a thread of its own, which waits for each read and
 * write: the plainest way to write a handler that may block.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interop.h"

#define TEXT_BYTES 200

static void check(int err)
{
	if (err) {
		fprintf(stderr, "server: %s\n", weft_error());
		exit(1);
	}
}

/* The caller may ask for two of its pairs back. */
static void echo_metadata(void *call)
{
	size_t count;
	const struct weft_metadata *pairs = weft_served_metadata(call, &count);

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(pairs[i].key, ECHO_INITIAL))
			check(weft_served_set_initial(call, &pairs[i], 1));
		else if (!strcmp(pairs[i].key, ECHO_TRAILING))
			check(weft_served_set_trailing(call, &pairs[i], 1));
	}
}

static void handle_empty(Grpc__Testing__TestService_Service *service, const Empty *request,
			 Grpc__Testing__Empty_Closure closure, void *call)
{
	Empty reply = GRPC__TESTING__EMPTY__INIT;

	(void)service;
	(void)request;
	closure(&reply, call);
}

/* Has the message come as its sender says that it goes? */
static bool came_as(const Grpc__Testing__BoolValue *expected, bool compressed)
{
	return !expected || (bool)expected->value == compressed;
}

static enum weft_compression as_asked(const Grpc__Testing__BoolValue *compressed)
{
	return compressed && compressed->value ? WEFT_ZSTD : WEFT_UNCOMPRESSED;
}

static void handle_unary(Grpc__Testing__TestService_Service *service,
			 const SimpleRequest *request,
			 Grpc__Testing__SimpleResponse_Closure closure, void *call)
{
	SimpleResponse reply = GRPC__TESTING__SIMPLE_RESPONSE__INIT;
	Payload payload = GRPC__TESTING__PAYLOAD__INIT;

	(void)service;
	echo_metadata(call);
	if (!came_as(request->expect_compressed, weft_served_compressed(call))) {
		weft_served_fail(call, WEFT_INVALID_ARGUMENT, "it was not compressed as it says");
		return;
	}
	check(weft_served_compress(call, as_asked(request->response_compressed)));
	if (request->response_status && request->response_status->code) {
		weft_served_fail(call, (enum weft_status)request->response_status->code,
				 request->response_status->message);
		return;
	}
	payload.body.len = request->response_size > 0 ? (size_t)request->response_size : 0;
	payload.body.data = calloc(1, payload.body.len + 1);
	if (!payload.body.data) {
		weft_served_fail(call, WEFT_RESOURCE_EXHAUSTED, "no memory for the payload");
		return;
	}
	reply.payload = &payload;
	closure(&reply, call);
	free(payload.body.data);
}

/* The next request, which lives as long as *@op; NULL: there is none any more. */
static const ProtobufCMessage *next(struct weft_stream *stream, struct weft_op **op)
{
	if (weft_stream_read(stream, NULL, op))
		return NULL;
	check(weft_wait(*op, WEFT_FOREVER)); /* the call has a deadline, or a caller */
	if (weft_op_status(*op) == WEFT_OK && weft_stream_message(*op))
		return weft_stream_message(*op);
	weft_op_free(*op);
	return NULL;
}

static void rest(int us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000L };

	if (us > 0)
		nanosleep(&time, NULL);
}

/* What a request asks for; false: the caller does not want it any more. */
static bool answer(struct weft_stream *stream, const OutputRequest *request)
{
	for (size_t i = 0; i < request->n_response_parameters; i++) {
		const ResponseParameters *p = request->response_parameters[i];
		OutputResponse reply = GRPC__TESTING__STREAMING_OUTPUT_CALL_RESPONSE__INIT;
		Payload payload = GRPC__TESTING__PAYLOAD__INIT;
		struct weft_op *op;
		bool good;

		rest(p->interval_us);
		payload.body.len = p->size > 0 ? (size_t)p->size : 0;
		payload.body.data = calloc(1, payload.body.len + 1);
		reply.payload = &payload;
		check(weft_stream_compress(stream, as_asked(p->compressed)));
		good = payload.body.data && !output_answer(stream, &reply, NULL, &op);
		free(payload.body.data);
		if (!good)
			return false;
		check(weft_wait(op, WEFT_FOREVER));
		good = weft_op_status(op) == WEFT_OK;
		weft_op_free(op);
		if (!good)
			return false;
	}
	return true;
}

/* Each request is answered before the next is read. */
static enum weft_status converse(struct weft_stream *stream, char text[TEXT_BYTES])
{
	const OutputRequest *request;
	enum weft_status status = WEFT_OK;
	struct weft_op *op;

	echo_metadata(weft_stream_served(stream));
	while (!status && (request = (const OutputRequest *)next(stream, &op))) {
		if (request->response_status && request->response_status->code) {
			status = (enum weft_status)request->response_status->code;
			snprintf(text, TEXT_BYTES, "%s", request->response_status->message);
		} else if (!answer(stream, request)) {
			status = WEFT_ABORTED;
		}
		weft_op_free(op);
	}
	return status;
}

static void *talk(void *arg)
{
	char text[TEXT_BYTES] = "";
	enum weft_status status = converse(arg, text);

	weft_stream_finish(arg, status, text);
	return NULL;
}

/* Where only so many may run at once. */
static atomic_uint talking_now, talking_max;

static void *talk_counted(void *arg)
{
	unsigned now = atomic_fetch_add(&talking_now, 1) + 1, most = atomic_load(&talking_max);
	char text[TEXT_BYTES] = "";
	enum weft_status status = converse(arg, text);

	atomic_fetch_sub(&talking_now, 1);
	if (most && now > most)
		weft_stream_finish(arg, WEFT_INTERNAL, "more calls run than may");
	else
		weft_stream_finish(arg, status, text);
	return NULL;
}

static void *add_up(void *arg)
{
	InputResponse reply = GRPC__TESTING__STREAMING_INPUT_CALL_RESPONSE__INIT;
	struct weft_stream *stream = arg;
	const InputRequest *request;
	bool as_expected = true;
	struct weft_op *op;
	int32_t sum = 0;

	while (as_expected && (request = (const InputRequest *)next(stream, &op))) {
		as_expected = came_as(request->expect_compressed, weft_op_compressed(op));
		if (request->payload)
			sum += (int32_t)request->payload->body.len;
		weft_op_free(op);
	}
	if (!as_expected) {
		weft_stream_finish(stream, WEFT_INVALID_ARGUMENT,
				   "a message was not compressed as it says");
		return NULL;
	}
	reply.aggregated_payload_size = sum;
	(void)input_answer(stream, &reply, NULL, NULL); /* nobody may be there to hear it */
	weft_stream_finish(stream, WEFT_OK, NULL);
	return NULL;
}

/* All requests are read before the first is answered. */
static void *listen_then_talk(void *arg)
{
	struct weft_stream *stream = arg;
	struct weft_op *ops[64];
	size_t count = 0;

	while (count < 64 && next(stream, &ops[count]))
		count++;
	for (size_t i = 0; i < count; i++) {
		(void)answer(stream, output_asked(ops[i]));
		weft_op_free(ops[i]);
	}
	weft_stream_finish(stream, WEFT_OK, NULL);
	return NULL;
}

static void in_thread(struct weft_stream *stream, void *arg)
{
	void *(*const *run)(void *) = arg;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, *run, stream))
		weft_stream_finish(stream, WEFT_RESOURCE_EXHAUSTED, "no thread for the call");
	pthread_attr_destroy(&attr);
}

static Grpc__Testing__TestService_Service service = {
	.base = GRPC__TESTING__TEST_SERVICE__BASE_INIT,
	.empty_call = handle_empty,
	.unary_call = handle_unary,
};

/* Nodes that a case has to itself. */

static struct weft_node *own;

static void handle_open(Backend__Backend_Service *backend, const Backend__Limits *limits,
			Backend__Address_Closure closure, void *call)
{
	static void *(*counted)(void *) = talk_counted;
	static const struct weft_stream_method method = { "FullDuplexCall", in_thread, &counted };
	const struct weft_serve_options options = {
		.size = sizeof(options), .methods = &method, .method_count = 1,
		.calls_max = limits->calls_max, .queue_max = 1000,
	};
	Backend__Address reply = BACKEND__ADDRESS__INIT;

	(void)backend;
	if (own) {
		weft_served_fail(call, WEFT_RESOURCE_EXHAUSTED, "another case has one");
		return;
	}
	atomic_store(&talking_max, limits->calls_max);
	/* It blocks for a moment, and nobody else calls meanwhile. */
	check(weft_node_open(NULL, &own));
	check(weft_serve_with(own, &service.base, &options));
	reply.address = (char *)(uintptr_t)weft_node_address(own);
	closure(&reply, call);
}

struct drained {
	Backend__Nothing_Closure closure;
	void *call;
};

static void *drain(void *arg)
{
	struct drained *d = arg;
	const Backend__Nothing nothing = BACKEND__NOTHING__INIT;
	int err = weft_node_drain(own, weft_served_left_ns(d->call));

	check(weft_node_close(own));
	own = NULL;
	if (err)
		weft_served_fail(d->call, WEFT_DEADLINE_EXCEEDED, "calls ran still");
	else
		d->closure(&nothing, d->call);
	free(d);
	return NULL;
}

static void handle_drain(Backend__Backend_Service *backend, const Backend__Nothing *request,
			 Backend__Nothing_Closure closure, void *call)
{
	struct drained *d = malloc(sizeof(*d));
	pthread_t thread;

	(void)backend;
	(void)request;
	if (d)
		*d = (struct drained){ closure, call };
	if (!d || !own || pthread_create(&thread, NULL, drain, d)) {
		weft_served_fail(call, WEFT_FAILED_PRECONDITION, "there is none to be drained");
		free(d);
		return;
	}
	pthread_detach(thread);
}

int main(void)
{
	static void *(*talking)(void *) = talk, *(*adding)(void *) = add_up;
	static void *(*halves)(void *) = listen_then_talk;
	static const struct weft_stream_method methods[] = {
		{ "StreamingOutputCall", in_thread, &talking },
		{ "FullDuplexCall", in_thread, &talking },
		{ "HalfDuplexCall", in_thread, &halves },
		{ "StreamingInputCall", in_thread, &adding },
	};
	Backend__Backend_Service backend = BACKEND__BACKEND__INIT(handle_);
	struct weft_node *node;
	char byte;

	check(weft_node_open(NULL, &node));
	check(weft_serve_streams(node, &service.base, methods,
				 sizeof(methods) / sizeof(methods[0])));
	check(weft_serve(node, &backend.base));
	check(weft_serve_reflection(node));
	printf("%s\n", weft_node_address(node));
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	check(weft_node_close(node));
	return 0;
}
