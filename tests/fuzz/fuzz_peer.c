/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: what a peer that means harm says to a node in the midst of calls,
 * streams, tensors and attachments.  Whatever it says, every operation ends in
 * time, and once the peer is dead nothing is left of any.
 *
 * Two bytes say which operations there are, the next over what they go, who has
 * dialled, and whether the node still hears what the peer says honestly.  Then, up to the end:
 * a type, a u16 and so many bytes are a record; DOOR, a u16 and so many bytes a
 * message through the door, without its prefix; PAUSE and a u8 are milliseconds
 * that pass.
 *
 * Nodes, net and fabric are those of the simulation.
 */
#include "tests/fuzz/fuzz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "core/node.h"
#include "core/streaming.h"
#include "core/worker.h"
#include "link/conn.h"
#include "link/internal.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define PAUSE 0xff        /* types that no record has */
#define DOOR 0xfe
#define SMALL 20          /* bytes that go in a record */
#define BIG (100 * KIB)   /* bytes that are pulled */
#define LIMIT_NS (200 * MS)
#define PAUSES_NS (1000 * MS) /* all of them, so that no input takes long */
#define LATE_NS (5000 * MS) /* beyond the limit: a silent peer is long lost by then */
#define REST_NS (2000 * MS) /* after which it is lost, and what it could read is free */
#define FLIGHTS_MAX 128
#define RECEIVES_MAX 32   /* of attachments: a peer can send any number */
#define SHAPES 3          /* enum wf_world_shape */
#define DEAF 0x80         /* with a shape: the peer is not heard but for the input */
#define DIALLED 0x40      /* with a shape: the peer has dialled the node */

enum { NODE, PEER };

static struct wf_flight flights[FLIGHTS_MAX];
static unsigned flight_count;
static struct weft_stream *streams[4];
static unsigned stream_count, receive_count;
static uint8_t source[BIG], into[4][BIG];

static struct wf_flight *flight(void)
{
	must(flight_count < FLIGHTS_MAX);
	return &flights[flight_count++];
}

/* The operations, each by one end or the other. */

static void call(unsigned from, unsigned to, size_t bytes)
{
	wf_flight_call(flight(), from, to, source, bytes, LIMIT_NS);
}

/* With a tensor beside the request and another beside the reply, whose memory is the pool's. */

static struct weft_tensor row(int64_t *bytes)
{
	return (struct weft_tensor){
		.data = source, .device = { WEFT_CPU, 0 }, .ndim = 1,
		.dtype = { WEFT_UINT, 8, 1 }, .shape = bytes,
	};
}

static void handle(unsigned number, void *call)
{
	int64_t bytes = SMALL;
	struct weft_tensor t = row(&bytes);

	(void)number;
	for (unsigned i = 0; i < weft_served_attachments(call) && receive_count < RECEIVES_MAX;
	     i++) {
		struct wf_flight *f = flight();
		struct weft_recv_options options = { .size = sizeof(options) };

		receive_count++;
		options.op = wf_flight_begin(f, LIMIT_NS);
		must(!weft_served_receive(call, i, NULL, &options, &f->op));
	}
	must(!weft_served_attach(call, &t, NULL, NULL));
	wf_world_answer(call, source, SMALL);
}

static void replied(const Sim__Bytes *reply, void *arg)
{
	struct wf_flight *call = arg;

	if (!reply)
		return;
	for (unsigned i = 0; i < weft_op_attachments(call->op) && receive_count < RECEIVES_MAX;
	     i++) {
		struct wf_flight *f = flight();
		struct weft_recv_options options = { .size = sizeof(options) };

		receive_count++;
		options.op = wf_flight_begin(f, LIMIT_NS);
		must(!weft_op_receive(call->op, i, NULL, &options, &f->op));
	}
}

static void attach(unsigned from, unsigned to, size_t bytes)
{
	struct wf_flight *call = flight(), *beside = flight();
	struct weft_call_options options = { .size = sizeof(options) };
	struct weft_send_options send = { .size = sizeof(send) };
	Sim__Bytes question = SIM__BYTES__INIT;
	int64_t row_bytes = (int64_t)bytes;
	struct weft_tensor t = row(&row_bytes);
	ProtobufCService *service;

	wf_world_on_request(handle);
	options.op = wf_flight_begin(call, LIMIT_NS);
	must(!weft_call_open(wf_world_stub(from, to), &options, &service, &call->op));
	send.op = wf_flight_begin(beside, LIMIT_NS);
	must(!weft_call_attach(call->op, &t, &send, &beside->op));
	sim__mirror__reflect(service, &question, replied, call);
}

static void talk(unsigned from, unsigned to, size_t bytes)
{
	struct weft_stream **stream = &streams[stream_count++];

	wf_flight_open(flight(), from, to, LIMIT_NS, stream);
	for (int i = 0; i < 2; i++) {
		wf_flight_write(flight(), *stream, source, bytes, LIMIT_NS);
		wf_flight_read(flight(), *stream, LIMIT_NS);
	}
	must(!weft_stream_half_close(*stream));
	wf_flight_read(flight(), *stream, LIMIT_NS); /* the end */
}

static void pass(unsigned from, unsigned to, size_t bytes)
{
	uint64_t step = 2 * from + (bytes == BIG);

	wf_flight_send(flight(), from, to, step, source, bytes, LIMIT_NS);
	wf_flight_receive(flight(), to, from, step, into[step], bytes, LIMIT_NS);
}

static const struct {
	void (*begin)(unsigned from, unsigned to, size_t bytes);
	unsigned from;
	size_t bytes;
} operations[] = {
	{ call, NODE, SMALL }, { call, NODE, BIG }, { call, PEER, SMALL }, { call, PEER, BIG },
	{ talk, NODE, SMALL }, { talk, NODE, BIG }, { talk, PEER, SMALL }, { talk, PEER, BIG },
	{ pass, NODE, SMALL }, { pass, NODE, BIG }, { pass, PEER, SMALL }, { pass, PEER, BIG },
	{ attach, NODE, BIG }, { attach, PEER, BIG },
};

/* What the node hears. */

static struct wf_routes ears; /* all lead to hear(), with the real route as ctx */
static bool is_deaf, is_harm;
static struct wf_bytes_writer *notes; /* NULL: nobody writes down what is heard */
static uint64_t noted_ns;

static void note(const struct wf_record *record)
{
	uint64_t passed_ms = (wf_clock_now() - noted_ns) / MS;

	noted_ns += passed_ms * MS;
	if (passed_ms) {
		wf_bytes_put_u8(notes, PAUSE);
		wf_bytes_put_u8(notes, (uint8_t)WF_MIN(passed_ms, UINT8_MAX));
	}
	wf_bytes_put_u8(notes, record->type);
	wf_bytes_put_u16(notes, (uint16_t)record->count);
	wf_bytes_put(notes, record->bytes, record->count);
}

static int hear(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	const struct wf_route *real = ctx;

	if (notes)
		note(record);
	return is_deaf && !is_harm ? 0 : real->take(real->ctx, link, record);
}

static struct wf_engine *engine(void)
{
	return &wf_world_node(NODE)->workers[0].engine;
}

/* The first link of node @number; NULL: it has none. */
static struct wf_link *link_of(unsigned number)
{
	struct wf_list *first =
		wf_list_first(&wf_world_node(number)->workers[0].engine.link_list);

	return first ? WF_CONTAINER(first, struct wf_link, node) : NULL;
}

static void put_ears_on(void)
{
	struct wf_routes *real = &wf_world_node(NODE)->workers[0].routes;

	ears = (struct wf_routes){ 0 };
	for (unsigned type = 0; type < WF_COUNT(ears.of); type++)
		if (real->of[type].take)
			wf_route_set(&ears, type, hear, &real->of[type]);
	engine()->routes = &ears;
}

static void open_world(uint8_t how)
{
	setenv("CMOCKA_TEST_ABORT", "1", 1); /* where an assertion of the simulation fails */
	setenv("WEFT_HEARTBEAT", "100ms", 1);
	setenv("WEFT_LOST", "300ms", 1);
	setenv("WEFT_CONNECT_TIMEOUT", "1s", 1);
	wf_world_open((enum wf_world_shape)((how & ~(DEAF | DIALLED)) % SHAPES), 2, NULL);
	if (how & DIALLED)
		wf_world_connect(PEER, NODE);
	else
		wf_world_connect(NODE, PEER);
	put_ears_on();
	noted_ns = wf_clock_now();
	is_deaf = how & DEAF;
}

static void begin(unsigned which)
{
	for (size_t i = 0; i < WF_COUNT(operations); i++)
		if (which & 1U << i)
			operations[i].begin(operations[i].from, !operations[i].from,
					    operations[i].bytes);
}

/* All that were begun, and those that begin meanwhile. */
static void land(uint64_t limit_ns)
{
	unsigned count;

	do {
		count = flight_count;
		wf_flight_land(flights, count, limit_ns);
	} while (count < flight_count);
}

static void end(void)
{
	land(LIMIT_NS + LATE_NS);
	wf_world_on_request(NULL); /* what still comes begins nothing */
	while (stream_count)
		weft_stream_close(streams[--stream_count]);
	wf_flight_free(flights, flight_count);
	flight_count = receive_count = 0;
	is_deaf = false;
	/* It may have said that its calls last for ever; but they end with it. */
	wf_world_kill(PEER);
	wf_world_pass(REST_NS);
	must(!wf_world_count(NODE).message_bytes);
	must(!wf_world_close());
}

/* A record of the peer's, as the floor of links would give it on. */
struct harm {
	struct wf_loop_task task;
	struct wf_record record;
};

static void do_harm(struct wf_loop_task *task)
{
	struct harm *harm = WF_CONTAINER(task, struct harm, task);
	struct wf_link *link = link_of(NODE);
	int rc;

	if (!link || link->state != WF_LINK_UP)
		return;
	wf_link_get(link);
	is_harm = true;
	rc = wf_route_record(engine()->routes, link, &harm->record);
	is_harm = false;
	if ((rc == -EBADMSG || rc == -ENOSPC) && wf_link_greeted(link))
		wf_link_violate(link, "a record that makes no sense");
	wf_link_put(link);
}

static void say(uint8_t type, const uint8_t *bytes, uint32_t count)
{
	uint8_t *copy = malloc(count + !count);
	struct harm harm = { .task.run = do_harm };

	must(copy != NULL);
	if (count)
		memcpy(copy, bytes, count);
	harm.record = (struct wf_record){ .type = type, .count = count, .total = count,
					  .bytes = copy };
	wf_loop_submit(&engine()->loop, &harm.task);
	wf_world_poll(NODE);
	free(copy);
}

/* Through the peer's end of its door, behind what the peer has said itself. */
static void say_at_door(const uint8_t *bytes, uint32_t count)
{
	struct wf_link *link = link_of(PEER);
	uint8_t prefix[WF_GREET_PREFIX_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(prefix, sizeof(prefix));

	if (!link || !link->conn || !link->conn->stream.socket || link->conn->out.count)
		return;
	wf_bytes_put(&w, WF_GREET_MAGIC, sizeof(WF_GREET_MAGIC) - 1);
	wf_bytes_put_u32(&w, count);
	(void)wf_socket_write(link->conn->stream.socket, prefix, sizeof(prefix));
	(void)wf_socket_write(link->conn->stream.socket, bytes, count);
	wf_world_pass(MS); /* it arrives */
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	unsigned which = wf_bytes_get_u16(&r);
	uint64_t left_ns = PAUSES_NS;

	open_world(wf_bytes_get_u8(&r));
	begin(which);
	while (!r.bad && wf_bytes_reader_left(&r)) {
		uint8_t type = wf_bytes_get_u8(&r);
		size_t length;

		if (type == PAUSE) {
			uint64_t pause_ns = wf_bytes_get_u8(&r) * MS;

			pause_ns = WF_MIN(pause_ns, left_ns);
			left_ns -= pause_ns;
			wf_world_pass(pause_ns);
			continue;
		}
		length = wf_bytes_get_u16(&r);
		length = WF_MIN(length, wf_bytes_reader_left(&r));
		if (r.bad)
			break;
		if (type == DOOR)
			say_at_door(wf_bytes_view(&r, length), (uint32_t)length);
		else
			say(type, wf_bytes_view(&r, length), (uint32_t)length);
	}
	end();
	return 0;
}

/* A message of @kind as the peer might say it to the node, but for one thing. */
static void fill_greet(struct wf_greet *greet, enum wf_greet_kind kind)
{
	const struct wf_link *link = link_of(NODE);

	*greet = (struct wf_greet){ .kind = kind };
	switch (kind) {
	case WF_GREET_HELLO:
		memcpy(&greet->hello, link->peer, wf_greet_hello_bytes(link->peer));
		greet->hello.token ^= 1;
		break;
	case WF_GREET_TRY:
	case WF_GREET_CANNOT:
		greet->try.epoch = link->probe.epoch + 1;
		snprintf(greet->try.text, sizeof(greet->try.text), "it has no slots");
		break;
	case WF_GREET_BEAT:
		greet->beat.number = 7;
		break;
	case WF_GREET_RESYNC:
		greet->resync.epoch = link->probe.epoch;
		greet->resync.received = 1000;
		break;
	case WF_GREET_SAME:
		greet->same.link = link->id;
		greet->same.proves = true;
		break;
	default:
		snprintf(greet->refuse.text, sizeof(greet->refuse.text), "it closes");
		break;
	}
}

/*
 * One operation, and in its midst a message through the door.  Or none where the peer has
 * dialled: then nothing holds the link but its door.
 */
static size_t door_seed(enum wf_greet_kind kind, uint8_t how, uint8_t *bytes)
{
	unsigned which = how & DIALLED ? 0 : 1U << kind % WF_COUNT(operations);
	struct wf_bytes_writer w = wf_bytes_writer(bytes, FUZZ_BYTES_MAX);
	uint8_t message[WF_GREET_BYTES_MAX];
	struct wf_greet greet;
	int count;

	open_world(how);
	fill_greet(&greet, kind);
	end();
	count = wf_greet_put(&greet, message);
	must(count > WF_GREET_PREFIX_BYTES);
	wf_bytes_put_u16(&w, (uint16_t)which);
	wf_bytes_put_u8(&w, how);
	wf_bytes_put_u8(&w, DOOR);
	wf_bytes_put_u16(&w, (uint16_t)(count - WF_GREET_PREFIX_BYTES));
	wf_bytes_put(&w, message + WF_GREET_PREFIX_BYTES, (size_t)count - WF_GREET_PREFIX_BYTES);
	wf_bytes_put_u8(&w, PAUSE);
	wf_bytes_put_u8(&w, 1);
	must(!w.bad);
	return FUZZ_BYTES_MAX - wf_bytes_writer_left(&w);
}

/* The peer says, where it is not heard, what it would have said; then what it says at the door. */
size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	unsigned which = 1U << index % WF_COUNT(operations);
	unsigned door = index - WF_COUNT(operations) * SHAPES;
	struct wf_bytes_writer w = wf_bytes_writer(bytes, FUZZ_BYTES_MAX);
	uint8_t shape = (uint8_t)(index / WF_COUNT(operations));

	if (shape >= SHAPES && door < WF_GREET_SAME * SHAPES * 2)
		return door_seed((enum wf_greet_kind)(1 + door / 2 / SHAPES),
				 (uint8_t)(door / 2 % SHAPES | (door % 2 ? DIALLED : 0)), bytes);
	if (shape >= SHAPES)
		return 0;
	wf_bytes_put_u16(&w, (uint16_t)which);
	wf_bytes_put_u8(&w, DEAF | shape);
	open_world(shape);
	notes = &w;
	begin(which);
	land(LIMIT_NS);
	for (unsigned i = 0; i < flight_count; i++)
		must(flights[i].status == WEFT_OK);
	notes = NULL;
	end();
	must(!w.bad);
	return FUZZ_BYTES_MAX - wf_bytes_writer_left(&w);
}
