/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pull: a body on its way in, by reading the peer's memory.
 *
 * A pull reads in chunks, several in flight, straight into the destination, at a pace that it
 * shares with all others (pace.h), and over several rails where the link has them (stripe.h).
 * When the rail fails the chunks that are missing are asked for again on the next, within the
 * same pull.  Only our own reads ever write the destination, and done waits for them.
 *
 * A body that is viewed in place (view.h) needs no reads; the rest is the same.  A body that its
 * owner stages is read as it is filled there, and one that is staged here as it is drained
 * (stage.h), unless the rail reaches the device itself.  Where bodies are sealed each read is a
 * fetch (fetch.h).
 *
 * Threads: owner.
 */
#ifndef WF_PULL_H
#define WF_PULL_H

#include "memory/grant.h"
#include "transfer/answer.h"
#include "transfer/fetch.h"
#include "transfer/pace.h"
#include "transfer/path.h"
#include "transfer/pull_job.h"
#include "transfer/pull_state.h"
#include "transfer/reader_sums.h"
#include "transfer/stage.h"
#include "transfer/stripe.h"
#include "transfer/terms.h"
#include "transfer/transfer.h"
#include "transfer/view.h"

struct wf_pull {
	struct wf_pull_job job;

	/* set by the owner as far as it is known, and read at the end */
	struct wf_path path;
	bool damaged; /* the body was read, and differs from the owner's */

	/* private to pull.c and reads.c: set up at the start, whatever was there before */
	enum wf_pull_state state;
	enum wf_pull_way way;
	struct wf_transfer *transfer;
	struct wf_link *link;
	struct wf_list node; /* in link->work */
	struct wf_body body;
	struct wf_reader_sums sums;
	struct wf_answer *answer; /* NULL: the peer that waits for it is dead */
	uint64_t id;
	struct wf_pull_yield yield;
	struct wf_grant grant;
	struct wf_pull_rail rail;
	void *into;         /* destination of reads */
	uint64_t into_bytes; /* byte n of the body goes to n % into_bytes */
	uint64_t from_bytes; /* byte n of the body comes from n % from_bytes */
	uint64_t offered_bytes; /* length of the offered body, of which blocks are a part */
	struct wf_pull_at at;
	bool confirmed;	    /* imported: all is copied, and was offered until then */
	uint32_t busy;      /* reads under way */
	uint32_t aside;     /* reads under way by the helper */
	struct wf_stripe *spread; /* lanes besides the rail; NULL: none */
	struct wf_fetches *fetches; /* NULL: the rail reads the body itself */
	uint64_t took_ns;   /* time of the last read over the rail; 0: none has ended */
	struct wf_pool_waiter bounce_waiter; /* waits for the pool, for the stage's buffer */
	bool refused;       /* the rail takes no read of the pull */
	bool writes;        /* something was begun that writes the destination */
	bool began_staged;  /* the owner may have begun to stage the body */
	struct wf_pull_failures failures;
	struct wf_pull_stop stop;
	struct wf_pace_share share;
	struct wf_timer timer;
	uint32_t read_count; /* reads of @reads that were ever made: the others are not set up */
	struct wf_pull_read reads[WF_PULL_DEPTH_MAX];
};

/*
 * Pull @body over @link, and end its offer with @answer, which is taken.  Borrows @pull, whose
 * job and path are set, and its destination until done, which is never called inside.  -ENOMEM,
 * -ENOSPC: nothing was begun, and @answer has told the owner so.
 *
 * @answer NULL: the offer stays after the pull.  Whoever has its answer must stop the pull when the
 * offer is withdrawn, and lose it when the peer is dead.
 */
int wf_pull_start(struct wf_transfer *t, struct wf_link *link, const struct wf_body *body,
		  struct wf_answer *answer, struct wf_pull *pull);

/*
 * End @pull early with @e: done follows, maybe inside, once all is quiet.  Harmless after the end.
 */
void wf_pull_stop(struct wf_pull *pull, const struct wf_error *e);

/*
 * Stop @pull as wf_pull_stop() does, and leave @pull->answer to the owner, so that another pull
 * can begin with the body: if it is offered still, and its owner can be asked for it from the
 * beginning.  Else @pull->answer is NULL.
 */
void wf_pull_release(struct wf_pull *pull, const struct wf_error *e);

/* Read @count blocks more than before, of @bytes together, which are behind the others. */
void wf_pull_more(struct wf_pull *pull, uint32_t count, uint64_t bytes);

/* End @pull, whose offer stayed, because its peer is dead, as @e says. */
void wf_pull_lost(struct wf_pull *pull, const struct wf_error *e);

/* Handle progress of the stage of @pull.  The second is moved of a stage whose owner is the pull. */
void wf_pull_drained(struct wf_pull *pull);
void wf_pull_staged(struct wf_stage *stage, const struct wf_error *e);

/* Have job.came hear that the first @bytes are there, if that is news. */
void wf_pull_report(struct wf_pull *pull, uint64_t bytes);

/* Say for people what @pull waits for. */
void wf_pull_describe(const struct wf_pull *pull, char *text, size_t bytes);

/* Returns a number that differs once @pull has come further. */
uint64_t wf_pull_progress(const struct wf_pull *pull);

/* Records of the peer about @pull, and events of its link; called by transfer.c. */
void wf_pull_again(struct wf_pull *pull, const struct wf_body *body);
void wf_pull_lane(struct wf_pull *pull, const struct wf_record_lane *lane);
void wf_pull_lane_up(struct wf_pull *pull);
void wf_pull_lane_closed(struct wf_pull *pull, const struct wf_lane *lane);
int wf_pull_told(struct wf_pull *pull, const struct wf_record_sums *sums);
int wf_pull_filled(struct wf_pull *pull, uint64_t bytes);
void wf_pull_up(struct wf_pull *pull);
void wf_pull_paused(struct wf_pull *pull);
void wf_pull_quiet(struct wf_pull *pull);
void wf_pull_feed(struct wf_pull *pull);

/*
 * Make read @r, which was under way and brought nothing, again: soon, for -EAGAIN; by an offer made
 * anew, for -ENOENT; any other code counts as a failure.
 */
void wf_pull_put_back(struct wf_pull *pull, struct wf_pull_read *r, int code);

/* Have @pull, which may have made way, post reads in the next turn. */
void wf_pull_go_on(struct wf_pull *pull);

#endif
