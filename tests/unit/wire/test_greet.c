/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/greet.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/fuzz/mutate.h"
#include "wire/door.pb-c.h"

#define ROUNDS 10000

/* Bytes by hand: of each field its number and type, then the value. */
static const struct {
	struct wf_greet greet;
	size_t count;
	uint8_t bytes[32];
} rows[] = {
	{
		{ .kind = WF_GREET_REFUSE, .refuse = { 14, "gone" } }, 8 + 10,
		{ 'W', 'E', 'F', 'T', 10, 0, 0, 0, 0x12, 8, 0x08, 14, 0x12, 4, 'g', 'o', 'n', 'e' },
	},
	{
		{ .kind = WF_GREET_TRY, .try = { 300, 1, 2, "" } }, 8 + 9,
		{ 'W', 'E', 'F', 'T', 9, 0, 0, 0, 0x1a, 7, 0x08, 0xac, 2, 0x10, 1, 0x18, 2 },
	},
	{
		{ .kind = WF_GREET_CANNOT, .try = { 3, 0, 0, "no" } }, 8 + 8,
		{ 'W', 'E', 'F', 'T', 8, 0, 0, 0, 0x22, 6, 0x08, 3, 0x12, 2, 'n', 'o' },
	},
	{
		{ .kind = WF_GREET_BEAT, .beat = { 7, true } }, 8 + 6,
		{ 'W', 'E', 'F', 'T', 6, 0, 0, 0, 0x2a, 4, 0x08, 7, 0x10, 1 },
	},
	{
		{ .kind = WF_GREET_BEAT }, 8 + 2,
		{ 'W', 'E', 'F', 'T', 2, 0, 0, 0, 0x2a, 0 },
	},
	{
		{ .kind = WF_GREET_RESYNC, .resync = { 1, UINT32_MAX } }, 8 + 10,
		{ 'W', 'E', 'F', 'T', 10, 0, 0, 0, 0x32, 8, 0x08, 1, 0x10, 0xff, 0xff, 0xff, 0xff,
		  0x0f },
	},
	{
		{ .kind = WF_GREET_RESYNC, .resync = { 1, 2, true } }, 8 + 8,
		{ 'W', 'E', 'F', 'T', 8, 0, 0, 0, 0x32, 6, 0x08, 1, 0x10, 2, 0x18, 1 },
	},
	{
		{ .kind = WF_GREET_GOODBYE, .refuse = { 0, "bye" } }, 8 + 7,
		{ 'W', 'E', 'F', 'T', 7, 0, 0, 0, 0x3a, 5, 0x0a, 3, 'b', 'y', 'e' },
	},
	{
		{ .kind = WF_GREET_SAME,
		  .same = { 9, false, true, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } } },
		8 + 22,
		{ 'W', 'E', 'F', 'T', 22, 0, 0, 0, 0x42, 20, 0x08, 9, 0x12, 16, 1, 2, 3, 4, 5, 6, 7,
		  8, 9, 10, 11, 12, 13, 14, 15, 16 },
	},
	{
		{ .kind = WF_GREET_SAME, .same = { .answer = true } }, 8 + 4,
		{ 'W', 'E', 'F', 'T', 4, 0, 0, 0, 0x42, 2, 0x18, 1 },
	},
};

/* On a heap block of exactly its size, so that a sanitizer sees the first byte too many. */
static int get(const uint8_t *bytes, size_t count, struct wf_greet *greet, struct wf_error *e)
{
	uint8_t *exact = test_malloc(count + !count);
	int rc;

	memcpy(exact, bytes, count);
	rc = wf_greet_get(exact, count, greet, e);
	test_free(exact);
	return rc;
}

/* A hello in which every field is something else, and every length is the longest. */
static void fill_hello(struct wf_greet *greet)
{
	struct wf_greet_hello *h = &greet->hello;

	memset(greet, 0, sizeof(*greet));
	greet->kind = WF_GREET_HELLO;
	h->wire_min = 1;
	h->wire_max = 3;
	memset(h->incarnation, 0xa1, sizeof(h->incarnation));
	memset(h->name, 'n', sizeof(h->name) - 1);
	memset(h->address, 'a', sizeof(h->address) - 1);
	memset(h->security, 's', sizeof(h->security) - 1);
	h->side = UINT64_MAX - 2;
	h->manual = true;
	h->link = 11;
	h->token = UINT64_MAX - 1;
	h->resume_link = 12;
	h->resume_token = 13;
	h->lost_ns = 3000000000;
	h->record_bytes_max = UINT32_MAX;
	h->checksums = UINT32_MAX;
	h->checksum = true;
	h->compressions = 0x80000001;
	h->lanes = 3;
	h->proofs = WF_GREET_PROOFS_MAX;
	h->dials = true;
	h->rail_count = WF_GREET_RAILS_MAX;
	for (uint32_t i = 0; i < WF_GREET_RAILS_MAX; i++) {
		struct wf_greet_rail *r = &h->rails[i];

		memset(r->provider, 'p', sizeof(r->provider) - 1);
		r->libfabric = 0x10011 + i;
		r->protocol = 0x80000001;
		r->protocol_version = i;
		r->frame_bytes = 4096;
		r->connected = i % 2;
		r->same_host = i % 3;
		r->edition = UINT32_MAX - i;
		r->address_bytes = WF_GREET_ADDRESS_BYTES;
		memset(r->address, 0xb0 + (int)i, sizeof(r->address));
	}
}

static void a_message_is_the_same_bytes_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		uint8_t bytes[WF_GREET_BYTES_MAX];
		struct wf_greet greet;
		struct wf_error e;

		assert_int_equal(wf_greet_put(&rows[i].greet, bytes), rows[i].count);
		assert_memory_equal(bytes, rows[i].bytes, rows[i].count);
		assert_int_equal(get(rows[i].bytes, rows[i].count, &greet, &e), 0);
		/* All of the struct came back: it makes the same bytes again. */
		memset(bytes, 0xee, sizeof(bytes));
		assert_int_equal(wf_greet_put(&greet, bytes), rows[i].count);
		assert_memory_equal(bytes, rows[i].bytes, rows[i].count);
	}
}

static void the_longest_hello_arrives_as_it_was(void **state)
{
	uint8_t bytes[WF_GREET_BYTES_MAX], again[WF_GREET_BYTES_MAX];
	struct wf_greet greet, got;
	struct wf_error e;
	int count;

	(void)state;
	fill_hello(&greet);
	count = wf_greet_put(&greet, bytes);
	assert_in_range(count, 1, WF_GREET_BYTES_MAX);
	assert_int_equal(get(bytes, (size_t)count, &got, &e), 0);
	assert_int_equal(wf_greet_put(&got, again), count);
	assert_memory_equal(again, bytes, (size_t)count);
	assert_int_equal(got.hello.side, UINT64_MAX - 2);
	assert_int_equal(got.hello.rails[3].edition, UINT32_MAX - 3);
	assert_memory_equal(got.hello.name, greet.hello.name, sizeof(got.hello.name));
	assert_memory_equal(got.hello.rails[15].address, greet.hello.rails[15].address,
			    WF_GREET_ADDRESS_BYTES);
}

static void the_length_is_known_from_the_first_eight_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		for (size_t count = 1; count < WF_GREET_PREFIX_BYTES; count++)
			assert_int_equal(wf_greet_length(rows[i].bytes, count), 0);
		for (size_t count = WF_GREET_PREFIX_BYTES; count <= rows[i].count; count++)
			assert_int_equal(wf_greet_length(rows[i].bytes, count), rows[i].count);
	}
}

static void a_stranger_to_weft_is_known_by_his_first_wrong_byte(void **state)
{
	(void)state;
	for (size_t at = 0; at < 4; at++) {
		uint8_t bytes[] = { 'W', 'E', 'F', 'T' };

		bytes[at] ^= 0x20;
		for (size_t count = 1; count <= sizeof(bytes); count++)
			assert_int_equal(wf_greet_length(bytes, count), count > at ? -EBADMSG : 0);
	}
	assert_int_equal(wf_greet_length((const uint8_t *)"GET / HTTP/1.1", 14), -EBADMSG);
}

static void a_length_beyond_the_limit_is_refused_before_the_bytes_come(void **state)
{
	const uint8_t most[] = { 'W', 'E', 'F', 'T', 0xf8, 0x3f, 0, 0 };
	const uint8_t over[] = { 'W', 'E', 'F', 'T', 0xf9, 0x3f, 0, 0 };
	const uint8_t huge[] = { 'W', 'E', 'F', 'T', 0xff, 0xff, 0xff, 0xff };
	struct wf_greet greet;
	struct wf_error e;

	(void)state;
	assert_int_equal(wf_greet_length(most, sizeof(most)), WF_GREET_BYTES_MAX);
	assert_int_equal(wf_greet_length(over, sizeof(over)), -EMSGSIZE);
	assert_int_equal(wf_greet_length(huge, sizeof(huge)), -EMSGSIZE);
	assert_int_equal(get(huge, sizeof(huge), &greet, &e), -EMSGSIZE);
}

static void every_other_length_is_refused_and_changes_nothing(void **state)
{
	uint8_t bytes[WF_GREET_BYTES_MAX + 1];
	struct wf_greet greet, got, before;
	struct wf_error e;
	int count;

	(void)state;
	fill_hello(&greet);
	count = wf_greet_put(&greet, bytes);
	assert_true(count > 0);
	memset(&got, 0x5a, sizeof(got));
	before = got;
	for (size_t less = 0; less < (size_t)count; less++)
		assert_int_equal(get(bytes, less, &got, &e), -EBADMSG);
	bytes[count] = 0;
	assert_int_equal(get(bytes, (size_t)count + 1, &got, &e), -EBADMSG);
	/* As if the sender had meant the shorter length: never within a field. */
	for (size_t less = WF_GREET_PREFIX_BYTES; less < (size_t)count; less++) {
		uint8_t cut[WF_GREET_BYTES_MAX];

		memcpy(cut, bytes, less);
		cut[4] = (uint8_t)(less - WF_GREET_PREFIX_BYTES);
		cut[5] = (uint8_t)((less - WF_GREET_PREFIX_BYTES) >> 8);
		assert_int_equal(get(cut, less, &got, &e), -EBADMSG);
	}
	assert_memory_equal(&got, &before, sizeof(got));
}

/* A hello from a peer that keeps none of our limits. */
struct wild {
	WfDoor__Message message;
	WfDoor__Hello hello;
	WfDoor__Rail rail;
	WfDoor__Rail *rails[WF_GREET_RAILS_MAX + 1];
	uint8_t zeros[1024];
	char text[1024];
};

static void tame(struct wild *w)
{
	memset(w, 0, sizeof(*w));
	wf_door__message__init(&w->message);
	wf_door__hello__init(&w->hello);
	wf_door__rail__init(&w->rail);
	w->message.what_case = WF_DOOR__MESSAGE__WHAT_HELLO;
	w->message.hello = &w->hello;
	w->hello.incarnation = (ProtobufCBinaryData){ WF_INCARNATION_BYTES, w->zeros };
	w->hello.rails = w->rails;
	for (size_t i = 0; i < WF_COUNT(w->rails); i++)
		w->rails[i] = &w->rail;
	memset(w->text, 'x', sizeof(w->text) - 1);
}

/* The end of the text, which then has @count bytes. */
static char *text_of(struct wild *w, size_t count)
{
	return w->text + sizeof(w->text) - 1 - count;
}

static int get_wild(const struct wild *w, struct wf_greet *greet, struct wf_error *e)
{
	uint8_t bytes[WF_GREET_BYTES_MAX] = "WEFT";
	size_t count = wf_door__message__get_packed_size(&w->message);

	assert_in_range(count, 0, sizeof(bytes) - WF_GREET_PREFIX_BYTES);
	bytes[4] = (uint8_t)count;
	bytes[5] = (uint8_t)(count >> 8);
	wf_door__message__pack(&w->message, bytes + WF_GREET_PREFIX_BYTES);
	return get(bytes, WF_GREET_PREFIX_BYTES + count, greet, e);
}

static void assert_refused(const struct wild *w, const char *sentence)
{
	struct wf_error e = { 0 };
	struct wf_greet greet;

	assert_int_equal(get_wild(w, &greet, &e), -EBADMSG);
	assert_int_equal(e.code, -EBADMSG);
	assert_string_equal(e.text, sentence);
}

static void a_text_too_long_for_its_place_is_refused(void **state)
{
	struct wf_greet greet;
	struct wf_error e;
	struct wild w;

	(void)state;
	tame(&w);
	w.hello.n_rails = 1;
	w.hello.name = text_of(&w, WF_GREET_NAME_BYTES - 1);
	w.hello.address = text_of(&w, 255);
	w.hello.security = text_of(&w, 15);
	w.rail.provider = text_of(&w, 63);
	assert_int_equal(get_wild(&w, &greet, &e), 0);

	tame(&w);
	w.hello.name = text_of(&w, WF_GREET_NAME_BYTES);
	assert_refused(&w, "its name has 64 bytes, 63 are allowed");
	tame(&w);
	w.hello.address = text_of(&w, 256);
	assert_refused(&w, "its address has 256 bytes, 255 are allowed");
	tame(&w);
	w.hello.security = text_of(&w, 16);
	assert_refused(&w, "its security has 16 bytes, 15 are allowed");
	tame(&w);
	w.hello.n_rails = 1;
	w.rail.provider = text_of(&w, 64);
	assert_refused(&w, "its provider has 64 bytes, 63 are allowed");
}

static void bytes_of_another_length_are_refused(void **state)
{
	struct wild w;

	(void)state;
	tame(&w);
	w.hello.incarnation.len = 15;
	assert_refused(&w, "its incarnation has 15 bytes instead of 16");
	tame(&w);
	w.hello.incarnation.len = 0;
	assert_refused(&w, "its incarnation has 0 bytes instead of 16");
	tame(&w);
	w.hello.n_rails = 1;
	w.rail.provider = text_of(&w, 1);
	w.rail.address = (ProtobufCBinaryData){ WF_GREET_ADDRESS_BYTES + 1, w.zeros };
	assert_refused(&w, "its x rail has an address of 129 bytes, 128 are allowed");
}

static void more_rails_than_there_is_room_for_are_refused(void **state)
{
	struct wf_greet greet;
	struct wf_error e;
	struct wild w;

	(void)state;
	tame(&w);
	w.hello.n_rails = WF_GREET_RAILS_MAX;
	assert_int_equal(get_wild(&w, &greet, &e), 0);
	assert_int_equal(greet.hello.rail_count, WF_GREET_RAILS_MAX);
	w.hello.n_rails++;
	assert_refused(&w, "it has 17 rails, 16 are allowed");
}

static void a_sentence_too_long_is_cut_between_two_characters(void **state)
{
	WfDoor__Goodbye goodbye = WF_DOOR__GOODBYE__INIT;
	struct wf_greet greet;
	struct wf_error e;
	struct wild w;

	(void)state;
	tame(&w);
	w.message.what_case = WF_DOOR__MESSAGE__WHAT_GOODBYE;
	w.message.goodbye = &goodbye;
	goodbye.text = text_of(&w, 1000);
	assert_int_equal(get_wild(&w, &greet, &e), 0);
	assert_int_equal(strlen(greet.refuse.text), WF_GREET_TEXT_BYTES - 1);

	/* A character of three bytes, of which two would fit. */
	memcpy(goodbye.text + WF_GREET_TEXT_BYTES - 3, "\xe2\x82\xac", 3);
	assert_int_equal(get_wild(&w, &greet, &e), 0);
	assert_int_equal(strlen(greet.refuse.text), WF_GREET_TEXT_BYTES - 3);

	/* Nothing but the rest of characters, as nobody sends it in good faith. */
	memset(goodbye.text, 0x80, 1000);
	assert_int_equal(get_wild(&w, &greet, &e), 0);
	assert_string_equal(greet.refuse.text, "");
}

static void a_message_of_no_known_kind_is_refused(void **state)
{
	static const uint8_t empty[] = { 'W', 'E', 'F', 'T', 0, 0, 0, 0 };
	static const uint8_t kind_9[] = { 'W', 'E', 'F', 'T', 2, 0, 0, 0, 0x4a, 0 };
	struct wf_greet greet;
	struct wf_error e;

	(void)state;
	assert_int_equal(get(empty, sizeof(empty), &greet, &e), -EBADMSG);
	assert_string_equal(e.text, "it is of no kind that this version knows");
	assert_int_equal(get(kind_9, sizeof(kind_9), &greet, &e), -EBADMSG);
}

static void a_field_of_a_later_version_is_skipped(void **state)
{
	/* A beat of number 7 with a field 15 that we do not know. */
	static const uint8_t beat[] = { 'W', 'E', 'F', 'T', 6, 0, 0, 0, 0x2a, 4, 0x08, 7, 0x78, 1 };
	struct wf_greet greet;
	struct wf_error e;

	(void)state;
	assert_int_equal(get(beat, sizeof(beat), &greet, &e), 0);
	assert_int_equal(greet.kind, WF_GREET_BEAT);
	assert_int_equal(greet.beat.number, 7);
	assert_false(greet.beat.answer);
}

static void no_damaged_message_breaks_a_limit(void **state)
{
	static uint8_t original[WF_GREET_BYTES_MAX], bytes[WF_GREET_BYTES_MAX];
	struct wf_greet greet;
	unsigned accepted = 0;
	struct wf_error e;
	uint64_t seed = 1;
	size_t whole;

	(void)state;
	fill_hello(&greet);
	greet.hello.rail_count = 2;
	whole = (size_t)wf_greet_put(&greet, original);
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t count;

		memcpy(bytes, original, whole);
		count = WF_GREET_PREFIX_BYTES +
			mutate(&seed, bytes + WF_GREET_PREFIX_BYTES, whole - WF_GREET_PREFIX_BYTES,
			       sizeof(bytes) - WF_GREET_PREFIX_BYTES);
		bytes[4] = (uint8_t)(count - WF_GREET_PREFIX_BYTES);
		bytes[5] = (uint8_t)((count - WF_GREET_PREFIX_BYTES) >> 8);
		if (get(bytes, count, &greet, &e) || greet.kind != WF_GREET_HELLO)
			continue;
		accepted++;
		assert_non_null(memchr(greet.hello.name, 0, sizeof(greet.hello.name)));
		assert_in_range(greet.hello.rail_count, 0, WF_GREET_RAILS_MAX);
		for (uint32_t k = 0; k < greet.hello.rail_count; k++)
			assert_in_range(greet.hello.rails[k].address_bytes, 0,
					WF_GREET_ADDRESS_BYTES);
	}
	/* Else the damage was never light enough to test anything. */
	assert_in_range(accepted, ROUNDS / 20, ROUNDS - ROUNDS / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_the_same_bytes_both_ways),
		cmocka_unit_test(the_longest_hello_arrives_as_it_was),
		cmocka_unit_test(the_length_is_known_from_the_first_eight_bytes),
		cmocka_unit_test(a_stranger_to_weft_is_known_by_his_first_wrong_byte),
		cmocka_unit_test(a_length_beyond_the_limit_is_refused_before_the_bytes_come),
		cmocka_unit_test(every_other_length_is_refused_and_changes_nothing),
		cmocka_unit_test(a_text_too_long_for_its_place_is_refused),
		cmocka_unit_test(bytes_of_another_length_are_refused),
		cmocka_unit_test(more_rails_than_there_is_room_for_are_refused),
		cmocka_unit_test(a_sentence_too_long_is_cut_between_two_characters),
		cmocka_unit_test(a_message_of_no_known_kind_is_refused),
		cmocka_unit_test(a_field_of_a_later_version_is_skipped),
		cmocka_unit_test(no_damaged_message_breaks_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
