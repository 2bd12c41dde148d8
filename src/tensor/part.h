/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts: the relation between this node and one peer in one step.
 *
 * A peer takes part in a step once this node has sent to it, has begun a receive that names it,
 * or has received a tensor of its.  Nothing that the peer does alone makes it take part; and
 * only an abort of a peer that takes part counts.  Aborts by others are kept until they take
 * part.
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
#include "util/freelist.h"

#define WF_PARTS_IDLE_MAX 4096 /* limit of steps that are over, too */
#define WF_PARTS_HEARD_MAX 64  /* aborts of one peer that do not count; not tuned */

/* Parts of a worker. */
struct wf_parts {
	struct wf_uses *uses;
	struct wf_map map;   /* parts by link and step */
	struct wf_part *last; /* part found last, as a rule the next, too; or NULL */
	struct wf_list idle; /* unused parts of peers that take part; the oldest first */
	uint32_t idle_count;
	struct wf_freelist spare; /* freelist: each message may be of a step of its own */
};

struct wf_part {
	struct wf_map_node node;
	struct wf_list link_node; /* in link->parts.all */
	struct wf_list idle_node;
	struct wf_list heard_node; /* in link->parts.heard */
	struct wf_use_member use;  /* in use->parts */
	struct wf_parts *parts;
	struct wf_link *link; /* a reference, to the real link */
	unsigned refs;        /* operations under way, and tensors that are kept */
	bool takes;           /* the peer takes part */
	struct wf_step *heard; /* an abort by the peer that does not count; NULL: none */
	struct wf_list kept;  /* struct wf_unexpected: tensors that were not received */
};

void wf_parts_init(struct wf_parts *parts, struct wf_uses *uses);
/* Tear @parts down, when nothing has a reference any more. */
void wf_parts_fini(struct wf_parts *parts);

/*
 * Returns a reference to the part of the peer of @link in @step, made if there is none.  NULL:
 * no memory.
 */
struct wf_part *wf_part_get(struct wf_parts *parts, struct wf_link *link, uint64_t step);
/* Take another reference. */
void wf_part_hold(struct wf_part *part);
/* Drop a reference, which may free an idle part of any peer and step.  Accepts NULL. */
void wf_part_put(struct wf_part *part);

/* Note that this node deals with the peer of @part, which the caller has a reference to. */
void wf_part_take(struct wf_part *part);

/* Returns whether the peer of @link takes part in @step. */
bool wf_part_takes(const struct wf_parts *parts, struct wf_link *link, uint64_t step);

/*
 * Returns the next part of the peer of @link in @step after @after (NULL: the first); there are
 * several after a merge.
 */
struct wf_part *wf_part_find(const struct wf_parts *parts, const struct wf_link *link,
			     uint64_t step, struct wf_part *after);

/*
 * Keep the abort @fresh by the peer of @part, and forget the oldest of that peer if there are
 * too many.  Takes @fresh.
 */
void wf_part_hear(struct wf_part *part, struct wf_step *fresh);

/* Returns the abort that was kept, owned, or NULL. */
struct wf_step *wf_part_unhear(struct wf_part *part);

/* Forget the parts of the peer of @link, which is dead. */
void wf_parts_down(struct wf_link *link);

/* Move the parts of @link to @into, which has the same peer. */
void wf_parts_merge(struct wf_parts *parts, struct wf_link *link, struct wf_link *into);

#endif
