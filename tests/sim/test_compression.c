/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that are made shorter on their way, and when they are not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define S WF_NS_PER_S
#define BYTES (200 * KIB)

static uint8_t zeros[BYTES], noise[BYTES];

static void open_world(void)
{
	wf_world_fill(noise, sizeof(noise), 1);
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
}

static void close_world(void)
{
	wf_world_pass(S);
	assert_int_equal(wf_world_close(), 0);
}

/* The handler's part. */

static enum weft_compression answer_as;
static const uint8_t *answer_with;
static bool request_was_compressed;

static void serve(unsigned number, void *call)
{
	(void)number;
	request_was_compressed = weft_served_compressed(call);
	assert_int_equal(weft_served_compress(call, answer_as), 0);
	wf_world_answer(call, answer_with, BYTES);
}

struct outcome {
	struct wf_flight flight;
	bool right, compressed;
};

static void answered(const Sim__Bytes *reply, void *arg)
{
	struct outcome *o = arg;

	o->right = reply && reply->body.len == BYTES && !memcmp(reply->body.data, answer_with, BYTES);
	o->compressed = o->flight.op && weft_op_compressed(o->flight.op);
}

static struct outcome call(const uint8_t *with, enum weft_compression as, uint64_t most)
{
	struct outcome o = { 0 };
	struct weft_call_options options = {
		.size = sizeof(options), .compression = as, .message_bytes_max = most,
	};
	Sim__Bytes request = SIM__BYTES__INIT;
	ProtobufCService *service;

	options.op = wf_flight_begin(&o.flight, 0);
	assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &o.flight.op), 0);
	request.body.data = (uint8_t *)(uintptr_t)with;
	request.body.len = BYTES;
	sim__mirror__reflect(service, &request, answered, &o);
	wf_flight_land(&o.flight, 1, 10 * S);
	return o;
}

static void requests_and_replies_are_compressed_where_it_is_asked_for(void **state)
{
	static const enum weft_compression as[] = { WEFT_COMPRESSION_DEFAULT, WEFT_UNCOMPRESSED,
						    WEFT_ZSTD };

	(void)state;
	for (unsigned node = 0; node < 2; node++) {
		if (node)
			setenv("WEFT_COMPRESSION", "zstd", 1);
		open_world();
		wf_world_connect(0, 1);
		wf_world_on_request(serve);
		answer_with = zeros;
		for (size_t i = 0; i < WF_COUNT(as) * WF_COUNT(as); i++) {
			enum weft_compression there = as[i % WF_COUNT(as)];
			struct outcome o;

			answer_as = as[i / WF_COUNT(as)];
			o = call(zeros, there, 0);
			assert_int_equal(o.flight.status, WEFT_OK);
			assert_true(o.right);
			assert_int_equal(request_was_compressed,
					 there == WEFT_ZSTD || (node && !there));
			assert_int_equal(o.compressed,
					 answer_as == WEFT_ZSTD || (node && !answer_as));
			wf_flight_free(&o.flight, 1);
		}
		close_world();
	}
}

static void a_message_that_does_not_shrink_goes_as_it_is(void **state)
{
	struct outcome o;

	(void)state;
	open_world();
	wf_world_connect(0, 1);
	wf_world_on_request(serve);
	answer_with = noise;
	answer_as = WEFT_ZSTD;
	o = call(noise, WEFT_ZSTD, 0);
	assert_true(o.right);
	assert_false(o.compressed);
	assert_false(request_was_compressed);
	wf_flight_free(&o.flight, 1);
	close_world();
}

/* It is not known yet what it understands. */
static void the_first_message_to_a_stranger_goes_as_it_is(void **state)
{
	struct outcome o;

	(void)state;
	open_world();
	wf_world_on_request(serve);
	answer_with = zeros;
	answer_as = WEFT_ZSTD;
	o = call(zeros, WEFT_ZSTD, 0);
	assert_true(o.right);
	assert_false(request_was_compressed);
	assert_true(o.compressed);
	wf_flight_free(&o.flight, 1);
	close_world();
}

static void a_limit_is_one_of_what_is_decompressed_too(void **state)
{
	struct outcome o;

	(void)state;
	open_world();
	wf_world_connect(0, 1);
	wf_world_on_request(serve);
	answer_with = zeros;
	for (answer_as = WEFT_UNCOMPRESSED; answer_as <= WEFT_ZSTD; answer_as++) {
		o = call(zeros, WEFT_ZSTD, BYTES - 1);
		assert_int_equal(o.flight.status, WEFT_RESOURCE_EXHAUSTED);
		wf_flight_free(&o.flight, 1);
		o = call(zeros, WEFT_ZSTD, BYTES + 10);
		assert_int_equal(o.flight.status, WEFT_OK);
		wf_flight_free(&o.flight, 1);
	}
	close_world();
}

static void options_that_make_no_sense_are_refused(void **state)
{
	struct weft_call_options options = { .size = sizeof(options), .compression = 3 };
	ProtobufCService *service;
	struct weft_op *op;

	(void)state;
	open_world();
	assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &op), -EINVAL);
	options = (struct weft_call_options){ .size = sizeof(options), .message_bytes_max = GIB + 1 };
	assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &op), -EINVAL);
	close_world();
}

/* Streams. */

static struct weft_stream *serving;

static void keep(unsigned number, struct weft_stream *stream)
{
	(void)number;
	serving = stream;
}

static bool is_serving(void *ctx)
{
	(void)ctx;
	return serving != NULL;
}

/* Written by @from, read by @to. */
static void say(struct weft_stream *from, struct weft_stream *to, enum weft_compression as)
{
	const Sim__Bytes *got;
	struct wf_flight f[2];

	assert_int_equal(weft_stream_compress(from, as), 0);
	wf_flight_write(&f[0], from, zeros, BYTES, 0);
	wf_flight_read(&f[1], to, 0);
	wf_flight_land(f, 2, 10 * S);
	got = (const Sim__Bytes *)(const void *)weft_stream_message(f[1].op);
	assert_int_equal(got->body.len, BYTES);
	assert_same_content(got->body.data, zeros, BYTES);
	assert_int_equal(weft_op_compressed(f[1].op), as == WEFT_ZSTD);
	wf_flight_free(f, 2);
}

static void each_message_of_a_stream_is_compressed_or_not(void **state)
{
	struct weft_stream *stream;
	struct wf_flight opened;

	(void)state;
	open_world();
	wf_world_connect(0, 1);
	serving = NULL;
	wf_world_on_stream(keep);
	wf_flight_open(&opened, 0, 1, 0, &stream);
	assert_true(wf_world_run(is_serving, NULL, S));
	for (unsigned i = 0; i < 4; i++) {
		say(stream, serving, i % 2 ? WEFT_ZSTD : WEFT_UNCOMPRESSED);
		say(serving, stream, i / 2 ? WEFT_ZSTD : WEFT_COMPRESSION_DEFAULT);
	}
	assert_int_equal(weft_stream_compress(stream, 3), -EINVAL);
	weft_stream_finish(serving, WEFT_OK, NULL);
	wf_flight_land(&opened, 1, S);
	weft_stream_close(stream);
	wf_flight_free(&opened, 1);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_and_replies_are_compressed_where_it_is_asked_for),
		cmocka_unit_test(a_message_that_does_not_shrink_goes_as_it_is),
		cmocka_unit_test(the_first_message_to_a_stranger_goes_as_it_is),
		cmocka_unit_test(a_limit_is_one_of_what_is_decompressed_too),
		cmocka_unit_test(options_that_make_no_sense_are_refused),
		cmocka_unit_test(each_message_of_a_stream_is_compressed_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
