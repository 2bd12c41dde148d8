/* SPDX-License-Identifier: BSD-2-Clause */
/* sockets: an old provider with threads of its own; deprecated upstream. */
#include "providers/rows.h"

static const struct wf_provider_quirk sockets_quirks[] = {
	{ .kind = WF_QUIRK_LOCAL_NICS,
	  .why = "loopback is offered too, and reaches no other host",
	  .test = "tests/unit/fabric/test_select.c" },
	{ .kind = WF_QUIRK_NONE },
};

const struct wf_provider wf_provider_sockets = {
	.name = "sockets",
	.label = "sockets",
	.rank = 70,
	.shape = WF_SHAPE_SHARED,
	/* The provider's threads make progress: a sleeper is served faster than a spinner. */
	.wait = WF_WAIT_LEVEL,
	.revoke = WF_REVOKE_NONE,
	.ping_ms = 3000, /* the provider's threads starve where spinning programs have the cores */
	.by_name = true, /* stray bytes at the provider's port end its service for good */
	.by_ip = true,
	.reg_cheap = true,
	.tested = true,
	.frame_bytes = 16 * KIB,
	.eager_bytes = 16 * KIB, /* not tuned: this provider is for correctness only */
	.chunk_bytes = 256 * KIB,
	.depth = 2,
	.quirks = sockets_quirks,
};
