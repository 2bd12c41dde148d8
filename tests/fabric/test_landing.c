/* SPDX-License-Identifier: BSD-2-Clause */
/* Landings: tensors pushed from one process into slots of another, over every provider. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define SLOTS_MAX 4
#define SLOT_BYTES (3u << 20)
#define PUSHES_MAX 32
#define CANARY 0xee

/* In the process that owns the landing. */
static uint8_t memory[SLOTS_MAX * SLOT_BYTES];
static struct weft_landing *landing;

/* In the process that pushes. */
static struct weft_remote *remote;
static struct push {
	struct weft_op *op;
	uint8_t *bytes;
	int64_t shape;
} pushes[PUSHES_MAX];

static const uint64_t lengths[] = { 1, 0, 1000, 70000, SLOT_BYTES };

/* The tensor of push @number. */
static uint64_t bytes_of(uint64_t number)
{
	return lengths[number % PAIR_COUNT(lengths)];
}

/* Pushing. */

static void push(uint64_t number, uint64_t bytes)
{
	struct weft_push_options options = WEFT_PUSH_OPTIONS_INIT;
	struct push *p = &pushes[number % PUSHES_MAX];
	struct weft_tensor tensor;

	*p = (struct push){ .bytes = malloc(bytes + 1), .shape = (int64_t)bytes };
	need(p->bytes != NULL);
	pair_fill(p->bytes, bytes, number);
	tensor = pair_tensor(p->bytes, &p->shape);
	options.number = number;
	options.op.timeout_ns = PAIR_LIMIT_NS;
	need(!weft_push(remote, &tensor, &options, &p->op));
}

static void forget(struct push *p)
{
	weft_op_free(p->op);
	free(p->bytes);
	*p = (struct push){ 0 };
}

static void pushed(uint64_t number)
{
	struct push *p = &pushes[number % PUSHES_MAX];

	pair_ended(p->op, WEFT_OK);
	forget(p);
}

static void other_import(struct pair *side, char *arguments)
{
	remote = pair_import(side, arguments);
}

static void other_leave(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	weft_remote_close(remote);
	remote = NULL;
}

/* Push FIRST to FIRST+COUNT-1, each after the end of the one before. */
static void other_push_each(struct pair *side, char *arguments)
{
	uint64_t first, count;

	(void)side;
	need(sscanf(arguments, "%" SCNu64 " %" SCNu64, &first, &count) == 2);
	for (uint64_t i = first; i < first + count; i++) {
		push(i, bytes_of(i));
		pushed(i);
	}
}

/* Begin to push FIRST to FIRST+COUNT-1, each as long as a slot. */
static void other_push_all(struct pair *side, char *arguments)
{
	uint64_t first, count;

	(void)side;
	need(sscanf(arguments, "%" SCNu64 " %" SCNu64, &first, &count) == 2);
	for (uint64_t i = first; i < first + count; i++)
		push(i, SLOT_BYTES);
}

static void other_pushed(struct pair *side, char *arguments)
{
	uint64_t first, count;

	(void)side;
	need(sscanf(arguments, "%" SCNu64 " %" SCNu64, &first, &count) == 2);
	for (uint64_t i = first; i < first + count; i++)
		pushed(i);
}

static void other_waits(struct pair *side, char *arguments)
{
	(void)side;
	need(!weft_op_ended(pushes[strtoull(arguments, NULL, 10) % PUSHES_MAX].op));
}

/* The landing of these pushes closes: each ends well or does not find it. */
static void other_closed(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	for (struct push *p = pushes; p < pushes + PUSHES_MAX; p++) {
		if (!p->op)
			continue;
		need(!weft_wait(p->op, PAIR_LIMIT_NS));
		need(weft_op_status(p->op) == WEFT_OK || weft_op_status(p->op) == WEFT_NOT_FOUND);
		forget(p);
	}
}

/* Owning. */

static void open_landing(struct weft_node *node, unsigned slots)
{
	memset(memory, CANARY, sizeof(memory));
	need(!weft_landing_open(node, memory, SLOT_BYTES, slots, &landing));
}

static void describe(struct pair *side)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);

	need(!weft_landing_describe(landing, descriptor, &bytes));
	pair_reply(side, descriptor, bytes);
}

static bool is_whole(const struct weft_op *op, uint64_t number, uint64_t bytes)
{
	const struct weft_tensor *t = weft_op_tensor(op, NULL);

	return t && t->ndim == 1 && (uint64_t)t->shape[0] == bytes && t->dtype.bits == 8 &&
	       ((uint8_t *)t->data - memory) % SLOT_BYTES == 0 &&
	       pair_matches(t->data, bytes, number);
}

/* Take the tensor that landed next, @bytes long.  Returns its number. */
static uint64_t take(struct weft_op **op)
{
	uint64_t number;

	need(!weft_landing_next(landing, NULL, op));
	pair_ended(*op, WEFT_OK);
	need(!weft_op_landed(*op, &number));
	need(weft_op_peer(*op) != NULL);
	return number;
}

static void other_open_landing(struct pair *side, char *arguments)
{
	open_landing(side->node, (unsigned)strtoul(arguments, NULL, 10));
	describe(side);
}

/* Take FIRST to FIRST+COUNT-1 in their order. */
static void other_take(struct pair *side, char *arguments)
{
	uint64_t first, count;
	struct weft_op *op;

	(void)side;
	need(sscanf(arguments, "%" SCNu64 " %" SCNu64, &first, &count) == 2);
	for (uint64_t i = first; i < first + count; i++) {
		need(take(&op) == i);
		need(is_whole(op, i, bytes_of(i)));
		weft_op_free(op);
	}
}

static void other_close_landing(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	need(!weft_landing_close(landing));
}

static const struct pair_command commands[] = {
	{ "import", other_import },       { "leave", other_leave },
	{ "push_each", other_push_each }, { "push_all", other_push_all },
	{ "pushed", other_pushed },       { "waits", other_waits },
	{ "closed", other_closed },       { "open_landing", other_open_landing },
	{ "take", other_take },           { "close_landing", other_close_landing },
	{ NULL, NULL },
};

/* Tests. */

/* Open a node in @mode with a landing, and a sender in another process. */
static void open_owner(struct pair *pair, const char *provider, unsigned mode, unsigned slots)
{
	struct weft_node_options options = pair_options(provider);

	options.mode = mode;
	pair_open(pair, provider, &options);
	open_landing(pair->node, slots);
	describe(pair);
	pair_do(&pair->other, "import %s", pair->reply);
}

static void close_owner(struct pair *pair)
{
	need(!weft_landing_close(landing));
	if (pair->other.pid)
		pair_do(&pair->other, "leave");
	pair_close(pair);
}

/*
 * End @pair, which has a @second sender.  A manual node answers the last frames of both while it
 * closes.
 */
static void close_both(struct pair *pair, struct pair_other *second)
{
	pair_do(second, "leave");
	weft_peer_close(second->peer);
	second->peer = NULL;
	close_owner(pair);
	pair_end(second);
}

static const unsigned modes[] = { WEFT_THREADED, WEFT_MANUAL };

static void tensors_land_whole_and_in_order(void **state)
{
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		for (size_t mode = 0; mode < PAIR_COUNT(modes); mode++) {
			open_owner(&pair, p, modes[mode], 2);
			pair_say(&pair.other, "push_each 100 15");
			for (uint64_t i = 100; i < 115; i++) {
				assert_int_equal(take(&op), i);
				assert_true(is_whole(op, i, bytes_of(i)));
				weft_op_free(op);
			}
			/* A manual node answers nobody until it is driven. */
			pair_ping(pair.peer);
			pair_hear(&pair.other);
			close_owner(&pair);
		}
	}
}

static void a_push_waits_until_a_slot_is_given_back(void **state)
{
	struct weft_op *held[2];
	struct pair pair;

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		uint64_t first;

		open_owner(&pair, p, WEFT_THREADED, 2);
		pair_do(&pair.other, "push_all 0 3");
		first = take(&held[0]);
		assert_int_equal(first + take(&held[1]), 1);
		pair_do(&pair.other, "pushed 0 2");
		pair_do(&pair.other, "waits 2");
		weft_op_free(held[1]);
		assert_int_equal(take(&held[1]), 2);
		pair_do(&pair.other, "pushed 2 1");
		assert_true(is_whole(held[1], 2, SLOT_BYTES));
		assert_true(is_whole(held[0], first, SLOT_BYTES));
		weft_op_free(held[0]);
		weft_op_free(held[1]);
		close_owner(&pair);
	}
}

/* Take tensors until the @count of numbers from @first on have come, once each. */
static void take_from(uint64_t first, unsigned count)
{
	uint64_t seen = 0;
	struct weft_op *op;

	while (count) {
		uint64_t number = take(&op);

		assert_true(is_whole(op, number, SLOT_BYTES));
		assert_false(seen & UINT64_C(1) << number);
		seen |= UINT64_C(1) << number;
		count -= number >= first;
		weft_op_free(op);
	}
}

static void a_killed_sender_gives_its_slots_back(void **state)
{
	struct pair_other second;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		open_owner(&pair, p, WEFT_THREADED, 2);
		pair_start(&second, p, NULL, pair.node);
		pair_do(&second, "import %s", pair.reply);
		/* The owner has met the sender, and holds one of its two slots, when it dies. */
		pair_do(&pair.other, "push_all 0 4");
		(void)take(&op);
		pair_kill(&pair.other, SIGKILL);
		pair.peer = NULL;
		pair_do(&second, "push_all 10 5");
		take_from(10, 5);
		assert_true(is_whole(op, 0, SLOT_BYTES) || is_whole(op, 1, SLOT_BYTES));
		weft_op_free(op);
		pair_do(&second, "pushed 10 5");
		close_both(&pair, &second);
	}
}

static void senders_at_once_land_all_they_push(void **state)
{
	struct pair_other second;
	struct pair pair;

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		for (size_t mode = 0; mode < PAIR_COUNT(modes); mode++) {
			open_owner(&pair, p, modes[mode], 3);
			pair_start(&second, p, NULL, pair.node);
			pair_do(&second, "import %s", pair.reply);
			pair_do(&pair.other, "push_all 0 12");
			pair_do(&second, "push_all 12 12");
			take_from(0, 24);
			pair_ping(pair.peer);
			pair_ping(second.peer);
			pair_do(&pair.other, "pushed 0 12");
			pair_do(&second, "pushed 12 12");
			close_both(&pair, &second);
		}
	}
}

static void a_landing_closes_under_its_senders(void **state)
{
	static uint8_t copy[sizeof(memory)];
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		open_owner(&pair, p, WEFT_THREADED, 2);
		pair_do(&pair.other, "push_all 0 6");
		(void)take(&op);
		assert_int_equal(weft_landing_close(landing), 0);
		memcpy(copy, memory, sizeof(copy));
		pair_do(&pair.other, "closed");
		assert_memory_equal(memory, copy, sizeof(copy));
		weft_op_free(op);
		pair_do(&pair.other, "leave");
		pair_close(&pair);
	}
}

/* A manual node pushes while it waits for the end of its pushes. */
static void a_sender_of_either_mode_pushes(void **state)
{
	struct pair pair;

	(void)state;
	for (const char *p = pair_first(); p; p = pair_next()) {
		for (size_t mode = 0; mode < PAIR_COUNT(modes); mode++) {
			struct weft_node_options options = pair_options(p);

			options.mode = modes[mode];
			pair_open(&pair, p, &options);
			remote = pair_import(&pair, pair_do(&pair.other, "open_landing 2"));
			pair_say(&pair.other, "take 0 10");
			for (uint64_t i = 0; i < 10; i++) {
				push(i, bytes_of(i));
				pushed(i);
			}
			pair_ping(pair.peer);
			pair_hear(&pair.other);
			weft_remote_close(remote);
			pair_do(&pair.other, "close_landing");
			pair_close(&pair);
		}
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(tensors_land_whole_and_in_order),
		TEST(a_push_waits_until_a_slot_is_given_back),
		TEST(a_killed_sender_gives_its_slots_back),
		TEST(senders_at_once_land_all_they_push),
		TEST(a_landing_closes_under_its_senders),
		TEST(a_sender_of_either_mode_pushes),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
