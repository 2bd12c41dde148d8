/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensors in the memory of devices, which the CPU can't touch (tests/cuda/fake), among nodes
 * whose fabric fails: what ends well is whole, and nothing is touched after its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory/cuda.h"
#include "tests/cuda/gpu.h"
#include "tests/sim/chance.h"
#include "tests/sim/nic.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define NODES 3
#define MOVES 16
#define BYTES_MAX (9 * MIB)
#define AFTER 0x5a /* what is written to a buffer that is free again */

/* A tensor's memory: of a device, or with GPU_HOST of the host. */
struct place {
	int device;
	uint8_t *at;
};

struct move {
	unsigned from, to;
	int64_t bytes;
	uint64_t seed;
	struct place out, in;
	bool freed[2]; /* of out and in: it was seen that they are free again */
	uint64_t came; /* bytes of the beginning that the receive has told of */
};

static struct move moves[MOVES];
static struct wf_flight flights[2 * MOVES]; /* of each the send, then the receive */
static uint8_t *scratch;
static bool last_is_dead; /* the last node was killed */
static bool only_direct;  /* what can be copied from device to device, and nothing else */
static bool lose_nic;     /* in the midst of it, for good */
static unsigned second_nic; /* 0: there is none; 1: it reaches no device; 2: it does */
static unsigned beginnings; /* told of by receives */
static unsigned went[2];  /* receives that went well: directly, and by staging */

static void place_open(struct place *p, int64_t bytes)
{
	/* GPU_HOST is one below the first device. */
	p->device = only_direct ? (int)wf_chance_below(2) : (int)wf_chance_below(3) - 1;
	p->at = gpu_take(p->device, (size_t)bytes);
}

static const uint8_t *place_read(const struct place *p, int64_t bytes)
{
	gpu_get(p->device, p->at, scratch, (size_t)bytes);
	return scratch;
}

static uint64_t some_bytes(void)
{
	static const uint64_t bounds[] = { 100, 64 * KIB, MIB, BYTES_MAX };

	if (only_direct)
		return MIB + wf_chance_below(BYTES_MAX - MIB);
	return 1 + wf_chance_below(bounds[wf_chance_below(WF_COUNT(bounds))]);
}

/* Bytes that a receive tells of are on its device, and it tells of none after its end. */
static void came(void *arg, const struct weft_tensor *tensor, uint64_t bytes)
{
	struct move *m = arg;

	assert_ptr_equal(tensor->data, m->in.at);
	assert_true(bytes > m->came && bytes <= (uint64_t)m->bytes && !m->freed[1]);
	assert_true(wf_world_is_filled(place_read(&m->in, (int64_t)bytes), bytes, m->seed));
	m->came = bytes;
	beginnings++;
}

static void begin(unsigned i, uint64_t timeout_ns, bool sums)
{
	struct weft_send_options out = { .size = sizeof(out), .stream = WEFT_NO_STREAM };
	struct weft_recv_options in = { .size = sizeof(in), .stream = WEFT_NO_STREAM };
	struct move *m = &moves[i];
	struct weft_tensor from, to;

	m->from = (unsigned)wf_chance_below(NODES);
	m->to = (m->from + 1 + (unsigned)wf_chance_below(NODES - 1)) % NODES;
	m->bytes = (int64_t)some_bytes();
	m->seed = i;
	m->freed[0] = m->freed[1] = false;
	m->came = 0;
	in.came = i % 4 ? NULL : came; /* to look costs time */
	in.came_arg = m;
	place_open(&m->out, m->bytes);
	place_open(&m->in, m->bytes);
	wf_world_fill(scratch, (size_t)m->bytes, m->seed);
	gpu_put(m->out.device, m->out.at, scratch, (size_t)m->bytes);
	from = gpu_tensor(m->out.device, m->out.at, &m->bytes);
	to = gpu_tensor(m->in.device, m->in.at, &m->bytes);
	out.op = wf_flight_begin(&flights[2 * i], timeout_ns);
	in.op = wf_flight_begin(&flights[2 * i + 1], timeout_ns);
	out.op.flags = sums ? WEFT_CHECKSUM : 0;
	assert_int_equal(weft_send(wf_world_peer(m->from, m->to), i, "k", 1, &from, &out,
				   &flights[2 * i].op), 0);
	assert_int_equal(weft_recv(wf_world_node(m->to), NULL, i, "k", 1, &to, &in,
				   &flights[2 * i + 1].op), 0);
}

/* Flight @i is of a node that lives. */
static bool lives(unsigned i)
{
	const struct move *m = &moves[i / 2];

	return !last_is_dead || (i % 2 ? m->to : m->from) != NODES - 1;
}

/* Whoever gets a buffer back writes to it: nobody else may, nor still read it. */
static void reuse_what_is_free(void)
{
	for (unsigned i = 0; i < 2 * MOVES; i++) {
		struct move *m = &moves[i / 2];
		const struct place *freed = i % 2 ? &m->in : &m->out;

		if (!flights[i].outcomes || m->freed[i % 2])
			continue;
		m->freed[i % 2] = true;
		if (i % 2 && flights[i].status == WEFT_OK)
			assert_true(wf_world_is_filled(place_read(&m->in, m->bytes),
						       (size_t)m->bytes, m->seed));
		memset(scratch, AFTER, (size_t)m->bytes);
		gpu_put(freed->device, freed->at, scratch, (size_t)m->bytes);
	}
}

static void count_way(const struct wf_flight *f)
{
	struct weft_path path = { .size = sizeof(path) };

	if (f->status != WEFT_OK || weft_op_path(f->op, &path))
		return;
	went[0] += !strcmp(path.way, "direct");
	went[1] += !strcmp(path.way, "staged");
}

static void assert_untouched(const struct place *p, int64_t bytes)
{
	if (!wf_world_all_are(place_read(p, bytes), (size_t)bytes, AFTER))
		fail_msg("some of %lld bytes were written after the end", (long long)bytes);
}

static bool all_landed(void *arg)
{
	(void)arg;
	reuse_what_is_free();
	for (unsigned i = 0; i < 2 * MOVES; i++)
		if (!flights[i].outcomes && lives(i))
			return false;
	return true;
}

static bool some_landed(void *arg)
{
	unsigned landed = 0;

	(void)all_landed(arg);
	for (unsigned i = 0; i < 2 * MOVES; i++)
		landed += flights[i].outcomes > 0;
	return landed >= 8;
}

static void open_world(enum wf_world_shape shape, const struct wf_fake *fake)
{
	wf_world_open(shape, 0, fake);
	if (second_nic)
		wf_fake_offer(FI_EP_MSG, "verbs", "mlx5_1", "127.0.0.2");
	if (second_nic > 1)
		wf_fake_offer_device();
	for (unsigned i = 0; i < NODES; i++)
		wf_world_add();
}

/* Those that can fail, as they like; else all must end well. */
static void run(enum wf_world_shape shape, uint64_t seed, const struct wf_fake *fake, bool harsh)
{
	last_is_dead = false;
	setenv("WEFT_CUDA", wf_cuda_driver_file(), 1);
	wf_chance_seed(seed);
	if (lose_nic)
		setenv("WEFT_CHUNK_BYTES", "65536", 1);
	if (wf_chance_in_100(30))
		setenv("WEFT_POOL_BYTES", "25165824", 1);
	wf_world_lose_soon();
	open_world(shape, fake);
	gpu.fake_cuda_delay((unsigned)wf_chance_below(harsh ? 1000 : 60));
	for (unsigned i = 0; i < MOVES; i++)
		begin(i, harsh && wf_chance_in_100(20) ? 1 + wf_chance_below(20 * MS) : 100 * S,
		      !only_direct && wf_chance_in_100(30));
	for (unsigned i = 0; harsh && i < 4; i++) {
		(void)wf_world_run(all_landed, NULL, wf_chance_below(5 * MS));
		weft_cancel(flights[wf_chance_below(2 * MOVES)].op);
		if (wf_chance_in_100(30))
			wf_world_break_rail(0, 1, i % 2 == 0);
	}
	wf_world_break_rail(0, 1, false);
	if (lose_nic) {
		assert_true(wf_world_run(some_landed, NULL, 100 * S));
		wf_fake_break_domain(WF_WORLD_NIC);
		wf_fake_cut_domain(WF_WORLD_NIC);
	}
	last_is_dead = harsh && wf_chance_in_100(30);
	if (last_is_dead)
		wf_world_kill(NODES - 1);
	assert_true(wf_world_run(all_landed, NULL, 120 * S));
	for (unsigned i = 0; i < 2 * MOVES; i++)
		if (!harsh && flights[i].status != WEFT_OK)
			fail_msg("%s %u of seed %llu: %s", i % 2 ? "receive" : "send", i / 2,
				 (unsigned long long)seed, weft_op_message(flights[i].op));
	wf_world_pass(5 * S);
	for (unsigned i = 0; i < MOVES; i++)
		count_way(&flights[2 * i + 1]);
	for (unsigned i = 0; i < 2 * MOVES; i++)
		if (lives(i))
			assert_untouched(i % 2 ? &moves[i / 2].in : &moves[i / 2].out,
					 moves[i / 2].bytes);
	wf_flight_free(flights, 2 * MOVES);
	if (harsh)
		assert_int_equal(wf_world_close(), 0);
	else
		wf_world_end();
	/* What the dead have under way is theirs until they are closed. */
	for (unsigned i = 0; i < MOVES; i++) {
		gpu_give(moves[i].out.device, moves[i].out.at);
		gpu_give(moves[i].in.device, moves[i].in.at);
	}
}

static const enum wf_world_shape shapes[] = {
	WF_WORLD_CONNECTED, WF_WORLD_SHARED, WF_WORLD_SAME_HOST, WF_WORLD_LANES,
};

static void all_arrives_on_a_fabric_that_is_slow_and_refuses(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		const struct wf_fake fake = {
			.seed = seed, .delay_min_ns = 2000, .delay_max_ns = 60000, .eagain = 100,
			.slow = 5, .slow_ns = 2 * MS,
		};

		run(shapes[seed % WF_COUNT(shapes)], seed, &fake, false);
	}
	assert_true(beginnings > 30);
	/* Those of one host have copied some by themselves. */
	assert_true(gpu.fake_cuda_calls("cuMemcpyDtoDAsync") > 0);
}

static void nothing_is_touched_after_its_end_whatever_fails(void **state)
{
	(void)state;
	for (uint64_t seed = 101; seed <= 124; seed++) {
		const struct wf_fake fake = {
			.seed = seed, .delay_min_ns = 2000, .delay_max_ns = 60000, .eagain = 20,
			.fail = 3, .stick = seed % 3 ? 0 : 2, .lose = 2, .refuse = 5,
		};

		run(shapes[seed % WF_COUNT(shapes)], seed, &fake, true);
	}
}

static void memory_copied_directly_is_not_touched_after_the_end_either(void **state)
{
	(void)state;
	only_direct = true;
	for (uint64_t seed = 201; seed <= 206; seed++) {
		const struct wf_fake fake = {
			.seed = seed, .delay_min_ns = 2000, .delay_max_ns = 60000, .eagain = 20,
		};

		run(WF_WORLD_SAME_HOST, seed, &fake, true);
	}
	only_direct = false;
}

static void a_nic_that_reaches_devices_moves_what_is_there(void **state)
{
	(void)state;
	went[0] = went[1] = wf_nic_refused = 0;
	only_direct = true;
	for (uint64_t seed = 301; seed <= 304; seed++) {
		const struct wf_fake fake = wf_nic_fake(seed);

		run(WF_WORLD_REACHING, seed, &fake, false);
	}
	only_direct = false;
	assert_int_equal(went[1], 0);
	assert_int_equal(went[0], 4 * MOVES);
}

static void a_body_that_a_nic_does_not_reach_is_staged(void **state)
{
	(void)state;
	went[0] = went[1] = 0;
	wf_nic_refused = 30;
	for (uint64_t seed = 311; seed <= 316; seed++) {
		const struct wf_fake fake = wf_nic_fake(seed);

		run(WF_WORLD_REACHING, seed, &fake, false);
	}
	wf_nic_refused = 0;
	assert_true(went[0] > 0);
	assert_true(went[1] > 0);
}

/* A NIC besides, which may reach devices, too. */
static void run_with_two_nics(uint64_t seed, bool reaches, const struct wf_fake *fake)
{
	second_nic = reaches ? 2 : 1;
	run(WF_WORLD_REACHING, seed, fake, false);
	second_nic = 0;
}

static void a_body_that_a_lost_nic_has_begun_is_ended_by_staging(void **state)
{
	(void)state;
	went[0] = went[1] = 0;
	lose_nic = true;
	for (uint64_t seed = 2001; seed <= 2008; seed++) {
		const struct wf_fake fake = wf_nic_fake(seed);

		wf_nic_refused = seed % 4 == 3 ? 20 : 0;
		only_direct = seed % 3 == 0;
		run(WF_WORLD_REACHING, seed, &fake, false);
		run_with_two_nics(seed + 2000, seed % 2, &fake);
	}
	wf_nic_refused = 0;
	only_direct = lose_nic = false;
	assert_true(went[0] > 0);
	assert_true(went[1] > 0);
}

static void memory_that_a_nic_reaches_is_not_touched_after_the_end_either(void **state)
{
	(void)state;
	wf_nic_refused = 10;
	for (uint64_t seed = 331; seed <= 338; seed++) {
		struct wf_fake fake = wf_nic_fake(seed);

		fake.fail = 3;
		fake.lose = 2;
		fake.refuse = 5;
		fake.stick = seed % 3 ? 0 : 2;
		run(WF_WORLD_REACHING, seed, &fake, true);
	}
	wf_nic_refused = 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_arrives_on_a_fabric_that_is_slow_and_refuses),
		cmocka_unit_test(nothing_is_touched_after_its_end_whatever_fails),
		cmocka_unit_test(memory_copied_directly_is_not_touched_after_the_end_either),
		cmocka_unit_test(a_nic_that_reaches_devices_moves_what_is_there),
		cmocka_unit_test(a_body_that_a_nic_does_not_reach_is_staged),
		cmocka_unit_test(a_body_that_a_lost_nic_has_begun_is_ended_by_staging),
		cmocka_unit_test(memory_that_a_nic_reaches_is_not_touched_after_the_end_either),
	};
	int status;

	/* Nodes of this process stand for processes. */
	setenv("FAKE_CUDA", "own-ipc,dma-buf", 1);
	status = gpu_begin(false);
	if (status)
		return status;
	scratch = malloc(BYTES_MAX + 1);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
