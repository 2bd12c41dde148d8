/* SPDX-License-Identifier: BSD-2-Clause */
/* rxm: libfabric's layer of reliable datagrams over a connected provider. */
#include "providers/rows.h"

static const struct wf_provider_quirk rxm_quirks[] = {
	{ .kind = WF_QUIRK_NEVER_CLOSE,
	  .why = "closing an endpoint in the middle of a read crashes in 1.17",
	  .test = "tests/unit/fabric/test_rail_fake.c" },
	{ .kind = WF_QUIRK_LOCAL_NICS,
	  .why = "over IP loopback is offered too, and reaches no other host",
	  .test = "tests/unit/fabric/test_select.c" },
	{ .kind = WF_QUIRK_NONE },
};

const struct wf_provider wf_provider_rxm = {
	.name = "ofi_rxm", /* matches every name that ends with this layer */
	.label = "rxm",
	.rank = 80,
	.shape = WF_SHAPE_SHARED,
	.wait = WF_WAIT_LEVEL,
	.revoke = WF_REVOKE_NONE,
	.by_name = true,
	.by_ip = true,
	.reg_cheap = false, /* the provider below may pin */
	.frame_bytes = 16 * KIB - 256, /* rxm's eager limit of 16 KiB, less room for its header */
	.eager_bytes = 16 * KIB - 256,
	.chunk_bytes = 1 * MIB,
	.depth = 2,
	.quirks = rxm_quirks,
};
