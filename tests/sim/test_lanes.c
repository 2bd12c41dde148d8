/* SPDX-License-Identifier: BSD-2-Clause */
/* Two networks between two nodes: long bodies go over both, and either may fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "core/worker.h"
#include "fabric/ep.h"
#include "link/request.h"
#include "tests/sim/world.h"
#include "transfer/outgoing.h"
#include "transfer/pull.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define LONG (24 * MIB + 5)
#define FIRST 0x1234567

/* More than may be under way at once. */
#define CROWD 24
#define CROWD_BYTES (6 * MIB)

static uint8_t source[LONG], target[LONG];

static struct weft_tensor row_of(uint8_t *data, int64_t *shape)
{
	return (struct weft_tensor){
		.data = data, .device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 },
		.shape = shape,
	};
}

/* What is under way between the two nodes. */
static struct {
	struct weft_op *out, *in;
} body;

static void begin_from(unsigned number, int64_t bytes, unsigned rails_min)
{
	struct weft_send_options out = { .size = sizeof(out) };
	struct weft_recv_options in = { .size = sizeof(in) };
	struct weft_tensor from = row_of(source, &bytes), to = row_of(target, &bytes);

	out.op = (struct weft_op_options){ .size = sizeof(out.op), .timeout_ns = 60 * S,
					   .rails_min = rails_min };
	in.op = out.op;
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)((i * 2654435761u + FIRST) >> 13);
	memset(target, 0, sizeof(target));
	assert_int_equal(weft_send(wf_world_peer(number, !number), 1, "k", 1, &from, &out,
				   &body.out), 0);
	assert_int_equal(weft_recv(wf_world_node(!number), NULL, 1, "k", 1, &to, &in, &body.in), 0);
}

static void begin(int64_t bytes, unsigned rails_min)
{
	begin_from(0, bytes, rails_min);
}

static bool has_ended(void *arg)
{
	(void)arg;
	return weft_op_ended(body.in) && weft_op_ended(body.out);
}

static struct weft_path path_of(const struct weft_op *op)
{
	struct weft_path path = { .size = sizeof(path) };

	assert_int_equal(weft_op_path(op, &path), 0);
	return path;
}

/* It ends well, with all its bytes; how the receiver got them. */
static struct weft_path end_well(void)
{
	struct weft_path path;

	assert_true(wf_world_run(has_ended, NULL, 90 * S));
	assert_string_equal(weft_op_message(body.in), "");
	assert_string_equal(weft_op_message(body.out), "");
	path = path_of(body.in);
	assert_same_content(source, target, path.bytes);
	weft_op_free(body.in);
	weft_op_free(body.out);
	return path;
}

static bool has_lanes(void *arg)
{
	(void)arg;
	return wf_lane_count(wf_world_link(0)) == 1 && wf_lane_count(wf_world_link(1)) == 1;
}

static void open_world(const struct wf_fake *fake)
{
	wf_world_open(WF_WORLD_LANES, 2, fake);
}

/* Node 1 is in the middle of the body. */
static bool is_amid(void *arg)
{
	(void)arg;
	return target[LONG / 3] == source[LONG / 3] && target[LONG / 3 + 1] == source[LONG / 3 + 1];
}

static void long_bodies_go_over_both_networks(void **state)
{
	struct weft_path path;

	(void)state;
	open_world(NULL);
	begin(LONG, 2);
	path = end_well();
	assert_string_equal(path.way, "pull");
	assert_string_equal(path.device, WF_WORLD_NET_1);
	assert_int_equal(path.rails, 2);
	assert_int_equal(path.retries, 0);
	wf_world_end();
}

static void short_bodies_do_not_wait_for_the_second(void **state)
{
	struct weft_path path;

	(void)state;
	open_world(NULL);
	begin(MIB, 0);
	path = end_well();
	assert_string_equal(path.way, "pull");
	assert_int_equal(path.rails, 1);
	wf_world_end();
}

static void each_side_may_read_over_a_lane_whichever_dialled(void **state)
{
	(void)state;
	open_world(NULL);
	begin(LONG, 2);
	end_well();
	assert_true(wf_world_link(0)->dialler);
	assert_false(wf_world_link(1)->dialler);
	begin_from(1, LONG, 2);
	assert_int_equal(end_well().rails, 2);
	wf_world_end();
}

static void a_second_network_that_breaks_amid_a_body_costs_nothing(void **state)
{
	struct weft_path path;

	(void)state;
	open_world(NULL);
	begin(LONG, 2);
	assert_true(wf_world_run(is_amid, NULL, 10 * S));
	wf_fake_break_domain(WF_WORLD_NET_2);
	path = end_well();
	assert_int_equal(path.rails, 2);
	assert_true(path.retries > 0);
	/* And it is taken back. */
	assert_true(wf_world_run(has_lanes, NULL, 5 * S));
	begin(LONG, 2);
	assert_int_equal(end_well().rails, 2);
	wf_world_end();
}

/* All of a crowd know both networks, and some wait until others have read. */
static bool stand_in_line(void *arg)
{
	struct wf_transfer *t = &wf_world_node(1)->workers[0].transfer;
	struct wf_pull *pull;
	uint32_t at = 0, ready = 0;

	(void)arg;
	while ((pull = wf_table_next(&t->pulls, &at)))
		ready += pull->spread != NULL;
	return ready == CROWD && !wf_list_empty(&t->pace.lines[0]);
}

static void a_waiting_read_is_not_placed_on_a_network_that_has_broken(void **state)
{
	const struct wf_fake far = { .seed = 5, .delay_min_ns = 5 * MS, .delay_max_ns = 5 * MS };
	struct wf_flight out[CROWD], in[CROWD];
	uint8_t *into = calloc(CROWD, CROWD_BYTES);

	(void)state;
	setenv("WEFT_DEPTH", "2", 1); /* over each network: 24 times 4 MiB are too many */
	open_world(&far);
	begin(LONG, 2);
	end_well();
	for (unsigned i = 0; i < CROWD; i++) {
		wf_flight_receive(&in[i], 1, 0, i, into + i * CROWD_BYTES, CROWD_BYTES, 60 * S);
		wf_flight_send(&out[i], 0, 1, i, source, CROWD_BYTES, 60 * S);
	}
	assert_true(wf_world_run(stand_in_line, NULL, S));
	wf_fake_break_domain(WF_WORLD_NET_2);
	wf_flight_land(in, CROWD, 60 * S);
	wf_flight_land(out, CROWD, 60 * S);
	for (unsigned i = 0; i < CROWD; i++) {
		assert_int_equal(in[i].status, WEFT_OK);
		assert_int_equal(out[i].status, WEFT_OK);
		assert_same_content(into + i * CROWD_BYTES, source, CROWD_BYTES);
	}
	wf_flight_free(in, CROWD);
	wf_flight_free(out, CROWD);
	free(into);
	wf_world_end();
}

static void the_first_network_may_break_amid_a_body_as_well(void **state)
{
	(void)state;
	open_world(NULL);
	begin(LONG, 2);
	assert_true(wf_world_run(is_amid, NULL, 10 * S));
	wf_fake_break_domain(WF_WORLD_NET_1);
	end_well();
	assert_true(wf_world_run(has_lanes, NULL, 5 * S));
	wf_world_end();
}

static void a_second_network_that_falls_silent_is_given_up(void **state)
{
	(void)state;
	open_world(NULL);
	begin(LONG, 2);
	assert_true(wf_world_run(is_amid, NULL, 10 * S));
	wf_fake_cut_domain(WF_WORLD_NET_2);
	end_well();
	wf_fake_cut_domain(NULL);
	assert_true(wf_world_run(has_lanes, NULL, 60 * S));
	wf_world_end();
}

static void the_first_network_may_fall_silent_while_its_doors_work(void **state)
{
	struct weft_path path;

	(void)state;
	open_world(NULL);
	begin(LONG, 2);
	end_well();
	begin(LONG, 0);
	assert_true(wf_world_run(is_amid, NULL, 10 * S));
	wf_fake_cut_domain(WF_WORLD_NET_1);
	path = end_well();
	assert_string_equal(path.device, WF_WORLD_NET_2);
	wf_fake_cut_domain(NULL);
	/* Frames stay where they are, and bodies go over both again. */
	assert_true(wf_world_run(has_lanes, NULL, 60 * S));
	begin(LONG, 2);
	path = end_well();
	assert_string_equal(path.device, WF_WORLD_NET_2);
	assert_int_equal(path.rails, 2);
	wf_world_end();
}

/* Frames over the first network complete at their sender and never arrive; its doors answer. */
static void small_sends_leave_a_network_that_swallows_frames(void **state)
{
	static uint8_t into[30];
	struct wf_flight f[2 * WF_COUNT(into)];

	(void)state;
	for (unsigned from = 0; from < 2; from++) {
		open_world(NULL);
		wf_world_connect(0, 1);
		wf_world_pass(S);
		assert_string_equal(wf_link_caps(wf_world_link(from))->domain, WF_WORLD_NET_1);
		wf_fake_cut_domain(WF_WORLD_NET_1);
		/* New frames leave all the time, for the peer has promised room for more. */
		for (unsigned i = 0; i < WF_COUNT(into); i++) {
			wf_flight_receive(&f[2 * i], !from, from, i, &into[i], 1, 0);
			wf_flight_send(&f[2 * i + 1], from, !from, i, source, 1, 0);
			wf_world_pass(200 * MS);
		}
		wf_flight_land(f, WF_COUNT(f), S);
		for (unsigned i = 0; i < WF_COUNT(f); i++)
			assert_int_equal(f[i].status, WEFT_OK);
		assert_string_equal(wf_link_caps(wf_world_link(from))->domain, WF_WORLD_NET_2);
		assert_true(wf_flight_ns(&f[0]) < 4 * S);
		assert_int_equal(wf_world_count(0).peers_lost + wf_world_count(1).peers_lost, 0);
		wf_flight_free(f, WF_COUNT(f));
		wf_fake_cut_domain(NULL);
		wf_world_end();
	}
}

static void an_operation_that_needs_two_rails_is_told_when_there_is_one(void **state)
{
	(void)state;
	open_world(NULL);
	wf_fake_cut_domain(WF_WORLD_NET_2);
	begin(LONG, 2);
	assert_true(wf_world_run(has_ended, NULL, 90 * S) || weft_op_ended(body.out));
	assert_int_equal(weft_op_status(body.out), WEFT_FAILED_PRECONDITION);
	assert_non_null(strstr(weft_op_message(body.out), "2 rails were asked for"));
	weft_cancel(body.in);
	assert_true(wf_world_run(has_ended, NULL, S));
	weft_op_free(body.out);
	weft_op_free(body.in);
	wf_fake_cut_domain(NULL);
	wf_world_end();
}

/* Send one byte over so many rails at least. */
static void send_over(struct wf_flight *f, uint64_t step, unsigned rails_min)
{
	struct weft_send_options options = { .size = sizeof(options), .op = wf_flight_begin(f, 0) };
	int64_t shape = 1;
	struct weft_tensor t = row_of(source, &shape);

	options.op.rails_min = rails_min;
	assert_int_equal(weft_send(wf_world_peer(0, 1), step, "", 0, &t, &options, &f->op), 0);
}

static void a_send_behind_one_that_needs_two_rails_goes_on_when_that_is_cancelled(void **state)
{
	struct wf_flight first, second, received;
	uint8_t into;

	(void)state;
	open_world(NULL);
	wf_fake_cut_domain(WF_WORLD_NET_2);
	wf_world_connect(0, 1);
	send_over(&first, 1, 2);
	send_over(&second, 2, 1);
	wf_flight_receive(&received, 1, 0, 2, &into, 1, 0);
	wf_world_pass(100 * MS);
	assert_int_equal(first.outcomes + second.outcomes, 0);
	weft_cancel(first.op);
	wf_flight_land(&first, 1, S / 10);
	wf_flight_land(&received, 1, S / 10);
	assert_int_equal(received.status, WEFT_OK);
	wf_flight_land(&second, 1, S);
	wf_flight_free(&first, 1);
	wf_flight_free(&second, 1);
	wf_flight_free(&received, 1);
	wf_fake_cut_domain(NULL);
	wf_world_end();
}

static void there_are_no_more_lanes_than_the_peer_takes(void **state)
{
	(void)state;
	wf_world_open(WF_WORLD_LANES, 0, NULL);
	wf_fake_offer(FI_EP_MSG, "tcp", "net3", "10.0.3.1");
	setenv("WEFT_DEVICE", WF_WORLD_NET_1 "," WF_WORLD_NET_2 ",net3", 1);
	wf_world_add();
	wf_world_add();
	wf_world_connect(0, 1);
	wf_world_pass(5 * S);
	assert_int_equal(wf_lane_count(wf_world_link(0)), 2);
	/* As a hello may have it; the lanes of the next rail obey. */
	wf_world_link(0)->peer->lanes = 1;
	wf_fake_break_domain(WF_WORLD_NET_1);
	wf_world_pass(5 * S);
	assert_int_equal(wf_lane_count(wf_world_link(0)), 1);
	assert_int_equal(wf_lane_count(wf_world_link(1)), 1);
	wf_world_end();
}

static void sums_are_verified_whichever_way_the_bytes_came(void **state)
{
	struct weft_path path;

	(void)state;
	setenv("WEFT_CHECKSUM", "on", 1);
	open_world(NULL);
	begin(LONG, 2);
	path = end_well();
	assert_string_equal(path.checksum, "xxh3");
	assert_int_equal(path.rails, 2);
	wf_world_end();
}

static struct wf_outgoing *outgoing_of(unsigned number)
{
	uint32_t at = 0;

	return wf_table_next(&wf_world_node(number)->workers[0].transfer.outgoing, &at);
}

static void a_reader_that_asks_for_lanes_over_and_over_is_told_once_for_each(void **state)
{
	uint64_t queued_bytes;

	(void)state;
	open_world(NULL);
	begin(LONG, 2);
	assert_true(wf_world_run(is_amid, NULL, 10 * S));
	/* Node 1 has asked once, and may ask again for the one lane that there has been. */
	queued_bytes = wf_world_link(0)->out.queued_bytes;
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(wf_outgoing_spread(outgoing_of(0), 1), 0);
	assert_int_equal(wf_world_link(0)->out.queued_bytes - queued_bytes, WF_RECORD_LANE_BYTES);
	end_well();
	wf_world_end();
}

/* Dial the lane of node 0 once more, with the request that opened it. */
static void repeat_request(const struct wf_lane *lane)
{
	const struct wf_link *link = lane->link;
	const struct wf_greet_rail *to = &link->peer->rails[lane->theirs];
	uint8_t data[WF_CONNECT_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(data, sizeof(data));
	struct wf_ep *ep;
	struct wf_error e;

	assert_int_equal(wf_request_put(link, lane->number, to, &w), 0);
	assert_int_equal(wf_ep_open(lane->on->rail, to->address, to->address_bytes, data,
				    (size_t)(w.at - data), lane->link, &ep, &e), 0);
	wf_world_pass(S);
	wf_ep_close(ep);
}

static void a_request_that_is_repeated_takes_no_lane_from_the_peer(void **state)
{
	const struct wf_lane *lane;
	uint32_t number;

	(void)state;
	open_world(NULL);
	begin(LONG, 2);
	end_well();
	lane = WF_CONTAINER(wf_list_first(&wf_world_link(0)->lanes), struct wf_lane, node);
	number = lane->number;
	repeat_request(lane);
	wf_world_pass(3 * S);
	/* A lane that had closed would have been dialled again, by another number. */
	assert_int_equal(lane->number, number);
	assert_true(has_lanes(NULL));
	begin(LONG, 2);
	assert_int_equal(end_well().rails, 2);
	wf_world_end();
}

static void a_request_of_no_epoch_is_for_no_link(void **state)
{
	const struct wf_link *link;
	uint32_t epoch, lane;

	(void)state;
	open_world(NULL);
	begin(LONG, 2);
	end_well();
	link = wf_world_link(1);
	for (uint32_t said = 0; said < 2; said++) {
		uint8_t data[WF_CONNECT_BYTES];
		struct wf_bytes_writer w = wf_bytes_writer(data, sizeof(data));

		wf_bytes_put_u64(&w, link->id);
		wf_bytes_put_u64(&w, link->token);
		wf_bytes_put_u32(&w, said);
		assert_ptr_equal(wf_request_get(link->engine, link->on, data,
						(size_t)(w.at - data), &epoch, &lane),
				 said ? link : NULL);
	}
	wf_world_end();
}

static void a_cancel_amid_a_body_leaves_both_quiet(void **state)
{
	(void)state;
	open_world(NULL);
	begin(LONG, 2);
	assert_true(wf_world_run(is_amid, NULL, 10 * S));
	weft_cancel(body.out);
	assert_true(wf_world_run(has_ended, NULL, 5 * S));
	assert_false(wf_fake_is_open(source, sizeof(source)));
	assert_int_equal(weft_op_status(body.out), WEFT_CANCELLED);
	weft_op_free(body.out);
	weft_op_free(body.in);
	begin(LONG, 2);
	assert_int_equal(end_well().rails, 2);
	wf_world_end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_bodies_go_over_both_networks),
		cmocka_unit_test(short_bodies_do_not_wait_for_the_second),
		cmocka_unit_test(each_side_may_read_over_a_lane_whichever_dialled),
		cmocka_unit_test(a_second_network_that_breaks_amid_a_body_costs_nothing),
		cmocka_unit_test(a_waiting_read_is_not_placed_on_a_network_that_has_broken),
		cmocka_unit_test(the_first_network_may_break_amid_a_body_as_well),
		cmocka_unit_test(a_second_network_that_falls_silent_is_given_up),
		cmocka_unit_test(the_first_network_may_fall_silent_while_its_doors_work),
		cmocka_unit_test(small_sends_leave_a_network_that_swallows_frames),
		cmocka_unit_test(an_operation_that_needs_two_rails_is_told_when_there_is_one),
		cmocka_unit_test(
			a_send_behind_one_that_needs_two_rails_goes_on_when_that_is_cancelled),
		cmocka_unit_test(there_are_no_more_lanes_than_the_peer_takes),
		cmocka_unit_test(sums_are_verified_whichever_way_the_bytes_came),
		cmocka_unit_test(a_reader_that_asks_for_lanes_over_and_over_is_told_once_for_each),
		cmocka_unit_test(a_cancel_amid_a_body_leaves_both_quiet),
		cmocka_unit_test(a_request_that_is_repeated_takes_no_lane_from_the_peer),
		cmocka_unit_test(a_request_of_no_epoch_is_for_no_link),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
