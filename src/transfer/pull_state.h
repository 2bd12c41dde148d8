/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * States of a pull (pull.h), the parts of it, and how far it has come.
 *
 * Threads: owner.
 */
#ifndef WF_PULL_STATE_H
#define WF_PULL_STATE_H

#include "link/depth.h"
#include "link/engine.h"
#include "util/error.h"
#include "util/list.h"

#define WF_PULL_DEPTH_MAX WF_DEPTH_MAX /* reads under way */

struct wf_pull;
struct wf_stripe_way;

struct wf_pull_read {
	struct wf_engine_read read;
	struct wf_pull *pull;
	uint64_t offset, count;
	uint32_t block; /* index of the read's first block, if there are blocks */
	uint64_t skip;  /* bytes of that block before the read */
	uint64_t posted_ns;
	uint32_t among; /* reads under way then, all of this body; 0: some of other bodies */
	bool aside; /* the rail's helper makes the read */
	struct wf_stripe_way *over; /* lane of the read; NULL: the rail in use */
	enum { WF_PULL_READ_FREE, WF_PULL_READ_BUSY, WF_PULL_READ_AGAIN } state;
};

/*
 * States of a pull:
 *
 *   WAITING, EARLY --> ASKED     there is a rail, and the offer is of another, or may be over
 *   ASKED -----------> WAITING   the owner has offered the rest anew, or the rail has gone
 *   WAITING, EARLY --> EARLY     the offer holds on the rail, and something else is missing
 *   EARLY -----------> WAITING   a timer, or the stage, lets the pull look again
 *   WAITING, EARLY --> READING   the offer holds on the rail
 *   READING ---------> WAITING   a read has failed, or the rail has gone
 *   each ------------> STOPPING  the pull is given up, and ends once the destination is quiet
 *
 * A pull that ends well does so in any other state.
 */
enum wf_pull_state {
	WF_PULL_WAITING,  /* waits for a rail, or for stale reads to end; or needs no read */
	WF_PULL_ASKED,    /* waits for the owner's answer: RESUME was sent on this epoch */
	WF_PULL_EARLY,    /* waits for more rails, which the terms need, or for the stage */
	WF_PULL_READING,  /* waits for the reads under way, and for a turn for the next */
	WF_PULL_STOPPING,
};

/* How the bytes get to their destination. */
enum wf_pull_way {
	WF_PULL_WAY_READ,     /* reads go to the destination */
	WF_PULL_WAY_VIEW,     /* job.into is job.view: there is nothing to read */
	WF_PULL_WAY_STAGED,   /* reads go to the bounce buffer of job.stage, which is drained */
	WF_PULL_WAY_STRAIGHT, /* reads go to the device, past job.stage */
	WF_PULL_WAY_IMPORTED, /* job.stage copies from the device of the body's owner */
};

/* The rail of the reads under way, or of the last ones. */
struct wf_pull_rail {
	const struct wf_engine_rail *on; /* NULL: there has been no rail */
	uint64_t chunk_bytes;
	uint32_t depth;      /* least number of reads under way: the link's depth may be more */
	uint32_t spans_max;  /* blocks of one read */
	bool helper;         /* the rail's helper makes reads, too */
	bool connected;
	bool quiet_by_close; /* closing its endpoint ends reads */
};

/* How far a pull has come. */
struct wf_pull_at {
	uint32_t block;      /* first block that is not all asked for */
	uint64_t block_done; /* bytes of @block that are asked for */
	uint64_t filled;     /* bytes that are there at the owner's, from the beginning on */
	uint64_t taken;      /* bytes the owner knows to be read */
	uint64_t next;       /* first byte not asked for yet */
	uint64_t got_bytes;
	uint64_t reported;   /* bytes that job.came has heard of */
	uint64_t summed_bytes; /* bytes of a view that are summed up */
};

/* Which other pulls of the link a pull makes way for: see yield.h. */
struct wf_pull_yield {
	uint8_t priority; /* the higher of the operations' at both ends */
	bool wants;       /* counted in link->yields.wanting */
	bool has_turn;    /* the next read makes way for none */
	struct wf_list node; /* in link->yields.held, while the pull makes way */
};

/* Failures in a row. */
struct wf_pull_failures {
	unsigned count;
	uint64_t since_ns; /* when the first of them was */
};

/* The early end of a pull. */
struct wf_pull_stop {
	struct wf_error why;
	bool tell_withdrawn;
	bool releases; /* another pull may take the body */
};

#endif
