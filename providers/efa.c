/* SPDX-License-Identifier: BSD-2-Clause */
/* efa: Amazon's adapter, reliable datagrams. */
#include "providers/rows.h"

static const struct wf_provider_quirk efa_quirks[] = {
	{ .kind = WF_QUIRK_NONE },
};

const struct wf_provider wf_provider_efa = {
	.name = "efa",
	.label = "efa",
	.rank = 20,
	.shape = WF_SHAPE_SHARED,
	.wait = WF_WAIT_NONE,
	.revoke = WF_REVOKE_NONE,
	.by_name = true, /* efa has not run weft's tests yet */
	.rdma = true,
	.frame_bytes = 8 * KIB, /* below one packet of 8928 bytes; not tuned yet */
	.eager_bytes = 16 * KIB, /* not tuned yet */
	.chunk_bytes = 1 * MIB, /* not tuned yet */
	.depth = 4, /* not tuned yet */
	.quirks = efa_quirks,
};
