/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/fuzz/mutate.h"

#define ROUNDS 20000

static const struct {
	struct wf_frame frame;
	size_t count; /* header and body */
	uint8_t bytes[WF_FRAME_HEADER_BYTES + WF_FRAME_SEAL_BYTES];
} rows[] = {
	{
		{ .kind = WF_FRAME_DATA, .link = 0x1817161514131211, .token = 0x2827262524232221,
		  .epoch = 0x34333231, .seq = 0x44434241, .ack = 0x54535251,
		  .credit = 0x64636261, .eager_credit = 0x7877767574737271, .record_count = 0x8281,
		  .body_bytes = 4 },
		WF_FRAME_HEADER_BYTES + 4,
		{
			8, 1, 0, 0,
			4, 0, 0, 0,
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			0x31, 0x32, 0x33, 0x34,
			0x41, 0x42, 0x43, 0x44,
			0x51, 0x52, 0x53, 0x54,
			0x61, 0x62, 0x63, 0x64,
			0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78,
			0x81, 0x82, 0, 0, 0, 0, 0, 0,
			0xee, 0xee, 0xee, 0xee,
		},
	},
	{
		{ .kind = WF_FRAME_CONTROL, .seq = 1, .record_count = 2, .body_bytes = 1 },
		WF_FRAME_HEADER_BYTES + 1,
		{ 8, 2, [4] = 1, [28] = 1, [48] = 2, [56] = 0xee },
	},
	{
		{ .kind = WF_FRAME_ANSWER, .seq = UINT32_MAX },
		WF_FRAME_HEADER_BYTES,
		{ 8, 3, [28] = 0xff, 0xff, 0xff, 0xff },
	},
	{
		{ .kind = WF_FRAME_PING, .epoch = 2 },
		WF_FRAME_HEADER_BYTES,
		{ 8, 4, [24] = 2 },
	},
	{
		{ .kind = WF_FRAME_PONG, .credit = 3 },
		WF_FRAME_HEADER_BYTES,
		{ 8, 5, [36] = 3 },
	},
	{
		{ .kind = WF_FRAME_READY, .eager_credit = UINT64_MAX },
		WF_FRAME_HEADER_BYTES,
		{ 8, 6, [40] = 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	},
	{
		{ .kind = WF_FRAME_PING, .sealed = true, .link = 1, .number = 0x9695949392a1 },
		WF_FRAME_HEADER_BYTES + WF_FRAME_SEAL_BYTES,
		{ 8, 4, 1, 0, [8] = 1, [50] = 0x95, 0x96, 0xa1, 0x92, 0x93, 0x94 },
	},
};

/* On a heap block of exactly its size, so that a sanitizer sees the first byte too many. */
static int get(const uint8_t *bytes, size_t count, struct wf_frame *frame)
{
	uint8_t *exact = test_malloc(count + !count);
	int rc;

	memcpy(exact, bytes, count);
	rc = wf_frame_get(exact, count, frame);
	test_free(exact);
	return rc;
}

static void assert_frames_equal(const struct wf_frame *a, const struct wf_frame *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->link, b->link);
	assert_int_equal(a->token, b->token);
	assert_int_equal(a->epoch, b->epoch);
	assert_int_equal(a->seq, b->seq);
	assert_int_equal(a->ack, b->ack);
	assert_int_equal(a->credit, b->credit);
	assert_int_equal(a->eager_credit, b->eager_credit);
	assert_int_equal(a->record_count, b->record_count);
	assert_int_equal(a->sealed, b->sealed);
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->body_bytes, b->body_bytes);
}

static void a_header_is_the_same_bytes_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		uint8_t bytes[WF_FRAME_HEADER_BYTES];
		struct wf_frame frame;

		wf_frame_put(bytes, &rows[i].frame);
		assert_memory_equal(bytes, rows[i].bytes, sizeof(bytes));
		assert_int_equal(get(rows[i].bytes, rows[i].count, &frame), 0);
		assert_frames_equal(&frame, &rows[i].frame);
	}
}

static void every_other_length_is_refused_and_changes_nothing(void **state)
{
	uint8_t bytes[2 * WF_FRAME_HEADER_BYTES] = { 0 };
	struct wf_frame frame = { .kind = 99 };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		memcpy(bytes, rows[i].bytes, rows[i].count);
		for (size_t count = 0; count < sizeof(bytes); count++)
			if (count != rows[i].count)
				assert_int_equal(get(bytes, count, &frame), -EBADMSG);
	}
	assert_int_equal(frame.kind, 99);
}

static void a_byte_that_must_have_its_value_is_checked(void **state)
{
	static const size_t fixed[] = { 0, 2, 3, 50, 51, 52, 53, 54, 55 };
	struct wf_frame frame;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(fixed); i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			uint8_t bytes[WF_FRAME_HEADER_BYTES + 4];

			memcpy(bytes, rows[0].bytes, sizeof(bytes));
			bytes[fixed[i]] ^= (uint8_t)(1 << bit);
			assert_int_equal(get(bytes, sizeof(bytes), &frame), -EBADMSG);
		}
	}
}

static void an_unknown_kind_is_refused(void **state)
{
	uint8_t bytes[WF_FRAME_HEADER_BYTES] = { WF_WIRE_VERSION };
	struct wf_frame frame;

	(void)state;
	for (unsigned kind = 0; kind <= UINT8_MAX; kind++) {
		bool known = kind >= WF_FRAME_DATA && kind <= WF_FRAME_READY;

		bytes[1] = (uint8_t)kind;
		assert_int_equal(get(bytes, sizeof(bytes), &frame), known ? 0 : -EBADMSG);
	}
}

static void only_data_and_control_have_a_body(void **state)
{
	(void)state;
	for (uint8_t kind = WF_FRAME_DATA; kind <= WF_FRAME_READY; kind++) {
		int expected = kind <= WF_FRAME_CONTROL ? 0 : -EBADMSG;
		struct wf_frame count = { .kind = kind, .record_count = 1 };
		struct wf_frame body = { .kind = kind, .body_bytes = 1 };
		uint8_t bytes[WF_FRAME_HEADER_BYTES + 1] = { 0 };
		struct wf_frame frame;

		wf_frame_put(bytes, &count);
		assert_int_equal(get(bytes, WF_FRAME_HEADER_BYTES, &frame), expected);
		wf_frame_put(bytes, &body);
		assert_int_equal(get(bytes, sizeof(bytes), &frame), expected);
	}
}

static void an_accepted_frame_says_its_own_length(void **state)
{
	uint64_t seed = 1;
	unsigned accepted = 0;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		const size_t row = i % WF_COUNT(rows);
		uint8_t bytes[2 * WF_FRAME_HEADER_BYTES];
		uint8_t again[WF_FRAME_HEADER_BYTES];
		struct wf_frame frame;
		size_t count;

		memcpy(bytes, rows[row].bytes, rows[row].count);
		count = mutate(&seed, bytes, rows[row].count, sizeof(bytes));
		if (get(bytes, count, &frame))
			continue;
		accepted++;
		assert_int_equal(WF_FRAME_HEADER_BYTES + frame.body_bytes +
				 (frame.sealed ? WF_FRAME_SEAL_BYTES : 0), count);
		wf_frame_put(again, &frame);
		assert_memory_equal(again, bytes, sizeof(again));
	}
	/* Else the damage was never light enough to test anything. */
	assert_in_range(accepted, ROUNDS / 20, ROUNDS - ROUNDS / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_the_same_bytes_both_ways),
		cmocka_unit_test(every_other_length_is_refused_and_changes_nothing),
		cmocka_unit_test(a_byte_that_must_have_its_value_is_checked),
		cmocka_unit_test(an_unknown_kind_is_refused),
		cmocka_unit_test(only_data_and_control_have_a_body),
		cmocka_unit_test(an_accepted_frame_says_its_own_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
