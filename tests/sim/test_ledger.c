/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node keeps on behalf of a peer is bounded, and nothing that was sent is lost by that. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rma.h"
#include "core/worker.h"
#include "link/engine.h"
#include "link/ledger.h"
#include "link/link.h"
#include "tests/sim/world.h"
#include "util/clock.h"
#include "wire/access.h"
#include "wire/record_call.h"

#define S WF_NS_PER_S
#define TENSORS 4000
#define KEY_BYTES 1000
#define CALLS 2000
#define SIDE (512 * KIB) /* half of WEFT_PEER_BYTES as these tests set it */
#define OVERDRAWN (16 * MIB) /* kept for a peer that is dead then */
#define FLOOD 100000 /* records whose answers take more than that */
#define ASKS 1000 /* asks for windows, of which most wait for credit */
#define RECORDS 10000 /* records whose answers take several times that half */

static struct wf_flight sends[TENSORS], receives[TENSORS], calls[CALLS], one;
static void *held[CALLS];
static unsigned held_count;

static uint64_t kept(unsigned number)
{
	return wf_world_count(number).kept_bytes;
}

static void open_world(void)
{
	setenv("WEFT_PEER_BYTES", "1M", 1);
	wf_world_open(WF_WORLD_CONNECTED, 3, NULL);
	wf_world_connect(0, 1);
	wf_world_connect(2, 1);
}

static unsigned landed(const struct wf_flight *flights, unsigned count, enum weft_status status)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		n += flights[i].outcomes && flights[i].status == status;
	return n;
}

static void make_key(char key[KEY_BYTES], unsigned i)
{
	memset(key, 'k', KEY_BYTES);
	(void)snprintf(key, KEY_BYTES, "%u", i);
}

/* Tensors without an element: nothing but keys, which no eager credit bounds. */
static void send_keys(unsigned from, uint64_t step, unsigned count)
{
	static int64_t none;
	struct weft_tensor tensor = {
		.device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 }, .shape = &none,
	};

	for (unsigned i = 0; i < count; i++) {
		struct weft_op_options op = wf_flight_begin(&sends[i], 50 * S);
		struct weft_send_options options = { .size = sizeof(options), .op = op };
		char key[KEY_BYTES];

		make_key(key, i);
		assert_int_equal(weft_send(wf_world_peer(from, 1), step, key, KEY_BYTES, &tensor,
					   &options, &sends[i].op), 0);
	}
}

/* Receive the tensor number @i of @step. */
static void receive_key(struct wf_flight *f, uint64_t step, unsigned i)
{
	struct weft_op_options op = wf_flight_begin(f, 50 * S);
	struct weft_recv_options options = { .size = sizeof(options), .op = op };
	char key[KEY_BYTES];

	make_key(key, i);
	assert_int_equal(weft_recv(wf_world_node(1), NULL, step, key, KEY_BYTES, NULL, &options,
				   &f->op), 0);
}

static void receive_keys(uint64_t step, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		receive_key(&receives[i], step, i);
}

static void tensors_beyond_the_account_wait_at_their_sender_and_none_is_lost(void **state)
{
	uint64_t before;

	(void)state;
	open_world();
	before = kept(1);

	send_keys(0, 7, TENSORS);
	wf_world_pass(5 * S);

	assert_true(kept(1) > before + SIDE / 4);
	assert_true(kept(1) < before + SIDE + 64 * KIB);
	assert_true(landed(sends, TENSORS, WEFT_OK) < TENSORS);
	assert_int_equal(wf_world_count(1).records_refused, 0);

	receive_keys(7, TENSORS);
	wf_flight_land(receives, TENSORS, 20 * S);
	wf_flight_land(sends, TENSORS, 20 * S);
	assert_int_equal(landed(receives, TENSORS, WEFT_OK), TENSORS);
	assert_int_equal(landed(sends, TENSORS, WEFT_OK), TENSORS);
	wf_flight_free(receives, TENSORS);
	wf_flight_free(sends, TENSORS);
	wf_world_end();
}

/* The peer has promised the frame before its account fills up, and then takes no copy of it. */
static void a_frame_that_a_full_account_refuses_for_long_costs_no_rail(void **state)
{
	static uint8_t byte = 1, got;
	struct wf_link *link;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		setenv("WEFT_PEER_BYTES", "1M", 1);
		wf_world_open(wf_world_shapes[i], 2, NULL);
		wf_world_connect(0, 1);
		wf_world_pass(S);
		link = wf_world_link(1);
		wf_ledger_charge(link, WF_LEDGER_RECEIVED, SIDE);
		wf_flight_receive(&receives[0], 1, 0, 8, &got, 1, 50 * S);
		wf_flight_send(&one, 0, 1, 8, &byte, 1, 50 * S);
		wf_world_pass(20 * S);
		assert_true(wf_world_count(1).records_refused > 20);
		assert_false(receives[0].outcomes);
		assert_int_equal(wf_world_link(0)->probe.epoch, 1);

		wf_ledger_discharge(link, WF_LEDGER_RECEIVED, SIDE);
		wf_flight_land(receives, 1, S);
		wf_flight_land(&one, 1, S);
		assert_int_equal(receives[0].status, WEFT_OK);
		wf_flight_free(receives, 1);
		wf_flight_free(&one, 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void another_peer_is_served_while_the_account_of_one_is_spent(void **state)
{
	static uint8_t byte = 1, got;

	(void)state;
	open_world();
	send_keys(0, 7, TENSORS);
	wf_world_pass(S);

	wf_flight_send(&one, 2, 1, 8, &byte, 1, 5 * S);
	wf_flight_receive(&receives[0], 1, 2, 8, &got, 1, 5 * S);
	wf_flight_land(&one, 1, S);
	wf_flight_land(receives, 1, S);
	assert_int_equal(one.status, WEFT_OK);
	assert_int_equal(receives[0].status, WEFT_OK);
	wf_flight_free(&one, 1);
	wf_flight_free(receives, 1);

	receive_keys(7, TENSORS);
	wf_flight_land(receives, TENSORS, 20 * S);
	wf_flight_land(sends, TENSORS, 20 * S);
	wf_flight_free(receives, TENSORS);
	wf_flight_free(sends, TENSORS);
	wf_world_end();
}

static void hold_call(unsigned number, void *call)
{
	(void)number;
	assert_true(held_count < CALLS);
	held[held_count++] = call;
}

static void calls_beyond_the_account_are_refused_and_those_begun_end_well(void **state)
{
	uint64_t before;

	(void)state;
	open_world();
	before = kept(1);
	held_count = 0;
	wf_world_on_request(hold_call);

	for (unsigned i = 0; i < CALLS; i++)
		wf_flight_call(&calls[i], 0, 1, NULL, 0, 50 * S);
	wf_world_pass(2 * S);

	assert_true(held_count > 20);
	assert_true(held_count < CALLS);
	assert_int_equal(landed(calls, CALLS, WEFT_RESOURCE_EXHAUSTED), CALLS - held_count);
	assert_true(kept(1) < before + SIDE + 64 * KIB);

	/* Another peer's calls begin meanwhile. */
	wf_flight_call(&one, 2, 1, NULL, 0, 5 * S);
	wf_world_pass(S);
	assert_false(one.outcomes);

	for (unsigned i = 0; i < held_count; i++)
		wf_world_answer(held[i], NULL, 0);
	wf_flight_land(calls, CALLS, 5 * S);
	wf_flight_land(&one, 1, 5 * S);
	assert_int_equal(one.status, WEFT_OK);
	assert_int_equal(landed(calls, CALLS, WEFT_OK), held_count - 1);
	wf_flight_free(calls, CALLS);
	wf_flight_free(&one, 1);
	wf_world_on_request(NULL);
	wf_world_end();
}

static struct weft_stream *served;

static void keep_stream(unsigned number, struct weft_stream *stream)
{
	(void)number;
	served = stream;
}

/* Each is a tensor of no bytes. */
static void attach_many(struct weft_stream *stream)
{
	static int64_t none;
	const struct weft_tensor tensor = {
		.device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 }, .shape = &none,
	};

	for (unsigned i = 0; i < WEFT_ATTACHMENTS_MAX; i++)
		assert_int_equal(weft_stream_attach(stream, &tensor, NULL, NULL), 0);
}

static void a_message_whose_attachments_have_no_room_ever_ends_its_call_alone(void **state)
{
	struct wf_flight call, write, read;
	struct weft_stream *stream;

	(void)state;
	open_world();
	wf_world_on_stream(keep_stream);
	wf_flight_open(&call, 0, 1, 50 * S, &stream);
	wf_world_pass(S);
	wf_flight_read(&read, served, 0);
	attach_many(stream);
	wf_flight_write(&write, stream, NULL, 0, 0);
	wf_flight_land(&read, 1, 5 * S);
	assert_int_equal(read.status, WEFT_RESOURCE_EXHAUSTED);
	wf_flight_ping(&one, 0, 1, S);
	wf_flight_land(&one, 1, S);
	assert_int_equal(one.status, WEFT_OK);
	wf_flight_free(&one, 1);

	weft_stream_finish(served, WEFT_OK, "");
	wf_flight_land(&call, 1, S);
	wf_flight_land(&write, 1, S);
	assert_int_equal(call.status, WEFT_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(weft_op_message(call.op), "attachments"));
	wf_flight_free(&call, 1);
	wf_flight_free(&write, 1);
	wf_flight_free(&read, 1);
	weft_stream_close(stream);
	wf_world_end();
}

/* Import a new window of node 1, over @memory, at node 0. */
static struct weft_remote *import_window(uint8_t *memory, struct weft_window **window)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	struct weft_remote *remote;

	assert_int_equal(weft_window_open(wf_world_node(1), memory, 1,
					  WEFT_WINDOW_READ | WEFT_WINDOW_WRITE, window), 0);
	assert_int_equal(weft_window_describe(*window, descriptor, &bytes), 0);
	assert_int_equal(weft_window_import(wf_world_peer(0, 1), descriptor, bytes, &remote), 0);
	return remote;
}

static void a_note_is_taken_where_there_is_no_room_for_a_call(void **state)
{
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	struct weft_window *window;
	struct weft_remote *remote;
	uint8_t memory;

	(void)state;
	open_world();
	remote = import_window(&memory, &window);
	held_count = 0;
	wf_world_on_request(hold_call);
	for (unsigned i = 0; i < CALLS; i++)
		wf_flight_call(&calls[i], 0, 1, NULL, 0, 50 * S);
	wf_world_pass(2 * S);
	assert_true(landed(calls, CALLS, WEFT_RESOURCE_EXHAUSTED) > 0);

	options.op = wf_flight_begin(&one, 5 * S);
	options.flags = WEFT_NOTE;
	assert_int_equal(weft_put(remote, NULL, 0, &options, &one.op), 0);
	wf_flight_land(&one, 1, S);
	assert_int_equal(one.status, WEFT_OK);

	for (unsigned i = 0; i < held_count; i++)
		wf_world_answer(held[i], NULL, 0);
	wf_flight_land(calls, CALLS, 5 * S);
	wf_flight_free(calls, CALLS);
	wf_flight_free(&one, 1);
	wf_world_on_request(NULL);
	weft_remote_close(remote);
	assert_int_equal(weft_window_close(window), 0);
	wf_world_end();
}

static void a_call_that_ended_gives_its_room_back(void **state)
{
	uint64_t before;

	(void)state;
	open_world();
	wf_flight_call(&one, 0, 1, NULL, 0, 5 * S);
	wf_flight_land(&one, 1, S);
	wf_flight_free(&one, 1);
	wf_world_pass(S);
	before = kept(1);

	for (unsigned i = 0; i < 50; i++) {
		wf_flight_call(&one, 0, 1, NULL, 0, 5 * S);
		wf_flight_land(&one, 1, S);
		assert_int_equal(one.status, WEFT_OK);
		wf_flight_free(&one, 1);
	}
	wf_world_pass(S);
	assert_int_equal(kept(1), before);
	wf_world_end();
}

static void offers_of_a_dead_peer_are_no_longer_charged(void **state)
{
	static uint8_t long_body[256 * KIB];
	uint64_t before;

	(void)state;
	wf_world_lose_soon();
	open_world();
	before = kept(1);
	for (unsigned i = 0; i < 100; i++)
		wf_flight_send(&sends[i], 0, 1, 100 + i, long_body, sizeof(long_body), 50 * S);
	wf_world_pass(S);
	assert_true(kept(1) > before);

	wf_world_kill(0);
	wf_world_pass(2 * S);
	assert_true(kept(1) <= before);
	wf_flight_free(sends, 100);
	assert_int_equal(wf_world_close(), 0);
}

static void strangers_that_are_gone_leave_room_for_those_that_are_there(void **state)
{
	(void)state;
	wf_world_lose_soon();
	setenv("WEFT_STRANGERS_BYTES", "1M", 1);
	open_world();
	/* Node 0 leaves as much as its account takes, and goes. */
	send_keys(0, 7, TENSORS);
	wf_world_pass(S);
	wf_world_kill(0);
	wf_world_pass(2 * S);
	wf_flight_free(sends, TENSORS);
	assert_true(kept(1) > SIDE / 4);

	/* Node 2 sends more than what is left then. */
	send_keys(2, 9, TENSORS);
	wf_world_pass(S);
	assert_true(kept(1) < 2 * SIDE + 256 * KIB);
	receive_keys(9, TENSORS);
	wf_flight_land(sends, TENSORS, 20 * S);
	assert_int_equal(landed(sends, TENSORS, WEFT_OK), TENSORS);
	wf_flight_land(receives, TENSORS, 20 * S);
	wf_flight_free(sends, TENSORS);
	wf_flight_free(receives, TENSORS);
	assert_int_equal(wf_world_close(), 0);
}

static void a_stranger_that_was_held_back_goes_on_when_others_are_received_from(void **state)
{
	const unsigned some = 250, late = 200;

	(void)state;
	setenv("WEFT_STRANGERS_BYTES", "1M", 1);
	setenv("WEFT_FRAME_BYTES", "1K", 1);
	open_world();
	/* Node 2 sends all that it has to send, and keeps node 0 from its whole account. */
	send_keys(2, 9, some);
	wf_flight_land(sends, some, 5 * S);
	wf_flight_free(sends, some);
	send_keys(0, 7, TENSORS);
	wf_world_pass(5 * S);
	assert_int_equal(landed(sends + late, 1, WEFT_OK), 0);

	receive_keys(9, some);
	wf_flight_land(receives, some, 5 * S);
	wf_flight_free(receives, some);
	receive_key(&one, 7, late);
	wf_flight_land(&one, 1, 5 * S);
	assert_int_equal(one.status, WEFT_OK);
	wf_flight_free(&one, 1);

	for (unsigned i = 0; i < TENSORS; i++)
		if (i != late)
			receive_key(&receives[i], 7, i);
	wf_flight_land(sends, TENSORS, 20 * S);
	wf_flight_land(receives, late, 20 * S);
	wf_flight_land(receives + late + 1, TENSORS - late - 1, 20 * S);
	wf_flight_free(receives, late);
	wf_flight_free(receives + late + 1, TENSORS - late - 1);
	wf_flight_free(sends, TENSORS);
	wf_world_end();
}

/* Have node @number take nothing that comes, and give no credit for more, or do so again. */
static void set_deaf(unsigned number, bool deaf)
{
	if (deaf)
		wf_ledger_charge(wf_world_link(number), WF_LEDGER_RECEIVED, GIB);
	else
		wf_ledger_discharge(wf_world_link(number), WF_LEDGER_RECEIVED, GIB);
}

/* Send the record of @type that @w has written over @bytes to node 1, as no program does. */
static void forge(uint8_t type, const uint8_t *bytes, const struct wf_bytes_writer *w)
{
	assert_int_equal(wf_message_post_own(wf_world_link(0), 0, type, bytes,
					     (size_t)(w->at - bytes)), 0);
}

static struct wf_body body_of_offer(uint64_t offer)
{
	return (struct wf_body){ .way = WF_BODY_PULL, .bytes = 16, .offer = offer, .epoch = 9 };
}

static void forge_lend(uint64_t n)
{
	uint8_t bytes[WF_MESSAGE_COPY_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	wf_access_lend_put(&w, &(struct wf_access_lend){ .id = n, .body = body_of_offer(n) });
	forge(WF_RECORD_LEND, bytes, &w);
}

static void forge_reply(uint64_t n)
{
	uint8_t bytes[WF_MESSAGE_COPY_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	wf_record_reply_put(&w, &(struct wf_record_reply){ .call = n, .body = body_of_offer(n),
							   .executed = WEFT_EXECUTED_YES });
	forge(WF_RECORD_REPLY, bytes, &w);
}

/* Ask for a window that there is not. */
static void forge_ask(uint64_t n)
{
	uint8_t bytes[WF_ACCESS_ASK_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	wf_access_ask_put(&w, &(struct wf_access_ask){ .id = n, .bytes = 16 });
	forge(WF_RECORD_ASK, bytes, &w);
}

static void forge_many(void (*forge_one)(uint64_t n), unsigned count)
{
	set_deaf(0, true);
	for (unsigned n = 1; n <= count; n++)
		forge_one(n);
	wf_world_pass(2 * S);
}

static void assert_stranger_is_held(void (*forge_one)(uint64_t n))
{
	uint64_t before = kept(1);

	assert_true(wf_world_link(1)->account.stranger);
	forge_many(forge_one, RECORDS);
	assert_true(kept(1) > before + SIDE / 4);
	assert_true(kept(1) < before + SIDE + 64 * KIB);

	/* Records that were held back come, and are answered, as soon as answers are taken. */
	set_deaf(0, false);
	wf_flight_ping(&one, 0, 1, 20 * S);
	wf_flight_land(&one, 1, 20 * S);
	assert_int_equal(one.status, WEFT_OK);
	wf_flight_free(&one, 1);
	wf_world_pass(S);
	assert_true(kept(1) <= before);
	wf_world_end();
}

static void a_stranger_that_takes_no_answers_lends_no_more_than_its_account_has_room_for(
	void **state)
{
	(void)state;
	open_world();
	assert_stranger_is_held(forge_lend);
}

static void a_stranger_that_takes_no_answers_replies_no_more_than_its_account_has_room_for(
	void **state)
{
	(void)state;
	open_world();
	assert_stranger_is_held(forge_reply);
}

static struct weft_remote *read_remote;

/* Ask for lanes to the loan that node 0 reads, each time for another pull. */
static void forge_spread(uint64_t n)
{
	uint8_t bytes[WF_RECORD_SMALL_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	wf_record_small_put(&w, &(struct wf_record_small){
		.id = read_remote->remote.body.offer, .other = n });
	forge(WF_RECORD_SPREAD, bytes, &w);
}

static bool has_lane(void *arg)
{
	(void)arg;
	return wf_lane_count(wf_world_link(0)) == 1 && wf_lane_count(wf_world_link(1)) == 1;
}

static void a_stranger_that_takes_no_answers_hears_of_lanes_as_far_as_its_account_has_room(
	void **state)
{
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	static uint8_t memory = 1, got;
	const struct weft_block block = { .local = &got, .bytes = 1 };
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	struct weft_window *window;
	uint64_t before;

	(void)state;
	setenv("WEFT_PEER_BYTES", "1M", 1);
	wf_world_open(WF_WORLD_LANES, 2, NULL);
	wf_world_connect(0, 1);
	assert_true(wf_world_run(has_lane, NULL, 10 * S));
	assert_int_equal(weft_window_open(wf_world_node(1), &memory, 1, WEFT_WINDOW_READ, &window),
			 0);
	assert_int_equal(weft_window_describe(window, descriptor, &bytes), 0);
	assert_int_equal(weft_window_import(wf_world_peer(0, 1), descriptor, bytes, &read_remote),
			 0);
	options.op = wf_flight_begin(&one, 5 * S);
	assert_int_equal(weft_get(read_remote, &block, 1, &options, &one.op), 0);
	wf_flight_land(&one, 1, 5 * S);
	assert_int_equal(one.status, WEFT_OK);
	wf_flight_free(&one, 1);

	assert_true(wf_world_link(1)->account.stranger);
	before = kept(1);
	forge_many(forge_spread, RECORDS);
	assert_true(kept(1) > before + SIDE / 4);
	assert_true(kept(1) < before + SIDE + 64 * KIB);

	set_deaf(0, false);
	weft_remote_close(read_remote);
	wf_world_pass(5 * S);
	assert_int_equal(weft_window_close(window), 0);
	wf_world_end();
}

static void a_named_peer_that_takes_no_answers_is_dead_at_a_multiple_of_its_account(void **state)
{
	uint64_t before;

	(void)state;
	open_world();
	wf_world_connect(1, 0);
	assert_false(wf_world_link(0)->account.stranger);
	set_deaf(0, true);
	wf_flight_ping(&one, 1, 0, 50 * S);
	before = kept(1);
	for (unsigned n = 1; n <= FLOOD; n++)
		forge_ask(n);
	while (!one.outcomes && kept(1) < before + OVERDRAWN + MIB)
		wf_world_step();

	assert_int_equal(one.outcomes, 1);
	assert_int_equal(one.status, WEFT_INTERNAL);
	assert_non_null(strstr(weft_op_message(one.op), "takes too few"));
	wf_flight_free(&one, 1);
	wf_world_kill(0);
	wf_world_pass(5 * S);
	assert_int_equal(wf_world_close(), 0);
}

/* Returns the bytes that the peer of @link is charged for besides frames under way. */
static uint64_t owed_beside_frames(const struct wf_link *link)
{
	uint64_t bytes = link->account.bytes[WF_LEDGER_OWED];

	WF_LIST_EACH(node, &link->out.frames)
		bytes -= link->engine->frame_bytes;
	return bytes;
}

static void a_peer_is_not_charged_for_what_is_asked_of_it(void **state)
{
	static struct weft_remote *remotes[ASKS];
	static uint8_t memory = 1, got;
	const struct weft_block block = { .local = &got, .bytes = 1 };
	const struct wf_link *link;
	struct weft_window *window;
	uint64_t before;

	(void)state;
	open_world();
	/* The answers do not matter: windows but the last close before they are asked for. */
	for (unsigned i = 0; i < ASKS; i++) {
		if (i)
			assert_int_equal(weft_window_close(window), 0);
		remotes[i] = import_window(&memory, &window);
	}
	link = wf_world_link(0);
	before = owed_beside_frames(link);
	set_deaf(1, true);
	for (unsigned i = 0; i < ASKS; i++) {
		struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;

		options.op = wf_flight_begin(&calls[i], 50 * S);
		assert_int_equal(weft_get(remotes[i], &block, 1, &options, &calls[i].op), 0);
	}
	wf_world_pass(S);
	assert_true(link->out.waiting);
	assert_int_equal(owed_beside_frames(link), before);

	set_deaf(1, false);
	wf_flight_land(calls, ASKS, 10 * S);
	wf_flight_free(calls, ASKS);
	for (unsigned i = 0; i < ASKS; i++)
		weft_remote_close(remotes[i]);
	assert_int_equal(weft_window_close(window), 0);
	wf_world_end();
}

/* A frame's records may come to keep sixteen times its bytes, more than the least bound. */
static void a_peer_that_has_nothing_kept_may_send_a_frame_however_long_frames_are(void **state)
{
	static struct wf_engine engine;
	static struct wf_link link;

	(void)state;
	link.engine = &engine;
	for (uint32_t bytes = 4 * KIB; bytes <= MIB; bytes *= 2) {
		link.probe.frame_bytes = bytes;
		link.account.bytes[WF_LEDGER_RECEIVED] = 0;
		assert_true(wf_ledger_frames(&link) >= 1);
		link.account.bytes[WF_LEDGER_RECEIVED] = WF_LEDGER_LEAST_BYTES / 2;
		assert_int_equal(wf_ledger_frames(&link), 0);
	}
}

/* Replies and frames under way are owed to a peer, too, and are no answers that it does not take. */
static void a_peer_is_overdrawn_by_answers_alone(void **state)
{
	static struct wf_directory directory;
	static struct wf_engine engine;
	static struct wf_link link;

	(void)state;
	link.engine = &engine;
	engine.directory = &directory;
	engine.options.peer_bytes = 64 * MIB;
	link.account.bytes[WF_LEDGER_OWED] = 1024 * MIB;
	assert_false(wf_ledger_is_overdrawn(&link));
	wf_ledger_answer_waits(&link, 128 * MIB);
	assert_false(wf_ledger_is_overdrawn(&link));
	wf_ledger_answer_waits(&link, 1);
	assert_true(wf_ledger_is_overdrawn(&link));
	link.account.stranger = true;
	assert_false(wf_ledger_is_overdrawn(&link));
	link.account.stranger = false;
	wf_ledger_answer_left(&link, 1);
	assert_false(wf_ledger_is_overdrawn(&link));
}

static void a_long_record_of_a_stranger_begins_only_within_what_strangers_have(void **state)
{
	static struct wf_directory directory;
	static struct wf_engine engine;
	static struct wf_link link;

	(void)state;
	link.engine = &engine;
	engine.directory = &directory;
	engine.options.strangers_bytes = 64 * MIB;
	link.account.stranger = true;
	link.account.bytes[WF_LEDGER_OWED] = 4 * KIB;
	directory.strangers_bytes = 63 * MIB;
	assert_true(wf_ledger_takes_parts(&link, MIB));
	directory.strangers_bytes = 63 * MIB + 1;
	assert_false(wf_ledger_takes_parts(&link, MIB));

	/* The least of an account is there for newcomers, whatever others keep. */
	directory.strangers_bytes = 65 * MIB;
	assert_true(wf_ledger_takes_parts(&link, WF_LEDGER_LEAST_BYTES - 4 * KIB));
	assert_false(wf_ledger_takes_parts(&link, WF_LEDGER_LEAST_BYTES));
	link.account.stranger = false;
	assert_true(wf_ledger_takes_parts(&link, MIB));

	/* The longest record passes, sooner or later, where strangers have the least together. */
	link.account.stranger = true;
	engine.options.strangers_bytes = MIB;
	directory.strangers_bytes = 4 * KIB;
	assert_true(wf_ledger_takes_parts(&link, MIB));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_that_has_nothing_kept_may_send_a_frame_however_long_frames_are),
		cmocka_unit_test(a_long_record_of_a_stranger_begins_only_within_what_strangers_have),
		cmocka_unit_test(tensors_beyond_the_account_wait_at_their_sender_and_none_is_lost),
		cmocka_unit_test(a_frame_that_a_full_account_refuses_for_long_costs_no_rail),
		cmocka_unit_test(another_peer_is_served_while_the_account_of_one_is_spent),
		cmocka_unit_test(calls_beyond_the_account_are_refused_and_those_begun_end_well),
		cmocka_unit_test(a_message_whose_attachments_have_no_room_ever_ends_its_call_alone),
		cmocka_unit_test(a_note_is_taken_where_there_is_no_room_for_a_call),
		cmocka_unit_test(a_call_that_ended_gives_its_room_back),
		cmocka_unit_test(offers_of_a_dead_peer_are_no_longer_charged),
		cmocka_unit_test(strangers_that_are_gone_leave_room_for_those_that_are_there),
		cmocka_unit_test(a_stranger_that_was_held_back_goes_on_when_others_are_received_from),
		cmocka_unit_test(
			a_stranger_that_takes_no_answers_lends_no_more_than_its_account_has_room_for),
		cmocka_unit_test(
			a_stranger_that_takes_no_answers_replies_no_more_than_its_account_has_room_for),
		cmocka_unit_test(
			a_stranger_that_takes_no_answers_hears_of_lanes_as_far_as_its_account_has_room),
		cmocka_unit_test(a_peer_is_not_charged_for_what_is_asked_of_it),
		cmocka_unit_test(a_peer_is_overdrawn_by_answers_alone),
		cmocka_unit_test(a_named_peer_that_takes_no_answers_is_dead_at_a_multiple_of_its_account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
