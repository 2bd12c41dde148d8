/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receives that stay of a simulated run, and the tensors that are sent to them: planned from a
 * source of chance of their own, begun as time comes, and held to account.
 *
 * A channel is a step of its own with some sends, and receives that stay: of a named peer or of
 * anybody, one after the other or at once.  It may have a guest, an ordinary receive that takes a
 * tensor away, or gives it back.  Some have several keys, and receives of any of them; the guest's
 * key goes before those.  Each tensor names its send.  The checks: a tensor is told at most
 * once, with its bytes, which stay as they are while its handle is held; eager tensors of one
 * sender come in their order; no more are out than their receive allows; a receive ends once, in
 * time and for a reason, after its last tensor; what was sent well has been told, where a receive
 * has stayed for it; and what a probe finds was sent, and not told.
 */
#ifndef WF_SIM_STAYING_H
#define WF_SIM_STAYING_H

#include "tests/sim/traffic.h"

struct wf_checker_config;

#define WF_STAYING_KEYS 4 /* keys of the tensors of one channel, at most */

struct wf_staying_channel {
	/* the plan */
	uint64_t step;
	unsigned receiver;
	unsigned from;         /* the sender; the receiver itself: anybody */
	uint64_t stop_ns;      /* when the step is aborted, or ended, by @stopper; 0: never */
	unsigned stopper;
	bool ends;             /* the step is ended, which nobody else hears of */
	unsigned keys;         /* keys of its tensors */
	bool any_key;          /* receives that stay are of any key, else of the only one */
	bool lonely;           /* tensors may find no receive, so their sends have little time */

	/* the run */
	bool stopped;
	unsigned dropped;      /* tensors that a receive could not take: their sends ended well */
};

/* A receive that stays, or a guest. */
struct wf_staying_receive {
	/* the plan */
	struct wf_staying_channel *channel;
	bool guest;
	bool any_key;
	unsigned key;          /* number of the key, if not any */
	uint64_t begin_ns;
	uint64_t limit_ns;     /* 0: none */
	uint64_t cancel_ns;    /* 0: when all is over, or with the step */
	unsigned max;          /* tensors that may be out; 0: as many as the library says */
	uint64_t hold_ns;      /* the longest that a handle is held; 0: it is freed at once */
	bool keeps;            /* handles are held until the end */
	bool allocs, refuses;  /* memory comes from a callback, which refuses some */
	bool last;             /* the receive lasts for as long as its peer and step */
	bool detached;         /* the handle is given up at once */

	/* the run */
	bool begun, refused;   /* refused: there was no memory to begin */
	unsigned life;         /* life of its node, when the receive began */
	struct wf_flight flight;
	const struct weft_op *self; /* the operation, while it has not ended */
	uint64_t bereft_ns;    /* when the named peer died, to which there was a link; 0: it has not */
	uint64_t stopped_ns;   /* when its node stopped the step; 0: never */
	unsigned stopped_life; /* life of its node then */
	uint64_t told_ns;      /* when the last tensor was told */
	bool hit_deadline, cancelled;
	unsigned held;         /* handles of tensors */
	/* the last send of each node and key that was told, plus 1 */
	unsigned last_of[WF_WORLD_NODES_MAX][WF_STAYING_KEYS];
};

struct wf_staying_send {
	/* the plan */
	struct wf_staying_channel *channel;
	unsigned node;
	uint64_t begin_ns, limit_ns;
	uint64_t cancel_ns;    /* 0: never */
	size_t bytes;
	uint64_t seed;
	unsigned flags;        /* WEFT_DEAD, WEFT_SNAPSHOT, WEFT_SHARE */
	bool detached;

	/* the run */
	bool begun, refused;   /* refused: there was no memory to begin */
	unsigned life, receiver_life; /* lives of both nodes, when the send began */
	struct wf_flight flight;
	uint64_t bereft_ns;    /* when the receiver died, to which there was a link; 0: it has not */
	bool hit_deadline, cancelled, seen;
	enum weft_executed executed;
	uint8_t *buffer;       /* memory that the operation borrows */
	void *shared;          /* memory of the pool, given up after the end; NULL: before */
	unsigned told;         /* times that the tensor was told */
};

/* Plan channels, in some runs; other draws are as without. */
void wf_staying_plan(const struct wf_traffic_config *config, const struct wf_checker_config *checks);

/* Do what is due.  Returns when the next thing is. */
uint64_t wf_staying_run(uint64_t now);

/* Is nothing left to begin, or to end, but receives that end with their step? */
bool wf_staying_is_over(void);

/* Check the sends that have ended since the last look. */
void wf_staying_look(void);

/* Let every node that is left end the steps of all channels. */
void wf_staying_end_steps(void);

/* Check the channels as a whole, and count operations in the tally, when nothing runs any more. */
void wf_staying_finish(void);

/* Note that node @number is about to die, as wf_traffic_bereave(). */
void wf_staying_bereave(unsigned number);

struct wf_staying_receive *wf_staying_receives(unsigned *count);
struct wf_staying_send *wf_staying_sends(unsigned *count);

/* Does the receive or the send run: begun in the present life of its node, and not ended? */
bool wf_staying_receive_is_live(const struct wf_staying_receive *r);
bool wf_staying_send_is_live(const struct wf_staying_send *s);

/* Give up the handles, before the nodes close. */
void wf_staying_release(void);
/* Free the buffers, after the nodes have closed. */
void wf_staying_free(void);

#endif
