/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes of two users of one host: a child process is the other user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>

#include "tests/fabric/said.h"

#define OTHER_UID 65534
#define LIMIT_NS 20000000000ull
#define ADDRESS_BYTES 96
#define TEXT_BYTES 1000

/* How a ping ended. */
struct end {
	enum weft_status status;
	char text[TEXT_BYTES];
};

static struct weft_node *open_node(unsigned security)
{
	struct weft_node_options options = { .size = sizeof(options), .log = said_line,
					     .provider = "tcp", .security = security };
	struct weft_node *node;

	if (weft_node_open(&options, &node)) {
		fprintf(stderr, "%s\n", weft_error());
		_exit(1);
	}
	return node;
}

static struct end ping(struct weft_node *node, const char *address)
{
	struct weft_op_options options = { .size = sizeof(options), .timeout_ns = LIMIT_NS };
	struct weft_peer *peer;
	struct weft_op *op;
	struct end end;

	if (weft_peer_open(node, address, &peer) || weft_ping(peer, &options, &op) ||
	    weft_wait(op, LIMIT_NS))
		_exit(1);
	end.status = weft_op_status(op);
	snprintf(end.text, sizeof(end.text), "%s", weft_op_message(op));
	weft_op_free(op);
	weft_peer_close(peer);
	return end;
}

/* The other user: says where its node is, is told where ours is, and says how a ping ended. */
static void other_user(int from, int to, unsigned security)
{
	char address[ADDRESS_BYTES] = "";
	struct weft_node *node;
	struct end end;
	char byte;

	if (setgid(OTHER_UID) || setuid(OTHER_UID))
		_exit(1);
	node = open_node(security);
	snprintf(address, sizeof(address), "%s", weft_node_address(node));
	if (write(to, address, sizeof(address)) != sizeof(address) ||
	    read(from, address, sizeof(address)) != sizeof(address))
		_exit(1);
	end = ping(node, address);
	if (write(to, &end, sizeof(end)) != sizeof(end))
		_exit(1);
	(void)!read(from, &byte, 1);
	weft_node_close(node);
	_exit(0);
}

/* Ping each other: how the other user's ping ended is @there, and ours @here. */
static void meet(unsigned theirs, unsigned ours, struct end *there, struct end *here)
{
	char address[ADDRESS_BYTES] = "", other[ADDRESS_BYTES];
	struct weft_node *node;
	int to[2], from[2], status;
	pid_t child;

	if (geteuid()) {
		print_message("skip: only root can be another user\n");
		skip();
	}
	said_forget();
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	(void)fflush(NULL);
	child = fork();
	if (!child) {
		(void)close(to[1]);
		other_user(to[0], from[1], theirs);
	}
	node = open_node(ours);
	snprintf(address, sizeof(address), "%s", weft_node_address(node));
	assert_int_equal(read(from[0], other, sizeof(other)), sizeof(other));
	*here = ping(node, other);
	assert_int_equal(write(to[1], address, sizeof(address)), sizeof(address));
	assert_int_equal(read(from[0], there, sizeof(*there)), sizeof(*there));
	(void)close(to[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	weft_node_close(node);
	(void)close(to[0]);
	(void)close(from[0]);
	(void)close(from[1]);
}

static void says(const struct end *end, enum weft_status status, const char *what)
{
	if (end->status != status || !strstr(end->text, what))
		fail_msg("status %d, \"%s\", which does not say \"%s\"", (int)end->status,
			 end->text, what);
}

static void a_dial_to_another_users_node_says_so_and_stops(void **state)
{
	struct end there, here;

	(void)state;
	meet(0, 0, &there, &here);
	says(&here, WEFT_PERMISSION_DENIED, "the other end is of uid 65534, this node of uid 0");
	says(&there, WEFT_PERMISSION_DENIED, "the other end is of uid 0, this node of uid 65534");
}

static void a_node_dialled_by_another_user_says_so_to_both(void **state)
{
	struct end there, here;

	(void)state;
	meet(WEFT_SECURITY_OPEN, 0, &there, &here);
	says(&there, WEFT_PERMISSION_DENIED, "the other end is of uid 65534, this node of uid 0");
	assert_true(said_has("is kept out: the other end is of uid 65534"));
}

static void users_meet_where_both_say_open(void **state)
{
	struct end there, here;

	(void)state;
	meet(WEFT_SECURITY_OPEN, WEFT_SECURITY_OPEN, &there, &here);
	says(&here, WEFT_OK, "");
	says(&there, WEFT_OK, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dial_to_another_users_node_says_so_and_stops),
		cmocka_unit_test(a_node_dialled_by_another_user_says_so_to_both),
		cmocka_unit_test(users_meet_where_both_say_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
