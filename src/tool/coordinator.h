/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The course of `weft perf --all-pairs`: rank 0 begins each round in all processes, each of which
 * measures its pair and reports to rank 0, which then begins the next.  A pair measures one way and
 * then the other; the lower rank sends first.
 *
 * Each wait has a limit: a rank that does not report in time is gone, and its pairs have failed; a
 * rank that hears nothing of rank 0 ends.  No collective is used, for one of those fails where any
 * two ranks can't reach each other, which is what this command is to show.
 *
 * Threads: owner.
 */
#ifndef TOOL_COORDINATOR_H
#define TOOL_COORDINATOR_H

#include "tool/matrix.h"
#include "tool/pairs.h"
#include "tool/tool.h"

#include <weft/group.h>

struct coordinator;

/* Open for this rank of @group; both are borrowed.  NULL, after saying why. */
struct coordinator *coordinator_open(const struct tool_command *command, struct weft_node *node,
				     struct weft_group *group);

/* Close, after the node; accepts NULL. */
void coordinator_close(struct coordinator *c);

/*
 * Lead the others through all rounds, as rank 0, and fill the cells of @matrix, all of which are
 * set then.  TOOL_OK, also where pairs have failed; or another, after saying why.
 */
int coordinator_lead(struct coordinator *c, const struct pairs_plan *plan, struct matrix *matrix);

/* Tell the others to end, as rank 0. */
void coordinator_dismiss(struct coordinator *c);

/* Follow rank 0, as another rank, until it says that all is done.  Returns as coordinator_lead(). */
int coordinator_follow(struct coordinator *c);

#endif
