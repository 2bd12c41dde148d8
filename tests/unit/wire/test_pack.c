/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/pack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/fuzz/mutate.h"

#define ROUNDS 20000
#define CAPACITY 256 /* the smallest frame */
#define CAPACITY_BODY (CAPACITY - WF_FRAME_HEADER_BYTES)

static size_t end(struct wf_pack *p)
{
	struct wf_frame header = { .kind = WF_FRAME_DATA };

	return wf_pack_end(p, &header);
}

/* A frame of parts that the test describes itself. */
static size_t put_parts(uint8_t *frame, const struct wf_record *parts, uint16_t count)
{
	struct wf_bytes_writer w = wf_bytes_writer(frame + WF_FRAME_HEADER_BYTES, CAPACITY_BODY);
	struct wf_frame header = { .kind = WF_FRAME_DATA, .record_count = count };

	for (uint16_t i = 0; i < count; i++) {
		uint8_t *bytes;

		wf_bytes_put_u8(&w, parts[i].type);
		wf_bytes_put_u8(&w, parts[i].flags);
		wf_bytes_put_u16(&w, 0);
		wf_bytes_put_u32(&w, parts[i].count);
		wf_bytes_put_u32(&w, parts[i].total);
		bytes = wf_bytes_room(&w, parts[i].count);
		if (bytes)
			memset(bytes, 0xaa, parts[i].count);
	}
	header.body_bytes = (uint32_t)(w.at - frame - WF_FRAME_HEADER_BYTES);
	wf_frame_put(frame, &header);
	return (size_t)(w.at - frame);
}

static void records_follow_the_header_byte_for_byte(void **state)
{
	static const uint8_t body[] = {
		7, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 'a', 'b', 'c', 'd', 'e',
		8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	};
	struct wf_frame header = { .kind = WF_FRAME_DATA }, got;
	uint8_t frame[CAPACITY];
	struct wf_record record;
	struct wf_unpack u;
	struct wf_pack p;
	size_t done = 0;

	(void)state;
	wf_pack_begin(&p, frame, sizeof(frame));
	assert_int_equal(wf_pack_add(&p, 7, "abc", 3, "de", 2, &done), 0);
	assert_int_equal(done, 5);
	done = 0;
	assert_int_equal(wf_pack_add(&p, 8, NULL, 0, NULL, 0, &done), 0);
	assert_int_equal(wf_pack_end(&p, &header), WF_FRAME_HEADER_BYTES + sizeof(body));
	assert_int_equal(header.record_count, 2);
	assert_int_equal(header.body_bytes, sizeof(body));
	assert_memory_equal(frame + WF_FRAME_HEADER_BYTES, body, sizeof(body));

	assert_int_equal(wf_unpack_begin(&u, frame, WF_FRAME_HEADER_BYTES + sizeof(body), &got), 0);
	assert_int_equal(got.record_count, 2);
	assert_int_equal(wf_unpack_next(&u, &record), 1);
	assert_int_equal(record.type, 7);
	assert_int_equal(record.flags, 0);
	assert_int_equal(record.total, 5);
	assert_int_equal(record.count, 5);
	assert_ptr_equal(record.bytes, frame + WF_FRAME_HEADER_BYTES + WF_RECORD_HEADER_BYTES);
	assert_int_equal(wf_unpack_next(&u, &record), 1);
	assert_int_equal(record.type, 8);
	assert_int_equal(record.count, 0);
	assert_int_equal(wf_unpack_next(&u, &record), 0);
	assert_int_equal(wf_unpack_next(&u, &record), 0);
}

static void the_room_told_is_the_room_there_is(void **state)
{
	static const uint8_t zeros[CAPACITY];

	(void)state;
	for (size_t first = 0; first <= CAPACITY_BODY - WF_RECORD_HEADER_BYTES; first++) {
		uint8_t frame[CAPACITY];
		size_t done = 0, room;
		struct wf_pack p;

		wf_pack_begin(&p, frame, sizeof(frame));
		assert_int_equal(wf_pack_room(&p), CAPACITY_BODY - WF_RECORD_HEADER_BYTES);
		assert_int_equal(wf_pack_add(&p, 1, zeros, first, NULL, 0, &done), 0);
		room = wf_pack_room(&p);
		done = 0;
		if (room) {
			assert_int_equal(wf_pack_add(&p, 1, zeros, room, NULL, 0, &done), 0);
			assert_int_equal(end(&p), CAPACITY);
		} else {
			assert_int_equal(wf_pack_add(&p, 1, zeros, 1, NULL, 0, &done), -ENOSPC);
		}
	}
}

static void a_short_part_is_not_begun_in_the_rest_of_a_frame(void **state)
{
	static const uint8_t zeros[1000];
	/* After it 63 bytes and a header are left. */
	const size_t first = CAPACITY_BODY - 2 * WF_RECORD_HEADER_BYTES - 63;
	uint8_t frame[CAPACITY];
	size_t done = 0, before;
	struct wf_pack p;

	(void)state;
	wf_pack_begin(&p, frame, sizeof(frame));
	wf_pack_add(&p, 1, zeros, first, NULL, 0, &done);
	before = end(&p);
	done = 7;
	assert_int_equal(wf_pack_add(&p, 1, zeros, 1000, NULL, 0, &done), -ENOSPC);
	assert_int_equal(done, 7);
	assert_int_equal(end(&p), before);
	assert_int_equal(p.record_count, 1);
	/* What ends here is no loss to anybody. */
	done = 1000 - 63;
	assert_int_equal(wf_pack_add(&p, 1, zeros, 1000, NULL, 0, &done), 0);
	assert_int_equal(end(&p), CAPACITY);

	done = 0;
	wf_pack_begin(&p, frame, sizeof(frame));
	wf_pack_add(&p, 1, zeros, first - 1, NULL, 0, &done);
	done = 0;
	assert_int_equal(wf_pack_add(&p, 1, zeros, 1000, NULL, 0, &done), 1);
	assert_int_equal(done, 64);
}

static void a_frame_holds_no_more_records_than_it_can_count(void **state)
{
	size_t capacity = WF_FRAME_HEADER_BYTES + WF_RECORD_HEADER_BYTES * ((size_t)UINT16_MAX + 1);
	uint8_t *frame = test_malloc(capacity);
	struct wf_pack p;
	size_t done = 0;

	(void)state;
	wf_pack_begin(&p, frame, capacity);
	for (unsigned i = 0; i < UINT16_MAX; i++)
		assert_int_equal(wf_pack_add(&p, 1, NULL, 0, NULL, 0, &done), 0);
	assert_int_equal(wf_pack_room(&p), 0);
	assert_int_equal(wf_pack_add(&p, 1, NULL, 0, NULL, 0, &done), -ENOSPC);
	assert_int_equal(end(&p), capacity - WF_RECORD_HEADER_BYTES);
	test_free(frame);
}

/* What a link does: frame after frame until the record is through. */
static void carry(const uint8_t *bytes, size_t head_bytes, size_t count, uint8_t *frame,
		  size_t capacity, struct wf_assembly *a, struct wf_record *whole)
{
	int more, rc = 0;
	size_t done = 0;

	do {
		struct wf_frame header;
		struct wf_record part;
		size_t before = done;
		struct wf_unpack u;
		struct wf_pack p;

		assert_int_equal(rc, 0);
		wf_pack_begin(&p, frame, capacity);
		more = wf_pack_add(&p, 3, bytes, head_bytes, bytes + head_bytes,
				   count - head_bytes, &done);
		assert_in_range(more, 0, 1);
		assert_true(done > before || !count);
		assert_int_equal(wf_unpack_begin(&u, frame, end(&p), &header), 0);
		assert_int_equal(wf_unpack_next(&u, &part), 1);
		rc = wf_assembly_add(a, &part, 1 * MIB, whole);
	} while (more);
	assert_int_equal(rc, 1);
}

static void a_record_cut_into_frames_of_odd_sizes_arrives_whole(void **state)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 187, 188, 189, 1000, 4099, 70001 };
	static const size_t capacities[] = { 256, 257, 311, 1021, 4096, 16384 };
	static uint8_t bytes[70001], frame[16384];
	struct wf_assembly a = { 0 };
	uint64_t seed = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)mutate_random(&seed);
	for (size_t i = 0; i < WF_COUNT(sizes); i++) {
		for (size_t k = 0; k < WF_COUNT(capacities); k++) {
			size_t head_bytes = mutate_random(&seed) % (sizes[i] + 1);
			struct wf_record whole;

			carry(bytes, head_bytes, sizes[i], frame, capacities[k], &a, &whole);
			assert_int_equal(whole.type, 3);
			assert_int_equal(whole.flags, 0);
			assert_int_equal(whole.count, sizes[i]);
			assert_int_equal(whole.total, sizes[i]);
			assert_memory_equal(whole.bytes, bytes, sizes[i]);
		}
	}
	wf_assembly_fini(&a);
}

static void the_last_part_can_come_again(void **state)
{
	const struct wf_record first = { .type = 1, .flags = WF_RECORD_MORE, .count = 2,
					 .total = 3, .bytes = (const uint8_t *)"ab" };
	const struct wf_record last = { .type = 1, .flags = WF_RECORD_CONTINUED, .count = 1,
					.total = 3, .bytes = (const uint8_t *)"c" };
	struct wf_assembly a = { 0 };
	struct wf_record whole;

	(void)state;
	assert_int_equal(wf_assembly_add(&a, &first, 3, &whole), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(wf_assembly_add(&a, &last, 3, &whole), 1);
		assert_memory_equal(whole.bytes, "abc", 3);
		wf_assembly_undo(&a, &last);
	}
	wf_assembly_fini(&a);
}

static void a_record_of_one_part_stays_in_its_frame(void **state)
{
	struct wf_record part = { .type = 1, .count = 3, .total = 3,
				  .bytes = (const uint8_t *)"abc" };
	struct wf_assembly a = { 0 };
	struct wf_record whole;

	(void)state;
	assert_int_equal(wf_assembly_add(&a, &part, 3, &whole), 1);
	assert_ptr_equal(whole.bytes, part.bytes);
	assert_null(a.bytes);
}

static void a_record_longer_than_the_limit_takes_no_memory(void **state)
{
	struct wf_record whole_part = { .count = 4, .total = 4, .bytes = (const uint8_t *)"abcd" };
	struct wf_record first = { .flags = WF_RECORD_MORE, .count = 4, .total = UINT32_MAX,
				   .bytes = whole_part.bytes };
	struct wf_assembly a = { 0 };
	struct wf_record whole;

	(void)state;
	assert_int_equal(wf_assembly_add(&a, &whole_part, 3, &whole), -EMSGSIZE);
	assert_int_equal(wf_assembly_add(&a, &first, UINT32_MAX - 1, &whole), -EMSGSIZE);
	assert_null(a.bytes);
	assert_false(a.open);
}

static void a_part_that_does_not_follow_is_refused(void **state)
{
	enum { M = WF_RECORD_MORE, C = WF_RECORD_CONTINUED };
	static const struct {
		const char *what;
		bool begun; /* 4 of 10 bytes of type 1 have come */
		struct wf_record part;
	} wrong[] = {
		{ "continued, but nothing is open", false, { 1, C, 4, 10, NULL } },
		{ "another one begins", true, { 1, M, 4, 10, NULL } },
		{ "a whole one between", true, { 1, 0, 4, 4, NULL } },
		{ "another type", true, { 2, C, 6, 10, NULL } },
		{ "another total", true, { 1, C, 6, 11, NULL } },
		{ "the end comes too early", true, { 1, C, 5, 10, NULL } },
		{ "the end is too long", true, { 1, C, 7, 10, NULL } },
		{ "more, but it is the end", true, { 1, M | C, 6, 10, NULL } },
		{ "more than there is", true, { 1, M | C, 7, 10, NULL } },
		{ "an empty part", true, { 1, M | C, 0, 10, NULL } },
	};
	static const uint8_t bytes[16];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wrong); i++) {
		struct wf_record first = { 1, M, 4, 10, bytes }, last = { 1, C, 6, 10, bytes };
		struct wf_record part = wrong[i].part, whole;
		struct wf_assembly a = { 0 };

		part.bytes = bytes;
		if (wrong[i].begun)
			assert_int_equal(wf_assembly_add(&a, &first, 100, &whole), 0);
		if (wf_assembly_add(&a, &part, 100, &whole) != -EBADMSG)
			fail_msg("accepted: %s", wrong[i].what);
		/* And nothing has changed. */
		assert_int_equal(a.open, wrong[i].begun);
		if (wrong[i].begun)
			assert_int_equal(wf_assembly_add(&a, &last, 100, &whole), 1);
		wf_assembly_fini(&a);
	}
}

static void lengths_and_flags_that_disagree_are_refused(void **state)
{
	enum { M = WF_RECORD_MORE, C = WF_RECORD_CONTINUED };
	static const struct wf_record wrong[] = {
		{ 1, 0, 4, 5, NULL },	  { 1, 0, 5, 4, NULL },	  { 1, M, 4, 4, NULL },
		{ 1, C, 4, 4, NULL },	  { 1, M | C, 5, 4, NULL }, { 1, M, 0, 4, NULL },
		{ 1, C, 0, 4, NULL },	  { 1, M | C, 0, 0, NULL }, { 1, 4, 4, 4, NULL },
		{ 1, 0x80, 4, 4, NULL },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wrong); i++) {
		uint8_t frame[CAPACITY];
		size_t count = put_parts(frame, &wrong[i], 1);
		struct wf_record record;
		struct wf_frame header;
		struct wf_unpack u;

		assert_int_equal(wf_unpack_begin(&u, frame, count, &header), 0);
		assert_int_equal(wf_unpack_next(&u, &record), -EBADMSG);
		assert_int_equal(wf_unpack_next(&u, &record), -EBADMSG);
	}
}

static void the_record_count_must_be_true(void **state)
{
	static const struct wf_record two[] = { { 1, 0, 4, 4, NULL }, { 2, 0, 0, 0, NULL } };

	(void)state;
	for (uint16_t told = 0; told < 4; told++) {
		uint8_t frame[CAPACITY];
		size_t count = put_parts(frame, two, 2);
		struct wf_record record;
		struct wf_frame header;
		struct wf_unpack u;
		int rc;

		frame[48] = (uint8_t)told;
		assert_int_equal(wf_unpack_begin(&u, frame, count, &header), 0);
		while ((rc = wf_unpack_next(&u, &record)) > 0)
			;
		assert_int_equal(rc, told == 2 ? 0 : -EBADMSG);
	}
}

static void a_zero_of_the_record_header_is_checked(void **state)
{
	static const struct wf_record one = { 1, 0, 4, 4, NULL };

	(void)state;
	for (size_t at = 2; at < 4; at++) {
		uint8_t frame[CAPACITY];
		size_t count = put_parts(frame, &one, 1);
		struct wf_record record;
		struct wf_frame header;
		struct wf_unpack u;

		frame[WF_FRAME_HEADER_BYTES + at] = 1;
		assert_int_equal(wf_unpack_begin(&u, frame, count, &header), 0);
		assert_int_equal(wf_unpack_next(&u, &record), -EBADMSG);
	}
}

/* Take a frame apart as far as it goes; 0 if all of it was good. */
static int take_apart(const uint8_t *frame, size_t count)
{
	struct wf_record record;
	struct wf_frame header;
	struct wf_unpack u;
	int rc = wf_unpack_begin(&u, frame, count, &header);

	if (rc)
		return rc;
	while ((rc = wf_unpack_next(&u, &record)) > 0) {
		assert_true(record.bytes >= frame + WF_FRAME_HEADER_BYTES);
		assert_true(record.bytes <= frame + count);
		assert_in_range(record.count, 0, (size_t)(frame + count - record.bytes));
		assert_in_range(record.count, 0, record.total);
	}
	return rc;
}

static void no_shorter_frame_is_good(void **state)
{
	static const struct wf_record parts[] = { { 1, 0, 4, 4, NULL }, { 2, 0, 0, 0, NULL },
						  { 1, WF_RECORD_MORE, 9, 99, NULL } };
	uint8_t frame[CAPACITY];
	size_t count = put_parts(frame, parts, 3);

	(void)state;
	assert_int_equal(take_apart(frame, count), 0);
	for (size_t less = 0; less < count; less++) {
		uint8_t *exact = test_malloc(less + !less);

		/* Both as cut on the way, and as if the sender had meant that length. */
		memcpy(exact, frame, less);
		assert_int_equal(take_apart(exact, less), -EBADMSG);
		if (less >= WF_FRAME_HEADER_BYTES) {
			exact[4] = (uint8_t)(less - WF_FRAME_HEADER_BYTES);
			assert_int_equal(take_apart(exact, less), -EBADMSG);
		}
		test_free(exact);
	}
}

static void no_damaged_frame_yields_bytes_beyond_its_end(void **state)
{
	static const struct wf_record parts[] = { { 1, 0, 40, 40, NULL }, { 2, 0, 0, 0, NULL },
						  { 1, WF_RECORD_MORE, 90, 900, NULL } };
	unsigned accepted = 0;
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t frame[CAPACITY], *exact;
		size_t count = put_parts(frame, parts, 3);

		count = mutate(&seed, frame, count, sizeof(frame));
		exact = test_malloc(count + !count);
		memcpy(exact, frame, count);
		accepted += !take_apart(exact, count);
		test_free(exact);
	}
	assert_in_range(accepted, ROUNDS / 20, ROUNDS - ROUNDS / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_follow_the_header_byte_for_byte),
		cmocka_unit_test(the_room_told_is_the_room_there_is),
		cmocka_unit_test(a_short_part_is_not_begun_in_the_rest_of_a_frame),
		cmocka_unit_test(a_frame_holds_no_more_records_than_it_can_count),
		cmocka_unit_test(a_record_cut_into_frames_of_odd_sizes_arrives_whole),
		cmocka_unit_test(the_last_part_can_come_again),
		cmocka_unit_test(a_record_of_one_part_stays_in_its_frame),
		cmocka_unit_test(a_record_longer_than_the_limit_takes_no_memory),
		cmocka_unit_test(a_part_that_does_not_follow_is_refused),
		cmocka_unit_test(lengths_and_flags_that_disagree_are_refused),
		cmocka_unit_test(the_record_count_must_be_true),
		cmocka_unit_test(a_zero_of_the_record_header_is_checked),
		cmocka_unit_test(no_shorter_frame_is_good),
		cmocka_unit_test(no_damaged_frame_yields_bytes_beyond_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
