/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of receives between processes, over every provider. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define KEYS 100
#define STEP 3
#define SHORT_BYTES 1000 /* travels in a frame */
#define LONG_BYTES 300000 /* is fetched */

static struct pair_send sends[KEYS];
static char bytes[KEYS][LONG_BYTES];

/* Every fifth tensor is sent later than the others. */
static bool is_late(unsigned number)
{
	return number % 5 == 4;
}

static size_t bytes_of(unsigned number, bool all_short)
{
	return all_short || number % 2 ? SHORT_BYTES + number : LONG_BYTES - number;
}

static void name(char key[16], unsigned number)
{
	snprintf(key, 16, "tensor %u", number);
}

/* Send the late ones or the others, the last first. */
static void other_send(struct pair *side, char *arguments)
{
	unsigned late, all_short;
	char key[16];

	need(sscanf(arguments, "%u %u", &late, &all_short) == 2);
	for (unsigned i = KEYS; i-- > 0;) {
		if (is_late(i) != (late != 0))
			continue;
		name(key, i);
		sends[i] = pair_send(side->peer, STEP, key, bytes_of(i, all_short), i);
	}
}

static void other_sent(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	for (unsigned i = 0; i < KEYS; i++)
		if (sends[i].op)
			pair_sent(&sends[i]);
	memset(sends, 0, sizeof(sends));
}

static const struct pair_command commands[] = {
	{ "send_some", other_send }, { "sent", other_sent }, { NULL, NULL },
};

static struct weft_op *receive(struct pair *pair, bool all_short, uint64_t timeout_ns)
{
	struct weft_recv_set_options options = WEFT_RECV_SET_OPTIONS_INIT;
	struct weft_recv_item items[KEYS];
	struct weft_tensor into[KEYS];
	int64_t shapes[KEYS];
	char keys[KEYS][16];
	struct weft_op *op;

	memset(bytes, 0, sizeof(bytes));
	options.op.timeout_ns = timeout_ns;
	for (unsigned i = 0; i < KEYS; i++) {
		name(keys[i], i);
		shapes[i] = (int64_t)bytes_of(i, all_short);
		into[i] = pair_tensor(bytes[i], &shapes[i]);
		/* Every third tensor goes into memory of the pool. */
		items[i] = (struct weft_recv_item){ keys[i], strlen(keys[i]),
						    i % 3 ? &into[i] : NULL };
	}
	assert_int_equal(weft_recv_set(pair->node, pair->peer, STEP, items, KEYS, &options, &op), 0);
	return op;
}

/* Check that the item of tensor @number has it, whole. */
static void has_come(const struct weft_op *set, unsigned number, bool all_short)
{
	struct weft_op *item = weft_recv_set_item(set, number);
	const struct weft_tensor *got;

	assert_int_equal(weft_op_status(item), WEFT_OK);
	got = weft_op_tensor(item, NULL);
	assert_non_null(got);
	assert_int_equal(got->shape[0], bytes_of(number, all_short));
	if (number % 3)
		assert_ptr_equal((char *)got->data + got->byte_offset, bytes[number]);
	assert_true(pair_matches((char *)got->data + got->byte_offset,
				 bytes_of(number, all_short), number));
}

/* Check a set that has ended without the late tensors, as @status, and that those can still come. */
static void check_missing(struct pair *pair, struct weft_op *set, enum weft_status status,
			  bool all_short)
{
	char key[16];

	pair_ended(set, status);
	for (unsigned i = 0; i < KEYS; i++)
		if (is_late(i))
			assert_int_equal(weft_op_status(weft_recv_set_item(set, i)), status);
		else
			has_come(set, i, all_short);
	assert_non_null(strstr(weft_op_message(set), "80 of 100 tensors came"));
	pair_do(&pair->other, "send_some 1 %d", all_short);
	for (unsigned i = 4; i < KEYS; i += 5) {
		name(key, i);
		pair_received(pair_recv(pair->node, pair->peer, STEP, key), bytes_of(i, all_short),
			      i);
	}
	pair_do(&pair->other, "sent");
	weft_op_free(set);
}

static void a_set_gets_every_tensor_in_its_place(void **state)
{
	struct weft_op *set;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_do(&pair.other, "send_some 0 0");
		set = receive(&pair, false, PAIR_LIMIT_NS);
		pair_do(&pair.other, "send_some 1 0");
		pair_ended(set, WEFT_OK);
		for (unsigned i = 0; i < KEYS; i++)
			has_come(set, i, false);
		pair_do(&pair.other, "sent");
		weft_op_free(set);
		pair_close(&pair);
	}
}

static void tensors_that_came_by_the_deadline_stay(void **state)
{
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		/* The first tensors are here, whole, before the set begins: the deadline can't be too short. */
		pair_do(&pair.other, "send_some 0 1");
		pair_do(&pair.other, "ping");
		check_missing(&pair, receive(&pair, true, 500 * PAIR_MS), WEFT_DEADLINE_EXCEEDED,
			      true);
		pair_close(&pair);
	}
}

static void tensors_that_came_before_a_cancel_stay(void **state)
{
	struct weft_op *set;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		set = receive(&pair, false, PAIR_LIMIT_NS);
		pair_do(&pair.other, "send_some 0 0");
		for (unsigned i = 0; i < KEYS; i++)
			if (!is_late(i))
				pair_ended(weft_recv_set_item(set, i), WEFT_OK);
		assert_false(weft_op_ended(set));
		weft_cancel(set);
		check_missing(&pair, set, WEFT_CANCELLED, false);
		pair_close(&pair);
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_set_gets_every_tensor_in_its_place),
		TEST(tensors_that_came_by_the_deadline_stay),
		TEST(tensors_that_came_before_a_cancel_stay),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
