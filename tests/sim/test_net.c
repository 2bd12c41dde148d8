/* SPDX-License-Identifier: BSD-2-Clause */
/* Doors on the simulated net, in virtual time. */
#include "link/door.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "link/host.h"
#include "tests/fake/clock.h"
#include "tests/sim/net.h"

struct side {
	struct wf_door *door;
	struct wf_conn *conn;
	int opened, closed;
	uint64_t beats;
	struct wf_error error;
};

static struct side a, b;

static void on_connected(void *ctx, struct wf_conn *conn)
{
	(void)ctx;
	(void)conn;
}

static void on_opened(void *ctx, struct wf_conn *conn)
{
	struct side *s = ctx;

	(void)conn;
	s->opened++;
}

static void on_message(void *ctx, struct wf_conn *conn, const struct wf_greet *greet)
{
	struct side *s = ctx;

	assert_int_equal(greet->kind, WF_GREET_BEAT);
	assert_int_equal(greet->beat.number, s->beats);
	s->beats++;
	s->conn = conn;
	wf_conn_adopt(conn, s);
}

static void on_closed(void *ctx, struct wf_conn *conn, const struct wf_error *e)
{
	struct side *s = ctx;

	(void)conn;
	s->closed++;
	s->error = *e;
}

static void open_side(struct side *s)
{
	static const struct wf_door_events events = { on_connected, on_opened, on_message, NULL,
						     on_closed };
	struct wf_door_config config = { .listen = "10.0.0.1:0", .events = &events, .ctx = s };

	*s = (struct side){ 0 };
	assert_int_equal(wf_door_open(&config, &s->door, NULL), 0);
}

static int open_both(void **state)
{
	(void)state;
	wf_net_reset(1);
	open_side(&a);
	open_side(&b);
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	wf_door_close(a.door);
	wf_door_close(b.door);
	return 0;
}

static struct wf_conn *dial(void)
{
	struct wf_conn *conn;

	assert_int_equal(wf_door_dial(a.door, wf_door_address(b.door), &a, &conn, NULL), 0);
	return conn;
}

static void send_beats(struct wf_conn *conn, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		struct wf_greet greet = { .kind = WF_GREET_BEAT };

		greet.beat.number = i;
		assert_int_equal(wf_conn_send(conn, &greet), 0);
	}
}

/* Let @ns pass, both being polled whenever something arrives, and each millisecond. */
static void pass(uint64_t ns)
{
	uint64_t until_ns = wf_clock_now() + ns;

	while (wf_clock_now() < until_ns) {
		uint64_t next_ns = WF_MIN(until_ns, wf_clock_now() + WF_NS_PER_MS);

		wf_fake_clock_set(WF_MIN(next_ns, wf_net_next_ns()));
		wf_door_poll(a.door, wf_clock_now());
		wf_door_poll(b.door, wf_clock_now());
	}
}

static void messages_arrive_in_order_and_late(void **state)
{
	struct wf_conn *conn = dial();

	(void)state;
	pass(19 * WF_NS_PER_US); /* nothing is faster than 20 us */
	assert_int_equal(a.opened, 0);
	pass(WF_NS_PER_S);
	assert_int_equal(a.opened, 1);
	send_beats(conn, 0, 1000); /* more than a pipe holds at once */
	assert_int_equal(b.beats, 0);
	pass(WF_NS_PER_S);
	assert_int_equal(b.beats, 1000);
	send_beats(b.conn, 0, 1);
	pass(WF_NS_PER_S);
	assert_int_equal(a.beats, 1);
}

static uint64_t slow(void *ctx, uint64_t random)
{
	(void)random;
	return *(uint64_t *)ctx;
}

static void delays_are_the_tests_choice(void **state)
{
	static uint64_t delay_ns = WF_NS_PER_S; /* asked for until the doors are closed */

	(void)state;
	wf_net_set_delay(slow, &delay_ns);
	(void)dial();
	pass(2 * WF_NS_PER_S - 1);
	assert_int_equal(a.opened, 0);
	pass(1);
	assert_int_equal(a.opened, 1);
}

static void a_dial_may_be_refused(void **state)
{
	(void)state;
	wf_net_refuse(wf_door_address(b.door), true);
	(void)dial();
	pass(WF_NS_PER_S);
	assert_int_equal(a.closed, 1);
	assert_int_equal(a.error.code, -ECONNREFUSED);

	wf_net_refuse(wf_door_address(b.door), false);
	(void)dial();
	pass(WF_NS_PER_S);
	assert_int_equal(a.opened, 1);
}

static void a_cut_ends_streams_and_lets_new_ones_in(void **state)
{
	struct wf_conn *conn = dial();

	(void)state;
	send_beats(conn, 0, 1);
	pass(WF_NS_PER_S);
	wf_net_cut(wf_door_address(b.door), wf_door_address(a.door));
	pass(WF_NS_PER_S);
	assert_int_equal(a.closed, 1);
	assert_int_equal(b.closed, 1);
	assert_int_equal(a.error.code, -ECONNRESET);

	(void)dial();
	pass(WF_NS_PER_S);
	assert_int_equal(a.opened, 2);
}

static void silence_holds_what_is_sent_and_tells_nobody(void **state)
{
	const char *from = wf_door_address(a.door), *to = wf_door_address(b.door);
	struct wf_conn *conn = dial();

	(void)state;
	send_beats(conn, 0, 1);
	pass(WF_NS_PER_S);
	wf_net_silence(from, to, true);
	send_beats(conn, 1, 2);
	send_beats(b.conn, 0, 1); /* the other way is open */
	pass(100 * WF_NS_PER_S);
	assert_int_equal(a.beats, 1);
	assert_int_equal(b.beats, 1);
	assert_int_equal(a.closed + b.closed, 0);
	(void)dial();
	pass(4 * WF_NS_PER_S);
	assert_int_equal(a.closed, 1);
	assert_int_equal(a.error.code, -ETIMEDOUT);

	wf_net_silence(from, to, false);
	pass(WF_NS_PER_S);
	assert_int_equal(b.beats, 2);
}

static void a_killed_node_ends_and_refuses(void **state)
{
	struct wf_conn *conn = dial();

	(void)state;
	send_beats(conn, 0, 1);
	pass(WF_NS_PER_S);
	wf_net_kill(wf_door_address(b.door));
	pass(WF_NS_PER_S);
	assert_int_equal(a.closed, 1);
	(void)dial();
	pass(WF_NS_PER_S);
	assert_int_equal(a.closed, 2);
	assert_int_equal(a.error.code, -ECONNREFUSED);
}

static void nodes_share_a_host_only_when_told(void **state)
{
	struct wf_socket_set *sets[3];
	struct wf_socket *listeners[3], *s, *there;
	struct wf_socket_peer peer;
	struct wf_host_peer *watched;
	struct wf_host *hosts[3];
	char from[WF_SOCKET_ADDRESS_BYTES], byte = 7;
	unsigned fd_count;
	int fds[WF_SOCKET_FDS_MAX];

	(void)state;
	for (int i = 0; i < 3; i++) {
		wf_net_set_same_host(i >= 1);
		assert_int_equal(wf_socket_set_open(&sets[i], NULL), 0);
		assert_int_equal(wf_host_open(&hosts[i], NULL), 0);
		assert_int_equal(wf_socket_listen_beside(sets[i], wf_host_number(hosts[i]), NULL,
							 &listeners[i], NULL), 0);
	}
	assert_int_equal(wf_socket_meet(sets[1], wf_host_number(hosts[0]), NULL, &s), -ENOENT);
	assert_int_equal(wf_socket_meet(sets[1], wf_host_number(hosts[2]), NULL, &s), 0);
	assert_int_equal(wf_socket_accept(listeners[2], &there, from), 0);
	assert_int_equal(wf_socket_send(s, &byte, 1, NULL, 0), 0);
	byte = 0;
	assert_int_equal(wf_socket_receive(there, &byte, 1, fds, &fd_count), 1);
	assert_int_equal(byte, 7);
	assert_int_equal(wf_socket_receive(there, &byte, 1, fds, &fd_count), -EAGAIN);

	assert_int_equal(wf_socket_peer(s, &peer), 0);
	assert_int_equal(wf_host_peer_open(peer.pid_fd, wf_host_number(hosts[2]), &watched), 0);
	assert_false(wf_host_peer_dead(watched));
	for (unsigned pid = 0; pid < 10; pid++)
		wf_net_kill_process(pid);
	assert_true(wf_host_peer_dead(watched));
	wf_host_peer_close(watched);
	wf_socket_close(there);
	assert_int_equal(wf_socket_receive(s, &byte, 1, fds, &fd_count), 0);
	wf_socket_close(s);
	for (int i = 0; i < 3; i++) {
		wf_socket_close(listeners[i]);
		wf_socket_set_close(sets[i]);
		wf_host_close(hosts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_both, close_both)
		TEST(messages_arrive_in_order_and_late),
		TEST(delays_are_the_tests_choice),
		TEST(a_dial_may_be_refused),
		TEST(a_cut_ends_streams_and_lets_new_ones_in),
		TEST(silence_holds_what_is_sent_and_tells_nobody),
		TEST(a_killed_node_ends_and_refuses),
		TEST(nodes_share_a_host_only_when_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
