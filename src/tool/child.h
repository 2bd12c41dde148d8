/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second process of `weft perf`: this program again, as `weft serve --once`
 * on a free port of this host, at the address that WEFT_LISTEN gives or else at
 * loopback.  The kernel sends it SIGHUP when the first dies.
 *
 * Threads: owner; start it before the node is opened, for a forked process
 * must hold nothing of a fabric.
 */
#ifndef TOOL_CHILD_H
#define TOOL_CHILD_H

#include "tool/tool.h"
#include <sys/types.h>

/* All zero: none was started. */
struct child {
	pid_t pid;
	bool asked, ended; /* asked before it ended by itself */
	int status;        /* as waitpid has it, once it has ended */
	char listen[128];  /* where the first process's node listens, too */
	char address[128];
};

/* Start it and learn its address.  Returns TOOL_OK, or another after saying why. */
int child_start(const struct tool_command *command, struct child *child);

/* Ask it to end.  Harmless when there is none. */
void child_ask(struct child *child);

/*
 * Wait until it has ended, for a moment; then ask it to; then kill it.
 * Returns TOOL_OK, or TOOL_FAILED after saying how it ended, unless it was asked to.
 */
int child_end(const struct tool_command *command, struct child *child);

#endif
