/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What killed, frozen and restarted processes do to the others, over
 * every provider that this host has: each operation ends once, in bounded time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define MIB ((size_t)1024 * 1024)
#define BODY (64 * MIB) /* so long that a signal comes in the middle */

/* Shorter than the defaults of 1 s and 3 s, so that frozen peers are lost sooner. */
#define HEARTBEAT "200ms"
#define LOST "1s"
/* The limit, and 2 s until a shared rail's buffers are quiet; the rest is for a busy machine. */
#define FROZEN_NS ((1000 + 2000 + 2000) * PAIR_MS)

/* What the other side does when the signal comes. */

/* Sends for ever, a few outstanding at a time. */
static void do_flood(struct pair *side, char *arguments)
{
	struct pair_send sends[16] = { { 0 } };

	(void)arguments;
	for (unsigned i = 0;; i++) {
		struct pair_send *send = &sends[i % PAIR_COUNT(sends)];

		if (send->op)
			pair_sent(send);
		*send = pair_send(side->peer, 7, "flood", 1000, i);
	}
}

/* Offers a body, and receives one. */
static void do_bodies(struct pair *side, char *arguments)
{
	struct pair_send send;
	struct weft_op *op;

	(void)arguments;
	op = pair_recv(side->node, NULL, 8, "to");
	send = pair_send(side->peer, 8, "from", BODY, 1);
	weft_wait(op, WEFT_FOREVER);
	weft_wait(send.op, WEFT_FOREVER);
	pause();
}

/* What this side has under way. */

enum phase { IDLE, EAGER, PULL, PHASES };

struct pending {
	struct weft_op *op;
	atomic_int told;
	bool may_succeed;
};

struct load {
	struct pending ops[72];
	size_t count;
	char *bytes; /* of every send, and after them what is received */
};

static void count_up(struct weft_op *op, void *arg)
{
	(void)op;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static struct pending *add_send(struct load *load, struct weft_peer *to, uint64_t step,
				const char *key, size_t count)
{
	struct pending *p = &load->ops[load->count++];
	struct weft_send_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .done = count_up, .arg = &p->told }
	};
	int64_t shape = (int64_t)count;
	struct weft_tensor tensor = pair_tensor(load->bytes, &shape);

	atomic_init(&p->told, 0);
	p->may_succeed = false;
	need(!weft_send(to, step, key, strlen(key), &tensor, &options, &p->op));
	return p;
}

static struct pending *add_recv(struct load *load, struct pair *pair, uint64_t step,
				const char *key, const struct weft_tensor *into)
{
	struct pending *p = &load->ops[load->count++];
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .done = count_up, .arg = &p->told }
	};

	atomic_init(&p->told, 0);
	p->may_succeed = false;
	need(!weft_recv(pair->node, pair->peer, step, key, strlen(key), into, &options, &p->op));
	return p;
}

static void begin_load(struct load *load, struct pair *pair, enum phase phase)
{
	int64_t count = (int64_t)BODY;
	char *into = load->bytes + BODY;
	struct weft_tensor tensor = pair_tensor(into, &count);
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;

	load->count = 0;
	/* In every phase something that nobody answers. */
	add_recv(load, pair, 1, "never", NULL);
	add_send(load, pair->peer, 1, "never", MIB);
	if (phase == EAGER) {
		pair_say(&pair->other, "flood");
		for (unsigned i = 0; i < 20; i++)
			pair_received(pair_recv(pair->node, pair->peer, 7, "flood"), 1000, i);
		/* It may have heard these before it died. */
		for (unsigned i = 0; i < 64; i++)
			add_send(load, pair->peer, 2, "stream", 1000)->may_succeed = true;
	} else if (phase == PULL) {
		memset(into, 0x55, BODY);
		add_recv(load, pair, 8, "from", &tensor)->may_succeed = true;
		add_send(load, pair->peer, 8, "to", BODY)->may_succeed = true;
		pair_say(&pair->other, "bodies");
		while (pair_peek(into) == 0x55)
			need(pair_now_ns() < until);
	}
}

static void check_load(const struct load *load)
{
	for (size_t i = 0; i < load->count; i++) {
		const struct pending *p = &load->ops[i];
		enum weft_status status = weft_op_status(p->op);

		if (status != WEFT_UNAVAILABLE && !(p->may_succeed && status == WEFT_OK))
			print_error("operation %zu: %s: %s\n", i, weft_status_name(status),
				    weft_op_message(p->op));
		need(status == WEFT_UNAVAILABLE || (p->may_succeed && status == WEFT_OK));
		need(atomic_load(&p->told) == 1);
	}
}

/* Every operation ends within @limit_ns, once, and as it should. */
static void end_loads(struct load *loads, uint64_t limit_ns)
{
	uint64_t began = pair_now_ns(), took;

	for (enum phase phase = IDLE; phase < PHASES; phase++)
		for (size_t i = 0; i < loads[phase].count; i++)
			need(!weft_wait(loads[phase].ops[i].op, PAIR_LIMIT_NS));
	took = pair_now_ns() - began;
	if (took >= limit_ns)
		print_error("it took %u ms\n", (unsigned)(took / PAIR_MS));
	need(took < limit_ns);
	for (enum phase phase = IDLE; phase < PHASES; phase++)
		check_load(&loads[phase]);
}

static void free_load(struct load *load)
{
	for (size_t i = 0; i < load->count; i++) {
		need(atomic_load(&load->ops[i].told) == 1);
		weft_op_free(load->ops[i].op);
	}
}

/* One peer in each phase, and one that nothing happens to. */
static void lose_peers(int signal, uint64_t limit_ns)
{
	struct pair_other bystander;
	struct pair pairs[PHASES];
	struct load loads[PHASES];
	char *bytes = calloc(2, BODY);
	struct pair all;

	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&all, at, NULL);
		bystander = all.other;
		pair_exchange(&all, &bystander);
		for (enum phase phase = IDLE; phase < PHASES; phase++) {
			pairs[phase] = all;
			pair_start(&pairs[phase].other, at, NULL, all.node);
			pairs[phase].peer = pairs[phase].other.peer;
			pair_ping(pairs[phase].peer);
			loads[phase].bytes = bytes;
			begin_load(&loads[phase], &pairs[phase], phase);
		}
		for (enum phase phase = IDLE; phase < PHASES; phase++)
			need(!kill(pairs[phase].other.pid, signal));
		end_loads(loads, limit_ns);
		pair_exchange(&all, &bystander);
		/* Quiet: what was being received is the test's again. */
		memset(bytes + BODY, 0x55, BODY);
		pair_sleep_ms(20);
		for (size_t i = 0; i < BODY; i += 64)
			if (bytes[BODY + i] != 0x55)
				fail_msg("byte %zu was written after the end", i);
		for (enum phase phase = IDLE; phase < PHASES; phase++) {
			pair_kill(&pairs[phase].other, SIGKILL);
			free_load(&loads[phase]);
		}
		pair_close(&all);
	}
	free(bytes);
}

static void killed_peers_end_their_operations_only(void **state)
{
	(void)state;
	setenv("WEFT_LOST", "120s", 1); /* longer than any wait here: the kernel tells of a death */
	lose_peers(SIGKILL, PAIR_LIMIT_NS);
	setenv("WEFT_LOST", LOST, 1);
}

static void frozen_peers_end_their_operations_only(void **state)
{
	(void)state;
	lose_peers(SIGSTOP, FROZEN_NS);
}

static void a_short_freeze_fails_nothing(void **state)
{
	struct pair_send send;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_do(&pair.other, "recv 1 k %zu 1", 8 * MIB);
		pair_do(&pair.other, "recv 1 k 1000 2");
		assert_int_equal(kill(pair.other.pid, SIGSTOP), 0);
		send = pair_send(pair.peer, 1, "k", 8 * MIB, 1);
		pair_sleep_ms(300);
		assert_false(weft_op_ended(send.op));
		assert_int_equal(kill(pair.other.pid, SIGCONT), 0);
		pair_sent(&send);
		send = pair_send(pair.peer, 1, "k", 1000, 2);
		pair_sent(&send);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

/* What was begun before it knew that its link is gone may fail, later things may not. */
static void do_settle(struct pair *side, char *arguments)
{
	enum weft_status status = WEFT_UNKNOWN;
	struct weft_op *op;

	(void)arguments;
	for (unsigned i = 0; i < 2 && status != WEFT_OK; i++) {
		need(!weft_ping(side->peer, NULL, &op));
		need(!weft_wait(op, PAIR_LIMIT_NS));
		status = weft_op_status(op);
		need(status == WEFT_OK || status == WEFT_UNAVAILABLE);
		weft_op_free(op);
	}
	need(status == WEFT_OK);
}

static void a_process_that_thaws_is_a_peer_again(void **state)
{
	struct weft_counters counters = { .size = sizeof(counters) };
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_exchange(&pair, &pair.other);
		op = pair_recv(pair.node, pair.peer, 1, "k");
		assert_int_equal(kill(pair.other.pid, SIGSTOP), 0);
		pair_ended(op, WEFT_UNAVAILABLE);
		weft_op_free(op);
		assert_int_equal(weft_node_counters(pair.node, &counters), 0);
		assert_int_equal(counters.peers_lost, 1);
		assert_int_equal(kill(pair.other.pid, SIGCONT), 0);
		pair_do(&pair.other, "settle");
		pair_exchange(&pair, &pair.other);
		pair_close(&pair);
	}
}

static void a_restarted_peer_is_reached_at_its_old_address(void **state)
{
	struct weft_node_options options;
	char address[32];
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		pair = (struct pair){ .provider = at };
		pair_free_address(address);
		assert_int_equal(weft_node_open(&options, &pair.node), 0);
		assert_int_equal(weft_peer_open(pair.node, address, &pair.peer), 0);
		for (unsigned round = 0; round < 3; round++) {
			pair_start(&pair.other, at, address, pair.node);
			assert_ptr_equal(pair.other.peer, pair.peer);
			pair_exchange(&pair, &pair.other);
			if (round == 2)
				break;
			op = pair_recv(pair.node, pair.peer, 1, "k");
			pair_kill(&pair.other, SIGKILL);
			/* Once after its death is known, once before. */
			if (round == 0)
				pair_ended(op, WEFT_UNAVAILABLE);
			else
				weft_cancel(op);
			assert_int_equal(weft_wait(op, PAIR_LIMIT_NS), 0);
			weft_op_free(op);
		}
		pair_close(&pair);
	}
}

static void closing_a_node_does_not_wait_for_a_frozen_peer(void **state)
{
	struct pair_send large, small;
	uint64_t began;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_exchange(&pair, &pair.other);
		assert_int_equal(kill(pair.other.pid, SIGSTOP), 0);
		large = pair_send(pair.peer, 1, "k", MIB, 1);
		small = pair_send(pair.peer, 1, "k", 100, 1);
		began = pair_now_ns();
		weft_peer_close(pair.peer);
		pair.other.peer = NULL;
		assert_int_equal(weft_node_close(pair.node), 0);
		assert_true(pair_now_ns() - began < FROZEN_NS);
		assert_int_equal(weft_op_status(large.op), WEFT_CANCELLED);
		weft_op_free(large.op);
		weft_op_free(small.op);
		free(large.bytes);
		free(small.bytes);
		pair_kill(&pair.other, SIGKILL);
	}
}

/* Files in /dev/shm. */

static void a_survivor_removes_what_the_dead_left(void **state)
{
	struct weft_node_options options;
	struct pair_files own, others;
	struct weft_op *op;
	struct pair pair;
	uint64_t until;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		pair = (struct pair){ .provider = at };
		assert_int_equal(weft_node_open(&options, &pair.node), 0);
		pair_files_of(getpid(), &own);
		pair_start(&pair.other, at, NULL, pair.node);
		pair.peer = pair.other.peer;
		pair_exchange(&pair, &pair.other);
		pair_files_of(pair.other.pid, &others);
		if (!strcmp(at, "shm"))
			assert_true(pair_files_left(&others, &own) > 0);
		op = pair_recv(pair.node, pair.peer, 1, "k");
		pair_kill(&pair.other, SIGKILL);
		pair.peer = NULL;
		pair_ended(op, WEFT_UNAVAILABLE);
		weft_op_free(op);
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (pair_files_left(&others, &own) && pair_now_ns() < until)
			pair_sleep_ms(1);
		assert_int_equal(pair_files_left(&others, &own), 0);
		pair_close(&pair);
		assert_int_equal(pair_files_left(&own, &(struct pair_files){ .count = 0 }), 0);
	}
}

/* As a slow end looks from outside: the sockets are closed first, the rest a while later. */
static void do_fall(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	for (int fd = 0; fd < (int)sysconf(_SC_OPEN_MAX) && fd < 1024; fd++)
		(void)shutdown(fd, SHUT_RDWR); /* a socket that listens refuses from then on */
	pair_sleep_ms(300);
	raise(SIGKILL);
}

static void a_survivor_removes_what_is_left_also_when_the_door_closed_before_the_end(void **state)
{
	struct pair_files own, others;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	setenv("WEFT_LOST", "30s", 1); /* however long the host takes to end the process */
	for (const char *at = pair_first(); at; at = pair_next()) {
		if (strcmp(at, "shm") != 0)
			continue;
		pair_open(&pair, at, NULL);
		pair_files_of(getpid(), &own);
		pair_ping(pair.peer); /* and so the door is of our dialling */
		pair_files_of(pair.other.pid, &others);
		assert_true(pair_files_left(&others, &own) > 0);
		op = pair_recv(pair.node, pair.peer, 1, "k");
		pair_say(&pair.other, "fall");
		pair_ended(op, WEFT_UNAVAILABLE);
		weft_op_free(op);
		assert_int_equal(pair_files_left(&others, &own), 0);
		pair_kill(&pair.other, SIGKILL);
		pair_close(&pair);
	}
	setenv("WEFT_LOST", LOST, 1);
}

static void do_meet(struct pair *side, char *arguments)
{
	need(!weft_peer_open(side->node, arguments, &side->peer));
	pair_ping(side->peer);
}

static void the_next_node_removes_what_all_the_dead_left(void **state)
{
	struct weft_node_options options;
	struct pair_files first_files, second_files, none = { .count = 0 };
	struct pair_other first, second;
	struct weft_node *node;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		pair_start(&first, at, NULL, NULL);
		pair_start(&second, at, NULL, NULL);
		pair_do(&second, "meet %s", first.address);
		pair_files_of(first.pid, &first_files);
		pair_files_of(second.pid, &second_files);
		/* Before the end: then any node that opens, another test's say, removes them. */
		if (!strcmp(at, "shm"))
			assert_true(pair_files_left(&first_files, &none) > 0);
		/* Neither has the time to clear up after the other. */
		assert_int_equal(kill(first.pid, SIGSTOP), 0);
		pair_kill(&second, SIGKILL);
		pair_kill(&first, SIGKILL);
		assert_int_equal(weft_node_open(&options, &node), 0);
		assert_int_equal(pair_files_left(&first_files, &none), 0);
		assert_int_equal(pair_files_left(&second_files, &none), 0);
		assert_int_equal(weft_node_close(node), 0);
	}
}

static const struct pair_command commands[] = {
	{ "flood", do_flood }, { "bodies", do_bodies }, { "meet", do_meet },
	{ "settle", do_settle }, { "fall", do_fall }, { NULL, NULL },
};

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(pair_name_the_missing),
		TEST(killed_peers_end_their_operations_only),
		TEST(frozen_peers_end_their_operations_only),
		TEST(a_short_freeze_fails_nothing),
		TEST(a_process_that_thaws_is_a_peer_again),
		TEST(a_restarted_peer_is_reached_at_its_old_address),
		TEST(closing_a_node_does_not_wait_for_a_frozen_peer),
		TEST(a_survivor_removes_what_the_dead_left),
		TEST(a_survivor_removes_what_is_left_also_when_the_door_closed_before_the_end),
		TEST(the_next_node_removes_what_all_the_dead_left),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	setenv("WEFT_HEARTBEAT", HEARTBEAT, 1);
	setenv("WEFT_LOST", LOST, 1);
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
