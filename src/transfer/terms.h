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
	bool checksum;      /* the body has one */
	bool no_staging;    /* it is not copied into other memory on its way */
	bool no_fallback;   /* its rail is the best that both nodes have */
	uint32_t rails_min; /* that the link runs over */
	const char *provider; /* of its rail, for the life of the process; NULL: any */
};

/* Does the rail of @caps, over which a body goes to or comes from the peer of @link, meet @terms?  -EBADFD with a sentence. */
int wf_terms_rail(const struct wf_terms *terms, const struct wf_link *link,
		  const struct wf_caps *caps, struct wf_error *e);

/* Is it too early to say, for more rails may come up in a moment? */
bool wf_terms_wait(const struct wf_terms *terms, const struct wf_link *link);

/*
 * What is to protect a body for the peer of @link, which has a rail: @terms or the
 * peer may want it.  -EBADFD with a sentence: the peer can't verify what is demanded.
 */
int wf_terms_sum(const struct wf_terms *terms, const struct wf_link *link, uint8_t *sum_kind,
		 struct wf_error *e);

/* May what is on CUDA device @device go through the pool?  -EBADFD with a sentence. */
int wf_terms_stage(const struct wf_terms *terms, int device, struct wf_error *e);

/* Is a body that has come protected as @terms demand?  -EBADFD with a sentence. */
int wf_terms_body(const struct wf_terms *terms, const struct wf_link *link,
		  const struct wf_body *body, struct wf_error *e);

#endif
