/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/secret.h"

#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "util/bytes.h"

#define LABEL_BYTES_MAX 32

int wf_secret_derive(const struct wf_secret *secret, const char *label, uint64_t a, uint64_t b,
		     struct wf_secret *derived)
{
	uint8_t info[LABEL_BYTES_MAX + 18] = { 0 };
	struct wf_bytes_writer w = wf_bytes_writer(info, sizeof(info));

	wf_bytes_put(&w, label, strnlen(label, LABEL_BYTES_MAX));
	wf_bytes_put_u8(&w, 0);
	wf_bytes_put_u64(&w, a);
	wf_bytes_put_u64(&w, b);
	wf_bytes_put_u8(&w, 1); /* the number of the block, of which HKDF makes one here */
	return wf_secret_mac(secret, info, sizeof(info) - wf_bytes_writer_left(&w), derived->bytes,
			     sizeof(derived->bytes));
}

int wf_secret_mac(const struct wf_secret *secret, const void *bytes, size_t count, uint8_t *mac,
		  size_t mac_bytes)
{
	uint8_t whole[EVP_MAX_MD_SIZE];
	bool ok = HMAC(EVP_sha256(), secret->bytes, sizeof(secret->bytes), bytes, count, whole,
		       NULL);

	if (ok)
		memcpy(mac, whole, mac_bytes);
	OPENSSL_cleanse(whole, sizeof(whole));
	return ok ? 0 : -ENOMEM;
}

void wf_secret_wipe(struct wf_secret *secret)
{
	OPENSSL_cleanse(secret, sizeof(*secret));
}

bool wf_secret_is_same(const void *a, const void *b, size_t count)
{
	return !CRYPTO_memcmp(a, b, count);
}
