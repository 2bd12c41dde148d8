/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE 1 /* memfd_create */
#include "process.h"
#include "../port.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define LOOK_NS 2000000 /* between two looks at what a process has done */

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
}

unsigned long process_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000 + (unsigned long)t.tv_nsec / 1000000;
}

void process_start(struct process *p, const char *const *variables,
		   const char *const *argv)
{
	pid_t parent = getpid();

	memset(p, 0, sizeof(*p));
	p->out = memfd_create("out", 0);
	p->err = memfd_create("err", 0);
	/* Without O_APPEND one of two writes at once is lost: a memfd has no lock of its place. */
	assert_true(p->out >= 0 && p->err >= 0 && !fcntl(p->out, F_SETFL, O_APPEND) &&
		    !fcntl(p->err, F_SETFL, O_APPEND));

	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid > 0)
		return;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	dup2(p->out, STDOUT_FILENO);
	dup2(p->err, STDERR_FILENO);
	for (; variables && *variables; variables++)
		putenv((char *)*variables);
	execv(argv[0], (char *const *)argv);
	dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

void process_signal(struct process *p, int signal)
{
	if (!p->ended)
		assert_int_equal(kill(p->pid, signal), 0);
}

static bool has_ended(struct process *p)
{
	int status;

	if (!p->ended && waitpid(p->pid, &status, WNOHANG) == p->pid) {
		p->ended = true;
		p->status = WIFEXITED(status) ? WEXITSTATUS(status) :
						-WTERMSIG(status);
	}
	return p->ended;
}

bool process_wait(struct process *p, unsigned limit_ms)
{
	unsigned long until = process_now_ms() + limit_ms;

	while (!has_ended(p)) {
		if (process_now_ms() > until)
			return false;
		nap();
	}
	return true;
}

static const char *read_text(struct process *p, int fd)
{
	ssize_t got = pread(fd, p->text, sizeof(p->text) - 1, 0);

	assert_true(got >= 0);
	p->text[got] = '\0';
	return p->text;
}

const char *process_out(struct process *p)
{
	return read_text(p, p->out);
}

const char *process_err(struct process *p)
{
	return read_text(p, p->err);
}

void process_address(struct process *p, char address[128])
{
	if (!process_says(p, "\n", PROCESS_LIMIT_MS))
		fail_msg("a server without an address: %s", process_err(p));
	assert_int_equal(sscanf(process_out(p), "%127s", address), 1);
}

bool process_says(struct process *p, const char *text, unsigned limit_ms)
{
	unsigned long until = process_now_ms() + limit_ms;

	for (;;) {
		bool last = has_ended(p) || process_now_ms() > until;

		if (strstr(process_out(p), text))
			return true;
		if (last)
			return false;
		nap();
	}
}

void process_stop(struct process *p)
{
	if (p->pid <= 0)
		return;
	if (!has_ended(p)) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
	close(p->out);
	close(p->err);
	p->pid = 0;
}

const char *process_path(const char *program, char path[512])
{
	const char *top = getenv("top_builddir");

	snprintf(path, 512, "%s/%s", top ? top : ".", program);
	return path;
}

bool process_finds(const char *provider)
{
	char path[512], variable[64];
	const char *variables[] = { variable, NULL };
	const char *argv[] = { process_path("weft", path), "info", NULL };
	struct process info;
	bool there;

	snprintf(variable, sizeof(variable), "FI_PROVIDER=%s", provider);
	process_start(&info, variables, argv);
	assert_true(process_wait(&info, PROCESS_LIMIT_MS));
	there = info.status == 0;
	process_stop(&info);
	if (!there)
		print_message("no %s here\n", provider);
	return there;
}

void process_ports(unsigned short *ports, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		ports[i] = port_free("127.0.0.1");
		assert_int_not_equal(ports[i], 0);
	}
}
