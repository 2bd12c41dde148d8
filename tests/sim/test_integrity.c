/* SPDX-License-Identifier: BSD-2-Clause */
/* A checksum over bodies: it finds a flipped byte, and says where; and it finds nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "util/clock.h"

#define S WF_NS_PER_S
#define SMALL 300          /* eager */
#define BIG (3 * MIB + 17) /* pulled, in four pieces of which the last is short */
#define LONG (12 * MIB)    /* more sums than one record takes */

static uint8_t source[LONG], target[LONG];

static const size_t sizes[] = { 0, SMALL, 40 * KIB, MIB, BIG, LONG };

static void open_world(enum wf_world_shape shape, const struct wf_fake *fake)
{
	assert_int_equal(setenv("WEFT_CHECKSUM", "yes", 1), 0);
	wf_world_open(shape, 2, fake);
}

/* A tensor from node 0 to node 1; f[0] is the receive. */
static void move(struct wf_flight *f, size_t bytes)
{
	wf_world_fill(source, bytes, bytes);
	memset(target, 0, bytes);
	wf_flight_receive(&f[0], 1, 0, 7, target, bytes, 0);
	wf_flight_send(&f[1], 0, 1, 7, source, bytes, 0);
	wf_flight_land(f, 2, 20 * S);
}

static void carry(size_t bytes)
{
	struct wf_flight f[2], call;

	move(f, bytes);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	assert_true(wf_world_is_filled(target, bytes, bytes));
	wf_flight_free(f, 2);
	wf_flight_call(&call, 0, 1, source, bytes, 0);
	wf_flight_land(&call, 1, 20 * S);
	assert_int_equal(call.status, WEFT_OK);
	assert_true(call.reply_right);
	wf_flight_free(&call, 1);
}

static void an_undamaged_body_arrives(void **state)
{
	(void)state;
	for (int shape = WF_WORLD_CONNECTED; shape <= WF_WORLD_SAME_HOST; shape++) {
		open_world((enum wf_world_shape)shape, NULL);
		for (size_t i = 0; i < WF_COUNT(sizes); i++)
			carry(sizes[i]);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void also_through_faults_and_out_of_order(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 12; seed++) {
		struct wf_fake fake = {
			.seed = seed, .delay_min_ns = WF_NS_PER_US,
			.delay_max_ns = 3 * WF_NS_PER_MS, .twice = 100, .shuffle = true,
			.reorder = true,
		};

		open_world(seed % 2 ? WF_WORLD_SHARED : WF_WORLD_CONNECTED, &fake);
		wf_world_connect(0, 1);
		wf_fake_knobs()->eagain = 100;
		wf_fake_knobs()->fail = 20;
		carry(SMALL);
		carry(LONG);
		wf_fake_knobs()->fail = 0; /* let it close in peace */
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Every word of @words, up to NULL. */
static void says(const struct wf_flight *f, const char *const *words)
{
	const char *text = weft_op_message(f->op);

	for (; *words; words++)
		if (!strstr(text, *words))
			fail_msg("\"%s\" does not say \"%s\"", text, *words);
}

static void a_flipped_byte_of_a_pull_is_found_and_named(void **state)
{
	static const struct {
		size_t bytes, at;
		const char *range;
	} rows[] = {
		{ BIG, 0, "bytes 0 to 1048575" },
		{ BIG, MIB, "bytes 1048576 to 2097151" },
		{ BIG, BIG - 1, "bytes 3145728 to 3145744" },
		{ MIB, 99, "bytes 0 to 1048575" },
		{ LONG, LONG - 1, "bytes 11534336 to 12582911" },
	};
	static const char *const ways[] = { "pull over tcp on lo", "pull over efa on fake0" };
	struct wf_flight f[2];

	(void)state;
	for (size_t i = 0; i < 2 * WF_COUNT(rows); i++) {
		const char *words[] = { "step 7, key \"\"", rows[i / 2].range, "from n0", ways[i % 2],
					NULL };
		static const char *const told[] = { "n1 did not get it whole", NULL };

		open_world(i % 2 ? WF_WORLD_SHARED : WF_WORLD_CONNECTED, NULL);
		wf_world_connect(0, 1);
		wf_fake_knobs()->flip_at = source + rows[i / 2].at;
		move(f, rows[i / 2].bytes);
		assert_int_equal(f[0].status, WEFT_DATA_LOSS);
		says(&f[0], words);
		assert_int_equal(f[1].status, WEFT_DATA_LOSS);
		says(&f[1], told);
		wf_flight_free(f, 2);
		/* The link and the channel are none the worse for it. */
		wf_fake_knobs()->flip_at = NULL;
		carry(rows[i / 2].bytes);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_flipped_byte_of_an_eager_tensor_is_found(void **state)
{
	static const char *const words[] = { "step 7, key \"\"", "bytes 0 to 299", "from n0",
					     "eager over tcp on lo", NULL };
	struct wf_flight f[2];

	(void)state;
	open_world(WF_WORLD_CONNECTED, NULL);
	wf_world_connect(0, 1);
	wf_fake_knobs()->flip_end = 1000;
	move(f, SMALL);
	assert_int_equal(f[0].status, WEFT_DATA_LOSS);
	says(&f[0], words);
	/* Its sender was done when it had left. */
	assert_int_equal(f[1].status, WEFT_OK);
	wf_flight_free(f, 2);
	wf_fake_knobs()->flip_end = 0;
	carry(SMALL);
	assert_int_equal(wf_world_close(), 0);
}

/* One that is kept until it is received, too. */
static void a_tensor_damaged_before_its_receive_is_found(void **state)
{
	struct wf_flight f[2];

	(void)state;
	open_world(WF_WORLD_CONNECTED, NULL);
	wf_world_connect(0, 1);
	wf_fake_knobs()->flip_end = 1000;
	wf_flight_send(&f[1], 0, 1, 7, source, SMALL, 0);
	wf_world_pass(WF_NS_PER_MS);
	wf_fake_knobs()->flip_end = 0;
	wf_flight_receive(&f[0], 1, 1, 7, target, SMALL, 0);
	wf_flight_land(f, 2, S);
	assert_int_equal(f[0].status, WEFT_DATA_LOSS);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void a_damaged_request_is_never_handled(void **state)
{
	static const char *const words[] = { "the request: ", "from n0", NULL };
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, NULL);
	wf_world_connect(0, 1);
	for (unsigned i = 0; i < 2; i++) {
		/* The request is packed, so where its bytes lie nobody knows: any of them. */
		wf_fake_knobs()->flip = i ? 1000 : 0;
		wf_fake_knobs()->flip_end = i ? 0 : 1000;
		wf_flight_call(&f, 0, 1, source, i ? BIG : SMALL, 0);
		wf_flight_land(&f, 1, S);
		assert_int_equal(f.status, WEFT_DATA_LOSS);
		assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_NO);
		assert_int_equal(wf_world_served(1), 0);
		says(&f, words);
		wf_flight_free(&f, 1);
	}
	assert_int_equal(wf_world_close(), 0);
}

static bool has_served(void *ctx)
{
	return wf_world_served(1) == *(unsigned *)ctx;
}

static void a_damaged_reply_is_not_delivered(void **state)
{
	static const char *const words[] = { "the reply of Reflect of sim.Mirror: ", "from n1", NULL };
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, NULL);
	wf_world_connect(0, 1);
	for (unsigned i = 0; i < 2; i++) {
		unsigned served = i + 1;

		wf_world_hold(1, true);
		wf_flight_call(&f, 0, 1, source, i ? BIG : SMALL, 0);
		assert_true(wf_world_run(has_served, &served, S));
		wf_fake_knobs()->flip = i ? 1000 : 0;
		wf_fake_knobs()->flip_end = i ? 0 : 1000;
		wf_world_hold(1, false);
		wf_flight_land(&f, 1, S);
		assert_int_equal(f.status, WEFT_DATA_LOSS);
		assert_int_equal(weft_op_executed(f.op), WEFT_EXECUTED_YES);
		assert_int_equal(f.reply_bytes, 0);
		says(&f, words);
		wf_flight_free(&f, 1);
		wf_fake_knobs()->flip = wf_fake_knobs()->flip_end = 0;
	}
	assert_int_equal(wf_world_close(), 0);
}

/* That the tests above find something is the checksum's doing. */
static void without_a_checksum_nobody_notices(void **state)
{
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_fake_knobs()->flip_at = source + MIB;
	move(f, BIG);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	assert_false(wf_world_is_filled(target, BIG, BIG));
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static const struct weft_op_options checked = {
	.size = sizeof(checked), .flags = WEFT_CHECKSUM, .timeout_ns = 10 * S,
};

static struct weft_tensor row_of(uint8_t *data, int64_t *shape)
{
	return (struct weft_tensor){
		.data = data, .device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 },
		.shape = shape,
	};
}

static bool all_ended(void *ctx)
{
	struct weft_op **ops = ctx;

	return weft_op_ended(ops[0]) && weft_op_ended(ops[1]);
}

/* One tensor, with a checksum asked for by the sender, the receiver, both or none. */
static void ask(bool sender, bool receiver, enum weft_status sent, enum weft_status received)
{
	struct weft_send_options s = { .size = sizeof(s) };
	struct weft_recv_options r = { .size = sizeof(r) };
	int64_t shape = BIG;
	struct weft_tensor from = row_of(source, &shape), to = row_of(target, &shape);
	struct weft_op *ops[2];

	if (sender)
		s.op = checked;
	if (receiver)
		r.op = checked;
	assert_int_equal(weft_send(wf_world_peer(0, 1), 1, "k", 1, &from, &s, &ops[0]), 0);
	assert_int_equal(weft_recv(wf_world_node(1), NULL, 1, "k", 1, &to, &r, &ops[1]), 0);
	assert_true(wf_world_run(all_ended, ops, 10 * S));
	assert_int_equal(weft_op_status(ops[0]), sent);
	assert_int_equal(weft_op_status(ops[1]), received);
	if (received == WEFT_FAILED_PRECONDITION)
		assert_string_equal(weft_op_message(ops[1]),
				    "a checksum was asked for, and n0 sent none");
	weft_op_free(ops[0]);
	weft_op_free(ops[1]);
}

static void one_operation_can_ask_for_it(void **state)
{
	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	ask(false, false, WEFT_OK, WEFT_OK);
	ask(true, false, WEFT_OK, WEFT_OK);
	ask(true, true, WEFT_OK, WEFT_OK);
	ask(false, true, WEFT_OK, WEFT_FAILED_PRECONDITION);
	wf_fake_knobs()->flip_at = source + MIB;
	ask(false, false, WEFT_OK, WEFT_OK);
	ask(true, false, WEFT_DATA_LOSS, WEFT_DATA_LOSS);
	assert_int_equal(wf_world_close(), 0);
}

static void one_node_that_wants_it_gets_it_from_all(void **state)
{
	struct wf_flight f[2];

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 1, NULL);
	assert_int_equal(setenv("WEFT_CHECKSUM", "yes", 1), 0);
	assert_int_equal(wf_world_add(), 1);
	carry(BIG);
	wf_fake_knobs()->flip_at = source + MIB;
	move(f, BIG);
	assert_int_equal(f[0].status, WEFT_DATA_LOSS);
	wf_flight_free(f, 2);
	/* The other way round it is that node which sends. */
	wf_flight_receive(&f[0], 0, 1, 8, target, BIG, 0);
	wf_flight_send(&f[1], 1, 0, 8, source, BIG, 0);
	wf_flight_land(f, 2, S);
	assert_int_equal(f[0].status, WEFT_DATA_LOSS);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_undamaged_body_arrives),
		cmocka_unit_test(also_through_faults_and_out_of_order),
		cmocka_unit_test(a_flipped_byte_of_a_pull_is_found_and_named),
		cmocka_unit_test(a_flipped_byte_of_an_eager_tensor_is_found),
		cmocka_unit_test(a_tensor_damaged_before_its_receive_is_found),
		cmocka_unit_test(a_damaged_request_is_never_handled),
		cmocka_unit_test(a_damaged_reply_is_not_delivered),
		cmocka_unit_test(without_a_checksum_nobody_notices),
		cmocka_unit_test(one_operation_can_ask_for_it),
		cmocka_unit_test(one_node_that_wants_it_gets_it_from_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
