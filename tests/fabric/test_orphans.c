/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strangers that connect to the port of a rail and say nothing, or not enough: what they take
 * comes back, nobody who is somebody's is touched, and who comes meanwhile is served.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define FLOOD 2000
#define FEW 1024  /* descriptors of the node that is flooded */
#define ROOM 100  /* orphans that may wait for their first word, and what a client takes */
#define BATCH 100 /* strangers at once */
#define LIMIT_NS (20000 * PAIR_MS)
/* A connection with bytes that the provider has not read is given up after 30 s. */
#define UNREAD_LIMIT_NS (40000 * PAIR_MS)

/* The port of IPv4 that this process listens on last, but for the door at @but. */
static uint16_t rail_port(const char *but)
{
	const char *colon = strrchr(but, ':');
	unsigned door = 0;

	need(colon && sscanf(colon + 1, "%u", &door) == 1);
	for (int fd = FEW; fd >= 0; fd--) {
		struct sockaddr_in in;
		socklen_t bytes = sizeof(in), int_bytes = sizeof(int);
		int listens = 0;

		if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_bytes) && listens &&
		    !getsockname(fd, (struct sockaddr *)&in, &bytes) && in.sin_family == AF_INET &&
		    ntohs(in.sin_port) != door)
			return ntohs(in.sin_port);
	}
	return 0;
}

/* The number of descriptors of process @pid whose links in /proc contain @what, "": of all. */
static unsigned count_fds(pid_t pid, const char *what)
{
	char path[64], target[256];
	unsigned count = 0;
	struct dirent *entry;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	fds = opendir(path);
	need(fds);
	while ((entry = readdir(fds))) {
		ssize_t bytes = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);

		if (bytes < 0)
			continue; /* "." and "..", or closed meanwhile */
		target[bytes] = '\0';
		count += strstr(target, what) != NULL;
	}
	closedir(fds);
	return count;
}

/* Descriptors of the other process once it has met this one, by the side door last. */
static unsigned count_at_rest(const struct pair *pair)
{
	uint64_t until = pair_now_ns() + LIMIT_NS;

	while (!count_fds(pair->other.pid, "pidfd")) {
		need(pair_now_ns() < until);
		pair_sleep_ms(5);
	}
	return count_fds(pair->other.pid, "");
}

/* Connect to @port and say @bytes of @text; the connection, or -1. */
static int say_to(uint16_t port, const char *text, size_t bytes)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&in, sizeof(in)) ||
	    (bytes && send(fd, text, bytes, MSG_NOSIGNAL) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The other process: what its rail's port is, and how many descriptors it may have. */

static void tell_port(struct pair *side, char *arguments)
{
	(void)arguments;
	snprintf(side->reply, sizeof(side->reply), "%u", rail_port(weft_node_address(side->node)));
}

static void limit_fds(struct pair *side, char *arguments)
{
	const struct rlimit few = { FEW, FEW };

	(void)side;
	(void)arguments;
	need(!setrlimit(RLIMIT_NOFILE, &few));
}

static const struct pair_command commands[] = {
	{ "port", tell_port },
	{ "limit", limit_fds },
	{ NULL, NULL },
};

/* Only these have sockets of their own whose port takes strangers in. */
static const char *next_of_sockets(const char *at)
{
	while (at && strcmp(at, "tcp") != 0 && strcmp(at, "net") != 0)
		at = pair_next();
	return at;
}

static uint16_t port_of(struct pair *pair)
{
	unsigned port = 0;

	need(sscanf(pair_do(&pair->other, "port"), "%u", &port) == 1 && port);
	return (uint16_t)port;
}

/* A pair that has met over provider @at; the port of the other's rail. */
static uint16_t open_at(struct pair *pair, const char *at)
{
	pair_open(pair, at, NULL);
	pair_ping(pair->peer);
	return port_of(pair);
}

/* Until the other process has no more than @most descriptors. */
static void await_fds(struct pair *pair, unsigned most)
{
	uint64_t until = pair_now_ns() + UNREAD_LIMIT_NS;
	unsigned count;

	while ((count = count_fds(pair->other.pid, "")) > most && pair_now_ns() < until)
		pair_sleep_ms(50);
	if (count > most)
		fail_msg("%u descriptors, and %u before", count, most);
}

static void a_stranger_that_connects_and_goes_takes_no_descriptor(void **state)
{
	struct pair pair;

	(void)state;
	for (const char *at = next_of_sockets(pair_first()); at; at = next_of_sockets(pair_next())) {
		uint16_t port = open_at(&pair, at);
		unsigned before = count_at_rest(&pair);

		for (unsigned i = 0; i < BATCH; i++)
			close(say_to(port, "", 0));
		await_fds(&pair, before);
		pair_exchange(&pair, &pair.other);
		pair_close(&pair);
	}
}

/* The beginning of a request of which the rest never comes: 8 bytes that promise some more. */
static void half_a_request_takes_no_descriptor(void **state)
{
	static const char beginnings[][8] = {
		{ 3, 1, 0, 16, 1, 0, 0, 0 }, /* of libfabric 1.17, tcp and net */
		{ 2, 1, 0, 16, 1, 0, 0, 0 },
		{ 3, 1, 0 },
	};
	struct pair pair;
	int fds[30];

	(void)state;
	for (const char *at = next_of_sockets(pair_first()); at; at = next_of_sockets(pair_next())) {
		uint16_t port = open_at(&pair, at);
		unsigned before = count_at_rest(&pair);

		for (unsigned i = 0; i < PAIR_COUNT(fds); i++) {
			fds[i] = say_to(port, beginnings[i % 3], i % 3 == 2 ? 3 : 8);
			need(fds[i] >= 0);
		}
		await_fds(&pair, before);
		pair_exchange(&pair, &pair.other);
		for (unsigned i = 0; i < PAIR_COUNT(fds); i++)
			close(fds[i]);
		pair_close(&pair);
	}
}

/* Strangers of a process of its own, which hold on to what they have: @fd is closed at their end. */
static pid_t flood(uint16_t port, int ready)
{
	const struct rlimit enough = { FLOOD + 100, FLOOD + 100 };
	pid_t child = fork();
	unsigned made = 0;

	need(child >= 0);
	if (child)
		return child;
	/* A test that fails leaves it to nobody. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || setrlimit(RLIMIT_NOFILE, &enough))
		_exit(2);
	for (unsigned i = 0; i < FLOOD; i++)
		made += say_to(port, "", 0) >= 0;
	(void)!write(ready, &made, sizeof(made));
	pause();
	_exit(0);
}

static void a_flood_that_holds_on_keeps_no_client_out(void **state)
{
	struct pair pair;

	(void)state;
	for (const char *at = next_of_sockets(pair_first()); at; at = next_of_sockets(pair_next())) {
		struct pair_other late;
		unsigned before, made = 0;
		uint64_t began;
		pid_t strangers;
		uint16_t port;
		int ready[2];

		pair_open(&pair, at, NULL);
		pair_do(&pair.other, "limit");
		pair_ping(pair.peer);
		port = port_of(&pair);
		before = count_at_rest(&pair);
		need(!pipe(ready));
		strangers = flood(port, ready[1]);
		close(ready[1]);
		began = pair_now_ns();
		/* While they come, and when all are there. */
		for (unsigned i = 0; i < 2; i++) {
			struct weft_node_options options = pair_options(at);
			struct weft_node *client;
			struct weft_peer *peer;

			need(!weft_node_open(&options, &client));
			need(!weft_peer_open(client, pair.other.address, &peer));
			pair_ping(peer);
			weft_peer_close(peer);
			need(!weft_node_close(client));
			if (!i)
				need(read(ready[0], &made, sizeof(made)) == sizeof(made));
		}
		pair_ping(pair.peer);
		assert_true(made > FEW);
		await_fds(&pair, before);
		print_message("%s: %u strangers, descriptors back %.1f s after the first\n", at, made,
			      (double)(pair_now_ns() - began) / 1e9);
		need(!kill(strangers, SIGKILL) && waitpid(strangers, NULL, 0) == strangers);
		close(ready[0]);
		pair_start(&late, at, NULL, pair.node);
		pair_exchange(&pair, &late);
		pair_end(&late);
		pair_close(&pair);
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_stranger_that_connects_and_goes_takes_no_descriptor),
		TEST(half_a_request_takes_no_descriptor),
		TEST(a_flood_that_holds_on_keeps_no_client_out),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
