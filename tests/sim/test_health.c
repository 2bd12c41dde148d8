/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node says of its health: to who asks, and to who watches. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/streaming.h"
#include "rpc/health.pb-c.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define PEERS 6
#define MIRROR "sim.Mirror" /* what every node of a world serves */
#define SERVICE_UNKNOWN 3

/* Node 0 serves its health to the others. */
static struct weft_stub *stubs[1 + PEERS];

static void open_world(unsigned peers, unsigned workers)
{
	wf_world_lose_soon();
	wf_world_set_workers(workers);
	wf_world_open(WF_WORLD_CONNECTED, 1 + peers, NULL);
	assert_int_equal(weft_serve_health(wf_world_node(0)), 0);
	for (unsigned i = 1; i <= peers; i++) {
		wf_world_connect(i, 0);
		assert_int_equal(weft_stub_open(wf_world_peer(i, 0),
						&grpc__health__v1__health__descriptor, &stubs[i]), 0);
	}
}

static void assert_served(unsigned count)
{
	wf_world_pass(20 * MS);
	assert_int_equal(wf_world_count(0).served, count);
}

static void close_world(void)
{
	for (unsigned i = 1; i < wf_world_population(); i++)
		weft_stub_close(stubs[i]);
	assert_int_equal(wf_world_close(), 0);
}

static void set(const char *service, enum weft_health status)
{
	assert_int_equal(weft_health_set(wf_world_node(0), service, status), 0);
}

/* Who asks. */

static int checked;

static void note(const Grpc__Health__V1__HealthCheckResponse *response, void *arg)
{
	(void)arg;
	checked = response ? (int)response->status : -1;
}

/* What node 1 is told of @service; negative: the status of the call. */
static int check(const char *service)
{
	Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
	struct weft_call_options options = { .size = sizeof(options) };
	ProtobufCService *once;
	struct wf_flight f;

	options.op = wf_flight_begin(&f, S);
	request.service = (char *)(uintptr_t)service;
	assert_int_equal(weft_call_open(stubs[1], &options, &once, &f.op), 0);
	grpc__health__v1__health__check(once, &request, note, NULL);
	wf_flight_land(&f, 1, S);
	wf_flight_free(&f, 1);
	return f.status == WEFT_OK ? checked : -(int)f.status;
}

/* Who watches: one read is always under way. */

struct watch {
	struct weft_stream *stream;
	struct wf_flight call, read;
	bool reading;
};

static void read_next(struct watch *w)
{
	wf_flight_read(&w->read, w->stream, 0);
	w->reading = true;
}

static void watch(struct watch *w, unsigned from, const char *service)
{
	Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
	struct weft_call_options options = { .size = sizeof(options) };

	*w = (struct watch){ 0 };
	options.op = wf_flight_begin(&w->call, WEFT_FOREVER);
	request.service = (char *)(uintptr_t)service;
	assert_int_equal(weft_stream_open(stubs[from], "Watch", &options, &w->stream, &w->call.op),
			 0);
	assert_int_equal(weft_stream_write(w->stream, &request.base, NULL, NULL), 0);
	assert_int_equal(weft_stream_half_close(w->stream), 0);
	read_next(w);
}

/* The next thing that it is told; negative: it ended so. */
static int hear(struct watch *w)
{
	const Grpc__Health__V1__HealthCheckResponse *response;
	int status;

	wf_flight_land(&w->read, 1, S);
	response = (const void *)weft_stream_message(w->read.op);
	status = response ? (int)response->status : -(int)w->read.status;
	wf_flight_free(&w->read, 1);
	w->reading = false;
	if (response)
		read_next(w);
	return status;
}

static void assert_quiet(const struct watch *w)
{
	wf_world_pass(20 * MS);
	assert_int_equal(w->read.outcomes, 0);
}

/* The caller has enough. */
static void stop(struct watch *w)
{
	weft_stream_close(w->stream);
	if (w->reading) {
		wf_flight_land(&w->read, 1, S);
		wf_flight_free(&w->read, 1);
	}
	wf_flight_land(&w->call, 1, S);
	wf_flight_free(&w->call, 1);
}

static void a_served_service_is_well_until_something_else_is_said(void **state)
{
	(void)state;
	open_world(1, 1);
	assert_int_equal(check(""), WEFT_HEALTH_SERVING);
	assert_int_equal(check(MIRROR), WEFT_HEALTH_SERVING);
	assert_int_equal(check("grpc.health.v1.Health"), WEFT_HEALTH_SERVING);
	assert_int_equal(check("sim.Nonesuch"), -WEFT_NOT_FOUND);
	set(MIRROR, WEFT_HEALTH_NOT_SERVING);
	set("sim.Nonesuch", WEFT_HEALTH_UNKNOWN);
	assert_int_equal(check(MIRROR), WEFT_HEALTH_NOT_SERVING);
	assert_int_equal(check("sim.Nonesuch"), WEFT_HEALTH_UNKNOWN);
	assert_int_equal(check(""), WEFT_HEALTH_SERVING);
	set(MIRROR, WEFT_HEALTH_SERVING);
	set("", WEFT_HEALTH_NOT_SERVING);
	assert_int_equal(check(MIRROR), WEFT_HEALTH_SERVING);
	assert_int_equal(check(""), WEFT_HEALTH_NOT_SERVING);
	close_world();
}

static void watchers_hear_what_is_and_what_changes(void **state)
{
	struct watch all[3], mirror;

	(void)state;
	open_world(3, 1);
	watch(&mirror, 1, MIRROR);
	for (unsigned i = 0; i < 3; i++)
		watch(&all[i], 1 + i, "");
	assert_int_equal(hear(&mirror), WEFT_HEALTH_SERVING);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(hear(&all[i]), WEFT_HEALTH_SERVING);
	set("", WEFT_HEALTH_NOT_SERVING);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(hear(&all[i]), WEFT_HEALTH_NOT_SERVING);
	/* To say the same again is nothing new, and nor is what others are. */
	set("", WEFT_HEALTH_NOT_SERVING);
	assert_quiet(&mirror);
	for (unsigned i = 0; i < 3; i++)
		assert_quiet(&all[i]);
	set(MIRROR, WEFT_HEALTH_UNKNOWN);
	set("", WEFT_HEALTH_SERVING);
	assert_int_equal(hear(&mirror), WEFT_HEALTH_UNKNOWN);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(hear(&all[i]), WEFT_HEALTH_SERVING);
	for (unsigned i = 0; i < 3; i++)
		stop(&all[i]);
	stop(&mirror);
	assert_served(0);
	close_world();
}

static void a_watch_of_a_service_not_yet_served_hears_when_it_is(void **state)
{
	ProtobufCServiceDescriptor late = sim__mirror__descriptor;
	ProtobufCService service = { 0 };
	struct watch w;

	(void)state;
	open_world(1, 1);
	late.name = "sim.Late";
	service.descriptor = &late;
	watch(&w, 1, "sim.Late");
	assert_int_equal(hear(&w), SERVICE_UNKNOWN);
	assert_quiet(&w);
	assert_int_equal(weft_serve(wf_world_node(0), &service), 0);
	assert_int_equal(hear(&w), WEFT_HEALTH_SERVING);
	stop(&w);
	assert_served(0);
	close_world();
}

static void a_watcher_that_goes_away_leaves_the_others(void **state)
{
	struct watch closes, dies, stays;

	(void)state;
	open_world(3, 1);
	watch(&closes, 1, "");
	watch(&dies, 2, "");
	watch(&stays, 3, "");
	assert_int_equal(hear(&closes), WEFT_HEALTH_SERVING);
	assert_int_equal(hear(&dies), WEFT_HEALTH_SERVING);
	assert_int_equal(hear(&stays), WEFT_HEALTH_SERVING);
	assert_served(3);
	stop(&closes);
	assert_served(2);
	wf_world_kill(2);
	/* It is written to while nobody knows that yet. */
	set("", WEFT_HEALTH_UNKNOWN);
	assert_int_equal(hear(&stays), WEFT_HEALTH_UNKNOWN);
	wf_world_pass(S);
	assert_served(1);
	set("", WEFT_HEALTH_SERVING);
	assert_int_equal(hear(&stays), WEFT_HEALTH_SERVING);
	stop(&stays);
	assert_served(0);
	weft_stream_close(dies.stream);
	wf_flight_free(&dies.read, 1);
	wf_flight_free(&dies.call, 1);
	close_world();
}

/* And one that takes no time over anything. */
static void a_slow_reader_hears_the_last_health(void **state)
{
	unsigned heard = 0;
	struct watch w;
	int status = -1;

	(void)state;
	open_world(1, 1);
	watch(&w, 1, "");
	for (unsigned i = 0; i < 500; i++) {
		set("", i % 2 ? WEFT_HEALTH_SERVING : WEFT_HEALTH_NOT_SERVING);
		if (i % 5)
			wf_world_pass(MS);
	}
	set("", WEFT_HEALTH_UNKNOWN);
	wf_world_pass(20 * MS);
	while (status != WEFT_HEALTH_UNKNOWN) {
		int next = hear(&w);

		assert_true(next >= 0 && next != status && heard < 500);
		status = next;
		heard++;
	}
	assert_true(heard > 2 && heard <= WF_STREAM_WINDOW + 3);
	assert_quiet(&w);
	stop(&w);
	assert_served(0);
	close_world();
}

static void draining_is_told_and_ends_the_watch(void **state)
{
	struct watch all[3];

	(void)state;
	for (unsigned workers = 1; workers <= 3; workers += 2) {
		open_world(3, workers);
		set(MIRROR, WEFT_HEALTH_UNKNOWN);
		watch(&all[0], 1, "");
		watch(&all[1], 2, MIRROR);
		watch(&all[2], 3, "sim.Nonesuch");
		assert_int_equal(hear(&all[0]), WEFT_HEALTH_SERVING);
		assert_int_equal(hear(&all[1]), WEFT_HEALTH_UNKNOWN);
		assert_int_equal(hear(&all[2]), SERVICE_UNKNOWN);
		assert_int_equal(weft_node_drain(wf_world_node(0), 0), -ETIMEDOUT);
		assert_int_equal(hear(&all[0]), WEFT_HEALTH_NOT_SERVING);
		assert_int_equal(hear(&all[1]), WEFT_HEALTH_NOT_SERVING);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(hear(&all[i]), -WEFT_UNAVAILABLE);
			stop(&all[i]);
		}
		assert_served(0);
		assert_int_equal(weft_node_drain(wf_world_node(0), 0), 0);
		close_world();
	}
}

static void watchers_of_every_worker_are_told(void **state)
{
	struct watch all[2 * PEERS];

	(void)state;
	open_world(PEERS, 3);
	for (unsigned i = 0; i < 2 * PEERS; i++) {
		watch(&all[i], 1 + i % PEERS, i < PEERS ? "" : MIRROR);
		assert_int_equal(hear(&all[i]), WEFT_HEALTH_SERVING);
	}
	set("", WEFT_HEALTH_NOT_SERVING);
	set(MIRROR, WEFT_HEALTH_UNKNOWN);
	for (unsigned i = 0; i < 2 * PEERS; i++)
		assert_int_equal(hear(&all[i]),
				 i < PEERS ? WEFT_HEALTH_NOT_SERVING : WEFT_HEALTH_UNKNOWN);
	for (unsigned i = 0; i < 2 * PEERS; i++)
		stop(&all[i]);
	assert_served(0);
	close_world();
}

static void a_watch_needs_one_request_that_is_not_too_long(void **state)
{
	struct weft_call_options options = { .size = sizeof(options) };
	char name[5000];
	struct watch w = { 0 };

	(void)state;
	open_world(1, 1);
	options.op = wf_flight_begin(&w.call, S);
	assert_int_equal(weft_stream_open(stubs[1], "Watch", &options, &w.stream, &w.call.op), 0);
	assert_int_equal(weft_stream_half_close(w.stream), 0);
	wf_flight_land(&w.call, 1, S);
	assert_int_equal(w.call.status, WEFT_INVALID_ARGUMENT);
	weft_stream_close(w.stream);
	wf_flight_free(&w.call, 1);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	watch(&w, 1, name);
	assert_int_equal(hear(&w), -WEFT_RESOURCE_EXHAUSTED);
	stop(&w);
	assert_int_equal(check(name), -WEFT_RESOURCE_EXHAUSTED);
	assert_served(0);
	close_world();
}

static void a_node_may_close_with_watchers(void **state)
{
	struct watch all[PEERS];

	(void)state;
	for (unsigned workers = 1; workers <= 3; workers += 2) {
		open_world(PEERS, workers);
		for (unsigned i = 0; i < PEERS; i++) {
			watch(&all[i], 1 + i, "");
			/* One of them has only just asked. */
			if (i + 1 < PEERS)
				assert_int_equal(hear(&all[i]), WEFT_HEALTH_SERVING);
		}
		set("", WEFT_HEALTH_UNKNOWN);
		wf_world_leave(0);
		for (unsigned i = 0; i < PEERS; i++) {
			while (hear(&all[i]) >= 0)
				;
			stop(&all[i]);
		}
		close_world();
	}
}

static void a_health_that_can_not_be_set_is_refused(void **state)
{
	(void)state;
	open_world(1, 1);
	assert_int_equal(weft_serve_health(wf_world_node(0)), -EEXIST);
	assert_int_equal(weft_health_set(wf_world_node(1), "", WEFT_HEALTH_SERVING), -ENOENT);
	assert_int_equal(weft_health_set(wf_world_node(0), "", (enum weft_health)SERVICE_UNKNOWN),
			 -EINVAL);
	assert_int_equal(weft_health_set(wf_world_node(0), "", (enum weft_health)-1), -EINVAL);
	assert_int_equal(check(""), WEFT_HEALTH_SERVING);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_served_service_is_well_until_something_else_is_said),
		cmocka_unit_test(watchers_hear_what_is_and_what_changes),
		cmocka_unit_test(a_watch_of_a_service_not_yet_served_hears_when_it_is),
		cmocka_unit_test(a_watcher_that_goes_away_leaves_the_others),
		cmocka_unit_test(a_slow_reader_hears_the_last_health),
		cmocka_unit_test(draining_is_told_and_ends_the_watch),
		cmocka_unit_test(watchers_of_every_worker_are_told),
		cmocka_unit_test(a_watch_needs_one_request_that_is_not_too_long),
		cmocka_unit_test(a_node_may_close_with_watchers),
		cmocka_unit_test(a_health_that_can_not_be_set_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
