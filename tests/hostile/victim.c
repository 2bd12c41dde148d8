/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node as any program opens one, for tests/hostile: it serves reflection and
 * health, and does what its standard input says, a command a line.  Each is
 * answered by a line; `pulse` by one for each ping, until the input ends.
 */
#include <weft/weft.h>

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORD_BYTES 256
#define WORDS 5
#define NS_PER_MS 1000000ull
#define BIG_BYTES (8 << 20)
#define WORD_OF_BIG 16 /* what is broadcast repeats so many bytes */
#define NOTED_MAX 8
#define GUARD_BYTES 4096 /* memory before and behind a window, which nobody may write */
#define LIMIT_NS (15 * 1000 * NS_PER_MS) /* how long an operation may take */

struct victim {
	struct weft_node *node;
	struct weft_op *expected; /* a receive that nobody has waited for yet */
	struct weft_op **awaited; /* and those that nobody will */
	size_t awaited_count;
	struct weft_window *window;   /* NULL: none */
	struct weft_landing *landing; /* NULL: none */
	struct weft_op *landed;       /* the tensor of it that was taken last; NULL: none is held */
	char *memory;                 /* that of the window or landing, between two guards */
	size_t memory_bytes;
	struct weft_peer *noted; /* the peer of the last note */
	struct weft_peer *all_noted[NOTED_MAX]; /* peers of all notes, each once */
	size_t all_noted_count;
	struct weft_op *cast; /* a broadcast; NULL: none */
	char word[WORDS][WORD_BYTES];
};

struct command {
	const char *name;
	void (*run)(struct victim *v);
};

static char big[BIG_BYTES];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	fprintf(stderr, "weft %d: %s\n", level, line);
}

static struct weft_op_options limited(void)
{
	return (struct weft_op_options){ .size = sizeof(struct weft_op_options),
					 .timeout_ns = LIMIT_NS };
}

static void tell(const char *what, struct weft_op *op, const char *content, int count)
{
	weft_wait(op, WEFT_FOREVER);
	printf("%s %s \"%.*s\" %s\n", what, weft_status_name(weft_op_status(op)), count,
	       content ? content : "", weft_op_message(op));
}

static void failed(const char *what)
{
	printf("%s FAILED \"\" %s\n", what, weft_error());
}

/* ping ADDRESS */
static void run_ping(struct victim *v)
{
	struct weft_op_options options = limited();
	struct weft_peer *peer;
	struct weft_op *op;

	if (weft_peer_open(v->node, v->word[1], &peer) || weft_ping(peer, &options, &op)) {
		failed("ping");
		return;
	}
	tell("ping", op, NULL, 0);
	weft_op_free(op);
}

/* send ADDRESS STEP KEY TEXT; a text @N stands for N bytes. */
static void run_send(struct victim *v)
{
	struct weft_send_options options = { .size = sizeof(options), .op = limited() };
	bool is_big = v->word[4][0] == '@';
	int64_t asked = is_big ? strtoll(v->word[4] + 1, NULL, 10) : (int64_t)strlen(v->word[4]);
	int64_t count = asked < BIG_BYTES ? asked : BIG_BYTES;
	struct weft_tensor tensor = { .data = is_big ? big : v->word[4],
				      .ndim = 1,
				      .shape = &count,
				      .device = { WEFT_CPU, 0 },
				      .dtype = { WEFT_UINT, 8, 1 } };
	struct weft_peer *peer;
	struct weft_op *op;

	if (weft_peer_open(v->node, v->word[1], &peer) ||
	    weft_send(peer, strtoull(v->word[2], NULL, 10), v->word[3], strlen(v->word[3]), &tensor,
		      &options, &op)) {
		failed("send");
		return;
	}
	tell("send", op, NULL, 0);
	weft_op_free(op);
}

/* expect STEP KEY: begin to receive; `take` says what came of it. */
static void run_expect(struct victim *v)
{
	struct weft_recv_options options = { .size = sizeof(options), .op = limited() };

	weft_op_free(v->expected);
	v->expected = NULL;
	if (weft_recv(v->node, NULL, strtoull(v->word[1], NULL, 10), v->word[2], strlen(v->word[2]),
		      NULL, &options, &v->expected))
		failed("expect");
	else
		printf("expect OK \"\"\n");
}

static void forget_awaited(struct victim *v)
{
	for (size_t i = 0; i < v->awaited_count; i++) {
		weft_cancel(v->awaited[i]);
		weft_op_free(v->awaited[i]);
	}
	free(v->awaited);
	v->awaited = NULL;
	v->awaited_count = 0;
}

/* await ADDRESS STEP KEY COUNT: begin so many receives that name the peer. */
static void run_await(struct victim *v)
{
	size_t count = strtoull(v->word[4], NULL, 10);
	struct weft_peer *peer;

	forget_awaited(v);
	v->awaited = calloc(count + 1, sizeof(*v->awaited));
	if (!v->awaited || weft_peer_open(v->node, v->word[1], &peer)) {
		failed("await");
		return;
	}
	while (v->awaited_count < count) {
		struct weft_op **op = &v->awaited[v->awaited_count];

		if (weft_recv(v->node, peer, strtoull(v->word[2], NULL, 10), v->word[3],
			      strlen(v->word[3]), NULL, NULL, op)) {
			failed("await");
			return;
		}
		v->awaited_count++;
	}
	printf("await OK \"\"\n");
}

/* forget: end what is awaited. */
static void run_forget(struct victim *v)
{
	forget_awaited(v);
	printf("forget OK \"\"\n");
}

/* take */
static void run_take(struct victim *v)
{
	const struct weft_tensor *t;
	int count;

	if (!v->expected) {
		printf("take FAILED \"\" nothing is expected\n");
		return;
	}
	weft_wait(v->expected, WEFT_FOREVER);
	t = weft_op_tensor(v->expected, NULL);
	count = t && t->ndim == 1 && t->shape[0] < WORD_BYTES ? (int)t->shape[0] : 0;
	tell("take", v->expected, t ? t->data : NULL, count);
	weft_op_free(v->expected);
	v->expected = NULL;
}

static void close_memory(struct victim *v)
{
	weft_window_close(v->window);
	v->window = NULL;
	weft_op_free(v->landed);
	v->landed = NULL;
	weft_landing_close(v->landing);
	v->landing = NULL;
}

/* Make memory full of dots for a window or a landing.  False: there is none. */
static bool make_memory(struct victim *v, size_t bytes)
{
	close_memory(v);
	free(v->memory);
	v->memory_bytes = bytes;
	v->memory = malloc(bytes + 2 * GUARD_BYTES);
	if (!v->memory)
		return false;
	memset(v->memory, '#', bytes + 2 * GUARD_BYTES);
	memset(v->memory + GUARD_BYTES, '.', bytes);
	return true;
}

static void tell_descriptor(const char *what, const uint8_t *descriptor, size_t count)
{
	printf("%s OK \"", what);
	for (size_t i = 0; i < count; i++)
		printf("%02x", descriptor[i]);
	printf("\"\n");
}

/* window BYTES RIGHTS: open a window full of dots; what it says is the descriptor, in hex. */
static void run_window(struct victim *v)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t count = sizeof(descriptor);

	if (!make_memory(v, strtoull(v->word[1], NULL, 10)))
		printf("window FAILED \"\" no memory\n");
	else if (weft_window_open(v->node, v->memory + GUARD_BYTES, v->memory_bytes,
				  (unsigned)strtoul(v->word[2], NULL, 10), &v->window) ||
		 weft_window_describe(v->window, descriptor, &count))
		failed("window");
	else
		tell_descriptor("window", descriptor, count);
}

/* landing SLOTS BYTES: open a landing of slots full of dots; the descriptor, in hex. */
static void run_landing(struct victim *v)
{
	size_t slots = strtoull(v->word[1], NULL, 10), bytes = strtoull(v->word[2], NULL, 10);
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t count = sizeof(descriptor);

	if (!make_memory(v, slots * bytes))
		printf("landing FAILED \"\" no memory\n");
	else if (weft_landing_open(v->node, v->memory + GUARD_BYTES, bytes, slots, &v->landing) ||
		 weft_landing_describe(v->landing, descriptor, &count))
		failed("landing");
	else
		tell_descriptor("landing", descriptor, count);
}

/* landed: take the next tensor, which is text, and give the slot of the one before back. */
static void run_landed(struct victim *v)
{
	struct weft_op_options options = limited();
	const struct weft_tensor *t;
	int count;

	weft_op_free(v->landed);
	v->landed = NULL;
	if (weft_landing_next(v->landing, &options, &v->landed)) {
		failed("landed");
		return;
	}
	weft_wait(v->landed, WEFT_FOREVER);
	t = weft_op_tensor(v->landed, NULL);
	count = t && t->ndim == 1 && t->shape[0] < WORD_BYTES ? (int)t->shape[0] : 0;
	tell("landed", v->landed, t ? t->data : NULL, count);
}

/* shut: close the window or landing; what it says is how many milliseconds that took. */
static void run_shut(struct victim *v)
{
	uint64_t begun_ns = now_ns();

	close_memory(v);
	printf("shut OK \"%llu\"\n", (unsigned long long)((now_ns() - begun_ns) / NS_PER_MS));
}

/* look AT COUNT: bytes of the window's memory as they are. */
static void run_look(struct victim *v)
{
	size_t at = strtoull(v->word[1], NULL, 10), count = strtoull(v->word[2], NULL, 10);

	printf("look OK \"%.*s\"\n", (int)count, v->memory + GUARD_BYTES + at);
}

/* sound: has nobody written beside the window?  And how many puts have ended in it. */
static void run_sound(struct victim *v)
{
	const char *behind = v->memory + GUARD_BYTES + v->memory_bytes;

	for (size_t i = 0; i < GUARD_BYTES; i++)
		if (v->memory[i] != '#' || behind[i] != '#') {
			printf("sound FAILED \"\" byte %zu of a guard is written\n", i);
			return;
		}
	printf("sound OK \"%llu\"\n",
	       v->window ? (unsigned long long)weft_window_puts(v->window) : 0);
}

/* Keep the peer of a note for `cast`. */
static void keep_noted(struct victim *v, struct weft_peer *peer)
{
	v->noted = peer;
	for (size_t i = 0; i < v->all_noted_count; i++)
		if (v->all_noted[i] == peer)
			return;
	if (v->all_noted_count < NOTED_MAX)
		v->all_noted[v->all_noted_count++] = peer;
}

/* note: take the next note of the window. */
static void run_note(struct victim *v)
{
	struct weft_op_options options = limited();
	const struct weft_note *note;
	struct weft_op *op;

	if (weft_window_next(v->window, &options, &op)) {
		failed("note");
		return;
	}
	weft_wait(op, WEFT_FOREVER);
	note = weft_op_note(op);
	if (note)
		keep_noted(v, weft_op_peer(op));
	tell("note", op, note ? note->data : NULL, note ? (int)note->bytes : 0);
	weft_op_free(op);
}

/* The window that ADDRESS DESCRIPTOR name; an address "-" is the peer of the last note. */
static struct weft_remote *import_window(struct victim *v)
{
	struct weft_peer *peer = v->noted;
	uint8_t descriptor[WORD_BYTES / 2];
	struct weft_remote *remote;
	size_t count = 0;

	while (sscanf(v->word[2] + 2 * count, "%2hhx", &descriptor[count]) == 1)
		count++;
	if ((strcmp(v->word[1], "-") && weft_peer_open(v->node, v->word[1], &peer)) || !peer ||
	    weft_window_import(peer, descriptor, count, &remote))
		return NULL;
	return remote;
}

/* put ADDRESS DESCRIPTOR TEXT: write the text to the beginning of a peer's window. */
static void run_put(struct victim *v)
{
	struct weft_access_options options = { .size = sizeof(options), .op = limited() };
	struct weft_block block = { .local = v->word[3], .bytes = strlen(v->word[3]) };
	struct weft_remote *remote = import_window(v);
	struct weft_op *op;

	if (!remote || weft_put(remote, &block, 1, &options, &op)) {
		failed("put");
	} else {
		tell("put", op, NULL, 0);
		weft_op_free(op);
	}
	weft_remote_close(remote);
}

/* push ADDRESS DESCRIPTOR TEXT: push the text into a peer's landing. */
static void run_push(struct victim *v)
{
	struct weft_push_options options = { .size = sizeof(options), .op = limited() };
	int64_t count = (int64_t)strlen(v->word[3]);
	struct weft_tensor tensor = { .data = v->word[3],
				      .ndim = 1,
				      .shape = &count,
				      .device = { WEFT_CPU, 0 },
				      .dtype = { WEFT_UINT, 8, 1 } };
	struct weft_remote *remote = import_window(v);
	struct weft_op *op;

	if (!remote || weft_push(remote, &tensor, &options, &op)) {
		failed("push");
	} else {
		tell("push", op, NULL, 0);
		weft_op_free(op);
	}
	weft_remote_close(remote);
}

/* get ADDRESS DESCRIPTOR COUNT: read the beginning of a peer's window. */
static void run_get(struct victim *v)
{
	struct weft_access_options options = { .size = sizeof(options), .op = limited() };
	char text[WORD_BYTES] = "";
	struct weft_block block = { .local = text, .bytes = strtoull(v->word[3], NULL, 10) };
	struct weft_remote *remote = import_window(v);
	struct weft_op *op;

	if (!remote || block.bytes >= sizeof(text) || weft_get(remote, &block, 1, &options, &op)) {
		failed("get");
	} else {
		weft_wait(op, WEFT_FOREVER);
		tell("get", op, text, (int)block.bytes);
		weft_op_free(op);
	}
	weft_remote_close(remote);
}

/* uncast: end the broadcast; what it says is the status of each peer. */
static void run_uncast(struct victim *v)
{
	enum weft_status status;

	if (!v->cast) {
		printf("uncast FAILED \"\" there is none\n");
		return;
	}
	weft_cancel(v->cast);
	weft_wait(v->cast, WEFT_FOREVER);
	printf("uncast OK \"");
	for (size_t i = 0; !weft_broadcast_outcome(v->cast, i, &status, NULL); i++)
		printf("%s%s", i ? " " : "", weft_status_name(status));
	printf("\"\n");
	weft_op_free(v->cast);
	v->cast = NULL;
}

/* cast STEP KEY ADDRESS: begin to broadcast to the peers of all notes, and to one more. */
static void run_cast(struct victim *v)
{
	struct weft_broadcast_options options = { .size = sizeof(options), .op = limited() };
	struct weft_peer *peers[NOTED_MAX + 1];
	size_t count = v->all_noted_count;
	int64_t bytes = BIG_BYTES;
	struct weft_tensor tensor = { .data = big,
				      .ndim = 1,
				      .shape = &bytes,
				      .device = { WEFT_CPU, 0 },
				      .dtype = { WEFT_UINT, 8, 1 } };

	memcpy(peers, v->all_noted, sizeof(v->all_noted));
	for (size_t i = 0; i < BIG_BYTES; i++)
		big[i] = (char)('a' + i % WORD_OF_BIG);
	if (v->cast || weft_peer_open(v->node, v->word[3], &peers[count]) ||
	    weft_broadcast(peers, count + 1, strtoull(v->word[1], NULL, 10), v->word[2],
			   strlen(v->word[2]), &tensor, &options, &v->cast))
		failed("cast");
	else
		printf("cast OK \"\"\n");
}

/* How many bytes of a tensor repeat its first ones. */
static size_t count_repeated(const struct weft_tensor *t)
{
	const char *data = t ? t->data : NULL;
	size_t bytes = data ? (size_t)t->shape[0] : 0;

	return bytes > WORD_OF_BIG && !memcmp(data, data + WORD_OF_BIG, bytes - WORD_OF_BIG) ? bytes
											   : 0;
}

/*
 * follow ADDRESS STEP KEY: receive of a broadcast, and relay; an address "-" is the peer of the last
 * note.  What it says is the first bytes, and how many repeat them.
 */
static void run_follow(struct victim *v)
{
	struct weft_recv_options options = { .size = sizeof(options), .op = limited() };
	const struct weft_tensor *t;
	struct weft_peer *peer = v->noted;
	char text[WORD_OF_BIG + 32] = "";
	size_t repeated;
	struct weft_op *op;

	options.flags = WEFT_RELAY;
	if ((strcmp(v->word[1], "-") && weft_peer_open(v->node, v->word[1], &peer)) || !peer ||
	    weft_recv(v->node, peer, strtoull(v->word[2], NULL, 10), v->word[3],
		      strlen(v->word[3]), NULL, &options, &op)) {
		failed("follow");
		return;
	}
	weft_wait(op, WEFT_FOREVER);
	t = weft_op_tensor(op, NULL);
	repeated = count_repeated(t);
	if (repeated)
		snprintf(text, sizeof(text), "%.*s %zu", WORD_OF_BIG, (const char *)t->data,
			 repeated);
	tell("follow", op, text, (int)strlen(text));
	weft_op_free(op);
}

static bool input_ended(uint64_t wait_ns)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };

	return poll(&input, 1, (int)(wait_ns / NS_PER_MS)) > 0;
}

/* pulse ADDRESS MILLISECONDS: ping again and again; each says how many microseconds it took. */
static void run_pulse(struct victim *v)
{
	uint64_t pause_ns = strtoull(v->word[2], NULL, 10) * NS_PER_MS;
	struct weft_op_options options = limited();
	struct weft_peer *peer;
	struct weft_op *op;

	if (weft_peer_open(v->node, v->word[1], &peer)) {
		failed("pulse");
		return;
	}
	do {
		uint64_t begun_ns = now_ns();

		if (weft_ping(peer, &options, &op)) {
			failed("pulse");
			return;
		}
		weft_wait(op, WEFT_FOREVER);
		printf("pulse %s %.1f %s\n", weft_status_name(weft_op_status(op)),
		       (double)(now_ns() - begun_ns) / 1e3, weft_op_message(op));
		weft_op_free(op);
		fflush(stdout);
	} while (!input_ended(pause_ns));
}

/* A sanitizer's allocator has its own way to give memory back. */
void __sanitizer_purge_allocator(void) __attribute__((weak));

/* trim: give the system back what malloc keeps, so that its figures tell what is in use. */
static void run_trim(struct victim *v)
{
	(void)v;
	malloc_trim(0);
	if (__sanitizer_purge_allocator)
		__sanitizer_purge_allocator();
	printf("trim OK \"\"\n");
}

/* dump */
static void run_dump(struct victim *v)
{
	weft_dump(v->node, stderr);
	printf("dump OK \"\"\n");
}

/* count: frames that were refused, and what came too late. */
static void run_count(struct victim *v)
{
	struct weft_counters counters = WEFT_COUNTERS_INIT;

	if (weft_node_counters(v->node, &counters))
		failed("count");
	else
		printf("count OK \"%llu %llu\"\n", (unsigned long long)counters.frames_refused,
		       (unsigned long long)counters.late_dropped);
}

static const struct command commands[] = {
	{ "ping", run_ping },     { "send", run_send },   { "expect", run_expect },
	{ "take", run_take },     { "pulse", run_pulse }, { "trim", run_trim },
	{ "dump", run_dump },     { "await", run_await }, { "forget", run_forget },
	{ "window", run_window }, { "shut", run_shut },   { "look", run_look },
	{ "sound", run_sound },   { "note", run_note },   { "put", run_put },
	{ "get", run_get },       { "cast", run_cast },   { "uncast", run_uncast },
	{ "follow", run_follow }, { "push", run_push },   { "landing", run_landing },
	{ "landed", run_landed }, { "count", run_count },
};

static void obey(struct victim *v, const char *line)
{
	memset(v->word, 0, sizeof(v->word));
	if (sscanf(line, "%255s %255s %255s %255s %255s", v->word[0], v->word[1], v->word[2],
		   v->word[3], v->word[4]) < 1)
		return;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, v->word[0])) {
			commands[i].run(v);
			return;
		}
	printf("%s FAILED \"\" no such command\n", v->word[0]);
}

int main(int argc, char **argv)
{
	struct weft_node_options options = { .size = sizeof(options),
					     .name = argc > 1 ? argv[1] : NULL,
					     .log = log_line };
	char line[WORDS * WORD_BYTES];
	struct victim v = { 0 };

	signal(SIGPIPE, SIG_IGN);
	if (weft_node_open(&options, &v.node) || weft_serve_reflection(v.node) ||
	    weft_serve_health(v.node)) {
		fprintf(stderr, "victim: %s\n", weft_error());
		return 1;
	}
	printf("%s\n", weft_node_address(v.node));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		obey(&v, line);
		fflush(stdout);
	}
	weft_op_free(v.expected);
	forget_awaited(&v);
	weft_op_free(v.cast);
	close_memory(&v);
	weft_node_close(v.node);
	free(v.memory);
	return 0;
}
