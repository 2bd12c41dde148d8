/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/tool.h"
#include "tool/text.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000ull

/* Delay, at most, of a signal while an operation is waited for. */
#define SLICE_NS (NS_PER_S / 10)

static volatile sig_atomic_t ending, orphaned;

/* The node to be dumped; the lock keeps the node from being closed meanwhile. */
static pthread_mutex_t dump_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_node *dump_node;

#define TEXT_BYTES 1024
#define LINE_BYTES (4 * TEXT_BYTES + 64) /* each byte as \x1b, and the command's name */

/* Write a line at once: lines of two processes must not mix, nor may a peer's text forge one. */
static void print_line(const struct tool_command *command, const char *text)
{
	char line[LINE_BYTES] = "";
	FILE *out = fmemopen(line, sizeof(line), "w");

	if (!out)
		return;
	fprintf(out, "weft%s%s: ", *command->name ? " " : "", command->name);
	text_print(out, text);
	fputc('\n', out);
	fclose(out);
	fputs(line, stderr);
}

__attribute__((format(printf, 2, 0)))
static void complain(const struct tool_command *command, const char *format, va_list args)
{
	char text[TEXT_BYTES];

	vsnprintf(text, sizeof(text), format, args);
	fflush(stdout);
	print_line(command, text);
}

int tool_fail(const struct tool_command *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(command, format, args);
	va_end(args);
	return TOOL_FAILED;
}

int tool_misused(const struct tool_command *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(command, format, args);
	va_end(args);
	fprintf(stderr, "usage: weft %s %s\n", command->name, command->arguments);
	return TOOL_USAGE;
}

int tool_op_failed(const struct tool_command *command, const struct weft_op *op,
		   const char *what)
{
	return tool_fail(command, "%s: %s: %s", what, weft_status_name(weft_op_status(op)),
			 weft_op_message(op));
}

int tool_help(const struct tool_command *command)
{
	printf("usage: weft %s %s\n%s\n\n%s", command->name, command->arguments,
	       command->does, command->options);
	return TOOL_OK;
}

int tool_bad_option(const struct tool_command *command, int answer, char **argv)
{
	return tool_misused(command, answer == ':' ? "%s needs a value" : "there is no option %s",
			    argv[optind - 1]);
}

/* strtoull takes signs and blanks, which are no numbers here. */
static int digits(const char *text, uint64_t *value, const char **end)
{
	char *after;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &after, 10);
	*end = after;
	return errno ? -EINVAL : 0;
}

int tool_bytes(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMG";
	const char *end, *unit;
	unsigned shift = 0;
	uint64_t value;

	if (digits(text, &value, &end))
		return -EINVAL;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1])
			return -EINVAL;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (value > UINT64_MAX >> shift)
		return -EINVAL;
	*bytes = value << shift;
	return 0;
}

int tool_count(const char *text, uint64_t min, uint64_t max, uint64_t *count)
{
	const char *end;
	uint64_t value;

	if (digits(text, &value, &end) || *end || value < min || value > max)
		return -EINVAL;
	*count = value;
	return 0;
}

int tool_seconds(const char *text, uint64_t *ns)
{
	const double day = 86400;
	double value;
	uint64_t whole_ns;
	char *end;

	if ((*text < '0' || *text > '9') && *text != '.')
		return -EINVAL;
	value = strtod(text, &end);
	if (end == text || *end || !(value > 0 && value <= day))
		return -EINVAL;
	whole_ns = (uint64_t)(value * (double)NS_PER_S);
	if (!whole_ns)
		return -EINVAL;
	*ns = whole_ns;
	return 0;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t tool_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t tool_spent_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void note_end(int number)
{
	(void)number;
	ending = 1;
}

static void note_orphaned(int number)
{
	(void)number;
	orphaned = 1;
}

/* Block SIGUSR1, which then waits until there is a node and a thread that takes it. */
static sigset_t block_dumps(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return set;
}

/* Print a dump, with escapes: names of peers are in it. */
static void print_dump(struct weft_node *node)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return;
	if (weft_dump(node, out))
		fprintf(out, "weft: %s\n", weft_error());
	if (!fclose(out))
		text_print_lines(stderr, text);
	fflush(stderr);
	free(text);
}

/* A thread prints dumps, no handler: a dump takes memory and locks, wherever the node is stuck. */
static void *print_dumps(void *arg)
{
	sigset_t set = block_dumps();
	int number;

	(void)arg;
	while (!sigwait(&set, &number)) {
		pthread_mutex_lock(&dump_lock);
		if (dump_node)
			print_dump(dump_node);
		pthread_mutex_unlock(&dump_lock);
	}
	return NULL;
}

bool tool_is_ignored(int number)
{
	struct sigaction now;

	return !sigaction(number, NULL, &now) && now.sa_handler == SIG_IGN;
}

void tool_await_children(struct sigaction *before)
{
	/* Where SIGCHLD is ignored the kernel reaps processes, and tells nobody. */
	const struct sigaction reaped = { .sa_handler = SIG_DFL };

	sigaction(SIGCHLD, &reaped, before);
}

void tool_catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction noted = { .sa_handler = note_end };
	struct sigaction ignored = { .sa_handler = SIG_IGN };

	/* No SA_RESTART: a sleep in the kernel must end. */
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!tool_is_ignored(numbers[i]))
			sigaction(numbers[i], &noted, NULL);
	sigaction(SIGPIPE, &ignored, NULL);
	tool_await_children(NULL);
	block_dumps();
}

void tool_catch_orphaning(void)
{
	struct sigaction noted = { .sa_handler = note_orphaned };

	sigaction(SIGHUP, &noted, NULL);
}

bool tool_ending(void)
{
	return ending;
}

bool tool_orphaned(void)
{
	return orphaned;
}

static void print_log(void *arg, int level, const char *line)
{
	(void)level;
	print_line(arg, line);
}

int tool_node_open(const struct tool_command *command, const char *listen,
		   struct weft_node **node)
{
	struct weft_node_options options = {
		.size = sizeof(options),
		.mode = WEFT_MANUAL,
		.listen = listen,
		.log = print_log,
		.log_arg = (void *)(uintptr_t)command,
	};
	pthread_t thread;
	int err;

	block_dumps();
	err = weft_node_open(&options, node);
	if (err)
		return err;
	pthread_mutex_lock(&dump_lock);
	dump_node = *node;
	pthread_mutex_unlock(&dump_lock);
	/* Without the thread there are no dumps: the signal stays blocked. */
	if (!pthread_create(&thread, NULL, print_dumps, NULL))
		pthread_detach(thread);
	return 0;
}

void tool_node_close(struct weft_node *node)
{
	pthread_mutex_lock(&dump_lock);
	dump_node = NULL;
	pthread_mutex_unlock(&dump_lock);
	weft_node_close(node);
}

int tool_peer_open(const struct tool_command *command, struct weft_node *node,
		   const char *address, struct weft_peer **peer)
{
	int err = weft_peer_open(node, address, peer);

	if (!err)
		return TOOL_OK;
	return err == -EINVAL ? tool_misused(command, "%s", weft_error())
			      : tool_fail(command, "%s", weft_error());
}

int tool_wait(struct weft_op *op)
{
	int err;

	do {
		err = weft_wait(op, SLICE_NS);
		if (err == -ETIMEDOUT && tool_ending())
			return -EINTR;
	} while (err == -ETIMEDOUT);
	return err;
}

void tool_drop(struct weft_op *op)
{
	/* A cancel decides the outcome at once; the rest may take as long as a peer reads. */
	weft_cancel(op);
	(void)weft_wait(op, SLICE_NS);
	weft_op_free(op);
}

int tool_flush(const struct tool_command *command)
{
	int err;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	err = errno ? errno : EIO;
	tool_fail(command, "can't write the output: %s", strerror(err));
	clearerr(stdout); /* the error has been printed */
	return -err;
}
