/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * instructions: one kind of operation, -w times, between two manual nodes of this process.  It
 * measures nothing: callgrind counts the instructions of its two sides, which are all that happens
 * within the functions here_ and there_ after the call of counted() (instructions.py).  Half as
 * many operations come before, by which links and pools are in use.
 *
 *   -e early     a tensor of -s bytes, whose receive waits for it
 *   -e late      a tensor of -s bytes, whose receive comes after it
 *   -e stays     a tensor of -s bytes into a receive that stays
 *   -e call      a call with an empty message, and its reply
 *   -e stream    a message of -s bytes of a stream, whose read waits for it
 *   -e get, put  a block of -s bytes of a window
 *   -e gets, puts  64 blocks of -s bytes each
 *   -e idle      a turn with nothing to do
 *   -e sleep     the same, and a sleep of a millisecond: of use with WEFT_SPIN=0
 */
#include "tests/bench/must.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#include "tests/bench/sides.h"
#include "tests/sim/mirror.pb-c.h"

#define SIDE __attribute__((noinline)) static
#define BLOCKS 64
#define LATE_TURNS 4 /* until a tensor has surely come */

static struct side {
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_op *op; /* the operation of the side; NULL: none */
	uint64_t count;     /* tensors told to a receive that stays */
} here, there;

enum kind { EARLY, LATE, STAYS, CALL, STREAM, GET, PUT, GETS, PUTS, IDLE, SLEEP };

static const char *const kinds[] = { "early", "late", "stays", "call", "stream", "get", "put",
				     "gets", "puts", "idle", "sleep" };

static enum kind kind;
static size_t byte_count;
static char *bytes;
static struct weft_stub *stub;
static struct weft_stream *asks, *answers; /* the two ends of a stream; NULL: none */
static struct weft_remote *remote;
static struct weft_block blocks[BLOCKS];

static void send(void)
{
	int64_t shape = (int64_t)byte_count;
	struct weft_tensor t = { .data = bytes, .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };

	must(weft_send(here.peer, 1, "k", 1, &t, NULL, &here.op), "weft_send");
}

static void call(void)
{
	const Sim__Bytes request = SIM__BYTES__INIT;
	ProtobufCService *service;

	must(weft_call_open(stub, NULL, &service, &here.op), "weft_call_open");
	sim__mirror__reflect(service, &request, NULL, NULL);
}

static void write(void)
{
	const Sim__Bytes message = { .base = PROTOBUF_C_MESSAGE_INIT(&sim__bytes__descriptor),
				     .body = { byte_count, (uint8_t *)bytes } };

	must(weft_stream_write(asks, &message.base, NULL, &here.op), "weft_stream_write");
}

SIDE void here_begin(void)
{
	switch (kind) {
	case EARLY:
	case LATE:
	case STAYS:
		send();
		break;
	case CALL:
		call();
		break;
	case STREAM:
		write();
		break;
	case GET:
	case GETS:
		must(weft_get(remote, blocks, kind == GETS ? BLOCKS : 1, NULL, &here.op), "weft_get");
		break;
	case PUT:
	case PUTS:
		must(weft_put(remote, blocks, kind == PUTS ? BLOCKS : 1, NULL, &here.op), "weft_put");
		break;
	case IDLE:
	case SLEEP:
		break;
	}
}

SIDE void there_begin(void)
{
	if (kind == STREAM)
		must(weft_stream_read(answers, NULL, &there.op), "weft_stream_read");
	else
		must(weft_recv(there.node, NULL, 1, "k", 1, NULL, NULL, &there.op), "weft_recv");
}

static void turn_side(enum sides side)
{
	if (kind == SLEEP)
		sides_sleep(side);
	else
		sides_poll(side);
}

SIDE void here_turn(void)
{
	turn_side(HERE);
}

SIDE void there_turn(void)
{
	turn_side(THERE);
}

static void end(struct side *side)
{
	if (!side->op)
		return;
	if (weft_op_status(side->op) != WEFT_OK)
		bench_die("an operation failed: %s", weft_op_message(side->op));
	weft_op_free(side->op);
	side->op = NULL;
}

SIDE void here_end(void)
{
	end(&here);
}

SIDE void there_end(void)
{
	end(&there);
}

static bool goes_on(const struct side *side)
{
	return side->op && !weft_op_ended(side->op);
}

static void turn(void)
{
	here_turn();
	there_turn();
}

/* Make operation @number. */
static void go(uint64_t number)
{
	if (kind == EARLY || kind == STREAM)
		there_begin();
	here_begin();
	if (kind == LATE) {
		for (unsigned i = 0; i < LATE_TURNS; i++)
			turn();
		there_begin();
	}
	do
		turn();
	while (goes_on(&here) || goes_on(&there) || (kind == STAYS && there.count <= number));
	here_end();
	there_end();
}

static void count_one(struct weft_op *op, void *arg)
{
	struct side *side = arg;

	if (weft_op_status(op) != WEFT_OK)
		bench_die("a receive failed: %s", weft_op_message(op));
	side->count++;
	weft_op_free(op);
}

static void stay(void)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct weft_op *op;

	options.flags = WEFT_RECV_MANY;
	options.op.done = count_one;
	options.op.arg = &there;
	must(weft_recv(there.node, NULL, 1, "k", 1, NULL, &options, &op), "weft_recv");
}

static void take_stream(struct weft_stream *stream)
{
	answers = stream;
}

/* Open a stream that never ends: the process does. */
static void open_stream(void)
{
	struct weft_call_options options = WEFT_CALL_OPTIONS_INIT;
	struct weft_op *op;

	options.op.size = sizeof(options.op);
	options.op.timeout_ns = UINT64_MAX;
	sides_on_stream(take_stream);
	must(weft_stream_open(stub, "Talk", &options, &asks, &op), "weft_stream_open");
	while (!answers && !weft_op_ended(op))
		turn();
	if (!answers)
		bench_die("no stream: %s", weft_op_message(op));
}

static void find_window(void)
{
	size_t room = BLOCKS * byte_count;
	struct weft_window *window;
	struct weft_op *found;

	must(weft_window_open(there.node, bench_memory(room), room, WEFT_WINDOW_READ |
			      WEFT_WINDOW_WRITE, &window), "weft_window_open");
	must(weft_window_publish(window, "w", 1), "weft_window_publish");
	must(weft_window_find(here.peer, "w", 1, NULL, &found), "weft_window_find");
	while (!weft_op_ended(found))
		turn();
	must(weft_op_remote(found, &remote), "weft_op_remote");
	weft_op_free(found);
	/* Neighbours here are none there, or they would be one block. */
	for (size_t i = 0; i < BLOCKS; i++)
		blocks[i] = (struct weft_block){ bytes + i * byte_count,
						 (i * 37 % BLOCKS) * byte_count, byte_count };
}

static void meet(const char *provider)
{
	struct weft_op *ping;

	sides_open(provider);
	here.node = sides_node(HERE);
	there.node = sides_node(THERE);
	here.peer = sides_peer();
	must(weft_ping(here.peer, NULL, &ping), "weft_ping");
	while (!weft_op_ended(ping))
		turn();
	if (weft_op_status(ping) != WEFT_OK)
		bench_die("no link: %s", weft_op_message(ping));
	weft_op_free(ping);
}

static enum kind kind_of(const char *name)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i], name))
			return (enum kind)i;
	bench_die("there is no kind '%s'", name);
}

/* Let callgrind count the operations after this call alone: it forgets what it had before. */
SIDE void counted(void)
{
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	struct bench_options o = { .provider = "tcp", .endpoint = "early", .bytes = 8, .seconds = 1,
				   .window = 1 };

	bench_options(&o, argc, argv, "instructions [-e KIND] [-p PROVIDER] [-s BYTES] [-w COUNT]");
	kind = kind_of(o.endpoint);
	byte_count = o.bytes;
	bytes = bench_memory(BLOCKS * (o.bytes + 1));
	meet(o.provider);
	must(weft_stub_open(here.peer, &sim__mirror__descriptor, &stub), "weft_stub_open");
	if (kind == STAYS)
		stay();
	if (kind == STREAM)
		open_stream();
	if (kind >= GET && kind <= PUTS)
		find_window();
	for (uint64_t i = 0; i < o.window / 2 + o.window; i++) {
		if (i == o.window / 2)
			counted();
		go(i);
	}
	return 0;
}
