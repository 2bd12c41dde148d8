/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows, gets and puts over the memory of CUDA devices, between processes over every provider: of
 * the software driver, whose memory the CPU can't touch (test_windows), and of a real one where
 * there is a GPU (real_windows).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/cuda.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/place.h"
#include "tests/fabric/pair.h"

#define WINDOW_BYTES (5u << 20)
#define BLOCK_BYTES 100000u
#define BLOCKS (WINDOW_BYTES / BLOCK_BYTES)
#define BOTH (WEFT_WINDOW_READ | WEFT_WINDOW_WRITE)

/* In the other process: the memory that it opens, and its window. */
static struct place memory;
static struct weft_window *window;

static void other_open(struct pair *side, char *arguments)
{
	int device;

	need(sscanf(arguments, "%d", &device) == 1);
	place_open(&memory, device, WINDOW_BYTES);
	place_fill(&memory, 1);
	need(!weft_window_open(side->node, memory.at, WINDOW_BYTES, BOTH, &window));
	pair_describe(side, window);
}

/* Check that the window has pattern @seed, by a copy of another thread's. */
static void other_check(struct pair *side, char *arguments)
{
	unsigned long long seed;

	(void)side;
	need(sscanf(arguments, "%llu", &seed) == 1);
	need(place_matches(&memory, seed));
}

static void other_close(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	need(!weft_window_close(window));
	place_close(&memory);
}

static const struct pair_command commands[] = {
	{ "open_window", other_open }, { "check", other_check }, { "close_window", other_close },
	{ NULL, NULL },
};

static struct weft_remote *import(struct pair *pair, int device)
{
	return pair_import(pair, pair_do(&pair->other, "open_window %d", device));
}

/* All of the window, as one block or as many, the last of them first. */
static size_t make_blocks(const struct place *here, bool many, struct weft_block *blocks)
{
	uint8_t *at = here->at;
	size_t count = many ? BLOCKS : 1;

	for (size_t i = 0; i < count; i++) {
		uint64_t from = many ? (count - 1 - i) * BLOCK_BYTES : 0;
		uint64_t end = many && i ? from + BLOCK_BYTES : WINDOW_BYTES;

		blocks[i] = (struct weft_block){ at + from, from, end - from };
	}
	return count;
}

static void move(struct weft_remote *remote, const struct place *here, bool puts, bool many,
		 unsigned flags)
{
	static struct weft_block blocks[BLOCKS];
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	size_t count = make_blocks(here, many, blocks);
	struct weft_op *op;

	options.device = here->tensor.device;
	options.op.flags = flags;
	assert_int_equal(puts ? weft_put(remote, blocks, count, &options, &op)
			      : weft_get(remote, blocks, count, &options, &op), 0);
	pair_ended(op, WEFT_OK);
	weft_op_free(op);
}

static void move_all(struct pair *pair, int there, int here, unsigned flags)
{
	struct weft_remote *remote = import(pair, there);
	struct place place;

	place_open(&place, here, WINDOW_BYTES);
	for (unsigned seed = 2; seed < 6; seed++) {
		bool many = seed % 2;

		place_fill(&place, seed);
		move(remote, &place, true, many, flags);
		pair_do(&pair->other, "check %u", seed);
		place_fill(&place, 99);
		move(remote, &place, false, many, flags);
		assert_true(place_matches(&place, seed));
	}
	weft_remote_close(remote);
	pair_do(&pair->other, "close_window");
	place_close(&place);
}

static void windows_and_memory_here_are_of_devices_and_the_host(void **state)
{
	const int last = wf_cuda_driver_device_count() - 1;
	const int ways[][2] = { { 0, GPU_HOST }, { GPU_HOST, 0 }, { 0, last } };
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(ways); i++)
			move_all(&pair, ways[i][0], ways[i][1], 0);
		pair_close(&pair);
	}
}

static void checksums_hold_between_devices(void **state)
{
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		move_all(&pair, 0, 0, WEFT_CHECKSUM);
		pair_close(&pair);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(windows_and_memory_here_are_of_devices_and_the_host,
					  pair_teardown),
		cmocka_unit_test_teardown(checksums_hold_between_devices, pair_teardown),
	};
	int status = gpu_begin(REAL_CUDA);

	if (status)
		return status;
	if (pair_is_other(argc, argv, commands))
		return 0;
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
