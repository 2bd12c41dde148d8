/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache of keys and values, of which one process fills blocks and another takes those that it
 * needs, in one operation, to free places of its own cache.
 *
 *   kv prefill                     prints its address and the descriptor of its cache, and waits
 *   kv decode ADDRESS DESCRIPTOR   gets blocks of it
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define BLOCKS 512                /* of a cache */
#define BLOCK_BYTES (64 * 1024)   /* 16 tokens of some model */
#define WANTED 200
#define CACHE_BYTES ((size_t)BLOCKS * BLOCK_BYTES)

static void check(int err)
{
	if (err) {
		fprintf(stderr, "kv: %s\n", weft_error());
		exit(1);
	}
}

static void *cache_of(size_t bytes)
{
	void *cache = malloc(bytes);

	if (!cache) {
		fprintf(stderr, "kv: no memory for a cache\n");
		exit(1);
	}
	return cache;
}

/* The content of block @n, which a model would have computed. */
static void fill(unsigned char *block, unsigned n)
{
	for (size_t i = 0; i < BLOCK_BYTES; i++)
		block[i] = (unsigned char)(n * 7 + i);
}

static void print_descriptor(const struct weft_window *window)
{
	unsigned char descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);

	check(weft_window_describe(window, descriptor, &bytes));
	for (size_t i = 0; i < bytes; i++)
		printf("%02x", descriptor[i]);
	printf("\n");
	fflush(stdout);
}

/* Fill the cache, let others read it, and close it when the one reader says that it has all. */
static void prefill(struct weft_node *node)
{
	struct weft_op_options forever = WEFT_OP_OPTIONS_INIT;
	unsigned char *cache = cache_of(CACHE_BYTES);
	const struct weft_note *note;
	struct weft_window *window;
	struct weft_op *op;

	for (unsigned n = 0; n < BLOCKS; n++)
		fill(cache + (size_t)n * BLOCK_BYTES, n);
	check(weft_window_open(node, cache, CACHE_BYTES, WEFT_WINDOW_READ, &window));
	printf("%s ", weft_node_address(node));
	print_descriptor(window);

	forever.timeout_ns = WEFT_FOREVER;
	check(weft_window_next(window, &forever, &op));
	check(weft_wait(op, WEFT_FOREVER));
	note = weft_op_note(op);
	if (note)
		printf("request %u: %.*s\n", note->number, (int)note->bytes,
		       (const char *)note->data);
	weft_op_free(op);
	check(weft_window_close(window)); /* nobody reads the cache any more */
	free(cache);
}

static size_t read_descriptor(const char *hex, unsigned char *descriptor)
{
	size_t bytes = 0;
	unsigned byte;

	while (bytes < WEFT_DESCRIPTOR_BYTES_MAX && sscanf(hex + 2 * bytes, "%2x", &byte) == 1)
		descriptor[bytes++] = (unsigned char)byte;
	return bytes;
}

/* Places of the wanted blocks: there as the other process has put them, here where one is free. */
static unsigned place_there(unsigned i)
{
	return (i * 37 + 5) % BLOCKS;
}

static unsigned place_here(unsigned i)
{
	return (i * 5 + 2) % BLOCKS;
}

static void decode(struct weft_node *node, const char *address, const char *hex)
{
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	unsigned char descriptor[WEFT_DESCRIPTOR_BYTES_MAX], *expected = cache_of(BLOCK_BYTES);
	unsigned char *cache = cache_of(CACHE_BYTES);
	struct weft_block blocks[WANTED];
	struct weft_region *region;
	struct weft_remote *remote;
	enum weft_status status;
	struct weft_peer *peer;
	struct weft_op *op;

	check(weft_peer_open(node, address, &peer));
	check(weft_window_import(peer, descriptor, read_descriptor(hex, descriptor), &remote));
	/* Once for all requests: with some NICs registering takes longer than a transfer. */
	check(weft_register(node, cache, CACHE_BYTES, &region));
	for (unsigned i = 0; i < WANTED; i++)
		blocks[i] = (struct weft_block){
			.local = cache + (size_t)place_here(i) * BLOCK_BYTES,
			.remote = (uint64_t)place_there(i) * BLOCK_BYTES,
			.bytes = BLOCK_BYTES,
		};
	options.flags = WEFT_NOTE;
	options.number = 1;
	options.note = "its blocks can go";
	options.note_bytes = strlen(options.note);
	check(weft_get(remote, blocks, WANTED, &options, &op));
	check(weft_finish(op, &status));
	if (status != WEFT_OK) {
		fprintf(stderr, "kv: %s\n", weft_error());
		exit(1);
	}
	for (unsigned i = 0; i < WANTED; i++) {
		fill(expected, place_there(i));
		if (memcmp(blocks[i].local, expected, BLOCK_BYTES)) {
			fprintf(stderr, "kv: block %u is not what was filled\n", i);
			exit(1);
		}
	}
	printf("%d blocks of %d bytes\n", WANTED, BLOCK_BYTES);
	check(weft_unregister(region));
	weft_remote_close(remote);
	weft_peer_close(peer);
	free(cache);
	free(expected);
}

int main(int argc, char **argv)
{
	struct weft_node *node;

	check(weft_node_open(NULL, &node));
	if (argc == 2 && !strcmp(argv[1], "prefill")) {
		prefill(node);
	} else if (argc == 4 && !strcmp(argv[1], "decode")) {
		decode(node, argv[2], argv[3]);
	} else {
		fprintf(stderr, "usage: kv prefill | kv decode ADDRESS DESCRIPTOR\n");
		return 2;
	}
	check(weft_node_close(node));
	return 0;
}
