/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that lack something: nodes open with what there is, say what is missing, and
 * reach each other.  Each host is a namespace that one child process makes for itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>

#define LIMIT_NS 20000000000ull
#define CANNOT_MAKE 77
#define TEXT_BYTES 2000

/* How a host is made bare, by a shell; and what its nodes say of that, and where they listen. */
struct host {
	const char *make, *says, *address;
};

static char said[TEXT_BYTES]; /* by the log of the child's nodes */

static void hear(void *arg, int level, const char *line)
{
	size_t used = strlen(said);

	(void)arg;
	(void)level;
	snprintf(said + used, sizeof(said) - used, "%s\n", line);
}

static void expect(bool well, const char *what)
{
	if (well)
		return;
	fprintf(stderr, "%s: \"%s\", and the log says:\n%s", what, weft_error(), said);
	_exit(1);
}

static struct weft_node *open_node(void)
{
	struct weft_node_options options = { .size = sizeof(options), .log = hear };
	struct weft_node *node;

	expect(!weft_node_open(&options, &node), "a node does not open");
	return node;
}

/* One of its lines says why the same-host rail is not used. */
static bool info_says(const char *reason)
{
	struct weft_fabric f = { .size = sizeof(f) };
	struct weft_info *info;
	bool found = false;

	expect(!weft_info_open(NULL, &info), "there is no info");
	for (size_t i = 0; i < weft_info_count(info); i++)
		if (!weft_info_get(info, i, &f) && strstr(f.reason, reason))
			found = !f.used;
	weft_info_close(info);
	return found;
}

static void live_on(const struct host *host)
{
	struct weft_op_options options = { .size = sizeof(options), .timeout_ns = LIMIT_NS };
	struct weft_node *here = open_node(), *there = open_node();
	const char *address = weft_node_address(there);
	struct weft_peer *peer;
	struct weft_op *op;

	expect(!strncmp(address, host->address, strlen(host->address)), address);
	expect(!weft_peer_open(here, address, &peer), "no peer");
	expect(!weft_ping(peer, &options, &op), "no ping");
	expect(!weft_wait(op, LIMIT_NS) && weft_op_status(op) == WEFT_OK, weft_op_message(op));
	weft_op_free(op);
	weft_peer_close(peer);
	weft_node_close(here);
	weft_node_close(there);
	expect(!host->says || strstr(said, host->says), "the log does not say what is missing");
	expect(!host->says || info_says(host->says), "weft info does not say what is missing");
}

static bool make(const struct host *host)
{
	return !unshare(CLONE_NEWNET | CLONE_NEWNS) &&
	       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !system("ip link set lo up 2>/dev/null") && !system(host->make);
}

static void nodes_live_on(const struct host *host)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		/* Quick, and of two nodes of one process: no matter of this test. */
		setenv("WEFT_PROVIDER", "shm,tcp", 1);
		if (!make(host))
			_exit(CANNOT_MAKE);
		live_on(host);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_MAKE) {
		print_message("skip: this host can't be made: %s\n", host->make);
		skip();
	}
	assert_int_equal(status, 0);
}

static void a_node_opens_where_shared_memory_is_read_only(void **state)
{
	static const struct host host = { "mount -t tmpfs -o ro tmpfs /dev/shm 2>/dev/null",
					  "/dev/shm: Read-only file system", "127.0.0.1:" };

	(void)state;
	nodes_live_on(&host);
}

static void a_node_opens_where_there_is_no_shared_memory(void **state)
{
	static const struct host host = {
		"mkdir /tmp/weft-$$ && mkdir /tmp/weft-$$/shm && mount -t tmpfs tmpfs /dev/shm && "
		"mount -t tmpfs tmpfs /tmp/weft-$$ && for i in null zero random urandom; do "
		": >/tmp/weft-$$/$i && mount --bind /dev/$i /tmp/weft-$$/$i || exit; done && "
		"mount --rbind /tmp/weft-$$ /dev && umount -l /tmp/weft-$$; s=$?; "
		"rm -rf /tmp/weft-$$; exit $s",
		"/dev/shm: No such file or directory", "127.0.0.1:"
	};

	(void)state;
	nodes_live_on(&host);
}

static void a_node_opens_without_proc(void **state)
{
	static const struct host host = { "mount -t tmpfs tmpfs /proc 2>/dev/null", "/proc",
					  "127.0.0.1:" };

	(void)state;
	nodes_live_on(&host);
}

static void a_node_opens_where_loopback_is_ipv6_only(void **state)
{
	static const struct host host = { "ip addr del 127.0.0.1/8 dev lo 2>/dev/null", NULL,
					  "[::1]:" };

	(void)state;
	nodes_live_on(&host);
}

static void a_node_opens_where_loopback_is_ipv4_only(void **state)
{
	static const struct host host = { "ip addr del ::1/128 dev lo 2>/dev/null", NULL,
					  "127.0.0.1:" };

	(void)state;
	nodes_live_on(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_opens_where_shared_memory_is_read_only),
		cmocka_unit_test(a_node_opens_where_there_is_no_shared_memory),
		cmocka_unit_test(a_node_opens_without_proc),
		cmocka_unit_test(a_node_opens_where_loopback_is_ipv6_only),
		cmocka_unit_test(a_node_opens_where_loopback_is_ipv4_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
