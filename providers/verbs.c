/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs: InfiniBand and RoCE through rdma-core. */
#include "providers/rows.h"

static const struct wf_provider_quirk verbs_quirks[] = {
	{ .kind = WF_QUIRK_CQ_PER_EP,
	  .why = "a completion queue has the size it was given, and an endpoint is let post "
		 "whatever others of its queue have under way: one that overruns ends them all",
	  .test = "tests/unit/fabric/test_rail_fake.c" },
	{ .kind = WF_QUIRK_NONE },
};

const struct wf_provider wf_provider_verbs = {
	.name = "verbs",
	.label = "verbs",
	.rank = 10,
	.shape = WF_SHAPE_CONNECTED,
	.wait = WF_WAIT_LEVEL,
	.revoke = WF_REVOKE_NONE,
	.rdma = true,
	.by_ip = true, /* rdma_cm listens on the adapter's IP address */
	.reg_cheap = false, /* registering pins pages: 0.1 ms and more */
	.device = true, /* no adapter has been tried */
	.tested = true,
	.tested_over = "Soft-RoCE in virtual machines",
	.not_forked = true, /* a child has its parent's adapter open: its connections stay mute */
	.frame_bytes = 16 * KIB, /* not tuned yet */
	.eager_bytes = 16 * KIB, /* not tuned yet */
	.chunk_bytes = 1 * MIB, /* not tuned yet; at most max_msg_size, 8 MiB on some */
	.depth = 4, /* not tuned yet */
	.quirks = verbs_quirks,
};
