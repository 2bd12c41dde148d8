/* SPDX-License-Identifier: BSD-2-Clause */
/* shm: processes of one host, through shared memory and process_vm_readv. */
#include "providers/rows.h"

static const struct wf_provider_quirk shm_quirks[] = {
	{ .kind = WF_QUIRK_SHM_FILES,
	  .why = "a killed process leaves its region in /dev/shm",
	  .test = "tests/fabric/test_rail.c" },
	{ .kind = WF_QUIRK_SYNC_READ,
	  .why = "process_vm_readv runs inside fi_read, so depth gains nothing",
	  .test = "tests/fabric/test_rail.c" },
	{ .kind = WF_QUIRK_READ_LOCKS,
	  .why = "fi_read holds the owner's lock while it copies: a reader killed inside "
		 "leaves the owner spinning for ever",
	  .test = "tests/fabric/test_truths.c" },
	{ .kind = WF_QUIRK_SHARED_LOCK,
	  .why = "an endpoint has one lock for its owner and for all senders to it: a process that "
		 "is killed or stopped inside leaves the others spinning",
	  .test = "tests/fabric/test_truths.c" },
	{ .kind = WF_QUIRK_UNIQUE_NAME,
	  .why = "names come from the pid; a clash deletes the owner's region",
	  .test = "tests/fabric/test_truths.c" },
	{ .kind = WF_QUIRK_LIVE_NAME,
	  .why = "a peer whose region is gone shares its entry with the next one, whose memory "
		 "goes when it does: the next send crashes; so does hearing for the first time "
		 "of a peer that is gone",
	  .test = "tests/fabric/test_rail.c" },
	{ .kind = WF_QUIRK_HALF_MET,
	  .why = "an entry keeps the mark that our name was sent to its peer: after one that was "
		 "killed before it answered, the next peer there never gets the name, and every "
		 "send to it is refused",
	  .test = "tests/fabric/test_rail.c" },
	{ .kind = WF_QUIRK_ONE_REGION,
	  .why = "endpoints of one process share their regions, and a region goes with the "
		 "endpoint that closes: the next send to it, or the next time that it is forgotten "
		 "or heard of, crashes; so two nodes of one process use another provider",
	  .test = "tests/fabric/test_process.c" },
	{ .kind = WF_QUIRK_NONE },
};

const struct wf_provider wf_provider_shm = {
	.name = "shm",
	.label = "shm",
	.rank = 5,
	.shape = WF_SHAPE_SHARED,
	.wait = WF_WAIT_DOORBELL, /* shm has no descriptor */
	.revoke = WF_REVOKE_NONE,
	.same_host = true,
	.reg_cheap = true,
	.tested = true,
	.frame_bytes = 4 * KIB, /* above 4 KiB a killed sender takes its receiver along */
	/*
	 * Bodies of 8 KiB in frames come at 1.2 times the rate of those that are read, where the
	 * two processes have cores of their own, and at 3 times where they share one's caches;
	 * those of 16 KiB at 0.8 and 2 times (`weft perf --tune`, 30 November 2026).  The 256 more
	 * are for what a message has beside 8 KiB of bytes, for a stream 0.4 of the rate.
	 */
	.eager_bytes = 8 * KIB + 256,
	/* Chunks of 2 MiB gave 1.1 of the rate, but a read holds the caller: 1 MiB for 80 us. */
	.chunk_bytes = 1 * MIB,
	.depth = 1, /* a depth of 2 gave 0.94 */
	/*
	 * Two readers take 0.6 of the time of one at 4 MiB, and 1.3 of it at 2 MiB, where the
	 * sender still spins on the second of two processors.
	 */
	.helper_bytes = 4 * MIB,
	.devshm_bytes = 16 * MIB, /* 1024 commands of 4 KiB and 256 buffers of 32 KiB, rounded up */
	.peers_max = 256,
	.quirks = shm_quirks,
};
