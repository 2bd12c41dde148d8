/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "rpc/message.h"
#include "tests/unit/rpc/nest.pb-c.h"

#define DEEP 20000

/* A Nest in a Nest, @depth times, packed at the end of @room; where it begins. */
static const uint8_t *nest(uint8_t *room, size_t bytes, unsigned depth)
{
	uint8_t *end = room + bytes, *at = end;

	for (unsigned i = 0; i < depth; i++) {
		uint64_t count = (uint64_t)(end - at);
		uint8_t length[10];
		size_t used = 0;

		do {
			length[used++] = (uint8_t)((count & 0x7f) | (count > 0x7f ? 0x80 : 0));
			count >>= 7;
		} while (count);
		at -= used;
		memcpy(at, length, used);
		*--at = 1 << 3 | 2;
	}
	return at;
}

static bool unpacks(const uint8_t *bytes, size_t count)
{
	ProtobufCMessage *m = wf_message_unpack(&nest__nest__descriptor, bytes, count);

	if (m)
		protobuf_c_message_free_unpacked(m, NULL);
	return m;
}

static void a_message_may_be_as_deep_as_the_limit(void **state)
{
	static uint8_t room[8 * DEEP];

	(void)state;
	for (unsigned depth = 0; depth <= WF_MESSAGE_DEPTH_MAX + 1; depth++) {
		const uint8_t *at = nest(room, sizeof(room), depth);

		assert_int_equal(unpacks(at, (size_t)(room + sizeof(room) - at)),
				 depth <= WF_MESSAGE_DEPTH_MAX);
	}
}

static void a_message_that_would_bury_the_stack_is_refused(void **state)
{
	static uint8_t room[8 * DEEP];
	const uint8_t *at = nest(room, sizeof(room), DEEP);

	(void)state;
	assert_false(unpacks(at, (size_t)(room + sizeof(room) - at)));
}

/* Depth counts what is in one another, not what stands side by side. */
static void many_messages_side_by_side_are_not_deep(void **state)
{
	uint8_t bytes[4000];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i += 2) {
		bytes[i] = 2 << 3 | 2;
		bytes[i + 1] = 0;
	}
	assert_true(unpacks(bytes, sizeof(bytes)));
}

static void bytes_cut_anywhere_are_refused_or_unpacked(void **state)
{
	uint8_t room[300];
	const uint8_t *at = nest(room, sizeof(room), 40);
	size_t count = (size_t)(room + sizeof(room) - at);

	(void)state;
	for (size_t cut = 1; cut < count; cut++)
		assert_false(unpacks(at, cut));
	for (size_t i = 0; i < count; i++) {
		uint8_t spoilt[300];

		for (unsigned value = 0; value < 256; value++) {
			memcpy(spoilt, at, count);
			spoilt[i] = (uint8_t)value;
			(void)unpacks(spoilt, count);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_may_be_as_deep_as_the_limit),
		cmocka_unit_test(a_message_that_would_bury_the_stack_is_refused),
		cmocka_unit_test(many_messages_side_by_side_are_not_deep),
		cmocka_unit_test(bytes_cut_anywhere_are_refused_or_unpacked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
