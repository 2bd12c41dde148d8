/* SPDX-License-Identifier: BSD-2-Clause */
/* Same-host facts, between this process and children of its own. */
#include "link/host.h"
#include "link/socket.h"
#include "util/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define LIMIT_MS 10000
#define SHM "/dev/shm/"

/* A node in a process of its own. */
struct child {
	pid_t pid;
	int end; /* the child exits when this closes */
	uint64_t number;
	char marker[32];
	struct wf_host_peer *peer;
};

static struct wf_host *ours;
static char mine[32]; /* our marker */
static uint8_t nonce[16] = "a nonce of ours";

static void name_marker(char name[32], uint64_t number)
{
	(void)snprintf(name, 32, "weft.%016" PRIx64, number);
}

static int open_ours(void **state)
{
	struct wf_error e = { 0 };

	(void)state;
	/* Other nodes that start on this host sweep too; root can keep them out. */
	if (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		(void)mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
	if (wf_host_open(&ours, &e)) {
		print_error("%s\n", e.text);
		return -1;
	}
	name_marker(mine, wf_host_number(ours));
	return 0;
}

static int close_ours(void **state)
{
	(void)state;
	wf_host_close(ours);
	return 0;
}

static bool exists(const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), SHM "%s", name);
	return !access(path, F_OK);
}

/* Has @name been removed?  Another sweeper may have been first and still be at it. */
static bool is_gone(const char *name)
{
	for (int ms = 0; ms < LIMIT_MS && exists(name); ms++)
		(void)usleep(1000);
	return !exists(name);
}

static void touch(const char *name)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), SHM "%s", name);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
}

static void discard(const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), SHM "%s", name);
	(void)unlink(path);
}

/* A name that no other program or run uses. */
static void name_file(char name[64], const char *what)
{
	(void)snprintf(name, 64, "test_host-%d:%s", (int)getpid(), what);
}

/* Fork, in a node, a child that lets go of the marker and lives until @end closes. */
static void fork_child(struct wf_host *host, int up, int end)
{
	int ready[2];
	char byte;

	if (pipe2(ready, O_CLOEXEC))
		_exit(1);
	if (!fork()) {
		(void)close(up);
		(void)close(ready[0]);
		wf_host_forked(host);
		(void)close(ready[1]);
		_exit((int)read(end, &byte, 1));
	}
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1))
		_exit(1);
}

/*
 * Fork a node that lists @names.  With @grandchild it has forked a child of its
 * own, which outlives it.
 */
static void start_child(struct child *c, const char *names, bool grandchild)
{
	int up[2], down[2];

	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	c->pid = fork();
	if (!c->pid) {
		struct wf_host *host;
		uint64_t number;
		char byte;

		(void)close(down[1]);
		if (wf_host_open(&host, NULL) || wf_host_files(host, names))
			_exit(1);
		if (grandchild)
			fork_child(host, up[1], down[0]);
		number = wf_host_number(host);
		if (write(up[1], &number, sizeof(number)) != (ssize_t)sizeof(number))
			_exit(1);
		if (read(down[0], &byte, 1))
			_exit(1);
		wf_host_close(host);
		_exit(0);
	}
	assert_true(c->pid > 0);
	(void)close(up[1]);
	(void)close(down[0]);
	c->end = down[1];
	assert_int_equal(read(up[0], &c->number, sizeof(c->number)), sizeof(c->number));
	(void)close(up[0]);
	name_marker(c->marker, c->number);
	assert_int_equal(wf_host_peer_open(wf_pidfd_open((uint64_t)c->pid), c->number,
					   &c->peer), 0);
}

static void kill_child(struct child *c)
{
	assert_int_equal(kill(c->pid, SIGKILL), 0);
}

static void reap(struct child *c)
{
	(void)close(c->end);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
}

static void forget(struct child *c)
{
	wf_host_peer_close(c->peer);
}

static void a_marker_lives_as_long_as_its_node(void **state)
{
	struct wf_host *host;
	struct stat st;
	char path[128], marker[32];

	(void)state;
	assert_int_equal(wf_host_open(&host, NULL), 0);
	name_marker(marker, wf_host_number(host));
	assert_string_not_equal(marker, mine);
	(void)snprintf(path, sizeof(path), SHM "%s", marker);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);

	wf_host_close(host);
	assert_false(exists(marker));
}

static void memory_is_probed_where_its_process_says(void **state)
{
	static uint8_t other[16] = "not the nonce..";
	struct child c;

	(void)state;
	start_child(&c, "", false);
	/* It is forked, so the nonce lies there where it lies here. */
	assert_int_equal(wf_host_probe((uint64_t)c.pid, (uintptr_t)nonce, nonce, 16), 0);
	assert_int_equal(wf_host_probe((uint64_t)c.pid, (uintptr_t)other, nonce, 16), -EBADMSG);
	assert_int_equal(wf_host_probe((uint64_t)c.pid, 8, nonce, 16), -EFAULT);
	reap(&c);
	assert_int_equal(wf_host_probe((uint64_t)c.pid, (uintptr_t)nonce, nonce, 16), -ESRCH);
	forget(&c);
}

static void a_death_is_seen_at_once(void **state)
{
	struct pollfd fd = { .events = POLLIN };
	struct child c;

	(void)state;
	start_child(&c, "", false);
	fd.fd = wf_host_peer_fd(c.peer);
	assert_false(wf_host_peer_dead(c.peer));
	assert_int_equal(poll(&fd, 1, 0), 0);

	kill_child(&c);
	assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
	assert_true(wf_host_peer_dead(c.peer));

	reap(&c);
	wf_host_peer_sweep(c.peer);
	forget(&c);
}

static void a_sweep_removes_what_the_dead_one_listed_and_nothing_else(void **state)
{
	char first[64], second[64], other[64], names[160];
	struct child c;

	(void)state;
	name_file(first, "1:0");
	name_file(second, "1:1");
	name_file(other, "1:10"); /* a listed name is its beginning */
	touch(first);
	touch(second);
	touch(other);
	(void)snprintf(names, sizeof(names), "%s\n%s\n", first, second);
	start_child(&c, names, false);

	wf_host_peer_sweep(c.peer);
	assert_true(exists(first) && exists(second) && exists(c.marker));
	kill_child(&c);
	reap(&c);
	wf_host_peer_sweep(c.peer);

	assert_true(is_gone(first) && is_gone(second) && is_gone(c.marker));
	assert_true(exists(other));
	assert_true(exists(mine));
	discard(other);
	forget(&c);
}

/* Its marker's name was told to us by nobody but itself, and it lies. */
static void a_sweep_spares_the_living_whoever_names_them(void **state)
{
	struct wf_host_peer *liar;
	struct child c;

	(void)state;
	start_child(&c, "", false);
	assert_int_equal(wf_host_peer_open(wf_pidfd_open((uint64_t)c.pid),
					   wf_host_number(ours), &liar), 0);
	wf_host_peer_sweep(liar);
	wf_host_peer_sweep(c.peer);
	assert_true(exists(mine) && exists(c.marker));
	wf_host_peer_close(liar);
	reap(&c);
	forget(&c);
}

static void the_side_door_of_the_dead_goes_with_their_marker(void **state)
{
	struct wf_socket_set *set;
	struct wf_socket *listener;
	struct child c;
	char door[64];

	(void)state;
	start_child(&c, "", false);
	(void)snprintf(door, sizeof(door), "%s.door", c.marker);
	assert_int_equal(wf_socket_set_open(&set, NULL), 0);
	assert_int_equal(wf_socket_listen_beside(set, c.number, NULL, &listener, NULL), 0);
	assert_true(exists(door));
	kill_child(&c);
	reap(&c);
	wf_host_peer_sweep(c.peer);
	assert_true(is_gone(door));
	wf_socket_close(listener);
	wf_socket_set_close(set);
	forget(&c);
}

static void a_file_younger_than_the_marker_is_anothers(void **state)
{
	char name[64];
	struct child c;

	(void)state;
	name_file(name, "young");
	touch(name);
	start_child(&c, name, false);
	kill_child(&c);
	reap(&c);
	discard(name);
	(void)usleep(50000); /* several ticks of the clock that files are stamped with */
	touch(name);

	wf_host_peer_sweep(c.peer);
	assert_true(exists(name));
	assert_true(is_gone(c.marker));
	discard(name);
	forget(&c);
}

static void a_node_that_starts_sweeps_the_dead_and_spares_the_living(void **state)
{
	char dead_file[64], live_file[64];
	struct child dead, live;

	(void)state;
	name_file(dead_file, "dead");
	name_file(live_file, "live");
	touch(dead_file);
	touch(live_file);
	start_child(&dead, dead_file, false);
	start_child(&live, live_file, false);
	kill_child(&dead);
	reap(&dead);

	wf_host_sweep();

	assert_true(is_gone(dead_file) && is_gone(dead.marker));
	assert_true(exists(live_file) && exists(live.marker));
	assert_true(exists(mine));
	reap(&live);
	discard(live_file);
	forget(&dead);
	forget(&live);
}

static void a_forked_child_does_not_keep_its_parents_marker(void **state)
{
	struct child c;

	(void)state;
	start_child(&c, "", true);
	kill_child(&c);
	assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);

	wf_host_peer_sweep(c.peer); /* the grandchild is still there */
	assert_true(is_gone(c.marker));
	(void)close(c.end);
	forget(&c);
}

static void a_shorter_list_replaces_a_longer_one(void **state)
{
	char kept[64], listed[64], names[160];
	struct wf_host *host;

	(void)state;
	name_file(kept, "kept");
	name_file(listed, "listed");
	touch(kept);
	touch(listed);
	assert_int_equal(wf_host_open(&host, NULL), 0);
	(void)snprintf(names, sizeof(names), "%s\n%s\n", kept, listed);
	assert_int_equal(wf_host_files(host, names), 0);
	assert_int_equal(wf_host_files(host, listed), 0);

	wf_host_forked(host); /* the lock is free, as after a death */
	wf_host_sweep();
	assert_true(exists(kept));
	assert_true(is_gone(listed));
	discard(kept);
	free(host);
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
	static const char *const rows[] = { "../x", "a/b", ".hidden", "..", "a b", "ok\n/etc\n",
					    "tab\t" };
	char much[5000];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++)
		assert_int_equal(wf_host_files(ours, rows[i]), -EINVAL);
	memset(much, 'x', sizeof(much));
	much[sizeof(much) - 1] = '\0';
	assert_int_equal(wf_host_files(ours, much), -EMSGSIZE);
	assert_int_equal(wf_host_files(ours, ""), 0);
}

/* A marker written by somebody with another purpose. */
static void a_false_marker_removes_nothing_outside(void **state)
{
	char path[128], victim[64], text[512];
	char marker[64];
	FILE *file;

	(void)state;
	(void)snprintf(marker, sizeof(marker), "weft.%08x%08x", 0xbadbad, (unsigned)getpid());
	(void)snprintf(victim, sizeof(victim), "/tmp/test_host-%d", (int)getpid());
	file = fopen(victim, "w");
	assert_non_null(file);
	(void)fclose(file);
	(void)snprintf(path, sizeof(path), SHM "%s", marker);
	(void)snprintf(text, sizeof(text), "weft marker\n../..%s\n%s\n%s", victim, victim, path);
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fputs(text, file);
	(void)fclose(file);

	wf_host_sweep();

	assert_int_equal(access(victim, F_OK), 0);
	assert_true(is_gone(marker));
	(void)unlink(victim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_marker_lives_as_long_as_its_node),
		cmocka_unit_test(memory_is_probed_where_its_process_says),
		cmocka_unit_test(a_death_is_seen_at_once),
		cmocka_unit_test(a_sweep_removes_what_the_dead_one_listed_and_nothing_else),
		cmocka_unit_test(a_sweep_spares_the_living_whoever_names_them),
		cmocka_unit_test(the_side_door_of_the_dead_goes_with_their_marker),
		cmocka_unit_test(a_file_younger_than_the_marker_is_anothers),
		cmocka_unit_test(a_node_that_starts_sweeps_the_dead_and_spares_the_living),
		cmocka_unit_test(a_forked_child_does_not_keep_its_parents_marker),
		cmocka_unit_test(a_shorter_list_replaces_a_longer_one),
		cmocka_unit_test(names_that_lead_elsewhere_are_refused),
		cmocka_unit_test(a_false_marker_removes_nothing_outside),
	};

	return cmocka_run_group_tests(tests, open_ours, close_ours);
}
