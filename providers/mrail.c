/* SPDX-License-Identifier: BSD-2-Clause */
/* mrail: libfabric's layer that joins several rails; refused, weft does that by itself. */
#include "providers/rows.h"

static const struct wf_provider_quirk mrail_quirks[] = {
	{ .kind = WF_QUIRK_NONE },
};

const struct wf_provider wf_provider_mrail = {
	.name = "ofi_mrail", /* matches every name that ends with this layer */
	.label = "mrail",
	.rank = 95,
	.shape = WF_SHAPE_SHARED,
	.wait = WF_WAIT_NONE,
	.by_name = true,
	.refused = "it opens, but no message of one node reaches another; name the NICs in "
		   "WEFT_DEVICE instead",
	.frame_bytes = 4 * KIB,
	.eager_bytes = 4 * KIB,
	.chunk_bytes = 256 * KIB,
	.depth = 1,
	.quirks = mrail_quirks,
};
