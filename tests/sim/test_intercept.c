/* SPDX-License-Identifier: BSD-2-Clause */
/* Interceptors: what they may refuse and add, and that each hears of the end of what it began. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"
#include "wire/pair.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

/* An interceptor that writes down what it hears. */
struct witness {
	const char *name;
	enum weft_status admits, begins; /* what it says */
	const char *message;
	const char *key, *value; /* what it adds to each call */
	unsigned admitted, served, begun, ended;
	enum weft_status served_status, ended_status;
	uint64_t took_ns;
	bool had_parent;
	bool cancels; /* each call that begins */
	int added;
};

static struct witness witnesses[2];
static char story[400]; /* which hooks ran, in order */

static void tell(const struct witness *w, const char *what)
{
	size_t used = strlen(story);

	(void)snprintf(story + used, sizeof(story) - used, "%s%s-%s", used ? " " : "", w->name,
		       what);
}

static bool is_named(const char *service, const char *method)
{
	return !strcmp(service, "sim.Mirror") &&
	       (!strcmp(method, "Reflect") || !strcmp(method, "Talk"));
}

/* Both are there, after what the call had of its own. */
static bool has(const struct weft_metadata *pairs, size_t count, const struct witness *w)
{
	size_t at = 1 + (size_t)(w - witnesses);

	return count == 3 && !strcmp(pairs[0].key, "own") && !strcmp(pairs[at].key, w->key) &&
	       !strcmp(pairs[at].value, w->value);
}

static enum weft_status admit(void *arg, struct weft_served *call, const char *service,
			      const char *method, const char **message)
{
	struct witness *w = arg;
	size_t count;
	const struct weft_metadata *pairs = weft_served_metadata(call, &count);

	assert_true(is_named(service, method));
	assert_non_null(weft_served_peer(call));
	assert_true(!w->value || has(pairs, count, w));
	w->admitted++;
	tell(w, "admit");
	*message = w->message;
	return w->admits;
}

static void served(void *arg, struct weft_served *call, const char *service, const char *method,
		   enum weft_status status, uint64_t took_ns)
{
	struct witness *w = arg;
	size_t count;

	assert_true(is_named(service, method));
	assert_non_null(weft_served_peer(call));
	assert_true(!w->value || weft_served_metadata(call, &count));
	w->served++;
	w->served_status = status;
	w->took_ns = took_ns;
	tell(w, "served");
}

static enum weft_status begin(void *arg, struct weft_op *op, struct weft_served *parent,
			      const char *service, const char *method, const char **message)
{
	struct witness *w = arg;
	struct weft_metadata pair = { w->key, w->value, w->value ? strlen(w->value) : 0 };

	assert_true(is_named(service, method));
	w->begun++;
	w->had_parent = parent != NULL;
	tell(w, "begin");
	if (w->key)
		w->added = weft_call_add_metadata(op, &pair, 1);
	if (w->cancels)
		weft_cancel(op);
	*message = w->message;
	return w->begins;
}

static void ended(void *arg, struct weft_op *op, const char *service, const char *method,
		  enum weft_status status, uint64_t took_ns)
{
	struct witness *w = arg;

	assert_true(is_named(service, method));
	assert_false(weft_op_ended(op));
	w->ended++;
	w->ended_status = status;
	w->took_ns = took_ns;
	tell(w, "ended");
}

static const struct weft_interceptor first = {
	.size = sizeof(first), .arg = &witnesses[0],
	.admit = admit, .served = served, .begin = begin, .ended = ended,
}, second = {
	.size = sizeof(second), .arg = &witnesses[1],
	.admit = admit, .served = served, .begin = begin, .ended = ended,
};

static const struct weft_interceptor *const both[] = { &first, &second, NULL };

/* Node 0 has none, node 1 both; the other way round if @calling. */
static void open_world(bool calling)
{
	memset(witnesses, 0, sizeof(witnesses));
	witnesses[0].name = "a";
	witnesses[1].name = "b";
	story[0] = '\0';
	wf_world_open(WF_WORLD_CONNECTED, 0, NULL);
	wf_world_intercept(calling ? both : NULL);
	wf_world_add();
	wf_world_intercept(calling ? NULL : both);
	wf_world_add();
}

/* Each that was asked about a beginning has heard of the end. */
static void close_world(void)
{
	wf_world_pass(100 * MS);
	assert_int_equal(wf_world_close(), 0);
	for (size_t i = 0; i < WF_COUNT(witnesses); i++) {
		assert_int_equal(witnesses[i].admitted, witnesses[i].served);
		assert_int_equal(witnesses[i].begun, witnesses[i].ended);
	}
}

static void call(enum weft_status expected)
{
	struct wf_flight f;

	wf_flight_call(&f, 0, 1, "x", 1, S);
	wf_flight_land(&f, 1, 2 * S);
	assert_int_equal(f.status, expected);
	assert_int_equal(f.closures, 1);
	wf_flight_free(&f, 1);
}

/* The server. */

static void interceptors_are_asked_in_order_and_told_in_reverse(void **state)
{
	(void)state;
	open_world(false);
	call(WEFT_OK);
	wf_world_pass(MS);
	assert_string_equal(story, "a-admit b-admit b-served a-served");
	assert_int_equal(witnesses[0].served_status, WEFT_OK);
	close_world();
}

static void a_call_that_is_refused_never_reaches_its_handler(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(false);
	witnesses[0].admits = WEFT_UNAUTHENTICATED;
	witnesses[0].message = "who is there?";
	wf_flight_call(&f, 0, 1, "x", 1, S);
	wf_flight_land(&f, 1, 2 * S);
	assert_int_equal(f.status, WEFT_UNAUTHENTICATED);
	assert_string_equal(weft_op_message(f.op), "who is there?");
	assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_NO);
	assert_int_equal(wf_world_served(1), 0);
	wf_flight_free(&f, 1);
	wf_world_pass(MS);
	/* The second is not asked any more, and so not told. */
	assert_string_equal(story, "a-admit a-served");
	assert_int_equal(witnesses[0].served_status, WEFT_UNAUTHENTICATED);
	/* And the next one gets through. */
	witnesses[0].admits = WEFT_OK;
	call(WEFT_OK);
	assert_int_equal(wf_world_served(1), 1);
	close_world();
}

static void a_stream_is_refused_like_a_call(void **state)
{
	struct weft_stream *stream;
	struct wf_flight f[2];

	(void)state;
	open_world(false);
	witnesses[1].admits = WEFT_PERMISSION_DENIED;
	wf_flight_open(&f[0], 0, 1, S, &stream);
	wf_flight_read(&f[1], stream, 0);
	wf_flight_land(f, 2, 2 * S);
	assert_int_equal(f[0].status, WEFT_PERMISSION_DENIED);
	assert_int_equal(f[1].status, WEFT_PERMISSION_DENIED);
	assert_int_equal(weft_op_executed(f[0].op), WEFT_EXECUTED_NO);
	assert_non_null(strstr(weft_op_message(f[0].op), "refuses"));
	assert_int_equal(wf_world_talked(1), 0);
	wf_flight_free(f, 2);
	weft_stream_close(stream);
	wf_world_pass(MS);
	assert_string_equal(story, "a-admit b-admit b-served a-served");
	close_world();
}

static void a_refusal_that_is_no_status_is_unknown(void **state)
{
	(void)state;
	open_world(false);
	witnesses[0].admits = (enum weft_status)99;
	call(WEFT_UNKNOWN);
	close_world();
}

static void the_end_of_a_call_is_told_when_nobody_waits_for_it(void **state)
{
	struct wf_flight f[2];

	(void)state;
	open_world(false);
	wf_world_connect(0, 1);
	wf_world_hold(1, true);
	wf_flight_call(&f[0], 0, 1, "x", 1, 50 * MS);
	wf_flight_call(&f[1], 0, 1, "x", 1, S);
	wf_world_pass(10 * MS);
	assert_int_equal(witnesses[0].admitted, 2);
	weft_cancel(f[1].op);
	wf_flight_land(f, 2, S);
	assert_int_equal(f[0].status, WEFT_DEADLINE_EXCEEDED);
	assert_int_equal(f[1].status, WEFT_CANCELLED);
	wf_flight_free(f, 2);
	wf_world_pass(50 * MS);
	/* The handlers still owe an answer, of which nothing comes. */
	assert_int_equal(witnesses[0].served, 0);
	wf_world_hold(1, false);
	wf_world_pass(10 * MS);
	assert_int_equal(witnesses[0].served, 2);
	assert_true(witnesses[0].took_ns >= 50 * MS);
	assert_int_equal(wf_world_count(1).served_ended[WEFT_CANCELLED], 1);
	assert_int_equal(wf_world_count(1).served_ended[WEFT_DEADLINE_EXCEEDED], 1);
	close_world();
}

static void the_end_of_a_call_is_told_when_its_node_closes(void **state)
{
	struct weft_stream *stream;
	struct wf_flight f;

	(void)state;
	open_world(false);
	wf_world_connect(0, 1);
	wf_flight_open(&f, 0, 1, 10 * S, &stream);
	wf_world_pass(10 * MS);
	assert_int_equal(witnesses[1].admitted, 1);
	assert_int_equal(wf_world_talking(1), 1);
	wf_world_leave(1);
	assert_int_equal(witnesses[1].served, 1);
	wf_flight_land(&f, 1, S);
	wf_flight_free(&f, 1);
	weft_stream_close(stream);
	close_world();
}

/* The caller. */

static void a_call_that_is_refused_at_home_sends_nothing(void **state)
{
	struct weft_counters before;
	struct weft_stream *stream;
	struct wf_flight f[2];

	(void)state;
	open_world(true);
	wf_world_connect(0, 1);
	wf_world_pass(100 * MS);
	before = wf_world_count(0);
	witnesses[1].begins = WEFT_RESOURCE_EXHAUSTED;
	witnesses[1].message = "enough for today";
	wf_flight_call(&f[0], 0, 1, "x", 1, S);
	wf_flight_open(&f[1], 0, 1, S, &stream);
	wf_flight_land(f, 2, S);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(f[i].status, WEFT_RESOURCE_EXHAUSTED);
		assert_string_equal(weft_op_message(f[i].op), "enough for today");
		assert_int_equal(weft_op_executed(f[i].op), WEFT_EXECUTED_NO);
	}
	assert_int_equal(f[0].closures, 1);
	assert_int_equal(wf_world_count(0).frames_sent, before.frames_sent);
	assert_int_equal(wf_world_count(0).calls_ended[WEFT_RESOURCE_EXHAUSTED], 2);
	assert_string_equal(story, "a-begin b-begin a-begin b-begin b-ended a-ended b-ended a-ended");
	wf_flight_free(f, 2);
	weft_stream_close(stream);
	close_world();
}

static void a_call_that_an_interceptor_cancels_sends_nothing(void **state)
{
	struct weft_stream *stream;
	struct wf_flight f[2];
	uint64_t before;

	(void)state;
	open_world(true);
	wf_world_connect(0, 1);
	wf_world_pass(100 * MS);
	before = wf_world_count(0).frames_sent;
	witnesses[0].cancels = true;
	wf_flight_call(&f[0], 0, 1, "x", 1, S);
	wf_flight_open(&f[1], 0, 1, S, &stream);
	wf_flight_land(f, 2, S / 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(f[i].status, WEFT_CANCELLED);
		assert_int_equal(weft_op_executed(f[i].op), WEFT_EXECUTED_NO);
	}
	assert_int_equal(wf_world_count(0).frames_sent, before);
	assert_int_equal(witnesses[1].ended_status, WEFT_CANCELLED);
	wf_flight_free(f, 2);
	weft_stream_close(stream);
	close_world();
}

static void metadata_that_is_added_comes_after_that_of_the_call(void **state)
{
	const struct weft_metadata own = { "own", "1", 1 };
	struct weft_call_options options = { .size = sizeof(options), .metadata = &own,
					     .metadata_count = 1 };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	struct wf_flight f;

	(void)state;
	open_world(true);
	wf_world_intercept(both);
	wf_world_add();
	witnesses[0].key = "authorization";
	witnesses[0].value = "Bearer x";
	witnesses[1].key = "traceparent";
	witnesses[1].value = TRACE;
	options.op = wf_flight_begin(&f, S);
	assert_int_equal(weft_call_open(wf_world_stub(0, 2), &options, &service, &f.op), 0);
	/* Not before it begins. */
	assert_int_equal(weft_call_add_metadata(f.op, &own, 1), -EALREADY);
	sim__mirror__reflect(service, &question, NULL, NULL);
	assert_int_equal(weft_call_add_metadata(f.op, &own, 1), -EALREADY);
	wf_flight_land(&f, 1, S);
	assert_int_equal(f.status, WEFT_OK);
	assert_int_equal(witnesses[1].admitted, 1);
	wf_flight_free(&f, 1);
	close_world();
}

static void metadata_that_breaks_a_rule_is_not_added(void **state)
{
	static char much[WF_PAIRS_BYTES_MAX];

	(void)state;
	open_world(true);
	witnesses[0].key = "weft-own";
	witnesses[0].value = "1";
	call(WEFT_OK);
	assert_int_equal(witnesses[0].added, -EINVAL);
	memset(much, 'm', sizeof(much) - 10);
	witnesses[0].key = "much";
	witnesses[0].value = much;
	witnesses[1].key = "more";
	witnesses[1].value = "1";
	call(WEFT_OK);
	assert_int_equal(witnesses[0].added, 0);
	assert_int_equal(witnesses[1].added, -EMSGSIZE);
	close_world();
}

/* A handler that calls on, in the middle of three nodes. */

static struct wf_flight onward;
static void *on_behalf;

static uint64_t call_on(unsigned number, void *call, const uint8_t *bytes, size_t count)
{
	(void)call;
	(void)bytes;
	(void)count;
	return number == 1 ? 100 * MS : 0;
}

static enum weft_status pass_trace(void *arg, struct weft_op *op, struct weft_served *parent,
				   const char *service, const char *method, const char **message)
{
	const struct weft_metadata *pairs;
	size_t count = 0;

	(void)arg;
	(void)service;
	(void)method;
	(void)message;
	pairs = parent ? weft_served_metadata(parent, &count) : NULL;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(pairs[i].key, "traceparent"))
			assert_int_equal(weft_call_add_metadata(op, &pairs[i], 1), 0);
	return WEFT_OK;
}

static enum weft_status remember(void *arg, struct weft_served *call, const char *service,
				 const char *method, const char **message)
{
	size_t count;
	const struct weft_metadata *pairs = weft_served_metadata(call, &count);

	(void)arg;
	(void)service;
	(void)method;
	(void)message;
	on_behalf = call;
	assert_int_equal(count, 1);
	assert_string_equal(pairs->key, "traceparent");
	assert_string_equal(pairs->value, TRACE);
	return WEFT_OK;
}

static void a_child_call_passes_on_what_its_parent_came_with(void **state)
{
	static const struct weft_interceptor tracer = {
		.size = sizeof(tracer), .admit = remember, .begin = pass_trace,
	};
	static const struct weft_interceptor *const tracers[] = { &tracer, NULL };
	const struct weft_metadata trace = { "traceparent", TRACE, strlen(TRACE) };
	struct weft_call_options options = { .size = sizeof(options), .metadata = &trace,
					     .metadata_count = 1 };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	struct wf_flight f;
	void *parent;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 1, NULL);
	wf_world_intercept(tracers);
	wf_world_add();
	wf_world_add();
	wf_world_on_call(call_on);
	wf_world_connect(0, 1);
	on_behalf = NULL;
	options.op = wf_flight_begin(&f, S);
	assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &f.op), 0);
	sim__mirror__reflect(service, &question, NULL, NULL);
	wf_world_pass(50 * MS);
	parent = on_behalf;
	assert_non_null(parent);
	options = (struct weft_call_options){ .size = sizeof(options), .parent = parent };
	options.op = wf_flight_begin(&onward, 0);
	assert_int_equal(weft_call_open(wf_world_stub(1, 2), &options, &service, &onward.op), 0);
	sim__mirror__reflect(service, &question, NULL, NULL);
	wf_flight_land(&onward, 1, S);
	assert_int_equal(onward.status, WEFT_OK);
	assert_ptr_not_equal(on_behalf, parent);
	wf_flight_land(&f, 1, S);
	wf_flight_free(&f, 1);
	wf_flight_free(&onward, 1);
	assert_int_equal(wf_world_close(), 0);
}

/* Both. */

static uint64_t fail_every_time(unsigned number, void *call, const uint8_t *bytes, size_t count)
{
	(void)call;
	(void)number;
	(void)bytes;
	(void)count;
	return UINT64_MAX;
}

static void ends_are_counted_by_status(void **state)
{
	struct weft_stream *stream;
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	call(WEFT_OK);
	call(WEFT_OK);
	wf_world_on_call(fail_every_time);
	call(WEFT_ABORTED);
	wf_flight_open(&f, 0, 1, S, &stream);
	assert_int_equal(weft_stream_half_close(stream), 0);
	wf_flight_land(&f, 1, S);
	wf_flight_free(&f, 1);
	weft_stream_close(stream);
	wf_world_pass(10 * MS);
	assert_int_equal(wf_world_count(0).calls_ended[WEFT_OK], 3);
	assert_int_equal(wf_world_count(0).calls_ended[WEFT_ABORTED], 1);
	assert_int_equal(wf_world_count(1).served_ended[WEFT_OK], 3);
	assert_int_equal(wf_world_count(1).served_ended[WEFT_ABORTED], 1);
	assert_int_equal(wf_world_count(1).calls_ended[WEFT_OK], 0);
	assert_int_equal(wf_world_close(), 0);
}

/* The status with which handlers end their calls. */
static enum weft_status said;

static void fail_as_said(unsigned number, void *call)
{
	(void)number;
	weft_served_fail(call, said, "x");
}

static void finish_as_said(unsigned number, struct weft_stream *stream)
{
	(void)number;
	weft_stream_finish(stream, said, "x");
}

static void a_status_of_a_handler_that_is_none_is_unknown(void **state)
{
	static const int numbers[] = { WEFT_UNAUTHENTICATED + 1, 99, -1 };
	struct weft_stream *stream;
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_on_request(fail_as_said);
	wf_world_on_stream(finish_as_said);
	said = WEFT_OK;
	call(WEFT_UNKNOWN);
	for (size_t i = 0; i < WF_COUNT(numbers); i++) {
		said = (enum weft_status)numbers[i];
		call(WEFT_UNKNOWN);
		wf_flight_open(&f, 0, 1, S, &stream);
		wf_flight_land(&f, 1, S);
		assert_int_equal(f.status, WEFT_UNKNOWN);
		wf_flight_free(&f, 1);
		weft_stream_close(stream);
	}
	wf_world_pass(10 * MS);
	assert_int_equal(wf_world_count(1).served_ended[WEFT_UNKNOWN], 1 + 2 * WF_COUNT(numbers));
	assert_int_equal(wf_world_close(), 0);
}

static void options_of_another_size_are_refused(void **state)
{
	static const struct weft_interceptor none = { 0 };
	static const struct weft_interceptor *const nones[] = { &first, &none, NULL };
	struct weft_node_options options = { .size = sizeof(options), .mode = WEFT_MANUAL,
					     .interceptors = nones };
	struct weft_node *node;

	(void)state;
	assert_int_equal(weft_node_open(&options, &node), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interceptors_are_asked_in_order_and_told_in_reverse),
		cmocka_unit_test(a_call_that_is_refused_never_reaches_its_handler),
		cmocka_unit_test(a_stream_is_refused_like_a_call),
		cmocka_unit_test(a_refusal_that_is_no_status_is_unknown),
		cmocka_unit_test(the_end_of_a_call_is_told_when_nobody_waits_for_it),
		cmocka_unit_test(the_end_of_a_call_is_told_when_its_node_closes),
		cmocka_unit_test(a_call_that_is_refused_at_home_sends_nothing),
		cmocka_unit_test(a_call_that_an_interceptor_cancels_sends_nothing),
		cmocka_unit_test(metadata_that_is_added_comes_after_that_of_the_call),
		cmocka_unit_test(metadata_that_breaks_a_rule_is_not_added),
		cmocka_unit_test(a_child_call_passes_on_what_its_parent_came_with),
		cmocka_unit_test(ends_are_counted_by_status),
		cmocka_unit_test(a_status_of_a_handler_that_is_none_is_unknown),
		cmocka_unit_test(options_of_another_size_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
