/* SPDX-License-Identifier: BSD-2-Clause */
/* Urgent operations pass bulk, in order within its channel, and bulk goes on all the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "core/peer.h"
#include "tests/sim/world.h"
#include "transfer/pull.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define WAY_NS (5 * MS) /* between the two nodes */
#define LONG (64 * MIB) /* bulk: far more reads than are under way at once */
#define SHORT (4 * KIB) /* travels in a frame */
#define URGENT (6 * MIB)
#define BULK_COUNT 3
#define LINE_COUNT 300
#define FLOW_COUNT 600
#define DEPTH 2  /* reads of a body under way */
#define WINDOW 4 /* frames under way */
#define FLOW_BUSY 60   /* more than the credit of a round trip */

static uint32_t priority;
static uint8_t *source, *target;

static uint32_t get_priority(void)
{
	return priority;
}

static void open_world_of(enum wf_world_shape shape, uint64_t way_ns)
{
	const struct wf_fake fake = { .seed = 3, .delay_min_ns = way_ns, .delay_max_ns = way_ns };

	setenv("WEFT_DEPTH", "2", 1);
	setenv("WEFT_WINDOW", "4", 1);
	wf_world_open(shape, 2, &fake);
	wf_world_prefer(get_priority);
	priority = 0;
	wf_world_connect(0, 1);
	wf_world_connect(1, 0);
}

static void open_world(void)
{
	open_world_of(WF_WORLD_CONNECTED, WAY_NS);
}

static int set_up(void **state)
{
	(void)state;
	source = calloc(1, LONG);
	target = calloc(BULK_COUNT, LONG);
	return !source || !target;
}

static int tear_down(void **state)
{
	(void)state;
	free(source);
	free(target);
	return 0;
}

static bool has_ended(void *flight)
{
	return ((struct wf_flight *)flight)->outcomes;
}

static unsigned ended_of(const struct wf_flight *flights, unsigned count)
{
	unsigned ended = 0;

	for (unsigned i = 0; i < count; i++)
		ended += flights[i].outcomes;
	return ended;
}

static void end_well(struct wf_flight *flights, unsigned count)
{
	wf_flight_land(flights, count, 600 * S);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(flights[i].status, WEFT_OK);
	wf_flight_free(flights, count);
}

/* Returns the bytes that node 1's pulls of @wanted have asked for; *@pull: the last of them. */
static uint64_t asked_for(uint8_t wanted, struct wf_pull **pull)
{
	struct wf_transfer *t = &wf_world_node(1)->workers[0].transfer;
	struct wf_pull *each;
	uint64_t bytes = 0;
	uint32_t at = 0;

	*pull = NULL;
	while ((each = wf_table_next(&t->pulls, &at))) {
		if (each->yield.priority != wanted)
			continue;
		bytes += each->at.next;
		*pull = each;
	}
	return bytes;
}

/* Is the urgent pull of node 1 under way? */
static bool is_pulling(void *ctx)
{
	struct wf_pull *pull;

	(void)ctx;
	return asked_for(3, &pull) > 0;
}

/* Bulk goes on in the turn in which it has asked for the last. */
static bool has_asked_for_most(void *ctx)
{
	struct wf_pull *pull;

	(void)ctx;
	return asked_for(3, &pull) > URGENT / 2;
}

static bool bulk_is_amid(void *ctx)
{
	struct wf_pull *pull;

	(void)ctx;
	return asked_for(0, &pull) >= BULK_COUNT * 4 * MIB;
}

/* Node 1 reads long bodies of node 0's. */
static void begin_bulk(struct wf_flight out[BULK_COUNT], struct wf_flight in[BULK_COUNT])
{
	priority = 0;
	for (unsigned i = 0; i < BULK_COUNT; i++) {
		wf_flight_receive(&in[i], 1, 0, i, target + i * LONG, LONG, 0);
		wf_flight_send(&out[i], 0, 1, i, source, LONG, 0);
	}
	assert_true(wf_world_run(bulk_is_amid, NULL, 10 * S));
}

/* The urgent body of a tensor from node 0 to node 1 is read before bulk goes on. */
static void read_first(struct wf_flight *urgent)
{
	struct wf_pull *pull;
	uint64_t bulk;

	assert_true(wf_world_run(is_pulling, NULL, 5 * WAY_NS));
	bulk = asked_for(0, &pull);
	assert_true(wf_world_run(has_asked_for_most, NULL, 10 * WAY_NS));
	assert_int_equal(asked_for(0, &pull), bulk);
	assert_true(wf_world_run(has_ended, urgent, 6 * WAY_NS));
}

static void an_urgent_body_is_read_before_bulk_of_its_peer_goes_on(void **state)
{
	struct wf_flight out[BULK_COUNT], in[BULK_COUNT], urgent[2];

	(void)state;
	open_world();
	begin_bulk(out, in);
	priority = 3;
	wf_flight_send(&urgent[0], 0, 1, 100, source, URGENT, 0);
	priority = 0;
	wf_flight_receive(&urgent[1], 1, 0, 100, target, URGENT, 0);
	read_first(&urgent[1]);
	assert_int_equal(ended_of(in, BULK_COUNT), 0);
	end_well(urgent, 2);
	end_well(out, BULK_COUNT);
	end_well(in, BULK_COUNT);
	wf_world_end();
}

static void an_urgent_receive_reads_first_what_its_sender_took_for_bulk(void **state)
{
	struct wf_flight out[BULK_COUNT], in[BULK_COUNT], urgent[2];

	(void)state;
	open_world();
	begin_bulk(out, in);
	wf_flight_send(&urgent[0], 0, 1, 100, source, URGENT, 0);
	priority = 3;
	wf_flight_receive(&urgent[1], 1, 0, 100, target, URGENT, 0);
	read_first(&urgent[1]);
	end_well(urgent, 2);
	end_well(out, BULK_COUNT);
	end_well(in, BULK_COUNT);
	wf_world_end();
}

/* A call beside bulk takes the round trips that it takes alone: none waits for a chunk of bulk. */
static void call_beside_bulk(unsigned from, unsigned to)
{
	struct wf_flight out[BULK_COUNT], in[BULK_COUNT], call;

	open_world();
	begin_bulk(out, in);
	priority = 3;
	wf_flight_call(&call, from, to, source, URGENT, 0);
	wf_flight_land(&call, 1, 60 * S);
	assert_int_equal(call.status, WEFT_OK);
	assert_true(call.reply_right);
	/* Three pairs of reads, a message to and fro for each body, and one turn of bulk. */
	assert_in_range(call.ended_ns - call.started_ns, 1, 20 * WAY_NS);
	assert_int_equal(ended_of(in, BULK_COUNT), 0);
	wf_flight_free(&call, 1);
	end_well(out, BULK_COUNT);
	end_well(in, BULK_COUNT);
	wf_world_end();
}

static void an_urgent_call_and_its_reply_pass_bulk_that_is_sent(void **state)
{
	(void)state;
	call_beside_bulk(0, 1);
}

static void an_urgent_call_and_its_reply_pass_bulk_that_is_received(void **state)
{
	(void)state;
	call_beside_bulk(1, 0);
}

/* Reads of bulk under way are what a record of the same peer waits for. */
static void bulk_is_read_piece_by_piece_while_urgent_calls_come_and_go(void **state)
{
	struct wf_flight out[BULK_COUNT], in[BULK_COUNT], call;
	const struct wf_link *link;

	(void)state;
	open_world_of(WF_WORLD_CONNECTED, MS / 2);
	begin_bulk(out, in);
	link = wf_link_real(wf_world_peer(1, 0)->link);
	assert_int_equal(link->reads.count, BULK_COUNT * DEPTH);
	for (unsigned i = 0; i < 10; i++) {
		priority = 3;
		wf_flight_call(&call, 0, 1, source, SHORT, 0);
		end_well(&call, 1);
		if (i >= 2)
			assert_in_range(link->reads.count, 0, 1);
	}
	wf_world_pass(10 * MS);
	assert_int_equal(link->reads.count, BULK_COUNT * DEPTH);
	end_well(out, BULK_COUNT);
	end_well(in, BULK_COUNT);
	wf_world_end();
}

static bool is_over(void *bulk)
{
	return ended_of(bulk, BULK_COUNT) == BULK_COUNT;
}

/* Where a read holds the loop, what has come during one is answered before the next. */
static void a_turn_that_ends_a_read_beside_urgent_calls_begins_no_other(void **state)
{
	struct wf_flight out[BULK_COUNT], in[BULK_COUNT], call;
	const struct wf_link *link;
	unsigned turns = 0;

	(void)state;
	setenv("WEFT_HELPER", "no", 1);
	open_world_of(WF_WORLD_SAME_HOST, MS / 2);
	begin_bulk(out, in);
	link = wf_link_real(wf_world_peer(1, 0)->link);
	priority = 3;
	wf_flight_call(&call, 0, 1, source, KIB, 0);
	end_well(&call, 1);
	wf_flight_call(&call, 0, 1, source, KIB, 0);
	while (!call.outcomes) {
		struct wf_pull *pull;
		uint64_t asked = asked_for(0, &pull);
		uint32_t busy = link->reads.count;

		wf_world_step();
		if (asked_for(0, &pull) == asked)
			continue;
		assert_int_equal(busy, 0);
		turns++;
	}
	assert_true(turns > 0);
	assert_false(is_over(in));
	end_well(&call, 1);
	end_well(out, BULK_COUNT);
	end_well(in, BULK_COUNT);
	wf_world_end();
}

/* Node 0 sends @count short tensors, which node 1 awaits; they fill the queue for long. */
static void send_many(struct wf_flight *out, struct wf_flight *in, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		wf_flight_receive(&in[i], 1, 0, i, target + i * SHORT, SHORT, 0);
		wf_flight_send(&out[i], 0, 1, i, source, SHORT, 0);
	}
}

static bool some_have_left(void *out)
{
	return ended_of(out, LINE_COUNT) > 0;
}

static void an_urgent_record_passes_a_long_queue(void **state)
{
	static struct wf_flight out[LINE_COUNT], in[LINE_COUNT];
	struct wf_flight urgent[2], call;
	unsigned left;

	(void)state;
	open_world();
	send_many(out, in, LINE_COUNT);
	assert_true(wf_world_run(some_have_left, out, S));
	left = ended_of(out, LINE_COUNT);
	assert_in_range(left, 1, LINE_COUNT / 4);
	priority = 2;
	wf_flight_receive(&urgent[1], 1, 0, 1000, target + LONG, SHORT, 0);
	wf_flight_send(&urgent[0], 0, 1, 1000, source, SHORT, 0);
	wf_flight_call(&call, 0, 1, source, SHORT, 0);
	end_well(&urgent[0], 1);
	/* Others left with it at most, in the frames of one window. */
	assert_in_range(ended_of(out, LINE_COUNT), left, left + WINDOW * 16 * KIB / SHORT);
	end_well(&urgent[1], 1);
	wf_flight_land(&call, 1, S);
	assert_int_equal(call.status, WEFT_OK);
	assert_in_range(call.ended_ns - call.started_ns, 1, 6 * WAY_NS);
	assert_in_range(ended_of(out, LINE_COUNT), left, LINE_COUNT / 2);
	wf_flight_free(&call, 1);
	end_well(out, LINE_COUNT);
	end_well(in, LINE_COUNT);
	wf_world_end();
}

/* The first bytes of tensors in one channel are their numbers. */
static void tensors_of_one_channel_stay_in_order_whatever_their_priorities(void **state)
{
	static const uint8_t priorities[] = { 0, 3, 0, 1, 3, 2, 0, 3 };
	static struct wf_flight out[LINE_COUNT], in[LINE_COUNT];
	struct wf_flight row[2][WF_COUNT(priorities)];

	(void)state;
	open_world();
	send_many(out, in, LINE_COUNT);
	assert_true(wf_world_run(some_have_left, out, S));
	for (unsigned i = 0; i < WF_COUNT(priorities); i++) {
		uint8_t *from = source + MIB + i * SHORT;

		from[0] = (uint8_t)(i + 1);
		priority = priorities[i];
		wf_flight_send(&row[0][i], 0, 1, 1000, from, SHORT, 0);
		wf_flight_receive(&row[1][i], 1, 0, 1000, target + LONG + i * SHORT, SHORT, 0);
	}
	end_well(row[0], WF_COUNT(priorities));
	end_well(row[1], WF_COUNT(priorities));
	for (unsigned i = 0; i < WF_COUNT(priorities); i++)
		assert_int_equal(target[LONG + i * SHORT], i + 1);
	end_well(out, LINE_COUNT);
	end_well(in, LINE_COUNT);
	wf_world_end();
}

/* Urgent tensors from node 0 to node 1, @busy of which wait to be sent whenever there is a turn. */
static struct {
	struct wf_flight out[FLOW_COUNT], in[FLOW_COUNT];
	unsigned begun, busy;
	size_t bytes;
	const struct wf_flight *bulk;
} flow;

/* Top the flow up.  Has bulk ended, or the flow nothing left to begin? */
static bool flow_on(void *ctx)
{
	(void)ctx;
	priority = 3;
	while (flow.begun < FLOW_COUNT && flow.begun - ended_of(flow.out, flow.begun) < flow.busy) {
		unsigned i = flow.begun++;

		wf_flight_receive(&flow.in[i], 1, 0, 1000 + i, target + LONG, flow.bytes, 0);
		wf_flight_send(&flow.out[i], 0, 1, 1000 + i, source, flow.bytes, 0);
	}
	priority = 0;
	return flow.bulk->outcomes || flow.begun == FLOW_COUNT;
}

/* One body of bulk, of @bytes, ends beside a flow of urgent ones that never pauses. */
static void end_beside_a_flow(size_t bytes, size_t flow_bytes, unsigned busy)
{
	struct wf_flight bulk[2];

	open_world();
	flow.bulk = &bulk[0];
	flow.bytes = flow_bytes;
	flow.begun = 0;
	flow.busy = busy;
	bulk[0].outcomes = 0;
	flow_on(NULL);
	wf_flight_receive(&bulk[1], 1, 0, 1, target, bytes, 0);
	wf_flight_send(&bulk[0], 0, 1, 1, source, bytes, 0);
	assert_true(wf_world_run(flow_on, NULL, 60 * S));
	assert_true(bulk[0].outcomes);
	assert_true(flow.begun < FLOW_COUNT);
	end_well(bulk, 2);
	end_well(flow.out, flow.begun);
	end_well(flow.in, flow.begun);
	wf_world_end();
}

static void a_record_of_bulk_leaves_while_urgent_ones_never_pause(void **state)
{
	(void)state;
	end_beside_a_flow(SHORT, SHORT, FLOW_BUSY);
}

static void a_body_of_bulk_is_read_while_urgent_ones_never_pause(void **state)
{
	(void)state;
	end_beside_a_flow(4 * MIB, 4 * MIB, 4);
}

#define IN_MEMORY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_MEMORY(an_urgent_body_is_read_before_bulk_of_its_peer_goes_on),
		IN_MEMORY(an_urgent_receive_reads_first_what_its_sender_took_for_bulk),
		IN_MEMORY(an_urgent_call_and_its_reply_pass_bulk_that_is_sent),
		IN_MEMORY(an_urgent_call_and_its_reply_pass_bulk_that_is_received),
		IN_MEMORY(bulk_is_read_piece_by_piece_while_urgent_calls_come_and_go),
		IN_MEMORY(a_turn_that_ends_a_read_beside_urgent_calls_begins_no_other),
		IN_MEMORY(an_urgent_record_passes_a_long_queue),
		IN_MEMORY(tensors_of_one_channel_stay_in_order_whatever_their_priorities),
		IN_MEMORY(a_record_of_bulk_leaves_while_urgent_ones_never_pause),
		IN_MEMORY(a_body_of_bulk_is_read_while_urgent_ones_never_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
