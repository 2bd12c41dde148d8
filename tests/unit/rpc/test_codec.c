/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "rpc/codec.h"
#include "rpc/zstd.h"
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
	ProtobufCMessage *m;
	struct wf_error e;

	if (wf_codec_unpack(&nest__nest__descriptor, bytes, count, false, 0, &m, &e))
		return false;
	protobuf_c_message_free_unpacked(m, NULL);
	return true;
}

static void a_message_may_be_as_deep_as_the_limit(void **state)
{
	static uint8_t room[8 * DEEP];

	(void)state;
	for (unsigned depth = 0; depth <= WF_CODEC_DEPTH_MAX + 1; depth++) {
		const uint8_t *at = nest(room, sizeof(room), depth);

		assert_int_equal(unpacks(at, (size_t)(room + sizeof(room) - at)),
				 depth <= WF_CODEC_DEPTH_MAX);
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

static void a_message_may_be_of_no_bytes_anywhere(void **state)
{
	(void)state;
	assert_true(unpacks(NULL, 0));
	assert_true(unpacks((const uint8_t *)"", 0));
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

#define LONG 5000 /* bytes of a message that shrinks */

/* Nests side by side, which differ in nothing. */
static const Nest__Nest *long_message(void)
{
	static Nest__Nest inner = NEST__NEST__INIT, outer = NEST__NEST__INIT;
	static Nest__Nest *many[LONG / 2];

	for (size_t i = 0; i < WF_COUNT(many); i++)
		many[i] = &inner;
	outer.n_others = WF_COUNT(many);
	outer.others = many;
	return &outer;
}

static void a_message_is_compressed_if_that_makes_it_shorter(void **state)
{
	const Nest__Nest *m = long_message();
	struct wf_codec_packed packed;
	ProtobufCMessage *back;
	struct wf_error e;

	(void)state;
	assert_int_equal(nest__nest__get_packed_size(m), LONG);
	assert_int_equal(wf_codec_pack(&m->base, LONG, true, NULL, &packed), 0);
	assert_true(packed.compressed);
	assert_true(packed.bytes < 100);
	assert_int_equal(wf_codec_unpack(m->base.descriptor, packed.buffer.at, packed.bytes, true,
					 LONG, &back, &e), 0);
	assert_int_equal(((Nest__Nest *)(void *)back)->n_others, LONG / 2);
	protobuf_c_message_free_unpacked(back, NULL);
	wf_buffer_give(&packed.buffer);

	assert_int_equal(wf_codec_pack(&m->base, LONG, false, NULL, &packed), 0);
	assert_false(packed.compressed);
	assert_int_equal(packed.bytes, LONG);
	wf_buffer_give(&packed.buffer);
}

static void a_short_message_is_not_worth_it(void **state)
{
	const Nest__Nest m = NEST__NEST__INIT;
	struct wf_codec_packed packed;

	(void)state;
	assert_int_equal(wf_codec_pack(&m.base, 0, true, NULL, &packed), 0);
	assert_false(packed.compressed);
	assert_null(packed.buffer.at);
	assert_int_equal(packed.bytes, 0);
}

static void a_compressed_message_has_a_limit_and_is_not_trusted(void **state)
{
	const Nest__Nest *m = long_message();
	const ProtobufCMessageDescriptor *d = m->base.descriptor;
	struct wf_codec_packed packed;
	ProtobufCMessage *back;
	struct wf_error e;
	uint8_t *at;

	(void)state;
	assert_int_equal(wf_codec_pack(&m->base, LONG, true, NULL, &packed), 0);
	at = packed.buffer.at;
	assert_int_equal(wf_codec_unpack(d, at, packed.bytes, true, LONG - 1, &back, &e), -ENOBUFS);
	assert_non_null(strstr(e.text, "4999"));
	for (size_t count = 0; count < packed.bytes; count++)
		assert_int_equal(wf_codec_unpack(d, at, count, true, LONG, &back, &e), -EBADMSG);
	for (size_t i = 0; i < packed.bytes; i++) {
		at[i] ^= 0x55;
		if (!wf_codec_unpack(d, at, packed.bytes, true, LONG, &back, &e))
			protobuf_c_message_free_unpacked(back, NULL);
		at[i] ^= 0x55;
	}
	/* A frame that does not say how long its content is. */
	assert_int_equal(wf_codec_unpack(d, (const uint8_t *)"\x28\xb5\x2f\xfd\0\x58\1\0\0", 9,
					 true, LONG, &back, &e), -EBADMSG);
	wf_buffer_give(&packed.buffer);
}

static void bytes_that_do_not_shrink_are_left(void **state)
{
	uint8_t bytes[64], room[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 167 + 13);
	assert_int_equal(wf_zstd_pack(bytes, sizeof(bytes), room, sizeof(bytes) - 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_may_be_as_deep_as_the_limit),
		cmocka_unit_test(a_message_that_would_bury_the_stack_is_refused),
		cmocka_unit_test(many_messages_side_by_side_are_not_deep),
		cmocka_unit_test(a_message_is_compressed_if_that_makes_it_shorter),
		cmocka_unit_test(a_short_message_is_not_worth_it),
		cmocka_unit_test(a_compressed_message_has_a_limit_and_is_not_trusted),
		cmocka_unit_test(bytes_that_do_not_shrink_are_left),
		cmocka_unit_test(a_message_may_be_of_no_bytes_anywhere),
		cmocka_unit_test(bytes_cut_anywhere_are_refused_or_unpacked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
