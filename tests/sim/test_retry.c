/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that are made again when they fail: when that is, and when never. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "core/worker.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define BIG (300 * KIB) /* pulled */
#define ABORTED (1u << WEFT_ABORTED)
#define UNAVAILABLE (1u << WEFT_UNAVAILABLE)

static uint8_t source[BIG];

static int64_t source_shape = BIG;
static const struct weft_tensor tensor = {
	.data = source, .device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 },
	.shape = &source_shape,
};

/* How often each numbered call was handled: the first eight bytes of its request are the number. */
#define NUMBERS 4000
static uint8_t handled[NUMBERS];

/* The handler: it fails so many times, then answers after a while. */
static unsigned failures;
static uint64_t answer_ns;

static uint64_t handle(unsigned number, void *unused, const uint8_t *bytes, size_t count)
{
	uint64_t call;

	(void)unused;
	(void)number;
	if (count >= sizeof(call)) {
		memcpy(&call, bytes, sizeof(call));
		if (call < NUMBERS)
			handled[call]++;
	}
	if (failures) {
		failures--;
		return UINT64_MAX;
	}
	return answer_ns;
}

/* The server's last word on a call before its handler, and what it saw of it. */
static unsigned refusals;
static char attempts_said[16];
static unsigned cancels; /* that handlers were told of */
static bool attaches;    /* something to each reply */
static unsigned admitted; /* attempts */
static bool adds; /* to each answer, the number of the attempt, and details but for the first */

static void note_cancel(void *arg)
{
	(void)arg;
	cancels++;
}

static void add(struct weft_served *call)
{
	char number[8];
	const struct weft_metadata pair = { "attempt", number, 1 };

	(void)snprintf(number, sizeof(number), "%u", ++admitted);
	assert_int_equal(weft_served_set_initial(call, &pair, 1), 0);
	assert_int_equal(weft_served_set_trailing(call, &pair, 1), 0);
	if (admitted > 1)
		assert_int_equal(weft_served_set_details(call, number, 1), 0);
}

static enum weft_status admit(void *arg, struct weft_served *call, const char *service,
			      const char *method, const char **message)
{
	size_t count;
	const struct weft_metadata *pairs = weft_served_metadata(call, &count);

	(void)arg;
	(void)service;
	(void)method;
	(void)message;
	attempts_said[0] = '\0';
	for (size_t i = 0; i < count; i++)
		if (!strcmp(pairs[i].key, "weft-attempts"))
			(void)snprintf(attempts_said + strlen(attempts_said), 4, "%s",
				       (const char *)pairs[i].value);
	weft_served_on_cancel(call, note_cancel, NULL);
	if (attaches)
		assert_int_equal(weft_served_attach(call, &tensor, NULL, NULL), 0);
	if (adds)
		add(call);
	if (!refusals)
		return WEFT_OK;
	refusals--;
	return WEFT_UNAVAILABLE;
}

static const struct weft_interceptor guard = { .size = sizeof(guard), .admit = admit };
static const struct weft_interceptor *const guards[] = { &guard, NULL };

static void open_world(enum wf_world_shape shape)
{
	wf_world_lose_soon();
	wf_world_fill(source, sizeof(source), 1);
	failures = refusals = cancels = 0;
	memset(handled, 0, sizeof(handled));
	admitted = 0;
	attaches = adds = false;
	answer_ns = 0;
	wf_world_open(shape, 1, NULL);
	wf_world_intercept(guards);
	wf_world_add();
	wf_world_on_call(handle);
	wf_world_connect(0, 1);
}

static struct weft_retry policy_of(unsigned attempts, uint32_t statuses, bool idempotent)
{
	return (struct weft_retry){
		.size = sizeof(struct weft_retry), .attempts = attempts, .statuses = statuses,
		.pause_ns = 100 * MS, .pause_max_ns = 300 * MS, .idempotent = idempotent,
	};
}

static void answered(const Sim__Bytes *answer, void *arg)
{
	struct wf_flight *f = arg;

	f->closures++;
	f->reply_right = answer && answer->body.len == f->request_bytes &&
			 (!f->request_bytes ||
			  !memcmp(answer->body.data, f->request, f->request_bytes));
}

static void begin_from(unsigned from, unsigned to, struct wf_flight *f,
		       const struct weft_retry *retry, size_t bytes, uint64_t timeout_ns)
{
	struct weft_call_options options = { .size = sizeof(options), .retry = retry };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;

	options.op = wf_flight_begin(f, timeout_ns);
	f->request = source;
	f->request_bytes = bytes;
	question.body.data = source;
	question.body.len = bytes;
	assert_int_equal(weft_call_open(wf_world_stub(from, to), &options, &service, &f->op), 0);
	sim__mirror__reflect(service, &question, answered, f);
}

static void begin_at(unsigned to, struct wf_flight *f, const struct weft_retry *retry, size_t bytes,
		     uint64_t timeout_ns)
{
	begin_from(0, to, f, retry, bytes, timeout_ns);
}

static void begin(struct wf_flight *f, const struct weft_retry *retry, size_t bytes,
		  uint64_t timeout_ns)
{
	begin_at(1, f, retry, bytes, timeout_ns);
}

static void land(struct wf_flight *f, enum weft_status status)
{
	wf_flight_land(f, 1, 20 * S);
	if (f->status != status)
		fail_msg("%s: %s", weft_status_name(f->status), weft_op_message(f->op));
	assert_int_equal(f->closures, 1);
	assert_int_equal(f->reply_right, status == WEFT_OK);
}

/* In a world of its own: a call whose handler fails @count times ends with @status. */
static void call_of_failures(struct wf_flight *f, const struct weft_retry *retry, unsigned count,
			     enum weft_status status)
{
	open_world(WF_WORLD_CONNECTED);
	failures = count;
	begin(f, retry, 10, 10 * S);
	land(f, status);
}

static unsigned repeated(void)
{
	return (unsigned)wf_world_count(0).calls_repeated;
}

static const struct wf_reply_cache *replies_of(unsigned number)
{
	return &wf_world_node(number)->workers[0].serving.replies;
}

/* Which failures. */

static void an_idempotent_call_is_made_again_until_it_is_answered(void **state)
{
	struct weft_retry retry = policy_of(4, ABORTED, true);
	static const size_t sizes[] = { 10, 0, BIG };
	struct wf_flight f;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes) * WF_COUNT(sizes); i++) {
		open_world(wf_world_shapes[i / WF_COUNT(sizes)]);
		failures = 2;
		begin(&f, &retry, sizes[i % WF_COUNT(sizes)], 10 * S);
		land(&f, WEFT_OK);
		assert_int_equal(wf_world_served(1), 3);
		assert_int_equal(repeated(), 2);
		assert_string_equal(attempts_said, "2");
		/* 50 to 100 ms, and then 100 to 200. */
		assert_in_range(wf_flight_ns(&f), 150 * MS, 320 * MS);
		wf_flight_free(&f, 1);
		wf_world_end();
	}
}

static void attempts_end_with_the_last_failure(void **state)
{
	struct weft_retry retry = policy_of(3, ABORTED, true);
	struct wf_flight f;

	(void)state;
	call_of_failures(&f, &retry, 5, WEFT_ABORTED);
	assert_int_equal(wf_world_served(1), 3);
	assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_YES);
	assert_string_equal(weft_op_message(f.op), "as the test wants");
	wf_flight_free(&f, 1);
	wf_world_end();
}

static void a_failure_of_a_handler_is_not_repeated_unless_that_is_harmless(void **state)
{
	struct weft_retry retry = policy_of(4, ABORTED, false);
	struct wf_flight f;

	(void)state;
	call_of_failures(&f, &retry, 1, WEFT_ABORTED);
	assert_int_equal(wf_world_served(1), 1);
	assert_int_equal(repeated(), 0);
	wf_flight_free(&f, 1);
	wf_world_end();
}

static void a_failure_of_another_status_is_not_repeated(void **state)
{
	struct weft_retry retry = policy_of(4, UNAVAILABLE, true);
	struct wf_flight f;

	(void)state;
	call_of_failures(&f, &retry, 1, WEFT_ABORTED);
	assert_int_equal(wf_world_served(1), 1);
	wf_flight_free(&f, 1);
	wf_world_end();
}

static void a_call_that_never_reached_its_handler_is_made_again(void **state)
{
	struct weft_retry retry = policy_of(4, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	refusals = 3;
	begin(&f, &retry, BIG, 10 * S);
	land(&f, WEFT_OK);
	assert_int_equal(wf_world_served(1), 1);
	assert_int_equal(repeated(), 3);
	assert_string_equal(attempts_said, "3");
	wf_flight_free(&f, 1);
	wf_world_end();
}

/* A server that is not there yet. */
static void an_attempt_finds_a_server_that_has_come_back(void **state)
{
	struct weft_retry retry = policy_of(20, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	wf_world_kill(1);
	wf_world_pass(S);
	begin(&f, &retry, 10, 20 * S);
	wf_world_pass(700 * MS);
	assert_int_equal(f.outcomes, 0);
	wf_world_restart(1);
	land(&f, WEFT_OK);
	assert_int_equal(wf_world_served(1), 1);
	wf_flight_free(&f, 1);
	wf_world_end();
}

static void a_request_that_does_not_unpack_is_not_executed(void **state)
{
	struct weft_call_options options = { .size = sizeof(options) };
	static uint8_t five[] = { 5 };
	ProtobufCMessageUnknownField number = {
		.tag = 1, .wire_type = PROTOBUF_C_WIRE_TYPE_VARINT, .len = 1, .data = five,
	};
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	struct weft_retry retry;
	struct wf_flight f;

	(void)state;
	question.base.n_unknown_fields = 1;
	question.base.unknown_fields = &number;
	for (unsigned idempotent = 0; idempotent < 2; idempotent++) {
		open_world(WF_WORLD_CONNECTED);
		retry = policy_of(3, 1u << WEFT_INTERNAL, idempotent);
		options.retry = &retry;
		options.op = wf_flight_begin(&f, 10 * S);
		assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &f.op), 0);
		sim__mirror__reflect(service, &question, answered, &f);
		land(&f, WEFT_INTERNAL);
		assert_non_null(strstr(weft_op_message(f.op), "does not unpack"));
		assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_NO);
		/* Each attempt is looked at anew. */
		assert_int_equal(repeated(), 2);
		assert_int_equal(wf_world_count(1).unpack_failures, 3);
		assert_int_equal(wf_world_served(1), 0);
		assert_int_equal(replies_of(1)->kept_count, 0);
		wf_flight_free(&f, 1);
		wf_world_end();
	}
}

/* Time. */

static void no_attempt_begins_that_the_deadline_would_end(void **state)
{
	struct weft_retry retry = policy_of(9, ABORTED, true);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	failures = 9;
	begin(&f, &retry, 10, 400 * MS);
	land(&f, WEFT_ABORTED);
	assert_true(wf_flight_ns(&f) < 400 * MS);
	wf_flight_free(&f, 1);
	wf_world_end();
}

static void all_attempts_have_one_deadline(void **state)
{
	struct weft_retry retry = policy_of(9, ABORTED, true);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	failures = 1;
	answer_ns = 5 * S;
	begin(&f, &retry, 10, S);
	land(&f, WEFT_DEADLINE_EXCEEDED);
	assert_in_range(wf_flight_ns(&f), S, S + 10 * MS);
	assert_int_equal(wf_world_served(1), 2);
	wf_flight_free(&f, 1);
	wf_world_pass(5 * S);
	wf_world_end();
}

static void a_call_is_cancelled_between_its_attempts(void **state)
{
	struct weft_retry retry = policy_of(9, ABORTED, true);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	retry.pause_ns = retry.pause_max_ns = 10 * S;
	failures = 9;
	begin(&f, &retry, BIG, 60 * S);
	wf_world_pass(S);
	assert_int_equal(wf_world_served(1), 1);
	assert_int_equal(f.outcomes, 0);
	weft_cancel(f.op);
	land(&f, WEFT_CANCELLED);
	assert_true(wf_flight_ns(&f) < S + 10 * MS);
	assert_non_null(strstr(weft_op_message(f.op), "as the test wants"));
	/* It had been handled, whatever became of it after. */
	assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_YES);
	wf_flight_free(&f, 1);
	wf_world_end();
}

static void cancelled_is_never_a_reason_for_another_attempt(void **state)
{
	struct weft_retry retry = policy_of(9, 1u << WEFT_CANCELLED, true);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	answer_ns = S;
	begin(&f, &retry, 10, 60 * S);
	wf_world_pass(100 * MS);
	weft_cancel(f.op);
	land(&f, WEFT_CANCELLED);
	wf_flight_free(&f, 1);
	wf_world_pass(2 * S);
	assert_int_equal(wf_world_served(1), 1);
	wf_world_end();
}

static void a_node_closes_between_two_attempts(void **state)
{
	struct weft_retry retry = policy_of(9, ABORTED, true);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	retry.pause_ns = retry.pause_max_ns = 10 * S;
	failures = 9;
	begin(&f, &retry, BIG, 60 * S);
	wf_world_pass(S);
	assert_int_equal(f.outcomes, 0);
	wf_world_leave(0);
	assert_int_equal(f.outcomes, 1);
	assert_int_equal(f.status, WEFT_CANCELLED);
	wf_flight_free(&f, 1);
	wf_world_end();
}

static void a_dump_names_the_attempt_that_comes(void **state)
{
	struct weft_retry retry = policy_of(9, ABORTED, true);
	struct wf_flight f;
	char *text = NULL;
	size_t bytes;
	FILE *out;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	retry.pause_ns = retry.pause_max_ns = 10 * S;
	failures = 1;
	begin(&f, &retry, 10, 60 * S);
	wf_world_pass(100 * MS);
	out = open_memstream(&text, &bytes);
	assert_non_null(out);
	assert_int_equal(weft_dump(wf_world_node(0), out), 0);
	(void)fclose(out);
	assert_non_null(strstr(text, "attempt 2 of 9, in "));
	assert_non_null(strstr(text, "as the test wants"));
	free(text);
	land(&f, WEFT_OK);
	wf_flight_free(&f, 1);
	wf_world_end();
}

/* Replies that are lost. */

#define WAY_NS (20 * MS) /* more than a request takes, and its reply */

/* Begin a call whose handler takes @takes_ns, and cut the caller off while it is at it. */
static void begin_and_part(struct wf_flight *f, const struct weft_retry *retry, size_t bytes,
			   uint64_t takes_ns)
{
	unsigned before = wf_world_served(1);

	answer_ns = takes_ns;
	begin(f, retry, bytes, 20 * S);
	wf_world_pass(WAY_NS);
	assert_int_equal(wf_world_served(1), before + 1);
	wf_world_part(0, 1, true);
}

static void a_reply_that_was_lost_is_given_to_the_next_attempt(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	static const size_t sizes[] = { 10, 0, BIG };
	struct wf_flight f;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes) * WF_COUNT(sizes); i++) {
		open_world(wf_world_shapes[i / WF_COUNT(sizes)]);
		begin_and_part(&f, &retry, sizes[i % WF_COUNT(sizes)], 100 * MS);
		wf_world_pass(S);
		assert_int_equal(f.outcomes, 0);
		wf_world_part(0, 1, false);
		land(&f, WEFT_OK);
		assert_int_equal(wf_world_served(1), 1);
		assert_int_equal(wf_world_count(1).served_repeated, 1);
		assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_YES);
		assert_int_equal(cancels, 0);
		wf_flight_free(&f, 1);
		wf_world_end();
	}
}

static void assert_first(const struct weft_metadata *pairs, size_t count)
{
	assert_int_equal(count, 1);
	assert_string_equal(pairs->key, "attempt");
	assert_string_equal(pairs->value, "1");
}

static void a_repeated_answer_drops_what_interceptors_add(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	const struct weft_metadata *pairs;
	struct wf_flight f;
	size_t count;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	adds = true;
	begin_and_part(&f, &retry, 10, 100 * MS);
	wf_world_pass(S);
	wf_world_part(0, 1, false);
	land(&f, WEFT_OK);
	assert_int_equal(wf_world_served(1), 1);
	assert_int_equal(admitted, 2);
	pairs = weft_call_initial(f.op, &count);
	assert_first(pairs, count);
	pairs = weft_call_trailing(f.op, &count);
	assert_first(pairs, count);
	assert_null(weft_call_details(f.op, &count));
	wf_flight_free(&f, 1);
	wf_world_end();
}

static void a_failure_that_was_lost_is_told_to_the_next_attempt(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	failures = 1;
	/* The handler answers at once: the answer does not get out. */
	wf_world_hold_way(1, 0, true);
	begin(&f, &retry, 10, 20 * S);
	wf_world_pass(WAY_NS);
	assert_int_equal(wf_world_served(1), 1);
	wf_world_part(0, 1, true);
	wf_world_hold_way(1, 0, false);
	wf_world_pass(S);
	wf_world_part(0, 1, false);
	land(&f, WEFT_ABORTED);
	assert_string_equal(weft_op_message(f.op), "as the test wants");
	assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_YES);
	assert_int_equal(wf_world_served(1), 1);
	wf_flight_free(&f, 1);
	wf_world_end();
}

static void a_handler_that_still_runs_answers_the_next_attempt(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		begin_and_part(&f, &retry, BIG, 5 * S);
		wf_world_pass(S);
		wf_world_part(0, 1, false);
		wf_world_pass(2 * S);
		assert_int_equal(f.outcomes, 0);
		assert_int_equal(wf_world_count(1).served_repeated, 1);
		land(&f, WEFT_OK);
		assert_in_range(wf_flight_ns(&f), 5 * S, 5 * S + 100 * MS);
		assert_int_equal(wf_world_served(1), 1);
		assert_int_equal(cancels, 0);
		wf_flight_free(&f, 1);
		wf_world_end();
	}
}

static void a_cancel_reaches_the_handler_that_an_earlier_attempt_has_begun(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	begin_and_part(&f, &retry, 10, 5 * S);
	wf_world_pass(S);
	wf_world_part(0, 1, false);
	wf_world_pass(S);
	assert_int_equal(wf_world_count(1).served_repeated, 1);
	weft_cancel(f.op);
	land(&f, WEFT_CANCELLED);
	wf_world_pass(100 * MS);
	assert_int_equal(cancels, 1);
	wf_flight_free(&f, 1);
	wf_world_pass(5 * S);
	wf_world_end();
}

/* The same, and the caller dies meanwhile. */
static void begin_and_kill(struct wf_flight *f, const struct weft_retry *retry)
{
	answer_ns = 15 * S;
	begin(f, retry, 10, 60 * S);
	wf_world_pass(WAY_NS);
	assert_int_equal(wf_world_served(1), 1);
	wf_world_kill(0);
}

static void a_handler_is_told_when_its_caller_does_not_come_back(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	begin_and_kill(&f, &retry);
	wf_world_pass(9 * S);
	assert_int_equal(cancels, 0);
	wf_world_pass(2 * S);
	assert_int_equal(cancels, 1);
	wf_world_pass(10 * S);
	assert_int_equal(wf_world_count(1).served, 0);
	/* That it was handled is not to be told to anybody as a success. */
	assert_int_equal(replies_of(1)->kept_count, 0);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

/* Without a policy nobody will come back. */
static void the_handler_of_a_call_without_retry_is_told_at_once(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	begin_and_kill(&f, NULL);
	wf_world_pass(S);
	assert_int_equal(cancels, 1);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void a_handler_does_not_run_again_in_another_incarnation(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	for (unsigned idempotent = 0; idempotent < 2; idempotent++) {
		open_world(WF_WORLD_CONNECTED);
		retry.idempotent = (int)idempotent;
		answer_ns = S;
		begin(&f, &retry, 10, 20 * S);
		wf_world_pass(WAY_NS);
		assert_int_equal(wf_world_served(1), 1);
		wf_world_kill(1);
		wf_world_restart(1);
		land(&f, idempotent ? WEFT_OK : WEFT_UNAVAILABLE);
		assert_int_equal(wf_world_served(1), idempotent);
		if (!idempotent) {
			assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_MAYBE);
			assert_non_null(strstr(weft_op_message(f.op), "started anew"));
			/* It is no use to ask again. */
			assert_int_equal(repeated(), 1);
		}
		wf_flight_free(&f, 1);
		wf_world_end();
	}
}

/* What is kept, and for whom. */

/* @count calls of node 2, each answered before the next. */
static void fill_window(unsigned count, size_t bytes)
{
	struct weft_retry retry = policy_of(2, UNAVAILABLE, false);
	struct weft_call_options options = { .size = sizeof(options), .retry = &retry };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	struct wf_flight f;

	question.body.data = source;
	question.body.len = bytes;
	while (count--) {
		options.op = wf_flight_begin(&f, 20 * S);
		f.request = source;
		f.request_bytes = bytes;
		assert_int_equal(weft_call_open(wf_world_stub(2, 1), &options, &service, &f.op), 0);
		sim__mirror__reflect(service, &question, answered, &f);
		land(&f, WEFT_OK);
		wf_flight_free(&f, 1);
	}
}

static void nobody_answers_for_a_reply_that_had_to_go(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	for (unsigned by_bytes = 0; by_bytes < 2; by_bytes++) {
		open_world(WF_WORLD_CONNECTED);
		wf_world_add();
		begin_and_part(&f, &retry, 10, 100 * MS);
		wf_world_pass(200 * MS);
		assert_int_equal(replies_of(1)->kept_count, 1);
		answer_ns = 0;
		fill_window(by_bytes ? 30 : WF_REPLY_CACHE_MAX, by_bytes ? BIG : 10);
		assert_true(replies_of(1)->kept_count <= WF_REPLY_CACHE_MAX);
		assert_true(replies_of(1)->kept_bytes <= WF_REPLY_CACHE_BYTES_MAX);
		wf_world_pass(S);
		wf_world_part(0, 1, false);
		land(&f, WEFT_UNAVAILABLE);
		assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_MAYBE);
		assert_non_null(strstr(weft_op_message(f.op), "not kept any more"));
		assert_int_equal(wf_world_served(1), 1 + (by_bytes ? 30 : WF_REPLY_CACHE_MAX));
		wf_flight_free(&f, 1);
		/* What comes later is known to be new. */
		begin(&f, &retry, 10, S);
		land(&f, WEFT_OK);
		wf_flight_free(&f, 1);
		wf_world_end();
	}
}

static void a_reply_with_attachments_is_not_kept(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	attaches = true;
	begin_and_part(&f, &retry, 10, 100 * MS);
	wf_world_pass(S);
	assert_int_equal(replies_of(1)->kept_count, 0);
	wf_world_part(0, 1, false);
	land(&f, WEFT_UNAVAILABLE);
	assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_MAYBE);
	assert_int_equal(wf_world_served(1), 1);
	wf_flight_free(&f, 1);
	/* But a handler that is still at it has them for whoever comes. */
	answer_ns = 3 * S;
	begin(&f, &retry, 10, 20 * S);
	wf_world_pass(WAY_NS);
	assert_int_equal(wf_world_served(1), 2);
	wf_world_part(0, 1, true);
	wf_world_pass(S);
	wf_world_part(0, 1, false);
	land(&f, WEFT_OK);
	assert_int_equal(wf_world_served(1), 2);
	assert_int_equal(weft_op_attachments(f.op), 1);
	wf_flight_free(&f, 1);
	wf_world_end();
}

static void the_same_id_of_another_caller_is_another_request(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	wf_world_add();
	wf_world_peer(0, 1)->request_id = wf_world_peer(2, 1)->request_id = UINT64_MAX;
	begin(&f, &retry, 10, S);
	land(&f, WEFT_OK);
	wf_flight_free(&f, 1);
	fill_window(1, 10);
	assert_int_equal(wf_world_served(1), 2);
	assert_int_equal(wf_world_count(1).served_repeated, 0);
	assert_int_equal(replies_of(1)->kept_count, 2);
	wf_world_end();
}

/* Else node 2 could say that it is node 0, and ask node 1 for what node 0 was answered. */
static void the_ids_that_one_server_learns_are_not_those_of_another(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	uint64_t learnt, said;
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	wf_world_add();
	begin(&f, &retry, 10, S);
	land(&f, WEFT_OK);
	said = f.op->call.call.request_id;
	wf_flight_free(&f, 1);
	begin_at(2, &f, &retry, 10, S);
	land(&f, WEFT_OK);
	learnt = f.op->call.call.request_id;
	wf_flight_free(&f, 1);
	assert_true(learnt - said > 1000000 && said - learnt > 1000000);
	wf_world_end();
}

static void a_caller_comes_back_to_the_worker_that_knows_his_request(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	wf_world_set_workers(3);
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 0; i < 4; i++) {
		unsigned before = wf_world_served(1);

		answer_ns = i % 2 ? 5 * S : 100 * MS;
		begin(&f, &retry, 10, 20 * S);
		wf_world_pass(WAY_NS);
		assert_int_equal(wf_world_served(1), before + 1);
		wf_world_part(0, 1, true);
		wf_world_pass(S);
		wf_world_part(0, 1, false);
		land(&f, WEFT_OK);
		assert_int_equal(wf_world_served(1), before + 1);
		wf_flight_free(&f, 1);
	}
	assert_int_equal(wf_world_count(1).served_repeated, 4);
	wf_world_end();
}

/* The server's next life is a stranger at another worker when the second attempt begins. */
static void an_attempt_that_moves_says_once_how_many_came_before(void **state)
{
	struct weft_retry retry = policy_of(2, UNAVAILABLE, true);
	struct wf_flight f, ping;
	unsigned moves = 0;

	(void)state;
	wf_world_set_workers(3);
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 1; i <= 6; i++) {
		const struct wf_worker *first;

		answer_ns = 20 * S;
		begin(&f, &retry, 10, 20 * S);
		wf_world_pass(WAY_NS);
		first = f.op->worker;
		wf_world_kill(1);
		wf_world_restart(1);
		answer_ns = 0;
		wf_flight_ping(&ping, 1, 0, S);
		wf_flight_land(&ping, 1, S);
		assert_int_equal(repeated(), i - 1);
		land(&f, WEFT_OK);
		moves += f.op->worker != first;
		assert_string_equal(attempts_said, "1");
		assert_int_equal(repeated(), i);
		wf_flight_free(&ping, 1);
		wf_flight_free(&f, 1);
	}
	assert_true(moves);
	wf_world_end();
}

static void an_attempt_takes_no_place_beside_the_handler_that_it_joins(void **state)
{
	const struct weft_serve_options limits = { .size = sizeof(limits), .calls_max = 1,
						   .calls_per_peer = 1 };
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	wf_world_set_limits(&limits);
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 0; i < 2; i++) {
		begin_and_part(&f, &retry, 10, 5 * S);
		wf_world_pass(S);
		wf_world_part(0, 1, false);
		wf_world_pass(S);
		wf_world_part(0, 1, true);
		wf_world_pass(S);
		wf_world_part(0, 1, false);
		land(&f, WEFT_OK);
		wf_flight_free(&f, 1);
		assert_int_equal(wf_world_count(1).served_repeated, 2 * (i + 1));
		wf_world_pass(100 * MS);
	}
	wf_world_end();
}

/* The attempts of a call that may be handled twice do not say that there were earlier ones. */
static void an_attempt_begins_no_handler_when_the_reply_goes_while_its_request_comes(void **state)
{
	const struct weft_serve_options limits = { .size = sizeof(limits), .calls_max = 1 };
	struct weft_retry retry = policy_of(9, UNAVAILABLE, true);
	struct wf_flight f, other;

	(void)state;
	wf_world_set_limits(&limits);
	for (unsigned drains = 0; drains < 2; drains++) {
		open_world(WF_WORLD_CONNECTED);
		wf_world_add();
		begin_and_part(&f, &retry, BIG, 100 * MS);
		wf_world_pass(S);
		wf_world_part(0, 1, false);
		while (!wf_world_count(1).served)
			wf_world_step();
		wf_world_hold_way(0, 1, true);
		answer_ns = 0;
		fill_window(30, BIG);
		answer_ns = S;
		begin_from(2, 1, &other, NULL, 10, 20 * S);
		wf_world_pass(WAY_NS);
		assert_int_equal(wf_world_served(1), 1 + 30 + 1);
		assert_int_equal(wf_world_count(1).served, 2);
		if (drains)
			assert_int_equal(weft_node_drain(wf_world_node(1), 0), -ETIMEDOUT);

		wf_world_hold_way(0, 1, false);
		land(&f, drains ? WEFT_UNAVAILABLE : WEFT_RESOURCE_EXHAUSTED);

		assert_int_equal(wf_world_served(1), 1 + 30 + 1);
		assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_MAYBE);
		land(&other, WEFT_OK);
		wf_flight_free(&f, 1);
		wf_flight_free(&other, 1);
		wf_world_end();
	}
}

/* The place of a server that drains is taken by another. */
static void an_attempt_finds_the_server_that_comes_after_one_that_drains(void **state)
{
	struct weft_retry retry = policy_of(20, UNAVAILABLE, false);
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	assert_int_equal(weft_node_drain(wf_world_node(1), 0), 0);
	wf_world_pass(100 * MS);
	begin(&f, &retry, 10, 20 * S);
	wf_world_pass(S);
	assert_int_equal(f.outcomes, 0);
	assert_true(repeated() > 1);
	assert_int_equal(wf_world_served(1), 0);
	wf_world_kill(1);
	wf_world_restart(1);
	land(&f, WEFT_OK);
	assert_int_equal(wf_world_served(1), 1);
	wf_flight_free(&f, 1);
	wf_world_end();
}

/* The caller hears that the server drains with the next attempt, or before it. */
static void an_attempt_finds_its_handler_at_a_server_that_drains(void **state)
{
	struct wf_flight f, ping;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct weft_retry retry = policy_of(9, UNAVAILABLE, i / 2);
		bool before = i % 2;

		retry.pause_ns = retry.pause_max_ns = 2 * S;
		open_world(WF_WORLD_CONNECTED);
		begin_and_part(&f, &retry, 10, 8 * S);
		wf_world_pass(S);
		assert_int_equal(weft_node_drain(wf_world_node(1), 0), -ETIMEDOUT);
		wf_world_part(0, 1, false);
		if (before) {
			wf_flight_ping(&ping, 0, 1, S);
			wf_flight_land(&ping, 1, S);
			assert_int_equal(ping.status, WEFT_OK);
			wf_flight_free(&ping, 1);
			assert_int_equal(repeated(), 0);
		}
		land(&f, WEFT_OK);
		assert_in_range(wf_flight_ns(&f), 8 * S, 8 * S + 100 * MS);
		assert_int_equal(wf_world_served(1), 1);
		assert_int_equal(repeated(), 1);
		wf_world_pass(100 * MS);
		assert_int_equal(weft_node_drain(wf_world_node(1), 0), 0);
		wf_flight_free(&f, 1);
		wf_world_end();
	}
}

static void a_dump_counts_the_replies_that_are_kept(void **state)
{
	struct weft_retry retry = policy_of(9, UNAVAILABLE, false);
	struct wf_flight f;
	char *text = NULL;
	size_t bytes;
	FILE *out;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	begin(&f, &retry, 10, S);
	land(&f, WEFT_OK);
	wf_flight_free(&f, 1);
	out = open_memstream(&text, &bytes);
	assert_non_null(out);
	assert_int_equal(weft_dump(wf_world_node(1), out), 0);
	(void)fclose(out);
	assert_non_null(strstr(text, "replies kept for callers who may ask again: 1, of "));
	free(text);
	wf_world_end();
}

/* Any calls at any time, while the way between the two is cut, and the server starts anew. */
static void storm(uint64_t seed, bool idempotent)
{
	enum { CALLS = 60 };
	static struct wf_flight flights[CALLS];
	static uint8_t requests[CALLS][64];
	struct weft_retry retry = policy_of(6, UNAVAILABLE | ABORTED, idempotent);
	struct weft_call_options options = { .size = sizeof(options), .retry = &retry };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	bool parted = false;

	srand((unsigned)seed);
	open_world(wf_world_shapes[seed % WF_COUNT(wf_world_shapes)]);
	for (uint64_t i = 0; i < CALLS; i++) {
		memcpy(requests[i], &i, sizeof(i));
		answer_ns = (uint64_t)(rand() % 400) * MS;
		failures = (unsigned)rand() % 20 == 0;
		options.op = wf_flight_begin(&flights[i], (uint64_t)(1 + rand() % 8) * S);
		flights[i].request = requests[i];
		flights[i].request_bytes = sizeof(requests[i]);
		question.body.data = requests[i];
		question.body.len = sizeof(requests[i]);
		assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service,
						&flights[i].op), 0);
		sim__mirror__reflect(service, &question, answered, &flights[i]);
		wf_world_pass((uint64_t)(rand() % 120) * MS);
		if (rand() % 8 == 0)
			wf_world_cut_door(0, 1);
		if (rand() % (parted ? 3 : 10) == 0)
			wf_world_part(0, 1, parted = !parted);
		if (rand() % 30 == 0) {
			wf_world_kill(1);
			wf_world_restart(1);
		}
	}
	wf_world_part(0, 1, false);
	wf_flight_land(flights, CALLS, 20 * S);
	for (unsigned i = 0; i < CALLS; i++) {
		enum weft_executed executed = weft_op_executed(flights[i].op);

		if (flights[i].status == WEFT_OK)
			assert_true(flights[i].reply_right);
		if (!idempotent && handled[i] > 1)
			fail_msg("seed %llu: call %u was handled %u times",
				 (unsigned long long)seed, i, handled[i]);
		if (executed == WEFT_EXECUTED_NO && handled[i])
			fail_msg("seed %llu: call %u was handled, and is said not to have been: %s",
				 (unsigned long long)seed, i, weft_op_message(flights[i].op));
		if (executed == WEFT_EXECUTED_YES)
			assert_true(handled[i]);
	}
	wf_flight_free(flights, CALLS);
	wf_world_pass(12 * S);
	wf_world_end();
}

static void no_request_is_handled_twice_whatever_is_cut(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++)
		storm(seed, seed % 5 == 0);
}

/* What can't be asked for. */

static void a_policy_that_makes_no_sense_is_refused(void **state)
{
	const struct weft_retry wrong[] = {
		policy_of(0, ABORTED, true),
		policy_of(2, 1u << WEFT_OK, true),
		policy_of(2, 1u << 17, true),
		{ .attempts = 2 },
	};
	struct weft_retry right = policy_of(2, ABORTED, false);
	struct weft_call_options options = { .size = sizeof(options) };
	ProtobufCService *service;
	struct weft_stream *stream;
	struct weft_op *op;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (size_t i = 0; i < WF_COUNT(wrong); i++) {
		options.retry = &wrong[i];
		assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &op),
				 -EINVAL);
	}
	options.retry = &right;
	assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &op), 0);
	assert_int_equal(weft_call_attach(op, &tensor, NULL, NULL), -EINVAL);
	weft_op_free(op);
	assert_int_equal(weft_stream_open(wf_world_stub(0, 1), "Talk", &options, &stream, &op),
			 -EINVAL);
	wf_world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idempotent_call_is_made_again_until_it_is_answered),
		cmocka_unit_test(attempts_end_with_the_last_failure),
		cmocka_unit_test(a_failure_of_a_handler_is_not_repeated_unless_that_is_harmless),
		cmocka_unit_test(a_failure_of_another_status_is_not_repeated),
		cmocka_unit_test(a_call_that_never_reached_its_handler_is_made_again),
		cmocka_unit_test(an_attempt_finds_a_server_that_has_come_back),
		cmocka_unit_test(a_request_that_does_not_unpack_is_not_executed),
		cmocka_unit_test(no_attempt_begins_that_the_deadline_would_end),
		cmocka_unit_test(all_attempts_have_one_deadline),
		cmocka_unit_test(a_call_is_cancelled_between_its_attempts),
		cmocka_unit_test(cancelled_is_never_a_reason_for_another_attempt),
		cmocka_unit_test(a_node_closes_between_two_attempts),
		cmocka_unit_test(a_dump_names_the_attempt_that_comes),
		cmocka_unit_test(a_reply_that_was_lost_is_given_to_the_next_attempt),
		cmocka_unit_test(a_repeated_answer_drops_what_interceptors_add),
		cmocka_unit_test(a_failure_that_was_lost_is_told_to_the_next_attempt),
		cmocka_unit_test(a_handler_that_still_runs_answers_the_next_attempt),
		cmocka_unit_test(a_cancel_reaches_the_handler_that_an_earlier_attempt_has_begun),
		cmocka_unit_test(a_handler_is_told_when_its_caller_does_not_come_back),
		cmocka_unit_test(the_handler_of_a_call_without_retry_is_told_at_once),
		cmocka_unit_test(a_handler_does_not_run_again_in_another_incarnation),
		cmocka_unit_test(nobody_answers_for_a_reply_that_had_to_go),
		cmocka_unit_test(a_reply_with_attachments_is_not_kept),
		cmocka_unit_test(the_same_id_of_another_caller_is_another_request),
		cmocka_unit_test(the_ids_that_one_server_learns_are_not_those_of_another),
		cmocka_unit_test(a_caller_comes_back_to_the_worker_that_knows_his_request),
		cmocka_unit_test(an_attempt_that_moves_says_once_how_many_came_before),
		cmocka_unit_test(an_attempt_takes_no_place_beside_the_handler_that_it_joins),
		cmocka_unit_test(
			an_attempt_begins_no_handler_when_the_reply_goes_while_its_request_comes),
		cmocka_unit_test(an_attempt_finds_the_server_that_comes_after_one_that_drains),
		cmocka_unit_test(an_attempt_finds_its_handler_at_a_server_that_drains),
		cmocka_unit_test(a_dump_counts_the_replies_that_are_kept),
		cmocka_unit_test(no_request_is_handled_twice_whatever_is_cut),
		cmocka_unit_test(a_policy_that_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
