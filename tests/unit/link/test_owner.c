/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose the other end of a loopback connection is: children of another user take part. */
#include "link/owner.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define OTHER_UID 65534

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int asker; /* -1 for /proc alone */

static int with_the_kernel(void **state)
{
	(void)state;
	asker = wf_owner_open();
	return 0;
}

static int with_proc_alone(void **state)
{
	(void)state;
	asker = -1;
	return 0;
}

static int close_asker(void **state)
{
	(void)state;
	if (asker >= 0)
		(void)close(asker);
	return 0;
}

/* A listener at any port of loopback; @at is its address. */
static int listen_on(int family, union address *at)
{
	socklen_t bytes = family == AF_INET ? sizeof(at->v4) : sizeof(at->v6);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = (union address){ 0 };
	at->any.sa_family = (sa_family_t)family;
	if (family == AF_INET)
		at->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		at->v6.sin6_addr = in6addr_loopback;
	if (fd < 0 || bind(fd, &at->any, bytes) || listen(fd, 8) ||
	    getsockname(fd, &at->any, &bytes))
		_exit(1);
	return fd;
}

static int dial(const union address *at)
{
	int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, &at->any, at->any.sa_family == AF_INET ? sizeof(at->v4) :
									   sizeof(at->v6)))
		_exit(1);
	return fd;
}

/* A child of another user; false: this is it. */
static bool fork_other(pid_t *child)
{
	(void)fflush(NULL);
	*child = fork();
	if (!*child && (setgid(OTHER_UID) || setuid(OTHER_UID)))
		_exit(1);
	assert_true(*child >= 0);
	return *child;
}

static void needs_root(void)
{
	if (!geteuid())
		return;
	print_message("skip: only root can be another user\n");
	skip();
}

/* Our own user passes at either end, and by either family. */
static void ones_own_user_is_taken(void **state)
{
	static const int families[] = { AF_INET, AF_INET6 };
	union address at;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(families); i++) {
		int listener = listen_on(families[i], &at), near = dial(&at), far;

		assert_int_equal(wf_owner_check(asker, near, WF_OWNER_DIALLED, NULL), 0);
		far = accept(listener, NULL, NULL);
		assert_int_equal(wf_owner_check(asker, near, WF_OWNER_DIALLED, NULL), 0);
		assert_int_equal(wf_owner_check(asker, far, WF_OWNER_ACCEPTED, NULL), 0);
		(void)close(near);
		(void)close(far);
		(void)close(listener);
	}
}

static void an_ipv4_address_within_ipv6_is_found(void **state)
{
	union address at, mapped = { 0 };
	int listener = listen_on(AF_INET, &at), near, far;

	(void)state;
	mapped.v6.sin6_family = AF_INET6;
	mapped.v6.sin6_port = at.v4.sin_port;
	mapped.v6.sin6_addr.s6_addr[10] = mapped.v6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&mapped.v6.sin6_addr.s6_addr[12], &at.v4.sin_addr, 4);
	near = dial(&mapped);
	far = accept(listener, NULL, NULL);
	assert_int_equal(wf_owner_check(asker, near, WF_OWNER_DIALLED, NULL), 0);
	assert_int_equal(wf_owner_check(asker, far, WF_OWNER_ACCEPTED, NULL), 0);
	(void)close(near);
	(void)close(far);
	(void)close(listener);
}

static void is_refused(int fd, enum wf_owner_end end, const char *says)
{
	struct wf_error e = { 0 };

	assert_int_equal(wf_owner_check(asker, fd, end, &e), -EACCES);
	if (!strstr(e.text, says))
		fail_msg("\"%s\" does not say \"%s\"", e.text, says);
}

static void another_user_who_dials_is_refused(void **state)
{
	union address at;
	int listener, fd, hold[2];
	pid_t child;
	char byte;

	(void)state;
	needs_root();
	listener = listen_on(AF_INET, &at);
	assert_int_equal(pipe(hold), 0);
	if (!fork_other(&child)) {
		(void)close(hold[1]);
		(void)dial(&at);
		_exit((int)read(hold[0], &byte, 1));
	}
	fd = accept(listener, NULL, NULL);
	is_refused(fd, WF_OWNER_ACCEPTED, "uid 65534");
	(void)close(hold[1]);
	(void)waitpid(child, NULL, 0);

	/* What it left behind belongs to nobody, which the kernel calls root. */
	is_refused(fd, WF_OWNER_ACCEPTED, "does not tell");
	(void)close(fd);
	(void)close(hold[0]);
	(void)close(listener);
}

static void another_users_listener_is_refused(void **state)
{
	int to[2], from[2], fd;
	union address at;
	pid_t child;
	char byte;

	(void)state;
	needs_root();
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	if (!fork_other(&child)) {
		int listener = listen_on(AF_INET, &at);

		(void)close(to[1]);
		if (write(from[1], &at, sizeof(at)) != sizeof(at) || read(to[0], &byte, 1) != 1 ||
		    accept(listener, NULL, NULL) < 0 || write(from[1], "", 1) != 1)
			_exit(1);
		_exit((int)read(to[0], &byte, 1));
	}
	assert_int_equal(read(from[0], &at, sizeof(at)), sizeof(at));
	fd = dial(&at);
	is_refused(fd, WF_OWNER_DIALLED, "uid 65534");
	assert_int_equal(write(to[1], "", 1), 1);
	assert_int_equal(read(from[0], &byte, 1), 1);
	is_refused(fd, WF_OWNER_DIALLED, "uid 65534");
	(void)close(fd);
	for (int i = 0; i < 2; i++) {
		(void)close(to[1 - i]);
		(void)close(from[1 - i]);
	}
	(void)waitpid(child, NULL, 0);
}

/* A listener that closes over a connection has accepted nobody, and refuses nobody either. */
static void a_connection_that_has_ended_is_no_strangers(void **state)
{
	struct wf_error e;
	union address at;
	int listener = listen_on(AF_INET, &at), fd = dial(&at);

	(void)state;
	(void)close(listener);
	assert_int_equal(wf_owner_check(asker, fd, WF_OWNER_DIALLED, &e), -ENOTCONN);
	(void)close(fd);
}

#define BOTH(test) \
	cmocka_unit_test_setup_teardown(test, with_the_kernel, close_asker), \
	cmocka_unit_test_setup_teardown(test, with_proc_alone, close_asker)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(ones_own_user_is_taken),
		BOTH(an_ipv4_address_within_ipv6_is_found),
		BOTH(another_user_who_dials_is_refused),
		BOTH(another_users_listener_is_refused),
		BOTH(a_connection_that_has_ended_is_no_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
