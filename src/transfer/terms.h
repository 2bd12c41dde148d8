/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Terms: what an operation demands of the way its body goes, on pain of
 * failure.
 *
 * Threads: whoever owns the struct.
 */
#ifndef WF_TERMS_H
#define WF_TERMS_H

#include "link/link.h"

struct wf_terms {
	bool checksum; /* the body has one */
};

/*
 * What is to protect a body for the peer of @link, which has a rail: @terms or the
 * peer may want it.  -EBADFD with a sentence: the peer can't verify what is demanded.
 */
int wf_terms_sum(const struct wf_terms *terms, const struct wf_link *link, uint8_t *sum_kind,
		 struct wf_error *e);

/* Is a body that has come protected as @terms demand?  -EBADFD with a sentence. */
int wf_terms_body(const struct wf_terms *terms, const struct wf_link *link,
		  const struct wf_body *body, struct wf_error *e);

#endif
