/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensors beside calls between processes, over every provider that this host has.
 *
 * ATTACHMENTS_CALLS says how many calls are cancelled in the midst of one; with it set,
 * how soon handlers learn of it is judged, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fabric/calls.pb-c.h"
#include "pair.h"

#define LONG_BYTES ((size_t)64 << 20)
#define PAGE 4096
#define AT_ONCE 8
#define HANDLERS 16         /* at once: they may end later than their calls */
#define CALLS_MAX 10000
#define CALLS 48            /* in a test among others */
#define HEARD_NS (10 * PAIR_MS) /* until a handler has learnt of a cancel, by the median */
#define CANARY 0xeeeeeeeeeeeeeeee

/* What both processes know of a call, in memory that they share. */
struct record {
	_Atomic uint64_t begun_ns, cancelled_ns, heard_ns;
	atomic_bool whole; /* its attachment came in spite of the cancel */
};

struct board {
	struct record calls[CALLS_MAX];
	atomic_uint late, wrong; /* pages that changed after the end; that came and were not sent */
	atomic_uint over;        /* handlers that have ended */
};

static struct board *board;

static void open_board(const char *path)
{
	FILE *file = fopen(path, "r+");

	if (!file || ftruncate(fileno(file), sizeof(*board)))
		abort();
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	if (board == MAP_FAILED)
		abort();
	fclose(file);
}

/* A word on each page says whose it is. */
static void stamp(uint8_t *bytes, uint64_t word)
{
	for (size_t at = 0; at < LONG_BYTES; at += PAGE)
		memcpy(bytes + at, &word, sizeof(word));
}

/* Pages that say something else. */
static unsigned differing(const uint8_t *bytes, uint64_t word)
{
	unsigned count = 0;

	for (size_t at = 0; at < LONG_BYTES; at += PAGE)
		count += memcmp(bytes + at, &word, sizeof(word)) != 0;
	return count;
}

/* The other side: a handler that receives what comes with the call into memory of its own. */

struct errand {
	uint32_t number;
	Calls__Response_Closure closure;
	void *call;
	uint8_t *into;
};

static uint8_t *buffers[HANDLERS]; /* of the worker's: free ones are not NULL */

static uint8_t *take_buffer(void)
{
	for (size_t i = 0; i < PAIR_COUNT(buffers); i++) {
		uint8_t *buffer = buffers[i];

		if (!buffer)
			continue;
		buffers[i] = NULL;
		atomic_fetch_add(&board->late, differing(buffer, CANARY));
		return buffer;
	}
	abort();
}

static void give_buffer(uint8_t *buffer)
{
	size_t i = 0;

	while (buffers[i])
		i++;
	stamp(buffer, CANARY);
	buffers[i] = buffer;
}

/* By word of the cancel, or by the end of what it receives: whichever comes first. */
static void heard(void *arg)
{
	const struct errand *e = arg;
	struct record *r = &board->calls[e->number];

	if (!atomic_load(&r->heard_ns))
		atomic_store(&r->heard_ns, pair_now_ns());
}

static void received(struct weft_op *op, void *arg)
{
	Calls__Response reply = CALLS__RESPONSE__INIT;
	struct errand *e = arg;

	if (weft_op_status(op) == WEFT_OK) {
		atomic_store(&board->calls[e->number].whole, true);
		atomic_fetch_add(&board->wrong, differing(e->into, e->number));
		e->closure(&reply, e->call);
	} else {
		heard(e);
		weft_served_fail(e->call, WEFT_ABORTED, weft_op_message(op));
	}
	give_buffer(e->into);
	weft_op_free(op);
	free(e);
	atomic_fetch_add(&board->over, 1);
}

static void receive(Calls__Test_Service *service, const Calls__Request *request,
		    Calls__Response_Closure closure, void *closure_data)
{
	struct errand *e = malloc(sizeof(*e));
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .done = received, .arg = e },
	};
	int64_t bytes = (int64_t)LONG_BYTES;
	struct weft_tensor into;
	struct weft_op *op;

	(void)service;
	*e = (struct errand){ request->sleep_ms, closure, closure_data, take_buffer() };
	into = pair_tensor(e->into, &bytes);
	weft_served_on_cancel(closure_data, heard, e);
	if (weft_served_receive(closure_data, 0, &into, &options, &op))
		abort();
	atomic_store(&board->calls[e->number].begun_ns, pair_now_ns());
}

/* Gives each attachment back beside the reply. */
struct mirror {
	Calls__Response_Closure closure;
	void *call;
	unsigned awaited;
	struct weft_op *ops[3];
};

static void give_back(struct mirror *m)
{
	Calls__Response reply = CALLS__RESPONSE__INIT;
	bool good = true;

	for (size_t i = 0; i < PAIR_COUNT(m->ops); i++) {
		struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SNAPSHOT };
		const struct weft_tensor *t = weft_op_tensor(m->ops[i], NULL);

		good = good && t && !weft_served_attach(m->call, t, &options, NULL);
		weft_op_free(m->ops[i]);
	}
	if (good)
		m->closure(&reply, m->call);
	else
		weft_served_fail(m->call, WEFT_DATA_LOSS, "something did not come");
	free(m);
}

static void mirrored(struct weft_op *op, void *arg)
{
	struct mirror *m = arg;

	(void)op;
	if (!--m->awaited)
		give_back(m);
}

static void mirror(Calls__Test_Service *service, const Calls__Request *request,
		   Calls__Response_Closure closure, void *closure_data)
{
	struct mirror *m = malloc(sizeof(*m));
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .done = mirrored, .arg = m },
	};

	(void)service;
	(void)request;
	*m = (struct mirror){ closure, closure_data, weft_served_attachments(closure_data),
			      { NULL } };
	if (m->awaited != PAIR_COUNT(m->ops))
		abort();
	for (unsigned i = 0; i < PAIR_COUNT(m->ops); i++)
		if (weft_served_receive(closure_data, i, NULL, &options, &m->ops[i]))
			abort();
}

static void run_serve(struct pair *side, char *arguments)
{
	static Calls__Test_Service service;

	open_board(arguments);
	for (size_t i = 0; i < PAIR_COUNT(buffers); i++) {
		buffers[i] = malloc(LONG_BYTES);
		stamp(buffers[i], CANARY);
	}
	calls__test__init(&service, NULL);
	service.unary = receive;
	service.later = mirror;
	need(!weft_serve(side->node, &service.base));
}

/* What the node holds beyond its start. */
static void run_held(struct pair *side, char *arguments)
{
	struct weft_counters c = { .size = sizeof(c) };

	(void)arguments;
	need(!weft_node_counters(side->node, &c));
	snprintf(side->reply, sizeof(side->reply), "%" PRIu64 " %" PRIu64, c.pool_bytes_used,
		 c.message_bytes);
}

static void run_clean(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	for (size_t i = 0; i < PAIR_COUNT(buffers); i++) {
		need(buffers[i]);
		need(!differing(buffers[i], CANARY));
		free(buffers[i]);
		buffers[i] = NULL;
	}
	munmap(board, sizeof(*board));
}

static const struct pair_command commands[] = {
	{ "serve", run_serve }, { "held", run_held }, { "clean", run_clean }, { NULL, NULL },
};

/* The test's side. */

struct client {
	struct pair pair;
	struct weft_stub *stub;
	char path[64];
};

static void open_client(struct client *c, const char *provider)
{
	int fd;

	pair_open(&c->pair, provider, NULL);
	strcpy(c->path, "/tmp/weft-attachments-XXXXXX");
	fd = mkstemp(c->path);
	assert_true(fd >= 0);
	close(fd);
	open_board(c->path);
	pair_do(&c->pair.other, "serve %s", c->path);
	assert_int_equal(weft_stub_open(c->pair.other.peer, &calls__test__descriptor, &c->stub), 0);
}

static void close_client(struct client *c)
{
	pair_do(&c->pair.other, "clean");
	weft_stub_close(c->stub);
	munmap(board, sizeof(*board));
	unlink(c->path);
	pair_close(&c->pair);
}

static void tell_nothing(const Calls__Response *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

static void tensors_of_every_size_go_there_and_back(void **state)
{
	static const size_t sizes[] = { 100, 100000, 9000000 };
	struct client c;

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		Calls__Request request = CALLS__REQUEST__INIT;
		struct weft_call_options options = { .size = sizeof(options) };
		ProtobufCService *service;
		struct weft_op *call, *received[PAIR_COUNT(sizes)];
		void *bytes[PAIR_COUNT(sizes)];

		open_client(&c, p);
		assert_int_equal(weft_call_open(c.stub, &options, &service, &call), 0);
		for (size_t i = 0; i < PAIR_COUNT(sizes); i++) {
			int64_t count = (int64_t)sizes[i];
			struct weft_tensor t;

			bytes[i] = malloc(sizes[i]);
			pair_fill(bytes[i], sizes[i], i + 1);
			t = pair_tensor(bytes[i], &count);
			assert_int_equal(weft_call_attach(call, &t, NULL, NULL), 0);
		}
		calls__test__later(service, &request, tell_nothing, NULL);
		pair_ended(call, WEFT_OK);
		assert_int_equal(weft_op_attachments(call), PAIR_COUNT(sizes));
		for (unsigned i = 0; i < PAIR_COUNT(sizes); i++) {
			free(bytes[i]);
			assert_int_equal(weft_op_attachment(call, i, NULL)->shape[0], sizes[i]);
			assert_int_equal(weft_op_receive(call, i, NULL, NULL, &received[i]), 0);
		}
		weft_op_free(call);
		for (unsigned i = 0; i < PAIR_COUNT(sizes); i++)
			pair_received(received[i], sizes[i], i + 1);
		close_client(&c);
	}
}

/* One of those that run at once. */
struct slot {
	struct weft_op *call;
	uint32_t number;
	uint8_t *bytes;
	uint64_t cancel_ns; /* 0: the handler has not begun */
};

static void begin(struct client *c, struct slot *s, uint32_t number)
{
	struct weft_call_options options = { .size = sizeof(options),
					     .op = { .size = sizeof(options.op),
						     .timeout_ns = PAIR_LIMIT_NS } };
	Calls__Request request = CALLS__REQUEST__INIT;
	int64_t bytes = (int64_t)LONG_BYTES;
	struct weft_tensor t = pair_tensor(s->bytes, &bytes);
	ProtobufCService *service;

	stamp(s->bytes, number);
	s->number = number;
	s->cancel_ns = 0;
	assert_int_equal(weft_call_open(c->stub, &options, &service, &s->call), 0);
	assert_int_equal(weft_call_attach(s->call, &t, NULL, NULL), 0);
	request.sleep_ms = number;
	calls__test__unary(service, &request, tell_nothing, NULL);
}

/* Cancel it up to 20 ms after its handler has begun; true: it has ended. */
static bool go_on(struct slot *s)
{
	struct record *r = &board->calls[s->number];
	uint64_t now = pair_now_ns();

	if (!s->cancel_ns && atomic_load(&r->begun_ns))
		s->cancel_ns = now + s->number * 2654435761u % 20 * PAIR_MS;
	if (s->cancel_ns && now >= s->cancel_ns && !atomic_load(&r->cancelled_ns)) {
		atomic_store(&r->cancelled_ns, pair_now_ns());
		weft_cancel(s->call);
	}
	if (!weft_op_ended(s->call))
		return false;
	assert_true(weft_op_status(s->call) == WEFT_OK ||
		    weft_op_status(s->call) == WEFT_CANCELLED);
	/* Its buffer is free: whoever reads it now gets something else. */
	stamp(s->bytes, CANARY);
	weft_op_free(s->call);
	s->call = NULL;
	return true;
}

static void cancel_many(struct client *c, unsigned count)
{
	struct slot slots[AT_ONCE] = { { 0 } };
	unsigned begun = 0, ended = 0;

	for (size_t i = 0; i < AT_ONCE; i++)
		slots[i].bytes = malloc(LONG_BYTES);
	while (ended < count) {
		for (size_t i = 0; i < AT_ONCE; i++) {
			struct slot *s = &slots[i];

			if (s->call)
				ended += go_on(s);
			else if (begun < count && begun - atomic_load(&board->over) < HANDLERS)
				begin(c, s, begun++);
		}
		usleep(200);
	}
	for (size_t i = 0; i < AT_ONCE; i++)
		free(slots[i].bytes);
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How soon handlers have heard, where the cancel was first; and how many did. */
static unsigned collect(unsigned count, uint64_t *median_ns, uint64_t *most_ns)
{
	static uint64_t times[CALLS_MAX];
	unsigned cancelled = 0, heard_of = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct record *r = &board->calls[i];

		if (!r->cancelled_ns || r->whole)
			continue;
		cancelled++;
		if (r->heard_ns > r->cancelled_ns)
			times[heard_of++] = r->heard_ns - r->cancelled_ns;
	}
	assert_int_equal(heard_of, cancelled);
	*median_ns = *most_ns = 0;
	if (!heard_of)
		return 0;
	qsort(times, heard_of, sizeof(times[0]), by_time);
	*median_ns = times[heard_of / 2];
	*most_ns = times[heard_of - 1];
	return heard_of;
}

static void wait_for_handlers(unsigned count)
{
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;

	while (atomic_load(&board->over) < count && pair_now_ns() < until)
		pair_sleep_ms(1);
	assert_int_equal(atomic_load(&board->over), count);
}

static void calls_cancelled_amid_their_attachments_leave_nothing(void **state)
{
	const char *given = getenv("ATTACHMENTS_CALLS");
	unsigned count = given ? (unsigned)strtoul(given, NULL, 10) : CALLS;
	struct weft_counters before = { .size = sizeof(before) }, after = before;
	uint64_t median_ns, most_ns;
	struct client c;

	(void)state;
	assert_true(count && count <= CALLS_MAX);
	for (const char *p = pair_first(); p; p = pair_next()) {
		char held[PAIR_REPLY_BYTES];
		unsigned cancelled;

		open_client(&c, p);
		pair_ping(c.pair.other.peer);
		strcpy(held, pair_do(&c.pair.other, "held"));
		assert_int_equal(weft_node_counters(c.pair.node, &before), 0);
		cancel_many(&c, count);
		wait_for_handlers(count);
		pair_ping(c.pair.other.peer);
		assert_string_equal(pair_do(&c.pair.other, "held"), held);
		assert_int_equal(weft_node_counters(c.pair.node, &after), 0);
		assert_int_equal(after.pool_bytes_used, before.pool_bytes_used);
		assert_int_equal(after.message_bytes, before.message_bytes);
		assert_int_equal(after.calls, before.calls);
		assert_int_equal(atomic_load(&board->late), 0);
		assert_int_equal(atomic_load(&board->wrong), 0);
		cancelled = collect(count, &median_ns, &most_ns);
		print_message("%s: %u calls with 64 MiB each, %u cancelled in its midst; their handlers heard after %.2f ms (median), %.2f ms (most)\n",
			      p, count, cancelled, (double)median_ns / PAIR_MS,
			      (double)most_ns / PAIR_MS);
		assert_true(cancelled > 0);
		if (given)
			assert_true(median_ns <= HEARD_NS);
		close_client(&c);
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(pair_name_the_missing),
		TEST(tensors_of_every_size_go_there_and_back),
		TEST(calls_cancelled_amid_their_attachments_leave_nothing),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
