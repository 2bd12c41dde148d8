/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes in pairs of processes: a test starts its own program again as the
 * other side, which then obeys commands, one line each, until it is told to
 * end or is killed.  So a test reads from top to bottom, both sides in it.
 *
 * Each program adds its own commands to these:
 *   send STEP KEY BYTES SEED   begin to send to the test
 *   recv STEP KEY BYTES SEED   begin to receive from anyone
 *   finish                     wait until all that was begun has ended well
 *   ping                       reach the test and back
 *
 * A need() that is not met fails the test that runs; in the other process it
 * prints a sentence and ends that process, which fails the test, too.
 *
 * Threads: the one that runs the tests; need() in no callback.
 */
#ifndef PAIR_H
#define PAIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/weft.h>

#define PAIR_LIMIT_NS 20000000000ull /* limit of what takes milliseconds on an idle machine */
#define PAIR_MS 1000000ull
#define PAIR_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PAIR_REPLY_BYTES 256

/* The other process, as the test sees it. */
struct pair_other {
	pid_t pid;
	int to, from;           /* commands and replies */
	char address[96];       /* address of the door of its node */
	struct weft_peer *peer; /* the process, from the node that started it */
};

/* An end of a pair: in a test, and in the other process. */
struct pair {
	const char *provider;
	struct weft_node *node;
	struct weft_peer *peer;   /* the other side, seen from here */
	struct pair_other other;  /* in a test only */
	char reply[PAIR_REPLY_BYTES]; /* in the other process: a command's answer beside "ok" */
};

/* A command to the other process; @arguments is the rest of the line. */
struct pair_command {
	const char *name;
	void (*run)(struct pair *side, char *arguments);
};

/* Is this process a test's other side?  Then be it until the end. */
bool pair_is_other(int argc, char **argv, const struct pair_command *commands);

/*
 * Every provider that this host has, one after the other; NULL after the last.
 * With PAIR_PROVIDERS in the environment only the providers it names, with blanks between them.
 */
const char *pair_first(void);
const char *pair_next(void);

/* Any of the providers, for tests of what is the same for all. */
const char *pair_any(void);

/* Skip the test with the names of the providers that this host lacks. */
void pair_name_the_missing(void **state);

/* Wait until @op, of the node of the pair that is open, has ended; else print what that holds. */
void pair_wait(struct weft_op *op);

/* Tear a test down, for cmocka: kill what a failed test left behind, and print its
 * provider. */
int pair_teardown(void **state);
/* Tear a group of tests down, for cmocka: the processes must end well. */
int pair_group_teardown(void **state);

/* Options for a node of @provider that listens at any port of loopback; with
 * PAIR_LOG in the environment its log goes to stderr. */
struct weft_node_options pair_options(const char *provider);

/*
 * The provider for nodes of one process in a test of @provider: shm serves between processes
 * only, and tcp takes its place.
 */
const char *pair_within_process(const char *provider);

/* Open a node in this process, and one in another.  NULL @options: pair_options(). */
void pair_open(struct pair *pair, const char *provider, const struct weft_node_options *options);

/* Close both nodes. */
void pair_close(struct pair *pair);

/*
 * Start processes beyond the first, and end them.  @listen: address of the node's door, or NULL.
 * A process whose node was closed is used again, if there is any: starting one takes longer.
 */
void pair_start(struct pair_other *other, const char *provider, const char *listen,
		struct weft_node *node);
void pair_end(struct pair_other *other);

/* Send a signal; after SIGKILL it is also reaped. */
void pair_kill(struct pair_other *other, int signal);

/* Give a command and wait until it is done, or do the two apart.  Returns the answer of the
 * command, valid until the next. */
const char *pair_do(struct pair_other *other, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void pair_say(struct pair_other *other, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
const char *pair_hear(struct pair_other *other);

/* Put a descriptor into @side->reply, in the text that pair_import() reads. */
void pair_reply(struct pair *side, const void *descriptor, size_t bytes);

/* Answer a command with the descriptor of @window, which the first process imports. */
void pair_describe(struct pair *side, const struct weft_window *window);
struct weft_remote *pair_import(const struct pair *pair, const char *answer);

/* Is there an answer to hear? */
bool pair_has_spoken(const struct pair_other *other);

/* Exchange a tensor each way, pulled: the pair goes on as if nothing had been. */
void pair_exchange(struct pair *pair, struct pair_other *other);

/* The files in /dev/shm that a process has mapped or open: other programs have some, too. */
#define PAIR_FILES_MAX 32
struct pair_files {
	char names[PAIR_FILES_MAX][96];
	size_t count;
};
void pair_files_of(pid_t pid, struct pair_files *files);

/* Count @files that are still there, but for those that are @but's, too. */
size_t pair_files_left(const struct pair_files *files, const struct pair_files *but);

/* Helpers for either side. */

#define need(condition) pair_need(condition, #condition, __FILE__, __LINE__)
void pair_need(bool met, const char *condition, const char *file, int line);

uint64_t pair_now_ns(void);
void pair_sleep_ms(unsigned ms);

/* A port of 127.0.0.1, or of the host of WEFT_LISTEN, that nobody listened at just now. */
void pair_free_address(char address[32]);

/* Write, and check, bytes that tell their place and their tensor. */
void pair_fill(void *bytes, size_t count, uint64_t seed);
bool pair_matches(const void *bytes, size_t count, uint64_t seed);

/* A tensor of @count bytes; borrows both. */
struct weft_tensor pair_tensor(void *bytes, int64_t *count);

/* Begin to send @count bytes of pattern @seed, whose memory pair_sent() frees. */
struct pair_send {
	struct weft_op *op;
	void *bytes;
};
struct pair_send pair_send(struct weft_peer *to, uint64_t step, const char *key, size_t count,
			   uint64_t seed);
/* Wait until @send has ended well. */
void pair_sent(struct pair_send *send);

/* Begin to receive into memory of the pool, with the node's deadline. */
struct weft_op *pair_recv(struct weft_node *node, struct weft_peer *from, uint64_t step,
			  const char *key);
/* Wait until @op has ended well with @count bytes of pattern @seed, and free it. */
void pair_received(struct weft_op *op, size_t count, uint64_t seed);

/* Wait until @op has ended as @status. */
void pair_ended(struct weft_op *op, enum weft_status status);

/* Ping the other side; all that was sent before has then arrived there. */
void pair_ping(struct weft_peer *peer);

/* Read a byte of memory that a transfer may be writing just now. */
char pair_peek(const void *byte);

#endif
