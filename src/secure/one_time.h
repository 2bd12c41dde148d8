/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-time seals: bytes encrypted by a key that is used once, and that travels apart from them.
 *
 * The key is random, and has no other use: so there is no nonce to be used twice, and whoever has
 * the key has nothing else by it.
 *
 * Threads: owner.
 */
#ifndef WF_ONE_TIME_H
#define WF_ONE_TIME_H

#include <sys/uio.h>
#include "secure/seal.h"

struct evp_cipher_ctx_st;

/* Contexts of libcrypto's to seal and open with.  All zero: nothing was sealed or opened yet. */
struct wf_one_time {
	struct evp_cipher_ctx_st *contexts[WF_SEAL_CIPHERS];
};

/* The key of what was sealed, and the tag that proves it. */
struct wf_one_time_key {
	struct wf_secret secret;
	uint8_t tag[WF_SEAL_TAG_BYTES];
};

/* Free what @once holds.  Accepts a zeroed struct. */
void wf_one_time_fini(struct wf_one_time *once);

/*
 * Encrypt the @count ranges @from, one after another, to @to, which overlaps none of them, by a
 * fresh @key.  Ranges have less than 2 GiB.  -ENOMEM; -EIO: libcrypto failed.
 */
int wf_one_time_seal(struct wf_one_time *once, enum wf_seal_cipher cipher,
		     const struct iovec *from, unsigned count, void *to,
		     struct wf_one_time_key *key);

/*
 * Decrypt what wf_one_time_seal() has made, at @from, to the @count ranges @to.  -EBADMSG: it does
 * not verify, and the ranges have zeros.  -ENOMEM: so they have.
 */
int wf_one_time_open(struct wf_one_time *once, enum wf_seal_cipher cipher,
		     const struct wf_one_time_key *key, const void *from, const struct iovec *to,
		     unsigned count);

#endif
