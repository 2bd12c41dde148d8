/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensors in the memory of devices, over a NIC that reaches them: which way they go, and what
 * each end says of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "core/worker.h"
#include "memory/cuda.h"
#include "tests/cuda/gpu.h"
#include "tests/sim/chance.h"
#include "tests/sim/nic.h"
#include "tests/sim/world.h"
#include "tests/unit/machine.h"
#include "transfer/outgoing.h"
#include "transfer/pull.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define HOST GPU_HOST

/* A tensor of bytes from node 0 to node 1, each of them on a device or with the host. */
struct move {
	int from, to;
	int64_t bytes;
	unsigned flags; /* of both operations */
	unsigned in_flags; /* of the receive besides */
	void *stream, *in_stream; /* of the send and of the receive */
	uint8_t *out, *in;
	struct wf_flight flights[2];
	struct weft_path paths[2];
};

static void move_open(struct move *m)
{
	m->out = gpu_take(m->from, (size_t)m->bytes);
	m->in = gpu_take(m->to, (size_t)m->bytes);
	gpu_fill(m->from, m->out, (size_t)m->bytes, 7);
}

static void move_send(struct move *m)
{
	struct weft_send_options out = { .size = sizeof(out), .stream = m->stream };
	struct weft_tensor from = gpu_tensor(m->from, m->out, &m->bytes);

	out.op = wf_flight_begin(&m->flights[0], 100 * S);
	out.op.flags = m->flags;
	assert_int_equal(weft_send(wf_world_peer(0, 1), 1, "k", 1, &from, &out,
				   &m->flights[0].op), 0);
}

static void move_receive(struct move *m)
{
	struct weft_recv_options in = { .size = sizeof(in), .stream = m->in_stream };
	struct weft_tensor to = gpu_tensor(m->to, m->in, &m->bytes);

	in.op = wf_flight_begin(&m->flights[1], 100 * S);
	in.op.flags = m->flags | m->in_flags;
	assert_int_equal(weft_recv(wf_world_node(1), NULL, 1, "k", 1, &to, &in,
				   &m->flights[1].op), 0);
}

static void move_post(struct move *m)
{
	move_send(m);
	move_receive(m);
}

/* What has come is what was sent. */
static bool has_come(const struct move *m)
{
	size_t bytes = (size_t)m->bytes;
	uint8_t *got = malloc(bytes), *sent = malloc(bytes);
	bool same;

	gpu_get(m->to, m->in, got, bytes);
	gpu_get(m->from, m->out, sent, bytes);
	same = !memcmp(got, sent, bytes);
	free(got);
	free(sent);
	return same;
}

static void move_land(struct move *m)
{
	wf_flight_land(m->flights, 2, 200 * S);
	for (unsigned i = 0; i < 2; i++) {
		m->paths[i].size = sizeof(m->paths[i]);
		assert_int_equal(weft_op_path(m->flights[i].op, &m->paths[i]), 0);
	}
	if (m->flights[1].status == WEFT_OK)
		assert_true(has_come(m));
}

static void move_end(struct move *m)
{
	wf_flight_free(m->flights, 2);
	gpu_give(m->from, m->out);
	gpu_give(m->to, m->in);
}

static void move(struct move *m)
{
	move_open(m);
	move_post(m);
	move_land(m);
}

/* A stream of @device that writes the byte at @at once the driver is let go. */
static CUstream held_stream(int device, uint8_t *at)
{
	CUstream stream;

	assert_int_equal(wf_cuda_enter(device, NULL), 0);
	assert_int_equal(gpu.cuStreamCreate(&stream, 1), 0);
	gpu.fake_cuda_hold(true);
	assert_int_equal(gpu.cuMemsetD8Async((CUdeviceptr)at, 99, 1, stream), 0);
	wf_cuda_leave();
	return stream;
}

/* With the NIC at a bus of MACHINE_DUAL; 0: nobody knows where it is. */
static void begin_at(uint8_t bus, uint64_t seed, unsigned refused)
{
	const struct wf_fake fake = wf_nic_fake(seed);

	setenv("WEFT_CUDA", wf_cuda_driver_file(), 1);
	wf_chance_seed(seed);
	wf_nic_refused = refused;
	wf_nic_asked = 0;
	wf_world_open(WF_WORLD_REACHING, 0, &fake);
	wf_fake_offer_at(bus, 0);
	wf_world_add();
	wf_world_add();
	wf_world_connect(0, 1);
}

static void begin(uint64_t seed, unsigned refused)
{
	begin_at(0, seed, refused);
}

static void each_end_that_a_nic_reaches_says_direct(void **state)
{
	static const struct {
		int from, to;
		const char *send, *receive;
	} rows[] = {
		{ 0, 1, "direct", "direct" },
		{ 0, HOST, "direct", "pull" },
		{ HOST, 1, "pull", "direct" },
	};
	struct move m;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		unsigned copies = gpu.fake_cuda_calls("cuMemcpyHtoDAsync") +
				  gpu.fake_cuda_calls("cuMemcpyDtoHAsync");
		unsigned flushes = gpu.fake_cuda_calls("cuFlushGPUDirectRDMAWrites");

		begin(seed, 0);
		for (size_t i = 0; i < WF_COUNT(rows); i++) {
			m = (struct move){ .from = rows[i].from, .to = rows[i].to,
					   .bytes = 5 * MIB + 3 };
			move(&m);
			assert_int_equal(m.flights[0].status, WEFT_OK);
			assert_int_equal(m.flights[1].status, WEFT_OK);
			assert_string_equal(m.paths[0].way, rows[i].send);
			assert_string_equal(m.paths[1].way, rows[i].receive);
			assert_string_equal(m.paths[1].provider, "verbs");
			assert_int_equal(m.paths[0].copies, 0);
			assert_int_equal(m.paths[1].copies, 0);
			move_end(&m);
		}
		wf_world_end();
		assert_int_equal(gpu.fake_cuda_calls("cuMemcpyHtoDAsync") +
				 gpu.fake_cuda_calls("cuMemcpyDtoHAsync"), copies);
		/* Before the first byte, to know that it can be; and after the last. */
		assert_int_equal(gpu.fake_cuda_calls("cuFlushGPUDirectRDMAWrites"), flushes + 4);
	}
}

static void a_body_that_is_short_or_has_a_checksum_is_staged(void **state)
{
	static const struct {
		int64_t bytes;
		unsigned flags;
		const char *way;
	} rows[] = {
		{ 100 * KIB, 0, "staged" },
		{ 2 * MIB, WEFT_CHECKSUM, "staged" },
		{ 2 * MIB, 0, "direct" },
	};
	struct move m;

	(void)state;
	begin(1, 0);
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		m = (struct move){ .from = 0, .to = 1, .bytes = rows[i].bytes,
				   .flags = rows[i].flags };
		move(&m);
		assert_int_equal(m.flights[1].status, WEFT_OK);
		assert_string_equal(m.paths[0].way, rows[i].way);
		assert_string_equal(m.paths[1].way, rows[i].way);
		move_end(&m);
	}
	wf_world_end();
}

static void a_nic_of_another_numa_node_is_for_who_is_strict(void **state)
{
	static const struct {
		uint8_t bus; /* of the NIC */
		unsigned flags;
		const char *send, *receive;
		unsigned copies; /* by its receiver */
	} rows[] = {
		{ 0x01, 0, "direct", "staged", 1 },
		{ 0x81, 0, "staged", "staged", 0 },
		{ 0x81, WEFT_STRICT_NO_STAGING, "direct", "direct", 0 },
	};
	struct move m;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		setenv("WEFT_SYSFS", machine_make(MACHINE_DUAL), 1);
		begin_at(rows[i].bus, 1, 0);
		/* The software driver's devices are of two nodes, too. */
		m = (struct move){ .from = 0, .to = 1, .bytes = 2 * MIB, .flags = rows[i].flags };
		move(&m);
		assert_int_equal(m.flights[1].status, WEFT_OK);
		assert_string_equal(m.paths[0].way, rows[i].send);
		assert_string_equal(m.paths[1].way, rows[i].receive);
		assert_int_equal(m.paths[1].copies, rows[i].copies);
		move_end(&m);
		wf_world_end();
		machine_remove();
	}
}

static void a_nic_that_reaches_nothing_is_asked_once(void **state)
{
	struct move m;

	(void)state;
	begin(2, 100);
	for (unsigned i = 0; i < 3; i++) {
		m = (struct move){ .from = 0, .to = 1, .bytes = 2 * MIB };
		move(&m);
		assert_int_equal(m.flights[1].status, WEFT_OK);
		assert_string_equal(m.paths[0].way, "staged");
		assert_string_equal(m.paths[1].way, "staged");
		move_end(&m);
	}
	/* By each of the two nodes. */
	assert_int_equal(wf_nic_asked, 2);
	wf_world_end();
}

static void a_strict_operation_goes_by_the_nic_or_not_at_all(void **state)
{
	static const int64_t sizes[] = { 100, 100 * KIB, 3 * MIB };
	struct move m;

	(void)state;
	begin(2, 0);
	for (size_t i = 0; i < WF_COUNT(sizes); i++) {
		m = (struct move){ .from = 0, .to = 1, .bytes = sizes[i], .flags = WEFT_STRICT_NO_STAGING };
		move(&m);
		assert_int_equal(m.flights[0].status, WEFT_OK);
		assert_int_equal(m.flights[1].status, WEFT_OK);
		assert_string_equal(m.paths[0].way, "direct");
		assert_string_equal(m.paths[1].way, "direct");
		move_end(&m);
	}
	wf_nic_refused = 100;
	for (int from = HOST; from <= 0; from++) {
		struct wf_flight *refused = &m.flights[from < 0];

		m = (struct move){ .from = from, .to = from < 0 ? 1 : HOST, .bytes = 3 * MIB,
				   .flags = WEFT_STRICT_NO_STAGING };
		move(&m);
		assert_int_equal(refused->status, WEFT_FAILED_PRECONDITION);
		assert_non_null(strstr(weft_op_message(refused->op), "no staging was asked for"));
		move_end(&m);
	}
	wf_world_end();
}

static void the_programs_stream_comes_first_at_either_end(void **state)
{
	CUstream stream;
	struct move m;

	(void)state;
	begin(2, 0);
	for (int sends = 0; sends < 2; sends++) {
		m = (struct move){ .from = 0, .to = 1, .bytes = 2 * MIB };
		move_open(&m);
		stream = sends ? held_stream(0, m.out) : held_stream(1, m.in);
		*(sends ? &m.stream : &m.in_stream) = stream;
		move_post(&m);
		wf_world_pass(100 * MS);
		assert_int_equal(m.flights[0].outcomes + m.flights[1].outcomes, 0);
		gpu.fake_cuda_hold(false);
		move_land(&m);
		assert_string_equal(m.paths[0].way, "direct");
		assert_string_equal(m.paths[1].way, "direct");
		move_end(&m);
		assert_int_equal(gpu.cuStreamDestroy_v2(stream), 0);
	}
	wf_world_end();
}

static void a_receive_whose_bytes_are_not_seen_by_its_device_fails(void **state)
{
	struct move m;

	(void)state;
	begin(2, 0);
	m = (struct move){ .from = HOST, .to = 1, .bytes = 2 * MIB };
	gpu.fake_cuda_fail("cuFlushGPUDirectRDMAWrites", 2, CU_ILLEGAL_ADDRESS);
	move(&m);
	assert_int_not_equal(m.flights[1].status, WEFT_OK);
	assert_non_null(strstr(weft_op_message(m.flights[1].op),
			       "what cards have written to CUDA device 1"));
	move_end(&m);
	/* Where it can't be had at all, the host brings them. */
	m = (struct move){ .from = HOST, .to = 1, .bytes = 2 * MIB };
	gpu.fake_cuda_fail("cuFlushGPUDirectRDMAWrites", 1, CU_NOT_SUPPORTED);
	move(&m);
	assert_int_equal(m.flights[1].status, WEFT_OK);
	assert_string_equal(m.paths[1].way, "staged");
	move_end(&m);
	wf_world_end();
}

/* What happens while a body is on its way. */

static void lose_nic(void)
{
	wf_fake_break_domain(WF_WORLD_NIC);
	wf_fake_cut_domain(WF_WORLD_NIC);
}

/* The one pull of node 1. */
static struct wf_pull *the_pull(void)
{
	uint32_t at = 0;

	return wf_table_next(&wf_world_node(1)->workers[0].transfer.pulls, &at);
}

static bool has_bytes(void *arg)
{
	const struct wf_pull *pull = the_pull();

	return pull && pull->at.got_bytes >= *(uint64_t *)arg;
}

static bool asks_over_tcp(void *arg)
{
	const struct wf_pull *pull = the_pull();

	(void)arg;
	return pull && pull->state == WF_PULL_ASKED && pull->link->state == WF_LINK_UP &&
	       !strcmp(wf_link_caps(pull->link)->provider, "tcp");
}

static bool owner_has_filled(void *arg)
{
	uint32_t at = 0;
	const struct wf_outgoing *p =
		wf_table_next(&wf_world_node(0)->workers[0].transfer.outgoing, &at);

	(void)arg;
	return p && p->staging && p->staging->filled;
}

/* Begun, in small reads, of which so many bytes have come. */
static void begin_move(struct move *m, uint64_t bytes)
{
	setenv("WEFT_CHUNK_BYTES", "65536", 1);
	begin(2, 0);
	move_open(m);
	move_post(m);
	assert_true(wf_world_run(has_bytes, &bytes, S));
}

/* Its owner has to stage it from now on, and has said that some is filled, which node 1 has not heard. */
static void change_to_staged(void)
{
	lose_nic();
	assert_true(wf_world_run(asks_over_tcp, NULL, 10 * S));
	wf_world_freeze(1, true);
	assert_true(wf_world_run(owner_has_filled, NULL, 10 * MS));
	wf_world_pass(2 * MS);
}

/* Node 1 goes on, and takes no offence at what it hears. */
static void go_on(void)
{
	uint64_t refused = wf_world_count(1).frames_refused;

	wf_world_freeze(1, false);
	wf_world_pass(50 * MS);
	assert_int_equal(wf_world_count(1).frames_refused, refused);
}

static bool has_state(void *arg)
{
	const struct wf_pull *pull = the_pull();

	return pull && pull->state == *(enum wf_pull_state *)arg;
}

/* The connection breaks under a RESUME, so that it and the next one come over the new one. */
static void a_resume_that_comes_twice_opens_the_device_twice(void **state)
{
	enum wf_pull_state asked = WF_PULL_ASKED;
	unsigned direct = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct move m = { .from = 0, .to = HOST, .bytes = 5 * MIB + 3 };
		CUstream stream;

		setenv("WEFT_CHUNK_BYTES", "65536", 1);
		begin(seed, 0);
		move_open(&m);
		m.stream = stream = held_stream(0, m.out);
		move_send(&m);
		wf_world_pass(50 * MS);
		gpu.fake_cuda_hold(false);
		wf_world_pass(50 * MS);
		move_receive(&m);
		assert_true(wf_world_run(has_state, &asked, S));
		wf_fake_break_domain(WF_WORLD_NIC);
		move_land(&m);
		assert_int_equal(m.flights[1].status, WEFT_OK);
		direct += !strcmp(m.paths[0].way, "direct");
		assert_int_equal(wf_world_count(1).frames_refused, 0);
		move_end(&m);
		assert_int_equal(gpu.cuStreamDestroy_v2(stream), 0);
		wf_world_end();
	}
	assert_int_not_equal(direct, 0);
}

static void a_link_outlives_a_strict_receive_whose_owner_has_to_stage(void **state)
{
	struct move m = { .from = 0, .to = HOST, .bytes = 8 * MIB,
			  .in_flags = WEFT_STRICT_NO_STAGING };
	struct wf_flight ping;

	(void)state;
	begin_move(&m, 2 * MIB);
	change_to_staged();
	go_on();
	wf_flight_ping(&ping, 0, 1, S);
	wf_flight_land(&ping, 1, 5 * S);
	assert_int_equal(ping.status, WEFT_OK);
	wf_flight_free(&ping, 1);
	move_land(&m);
	assert_int_equal(m.flights[1].status, WEFT_FAILED_PRECONDITION);
	move_end(&m);
	wf_world_end();
}

static void a_link_outlives_a_receive_that_is_cancelled_as_its_owner_stages(void **state)
{
	struct move m = { .from = 0, .to = HOST, .bytes = 8 * MIB };

	(void)state;
	begin_move(&m, 2 * MIB);
	change_to_staged();
	weft_cancel(m.flights[1].op);
	go_on();
	move_land(&m);
	move_end(&m);
	wf_world_end();
}

/* Node 0 stages what node 1's NIC writes to its device, until that is lost amid a piece. */
static void lose_the_readers_nic(int64_t body, uint64_t bytes)
{
	struct move m = { .from = 0, .to = 1, .bytes = body };

	setenv("WEFT_CHUNK_BYTES", "196608", 1); /* a piece is no multiple of it */
	setenv("WEFT_DEPTH", "1", 1);
	begin(2, 100);
	move_open(&m);
	move_send(&m);
	wf_world_pass(50 * MS);
	wf_nic_refused = 0;
	move_receive(&m);
	assert_true(wf_world_run(has_bytes, &bytes, S));
	assert_true(the_pull()->way == WF_PULL_WAY_STRAIGHT);
	assert_int_equal(the_pull()->body.way, WF_BODY_STAGED);
	lose_nic();
	move_land(&m);
	assert_int_equal(m.flights[1].status, WEFT_OK);
	move_end(&m);
	wf_world_end();
}

static void a_piece_read_again_is_still_in_the_owners_bounce_buffer(void **state)
{
	(void)state;
	lose_the_readers_nic(5 * MIB + 100, 1179648);
	lose_the_readers_nic(8 * MIB, 2359296);
}

static void bytes_that_a_lost_nic_has_brought_are_flushed(void **state)
{
	struct move m = { .from = HOST, .to = 1, .bytes = 8 * MIB };
	unsigned flushes;

	(void)state;
	begin_move(&m, 2 * MIB);
	assert_true(the_pull()->way == WF_PULL_WAY_STRAIGHT);
	flushes = gpu.fake_cuda_calls("cuFlushGPUDirectRDMAWrites");
	lose_nic();
	move_land(&m);
	assert_int_equal(m.flights[1].status, WEFT_OK);
	assert_string_equal(m.paths[1].way, "staged");
	assert_true(gpu.fake_cuda_calls("cuFlushGPUDirectRDMAWrites") > flushes);
	move_end(&m);
	wf_world_end();
}

/* All of node 1's pool is registered and unused after that. */
static void fill_the_pool_once(int64_t bytes)
{
	struct weft_recv_options in = { .size = sizeof(in) };
	struct weft_send_options out = { .size = sizeof(out) };
	uint8_t *at = calloc(1, (size_t)bytes);
	struct weft_tensor from = gpu_tensor(HOST, at, &bytes);
	struct wf_flight f[2];

	out.op = wf_flight_begin(&f[0], 10 * S);
	in.op = wf_flight_begin(&f[1], 10 * S);
	assert_int_equal(weft_recv(wf_world_node(1), NULL, 9, "p", 1, NULL, &in, &f[1].op), 0);
	assert_int_equal(weft_send(wf_world_peer(0, 1), 9, "p", 1, &from, &out, &f[0].op), 0);
	wf_flight_land(f, 2, 10 * S);
	assert_int_equal(f[1].status, WEFT_OK);
	wf_flight_free(f, 2);
	free(at);
}

static void a_bounce_buffer_that_is_needed_after_all_comes_from_idle_memory(void **state)
{
	struct move m = { .from = HOST, .to = 1, .bytes = 64 * MIB };

	(void)state;
	setenv("WEFT_POOL_BYTES", "16777216", 1);
	begin_move(&m, 2 * MIB);
	fill_the_pool_once(16 * MIB);
	assert_non_null(the_pull());
	assert_true(the_pull()->way == WF_PULL_WAY_STRAIGHT);
	lose_nic();
	move_land(&m);
	assert_int_equal(m.flights[1].status, WEFT_OK);
	move_end(&m);
	wf_world_end();
}

static void a_strict_operation_needs_no_pool(void **state)
{
	struct move m = { .from = HOST, .to = 1, .bytes = 3 * MIB,
			  .flags = WEFT_STRICT_NO_STAGING };

	(void)state;
	setenv("WEFT_POOL_BYTES", "1048576", 1);
	begin(2, 0);
	move(&m);
	assert_int_equal(m.flights[1].status, WEFT_OK);
	move_end(&m);
	wf_world_end();
}

/* How many registrations say -EAGAIN. */
static unsigned vetoes;

static int veto(const char *call)
{
	if (!vetoes || strcmp(call, "fi_mr_reg"))
		return 0;
	vetoes--;
	return -FI_EAGAIN;
}

static void memory_that_can_not_be_registered_now_ends_its_operation(void **state)
{
	struct move m = { .from = HOST, .to = HOST, .bytes = 8 * MIB };

	(void)state;
	/* The reader's. */
	begin(2, 0);
	move_open(&m);
	move_send(&m);
	wf_world_pass(50 * MS);
	wf_fake_knobs()->veto = veto;
	vetoes = 1;
	move_receive(&m);
	move_land(&m);
	assert_int_not_equal(m.flights[1].status, WEFT_OK);
	assert_true(wf_flight_ns(&m.flights[1]) < 10 * S);
	move_end(&m);
	wf_world_end();
	/* The owner's, of what it has to offer again. */
	begin_move(&m, 2 * MIB);
	wf_fake_knobs()->veto = veto;
	lose_nic();
	assert_true(wf_world_run(asks_over_tcp, NULL, 10 * S));
	vetoes = 1;
	move_land(&m);
	assert_int_not_equal(m.flights[0].status, WEFT_OK);
	assert_true(wf_flight_ns(&m.flights[0]) < 20 * S);
	move_end(&m);
	wf_world_end();
}

static void an_operation_that_waits_for_the_programs_stream_says_so_and_can_be_ended(void **state)
{
	char text[400];

	(void)state;
	for (unsigned way = 0; way < 4; way++) {
		bool receiver = way % 2;
		struct move m = { .from = receiver ? HOST : 0, .to = 1, .bytes = 2 * MIB };
		CUstream stream;

		begin(2, 0);
		move_open(&m);
		stream = held_stream(receiver, receiver ? m.in : m.out);
		*(receiver ? &m.in_stream : &m.stream) = stream;
		move_post(&m);
		wf_world_pass(100 * MS);
		if (receiver) {
			wf_pull_describe(the_pull(), text, sizeof(text));
			assert_non_null(strstr(text, "the program's stream has not come so far"));
		}
		if (way < 2)
			weft_cancel(m.flights[receiver].op);
		else
			wf_world_leave(receiver);
		/* What a receive was to get waits for another. */
		if (way == 1) {
			wf_flight_land(&m.flights[1], 1, 10 * S);
			assert_int_equal(m.flights[0].outcomes, 0);
			weft_cancel(m.flights[0].op);
		}
		wf_flight_land(m.flights, 2, 10 * S);
		gpu.fake_cuda_hold(false);
		move_end(&m);
		assert_int_equal(gpu.cuStreamDestroy_v2(stream), 0);
		wf_world_end();
	}
}

/* The rail breaks under a RESUME, so that the owner offers its handle twice. */
static void a_handle_that_can_not_be_imported_may_be_offered_twice(void **state)
{
	enum wf_pull_state asked = WF_PULL_ASKED;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		const struct wf_fake fake = { .seed = seed, .delay_min_ns = 2000,
					      .delay_max_ns = 60000 };
		struct move m = { .from = 0, .to = 1, .bytes = 5 * MIB + 3 };

		setenv("WEFT_CUDA", wf_cuda_driver_file(), 1);
		wf_world_open(WF_WORLD_SAME_HOST, 2, &fake);
		wf_world_connect(0, 1);
		gpu.fake_cuda_fail("cuIpcOpenMemHandle", 1, CU_NOT_SUPPORTED);
		move_open(&m);
		move_send(&m);
		wf_world_pass(50 * MS);
		move_receive(&m);
		assert_true(wf_world_run(has_state, &asked, S));
		wf_world_break_rail(0, 1, true);
		wf_world_pass(MS);
		wf_world_break_rail(0, 1, false);
		move_land(&m);
		assert_int_equal(m.flights[0].status, WEFT_OK);
		assert_int_equal(m.flights[1].status, WEFT_OK);
		assert_string_equal(m.paths[1].way, "staged");
		move_end(&m);
		wf_world_end();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_end_that_a_nic_reaches_says_direct),
		cmocka_unit_test(a_body_that_is_short_or_has_a_checksum_is_staged),
		cmocka_unit_test(a_nic_of_another_numa_node_is_for_who_is_strict),
		cmocka_unit_test(a_nic_that_reaches_nothing_is_asked_once),
		cmocka_unit_test(a_strict_operation_goes_by_the_nic_or_not_at_all),
		cmocka_unit_test(the_programs_stream_comes_first_at_either_end),
		cmocka_unit_test(a_receive_whose_bytes_are_not_seen_by_its_device_fails),
		cmocka_unit_test(a_resume_that_comes_twice_opens_the_device_twice),
		cmocka_unit_test(a_link_outlives_a_strict_receive_whose_owner_has_to_stage),
		cmocka_unit_test(a_link_outlives_a_receive_that_is_cancelled_as_its_owner_stages),
		cmocka_unit_test(a_piece_read_again_is_still_in_the_owners_bounce_buffer),
		cmocka_unit_test(bytes_that_a_lost_nic_has_brought_are_flushed),
		cmocka_unit_test(a_bounce_buffer_that_is_needed_after_all_comes_from_idle_memory),
		cmocka_unit_test(a_strict_operation_needs_no_pool),
		cmocka_unit_test(memory_that_can_not_be_registered_now_ends_its_operation),
		cmocka_unit_test(a_handle_that_can_not_be_imported_may_be_offered_twice),
		cmocka_unit_test(
			an_operation_that_waits_for_the_programs_stream_says_so_and_can_be_ended),
	};
	int status;

	setenv("FAKE_CUDA", "dma-buf", 1);
	status = gpu_begin(false);
	if (status)
		return status;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
