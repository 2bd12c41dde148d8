/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/terms.h"

#include <errno.h>
#include <strings.h>

#define RAILS 1 /* that a link runs over, as things stand */

int wf_terms_rail(const struct wf_terms *terms, const struct wf_link *link,
		  const struct wf_caps *caps, struct wf_error *e)
{
	const struct wf_caps *better = terms->no_fallback ? wf_link_better(link, caps) : NULL;
	char why[WF_GREET_TEXT_BYTES];

	if (terms->provider[0] && strcasecmp(terms->provider, caps->provider)) {
		wf_link_why_not(link, terms->provider, why, sizeof(why));
		return wf_error_set(e, -EBADFD, "the link to %s runs over %s, not %s as asked: %s",
				    wf_link_label(link), caps->provider, terms->provider, why);
	}
	if (better) {
		wf_link_why_not(link, better->provider, why, sizeof(why));
		return wf_error_set(e, -EBADFD,
				    "the link to %s runs over %s, not %s, and no fallback was asked for: %s",
				    wf_link_label(link), caps->provider, better->provider, why);
	}
	if (terms->rails_min > RAILS)
		return wf_error_set(e, -EBADFD, "%u rails were asked for, and the link to %s runs over %d, %s",
				    terms->rails_min, wf_link_label(link), RAILS, caps->provider);
	return 0;
}

int wf_terms_sum(const struct wf_terms *terms, const struct wf_link *link, uint8_t *sum_kind,
		 struct wf_error *e)
{
	bool can = link->peer.checksums & WF_BODY_SUM_XXH3;

	if (terms->checksum && !can)
		return wf_error_set(e, -EBADFD, "a checksum was asked for, and %s can verify none",
				    wf_link_label(link));
	*sum_kind = can && (terms->checksum || link->peer.checksum) ? WF_BODY_SUM_XXH3
								     : WF_BODY_SUM_NONE;
	return 0;
}

int wf_terms_body(const struct wf_terms *terms, const struct wf_link *link,
		  const struct wf_body *body, struct wf_error *e)
{
	if (terms->checksum && body->bytes && body->sum_kind == WF_BODY_SUM_NONE)
		return wf_error_set(e, -EBADFD, "a checksum was asked for, and %s sent none",
				    wf_link_label(link));
	return 0;
}
