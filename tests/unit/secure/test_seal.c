/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/seal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>

#define CLEAR_BYTES 11
#define NUMBER UINT64_C(0x0102030405060708)

static const struct wf_secret secret = { { 's', 'e', 'c', 'r', 'e', 't' } };
static const uint8_t clear[CLEAR_BYTES] = "said openly";

/* One key, ready in each direction. */
struct pair {
	struct wf_seal *closes, *opens;
};

static struct pair open_pair(enum wf_seal_cipher cipher)
{
	struct pair p;

	assert_int_equal(wf_seal_new(cipher, &secret, true, &p.closes), 0);
	assert_int_equal(wf_seal_new(cipher, &secret, false, &p.opens), 0);
	return p;
}

static void close_pair(struct pair *p)
{
	wf_seal_free(p->closes);
	wf_seal_free(p->opens);
}

static void fill(uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256 + 1);
}

/* Opening fails, and no byte of what was there before, nor of the text, is left. */
static void expect_refused(struct wf_seal *seal, uint64_t number, const uint8_t *said,
			   size_t said_count, const uint8_t *sealed, size_t count,
			   const uint8_t tag[WF_SEAL_TAG_BYTES])
{
	static const uint8_t zero[64];
	uint8_t opened[64];

	assert_true(count <= sizeof(opened));
	memset(opened, 0xee, sizeof(opened));
	assert_int_equal(wf_seal_open(seal, number, said, said_count, sealed, opened, count, tag),
			 -EBADMSG);
	assert_memory_equal(opened, zero, count);
}

static void sealed_bytes_open_at_every_size(void **state)
{
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 4096, 65536 };
	uint8_t *text = malloc(65536), *sealed = malloc(65536), *opened = malloc(65536);
	uint8_t tag[WF_SEAL_TAG_BYTES];
	struct pair p;

	(void)state;
	assert_true(text && sealed && opened);
	fill(text, 65536);
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		for (size_t i = 0; i < WF_COUNT(sizes); i++) {
			assert_int_equal(wf_seal_close(p.closes, i, clear, CLEAR_BYTES, text,
						       sealed, sizes[i], tag),
					 0);
			if (sizes[i] >= 15)
				assert_memory_not_equal(sealed, text, sizes[i]);
			assert_int_equal(wf_seal_open(p.opens, i, clear, CLEAR_BYTES, sealed,
						      opened, sizes[i], tag),
					 0);
			assert_memory_equal(opened, text, sizes[i]);
		}
		close_pair(&p);
	}
	free(text);
	free(sealed);
	free(opened);
}

static void sealing_and_opening_work_in_place(void **state)
{
	static const size_t sizes[] = { 1, 15, 16, 17, 4096, 65536 };
	uint8_t *text = malloc(65536), *place = malloc(65536), *apart = malloc(65536);
	uint8_t tag[WF_SEAL_TAG_BYTES], other[WF_SEAL_TAG_BYTES];
	struct pair p;

	(void)state;
	assert_true(text && place && apart);
	fill(text, 65536);
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		for (size_t i = 0; i < WF_COUNT(sizes); i++) {
			memcpy(place, text, sizes[i]);
			assert_int_equal(wf_seal_close(p.closes, i, NULL, 0, text, apart, sizes[i],
						       other), 0);
			assert_int_equal(wf_seal_close(p.closes, i, NULL, 0, place, place, sizes[i],
						       tag), 0);
			assert_memory_equal(place, apart, sizes[i]);
			assert_memory_equal(tag, other, sizeof(tag));
			assert_int_equal(wf_seal_open(p.opens, i, NULL, 0, place, place, sizes[i],
						      tag), 0);
			assert_memory_equal(place, text, sizes[i]);
		}
		close_pair(&p);
	}
	free(text);
	free(place);
	free(apart);
}

static void a_changed_bit_of_what_is_sealed_is_noticed(void **state)
{
	uint8_t text[33], sealed[33], opened[33], tag[WF_SEAL_TAG_BYTES];
	struct pair p;

	(void)state;
	fill(text, sizeof(text));
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		assert_int_equal(wf_seal_close(p.closes, NUMBER, clear, CLEAR_BYTES, text, sealed,
					       sizeof(text), tag), 0);
		for (size_t bit = 0; bit < 8 * sizeof(sealed); bit++) {
			sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
			expect_refused(p.opens, NUMBER, clear, CLEAR_BYTES, sealed, sizeof(sealed),
				       tag);
			sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		/* A refusal leaves the key as it was. */
		assert_int_equal(wf_seal_open(p.opens, NUMBER, clear, CLEAR_BYTES, sealed, opened,
					      sizeof(sealed), tag), 0);
		assert_memory_equal(opened, text, sizeof(text));
		close_pair(&p);
	}
}

static void a_changed_bit_of_what_is_clear_is_noticed(void **state)
{
	uint8_t text[20], sealed[20], tag[WF_SEAL_TAG_BYTES], said[CLEAR_BYTES];
	struct pair p;

	(void)state;
	fill(text, sizeof(text));
	memcpy(said, clear, sizeof(said));
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		assert_int_equal(wf_seal_close(p.closes, NUMBER, clear, CLEAR_BYTES, text, sealed,
					       sizeof(text), tag), 0);
		for (size_t bit = 0; bit < 8 * sizeof(said); bit++) {
			said[bit / 8] ^= (uint8_t)(1 << bit % 8);
			expect_refused(p.opens, NUMBER, said, sizeof(said), sealed, sizeof(sealed),
				       tag);
			said[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		expect_refused(p.opens, NUMBER, said, sizeof(said) - 1, sealed, sizeof(sealed),
			       tag);
		expect_refused(p.opens, NUMBER, NULL, 0, sealed, sizeof(sealed), tag);
		close_pair(&p);
	}
}

static void a_changed_bit_of_the_tag_is_noticed(void **state)
{
	uint8_t text[20], sealed[20], tag[WF_SEAL_TAG_BYTES];
	struct pair p;

	(void)state;
	fill(text, sizeof(text));
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		assert_int_equal(wf_seal_close(p.closes, NUMBER, clear, CLEAR_BYTES, text, sealed,
					       sizeof(text), tag), 0);
		for (size_t bit = 0; bit < 8 * sizeof(tag); bit++) {
			tag[bit / 8] ^= (uint8_t)(1 << bit % 8);
			expect_refused(p.opens, NUMBER, clear, CLEAR_BYTES, sealed, sizeof(sealed),
				       tag);
			/* The tag covers what is clear also where nothing is sealed. */
			expect_refused(p.opens, NUMBER, clear, CLEAR_BYTES, NULL, 0, tag);
			tag[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		close_pair(&p);
	}
}

static void bytes_that_are_missing_or_too_many_are_noticed(void **state)
{
	uint8_t text[20], sealed[21] = { 0 }, tag[WF_SEAL_TAG_BYTES];
	struct pair p;

	(void)state;
	fill(text, sizeof(text));
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		assert_int_equal(wf_seal_close(p.closes, NUMBER, clear, CLEAR_BYTES, text, sealed,
					       sizeof(text), tag), 0);
		for (size_t count = 0; count <= sizeof(sealed); count++)
			if (count != sizeof(text))
				expect_refused(p.opens, NUMBER, clear, CLEAR_BYTES, sealed, count,
					       tag);
		close_pair(&p);
	}
}

static void another_number_does_not_open(void **state)
{
	uint8_t text[20], sealed[20], tag[WF_SEAL_TAG_BYTES];
	struct pair p;

	(void)state;
	fill(text, sizeof(text));
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		assert_int_equal(wf_seal_close(p.closes, NUMBER, clear, CLEAR_BYTES, text, sealed,
					       sizeof(text), tag), 0);
		/* Each of the 64 bits of a number counts. */
		for (int bit = 0; bit < 64; bit++)
			expect_refused(p.opens, NUMBER ^ UINT64_C(1) << bit, clear, CLEAR_BYTES,
				       sealed, sizeof(sealed), tag);
		close_pair(&p);
	}
}

static void another_key_or_cipher_does_not_open(void **state)
{
	uint8_t text[20], sealed[20], tag[WF_SEAL_TAG_BYTES];
	struct wf_secret near = secret;
	struct wf_seal *other;
	struct pair p;

	(void)state;
	fill(text, sizeof(text));
	near.bytes[WF_SECRET_BYTES - 1] ^= 1;
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		assert_int_equal(wf_seal_close(p.closes, NUMBER, clear, CLEAR_BYTES, text, sealed,
					       sizeof(text), tag), 0);
		assert_int_equal(wf_seal_new((enum wf_seal_cipher)cipher, &near, false, &other), 0);
		expect_refused(other, NUMBER, clear, CLEAR_BYTES, sealed, sizeof(sealed), tag);
		wf_seal_free(other);
		assert_int_equal(wf_seal_new((enum wf_seal_cipher) !cipher, &secret, false, &other),
				 0);
		expect_refused(other, NUMBER, clear, CLEAR_BYTES, sealed, sizeof(sealed), tag);
		wf_seal_free(other);
		close_pair(&p);
	}
}

static void a_key_works_in_one_direction_only(void **state)
{
	uint8_t text[20], sealed[20], tag[WF_SEAL_TAG_BYTES], ours[WF_SEAL_TAG_BYTES] = { 0 };
	struct pair p;

	(void)state;
	fill(text, sizeof(text));
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		assert_int_equal(wf_seal_close(p.closes, 1, clear, CLEAR_BYTES, text, sealed,
					       sizeof(text), tag), 0);
		expect_refused(p.closes, 1, clear, CLEAR_BYTES, sealed, sizeof(sealed), tag);
		assert_int_equal(wf_seal_close(p.opens, 2, clear, CLEAR_BYTES, text, sealed,
					       sizeof(text), ours), -EIO);
		close_pair(&p);
	}
}

static void one_text_is_sealed_differently_under_two_numbers(void **state)
{
	uint8_t text[20], first[20], second[20], tag[WF_SEAL_TAG_BYTES], other[WF_SEAL_TAG_BYTES];
	struct pair p;

	(void)state;
	fill(text, sizeof(text));
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		assert_int_equal(wf_seal_close(p.closes, 1, NULL, 0, text, first, 20, tag), 0);
		assert_int_equal(wf_seal_close(p.closes, 2, NULL, 0, text, second, 20, other), 0);
		assert_memory_not_equal(first, second, 20);
		assert_memory_not_equal(tag, other, sizeof(tag));
		close_pair(&p);
	}
}

/* The test's own way to HMAC-SHA256, by another interface of libcrypto. */
static void mac(const void *key, size_t key_bytes, const void *bytes, size_t count, uint8_t out[32])
{
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(hmac);
	size_t got;

	assert_int_equal(EVP_MAC_init(ctx, key, key_bytes, params), 1);
	assert_int_equal(EVP_MAC_update(ctx, bytes, count), 1);
	assert_int_equal(EVP_MAC_final(ctx, out, &got, 32), 1);
	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(hmac);
}

static void a_mac_is_hmac_sha256(void **state)
{
	/* `printf x | openssl dgst -sha256 -mac HMAC` with the key 000102...1f says this. */
	static const uint8_t of_x[32] = {
		0xb3, 0xfb, 0x46, 0xc7, 0xf2, 0xe3, 0xcc, 0x97, 0xb5, 0x9a, 0xa0, 0xd9, 0xee, 0xb0,
		0xfb, 0xc8, 0x18, 0x5c, 0x98, 0x45, 0xb7, 0xa4, 0x1d, 0xe3, 0x2a, 0xd6, 0xdc, 0x83,
		0xfc, 0xe5, 0x63, 0x24,
	};
	uint8_t ours[33] = { 0 }, expected[32], text[200];
	struct wf_secret key;

	(void)state;
	for (int i = 0; i < WF_SECRET_BYTES; i++)
		key.bytes[i] = (uint8_t)i;
	assert_int_equal(wf_secret_mac(&key, "x", 1, ours, 32), 0);
	assert_memory_equal(ours, of_x, 32);
	fill(text, sizeof(text));
	for (size_t count = 0; count <= sizeof(text); count += 25) {
		mac(key.bytes, sizeof(key.bytes), text, count, expected);
		assert_int_equal(wf_secret_mac(&key, text, count, ours, 32), 0);
		assert_memory_equal(ours, expected, 32);
	}
	/* A shorter one is cut from it, and nothing is written behind. */
	memset(ours, 0xee, sizeof(ours));
	assert_int_equal(wf_secret_mac(&key, "x", 1, ours, 8), 0);
	assert_memory_equal(ours, of_x, 8);
	assert_int_equal(ours[8], 0xee);
}

static void a_derived_secret_is_one_step_of_hkdf(void **state)
{
	/* The label, a zero, both numbers with their least byte first, and the block's number. */
	static const uint8_t info[] = { 'k', 'e', 'y', 0,
					8, 7, 6, 5, 4, 3, 2, 1,
					2, 0, 0, 0, 0, 0, 0, 0x80,
					1 };
	struct wf_secret derived;
	uint8_t expected[32];

	(void)state;
	mac(secret.bytes, sizeof(secret.bytes), info, sizeof(info), expected);
	assert_int_equal(wf_secret_derive(&secret, "key", NUMBER, UINT64_C(0x8000000000000002),
					  &derived), 0);
	assert_memory_equal(derived.bytes, expected, sizeof(expected));
}

/* Seal as RFC 8446 does it, by libcrypto's own interface and with the key and nonce given. */
static void seal_by_hand(const EVP_CIPHER *type, const uint8_t *key, const uint8_t nonce[12],
			 const uint8_t *text, int count, uint8_t *sealed,
			 uint8_t tag[WF_SEAL_TAG_BYTES])
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int done;

	assert_non_null(ctx);
	assert_int_equal(EVP_EncryptInit_ex(ctx, type, NULL, key, nonce), 1);
	assert_int_equal(EVP_EncryptUpdate(ctx, NULL, &done, clear, CLEAR_BYTES), 1);
	assert_int_equal(EVP_EncryptUpdate(ctx, sealed, &done, text, count), 1);
	assert_int_equal(done, count);
	assert_int_equal(EVP_EncryptFinal_ex(ctx, sealed + count, &done), 1);
	assert_int_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, WF_SEAL_TAG_BYTES, tag),
			 1);
	EVP_CIPHER_CTX_free(ctx);
}

static void a_seal_is_its_cipher_with_a_derived_key_and_the_number_in_the_nonce(void **state)
{
	uint8_t text[20], expected[20], sealed[20], tag[WF_SEAL_TAG_BYTES], ours[WF_SEAL_TAG_BYTES];
	struct wf_secret key, iv;
	struct pair p;

	(void)state;
	fill(text, sizeof(text));
	assert_int_equal(wf_secret_derive(&secret, "key", 0, 0, &key), 0);
	assert_int_equal(wf_secret_derive(&secret, "iv", 0, 0, &iv), 0);
	for (int i = 0; i < 8; i++)
		iv.bytes[4 + i] ^= (uint8_t)(i + 1); /* NUMBER is 0x0102030405060708 */
	for (int cipher = 0; cipher < WF_SEAL_CIPHERS; cipher++) {
		p = open_pair((enum wf_seal_cipher)cipher);
		seal_by_hand(cipher ? EVP_chacha20_poly1305() : EVP_aes_128_gcm(), key.bytes,
			     iv.bytes, text, sizeof(text), expected, tag);
		assert_int_equal(wf_seal_close(p.closes, NUMBER, clear, CLEAR_BYTES, text, sealed,
					       sizeof(text), ours), 0);
		assert_memory_equal(sealed, expected, sizeof(expected));
		assert_memory_equal(ours, tag, sizeof(tag));
		close_pair(&p);
	}
}

static void derived_secrets_differ_by_secret_label_and_numbers(void **state)
{
	static const struct wf_secret other = { { 'o', 't', 'h', 'e', 'r' } };
	static const struct {
		const struct wf_secret *from;
		const char *label;
		uint64_t a, b;
	} rows[] = {
		{ &secret, "key", 0, 0 }, { &secret, "key", 0, 1 }, { &secret, "key", 1, 0 },
		{ &secret, "key", 1, 1 }, { &secret, "key", 256, 0 }, { &secret, "key", 0, 256 },
		{ &secret, "key", UINT64_C(1) << 63, 0 }, { &secret, "key", 0, UINT64_C(1) << 63 },
		{ &secret, "iv", 0, 0 }, { &secret, "keys", 0, 0 }, { &secret, "", 0, 0 },
		{ &secret, "a label that is 32 bytes long ...", 0, 0 }, { &other, "key", 0, 0 },
	};
	struct wf_secret derived[WF_COUNT(rows)], again;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		assert_int_equal(wf_secret_derive(rows[i].from, rows[i].label, rows[i].a, rows[i].b,
						  &derived[i]), 0);
		assert_int_equal(wf_secret_derive(rows[i].from, rows[i].label, rows[i].a, rows[i].b,
						  &again), 0);
		assert_memory_equal(&derived[i], &again, sizeof(again));
		assert_memory_not_equal(&derived[i], rows[i].from, sizeof(again));
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(&derived[i], &derived[k], sizeof(again));
	}
}

static void secrets_are_compared_whole_and_wiped_whole(void **state)
{
	static const struct wf_secret zero;
	struct wf_secret copy = secret;

	(void)state;
	assert_true(wf_secret_is_same(&copy, &secret, sizeof(copy)));
	for (size_t i = 0; i < sizeof(copy.bytes); i++) {
		copy.bytes[i] ^= 0x80;
		assert_false(wf_secret_is_same(&copy, &secret, sizeof(copy)));
		assert_true(wf_secret_is_same(&copy, &secret, i));
		copy.bytes[i] ^= 0x80;
	}
	wf_secret_wipe(&copy);
	assert_memory_equal(&copy, &zero, sizeof(copy));
}

static void each_cipher_has_a_name_and_one_is_preferred(void **state)
{
	(void)state;
	assert_string_equal(wf_seal_name(WF_SEAL_AES_128_GCM), "AES-128-GCM");
	assert_string_equal(wf_seal_name(WF_SEAL_CHACHA20_POLY1305), "ChaCha20-Poly1305");
	assert_in_range(wf_seal_preferred(), 0, WF_SEAL_CIPHERS - 1);
	wf_seal_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sealed_bytes_open_at_every_size),
		cmocka_unit_test(sealing_and_opening_work_in_place),
		cmocka_unit_test(a_changed_bit_of_what_is_sealed_is_noticed),
		cmocka_unit_test(a_changed_bit_of_what_is_clear_is_noticed),
		cmocka_unit_test(a_changed_bit_of_the_tag_is_noticed),
		cmocka_unit_test(bytes_that_are_missing_or_too_many_are_noticed),
		cmocka_unit_test(another_number_does_not_open),
		cmocka_unit_test(another_key_or_cipher_does_not_open),
		cmocka_unit_test(a_key_works_in_one_direction_only),
		cmocka_unit_test(one_text_is_sealed_differently_under_two_numbers),
		cmocka_unit_test(a_mac_is_hmac_sha256),
		cmocka_unit_test(a_derived_secret_is_one_step_of_hkdf),
		cmocka_unit_test(
			a_seal_is_its_cipher_with_a_derived_key_and_the_number_in_the_nonce),
		cmocka_unit_test(derived_secrets_differ_by_secret_label_and_numbers),
		cmocka_unit_test(secrets_are_compared_whole_and_wiped_whole),
		cmocka_unit_test(each_cipher_has_a_name_and_one_is_preferred),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
