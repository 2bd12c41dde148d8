/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/side.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct {
	struct wf_side_packet packet;
	unsigned fds;
	size_t count;
	uint8_t bytes[160];
} rows[] = {
	{
		{ .kind = WF_SIDE_MEET, .link = 0x11, .token = 0x1817161514131211,
		  .peer_link = 0x22, .peer_token = 0x2827262524232221,
		  .nonce = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
		  .nonce_address = 0x7fff00001000, .side = 0x33, .bell = true, .lends = true,
		  .rail_count = 2,
		  .rails = { { 1, 7, true, 3, { 'a', 'b', 0 } }, { 2, 8, false, 0, { 0 } } } },
		4, 76 + 4 + 19 + 16,
		{
			'W', 'E', 'F', 'S', 1, 0, 0, 0,
			0x11, 0, 0, 0, 0, 0, 0, 0,
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0x22, 0, 0, 0, 0, 0, 0, 0,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
			0, 0x10, 0, 0, 0xff, 0x7f, 0, 0,
			0x33, 0, 0, 0, 0, 0, 0, 0,
			3, 0, 0, 0,
			2, 0, 0, 0,
			1, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 'a', 'b', 0,
			2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		},
	},
	{
		{ .kind = WF_SIDE_RAILS, .rail_count = 1, .rails = { { 0, 9, true, 1, { 5 } } } },
		1, 12 + 17,
		{
			'W', 'E', 'F', 'S', 2, 0, 0, 0, 1, 0, 0, 0,
			0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 5,
		},
	},
	{
		{ .kind = WF_SIDE_SLAB, .file = 0x4847464544434241 }, 1, 16,
		{ 'W', 'E', 'F', 'S', 3, 0, 0, 0, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48 },
	},
	{
		{ .kind = WF_SIDE_DROPPED, .file = 1 }, 0, 16,
		{ 'W', 'E', 'F', 'S', 4, 0, 0, 0, 1 },
	},
};

/* On a heap block of exactly its size, so that a sanitizer sees the first byte too many. */
static int get(const uint8_t *bytes, size_t count, struct wf_side_packet *packet)
{
	uint8_t *exact = test_malloc(count + !count);
	int rc;

	memcpy(exact, bytes, count);
	rc = wf_side_get(exact, count, packet, NULL);
	test_free(exact);
	return rc;
}

static void a_packet_is_the_same_bytes_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		uint8_t bytes[WF_SIDE_BYTES_MAX];
		struct wf_side_packet got;

		assert_int_equal(wf_side_put(&rows[i].packet, bytes), rows[i].count);
		assert_memory_equal(bytes, rows[i].bytes, rows[i].count);
		assert_int_equal(get(bytes, rows[i].count, &got), 0);
		assert_int_equal(wf_side_fds(&got), rows[i].fds);
		assert_int_equal(wf_side_put(&got, bytes), rows[i].count);
		assert_memory_equal(bytes, rows[i].bytes, rows[i].count);
	}
}

static void every_other_length_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		struct wf_side_packet got;

		for (size_t count = 0; count < rows[i].count; count++)
			assert_int_equal(get(rows[i].bytes, count, &got), -EBADMSG);
		assert_int_equal(get(rows[i].bytes, rows[i].count + 1, &got), -EBADMSG);
	}
}

static void the_longest_packet_has_room(void **state)
{
	struct wf_side_packet packet = { .kind = WF_SIDE_MEET, .bell = true, .lends = true,
					 .rail_count = WF_SIDE_RAILS_MAX };
	uint8_t bytes[WF_SIDE_BYTES_MAX];

	(void)state;
	for (unsigned i = 0; i < WF_SIDE_RAILS_MAX; i++)
		packet.rails[i] = (struct wf_side_rail){ i, 1, true, WF_SIDE_ADDRESS_BYTES, { 0 } };
	assert_int_equal(wf_side_put(&packet, bytes), 2384);
	assert_int_equal(wf_side_fds(&packet), WF_SIDE_FDS_MAX);
}

static void a_packet_beyond_the_limits_is_refused(void **state)
{
	struct wf_side_packet got;
	uint8_t bytes[160];

	(void)state;
	memcpy(bytes, rows[1].bytes, rows[1].count);
	bytes[8] = WF_SIDE_RAILS_MAX + 1;
	assert_int_equal(get(bytes, rows[1].count, &got), -EBADMSG);
	memcpy(bytes, rows[1].bytes, rows[1].count);
	bytes[24] = WF_SIDE_ADDRESS_BYTES + 1;
	assert_int_equal(get(bytes, rows[1].count, &got), -EBADMSG);
	memcpy(bytes, rows[2].bytes, rows[2].count);
	bytes[3] = 'T';
	assert_int_equal(get(bytes, rows[2].count, &got), -EBADMSG);
	bytes[3] = 'S';
	bytes[4] = 5;
	assert_int_equal(get(bytes, rows[2].count, &got), -EBADMSG);
	bytes[4] = 0;
	assert_int_equal(get(bytes, rows[2].count, &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_is_the_same_bytes_both_ways),
		cmocka_unit_test(every_other_length_is_refused),
		cmocka_unit_test(the_longest_packet_has_room),
		cmocka_unit_test(a_packet_beyond_the_limits_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
