/* SPDX-License-Identifier: BSD-2-Clause */
/* Broadcasts: receivers pass the body on, and one that fails costs the others time alone. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define STEP 7
#define BYTES ((size_t)8 * MIB)
#define NODES 6 /* node 0 sends to the others */

static uint8_t source[BYTES], targets[NODES][BYTES];
static struct wf_flight receives[NODES];
static bool suspicious = true; /* bytes that are told of must be right, not only in the end */
static uint64_t heard[NODES]; /* length of the beginning that a receive was told of */

static struct {
	struct wf_flight flight;
	bool read[NODES]; /* another node has read of the target */
} cast;

static const enum wf_world_shape shapes[] = {
	WF_WORLD_CONNECTED, WF_WORLD_SHARED, WF_WORLD_LANES,
};

static void forget_flights(void)
{
	memset(&cast, 0, sizeof(cast));
	memset(receives, 0, sizeof(receives));
	memset(targets, 0, sizeof(targets));
	memset(heard, 0, sizeof(heard));
	wf_world_fill(source, BYTES, 3);
}

static void open_world(enum wf_world_shape shape)
{
	forget_flights();
	wf_world_open(shape, NODES, NULL);
}

/* Broadcast to @peers.  @options: those that differ from the default. */
static void begin_to(struct weft_peer *const *peers, unsigned count, const void *data,
		     struct weft_broadcast_options options)
{
	struct weft_op_options op = wf_flight_begin(&cast.flight, 30 * S);
	int64_t shape = BYTES;
	struct weft_tensor t = { .data = (void *)(uintptr_t)data, .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };

	op.flags = options.op.flags;
	op.provider = options.op.provider;
	options.op = op;
	assert_int_equal(weft_broadcast(peers, count, STEP, "w", 1, &t, &options, &cast.flight.op),
			 0);
}

/* Broadcast to nodes 1 to @count. */
static void begin_as(struct weft_broadcast_options options, const void *data, unsigned count)
{
	struct weft_peer *peers[NODES];

	for (unsigned i = 0; i < count; i++)
		peers[i] = wf_world_peer(0, i + 1);
	begin_to(peers, count, data, options);
}

static void begin_with(const void *data, unsigned count, unsigned send_flags, unsigned flags)
{
	struct weft_broadcast_options options = WEFT_BROADCAST_OPTIONS_INIT;

	options.op.flags = flags;
	options.flags = send_flags;
	begin_as(options, data, count);
}

static void begin(unsigned count, unsigned flags)
{
	begin_with(source, count, 0, flags);
}

static void came(void *arg, const struct weft_tensor *t, uint64_t bytes)
{
	uint64_t *told = arg;

	assert_true(bytes > *told && bytes <= BYTES);
	if (suspicious)
		assert_same_content((uint8_t *)t->data + *told, source + *told, bytes - *told);
	*told = bytes;
}

/* Receive at node @to.  @terms: a provider and flags that the operation asks for. */
static void receive_as(unsigned to, unsigned flags, uint64_t timeout_ns,
		       const struct weft_op_options *terms)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	int64_t shape = BYTES;
	struct weft_tensor t = { .data = targets[to], .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };

	options.op = wf_flight_begin(&receives[to], timeout_ns);
	options.op.flags = terms->flags;
	options.op.provider = terms->provider;
	options.flags = flags;
	options.came = came;
	options.came_arg = &heard[to];
	heard[to] = 0;
	assert_int_equal(weft_recv(wf_world_node(to), wf_world_peer(to, 0), STEP, "w", 1, &t,
				   &options, &receives[to].op),
			 0);
}

static void receive_with(unsigned to, unsigned flags, uint64_t timeout_ns)
{
	const struct weft_op_options none = { 0 };

	receive_as(to, flags, timeout_ns, &none);
}

static void receive(unsigned to)
{
	receive_with(to, WEFT_RELAY, 30 * S);
}

/* Note which targets are read now. */
static bool look(void *none)
{
	(void)none;
	for (unsigned i = 1; i < NODES; i++)
		cast.read[i] |= wf_fake_is_read(targets[i], BYTES);
	return false;
}

static bool has_landed(void *flights)
{
	struct wf_flight **f = flights;

	look(NULL);
	for (; *f; f++)
		if (!(*f)->outcomes)
			return false;
	return true;
}

static unsigned count_read(void)
{
	unsigned count = 0;

	for (unsigned i = 1; i < NODES; i++)
		count += cast.read[i];
	return count;
}

/* Run until the broadcast and the receives of nodes 1 to @count have ended. */
static void land(unsigned count)
{
	struct wf_flight *all[NODES + 1] = { &cast.flight };

	for (unsigned i = 1; i <= count; i++)
		all[i] = &receives[i];
	assert_true(wf_world_run(has_landed, all, 40 * S));
}

static void assert_received(unsigned to)
{
	assert_int_equal(receives[to].status, WEFT_OK);
	assert_same_content(targets[to], source, BYTES);
}

static enum weft_status outcome(unsigned to)
{
	enum weft_status status = WEFT_UNKNOWN;
	const char *message;

	assert_int_equal(weft_broadcast_outcome(cast.flight.op, to - 1, &status, &message), 0);
	assert_int_equal(status == WEFT_OK || status == WEFT_UNKNOWN, !*message);
	return status;
}

static void free_flights(void)
{
	wf_flight_free(&cast.flight, 1);
	for (unsigned i = 1; i < NODES; i++)
		if (receives[i].op)
			wf_flight_free(&receives[i], 1);
}

static void end_world(void)
{
	free_flights();
	wf_world_end();
}

static void every_receiver_but_the_last_passes_the_body_on(void **state)
{
	(void)state;
	for (size_t s = 0; s < WF_COUNT(shapes); s++) {
		open_world(shapes[s]);
		for (unsigned i = 1; i < NODES; i++)
			receive(i);
		begin(NODES - 1, 0);
		land(NODES - 1);
		assert_int_equal(cast.flight.status, WEFT_OK);
		for (unsigned i = 1; i < NODES; i++) {
			assert_received(i);
			assert_int_equal(outcome(i), WEFT_OK);
		}
		assert_int_equal(count_read(), NODES - 2);
		end_world();
	}
}

static void receivers_that_do_not_relay_read_the_sender(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED);
	begin(NODES - 1, 0);
	for (unsigned i = 1; i < NODES; i++)
		receive_with(i, 0, 30 * S);
	land(NODES - 1);
	assert_int_equal(cast.flight.status, WEFT_OK);
	for (unsigned i = 1; i < NODES; i++)
		assert_received(i);
	assert_int_equal(count_read(), 0);
	end_world();
}

static void receivers_on_the_host_of_the_sender_read_its_memory(void **state)
{
	(void)state;
	open_world(WF_WORLD_SAME_HOST);
	for (unsigned i = 1; i < NODES; i++)
		receive(i);
	begin(NODES - 1, 0);
	land(NODES - 1);
	for (unsigned i = 1; i < NODES; i++)
		assert_received(i);
	assert_int_equal(count_read(), 0);
	end_world();
}

static void a_tensor_of_a_broadcast_is_probed_as_any_other(void **state)
{
	struct weft_probe_info info = WEFT_PROBE_INFO_INIT;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	begin(1, 0);
	wf_world_pass(100 * MS);
	assert_int_equal(weft_probe(wf_world_node(1), NULL, STEP, "w", 1, &info), 0);
	assert_int_equal(info.bytes, BYTES);
	assert_int_equal(info.flags, 0);
	receive(1);
	land(1);
	assert_received(1);
	end_world();
}

static void a_late_receiver_gets_all(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 1; i < NODES - 1; i++)
		receive(i);
	begin(NODES - 1, 0);
	wf_world_pass(5 * S);
	for (unsigned i = 1; i < NODES - 1; i++) {
		assert_received(i);
		assert_int_equal(outcome(i), WEFT_OK);
	}
	assert_int_equal(outcome(NODES - 1), WEFT_UNKNOWN);
	receive(NODES - 1);
	land(NODES - 1);
	assert_received(NODES - 1);
	assert_int_equal(cast.flight.status, WEFT_OK);
	end_world();
}

static void a_peer_that_is_added_is_one_of_them(void **state)
{
	enum weft_status status;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 1; i <= 3; i++)
		receive(i);
	begin(2, 0);
	assert_int_equal(weft_broadcast_outcome(cast.flight.op, 2, &status, NULL), -ENOENT);
	assert_int_equal(weft_broadcast_add(cast.flight.op, wf_world_peer(0, 3)), 0);
	land(3);
	for (unsigned i = 1; i <= 3; i++) {
		assert_received(i);
		assert_int_equal(outcome(i), WEFT_OK);
	}
	assert_int_equal(weft_broadcast_add(cast.flight.op, wf_world_peer(0, 4)), -EALREADY);
	end_world();
}

/* The name of the provider is the caller's only until the call returns. */
static void a_peer_that_is_added_has_the_provider_that_was_asked_for_first(void **state)
{
	struct weft_broadcast_options options = WEFT_BROADCAST_OPTIONS_INIT;
	char *name = strdup("tcp");

	(void)state;
	assert_non_null(name);
	open_world(WF_WORLD_CONNECTED);
	options.op.provider = name;
	begin_as(options, source, 1);
	memcpy(name, "efa", strlen(name));
	free(name);
	assert_int_equal(weft_broadcast_add(cast.flight.op, wf_world_peer(0, 2)), 0);
	for (unsigned i = 1; i <= 2; i++)
		receive(i);
	land(2);
	for (unsigned i = 1; i <= 2; i++) {
		assert_received(i);
		assert_int_equal(outcome(i), WEFT_OK);
	}
	end_world();
}

static void a_peer_that_comes_after_the_end_of_shared_memory_is_too_late(void **state)
{
	void *memory;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	assert_int_equal(weft_alloc(wf_world_node(0), BYTES, &memory), 0);
	memcpy(memory, source, BYTES);
	receive(1);
	begin_with(memory, 1, WEFT_SHARE, 0);
	weft_free(wf_world_node(0), memory);
	land(1);
	assert_received(1);
	assert_int_equal(weft_broadcast_add(cast.flight.op, wf_world_peer(0, 2)), -EALREADY);
	end_world(); /* nothing of the pool is used */
}

/* Find a receiver that is read, and has not all itself. */
static bool is_midway(void *found)
{
	unsigned *victim = found;

	look(NULL);
	for (unsigned i = 1; i < NODES; i++)
		if (wf_fake_is_read(targets[i], BYTES) &&
		    memcmp(targets[i] + BYTES - KIB, source + BYTES - KIB, KIB))
			*victim = i;
	return *victim;
}

/* Begin a broadcast to all, and return a receiver that passes the body on just now. */
static unsigned begin_and_stop_midway(enum wf_world_shape shape)
{
	unsigned victim = 0;

	open_world(shape);
	for (unsigned i = 1; i < NODES; i++)
		receive(i);
	begin(NODES - 1, 0);
	assert_true(wf_world_run(is_midway, &victim, 10 * S));
	return victim;
}

static void a_receiver_that_dies_costs_only_itself(void **state)
{
	(void)state;
	for (size_t s = 0; s < WF_COUNT(shapes); s++) {
		unsigned dead = begin_and_stop_midway(shapes[s]);

		wf_world_kill(dead);
		weft_op_free(receives[dead].op);
		receives[dead].op = NULL;
		receives[dead].outcomes = 1;
		land(NODES - 1);
		assert_int_equal(cast.flight.status, WEFT_UNAVAILABLE);
		assert_non_null(strstr(weft_op_message(cast.flight.op), "1 of 5 peers"));
		for (unsigned i = 1; i < NODES; i++) {
			assert_int_equal(outcome(i), i == dead ? WEFT_UNAVAILABLE : WEFT_OK);
			if (i != dead)
				assert_received(i);
		}
		free_flights();
		for (unsigned i = 0; i < NODES; i++)
			if (i != dead)
				wf_world_assert_free(i);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_receiver_that_stands_still_is_passed_over(void **state)
{
	unsigned still = begin_and_stop_midway(WF_WORLD_CONNECTED);

	(void)state;
	wf_world_freeze(still, true);
	receives[still].outcomes = 1;
	land(NODES - 1);
	for (unsigned i = 1; i < NODES; i++)
		if (i != still)
			assert_received(i);
	assert_int_equal(cast.flight.status, WEFT_UNAVAILABLE);
	wf_world_freeze(still, false);
	receives[still].outcomes = 0;
	wf_flight_land(&receives[still], 1, 40 * S);
	end_world();
}

static void a_receive_that_is_cancelled_leaves_the_tensor_to_the_next(void **state)
{
	unsigned one = begin_and_stop_midway(WF_WORLD_CONNECTED);

	(void)state;
	weft_cancel(receives[one].op);
	wf_flight_land(&receives[one], 1, 10 * S);
	assert_int_equal(receives[one].status, WEFT_CANCELLED);
	wf_flight_free(&receives[one], 1);
	/* Nobody reads or writes the buffer of an operation that has ended. */
	assert_false(wf_fake_is_open(targets[one], BYTES));
	memset(targets[one], 0, BYTES);
	memset(&receives[one], 0, sizeof(receives[one]));
	receive(one);
	land(NODES - 1);
	assert_int_equal(cast.flight.status, WEFT_OK);
	for (unsigned i = 1; i < NODES; i++)
		assert_received(i);
	end_world();
}

/* Find the one of nodes 1 and 2 that is read, and has passed something on. */
static bool has_passed_some_on(void *found)
{
	unsigned *victim = found;

	return is_midway(victim) && heard[3 - *victim];
}

/* Let one of two receivers give up while the other reads there, which gets all the same. */
static void give_a_source_up(unsigned flags)
{
	unsigned one = 0, other;

	assert_int_equal(setenv("WEFT_CHUNK_BYTES", "64K", 1), 0);
	open_world(WF_WORLD_CONNECTED);
	wf_world_connect(1, 2);
	receive(1);
	receive(2);
	begin(2, flags);
	assert_true(wf_world_run(has_passed_some_on, &one, 10 * S));
	other = 3 - one;
	weft_cancel(receives[one].op);
	land(2);
	assert_int_equal(receives[one].status, WEFT_CANCELLED);
	assert_received(other);
	assert_int_equal(heard[other], BYTES); /* told of all, not of the rest */
	assert_int_equal(outcome(other), WEFT_OK);
	end_world();
}

static void a_receive_without_a_source_gets_the_rest_from_the_sender(void **state)
{
	(void)state;
	give_a_source_up(0);
}

static void a_receive_without_a_source_gets_a_body_with_checksums_anew(void **state)
{
	(void)state;
	give_a_source_up(WEFT_CHECKSUM);
}

static void a_broadcast_that_is_cancelled_ends_everywhere(void **state)
{
	unsigned one = begin_and_stop_midway(WF_WORLD_CONNECTED);

	(void)state;
	weft_cancel(cast.flight.op);
	wf_flight_land(&cast.flight, 1, 10 * S);
	assert_int_equal(cast.flight.status, WEFT_CANCELLED);
	assert_false(wf_fake_is_open(source, BYTES));
	wf_flight_land(receives + 1, NODES - 1, 40 * S);
	assert_int_not_equal(receives[one].status, WEFT_OK);
	end_world();
}

static void bodies_with_checksums_are_passed_on(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 1; i < NODES; i++)
		receive(i);
	begin(NODES - 1, WEFT_CHECKSUM);
	land(NODES - 1);
	for (unsigned i = 1; i < NODES; i++)
		assert_received(i);
	assert_int_equal(count_read(), NODES - 2);
	end_world();
}

/* Find a receiver that could pass a piece on, and does not know yet that the piece is damaged. */
static bool has_a_piece(void *found)
{
	unsigned *first = found;

	for (unsigned i = 1; i < NODES; i++)
		if (heard[i] >= MIB / 2)
			*first = i;
	return *first;
}

static void bytes_that_came_damaged_are_not_passed_on(void **state)
{
	unsigned first = 0;

	(void)state;
	assert_int_equal(setenv("WEFT_CHUNK_BYTES", "64K", 1), 0);
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 1; i < NODES; i++)
		for (unsigned k = 1; k < i; k++)
			wf_world_connect(i, k);
	suspicious = false;
	for (unsigned i = 1; i < NODES; i++)
		receive(i);
	begin(NODES - 1, WEFT_CHECKSUM);
	wf_fake_knobs()->flip_at = source + KIB;
	assert_true(wf_world_run(has_a_piece, &first, 10 * S));
	wf_fake_knobs()->flip_at = NULL;
	wf_world_hold_way(0, first, true);
	wf_world_pass(5 * MS);
	wf_world_hold_way(0, first, false);
	land(NODES - 1);
	assert_int_equal(receives[first].status, WEFT_DATA_LOSS);
	for (unsigned i = 1; i < NODES; i++)
		if (i != first)
			assert_received(i);
	suspicious = true;
	end_world();
}

static void a_node_that_closes_ends_its_relay(void **state)
{
	unsigned one = begin_and_stop_midway(WF_WORLD_CONNECTED);

	(void)state;
	wf_world_leave(one);
	assert_int_equal(receives[one].outcomes, 1);
	assert_int_equal(receives[one].status, WEFT_CANCELLED);
	land(NODES - 1);
	for (unsigned i = 1; i < NODES; i++)
		if (i != one)
			assert_received(i);
	end_world();
}

/* Find a receiver that has all, and has not ended. */
static bool serves(void *found)
{
	unsigned *server = found;

	for (unsigned i = 1; i < NODES; i++)
		if (!receives[i].outcomes && !memcmp(targets[i], source, BYTES) &&
		    wf_fake_is_open(targets[i], BYTES))
			*server = i;
	return *server;
}

static void a_node_that_closes_ends_a_receive_that_serves_another(void **state)
{
	unsigned one = 0;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 1; i < NODES; i++)
		receive(i);
	begin(NODES - 1, 0);
	assert_true(wf_world_run(serves, &one, 10 * S));
	wf_world_pass(MS);
	assert_int_equal(receives[one].outcomes, 0);
	wf_world_leave(one);
	assert_int_equal(receives[one].outcomes, 1);
	assert_int_equal(receives[one].status, WEFT_OK);
	land(NODES - 1);
	end_world();
}

/* Has the sender answered so many calls of receivers? */
static bool has_answered(void *count)
{
	return wf_world_count(0).served_ended[WEFT_OK] == *(uint64_t *)count;
}

/*
 * Let node 2 read node 1, which has all, and stop node 2 when the sender has told node 1 of its
 * reader: the answer is on its way.  Node 1 may take @timeout_ns.
 */
static void begin_and_stop_at_the_answer(uint64_t timeout_ns)
{
	uint64_t answers = 3; /* to two joins, and to node 1, which asks who reads there */

	assert_int_equal(setenv("WEFT_CHUNK_BYTES", "64K", 1), 0);
	open_world(WF_WORLD_CONNECTED);
	wf_world_connect(0, 1);
	wf_world_connect(0, 2);
	wf_world_connect(1, 2);
	receive_with(1, WEFT_RELAY, timeout_ns);
	receive(2);
	begin(2, 0);
	assert_true(wf_world_run(has_answered, &answers, 10 * S));
	wf_world_freeze(2, true);
	assert_int_equal(heard[1], BYTES);
	assert_true(heard[2] < BYTES);
	assert_int_equal(receives[1].outcomes, 0);
}

static void a_deadline_ends_a_receive_that_hears_of_its_reader_in_the_same_turn(void **state)
{
	const uint64_t timeout_ns = 300 * MS;

	(void)state;
	begin_and_stop_at_the_answer(timeout_ns);
	wf_world_freeze(1, true);
	wf_world_pass(timeout_ns);
	wf_world_freeze(1, false);
	wf_flight_land(&receives[1], 1, 10 * S);
	assert_received(1);
	/* A receive that goes on serving does so for 500 ms at least. */
	assert_true(wf_flight_ns(&receives[1]) < timeout_ns + 100 * MS);
	wf_world_freeze(2, false);
	land(2);
	assert_received(2);
	end_world();
}

static void a_node_that_closes_ends_a_receive_that_hears_of_its_reader_then(void **state)
{
	struct wf_flight others[40] = { 0 }; /* more ends than a turn tells of */

	(void)state;
	begin_and_stop_at_the_answer(30 * S);
	for (size_t i = 0; i < WF_COUNT(others); i++)
		wf_flight_receive(&others[i], 1, 0, 100 + i, targets[3], 1, 30 * S);
	for (size_t i = 0; i < WF_COUNT(others); i++)
		weft_cancel(others[i].op);
	wf_fake_clock_set(wf_clock_now() + MS); /* the answer has come, and node 1 has not looked */
	wf_world_leave(1);
	assert_int_equal(receives[1].outcomes, 1);
	assert_received(1);
	wf_flight_free(others, WF_COUNT(others));
	wf_world_freeze(2, false);
	land(2);
	assert_received(2);
	end_world();
}

static bool are_linked_over_tcp(void *none)
{
	struct weft_path path = { .size = sizeof(path) };
	struct wf_flight ping = { 0 };

	(void)none;
	wf_flight_ping(&ping, 2, 1, 30 * S);
	wf_flight_land(&ping, 1, 30 * S);
	assert_int_equal(weft_op_path(ping.op, &path), 0);
	wf_flight_free(&ping, 1);
	return !strcmp(path.provider, "tcp");
}

/* Link nodes 0 to 2 over efa, but 1 and 2 over tcp with each other. */
static void open_world_with_a_fallback(void)
{
	struct wf_flight ping = { 0 };

	forget_flights();
	wf_world_open(WF_WORLD_SHARED, 0, NULL);
	assert_int_equal(setenv("WEFT_PROVIDER", "efa,tcp", 1), 0);
	for (unsigned i = 0; i < 3; i++)
		wf_world_add();
	wf_flight_ping(&ping, 2, 1, 30 * S);
	wf_fake_cut(1, 2, true);
	wf_world_pass(600 * MS);
	wf_fake_cut(1, 2, false);
	wf_flight_land(&ping, 1, 30 * S);
	wf_flight_free(&ping, 1);
	assert_true(wf_world_run(are_linked_over_tcp, NULL, 30 * S));
}

static bool came_over(unsigned to, const char *provider)
{
	struct weft_path path = { .size = sizeof(path) };

	assert_int_equal(weft_op_path(receives[to].op, &path), 0);
	return !strcmp(path.provider, provider);
}

/* Let nodes 1 and 2 receive as @terms say.  @over_tcp: so many of them read each other. */
static void relay_over_a_fallback(const struct weft_op_options *terms, unsigned over_tcp)
{
	open_world_with_a_fallback();
	for (unsigned i = 1; i <= 2; i++)
		receive_as(i, WEFT_RELAY, 30 * S, terms);
	begin(2, 0);
	land(2);
	for (unsigned i = 1; i <= 2; i++)
		assert_received(i);
	assert_int_equal(came_over(1, "tcp") + came_over(2, "tcp"), over_tcp);
	assert_int_equal(came_over(1, "efa") + came_over(2, "efa"), 2 - over_tcp);
	assert_int_equal(count_read(), over_tcp);
	end_world();
}

static void a_strict_receive_reads_no_other_receiver_over_a_fallback(void **state)
{
	const struct weft_op_options none = { 0 }, provider = { .provider = "efa" },
				     best = { .flags = WEFT_STRICT_NO_FALLBACK };

	(void)state;
	relay_over_a_fallback(&none, 1);
	relay_over_a_fallback(&provider, 0);
	relay_over_a_fallback(&best, 0);
}

/* Returns node 1 as the sender knows it that was dialled by it. */
static struct weft_peer *be_dialled(void)
{
	struct wf_flight flights[2] = { 0 };
	struct weft_peer *peer;
	uint8_t byte = 0;

	wf_flight_receive(&flights[0], 0, 0, STEP - 1, &byte, 1, 30 * S);
	wf_flight_send(&flights[1], 1, 0, STEP - 1, source, 1, 30 * S);
	wf_flight_land(flights, 2, 30 * S);
	peer = weft_op_peer(flights[0].op);
	wf_flight_free(flights, 2);
	return peer;
}

static void a_receiver_that_nobody_can_dial_is_no_source(void **state)
{
	struct weft_broadcast_options options = WEFT_BROADCAST_OPTIONS_INIT;
	struct weft_peer *peers[3];
	uint64_t joins = 1;

	(void)state;
	assert_int_equal(setenv("WEFT_CHUNK_BYTES", "64K", 1), 0);
	open_world(WF_WORLD_CONNECTED);
	peers[0] = be_dialled();
	for (unsigned i = 2; i <= 3; i++) {
		wf_world_connect(0, i);
		wf_world_connect(i, 0);
		peers[i - 1] = wf_world_peer(0, i);
	}
	wf_world_node(1)->workers[0].engine.address[0] = '\0';
	options.readers = 2;
	begin_to(peers, 3, source, options);
	receive(1);
	assert_true(wf_world_run(has_answered, &joins, 10 * S));
	receive(2);
	receive(3);
	land(3);
	for (unsigned i = 1; i <= 3; i++)
		assert_received(i);
	/* Two receivers read the sender, and the third one another that it can dial. */
	assert_false(cast.read[1]);
	assert_int_equal(count_read(), 1);
	end_world();
}

static void a_sender_that_closes_ends_its_broadcast(void **state)
{
	(void)state;
	(void)begin_and_stop_midway(WF_WORLD_CONNECTED);
	wf_world_leave(0);
	assert_int_equal(cast.flight.outcomes, 1);
	wf_flight_land(receives + 1, NODES - 1, 40 * S);
	end_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_receiver_but_the_last_passes_the_body_on),
		cmocka_unit_test(receivers_that_do_not_relay_read_the_sender),
		cmocka_unit_test(receivers_on_the_host_of_the_sender_read_its_memory),
		cmocka_unit_test(a_tensor_of_a_broadcast_is_probed_as_any_other),
		cmocka_unit_test(a_late_receiver_gets_all),
		cmocka_unit_test(a_peer_that_is_added_is_one_of_them),
		cmocka_unit_test(a_peer_that_is_added_has_the_provider_that_was_asked_for_first),
		cmocka_unit_test(a_peer_that_comes_after_the_end_of_shared_memory_is_too_late),
		cmocka_unit_test(a_receiver_that_dies_costs_only_itself),
		cmocka_unit_test(a_receiver_that_stands_still_is_passed_over),
		cmocka_unit_test(a_receive_that_is_cancelled_leaves_the_tensor_to_the_next),
		cmocka_unit_test(a_receive_without_a_source_gets_the_rest_from_the_sender),
		cmocka_unit_test(a_receive_without_a_source_gets_a_body_with_checksums_anew),
		cmocka_unit_test(a_broadcast_that_is_cancelled_ends_everywhere),
		cmocka_unit_test(bodies_with_checksums_are_passed_on),
		cmocka_unit_test(bytes_that_came_damaged_are_not_passed_on),
		cmocka_unit_test(a_node_that_closes_ends_its_relay),
		cmocka_unit_test(a_node_that_closes_ends_a_receive_that_serves_another),
		cmocka_unit_test(
			a_deadline_ends_a_receive_that_hears_of_its_reader_in_the_same_turn),
		cmocka_unit_test(a_node_that_closes_ends_a_receive_that_hears_of_its_reader_then),
		cmocka_unit_test(
			a_strict_receive_reads_no_other_receiver_over_a_fallback),
		cmocka_unit_test(a_receiver_that_nobody_can_dial_is_no_source),
		cmocka_unit_test(a_sender_that_closes_ends_its_broadcast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
