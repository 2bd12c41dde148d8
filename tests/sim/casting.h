/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broadcasts of a simulated run, and the receives of their members: planned from a source of
 * chance of their own, begun as time comes, and held to account.
 *
 * Each broadcast has a step of its own.  Its members are other nodes: most receive with WEFT_RELAY,
 * some without, late, for a short time or never, and some, whose first receive is given up, with a
 * second one.  Some members are added while the broadcast runs.  The checks: a receive that ends
 * well has the bytes of the broadcast, and knows the beginning of them when it is told of that;
 * each operation ends once, in time; the broadcast's outcome is that of its first member that
 * failed, and OK only if all are; a member's outcome agrees with its receives; and a buffer is open
 * to nobody, nor written, once its operation has ended.
 */
#ifndef WF_SIM_CASTING_H
#define WF_SIM_CASTING_H

#include "tests/sim/traffic.h"

struct wf_checker_config;

#define WF_CASTING_TRIES 2 /* receives of a member, one after the other */

struct wf_casting_broadcast;

/* A receive of a member. */
struct wf_casting_receive {
	/* the plan */
	struct wf_casting_member *member;
	uint64_t begin_ns, limit_ns;
	uint64_t cancel_ns;   /* 0: never */
	unsigned flags;       /* WEFT_RELAY, WEFT_DROP */
	enum wf_leg_memory memory;
	bool from_anybody, refuses, hears, detached;

	/* the run */
	bool begun, refused;  /* refused: there was no memory to begin */
	unsigned life;        /* life of its node, when the receive began */
	uint64_t bereft_ns;   /* when the sender died, to which there was a link; 0: it has not */
	uint64_t stopped_ns;  /* when its node stopped the step; 0: never */
	unsigned stopped_life; /* life of its node then */
	uint64_t cancelled_ns; /* 0: it was not */
	struct wf_flight flight;
	bool hit_deadline, seen;
	uint8_t *buffer;      /* memory that the operation borrows, with guards around it */
	uint64_t heard_bytes; /* length of the beginning that the receive was told of */
};

struct wf_casting_member {
	/* the plan */
	struct wf_casting_broadcast *all;
	unsigned node;
	uint64_t add_ns;      /* when the member is added; 0: a member from the beginning */
	struct wf_casting_receive receives[WF_CASTING_TRIES];
	unsigned receive_count;

	/* the run */
	bool entered, refused; /* refused: there was no memory, or the broadcast had ended */
	unsigned index;        /* index among the members that have entered */
	unsigned life;         /* life of its node, when the member entered */
	uint64_t begun_ns;
	uint64_t bereft_ns;    /* when its node died, to which there was a link; 0: it has not */
	uint64_t seen_live_ns; /* the last look before its end; 0: none */
	uint64_t ended_ns;     /* the first look after its end; 0: it has not ended */
	enum weft_status status;
};

struct wf_casting_broadcast {
	/* the plan */
	uint64_t step;
	unsigned node;
	uint64_t begin_ns, limit_ns;
	uint64_t cancel_ns;    /* 0: never */
	size_t bytes;
	uint64_t seed;
	unsigned flags;        /* WEFT_DEAD, WEFT_OPAQUE, WEFT_SHARE */
	unsigned readers;
	bool summed, detached;
	uint64_t stop_ns;      /* when the step is aborted, or ended, by @stopper; 0: never */
	unsigned stopper;
	bool ends;             /* the step is ended, which nobody else hears of */
	bool lonely;           /* something will be missing, or end early */
	struct wf_casting_member *members;
	unsigned count;

	/* the run */
	bool begun, refused;   /* refused: there was no memory to begin */
	bool stopped;
	unsigned life;
	uint64_t stopped_ns;   /* when its own node stopped the step; 0: never */
	unsigned stopped_life; /* life of its node then */
	uint64_t cancelled_ns; /* 0: it was not */
	struct wf_flight flight;
	bool hit_deadline, seen;
	unsigned entered;      /* members that have entered */
	uint8_t *image;        /* bytes that are sent; NULL: not begun */
	uint8_t *buffer;       /* memory that the operation borrows; NULL: not begun, or shared */
	void *shared;          /* memory of the pool, given up after the end; NULL: before */
};

/* Plan broadcasts, in some runs; other draws are as without. */
void wf_casting_plan(const struct wf_traffic_config *config, const struct wf_checker_config *checks);

/* Do what is due.  Returns when the next thing is. */
uint64_t wf_casting_run(uint64_t now);

/* Is nothing left to begin, or to end? */
bool wf_casting_is_over(void);

/* Check the operations that have ended since the last look. */
void wf_casting_look(void);

/* Let every node that is left end the steps of all broadcasts. */
void wf_casting_end_steps(void);

/* Check buffers, and count operations in the tally, when nothing runs any more. */
void wf_casting_finish(void);

/* Note that node @number is about to die, as wf_traffic_bereave(). */
void wf_casting_bereave(unsigned number);

struct wf_casting_broadcast *wf_casting_broadcasts(unsigned *count);

/* Does the broadcast or the receive run: begun in the present life of its node, and not ended? */
bool wf_casting_is_live(const struct wf_casting_broadcast *all);
bool wf_casting_receive_is_live(const struct wf_casting_receive *r);

/* Give up the handles, before the nodes close. */
void wf_casting_release(void);
/* Free the buffers, after the nodes have closed. */
void wf_casting_free(void);

#endif
