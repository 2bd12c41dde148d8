/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives that stay, and beginnings of bodies, between processes and over every provider. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "pair.h"

#define LONG_BYTES (16u << 20)
#define STEP 5

static struct weft_queue *queue;

/* Begin a receive that stays, which tells its tensors by the queue. */
static struct weft_op *stay(struct weft_node *node, struct weft_peer *peer, unsigned many_max)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct weft_op *op;

	options.op.queue = queue;
	options.flags = WEFT_RECV_MANY;
	options.many_max = many_max;
	assert_int_equal(weft_recv(node, peer, STEP, "many", 4, NULL, &options, &op), 0);
	return op;
}

static struct weft_op *next(void)
{
	struct weft_op *op;

	assert_int_equal(weft_queue_next(queue, &op, 1, PAIR_LIMIT_NS), 1);
	return op;
}

static void nothing_is_there(void)
{
	struct weft_op *op;

	assert_int_equal(weft_queue_next(queue, &op, 1, 0), 0);
}

/* Check a tensor that came with the bytes of pattern @seed, and free it. */
static void check(struct weft_op *op, size_t bytes, uint64_t seed)
{
	const struct weft_tensor *got = weft_op_tensor(op, NULL);

	if (!got)
		print_error("%s\n", weft_op_message(op));
	assert_non_null(got);
	assert_int_equal(got->shape[0], bytes);
	assert_true(pair_matches(got->data, bytes, seed));
	weft_op_free(op);
}

static void cancelled(struct weft_op *op)
{
	weft_cancel(op);
	assert_ptr_equal(next(), op);
	assert_int_equal(weft_op_status(op), WEFT_CANCELLED);
	weft_op_free(op);
}

/* A length that no other tensor has: short ones, which come in frames, and long ones. */
static size_t length_of(unsigned i)
{
	return (i % 3 ? 100 : 600 * KIB) + i;
}

static void every_tensor_comes_once_to_a_receive_that_stays(void **state)
{
	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		bool has_come[60] = { false };
		struct weft_op *op;
		struct pair pair;

		pair_open(&pair, p, NULL);
		assert_int_equal(weft_queue_open(pair.node, &queue), 0);
		op = stay(pair.node, pair.peer, 0);
		for (unsigned i = 0; i < PAIR_COUNT(has_come); i++)
			pair_do(&pair.other, "send %u many %zu %u", STEP, length_of(i), i);
		for (unsigned n = 0; n < PAIR_COUNT(has_come); n++) {
			struct weft_op *got = next();
			const struct weft_tensor *tensor = weft_op_tensor(got, NULL);
			unsigned i = 0;

			assert_non_null(tensor);
			while (i < PAIR_COUNT(has_come) && length_of(i) != (size_t)tensor->shape[0])
				i++;
			assert_in_range(i, 0, PAIR_COUNT(has_come) - 1);
			assert_false(has_come[i]);
			has_come[i] = true;
			assert_string_equal(weft_peer_name(weft_op_peer(got)),
					    weft_peer_name(pair.peer));
			check(got, length_of(i), i);
		}
		pair_do(&pair.other, "finish");
		nothing_is_there();
		cancelled(op);
		weft_queue_close(queue);
		pair_close(&pair);
	}
}

static void tensors_of_several_peers_name_their_sender(void **state)
{
	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct pair_other second;
		struct weft_op *op;
		struct pair pair;

		pair_open(&pair, p, NULL);
		pair_start(&second, p, NULL, pair.node);
		assert_int_equal(weft_queue_open(pair.node, &queue), 0);
		op = stay(pair.node, NULL, 0);
		pair_ping(pair.peer);
		pair_ping(second.peer);
		for (unsigned i = 0; i < 20; i++) {
			bool is_second = i % 2;

			pair_do(is_second ? &second : &pair.other, "send %u many %zu %u", STEP,
				length_of(i), i);
			check(next(), length_of(i), i);
		}
		pair_do(&second, "send %u many 100 1", STEP);
		pair_do(&pair.other, "send %u many 200 2", STEP);
		for (unsigned n = 0; n < 2; n++) {
			struct weft_op *got = next();
			bool is_second = weft_op_tensor(got, NULL)->shape[0] == 100;

			assert_string_equal(weft_peer_name(weft_op_peer(got)),
					    weft_peer_name(is_second ? second.peer : pair.peer));
			weft_op_free(got);
		}
		pair_do(&second, "finish");
		pair_do(&pair.other, "finish");
		cancelled(op);
		weft_queue_close(queue);
		pair_end(&second);
		pair_close(&pair);
	}
}

static void tensors_beyond_the_limit_wait_for_a_free(void **state)
{
	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_op *op, *held[2];
		struct pair pair;

		pair_open(&pair, p, NULL);
		assert_int_equal(weft_queue_open(pair.node, &queue), 0);
		op = stay(pair.node, pair.peer, PAIR_COUNT(held));
		for (unsigned i = 0; i < 10; i++)
			pair_do(&pair.other, "send %u many %zu %u", STEP, (size_t)100 + i, i);
		held[0] = next();
		held[1] = next();
		pair_do(&pair.other, "ping"); /* behind all that was sent */
		for (unsigned i = 2; i < 10; i++) {
			nothing_is_there();
			check(held[i % 2], 98 + i, i - 2);
			held[i % 2] = next();
		}
		check(held[0], 108, 8);
		check(held[1], 109, 9);
		pair_do(&pair.other, "finish");
		cancelled(op);
		weft_queue_close(queue);
		pair_close(&pair);
	}
}

#define WAITING 8   /* tensors that wait for a receive */
#define BEGINS 400 /* of receives: the worker's thread is seldom so fast */

/* A receive that stays, and how many of its callbacks ran before it was submitted. */
static struct {
	struct weft_op *op;
	atomic_uint told, early;
} beginning;

static void told_of_beginning(struct weft_op *op, void *arg)
{
	(void)arg;
	atomic_fetch_add(&beginning.early, !atomic_load(&beginning.op->submitted));
	if (op != beginning.op)
		weft_op_free(op);
	atomic_fetch_add(&beginning.told, 1);
}

static void a_receive_that_stays_is_submitted_before_its_first_callback(void **state)
{
	struct weft_node_options node_options = pair_options("tcp");
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct weft_node *here, *there;
	struct weft_op *sent[WAITING];
	struct weft_peer *peer;
	int64_t count = 8;
	char bytes[8] = "";
	const struct weft_tensor tensor = pair_tensor(bytes, &count);

	(void)state;
	assert_int_equal(weft_node_open(&node_options, &here), 0);
	assert_int_equal(weft_node_open(&node_options, &there), 0);
	assert_int_equal(weft_peer_open(here, weft_node_address(there), &peer), 0);
	options.flags = WEFT_RECV_MANY;
	options.op.done = told_of_beginning;
	for (uint64_t step = 1; step <= BEGINS; step++) {
		uint64_t until_ns = pair_now_ns() + PAIR_LIMIT_NS;

		for (unsigned i = 0; i < WAITING; i++)
			assert_int_equal(weft_send(peer, step, "m", 1, &tensor, NULL, &sent[i]), 0);
		while (weft_probe(there, NULL, step, "m", 1, NULL))
			assert_true(pair_now_ns() < until_ns);
		atomic_store(&beginning.told, 0);
		assert_int_equal(weft_recv(there, NULL, step, "m", 1, NULL, &options,
					   &beginning.op), 0);
		while (atomic_load(&beginning.told) < WAITING)
			assert_true(pair_now_ns() < until_ns);
		weft_cancel(beginning.op);
		assert_int_equal(weft_wait(beginning.op, PAIR_LIMIT_NS), 0);
		weft_op_free(beginning.op);
		for (unsigned i = 0; i < WAITING; i++) {
			assert_int_equal(weft_wait(sent[i], PAIR_LIMIT_NS), 0);
			weft_op_free(sent[i]);
		}
	}
	assert_int_equal(atomic_load(&beginning.early), 0);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(here), 0);
	assert_int_equal(weft_node_close(there), 0);
}

static void a_killed_sender_ends_a_receive_that_names_it(void **state)
{
	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_op *op, *got;
		struct pair pair;

		pair_open(&pair, p, NULL);
		assert_int_equal(weft_queue_open(pair.node, &queue), 0);
		op = stay(pair.node, pair.peer, 0);
		pair_do(&pair.other, "send %u many 100 1", STEP);
		check(next(), 100, 1);
		for (unsigned i = 0; i < 4; i++)
			pair_do(&pair.other, "send %u many %u 1", STEP, LONG_BYTES);
		pair_kill(&pair.other, SIGKILL);
		/* Bodies that have come until then are told, and so are those that have not. */
		while ((got = next()) != op) {
			if (weft_op_status(got) != WEFT_OK)
				assert_int_equal(weft_op_status(got), WEFT_UNAVAILABLE);
			weft_op_free(got);
		}
		assert_int_equal(weft_op_status(op), WEFT_UNAVAILABLE);
		weft_op_free(op);
		weft_queue_close(queue);
		pair_close(&pair);
	}
}

/* Bytes that came() was told of, by the memory of the body, which it has as long as it is out. */
#define BODIES 3
static struct {
	pthread_mutex_t lock;
	struct beginning {
		const void *data;
		uint64_t bytes;
		unsigned calls;
	} bodies[BODIES];
	unsigned wrong;
} told = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A callback of the worker.  All bodies have the pattern of seed 1, up to what is told at least. */
static void came(void *arg, const struct weft_tensor *tensor, uint64_t bytes)
{
	struct beginning *b = told.bodies;

	(void)arg;
	pthread_mutex_lock(&told.lock);
	while (b < told.bodies + BODIES - 1 && b->data && b->data != tensor->data)
		b++;
	told.wrong += (b->data && b->data != tensor->data) || bytes <= b->bytes ||
		      bytes > LONG_BYTES || tensor->shape[0] != LONG_BYTES ||
		      !pair_matches(tensor->data, bytes, 1);
	b->data = tensor->data;
	b->bytes = bytes;
	b->calls++;
	pthread_mutex_unlock(&told.lock);
}

/* The bodies are out together, so that no two have the same memory. */
static void beginnings_are_right(unsigned count)
{
	struct weft_op *ops[BODIES];

	for (unsigned i = 0; i < count; i++)
		ops[i] = next();
	pthread_mutex_lock(&told.lock);
	assert_int_equal(told.wrong, 0);
	for (unsigned i = 0; i < count; i++)
		assert_true(told.bodies[i].calls > 0);
	memset(told.bodies, 0, sizeof(told.bodies));
	pthread_mutex_unlock(&told.lock);
	for (unsigned i = 0; i < count; i++)
		check(ops[i], LONG_BYTES, 1);
}

static void a_long_body_tells_of_its_beginning(void **state)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;

	(void)state;
	options.came = came;
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct pair pair;

		pair_open(&pair, p, NULL);
		assert_int_equal(weft_queue_open(pair.node, &queue), 0);
		options.op.queue = queue;
		assert_int_equal(weft_recv(pair.node, pair.peer, STEP, "many", 4, NULL, &options,
					   NULL), 0);
		pair_do(&pair.other, "send %u many %u 1", STEP, LONG_BYTES);
		beginnings_are_right(1);
		pair_do(&pair.other, "finish");
		weft_queue_close(queue);
		pair_close(&pair);
	}
}

static void each_body_of_a_receive_that_stays_tells_of_its_beginning(void **state)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;

	(void)state;
	options.flags = WEFT_RECV_MANY;
	options.came = came;
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_op *op;
		struct pair pair;

		pair_open(&pair, p, NULL);
		assert_int_equal(weft_queue_open(pair.node, &queue), 0);
		options.op.queue = queue;
		assert_int_equal(weft_recv(pair.node, pair.peer, STEP, "many", 4, NULL, &options,
					   &op), 0);
		for (unsigned round = 0; round < 2; round++) {
			for (unsigned i = 0; i < BODIES; i++)
				pair_do(&pair.other, "send %u many %u 1", STEP, LONG_BYTES);
			beginnings_are_right(BODIES);
		}
		pair_do(&pair.other, "finish");
		cancelled(op);
		weft_queue_close(queue);
		pair_close(&pair);
	}
}

int main(int argc, char **argv)
{
	static const struct pair_command commands[] = { { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_tensor_comes_once_to_a_receive_that_stays,
					  pair_teardown),
		cmocka_unit_test_teardown(tensors_of_several_peers_name_their_sender,
					  pair_teardown),
		cmocka_unit_test_teardown(tensors_beyond_the_limit_wait_for_a_free, pair_teardown),
		cmocka_unit_test_teardown(
			a_receive_that_stays_is_submitted_before_its_first_callback, pair_teardown),
		cmocka_unit_test_teardown(a_killed_sender_ends_a_receive_that_names_it,
					  pair_teardown),
		cmocka_unit_test_teardown(a_long_body_tells_of_its_beginning, pair_teardown),
		cmocka_unit_test_teardown(each_body_of_a_receive_that_stays_tells_of_its_beginning,
					  pair_teardown),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
