/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows, and the gets, puts and notes of peers, while rails fail, windows close, operations are
 * given up and nodes die: in each phase of an operation, and over each shape of rail.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rdma/fi_domain.h>

#include "core/node_window.h"
#include "core/node.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define US WF_NS_PER_US
#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define OWNER 0 /* the node that has the window */
#define PEER 1  /* a node that uses the window */
#define WINDOW_BYTES (512 * KIB)
#define CHUNK_BYTES (16 * KIB) /* shorter than the options allow: many chunks of short bodies */
#define BLOCKS_MAX 700 /* so many that their list takes several records */
#define ACCESSES 6
#define CANARY 0xee
#define LIMIT_NS (20 * S) /* time limit of operations that nobody gives up */
#define SLACK_NS (10 * MS)

static uint8_t memory[WINDOW_BYTES]; /* the window's memory */
static uint8_t wanted[WINDOW_BYTES];
static struct weft_window *window;
static struct weft_remote *remote; /* the window as PEER knows it */

/* How operations move their blocks. */
static enum way {
	BY_LOAN, /* gets by a loan of the window, puts block by block */
	SUMMED,  /* each block alone, with a checksum */
	LISTED   /* puts by one body with a list of many blocks, from registered memory */
} how;

/* Ways that a test goes one after the other. */
static const enum way ways[] = { BY_LOAN, BY_LOAN, SUMMED, LISTED };

static struct weft_region *region; /* memory of the operations, while it is registered */

/* A get or put, with its own memory. */
struct access {
	struct wf_flight flight;
	bool puts;
	uint64_t seed;
	uint8_t local[WINDOW_BYTES];
	struct weft_block blocks[BLOCKS_MAX];
	unsigned count;
	const uint8_t *target; /* memory that the operation writes */
	uint8_t at_end[WINDOW_BYTES]; /* @target when the operation had ended */
};

static struct access accesses[ACCESSES];

/* Worlds */

static void set(const char *name, const char *value)
{
	assert_int_equal(setenv(name, value, 1), 0);
}

static void open_window_of(unsigned node, void *at, size_t bytes, unsigned rights)
{
	assert_int_equal(weft_window_open(wf_world_node(node), at, bytes, rights, &window), 0);
}

static struct weft_remote *import(unsigned node, unsigned owner)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	struct weft_remote *fresh;

	assert_int_equal(weft_window_describe(window, descriptor, &bytes), 0);
	assert_int_equal(weft_window_import(wf_world_peer(node, owner), descriptor, bytes, &fresh),
			 0);
	return fresh;
}

static void shrink(unsigned number)
{
	struct weft_node *node = wf_world_node(number);

	for (unsigned i = 0; i < node->worker_count; i++)
		node->workers[i].engine.options.chunk_bytes = CHUNK_BYTES;
}

static void open_nodes(enum wf_world_shape shape, unsigned count)
{
	const struct wf_fake fake = {
		.seed = 1, .delay_min_ns = 20 * US, .delay_max_ns = 200 * US,
		.mr_mode = shape == WF_WORLD_SHARED ? FI_MR_LOCAL | FI_MR_VIRT_ADDR : 0,
	};

	wf_world_lose_soon();
	set("WEFT_CHECKSUM", how == SUMMED ? "yes" : "no");
	wf_world_open(shape, count, &fake);
	for (unsigned i = 0; i < count; i++)
		shrink(i);
	region = NULL;
	wf_world_fill(memory, WINDOW_BYTES, 1);
}

static void open_world(enum wf_world_shape shape, bool met)
{
	open_nodes(shape, 2);
	if (met)
		wf_world_connect(PEER, OWNER);
	open_window_of(OWNER, memory, WINDOW_BYTES, WEFT_WINDOW_READ | WEFT_WINDOW_WRITE);
	remote = import(PEER, OWNER);
	if (how == LISTED)
		assert_int_equal(weft_register(wf_world_node(PEER), accesses, sizeof(accesses),
					       &region), 0);
}

/* Can peers of PEER read the operation's memory by a key?  Registered memory keeps its own. */
static bool is_open(const struct access *a)
{
	return how != LISTED && wf_fake_is_open(a->local, WINDOW_BYTES);
}

static void close_window(void)
{
	assert_int_equal(weft_window_close(window), 0);
	window = NULL;
}

static void close_remote(void)
{
	weft_remote_close(remote);
	remote = NULL;
}

/* Let the memory of operations go, whose node has lived on. */
static void unregister(void)
{
	uint64_t begin_ns = wf_clock_now();

	assert_int_equal(weft_unregister(region), 0);
	/* A manual node may sleep until its next heartbeat. */
	assert_true(wf_clock_now() - begin_ns <= 100 * MS + SLACK_NS);
	region = NULL;
}

static void close_world(void)
{
	unregister();
	close_remote();
	close_window();
	wf_world_end();
}

/* Operations */

static void ended(struct weft_op *op, void *arg)
{
	struct access *a = arg;

	a->flight.outcomes++;
	a->flight.status = weft_op_status(op);
	a->flight.ended_ns = wf_clock_now();
	memcpy(a->at_end, a->target, WINDOW_BYTES);
}

static struct weft_access_options options_of(struct access *a, uint64_t timeout_ns)
{
	struct weft_access_options options = { .size = sizeof(options) };

	options.op = wf_flight_begin(&a->flight, timeout_ns);
	options.op.done = ended;
	options.op.arg = a;
	return options;
}

/* Blocks of @bytes in all, from @from on, whose order and gaps differ at both ends. */
static void make_blocks(struct access *a, uint64_t from, uint64_t bytes)
{
	unsigned count = how == LISTED ? BLOCKS_MAX : 5;
	uint64_t each = bytes / count, step = each - each / 8;

	a->count = count;
	for (unsigned i = 0; i < count; i++)
		a->blocks[i] = (struct weft_block){
			.local = a->local + (count - 1 - i) * each,
			.remote = from + i * each,
			.bytes = step - i % 5,
		};
}

static void begin(struct access *a, const struct weft_access_options *options)
{
	int err = a->puts ? weft_put(remote, a->blocks, a->count, options, &a->flight.op)
			  : weft_get(remote, a->blocks, a->count, options, &a->flight.op);

	assert_int_equal(err, 0);
}

static void begin_get(struct access *a, uint64_t timeout_ns)
{
	struct weft_access_options options = options_of(a, timeout_ns);

	a->puts = false;
	a->target = a->local;
	memset(a->local, CANARY, sizeof(a->local));
	begin(a, &options);
}

static void begin_put(struct access *a, uint64_t seed, uint64_t timeout_ns)
{
	struct weft_access_options options = options_of(a, timeout_ns);

	a->puts = true;
	a->target = memory;
	a->seed = seed;
	wf_world_fill(a->local, sizeof(a->local), seed);
	begin(a, &options);
}

/* Begin to get one half of the window, and to put pattern @seed into the other. */
static void begin_halves(uint64_t seed)
{
	make_blocks(&accesses[0], 0, WINDOW_BYTES / 2);
	make_blocks(&accesses[1], WINDOW_BYTES / 2, WINDOW_BYTES / 2);
	begin_get(&accesses[0], LIMIT_NS);
	begin_put(&accesses[1], seed, LIMIT_NS);
}

static void land(struct access *all, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		wf_flight_land(&all[i].flight, 1, 2 * LIMIT_NS);
}

static void free_all(struct access *all, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		wf_flight_free(&all[i].flight, 1);
}

/* Assert that the local memory of get @a has the window's bytes, as @content, in its blocks alone. */
static void assert_got(const struct access *a, const uint8_t *content)
{
	memset(wanted, CANARY, sizeof(wanted));
	for (unsigned i = 0; i < a->count; i++)
		memcpy(wanted + ((uint8_t *)a->blocks[i].local - a->local),
		       content + a->blocks[i].remote, a->blocks[i].bytes);
	assert_same_content(a->local, wanted, sizeof(wanted));
}

/* Returns whether all bytes of put @a are in @content. */
static bool is_whole(const struct access *a, const uint8_t *content)
{
	for (unsigned i = 0; i < a->count; i++)
		if (memcmp(content + a->blocks[i].remote, a->blocks[i].local, a->blocks[i].bytes))
			return false;
	return true;
}

/* Assert that no byte outside the blocks of the puts among @all differs from @before. */
static void assert_untouched_outside(const struct access *all, unsigned count,
				     const uint8_t *before)
{
	memcpy(wanted, memory, sizeof(wanted));
	for (unsigned i = 0; i < count; i++)
		for (unsigned b = 0; all[i].puts && b < all[i].count; b++)
			memcpy(wanted + all[i].blocks[b].remote, before + all[i].blocks[b].remote,
			       all[i].blocks[b].bytes);
	assert_same_content(wanted, before, sizeof(wanted));
}

/* Assert that nobody has a key to the window's memory, or reads it, or writes to it later. */
static void assert_quiet(void)
{
	static uint8_t copy[WINDOW_BYTES];

	assert_false(wf_fake_is_open(memory, WINDOW_BYTES));
	assert_false(wf_fake_is_read(memory, WINDOW_BYTES));
	wf_world_fill(memory, WINDOW_BYTES, 77);
	memcpy(copy, memory, sizeof(copy));
	wf_world_pass(3 * S);
	assert_same_content(memory, copy, sizeof(copy));
}

/* A phase of an operation: the time since its beginning, in microseconds. */
static const uint64_t phases_us[] = {
	0, 20, 60, 110, 160, 220, 290, 370, 460, 570, 700, 900, 1200, 1600, 2200, 4000,
};

static void in_each_phase(void (*test)(enum wf_world_shape shape, bool met, uint64_t at_ns))
{
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++)
		for (size_t at = 0; at < WF_COUNT(phases_us); at++)
			for (unsigned k = 0; k < WF_COUNT(ways); k++) {
				how = ways[k];
				test(wf_world_shapes[i], k, phases_us[at] * US);
				how = BY_LOAN;
			}
}

/* Notes */

static void begin_next(struct wf_flight *f, uint64_t timeout_ns)
{
	struct weft_op_options options = wf_flight_begin(f, timeout_ns);

	assert_int_equal(weft_window_next(window, &options, &f->op), 0);
}

static void put_note(struct wf_flight *f, struct weft_remote *to, const struct weft_block *blocks,
		     size_t count, uint32_t number, const void *note, size_t bytes)
{
	struct weft_access_options options = {
		.size = sizeof(options), .op = wf_flight_begin(f, LIMIT_NS), .flags = WEFT_NOTE,
		.number = number, .note = note, .note_bytes = bytes,
	};

	assert_int_equal(weft_put(to, blocks, count, &options, &f->op), 0);
}

/* Tests */

static void gets_and_puts_move_their_blocks_and_no_other_bytes(void **state)
{
	static uint8_t before[WINDOW_BYTES];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], false);
		memcpy(before, memory, sizeof(before));
		begin_halves(9);
		land(accesses, 2);
		assert_int_equal(accesses[0].flight.status, WEFT_OK);
		assert_int_equal(accesses[1].flight.status, WEFT_OK);
		assert_got(&accesses[0], memory);
		assert_true(is_whole(&accesses[1], memory));
		assert_untouched_outside(accesses, 2, before);
		wf_world_pass(10 * MS);
		assert_int_equal(weft_window_puts(window), 1);

		make_blocks(&accesses[0], WINDOW_BYTES / 2, WINDOW_BYTES / 2);
		free_all(accesses, 2);
		begin_get(&accesses[0], LIMIT_NS);
		land(accesses, 1);
		assert_int_equal(accesses[0].flight.status, WEFT_OK);
		assert_got(&accesses[0], memory);
		free_all(accesses, 1);
		close_world();
	}
}

/* The rail fails for a moment: @kinds says for each operation whether it is a put. */
static void go_on_over_the_next_rail(const bool *puts, unsigned count, bool warm)
{
	unsigned retries = 0;

	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		for (size_t at = 0; at < WF_COUNT(phases_us); at++) {
			open_world(wf_world_shapes[i], true);
			for (unsigned k = 0; k < count; k++)
				make_blocks(&accesses[k], k * (WINDOW_BYTES / count),
					    WINDOW_BYTES / count);
			/* The window is lent already. */
			if (warm) {
				begin_get(&accesses[0], LIMIT_NS);
				land(accesses, 1);
				free_all(accesses, 1);
			}
			for (unsigned k = 0; k < count; k++) {
				if (puts[k])
					begin_put(&accesses[k], k, LIMIT_NS);
				else
					begin_get(&accesses[k], LIMIT_NS);
			}
			wf_world_pass(phases_us[at] * US);
			wf_world_break_rail(PEER, OWNER, true);
			wf_world_pass(20 * MS);
			wf_world_break_rail(PEER, OWNER, false);
			land(accesses, count);
			for (unsigned k = 0; k < count; k++) {
				struct weft_path path = { .size = sizeof(path) };

				assert_int_equal(accesses[k].flight.status, WEFT_OK);
				if (puts[k])
					assert_true(is_whole(&accesses[k], memory));
				else
					assert_got(&accesses[k], memory);
				assert_int_equal(weft_op_path(accesses[k].flight.op, &path), 0);
				retries += path.retries;
			}
			free_all(accesses, count);
			close_world();
		}
	}
	assert_true(retries > 0);
}

static void go_on_in_each_way(const bool *puts, unsigned count)
{
	for (unsigned k = 0; k < WF_COUNT(ways); k++) {
		how = ways[k];
		go_on_over_the_next_rail(puts, count, k % 2);
		how = BY_LOAN;
	}
}

static void a_get_goes_on_over_the_next_rail(void **state)
{
	(void)state;
	go_on_in_each_way((bool[]){ false }, 1);
}

static void gets_that_share_a_loan_go_on_over_the_next_rail(void **state)
{
	(void)state;
	go_on_in_each_way((bool[4]){ false }, 4);
}

static void a_put_goes_on_over_the_next_rail(void **state)
{
	(void)state;
	go_on_in_each_way((bool[]){ true }, 1);
	go_on_in_each_way((bool[]){ true, true, false }, 3);
}

static void a_loan_is_used_again_after_the_rail_has_failed(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], true);
		make_blocks(&accesses[0], 0, WINDOW_BYTES);
		for (unsigned k = 0; k < 3; k++) {
			begin_get(&accesses[0], LIMIT_NS);
			land(accesses, 1);
			assert_int_equal(accesses[0].flight.status, WEFT_OK);
			assert_got(&accesses[0], memory);
			free_all(accesses, 1);
			wf_world_break_rail(PEER, OWNER, true);
			wf_world_pass(20 * MS);
			wf_world_break_rail(PEER, OWNER, false);
			wf_world_pass(k * 20 * MS);
		}
		close_world();
	}
}

/* The window closes */

/* Time in which a window closes. */
static uint64_t close_ns(enum wf_world_shape shape)
{
	return (shape == WF_WORLD_CONNECTED ? 500 * MS : 2 * S) + SLACK_NS;
}

/* Close the window in the time that the header states. */
static void close_in_time(enum wf_world_shape shape)
{
	uint64_t begin_ns = wf_clock_now();

	close_window();
	assert_true(wf_clock_now() - begin_ns <= close_ns(shape));
}

/* Gets that ended well have @content, and all have ended well or with NOT_FOUND. */
static void assert_over(const struct access *all, unsigned count, const uint8_t *content)
{
	for (unsigned i = 0; i < count; i++) {
		const struct access *a = &all[i];

		if (a->flight.status == WEFT_NOT_FOUND)
			continue;
		assert_int_equal(a->flight.status, WEFT_OK);
		if (a->puts)
			assert_true(is_whole(a, content));
		else
			assert_got(a, content);
	}
}

static void close_in_phase(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	static uint8_t content[WINDOW_BYTES];
	struct wf_flight next;

	open_world(shape, met);
	for (unsigned i = 0; i < ACCESSES; i++)
		make_blocks(&accesses[i], i * (WINDOW_BYTES / ACCESSES), WINDOW_BYTES / ACCESSES);
	begin_next(&next, LIMIT_NS);
	for (unsigned i = 0; i < ACCESSES; i++) {
		if (i % 2)
			begin_put(&accesses[i], i, LIMIT_NS);
		else
			begin_get(&accesses[i], LIMIT_NS);
	}
	wf_world_pass(at_ns);
	close_in_time(shape);
	memcpy(content, memory, sizeof(content));
	assert_int_equal(next.outcomes, 1);
	assert_int_equal(next.status, WEFT_CANCELLED);
	wf_flight_free(&next, 1);
	assert_quiet();
	land(accesses, ACCESSES);
	assert_over(accesses, ACCESSES, content);
	free_all(accesses, ACCESSES);

	/* All later ones end in the same way. */
	begin_get(&accesses[0], LIMIT_NS);
	begin_put(&accesses[1], 5, LIMIT_NS);
	put_note(&next, remote, NULL, 0, 1, NULL, 0);
	wf_flight_land(&next, 1, LIMIT_NS);
	assert_int_equal(next.status, WEFT_NOT_FOUND);
	wf_flight_free(&next, 1);
	land(accesses, 2);
	assert_int_equal(accesses[0].flight.status, WEFT_NOT_FOUND);
	assert_int_equal(accesses[1].flight.status, WEFT_NOT_FOUND);
	free_all(accesses, 2);
	close_world();
}

static void a_window_that_closes_is_quiet_and_ends_its_operations(void **state)
{
	(void)state;
	in_each_phase(close_in_phase);
}

/* The deadline of a get passes while reads of the loan that was taken back are still under way. */
static void close_before_the_deadline(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	for (uint64_t more_us = 20; more_us <= 320; more_us *= 2) {
		open_world(shape, met);
		for (unsigned i = 0; i < ACCESSES; i++) {
			make_blocks(&accesses[i], i * (WINDOW_BYTES / ACCESSES),
				    WINDOW_BYTES / ACCESSES);
			begin_get(&accesses[i], at_ns + more_us * US);
		}
		wf_world_pass(at_ns);
		close_in_time(shape);
		land(accesses, ACCESSES);
		for (unsigned i = 0; i < ACCESSES; i++)
			assert_true(accesses[i].flight.status == WEFT_OK ||
				    accesses[i].flight.status == WEFT_NOT_FOUND ||
				    accesses[i].flight.status == WEFT_DEADLINE_EXCEEDED);
		free_all(accesses, ACCESSES);
		close_world();
	}
}

static void a_get_out_of_a_closed_window_is_cancelled_by_nobody(void **state)
{
	(void)state;
	in_each_phase(close_before_the_deadline);
}

/* The window closes while there is no rail, so that its peer hears of that on the next one. */
static void close_without_a_rail(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	static uint8_t content[WINDOW_BYTES];

	if (!met)
		return;
	open_world(shape, true);
	begin_halves(6);
	wf_world_pass(at_ns);
	wf_world_break_rail(PEER, OWNER, true);
	close_in_time(shape);
	memcpy(content, memory, sizeof(content));
	assert_quiet();
	wf_world_break_rail(PEER, OWNER, false);
	land(accesses, 2);
	for (unsigned i = 0; i < 2; i++)
		if (accesses[i].flight.status != WEFT_UNAVAILABLE)
			assert_over(&accesses[i], 1, content);
	free_all(accesses, 2);
	close_world();
}

static void operations_that_take_notes_have_ended_when_the_window_is_closed(void **state)
{
	static struct wf_flight takers[100]; /* more than a turn has callbacks */

	(void)state;
	open_world(WF_WORLD_CONNECTED, true);
	for (unsigned i = 0; i < WF_COUNT(takers); i++)
		begin_next(&takers[i], LIMIT_NS);
	wf_world_pass(MS);
	close_window();
	for (unsigned i = 0; i < WF_COUNT(takers); i++) {
		assert_int_equal(takers[i].outcomes, 1);
		assert_int_equal(takers[i].status, WEFT_CANCELLED);
	}
	wf_flight_free(takers, WF_COUNT(takers));
	close_world();
}

static void a_window_closes_while_there_is_no_rail(void **state)
{
	(void)state;
	in_each_phase(close_without_a_rail);
}

/* The window closes while its peer stands still, and reads on later. */
static void close_while_the_peer_stands_still(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	static uint8_t content[WINDOW_BYTES];

	if (!met)
		return;
	open_world(shape, true);
	begin_halves(6);
	wf_world_pass(at_ns);
	memcpy(content, memory, sizeof(content));
	wf_world_freeze(PEER, true);
	close_in_time(shape);
	memcpy(content + WINDOW_BYTES / 2, memory + WINDOW_BYTES / 2, WINDOW_BYTES / 2);
	wf_world_fill(memory, WINDOW_BYTES, 78);
	memcpy(wanted, memory, sizeof(wanted));
	wf_world_freeze(PEER, false);
	land(accesses, 2);
	wf_world_pass(2 * S);
	assert_true(wf_world_is_filled(memory, WINDOW_BYTES, 78));
	for (unsigned i = 0; i < 2; i++)
		if (accesses[i].flight.status == WEFT_OK)
			assert_over(&accesses[i], 1, content);
	free_all(accesses, 2);
	close_world();
}

static void a_window_closes_in_time_while_its_peer_stands_still(void **state)
{
	(void)state;
	in_each_phase(close_while_the_peer_stands_still);
}

static void a_loan_that_nobody_uses_is_withdrawn_when_its_window_closes(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], true);
		make_blocks(&accesses[0], 0, WINDOW_BYTES);
		begin_get(&accesses[0], LIMIT_NS);
		land(accesses, 1);
		free_all(accesses, 1);
		assert_true(wf_fake_is_open(memory, WINDOW_BYTES));
		close_in_time(wf_world_shapes[i]);
		assert_quiet();
		for (unsigned k = 0; k < 2; k++) {
			begin_get(&accesses[0], LIMIT_NS);
			land(accesses, 1);
			assert_int_equal(accesses[0].flight.status, WEFT_NOT_FOUND);
			assert_int_equal(weft_op_executed(accesses[0].flight.op), WEFT_EXECUTED_NO);
			free_all(accesses, 1);
		}
		close_world();
	}
}

/* Operations are given up */

static void give_up(enum wf_world_shape shape, bool met, uint64_t at_ns, bool puts, bool cancels)
{
	static uint8_t before[WINDOW_BYTES];
	struct access *a = &accesses[0];
	uint64_t timeout_ns = cancels ? LIMIT_NS : WF_MAX(at_ns, 1u);

	open_world(shape, met);
	memcpy(before, memory, sizeof(before));
	make_blocks(a, 0, WINDOW_BYTES);
	if (puts)
		begin_put(a, 3, timeout_ns);
	else
		begin_get(a, timeout_ns);
	wf_world_pass(at_ns);
	if (cancels)
		weft_cancel(a->flight.op);
	land(a, 1);
	assert_true(a->flight.ended_ns <= a->flight.started_ns + at_ns + 2 * S + SLACK_NS);
	if (a->flight.status != WEFT_OK)
		assert_int_equal(a->flight.status,
				 cancels ? WEFT_CANCELLED : WEFT_DEADLINE_EXCEEDED);
	wf_world_pass(3 * S);
	assert_same_content(a->target, a->at_end, WINDOW_BYTES);
	if (puts) {
		assert_true(a->flight.status != WEFT_OK || is_whole(a, memory));
		assert_untouched_outside(a, 1, before);
		assert_false(is_open(a));
	} else {
		assert_same_content(memory, before, sizeof(before));
	}
	if (a->flight.status == WEFT_OK && !puts)
		assert_got(a, memory);
	free_all(a, 1);

	/* The window serves on. */
	begin_get(a, LIMIT_NS);
	land(a, 1);
	assert_int_equal(a->flight.status, WEFT_OK);
	assert_got(a, memory);
	free_all(a, 1);
	close_world();
}

static void cancel_put(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	give_up(shape, met, at_ns, true, true);
}

static void put_for_a_time(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	give_up(shape, met, at_ns, true, false);
}

static void cancel_get(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	give_up(shape, met, at_ns, false, true);
}

static void get_for_a_time(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	give_up(shape, met, at_ns, false, false);
}

static void a_put_changes_nothing_after_it_was_cancelled(void **state)
{
	(void)state;
	in_each_phase(cancel_put);
}

static void a_put_changes_nothing_after_its_deadline(void **state)
{
	(void)state;
	in_each_phase(put_for_a_time);
}

static void a_get_changes_nothing_after_it_was_cancelled(void **state)
{
	(void)state;
	in_each_phase(cancel_get);
}

static void a_get_changes_nothing_after_its_deadline(void **state)
{
	(void)state;
	in_each_phase(get_for_a_time);
}

static void a_get_whose_reads_stick_ends_in_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		/* Reads of one host are made by the process itself, and end. */
		if (wf_world_shapes[i] == WF_WORLD_SAME_HOST)
			continue;
		for (unsigned puts = 0; puts < 2; puts++) {
			struct access *a = &accesses[0];

			open_world(wf_world_shapes[i], true);
			make_blocks(a, 0, WINDOW_BYTES);
			wf_fake_knobs()->stick = 300;
			if (puts)
				begin_put(a, 3, 50 * MS);
			else
				begin_get(a, 50 * MS);
			land(a, 1);
			assert_int_equal(a->flight.status, WEFT_DEADLINE_EXCEEDED);
			assert_true(a->flight.ended_ns <= a->flight.started_ns + 50 * MS +
								  close_ns(wf_world_shapes[i]));
			wf_fake_knobs()->stick = 0;
			wf_world_pass(3 * S);
			assert_same_content(a->target, a->at_end, WINDOW_BYTES);
			free_all(a, 1);
			close_world();
		}
	}
}

/* Nodes die */

static void owner_dies(enum wf_world_shape shape, bool met, uint64_t at_ns, bool restarts)
{
	/* A peer that was never met is waited for. */
	if (!met)
		return;
	open_world(shape, true);
	make_blocks(&accesses[0], 0, WINDOW_BYTES / 2);
	make_blocks(&accesses[1], WINDOW_BYTES / 2, WINDOW_BYTES / 2);
	make_blocks(&accesses[2], 0, WINDOW_BYTES / 2);
	begin_get(&accesses[0], LIMIT_NS);
	begin_put(&accesses[1], 4, LIMIT_NS);
	begin_get(&accesses[2], LIMIT_NS);
	wf_world_pass(at_ns);
	wf_world_kill(OWNER);
	if (restarts)
		wf_world_restart(OWNER);
	land(accesses, 3);
	for (unsigned i = 0; i < 3; i++) {
		enum weft_status status = accesses[i].flight.status;

		assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE ||
			    (restarts && status == WEFT_NOT_FOUND));
		assert_true(accesses[i].flight.ended_ns <=
			    accesses[i].flight.started_ns + at_ns + WF_WORLD_LOST_NS + 2 * S);
		if (status == WEFT_OK && i != 1)
			assert_got(&accesses[i], memory);
	}
	wf_world_pass(3 * S);
	for (unsigned i = 0; i < 3; i += 2)
		assert_same_content(accesses[i].local, accesses[i].at_end, WINDOW_BYTES);
	assert_false(is_open(&accesses[1]));
	free_all(accesses, 3);
	if (restarts) {
		struct weft_window *old = window;

		/* The next window has the same place in the table, and another token. */
		open_window_of(OWNER, memory, WINDOW_BYTES, WEFT_WINDOW_READ | WEFT_WINDOW_WRITE);
		assert_int_equal(window->window.name.id & 0xffffffff,
				 old->window.name.id & 0xffffffff);
		for (unsigned k = 0; k < 2; k++) {
			begin_get(&accesses[0], LIMIT_NS);
			begin_put(&accesses[1], 4, LIMIT_NS);
			land(accesses, 2);
			assert_int_equal(accesses[0].flight.status, WEFT_NOT_FOUND);
			assert_int_equal(accesses[1].flight.status, WEFT_NOT_FOUND);
			free_all(accesses, 2);
		}
		close_window();
		wf_world_pass(100 * MS);
		wf_world_assert_free(OWNER);
	}
	close_remote();
	unregister();
	wf_world_pass(100 * MS);
	wf_world_assert_free(PEER);
	assert_int_equal(wf_world_close(), 0);
}

static void kill_owner(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	owner_dies(shape, met, at_ns, false);
}

static void restart_owner(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	owner_dies(shape, met, at_ns, true);
}

static void operations_end_when_the_owner_of_their_window_dies(void **state)
{
	(void)state;
	in_each_phase(kill_owner);
}

static void a_descriptor_of_an_earlier_life_is_not_found(void **state)
{
	(void)state;
	in_each_phase(restart_owner);
}

static void peer_dies(enum wf_world_shape shape, bool met, uint64_t at_ns, bool restarts)
{
	static uint8_t copy[WINDOW_BYTES];

	open_world(shape, met);
	begin_halves(4);
	wf_world_pass(at_ns);
	wf_world_kill(PEER);
	if (restarts)
		wf_world_restart(PEER);
	wf_world_pass(WF_WORLD_LOST_NS + 2 * S);
	/* Nothing of the dead is kept, and its put moves no byte any more. */
	wf_world_assert_free(OWNER);
	memcpy(copy, memory, sizeof(copy));
	wf_world_pass(2 * S);
	assert_same_content(memory, copy, sizeof(copy));
	assert_false(wf_fake_is_open(memory, WINDOW_BYTES));
	if (restarts) {
		free_all(accesses, 2);
		remote = import(PEER, OWNER);
		begin_get(&accesses[0], LIMIT_NS);
		land(accesses, 1);
		assert_int_equal(accesses[0].flight.status, WEFT_OK);
		assert_got(&accesses[0], memory);
		close_remote();
	}
	close_in_time(shape);
	wf_world_pass(100 * MS);
	free_all(accesses, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void kill_peer(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	peer_dies(shape, met, at_ns, false);
}

static void restart_peer(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	peer_dies(shape, met, at_ns, true);
}

static void a_window_outlives_the_peers_that_use_it(void **state)
{
	(void)state;
	in_each_phase(kill_peer);
	in_each_phase(restart_peer);
}

/* A window closes although its peer has died, and nobody knows of it yet. */
static void close_after_death(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	open_world(shape, met);
	begin_halves(4);
	wf_world_pass(at_ns);
	wf_world_kill(PEER);
	close_in_time(shape);
	assert_quiet();
	free_all(accesses, 2);
	wf_world_assert_free(OWNER);
	assert_int_equal(wf_world_close(), 0);
}

static void a_window_closes_in_time_while_its_peer_is_dead(void **state)
{
	(void)state;
	in_each_phase(close_after_death);
}

/* Notes */

#define NOTES 60
#define SHORT 3000

/* Returns the number of the node whose note @next took. */
static unsigned sender_of(const struct wf_flight *next)
{
	const struct weft_peer *peer = weft_op_peer(next->op);

	assert_non_null(peer);
	return (unsigned)strtoul(weft_peer_name(peer) + 1, NULL, 10);
}

/* Notes of two peers, whose puts have one block, several blocks or none; and of gets. */
static void notes_come(enum wf_world_shape shape, unsigned workers, const struct wf_fake *fake)
{
	static struct wf_flight puts[2][NOTES], nexts[2 * NOTES];
	static uint8_t source[2][NOTES][SHORT];
	struct weft_remote *remotes[2];
	unsigned seen[2] = { 0 };

	wf_world_lose_soon();
	wf_world_set_workers(workers);
	wf_world_open(shape, 3, fake);
	memset(memory, 0, sizeof(memory));
	open_window_of(OWNER, memory, WINDOW_BYTES, WEFT_WINDOW_READ | WEFT_WINDOW_WRITE);
	for (unsigned p = 0; p < 2; p++)
		remotes[p] = import(1 + p, OWNER);
	for (unsigned n = 0; n < NOTES; n++) {
		for (unsigned p = 0; p < 2; p++) {
			uint64_t at = (p * NOTES + n) * (uint64_t)SHORT;
			struct weft_block blocks[2] = {
				{ source[p][n], at, SHORT / 2 },
				{ source[p][n] + SHORT / 2 + 1, at + SHORT / 2 + 1, SHORT / 2 - 1 },
			};

			wf_world_fill(source[p][n], SHORT, p * NOTES + n);
			put_note(&puts[p][n], remotes[p], blocks, n % 3, n, source[p][n], n * 7);
			/* Puts of one peer are in order if each waits for the one before. */
			if (n % 4 == 3)
				wf_flight_land(&puts[p][n], 1, LIMIT_NS);
		}
		if (n % 2)
			for (unsigned k = 0; k < 4; k++)
				begin_next(&nexts[2 * n - 2 + k], LIMIT_NS);
	}
	wf_flight_land(nexts, WF_COUNT(nexts), LIMIT_NS);
	for (unsigned i = 0; i < WF_COUNT(nexts); i++) {
		const struct weft_note *note;
		unsigned p;

		assert_int_equal(nexts[i].status, WEFT_OK);
		note = weft_op_note(nexts[i].op);
		assert_non_null(note);
		p = sender_of(&nexts[i]) - 1;
		assert_int_equal(note->of_get, 0);
		assert_in_range(note->number, 0, NOTES - 1);
		assert_int_equal(note->bytes, note->number * 7);
		assert_true(!note->bytes ||
			    !memcmp(note->data, source[p][note->number], note->bytes));
		if (note->number % 3)
			assert_same_content(memory + (p * NOTES + note->number) * (size_t)SHORT,
					    source[p][note->number], SHORT / 2);
		seen[p]++;
	}
	assert_int_equal(seen[0], NOTES);
	assert_int_equal(seen[1], NOTES);
	for (unsigned p = 0; p < 2; p++) {
		wf_flight_land(puts[p], NOTES, LIMIT_NS);
		for (unsigned n = 0; n < NOTES; n++)
			assert_int_equal(puts[p][n].status, WEFT_OK);
		wf_flight_free(puts[p], NOTES);
		weft_remote_close(remotes[p]);
	}
	assert_int_equal(weft_window_puts(window), 2 * NOTES);
	/* No note comes twice. */
	begin_next(&puts[0][0], 500 * MS);
	wf_flight_land(puts[0], 1, S);
	assert_int_equal(puts[0][0].status, WEFT_DEADLINE_EXCEEDED);
	wf_flight_free(puts[0], 1);
	wf_flight_free(nexts, WF_COUNT(nexts));
	close_window();
	wf_world_end();
}

static void each_note_comes_once_and_after_its_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		for (uint64_t seed = 1; seed <= 6; seed++) {
			const struct wf_fake fake = {
				.seed = seed, .delay_min_ns = 5 * US, .delay_max_ns = 300 * US,
				.lose = 10, .again = 10, .twice = 50, .nobody = 50, .eagain = 100,
				.shuffle = true, .reorder = true, .slow = 50, .slow_ns = 2 * MS,
			};

			notes_come(wf_world_shapes[i], 1 + seed % 2 * 2, &fake);
		}
	}
}

static void notes_of_one_peer_come_in_the_order_in_which_its_puts_ended(void **state)
{
	static uint8_t bytes[40 * KIB];
	struct wf_flight puts[30], nexts[30];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], true);
		for (unsigned n = 0; n < WF_COUNT(puts); n++)
			begin_next(&nexts[n], LIMIT_NS);
		for (unsigned n = 0; n < WF_COUNT(puts); n++) {
			struct weft_block block = { bytes, 0, 1 + n % 5 * 8 * KIB };

			put_note(&puts[n], remote, &block, 1, n, NULL, 0);
			if (n % 3 == 2)
				wf_flight_land(&puts[n - 2], 3, LIMIT_NS);
		}
		wf_flight_land(nexts, WF_COUNT(nexts), LIMIT_NS);
		/* Three are under way at a time; those behind them begin later. */
		for (unsigned n = 0; n < WF_COUNT(nexts); n++)
			assert_int_equal(weft_op_note(nexts[n].op)->number / 3, n / 3);
		wf_flight_free(puts, WF_COUNT(puts));
		wf_flight_free(nexts, WF_COUNT(nexts));
		close_world();
	}
}

static void a_get_brings_its_note_after_its_bytes(void **state)
{
	struct access *a = &accesses[0];
	struct weft_access_options options;
	struct wf_flight next;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], false);
		begin_next(&next, LIMIT_NS);
		make_blocks(a, 0, WINDOW_BYTES);
		options = options_of(a, LIMIT_NS);
		options.flags = WEFT_NOTE;
		options.number = 7;
		options.note = "seven";
		options.note_bytes = 5;
		a->puts = false;
		a->target = a->local;
		memset(a->local, CANARY, sizeof(a->local));
		begin(a, &options);
		wf_flight_land(&next, 1, LIMIT_NS);
		assert_int_equal(next.status, WEFT_OK);
		assert_got(a, memory);
		assert_int_equal(weft_op_note(next.op)->number, 7);
		assert_int_equal(weft_op_note(next.op)->of_get, 1);
		assert_same_content(weft_op_note(next.op)->data, "seven", 5);
		assert_int_equal(sender_of(&next), PEER);
		land(a, 1);
		assert_int_equal(a->flight.status, WEFT_OK);
		assert_int_equal(weft_window_puts(window), 0);
		wf_flight_free(&next, 1);
		free_all(a, 1);
		close_world();
	}
}

static void notes_beyond_the_limit_are_refused(void **state)
{
	static struct wf_flight puts[WEFT_NOTES_MAX + 40];
	uint8_t byte = 1;
	struct weft_block block = { &byte, 5, 1 };
	struct wf_flight next;
	unsigned refused = 0;

	(void)state;
	open_world(WF_WORLD_CONNECTED, true);
	for (unsigned n = 0; n < WF_COUNT(puts); n++)
		put_note(&puts[n], remote, &block, 1, n, NULL, 0);
	wf_flight_land(puts, WF_COUNT(puts), LIMIT_NS);
	for (unsigned n = 0; n < WF_COUNT(puts); n++) {
		if (puts[n].status == WEFT_OK)
			continue;
		assert_int_equal(puts[n].status, WEFT_RESOURCE_EXHAUSTED);
		assert_int_equal(weft_op_executed(puts[n].op), WEFT_EXECUTED_NO);
		refused++;
	}
	assert_int_equal(refused, WF_COUNT(puts) - WEFT_NOTES_MAX);
	assert_int_equal(weft_window_puts(window), WEFT_NOTES_MAX);
	wf_flight_free(puts, WF_COUNT(puts));

	/* One that was taken makes room for one. */
	begin_next(&next, LIMIT_NS);
	wf_flight_land(&next, 1, S);
	assert_int_equal(next.status, WEFT_OK);
	wf_flight_free(&next, 1);
	put_note(&puts[0], remote, &block, 1, 0, NULL, 0);
	put_note(&puts[1], remote, &block, 1, 0, NULL, 0);
	wf_flight_land(puts, 2, LIMIT_NS);
	assert_int_equal(puts[0].status + puts[1].status, WEFT_RESOURCE_EXHAUSTED);
	wf_flight_free(puts, 2);
	/* Puts of several blocks, and of none, and gets end in this way. */
	for (unsigned n = 0; n < 3; n++) {
		struct weft_block blocks[2] = { { &byte, 5, 1 }, { &byte, 50, 1 } };
		struct weft_access_options options = {
			.size = sizeof(options), .op = wf_flight_begin(&next, LIMIT_NS),
			.flags = WEFT_NOTE,
		};

		if (n == 2)
			assert_int_equal(weft_get(remote, blocks, 1, &options, &next.op), 0);
		else
			put_note(&next, remote, blocks, 2 * n, 0, NULL, 0);
		wf_flight_land(&next, 1, LIMIT_NS);
		assert_int_equal(next.status, WEFT_RESOURCE_EXHAUSTED);
		wf_flight_free(&next, 1);
	}
	/* A put without a note needs no room. */
	make_blocks(&accesses[0], 0, WINDOW_BYTES);
	begin_put(&accesses[0], 1, LIMIT_NS);
	land(accesses, 1);
	assert_int_equal(accesses[0].flight.status, WEFT_OK);
	free_all(accesses, 1);
	close_world();
}

static void an_operation_that_takes_a_note_can_be_given_up(void **state)
{
	struct wf_flight next[3], put;

	(void)state;
	open_world(WF_WORLD_CONNECTED, true);
	begin_next(&next[0], LIMIT_NS);
	begin_next(&next[1], 5 * MS);
	begin_next(&next[2], LIMIT_NS);
	wf_world_pass(MS);
	weft_cancel(next[0].op);
	wf_world_pass(10 * MS);
	assert_int_equal(next[0].status, WEFT_CANCELLED);
	assert_int_equal(next[1].status, WEFT_DEADLINE_EXCEEDED);
	assert_null(weft_op_note(next[0].op));
	assert_null(weft_op_peer(next[0].op));
	put_note(&put, remote, NULL, 0, 3, NULL, 0);
	wf_flight_land(&next[2], 1, S);
	wf_flight_land(&put, 1, S);
	assert_int_equal(next[2].status, WEFT_OK);
	assert_int_equal(weft_op_note(next[2].op)->number, 3);
	assert_int_equal(weft_op_note(next[2].op)->bytes, 0);
	wf_flight_free(next, 3);
	wf_flight_free(&put, 1);
	close_world();
}

/* Accounts */

static void a_loan_that_is_given_back_is_charged_to_nobody(void **state)
{
	uint64_t kept;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], true);
		wf_world_pass(100 * MS);
		kept = wf_world_count(OWNER).kept_bytes;
		make_blocks(&accesses[0], 0, WINDOW_BYTES);
		begin_get(&accesses[0], LIMIT_NS);
		land(accesses, 1);
		free_all(accesses, 1);
		wf_world_pass(100 * MS);
		assert_true(wf_world_count(OWNER).kept_bytes > kept);
		assert_true(wf_fake_is_open(memory, WINDOW_BYTES));
		close_remote();
		wf_world_pass(100 * MS);
		assert_int_equal(wf_world_count(OWNER).kept_bytes, kept);
		assert_false(wf_fake_is_open(memory, WINDOW_BYTES));
		wf_world_assert_free(OWNER);
		wf_world_assert_free(PEER);
		close_window();
		wf_world_end();
	}
}

/* More windows than a peer may hold of, as WEFT_PEER_BYTES is 1M. */
#define MANY 200

/* Get the first byte of @from to @to, with a note. */
static void get_one(struct weft_remote *from, uint8_t *to)
{
	struct wf_flight f = { 0 };
	const struct weft_block block = { .local = to, .bytes = 1 };
	struct weft_access_options options = {
		.size = sizeof(options), .op = wf_flight_begin(&f, LIMIT_NS), .flags = WEFT_NOTE,
	};

	assert_int_equal(weft_get(from, &block, 1, &options, &f.op), 0);
	wf_flight_land(&f, 1, LIMIT_NS);
	assert_int_equal(f.status, WEFT_OK);
	wf_flight_free(&f, 1);
}

static void a_peer_reads_more_windows_than_it_may_hold(void **state)
{
	static struct weft_window *windows[MANY];
	static struct weft_remote *remotes[MANY];
	static uint8_t local[MANY];

	(void)state;
	set("WEFT_PEER_BYTES", "1M");
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_nodes(wf_world_shapes[i], 2);
		wf_world_connect(PEER, OWNER);
		for (unsigned n = 0; n < MANY; n++) {
			open_window_of(OWNER, memory + n, 1, WEFT_WINDOW_READ);
			windows[n] = window;
			remotes[n] = import(PEER, OWNER);
		}
		for (unsigned round = 0; round < 2; round++) {
			memset(local, CANARY, sizeof(local));
			for (unsigned n = 0; n < MANY; n++)
				get_one(remotes[n], &local[n]);
			assert_same_content(local, memory, MANY);
		}
		for (unsigned n = 0; n < MANY; n++) {
			weft_remote_close(remotes[n]);
			assert_int_equal(weft_window_close(windows[n]), 0);
		}
		window = NULL;
		wf_world_assert_free(OWNER);
		wf_world_assert_free(PEER);
		wf_world_end();
	}
	unsetenv("WEFT_PEER_BYTES");
}

static void operations_go_on_after_their_remote_window_was_closed(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		for (unsigned met = 0; met < 2; met++) {
			open_world(wf_world_shapes[i], met);
			begin_halves(8);
			wf_world_pass(met * 200 * US);
			close_remote();
			land(accesses, 2);
			assert_int_equal(accesses[0].flight.status, WEFT_OK);
			assert_int_equal(accesses[1].flight.status, WEFT_OK);
			assert_got(&accesses[0], memory);
			assert_true(is_whole(&accesses[1], memory));
			free_all(accesses, 2);
			wf_world_pass(100 * MS);
			assert_false(wf_fake_is_open(memory, WINDOW_BYTES));
			close_window();
			wf_world_end();
		}
	}
}

/* The remote window is closed while its loan is asked for, and the get that asked is over. */
static void close_remote_in_phase(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	open_world(shape, met);
	make_blocks(&accesses[0], 0, WINDOW_BYTES);
	begin_get(&accesses[0], LIMIT_NS);
	wf_world_pass(at_ns);
	weft_cancel(accesses[0].flight.op);
	close_remote();
	land(accesses, 1);
	free_all(accesses, 1);
	wf_world_pass(3 * S);
	wf_world_assert_free(OWNER);
	wf_world_assert_free(PEER);
	assert_false(wf_fake_is_open(memory, WINDOW_BYTES));
	close_in_time(shape);
	unregister();
	wf_world_end();
}

static void a_remote_window_gives_its_loan_back_in_each_phase(void **state)
{
	(void)state;
	in_each_phase(close_remote_in_phase);
}

/* Nodes close */

static void leave_in_phase(enum wf_world_shape shape, bool met, uint64_t at_ns, unsigned leaves)
{
	static uint8_t copy[WINDOW_BYTES];
	struct wf_flight next;

	open_world(shape, met);
	begin_next(&next, LIMIT_NS);
	for (unsigned i = 0; i < ACCESSES; i++)
		make_blocks(&accesses[i], i * (WINDOW_BYTES / ACCESSES), WINDOW_BYTES / ACCESSES);
	for (unsigned i = 0; i < ACCESSES; i++) {
		if (i % 2)
			begin_put(&accesses[i], i, 3 * S);
		else
			begin_get(&accesses[i], 3 * S);
	}
	wf_world_pass(at_ns);
	wf_world_leave(leaves);
	if (leaves == OWNER) {
		assert_int_equal(next.status, WEFT_CANCELLED);
		assert_false(wf_fake_is_open(memory, WINDOW_BYTES));
		assert_false(wf_fake_is_read(memory, WINDOW_BYTES));
	} else {
		for (unsigned i = 0; i < ACCESSES; i++) {
			assert_int_equal(accesses[i].flight.outcomes, 1);
			if (accesses[i].flight.status != WEFT_OK)
				assert_int_equal(accesses[i].flight.status, WEFT_CANCELLED);
			if (!accesses[i].puts)
				assert_same_content(accesses[i].local, accesses[i].at_end,
						    WINDOW_BYTES);
		}
	}
	memcpy(copy, memory, sizeof(copy));
	land(accesses, ACCESSES);
	wf_world_pass(3 * S);
	if (leaves == OWNER)
		assert_same_content(memory, copy, sizeof(copy));
	for (unsigned i = 0; i < ACCESSES; i++)
		if (!accesses[i].puts)
			assert_same_content(accesses[i].local, accesses[i].at_end, WINDOW_BYTES);
	free_all(accesses, ACCESSES);
	if (leaves == OWNER) {
		close_remote();
		wf_world_pass(100 * MS);
		wf_world_assert_free(PEER);
	} else {
		close_in_time(shape);
		wf_world_pass(100 * MS);
		wf_world_assert_free(OWNER);
	}
	wf_flight_free(&next, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void owner_leaves(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	leave_in_phase(shape, met, at_ns, OWNER);
}

static void peer_leaves(enum wf_world_shape shape, bool met, uint64_t at_ns)
{
	leave_in_phase(shape, met, at_ns, PEER);
}

static void a_node_closes_with_open_windows_that_are_in_use(void **state)
{
	(void)state;
	in_each_phase(owner_leaves);
}

static void a_node_closes_with_remote_windows_in_use(void **state)
{
	(void)state;
	in_each_phase(peer_leaves);
}

/* Workers */

#define PEERS 6

/* Peers of three workers use one window, which closes in the middle in the second round. */
static void use_from_all_workers(enum wf_world_shape shape, bool closes)
{
	struct weft_remote *remotes[PEERS];
	struct wf_flight nexts[PEERS];

	wf_world_set_workers(3);
	open_nodes(shape, 1 + PEERS);
	open_window_of(OWNER, memory, WINDOW_BYTES, WEFT_WINDOW_READ | WEFT_WINDOW_WRITE);
	for (unsigned i = 0; i < PEERS; i++) {
		begin_next(&nexts[i], LIMIT_NS);
		remotes[i] = import(1 + i, OWNER);
	}
	for (unsigned i = 0; i < PEERS; i++) {
		struct access *a = &accesses[i];
		struct weft_access_options options = options_of(a, LIMIT_NS);

		make_blocks(a, i * (WINDOW_BYTES / PEERS), WINDOW_BYTES / PEERS);
		a->puts = i % 2;
		a->target = a->puts ? memory : a->local;
		wf_world_fill(a->local, sizeof(a->local), i);
		if (!a->puts)
			memset(a->local, CANARY, sizeof(a->local));
		options.flags = WEFT_NOTE;
		options.number = i;
		remote = remotes[i];
		begin(a, &options);
	}
	if (closes) {
		wf_world_pass(2 * MS);
		close_in_time(shape);
		assert_quiet();
	}
	land(accesses, PEERS);
	wf_world_pass(100 * MS);
	for (unsigned i = 0; i < PEERS; i++) {
		assert_int_equal(nexts[i].outcomes, 1);
		if (closes)
			continue;
		assert_int_equal(nexts[i].status, WEFT_OK);
		assert_int_equal(accesses[i].flight.status, WEFT_OK);
		if (accesses[i].puts)
			assert_true(is_whole(&accesses[i], memory));
		else
			assert_got(&accesses[i], memory);
	}
	wf_flight_free(nexts, PEERS);
	free_all(accesses, PEERS);
	for (unsigned i = 0; i < PEERS; i++)
		weft_remote_close(remotes[i]);
	if (!closes)
		close_window();
	wf_world_end();
}

static void peers_of_all_workers_share_a_window(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		use_from_all_workers(wf_world_shapes[i], false);
		use_from_all_workers(wf_world_shapes[i], true);
	}
}

/*
 * Both nodes dial each other, and find out that two links are one peer, which may be another
 * worker's: operations begin before, meanwhile and afterwards.
 */
static void cross(enum wf_world_shape shape, unsigned workers, uint64_t at_ns)
{
	struct wf_flight pings[2];

	wf_world_set_workers(workers);
	open_world(shape, false);
	wf_flight_ping(&pings[0], OWNER, PEER, S);
	wf_flight_ping(&pings[1], PEER, OWNER, S);
	wf_world_pass(at_ns);
	begin_halves(3);
	land(accesses, 2);
	assert_int_equal(accesses[0].flight.status, WEFT_OK);
	assert_int_equal(accesses[1].flight.status, WEFT_OK);
	assert_got(&accesses[0], memory);
	assert_true(is_whole(&accesses[1], memory));
	free_all(accesses, 2);
	wf_flight_land(pings, 2, S);
	wf_flight_free(pings, 2);
	close_world();
}

static void operations_go_on_when_two_links_become_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		for (unsigned round = 0; round < 60; round++) {
			how = round % 2 ? LISTED : BY_LOAN;
			cross(wf_world_shapes[i], 1 + round % 3, round * 40 * US);
			how = BY_LOAN;
		}
	}
}

/* Forgeries */

/* Flip a bit of the descriptor's byte @at, and use the window of that. */
static void forge(size_t at, uint8_t bits, enum weft_status status)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);

	assert_int_equal(weft_window_describe(window, descriptor, &bytes), 0);
	descriptor[at] ^= bits;
	assert_int_equal(weft_window_import(wf_world_peer(PEER, OWNER), descriptor, bytes, &remote),
			 0);
	accesses[0].count = accesses[1].count = 1;
	accesses[0].blocks[0] = (struct weft_block){ accesses[0].local,
						     weft_remote_bytes(remote) - 1, 1 };
	accesses[1].blocks[0] = (struct weft_block){ accesses[1].local,
						     weft_remote_bytes(remote) - 1, 1 };
	begin_get(&accesses[0], LIMIT_NS);
	land(accesses, 1);
	assert_int_equal(accesses[0].flight.status,
			 status == WEFT_PERMISSION_DENIED ? WEFT_OK : status);
	free_all(accesses, 1);
	if (weft_remote_rights(remote) & WEFT_WINDOW_WRITE) {
		begin_put(&accesses[1], 1, LIMIT_NS);
		land(&accesses[1], 1);
		assert_int_equal(accesses[1].flight.status, status);
		free_all(&accesses[1], 1);
	}
	close_remote();
}

static void a_descriptor_that_is_forged_opens_nothing(void **state)
{
	static uint8_t copy[WINDOW_BYTES];

	(void)state;
	open_nodes(WF_WORLD_CONNECTED, 2);
	open_window_of(OWNER, memory, WINDOW_BYTES - 8, WEFT_WINDOW_READ);
	memcpy(copy, memory, sizeof(copy));
	/* Rights and length of the descriptor are what the peer believes. */
	forge(WF_ACCESS_DESCRIPTOR_BYTES - 1, WEFT_WINDOW_WRITE, WEFT_PERMISSION_DENIED);
	close_window();
	open_window_of(OWNER, memory, WINDOW_BYTES - 8, WEFT_WINDOW_READ | WEFT_WINDOW_WRITE);
	for (size_t at = 4; at < 4 + 8 + WF_ACCESS_TOKEN_BYTES; at++)
		forge(at, 1, WEFT_NOT_FOUND);
	forge(4 + 8 + WF_ACCESS_TOKEN_BYTES, 1, WEFT_OUT_OF_RANGE);
	forge(4 + 8 + WF_ACCESS_TOKEN_BYTES + 6, 1, WEFT_OUT_OF_RANGE);
	assert_same_content(memory, copy, sizeof(copy));
	close_world();
}

/* An owner that lends its window with a checksum, which nobody can check block by block. */
static void a_loan_with_a_checksum_is_refused(void **state)
{
	const size_t bytes = 64 * KIB;
	uint8_t *local = malloc(bytes / 2);
	struct weft_block blocks[2] = { { local, 0, bytes / 2 }, { local, bytes / 2, bytes / 2 } };
	struct wf_engine *engine;
	struct wf_flight f;

	(void)state;
	open_nodes(WF_WORLD_CONNECTED, 2);
	wf_world_connect(PEER, OWNER);
	open_window_of(OWNER, memory, bytes, WEFT_WINDOW_READ);
	remote = import(PEER, OWNER);
	engine = &wf_world_node(OWNER)->workers[0].engine;
	WF_LIST_EACH(at, &engine->link_list)
		WF_CONTAINER(at, struct wf_link, node)->peer->checksum = true;
	for (unsigned k = 0; k < 2; k++) {
		struct weft_access_options options = { .size = sizeof(options),
						       .op = wf_flight_begin(&f, LIMIT_NS) };

		assert_int_equal(weft_get(remote, blocks, 2, &options, &f.op), 0);
		wf_flight_land(&f, 1, LIMIT_NS);
		assert_int_equal(f.status, WEFT_INTERNAL);
		assert_non_null(strstr(weft_op_message(f.op), "lends another window"));
		wf_flight_free(&f, 1);
	}
	free(local);
	close_world();
}

/* Checksums */

static void bytes_that_were_damaged_on_their_way_are_data_loss(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) { /* nothing damages the reads of one host */
		for (unsigned puts = 0; puts < 2; puts++) {
			struct access *a = &accesses[0];

			how = SUMMED;
			open_world(wf_world_shapes[i], true);
			how = BY_LOAN;
			make_blocks(a, 0, WINDOW_BYTES);
			for (unsigned damaged = 0; damaged < 2; damaged++) {
				wf_fake_knobs()->flip_at = !damaged ? NULL :
					puts ? (uint8_t *)a->blocks[3].local + 9
					     : memory + a->blocks[3].remote + 9;
				if (puts)
					begin_put(a, 2, LIMIT_NS);
				else
					begin_get(a, LIMIT_NS);
				land(a, 1);
				assert_int_equal(a->flight.status,
						 damaged ? WEFT_DATA_LOSS : WEFT_OK);
				if (!damaged && puts)
					assert_true(is_whole(a, memory));
				else if (!damaged)
					assert_got(a, memory);
				free_all(a, 1);
			}
			wf_fake_knobs()->flip_at = NULL;
			close_world();
		}
	}
}

/* A put is not said to have done nothing once its bytes were written. */
static void a_put_that_was_written_and_failed_may_have_been_executed(void **state)
{
	struct access *a = &accesses[0];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		how = SUMMED;
		open_world(wf_world_shapes[i], true);
		how = BY_LOAN;
		make_blocks(a, 0, WINDOW_BYTES);
		a->count = 1;
		wf_fake_knobs()->flip_at = (uint8_t *)a->blocks[0].local + 9;
		begin_put(a, 2, LIMIT_NS);
		land(a, 1);
		assert_int_equal(a->flight.status, WEFT_DATA_LOSS);
		assert_int_equal(weft_op_executed(a->flight.op), WEFT_EXECUTED_MAYBE);
		assert_null(strstr(weft_op_message(a->flight.op), "did not open"));
		wf_fake_knobs()->flip_at = NULL;
		free_all(a, 1);
		close_world();
	}
}

/* Lanes */

/* Publishing */

static void look_for(struct wf_flight *f, const char *key, uint64_t timeout_ns)
{
	struct weft_op_options options = wf_flight_begin(f, timeout_ns);

	assert_int_equal(weft_window_find(wf_world_peer(PEER, OWNER), key, strlen(key), &options,
					  &f->op), 0);
}

static void get_first_bytes(struct weft_remote *from)
{
	struct weft_access_options options = { .size = sizeof(options) };
	const struct weft_block block = { accesses[0].local, 0, 100 };
	struct wf_flight f;

	options.op = wf_flight_begin(&f, LIMIT_NS);
	assert_int_equal(weft_get(from, &block, 1, &options, &f.op), 0);
	wf_flight_land(&f, 1, LIMIT_NS);
	assert_int_equal(f.status, WEFT_OK);
	assert_same_content(accesses[0].local, memory, 100);
	wf_flight_free(&f, 1);
}

static void a_window_is_found_by_the_key_that_it_is_published_by(void **state)
{
	struct weft_remote *found[3];
	struct wf_flight f[3];

	(void)state;
	how = BY_LOAN;
	open_world(WF_WORLD_CONNECTED, false);
	/* Nothing is published yet: the first must ask again. */
	look_for(&f[0], "weights", LIMIT_NS);
	wf_world_pass(300 * MS);
	assert_int_equal(f[0].outcomes, 0);
	assert_int_equal(weft_window_publish(window, "caches", 6), 0);
	wf_world_pass(300 * MS);
	assert_int_equal(f[0].outcomes, 0);
	assert_int_equal(weft_window_publish(window, "weights", 7), 0);
	look_for(&f[1], "caches", LIMIT_NS);
	look_for(&f[2], "weights", LIMIT_NS);
	assert_int_equal(weft_op_remote(f[1].op, &found[1]), -EINVAL);
	wf_flight_land(f, 3, S);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(f[i].status, WEFT_OK);
		assert_int_equal(weft_op_remote(f[i].op, &found[i]), 0);
		assert_int_equal(weft_remote_bytes(found[i]), WINDOW_BYTES);
		get_first_bytes(found[i]);
		weft_remote_close(found[i]);
	}
	wf_flight_free(f, 3);
	weft_remote_close(remote);
	assert_int_equal(wf_world_close(), 0);
}

static void a_key_is_free_again_when_its_window_has_closed(void **state)
{
	struct weft_window *other;
	struct weft_remote *found;
	struct wf_flight f;

	(void)state;
	how = BY_LOAN;
	open_world(WF_WORLD_CONNECTED, true);
	assert_int_equal(weft_window_publish(window, "k", 1), 0);
	assert_int_equal(weft_window_open(wf_world_node(OWNER), memory, 200, WEFT_WINDOW_READ,
					  &other), 0);
	assert_int_equal(weft_window_publish(other, "k", 1), -EEXIST);
	assert_int_equal(weft_window_close(window), 0);
	look_for(&f, "k", 900 * MS);
	wf_flight_land(&f, 1, S);
	assert_int_equal(f.status, WEFT_NOT_FOUND);
	assert_int_equal(weft_op_remote(f.op, &found), -EINVAL);
	wf_flight_free(&f, 1);
	assert_int_equal(weft_window_publish(other, "k", 1), 0);
	look_for(&f, "k", S);
	wf_flight_land(&f, 1, S);
	assert_int_equal(weft_op_remote(f.op, &found), 0);
	assert_int_equal(weft_remote_bytes(found), 200);
	wf_flight_free(&f, 1);
	weft_remote_close(found);
	weft_remote_close(remote);
	assert_int_equal(wf_world_close(), 0);
}

/* Two columns of a matrix, which change their order on the way. */
static void a_list_of_even_distances_moves_what_it_says(void **state)
{
	enum { ROWS = 8, ROW = 1000, CELL = 40 };
	const struct weft_strided strided = {
		.first = { .local = accesses[0].local + (ROWS - 1) * CELL, .remote = 300, .bytes = CELL },
		.local_stride = -CELL, .remote_stride = ROW, .count = ROWS,
	};
	struct wf_flight *f = &accesses[0].flight;
	struct weft_access_options options = { .size = sizeof(options) };
	struct weft_block blocks[ROWS];

	(void)state;
	how = BY_LOAN;
	open_world(WF_WORLD_CONNECTED, true);
	weft_strided_blocks(&strided, blocks);
	options.op = wf_flight_begin(f, LIMIT_NS);
	assert_int_equal(weft_get(remote, blocks, ROWS, &options, &f->op), 0);
	wf_flight_land(f, 1, LIMIT_NS);
	assert_int_equal(f->status, WEFT_OK);
	for (unsigned i = 0; i < ROWS; i++)
		assert_same_content(accesses[0].local + (ROWS - 1 - i) * CELL,
				    memory + 300 + i * ROW, CELL);
	wf_flight_free(f, 1);
	weft_remote_close(remote);
	assert_int_equal(wf_world_close(), 0);
}

static void gets_and_puts_use_lanes(void **state)
{
	(void)state;
	for (unsigned breaks = 0; breaks < 2; breaks++) {
		struct weft_path path = { .size = sizeof(path) };

		wf_world_open(WF_WORLD_LANES, 2, NULL);
		shrink(OWNER);
		shrink(PEER);
		wf_world_fill(memory, WINDOW_BYTES, 1);
		open_window_of(OWNER, memory, WINDOW_BYTES, WEFT_WINDOW_READ | WEFT_WINDOW_WRITE);
		remote = import(PEER, OWNER);
		wf_world_connect(PEER, OWNER);
		wf_world_pass(50 * MS);
		for (unsigned k = 0; k < 2; k++) {
			struct access *a = &accesses[k];

			a->count = 2;
			a->blocks[0] = (struct weft_block){ a->local + 7, 1, WINDOW_BYTES - 4096 };
			a->blocks[1] = (struct weft_block){ a->local, WINDOW_BYTES - 9, 5 };
			if (k)
				begin_put(a, 12, LIMIT_NS);
			else
				begin_get(a, LIMIT_NS);
			wf_world_pass(k * 100 * US + 100 * US);
			if (breaks)
				wf_fake_break_domain(k ? WF_WORLD_NET_1 : WF_WORLD_NET_2);
			land(a, 1);
			assert_int_equal(a->flight.status, WEFT_OK);
			if (k)
				assert_true(is_whole(a, memory));
			else
				assert_got(a, memory);
			assert_int_equal(weft_op_path(a->flight.op, &path), 0);
			assert_true(breaks || path.rails == 2);
			free_all(a, 1);
		}
		close_world();
	}
}

/* With the name of a test, or a pattern, only that runs. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gets_and_puts_move_their_blocks_and_no_other_bytes),
		cmocka_unit_test(a_get_goes_on_over_the_next_rail),
		cmocka_unit_test(gets_that_share_a_loan_go_on_over_the_next_rail),
		cmocka_unit_test(a_put_goes_on_over_the_next_rail),
		cmocka_unit_test(a_loan_is_used_again_after_the_rail_has_failed),
		cmocka_unit_test(a_window_that_closes_is_quiet_and_ends_its_operations),
		cmocka_unit_test(a_get_out_of_a_closed_window_is_cancelled_by_nobody),
		cmocka_unit_test(operations_that_take_notes_have_ended_when_the_window_is_closed),
		cmocka_unit_test(a_window_closes_while_there_is_no_rail),
		cmocka_unit_test(a_window_closes_in_time_while_its_peer_stands_still),
		cmocka_unit_test(a_loan_that_nobody_uses_is_withdrawn_when_its_window_closes),
		cmocka_unit_test(a_put_changes_nothing_after_it_was_cancelled),
		cmocka_unit_test(a_put_changes_nothing_after_its_deadline),
		cmocka_unit_test(a_get_changes_nothing_after_it_was_cancelled),
		cmocka_unit_test(a_get_changes_nothing_after_its_deadline),
		cmocka_unit_test(a_get_whose_reads_stick_ends_in_time),
		cmocka_unit_test(operations_end_when_the_owner_of_their_window_dies),
		cmocka_unit_test(a_descriptor_of_an_earlier_life_is_not_found),
		cmocka_unit_test(a_window_outlives_the_peers_that_use_it),
		cmocka_unit_test(a_window_closes_in_time_while_its_peer_is_dead),
		cmocka_unit_test(each_note_comes_once_and_after_its_bytes),
		cmocka_unit_test(notes_of_one_peer_come_in_the_order_in_which_its_puts_ended),
		cmocka_unit_test(a_get_brings_its_note_after_its_bytes),
		cmocka_unit_test(notes_beyond_the_limit_are_refused),
		cmocka_unit_test(an_operation_that_takes_a_note_can_be_given_up),
		cmocka_unit_test(a_loan_that_is_given_back_is_charged_to_nobody),
		cmocka_unit_test(a_peer_reads_more_windows_than_it_may_hold),
		cmocka_unit_test(operations_go_on_after_their_remote_window_was_closed),
		cmocka_unit_test(a_remote_window_gives_its_loan_back_in_each_phase),
		cmocka_unit_test(a_node_closes_with_open_windows_that_are_in_use),
		cmocka_unit_test(a_node_closes_with_remote_windows_in_use),
		cmocka_unit_test(peers_of_all_workers_share_a_window),
		cmocka_unit_test(operations_go_on_when_two_links_become_one),
		cmocka_unit_test(a_descriptor_that_is_forged_opens_nothing),
		cmocka_unit_test(a_loan_with_a_checksum_is_refused),
		cmocka_unit_test(bytes_that_were_damaged_on_their_way_are_data_loss),
		cmocka_unit_test(a_put_that_was_written_and_failed_may_have_been_executed),
		cmocka_unit_test(a_window_is_found_by_the_key_that_it_is_published_by),
		cmocka_unit_test(a_key_is_free_again_when_its_window_has_closed),
		cmocka_unit_test(a_list_of_even_distances_moves_what_it_says),
		cmocka_unit_test(gets_and_puts_use_lanes),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
