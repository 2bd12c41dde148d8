/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outgoing frames of a worker: their memory, of which some is kept at hand.
 *
 * A burst may leave many frames without use, as the end of many links does.  A second later all
 * memory that no frame uses goes back to the system.
 *
 * Threads: owner, but for init and fini: setup.
 */
#ifndef WF_OUTFRAME_H
#define WF_OUTFRAME_H

#include "memory/pool.h"
#include "loop/timer.h"
#include "wire/frame.h"

struct wf_link;
struct wf_engine;

/* A frame on its way: kept until the peer has confirmed it and the rail gave it back. */
struct wf_outframe {
	struct wf_list node;
	struct wf_link *link;  /* NULL: only the rail still holds it */
	struct wf_engine *engine;
	uint8_t *bytes;        /* a chunk of the worker's frame pool, of its frame_bytes */
	uint8_t *sealed;       /* another one, for what the rail sends sealed; NULL: none yet */
	uint32_t count;
	uint8_t kind;
	bool posted;           /* the rail has it */
	bool waiting;          /* waits to be posted (again) */
	bool replayed;         /* sent more than once */
	bool counted;          /* counted as telling credits: later copies of it do not */
	struct wf_frame header; /* epoch, ack and credits are written when it is posted */
	uint64_t posted_ns;    /* when the rail in use first took it */
};

struct wf_outframes {
	struct wf_pool pool;  /* a pool apart from the user's, so that users can't starve links */
	struct wf_list spare; /* freelist of struct wf_outframe, with their chunks */
	uint32_t spare_count;
	struct wf_timer shrink_timer;
};

/* Make the pool of frames.  -errno: no lock could be made. */
int wf_outframes_init(struct wf_outframes *frames);

/* Close the pool.  No frame is in use any more, and registrations were closed before. */
void wf_outframes_fini(struct wf_outframes *frames);

/* Take a frame with nothing in it but its worker and its bytes.  NULL: no memory. */
struct wf_outframe *wf_outframe_take(struct wf_engine *engine);

/* Give back @f, which neither a link nor the rail uses any more, and which is in no list. */
void wf_outframe_give(struct wf_outframe *f);

/* Give back all frames of @list, which is empty then. */
void wf_outframe_give_all(struct wf_list *list);

#endif
