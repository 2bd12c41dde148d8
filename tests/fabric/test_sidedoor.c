/* SPDX-License-Identifier: BSD-2-Clause */
/* A node's side door, and who comes there with what: spoken by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>

#include "util/clock.h"
#include "util/random.h"
#include "wire/frame.h"
#include "wire/greet.h"
#include "wire/side.h"

#define LIMIT_MS 20000
#define LIMIT_NS 20000000000ull
#define OTHER_UID 65534
#define CROWD 300
#define FDS_MAX 32

static struct weft_node *node;
static struct wf_greet_hello mine, theirs; /* ours by hand, and the node's answer */
static int door;                     /* ours to its door */
static enum weft_mode mode;          /* of the node */

static struct weft_node *open_node(void)
{
	struct weft_node_options options = { .size = sizeof(options), .provider = "shm,tcp",
					     .mode = mode };
	struct weft_node *fresh;

	if (weft_node_open(&options, &fresh)) {
		fprintf(stderr, "%s\n", weft_error());
		abort();
	}
	return fresh;
}

static bool is_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;

	while (mode == WEFT_MANUAL && poll(&p, 1, 0) < 1 && wf_clock_now() < until_ns)
		assert_true(weft_poll(node, WF_NS_PER_MS) >= 0);
	return poll(&p, 1, mode == WEFT_MANUAL ? 0 : LIMIT_MS) == 1;
}

static void read_all(int fd, uint8_t *bytes, size_t count)
{
	while (count) {
		ssize_t got;

		assert_true(is_ready(fd));
		got = recv(fd, bytes, count, 0);
		assert_true(got > 0);
		bytes += got;
		count -= (size_t)got;
	}
}

/* Dial the node's door and greet it. */
static void greet(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct wf_greet out = { .kind = WF_GREET_HELLO }, in;
	const char *port = strrchr(weft_node_address(node), ':') + 1;
	uint8_t bytes[WF_GREET_BYTES_MAX];
	struct wf_error e = { 0 };
	int length;

	out.hello = (struct wf_greet_hello){ .wire_min = WF_WIRE_VERSION,
					     .wire_max = WF_WIRE_VERSION,
					     .link = 17,
					     .lost_ns = LIMIT_NS,
					     .record_bytes_max = 65536 };
	out.hello.token = wf_random_u64();
	wf_random_fill(out.hello.incarnation, sizeof(out.hello.incarnation));
	mine = out.hello;
	at.sin_port = htons((uint16_t)atoi(port));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(door, (struct sockaddr *)&at, sizeof(at)), 0);
	length = wf_greet_put(&out, bytes);
	assert_int_equal(send(door, bytes, (size_t)length, 0), length);
	read_all(door, bytes, WF_GREET_PREFIX_BYTES);
	length = wf_greet_length(bytes, WF_GREET_PREFIX_BYTES);
	assert_true(length > 0);
	read_all(door, bytes + WF_GREET_PREFIX_BYTES, (size_t)length - WF_GREET_PREFIX_BYTES);
	if (wf_greet_get(bytes, (size_t)length, &in, &e))
		fail_msg("%s", e.text);
	assert_int_equal(in.kind, WF_GREET_HELLO);
	theirs = in.hello;
}

static int begin(void **state)
{
	(void)state;
	node = open_node();
	greet();
	return 0;
}

static int begin_manual(void **state)
{
	mode = WEFT_MANUAL;
	return begin(state);
}

static int end(void **state)
{
	(void)state;
	(void)close(door);
	weft_node_close(node);
	mode = WEFT_THREADED;
	return 0;
}

static struct sockaddr_un side_address(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "/dev/shm/weft.%016" PRIx64 ".door",
		       theirs.side);
	return at;
}

static int new_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static int come_with(int fd)
{
	struct sockaddr_un at = side_address();

	return connect(fd, (struct sockaddr *)&at, sizeof(at)) ? -errno : fd;
}

/* A descriptor, or a negative code. */
static int come(void)
{
	return come_with(new_socket());
}

/* Who says everything as it is. */
static struct wf_side_packet meet(void)
{
	return (struct wf_side_packet){ .kind = WF_SIDE_MEET, .link = mine.link,
					.token = mine.token, .peer_link = theirs.link,
					.peer_token = theirs.token };
}

static void say(int fd, const struct wf_side_packet *packet)
{
	uint8_t bytes[WF_SIDE_BYTES_MAX];
	size_t count = wf_side_put(packet, bytes);

	(void)!send(fd, bytes, count, MSG_NOSIGNAL);
}

/* Does the node close @fd without a word? */
static bool is_let_go(int fd)
{
	uint8_t byte;
	bool gone = is_ready(fd) && recv(fd, &byte, 1, 0) <= 0;

	(void)close(fd);
	return gone;
}

static void a_hello_says_nothing_of_its_host(void **state)
{
	bool any = false;

	(void)state;
	for (uint32_t i = 0; i < theirs.rail_count; i++) {
		if (!theirs.rails[i].same_host)
			continue;
		any = true;
		assert_int_equal(theirs.rails[i].address_bytes, 0);
	}
	if (!any) {
		print_message("skip: there is no same-host rail\n");
		skip();
	}
	assert_true(theirs.side);
}

static void a_stranger_that_proves_to_be_the_peer_is_answered(void **state)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} room;
	uint8_t bytes[WF_SIDE_BYTES_MAX];
	struct iovec part = { bytes, sizeof(bytes) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &room,
				  .msg_controllen = sizeof(room) };
	struct wf_side_packet packet = meet();
	int fd = come(), fds[FDS_MAX];
	unsigned count;
	ssize_t got;

	(void)state;
	say(fd, &packet);
	assert_true(is_ready(fd));
	got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	assert_true(got > 0);
	assert_int_equal(wf_side_get(bytes, (size_t)got, &packet, NULL), 0);
	assert_int_equal(packet.kind, WF_SIDE_MEET);
	assert_int_equal(packet.token, theirs.token);
	assert_int_equal(packet.peer_token, mine.token);
	count = wf_side_fds(&packet);
	assert_in_range(count, 1, FDS_MAX);
	assert_int_equal(room.head.cmsg_len, CMSG_LEN(count * sizeof(int)));
	memcpy(fds, CMSG_DATA(&room.head), count * sizeof(int));
	while (count)
		assert_int_equal(close(fds[--count]), 0);
	(void)close(fd);
}

static void a_stranger_without_the_tokens_is_let_go(void **state)
{
	struct wf_side_packet wrong[6];
	int fd;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wrong); i++)
		wrong[i] = meet();
	wrong[0].link++;
	wrong[1].token++;
	wrong[2].peer_link++;
	wrong[3].peer_token++;
	wrong[4].kind = WF_SIDE_RAILS;
	wrong[5].bell = true; /* and no descriptor comes */
	for (size_t i = 0; i < WF_COUNT(wrong); i++) {
		fd = come();
		assert_true(fd >= 0);
		say(fd, &wrong[i]);
		assert_true(is_let_go(fd));
	}
	fd = come();
	assert_int_equal(send(fd, "hello", 5, 0), 5);
	assert_true(is_let_go(fd));
}

static void descriptors_of_an_empty_packet_are_closed(void **state)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} room = { 0 };
	struct msghdr message = { .msg_control = &room, .msg_controllen = sizeof(room) };
	int line[2], fd = come();
	char byte;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pipe2(line, O_CLOEXEC), 0);
	room.head.cmsg_level = SOL_SOCKET;
	room.head.cmsg_type = SCM_RIGHTS;
	room.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&room.head), &line[1], sizeof(int));
	assert_int_equal(sendmsg(fd, &message, MSG_NOSIGNAL), 0);
	(void)close(line[1]);
	assert_true(is_let_go(fd));
	/* The line ends with the last copy of the descriptor. */
	assert_int_equal(fcntl(line[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(read(line[0], &byte, 1), 0);
	(void)close(line[0]);
}

static void another_user_is_let_go_unheard(void **state)
{
	struct sockaddr_un at = side_address();
	struct wf_side_packet packet = meet();
	int status;
	pid_t child;

	(void)state;
	if (geteuid()) {
		print_message("skip: only root can be another user\n");
		skip();
	}
	for (unsigned open = 0; open < 2; open++) {
		/* Even where the file lets it in. */
		assert_int_equal(chmod(at.sun_path, open ? 0666 : 0600), 0);
		(void)fflush(NULL);
		child = fork();
		if (!child) {
			int fd;

			if (setgid(OTHER_UID) || setuid(OTHER_UID))
				_exit(1);
			fd = come();
			if (!open)
				_exit(fd == -EACCES ? 0 : 2);
			say(fd, &packet);
			_exit(fd >= 0 && is_let_go(fd) ? 0 : 3);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/* Another process, which reaches @address by shared memory and by nothing else. */
static int reach(const char *address)
{
	struct weft_node_options options = { .size = sizeof(options), .provider = "shm" };
	struct weft_op_options op_options = { .size = sizeof(op_options), .timeout_ns = LIMIT_NS };
	struct weft_node *here;
	struct weft_peer *peer;
	struct weft_op *op;

	if (weft_node_open(&options, &here) || weft_peer_open(here, address, &peer) ||
	    weft_ping(peer, &op_options, &op) || weft_wait(op, LIMIT_NS))
		return 1;
	if (weft_op_status(op) != WEFT_OK) {
		fprintf(stderr, "%s\n", weft_op_message(op));
		return 2;
	}
	weft_op_free(op);
	weft_peer_close(peer);
	weft_node_close(here);
	return 0;
}

static void a_silent_crowd_keeps_nobody_out(void **state)
{
	static int crowd[CROWD];
	char address[96];
	int line[2], status;
	pid_t child;

	(void)state;
	/* Before this process has a node. */
	assert_int_equal(pipe(line), 0);
	(void)fflush(NULL);
	child = fork();
	if (!child)
		_exit(read(line[0], address, sizeof(address)) == sizeof(address) ? reach(address)
										 : 3);
	(void)begin(state);
	snprintf(address, sizeof(address), "%s", weft_node_address(node));
	for (unsigned i = 0; i < CROWD; i++)
		crowd[i] = come();
	assert_int_equal(write(line[1], address, sizeof(address)), sizeof(address));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* The first of them had to make room. */
	assert_true(crowd[0] >= 0 && is_let_go(crowd[0]));
	for (unsigned i = 1; i < CROWD; i++)
		(void)close(crowd[i]);
	(void)end(state);
	(void)close(line[0]);
	(void)close(line[1]);
}

/* Leave this process no descriptor; the limit that was before is put back by setrlimit(). */
static struct rlimit leave_no_descriptor(void)
{
	int next = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	struct rlimit before, low;

	assert_true(next >= 0);
	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	return before;
}

/* Has the node nothing to do, as it says itself, some time within the limit? */
static bool comes_to_rest(void)
{
	struct pollfd p = { .fd = weft_fd(node), .events = POLLIN };
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;

	while (wf_clock_now() < until_ns) {
		if (!weft_arm(node, NULL) && !poll(&p, 1, 1))
			return true;
		assert_true(weft_poll(node, 0) >= 0);
	}
	return false;
}

static void without_descriptors_a_node_rests_and_the_stranger_waits(void **state)
{
	struct rlimit before;
	uint8_t byte;
	bool rests;
	int fd;

	(void)state;
	/* A link that ended later would give its descriptors back. */
	(void)close(door);
	assert_true(comes_to_rest());
	fd = door = new_socket();
	before = leave_no_descriptor();
	assert_int_equal(come_with(fd), fd);
	rests = comes_to_rest();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(rests);
	assert_int_equal(send(fd, "hello", 5, 0), 5);
	assert_true(is_ready(fd));
	assert_true(recv(fd, &byte, 1, 0) <= 0);
}

static void without_descriptors_the_oldest_stranger_goes(void **state)
{
	struct rlimit before;
	bool oldest_goes;
	int fds[3];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(fds); i++)
		fds[i] = i + 1 < WF_COUNT(fds) ? come() : new_socket();
	assert_true(comes_to_rest());
	before = leave_no_descriptor();
	assert_int_equal(come_with(fds[2]), fds[2]);
	oldest_goes = is_let_go(fds[0]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(oldest_goes);
	for (size_t i = 1; i < WF_COUNT(fds); i++) {
		assert_int_equal(send(fds[i], "hello", 5, 0), 5);
		assert_true(is_let_go(fds[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_crowd_keeps_nobody_out),
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
		TEST(a_hello_says_nothing_of_its_host),
		TEST(a_stranger_that_proves_to_be_the_peer_is_answered),
		TEST(a_stranger_without_the_tokens_is_let_go),
		TEST(descriptors_of_an_empty_packet_are_closed),
		TEST(another_user_is_let_go_unheard),
#define MANUAL(f) cmocka_unit_test_setup_teardown(f, begin_manual, end)
		MANUAL(without_descriptors_a_node_rests_and_the_stranger_waits),
		MANUAL(without_descriptors_the_oldest_stranger_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
