/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The secret heap: memory for secrets that outlive a call, in pages of their own.
 *
 * The pages are in no core file (MADV_DONTDUMP), and a forked child has zeros in their place
 * (MADV_WIPEONFORK).  A kernel without these still gives the memory.  Pages may be swapped out, as
 * those with libcrypto's keys may.
 *
 * Secrets that last no longer than a call lie on the stack, and are wiped there.  Keys that libssl
 * and libcrypto make of secrets lie in the heap of malloc().
 *
 * Threads: any.
 */
#ifndef WF_SECRET_HEAP_H
#define WF_SECRET_HEAP_H

#include "secure/secret.h"

/* Take room for a secret, which has zeros.  NULL: no memory. */
struct wf_secret *wf_secret_heap_take(void);

/* Wipe @secret and give its room back; accepts NULL. */
void wf_secret_heap_give(struct wf_secret *secret);

#endif
