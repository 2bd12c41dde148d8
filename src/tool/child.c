/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull

/* Opening a node asks every provider of libfabric: 0.1 s as a rule, seconds on a loaded machine. */
#define START_NS (20000 * NS_PER_MS)

/* Limit of each step of child_end(); the node's goodbye takes some 10 ms. */
#define END_NS (2000 * NS_PER_MS)

/* Run the server in the forked process: only what is safe between fork and exec. */
static void become_server(struct child *child, pid_t parent, int out)
{
	char *const words[] = { "weft", "serve", "--once", "--listen", child->listen, NULL };
	int in = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGHUP);
	if (getppid() != parent) /* the parent died before prctl() */
		_exit(TOOL_FAILED);
	if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(TOOL_FAILED);
	execv("/proc/self/exe", words);
	_exit(TOOL_FAILED);
}

/* Read the child's first line.  0, -ETIMEDOUT, -EINTR, or -EPIPE: the child ended instead. */
static int read_address(int from, char *line, size_t room)
{
	uint64_t until_ns = tool_now_ns() + START_NS;
	struct pollfd ready = { .fd = from, .events = POLLIN };
	size_t have = 0;
	ssize_t got;

	while (have + 1 < room) {
		if (tool_ending())
			return -EINTR;
		if (tool_now_ns() >= until_ns)
			return -ETIMEDOUT;
		if (poll(&ready, 1, 100) <= 0)
			continue;
		got = read(from, line + have, 1);
		if (got <= 0)
			return -EPIPE;
		if (line[have] == '\n') {
			line[have] = '\0';
			return 0;
		}
		have++;
	}
	return -EPIPE;
}

/* Choose the host of WEFT_LISTEN, for a fabric without loopback; two nodes can't share a port. */
static void choose_listen(char *listen, size_t room)
{
	const char *given = secure_getenv("WEFT_LISTEN");
	const char *port = given ? strrchr(given, ':') : NULL;

	if (!port || snprintf(listen, room, "%.*s:0", (int)(port - given), given) >= (int)room)
		strcpy(listen, "127.0.0.1:0");
}

int child_start(const struct tool_command *command, struct child *child)
{
	pid_t self = getpid();
	int ends[2], err;

	choose_listen(child->listen, sizeof(child->listen));
	if (pipe2(ends, O_CLOEXEC))
		return tool_fail(command, "can't make a pipe: %s", strerror(errno));
	child->pid = fork();
	if (child->pid == 0)
		become_server(child, self, ends[1]);
	close(ends[1]);
	if (child->pid < 0) {
		child->pid = 0;
		close(ends[0]);
		return tool_fail(command, "can't start a second process: %s", strerror(errno));
	}
	err = read_address(ends[0], child->address, sizeof(child->address));
	if (err) {
		child_ask(child);
		child_end(command, child);
	}
	close(ends[0]);
	/* An interrupt from a terminal reaches both processes: the second's end is no news then. */
	if (err && tool_ending())
		return TOOL_INTERRUPTED;
	if (err == -EPIPE)
		return tool_fail(command, "the second process ended before it served");
	if (err)
		return tool_fail(command, "the second process did not begin to serve");
	return TOOL_OK;
}

/* Wait for the child's end, for the time of one step.  false: the child still runs. */
static bool reaped(struct child *child)
{
	const struct timespec pause = { .tv_nsec = 5 * NS_PER_MS };
	uint64_t until_ns = tool_now_ns() + END_NS;

	while (!child->ended && tool_now_ns() < until_ns) {
		child->ended = waitpid(child->pid, &child->status, WNOHANG) == child->pid;
		if (!child->ended)
			nanosleep(&pause, NULL);
	}
	return child->ended;
}

void child_ask(struct child *child)
{
	if (!child->pid || child->ended)
		return;
	child->ended = waitpid(child->pid, &child->status, WNOHANG) == child->pid;
	if (child->ended)
		return;
	child->asked = true;
	kill(child->pid, SIGTERM);
}

int child_end(const struct tool_command *command, struct child *child)
{
	int status;

	if (!child->pid)
		return TOOL_OK;
	if (!reaped(child)) {
		child_ask(child);
		if (!reaped(child)) {
			kill(child->pid, SIGKILL);
			waitpid(child->pid, &child->status, 0);
		}
	}
	child->pid = 0;
	status = child->status;
	if (child->asked || tool_ending())
		return TOOL_OK;
	if (WIFSIGNALED(status))
		return tool_fail(command, "the second process was killed by signal %d (%s)",
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status))
		return tool_fail(command, "the second process ended with status %d",
				 WEXITSTATUS(status));
	return TOOL_OK;
}
