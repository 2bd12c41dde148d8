/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pull job: what a pull has to do, which its owner says before the start.
 *
 * Threads: owner.
 */
#ifndef WF_PULL_JOB_H
#define WF_PULL_JOB_H

#include "transfer/stage.h"
#include "transfer/terms.h"
#include "transfer/view.h"

struct wf_pull;

/* Bytes of an offered body, and their place here. */
struct wf_pull_block {
	void *to;
	uint64_t from; /* place in the offered body */
	uint64_t bytes;
};

/* The job of a pull: its owner sets all of it before the start. */
struct wf_pull_job {
	void *into;
	/*
	 * Blocks to read one after another, in place of the whole body; all lie within the
	 * @blocks_span bytes at @into.  NULL: the body is read from its beginning, to @into.
	 */
	const struct wf_pull_block *blocks;
	uint32_t block_count;  /* blocks that are known; wf_pull_more() tells of others */
	uint64_t blocks_known; /* bytes of those */
	uint64_t blocks_bytes; /* bytes of all blocks */
	uint64_t blocks_span;
	/*
	 * @into is the stage's buffer, and the rest is drained; NULL: @into has room for the body
	 */
	struct wf_stage *stage;
	/* @into is this view, and nothing is read; NULL: the body is read */
	const struct wf_view *view;
	/* a handle of the body will do, for @stage to copy from; false once it failed */
	bool handle;
	bool shown;  /* others may look at the destination: only what has verified is written there */
	bool drains; /* the pull ends, and answers the offer, when @stage has copied all and is quiet */
	bool doubted; /* the offer may be over: nothing is read before the owner has made it anew */
	const struct wf_terms *terms;
	/*
	 * The sender hears of failures on the way alone; after any other, its body is used up, as an
	 * eager one would be.
	 */
	bool way_only;
	void *owner; /* for use by the owner */
	/* The first @bytes are where they belong, more than ever before; NULL: nobody asks. */
	void (*came)(struct wf_pull *pull, uint64_t bytes);
	/*
	 * The owner has told checksums, so that more bytes may be known to be right; NULL: nobody
	 * asks.
	 */
	void (*told)(struct wf_pull *pull);
	void (*done)(struct wf_pull *pull, const struct wf_error *e); /* NULL: all is there */
};

#endif
