/* SPDX-License-Identifier: BSD-2-Clause */
/* net: libfabric 1.17's name for its newer tcp; later releases call it tcp. */
#include "providers/rows.h"

static const struct wf_provider_quirk net_quirks[] = {
	{ .kind = WF_QUIRK_FREES_TWICE,
	  .why = "closing an endpoint under a read frees that read twice, and two later "
		 "transfers share what describes them: its socket is shut down first, so "
		 "that the read fails",
	  .test = "tests/fabric/test_rail.c" },
	{ .kind = WF_QUIRK_HALF_OPEN,
	  .why = "a stranger that has said nothing yet stays connected when the listener closes; "
		 "its socket is closed by us",
	  .test = "tests/fabric/test_rail.c" },
	{ .kind = WF_QUIRK_ORPHANS,
	  .why = "a connection that says nothing, or less than a request, is kept for ever with "
		 "its descriptor: after 5 s, or at once if there are many, it is shut down",
	  .test = "tests/fabric/test_orphans.c" },
	{ .kind = WF_QUIRK_LOCAL_NICS,
	  .why = "loopback is offered too, and reaches no other host",
	  .test = "tests/unit/fabric/test_select.c" },
	{ .kind = WF_QUIRK_NONE },
};

const struct wf_provider wf_provider_net = {
	.name = "net",
	.label = "net",
	.rank = 60,
	.shape = WF_SHAPE_CONNECTED,
	.wait = WF_WAIT_EDGE, /* a level-triggered wait burns a core, trywait or not */
	.revoke = WF_REVOKE_NONE,
	.by_name = true, /* tcp reaches the same peers */
	.by_ip = true,
	.reg_cheap = true,
	.tested = true,
	.frame_bytes = 65 * KIB, /* tcp's numbers */
	.eager_bytes = 64 * KIB + 512,
	.chunk_bytes = 1 * MIB,
	.depth = 2,
	.quirks = net_quirks,
};
