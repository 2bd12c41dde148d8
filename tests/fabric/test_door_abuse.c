/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strangers at a node's door: whatever they say, or don't, a real peer is
 * served, before, meanwhile and afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"
#include "said.h"

#define SILENT_COUNT 1000
#define HELLO_LIMIT_MS 5000 /* how long a stranger may take, by weft_wire(7) */

/* A connection to @node's door. */
static int stranger(const struct weft_node *node)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *port = strrchr(weft_node_address(node), ':');
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	need(fd >= 0 && port);
	in.sin_port = htons((uint16_t)atoi(port + 1));
	need(!connect(fd, (struct sockaddr *)&in, sizeof(in)));
	return fd;
}

/* Has the node closed @fd within @limit_ms?  What it says meanwhile is heard. */
static bool is_closed(int fd, int limit_ms)
{
	uint64_t until = pair_now_ns() + (uint64_t)limit_ms * PAIR_MS;
	struct pollfd input = { fd, POLLIN, 0 };
	char bytes[4096];

	while (pair_now_ns() < until)
		if (poll(&input, 1, 10) > 0 && recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
			return true;
	return false;
}

static void say(int fd, const void *bytes, size_t count)
{
	/* The node may have hung up already. */
	for (size_t done = 0; done < count;) {
		ssize_t n = send(fd, (const char *)bytes + done, count - done, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		done += (size_t)n;
	}
}

/* The node serves a peer that it has, and one that comes now. */
static void check_service(struct pair *pair)
{
	struct pair_other fresh;
	struct pair_send send;

	pair_start(&fresh, pair->provider, NULL, pair->node);
	pair_do(&fresh, "send 1 k 100000 1");
	pair_received(pair_recv(pair->node, NULL, 1, "k"), 100000, 1);
	pair_do(&fresh, "finish");
	pair_end(&fresh);
	pair_do(&pair->other, "recv 1 k 1000 2");
	send = pair_send(pair->peer, 1, "k", 1000, 2);
	pair_sent(&send);
	pair_do(&pair->other, "finish");
}

/* What a real node says first when it dials. */
static size_t hear_a_hello(const char *provider, unsigned char *hello, size_t bytes)
{
	struct weft_node_options options = pair_options(provider);
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t in_bytes = sizeof(in);
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_op *op;
	char address[32];
	ssize_t n;

	need(door >= 0 && !bind(door, (struct sockaddr *)&in, in_bytes) && !listen(door, 1));
	need(!getsockname(door, (struct sockaddr *)&in, &in_bytes));
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(in.sin_port));
	need(!weft_node_open(&options, &node) && !weft_peer_open(node, address, &peer));
	need(!weft_ping(peer, NULL, &op));
	fd = accept(door, NULL, NULL);
	need(fd >= 0);
	n = recv(fd, hello, bytes, 0);
	need(n > 8);
	close(fd);
	close(door);
	weft_peer_close(peer);
	need(!weft_node_close(node));
	weft_op_free(op);
	return (size_t)n;
}

static void a_connection_that_does_not_speak_weft_is_hung_up_on(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	unsigned char bytes[4096], hello[4096];
	struct pair pair;
	size_t count;
	int fd;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	pair_ping(pair.peer);
	count = hear_a_hello(pair.provider, hello, sizeof(hello));

	/* Random bytes, from seeds so that a failure comes again. */
	for (uint64_t seed = 0; seed < 50; seed++) {
		fd = stranger(pair.node);
		pair_fill(bytes, sizeof(bytes), seed);
		say(fd, bytes, sizeof(bytes));
		assert_true(is_closed(fd, 2 * HELLO_LIMIT_MS));
		close(fd);
	}
	fd = stranger(pair.node);
	say(fd, http, strlen(http));
	assert_true(is_closed(fd, 2 * HELLO_LIMIT_MS));
	close(fd);

	/* A real hello, damaged in a place that differs. */
	for (size_t i = 0; i < 100; i++) {
		fd = stranger(pair.node);
		memcpy(bytes, hello, count);
		bytes[i * 7919 % count] ^= (unsigned char)(1 + i);
		say(fd, bytes, count);
		shutdown(fd, SHUT_WR);
		assert_true(is_closed(fd, 2 * HELLO_LIMIT_MS));
		close(fd);
	}
	check_service(&pair);
	pair_close(&pair);
}

static void a_connection_that_does_not_speak_weft_is_named_in_the_log(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct weft_node_options options = pair_options(pair_any());
	struct pair pair;

	(void)state;
	options.log = said_line;
	said_forget();
	pair_open(&pair, pair_any(), &options);
	for (int i = 0; i < 10; i++) {
		int fd = stranger(pair.node);

		say(fd, http, strlen(http));
		assert_true(is_closed(fd, 2 * HELLO_LIMIT_MS));
		close(fd);
	}
	assert_true(said_comes(" is kept out: 127.0.0.1:"));
	assert_true(said_has(" sent what is no message of weft's"));
	check_service(&pair);
	pair_close(&pair);
}

static void half_a_hello_is_hung_up_on_in_time(void **state)
{
	unsigned char hello[4096], longer[70000];
	struct pair pair;
	uint64_t began;
	size_t count;
	int half, mute;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	count = hear_a_hello(pair.provider, hello, sizeof(hello));
	began = pair_now_ns();
	half = stranger(pair.node);
	say(half, hello, count / 2);
	mute = stranger(pair.node);
	check_service(&pair);

	/* A head that promises more than there may be is not waited for. */
	memcpy(longer, hello, count);
	for (size_t at = 0; at < 8; at++) {
		int fd = stranger(pair.node);

		memset(longer + count, 'x', sizeof(longer) - count);
		memcpy(longer, hello, count);
		longer[at] = 0xff;
		say(fd, longer, sizeof(longer));
		assert_true(is_closed(fd, 2 * HELLO_LIMIT_MS));
		close(fd);
	}
	assert_true(is_closed(half, 2 * HELLO_LIMIT_MS));
	assert_true(is_closed(mute, 2 * HELLO_LIMIT_MS));
	assert_true(pair_now_ns() - began < 2 * HELLO_LIMIT_MS * PAIR_MS);
	close(half);
	close(mute);
	check_service(&pair);
	pair_close(&pair);
}

static void a_thousand_that_say_nothing_keep_nobody_out(void **state)
{
	struct rlimit limit;
	static int fds[SILENT_COUNT];
	struct pair pair;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < 2 * SILENT_COUNT + 200) {
		print_message("skip: fewer than %d descriptors are allowed\n",
			      2 * SILENT_COUNT + 200);
		skip();
	}
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	pair_open(&pair, pair_any(), NULL);
	pair_ping(pair.peer);
	for (size_t i = 0; i < SILENT_COUNT; i++)
		fds[i] = stranger(pair.node);
	check_service(&pair);
	for (size_t i = 0; i < SILENT_COUNT; i++)
		close(fds[i]);
	check_service(&pair);
	pair_close(&pair);
}

static void a_stranger_that_connects_and_leaves_again_and_again_is_borne(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	for (size_t i = 0; i < 2000; i++)
		close(stranger(pair.node));
	check_service(&pair);
	pair_close(&pair);
}

static const struct pair_command commands[] = { { NULL, NULL } };

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_connection_that_does_not_speak_weft_is_hung_up_on),
		TEST(a_connection_that_does_not_speak_weft_is_named_in_the_log),
		TEST(half_a_hello_is_hung_up_on_in_time),
		TEST(a_thousand_that_say_nothing_keep_nobody_out),
		TEST(a_stranger_that_connects_and_leaves_again_and_again_is_borne),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
