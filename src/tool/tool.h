/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Common parts of the sub-commands of `weft`: their table, exit statuses, errors, arguments and
 * signals.  The tool uses weft's public headers only, as a user would.
 *
 * Threads: owner; the tool has one thread, and one that prints dumps when a signal asks for them.
 */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include <signal.h>
#include <stdbool.h>
#include <weft/weft.h>

/* Limit of an answer.  A person waits; five seconds are enough for any network that works. */
#define TOOL_ANSWER_NS 5000000000ull

enum tool_exit {
	TOOL_OK = 0,
	TOOL_FAILED = 1,
	TOOL_USAGE = 2,
	TOOL_INTERRUPTED = 130 /* 128 + SIGINT, as shells have it */
};

/* A sub-command: a row of main.c's table. */
struct tool_command {
	const char *name;
	const char *arguments; /* as in the synopsis */
	const char *does;      /* purpose, one phrase */
	const char *options;   /* help text, one line each */
	bool passes_on;        /* arguments may be another program's: --help is looked for by run() */
	int (*run)(const struct tool_command *self, int argc, char **argv);
};

extern const struct tool_command info_command, ping_command, serve_command, perf_command,
	services_command, call_command, run_command, key_command;

/* Print "weft NAME: sentence" to stderr.  Returns TOOL_FAILED. */
__attribute__((format(printf, 2, 3)))
int tool_fail(const struct tool_command *command, const char *format, ...);

/* Print as tool_fail() does, and how to use the command.  Returns TOOL_USAGE. */
__attribute__((format(printf, 2, 3)))
int tool_misused(const struct tool_command *command, const char *format, ...);

/* Say how an operation failed.  Returns TOOL_FAILED. */
int tool_op_failed(const struct tool_command *command, const struct weft_op *op,
		   const char *what);

/* Print the command's help to stdout.  Returns TOOL_OK. */
int tool_help(const struct tool_command *command);

/* Name the option that getopt_long() refused with @answer, ':' or another.  Returns TOOL_USAGE. */
int tool_bad_option(const struct tool_command *command, int answer, char **argv);

/* Read a size: digits and perhaps K, M or G (powers of 1024).  -EINVAL. */
int tool_bytes(const char *text, uint64_t *bytes);

/* Read a whole number from @min to @max.  -EINVAL. */
int tool_count(const char *text, uint64_t min, uint64_t max, uint64_t *count);

/* Read seconds, as "2" or "0.5", from a nanosecond to a day.  -EINVAL. */
int tool_seconds(const char *text, uint64_t *ns);

/* Returns nanoseconds of the clock that never goes back. */
uint64_t tool_now_ns(void);

/* Returns the processor time that this process has spent. */
uint64_t tool_spent_ns(void);

/*
 * Catch signals from here on: SIGINT, SIGTERM and SIGHUP are noted, unless whoever started this
 * process has them ignored, as nohup does; SIGPIPE is an error of write(), and SIGUSR1 asks for a
 * dump of the node.  Does what tool_await_children() does, too.
 */
void tool_catch_signals(void);

/*
 * Make processes that this one starts stay until they are waited for, also where whoever started
 * this one has SIGCHLD ignored.  @before, unless NULL, gets the disposition of SIGCHLD before.
 */
void tool_await_children(struct sigaction *before);

/* Is the signal of @number ignored? */
bool tool_is_ignored(int number);

/* Note SIGHUP apart from here on: the process that started this one is dead. */
void tool_catch_orphaning(void);

/* Returns whether a signal has asked this process to end. */
bool tool_ending(void);

/* Returns whether SIGHUP has come since tool_catch_orphaning(). */
bool tool_orphaned(void);

/*
 * Open the manual node of this process.  The node's warnings go to stderr, and so does its dump
 * with each SIGUSR1, also while the node is stuck.  @listen NULL: as the environment says.
 */
int tool_node_open(const struct tool_command *command, const char *listen,
		   struct weft_node **node);

/* Close the node; accepts NULL. */
void tool_node_close(struct weft_node *node);

/* Open a peer.  Returns TOOL_OK, TOOL_USAGE after saying why @address is none, or TOOL_FAILED. */
int tool_peer_open(const struct tool_command *command, struct weft_node *node,
		   const char *address, struct weft_peer **peer);

/* Drive the node until @op has ended.  -EINTR: a signal asks the process to end before that. */
int tool_wait(struct weft_op *op);

/*
 * Cancel @op, a call that may still run, and free it: its closure gets no reply from here on, as
 * what that would be written to may be gone before the node closes.
 */
void tool_drop(struct weft_op *op);

/* Write out what stdout holds.  -EIO or another errno: the reader has gone. */
int tool_flush(const struct tool_command *command);

#endif
