/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"
#include "tests/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PROVIDERS "tcp shm net sockets"
#define PROVIDERS_MAX 8
#define OTHERS_MAX 8
#define LINE_BYTES 512
#define BLOCK_WORDS 512

extern char **environ;

/* A provider that tests go over, if this host has it. */
static struct provider {
	char name[32]; /* "": it is behind the last */
	bool asked, offered; /* asking takes a while, and the answer stays */
} providers[PROVIDERS_MAX + 1];

static bool is_other;         /* is this process another's other side? */
static const char *at;        /* the provider that the test is at */
static struct weft_node *here; /* the node of the pair that is open; NULL: there is none */
static unsigned at_index;
static pid_t started[OTHERS_MAX];
static struct pair_other spares[OTHERS_MAX]; /* without a node */
static unsigned spare_count;

void pair_need(bool met, const char *condition, const char *file, int line)
{
	if (met)
		return;
	if (is_other) {
		fprintf(stderr, "%s:%d: in the other process: not met: %s (%s)\n", file, line,
			condition, weft_error());
		_exit(3);
	}
	print_error("not met: %s (%s)\n", condition, weft_error());
	_fail(file, line);
}

uint64_t pair_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void pair_sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 }, NULL);
}

void pair_free_address(char address[32])
{
	const char *listen = getenv("WEFT_LISTEN");
	char host[INET_ADDRSTRLEN];
	unsigned short port;

	snprintf(host, sizeof(host), "%s", listen ? listen : "127.0.0.1");
	host[strcspn(host, ":")] = '\0';
	port = port_free(host);
	need(port);
	snprintf(address, 32, "%s:%u", host, port);
}

/* Providers. */

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	fprintf(stderr, "%s %d: %s\n", is_other ? "other" : "test", level, line);
}

struct weft_node_options pair_options(const char *provider)
{
	return (struct weft_node_options){ .size = sizeof(struct weft_node_options),
					   .provider = provider,
					   .log = getenv("PAIR_LOG") ? log_line : NULL };
}

const char *pair_within_process(const char *provider)
{
	return strcmp(provider, "shm") ? provider : "shm,tcp";
}

static bool is_offered(struct provider *p)
{
	struct weft_node_options options = pair_options(p->name);
	struct weft_info *info;

	if (p->asked)
		return p->offered;
	p->asked = true;
	if (weft_info_open(&options, &info))
		return false;
	for (size_t i = 0; i < weft_info_count(info); i++) {
		struct weft_fabric fabric = { .size = sizeof(fabric) };

		p->offered |= !weft_info_get(info, i, &fabric) && fabric.used;
	}
	weft_info_close(info);
	return p->offered;
}

static void list_providers(void)
{
	const char *wanted = getenv("PAIR_PROVIDERS");
	size_t bytes;

	if (*providers[0].name)
		return;
	if (!wanted)
		wanted = PROVIDERS;
	for (size_t i = 0; i < PROVIDERS_MAX && *wanted; i++, wanted += bytes) {
		wanted += strspn(wanted, " ");
		bytes = strcspn(wanted, " ");
		snprintf(providers[i].name, sizeof(providers[i].name), "%.*s", (int)bytes, wanted);
	}
}

const char *pair_next(void)
{
	for (at = NULL; !at && *providers[at_index].name; at_index++)
		if (is_offered(&providers[at_index]))
			at = providers[at_index].name;
	return at;
}

const char *pair_first(void)
{
	at_index = 0;
	list_providers();
	if (!pair_next()) {
		print_message("skip: libfabric offers none of the providers that are wanted\n");
		skip();
	}
	return at;
}

const char *pair_any(void)
{
	const char *first = pair_first();

	at = NULL;
	return first;
}

void pair_name_the_missing(void **state)
{
	char missing[PROVIDERS_MAX * (1 + sizeof(providers[0].name))] = "";
	char *end = missing;

	(void)state;
	list_providers();
	for (struct provider *p = providers; *p->name; p++)
		if (!is_offered(p))
			end += sprintf(end, " %s", p->name);
	if (!*missing)
		return;
	print_message("skip: libfabric does not offer%s\n", missing);
	skip();
}

/* The other process, from the test. */

static void keep(pid_t pid, pid_t with)
{
	for (size_t i = 0; i < OTHERS_MAX; i++) {
		if (started[i] != pid)
			continue;
		started[i] = with;
		return;
	}
	need(!"too many processes");
}

int pair_teardown(void **state)
{
	unsigned count = 0;

	(void)state;
	for (size_t i = 0; i < OTHERS_MAX; i++)
		count += started[i] != 0;
	if (!at && count == spare_count)
		return 0;
	here = NULL;
	for (size_t i = 0; i < OTHERS_MAX; i++) {
		if (!started[i])
			continue;
		kill(started[i], SIGKILL);
		waitpid(started[i], NULL, 0);
		started[i] = 0;
	}
	spare_count = 0;
	if (at)
		print_error("it was at provider %s\n", at);
	at = NULL;
	return 0;
}

void pair_wait(struct weft_op *op)
{
	if (!weft_wait(op, PAIR_LIMIT_NS))
		return;
	if (here)
		(void)weft_dump(here, stderr);
	need(!"the operation ends in time");
}

/* A line, without its end; false when the other side ended or says nothing. */
static bool get_line(int fd, char *line, int limit_ms)
{
	struct pollfd input = { fd, POLLIN, 0 };
	size_t n = 0;

	/* Byte by byte: lines are few, and nothing of the next may be lost. */
	while (n < LINE_BYTES - 1) {
		if (poll(&input, 1, limit_ms) <= 0 || read(fd, line + n, 1) != 1)
			return false;
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
		n++;
	}
	return false;
}

void pair_say(struct pair_other *other, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	need(length > 0 && length < LINE_BYTES - 1);
	line[length++] = '\n';
	need(write(other->to, line, (size_t)length) == length);
}

static const char *hear(struct pair_other *other, const char *asked)
{
	static char line[LINE_BYTES];
	int status = 0;

	if (get_line(other->from, line, (int)(2 * PAIR_LIMIT_NS / PAIR_MS)))
		return line;
	if (waitpid(other->pid, &status, WNOHANG) == other->pid)
		keep(other->pid, 0);
	print_error("%s: the other process %s (wait status %x)\n", asked,
		    status ? "has ended" : "says nothing", (unsigned)status);
	need(!"a reply of the other process");
	return NULL;
}

const char *pair_hear(struct pair_other *other)
{
	const char *line = hear(other, "a command");

	need(!strncmp(line, "ok", 2));
	return line[2] ? line + 3 : "";
}

bool pair_has_spoken(const struct pair_other *other)
{
	struct pollfd input = { other->from, POLLIN, 0 };

	return poll(&input, 1, 0) > 0;
}

const char *pair_do(struct pair_other *other, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	pair_say(other, "%s", line);
	return pair_hear(other);
}

/* Not by fork: that would copy nodes that are open. */
static void spawn(struct pair_other *other)
{
	int to[2], from[2];
	char parent[16];
	const char *const argv[] = { "other", "--other", parent, NULL };
	posix_spawn_file_actions_t files;

	snprintf(parent, sizeof(parent), "%d", getpid());
	need(!pipe2(to, O_CLOEXEC) && !pipe2(from, O_CLOEXEC));
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, to[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, from[1], STDOUT_FILENO);
	*other = (struct pair_other){ .to = to[1], .from = from[0] };
	need(!posix_spawn(&other->pid, "/proc/self/exe", &files, NULL, (char *const *)argv,
			  environ));
	posix_spawn_file_actions_destroy(&files);
	close(to[0]);
	close(from[1]);
	keep(0, other->pid);
}

void pair_start(struct pair_other *other, const char *provider, const char *listen,
		struct weft_node *node)
{
	if (spare_count)
		*other = spares[--spare_count];
	else
		spawn(other);
	snprintf(other->address, sizeof(other->address), "%s",
		 pair_do(other, "open %s %s %s", provider, node ? weft_node_address(node) : "-",
			 listen ? listen : ""));
	if (node)
		need(!weft_peer_open(node, other->address, &other->peer));
}

void pair_end(struct pair_other *other)
{
	pair_do(other, "close");
	weft_peer_close(other->peer);
	other->peer = NULL;
	need(spare_count < OTHERS_MAX);
	spares[spare_count++] = *other;
	*other = (struct pair_other){ 0 };
}

static void let_go(struct pair_other *other)
{
	weft_peer_close(other->peer);
	close(other->to);
	close(other->from);
	*other = (struct pair_other){ 0 };
}

/* No more commands: it ends. */
static bool ends_well(struct pair_other *other)
{
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;
	int status = -1;

	close(other->to);
	other->to = -1;
	while (!waitpid(other->pid, &status, WNOHANG) && pair_now_ns() < until)
		pair_sleep_ms(1);
	if (status == -1)
		kill(other->pid, SIGKILL);
	keep(other->pid, 0);
	let_go(other);
	return status == 0;
}

int pair_group_teardown(void **state)
{
	bool good = true;

	(void)state;
	while (spare_count)
		good &= ends_well(&spares[--spare_count]);
	return good ? 0 : -1;
}

void pair_kill(struct pair_other *other, int signal)
{
	need(!kill(other->pid, signal));
	if (signal != SIGKILL)
		return;
	need(waitpid(other->pid, NULL, 0) == other->pid);
	keep(other->pid, 0);
	let_go(other);
}

void pair_open(struct pair *pair, const char *provider, const struct weft_node_options *options)
{
	struct weft_node_options preset = pair_options(provider);

	*pair = (struct pair){ .provider = provider };
	need(!weft_node_open(options ? options : &preset, &pair->node));
	here = pair->node;
	pair_start(&pair->other, provider, NULL, pair->node);
	pair->peer = pair->other.peer;
}

void pair_close(struct pair *pair)
{
	/* Not before this node: a manual one would not answer the other's last frames. */
	weft_peer_close(pair->peer);
	pair->other.peer = NULL;
	here = NULL;
	need(!weft_node_close(pair->node));
	if (pair->other.pid)
		pair_end(&pair->other);
}

void pair_exchange(struct pair *pair, struct pair_other *other)
{
	struct pair_send send;

	pair_do(other, "recv 5 here 300000 1");
	pair_do(other, "send 5 there 300000 2");
	send = pair_send(other->peer, 5, "here", 300000, 1);
	pair_received(pair_recv(pair->node, other->peer, 5, "there"), 300000, 2);
	pair_sent(&send);
	pair_do(other, "finish");
}

/* Files in /dev/shm. */

#define SHM "/dev/shm/"

static bool has(const struct pair_files *files, const char *name)
{
	for (size_t i = 0; i < files->count; i++)
		if (!strcmp(files->names[i], name))
			return true;
	return false;
}

static void add(struct pair_files *files, const char *path)
{
	if (strncmp(path, SHM, strlen(SHM)) || has(files, path))
		return;
	need(files->count < PAIR_FILES_MAX);
	snprintf(files->names[files->count++], sizeof(files->names[0]), "%s", path);
}

void pair_files_of(pid_t pid, struct pair_files *files)
{
	char path[300], line[512], target[300];
	struct dirent *entry;
	ssize_t length;
	FILE *maps;
	DIR *fds;

	*files = (struct pair_files){ .count = 0 };
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	need(maps != NULL);
	while (fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = '\0';
		if (strchr(line, '/'))
			add(files, strchr(line, '/'));
	}
	fclose(maps);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	fds = opendir(path);
	need(fds != NULL);
	while ((entry = readdir(fds))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		if (length < 0)
			continue;
		target[length] = '\0';
		add(files, target);
	}
	closedir(fds);
}

size_t pair_files_left(const struct pair_files *files, const struct pair_files *but)
{
	size_t count = 0;

	for (size_t i = 0; i < files->count; i++)
		count += !has(but, files->names[i]) && !access(files->names[i], F_OK);
	return count;
}

/* The other process itself. */

/* What was begun and is not finished. */
static struct begun {
	struct begun *next;
	struct pair_send send;
	struct weft_op *recv;
	size_t count;
	uint64_t seed;
} *first_begun, **last_begun = &first_begun;

static struct begun *begin(const char *arguments, uint64_t *step, char key[64])
{
	struct begun *b = calloc(1, sizeof(*b));

	need(b && sscanf(arguments, "%" SCNu64 " %63s %zu %" SCNu64, step, key, &b->count,
			 &b->seed) == 4);
	*last_begun = b;
	last_begun = &b->next;
	return b;
}

static void do_send(struct pair *side, char *arguments)
{
	uint64_t step;
	char key[64];
	struct begun *b = begin(arguments, &step, key);

	b->send = pair_send(side->peer, step, key, b->count, b->seed);
}

static void do_recv(struct pair *side, char *arguments)
{
	uint64_t step;
	char key[64];
	struct begun *b = begin(arguments, &step, key);

	b->recv = pair_recv(side->node, NULL, step, key);
}

static void do_finish(struct pair *side, char *arguments)
{
	struct begun *b;

	(void)side;
	(void)arguments;
	while ((b = first_begun)) {
		if (b->recv)
			pair_received(b->recv, b->count, b->seed);
		else
			pair_sent(&b->send);
		first_begun = b->next;
		free(b);
	}
	last_begun = &first_begun;
}

static void do_close(struct pair *side, char *arguments)
{
	(void)arguments;
	weft_peer_close(side->peer);
	side->peer = NULL;
	need(!weft_node_close(side->node));
	side->node = NULL;
}

static void do_open(struct pair *side, char *arguments)
{
	static char provider[32];
	struct weft_node_options options = pair_options(provider);
	char address[96], listen[32];
	int count = sscanf(arguments, "%31s %95s %31s", provider, address, listen);

	need(count >= 2);
	side->provider = provider;
	options.listen = count == 3 ? listen : NULL;
	need(!weft_node_open(&options, &side->node));
	if (strcmp(address, "-"))
		need(!weft_peer_open(side->node, address, &side->peer));
	snprintf(side->reply, sizeof(side->reply), "%s", weft_node_address(side->node));
}

static void do_ping(struct pair *side, char *arguments)
{
	(void)arguments;
	pair_ping(side->peer);
}

static const struct pair_command common[] = {
	{ "open", do_open },
	{ "close", do_close },
	{ "send", do_send },
	{ "recv", do_recv },
	{ "finish", do_finish },
	{ "ping", do_ping },
	{ NULL, NULL },
};

static bool obey(struct pair *side, const struct pair_command *commands, const char *name,
		 char *arguments)
{
	for (; commands->name; commands++) {
		if (strcmp(commands->name, name))
			continue;
		side->reply[0] = '\0';
		commands->run(side, arguments);
		dprintf(STDOUT_FILENO, "ok %s\n", side->reply);
		return true;
	}
	return false;
}

bool pair_is_other(int argc, char **argv, const struct pair_command *commands)
{
	struct pair side = { 0 };
	char line[LINE_BYTES], *arguments;

	if (argc != 3 || strcmp(argv[1], "--other"))
		return false;
	is_other = true;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != atoi(argv[2]))
		_exit(127);
	while (get_line(STDIN_FILENO, line, -1)) {
		arguments = line + strcspn(line, " ");
		if (*arguments)
			*arguments++ = '\0';
		need((obey(&side, common, line, arguments) ||
		      obey(&side, commands, line, arguments)) && "a known command");
	}
	if (side.node)
		do_close(&side, NULL);
	return true;
}

/* For both sides. */

static void make_block(uint64_t words[BLOCK_WORDS], size_t block, uint64_t seed)
{
	/* Weyl's sequence and a multiplication: no two places or seeds alike. */
	uint64_t x = (seed * 0x100000001b3u + block * BLOCK_WORDS) * 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < BLOCK_WORDS; i++) {
		x += 0x9e3779b97f4a7c15u;
		words[i] = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
	}
}

void pair_fill(void *bytes, size_t count, uint64_t seed)
{
	uint64_t words[BLOCK_WORDS];
	char *to = bytes;

	for (size_t done = 0, n; done < count; done += n) {
		n = count - done < sizeof(words) ? count - done : sizeof(words);
		make_block(words, done / sizeof(words), seed);
		memcpy(to + done, words, n);
	}
}

bool pair_matches(const void *bytes, size_t count, uint64_t seed)
{
	uint64_t words[BLOCK_WORDS];
	const char *from = bytes;

	for (size_t done = 0, n; done < count; done += n) {
		n = count - done < sizeof(words) ? count - done : sizeof(words);
		make_block(words, done / sizeof(words), seed);
		if (memcmp(from + done, words, n))
			return false;
	}
	return true;
}

struct weft_tensor pair_tensor(void *bytes, int64_t *count)
{
	return (struct weft_tensor){ .data = bytes,
				     .device = { WEFT_CPU, 0 },
				     .ndim = 1,
				     .dtype = { WEFT_UINT, 8, 1 },
				     .shape = count };
}

struct pair_send pair_send(struct weft_peer *to, uint64_t step, const char *key, size_t count,
			   uint64_t seed)
{
	int64_t shape = (int64_t)count;
	struct pair_send send = { .bytes = malloc(count + 1) };
	struct weft_tensor tensor = pair_tensor(send.bytes, &shape);

	need(send.bytes != NULL);
	pair_fill(send.bytes, count, seed);
	need(!weft_send(to, step, key, strlen(key), &tensor, NULL, &send.op));
	return send;
}

void pair_sent(struct pair_send *send)
{
	pair_ended(send->op, WEFT_OK);
	weft_op_free(send->op);
	free(send->bytes);
}

struct weft_op *pair_recv(struct weft_node *node, struct weft_peer *from, uint64_t step,
			  const char *key)
{
	struct weft_op *op = NULL;

	need(!weft_recv(node, from, step, key, strlen(key), NULL, NULL, &op));
	return op;
}

void pair_received(struct weft_op *op, size_t count, uint64_t seed)
{
	const struct weft_tensor *got;
	unsigned flags = 99;

	pair_ended(op, WEFT_OK);
	got = weft_op_tensor(op, &flags);
	need(got && !flags);
	need(got->ndim == 1 && (size_t)got->shape[0] == count);
	need(got->dtype.code == WEFT_UINT && got->dtype.bits == 8 && got->dtype.lanes == 1);
	need(count ? pair_matches((char *)got->data + got->byte_offset, count, seed) : !got->data);
	weft_op_free(op);
}

void pair_ended(struct weft_op *op, enum weft_status status)
{
	int err = weft_wait(op, PAIR_LIMIT_NS);
	enum weft_status is = weft_op_status(op);

	if (err || is != status)
		fprintf(stderr, "%s: wait %d, %s: %s; awaited was %s\n",
			is_other ? "other" : "test", err, weft_status_name(is),
			weft_op_message(op), weft_status_name(status));
	need(!err && "the operation has ended");
	need(is == status);
	need(!weft_op_message(op)[0] == (status == WEFT_OK));
}

void pair_ping(struct weft_peer *peer)
{
	struct weft_op *op;

	need(!weft_ping(peer, NULL, &op));
	pair_ended(op, WEFT_OK);
	weft_op_free(op);
}

/* The point is to see it change: no race that a sanitizer should report. */
__attribute__((noinline, no_sanitize("thread"))) char pair_peek(const void *byte)
{
	return *(const volatile char *)byte;
}

void pair_reply(struct pair *side, const void *descriptor, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		sprintf(side->reply + 2 * i, "%02x", ((const uint8_t *)descriptor)[i]);
}

void pair_describe(struct pair *side, const struct weft_window *window)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);

	need(!weft_window_describe(window, descriptor, &bytes));
	pair_reply(side, descriptor, bytes);
}

struct weft_remote *pair_import(const struct pair *pair, const char *answer)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	struct weft_remote *remote;
	size_t bytes = 0;
	unsigned byte;

	while (sscanf(answer + 2 * bytes, "%2x", &byte) == 1)
		descriptor[bytes++] = (uint8_t)byte;
	need(!weft_window_import(pair->peer, descriptor, bytes, &remote));
	return remote;
}
