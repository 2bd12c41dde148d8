/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts: what there is between this node and one peer in one step.
 *
 * A peer takes part in a step once this node has sent to it, has begun a receive
 * that names it, or has received a tensor of its.  Nothing that the peer does
 * alone makes it so; and only an abort of a peer that takes part counts.  What
 * others say of an abort is kept, for when they do.
 *
 * Parts that nothing uses are remembered up to a limit, the latest used ones.
 *
 * No I/O, no clock.
 *
 * Threads: owner.
 */
#ifndef WF_PART_H
#define WF_PART_H

#include "link/link.h"
#include "tensor/step.h"
#include "tensor/use.h"
#include "util/spare.h"

#define WF_PARTS_IDLE_MAX 4096 /* as many as steps that are over are remembered */
#define WF_PARTS_HEARD_MAX 64  /* aborts of one peer that do not count; not tuned */

/* Of a worker. */
struct wf_parts {
	struct wf_uses *uses;
	struct wf_map map;   /* by link and step */
	struct wf_part *last; /* that was found: as a rule it is the next, too; or NULL */
	struct wf_list idle; /* of peers that take part, and nothing is under way; the oldest first */
	uint32_t idle_count;
	struct wf_spare spare; /* each message may be of a step of its own */
};

struct wf_part {
	struct wf_map_node node;
	struct wf_list link_node; /* in link->parts.all */
	struct wf_list idle_node;
	struct wf_list heard_node; /* in link->parts.heard */
	struct wf_use_member use;  /* in the parts of its step */
	struct wf_parts *parts;
	struct wf_link *link; /* a reference, to no other name of a link */
	unsigned refs;        /* of operations under way, and tensors that are kept */
	bool takes;           /* the peer takes part */
	struct wf_step *heard; /* an abort of the peer's that does not count; NULL: none */
	struct wf_list kept;  /* struct wf_arrival: what came and was not received */
};

void wf_parts_init(struct wf_parts *parts, struct wf_uses *uses);
/* Nothing has a reference any more. */
void wf_parts_fini(struct wf_parts *parts);

/* A reference to the part of the peer of @link in @step, made if there is none.  NULL: no memory. */
struct wf_part *wf_part_get(struct wf_parts *parts, struct wf_link *link, uint64_t step);
void wf_part_hold(struct wf_part *part);
/* Accepts NULL. */
void wf_part_put(struct wf_part *part);

/* This node deals with the peer of @part, which there is a reference to. */
void wf_part_take(struct wf_part *part);

/* Does the peer of @link take part in @step? */
bool wf_part_takes(const struct wf_parts *parts, struct wf_link *link, uint64_t step);

/* The next part of the peer of @link in @step after @after (NULL: the first); there are several after a merge. */
struct wf_part *wf_part_find(const struct wf_parts *parts, const struct wf_link *link,
			     uint64_t step, struct wf_part *after);

/* Keep what @part's peer says of its step, and forget the oldest such word if there are too many.  Takes @fresh. */
void wf_part_hear(struct wf_part *part, struct wf_step *fresh);

/* What it said, for the caller to free. */
struct wf_step *wf_part_unhear(struct wf_part *part);

/* The peer of @link is dead, and takes part in nothing; or it turned out to be the one of @into. */
void wf_parts_down(struct wf_parts *parts, struct wf_link *link);
void wf_parts_merge(struct wf_parts *parts, struct wf_link *link, struct wf_link *into);

#endif
