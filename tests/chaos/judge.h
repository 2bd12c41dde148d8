/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judgement on the reports of a crew: those without an excuse in the harm done.
 *
 *  - A broken promise has no excuse.  Only what a stopped process did itself counts
 *    from its thaw.
 *  - UNAVAILABLE needs a peer that was killed, or a peer or a reporter that was
 *    stopped for half the heartbeat limit at least, or a cut cable.  A reset
 *    door is no excuse.
 *  - CANCELLED and DEADLINE_EXCEEDED belong to wild lanes, where either end may
 *    give up, and to what the member itself cancelled.
 *  - NOT_FOUND belongs to wild windows, which close, and to windows whose owner was
 *    killed; UNIMPLEMENTED to wild finds, of an owner that has none yet.
 *  - Nothing else is expected of any operation.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "crew.h"

struct verdict {
	unsigned reports, broken;
	unsigned baseless, corrupted; /* broken ones: failures without a reason, and wrong bytes */
};

/* Judge all reports, print those without an excuse, and forget all. */
struct verdict judge(struct crew *crew);

/*
 * Find when the first and the last operation of member @i failed for want of
 * @peer, harmed at @from_ns.  Operations that began when the first was about to be known to
 * fail, or later, do not count.  False: none has failed.
 */
bool judge_last_failed(const struct crew *crew, unsigned i, unsigned peer, uint64_t from_ns,
		       uint64_t *first_ns, uint64_t *last_ns);

/* Print the first and the last reports that member @i made of @peer, and those at @last_ns. */
void judge_print(const struct crew *crew, unsigned i, unsigned peer, uint64_t last_ns);

#endif
