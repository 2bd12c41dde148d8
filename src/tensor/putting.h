/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A put: blocks of this node's memory that the owner of a window reads into it, as one operation;
 * then the owner is told, by a number and a note, if the program likes.
 *
 * Blocks that lie in one chunk of the pool or one arena are offered as one body, with a list of
 * their places.  Otherwise each block is a body of its own, some of them offered at a time, and
 * what the owner is told comes after the last; so it is with blocks on a device, each of which is
 * staged where the rail does not reach it.  A put of no blocks tells the owner alone.
 *
 * Threads: owner.
 */
#ifndef WF_PUTTING_H
#define WF_PUTTING_H

#include "tensor/remote.h"
#include "wire/access.h"

/*
 * Bodies offered at a time.  The reader has 16 reads under way at most, and the next offers must
 * be there when they end.
 */
#define WF_PUTTING_BODIES_MAX 32

struct wf_putting;

struct wf_putting_body {
	struct wf_putting *putting;
	/* index of the block, or of the first of a list; putting->count: the owner is told alone */
	uint32_t block;
	struct wf_outgoing outgoing;
	struct wf_stage *stage; /* NULL: the block is in the host's memory */
};

struct wf_putting {
	/* set by the owner, and borrowed until done */
	struct wf_access_name window;
	const struct wf_pull_block *blocks; /* @to is the source, and @from the place in the window */
	uint32_t count;
	uint8_t flags;       /* enum wf_access_push_flag of the last record */
	uint32_t number;
	uint16_t note_bytes;
	const void *note;
	void *span;          /* all blocks lie within @span_bytes from here */
	uint64_t span_bytes;
	const struct wf_kind_body *device; /* device that has all blocks; NULL: the host */
	const struct wf_terms *terms;
	struct wf_putting_body *bodies; /* wf_putting_bodies() of them */
	void (*done)(struct wf_putting *p, const struct wf_error *e);

	/* read by the owner, after the end too */
	struct wf_path path;
	bool sent;    /* a block may have reached the window */

	/* private to putting.c */
	struct wf_remotes *remotes;
	struct wf_link *link; /* a reference, until the end */
	struct wf_remote_ask ask; /* awaits NOTED, the answer to a record that tells the owner alone */
	bool whole;          /* one body has all blocks */
	struct wf_list lists; /* records of the list that do not fit the first, in order */
	uint32_t next;       /* the next block */
	uint32_t busy;       /* bodies that have not ended */
	bool told;           /* the last record has been posted */
	uint32_t held;       /* functions of the call stack that are at work on the put */
	struct wf_reason why; /* why the put fails; none: it has not failed */
};

/* Returns how many bodies a put of @count blocks needs. */
static inline uint32_t wf_putting_bodies(uint32_t count)
{
	return count < 1 ? 1 : WF_MIN(count, (uint32_t)WF_PUTTING_BODIES_MAX);
}

/* Start @p over @link.  done may be called inside. */
void wf_putting_start(struct wf_remotes *r, struct wf_link *link, struct wf_putting *p);

/* End @p early with @e; done follows, maybe inside, when no block is offered any more. */
void wf_putting_stop(struct wf_putting *p, const struct wf_error *e);

/* Undo wf_putting_start() before @p had a rail: it may be started again.  -EALREADY. */
int wf_putting_take_back(struct wf_putting *p);

/* Say for people what @p waits for. */
void wf_putting_describe(const struct wf_putting *p, char *text, size_t bytes);

/* Returns a number that differs once @p has come further. */
uint64_t wf_putting_progress(const struct wf_putting *p);

/* Returns how many bytes the peer may be reading just now, without a word. */
uint64_t wf_putting_offered_bytes(const struct wf_putting *p);

#endif
