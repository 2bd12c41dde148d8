/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path: how one body really went, as far as this side knows.
 *
 * Times are those of the worker's turns.  0 stands for an event that has not happened here, or
 * is known to the other side only.
 *
 * Threads: owner.
 */
#ifndef WF_PATH_H
#define WF_PATH_H

#include "link/link.h"

struct wf_path {
	const struct wf_rail_caps *caps; /* caps of the rail, with its life; NULL: nothing moved */
	uint8_t way;       /* enum wf_body_way */
	uint8_t sum_kind;  /* enum wf_body_sum */
	uint8_t cipher;    /* 1 + enum wf_seal_cipher; 0: the body went in clear */
	bool registered;   /* memory was registered for the body */
	bool straight;     /* the rail reached this side's memory on its device */
	uint64_t bytes;
	uint32_t chunks;   /* reads or frames that carried the body */
	uint32_t helped;   /* chunks that a rail's helper read */
	uint32_t lanes;    /* lanes that carried some of the body; sender: that were offered */
	uint32_t retries;  /* reads made again; for the sender: offers made again */
	uint64_t queued_ns;  /* when the body was handed to the link, or to the channel */
	uint64_t matched_ns; /* when send and receive were matched */
	uint64_t first_ns, last_ns; /* first and last chunk or frame of the body */
};

/* Returns the cipher of a path over @link, whose bytes were @sealed or not. */
static inline uint8_t wf_path_cipher(const struct wf_link *link, bool sealed)
{
	return sealed ? (uint8_t)(1 + wf_seals_cipher(link)) : 0;
}

/* Set up the @path of a body, or of an offer, in the record that @link has just got. */
static inline void wf_path_come(const struct wf_link *link, const struct wf_body *body,
				struct wf_path *path)
{
	uint64_t now_ns = link->engine->loop.now_ns;

	*path = (struct wf_path){ 0 };
	path->way = body->way == WF_BODY_VIEW ? WF_BODY_PULL : body->way;
	path->sum_kind = body->sum_kind;
	path->bytes = body->bytes;
	if (body->way != WF_BODY_EAGER)
		return;
	path->caps = wf_link_caps(link);
	path->cipher = wf_path_cipher(link, link->seals.on);
	path->chunks = WF_MAX(link->rx.assembly.frames, 1u);
	/* The time of the first of several frames is not kept. */
	path->first_ns = path->chunks == 1 ? now_ns : 0;
	path->last_ns = now_ns;
}

#endif
