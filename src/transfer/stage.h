/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stage: the way of a body between a device and rails that do not reach it there.
 *
 * The body passes through a bounce buffer in the pool, in pieces (wire/record.h) and in order:
 * byte n of it is at n % bounce_bytes for a while.  On its way out each piece is filled from the
 * device, and on its way in drained to it, as soon as the owner says that it may be; pieces that
 * fit the buffer at once do so side by side, while rails move the rest.
 *
 * The memory of a body on its way in may be a list of blocks, which is drained in the list's order.
 *
 * A body on a device of another process of this host needs no buffer: it is mapped here by a
 * handle, and copied from device to device.
 *
 * A copy can't be called back.  Only when none is under way is a stage quiet: then its body may
 * be reused, and it can be closed.
 *
 * Threads: owner.
 */
#ifndef WF_STAGE_H
#define WF_STAGE_H

#include "memory/kind.h"
#include "transfer/transfer.h"

/* Shorter bodies are staged before a device's memory is registered; not tuned. */
#define WF_STAGE_DIRECT_BYTES (512 * KIB)
/*
 * Shorter bodies are staged before another process's memory is mapped: 96 KiB take 55 us staged, and
 * 28 copied (one H200), and 60 more where the memory is not mapped yet.
 */
#define WF_STAGE_COPY_BYTES (64 * KIB)
/* pieces in the buffer: filling, moving, draining, and one between; not tuned */
#define WF_STAGE_PIECES 4

struct wf_pull_block;

struct wf_stage {
	/*
	 * The stage has come further, has become quiet, or, with @e, has failed; a failure may
	 * be said again.
	 */
	void (*moved)(struct wf_stage *stage, const struct wf_error *e);
	void *owner;

	/* read by the owner */
	uint8_t *bounce; /* NULL: not taken yet; or the mapped body of another process */
	uint64_t bounce_bytes, piece_bytes;
	uint64_t ended; /* bytes filled or drained, from the body's beginning */
	struct wf_error why; /* code 0: nothing has failed */

	/* private to stage.c */
	struct wf_transfer *transfer;
	const struct wf_kind_body *body;
	uint8_t *at; /* the body's first byte, unless there are blocks */
	const struct wf_pull_block *blocks; /* NULL: the body is one range */
	uint32_t block;      /* block of the byte @begun */
	uint64_t block_done; /* bytes of @block that are before it */
	enum wf_kind_way way;
	uint64_t bytes;	       /* size of the body */
	uint64_t limit;	       /* how far the body may be copied */
	uint64_t begun, over;  /* copies between the two are under way */
	bool follows;	       /* the program's stream has come as far as the body's mark */
	struct wf_import *import; /* NULL: nothing is mapped */
	bool held;
	bool awaited; /* the owner waits for @follows, though nothing may be copied yet */
	bool stopped, settled; /* settled: the owner knows that the node has closed */
	uint64_t waits_ns;     /* since when the copies under way, or the stream, are waited for */
	struct wf_list node;   /* in transfer->stages */
	struct wf_timer timer;
	struct wf_kind_copy copies[WF_STAGE_PIECES]; /* copy of piece n: n % WF_STAGE_PIECES */
};

/*
 * Make a stage for the first @bytes of @body, which is borrowed until wf_stage_close().
 * -ENOMEM.
 */
int wf_stage_open(struct wf_transfer *t, const struct wf_kind_body *body, uint64_t bytes,
		  enum wf_kind_way way, struct wf_stage **stage);

/*
 * Have the body of @stage, which has begun nothing, lie at @at in the memory of its kind_body; or,
 * unless @blocks is NULL, in these blocks one after another, which are borrowed: a block may be
 * written down as late as its bytes are allowed to be copied.
 */
void wf_stage_place(struct wf_stage *stage, void *at, const struct wf_pull_block *blocks);

/*
 * Returns whether the rail of @link, which is up, should reach the device, if its NIC may: not where
 * bodies are sealed, nor if it has to go through the link between NUMA nodes, as a rule the slower
 * way, nor for a short body; but @only: there is nothing else.
 */
bool wf_stage_is_reached(const struct wf_stage *stage, const struct wf_link *link, bool only);

/*
 * Returns whether @stage may copy @body, offered by the peer of @link, from the owner's device
 * itself: on one host, without sums or blocks, and long enough that it pays; but @only: there is
 * nothing else.
 */
bool wf_stage_may_copy(const struct wf_stage *stage, const struct wf_link *link,
		       const struct wf_body *body, bool only);

/*
 * Returns whether the program's stream has come as far as the body's mark.  If not, moved says
 * so when it has.
 */
bool wf_stage_ready(struct wf_stage *stage);

/*
 * Take a bounce buffer; harmless when the stage has one.  -EAGAIN: the pool has none now.
 * -ENOBUFS, -ENOMEM with a sentence.
 */
int wf_stage_take_bounce(struct wf_stage *stage, struct wf_error *e);

/*
 * Map the allocation that @body lies in by its handle: it is copied from there, and the buffer
 * given back.  For a body on its way in, of which nothing was copied.  A negative code with a
 * sentence: nothing was done.
 */
int wf_stage_import(struct wf_stage *stage, const struct wf_body *body, struct wf_error *e);

/*
 * Give the buffer of a quiet stage back to the pool, or the mapping of the other's body back.
 * Harmless without.
 */
void wf_stage_give_bounce(struct wf_stage *stage);

/* Begin no copy while @hold: the owner of a mapped body may have given it up. */
void wf_stage_hold(struct wf_stage *stage, bool hold);

/*
 * Allow copies of the first @limit bytes, which never becomes less; moved is never called
 * inside.
 */
void wf_stage_go(struct wf_stage *stage, uint64_t limit);

/*
 * Skip the first @bytes, because a rail has reached the device itself.  @bytes end a piece, or
 * the body; the stage is quiet.
 */
void wf_stage_skip(struct wf_stage *stage, uint64_t bytes);

/* Begin no copy any more: the stage becomes quiet.  Accepts NULL. */
void wf_stage_stop(struct wf_stage *stage);

/* Returns whether no copy is under way. */
bool wf_stage_quiet(const struct wf_stage *stage);

/* Free a quiet stage.  Accepts NULL. */
void wf_stage_close(struct wf_stage *stage);

/* Returns whether all stages are quiet. */
bool wf_stage_all_quiet(const struct wf_transfer *t);

/*
 * Settle all stages when the node closes: wait for copies under way, and fail those that are not
 * over, or are begun after that.
 */
void wf_stage_settle(struct wf_transfer *t);

#endif
