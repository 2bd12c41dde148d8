/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bootstrap: the server of rank 0 where all members of a group join, and hear who the others are.
 *
 * The server is a small node beside the user's, since its address is what the launcher says, and
 * since it has to answer while the user's node waits.  A member is one for as long as its call
 * runs: one that gives up, or dies, before all are there may come again or leave its rank to
 * another process.  Rank 0 is one from the beginning, without a call: some providers do not serve
 * two nodes of one process.
 *
 * Threads: rank 0's; calls are served by the worker of the server's node.
 */
#ifndef WF_GROUP_BOOTSTRAP_H
#define WF_GROUP_BOOTSTRAP_H

#include <weft/weft.h>
#include "group/job.h"

#define WF_BOOTSTRAP_MISSING_MAX 16 /* ranks that fit a sentence */
#define WF_BOOTSTRAP_JOB_BYTES (WF_JOB_KEY_BYTES + 71)

struct wf_bootstrap;
struct wf_join_members;

/* Write the text by which the members of @job's group know each other. */
void wf_bootstrap_name(const struct wf_job *job, char name[WF_BOOTSTRAP_JOB_BYTES]);

/*
 * Open the server for the group of @job, of which @node on @host is rank 0, where the job says, or
 * else beside @node and posted on the job's board.  Failures are in @e.
 */
int wf_bootstrap_open(struct weft_node *node, const char *host, const struct wf_job *job,
		      struct wf_bootstrap **b, struct wf_error *e);

/*
 * Wait until all are there, at most until @until_ns, and list them in @members.  -EAGAIN: not all;
 * -EADDRNOTAVAIL: some can't reach others; -ENOMEM.
 */
int wf_bootstrap_wait(struct wf_bootstrap *b, uint64_t until_ns, struct wf_join_members *members,
		      struct wf_error *e);

/* Fill @ranks with the lowest that are missing, and *@total.  Returns how many are in @ranks. */
size_t wf_bootstrap_missing(struct wf_bootstrap *b, uint32_t ranks[WF_BOOTSTRAP_MISSING_MAX],
			    uint32_t *total);

/*
 * Take no more members, and wait until no call of those that there are runs any more, at most until
 * @until_ns.  -EAGAIN: some run.
 */
int wf_bootstrap_drain(struct wf_bootstrap *b, uint64_t until_ns);

/* Close the server, whose calls end. */
void wf_bootstrap_close(struct wf_bootstrap *b);

#endif
