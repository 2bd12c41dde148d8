/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every allocation fails in turn, as in test_nth: of a server with limits, which says how
 * it is and is drained at last.  What fails can be repeated, no call is lost or begun twice,
 * and nothing is left.
 *
 * test_nth_serving SHAPE KIND N COUNT CODE does one of them again, as a failure prints it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "rpc/health.pb-c.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/nth_script.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define DEADLINE_NS (5 * S) /* far beyond what anything here takes */
#define BIG (130 * KIB)     /* pulled */
#define CALLS 4
#define SERVICE "sim.Narrow"

static ProtobufCServiceDescriptor descriptor;
static Sim__Mirror_Service narrow;
static struct weft_stub *stub, *health;
static uint8_t source[BIG];

/* One at a time is answered in the next turn: see answer(). */
static struct {
	Sim__Bytes_Closure closure;
	void *data;
} running;
static unsigned begun;

static void reflect(Sim__Mirror_Service *service, const Sim__Bytes *request,
		    Sim__Bytes_Closure closure, void *data)
{
	(void)service;
	(void)request;
	assert_null(running.closure); /* the limit */
	running.closure = closure;
	running.data = data;
	begun++;
}

static void answer(void)
{
	const Sim__Bytes reply = SIM__BYTES__INIT;
	Sim__Bytes_Closure closure = running.closure;

	running.closure = NULL;
	if (closure)
		closure(&reply, running.data);
}

/* Operations. */

struct trip {
	struct weft_op *op;
	unsigned outcomes;
	enum weft_status status;
};

static void ended(struct weft_op *op, void *arg)
{
	struct trip *t = arg;

	t->outcomes++;
	t->status = weft_op_status(op);
}

static struct weft_op_options options_of(struct trip *t)
{
	return (struct weft_op_options){ .size = sizeof(struct weft_op_options),
					 .timeout_ns = DEADLINE_NS, .done = ended, .arg = t };
}

/* Did it end as @want?  Else something must have failed, and it says so. */
static bool ended_as(const struct trip *t, enum weft_status want)
{
	assert_int_equal(t->outcomes, 1);
	if (t->status == want)
		return true;
	if (!wf_nth_failed())
		fail_msg("with nothing amiss: %s", weft_op_message(t->op));
	if (t->status != WEFT_OK && !*weft_op_message(t->op))
		fail_msg("%s without a sentence", weft_status_name(t->status));
	if (t->status == WEFT_DEADLINE_EXCEEDED && wf_nth_row() == 1)
		fail_msg("it took until the deadline: %s", weft_op_message(t->op));
	return false;
}

static void land(const struct trip *t)
{
	uint64_t until_ns = wf_clock_now() + DEADLINE_NS + S;

	while (!t->outcomes) {
		if (wf_clock_now() > until_ns)
			fail_msg("an operation does not end");
		answer();
		wf_world_step();
	}
}

static void heard(const ProtobufCMessage *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

static void call(struct trip *t, struct weft_stub *at, const ProtobufCMessage *request)
{
	struct weft_call_options options = { .size = sizeof(options), .op = options_of(t) };
	ProtobufCService *service;

	*t = (struct trip){ 0 };
	while (wf_nth_again(weft_call_open(at, &options, &service, &t->op)))
		;
	service->invoke(service, 0, request, heard, NULL);
}

/* Attempts: each does something, and says whether all went well. */

/* Of one peer, which may have one at a time; every other is long. */
static bool calls_wait(void)
{
	struct trip t[CALLS];
	unsigned before = begun, well = 0;

	for (unsigned i = 0; i < CALLS; i++) {
		Sim__Bytes request = SIM__BYTES__INIT;

		request.body.data = source;
		request.body.len = i % 2 ? BIG : 100;
		call(&t[i], stub, &request.base);
	}
	for (unsigned i = 0; i < CALLS; i++) {
		land(&t[i]);
		well += ended_as(&t[i], WEFT_OK);
		weft_op_free(t[i].op);
	}
	assert_in_range(begun - before, well, CALLS);
	return well == CALLS;
}

static bool check_health(void)
{
	Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
	struct trip t;
	bool well;

	request.service = (char *)(uintptr_t)SERVICE;
	call(&t, health, &request.base);
	land(&t);
	well = ended_as(&t, WEFT_OK);
	weft_op_free(t.op);
	return well;
}

/* The next of a watch is @status; or the watch has failed, as it may. */
static bool hears(struct weft_stream *watch, int status)
{
	const Grpc__Health__V1__HealthCheckResponse *response;
	struct trip t = { 0 };
	struct weft_op_options options = options_of(&t);
	bool well;

	while (wf_nth_again(weft_stream_read(watch, &options, &t.op)))
		;
	land(&t);
	response = (const void *)weft_stream_message(t.op);
	well = ended_as(&t, WEFT_OK) && response;
	if (response)
		assert_int_equal((int)response->status, status);
	weft_op_free(t.op);
	return well;
}

static void set_health(enum weft_health status)
{
	while (wf_nth_again(weft_health_set(wf_world_node(1), SERVICE, status)))
		;
}

static struct weft_stream *open_watch(struct trip *t)
{
	Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
	struct weft_call_options options = { .size = sizeof(options), .op = options_of(t) };
	struct weft_stream *watch;

	*t = (struct trip){ 0 };
	while (wf_nth_again(weft_stream_open(health, "Watch", &options, &watch, &t->op)))
		;
	request.service = (char *)(uintptr_t)SERVICE;
	while (wf_nth_again(weft_stream_write(watch, &request.base, NULL, NULL)))
		;
	return watch;
}

static bool watch_health(void)
{
	struct weft_stream *watch;
	struct trip t;
	bool well;

	set_health(WEFT_HEALTH_SERVING);
	watch = open_watch(&t);
	well = hears(watch, WEFT_HEALTH_SERVING);
	set_health(WEFT_HEALTH_NOT_SERVING);
	well = well && hears(watch, WEFT_HEALTH_NOT_SERVING);
	weft_stream_close(watch);
	land(&t);
	weft_op_free(t.op);
	return well;
}

/* The script. */

static void open_nodes(void)
{
	const struct weft_serve_options options = { .size = sizeof(options), .calls_max = 2,
						    .calls_per_peer = 1, .queue_max = CALLS };
	const struct wf_fake fake = { .seed = 1, .delay_min_ns = 5 * WF_NS_PER_US,
				      .delay_max_ns = 50 * WF_NS_PER_US, .veto = wf_nth_veto };
	struct weft_peer *peer;
	unsigned number;

	descriptor = sim__mirror__descriptor;
	descriptor.name = SERVICE;
	narrow = (Sim__Mirror_Service){ .base = SIM__MIRROR__BASE_INIT, .reflect = reflect };
	narrow.base.descriptor = &descriptor;
	wf_world_lose_soon();
	setenv("WEFT_SLOTS", "24", 1);
	wf_world_open(WF_WORLD_CONNECTED, 0, &fake);
	for (unsigned i = 0; i < 2; i++)
		while (wf_nth_again(wf_world_try_add(&number)))
			;
	while (wf_nth_again(weft_serve_with(wf_world_node(1), &narrow.base, &options)))
		;
	while (wf_nth_again(weft_serve_health(wf_world_node(1))))
		;
	while (wf_nth_again(weft_peer_open(wf_world_node(0),
					   weft_node_address(wf_world_node(1)), &peer)))
		;
	while (wf_nth_again(weft_stub_open(peer, &descriptor, &stub)))
		;
	while (wf_nth_again(weft_stub_open(peer, &grpc__health__v1__health__descriptor, &health)))
		;
}

/* Whether or not the caller could be told, it is refused, and who watches does not stay. */
static void drain(void)
{
	Sim__Bytes request = SIM__BYTES__INIT;
	struct trip watching, late;
	struct weft_stream *watch = open_watch(&watching);

	wf_world_pass(5 * MS);
	(void)weft_node_drain(wf_world_node(1), 0);
	call(&late, stub, &request.base);
	land(&late);
	if (!ended_as(&late, WEFT_UNAVAILABLE))
		assert_int_not_equal(late.status, WEFT_OK);
	assert_int_not_equal(weft_op_executed(late.op), WEFT_EXECUTED_YES);
	land(&watching);
	assert_int_not_equal(watching.status, WEFT_OK);
	assert_int_equal(weft_node_drain(wf_world_node(1), DEADLINE_NS), 0);
	weft_stream_close(watch);
	weft_op_free(late.op);
	weft_op_free(watching.op);
}

static void run_script(unsigned shape)
{
	(void)shape;
	begun = 0;
	open_nodes();
	wf_nth_try(calls_wait);
	wf_nth_try(check_health);
	wf_nth_try(watch_health);
	drain();
	weft_stub_close(stub);
	weft_stub_close(health);
	assert_int_equal(wf_world_close(), 0);
}

static const char *const shapes[] = { "connected", NULL };
static const struct wf_nth_script script = { "test_nth_serving", shapes, { 1, 12 }, run_script };

static void memory_fails(void **state)
{
	(void)state;
	wf_nth_each(&script, 0, WF_NTH_MEMORY);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_fails),
	};

	if (argc == 6) {
		wf_nth_once(&script, argv);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
