/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole nodes in one thread on virtual time: tensors and calls to the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include <rdma/fi_domain.h>

#include "core/completion_queue.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define SMALL 100       /* in one frame */
#define MIDDLE (40 * KIB) /* in a few frames where that is chosen */
#define LARGE (2 * MIB) /* pulled */
#define BIG (3 * MIB + 17) /* pulled, in several chunks with a rest */

static uint8_t source[BIG], target[BIG];

static void carry_tensor(size_t bytes, const char *provider, const char *way)
{
	struct weft_path path = { .size = sizeof(path) };
	struct wf_flight f[2];
	const struct weft_tensor *got;

	wf_world_fill(source, bytes, bytes);
	memset(target, 0, bytes);
	wf_flight_receive(&f[0], 1, 0, 7, target, bytes, 0);
	wf_flight_send(&f[1], 0, 1, 7, source, bytes, 0);
	wf_flight_land(f, 2, S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	assert_true(wf_world_is_filled(target, bytes, bytes));
	got = weft_op_tensor(f[0].op, NULL);
	assert_ptr_equal(got->data, target);
	assert_int_equal(got->shape[0], bytes);
	assert_int_equal(weft_op_path(f[0].op, &path), 0);
	assert_string_equal(path.provider, provider);
	assert_string_equal(path.way, way);
	wf_flight_free(f, 2);
}

static void carry_call(size_t bytes)
{
	struct wf_flight f;

	wf_world_fill(source, bytes, bytes + 1);
	wf_flight_call(&f, 0, 1, source, bytes, 0);
	wf_flight_land(&f, 1, S);
	assert_int_equal(f.status, WEFT_OK);
	assert_int_equal(f.closures, 1);
	assert_int_equal(f.reply_bytes, bytes);
	assert_true(f.reply_right);
	wf_flight_free(&f, 1);
}

static void carry_all(enum wf_world_shape shape, const char *provider, const char *middle_way)
{
	wf_world_open(shape, 2, NULL);
	carry_tensor(SMALL, provider, "eager");
	carry_tensor(MIDDLE, provider, middle_way);
	carry_tensor(BIG, provider, "pull");
	carry_call(0);
	carry_call(SMALL);
	carry_call(MIDDLE);
	carry_call(BIG);
	assert_int_equal(wf_world_served(1), 4);
	assert_int_equal(wf_world_close(), 0);
}

static void tensors_and_calls_end_over_a_connected_rail(void **state)
{
	(void)state;
	carry_all(WF_WORLD_CONNECTED, "tcp", "eager");
}

static void tensors_and_calls_end_over_a_shared_rail(void **state)
{
	(void)state;
	carry_all(WF_WORLD_SHARED, "efa", "pull");
}

static void tensors_and_calls_end_through_the_memory_of_one_host(void **state)
{
	(void)state;
	carry_all(WF_WORLD_SAME_HOST, "shm", "pull");
}

static void tensors_and_calls_end_over_a_provider_that_nobody_has_described(void **state)
{
	(void)state;
	carry_all(WF_WORLD_UNDESCRIBED, WF_WORLD_STRANGE, "pull");
}

static void tensors_arrive_with_any_memory_registration_a_rail_demands(void **state)
{
	static const uint64_t modes[] = {
		FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_PROV_KEY,
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	};

	(void)state;
	for (size_t i = 0; i < 2 * WF_COUNT(modes); i++) {
		struct wf_fake fake = { .seed = i, .mr_mode = modes[i / 2] };

		wf_world_open(i % 2 ? WF_WORLD_SHARED : WF_WORLD_CONNECTED, 2, &fake);
		carry_tensor(SMALL, i % 2 ? "efa" : "tcp", "eager");
		carry_tensor(BIG, i % 2 ? "efa" : "tcp", "pull");
		carry_call(BIG);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_send_may_come_long_before_its_receive(void **state)
{
	static const size_t sizes[] = { 0, SMALL, BIG };
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	for (size_t i = 0; i < WF_COUNT(sizes); i++) {
		wf_world_fill(source, sizes[i], i);
		wf_flight_send(&f[0], 0, 1, i, source, sizes[i], 0);
		wf_world_pass(2 * S);
		assert_int_equal(f[0].outcomes, sizes[i] == BIG ? 0 : 1);
		wf_flight_receive(&f[1], 1, 1, i, target, sizes[i], 0);
		wf_flight_land(f, 2, S);
		assert_int_equal(f[0].status, WEFT_OK);
		assert_int_equal(f[1].status, WEFT_OK);
		assert_true(wf_world_is_filled(target, sizes[i], i));
		assert_string_equal(weft_peer_name(weft_op_peer(f[1].op)), "n0");
		wf_flight_free(f, 2);
	}
	assert_int_equal(wf_world_close(), 0);
}

static void waiting_drives_all_nodes(void **state)
{
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_flight_call(&f, 0, 1, "x", 1, 0);
	assert_int_equal(weft_wait(f.op, 10 * S), 0);
	assert_int_equal(f.outcomes, 1);
	assert_int_equal(f.status, WEFT_OK);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void a_ring_of_nodes_carries_all_at_once(void **state)
{
	static uint8_t from[4][100 * KIB], to[4][100 * KIB];
	struct wf_flight f[12];

	(void)state;
	wf_world_open(WF_WORLD_SHARED, 4, NULL);
	for (unsigned i = 0; i < 4; i++) {
		wf_world_fill(from[i], sizeof(from[i]), i);
		wf_flight_send(&f[i], i, (i + 1) % 4, 1, from[i], sizeof(from[i]), 0);
		wf_flight_receive(&f[4 + i], i, (i + 3) % 4, 1, to[i], sizeof(to[i]), 0);
		wf_flight_call(&f[8 + i], i, (i + 2) % 4, from[i], sizeof(from[i]), 0);
	}
	wf_flight_land(f, 12, 2 * S);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(f[i].status, WEFT_OK);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(wf_world_is_filled(to[i], sizeof(to[i]), (i + 3) % 4));
		assert_true(f[8 + i].reply_right);
	}
	wf_flight_free(f, 12);
	assert_int_equal(wf_world_close(), 0);
}

/* What a run did, in numbers that any difference would change. */
struct trace {
	uint64_t ns, sent, arrived, tensor_ns, call_ns;
};

static struct trace run_with_seed(uint64_t seed)
{
	struct wf_fake fake = {
		.seed = seed, .delay_min_ns = WF_NS_PER_US, .delay_max_ns = 5 * MS,
		.eagain = 200, .shuffle = true,
	};
	uint64_t begin_ns = wf_clock_now();
	struct wf_flight f[3];
	struct trace trace;

	wf_world_open(WF_WORLD_CONNECTED, 2, &fake);
	wf_flight_receive(&f[0], 1, 0, 1, target, BIG, 0);
	wf_flight_send(&f[1], 0, 1, 1, source, BIG, 0);
	wf_flight_call(&f[2], 1, 0, source, SMALL, 0);
	wf_flight_land(f, 3, 10 * S);
	trace = (struct trace){
		.ns = wf_clock_now() - begin_ns,
		.sent = wf_fake_sent(),
		.arrived = wf_fake_arrived(),
		.tensor_ns = wf_flight_ns(&f[0]),
		.call_ns = wf_flight_ns(&f[2]),
	};
	wf_flight_free(f, 3);
	assert_int_equal(wf_world_close(), 0);
	return trace;
}

static void the_same_seed_gives_the_same_run(void **state)
{
	struct trace a = run_with_seed(5), b = run_with_seed(5), c = run_with_seed(6);

	(void)state;
	assert_same_content(&a, &b, sizeof(a));
	assert_memory_not_equal(&a, &c, sizeof(a));
}

static void a_closing_node_says_goodbye(void **state)
{
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	wf_flight_receive(&f, 1, 0, 1, target, SMALL, 0);
	wf_world_pass(100 * MS);
	wf_world_leave(0);
	wf_flight_land(&f, 1, 100 * MS);
	assert_int_equal(f.status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_op_message(f.op), "goodbye"));
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void closing_ends_what_is_pending(void **state)
{
	struct wf_flight f[4];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_hold(1, true);
	wf_flight_receive(&f[0], 0, 0, 1, target, SMALL, 0);
	wf_flight_receive(&f[1], 0, 1, 2, target, SMALL, 0);
	wf_flight_send(&f[2], 0, 1, 3, source, BIG, 0);
	wf_flight_call(&f[3], 0, 1, source, SMALL, 0);
	wf_world_pass(100 * MS);
	wf_world_leave(0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(f[i].outcomes, 1);
		assert_int_equal(f[i].status, WEFT_CANCELLED);
	}
	wf_flight_free(f, 4);
	assert_int_equal(wf_world_close(), 0);
}

static void burst(struct wf_flight *f, uint64_t step, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		wf_flight_send(&f[step + i], 0, 1, step + i, source, SMALL, 0);
}

/* From node 0 to node 1 until the window is open: no word of more credit disturbs a count of frames then. */
static void open_window(void)
{
	struct wf_flight f[2];

	for (unsigned i = 0; i < 64; i++) {
		wf_flight_receive(&f[0], 1, 0, i, target, SMALL, 0);
		wf_flight_send(&f[1], 0, 1, i, source, SMALL, 0);
		wf_flight_land(f, 2, S);
		wf_flight_free(f, 2);
	}
	wf_world_pass(S);
}

/* Posted outside the loop: alone it leaves at once, in bursts with the next turn, in one frame. */
static void an_idle_link_sends_at_once_and_a_busy_one_packs(void **state)
{
	struct wf_flight f[22];
	uint64_t before;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	wf_world_fill(source, SMALL, SMALL);
	open_window();
	for (unsigned i = 0; i < 11; i++)
		wf_flight_receive(&f[11 + i], 1, 0, i, target, SMALL, 0);

	before = wf_world_count(0).frames_sent;
	burst(f, 0, 1);
	assert_int_equal(wf_world_count(0).frames_sent, before + 1);

	/* That one is not confirmed yet. */
	burst(f, 1, 5);
	assert_int_equal(wf_world_count(0).frames_sent, before + 1);
	wf_world_pass(1 * MS);
	assert_int_equal(wf_world_count(0).frames_sent, before + 2);

	/* Now all are: the first of a burst is not known to be one yet. */
	wf_world_pass(100 * MS);
	before = wf_world_count(0).frames_sent;
	burst(f, 6, 5);
	assert_int_equal(wf_world_count(0).frames_sent, before + 1);
	wf_world_pass(1 * MS);
	assert_int_equal(wf_world_count(0).frames_sent, before + 2);

	wf_flight_land(f, WF_COUNT(f), S);
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_close(), 0);
}

/* The callback of a receive on node 1: sends a word back. */
static void say_so(struct weft_op *op, void *word)
{
	(void)op;
	wf_flight_send(word, 1, 0, 100, source, SMALL, 0);
}

/* Here: that the body was read, which its sender waits for, and the word about it. */
static void a_callbacks_messages_leave_with_those_that_led_to_it(void **state)
{
	struct weft_recv_options options = { .size = sizeof(options) };
	struct wf_flight f[2], word;
	struct weft_op *op;
	uint64_t before;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	open_window();
	options.op = (struct weft_op_options){ .size = sizeof(options.op), .done = say_so,
					       .arg = &word };
	before = wf_world_count(1).frames_sent;
	assert_int_equal(weft_recv(wf_world_node(1), NULL, 100, "", 0, NULL, &options, &op), 0);
	wf_flight_receive(&f[0], 0, 1, 100, target, SMALL, 0);
	wf_flight_send(&f[1], 0, 1, 100, source, BIG, 0);
	wf_flight_land(f, 2, S);
	assert_int_equal(wf_world_count(1).frames_sent, before + 1);

	wf_flight_land(&word, 1, S);
	weft_op_free(op);
	wf_flight_free(&word, 1);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void replies_leave_while_more_calls_are_answered(void **state)
{
	struct wf_fake fake = { .inject_bytes = 4 * KIB };
	struct wf_flight f[100];
	uint64_t before;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, &fake);
	wf_world_connect(0, 1);
	before = wf_world_count(1).frames_sent;

	/* All but the first come in one frame, and are answered in one turn. */
	for (unsigned i = 0; i < WF_COUNT(f); i++)
		wf_flight_call(&f[i], 0, 1, source, 8, 0);
	wf_flight_land(f, WF_COUNT(f), S);
	assert_true(wf_world_count(1).frames_sent - before >= 4);

	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_close(), 0);
}

/* Open a call of @from to @to that is not invoked yet; @parent may be NULL. */
static ProtobufCService *open_call(struct wf_flight *f, unsigned from, unsigned to,
				   struct weft_served *parent)
{
	struct weft_call_options options = { .size = sizeof(options), .parent = parent };
	ProtobufCService *service;

	options.op = wf_flight_begin(f, 0);
	assert_int_equal(weft_call_open(wf_world_stub(from, to), &options, &service, &f->op), 0);
	return service;
}

/* The call @f, invoked by @service, was cancelled before: nothing leaves node @from. */
static void assert_sends_nothing(struct wf_flight *f, unsigned from, ProtobufCService *service)
{
	const Sim__Bytes question = SIM__BYTES__INIT;
	uint64_t before = wf_world_count(from).frames_sent;

	sim__mirror__reflect(service, &question, NULL, NULL);
	wf_flight_land(f, 1, S);
	assert_int_equal(f->status, WEFT_CANCELLED);
	assert_int_equal(weft_op_executed(f->op), WEFT_EXECUTED_NO);
	assert_int_equal(wf_world_count(from).frames_sent, before);
	wf_flight_free(f, 1);
}

static void a_call_that_is_cancelled_before_it_is_invoked_sends_nothing(void **state)
{
	ProtobufCService *service;
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	service = open_call(&f, 0, 1, NULL);
	weft_cancel(f.op);
	wf_world_pass(100 * MS);
	assert_sends_nothing(&f, 0, service);
	assert_int_equal(wf_world_close(), 0);
}

/* Outcomes of the closures of one call, in their order. */
struct outcomes {
	enum weft_status statuses[2];
	char messages[2][100];
	unsigned count;
};

static void note_outcome(const Sim__Bytes *answer, void *arg)
{
	struct outcomes *o = arg;
	const char *message;

	(void)answer;
	assert_true(o->count < WF_COUNT(o->statuses));
	o->statuses[o->count] = weft_reply_status(&message);
	(void)snprintf(o->messages[o->count++], sizeof(o->messages[0]), "%s", message);
}

static void a_second_invocation_of_a_call_fails_and_the_first_goes_on(void **state)
{
	const Sim__Bytes question = SIM__BYTES__INIT;
	struct outcomes outcomes = { 0 };
	ProtobufCService *service;
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	service = open_call(&f, 0, 1, NULL);
	sim__mirror__reflect(service, &question, note_outcome, &outcomes);
	sim__mirror__reflect(service, &question, note_outcome, &outcomes);
	assert_int_equal(outcomes.count, 1);
	assert_int_equal(outcomes.statuses[0], WEFT_FAILED_PRECONDITION);
	assert_non_null(strstr(outcomes.messages[0], "invoked"));
	wf_flight_land(&f, 1, S);
	assert_int_equal(f.status, WEFT_OK);
	assert_int_equal(outcomes.count, 2);
	assert_int_equal(outcomes.statuses[1], WEFT_OK);
	assert_int_equal(wf_world_served(1), 1);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void *parent;

static void keep_parent(unsigned number, void *call)
{
	(void)number;
	parent = call;
}

static void a_call_whose_parent_is_given_up_before_it_is_invoked_sends_nothing(void **state)
{
	ProtobufCService *service;
	struct wf_flight f, child;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_on_request(keep_parent);
	wf_flight_call(&f, 0, 1, source, SMALL, 0);
	wf_world_pass(100 * MS);
	service = open_call(&child, 1, 0, parent);
	weft_cancel(f.op);
	wf_flight_land(&f, 1, S);
	wf_world_pass(100 * MS);
	assert_sends_nothing(&child, 1, service);
	wf_world_answer(parent, NULL, 0);
	wf_flight_free(&f, 1);
	assert_int_equal(wf_world_close(), 0);
}

/* A call of node 0 to node 1 without a handle, which names @queue. */
static ProtobufCService *open_queued_call(struct weft_queue **queue)
{
	struct weft_call_options options = { .size = sizeof(options) };
	ProtobufCService *service;

	assert_int_equal(weft_queue_open(wf_world_node(0), queue), 0);
	options.op = (struct weft_op_options){
		.size = sizeof(options.op), .queue = *queue, .arg = source,
	};
	assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, NULL), 0);
	assert_int_equal(atomic_load(&(*queue)->refs), 2);
	return service;
}

static bool has_some(void *ctx)
{
	return !wf_list_empty(&((struct weft_queue *)ctx)->ended);
}

static void a_call_without_a_handle_comes_out_of_its_queue(void **state)
{
	const Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	struct weft_queue *queue;
	struct weft_op *op;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	service = open_queued_call(&queue);
	sim__mirror__reflect(service, &question, NULL, NULL);
	assert_true(wf_world_run(has_some, queue, S));
	assert_int_equal(weft_queue_next(queue, &op, 1, 0), 1);
	assert_ptr_equal(weft_op_arg(op), source);
	assert_int_equal(weft_op_status(op), WEFT_OK);
	assert_non_null(weft_call_reply(op));
	weft_op_free(op);
	assert_int_equal(atomic_load(&queue->refs), 1);
	weft_queue_close(queue);
	assert_int_equal(wf_world_close(), 0);
}

static void a_call_without_a_handle_that_is_never_invoked_goes_with_its_node(void **state)
{
	struct weft_queue *queue;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	(void)open_queued_call(&queue);
	wf_world_leave(0);
	assert_int_equal(atomic_load(&queue->refs), 1);
	weft_queue_close(queue);
	assert_int_equal(wf_world_close(), 0);
}

/* The message with which handlers fail; as much of it as a caller hears, by weft_rpc(3). */
#define TOLD_BYTES 479
static char long_text[TOLD_BYTES + 2];

static void fail_at_length(unsigned number, void *call)
{
	(void)number;
	weft_served_fail(call, WEFT_ABORTED, long_text);
}

static void the_message_of_a_failure_is_cut_at_its_limit(void **state)
{
	struct wf_flight f;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_on_request(fail_at_length);
	for (size_t bytes = TOLD_BYTES - 1; bytes <= TOLD_BYTES + 1; bytes++) {
		memset(long_text, 'x', bytes);
		wf_flight_call(&f, 0, 1, source, SMALL, 0);
		wf_flight_land(&f, 1, S);
		assert_int_equal(f.status, WEFT_ABORTED);
		assert_int_equal(strlen(weft_op_message(f.op)), WF_MIN(bytes, TOLD_BYTES));
		wf_flight_free(&f, 1);
	}
	assert_int_equal(wf_world_close(), 0);
}

/* Outcome of a call, and of another one that runs, as the closure of the first reads them. */
struct closure_view {
	const struct weft_op *op, *running;
	enum weft_status status, running_status;
	enum weft_executed executed, running_executed;
	char message[100];
	unsigned closures;
};

static void view_ops(const Sim__Bytes *answer, void *arg)
{
	struct closure_view *v = arg;

	(void)answer;
	v->closures++;
	v->status = weft_op_status(v->op);
	v->executed = weft_op_executed(v->op);
	(void)snprintf(v->message, sizeof(v->message), "%s", weft_op_message(v->op));
	v->running_status = weft_op_status(v->running);
	v->running_executed = weft_op_executed(v->running);
}

static void assert_viewed(const struct closure_view *v, enum weft_status status,
			  enum weft_executed executed)
{
	assert_int_equal(v->closures, 1);
	assert_int_equal(v->status, status);
	assert_int_equal(v->executed, executed);
	assert_string_equal(v->message, weft_op_message(v->op));
	assert_int_equal(v->running_status, WEFT_UNKNOWN);
	assert_int_equal(v->running_executed, WEFT_EXECUTED_MAYBE);
}

static void the_closure_of_a_call_reads_the_outcome_of_its_operation(void **state)
{
	static const struct {
		enum weft_status status;
		enum weft_executed executed;
	} ends[] = {
		{ WEFT_ABORTED, WEFT_EXECUTED_YES }, /* the handler fails */
		{ WEFT_CANCELLED, WEFT_EXECUTED_NO }, /* a cancel comes before the invocation */
	};
	const Sim__Bytes question = SIM__BYTES__INIT;

	(void)state;
	(void)snprintf(long_text, sizeof(long_text), "the handler fails");
	for (size_t i = 0; i < WF_COUNT(ends); i++) {
		ProtobufCService *service;
		struct wf_flight f, running;
		struct closure_view v = { 0 };

		wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
		wf_world_on_request(fail_at_length);
		wf_flight_receive(&running, 1, 0, 7, target, SMALL, 0);
		service = open_call(&f, 0, 1, NULL);
		v.op = f.op;
		v.running = running.op;
		if (ends[i].status == WEFT_CANCELLED)
			weft_cancel(f.op);
		sim__mirror__reflect(service, &question, view_ops, &v);
		wf_flight_land(&f, 1, S);
		assert_int_equal(f.status, ends[i].status);
		assert_viewed(&v, ends[i].status, ends[i].executed);
		weft_cancel(running.op);
		wf_flight_land(&running, 1, S);
		wf_flight_free(&running, 1);
		wf_flight_free(&f, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Where registering is dear: memory of the pool is registered once, other memory each time. */
static void registrations_are_kept_for_the_pool_and_counted(void **state)
{
	const struct wf_fake fake = { .seed = 1, .mr_mode = FI_MR_LOCAL };
	struct weft_counters first[2], then;
	struct wf_flight f[2];
	void *from, *into;

	(void)state;
	wf_world_open(WF_WORLD_SHARED, 2, &fake);
	wf_world_connect(0, 1);
	assert_int_equal(weft_alloc(wf_world_node(0), LARGE, &from), 0);
	assert_int_equal(weft_alloc(wf_world_node(1), LARGE, &into), 0);
	wf_world_fill(from, LARGE, 1);
	for (unsigned i = 0; i < 3; i++) {
		wf_flight_receive(&f[0], 1, 0, i, into, LARGE, 0);
		wf_flight_send(&f[1], 0, 1, i, from, LARGE, 0);
		wf_flight_land(f, 2, S);
		assert_int_equal(f[0].status, WEFT_OK);
		wf_flight_free(f, 2);
		for (unsigned j = 0; j < 2 && i == 0; j++)
			first[j] = wf_world_count(j);
	}
	for (unsigned j = 0; j < 2; j++) {
		then = wf_world_count(j);
		assert_int_equal(then.registrations, first[j].registrations);
		assert_true(then.registration_hits >= first[j].registration_hits + 2);
	}
	wf_flight_receive(&f[0], 1, 0, 9, target, LARGE, 0);
	wf_flight_send(&f[1], 0, 1, 9, source, LARGE, 0);
	wf_flight_land(f, 2, S);
	wf_flight_free(f, 2);
	for (unsigned j = 0; j < 2; j++)
		assert_int_equal(wf_world_count(j).registrations, first[j].registrations + 1);
	weft_free(wf_world_node(0), from);
	weft_free(wf_world_node(1), into);
	assert_int_equal(wf_world_close(), 0);
}

/* Receives @bytes into memory of the pool of node 1, which is free again then. */
static void receive_into_the_pool(uint64_t step, size_t bytes)
{
	struct weft_op *op;
	struct wf_flight f;

	assert_int_equal(weft_recv(wf_world_node(1), NULL, step, "", 0, NULL, NULL, &op), 0);
	wf_flight_send(&f, 0, 1, step, source, bytes, 0);
	wf_flight_land(&f, 1, S);
	assert_int_equal(weft_wait(op, S), 0);
	assert_int_equal(weft_op_status(op), WEFT_OK);
	weft_op_free(op);
	wf_flight_free(&f, 1);
}

static void registrations_make_room_for_others_and_are_counted(void **state)
{
	const struct wf_fake fake = { .seed = 1, .mr_mode = FI_MR_LOCAL };

	(void)state;
	setenv("WEFT_POOL_BYTES", "3M", 1);
	wf_world_open(WF_WORLD_SHARED, 2, &fake);
	wf_world_connect(0, 1);
	receive_into_the_pool(1, LARGE);
	assert_int_equal(wf_world_count(1).registration_evictions, 0);
	receive_into_the_pool(2, LARGE + LARGE / 4);
	assert_int_equal(wf_world_count(1).registration_evictions, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void a_limit_of_locked_memory_is_named(void **state)
{
	struct rlimit was, few;
	struct wf_flight f;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &was), 0);
	wf_world_open(WF_WORLD_SHARED, 2, NULL);
	wf_world_connect(0, 1);
	few = (struct rlimit){ .rlim_cur = 64 * KIB, .rlim_max = was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &few), 0);
	wf_fake_knobs()->refuse = 1000;
	wf_flight_send(&f, 0, 1, 1, source, LARGE, 0);
	wf_flight_land(&f, 1, S);
	assert_int_equal(f.status, WEFT_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(weft_op_message(f.op), "RLIMIT_MEMLOCK"));
	assert_non_null(strstr(weft_op_message(f.op), "65536"));
	assert_non_null(strstr(weft_op_message(f.op), "registered are 0 of the program's"));
	assert_non_null(strstr(weft_op_message(f.op), "LimitMEMLOCK="));
	assert_non_null(strstr(weft_op_message(f.op), "WEFT_POOL_BYTES"));
	wf_flight_free(&f, 1);
	wf_fake_knobs()->refuse = 0;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &was), 0);
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registrations_are_kept_for_the_pool_and_counted),
		cmocka_unit_test(registrations_make_room_for_others_and_are_counted),
		cmocka_unit_test(a_limit_of_locked_memory_is_named),
		cmocka_unit_test(tensors_and_calls_end_over_a_connected_rail),
		cmocka_unit_test(tensors_and_calls_end_over_a_shared_rail),
		cmocka_unit_test(tensors_and_calls_end_through_the_memory_of_one_host),
		cmocka_unit_test(tensors_and_calls_end_over_a_provider_that_nobody_has_described),
		cmocka_unit_test(tensors_arrive_with_any_memory_registration_a_rail_demands),
		cmocka_unit_test(a_send_may_come_long_before_its_receive),
		cmocka_unit_test(waiting_drives_all_nodes),
		cmocka_unit_test(an_idle_link_sends_at_once_and_a_busy_one_packs),
		cmocka_unit_test(a_callbacks_messages_leave_with_those_that_led_to_it),
		cmocka_unit_test(replies_leave_while_more_calls_are_answered),
		cmocka_unit_test(a_call_that_is_cancelled_before_it_is_invoked_sends_nothing),
		cmocka_unit_test(a_second_invocation_of_a_call_fails_and_the_first_goes_on),
		cmocka_unit_test(a_call_whose_parent_is_given_up_before_it_is_invoked_sends_nothing),
		cmocka_unit_test(a_call_without_a_handle_comes_out_of_its_queue),
		cmocka_unit_test(a_call_without_a_handle_that_is_never_invoked_goes_with_its_node),
		cmocka_unit_test(the_message_of_a_failure_is_cut_at_its_limit),
		cmocka_unit_test(the_closure_of_a_call_reads_the_outcome_of_its_operation),
		cmocka_unit_test(a_ring_of_nodes_carries_all_at_once),
		cmocka_unit_test(the_same_seed_gives_the_same_run),
		cmocka_unit_test(a_closing_node_says_goodbye),
		cmocka_unit_test(closing_ends_what_is_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
