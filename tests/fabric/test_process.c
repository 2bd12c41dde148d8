/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several nodes in one process, over every provider that this host has: whichever closes
 * first, the others go on and only what was meant for it ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"

#define RESTARTS 10
#define SENT_BEFORE_CLOSE 50 /* tensors that are acknowledged while the receiver lives */

static struct weft_node *open_node(const char *provider, enum weft_mode mode)
{
	struct weft_node_options options = pair_options(pair_within_process(provider));
	struct weft_node *node;

	options.mode = mode;
	need(!weft_node_open(&options, &node));
	return node;
}

static struct weft_peer *open_peer(struct weft_node *node, struct weft_node *to)
{
	struct weft_peer *peer;

	need(!weft_peer_open(node, weft_node_address(to), &peer));
	return peer;
}

static struct weft_op *start_ping(struct weft_peer *peer)
{
	struct weft_op *op;

	need(!weft_ping(peer, NULL, &op));
	return op;
}

static void end_ping(struct weft_op *op, enum weft_status status)
{
	pair_ended(op, status);
	weft_op_free(op);
}

static void after_one_closes_the_other_still_serves(void **state)
{
	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct weft_node *here = open_node(at, WEFT_THREADED);
		struct weft_node *there = open_node(at, WEFT_THREADED);
		struct weft_node *third = open_node(at, WEFT_THREADED);
		struct weft_peer *to_there = open_peer(here, there);
		struct weft_peer *to_third = open_peer(here, third);

		pair_ping(to_there);
		pair_ping(to_third);
		assert_int_equal(weft_node_close(there), 0);

		end_ping(start_ping(to_there), WEFT_UNAVAILABLE);
		pair_ping(to_third);

		weft_peer_close(to_there);
		weft_peer_close(to_third);
		assert_int_equal(weft_node_close(here), 0);
		assert_int_equal(weft_node_close(third), 0);
	}
}

/* Two nodes that one thread drives: nothing happens at one while the other is driven. */
static void a_manual_node_outlives_the_node_that_it_has_met(void **state)
{
	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct weft_node *here = open_node(at, WEFT_MANUAL);
		struct weft_node *there = open_node(at, WEFT_MANUAL);
		struct weft_peer *to_there = open_peer(here, there);
		uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;
		struct weft_op *op = start_ping(to_there);

		while (weft_wait(op, 0) == -ETIMEDOUT && pair_now_ns() < until)
			weft_poll(there, 0);
		end_ping(op, WEFT_OK);
		assert_int_equal(weft_node_close(there), 0);

		end_ping(start_ping(to_there), WEFT_UNAVAILABLE);

		weft_peer_close(to_there);
		assert_int_equal(weft_node_close(here), 0);
	}
}

/* A thread that sends without a pause until it is told to stop. */
struct sender {
	struct weft_peer *to;
	atomic_bool stop;
	atomic_uint sent;
};

static void *send_on(void *arg)
{
	struct sender *sender = arg;
	const struct weft_send_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = PAIR_LIMIT_NS },
		.flags = WEFT_SNAPSHOT,
	};
	int64_t count = 4;
	char bytes[4] = "ends";
	const struct weft_tensor tensor = pair_tensor(bytes, &count);

	while (!atomic_load(&sender->stop)) {
		struct weft_op *op;

		if (weft_send(sender->to, 1, "k", 1, &tensor, &options, &op))
			break;
		/* The first ones are waited for, so that the test knows that they arrive. */
		if (atomic_load(&sender->sent) < SENT_BEFORE_CLOSE)
			weft_wait(op, PAIR_LIMIT_NS);
		weft_op_free(op);
		atomic_fetch_add(&sender->sent, 1);
	}
	return NULL;
}

static void a_node_restarts_beside_one_whose_thread_sends_to_it(void **state)
{
	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct weft_node *here = open_node(at, WEFT_THREADED);

		for (unsigned i = 0; i < RESTARTS; i++) {
			struct weft_node *there = open_node(at, WEFT_THREADED);
			uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;
			struct sender sender = { .to = open_peer(here, there) };
			pthread_t thread;

			assert_int_equal(pthread_create(&thread, NULL, send_on, &sender), 0);
			while (atomic_load(&sender.sent) < SENT_BEFORE_CLOSE &&
			       pair_now_ns() < until)
				pair_sleep_ms(1);
			assert_true(atomic_load(&sender.sent) >= SENT_BEFORE_CLOSE);
			assert_int_equal(weft_node_close(there), 0);
			atomic_store(&sender.stop, true);
			assert_int_equal(pthread_join(thread, NULL), 0);
			weft_peer_close(sender.to);
		}
		assert_int_equal(weft_node_close(here), 0);
	}
}

static void a_rail_between_processes_only_says_so_within_one(void **state)
{
	const char *shm = NULL;
	struct weft_node_options options = pair_options("shm");
	struct weft_node *here, *there;
	struct weft_peer *peer;
	struct weft_op *op;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next())
		if (!strcmp(at, "shm"))
			shm = at;
	if (!shm) {
		print_message("skip: libfabric does not offer shm\n");
		skip();
	}
	assert_int_equal(weft_node_open(&options, &here), 0);
	assert_int_equal(weft_node_open(&options, &there), 0);
	peer = open_peer(here, there);

	op = start_ping(peer);
	assert_int_equal(weft_wait(op, PAIR_LIMIT_NS), 0);
	assert_int_equal(weft_op_status(op), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_op_message(op), "shm serves between processes only"));

	weft_op_free(op);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(there), 0);
	assert_int_equal(weft_node_close(here), 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(pair_name_the_missing),
		TEST(after_one_closes_the_other_still_serves),
		TEST(a_manual_node_outlives_the_node_that_it_has_met),
		TEST(a_node_restarts_beside_one_whose_thread_sends_to_it),
		TEST(a_rail_between_processes_only_says_so_within_one),
	};

	(void)argc;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
