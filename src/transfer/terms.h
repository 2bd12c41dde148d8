/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Terms: an operation's demands on the way of its body, on pain of failure.
 *
 * Threads: the owner of the struct.
 */
#ifndef WF_TERMS_H
#define WF_TERMS_H

#include "link/link.h"

struct wf_terms {
	bool checksum;      /* the body has one */
	bool no_staging;    /* the body is not copied into other memory on its way */
	bool no_fallback;   /* the body's rail is the best that both nodes have */
	uint8_t priority;   /* priority of the operation, 0 to WEFT_PRIORITY_MAX */
	uint32_t rails_min; /* rails that the link must run over */
	const char *provider; /* provider of the rail, for the life of the process; NULL: any */
};

/*
 * Check that the rail of @caps, over which a body goes to or comes from the peer of @link, meets
 * @terms.  -EBADFD with a sentence.
 */
int wf_terms_rail(const struct wf_terms *terms, const struct wf_link *link,
		  const struct wf_rail_caps *caps, struct wf_error *e);

/*
 * Check that a body that is offered over the rail of @link may be sealed, if bodies are, for which it
 * goes through memory of the pool.  -EBADFD with a sentence.
 */
int wf_terms_seal(const struct wf_terms *terms, const struct wf_link *link, struct wf_error *e);

/*
 * Returns whether more rails may come up in a moment, so that it is too early to check: the body
 * asks again after WF_TERMS_WAIT_NS.
 */
#define WF_TERMS_WAIT_NS WF_NS_PER_MS
bool wf_terms_wait(const struct wf_terms *terms, const struct wf_link *link);

/*
 * Choose the checksum of a body for the peer of @link, which has a rail: @terms or the peer may
 * want one.  -EBADFD with a sentence: the peer can't verify the checksum that @terms demand.
 */
int wf_terms_sum(const struct wf_terms *terms, const struct wf_link *link, uint8_t *sum_kind,
		 struct wf_error *e);

/* Check that a body on CUDA device @device may go through the pool.  -EBADFD with a sentence. */
int wf_terms_stage(const struct wf_terms *terms, int device, struct wf_error *e);

/* Check that a body that has come is protected as @terms demand.  -EBADFD with a sentence. */
int wf_terms_body(const struct wf_terms *terms, const struct wf_link *link,
		  const struct wf_body *body, struct wf_error *e);

#endif
