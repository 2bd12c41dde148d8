/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that stays registered, over every provider of this host where registering is dear:
 * weft_memory(3) says what is promised.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "pair.h"

#define BODY_BYTES (1024 * 1024) /* pulled, by every provider */
#define TIMES 1000

static uint64_t registrations(const struct pair *pair)
{
	struct weft_counters counters = { .size = sizeof(counters) };

	need(!weft_node_counters(pair->node, &counters));
	return counters.registrations;
}

/* Would a node of @provider keep memory registered? */
static bool is_kept(const char *provider)
{
	struct weft_node_options options = pair_options(provider);
	struct weft_fabric fabric = WEFT_FABRIC_INIT;
	struct weft_info *info;
	bool kept = false;

	need(!weft_info_open(&options, &info));
	for (size_t i = 0; i < weft_info_count(info); i++) {
		need(!weft_info_get(info, i, &fabric));
		kept |= fabric.used && !fabric.registration_is_cheap && !strcmp(fabric.cached, "yes");
	}
	weft_info_close(info);
	return kept;
}

/* The next provider at or after @at with memory that is kept; a skip if there is none at all. */
static const char *next_kept(const char *at, bool *any)
{
	while (at && !is_kept(at))
		at = pair_next();
	if (!at && !*any) {
		print_message("skip: no provider here has memory that is kept registered\n");
		skip();
	}
	*any = true;
	return at;
}

static uint8_t *map(void *at)
{
	uint8_t *base = mmap(at, BODY_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	need(base != MAP_FAILED);
	return base;
}

/* Send the memory, filled anew, and let the other side check it. */
static void send_body(struct pair *pair, uint8_t *memory, uint64_t step)
{
	int64_t count = BODY_BYTES;
	struct weft_tensor body = pair_tensor(memory, &count);
	struct weft_op *op;

	pair_fill(memory, BODY_BYTES, step);
	pair_do(&pair->other, "recv %llu cache %d %llu", (unsigned long long)step, BODY_BYTES,
		(unsigned long long)step);
	need(!weft_send(pair->peer, step, "cache", 5, &body, NULL, &op));
	pair_ended(op, WEFT_OK);
	weft_op_free(op);
	pair_do(&pair->other, "finish");
}

/* Receive into the memory. */
static void receive_body(struct pair *pair, uint8_t *memory, uint64_t step)
{
	int64_t count = BODY_BYTES;
	struct weft_tensor into = pair_tensor(memory, &count);
	struct weft_op *op;

	memset(memory, 0, BODY_BYTES);
	need(!weft_recv(pair->node, pair->peer, step, "cache", 5, &into, NULL, &op));
	pair_do(&pair->other, "send %llu cache %d %llu", (unsigned long long)step, BODY_BYTES,
		(unsigned long long)step);
	pair_ended(op, WEFT_OK);
	weft_op_free(op);
	need(pair_matches(memory, BODY_BYTES, step));
	pair_do(&pair->other, "finish");
}

static void a_buffer_sent_a_thousand_times_is_registered_once(void **state)
{
	bool any = false;

	(void)state;
	for (const char *at = next_kept(pair_first(), &any); at; at = next_kept(pair_next(), &any)) {
		struct pair pair;
		uint64_t before;
		uint8_t *memory;

		pair_open(&pair, at, NULL);
		pair_ping(pair.peer);
		memory = map(NULL);
		send_body(&pair, memory, 1);
		before = registrations(&pair);
		for (uint64_t step = 2; step <= TIMES; step++)
			send_body(&pair, memory, step);
		need(registrations(&pair) == before);
		munmap(memory, BODY_BYTES);
		pair_close(&pair);
	}
}

static void unmap(uint8_t *memory)
{
	need(!munmap(memory, BODY_BYTES));
	need(map(memory) == memory);
}

static void drop_pages(uint8_t *memory)
{
	need(!madvise(memory, BODY_BYTES, MADV_DONTNEED));
}

static void memory_that_was_mapped_anew_is_registered_anew(void **state)
{
	static void (*const changes[])(uint8_t *memory) = { unmap, drop_pages };
	static void (*const uses[])(struct pair *pair, uint8_t *memory, uint64_t step) = {
		send_body, receive_body,
	};
	bool any = false;

	(void)state;
	for (const char *at = next_kept(pair_first(), &any); at; at = next_kept(pair_next(), &any)) {
		uint8_t *memory = map(NULL);
		uint64_t step = 0;
		struct pair pair;

		pair_open(&pair, at, NULL);
		pair_ping(pair.peer);
		for (unsigned i = 0; i < 4; i++) {
			uint64_t before;

			uses[i / 2](&pair, memory, ++step);
			before = registrations(&pair);
			changes[i % 2](memory);
			uses[i / 2](&pair, memory, ++step);
			/* A receive registers nothing where the provider needs no descriptors. */
			need(i / 2 || registrations(&pair) > before);
		}
		munmap(memory, BODY_BYTES);
		pair_close(&pair);
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	static const struct pair_command commands[] = { { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		TEST(a_buffer_sent_a_thousand_times_is_registered_once),
		TEST(memory_that_was_mapped_anew_is_registered_anew),
	};

	setenv("WEFT_CACHED_KEYS", "yes", 1);
	/* Not one of those that other tests run over; where it is named nothing else serves. */
	setenv("PAIR_PROVIDERS", "tcp;ofi_rxm", 0);
	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
