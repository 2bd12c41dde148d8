/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "secure/internal.h"

#define NONCE_BYTES 12 /* the key's own bytes, and the number combined with the last eight */

struct wf_seal {
	EVP_CIPHER_CTX *cipher;
	uint8_t iv[NONCE_BYTES];
};

static const struct {
	const char *name;
	const EVP_CIPHER *(*type)(void);
} ciphers[WF_SEAL_CIPHERS] = {
	[WF_SEAL_AES_128_GCM] = { "AES-128-GCM", EVP_aes_128_gcm },
	[WF_SEAL_CHACHA20_POLY1305] = { "ChaCha20-Poly1305", EVP_chacha20_poly1305 },
};

/* Without instructions for AES, ChaCha20 is the faster one. */
enum wf_seal_cipher wf_seal_preferred(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul") ?
		       WF_SEAL_AES_128_GCM : WF_SEAL_CHACHA20_POLY1305;
#elif defined(__ARM_FEATURE_AES) || defined(__ARM_FEATURE_CRYPTO)
	return WF_SEAL_AES_128_GCM;
#else
	return WF_SEAL_CHACHA20_POLY1305;
#endif
}

const char *wf_seal_name(enum wf_seal_cipher cipher)
{
	return ciphers[cipher].name;
}

const EVP_CIPHER *wf_seal_type(enum wf_seal_cipher cipher)
{
	return ciphers[cipher].type();
}

int wf_seal_new(enum wf_seal_cipher cipher, const struct wf_secret *secret, bool seals,
		struct wf_seal **seal)
{
	struct wf_secret key = { 0 }, iv = { 0 };
	struct wf_seal *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return -ENOMEM;
	s->cipher = EVP_CIPHER_CTX_new();
	if (s->cipher && !wf_secret_derive(secret, "key", 0, 0, &key) &&
	    !wf_secret_derive(secret, "iv", 0, 0, &iv)) {
		memcpy(s->iv, iv.bytes, sizeof(s->iv));
		if (EVP_CipherInit_ex(s->cipher, wf_seal_type(cipher), NULL, key.bytes, NULL,
				      seals))
			err = 0;
	}
	wf_secret_wipe(&key);
	wf_secret_wipe(&iv);
	if (err)
		wf_seal_free(s);
	else
		*seal = s;
	return err;
}

void wf_seal_free(struct wf_seal *seal)
{
	if (!seal)
		return;
	EVP_CIPHER_CTX_free(seal->cipher); /* wipes the key */
	OPENSSL_cleanse(seal, sizeof(*seal));
	free(seal);
}

/* Set the nonce of @number, and add @clear to what the tag covers. */
static bool begin(struct wf_seal *s, uint64_t number, const void *clear, size_t clear_count)
{
	uint8_t nonce[NONCE_BYTES];
	int done;

	memcpy(nonce, s->iv, sizeof(nonce));
	for (int i = 0; i < 8; i++)
		nonce[NONCE_BYTES - 1 - i] ^= (uint8_t)(number >> 8 * i);
	return EVP_CipherInit_ex(s->cipher, NULL, NULL, NULL, nonce, -1) &&
	       (!clear_count || EVP_CipherUpdate(s->cipher, NULL, &done, clear, (int)clear_count));
}

int wf_seal_close(struct wf_seal *s, uint64_t number, const void *clear, size_t clear_count,
		  const void *from, void *to, size_t count, uint8_t tag[WF_SEAL_TAG_BYTES])
{
	uint8_t rest[EVP_MAX_BLOCK_LENGTH];
	int done;

	if (!begin(s, number, clear, clear_count) ||
	    (count && !EVP_CipherUpdate(s->cipher, to, &done, from, (int)count)) ||
	    !EVP_CipherFinal_ex(s->cipher, rest, &done) ||
	    !EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_AEAD_GET_TAG, WF_SEAL_TAG_BYTES, tag))
		return -EIO;
	return 0;
}

int wf_seal_open(struct wf_seal *s, uint64_t number, const void *clear, size_t clear_count,
		 const void *from, void *to, size_t count, const uint8_t tag[WF_SEAL_TAG_BYTES])
{
	uint8_t rest[EVP_MAX_BLOCK_LENGTH], expected[WF_SEAL_TAG_BYTES];
	int done;

	memcpy(expected, tag, sizeof(expected)); /* libcrypto takes no const */
	if (begin(s, number, clear, clear_count) &&
	    (!count || EVP_CipherUpdate(s->cipher, to, &done, from, (int)count)) &&
	    EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_AEAD_SET_TAG, WF_SEAL_TAG_BYTES, expected) &&
	    EVP_CipherFinal_ex(s->cipher, rest, &done))
		return 0;
	if (count)
		memset(to, 0, count);
	return -EBADMSG;
}
