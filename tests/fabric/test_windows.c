/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows: gets, puts and notes between two processes, over every provider. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define KIB 1024u
#define WINDOW_BYTES (10u << 20)
#define BOTH (WEFT_WINDOW_READ | WEFT_WINDOW_WRITE)

/* In the other process: the memory that it opens, and its window. */
static uint8_t *memory;
static struct weft_window *window;

static void other_open(struct pair *side, char *arguments)
{
	unsigned rights;

	need(sscanf(arguments, "%u", &rights) == 1);
	if (!memory)
		memory = malloc(WINDOW_BYTES);
	need(memory != NULL);
	pair_fill(memory, WINDOW_BYTES, 1);
	need(!weft_window_open(side->node, memory, WINDOW_BYTES, rights, &window));
	pair_describe(side, window);
}

/* Check that @count bytes from @at on are those of pattern @seed. */
static void other_check(struct pair *side, char *arguments)
{
	unsigned long long at, count, seed;

	(void)side;
	need(sscanf(arguments, "%llu %llu %llu", &at, &count, &seed) == 3);
	/* The peer says that its put has ended, and the count lets this thread see the bytes. */
	(void)weft_window_puts(window);
	need(pair_matches(memory + at, count, seed));
}

static void other_close(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	need(!weft_window_close(window));
	memset(memory, 0, WINDOW_BYTES);
}

static void other_wait(struct pair *side, char *arguments)
{
	unsigned long long count;

	(void)side;
	need(sscanf(arguments, "%llu", &count) == 1);
	need(!weft_window_wait(window, count, PAIR_LIMIT_NS));
	need(weft_window_puts(window) == count);
}

/* Take a note, and answer with its number, its kind, and its text. */
static void other_note(struct pair *side, char *arguments)
{
	const struct weft_note *note;
	struct weft_op *op;

	(void)arguments;
	need(!weft_window_next(window, NULL, &op));
	need(!weft_wait(op, PAIR_LIMIT_NS));
	note = weft_op_note(op);
	need(note != NULL);
	snprintf(side->reply, sizeof(side->reply), "%u %s %.*s", note->number,
		 note->of_get ? "get" : "put", (int)note->bytes, (const char *)note->data);
	weft_op_free(op);
}

static const struct pair_command commands[] = {
	{ "open_window", other_open }, { "check", other_check }, { "close_window", other_close },
	{ "wait", other_wait },   { "note", other_note },   { NULL, NULL },
};

static struct weft_remote *import(struct pair *pair, unsigned rights)
{
	return pair_import(pair, pair_do(&pair->other, "open_window %u", rights));
}

static void leave(struct pair *pair, struct weft_remote *remote)
{
	weft_remote_close(remote);
	pair_do(&pair->other, "close_window");
	pair_close(pair);
}

static struct weft_op *get(struct weft_remote *remote, void *to, uint64_t from, uint64_t bytes)
{
	const struct weft_block block = { to, from, bytes };
	struct weft_op *op;

	assert_int_equal(weft_get(remote, &block, 1, NULL, &op), 0);
	return op;
}

static struct weft_op *put(struct weft_remote *remote, void *from, uint64_t to, uint64_t bytes)
{
	const struct weft_block block = { from, to, bytes };
	struct weft_op *op;

	assert_int_equal(weft_put(remote, &block, 1, NULL, &op), 0);
	return op;
}

static void ended(struct weft_op *op, enum weft_status status)
{
	pair_wait(op);
	if (weft_op_status(op) != status)
		print_error("%s\n", weft_op_message(op));
	assert_int_equal(weft_op_status(op), status);
	weft_op_free(op);
}

static void a_get_reads_what_is_in_the_window(void **state)
{
	static const uint64_t lengths[] = { 1, 4 * KIB, 100000, WINDOW_BYTES };
	uint8_t *here = malloc(WINDOW_BYTES), *there = malloc(WINDOW_BYTES);

	(void)state;
	pair_fill(there, WINDOW_BYTES, 1);
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_remote *remote;
		struct pair pair;

		pair_open(&pair, p, NULL);
		remote = import(&pair, BOTH);
		assert_int_equal(weft_remote_bytes(remote), WINDOW_BYTES);
		assert_int_equal(weft_remote_rights(remote), BOTH);
		for (size_t i = 0; i < PAIR_COUNT(lengths); i++) {
			uint64_t from = WINDOW_BYTES - lengths[i];

			memset(here, 0, WINDOW_BYTES);
			ended(get(remote, here, from, lengths[i]), WEFT_OK);
			assert_memory_equal(here, there + from, lengths[i]);
		}
		leave(&pair, remote);
	}
	free(here);
	free(there);
}

static void a_put_is_in_the_window_when_it_has_ended(void **state)
{
	static const uint64_t lengths[] = { 1, 4 * KIB, 100000, 3000000 };
	uint8_t *here = malloc(WINDOW_BYTES);

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_remote *remote;
		struct pair pair;
		uint64_t to = 1;

		pair_open(&pair, p, NULL);
		remote = import(&pair, WEFT_WINDOW_WRITE);
		for (size_t i = 0; i < PAIR_COUNT(lengths); i++) {
			pair_fill(here, lengths[i], 10 + i);
			ended(put(remote, here, to, lengths[i]), WEFT_OK);
			pair_do(&pair.other, "check %llu %llu %zu", (unsigned long long)to,
				(unsigned long long)lengths[i], 10 + i);
			to += lengths[i];
		}
		pair_do(&pair.other, "wait %zu", PAIR_COUNT(lengths));
		leave(&pair, remote);
	}
	free(here);
}

#define BLOCKS 256
#define BLOCK_BYTES (40 * KIB) /* so that half of the blocks are enough for a second reader */

/* A list of every second block of the window, in an order of its own, to every third here. */
static size_t list_blocks(struct weft_block *blocks, uint8_t *here)
{
	size_t count = 0;

	for (size_t i = 0; i < BLOCKS; i += 2)
		blocks[count++] = (struct weft_block){
			.local = here + i * 3 / 2 * BLOCK_BYTES,
			.remote = (i * 7 + 1) % BLOCKS * BLOCK_BYTES,
			.bytes = BLOCK_BYTES,
		};
	return count;
}

static void blocks_of_one_get_land_each_in_its_place(void **state)
{
	size_t bytes = (size_t)BLOCKS * 3 / 2 * BLOCK_BYTES;
	uint8_t *here = malloc(bytes), *there = malloc(WINDOW_BYTES);
	struct weft_block blocks[BLOCKS];
	size_t count = list_blocks(blocks, here);

	(void)state;
	pair_fill(there, WINDOW_BYTES, 1);
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_remote *remote;
		struct weft_op *op;
		struct pair pair;

		pair_open(&pair, p, NULL);
		remote = import(&pair, BOTH);
		memset(here, 0xee, bytes);
		assert_int_equal(weft_get(remote, blocks, count, NULL, &op), 0);
		ended(op, WEFT_OK);
		for (size_t i = 0; i < count; i++) {
			const uint8_t *at = blocks[i].local;

			assert_memory_equal(at, there + blocks[i].remote, BLOCK_BYTES);
			assert_int_equal(at[BLOCK_BYTES], 0xee); /* what lies between is left alone */
		}
		leave(&pair, remote);
	}
	free(here);
	free(there);
}

static void blocks_of_one_put_land_each_in_its_place(void **state)
{
	size_t bytes = (size_t)BLOCKS * 3 / 2 * BLOCK_BYTES;
	uint8_t *here = malloc(bytes);
	struct weft_block blocks[BLOCKS];
	size_t count = list_blocks(blocks, here);

	(void)state;
	for (size_t i = 0; i < count; i++)
		pair_fill(blocks[i].local, BLOCK_BYTES, 100 + i);
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_remote *remote;
		struct weft_op *op;
		struct pair pair;

		pair_open(&pair, p, NULL);
		remote = import(&pair, BOTH);
		assert_int_equal(weft_put(remote, blocks, count, NULL, &op), 0);
		ended(op, WEFT_OK);
		for (size_t i = 0; i < count; i++)
			pair_do(&pair.other, "check %llu %u %zu",
				(unsigned long long)blocks[i].remote, BLOCK_BYTES, 100 + i);
		pair_do(&pair.other, "wait 1"); /* one operation is one put */
		leave(&pair, remote);
	}
	free(here);
}

static void put_with_note(struct weft_remote *remote, const struct weft_block *blocks,
			  size_t count, uint32_t number, const char *text)
{
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	struct weft_op *op;

	options.flags = WEFT_NOTE;
	options.number = number;
	options.note = text;
	options.note_bytes = strlen(text);
	assert_int_equal(weft_put(remote, blocks, count, &options, &op), 0);
	ended(op, WEFT_OK);
}

static void blocks_of_registered_memory_move_as_one_body(void **state)
{
	size_t bytes = (size_t)BLOCKS * 3 / 2 * BLOCK_BYTES;
	uint8_t *here = malloc(bytes);
	struct weft_path path = { .size = sizeof(path) };
	struct weft_block blocks[BLOCKS];
	size_t count = list_blocks(blocks, here);

	(void)state;
	for (size_t i = 0; i < count; i++)
		pair_fill(blocks[i].local, BLOCK_BYTES, 200 + i);
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_remote *remote;
		struct weft_region *region, *again;
		struct weft_op *op;
		struct pair pair;

		pair_open(&pair, p, NULL);
		remote = import(&pair, BOTH);
		assert_int_equal(weft_register(pair.node, here, bytes, &region), 0);
		assert_int_equal(weft_register(pair.node, here, bytes, &again), 0);
		assert_ptr_equal(again, region); /* the memory is registered once */
		put_with_note(remote, blocks, 1, 1, "linked"); /* a list needs a link that is up */
		assert_int_equal(weft_put(remote, blocks, count, NULL, &op), 0);
		assert_int_equal(weft_wait(op, PAIR_LIMIT_NS), 0);
		assert_int_equal(weft_op_path(op, &path), 0);
		assert_in_range(path.chunks, 1, count); /* of separate bodies each has one or more */
		ended(op, WEFT_OK);
		memset(here, 0, bytes);
		for (size_t i = 0; i < count; i++)
			pair_do(&pair.other, "check %llu %u %zu",
				(unsigned long long)blocks[i].remote, BLOCK_BYTES, 200 + i);
		for (size_t i = 0; i < count; i++)
			pair_fill(blocks[i].local, BLOCK_BYTES, 200 + i);
		assert_int_equal(weft_unregister(again), 0);
		assert_int_equal(weft_unregister(region), 0);
		leave(&pair, remote);
	}
	free(here);
}

static void a_note_comes_once_after_its_bytes(void **state)
{
	uint8_t here[2 * BLOCK_BYTES];
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;

	(void)state;
	options.flags = WEFT_NOTE;
	options.number = 9;
	for (const char *p = pair_first(); p; p = pair_next()) {
		const struct weft_block first = { here, 0, BLOCK_BYTES };
		const struct weft_block blocks[] = {
			{ here, BLOCK_BYTES, BLOCK_BYTES },
			{ here + BLOCK_BYTES, 3 * BLOCK_BYTES, BLOCK_BYTES },
		};
		struct weft_remote *remote;
		struct weft_op *op;
		struct pair pair;

		pair_open(&pair, p, NULL);
		remote = import(&pair, BOTH);
		pair_fill(here, BLOCK_BYTES, 5);
		put_with_note(remote, &first, 1, 7, "one");
		assert_string_equal(pair_do(&pair.other, "note"), "7 put one");
		pair_do(&pair.other, "check 0 %u 5", BLOCK_BYTES);
		put_with_note(remote, blocks, 2, 8, "two");
		put_with_note(remote, NULL, 0, UINT32_MAX, "");
		assert_string_equal(pair_do(&pair.other, "note"), "8 put two");
		assert_string_equal(pair_do(&pair.other, "note"), "4294967295 put ");
		assert_int_equal(weft_get(remote, blocks, 2, &options, &op), 0);
		ended(op, WEFT_OK);
		assert_string_equal(pair_do(&pair.other, "note"), "9 get ");
		pair_do(&pair.other, "wait 3"); /* a get does not count */
		leave(&pair, remote);
	}
}

static void a_window_full_of_notes_refuses_another(void **state)
{
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	uint8_t bytes[3] = { 1, 2, 3 };
	const struct weft_block blocks[] = { { bytes, 0, 1 }, { bytes + 2, 2, 1 } };
	struct weft_remote *remote;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	options.flags = WEFT_NOTE;
	pair_open(&pair, pair_any(), NULL);
	remote = import(&pair, BOTH);
	for (unsigned i = 0; i < WEFT_NOTES_MAX; i++)
		put_with_note(remote, NULL, 0, i, "");
	for (size_t count = 0; count <= PAIR_COUNT(blocks); count++) {
		assert_int_equal(weft_put(remote, blocks, count, &options, &op), 0);
		ended(op, WEFT_RESOURCE_EXHAUSTED);
	}
	assert_int_equal(weft_get(remote, blocks, 1, &options, &op), 0);
	ended(op, WEFT_RESOURCE_EXHAUSTED);
	pair_do(&pair.other, "wait %u", WEFT_NOTES_MAX);
	assert_string_equal(pair_do(&pair.other, "note"), "0 put ");
	put_with_note(remote, NULL, 0, 7, "there is a place again");
	leave(&pair, remote);
}

static void a_closed_window_is_not_found(void **state)
{
	uint8_t byte = 0;

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_remote *used, *unused;
		struct pair pair;

		pair_open(&pair, p, NULL);
		used = import(&pair, BOTH);
		ended(get(used, &byte, 0, 1), WEFT_OK);
		pair_do(&pair.other, "close_window");
		unused = import(&pair, BOTH);
		pair_do(&pair.other, "close_window");
		ended(get(used, &byte, 0, 1), WEFT_NOT_FOUND);
		ended(put(used, &byte, 0, 1), WEFT_NOT_FOUND);
		ended(get(unused, &byte, 0, 1), WEFT_NOT_FOUND);
		ended(put(unused, &byte, 0, 1), WEFT_NOT_FOUND);
		weft_remote_close(used);
		weft_remote_close(unused);
		pair_close(&pair);
	}
}

/* How gets and puts that are under way end when the window closes is left to chance, but they end. */
static void a_window_closes_under_its_users(void **state)
{
	uint8_t *here = malloc(WINDOW_BYTES);

	(void)state;
	pair_fill(here, WINDOW_BYTES, 3);
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_op *ops[16];
		struct weft_remote *remote;
		struct pair pair;

		pair_open(&pair, p, NULL);
		remote = import(&pair, BOTH);
		for (size_t i = 0; i < PAIR_COUNT(ops); i++)
			ops[i] = i % 2 ? get(remote, here, 0, WINDOW_BYTES)
				       : put(remote, here, 0, WINDOW_BYTES);
		pair_do(&pair.other, "close_window"); /* sets the memory to zeros */
		for (size_t i = 0; i < PAIR_COUNT(ops); i++) {
			assert_int_equal(weft_wait(ops[i], PAIR_LIMIT_NS), 0);
			if (weft_op_status(ops[i]) != WEFT_OK)
				assert_int_equal(weft_op_status(ops[i]), WEFT_NOT_FOUND);
			weft_op_free(ops[i]);
		}
		pair_do(&pair.other, "open_window %u", BOTH); /* nothing writes there any more */
		pair_do(&pair.other, "check 0 %u 1", WINDOW_BYTES);
		leave(&pair, remote);
	}
	free(here);
}

static void a_window_grants_its_rights_alone(void **state)
{
	const struct weft_block block = { (void *)"x", 0, 1 };
	struct weft_op *op;

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_remote *readable, *writable;
		struct pair pair;

		pair_open(&pair, p, NULL);
		readable = import(&pair, WEFT_WINDOW_READ);
		writable = import(&pair, WEFT_WINDOW_WRITE);
		assert_int_equal(weft_put(readable, &block, 1, NULL, &op), -EACCES);
		assert_int_equal(weft_get(writable, &block, 1, NULL, &op), -EACCES);
		weft_remote_close(readable);
		weft_remote_close(writable);
		pair_do(&pair.other, "close_window");
		pair_close(&pair);
	}
}

static void a_get_with_a_checksum_reads_the_same(void **state)
{
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	uint8_t *here = malloc(WINDOW_BYTES), *there = malloc(WINDOW_BYTES);
	struct weft_path path = { .size = sizeof(path) };

	(void)state;
	options.op.flags = WEFT_CHECKSUM;
	pair_fill(there, WINDOW_BYTES, 1);
	for (const char *p = pair_first(); p; p = pair_next()) {
		const struct weft_block blocks[] = {
			{ here, 5, 3000000 },
			{ here + 4000000, 4000000, 100000 },
		};
		struct weft_remote *remote;
		struct weft_op *op;
		struct pair pair;

		pair_open(&pair, p, NULL);
		remote = import(&pair, BOTH);
		memset(here, 0, WINDOW_BYTES);
		assert_int_equal(weft_get(remote, blocks, 2, &options, &op), 0);
		assert_int_equal(weft_wait(op, PAIR_LIMIT_NS), 0);
		assert_int_equal(weft_op_path(op, &path), 0);
		assert_string_equal(path.checksum, "xxh3");
		ended(op, WEFT_OK);
		assert_memory_equal(here, there + 5, 3000000);
		assert_memory_equal(here + 4000000, there + 4000000, 100000);
		assert_int_equal(weft_put(remote, blocks, 2, &options, &op), 0);
		ended(op, WEFT_OK);
		leave(&pair, remote);
	}
	free(here);
	free(there);
}

static void a_killed_owner_ends_gets_and_puts(void **state)
{
	uint8_t *here = malloc(WINDOW_BYTES);

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		struct weft_op *ops[8];
		struct weft_remote *remote;
		struct pair pair;

		pair_open(&pair, p, NULL);
		remote = import(&pair, BOTH);
		ended(get(remote, here, 0, 1), WEFT_OK);
		for (size_t i = 0; i < PAIR_COUNT(ops); i++)
			ops[i] = i % 2 ? get(remote, here, 0, WINDOW_BYTES)
				       : put(remote, here, 0, WINDOW_BYTES);
		pair_kill(&pair.other, SIGKILL);
		for (size_t i = 0; i < PAIR_COUNT(ops); i++) {
			assert_int_equal(weft_wait(ops[i], PAIR_LIMIT_NS), 0);
			if (weft_op_status(ops[i]) != WEFT_OK)
				assert_int_equal(weft_op_status(ops[i]), WEFT_UNAVAILABLE);
			weft_op_free(ops[i]);
		}
		weft_remote_close(remote);
		pair_close(&pair);
	}
	free(here);
}

static void a_forged_descriptor_opens_nothing(void **state)
{
	uint8_t forged[WEFT_DESCRIPTOR_BYTES_MAX], byte;
	struct weft_remote *remote;
	struct pair pair;
	const char *hex;
	size_t bytes = 0;
	unsigned value;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	hex = pair_do(&pair.other, "open_window %u", BOTH);
	while (sscanf(hex + 2 * bytes, "%2x", &value) == 1)
		forged[bytes++] = (uint8_t)value;
	for (size_t i = 4; i < bytes; i++) {
		forged[i] ^= 1;
		/* A length or right that is not the window's own is the owner's to refuse. */
		if (!weft_window_import(pair.peer, forged, bytes, &remote)) {
			if (i < 4 + 8 + 16)
				ended(get(remote, &byte, 0, 1), WEFT_NOT_FOUND);
			weft_remote_close(remote);
		}
		forged[i] ^= 1;
	}
	for (size_t less = 0; less < bytes; less++)
		assert_int_equal(weft_window_import(pair.peer, forged, less, &remote), -EINVAL);
	pair_do(&pair.other, "close_window");
	pair_close(&pair);
}

static void a_get_beyond_the_window_is_refused_at_once(void **state)
{
	struct weft_block block = { 0 };
	struct weft_remote *remote;
	struct weft_op *op;
	struct pair pair;
	uint8_t byte;

	(void)state;
	pair_open(&pair, pair_any(), NULL);
	remote = import(&pair, BOTH);
	block = (struct weft_block){ &byte, WINDOW_BYTES, 1 };
	assert_int_equal(weft_get(remote, &block, 1, NULL, &op), -EINVAL);
	block = (struct weft_block){ &byte, 1, UINT64_MAX };
	assert_int_equal(weft_get(remote, &block, 1, NULL, &op), -EINVAL);
	block = (struct weft_block){ NULL, 0, 1 };
	assert_int_equal(weft_put(remote, &block, 1, NULL, &op), -EINVAL);
	assert_int_equal(weft_get(remote, &block, WEFT_BLOCKS_MAX + 1, NULL, &op), -EINVAL);
	assert_int_equal(weft_get(remote, NULL, 0, NULL, &op), -EINVAL);
	leave(&pair, remote);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_get_reads_what_is_in_the_window, pair_teardown),
		cmocka_unit_test_teardown(a_put_is_in_the_window_when_it_has_ended, pair_teardown),
		cmocka_unit_test_teardown(blocks_of_one_get_land_each_in_its_place, pair_teardown),
		cmocka_unit_test_teardown(blocks_of_one_put_land_each_in_its_place, pair_teardown),
		cmocka_unit_test_teardown(blocks_of_registered_memory_move_as_one_body, pair_teardown),
		cmocka_unit_test_teardown(a_note_comes_once_after_its_bytes, pair_teardown),
		cmocka_unit_test_teardown(a_window_full_of_notes_refuses_another, pair_teardown),
		cmocka_unit_test_teardown(a_closed_window_is_not_found, pair_teardown),
		cmocka_unit_test_teardown(a_window_closes_under_its_users, pair_teardown),
		cmocka_unit_test_teardown(a_window_grants_its_rights_alone, pair_teardown),
		cmocka_unit_test_teardown(a_get_with_a_checksum_reads_the_same, pair_teardown),
		cmocka_unit_test_teardown(a_killed_owner_ends_gets_and_puts, pair_teardown),
		cmocka_unit_test_teardown(a_forged_descriptor_opens_nothing, pair_teardown),
		cmocka_unit_test_teardown(a_get_beyond_the_window_is_refused_at_once, pair_teardown),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
