/* SPDX-License-Identifier: BSD-2-Clause */
/* Tensors that another process looks at where they are, while one of the two dies, stops or forks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define BYTES (8 * MIB)
#define TAKERS 4
#define HELD 200 /* views that each taker holds */

/* Over the provider whose rails are shared memory. */
static void open_pair(struct pair *pair)
{
	const char *found = NULL;

	for (const char *at = pair_first(); at; at = pair_next())
		if (!strcmp(at, "shm"))
			found = at;
	if (!found) {
		print_message("skip: libfabric does not offer shm\n");
		skip();
	}
	pair_open(pair, found, NULL);
}

static uint64_t used_bytes(struct weft_node *node)
{
	struct weft_counters counters = { .size = sizeof(counters) };

	need(!weft_node_counters(node, &counters));
	return counters.pool_bytes_used;
}

static void await_free(struct weft_node *node)
{
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;

	while (used_bytes(node) && pair_now_ns() < until)
		pair_sleep_ms(1);
	need(!used_bytes(node));
}

/* Send memory of the pool that is given up at once. */
static struct weft_op *share_bytes(struct weft_node *node, struct weft_peer *to, uint64_t step,
				   uint64_t seed, size_t bytes)
{
	struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SHARE };
	int64_t count = (int64_t)bytes;
	struct weft_tensor tensor;
	struct weft_op *op;
	void *memory;

	need(!weft_alloc(node, bytes, &memory));
	pair_fill(memory, bytes, seed);
	tensor = pair_tensor(memory, &count);
	need(!weft_send(to, step, "k", 1, &tensor, &options, &op));
	weft_free(node, memory);
	return op;
}

static struct weft_op *share(struct weft_node *node, struct weft_peer *to, uint64_t step,
			     uint64_t seed)
{
	return share_bytes(node, to, step, seed, BYTES);
}

static const void *look(struct weft_op *op, uint64_t seed)
{
	struct weft_path path = { .size = sizeof(path) };
	const struct weft_tensor *got;
	unsigned flags = 0;

	pair_ended(op, WEFT_OK);
	got = weft_op_tensor(op, &flags);
	need(got && flags == WEFT_READONLY);
	need(!weft_op_path(op, &path) && !strcmp(path.way, "view") && !path.copies);
	need(pair_matches(got->data, BYTES, seed));
	return got->data;
}

/* In the other process: what it has sent and what it looks at. */
static struct weft_op *shared, *looking;

static void do_share(struct pair *side, char *arguments)
{
	shared = share(side->node, side->peer, strtoull(arguments, NULL, 10), 3);
}

static void do_shared(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	pair_ended(shared, WEFT_OK);
	weft_op_free(shared);
}

/* The sends end when the other side has seen what they bring. */
static void do_share_many(struct pair *side, char *arguments)
{
	struct weft_op *ops[TAKERS * HELD];

	(void)arguments;
	for (uint64_t i = 0; i < PAIR_COUNT(ops); i++)
		ops[i] = share_bytes(side->node, side->peer, i, 3, 64 * KIB);
	for (size_t i = 0; i < PAIR_COUNT(ops); i++) {
		pair_ended(ops[i], WEFT_OK);
		weft_op_free(ops[i]);
	}
}

static void do_ask(struct pair *side, char *arguments)
{
	looking = pair_recv(side->node, side->peer, strtoull(arguments, NULL, 10), "k");
}

static void do_look(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	look(looking, 3);
}

static void do_let(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	weft_op_free(looking);
}

static void do_used(struct pair *side, char *arguments)
{
	(void)arguments;
	snprintf(side->reply, sizeof(side->reply), "%" PRIu64, used_bytes(side->node));
}

static void do_await(struct pair *side, char *arguments)
{
	(void)arguments;
	await_free(side->node);
}

static const struct pair_command commands[] = {
	{ "share_many", do_share_many },
	{ "share", do_share }, { "shared", do_shared }, { "ask", do_ask }, { "look", do_look },
	{ "let", do_let },     { "used", do_used },	{ "await", do_await }, { NULL, NULL },
};

/* The test looks at what the other process has given up. */
static struct weft_op *begin_look(struct pair *pair, const void **view)
{
	struct weft_op *op = pair_recv(pair->node, pair->peer, 1, "k");

	pair_do(&pair->other, "share 1");
	*view = look(op, 3);
	pair_do(&pair->other, "shared");
	return op;
}

/* The other process looks at what the test has given up. */
static void be_looked_at(struct pair *pair)
{
	struct weft_op *op;

	pair_do(&pair->other, "ask 2");
	op = share(pair->node, pair->peer, 2, 3);
	pair_do(&pair->other, "look");
	pair_ended(op, WEFT_OK);
	weft_op_free(op);
}

static void shared_memory_can_be_read_and_not_written(void **state)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct weft_op *op;
	const void *view;
	struct pair pair;

	(void)state;
	open_pair(&pair);
	for (unsigned i = 0; i < 20; i++) {
		op = begin_look(&pair, &view);
		/* The kernel may not write there either. */
		assert_int_equal(read(zero, (void *)(uintptr_t)view, 1), -1);
		assert_int_equal(errno, EFAULT);
		assert_int_equal(used_bytes(pair.node), 0);
		assert_string_equal(pair_do(&pair.other, "used"), "8388608");
		if (i % 2) {
			assert_ptr_equal(weft_op_take(op), view);
			weft_op_free(op);
			assert_true(pair_matches(view, BYTES, 3));
			weft_free(pair.node, (void *)(uintptr_t)view);
		} else {
			weft_op_free(op);
		}
		pair_do(&pair.other, "await");
	}
	close(zero);
	pair_close(&pair);
}

static void the_owners_death_leaves_what_is_looked_at(void **state)
{
	struct weft_op *op, *next;
	const void *view;
	struct pair pair;

	(void)state;
	open_pair(&pair);
	op = begin_look(&pair, &view);
	next = pair_recv(pair.node, pair.peer, 9, "k");
	pair_kill(&pair.other, SIGKILL);
	pair_ended(next, WEFT_UNAVAILABLE);
	weft_op_free(next);
	assert_true(pair_matches(view, BYTES, 3));
	weft_op_free(op);

	/* Others are looked at as before. */
	pair_start(&pair.other, pair.provider, NULL, pair.node);
	pair.peer = pair.other.peer;
	weft_op_free(begin_look(&pair, &view));
	pair_do(&pair.other, "await");
	pair_close(&pair);
}

static void a_chunk_that_the_dead_looked_at_comes_back(void **state)
{
	struct pair pair;

	(void)state;
	open_pair(&pair);
	be_looked_at(&pair);
	pair_sleep_ms(50);
	assert_int_equal(used_bytes(pair.node), BYTES);
	pair_kill(&pair.other, SIGKILL);
	await_free(pair.node);
	pair_close(&pair);
}

static void a_stopped_process_keeps_its_view(void **state)
{
	struct weft_op *op;
	struct pair pair;
	int status;

	(void)state;
	setenv("WEFT_HEARTBEAT", "100ms", 1);
	setenv("WEFT_LOST", "2s", 1);
	open_pair(&pair);
	be_looked_at(&pair);
	pair_kill(&pair.other, SIGSTOP);
	need(waitpid(pair.other.pid, &status, WUNTRACED) == pair.other.pid && WIFSTOPPED(status));
	need(!weft_ping(pair.peer, NULL, &op));
	pair_ended(op, WEFT_UNAVAILABLE);
	weft_op_free(op);
	pair_sleep_ms(1500); /* longer than between two looks at what is held */
	assert_int_equal(used_bytes(pair.node), BYTES);
	pair_kill(&pair.other, SIGCONT);
	pair_do(&pair.other, "look");
	pair_do(&pair.other, "let");
	await_free(pair.node);
	unsetenv("WEFT_HEARTBEAT");
	unsetenv("WEFT_LOST");
	pair_close(&pair);
}

static void a_child_lets_nothing_go_and_writes_to_nothing(void **state)
{
	struct weft_op *op;
	const void *view;
	struct pair pair;
	void *memory;
	int status;
	pid_t child;

	(void)state;
	open_pair(&pair);
	op = begin_look(&pair, &view);
	need(!weft_alloc(pair.node, BYTES, &memory));
	pair_fill(memory, BYTES, 4);
	child = fork();
	need(child >= 0);
	if (!child) {
		weft_op_free(op);
		memset(memory, 0, BYTES);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(pair_matches(memory, BYTES, 4));
	pair_sleep_ms(1500);
	assert_string_equal(pair_do(&pair.other, "used"), "8388608");
	assert_true(pair_matches(view, BYTES, 3));
	weft_free(pair.node, memory);
	weft_op_free(op);
	pair_do(&pair.other, "await");
	pair_close(&pair);
}

static void closing_ends_views_and_gives_them_back(void **state)
{
	struct weft_op *op;
	const void *view;
	struct pair pair;

	(void)state;
	open_pair(&pair);
	op = begin_look(&pair, &view);
	weft_peer_close(pair.peer);
	pair.other.peer = NULL;
	need(!weft_node_close(pair.node));
	weft_op_free(op);
	pair_do(&pair.other, "await");
	pair_end(&pair.other);
}

struct taker {
	pthread_t thread;
	struct weft_op *ops[HELD];
	pthread_barrier_t *begins;
};

static void *free_all(void *arg)
{
	struct taker *taker = arg;

	pthread_barrier_wait(taker->begins);
	for (size_t i = 0; i < HELD; i++) {
		weft_op_free(taker->ops[i]);
		usleep(100);
	}
	return NULL;
}

static void threads_give_views_back_while_their_node_closes(void **state)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct weft_counters counters = { .size = sizeof(counters) };
	static struct taker takers[TAKERS];
	pthread_barrier_t begins;
	struct pair pair;

	(void)state;
	open_pair(&pair);
	need(!weft_queue_open(pair.node, &options.op.queue));
	need(!pthread_barrier_init(&begins, NULL, TAKERS + 1));
	for (uint64_t i = 0; i < TAKERS * HELD; i++)
		need(!weft_recv(pair.node, pair.peer, i, "k", 1, NULL, &options, NULL));
	pair_do(&pair.other, "share_many");
	for (size_t i = 0; i < TAKERS; i++) {
		for (size_t at = 0; at < HELD; at++)
			need(weft_queue_next(options.op.queue, &takers[i].ops[at], 1,
					     PAIR_LIMIT_NS) == 1);
		takers[i].begins = &begins;
		need(!pthread_create(&takers[i].thread, NULL, free_all, &takers[i]));
	}
	need(!weft_node_counters(pair.node, &counters));
	assert_int_equal(counters.bytes_viewed, TAKERS * HELD * 64 * KIB);
	weft_peer_close(pair.peer);
	pair.other.peer = NULL;
	pthread_barrier_wait(&begins);
	need(!weft_node_close(pair.node));
	for (size_t i = 0; i < TAKERS; i++)
		need(!pthread_join(takers[i].thread, NULL));
	need(!pthread_barrier_destroy(&begins));
	weft_queue_close(options.op.queue);
	pair_do(&pair.other, "await");
	pair_end(&pair.other);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(shared_memory_can_be_read_and_not_written, pair_teardown),
		cmocka_unit_test_teardown(the_owners_death_leaves_what_is_looked_at, pair_teardown),
		cmocka_unit_test_teardown(a_chunk_that_the_dead_looked_at_comes_back,
					  pair_teardown),
		cmocka_unit_test_teardown(a_stopped_process_keeps_its_view, pair_teardown),
		cmocka_unit_test_teardown(a_child_lets_nothing_go_and_writes_to_nothing,
					  pair_teardown),
		cmocka_unit_test_teardown(closing_ends_views_and_gives_them_back, pair_teardown),
		cmocka_unit_test_teardown(threads_give_views_back_while_their_node_closes,
					  pair_teardown),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
