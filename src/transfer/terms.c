/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/terms.h"

#include <errno.h>

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
