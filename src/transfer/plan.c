/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/plan.h"

#include "transfer/pull.h"

#define HEAD_BYTES (200 * KIB) /* longest head of an eager body: three times 64 KiB, and a text */

void wf_plan_make(const struct wf_rail_caps *caps, const struct wf_options *options, uint64_t bytes,
		  bool credit, uint32_t record_bytes_max, struct wf_plan *plan)
{
	uint64_t eager = options->eager_bytes ? options->eager_bytes : caps->eager_bytes;
	uint64_t chunk = options->chunk_bytes ? options->chunk_bytes : caps->chunk_bytes;
	uint64_t depth = options->depth ? options->depth : caps->depth;

	*plan = (struct wf_plan){ .way = WF_BODY_PULL, .why = "larger than the eager limit" };
	if (!bytes) {
		*plan = (struct wf_plan){ .way = WF_BODY_NONE, .why = "there is no body" };
		return;
	}
	if (bytes <= eager) {
		if (bytes + HEAD_BYTES > record_bytes_max)
			plan->why = "longer than a record may be";
		else if (!credit)
			plan->why = "the receiver has no room for unexpected bodies";
		else
			plan->way = WF_BODY_EAGER;
	}
	if (plan->way == WF_BODY_EAGER) {
		plan->frames = (uint32_t)((bytes + caps->frame_bytes - 1) / caps->frame_bytes);
		plan->copies = 2;
		plan->why = "within the eager limit";
		return;
	}
	plan->chunk_bytes = WF_MIN(chunk, caps->read_bytes_max);
	plan->depth = (uint32_t)WF_MIN(depth, (uint64_t)WF_PULL_DEPTH_MAX);
	/* More reads than chunks are of no use. */
	plan->depth = (uint32_t)WF_MIN((uint64_t)plan->depth,
				       (bytes + plan->chunk_bytes - 1) / plan->chunk_bytes);
	plan->helper = caps->helper_bytes && bytes >= caps->helper_bytes;
}

const char *wf_plan_way(enum wf_body_way way)
{
	static const char *const names[] = {
		[WF_BODY_NONE] = "none",
		[WF_BODY_EAGER] = "eager",
		[WF_BODY_PULL] = "pull",
		[WF_BODY_VIEW] = "view",
		[WF_BODY_STAGED] = "staged",
		[WF_BODY_HANDLE] = "direct",
	};

	return names[way];
}
