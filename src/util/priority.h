/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Priority: which of several queues has the next turn.
 *
 * An operation has a priority from 0, the default, to WEFT_PRIORITY_MAX, and each queue on its way
 * is as many queues, one for each.  The highest that has something goes first; but one that was
 * passed over WF_PRIORITY_PASSES times has the next turn, so that no stream of urgent work can
 * starve the rest.
 *
 * Pure: no I/O, no clock.  Threads: owner.
 */
#ifndef WF_PRIORITY_H
#define WF_PRIORITY_H

#include <weft/node.h>
#include "util/list.h"

#define WF_PRIORITIES (WEFT_PRIORITY_MAX + 1)

/* Turns in a row by which a queue that has something may be passed over; not tuned yet. */
#define WF_PRIORITY_PASSES 16

struct wf_priority {
	uint8_t passed[WF_PRIORITIES]; /* turns in a row that went to a higher priority */
};

/* Returns which of the queues @lists have something, one bit each. */
static inline unsigned wf_priority_waiting(const struct wf_list lists[WF_PRIORITIES])
{
	unsigned bits = 0;

	for (unsigned i = 0; i < WF_PRIORITIES; i++)
		bits |= (unsigned)!wf_list_empty(&lists[i]) << i;
	return bits;
}

/* Returns which has the next turn of the queues in @waiting, one bit each; there is one at least. */
unsigned wf_priority_next(const struct wf_priority *p, unsigned waiting);

/* Note that queue @taken of those in @waiting had a turn. */
void wf_priority_took(struct wf_priority *p, unsigned waiting, unsigned taken);

#endif
