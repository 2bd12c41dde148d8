/* SPDX-License-Identifier: BSD-2-Clause */
/* Tensors beside requests, replies and messages, and everything that may happen in the middle. */
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

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define SMALL 100
#define BIG (3 * MIB + 17)
#define LONG (300 * KIB) /* pulled, by one read */
#define LONG_NS (20 * S)
#define CALLBACKS 100 /* more than run in three turns */

static uint8_t source[BIG], taken_bytes[SMALL];

static void open_world(enum wf_world_shape shape)
{
	wf_world_lose_soon();
	wf_world_fill(source, sizeof(source), 1);
	wf_world_open(shape, 2, NULL);
}

/* Tensors. */

/* The shape is the caller's: one row of bytes. */
static struct weft_tensor row(const void *data, int64_t *shape)
{
	return (struct weft_tensor){
		.data = (void *)(uintptr_t)data, .device = { WEFT_CPU, 0 }, .ndim = 1,
		.dtype = { WEFT_UINT, 8, 1 }, .shape = shape,
	};
}

/* Every second column of a table of bytes. */
static int64_t columns_shape[] = { 300, 50 }, columns_strides[] = { 100, 2 };
static uint8_t columns[300 * 50]; /* as they are to come */

static struct weft_tensor columns_of(void)
{
	for (size_t i = 0; i < sizeof(columns); i++)
		columns[i] = source[i / 50 * 100 + i % 50 * 2];
	return (struct weft_tensor){
		.data = source, .device = { WEFT_CPU, 0 }, .ndim = 2,
		.dtype = { WEFT_UINT, 8, 1 }, .shape = columns_shape, .strides = columns_strides,
	};
}

static struct weft_send_options sending(struct wf_flight *f, unsigned flags)
{
	return (struct weft_send_options){
		.size = sizeof(struct weft_send_options), .op = wf_flight_begin(f, 0), .flags = flags,
	};
}

/* @f got the first @bytes of source, or the columns of it. */
static void assert_got(const struct wf_flight *f, const void *expected, size_t bytes)
{
	const struct weft_tensor *t = weft_op_tensor(f->op, NULL);

	if (f->status != WEFT_OK)
		fail_msg("%s", weft_op_message(f->op));
	assert_non_null(t);
	if (bytes)
		assert_same_content(t->data, expected, bytes);
	else
		assert_null(t->data);
}

/* The server's end, in the hands of the test. */

static void *served; /* the call */
static unsigned cancels;

static void note_cancel(void *arg)
{
	(void)arg;
	cancels++;
}

static void keep(unsigned number, void *call)
{
	(void)number;
	assert_null(served);
	served = call;
	weft_served_on_cancel(call, note_cancel, NULL);
}

static bool is_served(void *ctx)
{
	(void)ctx;
	return served != NULL;
}

static void answer(void)
{
	void *call = served;

	served = NULL;
	wf_world_answer(call, source, SMALL);
}

/* A call of node 0 to node 1 that is not invoked yet. */
static ProtobufCService *open_call(struct wf_flight *f, uint64_t timeout_ns)
{
	struct weft_call_options options = { .size = sizeof(options) };
	ProtobufCService *service;

	options.op = wf_flight_begin(f, timeout_ns);
	assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &f->op), 0);
	return service;
}

/* Open a call whose handler keeps it as @served. */
static ProtobufCService *open_kept_call(struct wf_flight *f)
{
	served = NULL;
	wf_world_on_request(keep);
	return open_call(f, LONG_NS);
}

static void answered(const Sim__Bytes *reply, void *arg)
{
	struct wf_flight *f = arg;

	f->closures++;
	f->reply_right = reply && reply->body.len == SMALL &&
			 !memcmp(reply->body.data, source, SMALL);
}

static void invoke(ProtobufCService *service, struct wf_flight *f, size_t bytes)
{
	Sim__Bytes request = SIM__BYTES__INIT;

	request.body.data = source;
	request.body.len = bytes;
	sim__mirror__reflect(service, &request, answered, f);
}

/* An exchange: three tensors there, which the handler receives, and two back. */

#define THERE 4
#define BACK 2

struct exchange {
	size_t bytes; /* of the request */
	struct wf_flight call, attached[THERE], received[BACK];
	struct wf_flight taken[THERE], replied[BACK];
	bool invoked, taking, answered, receiving;
};

static void begin_exchange(struct exchange *x, size_t bytes)
{
	int64_t small = SMALL, big = BIG, none = 0;
	struct weft_tensor tensors[THERE] = {
		row(source, &small), row(source, &big), columns_of(), row(NULL, &none),
	};
	ProtobufCService *service;

	*x = (struct exchange){ .bytes = bytes };
	served = NULL;
	cancels = 0;
	wf_world_on_request(keep);
	service = open_call(&x->call, LONG_NS);
	for (size_t i = 0; i < THERE; i++) {
		struct weft_send_options options = sending(&x->attached[i], 0);

		assert_int_equal(weft_call_attach(x->call.op, &tensors[i], &options,
						  &x->attached[i].op), 0);
	}
	invoke(service, &x->call, bytes);
	x->invoked = true;
}

static bool have_landed(const struct wf_flight *f, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!f[i].outcomes)
			return false;
	return true;
}

static void take_all(struct exchange *x)
{
	x->taking = true;
	assert_int_equal(weft_served_attachments(served), THERE);
	for (unsigned i = 0; i < THERE; i++) {
		struct weft_recv_options options = { .size = sizeof(options),
						     .op = wf_flight_begin(&x->taken[i], 0) };

		assert_int_equal(weft_served_receive(served, i, NULL, &options, &x->taken[i].op),
				 0);
	}
}

static void answer_all(struct exchange *x)
{
	int64_t small = SMALL, big = BIG;
	struct weft_tensor tensors[BACK] = { row(source, &big), row(source, &small) };

	for (size_t i = 0; i < BACK; i++) {
		struct weft_send_options options = sending(&x->replied[i], 0);

		assert_int_equal(weft_served_attach(served, &tensors[i], &options,
						    &x->replied[i].op), 0);
	}
	x->answered = true;
	answer();
}

static void receive_all(struct exchange *x)
{
	x->receiving = true;
	assert_int_equal(weft_op_attachments(x->call.op), BACK);
	for (unsigned i = 0; i < BACK; i++) {
		struct weft_recv_options options = { .size = sizeof(options),
						     .op = wf_flight_begin(&x->received[i], S) };

		assert_int_equal(weft_op_receive(x->call.op, i, NULL, &options,
						 &x->received[i].op), 0);
	}
}

/* What is to be done at either end; and is all over that has begun? */
static bool is_over(void *ctx)
{
	struct exchange *x = ctx;

	if (served && !x->taking)
		take_all(x);
	if (served && x->taking && have_landed(x->taken, THERE))
		answer_all(x);
	if (x->call.outcomes && x->call.status == WEFT_OK && !x->receiving)
		receive_all(x);
	return x->call.outcomes && have_landed(x->attached, THERE) &&
	       (!x->receiving || have_landed(x->received, BACK));
}

static bool is_over_at_both(void *ctx)
{
	const struct exchange *x = ctx;

	return is_over(ctx) && (!x->taking || have_landed(x->taken, THERE)) &&
	       (!x->answered || have_landed(x->replied, BACK));
}

static void check_exchange(const struct exchange *x)
{
	assert_int_equal(x->call.outcomes, 1);
	assert_int_equal(x->call.closures, 1);
	for (size_t i = 0; i < THERE; i++) {
		assert_int_equal(x->attached[i].outcomes, 1);
		/* The call waits for its buffers. */
		assert_true(x->attached[i].ended_ns <= x->call.ended_ns);
	}
}

static void assert_went_well(const struct exchange *x)
{
	if (x->call.status != WEFT_OK)
		fail_msg("%s", weft_op_message(x->call.op));
	assert_true(x->call.reply_right);
	for (size_t i = 0; i < THERE; i++)
		assert_int_equal(x->attached[i].status, WEFT_OK);
	assert_got(&x->taken[0], source, SMALL);
	assert_got(&x->taken[1], source, BIG);
	assert_got(&x->taken[2], columns, sizeof(columns));
	assert_got(&x->taken[3], NULL, 0);
	assert_got(&x->received[0], source, BIG);
	assert_got(&x->received[1], source, SMALL);
}

static void free_exchange(struct exchange *x)
{
	wf_flight_free(&x->call, 1);
	wf_flight_free(x->attached, THERE);
	wf_flight_free(x->taken, THERE);
	wf_flight_free(x->replied, BACK);
	wf_flight_free(x->received, BACK);
}

static void tensors_travel_beside_request_and_reply(void **state)
{
	static const size_t requests[] = { 0, SMALL, BIG };
	struct exchange x;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		for (size_t j = 0; j < WF_COUNT(requests); j++) {
			open_world(wf_world_shapes[i]);
			begin_exchange(&x, requests[j]);
			assert_true(wf_world_run(is_over_at_both, &x, LONG_NS));
			check_exchange(&x);
			assert_went_well(&x);
			for (size_t k = 0; k < BACK; k++)
				assert_int_equal(x.replied[k].status, WEFT_OK);
			free_exchange(&x);
			assert_int_equal(cancels, 0);
			wf_world_end();
		}
	}
}

static void several_workers_move_a_call_with_what_goes_beside_it(void **state)
{
	struct exchange x;

	(void)state;
	for (unsigned workers = 2; workers < 4; workers++) {
		wf_world_set_workers(workers);
		open_world(WF_WORLD_CONNECTED);
		/* Its home is not known before it is met. */
		begin_exchange(&x, SMALL);
		assert_true(wf_world_run(is_over_at_both, &x, LONG_NS));
		check_exchange(&x);
		assert_went_well(&x);
		free_exchange(&x);
		wf_world_end();
	}
}

/* What happens to an exchange, wherever it is. */
enum event { CANCEL, KILL_SERVER, KILL_CALLER, LEAVE, BREAK_RAIL, CUT_DOOR, EVENTS };

static void happen(enum event event, struct exchange *x)
{
	switch (event) {
	case CANCEL:
		weft_cancel(x->call.op);
		break;
	case KILL_SERVER:
		wf_world_kill(1);
		served = NULL;
		break;
	case KILL_CALLER:
		wf_world_kill(0);
		break;
	case LEAVE:
		/* A call that is kept must be answered before its node closes. */
		if (served)
			weft_served_fail(served, WEFT_ABORTED, "I leave");
		served = NULL;
		wf_world_leave(1);
		break;
	case BREAK_RAIL:
		wf_world_break_rail(0, 1, true);
		wf_world_pass(50 * MS);
		wf_world_break_rail(0, 1, false);
		break;
	case CUT_DOOR:
		wf_world_cut_door(0, 1);
		break;
	case EVENTS:
		break;
	}
}

/* The server's end is over once everything that it has begun has ended. */
static bool is_over_at_server(void *ctx)
{
	const struct exchange *x = ctx;

	return (!x->taking || have_landed(x->taken, THERE)) &&
	       (!x->answered || have_landed(x->replied, BACK));
}

static void end_server(struct exchange *x)
{
	assert_true(wf_world_run(is_over_at_server, x, LONG_NS + S));
	if (served)
		answer();
}

/* False: it was over before @step steps. */
static bool try_event(enum wf_world_shape shape, enum event event, unsigned step)
{
	struct exchange x;
	bool was_over = false;

	open_world(shape);
	begin_exchange(&x, SMALL);
	for (unsigned i = 0; i < step && !was_over; i++) {
		was_over = is_over_at_both(&x);
		wf_world_step();
	}
	happen(event, &x);
	if (event == KILL_CALLER) {
		end_server(&x);
		wf_world_pass(WF_WORLD_LOST_NS);
		free_exchange(&x);
		(void)wf_world_close();
		return !was_over;
	}
	if (event == LEAVE)
		x.taking = x.answered = true; /* its flights are over, or not begun */
	if (!wf_world_run(is_over, &x, LONG_NS + S)) {
		weft_dump(wf_world_node(0), stderr);
		fail_msg("event %d after %u steps, shape %d", event, step, shape);
	}
	check_exchange(&x);
	if (event == BREAK_RAIL || event == CUT_DOOR)
		assert_went_well(&x);
	else if (x.call.status == WEFT_OK && x.received[0].status == WEFT_OK)
		assert_got(&x.received[0], source, BIG);
	if (event == KILL_SERVER || event == LEAVE) {
		free_exchange(&x);
		(void)wf_world_close();
		return !was_over;
	}
	end_server(&x);
	free_exchange(&x);
	wf_world_end();
	return !was_over;
}

static void try_everywhere(enum event event)
{
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		unsigned step = 0;

		while (try_event(wf_world_shapes[i], event, step))
			step++;
		assert_true(step > 3);
	}
}

static void a_cancelled_call_frees_everything_wherever_it_is(void **state)
{
	(void)state;
	try_everywhere(CANCEL);
}

static void a_dead_server_costs_nothing_but_the_call(void **state)
{
	(void)state;
	try_everywhere(KILL_SERVER);
}

static void a_dead_caller_costs_nothing_but_the_call(void **state)
{
	(void)state;
	try_everywhere(KILL_CALLER);
}

static void a_server_that_leaves_ends_the_call(void **state)
{
	(void)state;
	try_everywhere(LEAVE);
}

static void a_rail_that_fails_loses_no_attachment(void **state)
{
	(void)state;
	try_everywhere(BREAK_RAIL);
}

static void a_door_that_is_cut_loses_no_attachment(void **state)
{
	(void)state;
	try_everywhere(CUT_DOOR);
}

/* One call with one attachment of @bytes, whose handler is the test's from then on. */
static void call_with(struct wf_flight *call, struct wf_flight *attached, size_t bytes)
{
	int64_t shape = (int64_t)bytes;
	struct weft_tensor t = row(source, &shape);
	struct weft_send_options options = sending(attached, 0);
	ProtobufCService *service;

	served = NULL;
	cancels = 0;
	wf_world_on_request(keep);
	service = open_call(call, LONG_NS);
	assert_int_equal(weft_call_attach(call->op, &t, &options, &attached->op), 0);
	invoke(service, call, SMALL);
	assert_true(wf_world_run(is_served, NULL, S));
}

static void take(struct wf_flight *f, unsigned index, const struct weft_tensor *into,
		 unsigned flags)
{
	struct weft_recv_options options = {
		.size = sizeof(options), .op = wf_flight_begin(f, 0), .flags = flags,
	};

	assert_int_equal(weft_served_receive(served, index, into, &options, &f->op), 0);
}

static void the_handler_sees_what_has_come_before_it_receives_it(void **state)
{
	struct wf_flight call, attached[2];
	struct weft_send_options opaque = sending(&attached[0], WEFT_OPAQUE);
	struct weft_send_options dead = sending(&attached[1], WEFT_DEAD);
	struct weft_tensor t;
	int64_t small = SMALL;
	ProtobufCService *service;
	const struct weft_tensor *seen;
	unsigned flags;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	service = open_kept_call(&call);
	t = row(source, &small);
	assert_int_equal(weft_call_attach(call.op, &t, &opaque, &attached[0].op), 0);
	t = columns_of();
	assert_int_equal(weft_call_attach(call.op, &t, &dead, &attached[1].op), 0);
	invoke(service, &call, SMALL);
	assert_true(wf_world_run(is_served, NULL, S));
	assert_int_equal(weft_served_attachments(served), 2);
	seen = weft_served_attachment(served, 0, &flags);
	assert_int_equal(flags, WEFT_OPAQUE);
	assert_int_equal(seen->ndim, 1);
	assert_int_equal(seen->shape[0], SMALL);
	assert_null(seen->data);
	seen = weft_served_attachment(served, 1, &flags);
	assert_int_equal(flags, WEFT_DEAD);
	assert_int_equal(seen->ndim, 2);
	assert_int_equal(seen->shape[0], 300);
	assert_int_equal(seen->shape[1], 50);
	assert_int_equal(seen->dtype.code, WEFT_UINT);
	assert_null(weft_served_attachment(served, 2, NULL));
	answer();
	wf_flight_land(&call, 1, S);
	wf_flight_land(attached, 2, S);
	assert_int_equal(weft_op_attachments(call.op), 0);
	wf_flight_free(&call, 1);
	wf_flight_free(attached, 2);
	wf_world_end();
}

static void an_attachment_goes_into_the_buffer_it_is_given(void **state)
{
	static uint8_t buffer[BIG];
	struct wf_flight call, attached, taken[2];
	int64_t big = BIG, less = SMALL;
	struct weft_tensor into = row(buffer, &big), wrong = row(buffer, &less);

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		memset(buffer, 0, sizeof(buffer));
		call_with(&call, &attached, BIG);
		take(&taken[0], 0, &into, 0);
		wf_flight_land(taken, 1, S);
		assert_int_equal(taken[0].status, WEFT_OK);
		assert_same_content(buffer, source, BIG);
		answer();
		wf_flight_land(&call, 1, S);
		assert_int_equal(attached.status, WEFT_OK);
		wf_flight_free(&call, 1);
		wf_flight_free(&attached, 1);
		wf_flight_free(taken, 1);

		/* One that it does not fit is dropped, as by any receive. */
		call_with(&call, &attached, BIG);
		take(&taken[0], 0, &wrong, 0);
		wf_flight_land(taken, 1, S);
		assert_int_equal(taken[0].status, WEFT_FAILED_PRECONDITION);
		answer();
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_OK);
		wf_flight_free(&call, 1);
		wf_flight_free(&attached, 1);
		wf_flight_free(taken, 1);
		wf_world_end();
	}
}

static void an_attachment_is_received_once(void **state)
{
	struct wf_flight call, attached, taken[2];
	struct weft_op *op;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	call_with(&call, &attached, BIG);
	take(&taken[0], 0, NULL, 0);
	take(&taken[1], 0, NULL, 0);
	wf_flight_land(taken, 2, S);
	assert_int_equal(taken[0].status, WEFT_OK);
	assert_int_equal(taken[1].status, WEFT_FAILED_PRECONDITION);
	assert_int_equal(weft_served_receive(served, 1, NULL, NULL, &op), -EINVAL);
	answer();
	wf_flight_land(&call, 1, S);
	wf_flight_free(&call, 1);
	wf_flight_free(&attached, 1);
	wf_flight_free(taken, 2);
	wf_world_end();
}

static void an_attachment_the_handler_does_not_receive_is_released(void **state)
{
	struct wf_flight call, attached;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		call_with(&call, &attached, BIG);
		answer();
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_OK);
		assert_int_equal(attached.outcomes, 1);
		assert_int_equal(attached.status, WEFT_OK);
		wf_flight_free(&call, 1);
		wf_flight_free(&attached, 1);
		wf_world_end();
	}
}

/* The first calls of both lives of node 0 have the same id. */
static void an_attachment_of_a_dead_caller_is_not_taken_for_one_of_its_next_life(void **state)
{
	struct wf_flight call, attached, taken;
	void *old;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		wf_world_connect(1, 0);
		call_with(&call, &attached, BIG);
		old = served;
		wf_world_kill(0);
		wf_world_pass(S);
		wf_flight_free(&call, 1);
		wf_flight_free(&attached, 1);
		wf_world_restart(0);
		wf_world_connect(1, 0);
		call_with(&call, &attached, BIG);
		take(&taken, 0, NULL, 0);
		wf_flight_land(&taken, 1, S);
		assert_got(&taken, source, BIG);
		answer();
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_OK);
		served = old;
		answer();
		wf_flight_free(&taken, 1);
		wf_flight_free(&call, 1);
		wf_flight_free(&attached, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void note_whether_ended(const Sim__Bytes *reply, void *arg)
{
	struct wf_flight *attached = arg;

	assert_non_null(reply);
	attached->closures = attached->outcomes;
}

static void a_call_ends_behind_what_went_beside_its_request(void **state)
{
	Sim__Bytes request = SIM__BYTES__INIT;
	struct wf_flight call, attached;
	struct weft_send_options options;
	ProtobufCService *service;
	int64_t big = BIG;
	struct weft_tensor t = row(source, &big);

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		service = open_kept_call(&call);
		options = sending(&attached, 0);
		assert_int_equal(weft_call_attach(call.op, &t, &options, &attached.op), 0);
		sim__mirror__reflect(service, &request, note_whether_ended, &attached);
		assert_true(wf_world_run(is_served, NULL, S));
		answer();
		wf_flight_land(&call, 1, S);
		assert_int_equal(attached.closures, 1);
		wf_flight_free(&call, 1);
		wf_flight_free(&attached, 1);
		wf_world_end();
	}
}

static void an_attachment_the_caller_does_not_receive_is_released_with_its_call(void **state)
{
	struct wf_flight call, attached, replied;
	int64_t big = BIG;
	struct weft_tensor t = row(source, &big);
	struct weft_send_options options = sending(&replied, 0);

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		call_with(&call, &attached, SMALL);
		options = sending(&replied, 0);
		assert_int_equal(weft_served_attach(served, &t, &options, &replied.op), 0);
		answer();
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_OK);
		assert_int_equal(weft_op_attachments(call.op), 1);
		wf_world_pass(S);
		assert_int_equal(replied.outcomes, 0);
		wf_flight_free(&call, 1);
		wf_flight_land(&replied, 1, S);
		assert_int_equal(replied.status, WEFT_OK);
		wf_flight_free(&attached, 1);
		wf_flight_free(&replied, 1);
		wf_world_end();
	}
}

static void attachments_of_a_reply_end_with_the_calls_deadline(void **state)
{
	struct wf_flight call, attached, replied, late;
	int64_t big = BIG;
	struct weft_tensor t = row(source, &big);
	struct weft_recv_options receiving = { .size = sizeof(receiving) };
	struct weft_send_options options;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	call_with(&call, &attached, SMALL);
	options = sending(&replied, 0);
	assert_int_equal(weft_served_attach(served, &t, &options, &replied.op), 0);
	answer();
	wf_flight_land(&call, 1, S);
	wf_flight_land(&replied, 1, LONG_NS + S);
	assert_int_equal(replied.status, WEFT_DEADLINE_EXCEEDED);
	receiving.op = wf_flight_begin(&late, 0);
	assert_int_equal(weft_op_receive(call.op, 0, NULL, &receiving, &late.op), 0);
	wf_flight_land(&late, 1, S);
	assert_int_equal(late.status, WEFT_CANCELLED);
	wf_flight_free(&late, 1);
	wf_flight_free(&call, 1);
	wf_flight_free(&attached, 1);
	wf_flight_free(&replied, 1);
	wf_world_end();
}

static void a_failed_call_brings_no_attachments(void **state)
{
	struct wf_flight call, attached, replied;
	int64_t big = BIG;
	struct weft_tensor t = row(source, &big);
	struct weft_send_options options;
	void *failing;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	call_with(&call, &attached, BIG);
	options = sending(&replied, 0);
	assert_int_equal(weft_served_attach(served, &t, &options, &replied.op), 0);
	failing = served;
	served = NULL;
	weft_served_fail(failing, WEFT_ABORTED, "no");
	wf_flight_land(&call, 1, S);
	wf_flight_land(&replied, 1, S);
	assert_int_equal(call.status, WEFT_ABORTED);
	assert_int_equal(replied.status, WEFT_CANCELLED);
	assert_int_equal(weft_op_attachments(call.op), 0);
	wf_flight_free(&call, 1);
	wf_flight_free(&attached, 1);
	wf_flight_free(&replied, 1);
	wf_world_end();
}

static void an_attachment_that_is_cancelled_is_missed_and_the_call_goes_on(void **state)
{
	struct wf_flight call, attached[2], taken[2];
	int64_t big = BIG;
	struct weft_tensor t = row(source, &big);
	ProtobufCService *service;

	(void)state;
	for (unsigned when = 0; when < 2; when++) {
		open_world(WF_WORLD_CONNECTED);
		service = open_kept_call(&call);
		for (unsigned i = 0; i < 2; i++) {
			struct weft_send_options options = sending(&attached[i], 0);

			assert_int_equal(weft_call_attach(call.op, &t, &options, &attached[i].op), 0);
		}
		/* Before there is a way, so that it never leaves; or when it has. */
		if (!when)
			weft_cancel(attached[0].op);
		invoke(service, &call, SMALL);
		assert_true(wf_world_run(is_served, NULL, S));
		if (when)
			weft_cancel(attached[0].op);
		wf_flight_land(attached, 1, S);
		assert_int_equal(attached[0].status, WEFT_CANCELLED);
		take(&taken[0], 0, NULL, 0);
		take(&taken[1], 1, NULL, 0);
		wf_flight_land(taken, 2, S);
		assert_int_equal(taken[0].status, WEFT_CANCELLED);
		assert_got(&taken[1], source, BIG);
		answer();
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_OK);
		assert_int_equal(attached[1].status, WEFT_OK);
		wf_flight_free(&call, 1);
		wf_flight_free(attached, 2);
		wf_flight_free(taken, 2);
		wf_world_end();
	}
}

static void a_handler_hears_of_a_cancel_while_it_receives(void **state)
{
	struct wf_flight call, attached, taken;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		call_with(&call, &attached, BIG);
		take(&taken, 0, NULL, 0);
		wf_world_step();
		weft_cancel(call.op);
		wf_flight_land(&call, 1, S);
		wf_flight_land(&taken, 1, S);
		assert_int_equal(call.status, WEFT_CANCELLED);
		assert_int_equal(cancels, 1);
		answer();
		wf_flight_free(&call, 1);
		wf_flight_free(&attached, 1);
		wf_flight_free(&taken, 1);
		wf_world_end();
	}
}

/* The pool of node 0, all of it, in pieces. */
static void *chunks[100];
static unsigned chunk_count;

static void take_pool(void)
{
	chunk_count = 0;
	while (chunk_count < WF_COUNT(chunks) &&
	       !weft_alloc(wf_world_node(0), 64 * KIB, &chunks[chunk_count]))
		chunk_count++;
	assert_true(chunk_count && chunk_count < WF_COUNT(chunks));
}

static void give_pool(void)
{
	while (chunk_count)
		weft_free(wf_world_node(0), chunks[--chunk_count]);
}

/* A call whose attachment is to be gathered in the pool, which is empty. */
static void call_starving(struct wf_flight *call, struct wf_flight *attached)
{
	struct weft_send_options options = sending(attached, 0);
	struct weft_tensor t = columns_of();
	ProtobufCService *service;

	setenv("WEFT_POOL_BYTES", "4M", 1);
	open_world(WF_WORLD_CONNECTED);
	wf_world_connect(0, 1);
	take_pool();
	service = open_kept_call(call);
	assert_int_equal(weft_call_attach(call->op, &t, &options, &attached->op), 0);
	invoke(service, call, SMALL);
	wf_world_pass(S);
	assert_null(served);
}

static void a_call_is_not_handled_before_all_has_come(void **state)
{
	struct wf_flight call, attached;

	(void)state;
	call_starving(&call, &attached);
	give_pool();
	assert_true(wf_world_run(is_served, NULL, S));
	answer();
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_OK);
	wf_flight_free(&call, 1);
	wf_flight_free(&attached, 1);
	wf_world_end();
}

static void a_caller_that_gives_up_while_some_are_missing_is_forgotten(void **state)
{
	struct wf_flight call, attached;

	(void)state;
	call_starving(&call, &attached);
	weft_cancel(call.op);
	wf_flight_land(&call, 1, S);
	assert_int_equal(attached.outcomes, 1);
	give_pool();
	wf_flight_free(&call, 1);
	wf_flight_free(&attached, 1);
	wf_world_end();
}

static bool has_come(void *ctx)
{
	(void)ctx;
	return wf_world_count(1).served;
}

/* Turn node 1 until bytes of the request of @call, which has come, are on their way there. */
static void begin_to_read(const struct wf_flight *call)
{
	const struct wf_buffer *request = &call->op->call.call.request;

	for (unsigned i = 0; !wf_fake_is_read(request->at, LONG); i++) {
		assert_true(i < 1000);
		wf_fake_clock_set(wf_clock_now() + WF_NS_PER_US);
		wf_world_poll(1);
	}
}

/* Let node 1 have more callbacks to run than it runs in three turns. */
static void queue_callbacks(struct wf_flight *receives)
{
	for (unsigned i = 0; i < CALLBACKS; i++) {
		wf_flight_receive(&receives[i], 1, 0, i, taken_bytes, SMALL, 0);
		weft_cancel(receives[i].op);
	}
	assert_int_equal(receives[0].outcomes, 0);
}

/*
 * The server has given the call up when the read ends, and the last attachment comes before the
 * callbacks of that turn are through.
 */
static void a_call_that_is_given_up_before_its_request_is_there_ends_once(void **state)
{
	struct wf_flight call, attached, receives[CALLBACKS];
	struct weft_send_options options = sending(&attached, 0);
	struct weft_tensor t = columns_of();
	ProtobufCService *service;

	(void)state;
	setenv("WEFT_POOL_BYTES", "4M", 1);
	open_world(WF_WORLD_CONNECTED);
	wf_world_connect(0, 1);
	served = NULL;
	wf_world_on_request(keep);
	take_pool(); /* where the attachment is to be gathered */
	service = open_call(&call, 50 * MS);
	assert_int_equal(weft_call_attach(call.op, &t, &options, &attached.op), 0);
	invoke(service, &call, LONG);
	assert_true(wf_world_run(has_come, NULL, S));
	begin_to_read(&call);
	wf_world_hold_way(0, 1, true);
	wf_fake_knobs()->slow = 1000;
	wf_fake_knobs()->slow_ns = 100 * MS; /* for the attachment, which leaves now */
	give_pool();
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_DEADLINE_EXCEEDED);
	wf_world_pass(10 * MS); /* the server's deadline passes, too */
	wf_fake_knobs()->slow = 0;
	queue_callbacks(receives);
	wf_world_hold_way(0, 1, false);
	wf_world_poll(1); /* the read ends */
	assert_int_equal(wf_world_count(1).served, 1);
	wf_fake_clock_set(wf_clock_now() + 100 * MS);
	wf_world_poll(1); /* the attachment comes */
	wf_flight_land(receives, CALLBACKS, S);
	assert_null(served);
	assert_int_equal(wf_world_count(1).served, 0);
	assert_int_equal(wf_world_count(1).served_ended[WEFT_DEADLINE_EXCEEDED], 1);
	wf_flight_free(receives, CALLBACKS);
	wf_flight_free(&call, 1);
	wf_flight_free(&attached, 1);
	wf_world_end();
}

static void an_attachment_that_is_given_up_before_it_could_be_sent_is_missed(void **state)
{
	struct wf_flight call, attached, taken;

	(void)state;
	call_starving(&call, &attached);
	weft_cancel(attached.op);
	wf_flight_land(&attached, 1, S);
	assert_int_equal(attached.status, WEFT_CANCELLED);
	assert_true(wf_world_run(is_served, NULL, S));
	take(&taken, 0, NULL, 0);
	wf_flight_land(&taken, 1, S);
	assert_int_equal(taken.status, WEFT_CANCELLED);
	answer();
	wf_flight_land(&call, 1, S);
	give_pool();
	wf_flight_free(&call, 1);
	wf_flight_free(&attached, 1);
	wf_flight_free(&taken, 1);
	wf_world_end();
}

static void an_attachment_whose_terms_the_link_does_not_meet_is_missed(void **state)
{
	struct wf_flight call, attached, taken;
	struct weft_send_options options;
	ProtobufCService *service;
	int64_t big = BIG;
	struct weft_tensor t = row(source, &big);

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	service = open_kept_call(&call);
	options = sending(&attached, 0);
	options.op.provider = "none";
	assert_int_equal(weft_call_attach(call.op, &t, &options, &attached.op), 0);
	invoke(service, &call, SMALL);
	wf_flight_land(&attached, 1, S);
	assert_int_equal(attached.status, WEFT_FAILED_PRECONDITION);
	assert_true(wf_world_run(is_served, NULL, S));
	take(&taken, 0, NULL, 0);
	wf_flight_land(&taken, 1, S);
	assert_int_equal(taken.status, WEFT_CANCELLED);
	answer();
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_OK);
	wf_flight_free(&call, 1);
	wf_flight_free(&attached, 1);
	wf_flight_free(&taken, 1);
	wf_world_end();
}

/* Node 1 is not there.  It comes, or the call ends before. */
static void an_attachment_ends_by_its_own_deadline_where_there_is_no_way_to_its_peer(void **state)
{
	struct wf_flight call, attached, taken;
	struct weft_send_options options;
	ProtobufCService *service;
	int64_t big = BIG;
	struct weft_tensor t = row(source, &big);

	(void)state;
	for (unsigned comes = 0; comes < 2; comes++) {
		open_world(WF_WORLD_CONNECTED);
		wf_world_kill(1);
		service = open_kept_call(&call);
		options = sending(&attached, WEFT_SNAPSHOT);
		options.op.timeout_ns = 50 * MS;
		assert_int_equal(weft_call_attach(call.op, &t, &options, &attached.op), 0);
		invoke(service, &call, SMALL);
		wf_flight_land(&attached, 1, 60 * MS);
		assert_int_equal(attached.status, WEFT_DEADLINE_EXCEEDED);
		assert_int_equal(weft_op_executed(attached.op), WEFT_EXECUTED_NO);
		assert_int_equal(wf_world_count(0).pool_bytes_used, 0); /* nor is its copy kept */
		wf_flight_free(&attached, 1);
		if (comes) {
			wf_world_restart(1);
			assert_true(wf_world_run(is_served, NULL, 5 * S));
			take(&taken, 0, NULL, 0);
			wf_flight_land(&taken, 1, S);
			assert_int_equal(taken.status, WEFT_CANCELLED);
			wf_flight_free(&taken, 1);
			answer();
		} else {
			weft_cancel(call.op);
		}
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, comes ? WEFT_OK : WEFT_CANCELLED);
		wf_flight_free(&call, 1);
		wf_world_end();
	}
}

static void a_question_to_the_wrong_call_is_refused(void **state)
{
	struct wf_flight call, attached, stream_call;
	struct weft_stream *stream;
	int64_t small = SMALL;
	struct weft_tensor t = row(source, &small);
	struct weft_op *op;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	call_with(&call, &attached, SMALL);
	assert_int_equal(weft_call_attach(call.op, &t, NULL, NULL), -EALREADY);
	assert_int_equal(weft_call_attach(attached.op, &t, NULL, NULL), -EINVAL);
	assert_int_equal(weft_op_receive(call.op, 0, NULL, NULL, &op), -EINVAL);
	assert_int_equal(weft_op_attachments(attached.op), 0);
	answer();
	wf_flight_land(&call, 1, S);
	assert_int_equal(weft_op_receive(call.op, 0, NULL, NULL, &op), -EINVAL);
	wf_flight_open(&stream_call, 0, 1, 0, &stream);
	assert_int_equal(weft_call_attach(stream_call.op, &t, NULL, NULL), -EINVAL);
	weft_stream_close(stream);
	wf_flight_land(&stream_call, 1, S);
	wf_flight_free(&call, 1);
	wf_flight_free(&attached, 1);
	wf_flight_free(&stream_call, 1);
	wf_world_end();
}

static void a_message_has_so_many_attachments_at_most(void **state)
{
	struct wf_flight call;
	int64_t one = 1;
	struct weft_tensor t = row(source, &one);
	ProtobufCService *service;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	service = open_kept_call(&call);
	for (unsigned i = 0; i < WEFT_ATTACHMENTS_MAX; i++)
		assert_int_equal(weft_call_attach(call.op, &t, NULL, NULL), 0);
	assert_int_equal(weft_call_attach(call.op, &t, NULL, NULL), -E2BIG);
	invoke(service, &call, SMALL);
	assert_true(wf_world_run(is_served, NULL, LONG_NS));
	assert_int_equal(weft_served_attachments(served), WEFT_ATTACHMENTS_MAX);
	answer();
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_OK);
	wf_flight_free(&call, 1);
	wf_world_end();
}

/* In a world of its own: a call with two tensors @attached to it, which is not invoked. */
static void attach_only(struct wf_flight *call, struct wf_flight *attached)
{
	int64_t small = SMALL;
	struct weft_tensor t = row(source, &small);
	struct weft_send_options options = sending(attached, WEFT_SNAPSHOT);

	open_world(WF_WORLD_CONNECTED);
	(void)open_call(call, LONG_NS);
	assert_int_equal(weft_call_attach(call->op, &t, &options, &attached->op), 0);
	assert_int_equal(weft_call_attach(call->op, &t, NULL, NULL), 0);
}

static void a_call_that_is_never_invoked_ends_what_was_attached(void **state)
{
	struct wf_flight call, attached;

	(void)state;
	attach_only(&call, &attached);
	wf_flight_free(&call, 1);
	wf_flight_land(&attached, 1, S);
	assert_int_equal(attached.status, WEFT_CANCELLED);
	wf_flight_free(&attached, 1);
	wf_world_end();
}

static void operations_outlive_their_node(void **state)
{
	struct wf_flight call, attached;

	(void)state;
	attach_only(&call, &attached);
	wf_world_leave(0);
	wf_flight_free(&attached, 1);
	wf_flight_free(&call, 1);
	(void)wf_world_close();
}

/* Streams. */

static struct weft_stream *serving;

static void keep_stream(unsigned number, struct weft_stream *stream)
{
	(void)number;
	serving = stream;
}

static bool is_streaming(void *ctx)
{
	(void)ctx;
	return serving != NULL;
}

static void open_streams(struct wf_flight *call, struct weft_stream **stream)
{
	serving = NULL;
	wf_world_on_stream(keep_stream);
	wf_flight_open(call, 0, 1, LONG_NS, stream);
	assert_true(wf_world_run(is_streaming, NULL, S));
}

static void attach_row_for(struct weft_stream *stream, struct wf_flight *f, size_t bytes,
			   uint64_t timeout_ns)
{
	int64_t shape = (int64_t)bytes;
	struct weft_tensor t = row(source, &shape);
	struct weft_send_options options = sending(f, 0);

	options.op.timeout_ns = timeout_ns;
	assert_int_equal(weft_stream_attach(stream, &t, &options, &f->op), 0);
}

static void attach_row(struct weft_stream *stream, struct wf_flight *f, size_t bytes)
{
	attach_row_for(stream, f, bytes, 0);
}

static void receive_of(struct wf_flight *read, unsigned index, struct wf_flight *f)
{
	struct weft_recv_options options = { .size = sizeof(options), .op = wf_flight_begin(f, S) };

	assert_int_equal(weft_op_receive(read->op, index, NULL, &options, &f->op), 0);
}

/* Completion queues of both nodes, for attachments of which nobody has the handle. */
static struct weft_queue *queues[2];

static void open_queues(void)
{
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(weft_queue_open(wf_world_node(i), &queues[i]), 0);
}

static struct weft_send_options telling(struct weft_queue *queue)
{
	struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SNAPSHOT };

	options.op = (struct weft_op_options){
		.size = sizeof(struct weft_op_options), .queue = queue, .arg = source,
	};
	return options;
}

static bool is_told(void *ctx)
{
	return !wf_list_empty(&((struct weft_queue *)ctx)->ended);
}

/* The attachment comes out of @queue, and is the last that names the queue. */
static void assert_comes_out(struct weft_queue *queue, enum weft_status status)
{
	struct weft_op *op;

	assert_true(wf_world_run(is_told, queue, S));
	assert_int_equal(weft_queue_next(queue, &op, 1, 0), 1);
	assert_ptr_equal(weft_op_arg(op), source);
	assert_int_equal(weft_op_status(op), status);
	assert_int_equal(atomic_load(&op->refs), 1);
	weft_op_free(op);
	assert_int_equal(atomic_load(&queue->refs), 1);
}

static void an_attachment_without_a_handle_comes_out_of_its_queue(void **state)
{
	struct weft_send_options options;
	struct wf_flight call, write;
	struct weft_stream *stream;
	int64_t small = SMALL;
	struct weft_tensor t = row(source, &small);
	ProtobufCService *service;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_queues();
	options = telling(queues[0]);
	service = open_kept_call(&call);
	assert_int_equal(weft_call_attach(call.op, &t, &options, NULL), 0);
	invoke(service, &call, SMALL);
	assert_true(wf_world_run(is_served, NULL, S));
	options = telling(queues[1]);
	assert_int_equal(weft_served_attach(served, &t, &options, NULL), 0);
	answer();
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_OK);
	assert_comes_out(queues[0], WEFT_OK);
	assert_comes_out(queues[1], WEFT_OK);
	wf_flight_free(&call, 1);

	options = telling(queues[0]);
	open_streams(&call, &stream);
	assert_int_equal(weft_stream_attach(stream, &t, &options, NULL), 0);
	wf_flight_write(&write, stream, source, SMALL, 0);
	wf_flight_land(&write, 1, S);
	assert_comes_out(queues[0], WEFT_OK);
	weft_stream_finish(serving, WEFT_OK, NULL);
	wf_flight_land(&call, 1, S);
	wf_flight_free(&call, 1);
	wf_flight_free(&write, 1);
	weft_stream_close(stream);
	for (unsigned i = 0; i < 2; i++)
		weft_queue_close(queues[i]);
	wf_world_end();
}

static void attachments_of_a_call_that_nobody_answers_end_when_the_node_closes(void **state)
{
	struct weft_send_options to_queue, options;
	struct wf_flight call, attached;
	int64_t small = SMALL;
	struct weft_tensor t = row(source, &small);
	ProtobufCService *service;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	open_queues();
	service = open_kept_call(&call);
	invoke(service, &call, SMALL);
	assert_true(wf_world_run(is_served, NULL, S));
	to_queue = telling(queues[1]);
	options = sending(&attached, 0);
	assert_int_equal(weft_served_attach(served, &t, &to_queue, NULL), 0);
	assert_int_equal(weft_served_attach(served, &t, &options, &attached.op), 0);
	served = NULL;

	wf_world_leave(1);

	assert_comes_out(queues[1], WEFT_CANCELLED);
	assert_true(weft_op_ended(attached.op));
	assert_int_equal(attached.status, WEFT_CANCELLED);
	wf_flight_free(&attached, 1);
	wf_flight_land(&call, 1, LONG_NS);
	wf_flight_free(&call, 1);
	for (unsigned i = 0; i < 2; i++)
		weft_queue_close(queues[i]);
	wf_world_end();
}

/* The call is freed, or first its node closes; the attachment names a queue, and has no handle. */
static void an_attachment_of_a_call_that_is_never_invoked_leaves_its_queue(void **state)
{
	struct weft_send_options options;
	struct wf_flight call;
	int64_t small = SMALL;
	struct weft_tensor t = row(source, &small);

	(void)state;
	for (unsigned closes = 0; closes < 2; closes++) {
		open_world(WF_WORLD_CONNECTED);
		open_queues();
		options = telling(queues[0]);
		(void)open_call(&call, LONG_NS);
		assert_int_equal(weft_call_attach(call.op, &t, &options, NULL), 0);
		if (closes)
			wf_world_leave(0);
		wf_flight_free(&call, 1);
		if (!closes)
			assert_comes_out(queues[0], WEFT_CANCELLED);
		assert_int_equal(atomic_load(&queues[0]->refs), 1);
		for (unsigned i = 0; i < 2; i++)
			weft_queue_close(queues[i]);
		if (closes)
			(void)wf_world_close();
		else
			wf_world_end();
	}
}

#define MESSAGES 6

/* Two beside each: a short and a long tensor, of a message that is short, or long. */
static void say(struct weft_stream *stream, struct wf_flight *writes, struct wf_flight *attached)
{
	for (size_t i = 0; i < MESSAGES; i++) {
		attach_row(stream, &attached[2 * i], SMALL + i);
		attach_row(stream, &attached[2 * i + 1], BIG - i);
		wf_flight_write(&writes[i], stream, source, i % 2 ? BIG : SMALL, 0);
	}
}

static void hear(struct weft_stream *stream)
{
	struct wf_flight reads[MESSAGES], received[2 * MESSAGES];

	for (size_t i = 0; i < MESSAGES; i++)
		wf_flight_read(&reads[i], stream, 0);
	wf_flight_land(reads, MESSAGES, LONG_NS);
	for (size_t i = 0; i < MESSAGES; i++) {
		assert_int_equal(reads[i].status, WEFT_OK);
		assert_int_equal(weft_op_attachments(reads[i].op), 2);
		assert_int_equal(weft_op_attachment(reads[i].op, 0, NULL)->shape[0], SMALL + i);
		receive_of(&reads[i], 1, &received[2 * i + 1]);
		receive_of(&reads[i], 0, &received[2 * i]);
	}
	wf_flight_land(received, 2 * MESSAGES, LONG_NS);
	for (size_t i = 0; i < MESSAGES; i++) {
		assert_got(&received[2 * i], source, SMALL + i);
		assert_got(&received[2 * i + 1], source, BIG - i);
	}
	wf_flight_free(reads, MESSAGES);
	wf_flight_free(received, 2 * MESSAGES);
}

static void tensors_travel_beside_messages_both_ways(void **state)
{
	struct wf_flight call, writes[2][MESSAGES], attached[2][2 * MESSAGES];
	struct weft_stream *stream;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i]);
		open_streams(&call, &stream);
		say(stream, writes[0], attached[0]);
		say(serving, writes[1], attached[1]);
		hear(serving);
		hear(stream);
		for (size_t side = 0; side < 2; side++) {
			wf_flight_land(writes[side], MESSAGES, S);
			wf_flight_land(attached[side], 2 * MESSAGES, S);
			for (size_t j = 0; j < 2 * MESSAGES; j++)
				assert_int_equal(attached[side][j].status, WEFT_OK);
			wf_flight_free(writes[side], MESSAGES);
			wf_flight_free(attached[side], 2 * MESSAGES);
		}
		weft_stream_finish(serving, WEFT_OK, "");
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_OK);
		wf_flight_free(&call, 1);
		weft_stream_close(stream);
		wf_world_end();
	}
}

/* The second message waits for the first, and both for a peer. */
static void an_attachment_of_a_stream_ends_by_its_own_deadline_before_its_message_leaves(void **state)
{
	struct wf_flight call, writes[2], attached[2], reads[2], received[2];
	struct weft_stream *stream;

	(void)state;
	for (unsigned cancel = 0; cancel < 2; cancel++) {
		open_world(WF_WORLD_CONNECTED);
		wf_world_kill(1);
		serving = NULL;
		wf_world_on_stream(keep_stream);
		wf_flight_open(&call, 0, 1, LONG_NS, &stream);
		for (size_t i = 0; i < 2; i++) {
			attach_row_for(stream, &attached[i], BIG, cancel ? 0 : 50 * MS);
			wf_flight_write(&writes[i], stream, source, SMALL, 0);
		}
		for (size_t i = 0; cancel && i < 2; i++)
			weft_cancel(attached[i].op);
		wf_flight_land(attached, 2, 60 * MS);
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(attached[i].status, cancel ? WEFT_CANCELLED :
								     WEFT_DEADLINE_EXCEEDED);
		wf_flight_free(attached, 2);
		wf_world_restart(1);
		assert_true(wf_world_run(is_streaming, NULL, 5 * S));
		for (size_t i = 0; i < 2; i++)
			wf_flight_read(&reads[i], serving, 0);
		wf_flight_land(reads, 2, S);
		for (size_t i = 0; i < 2; i++) {
			assert_int_equal(weft_op_attachments(reads[i].op), 1);
			receive_of(&reads[i], 0, &received[i]);
		}
		wf_flight_land(received, 2, S);
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(received[i].status, WEFT_CANCELLED);
		weft_stream_finish(serving, WEFT_OK, "");
		wf_flight_land(&call, 1, S);
		assert_int_equal(call.status, WEFT_OK);
		wf_flight_free(&call, 1);
		wf_flight_free(writes, 2);
		wf_flight_free(reads, 2);
		wf_flight_free(received, 2);
		weft_stream_close(stream);
		wf_world_end();
	}
}

/* Written, read in part, and cut off after @step. */
static bool try_closing(enum wf_world_shape shape, unsigned step)
{
	struct wf_flight call, writes[2][MESSAGES], attached[2][2 * MESSAGES], unwritten, reads[4];
	struct wf_flight received = { .outcomes = 1 };
	struct weft_stream *stream;
	bool have_read;

	open_world(shape);
	open_streams(&call, &stream);
	say(stream, writes[0], attached[0]);
	say(serving, writes[1], attached[1]);
	attach_row(stream, &unwritten, BIG);
	for (size_t i = 0; i < 4; i++)
		wf_flight_read(&reads[i], i % 2 ? stream : serving, 0);
	for (unsigned i = 0; i < step; i++)
		wf_world_step();
	have_read = have_landed(reads, 4);
	if (reads[0].outcomes)
		receive_of(&reads[0], 1, &received);
	wf_world_step();
	weft_stream_close(stream);
	wf_flight_land(&call, 1, S);
	wf_flight_land(reads, 4, S);
	weft_stream_finish(serving, WEFT_OK, "");
	wf_flight_free(reads, 4);
	wf_flight_land(&received, 1, S);
	for (size_t side = 0; side < 2; side++) {
		wf_flight_land(writes[side], MESSAGES, S);
		wf_flight_land(attached[side], 2 * MESSAGES, S);
		wf_flight_free(writes[side], MESSAGES);
		wf_flight_free(attached[side], 2 * MESSAGES);
	}
	wf_flight_land(&unwritten, 1, S);
	wf_flight_free(&unwritten, 1);
	wf_flight_free(&received, 1);
	wf_flight_free(&call, 1);
	wf_world_end();
	return !have_read;
}

static void a_stream_that_is_closed_frees_what_went_beside_its_messages(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++)
		for (unsigned step = 0; try_closing(wf_world_shapes[i], step);)
			step++;
}

/* Peers that break the protocol. */

static int tell(const struct wf_attachment_set *b, struct wf_record_attachment_key key)
{
	uint8_t name[WF_RECORD_ATTACHMENT_KEY_BYTES], bytes[200];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
	struct wf_record_tensor t = {
		.step = b->name.call, .flags = WEFT_DEAD, .dtype = { WEFT_INT, 8, 1 },
		.key_bytes = sizeof(name), .key = name,
	};
	struct wf_record record = { .type = WF_RECORD_ATTACHMENT, .bytes = bytes };

	wf_record_attachment_key_put(name, &key);
	wf_record_tensor_put(&w, &t, NULL);
	record.count = (uint32_t)(w.at - bytes);
	return wf_route_record(b->name.link->engine->routes, b->name.link, &record);
}

static void attachments_that_nobody_announced_break_the_protocol_or_are_refused(void **state)
{
	struct wf_flight call, attached;
	const struct wf_attachment_set *b;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	call_with(&call, &attached, SMALL);
	b = ((const struct wf_server_call *)served)->request.attachment_set;
	/* again */
	assert_int_equal(tell(b, (struct wf_record_attachment_key){ 0, 0, 0 }), -EBADMSG);
	/* beyond */
	assert_int_equal(tell(b, (struct wf_record_attachment_key){ 0, 0, 1 }), -EBADMSG);
	/* another message */
	assert_int_equal(tell(b, (struct wf_record_attachment_key){ 1, 0, 0 }), 0);
	assert_int_equal(tell(b, (struct wf_record_attachment_key){ 0, 1, 0 }), 0);
	assert_int_equal(wf_world_count(1).late_dropped, 2);
	answer();
	wf_flight_land(&call, 1, S);
	wf_flight_free(&call, 1);
	wf_flight_free(&attached, 1);
	wf_world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tensors_travel_beside_request_and_reply),
		cmocka_unit_test(several_workers_move_a_call_with_what_goes_beside_it),
		cmocka_unit_test(a_cancelled_call_frees_everything_wherever_it_is),
		cmocka_unit_test(a_dead_server_costs_nothing_but_the_call),
		cmocka_unit_test(a_dead_caller_costs_nothing_but_the_call),
		cmocka_unit_test(a_server_that_leaves_ends_the_call),
		cmocka_unit_test(a_rail_that_fails_loses_no_attachment),
		cmocka_unit_test(a_door_that_is_cut_loses_no_attachment),
		cmocka_unit_test(the_handler_sees_what_has_come_before_it_receives_it),
		cmocka_unit_test(an_attachment_goes_into_the_buffer_it_is_given),
		cmocka_unit_test(an_attachment_is_received_once),
		cmocka_unit_test(an_attachment_the_handler_does_not_receive_is_released),
		cmocka_unit_test(an_attachment_of_a_dead_caller_is_not_taken_for_one_of_its_next_life),
		cmocka_unit_test(a_call_ends_behind_what_went_beside_its_request),
		cmocka_unit_test(
			an_attachment_the_caller_does_not_receive_is_released_with_its_call),
		cmocka_unit_test(attachments_of_a_reply_end_with_the_calls_deadline),
		cmocka_unit_test(a_failed_call_brings_no_attachments),
		cmocka_unit_test(an_attachment_that_is_cancelled_is_missed_and_the_call_goes_on),
		cmocka_unit_test(a_handler_hears_of_a_cancel_while_it_receives),
		cmocka_unit_test(a_call_is_not_handled_before_all_has_come),
		cmocka_unit_test(a_caller_that_gives_up_while_some_are_missing_is_forgotten),
		cmocka_unit_test(a_call_that_is_given_up_before_its_request_is_there_ends_once),
		cmocka_unit_test(an_attachment_that_is_given_up_before_it_could_be_sent_is_missed),
		cmocka_unit_test(an_attachment_whose_terms_the_link_does_not_meet_is_missed),
		cmocka_unit_test(
			an_attachment_ends_by_its_own_deadline_where_there_is_no_way_to_its_peer),
		cmocka_unit_test(a_question_to_the_wrong_call_is_refused),
		cmocka_unit_test(a_message_has_so_many_attachments_at_most),
		cmocka_unit_test(a_call_that_is_never_invoked_ends_what_was_attached),
		cmocka_unit_test(operations_outlive_their_node),
		cmocka_unit_test(an_attachment_without_a_handle_comes_out_of_its_queue),
		cmocka_unit_test(attachments_of_a_call_that_nobody_answers_end_when_the_node_closes),
		cmocka_unit_test(an_attachment_of_a_call_that_is_never_invoked_leaves_its_queue),
		cmocka_unit_test(tensors_travel_beside_messages_both_ways),
		cmocka_unit_test(
			an_attachment_of_a_stream_ends_by_its_own_deadline_before_its_message_leaves),
		cmocka_unit_test(a_stream_that_is_closed_frees_what_went_beside_its_messages),
		cmocka_unit_test(
			attachments_that_nobody_announced_break_the_protocol_or_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
