/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensors in the memory of CUDA devices, between processes over every provider: of the
 * software driver, whose memory the CPU can't touch (test_staging), and of a real one
 * where there is a GPU (real_staging).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "memory/cuda.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/place.h"
#include "tests/fabric/pair.h"

/* A send or a receive that was begun. */
struct move {
	struct place place;
	uint64_t seed;
	bool comes;
	struct weft_op *op;
};

static void move_open(struct move *m, int device, size_t count, uint64_t seed)
{
	*m = (struct move){ .seed = seed };
	place_open(&m->place, device, count);
	place_fill(&m->place, seed);
}

static void move_begin(struct move *m, struct weft_peer *to, uint64_t step, void *stream)
{
	struct weft_send_options o = { .size = sizeof(o), .stream = stream };

	need(!weft_send(to, step, "k", 1, &m->place.tensor, &o, &m->op));
}

static void move_send(struct move *m, struct weft_peer *to, uint64_t step, int device,
		      size_t count, uint64_t seed)
{
	move_open(m, device, count, seed);
	move_begin(m, to, step, NULL);
}

static void move_take(struct move *m, struct weft_node *node, uint64_t step)
{
	struct weft_recv_options o = { .size = sizeof(o), .stream = WEFT_NO_STREAM };

	need(!weft_recv(node, NULL, step, "k", 1, &m->place.tensor, &o, &m->op));
}

static void move_recv(struct move *m, struct weft_node *node, uint64_t step, int device,
		      size_t count, uint64_t seed)
{
	*m = (struct move){ .seed = seed, .comes = true };
	place_open(&m->place, device, count);
	move_take(m, node, step);
}

static void move_free(struct move *m)
{
	weft_op_free(m->op);
	place_close(&m->place);
}

static void move_finish(struct move *m)
{
	pair_ended(m->op, WEFT_OK);
	if (m->comes)
		need(place_matches(&m->place, m->seed));
	move_free(m);
}

/* The other side. */

static struct move theirs[512];
static size_t theirs_count;

static struct move *next_of_theirs(const char *arguments, uint64_t *step, int *device,
				   size_t *count, uint64_t *seed)
{
	need(theirs_count < PAIR_COUNT(theirs));
	need(sscanf(arguments, "%lu %d %zu %lu", step, device, count, seed) == 4);
	return &theirs[theirs_count++];
}

static void do_give(struct pair *side, char *arguments)
{
	uint64_t step, seed;
	size_t count;
	int device;
	struct move *m = next_of_theirs(arguments, &step, &device, &count, &seed);

	move_send(m, side->peer, step, device, count, seed);
}

/* Give the memory of the first one once more, with other bytes in it. */
static void do_give_again(struct pair *side, char *arguments)
{
	uint64_t step, seed;

	need(sscanf(arguments, "%lu %lu", &step, &seed) == 2);
	pair_ended(theirs[0].op, WEFT_OK);
	weft_op_free(theirs[0].op);
	place_fill(&theirs[0].place, seed);
	move_begin(&theirs[0], side->peer, step, NULL);
}

static void do_take(struct pair *side, char *arguments)
{
	uint64_t step, seed;
	size_t count;
	int device;
	struct move *m = next_of_theirs(arguments, &step, &device, &count, &seed);

	move_recv(m, side->node, step, device, count, seed);
}

static void do_all(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	for (size_t i = 0; i < theirs_count; i++)
		move_finish(&theirs[i]);
	theirs_count = 0;
}

/* How the first one ended. */
static void do_first(struct pair *side, char *arguments)
{
	(void)arguments;
	(void)weft_wait(theirs[0].op, PAIR_LIMIT_NS);
	snprintf(side->reply, sizeof(side->reply), "%d", (int)weft_op_status(theirs[0].op));
	move_free(&theirs[0]);
	theirs_count = 0;
}

static void do_hold(struct pair *side, char *arguments)
{
	(void)side;
	gpu.fake_cuda_hold(*arguments == '1');
}

/* Stand still in the midst of a turn, before what it has found to be offered is copied. */
static void do_stop(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	gpu.fake_cuda_fail("cuIpcOpenMemHandle", 1, FAKE_STOPS);
}

/* How often memory of another process was mapped. */
static void do_maps(struct pair *side, char *arguments)
{
	(void)arguments;
	snprintf(side->reply, sizeof(side->reply), "%u", gpu.fake_cuda_calls("cuIpcOpenMemHandle"));
}

static const struct pair_command commands[] = {
	{ "hold", do_hold },
	{ "maps", do_maps },
	{ "stop", do_stop },
	{ "give", do_give },
	{ "give_again", do_give_again },
	{ "take", do_take },
	{ "all", do_all },
	{ "first", do_first },
	{ NULL, NULL },
};

/* The tests. */

static struct weft_path path_of(const struct weft_op *op)
{
	struct weft_path path = { .size = sizeof(path) };

	need(!weft_op_path(op, &path));
	return path;
}

static void bodies_of_every_size_go_from_and_to_devices(void **state)
{
	static const size_t sizes[] = {
		1, 5000, 64 * KIB, 100 * KIB, MIB, MIB + 1, 4 * MIB, 5 * MIB + 3, 33 * MIB,
	};
	/* From, to: two devices where there are. */
	const int ways[][2] = { { 0, -1 }, { -1, 0 }, { wf_cuda_driver_device_count() - 1, 0 } };
	struct pair pair;
	struct move m;
	uint64_t step = 0;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(sizes); i++) {
			for (size_t way = 0; way < PAIR_COUNT(ways); way++) {
				step++;
				if (step % 2) {
					move_recv(&m, pair.node, step, ways[way][1], sizes[i], step);
					pair_do(&pair.other, "give %lu %d %zu %lu", step,
						ways[way][0], sizes[i], step);
				} else {
					pair_do(&pair.other, "give %lu %d %zu %lu", step,
						ways[way][0], sizes[i], step);
					pair_ping(pair.peer);
					move_recv(&m, pair.node, step, ways[way][1], sizes[i], step);
				}
				pair_ended(m.op, WEFT_OK);
				if (!strcmp(at, "shm") && ways[way][0] >= 0 && ways[way][1] >= 0 &&
				    sizes[i] > 64 * KIB)
					assert_string_equal(path_of(m.op).way, "direct");
				else if (sizes[i] > 64 * KIB)
					assert_string_equal(path_of(m.op).way, "staged");
				if (ways[way][1] >= 0) {
					assert_true(path_of(m.op).copies >= 1);
					assert_ptr_equal(weft_op_tensor(m.op, NULL)->data, m.place.at);
					assert_int_equal(weft_op_tensor(m.op, NULL)->device.type,
							 WEFT_CUDA);
				}
				move_finish(&m);
				pair_do(&pair.other, "all");
			}
		}
		pair_close(&pair);
	}
}

static void checksums_hold_from_device_to_device(void **state)
{
	static const size_t sizes[] = { 100, MIB, 9 * MIB + 7 };
	struct weft_node_options options;
	struct pair pair;
	struct move m;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		options.flags = WEFT_CHECKSUM;
		pair_open(&pair, at, &options);
		for (size_t i = 0; i < PAIR_COUNT(sizes); i++) {
			pair_do(&pair.other, "take 1 0 %zu 5", sizes[i]);
			move_send(&m, pair.peer, 1, 0, sizes[i], 5);
			pair_ended(m.op, WEFT_OK);
			assert_string_equal(path_of(m.op).checksum, "xxh3");
			move_finish(&m);
			pair_do(&pair.other, "all");
		}
		pair_close(&pair);
	}
}

static void many_at_once_in_both_directions_share_a_small_pool(void **state)
{
	enum { COUNT = 24 };
	struct weft_node_options options;
	struct move out[COUNT], in[COUNT];
	struct pair pair;

	(void)state;
	setenv("WEFT_POOL_BYTES", "12582912", 1);
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		pair_open(&pair, at, &options);
		for (unsigned i = 0; i < COUNT; i++) {
			size_t count = i % 3 ? 2 * MIB + i : 900 * KIB + i;

			move_send(&out[i], pair.peer, i, 0, count, i);
			move_recv(&in[i], pair.node, 100 + i, 0, count, 50 + i);
			pair_do(&pair.other, "take %u 0 %zu %u", i, count, i);
			pair_do(&pair.other, "give %u 0 %zu %u", 100 + i, count, 50 + i);
		}
		for (unsigned i = 0; i < COUNT; i++) {
			move_finish(&out[i]);
			move_finish(&in[i]);
		}
		pair_do(&pair.other, "all");
		pair_close(&pair);
	}
	unsetenv("WEFT_POOL_BYTES");
}

static void sends_that_wait_for_their_receive_leave_the_pool_to_others(void **state)
{
	enum { COUNT = 40 };
	struct move out[COUNT];
	struct pair pair;

	(void)state;
	setenv("WEFT_POOL_BYTES", "12582912", 1);
	pair_open(&pair, pair_any(), NULL);
	for (unsigned i = 0; i < COUNT; i++)
		move_send(&out[i], pair.peer, i, 0, MIB, i);
	for (unsigned i = COUNT; i--;) {
		pair_do(&pair.other, "take %u 0 %zu %u", i, MIB, i);
		pair_do(&pair.other, "all");
		move_finish(&out[i]);
	}
	pair_close(&pair);
	unsetenv("WEFT_POOL_BYTES");
}

/* All of it is there before anybody asks for it. */
static void sends_of_both_sides_that_fill_both_pools_are_received(void **state)
{
	enum { COUNT = 24 };
	const size_t count = 900 * KIB;
	struct move out[COUNT], in[COUNT];
	struct pair pair;

	(void)state;
	setenv("WEFT_POOL_BYTES", "12582912", 1);
	pair_open(&pair, pair_any(), NULL);
	for (unsigned i = 0; i < COUNT; i++) {
		move_send(&out[i], pair.peer, i, 0, count, i);
		pair_do(&pair.other, "give %u 0 %zu %u", 100 + i, count, 50 + i);
	}
	pair_do(&pair.other, "ping");
	pair_ping(pair.peer);
	for (unsigned i = 0; i < COUNT; i++) {
		move_recv(&in[i], pair.node, 100 + i, 0, count, 50 + i);
		pair_do(&pair.other, "take %u 0 %zu %u", i, count, i);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		move_finish(&out[i]);
		move_finish(&in[i]);
	}
	pair_do(&pair.other, "all");
	pair_close(&pair);
	unsetenv("WEFT_POOL_BYTES");
}

/* On device 0, of a node that may give it; freed by that. */
static void move_open_near(struct move *m, struct weft_node *node, size_t count, uint64_t seed)
{
	struct weft_near_options o = { .size = sizeof(o), .from = "cuda:0",
				       .flags = WEFT_NEAR_DEVICE | WEFT_NEAR_STRICT };
	struct weft_placement placement = { .size = sizeof(placement) };

	*m = (struct move){ .place.count = (int64_t)count, .seed = seed };
	need(!weft_alloc_near(node, count, &o, &m->place.at));
	need(!weft_memory_place(node, m->place.at, &placement));
	m->place.tensor = pair_tensor(m->place.at, &m->place.count);
	m->place.tensor.device = placement.device;
}

static void memory_that_weft_gave_goes_as_the_programs_own(void **state)
{
	static const size_t sizes[] = { 1000, 3 * MIB + 1 };
	struct pair pair;
	struct move m;

	(void)state;
	setenv("WEFT_RULES", "allow cuda", 1);
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(sizes); i++) {
			move_open_near(&m, pair.node, sizes[i], 11);
			place_fill(&m.place, m.seed);
			pair_do(&pair.other, "take 1 0 %zu 11", sizes[i]);
			move_begin(&m, pair.peer, 1, WEFT_NO_STREAM);
			pair_ended(m.op, WEFT_OK);
			pair_do(&pair.other, "all");
			weft_op_free(m.op);

			pair_do(&pair.other, "give 2 0 %zu 12", sizes[i]);
			move_take(&m, pair.node, 2);
			pair_ended(m.op, WEFT_OK);
			if (!strcmp(at, "shm") && sizes[i] >= MIB)
				assert_string_equal(path_of(m.op).way, "direct");
			need(place_matches(&m.place, 12));
			pair_do(&pair.other, "all");
			weft_op_free(m.op);
			weft_free(pair.node, m.place.at);
		}
		pair_close(&pair);
	}
	unsetenv("WEFT_RULES");
}

static void wait_for_it(void *arg)
{
	while (sem_wait(arg))
		;
}

static void a_send_waits_for_the_programs_stream_and_holds_up_no_other(void **state)
{
	static const size_t sizes[] = { 1000, 3 * MIB };
	struct move waits, goes;
	struct pair pair;
	CUstream stream;
	sem_t go;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	for (size_t i = 0; i < PAIR_COUNT(sizes); i++) {
		move_open(&waits, 0, sizes[i], 1);
		move_open(&goes, 0, sizes[i], 2);
		assert_int_equal(sem_init(&go, 0, 0), 0);
		need(!wf_cuda_enter(0, NULL));
		assert_int_equal(gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
		assert_int_equal(gpu.cuLaunchHostFunc(stream, wait_for_it, &go), 0);
		wf_cuda_leave();
		pair_do(&pair.other, "take 1 0 %zu 1", sizes[i]);
		pair_do(&pair.other, "take 2 0 %zu 2", sizes[i]);
		move_begin(&waits, pair.peer, 1, stream);
		move_begin(&goes, pair.peer, 2, WEFT_NO_STREAM);
		pair_ended(goes.op, WEFT_OK);
		pair_sleep_ms(20);
		assert_false(weft_op_ended(waits.op));
		/* Memory can be freed again: that waits for every stream. */
		sem_post(&go);
		move_finish(&goes);
		move_finish(&waits);
		pair_do(&pair.other, "all");
		assert_int_equal(gpu.cuStreamDestroy_v2(stream), 0);
		sem_destroy(&go);
	}
	pair_close(&pair);
}

static void tensors_go_on_while_the_program_captures_a_graph(void **state)
{
	struct move out, in = { .seed = 2, .comes = true };
	struct pair pair;
	CUstream stream;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		move_open(&out, 0, 3 * MIB, 1);
		place_open(&in.place, 0, 3 * MIB);
		pair_do(&pair.other, "take 1 -1 %zu 1", (size_t)3 * MIB);
		pair_do(&pair.other, "give 2 0 %zu 2", (size_t)3 * MIB);
		stream = gpu_capture(CU_STREAM_NON_BLOCKING);
		move_begin(&out, pair.peer, 1, WEFT_NO_STREAM);
		move_take(&in, pair.node, 2);
		pair_ended(out.op, WEFT_OK);
		pair_ended(in.op, WEFT_OK);
		gpu_capture_over(stream);
		move_finish(&out);
		move_finish(&in);
		pair_do(&pair.other, "all");
		pair_close(&pair);
	}
}

static void a_tensor_that_is_not_where_it_is_said_to_be_is_refused_with_a_sentence(void **state)
{
	struct weft_send_options snapshot = { .size = sizeof(snapshot), .flags = WEFT_SNAPSHOT };
	int64_t shape[] = { 10, 10 }, strides[] = { 1, 10 };
	struct weft_tensor t;
	struct place here, there;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	place_open(&here, -1, 100);
	place_open(&there, 0, 100);

	t = here.tensor;
	t.device = there.tensor.device;
	assert_int_equal(weft_send(pair.peer, 1, "k", 1, &t, NULL, &op), -EINVAL);
	assert_non_null(strstr(weft_error(), "is memory of the host, not of CUDA device 0"));
	assert_int_equal(weft_recv(pair.node, NULL, 1, "k", 1, &t, NULL, &op), -EINVAL);
	t = there.tensor;
	t.device.type = 10;
	assert_int_equal(weft_send(pair.peer, 1, "k", 1, &t, NULL, &op), -ENOTSUP);
	assert_non_null(strstr(weft_error(), "device type 10 is not supported"));
	assert_int_equal(weft_send(pair.peer, 1, "k", 1, &there.tensor, &snapshot, &op), -ENOTSUP);
	assert_non_null(strstr(weft_error(), "a snapshot of device memory"));
	t = there.tensor;
	t.ndim = 2;
	t.shape = shape;
	t.strides = strides;
	assert_int_equal(weft_send(pair.peer, 1, "k", 1, &t, NULL, &op), -ENOTSUP);
	assert_non_null(strstr(weft_error(), "a strided tensor of device memory"));
	place_close(&here);
	place_close(&there);
	pair_close(&pair);
}

/* @m, which asks for no staging, was refused for that. */
static void assert_not_staged(struct move *m)
{
	pair_ended(m->op, WEFT_FAILED_PRECONDITION);
	assert_non_null(strstr(weft_op_message(m->op), "no staging was asked for"));
	move_free(m);
}

static void a_strict_operation_has_nothing_staged(void **state)
{
	static const size_t sizes[] = { 100, MIB };
	struct weft_send_options out = { .size = sizeof(out), .stream = WEFT_NO_STREAM };
	struct weft_recv_options in = { .size = sizeof(in), .stream = WEFT_NO_STREAM };
	struct pair pair;
	struct move m;

	(void)state;
	out.op = in.op = (struct weft_op_options){ .size = sizeof(out.op),
						   .flags = WEFT_STRICT_NO_STAGING };
	pair_open(&pair, "tcp", NULL);
	for (size_t i = 0; i < PAIR_COUNT(sizes); i++) {
		move_open(&m, 0, sizes[i], 1);
		need(!weft_send(pair.peer, 1, "k", 1, &m.place.tensor, &out, &m.op));
		assert_not_staged(&m);
		move_open(&m, 0, sizes[i], 1);
		need(!weft_recv(pair.node, NULL, 2, "k", 1, &m.place.tensor, &in, &m.op));
		pair_do(&pair.other, "give 2 -1 %zu 1", sizes[i]);
		assert_not_staged(&m);
		pair_do(&pair.other, "first");
	}
	pair_close(&pair);
	/* From device to device, of a host's processes, nothing has to be. */
	pair_open(&pair, "shm", NULL);
	move_open(&m, 0, MIB, 1);
	pair_do(&pair.other, "take 1 %d %zu 1", wf_cuda_driver_device_count() - 1, (size_t)MIB);
	need(!weft_send(pair.peer, 1, "k", 1, &m.place.tensor, &out, &m.op));
	move_finish(&m);
	pair_do(&pair.other, "all");
	pair_close(&pair);
}

/* Of the software driver alone. */

static void memory_that_is_sent_again_and_again_is_mapped_no_more_in_the_end(void **state)
{
	uint64_t until_ns;
	unsigned maps, unmaps;
	struct pair pair;
	struct move m;

	(void)state;
	pair_open(&pair, "shm", NULL);
	maps = gpu.fake_cuda_calls("cuIpcOpenMemHandle");
	unmaps = gpu.fake_cuda_calls("cuIpcCloseMemHandle");
	for (uint64_t step = 1; step <= 8; step++) {
		move_recv(&m, pair.node, step, 0, 2 * MIB, step);
		if (step == 1)
			pair_do(&pair.other, "give 1 0 %zu 1", (size_t)2 * MIB);
		else
			pair_do(&pair.other, "give_again %lu %lu", step, step);
		pair_ended(m.op, WEFT_OK);
		assert_string_equal(path_of(m.op).way, "direct");
		move_finish(&m);
	}
	/* Once, or more often where a step took longer than a mapping is kept. */
	assert_in_range(gpu.fake_cuda_calls("cuIpcOpenMemHandle") - maps, 1, 8);
	until_ns = pair_now_ns() + PAIR_LIMIT_NS;
	while (gpu.fake_cuda_calls("cuIpcCloseMemHandle") - unmaps <
	       gpu.fake_cuda_calls("cuIpcOpenMemHandle") - maps) {
		need(pair_now_ns() < until_ns);
		pair_sleep_ms(1);
	}
	pair_do(&pair.other, "all");
	pair_close(&pair);
}

static void a_direct_copy_that_fails_amid_others_ends_both_sides(void **state)
{
	struct pair pair;
	struct move m;

	(void)state;
	pair_open(&pair, "shm", NULL);
	move_recv(&m, pair.node, 1, 1, 80 * MIB, 7);
	gpu.fake_cuda_fail("cuMemcpyDtoDAsync", 3, CU_ILLEGAL_ADDRESS);
	pair_do(&pair.other, "give 1 0 %zu 7", 80 * MIB);
	(void)weft_wait(m.op, PAIR_LIMIT_NS);
	assert_non_null(strstr(weft_op_message(m.op), "CUDA device 1"));
	move_free(&m);
	assert_string_not_equal(pair_do(&pair.other, "first"), "0");
	pair_close(&pair);
}

/* Two nodes of this process, and the second as the first sees it. */
struct two {
	struct weft_node *first, *second;
	struct weft_peer *peer;
};

static void two_open(struct two *two, const char *provider)
{
	struct weft_node_options options = pair_options(provider);

	need(!weft_node_open(&options, &two->first));
	need(!weft_node_open(&options, &two->second));
	need(!weft_peer_open(two->first, weft_node_address(two->second), &two->peer));
	pair_ping(two->peer);
}

static void two_close(struct two *two)
{
	weft_peer_close(two->peer);
	need(!weft_node_close(two->first));
	need(!weft_node_close(two->second));
}

/* One log has the copies of both. */
static void filling_moving_and_draining_go_side_by_side(void **state)
{
	enum { PIECES = 16, ENTRIES = 4096 };
	static struct fake_cuda_entry log[ENTRIES];
	size_t count, first_drain = 0, last_fill = 0, fills = 0, drains = 0;
	struct move out, in;
	struct two two;

	(void)state;
	two_open(&two, pair_any());
	move_recv(&in, two.second, 1, 1, PIECES * MIB, 3);
	gpu.fake_cuda_log_clear();
	move_send(&out, two.peer, 1, 0, PIECES * MIB, 3);
	pair_ended(out.op, WEFT_OK);
	pair_ended(in.op, WEFT_OK);
	count = gpu.fake_cuda_log(log, ENTRIES);
	for (size_t i = 0; i < count; i++) {
		if (log[i].bytes != MIB)
			continue;
		if (!log[i].ended && log[i].what == FAKE_TO_DEVICE && !drains++)
			first_drain = i;
		if (!log[i].ended && log[i].what == FAKE_TO_HOST) {
			fills++;
			last_fill = i;
		}
	}
	assert_int_equal(fills, PIECES);
	assert_int_equal(drains, PIECES);
	assert_true(first_drain < last_fill);

	move_finish(&in);
	move_finish(&out);
	two_close(&two);
}

/* What @op waits for, in its node's words, has @words: wait until it says so. */
static void wait_until_said(struct weft_node *node, const char *words)
{
	uint64_t until_ns = pair_now_ns() + PAIR_LIMIT_NS;
	char *text = NULL;
	bool said = false;

	while (!said && pair_now_ns() < until_ns) {
		size_t bytes = 0;
		FILE *out = open_memstream(&text, &bytes);

		need(!weft_dump(node, out));
		fclose(out);
		said = strstr(text, words) != NULL;
		free(text);
	}
	need(said);
}

static void one_host_copies_from_device_to_device(void **state)
{
	static const size_t sizes[] = { MIB, 5 * MIB + 3, 80 * MIB };
	static struct fake_cuda_entry log[256];
	struct pair pair;
	struct move m;

	(void)state;
	pair_open(&pair, "shm", NULL);
	for (size_t i = 0; i < PAIR_COUNT(sizes); i++) {
		gpu.fake_cuda_log_clear();
		move_recv(&m, pair.node, i, 1, sizes[i], i);
		pair_do(&pair.other, "give %zu 0 %zu %zu", i, sizes[i], i);
		pair_ended(m.op, WEFT_OK);
		assert_string_equal(path_of(m.op).way, "direct");
		for (size_t at = gpu.fake_cuda_log(log, PAIR_COUNT(log)); at--;)
			assert_true(log[at].what == FAKE_ON_DEVICE || log[at].what == FAKE_CALL);
		move_finish(&m);
		pair_do(&pair.other, "all");
	}
	pair_close(&pair);
}

static void a_direct_copy_is_waited_for_and_its_owner_may_vanish(void **state)
{
	struct pair pair;
	struct move m;

	(void)state;
	for (unsigned killed = 0; killed < 2; killed++) {
		pair_open(&pair, "shm", NULL);
		move_recv(&m, pair.node, 1, 1, 80 * MIB, 7);
		gpu.fake_cuda_hold(true);
		pair_do(&pair.other, "give 1 0 %zu 7", 80 * MIB);
		wait_until_said(pair.node, "are copied from the device of");
		if (killed)
			pair_kill(&pair.other, SIGKILL);
		else
			weft_cancel(m.op);
		pair_sleep_ms(300);
		assert_false(weft_op_ended(m.op));
		gpu.fake_cuda_hold(false);
		pair_ended(m.op, killed ? WEFT_UNAVAILABLE : WEFT_CANCELLED);
		move_free(&m);
		if (!killed)
			pair_do(&pair.other, "first");
		pair_close(&pair);
	}
}

/* A send from here, which the other side maps, and copies when it is told to. */
static void begin_held(struct pair *pair, struct move *m)
{
	uint64_t until_ns = pair_now_ns() + PAIR_LIMIT_NS;

	pair_open(pair, "shm", NULL);
	pair_do(&pair->other, "hold 1");
	pair_do(&pair->other, "take 1 0 %zu 7", 48 * MIB);
	move_send(m, pair->peer, 1, 0, 48 * MIB, 7);
	while (!atoi(pair_do(&pair->other, "maps"))) {
		need(pair_now_ns() < until_ns);
		pair_sleep_ms(1);
	}
}

static void a_cancelled_send_waits_for_the_others_direct_copies(void **state)
{
	struct pair pair;
	struct move m;

	(void)state;
	begin_held(&pair, &m);
	weft_cancel(m.op);
	/* Longer than for reads, which end with their rail. */
	pair_sleep_ms(2500);
	assert_false(weft_op_ended(m.op));
	pair_do(&pair.other, "hold 0");
	pair_ended(m.op, WEFT_CANCELLED);
	assert_int_equal(atoi(pair_do(&pair.other, "first")), WEFT_CANCELLED);
	move_free(&m);
	pair_close(&pair);
}

static void a_body_copied_after_its_owner_went_on_is_not_taken_for_whole(void **state)
{
	struct pair pair;
	struct move m;
	uint64_t until_ns;
	int stopped;

	(void)state;
	pair_open(&pair, "shm", NULL);
	pair_do(&pair.other, "stop");
	pair_do(&pair.other, "take 1 0 %zu 7", 48 * MIB);
	move_send(&m, pair.peer, 1, 0, 48 * MIB, 7);
	until_ns = pair_now_ns() + PAIR_LIMIT_NS;
	while (!waitpid(pair.other.pid, &stopped, WUNTRACED | WNOHANG)) {
		need(pair_now_ns() < until_ns);
		pair_sleep_ms(1);
	}
	assert_true(WIFSTOPPED(stopped));
	weft_cancel(m.op);
	(void)weft_wait(m.op, PAIR_LIMIT_NS);
	assert_int_not_equal(weft_op_status(m.op), WEFT_OK);
	place_fill(&m.place, 8);
	/* Its owner gives it up, and says nothing any more. */
	pair_sleep_ms(4000);
	pair_kill(&pair.other, SIGCONT);
	assert_int_not_equal(atoi(pair_do(&pair.other, "first")), WEFT_OK);
	move_free(&m);
	pair_close(&pair);
}

static void closing_a_node_ends_direct_copies_from_the_dead(void **state)
{
	unsigned closed = gpu.fake_cuda_calls("cuIpcCloseMemHandle");
	struct pair pair;
	struct move m;

	(void)state;
	pair_open(&pair, "shm", NULL);
	move_recv(&m, pair.node, 1, 1, 80 * MIB, 7);
	gpu.fake_cuda_hold(true);
	pair_do(&pair.other, "give 1 0 %zu 7", 80 * MIB);
	wait_until_said(pair.node, "are copied from the device of");
	pair_kill(&pair.other, SIGKILL);
	wait_until_said(pair.node, "gone");
	assert_false(weft_op_ended(m.op));
	weft_peer_close(pair.peer);
	pair.other.peer = NULL;
	need(!weft_node_close(pair.node));
	gpu.fake_cuda_hold(false);
	assert_true(weft_op_ended(m.op));
	assert_int_equal(gpu.fake_cuda_calls("cuIpcCloseMemHandle"), closed + 1);
	move_free(&m);
}

static void a_body_that_can_not_be_mapped_is_staged_and_its_path_says_so(void **state)
{
	struct pair pair;
	struct move m;

	(void)state;
	pair_open(&pair, "shm", NULL);
	gpu.fake_cuda_fail("cuIpcOpenMemHandle", 1, 1); /* CUDA_ERROR_INVALID_VALUE */
	move_recv(&m, pair.node, 1, 1, 16 * MIB, 3);
	pair_do(&pair.other, "give 1 0 %zu 3", 16 * MIB);
	pair_ended(m.op, WEFT_OK);
	assert_string_equal(path_of(m.op).way, "staged");
	move_finish(&m);
	pair_do(&pair.other, "all");
	pair_close(&pair);
}

static void reads_go_on_while_copies_do_and_stop_where_the_room_ends(void **state)
{
	struct pair pair;
	struct move m;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	move_recv(&m, pair.node, 1, 0, 16 * MIB, 9);
	gpu.fake_cuda_hold(true);
	pair_do(&pair.other, "give 1 -1 %zu 9", 16 * MIB);
	wait_until_said(pair.node, "4194304 of 16777216 bytes are read, and the next have to be "
				   "copied to a device");
	gpu.fake_cuda_hold(false);
	move_finish(&m);
	pair_do(&pair.other, "all");
	pair_close(&pair);
}

/* Cancelled, or out of time, with copies under way. */
static void no_operation_ends_before_its_copies(void **state)
{
	static const size_t sizes[] = { 1000, 6 * MIB };
	struct pair pair;
	struct move m;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	for (size_t i = 0; i < PAIR_COUNT(sizes); i++) {
		for (unsigned comes = 0; comes < 2; comes++) {
			gpu.fake_cuda_hold(false);
			if (comes) {
				move_recv(&m, pair.node, 1, 0, sizes[i], 1);
				gpu.fake_cuda_hold(true);
				pair_do(&pair.other, "give 1 -1 %zu 1", sizes[i]);
				wait_until_said(pair.node, i ? "bytes are read, and the next have"
							     : "0 of 1000 bytes are on their device");
			} else {
				pair_do(&pair.other, "take 1 -1 %zu 1", sizes[i]);
				move_open(&m, 0, sizes[i], 1);
				gpu.fake_cuda_hold(true);
				move_begin(&m, pair.peer, 1, WEFT_NO_STREAM);
				if (!i)
					wait_until_said(pair.node, "being copied from its device");
				else
					wait_until_said(pair.node, "offered over");
				pair_ping(pair.peer);
			}
			weft_cancel(m.op);
			pair_sleep_ms(500);
			assert_false(weft_op_ended(m.op));
			gpu.fake_cuda_hold(false);
			pair_ended(m.op, WEFT_CANCELLED);
			move_free(&m);
			pair_close(&pair);
			pair_open(&pair, pair_any(), NULL);
		}
	}
	pair_close(&pair);
}

static void a_copy_that_fails_ends_both_sides(void **state)
{
	static const char *const names[] = { "cuMemcpyDtoHAsync", "cuEventRecord" };
	static const size_t sizes[] = { 1000, 6 * MIB };
	struct pair pair;
	struct move m;

	(void)state;
	for (size_t i = 0; i < PAIR_COUNT(sizes); i++) {
		for (size_t name = 0; name < PAIR_COUNT(names); name++) {
			pair_open(&pair, pair_any(), NULL);
			move_open(&m, 0, sizes[i], 1);
			gpu.fake_cuda_fail(names[name], i ? 3 : 1, CU_ILLEGAL_ADDRESS);
			move_begin(&m, pair.peer, 1, WEFT_NO_STREAM);
			pair_do(&pair.other, "take 1 0 %zu 1", sizes[i]);
			(void)weft_wait(m.op, PAIR_LIMIT_NS);
			assert_int_not_equal(weft_op_status(m.op), WEFT_OK);
			if (!strstr(weft_op_message(m.op), "CUDA device 0"))
				fail_msg("%s of %zu bytes: %s", names[name], sizes[i],
					 weft_op_message(m.op));
			move_free(&m);
			pair_close(&pair);
		}
	}
}

static void closing_a_node_waits_for_copies(void **state)
{
	struct pair pair;
	struct move m;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	gpu.fake_cuda_delay(2000);
	move_recv(&m, pair.node, 1, 0, 8 * MIB, 9);
	pair_do(&pair.other, "give 1 -1 %zu 9", 8 * MIB);
	wait_until_said(pair.node, "4194304 of 8388608 bytes are read");
	weft_peer_close(pair.peer);
	pair.other.peer = NULL;
	need(!weft_node_close(pair.node));
	assert_true(weft_op_ended(m.op));
	gpu.fake_cuda_delay(2);
	move_free(&m);
	pair_do(&pair.other, "first");
	pair_end(&pair.other);
}

/* Each goes into the pool before the next: one does while the node closes. */
static void closing_a_node_ends_sends_in_line_for_their_copies(void **state)
{
	enum { COUNT = 60, ROUNDS = 5 };
	struct weft_send_options o = { .size = sizeof(o), .stream = WEFT_NO_STREAM };
	struct weft_op *ops[COUNT];
	struct pair pair;
	struct place p;

	(void)state;
	place_open(&p, 0, 1000);
	gpu.fake_cuda_delay(20);
	for (unsigned round = 0; round < ROUNDS; round++) {
		pair_open(&pair, pair_any(), NULL);
		pair_ping(pair.peer);
		for (unsigned i = 0; i < COUNT; i++)
			need(!weft_send(pair.peer, 1, "k", 1, &p.tensor, &o, &ops[i]));
		pair_sleep_ms(round);
		weft_peer_close(pair.peer);
		pair.other.peer = NULL;
		need(!weft_node_close(pair.node));
		for (unsigned i = 0; i < COUNT; i++) {
			assert_true(weft_op_ended(ops[i]));
			weft_op_free(ops[i]);
		}
		pair_end(&pair.other);
	}
	gpu.fake_cuda_delay(2);
	place_close(&p);
}

static void closing_a_node_does_not_wait_for_the_programs_stream(void **state)
{
	struct weft_recv_options o = { .size = sizeof(o) };
	struct move m = { .comes = true };
	struct pair pair;
	CUstream stream;
	sem_t go;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	place_open(&m.place, 0, 1000);
	assert_int_equal(sem_init(&go, 0, 0), 0);
	need(!wf_cuda_enter(0, NULL));
	assert_int_equal(gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(gpu.cuLaunchHostFunc(stream, wait_for_it, &go), 0);
	wf_cuda_leave();
	o.stream = stream;
	need(!weft_recv(pair.node, NULL, 1, "k", 1, &m.place.tensor, &o, &m.op));
	pair_do(&pair.other, "give 1 -1 %d 9", 1000);
	wait_until_said(pair.node, "0 of 1000 bytes are on their device");
	weft_peer_close(pair.peer);
	pair.other.peer = NULL;
	need(!weft_node_close(pair.node));
	assert_true(weft_op_ended(m.op));
	assert_int_equal(weft_op_status(m.op), WEFT_CANCELLED);
	sem_post(&go);
	assert_int_equal(gpu.cuStreamDestroy_v2(stream), 0);
	move_free(&m);
	sem_destroy(&go);
	pair_do(&pair.other, "all");
	pair_end(&pair.other);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(bodies_of_every_size_go_from_and_to_devices,
					  pair_teardown),
		cmocka_unit_test_teardown(checksums_hold_from_device_to_device, pair_teardown),
		cmocka_unit_test_teardown(many_at_once_in_both_directions_share_a_small_pool,
					  pair_teardown),
		cmocka_unit_test_teardown(
			sends_that_wait_for_their_receive_leave_the_pool_to_others, pair_teardown),
		cmocka_unit_test_teardown(sends_of_both_sides_that_fill_both_pools_are_received,
					  pair_teardown),
		cmocka_unit_test_teardown(
			a_send_waits_for_the_programs_stream_and_holds_up_no_other, pair_teardown),
		cmocka_unit_test_teardown(memory_that_weft_gave_goes_as_the_programs_own,
					  pair_teardown),
		cmocka_unit_test_teardown(tensors_go_on_while_the_program_captures_a_graph,
					  pair_teardown),
		cmocka_unit_test(a_strict_operation_has_nothing_staged),
		cmocka_unit_test_teardown(
			a_tensor_that_is_not_where_it_is_said_to_be_is_refused_with_a_sentence,
			pair_teardown),
	};
	const struct CMUnitTest of_the_software_driver[] = {
		cmocka_unit_test_teardown(
			memory_that_is_sent_again_and_again_is_mapped_no_more_in_the_end,
			pair_teardown),
		cmocka_unit_test_teardown(one_host_copies_from_device_to_device, pair_teardown),
		cmocka_unit_test_teardown(a_direct_copy_is_waited_for_and_its_owner_may_vanish,
					  pair_teardown),
		cmocka_unit_test_teardown(a_cancelled_send_waits_for_the_others_direct_copies,
					  pair_teardown),
		cmocka_unit_test_teardown(
			a_body_copied_after_its_owner_went_on_is_not_taken_for_whole,
			pair_teardown),
		cmocka_unit_test_teardown(closing_a_node_ends_direct_copies_from_the_dead,
					  pair_teardown),
		cmocka_unit_test_teardown(
			a_body_that_can_not_be_mapped_is_staged_and_its_path_says_so,
			pair_teardown),
		cmocka_unit_test_teardown(a_direct_copy_that_fails_amid_others_ends_both_sides,
					  pair_teardown),
		cmocka_unit_test_teardown(filling_moving_and_draining_go_side_by_side,
					  pair_teardown),
		cmocka_unit_test_teardown(reads_go_on_while_copies_do_and_stop_where_the_room_ends,
					  pair_teardown),
		cmocka_unit_test_teardown(no_operation_ends_before_its_copies, pair_teardown),
		cmocka_unit_test_teardown(a_copy_that_fails_ends_both_sides, pair_teardown),
		cmocka_unit_test_teardown(closing_a_node_waits_for_copies, pair_teardown),
		cmocka_unit_test_teardown(closing_a_node_ends_sends_in_line_for_their_copies,
					  pair_teardown),
		cmocka_unit_test_teardown(closing_a_node_does_not_wait_for_the_programs_stream,
					  pair_teardown),
	};
	int failed, status = gpu_begin(REAL_CUDA);

	if (status)
		return status;
	if (pair_is_other(argc, argv, commands))
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, pair_group_teardown);
	if (!REAL_CUDA)
		failed += cmocka_run_group_tests(of_the_software_driver, NULL, pair_group_teardown);
	return failed;
}
