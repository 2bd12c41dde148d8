/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan: how a body goes, from its size and the abilities of the rail.
 *
 * Pure: no I/O, no state.  `weft info --plan` prints it.
 */
#ifndef WF_PLAN_H
#define WF_PLAN_H

#include "fabric/select.h"
#include "util/options.h"
#include "wire/record.h"

struct wf_plan {
	enum wf_body_way way;
	uint64_t chunk_bytes; /* bytes of one read; a pull only */
	uint32_t depth;       /* reads in flight; a pull only */
	bool helper;          /* the rail's helper makes reads, too; a pull only */
	uint32_t frames;      /* frames that carry an eager body; 0 for a pull */
	uint32_t copies;      /* copies by both sides together, on the way from buffer to buffer */
	const char *why;      /* the reason, as a phrase */
};

/*
 * Plan the way of a body of @bytes.
 *
 * @credit: the receiver can keep the body if no receive is posted yet.
 * @record_bytes_max: the longest record the peer takes, head included.
 */
void wf_plan_make(const struct wf_rail_caps *caps, const struct wf_options *options, uint64_t bytes,
		  bool credit, uint32_t record_bytes_max, struct wf_plan *plan);

/* Returns "eager", "pull", "view", "staged", "direct" or "none". */
const char *wf_plan_way(enum wf_body_way way);

#endif
