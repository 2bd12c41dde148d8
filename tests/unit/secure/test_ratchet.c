/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/ratchet.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_BYTES 8

static const struct wf_secret secret = { { 'b', 'e', 'g', 'i', 'n' } };

static struct wf_ratchet writer, reader;

/* A message as it goes to the reader; its text is its number. */
struct message {
	uint64_t number;
	uint8_t sealed[TEXT_BYTES];
	uint8_t tag[WF_SEAL_TAG_BYTES];
};

static int begin(void **state)
{
	(void)state;
	return wf_ratchet_begin(&writer, WF_SEAL_AES_128_GCM, &secret, true) ||
	       wf_ratchet_begin(&reader, WF_SEAL_AES_128_GCM, &secret, false);
}

static int end(void **state)
{
	(void)state;
	wf_ratchet_end(&writer);
	wf_ratchet_end(&reader);
	return 0;
}

static struct message seal_next(void)
{
	struct message m = { .number = writer.number };

	assert_int_equal(wf_ratchet_seal(&writer, &m.number, sizeof(m.number), &m.number, m.sealed,
					 TEXT_BYTES, m.tag), 0);
	return m;
}

/* Seal and forget messages, until the next one is @number. */
static void lose_until(uint64_t number)
{
	while (writer.number < number)
		(void)seal_next();
}

static int open_message(const struct message *m)
{
	uint64_t text = ~m->number;
	int err = wf_ratchet_open(&reader, m->number, &m->number, sizeof(m->number), m->sealed,
				  &text, TEXT_BYTES, m->tag);

	if (!err)
		assert_int_equal(text, m->number);
	return err;
}

/* A forgery changes nothing of the reader. */
static void expect_forged(struct message m, uint64_t number)
{
	struct wf_ratchet before = reader;

	m.number = number;
	assert_int_equal(open_message(&m), -EBADMSG);
	assert_memory_equal(&reader, &before, sizeof(before));
}

static void messages_open_in_order(void **state)
{
	struct message m;

	(void)state;
	for (uint64_t number = 0; number < 1000; number++) {
		m = seal_next();
		assert_int_equal(m.number, number);
		assert_int_equal(open_message(&m), 0);
		assert_int_equal(reader.number, number + 1);
	}
}

static void each_cipher_serves(void **state)
{
	struct message m;

	(void)state;
	(void)end(NULL);
	assert_int_equal(wf_ratchet_begin(&writer, WF_SEAL_CHACHA20_POLY1305, &secret, true), 0);
	assert_int_equal(wf_ratchet_begin(&reader, WF_SEAL_CHACHA20_POLY1305, &secret, false), 0);
	for (int i = 0; i < 3; i++) {
		m = seal_next();
		assert_int_equal(open_message(&m), 0);
	}
}

static void lost_messages_hold_up_no_later_one(void **state)
{
	struct message m;

	(void)state;
	for (uint64_t number = 0; number < WF_RATCHET_COUNT; number = number * 2 + 3) {
		lose_until(number);
		m = seal_next();
		assert_int_equal(open_message(&m), 0);
		assert_int_equal(open_message(&m), -EALREADY);
	}
}

static void late_messages_open_once_within_the_window(void **state)
{
	struct message late[WF_RATCHET_WINDOW + 1], m;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(late); i++)
		late[i] = seal_next();
	m = late[WF_RATCHET_WINDOW];
	assert_int_equal(open_message(&m), 0);
	/* The window has the highest number and the 255 before it. */
	assert_int_equal(open_message(&late[0]), -EALREADY);
	for (int i = (int)WF_RATCHET_WINDOW - 1; i > 0; i -= 2) {
		assert_int_equal(open_message(&late[i]), 0);
		assert_int_equal(open_message(&late[i]), -EALREADY);
	}
	for (size_t i = 2; i < WF_RATCHET_WINDOW; i += 2)
		assert_int_equal(open_message(&late[i]), 0);
	for (size_t i = 0; i < WF_COUNT(late); i++)
		assert_int_equal(open_message(&late[i]), -EALREADY);
	m = seal_next();
	assert_int_equal(open_message(&m), 0);
}

static void a_replayed_message_is_known(void **state)
{
	struct message all[3 * WF_RATCHET_WINDOW];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(all); i++) {
		all[i] = seal_next();
		assert_int_equal(open_message(&all[i]), 0);
		for (size_t k = 0; k <= i; k += 31)
			assert_int_equal(open_message(&all[i - k]), -EALREADY);
	}
}

/* A bit that stands for an old number is not taken for a newer one that shares it. */
static void skipped_messages_open_later_after_any_jump(void **state)
{
	static const uint64_t jumps[] = { 1, 2, 63, 64, 65, 255, 256, 257, 511, 512, 1000 };
	struct message skipped, m;

	(void)state;
	for (int i = 0; i < (int)WF_RATCHET_WINDOW; i++) {
		m = seal_next();
		assert_int_equal(open_message(&m), 0);
	}
	for (size_t i = 0; i < WF_COUNT(jumps); i++) {
		lose_until(writer.number + jumps[i] - 1);
		skipped = seal_next();
		m = seal_next();
		assert_int_equal(open_message(&m), 0);
		assert_int_equal(open_message(&m), -EALREADY);
		assert_int_equal(open_message(&skipped), 0);
		assert_int_equal(open_message(&skipped), -EALREADY);
	}
}

static void too_old_a_message_is_not_opened(void **state)
{
	struct message old = seal_next(), m;

	(void)state;
	lose_until(WF_RATCHET_WINDOW);
	m = seal_next(); /* number 256: number 0 is one too old */
	assert_int_equal(open_message(&m), 0);
	assert_int_equal(open_message(&old), -EALREADY);
}

static void a_forged_message_changes_nothing(void **state)
{
	struct message m, next;

	(void)state;
	m = seal_next();
	assert_int_equal(open_message(&m), 0);
	m = seal_next();
	next = m;
	/* Numbers of this key, of the next one, and of keys that are far ahead. */
	expect_forged(m, 2);
	expect_forged(m, WF_RATCHET_WINDOW + 2);
	expect_forged(m, WF_RATCHET_COUNT - 1);
	expect_forged(m, WF_RATCHET_COUNT);
	expect_forged(m, 2 * WF_RATCHET_COUNT - 1);
	expect_forged(m, 2 * WF_RATCHET_COUNT);
	expect_forged(m, WF_RATCHET_NUMBER_MAX - 1);
	expect_forged(m, WF_RATCHET_NUMBER_MAX);
	expect_forged(m, UINT64_MAX);
	m.tag[0] ^= 1;
	expect_forged(m, 1);
	m.tag[0] ^= 1;
	m.sealed[TEXT_BYTES - 1] ^= 0x80;
	expect_forged(m, 1);
	/* The honest one was not counted as seen. */
	assert_int_equal(open_message(&next), 0);
}

static void a_key_change_cannot_be_forged(void **state)
{
	struct message m = seal_next();

	(void)state;
	assert_int_equal(open_message(&m), 0);
	for (int i = 0; i < 3; i++)
		expect_forged(m, WF_RATCHET_COUNT + (uint64_t)i);
	m = seal_next();
	assert_int_equal(open_message(&m), 0);
	lose_until(WF_RATCHET_COUNT);
	m = seal_next();
	expect_forged(m, WF_RATCHET_COUNT + 1);
	assert_int_equal(open_message(&m), 0);
	assert_int_equal(reader.generation, 1);
	lose_until(2 * WF_RATCHET_COUNT);
	m = seal_next();
	assert_int_equal(open_message(&m), 0);
	assert_int_equal(open_message(&m), -EALREADY);
	assert_int_equal(reader.generation, 2);
}

static void the_key_changes_with_the_count(void **state)
{
	struct wf_secret first;
	struct message m;

	(void)state;
	first = *reader.next;
	for (uint64_t number = 0; number < 2 * WF_RATCHET_COUNT + 10; number++) {
		m = seal_next();
		assert_int_equal(m.number, number);
		assert_int_equal(open_message(&m), 0);
		assert_int_equal(writer.generation, number / WF_RATCHET_COUNT);
		assert_int_equal(reader.generation, number / WF_RATCHET_COUNT);
	}
	/* Secrets of keys that were in use are gone on both sides. */
	assert_memory_not_equal(reader.next, &first, sizeof(first));
	assert_memory_equal(reader.next, writer.next, sizeof(first));
	assert_null(writer.last);
}

/* The first key does not open what the second has sealed: more than a number has changed. */
static void a_new_key_seals_unlike_the_one_before(void **state)
{
	struct wf_seal *first;
	uint8_t sealed[TEXT_BYTES], tag[WF_SEAL_TAG_BYTES], text[TEXT_BYTES];
	struct message m;

	(void)state;
	assert_int_equal(wf_seal_new(WF_SEAL_AES_128_GCM, &secret, false, &first), 0);
	m = seal_next();
	assert_int_equal(wf_seal_open(first, 0, &m.number, sizeof(m.number), m.sealed, text,
				      TEXT_BYTES, m.tag),
			 0);
	lose_until(WF_RATCHET_COUNT);
	m = seal_next();
	memcpy(sealed, m.sealed, sizeof(sealed));
	memcpy(tag, m.tag, sizeof(tag));
	assert_int_equal(wf_seal_open(first, m.number, &m.number, sizeof(m.number), sealed, text,
				      TEXT_BYTES, tag), -EBADMSG);
	wf_seal_free(first);
}

static void messages_of_the_key_before_open_late(void **state)
{
	struct message late[10], m;

	(void)state;
	lose_until(WF_RATCHET_COUNT - WF_COUNT(late));
	for (size_t i = 0; i < WF_COUNT(late); i++)
		late[i] = seal_next();
	m = seal_next();
	assert_int_equal(m.number, WF_RATCHET_COUNT);
	assert_int_equal(open_message(&m), 0);
	for (size_t i = 0; i < WF_COUNT(late) - 1; i++) {
		assert_int_equal(open_message(&late[i]), 0);
		assert_int_equal(open_message(&late[i]), -EALREADY);
	}
	m = seal_next();
	assert_int_equal(open_message(&m), 0);
	assert_int_equal(open_message(&late[WF_COUNT(late) - 1]), 0);
	/* A forgery with a number of the key before is refused as any other. */
	expect_forged(m, WF_RATCHET_COUNT - WF_COUNT(late) - 1);
}

static void messages_of_a_key_that_is_gone_do_not_open(void **state)
{
	struct message m;

	(void)state;
	/* The reader has no key but of the first generation, and the next. */
	lose_until(2 * WF_RATCHET_COUNT);
	m = seal_next();
	expect_forged(m, m.number);
	assert_int_equal(reader.generation, 0);
}

static void no_number_is_used_twice_even_when_sealing_fails(void **state)
{
	struct wf_seal *sealing = writer.seal;
	uint8_t text[TEXT_BYTES] = { 0 }, sealed[TEXT_BYTES], tag[WF_SEAL_TAG_BYTES];
	struct message m;

	(void)state;
	m = seal_next();
	assert_int_equal(open_message(&m), 0);
	writer.seal = reader.seal; /* a key for opening can't seal */
	assert_int_equal(wf_ratchet_seal(&writer, NULL, 0, text, sealed, TEXT_BYTES, tag), -EIO);
	writer.seal = sealing;
	assert_int_equal(writer.number, 2);
	m = seal_next();
	assert_int_equal(m.number, 2);
	assert_int_equal(open_message(&m), 0);
}

static void the_last_number_is_the_end(void **state)
{
	uint8_t text[TEXT_BYTES] = { 0 }, sealed[TEXT_BYTES], tag[WF_SEAL_TAG_BYTES];
	uint64_t last = WF_RATCHET_NUMBER_MAX - 1;
	struct message m;

	(void)state;
	/* The state that both sides have after so many messages, but for the secret. */
	writer.number = last;
	reader.number = last;
	writer.generation = reader.generation = last / WF_RATCHET_COUNT;
	m = seal_next();
	assert_int_equal(m.number, last);
	assert_int_equal(open_message(&m), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wf_ratchet_seal(&writer, NULL, 0, text, sealed, TEXT_BYTES, tag),
				 -EOVERFLOW);
	assert_int_equal(writer.number, WF_RATCHET_NUMBER_MAX);
	expect_forged(m, WF_RATCHET_NUMBER_MAX);
}

static void ending_wipes_and_accepts_nothing(void **state)
{
	struct wf_ratchet none = { 0 };
	static const struct wf_ratchet empty;

	(void)state;
	wf_ratchet_end(&none);
	lose_until(3);
	wf_ratchet_end(&writer);
	assert_memory_equal(&writer.next, &empty.next, sizeof(empty.next));
	assert_null(writer.seal);
	wf_ratchet_end(&writer);
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAIR(messages_open_in_order),
		WITH_PAIR(each_cipher_serves),
		WITH_PAIR(lost_messages_hold_up_no_later_one),
		WITH_PAIR(late_messages_open_once_within_the_window),
		WITH_PAIR(a_replayed_message_is_known),
		WITH_PAIR(skipped_messages_open_later_after_any_jump),
		WITH_PAIR(too_old_a_message_is_not_opened),
		WITH_PAIR(a_forged_message_changes_nothing),
		WITH_PAIR(a_key_change_cannot_be_forged),
		WITH_PAIR(the_key_changes_with_the_count),
		WITH_PAIR(a_new_key_seals_unlike_the_one_before),
		WITH_PAIR(messages_of_the_key_before_open_late),
		WITH_PAIR(messages_of_a_key_that_is_gone_do_not_open),
		WITH_PAIR(no_number_is_used_twice_even_when_sealing_fails),
		WITH_PAIR(the_last_number_is_the_end),
		WITH_PAIR(ending_wipes_and_accepts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
