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
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interop.h"

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
	const struct weft_metadata *pairs = weft_call_metadata(call, &count);

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(pairs[i].key, ECHO_INITIAL))
			check(weft_call_set_initial(call, &pairs[i], 1));
		else if (!strcmp(pairs[i].key, ECHO_TRAILING))
			check(weft_call_set_trailing(call, &pairs[i], 1));
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

static void handle_unary(Grpc__Testing__TestService_Service *service,
			 const SimpleRequest *request,
			 Grpc__Testing__SimpleResponse_Closure closure, void *call)
{
	SimpleResponse reply = GRPC__TESTING__SIMPLE_RESPONSE__INIT;
	Payload payload = GRPC__TESTING__PAYLOAD__INIT;

	(void)service;
	echo_metadata(call);
	if (request->response_status && request->response_status->code) {
		weft_call_fail(call, (enum weft_status)request->response_status->code,
			       request->response_status->message);
		return;
	}
	payload.body.len = request->response_size > 0 ? (size_t)request->response_size : 0;
	payload.body.data = calloc(1, payload.body.len + 1);
	if (!payload.body.data) {
		weft_call_fail(call, WEFT_RESOURCE_EXHAUSTED, "no memory for the payload");
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
static void *talk(void *arg)
{
	struct weft_stream *stream = arg;
	const OutputRequest *request;
	enum weft_status status = WEFT_OK;
	struct weft_op *op;
	char text[200] = "";

	echo_metadata(weft_stream_call(stream));
	while (!status && (request = (const OutputRequest *)next(stream, &op))) {
		if (request->response_status && request->response_status->code) {
			status = (enum weft_status)request->response_status->code;
			snprintf(text, sizeof(text), "%s", request->response_status->message);
		} else if (!answer(stream, request)) {
			status = WEFT_ABORTED;
		}
		weft_op_free(op);
	}
	weft_stream_finish(stream, status, text);
	return NULL;
}

static void *add_up(void *arg)
{
	InputResponse reply = GRPC__TESTING__STREAMING_INPUT_CALL_RESPONSE__INIT;
	struct weft_stream *stream = arg;
	const InputRequest *request;
	struct weft_op *op;
	int32_t sum = 0;

	while ((request = (const InputRequest *)next(stream, &op))) {
		if (request->payload)
			sum += (int32_t)request->payload->body.len;
		weft_op_free(op);
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
	Grpc__Testing__TestService_Service service = {
		.base = GRPC__TESTING__TEST_SERVICE__BASE_INIT,
		.empty_call = handle_empty,
		.unary_call = handle_unary,
	};
	struct weft_node *node;
	char byte;

	check(weft_node_open(NULL, &node));
	check(weft_serve_streams(node, &service.base, methods,
				 sizeof(methods) / sizeof(methods[0])));
	check(weft_serve_reflection(node));
	printf("%s\n", weft_node_address(node));
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	check(weft_node_close(node));
	return 0;
}
