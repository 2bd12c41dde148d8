/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows over the memory of devices, which the CPU can't touch (tests/cuda/fake), and gets and
 * puts whose memory here is a device's: which bytes move, which way, and what is quiet when.
 */
#include <errno.h>
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

#define US WF_NS_PER_US
#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define HOST GPU_HOST
#define OWNER 0
#define PEER 1
#define WINDOW_BYTES (5 * MIB + 5)
#define BLOCKS_MAX 700 /* so many that their list takes several records */
#define ACCESSES 6
#define CANARY 0xee
#define AFTER 0x5a /* what is written to memory that is free again */

/* A get or put, with memory of its own. */
struct access {
	struct wf_flight flight;
	bool puts;
	int device; /* of its memory; HOST: none */
	uint8_t *local;
	struct weft_block blocks[BLOCKS_MAX];
	unsigned count;
	bool freed; /* it was seen that the memory here is free again */
};

static struct access accesses[ACCESSES];
static struct weft_window *window;
static struct weft_remote *remote;
static int window_device;
static uint8_t *memory; /* the window's */
static uint8_t *content, *wanted, *scratch;
static uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
static size_t descriptor_bytes;

static void *host_bytes(void)
{
	void *bytes = malloc(WINDOW_BYTES);

	assert_non_null(bytes);
	return bytes;
}

static void open_window(void)
{
	assert_int_equal(weft_window_open(wf_world_node(OWNER), memory, WINDOW_BYTES,
					  WEFT_WINDOW_READ | WEFT_WINDOW_WRITE, &window), 0);
	descriptor_bytes = sizeof(descriptor);
	assert_int_equal(weft_window_describe(window, descriptor, &descriptor_bytes), 0);
	assert_int_equal(weft_window_import(wf_world_peer(PEER, OWNER), descriptor, descriptor_bytes,
					    &remote), 0);
}

static void open_world(enum wf_world_shape shape, const struct wf_fake *fake, int device)
{
	wf_chance_seed(fake->seed);
	assert_int_equal(setenv("WEFT_CUDA", wf_cuda_driver_file(), 1), 0);
	wf_world_lose_soon();
	wf_world_open(shape, 2, fake);
	window_device = device;
	memory = gpu_take(device, WINDOW_BYTES);
	wf_world_fill(content, WINDOW_BYTES, 1);
	gpu_put(device, memory, content, WINDOW_BYTES);
	open_window();
}

static void close_window(void)
{
	assert_int_equal(weft_window_close(window), 0);
	window = NULL;
}

static void close_world(void)
{
	weft_remote_close(remote);
	if (window)
		close_window();
	wf_world_end();
	gpu_give(window_device, memory);
}

static void take(struct access *a, bool puts, int device, uint64_t seed)
{
	a->puts = puts;
	a->device = device;
	a->freed = false;
	a->local = gpu_take(device, WINDOW_BYTES);
	if (puts)
		wf_world_fill(scratch, WINDOW_BYTES, seed);
	else
		memset(scratch, CANARY, WINDOW_BYTES);
	gpu_put(device, a->local, scratch, WINDOW_BYTES);
}

static void give(struct access *all, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		wf_flight_free(&all[i].flight, 1);
		gpu_give(all[i].device, all[i].local);
	}
}

static unsigned skew = 3; /* bytes before the lowest block here */

/* @count blocks of @bytes in all, from @from on, whose order and gaps differ at both ends. */
static void make_blocks(struct access *a, uint64_t from, uint64_t bytes, unsigned count)
{
	uint64_t each = bytes / count, step = count == 1 ? each : each - each / 8;

	a->count = count;
	for (unsigned i = 0; i < count; i++)
		a->blocks[i] = (struct weft_block){
			.local = a->local + skew + (count - 1 - i) * each,
			.remote = from + i * each,
			.bytes = step - i % 5,
		};
}

static void begin(struct access *a, uint64_t timeout_ns, unsigned flags, void *stream)
{
	struct weft_access_options options = { .size = sizeof(options), .stream = stream };
	int err;

	if (a->device != HOST)
		options.device = (struct weft_device){ WEFT_CUDA, a->device };
	options.op = wf_flight_begin(&a->flight, timeout_ns);
	options.op.flags = flags;
	err = a->puts ? weft_put(remote, a->blocks, a->count, &options, &a->flight.op)
		      : weft_get(remote, a->blocks, a->count, &options, &a->flight.op);
	assert_int_equal(err, 0);
}

/* Copy the blocks of @a between @window_bytes and @local_bytes, as @a itself should have done. */
static void copy_blocks(const struct access *a, uint8_t *window_bytes, uint8_t *local_bytes)
{
	for (unsigned i = 0; i < a->count; i++) {
		const struct weft_block *b = &a->blocks[i];
		uint8_t *here = local_bytes + ((uint8_t *)b->local - a->local);

		if (a->puts)
			memcpy(window_bytes + b->remote, here, b->bytes);
		else
			memcpy(here, window_bytes + b->remote, b->bytes);
	}
}

/* Assert that @a, which has ended well, has moved its blocks and no other bytes; updates content. */
static void assert_moved(const struct access *a, uint64_t seed)
{
	if (a->puts)
		wf_world_fill(wanted, WINDOW_BYTES, seed);
	else
		memset(wanted, CANARY, WINDOW_BYTES);
	copy_blocks(a, content, wanted);
	gpu_get(a->device, a->local, scratch, WINDOW_BYTES);
	assert_same_content(scratch, wanted, WINDOW_BYTES);
	gpu_get(window_device, memory, scratch, WINDOW_BYTES);
	assert_same_content(scratch, content, WINDOW_BYTES);
}

static void assert_well(const struct access *a)
{
	if (a->flight.status != WEFT_OK)
		fail_msg("a %s: %s", a->puts ? "put" : "get", weft_op_message(a->flight.op));
}

static void land(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		wf_flight_land(&accesses[i].flight, 1, 100 * S);
}

/* Move blocks between two memories, in both directions, by lists of each length. */
static void move_all(int here, unsigned flags)
{
	static const unsigned counts[] = { 1, 5, BLOCKS_MAX };

	for (unsigned i = 0; i < 2 * WF_COUNT(counts); i++) {
		struct access *a = &accesses[0];

		take(a, i % 2, here, 100 + i);
		make_blocks(a, 1 + i * 1000, WINDOW_BYTES - 10000, counts[i / 2]);
		begin(a, 100 * S, flags, WEFT_NO_STREAM);
		land(1);
		assert_well(a);
		assert_moved(a, 100 + i);
		give(a, 1);
	}
	assert_int_equal(weft_window_puts(window), WF_COUNT(counts));
}

/* As move_all() does, from and to memory that is registered where it is the host's: lists go whole. */
static void move_registered(int here, unsigned flags)
{
	struct weft_region *region = NULL;
	struct access *a = &accesses[0];

	take(a, true, here, 99);
	if (here == HOST)
		assert_int_equal(weft_register(wf_world_node(PEER), a->local, WINDOW_BYTES, &region),
				 0);
	make_blocks(a, 7, WINDOW_BYTES - 10000, BLOCKS_MAX);
	begin(a, 100 * S, flags, WEFT_NO_STREAM);
	land(1);
	assert_well(a);
	assert_moved(a, 99);
	assert_int_equal(weft_unregister(region), 0);
	give(a, 1);
}

static const enum wf_world_shape shapes[] = {
	WF_WORLD_CONNECTED, WF_WORLD_SHARED, WF_WORLD_SAME_HOST, WF_WORLD_LANES, WF_WORLD_REACHING,
};

static struct wf_fake fake_of(enum wf_world_shape shape, uint64_t seed)
{
	struct wf_fake fake = wf_nic_fake(seed);

	if (shape == WF_WORLD_REACHING)
		return fake;
	return (struct wf_fake){ .seed = seed, .delay_min_ns = 2000, .delay_max_ns = 60000 };
}

static void gets_and_puts_move_their_blocks_between_memories_of_all_kinds(void **state)
{
	static const int memories[] = { HOST, 0, 1 };

	(void)state;
	for (unsigned i = 0; i < 2 * WF_COUNT(shapes) * WF_COUNT(memories); i++) {
		enum wf_world_shape shape = shapes[i / 2 % WF_COUNT(shapes)];
		int there = memories[i / 2 / WF_COUNT(shapes)];
		const struct wf_fake fake = fake_of(shape, i + 1);

		open_world(shape, &fake, there);
		move_all(i % 2 ? 0 : HOST, shape == WF_WORLD_LANES ? WEFT_CHECKSUM : 0);
		move_registered(i % 2 ? 0 : HOST, 0);
		close_world();
	}
}

/* Ends in time */

/* An operation of one block of 3 MiB between memory here and the window. */
static void begin_one(bool puts, int here, void *stream)
{
	struct access *a = &accesses[0];

	take(a, puts, here, 5);
	make_blocks(a, 11, 3 * MIB, 1);
	begin(a, 100 * S, 0, stream);
}

static void open_plain(enum wf_world_shape shape, int device)
{
	const struct wf_fake fake = fake_of(shape, 3);

	open_world(shape, &fake, device);
	wf_world_connect(PEER, OWNER);
}

static void an_operation_ends_when_its_bytes_are_on_the_device(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * 4; i++) {
		bool puts = i % 2;

		open_plain(shapes[i / 2], puts ? 0 : HOST);
		gpu.fake_cuda_hold(true);
		begin_one(puts, puts ? HOST : 0, WEFT_NO_STREAM);
		wf_world_pass(200 * MS);
		assert_int_equal(accesses[0].flight.outcomes, 0);
		assert_int_equal(weft_window_puts(window), 0);
		gpu.fake_cuda_hold(false);
		land(1);
		assert_well(&accesses[0]);
		assert_moved(&accesses[0], 5);
		wf_world_pass(MS);
		assert_int_equal(weft_window_puts(window), puts);
		give(accesses, 1);
		close_world();
	}
}

static uint64_t held_until_ns; /* virtual time at which the device goes on */

static void go_on_in_time(void)
{
	if (wf_clock_now() >= held_until_ns)
		gpu.fake_cuda_hold(false);
}

static void assert_untouched(int device, const uint8_t *at)
{
	gpu_get(device, at, scratch, WINDOW_BYTES);
	if (!wf_world_all_are(scratch, WINDOW_BYTES, AFTER))
		fail_msg("a byte was written after the end");
}

static void reuse(int device, uint8_t *at)
{
	memset(scratch, AFTER, WINDOW_BYTES);
	gpu_put(device, at, scratch, WINDOW_BYTES);
}

/* The device stands still while the window is closed, @at_ns after an operation has begun. */
static void close_window_in_the_middle(enum wf_world_shape shape, bool puts, int here, uint64_t at_ns)
{
	uint64_t begin_ns;

	open_plain(shape, 0);
	gpu.fake_cuda_hold(true);
	begin_one(puts, here, WEFT_NO_STREAM);
	wf_world_pass(at_ns);
	begin_ns = wf_clock_now();
	held_until_ns = begin_ns + 50 * MS;
	wf_world_on_sleep(go_on_in_time);
	close_window();
	/*
	 * What the device was about to do with the window was waited for; a put from a device has
	 * not come so far.
	 */
	if (at_ns >= 10 * MS && (!puts || here == HOST))
		assert_true(wf_clock_now() >= held_until_ns);
	wf_world_on_sleep(NULL);
	gpu.fake_cuda_hold(false);
	reuse(window_device, memory);
	land(1);
	assert_int_equal(accesses[0].flight.status, WEFT_NOT_FOUND);
	reuse(here, accesses[0].local);
	wf_world_pass(3 * S);
	assert_untouched(window_device, memory);
	assert_untouched(here, accesses[0].local);
	give(accesses, 1);
	close_world();
}

static void a_window_is_quiet_when_it_has_closed_copies_included(void **state)
{
	static const uint64_t at_ns[] = { 50 * US, 300 * US, 20 * MS };

	(void)state;
	for (unsigned i = 0; i < 4 * WF_COUNT(at_ns); i++)
		for (unsigned k = 0; k < 4; k++)
			close_window_in_the_middle(shapes[k], i % 2, i / 2 % 2 ? 1 : HOST,
						   at_ns[i / 4]);
}

/* Begin work on a stream of device 0 that writes the byte at @at once the driver is let go. */
static CUstream held_stream(uint8_t *at)
{
	CUstream stream;

	assert_int_equal(wf_cuda_enter(0, NULL), 0);
	assert_int_equal(gpu.cuStreamCreate(&stream, 1), 0);
	gpu.fake_cuda_hold(true);
	assert_int_equal(gpu.cuMemsetD8Async((CUdeviceptr)at, 99, 1, stream), 0);
	wf_cuda_leave();
	return stream;
}

static void the_programs_stream_comes_first(void **state)
{
	(void)state;
	for (unsigned puts = 0; puts < 2; puts++) {
		struct access *a = &accesses[0];
		CUstream stream;

		open_plain(WF_WORLD_CONNECTED, HOST);
		take(a, puts, 0, 5);
		make_blocks(a, 11, MIB, 3);
		stream = held_stream(a->blocks[1].local);
		begin(a, 100 * S, 0, stream);
		wf_world_pass(100 * MS);
		assert_int_equal(a->flight.outcomes, 0);
		gpu.fake_cuda_hold(false);
		land(1);
		assert_well(a);
		/* A put has the byte that the stream has written; a get writes over it. */
		gpu_get(0, a->blocks[1].local, scratch, 1);
		assert_int_equal(memory[a->blocks[1].remote], scratch[0]);
		assert_int_equal(scratch[0] == 99, puts);
		assert_int_equal(gpu.cuStreamDestroy_v2(stream), 0);
		give(accesses, 1);
		close_world();
	}
}

/* Ways */

static struct weft_path path_of(const struct access *a)
{
	struct weft_path path = { .size = sizeof(path) };

	assert_int_equal(weft_op_path(a->flight.op, &path), 0);
	return path;
}

static unsigned copies(void)
{
	return gpu.fake_cuda_calls("cuMemcpyHtoDAsync") + gpu.fake_cuda_calls("cuMemcpyDtoHAsync");
}

static void a_rail_that_reaches_the_device_moves_what_is_there(void **state)
{
	(void)state;
	skew = 0; /* the NIC of the simulation takes whole pages */
	for (unsigned i = 0; i < 2 * 2 * 2; i++) {
		struct access *a = &accesses[0];
		unsigned before;

		open_plain(WF_WORLD_REACHING, i % 2 ? 0 : HOST);
		take(a, i / 2 % 2, i / 4 ? 1 : HOST, 5);
		make_blocks(a, 0, 4 * MIB, i / 2 % 2 ? 1 : 300);
		before = copies();
		begin(a, 100 * S, 0, WEFT_NO_STREAM);
		land(1);
		assert_well(a);
		assert_int_equal(copies(), before);
		assert_string_equal(path_of(a).way, a->device == HOST ? "pull" : "direct");
		assert_int_equal(path_of(a).copies, 0);
		assert_moved(a, 5);
		give(accesses, 1);
		close_world();
	}
	skew = 3;
}

static void a_window_that_a_lost_nic_has_lent_is_read_in_pieces(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * 8; i++) {
		struct access *a = &accesses[0];

		setenv("WEFT_CHUNK_BYTES", "65536", 1);
		open_plain(WF_WORLD_REACHING, 0);
		for (unsigned k = 0; k < 2; k++) {
			take(&a[k], false, i % 2 ? 1 : HOST, 5);
			make_blocks(&a[k], 11 + k, 4 * MIB, 40);
			begin(&a[k], 100 * S, 0, WEFT_NO_STREAM);
		}
		wf_world_pass(i / 2 * 150 * US);
		wf_fake_break_domain(WF_WORLD_NIC);
		wf_fake_cut_domain(WF_WORLD_NIC);
		land(2);
		for (unsigned k = 0; k < 2; k++) {
			assert_well(&a[k]);
			assert_moved(&a[k], 5);
		}
		give(accesses, 2);
		close_world();
	}
}

static void strict_operations_are_refused_what_would_be_staged(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		open_plain(WF_WORLD_CONNECTED, i < 2 ? 0 : HOST);
		take(&accesses[0], i % 2, i < 2 ? HOST : 0, 5);
		make_blocks(&accesses[0], 11, MIB, 2);
		begin(&accesses[0], 100 * S, WEFT_STRICT_NO_STAGING, WEFT_NO_STREAM);
		land(1);
		/* The owner may do with its own memory what it likes. */
		if (i == 1)
			assert_well(&accesses[0]);
		else
			assert_int_equal(accesses[0].flight.status, WEFT_FAILED_PRECONDITION);
		give(accesses, 1);
		close_world();
	}
}

/* Refusals */

static void assert_refused(const struct weft_block *blocks, size_t count, struct weft_device device,
			   int err, const char *sentence)
{
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	struct weft_op *op;

	options.device = device;
	assert_int_equal(weft_put(remote, blocks, count, &options, &op), err);
	assert_non_null(strstr(weft_error(), sentence));
	assert_int_equal(weft_get(remote, blocks, count, &options, &op), err);
	assert_non_null(strstr(weft_error(), sentence));
}

static void memory_that_is_not_where_it_is_said_to_be_is_refused_with_a_sentence(void **state)
{
	uint8_t *device = gpu_take(1, 4096), *host = gpu_take(HOST, 4096);
	const struct weft_block good = { device, 0, 100 }, lies = { host, 200, 100 },
				 beyond = { device + 4000, 400, 4097 };
	const struct weft_block mixed[] = { good, lies }, late[] = { good, beyond };
	struct weft_window *other;

	(void)state;
	open_plain(WF_WORLD_CONNECTED, HOST);
	assert_refused(&lies, 1, (struct weft_device){ WEFT_CUDA, 1 }, -EINVAL, "is memory of the host");
	assert_refused(mixed, 2, (struct weft_device){ WEFT_CUDA, 1 }, -EINVAL, "is memory of the host");
	assert_refused(late, 2, (struct weft_device){ WEFT_CUDA, 1 }, -EINVAL, "beyond their allocation");
	assert_refused(&good, 1, (struct weft_device){ WEFT_CUDA, 0 }, -EINVAL, "of CUDA device 1, not 0");
	assert_refused(&good, 1, (struct weft_device){ WEFT_CUDA, -1 }, -EINVAL, "no CUDA device -1");
	assert_refused(&good, 1, (struct weft_device){ 77, 0 }, -ENOTSUP, "type 77");
	assert_int_equal(weft_window_open(wf_world_node(OWNER), device, 1 << 30, WEFT_WINDOW_READ,
					  &other), -EINVAL);
	assert_non_null(strstr(weft_error(), "beyond their allocation on CUDA device 1"));
	close_world();
	gpu_give(1, device);
	gpu_give(HOST, host);
}

static void memory_of_a_device_is_no_landing_and_is_not_registered(void **state)
{
	struct weft_node *node;
	struct weft_landing *landing;
	struct weft_region *region;

	(void)state;
	open_plain(WF_WORLD_CONNECTED, 1);
	node = wf_world_node(OWNER);
	assert_int_equal(weft_landing_open(node, memory, 4096, 4, &landing), -ENOTSUP);
	assert_non_null(strstr(weft_error(), "a landing in memory of CUDA device 1"));
	assert_int_equal(weft_register(node, memory, 4096, &region), -ENOTSUP);
	assert_non_null(strstr(weft_error(), "a region in memory of CUDA device 1"));
	close_world();
}

static void without_cuda_memory_of_a_device_is_refused_with_a_sentence(void **state)
{
	const struct wf_fake fake = fake_of(WF_WORLD_CONNECTED, 3);
	static uint8_t here[100];
	const struct weft_block block = { here, 0, sizeof(here) };

	(void)state;
	open_world(WF_WORLD_CONNECTED, &fake, HOST);
	assert_int_equal(setenv("WEFT_CUDA", "no", 1), 0);
	assert_int_equal(wf_world_add(), 2);
	weft_remote_close(remote);
	assert_int_equal(weft_window_import(wf_world_peer(2, OWNER), descriptor, descriptor_bytes,
					    &remote), 0);
	assert_refused(&block, 1, (struct weft_device){ WEFT_CUDA, 0 }, -ENODEV, "WEFT_CUDA=no");
	close_world();
}

/* Faults */

static bool some_left(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!accesses[i].flight.outcomes)
			return true;
	return false;
}

/* Check what has ended well, and write to what is free again. */
static void look(void)
{
	for (unsigned i = 0; i < ACCESSES; i++) {
		struct access *a = &accesses[i];
		const struct weft_block *b = a->blocks;

		if (!a->flight.outcomes || a->freed)
			continue;
		a->freed = true;
		for (unsigned k = 0; a->flight.status == WEFT_OK && k < a->count; k++) {
			gpu_get(a->device, b[k].local, scratch, b[k].bytes);
			if (a->puts && window)
				gpu_get(window_device, memory + b[k].remote, wanted, b[k].bytes);
			else if (!a->puts)
				memcpy(wanted, content + b[k].remote, b[k].bytes);
			else
				continue;
			assert_same_content(scratch, wanted, b[k].bytes);
		}
		reuse(a->device, a->local);
	}
}

static bool all_over(void *arg)
{
	(void)arg;
	look();
	return !some_left(ACCESSES);
}

static void begin_some(bool harsh)
{
	for (unsigned i = 0; i < ACCESSES; i++) {
		static const unsigned counts[] = { 1, 7, 90 };
		struct access *a = &accesses[i];

		take(a, wf_chance_below(2), (int)wf_chance_below(3) - 1, 50 + i);
		make_blocks(a, i * (WINDOW_BYTES / ACCESSES),
			    1000 + wf_chance_below(WINDOW_BYTES / ACCESSES - 1000),
			    counts[wf_chance_below(3)]);
		begin(a, harsh && wf_chance_in_100(20) ? 1 + wf_chance_below(20 * MS) : 100 * S,
		      wf_chance_in_100(25) ? WEFT_CHECKSUM : 0, WEFT_NO_STREAM);
	}
}

static void run(enum wf_world_shape shape, const struct wf_fake *fake, bool harsh)
{
	bool dies = harsh && fake->seed % 3 == 0;

	wf_chance_seed(fake->seed);
	if (wf_chance_in_100(30))
		setenv("WEFT_POOL_BYTES", "16777216", 1);
	open_world(shape, fake, (int)wf_chance_below(3) - 1);
	gpu.fake_cuda_delay((unsigned)wf_chance_below(harsh ? 1000 : 60));
	begin_some(harsh);
	for (unsigned i = 0; harsh && i < 4; i++) {
		(void)wf_world_run(all_over, NULL, wf_chance_below(4 * MS));
		weft_cancel(accesses[wf_chance_below(ACCESSES)].flight.op);
		if (wf_chance_in_100(40))
			wf_world_break_rail(PEER, OWNER, i % 2 == 0);
	}
	wf_world_break_rail(PEER, OWNER, false);
	if (harsh && !dies && wf_chance_in_100(50)) {
		close_window();
		reuse(window_device, memory);
	}
	if (dies)
		wf_world_kill(OWNER);
	assert_true(wf_world_run(all_over, NULL, 120 * S));
	for (unsigned i = 0; !harsh && i < ACCESSES; i++)
		assert_well(&accesses[i]);
	wf_world_pass(5 * S);
	for (unsigned i = 0; i < ACCESSES; i++)
		assert_untouched(accesses[i].device, accesses[i].local);
	if (!window)
		assert_untouched(window_device, memory);
	for (unsigned i = 0; i < ACCESSES; i++)
		wf_flight_free(&accesses[i].flight, 1);
	weft_remote_close(remote);
	if (window && !dies)
		close_window();
	assert_int_equal(wf_world_close(), 0);
	for (unsigned i = 0; i < ACCESSES; i++)
		gpu_give(accesses[i].device, accesses[i].local);
	gpu_give(window_device, memory);
	gpu.fake_cuda_delay(2);
}

static void all_ends_well_on_a_fabric_that_is_slow_and_refuses(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		const struct wf_fake fake = {
			.seed = seed, .delay_min_ns = 2000, .delay_max_ns = 60000, .eagain = 100,
			.slow = 5, .slow_ns = 2 * MS,
		};

		run(shapes[seed % 4], &fake, false);
	}
}

static void nothing_is_touched_after_its_end_whatever_fails(void **state)
{
	(void)state;
	for (uint64_t seed = 101; seed <= 130; seed++) {
		const struct wf_fake fake = {
			.seed = seed, .delay_min_ns = 2000, .delay_max_ns = 60000, .eagain = 20,
			.fail = 3, .stick = seed % 3 ? 0 : 2, .lose = 2, .refuse = 5,
		};

		run(shapes[seed % 4], &fake, true);
	}
}

static void memory_that_a_nic_reaches_is_not_touched_after_the_end_either(void **state)
{
	(void)state;
	wf_nic_refused = 10;
	for (uint64_t seed = 201; seed <= 210; seed++) {
		struct wf_fake fake = wf_nic_fake(seed);

		fake.fail = 3;
		fake.lose = 2;
		fake.refuse = 5;
		run(WF_WORLD_REACHING, &fake, true);
	}
	wf_nic_refused = 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gets_and_puts_move_their_blocks_between_memories_of_all_kinds),
		cmocka_unit_test(an_operation_ends_when_its_bytes_are_on_the_device),
		cmocka_unit_test(a_window_is_quiet_when_it_has_closed_copies_included),
		cmocka_unit_test(the_programs_stream_comes_first),
		cmocka_unit_test(a_rail_that_reaches_the_device_moves_what_is_there),
		cmocka_unit_test(a_window_that_a_lost_nic_has_lent_is_read_in_pieces),
		cmocka_unit_test(strict_operations_are_refused_what_would_be_staged),
		cmocka_unit_test(memory_that_is_not_where_it_is_said_to_be_is_refused_with_a_sentence),
		cmocka_unit_test(memory_of_a_device_is_no_landing_and_is_not_registered),
		cmocka_unit_test(without_cuda_memory_of_a_device_is_refused_with_a_sentence),
		cmocka_unit_test(all_ends_well_on_a_fabric_that_is_slow_and_refuses),
		cmocka_unit_test(nothing_is_touched_after_its_end_whatever_fails),
		cmocka_unit_test(memory_that_a_nic_reaches_is_not_touched_after_the_end_either),
	};
	int status;

	/* Nodes of this process stand for processes. */
	setenv("FAKE_CUDA", "own-ipc,dma-buf", 1);
	status = gpu_begin(false);
	if (status)
		return status;
	content = host_bytes();
	wanted = host_bytes();
	scratch = host_bytes();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
