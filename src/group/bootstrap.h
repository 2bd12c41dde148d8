/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bootstrap: the server of rank 0 where all members of a group join, and hear who the others are.
 *
 * The server is a small node beside the user's, since its address is what the launcher says, and
 * since it has to answer while the user's node waits.  A member is one for as long as its call
 * runs: one that gives up, or dies, before all are there may come again or leave its rank to
 * another process.
 *
 * Threads: setup; all state is the worker's of the server's node.
 */
#ifndef WF_GROUP_BOOTSTRAP_H
#define WF_GROUP_BOOTSTRAP_H

#include <weft/weft.h>
#include "group/job.h"

#define WF_BOOTSTRAP_MISSING_MAX 16 /* ranks that fit a sentence */
#define WF_BOOTSTRAP_JOB_BYTES (WF_JOB_KEY_BYTES + 65)

struct wf_bootstrap;

/* Write the text by which the members of @job's group know each other. */
void wf_bootstrap_name(const struct wf_job *job, char name[WF_BOOTSTRAP_JOB_BYTES]);

/*
 * Open the server for the group of @job, of which @node is rank 0, where the job says, or else
 * beside @node and posted on the job's board.  Failures are in @e.
 */
int wf_bootstrap_open(struct weft_node *node, const struct wf_job *job, struct wf_bootstrap **b,
		      struct wf_error *e);

/* Close the server when all have heard, or after a second; accepts NULL. */
void wf_bootstrap_close(struct wf_bootstrap *b);

#endif
