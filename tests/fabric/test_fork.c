/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children of a process that has a node, forked in every way, over every
 * provider that this host has: they harm nothing of their parent's, hide
 * nothing of it, and may have a node of their own.
 *
 * In a child no need() and no assertion: it tells by its exit status.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define MIB ((size_t)1024 * 1024)
#define CHILD_S 30 /* no child lives longer */

extern char **environ;

static bool is_child;

/* A child has no stacks of its parent's other threads, and what those held looks leaked. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return is_child;
}

/* Wait for a child that ends by itself; its exit status. */
static int status_of(pid_t child)
{
	int status;

	need(waitpid(child, &status, 0) == child);
	need(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Ways to have a child. */

static void at_its_exit(void)
{
	/* Where many programs tidy up. */
	fflush(NULL);
}

static int end_by_exit(struct pair *pair)
{
	/* exit() below also runs the destructors of every library. */
	if (atexit(at_its_exit) || weft_node_close(pair->node) != -EOWNERDEAD)
		_exit(1);
	exit(0);
}

static int end_at_once(struct pair *pair)
{
	return weft_ping(pair->peer, NULL, &(struct weft_op *){ NULL }) != -EOWNERDEAD;
}

static int exec_something(struct pair *pair)
{
	(void)pair;
	execl("/bin/true", "true", (char *)NULL);
	return 1;
}

static pid_t fork_to(int (*run)(struct pair *pair), struct pair *pair)
{
	pid_t child = fork();

	need(child >= 0);
	if (child)
		return child;
	is_child = true;
	alarm(CHILD_S);
	_exit(run(pair));
}

static pid_t spawn_something(const char *program, const char *argument)
{
	const char *const argv[] = { program, argument, NULL };
	pid_t child;

	need(!posix_spawn(&child, program, NULL, NULL, (char *const *)argv, environ));
	return child;
}

/* How many names the regular files in /dev/shm have that this process holds open. */
static size_t names_in_shm(void)
{
	struct stat shm, file;
	size_t count = 0;

	need(!stat("/dev/shm", &shm));
	for (int fd = 0; fd < 1024; fd++)
		if (!fstat(fd, &file) && file.st_dev == shm.st_dev && S_ISREG(file.st_mode))
			count += file.st_nlink;
	return count;
}

static void a_childs_end_harms_nothing_of_its_parents(void **state)
{
	static int (*const ends[])(struct pair *) = { end_by_exit, end_at_once, exec_something };
	struct weft_counters counters = { .size = sizeof(counters) };
	struct pair_files files, none = { .count = 0 };
	struct weft_op *op;
	struct pair pair;
	size_t files_count, names_count;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_exchange(&pair, &pair.other);
		pair_files_of(getpid(), &files);
		files_count = pair_files_left(&files, &none);
		names_count = names_in_shm();
		assert_true(names_count > 0);
		op = pair_recv(pair.node, pair.peer, 1, "k");
		for (size_t i = 0; i < PAIR_COUNT(ends); i++) {
			assert_int_equal(status_of(fork_to(ends[i], &pair)), 0);
			assert_int_equal(pair_files_left(&files, &none), files_count);
			assert_int_equal(names_in_shm(), names_count);
			pair_exchange(&pair, &pair.other);
		}
		assert_int_equal(status_of(spawn_something("/bin/true", NULL)), 0);
		assert_false(weft_op_ended(op));
		pair_do(&pair.other, "send 1 k 1000 1");
		pair_received(op, 1000, 1);
		pair_do(&pair.other, "finish");
		/* No goodbye came, and no door closed. */
		assert_int_equal(weft_node_counters(pair.node, &counters), 0);
		assert_int_equal(counters.peers_lost, 0);
		assert_int_equal(counters.links_resumed, 0);
		assert_string_equal(pair_do(&pair.other, "losses"), "0 0");
		pair_close(&pair);
	}
}

static void do_losses(struct pair *side, char *arguments)
{
	struct weft_counters counters = { .size = sizeof(counters) };

	(void)arguments;
	need(!weft_node_counters(side->node, &counters));
	snprintf(side->reply, sizeof(side->reply), "%u %u", (unsigned)counters.peers_lost,
		 (unsigned)counters.links_resumed);
}

static int write_to_everything(struct pair *pair)
{
	/* What is being moved is the child's own copy. */
	memset(pair->reply, 0x55, sizeof(pair->reply));
	return weft_node_close(pair->node) != -EOWNERDEAD;
}

static void forks_in_the_middle_of_transfers_change_no_byte(void **state)
{
	const size_t bytes = 64 * MIB;
	struct pair_send send;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_ping(pair.peer);
		pair_do(&pair.other, "recv 1 to %zu 1", bytes);
		pair_do(&pair.other, "send 1 from %zu 2", bytes);
		send = pair_send(pair.peer, 1, "to", bytes, 1);
		op = pair_recv(pair.node, pair.peer, 1, "from");
		for (unsigned i = 0; i < 5; i++)
			assert_int_equal(status_of(fork_to(write_to_everything, &pair)), 0);
		pair_received(op, bytes, 2);
		pair_sent(&send);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

/* Many forks, while the door is busy with those who come and go. */

static void do_visit(struct pair *side, char *arguments)
{
	struct weft_node_options options = pair_options(side->provider);
	struct weft_node *node;
	struct weft_peer *peer;
	char address[96];
	unsigned count;

	need(sscanf(arguments, "%u %95s", &count, address) == 2);
	while (count--) {
		need(!weft_node_open(&options, &node));
		need(!weft_peer_open(node, address, &peer));
		pair_ping(peer);
		weft_peer_close(peer);
		need(!weft_node_close(node));
	}
}

static int do_nothing(struct pair *pair)
{
	(void)pair;
	return 0;
}

static void many_forks_while_peers_come_and_go(void **state)
{
	struct pair_other visitor;
	unsigned forks = 0;
	struct pair pair;
	struct pollfd reply;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_ping(pair.peer);
		pair_start(&visitor, at, NULL, NULL);
		pair_say(&visitor, "visit 20 %s", weft_node_address(pair.node));
		reply = (struct pollfd){ visitor.from, POLLIN, 0 };
		while (!poll(&reply, 1, 0)) {
			assert_int_equal(status_of(fork_to(do_nothing, &pair)), 0);
			forks++;
		}
		pair_hear(&visitor);
		pair_exchange(&pair, &pair.other);
		assert_string_equal(pair_do(&pair.other, "losses"), "0 0");
		pair_end(&visitor);
		pair_close(&pair);
	}
	assert_true(forks > 0);
}

/* Children that live on. */

static pid_t living;

static int live_on(struct pair *pair)
{
	(void)pair;
	pause();
	return 0;
}

static int exec_and_live_on(struct pair *pair)
{
	(void)pair;
	execl("/bin/sleep", "sleep", "30", (char *)NULL);
	return 1;
}

/* "fork", "exec", "spawn" or "vfork". */
static void do_child(struct pair *side, char *arguments)
{
	if (!strcmp(arguments, "fork"))
		living = fork_to(live_on, side);
	else if (!strcmp(arguments, "exec"))
		living = fork_to(exec_and_live_on, side);
	else
		living = spawn_something("/bin/sleep", "30");
	snprintf(side->reply, sizeof(side->reply), "%d", living);
}

static void no_living_child_hides_a_death(void **state)
{
	static const char *const ways[] = { "fork", "exec", "spawn" };
	struct pair_other others[PAIR_COUNT(ways)];
	struct weft_op *op;
	struct pair pair;
	pid_t child;

	(void)state;
	setenv("WEFT_LOST", "120s", 1); /* longer than any wait here: the kernel tells of a death */
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(ways); i++) {
			pair_start(&others[i], at, NULL, pair.node);
			pair_exchange(&pair, &others[i]);
			child = atoi(pair_do(&others[i], "child %s", ways[i]));
			assert_true(child > 0);
			pair_exchange(&pair, &others[i]);
			op = pair_recv(pair.node, others[i].peer, 1, "k");
			pair_kill(&others[i], SIGKILL);
			pair_ended(op, WEFT_UNAVAILABLE);
			weft_op_free(op);
			assert_int_equal(kill(child, SIGKILL), 0);
		}
		pair_close(&pair);
	}
	unsetenv("WEFT_LOST");
}

/* Until there is nothing left to do, which is soon; then the descriptor is quiet. */
static bool falls_asleep(struct weft_node *node)
{
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS, timeout_ns;
	struct pollfd fd = { weft_fd(node), POLLIN, 0 };
	unsigned quiet = 0;

	/* Timers wake it, too: what is asked is whether the descriptor does. */
	while (quiet < 3 && pair_now_ns() < until) {
		while (weft_arm(node, &timeout_ns))
			need(weft_poll(node, 0) >= 0);
		quiet = poll(&fd, 1, 20) ? 0 : quiet + 1;
		need(weft_poll(node, 0) >= 0);
	}
	return quiet == 3;
}

static void a_living_child_keeps_no_node_awake(void **state)
{
	struct weft_node_options options;
	struct pair pair;
	pid_t child;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		options.mode = WEFT_MANUAL;
		pair_open(&pair, at, &options);
		pair_ping(pair.peer);
		child = fork_to(live_on, &pair);
		/* Goodbye first, then the end: its pidfd is no business of ours any more. */
		weft_peer_close(pair.peer);
		pair.other.peer = NULL;
		pair_do(&pair.other, "close");
		assert_true(falls_asleep(pair.node));
		pair_kill(&pair.other, SIGKILL);
		assert_true(falls_asleep(pair.node));
		assert_int_equal(weft_node_close(pair.node), 0);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
}

static int check_descriptors(struct pair *pair)
{
	int fds[64];
	int status = 0;
	pid_t grandchild;

	(void)pair;
	/* The numbers that the parent's had until it was forked, and more. */
	for (size_t i = 0; i < PAIR_COUNT(fds); i++)
		fds[i] = open("/dev/null", O_RDONLY);
	grandchild = fork();
	if (grandchild < 0)
		return 1;
	for (size_t i = 0; i < PAIR_COUNT(fds); i++)
		if (fcntl(fds[i], F_GETFD) < 0)
			return 2;
	if (!grandchild)
		return 0;
	if (waitpid(grandchild, &status, 0) != grandchild || status)
		return 3;
	return 0;
}

static void a_grandchild_closes_nothing_of_the_childs(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	pair_ping(pair.peer);
	assert_int_equal(status_of(fork_to(check_descriptors, &pair)), 0);
	pair_close(&pair);
}

/* A node of its own. */

static char address_of_parent[96], address_of_other[96];

/* Does @node reach the one at @address, with a small and a large tensor? */
static int use(struct weft_node *node, const char *address, uint64_t step)
{
	static char bytes[300000];
	int64_t count = sizeof(bytes);
	const struct weft_tensor tensor = pair_tensor(bytes, &count);
	struct weft_op *ping, *send;
	struct weft_peer *peer;

	pair_fill(bytes, sizeof(bytes), 7);
	if (weft_peer_open(node, address, &peer) || weft_ping(peer, NULL, &ping) ||
	    weft_send(peer, step, "child", 5, &tensor, NULL, &send))
		return 1;
	if (weft_wait(ping, PAIR_LIMIT_NS) || weft_op_status(ping) != WEFT_OK)
		return 2;
	if (weft_wait(send, PAIR_LIMIT_NS) || weft_op_status(send) != WEFT_OK)
		return 3;
	weft_op_free(ping);
	weft_op_free(send);
	weft_peer_close(peer);
	return 0;
}

static int have_a_node(struct pair *pair)
{
	struct weft_node_options options = pair_options(pair->provider);
	struct weft_node *own;
	int err;

	if (weft_node_open(&options, &own))
		return 10;
	err = use(own, address_of_parent, 1);
	if (!err)
		err = use(own, address_of_other, 2);
	if (weft_node_close(own))
		return 11;
	if (!err)
		exit(0); /* with all that runs then */
	return err;
}

static void a_child_may_have_a_node_of_its_own(void **state)
{
	struct weft_op *op;
	struct pair pair;
	pid_t child;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_exchange(&pair, &pair.other);
		snprintf(address_of_parent, sizeof(address_of_parent), "%s",
			 weft_node_address(pair.node));
		snprintf(address_of_other, sizeof(address_of_other), "%s", pair.other.address);
		op = pair_recv(pair.node, NULL, 1, "child");
		pair_do(&pair.other, "recv 2 child 300000 7");
		child = fork_to(have_a_node, &pair);
		pair_received(op, 300000, 7);
		pair_do(&pair.other, "finish");
		assert_int_equal(status_of(child), 0);
		pair_exchange(&pair, &pair.other);
		pair_close(&pair);
	}
}

/* Forks inside a callback, whose child returns into the library. */

static _Atomic pid_t forked;

static void fork_here(struct weft_op *op, void *arg)
{
	pid_t child = fork();

	(void)op;
	(void)arg;
	if (!child) {
		is_child = true;
		alarm(CHILD_S);
	}
	atomic_store(&forked, child);
}

static struct weft_op *ping_and_fork(struct weft_peer *peer)
{
	const struct weft_op_options options = { .size = sizeof(options), .done = fork_here };
	struct weft_op *op;

	atomic_store(&forked, -1);
	need(!weft_ping(peer, &options, &op));
	return op;
}

/*
 * Wait for @op, at whose end the process forks: in a thread of the library, or in this one, which
 * has the loop while it waits.  Then the child is here, and the wait says why it returns.
 */
static void wait_for_fork(struct weft_op *op)
{
	if (weft_wait(op, PAIR_LIMIT_NS))
		_exit(atomic_load(&forked) || !strstr(weft_error(), "forked"));
	if (!atomic_load(&forked))
		_exit(2);
}

static void a_child_forked_in_a_callback_stops_there(void **state)
{
	struct weft_node_options options;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		/* The thread that forked is all that the child has, and ends. */
		pair_open(&pair, at, NULL);
		op = ping_and_fork(pair.peer);
		wait_for_fork(op);
		pair_ended(op, WEFT_OK);
		weft_op_free(op);
		assert_true(atomic_load(&forked) > 0);
		assert_int_equal(status_of(atomic_load(&forked)), 0);
		pair_exchange(&pair, &pair.other);
		pair_close(&pair);

		/* Here that is always this thread. */
		options = pair_options(at);
		options.mode = WEFT_MANUAL;
		pair_open(&pair, at, &options);
		op = ping_and_fork(pair.peer);
		wait_for_fork(op);
		pair_ended(op, WEFT_OK);
		weft_op_free(op);
		assert_int_equal(status_of(atomic_load(&forked)), 0);
		pair_exchange(&pair, &pair.other);
		pair_close(&pair);
	}
}

static const struct pair_command commands[] = {
	{ "child", do_child },
	{ "losses", do_losses },
	{ "visit", do_visit },
	{ NULL, NULL },
};

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(pair_name_the_missing),
		TEST(a_childs_end_harms_nothing_of_its_parents),
		TEST(forks_in_the_middle_of_transfers_change_no_byte),
		TEST(many_forks_while_peers_come_and_go),
		TEST(no_living_child_hides_a_death),
		TEST(a_living_child_keeps_no_node_awake),
		TEST(a_grandchild_closes_nothing_of_the_childs),
		TEST(a_child_may_have_a_node_of_its_own),
		TEST(a_child_forked_in_a_callback_stops_there),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
