/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of this process that are found by their addresses, on loopback. */
#include "fabric/sock.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* A listener, and a connection to it whose two ends are in this process. */
struct meeting {
	struct sockaddr_in at; /* where the listener is */
	int listener, here, there;
};

/* Listen at @ip and @port, in network order (port 0: any), and connect to @to there. */
static void meet(struct meeting *m, in_addr_t ip, in_port_t port, in_addr_t to)
{
	socklen_t bytes = sizeof(m->at);
	struct sockaddr_in goal;

	m->at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port,
				      .sin_addr.s_addr = ip };
	m->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(m->listener >= 0);
	assert_int_equal(bind(m->listener, (struct sockaddr *)&m->at, sizeof(m->at)), 0);
	assert_int_equal(listen(m->listener, 1), 0);
	assert_int_equal(getsockname(m->listener, (struct sockaddr *)&m->at, &bytes), 0);
	goal = m->at;
	goal.sin_addr.s_addr = to;
	m->there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(m->there >= 0);
	assert_int_equal(connect(m->there, (struct sockaddr *)&goal, sizeof(goal)), 0);
	m->here = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(m->here >= 0);
}

/* A byte from the end that was accepted reaches the other end; else that end finds the end. */
static bool is_alive(const struct meeting *m)
{
	char byte = 1;

	(void)send(m->here, &byte, 1, MSG_NOSIGNAL);
	return recv(m->there, &byte, 1, 0) == 1;
}

/* End @m; its accepted end has been closed already if @closed. */
static void part(const struct meeting *m, bool closed)
{
	if (!closed)
		assert_int_equal(close(m->here), 0);
	assert_int_equal(close(m->there), 0);
	assert_int_equal(close(m->listener), 0);
}

static void orphans_of_another_address_with_the_same_port_are_left_alone(void **state)
{
	in_addr_t first = htonl(INADDR_LOOPBACK), second = htonl(INADDR_LOOPBACK + 1);
	struct meeting mine, other;

	(void)state;
	meet(&mine, first, 0, first);
	meet(&other, second, mine.at.sin_port, second);
	wf_sock_close_orphans(&mine.at, sizeof(mine.at));

	assert_false(is_alive(&mine));
	assert_true(is_alive(&other));
	part(&mine, true);
	part(&other, false);
}

static void orphans_of_a_listener_at_all_addresses_are_closed_at_each(void **state)
{
	struct meeting m;

	(void)state;
	meet(&m, htonl(INADDR_ANY), 0, htonl(INADDR_LOOPBACK + 1));
	wf_sock_close_orphans(&m.at, sizeof(m.at));

	assert_false(is_alive(&m));
	part(&m, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orphans_of_another_address_with_the_same_port_are_left_alone),
		cmocka_unit_test(orphans_of_a_listener_at_all_addresses_are_closed_at_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
