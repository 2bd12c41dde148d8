/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libfabric's providers really do, and that nodes survive it: each test
 * here is one line of "What they do" in weft_providers(7), over every provider
 * that this host has.  Other lines are in test_faults, test_rail and test_fork.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"

/*
 * Two rows that this program may change: it defines what else would come out
 * of the library's archive.
 */
#define wf_provider_shm shm_as_it_is
#define wf_provider_tcp tcp_as_it_is
#include "fabric/gate.h"
#include "providers/shm.c"
#include "providers/tcp.c"
#undef wf_provider_shm
#undef wf_provider_tcp
struct wf_provider wf_provider_shm, wf_provider_tcp;

#define SHORT_FRAMES "TRUTHS_FRAME_BYTES" /* in the environment: length of this process's frames */
#define BODY (64 * MIB)                   /* so long that what follows comes in the middle */
#define LOST "60s"                        /* longer than any process is stopped here */

static void make_rows(void)
{
	const char *frames = getenv(SHORT_FRAMES);

	wf_provider_shm = shm_as_it_is;
	wf_provider_tcp = tcp_as_it_is;
	if (frames)
		wf_provider_shm.frame_bytes = wf_provider_tcp.frame_bytes = (size_t)atol(frames);
}

/* What the other side does beside send and recv. */

/* BODY bytes: begin to receive them, and reply when the first have come. */
static void do_read(struct pair *side, char *arguments)
{
	/* Until the process ends, or reads again in another node. */
	static struct weft_op *op;
	static char *bytes;
	int64_t count = (int64_t)BODY;
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;
	struct weft_tensor into;

	(void)arguments;
	weft_op_free(op);
	free(bytes);
	bytes = malloc(BODY);
	need(bytes != NULL);
	memset(bytes, 0x55, BODY);
	into = pair_tensor(bytes, &count);
	need(!weft_recv(side->node, NULL, 1, "body", 4, &into, NULL, &op));
	while (pair_peek(bytes) == 0x55)
		need(pair_now_ns() < until);
}

/* COUNT ADDRESS: send as many, and close the node when the last is reported as sent. */
static void do_send_and_close(struct pair *side, char *arguments)
{
	struct pair_send sends[512];
	struct weft_peer *peer;
	char address[96];
	unsigned count;

	need(sscanf(arguments, "%u %95s", &count, address) == 2 && count <= PAIR_COUNT(sends));
	need(!weft_peer_open(side->node, address, &peer));
	for (unsigned i = 0; i < count; i++)
		sends[i] = pair_send(peer, 3, "last", 100, i);
	for (unsigned i = 0; i < count; i++)
		pair_sent(&sends[i]);
	weft_peer_close(peer);
	need(!weft_node_close(side->node));
	side->node = NULL;
}

/* ADDRESS MS: reach it within that time; the reply is the outcome's name. */
static void do_reach(struct pair *side, char *arguments)
{
	struct weft_op_options options = { .size = sizeof(options) };
	struct weft_peer *peer;
	struct weft_op *op;
	char address[96];
	unsigned ms;

	need(sscanf(arguments, "%95s %u", address, &ms) == 2);
	options.timeout_ns = ms * PAIR_MS;
	need(!weft_peer_open(side->node, address, &peer));
	need(!weft_ping(peer, &options, &op));
	need(!weft_wait(op, PAIR_LIMIT_NS));
	snprintf(side->reply, sizeof(side->reply), "%s", weft_status_name(weft_op_status(op)));
	weft_op_free(op);
	weft_peer_close(peer);
}

/* STEP: receive one body, and let it end as it may. */
static void do_take(struct pair *side, char *arguments)
{
	const struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = 1000 * PAIR_MS }
	};
	struct weft_op *op;

	need(!weft_recv(side->node, NULL, strtoull(arguments, NULL, 10), "offer", 5, NULL,
			&options, &op));
	need(!weft_wait(op, PAIR_LIMIT_NS));
	weft_op_free(op);
}

static uint64_t losses(struct weft_node *node)
{
	struct weft_counters counters = { .size = sizeof(counters) };

	need(!weft_node_counters(node, &counters));
	return counters.peers_lost;
}

/* Sends to who takes nothing. */

static void sends_to_a_stopped_peer_end_at_their_deadlines(void **state)
{
	enum { COUNT = 3000 }; /* more than slots, credits and queues hold */
	const uint64_t timeout_ns = 500 * PAIR_MS;
	const struct weft_send_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = timeout_ns }
	};
	static char bytes[1000000];
	static struct weft_op *ops[COUNT];
	unsigned refused;
	struct pair pair;
	uint64_t began;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		refused = 0;
		pair_open(&pair, at, NULL);
		pair_exchange(&pair, &pair.other);
		need(!kill(pair.other.pid, SIGSTOP));
		for (unsigned i = 0; i < COUNT; i++) {
			int64_t count = i % 1000 ? 1000 : sizeof(bytes);
			const struct weft_tensor tensor = pair_tensor(bytes, &count);

			need(!weft_send(pair.peer, i, "k", 1, &tensor, &options, &ops[i]));
		}
		began = pair_now_ns();
		for (unsigned i = 0; i < COUNT; i++) {
			need(!weft_wait(ops[i], PAIR_LIMIT_NS));
			/* A frame may have taken a small one, and given its buffer back. */
			need(weft_op_status(ops[i]) == WEFT_DEADLINE_EXCEEDED ||
			     (i % 1000 && weft_op_status(ops[i]) == WEFT_OK));
			refused += weft_op_status(ops[i]) != WEFT_OK;
			weft_op_free(ops[i]);
		}
		/* More than the large ones: a peer's credit is not for ever. */
		assert_true(refused > 3);
		/* 2 s beyond the deadline, by weft_wait(3); the rest is for a busy machine. */
		assert_true(pair_now_ns() - began < timeout_ns + 4000 * PAIR_MS);
		need(!kill(pair.other.pid, SIGCONT));
		pair_exchange(&pair, &pair.other);
		assert_int_equal(losses(pair.node), 0);
		pair_close(&pair);
	}
}

static void a_target_that_looks_away_delays_and_loses_nothing(void **state)
{
	enum { COUNT = 1000 };
	struct weft_node_options options;
	struct pair_send send;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		options.mode = WEFT_MANUAL;
		pair_open(&pair, at, &options);
		pair_ping(pair.peer);
		pair_do(&pair.other, "recv 1 pulled %zu 1", 8 * MIB);
		pair_do(&pair.other, "send 1 offered %zu 2", 8 * MIB);
		for (unsigned i = 0; i < COUNT; i++)
			pair_do(&pair.other, "send 1 small 100 %u", i);
		send = pair_send(pair.peer, 1, "pulled", 8 * MIB, 1);
		need(weft_poll(pair.node, 0) >= 0);
		pair_sleep_ms(280);
		op = pair_recv(pair.node, NULL, 1, "offered");
		pair_sent(&send);
		pair_received(op, 8 * MIB, 2);
		for (unsigned i = 0; i < COUNT; i++)
			pair_received(pair_recv(pair.node, NULL, 1, "small"), 100, i);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

/* Ends in the middle of reads. */

static void readers_killed_in_the_middle_leave_the_owner_free(void **state)
{
	struct pair_other bystander;
	struct pair_send send;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		bystander = pair.other;
		pair_exchange(&pair, &bystander);
		for (unsigned ms = 0; ms < 3; ms++) {
			pair_start(&pair.other, at, NULL, pair.node);
			send = pair_send(pair.other.peer, 1, "body", BODY, 1);
			pair_do(&pair.other, "read");
			pair_sleep_ms(ms);
			pair_kill(&pair.other, SIGKILL);
			need(!weft_wait(send.op, PAIR_LIMIT_NS));
			/* It may have read all of it in these milliseconds. */
			need(weft_op_status(send.op) == WEFT_UNAVAILABLE ||
			     weft_op_status(send.op) == WEFT_OK);
			weft_op_free(send.op);
			free(send.bytes);
			pair_exchange(&pair, &bystander);
		}
		pair.other = bystander;
		pair_close(&pair);
	}
}

static void closing_in_the_middle_of_reads_hurts_no_other_peer(void **state)
{
	struct pair_other bystander;
	struct pair_send send;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		bystander = pair.other;
		pair_exchange(&pair, &bystander);
		for (unsigned round = 0; round < 5; round++) {
			pair_start(&pair.other, at, NULL, pair.node);
			send = pair_send(pair.other.peer, 1, "body", BODY, 1);
			pair_do(&pair.other, "read");
			pair_say(&pair.other, "close");
			pair_exchange(&pair, &bystander);
			need(!weft_wait(send.op, PAIR_LIMIT_NS));
			weft_op_free(send.op);
			free(send.bytes);
			pair_hear(&pair.other);
			pair_end(&pair.other);
		}
		pair.other = bystander;
		pair_close(&pair);
	}
}

static void offers_withdrawn_under_their_readers_hurt_nothing_else(void **state)
{
	struct pair_send offer;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_exchange(&pair, &pair.other);
		for (unsigned round = 0; round < 20; round++) {
			pair_say(&pair.other, "take %u", round);
			offer = pair_send(pair.peer, round, "offer", 8 * MIB, 1);
			pair_sleep_ms(round % 4);
			weft_cancel(offer.op);
			/* On the same link, and not disturbed by a key that is gone. */
			pair_ping(pair.peer);
			need(!weft_wait(offer.op, PAIR_LIMIT_NS));
			need(weft_op_status(offer.op) == WEFT_OK ||
			     weft_op_status(offer.op) == WEFT_CANCELLED);
			weft_op_free(offer.op);
			free(offer.bytes);
			pair_hear(&pair.other);
		}
		pair_exchange(&pair, &pair.other);
		assert_int_equal(losses(pair.node), 0);
		pair_close(&pair);
	}
}

static void a_message_sent_before_a_close_arrives(void **state)
{
	enum { COUNT = 200 };
	struct pair_other leaver;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (unsigned round = 0; round < 5; round++) {
			pair_start(&leaver, at, NULL, NULL);
			pair_do(&leaver, "send_and_close %d %s", COUNT,
				weft_node_address(pair.node));
			for (unsigned i = 0; i < COUNT; i++)
				pair_received(pair_recv(pair.node, NULL, 3, "last"), 100, i);
			pair_end(&leaver);
		}
		pair_close(&pair);
	}
}

/* Frames of two lengths: a provider cuts, or hangs, where a message exceeds its slot. */
static void no_frame_is_longer_than_its_slot(void **state)
{
	static const char *const lengths[] = { "1024", "4000" };
	static const size_t sizes[] = { 1, 900, 1100, 3000, 5000, 60000, 300000 };
	struct pair_send sends[PAIR_COUNT(sizes)];
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		/* Whose rows this program has. */
		if (strcmp(at, "tcp") && strcmp(at, "shm"))
			continue;
		for (size_t i = 0; i < PAIR_COUNT(lengths); i++) {
			setenv(SHORT_FRAMES, lengths[i], 1);
			pair_open(&pair, at, NULL);
			unsetenv(SHORT_FRAMES);
			for (size_t j = 0; j < PAIR_COUNT(sizes); j++) {
				pair_do(&pair.other, "recv 1 to %zu %zu", sizes[j], j);
				pair_do(&pair.other, "send 1 from %zu %zu", sizes[j], j);
				sends[j] = pair_send(pair.peer, 1, "to", sizes[j], j);
			}
			for (size_t j = 0; j < PAIR_COUNT(sizes); j++) {
				pair_received(pair_recv(pair.node, NULL, 1, "from"), sizes[j], j);
				pair_sent(&sends[j]);
			}
			pair_do(&pair.other, "finish");
			assert_int_equal(losses(pair.node), 0);
			/* Not for other tests, which want frames of the usual length. */
			pair_do(&pair.other, "close");
			pair_kill(&pair.other, SIGKILL);
			pair.peer = NULL;
			pair_close(&pair);
		}
	}
}

/* Names and numbers of the dead and of others. */

/* Where providers put what they name after the process that is @pid. */
static void name_in_the_way(char path[64], pid_t pid, unsigned i)
{
	snprintf(path, 64, "/dev/shm/%d:%u:%u", pid, i / 3, i % 3);
}

/* What a process that is killed on its way through the gate of our endpoint leaves. */
static void stay_in_our_gate(void)
{
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;
	char kind[64];

	need(fds != NULL);
	while ((entry = readdir(fds))) {
		ssize_t length = readlinkat(dirfd(fds), entry->d_name, kind, sizeof(kind) - 1);
		struct wf_gate gate = { 0 };

		kind[length > 0 ? length : 0] = 0;
		if (!strstr(kind, "memfd:weft-gate"))
			continue;
		need(!wf_gate_take(&gate, dup(atoi(entry->d_name))));
		need(wf_gate_enter(&gate));
		wf_gate_close(&gate);
	}
	closedir(fds);
}

static void a_peer_that_stays_in_our_endpoint_is_left_behind(void **state)
{
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_do(&pair.other, "send 1 k 100000 1");
		pair_received(pair_recv(pair.node, NULL, 1, "k"), 100000, 1);
		stay_in_our_gate();
		pair_do(&pair.other, "send 2 k 100000 1");
		pair_received(pair_recv(pair.node, NULL, 2, "k"), 100000, 1);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

static void files_in_the_way_are_left_alone(void **state)
{
	char path[64], text[16];
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (unsigned i = 0; i < 9; i++) {
			int fd;

			name_in_the_way(path, pair.other.pid, i);
			fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
			need(fd >= 0 && write(fd, "not of libfabric", 16) == 16);
			close(fd);
		}
		/* A node that opens among them, in the process whose number they have. */
		weft_peer_close(pair.other.peer);
		pair_do(&pair.other, "close");
		pair_do(&pair.other, "open %s %s", at, weft_node_address(pair.node));
		pair_do(&pair.other, "send 1 k 100000 1");
		pair_received(pair_recv(pair.node, NULL, 1, "k"), 100000, 1);
		pair_do(&pair.other, "finish");
		for (unsigned i = 0; i < 9; i++) {
			int fd;

			name_in_the_way(path, pair.other.pid, i);
			fd = open(path, O_RDONLY);
			need(fd >= 0 && read(fd, text, sizeof(text)) == 16);
			need(!memcmp(text, "not of libfabric", 16));
			close(fd);
			need(!unlink(path));
		}
		pair.peer = pair.other.peer = NULL;
		pair_close(&pair);
	}
}

/* Have the next process of this namespace get @pid, unless another comes first. */
static bool wish_for(pid_t pid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && dprintf(fd, "%d", pid - 1) > 0;

	if (fd >= 0)
		close(fd);
	return good;
}

/* The dead one's number, address and names: only its incarnation is another. */
static void a_process_with_a_dead_ones_number_is_somebody_else(void **state)
{
	char address[32];
	struct weft_op *op;
	struct pair pair;
	unsigned met = 0;
	pid_t dead;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct weft_node_options options = pair_options(at);

		pair = (struct pair){ .provider = at };
		pair_free_address(address);
		need(!weft_node_open(&options, &pair.node));
		pair_start(&pair.other, at, address, pair.node);
		pair_exchange(&pair, &pair.other);
		op = pair_recv(pair.node, pair.other.peer, 1, "k");
		dead = pair.other.pid;
		pair_kill(&pair.other, SIGKILL);
		for (unsigned i = 0; i < 20 && pair.other.pid != dead; i++) {
			if (pair.other.pid)
				pair_kill(&pair.other, SIGKILL);
			if (!wish_for(dead)) {
				print_message("skip: pids can't be chosen here\n");
				pair_ended(op, WEFT_UNAVAILABLE);
				weft_op_free(op);
				need(!weft_node_close(pair.node));
				skip();
			}
			pair_start(&pair.other, at, address, pair.node);
		}
		met += pair.other.pid == dead;
		/* What waited for the dead one is not for the new one to end. */
		pair_ended(op, WEFT_UNAVAILABLE);
		weft_op_free(op);
		pair_exchange(&pair, &pair.other);
		assert_int_equal(losses(pair.node), 1);
		pair_kill(&pair.other, SIGKILL);
		need(!weft_node_close(pair.node));
	}
	if (!met) {
		print_message("skip: other processes took every pid that was wished for\n");
		skip();
	}
}

/* Strangers. */

/* The ports of IPv4 that this process listens on. */
static size_t own_ports(uint16_t *ports, size_t most)
{
	size_t count = 0;

	for (int fd = 0; fd < 1024 && count < most; fd++) {
		struct sockaddr_in in;
		socklen_t bytes = sizeof(in), int_bytes = sizeof(int);
		int listens = 0;

		if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_bytes) && listens &&
		    !getsockname(fd, (struct sockaddr *)&in, &bytes) && in.sin_family == AF_INET)
			ports[count++] = ntohs(in.sin_port);
	}
	return count;
}

/* Connect to @port and say @text; the connection. */
static int say_to(uint16_t port, const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	need(fd >= 0);
	if (!connect(fd, (struct sockaddr *)&in, sizeof(in)))
		(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
	return fd;
}

static void stray_requests_at_the_ports_disturb_no_traffic(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct pair_other late;
	struct pair_send send;
	struct weft_op *op;
	uint16_t ports[16];
	struct pair pair;
	int silent[16];

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		size_t count;

		/* Its service ends by this, and so it serves by name only. */
		if (!strcmp(at, "sockets"))
			continue;
		pair_open(&pair, at, NULL);
		pair_ping(pair.peer);
		count = own_ports(ports, PAIR_COUNT(ports));
		need(count >= 1 + (strcmp(at, "shm") != 0)); /* the door's, and the rail's */
		pair_do(&pair.other, "recv 1 to %zu 1", BODY);
		pair_do(&pair.other, "send 1 from %zu 2", BODY);
		send = pair_send(pair.peer, 1, "to", BODY, 1);
		op = pair_recv(pair.node, pair.peer, 1, "from");
		for (size_t i = 0; i < count; i++)
			silent[i] = say_to(ports[i], "");
		for (unsigned round = 0; round < 50; round++)
			for (size_t i = 0; i < count; i++)
				close(say_to(ports[i], http));
		pair_received(op, BODY, 2);
		pair_sent(&send);
		pair_do(&pair.other, "finish");
		/* And who comes now is served. */
		pair_start(&late, at, NULL, pair.node);
		pair_exchange(&pair, &late);
		for (size_t i = 0; i < count; i++)
			close(silent[i]);
		assert_int_equal(losses(pair.node), 0);
		pair_end(&late);
		pair_close(&pair);
	}
}

#define FEW 256      /* descriptors; more than the processes of this test need */
#define FREE_MOST 12 /* a connection takes fewer, on any provider */

/* Take every descriptor that is left; how many.  The limit keeps it below FEW. */
static size_t take_descriptors(int *fds)
{
	size_t count = 0;

	while ((fds[count] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
		count++;
	return count;
}

static void when_descriptors_run_out_old_peers_stay_and_new_ones_wait(void **state)
{
	struct pair_other late[4];
	struct rlimit limit, low;
	size_t taken, more;
	struct pair pair;
	int fds[FEW];

	(void)state;
	need(!getrlimit(RLIMIT_NOFILE, &limit));
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_exchange(&pair, &pair.other);
		for (size_t i = 0; i < PAIR_COUNT(late); i++)
			pair_start(&late[i], at, NULL, NULL);
		low = limit;
		low.rlim_cur = FEW;
		need(!setrlimit(RLIMIT_NOFILE, &low));
		/* Until no more come back, as from a door that two dials have made superfluous. */
		for (taken = 0; (more = take_descriptors(fds + taken)); taken += more)
			pair_exchange(&pair, &pair.other);
		need(taken > FREE_MOST && taken < FEW);
		/* With none, and with so few that each step of a connection finds none. */
		for (unsigned left = 0; left <= FREE_MOST; left++) {
			for (size_t i = 0; i < PAIR_COUNT(late); i++)
				pair_say(&late[i], "reach %s 300", weft_node_address(pair.node));
			pair_exchange(&pair, &pair.other);
			for (size_t i = 0; i < PAIR_COUNT(late); i++)
				assert_true(strcmp(pair_hear(&late[i]), "OK") || left > 0);
			pair_exchange(&pair, &pair.other);
			close(fds[--taken]);
		}
		while (taken)
			close(fds[--taken]);
		need(!setrlimit(RLIMIT_NOFILE, &limit));
		for (size_t i = 0; i < PAIR_COUNT(late); i++)
			assert_string_equal(pair_do(&late[i], "reach %s 20000",
						    weft_node_address(pair.node)), "OK");
		pair_exchange(&pair, &pair.other);
		assert_int_equal(losses(pair.node), 0);
		for (size_t i = 0; i < PAIR_COUNT(late); i++)
			pair_end(&late[i]);
		pair_close(&pair);
	}
}

static const struct pair_command commands[] = {
	{ "reach", do_reach },
	{ "read", do_read },
	{ "send_and_close", do_send_and_close },
	{ "take", do_take },
	{ NULL, NULL },
};

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(pair_name_the_missing),
		TEST(sends_to_a_stopped_peer_end_at_their_deadlines),
		TEST(a_target_that_looks_away_delays_and_loses_nothing),
		TEST(readers_killed_in_the_middle_leave_the_owner_free),
		TEST(closing_in_the_middle_of_reads_hurts_no_other_peer),
		TEST(offers_withdrawn_under_their_readers_hurt_nothing_else),
		TEST(a_message_sent_before_a_close_arrives),
		TEST(no_frame_is_longer_than_its_slot),
		TEST(a_peer_that_stays_in_our_endpoint_is_left_behind),
		TEST(files_in_the_way_are_left_alone),
		TEST(a_process_with_a_dead_ones_number_is_somebody_else),
		TEST(stray_requests_at_the_ports_disturb_no_traffic),
		TEST(when_descriptors_run_out_old_peers_stay_and_new_ones_wait),
	};

	make_rows();
	if (pair_is_other(argc, argv, commands))
		return 0;
	setenv("WEFT_LOST", LOST, 1);
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
