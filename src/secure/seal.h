/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seals: bytes encrypted and authenticated by AES-128-GCM or ChaCha20-Poly1305.
 *
 * One key seals in one direction only.  Its user numbers what it seals, and never uses a number
 * twice: the number is the nonce.
 *
 * Threads: owner.
 */
#ifndef WF_SEAL_H
#define WF_SEAL_H

#include "secure/secret.h"

#define WF_SEAL_TAG_BYTES 16

/* Ciphers, by the numbers that peers say. */
enum wf_seal_cipher { WF_SEAL_AES_128_GCM = 0, WF_SEAL_CHACHA20_POLY1305 = 1, WF_SEAL_CIPHERS };

/* The cipher that this processor does faster. */
enum wf_seal_cipher wf_seal_preferred(void);
const char *wf_seal_name(enum wf_seal_cipher cipher);

struct wf_seal; /* a key, ready to use in one direction */

/* Make the key of @secret.  @seals: to seal with, else to open with.  -ENOMEM. */
int wf_seal_new(enum wf_seal_cipher cipher, const struct wf_secret *secret, bool seals,
		struct wf_seal **seal);

/* Wipe and free the key; accepts NULL. */
void wf_seal_free(struct wf_seal *seal);

/*
 * Encrypt @count bytes from @from to @to, which may be one place but must not overlap otherwise,
 * and write the tag over them and over @clear, which stays as it is.  -EIO: libcrypto failed.
 */
int wf_seal_close(struct wf_seal *seal, uint64_t number, const void *clear, size_t clear_count,
		  const void *from, void *to, size_t count, uint8_t tag[WF_SEAL_TAG_BYTES]);

/* Decrypt what wf_seal_close() has sealed.  -EBADMSG: it does not verify, and @to has zeros. */
int wf_seal_open(struct wf_seal *seal, uint64_t number, const void *clear, size_t clear_count,
		 const void *from, void *to, size_t count, const uint8_t tag[WF_SEAL_TAG_BYTES]);

#endif
