/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/one_time.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/evp.h>

#define TEXT_BYTES_MAX ((size_t)256 * 1024)
#define GAP_BYTES 7   /* between ranges; odd, so that most ranges begin at odd addresses */
#define GAP_FILL 0xee /* what is in gaps, and in ranges before they are written */
#define RANGES_MAX 6

/* A text in pieces: ranges of @memory that lie apart, the first range last, with gaps around. */
struct pieces {
	struct iovec ranges[RANGES_MAX];
	unsigned count;
	uint8_t *memory;
	size_t memory_bytes;
};

/* The lengths of some ranges. */
struct cut {
	unsigned count;
	size_t bytes[RANGES_MAX];
};

static struct pieces new_pieces(const struct cut *cut)
{
	struct pieces p = { .count = cut->count, .memory_bytes = GAP_BYTES };
	uint8_t *at;

	for (unsigned i = 0; i < cut->count; i++)
		p.memory_bytes += cut->bytes[i] + GAP_BYTES;
	p.memory = malloc(p.memory_bytes);
	assert_non_null(p.memory);
	memset(p.memory, GAP_FILL, p.memory_bytes);
	at = p.memory + GAP_BYTES;
	for (unsigned i = cut->count; i--; at += cut->bytes[i] + GAP_BYTES)
		p.ranges[i] = (struct iovec){ at, cut->bytes[i] };
	return p;
}

/* Copy @text into the pieces, one after another. */
static void fill_pieces(struct pieces *p, const uint8_t *text)
{
	for (unsigned i = 0; i < p->count; i++) {
		memcpy(p->ranges[i].iov_base, text, p->ranges[i].iov_len);
		text += p->ranges[i].iov_len;
	}
}

/* The pieces have @text, or zeros where that is NULL, and all around them is as it was. */
static void expect_pieces(const struct pieces *p, const uint8_t *text)
{
	uint8_t *expected = malloc(p->memory_bytes);

	assert_non_null(expected);
	memset(expected, GAP_FILL, p->memory_bytes);
	for (unsigned i = 0; i < p->count; i++) {
		uint8_t *at = expected + ((uint8_t *)p->ranges[i].iov_base - p->memory);

		if (text)
			memcpy(at, text, p->ranges[i].iov_len);
		else
			memset(at, 0, p->ranges[i].iov_len);
		text += text ? p->ranges[i].iov_len : 0;
	}
	assert_memory_equal(p->memory, expected, p->memory_bytes);
	free(expected);
}

static void free_pieces(struct pieces *p)
{
	free(p->memory);
}

static size_t cut_bytes(const struct cut *cut)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < cut->count; i++)
		bytes += cut->bytes[i];
	return bytes;
}

/* Memory for @count bytes, which may be none, and nothing behind them: a sanitizer sees that. */
static uint8_t *new_bytes(size_t count)
{
	uint8_t *bytes = malloc(count + !count);

	assert_non_null(bytes);
	memset(bytes, GAP_FILL, count);
	return bytes;
}

static uint8_t *new_text(size_t count)
{
	uint8_t *text = new_bytes(count);

	for (size_t i = 0; i < count; i++)
		text[i] = (uint8_t)(i * 7 + i / 256 + 1);
	return text;
}

/* A cipher as libcrypto has it, and how many bytes of a secret are its key. */
static const EVP_CIPHER *cipher_type(int cipher)
{
	return cipher == WF_SEAL_AES_128_GCM ? EVP_aes_128_gcm() : EVP_chacha20_poly1305();
}

static size_t cipher_key_bytes(int cipher)
{
	return cipher == WF_SEAL_AES_128_GCM ? 16 : 32;
}

/* Seal one range. */
static void seal(struct wf_one_time *once, int cipher, const uint8_t *text, size_t count,
		 uint8_t *sealed, struct wf_one_time_key *key)
{
	const struct iovec range = { (void *)text, count };

	assert_int_equal(wf_one_time_seal(once, (enum wf_seal_cipher)cipher, &range, 1, sealed,
					  key), 0);
}

/* Opening succeeds, to ranges of @cut. */
static void expect_opens(struct wf_one_time *once, int cipher, const struct wf_one_time_key *key,
			 const uint8_t *sealed, const struct cut *cut, const uint8_t *text)
{
	struct pieces opened = new_pieces(cut);

	assert_int_equal(wf_one_time_open(once, (enum wf_seal_cipher)cipher, key, sealed,
					  opened.ranges, opened.count), 0);
	expect_pieces(&opened, text);
	free_pieces(&opened);
}

/* Opening fails, and zeros are all that the ranges of @cut have afterwards. */
static void expect_refused(struct wf_one_time *once, int cipher, const struct wf_one_time_key *key,
			   const uint8_t *sealed, const struct cut *cut)
{
	struct pieces opened = new_pieces(cut);

	assert_int_equal(wf_one_time_open(once, (enum wf_seal_cipher)cipher, key, sealed,
					  opened.ranges, opened.count), -EBADMSG);
	expect_pieces(&opened, NULL);
	free_pieces(&opened);
}

static void sealed_bytes_open_at_every_size(void **state)
{
	static const size_t sizes[] = { 0, 1, 3, 15, 16, 17, 255, 4095, 4097, 65537,
					TEXT_BYTES_MAX - 1, TEXT_BYTES_MAX };
	struct wf_one_time once = { 0 };
	struct wf_one_time_key key;

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		for (size_t i = 0; i < WF_COUNT(sizes); i++) {
			const struct cut whole = { 1, { sizes[i] } };
			uint8_t *text = new_text(sizes[i]), *same = new_text(sizes[i]);
			uint8_t *sealed = new_bytes(sizes[i]);

			seal(&once, cipher, text, sizes[i], sealed, &key);
			assert_memory_equal(text, same, sizes[i]);
			if (sizes[i] >= 15)
				assert_memory_not_equal(sealed, text, sizes[i]);
			expect_opens(&once, cipher, &key, sealed, &whole, text);
			free(text);
			free(same);
			free(sealed);
		}
	}
	wf_one_time_fini(&once);
}

static void no_range_at_all_is_a_text_of_no_bytes(void **state)
{
	struct wf_one_time once = { 0 };
	struct wf_one_time_key key;
	uint8_t nothing = 0;
	struct iovec none = { &nothing, 0 };

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		enum wf_seal_cipher c = (enum wf_seal_cipher)cipher;

		assert_int_equal(wf_one_time_seal(&once, c, &none, 0, &nothing, &key), 0);
		assert_int_equal(wf_one_time_open(&once, c, &key, &nothing, &none, 0), 0);
		assert_int_equal(wf_one_time_open(&once, c, &key, &nothing, &none, 1), 0);
		/* The tag covers no bytes, and is looked at. */
		key.tag[0] ^= 1;
		assert_int_equal(wf_one_time_open(&once, c, &key, &nothing, &none, 0), -EBADMSG);
		assert_int_equal(wf_one_time_open(&once, c, &key, &nothing, &none, 1), -EBADMSG);
	}
	wf_one_time_fini(&once);
}

/* Cuts of texts of equal length, of which each is gathered by one and scattered by all others. */
static const struct cut cuts[][5] = {
	{
		{ 1, { 1001 } },
		{ 2, { 1, 1000 } },
		{ 3, { 333, 15, 653 } },
		{ 5, { 16, 0, 16, 17, 952 } },
		{ 6, { 0, 1, 2, 997, 1, 0 } },
	},
	{
		{ 1, { TEXT_BYTES_MAX } },
		{ 2, { TEXT_BYTES_MAX / 2, TEXT_BYTES_MAX / 2 } },
		{ 3, { 65537, 3, TEXT_BYTES_MAX - 65540 } },
		{ 4, { 4095, 131073, 1, TEXT_BYTES_MAX - 135169 } },
		{ 6, { 31, 0, 0, TEXT_BYTES_MAX - 95, 33, 31 } },
	},
};

static void ranges_are_gathered_in_order_and_scattered_into_others(void **state)
{
	struct wf_one_time seals = { 0 }, opens = { 0 };
	struct wf_one_time_key key;

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		for (size_t i = 0; i < WF_COUNT(cuts) * WF_COUNT(cuts[0]); i++) {
			const struct cut *same = cuts[i / WF_COUNT(cuts[0])];
			const struct cut *from = &same[i % WF_COUNT(cuts[0])];
			size_t count = cut_bytes(from);
			uint8_t *text = new_text(count), *sealed = new_bytes(count);
			struct pieces pieces = new_pieces(from);

			fill_pieces(&pieces, text);
			assert_int_equal(wf_one_time_seal(&seals, (enum wf_seal_cipher)cipher,
							  pieces.ranges, pieces.count, sealed,
							  &key), 0);
			expect_pieces(&pieces, text);
			for (size_t k = 0; k < WF_COUNT(cuts[0]); k++)
				expect_opens(&opens, cipher, &key, sealed, &same[k], text);
			free_pieces(&pieces);
			free(text);
			free(sealed);
		}
	}
	wf_one_time_fini(&seals);
	wf_one_time_fini(&opens);
}

#define SEALS 50

static void each_seal_has_a_key_of_its_own(void **state)
{
	static struct wf_one_time_key keys[SEALS];
	static uint8_t sealed[SEALS][33];
	uint8_t *text = new_text(33);
	struct wf_one_time a = { 0 }, b = { 0 };

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		size_t key_bytes = cipher_key_bytes(cipher);

		for (size_t i = 0; i < SEALS; i++) {
			seal(i % 2 ? &b : &a, cipher, text, 33, sealed[i], &keys[i]);
			for (size_t k = 0; k < i; k++) {
				assert_memory_not_equal(&keys[i].secret, &keys[k].secret,
							key_bytes);
				assert_memory_not_equal(keys[i].tag, keys[k].tag,
							WF_SEAL_TAG_BYTES);
				assert_memory_not_equal(sealed[i], sealed[k], 33);
			}
		}
	}
	free(text);
	wf_one_time_fini(&a);
	wf_one_time_fini(&b);
}

static void a_key_opens_only_what_it_has_sealed(void **state)
{
	static const struct cut whole = { 1, { 33 } };
	struct wf_one_time once = { 0 };
	struct wf_one_time_key first, second;
	uint8_t one[33], other[33], *text = new_text(33);

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		seal(&once, cipher, text, 33, one, &first);
		seal(&once, cipher, text, 33, other, &second);
		expect_refused(&once, cipher, &second, one, &whole);
		expect_refused(&once, cipher, &first, other, &whole);
		expect_opens(&once, cipher, &first, one, &whole, text);
		expect_opens(&once, cipher, &second, other, &whole, text);
	}
	free(text);
	wf_one_time_fini(&once);
}

static void a_changed_bit_of_what_is_sealed_is_noticed(void **state)
{
	static const struct cut from = { 1, { 70001 } }, to = { 4, { 4096, 0, 65904, 1 } };
	/* Bytes at both ends, and at both sides of a range's and a block's end. */
	static const size_t positions[] = { 0, 15, 16, 4095, 4096, 35000, 69999, 70000 };
	uint8_t *text = new_text(70001), *sealed = new_bytes(70001);
	struct wf_one_time once = { 0 };
	struct wf_one_time_key key;

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		seal(&once, cipher, text, 70001, sealed, &key);
		for (size_t i = 0; i < 8 * WF_COUNT(positions); i++) {
			uint8_t *at = &sealed[positions[i / 8]];

			*at ^= (uint8_t)(1 << i % 8);
			expect_refused(&once, cipher, &key, sealed, i % 2 ? &from : &to);
			*at ^= (uint8_t)(1 << i % 8);
		}
		/* A refusal leaves key and bytes as they were. */
		expect_opens(&once, cipher, &key, sealed, &to, text);
	}
	free(text);
	free(sealed);
	wf_one_time_fini(&once);
}

static void a_changed_bit_of_the_tag_is_noticed(void **state)
{
	static const struct cut to = { 3, { 1, 16, 16 } }, nothing = { 1, { 0 } };
	struct wf_one_time once = { 0 };
	struct wf_one_time_key key, of_nothing;
	uint8_t sealed[33], *text = new_text(33);

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		seal(&once, cipher, text, 33, sealed, &key);
		seal(&once, cipher, text, 0, sealed, &of_nothing);
		for (size_t bit = 0; bit < 8 * sizeof(key.tag); bit++) {
			key.tag[bit / 8] ^= (uint8_t)(1 << bit % 8);
			of_nothing.tag[bit / 8] ^= (uint8_t)(1 << bit % 8);
			expect_refused(&once, cipher, &key, sealed, &to);
			expect_refused(&once, cipher, &of_nothing, sealed, &nothing);
			key.tag[bit / 8] ^= (uint8_t)(1 << bit % 8);
			of_nothing.tag[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		expect_opens(&once, cipher, &key, sealed, &to, text);
	}
	free(text);
	wf_one_time_fini(&once);
}

static void a_changed_bit_of_the_secret_is_noticed(void **state)
{
	static const struct cut to = { 3, { 1, 16, 16 } };
	struct wf_one_time once = { 0 };
	struct wf_one_time_key key;
	uint8_t sealed[33], *text = new_text(33);

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		seal(&once, cipher, text, 33, sealed, &key);
		for (size_t bit = 0; bit < 8 * cipher_key_bytes(cipher); bit++) {
			key.secret.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			expect_refused(&once, cipher, &key, sealed, &to);
			key.secret.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		expect_opens(&once, cipher, &key, sealed, &to, text);
	}
	free(text);
	wf_one_time_fini(&once);
}

static void bytes_that_are_missing_or_too_many_are_noticed(void **state)
{
	static const struct cut right = { 2, { 16, 17 } };
	static const struct cut wrong[] = {
		{ 1, { 32 } }, { 1, { 34 } }, { 2, { 16, 16 } }, { 2, { 16, 18 } },
		{ 3, { 16, 17, 1 } }, { 2, { 1, 31 } }, { 1, { 1 } }, { 1, { 0 } },
	};
	struct wf_one_time once = { 0 };
	struct wf_one_time_key key;
	uint8_t sealed[34] = { 0 }, *text = new_text(33);

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		seal(&once, cipher, text, 33, sealed, &key);
		for (size_t i = 0; i < WF_COUNT(wrong); i++)
			expect_refused(&once, cipher, &key, sealed, &wrong[i]);
		assert_int_equal(sealed[33], 0);
		expect_opens(&once, cipher, &key, sealed, &right, text);
	}
	free(text);
	wf_one_time_fini(&once);
}

static void bytes_that_changed_places_are_noticed(void **state)
{
	static const struct cut to = { 2, { 16, 16 } };
	struct wf_one_time once = { 0 };
	struct wf_one_time_key key;
	uint8_t sealed[32], swapped[32], *text = new_text(32);

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		seal(&once, cipher, text, 32, sealed, &key);
		memcpy(swapped, sealed + 16, 16);
		memcpy(swapped + 16, sealed, 16);
		expect_refused(&once, cipher, &key, swapped, &to);
		expect_opens(&once, cipher, &key, sealed, &to, text);
	}
	free(text);
	wf_one_time_fini(&once);
}

static void another_cipher_does_not_open(void **state)
{
	static const struct cut to = { 3, { 1, 16, 16 } }, nothing = { 1, { 0 } };
	struct wf_one_time once = { 0 };
	struct wf_one_time_key key;
	uint8_t sealed[33], *text = new_text(33);

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		seal(&once, cipher, text, 33, sealed, &key);
		expect_refused(&once, !cipher, &key, sealed, &to);
		expect_opens(&once, cipher, &key, sealed, &to, text);
		seal(&once, cipher, text, 0, sealed, &key);
		expect_refused(&once, !cipher, &key, sealed, &nothing);
	}
	free(text);
	wf_one_time_fini(&once);
}

/* Seal by libcrypto's own interface, with a nonce of zeros and the key given. */
static void seal_by_hand(const EVP_CIPHER *type, const uint8_t *key, const uint8_t *text,
			 size_t count, uint8_t *sealed, uint8_t tag[WF_SEAL_TAG_BYTES])
{
	static const uint8_t nonce[12];
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int done = 0;

	assert_non_null(ctx);
	assert_int_equal(EVP_EncryptInit_ex(ctx, type, NULL, key, nonce), 1);
	if (count)
		assert_int_equal(EVP_EncryptUpdate(ctx, sealed, &done, text, (int)count), 1);
	assert_int_equal(done, count);
	assert_int_equal(EVP_EncryptFinal_ex(ctx, sealed + count, &done), 1);
	assert_int_equal(done, 0);
	assert_int_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, WF_SEAL_TAG_BYTES, tag),
			 1);
	EVP_CIPHER_CTX_free(ctx);
}

static void a_seal_is_its_cipher_with_a_nonce_of_zeros(void **state)
{
	static const struct cut some[] = {
		{ 1, { 0 } }, { 1, { 1 } }, { 2, { 16, 17 } }, { 4, { 5, 0, 4091, 61441 } },
		{ 2, { 1, TEXT_BYTES_MAX - 1 } },
	};
	struct wf_one_time once = { 0 };
	struct wf_one_time_key key;
	uint8_t tag[WF_SEAL_TAG_BYTES];

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		for (size_t i = 0; i < WF_COUNT(some); i++) {
			size_t count = cut_bytes(&some[i]);
			uint8_t *text = new_text(count), *sealed = new_bytes(count);
			uint8_t *expected = new_bytes(count);
			struct pieces pieces = new_pieces(&some[i]);

			fill_pieces(&pieces, text);
			assert_int_equal(wf_one_time_seal(&once, (enum wf_seal_cipher)cipher,
							  pieces.ranges, pieces.count, sealed,
							  &key), 0);
			seal_by_hand(cipher_type(cipher), key.secret.bytes, text, count, expected,
				     tag);
			assert_memory_equal(sealed, expected, count);
			assert_memory_equal(key.tag, tag, sizeof(tag));
			free_pieces(&pieces);
			free(text);
			free(sealed);
			free(expected);
		}
	}
	wf_one_time_fini(&once);
}

static void a_seal_that_another_program_made_opens(void **state)
{
	static const struct cut to = { 3, { 1, 16, 983 } };
	struct wf_one_time once = { 0 };
	struct wf_one_time_key key = { .secret = { "a secret that has 32 bytes, yes" } };
	uint8_t sealed[1000], *text = new_text(1000);

	(void)state;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		seal_by_hand(cipher_type(cipher), key.secret.bytes, text, 1000, sealed, key.tag);
		expect_opens(&once, cipher, &key, sealed, &to, text);
	}
	free(text);
	wf_one_time_fini(&once);
}

static void zeros_sealed_by_a_key_of_zeros_are_known(void **state)
{
	/* Test case 2 of the GCM specification (McGrew and Viega, 2005). */
	static const struct wf_one_time_key key = {
		.tag = { 0xab, 0x6e, 0x47, 0xd4, 0x2c, 0xec, 0x13, 0xbd,
			 0xf5, 0x3a, 0x67, 0xb2, 0x12, 0x57, 0xbd, 0xdf },
	};
	static const uint8_t sealed[16] = { 0x03, 0x88, 0xda, 0xce, 0x60, 0xb6, 0xa3, 0x92,
					    0xf3, 0x28, 0xc2, 0xb9, 0x71, 0xb2, 0xfe, 0x78 };
	static const uint8_t zeros[16];
	static const struct cut to = { 2, { 3, 13 } };
	struct wf_one_time once = { 0 };

	(void)state;
	expect_opens(&once, WF_SEAL_AES_128_GCM, &key, sealed, &to, zeros);
	wf_one_time_fini(&once);
}

/* Uses of one struct in every order of two: seal or open, either cipher, well or refused. */
static void one_struct_seals_and_opens_by_both_ciphers_in_turn(void **state)
{
	static const struct cut to = { 2, { 8, 25 } };
	struct wf_one_time once = { 0 };
	uint8_t *text = new_text(33);

	(void)state;
	for (unsigned order = 0; order < 64; order++) {
		struct wf_one_time_key keys[WF_SEAL_CIPHERS], later;
		uint8_t sealed[WF_SEAL_CIPHERS][33], again[33];

		for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++)
			seal(&once, cipher, text, 33, sealed[cipher], &keys[cipher]);
		for (unsigned step = 0; step < 2; step++) {
			unsigned use = order >> 3 * step & 7;
			int cipher = use & 1;

			if (use & 2) {
				seal(&once, cipher, text, 33, again, &later);
				expect_opens(&once, cipher, &later, again, &to, text);
				continue;
			}
			keys[cipher].tag[15] ^= use & 4 ? 1 : 0;
			if (use & 4)
				expect_refused(&once, cipher, &keys[cipher], sealed[cipher], &to);
			else
				expect_opens(&once, cipher, &keys[cipher], sealed[cipher], &to,
					     text);
			keys[cipher].tag[15] ^= use & 4 ? 1 : 0;
		}
		for (int cipher = WF_SEAL_CIPHERS; cipher--;)
			expect_opens(&once, cipher, &keys[cipher], sealed[cipher], &to, text);
	}
	free(text);
	wf_one_time_fini(&once);
}

static void a_struct_ends_whatever_it_was_used_for(void **state)
{
	static const struct cut whole = { 1, { 20 } };
	struct wf_one_time_key key;
	uint8_t sealed[20], *text = new_text(20);

	(void)state;
	/* Bit 0 and 1: sealed by either cipher; bit 2 and 3: opened by either. */
	for (unsigned uses = 0; uses < 16; uses++) {
		struct wf_one_time once = { 0 }, another = { 0 };

		for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
			seal(uses >> cipher & 1 ? &once : &another, cipher, text, 20, sealed, &key);
			expect_opens(uses >> (2 + cipher) & 1 ? &once : &another, cipher, &key,
				     sealed, &whole, text);
		}
		wf_one_time_fini(&once);
		wf_one_time_fini(&another);
	}
	free(text);
}

static void nothing_is_freed_of_a_zeroed_struct(void **state)
{
	struct wf_one_time once = { 0 };

	(void)state;
	wf_one_time_fini(&once);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sealed_bytes_open_at_every_size),
		cmocka_unit_test(no_range_at_all_is_a_text_of_no_bytes),
		cmocka_unit_test(ranges_are_gathered_in_order_and_scattered_into_others),
		cmocka_unit_test(each_seal_has_a_key_of_its_own),
		cmocka_unit_test(a_key_opens_only_what_it_has_sealed),
		cmocka_unit_test(a_changed_bit_of_what_is_sealed_is_noticed),
		cmocka_unit_test(a_changed_bit_of_the_tag_is_noticed),
		cmocka_unit_test(a_changed_bit_of_the_secret_is_noticed),
		cmocka_unit_test(bytes_that_are_missing_or_too_many_are_noticed),
		cmocka_unit_test(bytes_that_changed_places_are_noticed),
		cmocka_unit_test(another_cipher_does_not_open),
		cmocka_unit_test(a_seal_is_its_cipher_with_a_nonce_of_zeros),
		cmocka_unit_test(a_seal_that_another_program_made_opens),
		cmocka_unit_test(zeros_sealed_by_a_key_of_zeros_are_known),
		cmocka_unit_test(one_struct_seals_and_opens_by_both_ciphers_in_turn),
		cmocka_unit_test(a_struct_ends_whatever_it_was_used_for),
		cmocka_unit_test(nothing_is_freed_of_a_zeroed_struct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
