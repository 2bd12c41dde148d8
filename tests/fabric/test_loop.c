/* SPDX-License-Identifier: BSD-2-Clause */
/* A manual node in a program's own event loop: how often that turns, and what wakes it. */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#define PINGS 10
#define PAUSE_NS (5 * PAIR_MS)
#define TURNS_MAX 10 /* for each ping, on average; a loop that spins makes hundreds */

/* The loop of weft_node(3). */
struct loop {
	struct weft_node *node;
	int epoll;
	unsigned turns;
	uint64_t timeout_ns; /* of weft_arm */
	bool timeless;  /* the loop takes no heed of it */
	bool sleepless; /* weft_arm said that there is work: the next turn does not wait */
};

static struct loop loop_open(struct weft_node *node, uint32_t events)
{
	struct epoll_event event = { .events = EPOLLIN | events };
	struct loop loop = { .node = node, .epoll = epoll_create1(EPOLL_CLOEXEC) };

	assert_true(loop.epoll >= 0);
	assert_int_equal(epoll_ctl(loop.epoll, EPOLL_CTL_ADD, weft_fd(node), &event), 0);
	return loop;
}

static void loop_arm(struct loop *loop)
{
	int err = weft_arm(loop->node, loop->timeless ? NULL : &loop->timeout_ns);

	assert_true(err == 0 || err == -EAGAIN);
	loop->sleepless = err;
}

/* A timeless loop waits for the node alone: its limit is one that no healthy node needs. */
static void loop_sleep(struct loop *loop)
{
	uint64_t limit_ns = loop->timeless ? PAIR_LIMIT_NS : loop->timeout_ns;
	struct epoll_event event;
	int ready = 1;

	if (!loop->sleepless)
		ready = epoll_wait(loop->epoll, &event, 1,
				   (int)((limit_ns + PAIR_MS - 1) / PAIR_MS));
	need(ready == 1 || !loop->timeless);
	assert_true(weft_poll(loop->node, 0) >= 0);
	loop->turns++;
}

static void loop_turn(struct loop *loop)
{
	loop_arm(loop);
	loop_sleep(loop);
}

/* A loop that spins does so after the answer has left. */
static void loop_answer(struct loop *loop, const struct pair_other *other)
{
	uint64_t until_ns;

	while (!pair_has_spoken(other))
		loop_turn(loop);
	until_ns = pair_now_ns() + PAUSE_NS;
	while (pair_now_ns() < until_ns)
		loop_turn(loop);
}

static void open_manual(struct pair *pair, const char *at)
{
	struct weft_node_options options = pair_options(at);

	options.mode = WEFT_MANUAL;
	pair_open(pair, at, &options);
	pair_ping(pair->peer);
}

static void close_manual(struct pair *pair, struct loop *loop)
{
	close(loop->epoll);
	pair_close(pair);
}

static void count_turns(const char *at, uint32_t events)
{
	struct loop loop;
	struct pair pair;

	open_manual(&pair, at);
	loop = loop_open(pair.node, events);
	for (unsigned i = 0; i < PINGS; i++) {
		pair_say(&pair.other, "ping");
		loop_answer(&loop, &pair.other);
		pair_hear(&pair.other);
	}
	print_message("%s: %u turns for %u pings of the other node\n", at, loop.turns, PINGS);
	assert_true(loop.turns <= PINGS * TURNS_MAX);
	close_manual(&pair, &loop);
}

static void a_loop_turns_a_few_times_for_each_ping(void **state)
{
	(void)state;
	for (const char *at = pair_first(); at; at = pair_next())
		count_turns(at, 0);
}

static void an_edge_triggered_loop_turns_a_few_times_for_each_ping(void **state)
{
	(void)state;
	for (const char *at = pair_first(); at; at = pair_next())
		count_turns(at, EPOLLET);
}

/* The deadline is far below the millisecond that epoll_wait counts in. */
static void a_deadline_wakes_a_loop_that_names_no_time_limit(void **state)
{
	struct weft_recv_options options = { .size = sizeof(options),
					     .op.size = sizeof(options.op),
					     .op.timeout_ns = PAIR_MS / 5 };
	struct weft_op *op;
	struct loop loop;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		open_manual(&pair, at);
		loop = loop_open(pair.node, EPOLLET);
		loop.timeless = true;
		for (unsigned i = 0; i < PINGS; i++) {
			need(!weft_recv(pair.node, pair.peer, i, "none", 4, NULL, &options, &op));
			while (!weft_op_ended(op))
				loop_turn(&loop);
			pair_ended(op, WEFT_DEADLINE_EXCEEDED);
			weft_op_free(op);
		}
		assert_true(loop.turns <= PINGS * TURNS_MAX);
		close_manual(&pair, &loop);
	}
}

/* As in a loop that arms the node in one callback and runs another one before it sleeps. */
static void an_operation_that_begins_after_weft_arm_wakes_the_loop(void **state)
{
	struct epoll_event event;
	struct weft_op *op;
	struct loop loop;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		open_manual(&pair, at);
		loop = loop_open(pair.node, EPOLLET);
		for (unsigned i = 0; i < PINGS; i++) {
			loop_arm(&loop);
			while (loop.sleepless) {
				loop_sleep(&loop);
				loop_arm(&loop);
			}
			op = pair_recv(pair.node, pair.peer, i, "none");
			assert_int_equal(epoll_wait(loop.epoll, &event, 1, 0), 1);
			weft_cancel(op);
			loop.sleepless = true;
			loop_sleep(&loop);
			pair_ended(op, WEFT_CANCELLED);
			weft_op_free(op);
		}
		close_manual(&pair, &loop);
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	static const struct pair_command commands[] = { { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		TEST(pair_name_the_missing),
		TEST(a_loop_turns_a_few_times_for_each_ping),
		TEST(an_edge_triggered_loop_turns_a_few_times_for_each_ping),
		TEST(a_deadline_wakes_a_loop_that_names_no_time_limit),
		TEST(an_operation_that_begins_after_weft_arm_wakes_the_loop),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
