/* SPDX-License-Identifier: BSD-2-Clause */
#include "cable.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int far_fd = -1;

static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool run(const char *format, ...)
{
	char command[1024];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	return length < (int)sizeof(command) && system(command) == 0;
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Who is not root may be it in a namespace of users, where that is allowed. */
static bool leave_network(void)
{
	char map[32];

	if (!unshare(CLONE_NEWNET))
		return true;
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)geteuid());
	return !unshare(CLONE_NEWUSER | CLONE_NEWNET) &&
	       write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", map);
}

/* A child that holds a namespace until somebody else does. */
static pid_t hold_namespace(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

static int fail(char reason[128], const char *what)
{
	snprintf(reason, 128, "%s: %s", what, strerror(errno));
	return -1;
}

/* Do a command at the far end. */
static bool run_far(const char *command)
{
	return run("nsenter --net=/proc/%d/fd/%d %s", getpid(), far_fd, command);
}

/* Providers overlook an interface that has none yet, and it comes a moment later. */
static bool wait_for_carrier(void)
{
	static const char wait[] = "sh -c 'for i in $(seq 250); do "
				   "ip -br link show type veth | grep -q \"UP .*LOWER_UP\" && "
				   "exit 0; sleep 0.02; done; exit 1'";

	return run("%s", wait) && run_far(wait);
}

static bool lay(pid_t holder)
{
	return run("ip link add near type veth peer name far netns %d", holder) &&
	       run("ip link set lo up && ip address add " CABLE_NEAR "/24 dev near && "
		   "ip link set near up") &&
	       run_far("ip link set lo up") &&
	       run_far("ip address add " CABLE_FAR "/24 dev far") &&
	       run_far("ip link set far up") && wait_for_carrier();
}

int cable_lay(char reason[128])
{
	char path[64];
	pid_t holder;
	bool done;

	errno = 0;
	if (!run("ip -V >/dev/null 2>&1"))
		return fail(reason, "the ip command");
	if (!leave_network())
		return fail(reason, "a network namespace");
	holder = hold_namespace();
	if (holder < 0)
		return fail(reason, "a second network namespace");
	snprintf(path, sizeof(path), "/proc/%d/ns/net", holder);
	far_fd = open(path, O_RDONLY | O_CLOEXEC);
	done = lay(holder);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	return done ? far_fd : fail(reason, "a cable (veth) between two namespaces");
}

void cable_cut(void)
{
	if (!run("ip link set near down"))
		abort();
}

void cable_mend(void)
{
	if (!run("ip link set near up") || !wait_for_carrier())
		abort();
}
