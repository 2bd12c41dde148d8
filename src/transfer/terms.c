/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/terms.h"

#include <errno.h>
#include <strings.h>

#include "link/fit.h"

int wf_terms_rail(const struct wf_terms *terms, const struct wf_link *link,
		  const struct wf_rail_caps *caps, struct wf_error *e)
{
	const struct wf_rail_caps *better = terms->no_fallback ? wf_fit_better(link, caps) : NULL;
	uint32_t rails = terms->rails_min ? 1 + wf_lane_count(link) : 1;
	char why[WF_GREET_TEXT_BYTES];

	if (terms->provider && strcasecmp(terms->provider, caps->provider)) {
		wf_fit_why_not(link, terms->provider, why, sizeof(why));
		return wf_error_set(e, -EBADFD, "the link to %s runs over %s, not %s as asked: %s",
				    wf_link_label(link), caps->provider, terms->provider, why);
	}
	if (better) {
		wf_fit_why_not(link, better->provider, why, sizeof(why));
		return wf_error_set(e, -EBADFD,
				    "the link to %s runs over %s, not %s, and no fallback was asked for: %s",
				    wf_link_label(link), caps->provider, better->provider, why);
	}
	if (terms->rails_min > rails)
		return wf_error_set(e, -EBADFD, "%u rails were asked for, and the link to %s runs over %u, %s",
				    terms->rails_min, wf_link_label(link), rails, caps->provider);
	return 0;
}

int wf_terms_seal(const struct wf_terms *terms, const struct wf_link *link, struct wf_error *e)
{
	if (!terms->no_staging || !wf_seals_bodies(link))
		return 0;
	return wf_error_set(e, -EBADFD,
			    "no staging was asked for, and bodies are sealed on their way to and from %s",
			    wf_link_label(link));
}

bool wf_terms_wait(const struct wf_terms *terms, const struct wf_link *link)
{
	return terms->rails_min > 1 + wf_lane_count(link) && wf_lane_may_come(link);
}

int wf_terms_sum(const struct wf_terms *terms, const struct wf_link *link, uint8_t *sum_kind,
		 struct wf_error *e)
{
	bool can = link->peer->checksums & WF_BODY_SUM_XXH3;

	if (terms->checksum && !can)
		return wf_error_set(e, -EBADFD, "a checksum was asked for, and %s can verify none",
				    wf_link_label(link));
	*sum_kind = can && (terms->checksum || link->peer->checksum) ? WF_BODY_SUM_XXH3
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

int wf_terms_stage(const struct wf_terms *terms, int device, struct wf_error *e)
{
	if (!terms->no_staging)
		return 0;
	return wf_error_set(e, -EBADFD,
			    "no staging was asked for, and memory of CUDA device %d goes through the pool",
			    device);
}
