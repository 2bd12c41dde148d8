/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages in one direction, sealed: each has a number, which its reader sees, and the key changes
 * with the count.
 *
 * After WF_RATCHET_COUNT numbers the next key is derived from the last one's secret, which is
 * wiped.  A reader takes messages out of order within WF_RATCHET_WINDOW of the highest number, and
 * each once.
 *
 * Threads: owner.
 */
#ifndef WF_RATCHET_H
#define WF_RATCHET_H

#include "secure/seal.h"

#define WF_RATCHET_COUNT 65536u /* messages of one key: with 16 KiB each, 1 GiB */
#define WF_RATCHET_WINDOW 256u
#define WF_RATCHET_NUMBER_MAX (UINT64_C(1) << 48) /* numbers have 48 bits on the wire */

struct wf_ratchet {
	enum wf_seal_cipher cipher;
	bool seals;
	uint64_t number;      /* the next to seal with; of a reader: above the highest read */
	uint64_t generation;  /* generation of @seal: number / WF_RATCHET_COUNT */
	/* The secret, in the secret heap, of which the next key and the secret after it come. */
	struct wf_secret *next;
	struct wf_seal *seal;
	struct wf_seal *last; /* a reader's key before, for late messages; NULL: none */
	/* numbers that a reader has read: bit n % WF_RATCHET_WINDOW for number n */
	uint64_t seen[WF_RATCHET_WINDOW / 64];
};

/* Begin with @secret, which nothing else may use.  -ENOMEM. */
int wf_ratchet_begin(struct wf_ratchet *ratchet, enum wf_seal_cipher cipher,
		     const struct wf_secret *secret, bool seals);

/* Wipe the keys.  Accepts a zeroed struct. */
void wf_ratchet_end(struct wf_ratchet *ratchet);

/*
 * Seal as wf_seal_close() does, with @ratchet->number, which is the next one's then.  -EOVERFLOW:
 * no number is left.
 */
int wf_ratchet_seal(struct wf_ratchet *ratchet, const void *clear, size_t clear_count,
		    const void *from, void *to, size_t count, uint8_t tag[WF_SEAL_TAG_BYTES]);

/*
 * Open as wf_seal_open() does.  -EALREADY: @number was read before, or is too old to know.
 * -EBADMSG: it does not verify, and nothing has changed.  -ENOMEM.
 */
int wf_ratchet_open(struct wf_ratchet *ratchet, uint64_t number, const void *clear,
		    size_t clear_count, const void *from, void *to, size_t count,
		    const uint8_t tag[WF_SEAL_TAG_BYTES]);

#endif
