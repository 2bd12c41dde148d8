/* SPDX-License-Identifier: BSD-2-Clause */
/* udp: refused; the row is here so that asking for udp gets an answer. */
#include "providers/rows.h"

static const struct wf_provider_quirk udp_quirks[] = {
	{ .kind = WF_QUIRK_NONE },
};

const struct wf_provider wf_provider_udp = {
	.name = "udp",
	.label = "udp",
	.rank = 90,
	.shape = WF_SHAPE_SHARED,
	.wait = WF_WAIT_NONE,
	.by_name = true,
	.by_ip = true,
	.refused = "a peer's restart or one bad key breaks the pair for good",
	.frame_bytes = 1 * KIB,
	.eager_bytes = 1 * KIB,
	.chunk_bytes = 64 * KIB,
	.depth = 1,
	.quirks = udp_quirks,
};
