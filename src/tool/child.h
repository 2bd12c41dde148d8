/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second process of `weft perf`: this program again, as `weft serve --once` on a free port of
 * this host, at the address that WEFT_LISTEN gives or else at loopback.  The kernel sends the
 * second process SIGHUP when the first dies.
 *
 * Threads: owner; start the child before the node is opened, for a forked process must hold
 * nothing of a fabric.
 */
#ifndef TOOL_CHILD_H
#define TOOL_CHILD_H

#include "tool/tool.h"
#include <sys/types.h>

/* All zero: no child was started. */
struct child {
	pid_t pid;
	bool asked, ended; /* asked: child_ask() came before the end */
	int status;        /* status by waitpid(), once @ended */
	char listen[128];  /* address to listen at, of the first process's node too */
	char address[128]; /* address that the child has printed */
};

/* Start the child and learn its address.  Returns TOOL_OK, or another after saying why. */
int child_start(const struct tool_command *command, struct child *child);

/* Ask the child to end.  Harmless when there is none. */
void child_ask(struct child *child);

/*
 * Wait a moment until the child has ended; then ask it to; then kill it.  Returns TOOL_OK, or
 * TOOL_FAILED after saying how the child ended, unless it was asked to.
 */
int child_end(const struct tool_command *command, struct child *child);

#endif
