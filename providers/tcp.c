/* SPDX-License-Identifier: BSD-2-Clause */
/* tcp: sockets in user space; the one provider every host has. */
#include "providers/rows.h"

#include <rdma/fabric.h>

static const struct wf_provider_quirk tcp_quirks[] = {
	{ .kind = WF_QUIRK_CQ_PER_EP,
	  .before = FI_VERSION(1, 18),
	  .why = "closing an endpoint under a read frees that read twice; with a queue of "
		 "its own the damage dies with the queue",
	  .test = "tests/fabric/test_rail.c" },
	/*
	 * The queue's descriptor made a small call there and back take 1.2 times as long.  From
	 * 1.18 on tcp does not tell which descriptors stand behind a queue.
	 */
	{ .kind = WF_QUIRK_SLOW_FD,
	  .before = FI_VERSION(1, 18),
	  .why = "the descriptor of a queue is an epoll of its own, which each packet has "
		 "to pass; those that it stands for are watched instead",
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

const struct wf_provider wf_provider_tcp = {
	.name = "tcp",
	.label = "tcp",
	.rank = 30,
	.shape = WF_SHAPE_CONNECTED,
	/* A level-triggered wait spins while unread data waits and no receive is posted. */
	.wait = WF_WAIT_EDGE,
	.revoke = WF_REVOKE_NONE,
	.by_ip = true,
	.reg_cheap = true, /* 0.4 us: nothing is pinned */
	.tested = true,
	/*
	 * A frame has an eager body and its head: with frames of 16 KiB a body of 64 KiB took 1.7
	 * times as long, and bodies of 16 to 64 KiB one after the other up to 2.5 times (loopback).
	 */
	.frame_bytes = 65 * KIB,
	/*
	 * Bodies of 128 KiB in two frames came at 1112 MB/s, and pulled at 1344 (loopback).  `weft
	 * perf --tune` found nothing better for any of these four on 30 November 2026.  The 512 more
	 * are for what a message has beside 64 KiB of bytes: pulled for them, messages of a stream
	 * came at 0.8 of the rate, and calls at 0.75.
	 */
	.eager_bytes = 64 * KIB + 512,
	.chunk_bytes = 1 * MIB, /* 512 KiB gave 0.89 of the rate, 2 to 8 MiB 0.97 to 1.03 */
	.depth = 2,             /* 1 gave 0.99, 4 to 16 gave 1.00 to 1.03 */
	.quirks = tcp_quirks,
};
