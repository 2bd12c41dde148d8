/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Secrets of 32 bytes, and what is derived from them.
 *
 * Threads: any.
 */
#ifndef WF_SECRET_H
#define WF_SECRET_H

#include "util/base.h"

#define WF_SECRET_BYTES 32

struct wf_secret {
	uint8_t bytes[WF_SECRET_BYTES];
};

/*
 * Derive the secret of @label and two numbers from @secret: HMAC-SHA256, as one step of HKDF.
 * -ENOMEM.
 */
int wf_secret_derive(const struct wf_secret *secret, const char *label, uint64_t a, uint64_t b,
		     struct wf_secret *derived);

/* Write the HMAC-SHA256 of @count bytes, cut to @mac_bytes (at most 32).  -ENOMEM. */
int wf_secret_mac(const struct wf_secret *secret, const void *bytes, size_t count, uint8_t *mac,
		  size_t mac_bytes);

/* Overwrite @secret; the compiler does not leave that out. */
void wf_secret_wipe(struct wf_secret *secret);

/* Do @count bytes agree?  It takes the same time wherever they differ. */
bool wf_secret_is_same(const void *a, const void *b, size_t count);

#endif
