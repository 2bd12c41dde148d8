/* SPDX-License-Identifier: BSD-2-Clause */
/* The door over real loopback sockets: both sides in this process, polled in turn. */
#include "link/door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "secure/credentials.h"
#include "secure/key_file.h"
#include "secure/secret.h"
#include "tests/forbid.h"
#include "util/clock.h"

#define LIMIT_NS (10 * WF_NS_PER_S)
#define CROWD 1000

/* What one door has told. */
struct side {
	struct wf_door *door;
	struct wf_conn *conn; /* the last one opened or heard from */
	int connected, opened, messages, hellos, refused, closed;
	uint64_t next_number; /* beats must come as 0, 1, 2... */
	bool disordered, told_for_nobody;
	bool close_in_message, answer;
	struct wf_conn *victim; /* closed inside the next message of another */
	struct side *pass_to;   /* the next message's conn goes there */
	struct wf_conn *passed;
	struct wf_error error;
};

static struct wf_credentials *credentials; /* of doors opened from now on; NULL: no TLS */
static uint64_t leap_ns; /* how far the doors' time runs ahead of the clock */
static uint64_t stop_ns; /* the doors' time stands still here; 0: it goes on */

static uint64_t now_ns(void)
{
	return (stop_ns ? stop_ns : wf_clock_now()) + leap_ns;
}

static void on_connected(void *ctx, struct wf_conn *conn)
{
	struct side *s = ctx;

	s->connected++;
	if (!wf_conn_dialled(conn))
		s->told_for_nobody = true;
}

static void on_opened(void *ctx, struct wf_conn *conn)
{
	struct side *s = ctx;

	assert_true(s->connected > s->opened);
	s->opened++;
	s->conn = conn;
	if (!wf_conn_dialled(conn))
		s->told_for_nobody = true;
}

static void on_message(void *ctx, struct wf_conn *conn, const struct wf_greet *greet)
{
	struct side *s = ctx;

	s->messages++;
	s->conn = conn;
	if (greet->kind == WF_GREET_HELLO)
		s->hellos++;
	if (s->pass_to) {
		assert_int_equal(wf_door_pass(conn, s->pass_to->door, &s->passed), 0);
		return;
	}
	if (!wf_conn_owner(conn))
		wf_conn_adopt(conn, s);
	if (greet->kind == WF_GREET_BEAT && greet->beat.number != s->next_number++)
		s->disordered = true;
	if (s->answer && greet->kind == WF_GREET_BEAT)
		assert_int_equal(wf_conn_send(conn, greet), 0);
	if (s->close_in_message)
		wf_conn_close(conn);
	if (s->victim && s->victim != conn) {
		wf_conn_close(s->victim);
		s->victim = NULL;
	}
}

static void on_closed(void *ctx, struct wf_conn *conn, const struct wf_error *e)
{
	struct side *s = ctx;

	s->closed++;
	s->error = *e;
	if (wf_conn_owner(conn) != s)
		s->told_for_nobody = true;
}

static void on_refused(void *ctx, struct wf_conn *conn, const struct wf_error *e)
{
	struct side *s = ctx;

	s->refused++;
	s->error = *e;
	wf_conn_close(conn); /* it was left before anybody asked whose it is */
}

static const struct wf_door_events events = { on_connected, on_opened, on_message, on_refused,
					      on_closed };

static void open_side(struct side *s, const char *listen)
{
	struct wf_door_config config = {
		.listen = listen, .events = &events, .ctx = s, .credentials = credentials,
	};
	struct wf_error e = { 0 };

	*s = (struct side){ 0 };
	if (wf_door_open(&config, &s->door, &e))
		fail_msg("%s", e.text);
}

static void close_side(struct side *s)
{
	assert_false(s->told_for_nobody);
	wf_door_close(s->door);
}

static struct wf_conn *dial(struct side *from, const char *address)
{
	struct wf_conn *conn = NULL;
	struct wf_error e = { 0 };

	if (wf_door_dial(from->door, address, from, &conn, &e))
		fail_msg("%s", e.text);
	return conn;
}

static struct wf_greet hello(void)
{
	struct wf_greet greet = { .kind = WF_GREET_HELLO };

	greet.hello.wire_min = 1;
	greet.hello.wire_max = 1;
	memset(greet.hello.incarnation, 7, sizeof(greet.hello.incarnation));
	strcpy(greet.hello.name, "somebody");
	strcpy(greet.hello.address, "127.0.0.1:1");
	strcpy(greet.hello.security, "open");
	greet.hello.link = 1;
	greet.hello.token = 2;
	greet.hello.lost_ns = WF_NS_PER_S;
	greet.hello.record_bytes_max = 65536;
	return greet;
}

static struct wf_greet beat(uint64_t number)
{
	struct wf_greet greet = { .kind = WF_GREET_BEAT };

	greet.beat.number = number;
	return greet;
}

/* The longest message there is a plain way to make. */
static struct wf_greet refusal(void)
{
	struct wf_greet greet = { .kind = WF_GREET_REFUSE };

	memset(greet.refuse.text, 'x', sizeof(greet.refuse.text) - 1);
	return greet;
}

static void poll_once(struct side *a, struct side *b)
{
	struct pollfd fds[2] = { { wf_door_fd(a->door), POLLIN, 0 },
				 { b ? wf_door_fd(b->door) : -1, POLLIN, 0 } };

	(void)poll(fds, 2, 10);
	wf_door_poll(a->door, now_ns());
	if (b)
		wf_door_poll(b->door, now_ns());
}

/* Poll both until CONDITION holds. */
#define UNTIL(condition, a, b)                                                 \
	do {                                                                   \
		uint64_t limit_ns = wf_clock_now() + LIMIT_NS;                 \
		while (!(condition)) {                                         \
			if (wf_clock_now() > limit_ns)                         \
				fail_msg("never came: %s", #condition);        \
			poll_once(a, b);                                       \
		}                                                              \
	} while (0)

/* A plain socket to a door: what strangers are made of. */
static int knock(const struct side *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	char host[64];
	uint16_t port;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(wf_socket_split(wf_door_address(s->door), host, sizeof(host), &port, NULL),
			 0);
	at.sin_port = htons(port);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* A listener of plain sockets; its address in @address. */
static int plain_listener(char *address, size_t bytes, int backlog)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t at_bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;

	assert_true(fd >= 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	if (backlog)
		assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &at_bytes), 0);
	(void)snprintf(address, bytes, "127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

/* Has the other side of @fd ended it? */
static bool has_ended(int fd)
{
	char byte;
	ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);

	return !got || (got < 0 && errno != EAGAIN);
}

static void say(int fd, const void *bytes, size_t count)
{
	assert_int_equal(send(fd, bytes, count, MSG_NOSIGNAL), count);
}

/* Does a real peer still get through? */
static void assert_serves(struct side *server)
{
	struct wf_greet greet = hello();
	int hellos = server->hellos;
	struct side client;
	struct wf_conn *conn;

	open_side(&client, "127.0.0.1:0");
	conn = dial(&client, wf_door_address(server->door));
	assert_int_equal(wf_conn_send(conn, &greet), 0);
	UNTIL(server->hellos == hellos + 1, &client, server);
	close_side(&client);
}

static void addresses_are_split(void **state)
{
	static const struct {
		const char *address, *host;
		int err;
		unsigned port;
	} rows[] = {
		{ "node7:7000", "node7", 0, 7000 },
		{ "10.0.0.1:0", "10.0.0.1", 0, 0 },
		{ "[::1]:65535", "::1", 0, 65535 },
		{ "[fe80::1%eth0]:1", "fe80::1%eth0", 0, 1 },
		{ "", NULL, -EINVAL, 0 },
		{ "node7", NULL, -EINVAL, 0 },
		{ "node7:", NULL, -EINVAL, 0 },
		{ ":7000", NULL, -EINVAL, 0 },
		{ "::1:7000", NULL, -EINVAL, 0 },
		{ "[::1]", NULL, -EINVAL, 0 },
		{ "[::1]7000", NULL, -EINVAL, 0 },
		{ "[]:7000", NULL, -EINVAL, 0 },
		{ "[::1:7000", NULL, -EINVAL, 0 },
		{ "a:65536", NULL, -EINVAL, 0 },
		{ "a:4294967297", NULL, -EINVAL, 0 },
		{ "a:-1", NULL, -EINVAL, 0 },
		{ "a: 1", NULL, -EINVAL, 0 },
		{ "a:http", NULL, -EINVAL, 0 },
		{ "a-host-of-sixteen:1", NULL, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		struct wf_error e = { 0 };
		char host[16] = "untouched";
		uint16_t port = 99;
		int err = wf_socket_split(rows[i].address, host, sizeof(host), &port, &e);

		if (err != rows[i].err)
			fail_msg("\"%s\": %d", rows[i].address, err);
		assert_int_equal(port, err ? 99 : rows[i].port);
		assert_string_equal(host, err ? "untouched" : rows[i].host);
		assert_int_equal(!*e.text, !err);
	}
}

static void messages_come_whole_and_in_order_both_ways(void **state)
{
	struct side a, b;
	struct wf_conn *conn;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	open_side(&b, "127.0.0.1:0");
	b.answer = true;

	conn = dial(&a, wf_door_address(b.door));
	assert_ptr_equal(wf_conn_owner(conn), &a);
	for (uint64_t i = 0; i < 500; i++) {
		struct wf_greet greet = beat(i);

		assert_int_equal(wf_conn_send(conn, &greet), 0);
	}
	UNTIL(a.messages == 500, &a, &b);

	assert_int_equal(a.opened, 1);
	assert_int_equal(b.opened, 0);
	assert_int_equal(b.messages, 500);
	assert_false(a.disordered);
	assert_false(b.disordered);
	assert_false(wf_conn_dialled(b.conn));
	assert_int_equal(strncmp(wf_conn_remote(b.conn), "127.0.0.1:", 10), 0);
	close_side(&a);
	UNTIL(b.closed, &b, NULL);
	assert_non_null(strstr(b.error.text, "closed the connection"));
	close_side(&b);
}

static void closing_a_door_flushes_goodbyes(void **state)
{
	struct wf_greet greet = { .kind = WF_GREET_GOODBYE };
	struct side a, b;
	struct wf_conn *conn;

	(void)state;
	strcpy(greet.refuse.text, "done");
	open_side(&a, "127.0.0.1:0");
	open_side(&b, "127.0.0.1:0");
	conn = dial(&a, wf_door_address(b.door));
	UNTIL(a.opened, &a, &b);

	assert_int_equal(wf_conn_send(conn, &greet), 0);
	close_side(&a);

	UNTIL(b.closed, &b, NULL);
	assert_int_equal(b.messages, 1);
	close_side(&b);
}

static void closing_a_conn_lets_the_queue_leave_first(void **state)
{
	struct wf_greet greet = refusal();
	struct side a, b;
	struct wf_conn *conn;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	open_side(&b, "127.0.0.1:0");
	conn = dial(&a, wf_door_address(b.door));
	UNTIL(a.opened, &a, &b);

	/* B is not polled: what the kernel does not hold waits in the queue. */
	int sent = 0, err;

	while (!(err = wf_conn_send(conn, &greet)))
		sent++;
	assert_int_equal(err, -ENOBUFS);
	wf_conn_close(conn);

	UNTIL(b.closed, &a, &b);
	assert_int_equal(b.messages, sent);
	assert_int_equal(a.closed, 0);
	assert_int_equal(wf_door_next_ns(a.door), UINT64_MAX);
	close_side(&a);
	close_side(&b);
}

static void a_peer_that_does_not_read_delays_a_close_for_a_second(void **state)
{
	struct wf_greet greet = refusal();
	char address[64];
	int listener = plain_listener(address, sizeof(address), 1), fd;
	struct side a;
	struct wf_conn *conn;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	conn = dial(&a, address);
	UNTIL(a.opened, &a, NULL);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);

	while (!wf_conn_send(conn, &greet))
		;
	wf_conn_close(conn);
	wf_door_poll(a.door, 1000);
	assert_int_equal(wf_door_next_ns(a.door), 1000 + WF_NS_PER_S);
	wf_door_poll(a.door, 999 + WF_NS_PER_S);
	assert_int_equal(wf_door_next_ns(a.door), 1000 + WF_NS_PER_S);
	wf_door_poll(a.door, 1000 + WF_NS_PER_S);
	assert_int_equal(wf_door_next_ns(a.door), UINT64_MAX);

	assert_int_equal(a.closed, 0);
	close_side(&a);
	(void)close(fd);
	(void)close(listener);
}

static void a_connection_that_does_not_speak_weft_is_closed_at_once(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
	static const uint8_t long_one[] = { 'W', 'E', 'F', 'T', 0xff, 0xff, 0xff, 0x7f };
	static const uint8_t nearly[] = { 'W', 'E', 'F', 'U' };
	/* A whole prefix and body, but no message inside. */
	static const uint8_t junk[] = { 'W', 'E', 'F', 'T', 4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff };
	static const struct {
		const void *bytes;
		size_t count;
	} rows[] = {
		{ http, sizeof(http) - 1 }, { http, 1 }, { long_one, sizeof(long_one) },
		{ nearly, sizeof(nearly) }, { junk, sizeof(junk) }, { "", 1 },
	};
	struct side server;

	(void)state;
	open_side(&server, "127.0.0.1:0");
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		int fd = knock(&server);

		say(fd, rows[i].bytes, rows[i].count);
		UNTIL(has_ended(fd), &server, NULL);
		(void)close(fd);
	}
	assert_int_equal(server.messages, 0);
	assert_int_equal(server.closed, 0);
	assert_int_equal(server.refused, WF_COUNT(rows));
	assert_true(wf_door_is_garbage(server.error.code));
	assert_non_null(strstr(server.error.text, "127.0.0.1:"));
	assert_serves(&server);
	close_side(&server);
}

static void half_a_hello_has_five_seconds(void **state)
{
	struct wf_greet greet = hello();
	uint8_t bytes[WF_GREET_BYTES_MAX];
	int length = wf_greet_put(&greet, bytes);
	struct side server;
	int fd;

	(void)state;
	assert_true(length > 20);
	open_side(&server, "127.0.0.1:0");
	fd = knock(&server);
	say(fd, bytes, (size_t)length / 2);
	UNTIL(wf_door_next_ns(server.door) != UINT64_MAX, &server, NULL);

	leap_ns = WF_DOOR_STRANGER_NS / 2;
	poll_once(&server, NULL);
	assert_false(has_ended(fd));
	leap_ns = WF_DOOR_STRANGER_NS;
	UNTIL(has_ended(fd), &server, NULL);

	leap_ns = 0;
	assert_int_equal(server.messages, 0);
	assert_int_equal(wf_door_next_ns(server.door), UINT64_MAX);
	assert_serves(&server);
	(void)close(fd);
	close_side(&server);
}

static void a_hello_may_come_byte_by_byte_and_is_then_not_timed(void **state)
{
	struct wf_greet greet = hello();
	uint8_t bytes[WF_GREET_BYTES_MAX];
	int length = wf_greet_put(&greet, bytes);
	struct side server;
	int fd;

	(void)state;
	open_side(&server, "127.0.0.1:0");
	fd = knock(&server);
	for (int i = 0; i < length; i++) {
		assert_int_equal(server.hellos, 0);
		say(fd, bytes + i, 1);
		wf_door_poll(server.door, now_ns());
	}
	UNTIL(server.hellos == 1, &server, NULL);

	leap_ns = 2 * WF_DOOR_STRANGER_NS;
	poll_once(&server, NULL);
	leap_ns = 0;
	assert_false(has_ended(fd));
	assert_int_equal(server.closed, 0);
	(void)close(fd);
	UNTIL(server.closed, &server, NULL);
	close_side(&server);
}

static void a_thousand_silent_strangers_keep_nobody_out(void **state)
{
	struct rlimit limit;
	struct side server;
	int *fds = calloc(CROWD, sizeof(*fds)), open_count = 0;

	(void)state;
	assert_non_null(fds);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < CROWD + 200) {
		free(fds);
		skip();
	}
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);

	open_side(&server, "127.0.0.1:0");
	for (int i = 0; i < CROWD; i++)
		fds[i] = knock(&server);
	assert_serves(&server);

	for (int i = 0; i < CROWD; i++)
		open_count += !has_ended(fds[i]);
	/* The adopted client is none of them, so the table holds strangers only. */
	assert_true(open_count <= WF_DOOR_STRANGERS_MAX);
	for (int i = 0; i < CROWD; i++)
		(void)close(fds[i]);
	free(fds);
	close_side(&server);
}

/* From @source, an address of loopback. */
static int greet_from(const char *source, struct side *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct wf_greet greet = hello();
	uint8_t bytes[WF_GREET_BYTES_MAX];
	int length = wf_greet_put(&greet, bytes), hellos = s->hellos;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0 && length > 0);
	assert_int_equal(inet_pton(AF_INET, source, &at.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	at.sin_port = htons((uint16_t)strtoul(strrchr(wf_door_address(s->door), ':') + 1, NULL, 10));
	assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &at.sin_addr), 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	say(fd, bytes, (size_t)length);
	UNTIL(s->hellos > hellos, s, NULL);
	return fd;
}

/* Adopted, and their owner does not trust them yet. */
static void guests_are_few_and_the_most_frequent_source_gives_way_in_time(void **state)
{
	int honest, trusted, late, fds[WF_DOOR_GUESTS_MAX + 20];
	struct side server;
	int open_count = 0;
	size_t i = 0;

	(void)state;
	open_side(&server, "127.0.0.1:0");
	stop_ns = wf_clock_now();
	trusted = greet_from("127.0.0.2", &server);
	wf_conn_trust(server.conn);
	honest = greet_from("127.0.0.3", &server);
	while (i < WF_DOOR_GUESTS_MAX - 1)
		fds[i++] = greet_from("127.0.0.2", &server);

	/* The next one waits while all are young. */
	late = knock(&server);
	for (int poll = 0; poll < 100; poll++)
		poll_once(&server, NULL);
	assert_int_equal(server.closed, 0);
	assert_true(wf_door_next_ns(server.door) <= now_ns() + WF_DOOR_YOUNG_GUEST_NS);
	leap_ns = WF_DOOR_YOUNG_GUEST_NS;
	while (i < WF_COUNT(fds))
		fds[i++] = greet_from("127.0.0.2", &server);
	leap_ns = stop_ns = 0;
	(void)close(late);

	/* Whoever is closed is told, and the oldest of the source goes first. */
	assert_true(server.closed > 0);
	assert_int_equal(server.error.code, -ECONNABORTED);
	assert_false(has_ended(honest));
	assert_false(has_ended(trusted));
	for (i = 0; i < WF_COUNT(fds); i++) {
		bool ended = has_ended(fds[i]);

		open_count += !ended;
		if (i)
			assert_false(ended && !has_ended(fds[i - 1]));
	}
	assert_int_equal(open_count, WF_COUNT(fds) - (size_t)server.closed);
	assert_in_range(open_count, WF_DOOR_GUESTS_MAX - 2, WF_DOOR_GUESTS_MAX);
	(void)close(honest);
	(void)close(trusted);
	for (i = 0; i < WF_COUNT(fds); i++)
		(void)close(fds[i]);
	close_side(&server);
}

/* As the workers of a job come: some have greeted, and some have not yet. */
static void a_crowd_that_comes_at_the_same_time_waits_and_loses_nobody(void **state)
{
	struct wf_greet greet = hello();
	uint8_t bytes[WF_GREET_BYTES_MAX];
	int length = wf_greet_put(&greet, bytes), fds[2 * WF_DOOR_STRANGERS_MAX];
	struct side server;

	(void)state;
	assert_true(length > 0);
	open_side(&server, "127.0.0.1:0");
	stop_ns = wf_clock_now(); /* all stay young */
	for (size_t i = 0; i < WF_COUNT(fds); i++)
		fds[i] = knock(&server);
	for (int poll = 0; poll < 100; poll++)
		poll_once(&server, NULL);
	for (size_t i = 0; i < WF_COUNT(fds); i++)
		assert_false(has_ended(fds[i]));
	for (size_t i = 0; i < WF_COUNT(fds); i++)
		say(fds[i], bytes, (size_t)length);
	UNTIL(server.hellos == (int)WF_COUNT(fds), &server, NULL);
	stop_ns = 0;
	assert_int_equal(server.closed, 0);
	for (size_t i = 0; i < WF_COUNT(fds); i++) {
		assert_false(has_ended(fds[i]));
		(void)close(fds[i]);
	}
	close_side(&server);
}

/* The soft limit that leaves room for @more descriptors. */
static void leave_descriptors(rlim_t more)
{
	struct rlimit limit;
	int next = dup(0);

	assert_true(next >= 0);
	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)next + more;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void without_descriptors_the_oldest_stranger_goes(void **state)
{
	struct wf_greet greet = hello();
	uint8_t bytes[WF_GREET_BYTES_MAX];
	int length = wf_greet_put(&greet, bytes), fds[10];
	struct rlimit before;
	struct side server;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	open_side(&server, "127.0.0.1:0");
	for (size_t i = 0; i < WF_COUNT(fds); i++)
		fds[i] = knock(&server);
	say(fds[WF_COUNT(fds) - 1], bytes, (size_t)length);

	leave_descriptors(3);
	UNTIL(server.hellos == 1, &server, NULL);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(has_ended(fds[0]));
	assert_false(has_ended(fds[WF_COUNT(fds) - 1]));
	for (size_t i = 0; i < WF_COUNT(fds); i++)
		(void)close(fds[i]);
	close_side(&server);
}

static void without_descriptors_one_stranger_goes_for_one_that_comes(void **state)
{
	struct rlimit before;
	struct side server;
	int fds[3];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	open_side(&server, "127.0.0.1:0");
	assert_serves(&server);
	stop_ns = wf_clock_now(); /* no stranger's time is over, however long this takes */
	for (size_t i = 0; i < 2; i++)
		fds[i] = knock(&server);
	for (int poll = 0; poll < 100; poll++)
		poll_once(&server, NULL);
	fds[2] = knock(&server);

	leave_descriptors(0);
	UNTIL(has_ended(fds[0]), &server, NULL);
	stop_ns = 0;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < WF_COUNT(fds); i++) {
		assert_int_equal(has_ended(fds[i]), !i);
		(void)close(fds[i]);
	}
	close_side(&server);
}

static void without_any_descriptor_accepting_pauses(void **state)
{
	struct rlimit before;
	struct pollfd door;
	struct side server;
	uint64_t again_ns;
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	open_side(&server, "127.0.0.1:0");
	fd = knock(&server);
	door = (struct pollfd){ wf_door_fd(server.door), POLLIN, 0 };

	leave_descriptors(0);
	assert_int_equal(poll(&door, 1, 10000), 1);
	wf_door_poll(server.door, 1000);
	again_ns = wf_door_next_ns(server.door);
	assert_true(again_ns > 1000 && again_ns < 1000 + WF_NS_PER_S);
	/* Nor does it burn a core meanwhile. */
	assert_int_equal(poll(&door, 1, 0), 0);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	wf_door_poll(server.door, again_ns);
	wf_door_poll(server.door, again_ns);
	assert_int_equal(wf_door_next_ns(server.door), again_ns + WF_DOOR_STRANGER_NS);
	assert_serves(&server);
	(void)close(fd);
	close_side(&server);
}

static void a_process_that_may_not_accept_pauses(void **state)
{
	struct side server;
	int fd, status;
	pid_t child;

	(void)state;
	open_side(&server, "127.0.0.1:0");
	fd = knock(&server);
	child = fork();
	if (!child) {
		(void)alarm(LIMIT_NS / WF_NS_PER_S);
		if (!forbid(SYS_accept4))
			_exit(2);
		wf_door_poll(server.door, 1000);
		_exit(wf_door_next_ns(server.door) == 1000 + WF_SOCKET_ACCEPT_PAUSE_NS ? 0 : 1);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	(void)close(fd);
	close_side(&server);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(status, 0);
}

static void a_conn_may_be_closed_inside_its_message(void **state)
{
	struct side a, b;
	struct wf_conn *conn;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	open_side(&b, "127.0.0.1:0");
	b.close_in_message = true;
	conn = dial(&a, wf_door_address(b.door));
	for (uint64_t i = 0; i < 20; i++) {
		struct wf_greet greet = beat(i);

		assert_int_equal(wf_conn_send(conn, &greet), 0);
	}
	UNTIL(a.closed, &a, &b);

	assert_int_equal(b.messages, 1);
	assert_int_equal(b.closed, 0);
	close_side(&a);
	close_side(&b);
}

static void a_conn_may_be_closed_while_its_own_event_waits(void **state)
{
	struct wf_greet greet = hello();
	struct wf_conn *first, *second;
	struct pollfd door;
	struct side a, b;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	open_side(&b, "127.0.0.1:0");
	first = dial(&a, wf_door_address(b.door));
	assert_int_equal(wf_conn_send(first, &greet), 0);
	UNTIL(b.hellos == 1, &a, &b);
	b.victim = b.conn;
	second = dial(&a, wf_door_address(b.door));
	UNTIL(a.opened == 2, &a, NULL);

	/* Both speak before B looks again, so both stand in its next batch, in either order. */
	assert_int_equal(wf_conn_send(second, &greet), 0);
	assert_int_equal(wf_conn_send(first, &greet), 0);
	door = (struct pollfd){ wf_door_fd(b.door), POLLIN, 0 };
	assert_int_equal(poll(&door, 1, 10000), 1);
	UNTIL(a.closed == 1, &a, &b);

	assert_null(b.victim);
	assert_int_equal(b.closed, 0);
	close_side(&a);
	close_side(&b);
}

static void a_dial_may_be_given_up_while_its_outcome_waits(void **state)
{
	struct wf_greet greet = hello(), number = beat(0);
	struct side a, b;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	open_side(&b, "127.0.0.1:0");
	assert_int_equal(wf_conn_send(dial(&a, wf_door_address(b.door)), &greet), 0);
	UNTIL(b.hellos == 1, &a, &b);

	/* A's next batch holds a message, and then the dial that it gives up inside. */
	assert_int_equal(wf_conn_send(b.conn, &number), 0);
	a.victim = dial(&a, wf_door_address(b.door));
	UNTIL(a.messages == 1, &a, &b);

	assert_null(a.victim);
	assert_int_equal(a.closed, 0);
	close_side(&a);
	close_side(&b);
}

static void localhost_is_looked_up(void **state)
{
	struct side a, b;
	char address[64];

	(void)state;
	open_side(&a, "127.0.0.1:0");
	open_side(&b, "127.0.0.1:0");
	(void)snprintf(address, sizeof(address), "localhost%s",
		       strrchr(wf_door_address(b.door), ':'));

	(void)dial(&a, address);
	UNTIL(a.opened || a.closed, &a, &b);

	assert_string_equal(a.error.text, "");
	assert_int_equal(a.opened, 1);
	assert_string_equal(wf_conn_remote(a.conn), address);
	close_side(&a);
	close_side(&b);
}

static void a_name_that_is_nobodys_is_closed_with_a_sentence(void **state)
{
	struct side a;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	(void)dial(&a, "no..name:1"); /* malformed, so that no name server is asked */
	UNTIL(a.closed, &a, NULL);
	assert_int_equal(a.error.code, -EHOSTUNREACH);
	assert_non_null(strstr(a.error.text, "no..name"));
	close_side(&a);
}

static void a_dial_given_up_during_its_lookup_is_silent(void **state)
{
	struct side a;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	wf_conn_close(dial(&a, "localhost:1"));
	(void)dial(&a, "localhost:1"); /* the door's close gives this one up */
	close_side(&a);
	assert_int_equal(a.closed, 0);
}

static void a_refused_dial_is_closed_with_a_sentence(void **state)
{
	char address[64];
	int fd = plain_listener(address, sizeof(address), 0); /* bound, so nobody else has it */
	struct side a;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	(void)dial(&a, address);
	assert_int_equal(a.closed, 0);
	UNTIL(a.closed, &a, NULL);

	assert_int_equal(a.opened, 0);
	assert_int_equal(a.error.code, -ECONNREFUSED);
	assert_non_null(strstr(a.error.text, address));
	assert_non_null(strstr(a.error.text, "refused"));
	(void)close(fd);
	close_side(&a);
}

static void a_bad_address_is_refused_by_dial_itself(void **state)
{
	struct wf_error e = { 0 };
	struct wf_conn *conn = NULL;
	struct side a;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	assert_int_equal(wf_door_dial(a.door, "nowhere", &a, &conn, &e), -EINVAL);
	assert_null(conn);
	assert_non_null(strstr(e.text, "nowhere"));
	close_side(&a);
	assert_int_equal(a.closed, 0);
}

static void ipv6_works_where_there_is_one(void **state)
{
	struct wf_door_config config = { .listen = "[::1]:0", .events = &events };
	struct side a, b = { 0 };
	struct wf_error e = { 0 };

	(void)state;
	config.ctx = &b;
	if (wf_door_open(&config, &b.door, &e))
		skip();
	assert_int_equal(strncmp(wf_door_address(b.door), "[::1]:", 6), 0);
	open_side(&a, "127.0.0.1:0");
	(void)dial(&a, wf_door_address(b.door));
	UNTIL(a.opened, &a, &b);
	close_side(&a);
	close_side(&b);
}

static void beyond_loopback_must_be_said_by_name(void **state)
{
	struct wf_door_config config = { .listen = "0.0.0.0:0", .events = &events };
	struct wf_door *door = NULL;
	struct wf_error e = { 0 };

	(void)state;
	assert_int_equal(wf_door_open(&config, &door, &e), -EACCES);
	assert_null(door);
	assert_non_null(strstr(e.text, "WEFT_SECURITY=open"));

	config.beyond_loopback = true;
	assert_int_equal(wf_door_open(&config, &door, &e), 0);
	wf_door_close(door);
}

static void a_port_has_one_door(void **state)
{
	struct side a;
	struct wf_door_config config = { .events = &events };
	struct wf_door *door = NULL;
	struct wf_error e = { 0 };

	(void)state;
	open_side(&a, "127.0.0.1:0");
	config.listen = wf_door_address(a.door);
	assert_int_equal(wf_door_open(&config, &door, &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, config.listen));
	close_side(&a);
}

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void a_forked_child_closes_its_copies_alone(void **state)
{
	struct side a, b;
	struct wf_conn *conn;
	struct wf_greet greet = beat(0);
	int status;
	pid_t child;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	open_side(&b, "127.0.0.1:0");
	conn = dial(&a, wf_door_address(b.door));
	UNTIL(a.opened, &a, &b);

	child = fork();
	if (!child) {
		int before = open_descriptors();

		wf_door_forked(a.door);
		/* The set, the listener, the connection, and what the kernel is asked by. */
		_exit(fcntl(wf_door_fd(a.door), F_GETFD) < 0 &&
		      open_descriptors() == before - 4 ? 0 : 1);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);

	assert_int_equal(wf_conn_send(conn, &greet), 0);
	UNTIL(b.messages == 1, &a, &b);
	assert_serves(&a);
	close_side(&a);
	close_side(&b);
}

static void a_forked_child_that_keeps_its_copies_does_no_harm(void **state)
{
	struct wf_greet greet = hello();
	struct side a, b;
	struct wf_conn *conn;
	int end[2];
	pid_t child;
	char byte;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	open_side(&b, "127.0.0.1:0");
	conn = dial(&a, wf_door_address(b.door));
	assert_int_equal(wf_conn_send(conn, &greet), 0);
	UNTIL(b.hellos == 1, &a, &b);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		(void)close(end[1]);
		_exit((int)read(end[0], &byte, 1));
	}
	assert_true(child > 0);

	wf_conn_close(conn);
	UNTIL(b.closed, &a, &b);
	for (int i = 0; i < 3; i++)
		poll_once(&a, &b);

	assert_int_equal(a.closed, 0);
	close_side(&a);
	close_side(&b);
	(void)close(end[1]);
	(void)close(end[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static struct wf_credentials *new_key(void)
{
	struct wf_credentials_files files = { 0 };
	struct wf_credentials *fresh;
	struct wf_error e = { 0 };
	char path[64];

	(void)snprintf(path, sizeof(path), "/tmp/weft-door-key.%ld", (long)getpid());
	(void)unlink(path);
	files.key_file = path;
	if (wf_key_file_make(path, &e) || wf_credentials_open(&files, &fresh, &e))
		fail_msg("%s", e.text);
	(void)unlink(path);
	return fresh;
}

static int with_key(void **state)
{
	(void)state;
	credentials = new_key();
	return 0;
}

static int without_key(void **state)
{
	(void)state;
	wf_credentials_put(credentials);
	credentials = NULL;
	return 0;
}

/* Read all that the door sends to @fd until it ends the connection.  Returns how much. */
static ssize_t hear(struct side *s, int fd, uint8_t *bytes, size_t room)
{
	ssize_t got, all = 0;

	for (uint64_t limit_ns = wf_clock_now() + LIMIT_NS;;) {
		got = recv(fd, bytes + all, room - (size_t)all, MSG_DONTWAIT);
		if (got == 0 || (got < 0 && errno == ECONNRESET))
			return all;
		all += got > 0 ? got : 0;
		if (wf_clock_now() > limit_ns)
			fail_msg("the door does not end the connection");
		poll_once(s, NULL);
	}
}

static void a_stranger_without_the_key_hears_an_alert_alone(void **state)
{
	struct wf_greet greet = hello();
	uint8_t bytes[WF_GREET_BYTES_MAX], heard[4096];
	static const uint8_t alert[] = { 21, 3, 3, 0, 2, 2, 70 };
	struct side s;
	int fd;

	(void)state;
	open_side(&s, "127.0.0.1:0");
	fd = knock(&s);
	say(fd, bytes, (size_t)wf_greet_put(&greet, bytes));
	assert_int_equal(hear(&s, fd, heard, sizeof(heard)), sizeof(alert));
	assert_memory_equal(heard, alert, sizeof(alert));
	assert_int_equal(s.messages, 0);
	assert_serves(&s);
	close(fd);
	close_side(&s);
}

static void a_stranger_that_is_silent_is_told_nothing_and_has_five_seconds(void **state)
{
	uint8_t heard[16];
	struct side s;
	int fd;

	(void)state;
	open_side(&s, "127.0.0.1:0");
	fd = knock(&s);
	for (int i = 0; i < 20; i++)
		poll_once(&s, NULL);
	assert_false(has_ended(fd));
	leap_ns += WF_DOOR_STRANGER_NS;
	assert_int_equal(hear(&s, fd, heard, sizeof(heard)), 0);
	close(fd);
	close_side(&s);
}

/* A queue that waits for the end of a handshake is no reason to look at the socket all the time. */
static void a_dial_sleeps_while_the_peer_is_silent_in_the_handshake(void **state)
{
	struct wf_greet greet = hello();
	char address[64];
	struct pollfd door;
	struct wf_conn *conn;
	struct side s;
	int fd;

	(void)state;
	fd = plain_listener(address, sizeof(address), 1);
	open_side(&s, "127.0.0.1:0");
	conn = dial(&s, address);
	assert_int_equal(wf_conn_send(conn, &greet), 0);
	UNTIL(s.connected, &s, NULL);
	door = (struct pollfd){ wf_door_fd(s.door), POLLIN, 0 };
	for (int i = 0; i < 3; i++)
		wf_door_poll(s.door, now_ns());
	assert_int_equal(poll(&door, 1, 0), 0);
	close(fd);
	close_side(&s);
}

/* Dial @b from @a, which fails.  The error is @a's then. */
static void dial_in_vain(struct side *a, struct side *b)
{
	struct wf_greet greet = hello();
	struct wf_conn *conn = dial(a, wf_door_address(b->door));

	assert_int_equal(wf_conn_send(conn, &greet), 0);
	UNTIL(a->closed, a, b);
	assert_int_equal(a->opened + a->messages + b->messages, 0);
}

static void two_keys_part_with_a_sentence(void **state)
{
	struct wf_credentials *ours = credentials;
	struct side a, b;

	(void)state;
	open_side(&b, "127.0.0.1:0");
	credentials = new_key();
	open_side(&a, "127.0.0.1:0");
	dial_in_vain(&a, &b);
	assert_int_equal(a.error.code, -EKEYREJECTED);
	assert_non_null(strstr(a.error.text, "another key"));
	wf_credentials_put(credentials);
	credentials = ours;
	close_side(&a);
	close_side(&b);
}

static void a_node_without_a_key_hears_why_the_door_closes(void **state)
{
	struct wf_credentials *theirs = credentials;
	struct wf_greet greet = hello();
	struct side a, b;
	struct wf_conn *conn;

	(void)state;
	open_side(&b, "127.0.0.1:0");
	credentials = NULL;
	open_side(&a, "127.0.0.1:0");
	credentials = theirs;
	conn = dial(&a, wf_door_address(b.door));
	assert_int_equal(wf_conn_send(conn, &greet), 0);
	UNTIL(a.closed, &a, &b);
	assert_int_equal(b.messages, 0);
	assert_non_null(strstr(a.error.text, "has a key or certificate"));
	close_side(&a);
	close_side(&b);
}

static void a_dial_to_a_node_without_a_key_says_nothing(void **state)
{
	struct wf_credentials *ours = credentials;
	struct side a, b;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	credentials = NULL;
	open_side(&b, "127.0.0.1:0");
	credentials = ours;
	dial_in_vain(&a, &b);
	assert_non_null(strstr(a.error.text, "TLS handshake"));
	close_side(&a);
	close_side(&b);
}

static void a_conn_has_one_secret_and_identity_at_both_ends(void **state)
{
	struct wf_greet greet = hello();
	struct wf_secret ours, theirs;
	struct side a, b;
	struct wf_conn *conn;

	(void)state;
	open_side(&a, "127.0.0.1:0");
	open_side(&b, "127.0.0.1:0");
	conn = dial(&a, wf_door_address(b.door));
	assert_int_equal(wf_conn_send(conn, &greet), 0);
	UNTIL(b.hellos, &a, &b);
	assert_int_equal(wf_conn_secret(conn, "EXPORTER-test", &ours), 0);
	assert_int_equal(wf_conn_secret(b.conn, "EXPORTER-test", &theirs), 0);
	assert_memory_equal(ours.bytes, theirs.bytes, sizeof(ours.bytes));
	assert_string_equal(wf_conn_identity(conn), wf_conn_identity(b.conn));
	assert_int_equal(strncmp(wf_conn_identity(conn), "key:", 4), 0);
	close_side(&a);
	close_side(&b);
}

static void messages_behind_a_hello_follow_it_to_another_door(void **state)
{
	struct side client, server, other;
	struct wf_greet greet = hello();
	struct wf_conn *conn;

	(void)state;
	open_side(&client, NULL);
	open_side(&server, "127.0.0.1:0");
	open_side(&other, NULL);
	server.pass_to = &other;
	conn = dial(&client, wf_door_address(server.door));
	/* All wait for the handshake, and come at once after it. */
	assert_int_equal(wf_conn_send(conn, &greet), 0);
	for (uint64_t i = 0; i < 3; i++) {
		greet = beat(i);
		assert_int_equal(wf_conn_send(conn, &greet), 0);
	}
	UNTIL(server.passed, &client, &server);
	wf_door_take(server.passed, now_ns());
	UNTIL(other.messages == 3, &other, NULL);
	assert_int_equal(server.messages, 1);
	assert_false(other.disordered);
	close_side(&client);
	close_side(&other);
	close_side(&server);
}

#define WITH_KEY(test) \
	{ #test " with a key", test, with_key, without_key, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_split),
		cmocka_unit_test(messages_come_whole_and_in_order_both_ways),
		cmocka_unit_test(closing_a_door_flushes_goodbyes),
		cmocka_unit_test(closing_a_conn_lets_the_queue_leave_first),
		cmocka_unit_test(a_peer_that_does_not_read_delays_a_close_for_a_second),
		cmocka_unit_test(a_connection_that_does_not_speak_weft_is_closed_at_once),
		cmocka_unit_test(half_a_hello_has_five_seconds),
		cmocka_unit_test(a_hello_may_come_byte_by_byte_and_is_then_not_timed),
		cmocka_unit_test(a_thousand_silent_strangers_keep_nobody_out),
		cmocka_unit_test(guests_are_few_and_the_most_frequent_source_gives_way_in_time),
		cmocka_unit_test(a_crowd_that_comes_at_the_same_time_waits_and_loses_nobody),
		cmocka_unit_test(without_descriptors_the_oldest_stranger_goes),
		cmocka_unit_test(without_descriptors_one_stranger_goes_for_one_that_comes),
		cmocka_unit_test(without_any_descriptor_accepting_pauses),
		cmocka_unit_test(a_process_that_may_not_accept_pauses),
		cmocka_unit_test(a_conn_may_be_closed_inside_its_message),
		cmocka_unit_test(a_conn_may_be_closed_while_its_own_event_waits),
		cmocka_unit_test(a_dial_may_be_given_up_while_its_outcome_waits),
		cmocka_unit_test(localhost_is_looked_up),
		cmocka_unit_test(a_name_that_is_nobodys_is_closed_with_a_sentence),
		cmocka_unit_test(a_dial_given_up_during_its_lookup_is_silent),
		cmocka_unit_test(a_refused_dial_is_closed_with_a_sentence),
		cmocka_unit_test(a_bad_address_is_refused_by_dial_itself),
		cmocka_unit_test(ipv6_works_where_there_is_one),
		cmocka_unit_test(beyond_loopback_must_be_said_by_name),
		cmocka_unit_test(a_port_has_one_door),
		cmocka_unit_test(messages_behind_a_hello_follow_it_to_another_door),
		cmocka_unit_test(a_forked_child_closes_its_copies_alone),
		cmocka_unit_test(a_forked_child_that_keeps_its_copies_does_no_harm),
		WITH_KEY(messages_come_whole_and_in_order_both_ways),
		WITH_KEY(closing_a_door_flushes_goodbyes),
		WITH_KEY(closing_a_conn_lets_the_queue_leave_first),
		WITH_KEY(a_thousand_silent_strangers_keep_nobody_out),
		WITH_KEY(a_conn_may_be_closed_inside_its_message),
		WITH_KEY(a_dial_may_be_given_up_while_its_outcome_waits),
		WITH_KEY(localhost_is_looked_up),
		WITH_KEY(a_refused_dial_is_closed_with_a_sentence),
		WITH_KEY(a_stranger_without_the_key_hears_an_alert_alone),
		WITH_KEY(a_stranger_that_is_silent_is_told_nothing_and_has_five_seconds),
		WITH_KEY(a_dial_sleeps_while_the_peer_is_silent_in_the_handshake),
		WITH_KEY(two_keys_part_with_a_sentence),
		WITH_KEY(a_node_without_a_key_hears_why_the_door_closes),
		WITH_KEY(a_dial_to_a_node_without_a_key_says_nothing),
		WITH_KEY(a_conn_has_one_secret_and_identity_at_both_ends),
		WITH_KEY(messages_behind_a_hello_follow_it_to_another_door),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
