/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the floor: what its files share of OpenSSL's types. */
#ifndef WF_SECURE_INTERNAL_H
#define WF_SECURE_INTERNAL_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "secure/credentials.h"
#include "secure/identity.h"
#include "secure/seal.h"

#define WF_KEY_ID_BYTES 21 /* "key:" and 16 digits */

/* The key of a key file. */
struct wf_credentials_key {
	struct wf_secret *psk;    /* derived from the file; of the secret heap */
	char id[WF_KEY_ID_BYTES]; /* names the key to peers, and tells nothing of it */
};

struct wf_credentials {
	atomic_uint refs;
	SSL_CTX *tls;
	bool has_key;           /* a key file; otherwise certificates */
	struct wf_credentials_key key;
	/* The key before, which does until @older_until_ns; @lock is for its secret. */
	struct wf_credentials_key older;
	_Atomic uint64_t older_until_ns; /* 0: there is none */
	pthread_mutex_t lock;
	char identity[WF_IDENTITY_BYTES]; /* as peers see it; "": the certificate has no name */
	char *peers;            /* owned; NULL: any identity that an authority has signed */
};

/* OpenSSL's name of @cipher. */
const EVP_CIPHER *wf_seal_type(enum wf_seal_cipher cipher);

#endif
