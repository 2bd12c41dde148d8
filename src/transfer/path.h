/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path: how one body really went, as far as this side knows.
 *
 * Times are those of the worker's turns.  0 stands for what has not happened
 * here, or is known to the other side only.
 *
 * Threads: owner.
 */
#ifndef WF_PATH_H
#define WF_PATH_H

#include "link/link.h"

struct wf_path {
	const struct wf_caps *caps; /* of the rail; live as long as that; NULL: nothing moved */
	uint8_t way;       /* enum wf_body_way */
	uint8_t sum_kind;  /* enum wf_body_sum */
	bool registered;   /* memory was, for it */
	bool straight;     /* the rail reached this side's memory on its device */
	uint64_t bytes;
	uint32_t chunks;   /* reads or frames that carried it */
	uint32_t helped;   /* of these, by a rail's helper */
	uint32_t lanes;    /* that carried some of it; or for its owner: on which it was offered */
	uint32_t retries;  /* reads made again; or for its owner: offers made again */
	uint64_t queued_ns;  /* handed to the link, or to the channel */
	uint64_t matched_ns; /* met its other half */
	uint64_t first_ns, last_ns; /* of its bytes, a whole chunk or frame at a time */
};

/* A body, or the offer of one, has come in the record that @link has just got. */
static inline struct wf_path wf_path_come(const struct wf_link *link, const struct wf_body *body)
{
	uint32_t frames = WF_MAX(link->intake.assembly.frames, 1u);
	bool here = body->way == WF_BODY_EAGER;
	uint64_t now_ns = link->worker->loop.now_ns;

	return (struct wf_path){
		.caps = here ? wf_link_caps(link) : NULL,
		.way = body->way == WF_BODY_VIEW ? WF_BODY_PULL : body->way,
		.sum_kind = body->sum_kind,
		.bytes = body->bytes,
		.chunks = here ? frames : 0,
		/* When the first of several frames came is not kept. */
		.first_ns = here && frames == 1 ? now_ns : 0,
		.last_ns = here ? now_ns : 0,
	};
}

#endif
