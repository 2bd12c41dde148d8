/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pull: a body on its way in, by reading the peer's memory.
 *
 * In chunks, several in flight, straight into the destination, at a pace that
 * it shares with all others (pace.h), and over several rails where the link has
 * them (spread.h).  When the rail fails the chunks that are
 * missing are asked for again on the next, within the same pull.  Only our own
 * reads ever write the destination, and done waits for them.
 *
 * A body that is looked at where it is (view.h) needs no reads; the rest is the
 * same.  One that its owner stages is read as it is filled there, and one that is
 * staged here as it is drained (stage.h), unless the rail reaches the device itself.
 *
 * Threads: owner.
 */
#ifndef WF_PULL_H
#define WF_PULL_H

#include "memory/grant.h"
#include "transfer/answer.h"
#include "transfer/pace.h"
#include "transfer/path.h"
#include "transfer/spread.h"
#include "transfer/stage.h"
#include "transfer/sums.h"
#include "transfer/terms.h"
#include "transfer/transfer.h"
#include "transfer/view.h"

#define WF_PULL_DEPTH_MAX WF_DEPTH_MAX

struct wf_pull;

struct wf_pull_read {
	struct wf_read read;
	struct wf_pull *pull;
	uint64_t offset, count;
	uint64_t posted_ns;
	uint32_t among; /* it and others of its body under way then; 0: of other bodies too */
	bool aside; /* the rail's helper makes it */
	struct wf_spread_way *over; /* NULL: the rail in use */
	enum { WF_PULL_READ_FREE, WF_PULL_READ_BUSY, WF_PULL_READ_AGAIN } state;
};

/*
 * What a pull waits for:
 *
 *   WAITING, EARLY --> ASKED     there is a rail, and the offer is of another, or may be over
 *   ASKED -----------> WAITING   the owner has offered the rest anew, or the rail has gone
 *   WAITING, EARLY --> EARLY     the offer holds on the rail, and something else is missing
 *   EARLY -----------> WAITING   to look again
 *   WAITING, EARLY --> READING   the offer holds on the rail
 *   READING ---------> WAITING   a read has failed, or the rail has gone
 *   each ------------> STOPPING  the pull is given up, and ends once the destination is quiet
 *
 * A pull that ends well does so in any other state.
 */
enum wf_pull_state {
	WF_PULL_WAITING,  /* for a rail, or for reads of an offer that is over; or no read is needed */
	WF_PULL_ASKED,    /* for the owner's answer: RESUME was sent on this epoch */
	WF_PULL_EARLY,    /* for more rails, which it must have, or for its stage */
	WF_PULL_READING,  /* for the reads under way, and for a turn for the next */
	WF_PULL_STOPPING,
};

/* How the bytes get to their destination. */
enum wf_pull_way {
	WF_PULL_WAY_READ,     /* reads go there */
	WF_PULL_WAY_VIEW,     /* job.into is job.view: there is nothing to read */
	WF_PULL_WAY_STAGED,   /* reads go to the room of job.stage, which is drained */
	WF_PULL_WAY_STRAIGHT, /* reads go to the device, past job.stage */
	WF_PULL_WAY_IMPORTED, /* job.stage copies from the device of the body's owner */
};

/* What the owner of a pull sets before it starts, all of it. */
struct wf_pull_job {
	void *into;
	struct wf_stage *stage; /* @into is its room, and the rest is drained; NULL: the body fits */
	const struct wf_view *view; /* @into is this one, so there is nothing to read; NULL: there is */
	bool handle;  /* a handle of the body will do, for @stage to copy from; until it did not */
	bool doubted; /* the offer may be over: nothing is read before the owner has made it anew */
	const struct wf_terms *terms;
	void *owner; /* for it to use */
	void (*done)(struct wf_pull *pull, const struct wf_error *e); /* NULL: all bytes are there, and right */
};

/* The rail of the reads under way, or of the last ones. */
struct wf_pull_rail {
	const struct wf_worker_rail *on; /* NULL: there has been none */
	uint64_t chunk_bytes;
	uint32_t depth;      /* at least: the link's may be more */
	bool helper;         /* is to make reads besides */
	bool connected;
	bool quiet_by_close; /* closing its endpoint ends reads */
};

struct wf_pull {
	struct wf_pull_job job;

	/* set by the owner as far as it is known, and read at the end */
	struct wf_path path;
	bool damaged; /* it was read, and is not what its owner has */

	/* its own: set up when it starts, whatever was there before */
	enum wf_pull_state state;
	enum wf_pull_way way;
	struct wf_transfer *transfer;
	struct wf_link *link;
	struct wf_list node; /* in a list of it */
	struct wf_body body;
	struct wf_sums sums;
	struct wf_answer *answer; /* NULL: the peer that waits for it is dead */
	uint64_t id;
	struct wf_grant grant;
	struct wf_pull_rail rail;
	void *into;         /* where reads go: */
	uint64_t into_bytes; /* byte n of the body goes to n % into_bytes, */
	uint64_t from_bytes; /* and comes from n % from_bytes */
	bool confirmed;	    /* imported: that all of it is copied, and was offered until then */
	uint64_t filled;    /* there at its owner's, from its beginning on */
	uint64_t taken;     /* its owner knows of that */
	uint64_t next;      /* first byte not asked for yet */
	uint64_t got_bytes;
	uint64_t summed_bytes; /* of a view */
	uint32_t busy;      /* reads under way */
	uint32_t aside;     /* of these, by the helper */
	struct wf_spread *spread; /* more ways than the rail; NULL: none */
	uint64_t took_ns;   /* the last read over the rail did; 0: none has ended */
	struct wf_pool_waiter room_waiter; /* for the stage's room */
	bool refused;       /* the rail takes none of its reads */
	unsigned tries;     /* failures in a row */
	uint64_t failing_ns; /* of the first of them */
	bool tell_withdrawn;
	bool began_staged;  /* its owner may have begun to stage it */
	bool releases;      /* stopped so that another may pull the body */
	struct wf_error why;
	struct wf_pace_share share;
	struct wf_timer timer;
	struct wf_pull_read reads[WF_PULL_DEPTH_MAX];
};

/*
 * Pull @body over @link, and end its offer with @answer, which is taken.  Borrows
 * @pull, whose job and path are set, and its destination until done, which is never
 * called inside.  -ENOMEM, -ENOSPC: nothing was begun, and @answer has told the owner so.
 */
int wf_pull_start(struct wf_transfer *t, struct wf_link *link, const struct wf_body *body,
		  struct wf_answer *answer, struct wf_pull *pull);

/* End it early with @e: done follows, maybe inside, as soon as the destination is quiet.  Harmless after the end. */
void wf_pull_stop(struct wf_pull *pull, const struct wf_error *e);

/*
 * The same, and leave @pull->answer to the owner, so that another pull can begin with the body: if
 * it is offered still, and its owner can be asked for it from the beginning.  Else NULL.
 */
void wf_pull_release(struct wf_pull *pull, const struct wf_error *e);

/* Its stage has come further. */
void wf_pull_drained(struct wf_pull *pull);

/* For people: what it waits for.  And a number that differs once it has come further. */
void wf_pull_describe(const struct wf_pull *pull, char *text, size_t bytes);
uint64_t wf_pull_progress(const struct wf_pull *pull);

/* For transfer.c. */
void wf_pull_again(struct wf_pull *pull, const struct wf_body *body);
void wf_pull_lane(struct wf_pull *pull, const struct wf_lane_record *lane);
void wf_pull_lane_up(struct wf_pull *pull);
void wf_pull_lane_closed(struct wf_pull *pull, const struct wf_lane *lane);
int wf_pull_told(struct wf_pull *pull, const struct wf_sums_record *sums);
int wf_pull_filled(struct wf_pull *pull, uint64_t bytes);
void wf_pull_up(struct wf_pull *pull);
void wf_pull_paused(struct wf_pull *pull);
void wf_pull_quiet(struct wf_pull *pull);
void wf_pull_feed(struct wf_pull *pull);

#endif
