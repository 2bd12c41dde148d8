/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/one_time.h"

#include <errno.h>
#include <string.h>

#include <openssl/evp.h>

#include "secure/internal.h"
#include "util/random.h"

#define NONCE_BYTES 12

/* Returns the context of @cipher, which keeps no key between its uses; NULL: no memory. */
static EVP_CIPHER_CTX *context_of(struct wf_one_time *once, enum wf_seal_cipher cipher)
{
	EVP_CIPHER_CTX *context = once->contexts[cipher];

	if (context)
		return context;
	context = EVP_CIPHER_CTX_new();
	if (context && !EVP_CipherInit_ex(context, wf_seal_type(cipher), NULL, NULL, NULL, 1)) {
		EVP_CIPHER_CTX_free(context);
		return NULL;
	}
	once->contexts[cipher] = context;
	return context;
}

void wf_one_time_fini(struct wf_one_time *once)
{
	for (unsigned i = 0; i < WF_SEAL_CIPHERS; i++)
		EVP_CIPHER_CTX_free(once->contexts[i]);
	*once = (struct wf_one_time){ 0 };
}

/* Set @secret up in @context, to seal or to open. */
static bool begin(EVP_CIPHER_CTX *context, const struct wf_secret *secret, bool seals)
{
	static const uint8_t nonce[NONCE_BYTES];

	return EVP_CipherInit_ex(context, NULL, NULL, secret->bytes, nonce, seals);
}

/* Overwrite the key in @context. */
static void forget(EVP_CIPHER_CTX *context)
{
	static const struct wf_secret none;

	(void)begin(context, &none, true);
}

int wf_one_time_seal(struct wf_one_time *once, enum wf_seal_cipher cipher,
		     const struct iovec *from, unsigned count, void *to,
		     struct wf_one_time_key *key)
{
	EVP_CIPHER_CTX *context = context_of(once, cipher);
	uint8_t rest[EVP_MAX_BLOCK_LENGTH], *at = to;
	bool ok;
	int done;

	if (!context)
		return -ENOMEM;
	wf_random_fill(&key->secret, sizeof(key->secret));
	ok = begin(context, &key->secret, true);
	for (unsigned i = 0; ok && i < count; i++) {
		ok = EVP_CipherUpdate(context, at, &done, from[i].iov_base, (int)from[i].iov_len);
		at += from[i].iov_len;
	}
	ok = ok && EVP_CipherFinal_ex(context, rest, &done) &&
	     EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, WF_SEAL_TAG_BYTES, key->tag);
	forget(context);
	return ok ? 0 : -EIO;
}

int wf_one_time_open(struct wf_one_time *once, enum wf_seal_cipher cipher,
		     const struct wf_one_time_key *key, const void *from, const struct iovec *to,
		     unsigned count)
{
	EVP_CIPHER_CTX *context = context_of(once, cipher);
	uint8_t rest[EVP_MAX_BLOCK_LENGTH], tag[WF_SEAL_TAG_BYTES];
	const uint8_t *at = from;
	bool ok = context && begin(context, &key->secret, false);
	int done;

	memcpy(tag, key->tag, sizeof(tag)); /* libcrypto takes no const */
	for (unsigned i = 0; ok && i < count; i++) {
		ok = EVP_CipherUpdate(context, to[i].iov_base, &done, at, (int)to[i].iov_len);
		at += to[i].iov_len;
	}
	ok = ok && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, WF_SEAL_TAG_BYTES, tag) &&
	     EVP_CipherFinal_ex(context, rest, &done);
	if (context)
		forget(context);
	for (unsigned i = 0; !ok && i < count; i++)
		if (to[i].iov_len)
			memset(to[i].iov_base, 0, to[i].iov_len);
	if (!context)
		return -ENOMEM;
	return ok ? 0 : -EBADMSG;
}
