/* SPDX-License-Identifier: BSD-2-Clause */
/* generic: a provider that weft does not know.  Careful numbers. */
#include "providers/rows.h"

static const struct wf_provider_quirk generic_quirks[] = {
	{ .kind = WF_QUIRK_NONE },
};

const struct wf_provider wf_provider_generic = {
	.name = NULL,
	.label = "generic",
	.rank = 100,
	.shape = WF_SHAPE_SHARED,
	.wait = WF_WAIT_NONE,
	.revoke = WF_REVOKE_NONE,
	.by_name = true, /* an untried provider is not chosen unasked */
	.reg_cheap = false,
	.frame_bytes = 4 * KIB,
	.eager_bytes = 4 * KIB,
	.chunk_bytes = 256 * KIB,
	.depth = 2,
	.quirks = generic_quirks,
};
