/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensors in the memory of CUDA devices beside calls, between processes: of the software
 * driver (test_attachments), and of a real one where there is a GPU (real_attachments).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/cuda.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/place.h"
#include "tests/fabric/calls.pb-c.h"
#include "tests/fabric/pair.h"

static const size_t sizes[] = { 1000, 5 << 20 };

#define COUNT PAIR_COUNT(sizes)

static void open_places(struct place places[COUNT])
{
	for (size_t i = 0; i < COUNT; i++)
		place_open(&places[i], 0, sizes[i]);
}

static void close_places(struct place places[COUNT])
{
	for (size_t i = 0; i < COUNT; i++)
		place_close(&places[i]);
}

/*
 * The other side: receives what comes with a call into device memory, and gives it back from
 * there beside the reply.  One call at a time, of one attachment or of one of each size.
 */
static struct {
	Calls__Test_Service service;
	Calls__Response_Closure closure;
	void *call;
	struct place places[COUNT];
	struct weft_op *back[COUNT]; /* of the replies' attachments */
	atomic_uint awaited;	     /* of the call, and one until it is answered */
	atomic_bool failed;
} served;

static unsigned place_for(int64_t bytes)
{
	return bytes == (int64_t)sizes[1];
}

static void answer(void)
{
	static const struct weft_send_options options = { .size = sizeof(options),
							  .stream = WEFT_NO_STREAM };
	Calls__Response reply = CALLS__RESPONSE__INIT;
	unsigned count = weft_served_attachments(served.call);

	for (unsigned i = 0; i < count && !served.failed; i++) {
		unsigned n = place_for(weft_served_attachment(served.call, i, NULL)->shape[0]);

		served.failed = weft_served_attach(served.call, &served.places[n].tensor, &options,
						   &served.back[n]);
	}
	if (served.failed)
		weft_served_fail(served.call, WEFT_ABORTED, "an attachment did not come");
	else
		served.closure(&reply, served.call);
	served.awaited = 0;
}

static void came(struct weft_op *op, void *arg)
{
	(void)arg;
	if (weft_op_status(op) != WEFT_OK)
		served.failed = true;
	weft_op_free(op);
	if (--served.awaited == 1)
		answer();
}

static void receive(Calls__Test_Service *service, const Calls__Request *request,
		    Calls__Response_Closure closure, void *call)
{
	struct weft_recv_options options = { .size = sizeof(options),
					     .op = { .size = sizeof(options.op), .done = came },
					     .stream = WEFT_NO_STREAM };
	unsigned count = weft_served_attachments(call);
	struct weft_op *op;

	(void)service;
	(void)request;
	served.closure = closure;
	served.call = call;
	served.failed = false;
	served.awaited = count + 1;
	for (unsigned i = 0; i < count; i++) {
		unsigned n = place_for(weft_served_attachment(call, i, NULL)->shape[0]);

		if (weft_served_receive(call, i, &served.places[n].tensor, &options, &op))
			abort();
	}
}

static void do_serve(struct pair *side, char *arguments)
{
	(void)arguments;
	open_places(served.places);
	calls__test__init(&served.service, NULL);
	served.service.unary = receive;
	need(!weft_serve(side->node, &served.service.base));
}

/* Wait until all that the handler had begun is over, and say how much of its reply has gone. */
static void do_rest(struct pair *side, char *arguments)
{
	uint64_t until_ns = pair_now_ns() + PAIR_LIMIT_NS;
	unsigned gone = 0;

	(void)arguments;
	while (served.awaited)
		need(pair_now_ns() < until_ns);
	for (size_t i = 0; i < COUNT; i++) {
		if (served.back[i]) {
			need(!weft_wait(served.back[i], PAIR_LIMIT_NS));
			gone += weft_op_status(served.back[i]) == WEFT_OK;
		}
		weft_op_free(served.back[i]);
		served.back[i] = NULL;
	}
	snprintf(side->reply, sizeof(side->reply), "%u", gone);
}

static void do_leave(struct pair *side, char *arguments)
{
	do_rest(side, arguments);
	close_places(served.places);
}

/* Until it is said otherwise no copy ends here. */
static void do_hold(struct pair *side, char *arguments)
{
	(void)side;
	gpu.fake_cuda_hold(*arguments == '1');
}

/* How many copies to a device have begun. */
static void do_copies(struct pair *side, char *arguments)
{
	(void)arguments;
	snprintf(side->reply, sizeof(side->reply), "%u",
		 gpu.fake_cuda_calls("cuMemcpyHtoDAsync") +
			 gpu.fake_cuda_calls("cuMemcpyDtoDAsync"));
}

/* Does the handler receive? */
static void do_busy(struct pair *side, char *arguments)
{
	(void)arguments;
	snprintf(side->reply, sizeof(side->reply), "%d", served.awaited > 1);
}

/* What the node holds of its pool. */
static void do_held(struct pair *side, char *arguments)
{
	struct weft_counters c = { .size = sizeof(c) };

	(void)arguments;
	need(!weft_node_counters(side->node, &c));
	snprintf(side->reply, sizeof(side->reply), "%lu", c.pool_bytes_used);
}

static const struct pair_command commands[] = {
	{ "serve", do_serve }, { "rest", do_rest }, { "leave", do_leave }, { "hold", do_hold },
	{ "busy", do_busy },   { "held", do_held }, { "copies", do_copies },
	{ NULL, NULL },
};

/* The tests. */

struct client {
	struct pair pair;
	struct weft_stub *stub;
	struct place places[COUNT];
};

static void client_open(struct client *c, const char *provider)
{
	pair_open(&c->pair, provider, NULL);
	pair_do(&c->pair.other, "serve");
	need(!weft_stub_open(c->pair.other.peer, &calls__test__descriptor, &c->stub));
	open_places(c->places);
}

static void client_close(struct client *c)
{
	pair_do(&c->pair.other, "leave");
	close_places(c->places);
	weft_stub_close(c->stub);
	pair_close(&c->pair);
}

static void hear_nothing(const Calls__Response *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

/* Call with the places from @first on, before @end, attached. */
static struct weft_op *call_with(struct client *c, size_t first, size_t end)
{
	static const struct weft_send_options options = { .size = sizeof(options),
							  .stream = WEFT_NO_STREAM };
	Calls__Request request = CALLS__REQUEST__INIT;
	ProtobufCService *service;
	struct weft_op *call;

	need(!weft_call_open(c->stub, NULL, &service, &call));
	for (size_t i = first; i < end; i++)
		need(!weft_call_attach(call, &c->places[i].tensor, &options, NULL));
	calls__test__unary(service, &request, hear_nothing, NULL);
	return call;
}

static void attachments_go_from_device_to_device_and_back(void **state)
{
	static const struct weft_recv_options options = { .size = sizeof(options),
							  .stream = WEFT_NO_STREAM };
	struct place back[COUNT];
	struct weft_op *call, *ops[COUNT];
	struct client c;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		client_open(&c, at);
		open_places(back);
		for (size_t i = 0; i < COUNT; i++)
			place_fill(&c.places[i], i + 1);
		call = call_with(&c, 0, COUNT);
		pair_ended(call, WEFT_OK);
		assert_int_equal(weft_op_attachments(call), COUNT);
		for (unsigned i = 0; i < COUNT; i++)
			need(!weft_op_receive(call, i, &back[i].tensor, &options, &ops[i]));
		weft_op_free(call);
		for (unsigned i = 0; i < COUNT; i++) {
			pair_ended(ops[i], WEFT_OK);
			assert_int_equal(weft_op_tensor(ops[i], NULL)->device.type, WEFT_CUDA);
			assert_ptr_equal(weft_op_tensor(ops[i], NULL)->data, back[i].at);
			assert_true(place_matches(&back[i], i + 1));
			weft_op_free(ops[i]);
		}
		assert_int_equal(atoi(pair_do(&c.pair.other, "rest")), COUNT);
		close_places(back);
		client_close(&c);
	}
}

/* Of the software driver alone. */

static uint64_t held_here(const struct client *c)
{
	struct weft_counters counters = { .size = sizeof(counters) };

	need(!weft_node_counters(c->pair.node, &counters));
	return counters.pool_bytes_used;
}

/* All is as it was: no memory of a pool is held on either side, and a call goes well. */
static void expect_all_over(struct client *c, size_t i)
{
	uint64_t until_ns = pair_now_ns() + PAIR_LIMIT_NS;
	struct weft_op *call;

	pair_do(&c->pair.other, "rest");
	while (held_here(c) || strcmp(pair_do(&c->pair.other, "held"), "0") != 0)
		need(pair_now_ns() < until_ns);
	call = call_with(c, i, i + 1);
	pair_ended(call, WEFT_OK);
	weft_op_free(call);
	pair_do(&c->pair.other, "rest");
}

/* Copies that have begun: from a device here, or to one over there. */
static unsigned copies(struct client *c, bool there)
{
	if (there)
		return (unsigned)atoi(pair_do(&c->pair.other, "copies"));
	return gpu.fake_cuda_calls("cuMemcpyDtoHAsync");
}

static void wait_for_a_copy(struct client *c, bool there, unsigned before)
{
	uint64_t until_ns = pair_now_ns() + PAIR_LIMIT_NS;

	while (copies(c, there) == before)
		need(pair_now_ns() < until_ns);
}

static void a_call_ends_after_the_copy_from_its_device_that_it_is_cancelled_in(void **state)
{
	struct weft_op *call;
	struct client c;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		client_open(&c, at);
		for (size_t i = 0; i < COUNT; i++) {
			unsigned begun = copies(&c, false);

			/* It is the other side that copies, from device to device. */
			if (!strcmp(at, "shm") && sizes[i] > MIB)
				continue;

			gpu.fake_cuda_hold(true);
			call = call_with(&c, i, i + 1);
			wait_for_a_copy(&c, false, begun);
			weft_cancel(call);
			pair_sleep_ms(100);
			assert_false(weft_op_ended(call));
			gpu.fake_cuda_hold(false);
			pair_ended(call, WEFT_CANCELLED);
			weft_op_free(call);
			expect_all_over(&c, i);
		}
		client_close(&c);
	}
}

static void a_handler_keeps_its_receive_until_the_copy_to_its_device_is_over(void **state)
{
	struct weft_op *call;
	struct client c;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		client_open(&c, at);
		for (size_t i = 0; i < COUNT; i++) {
			unsigned begun = copies(&c, true);

			pair_do(&c.pair.other, "hold 1");
			call = call_with(&c, i, i + 1);
			wait_for_a_copy(&c, true, begun);
			weft_cancel(call);
			pair_ended(call, WEFT_CANCELLED);
			weft_op_free(call);
			assert_string_equal(pair_do(&c.pair.other, "busy"), "1");
			pair_do(&c.pair.other, "hold 0");
			expect_all_over(&c, i);
		}
		client_close(&c);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(attachments_go_from_device_to_device_and_back,
					  pair_teardown),
	};
	const struct CMUnitTest of_the_software_driver[] = {
		cmocka_unit_test_teardown(
			a_call_ends_after_the_copy_from_its_device_that_it_is_cancelled_in,
			pair_teardown),
		cmocka_unit_test_teardown(
			a_handler_keeps_its_receive_until_the_copy_to_its_device_is_over,
			pair_teardown),
	};
	int failed, status = gpu_begin(REAL_CUDA);

	if (status)
		return status;
	if (pair_is_other(argc, argv, commands))
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, pair_group_teardown);
	if (!REAL_CUDA)
		failed += cmocka_run_group_tests(of_the_software_driver, NULL, pair_group_teardown);
	return failed;
}
