/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the floor: what its files share of OpenSSL's types. */
#ifndef WF_SECURE_INTERNAL_H
#define WF_SECURE_INTERNAL_H

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "secure/credentials.h"
#include "secure/seal.h"

#define WF_KEY_ID_BYTES 21 /* "key:" and 16 digits */

struct wf_credentials {
	atomic_uint refs;
	SSL_CTX *tls;
	bool has_key;           /* a key file; otherwise certificates */
	struct wf_secret psk;   /* derived from the key file */
	char key_id[WF_KEY_ID_BYTES]; /* names the key to peers, and tells nothing of it */
	char *peers;            /* owned; NULL: any identity that an authority has signed */
};

/* OpenSSL's name of @cipher. */
const EVP_CIPHER *wf_seal_type(enum wf_seal_cipher cipher);

#endif
