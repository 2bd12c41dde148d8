/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The traffic of a simulated run: tensors of all kinds, calls, streams and pings, with
 * attachments or without, and calls that make calls, planned from chance and begun as time
 * comes.
 *
 * A leg is one operation of one node.  Legs of tensors come in groups that
 * share a channel: one send and its receive, a row of several of each, or
 * a leg that nobody answers.
 */
#ifndef WF_SIM_TRAFFIC_H
#define WF_SIM_TRAFFIC_H

#include "tests/sim/cargo.h"
#include "tests/sim/talk.h"
#include "tests/sim/world.h"

#define WF_TRAFFIC_LONG_NS (8 * WF_NS_PER_S) /* a deadline that passes only if something hangs */
#define WF_TRAFFIC_CANARY 0xee

enum wf_leg_kind { WF_LEG_SEND, WF_LEG_RECEIVE, WF_LEG_CALL, WF_LEG_PING, WF_LEG_STREAM };

/* The memory of a receive. */
enum wf_leg_memory { WF_LEG_OWN, WF_LEG_ALLOC, WF_LEG_POOL };

struct wf_group;

struct wf_leg {
	enum wf_leg_kind kind;
	struct wf_group *group;
	unsigned node, peer;  /* equal: a receive from anybody */
	uint64_t begin_ns, limit_ns;
	uint64_t cancel_ns;   /* 0: never */
	uint64_t stopped_ns;  /* when its own node aborted or ended its step; 0: never */
	unsigned stopped_life; /* life of that node then */
	uint64_t hold_ns;     /* a call: time until the handler answers; UINT64_MAX: it fails */
	bool detached;        /* the handle is given up at once */

	/* the tensor, or the request */
	size_t bytes;
	uint64_t seed;
	unsigned flags;       /* a send: WEFT_DEAD, WEFT_OPAQUE, WEFT_SNAPSHOT, WEFT_SHARE */
	size_t dead_bytes;    /* a send of a dead tensor: bytes by its shape */
	size_t row_bytes, pitch_bytes; /* a send of rows with gaps; 0: no gaps */

	/* the receive */
	enum wf_leg_memory memory;
	bool any_shape, refuses, misfits;

	struct wf_talk talk; /* a stream's, whose flight is the call's */
	struct wf_cargo cargo; /* a call's or a stream's */

	struct wf_leg *child;  /* a call that the handler makes, and waits for; NULL: none */
	struct wf_leg *parent; /* a call whose handler begins this one; NULL: none */

	/* the run */
	bool begun, refused;  /* refused: the call that was to begin the leg has failed */
	unsigned life;        /* life of its node, when the leg began */
	uint64_t bereft_ns;   /* when its peer died, to which it had a link; 0: the peer has not */
	struct wf_flight flight;
	bool seen;            /* seen by the checker, after the end */
	enum weft_executed executed;
	const struct wf_leg *got; /* a receive: the send whose tensor it has */
	bool hit_deadline;
	uint8_t *buffer;      /* memory that the operation borrows */
	size_t buffer_bytes;
	void *shared;         /* a send: memory of the pool, given up after the end; NULL: before */
	void *view;           /* a receive: view, until @view_ns */
	uint64_t view_ns;
	unsigned handled;     /* a call: times that a handler ran */
	void *served;         /* a call with a child: its server call, until the answer */
	unsigned delivered;   /* a send: receives that got it */
};

/* Legs that share a channel, or a single call or ping. */
struct wf_group {
	struct wf_leg *legs;
	unsigned count;
	uint64_t step;
	uint64_t stop_ns;    /* when its step is aborted, or ended, by @stopper */
	unsigned stopper;
	bool ends;           /* the step is ended, which nobody else hears of */
	bool stopped;
	uint64_t meddle_ns;  /* when @meddler, a node without a part, aborts the step; 0: never */
	unsigned meddler;
	bool lonely; /* something will be missing, or end early: no leg must go well */
};

/* Settings of a run; others come through the environment. */
struct wf_traffic_config {
	unsigned nodes;
	uint64_t from_ns, until_ns;
};

void wf_traffic_plan(const struct wf_traffic_config *config);

/* Plan streams besides, in some runs: drawn last, so that other legs are as without. */
void wf_traffic_plan_streams(const struct wf_traffic_config *config);

/* Plan calls and streams with attachments besides, in some runs: drawn after streams. */
void wf_traffic_plan_cargo(const struct wf_traffic_config *config);

/* Plan calls whose handlers make calls, in some runs: drawn after attachments. */
void wf_traffic_plan_trees(const struct wf_traffic_config *config);

/* Plan nodes that abort steps without a part in them, in some runs: drawn after all else. */
void wf_traffic_plan_meddlers(const struct wf_traffic_config *config);

/* Reason of a meddler's abort, which no operation may give. */
#define WF_TRAFFIC_MEDDLED "it is not mine"

/* Draw a length of a body. */
size_t wf_traffic_some_bytes(void);
/* Draw a time until something ends an operation. */
uint64_t wf_traffic_soon_ns(void);

/*
 * A tensor of @bytes, in rows of @row_bytes unless that is 0, which begin @pitch_bytes apart
 * unless that is 0.  @shape and @strides are the caller's.
 */
struct weft_tensor wf_traffic_tensor(void *data, size_t bytes, size_t row_bytes,
				     size_t pitch_bytes, int64_t shape[2], int64_t strides[2]);

/* Lay rows apart that lie behind each other. */
void wf_traffic_spread(uint8_t *rows, size_t bytes, size_t row_bytes, size_t pitch_bytes);

/* Begin and cancel legs that are due.  Returns when the next is. */
uint64_t wf_traffic_run(void);

/* Is nothing left to begin, or to end? */
bool wf_traffic_is_over(void);

/* Let every node that is left end every step: nothing of steps may be kept. */
void wf_traffic_end_steps(void);

/* Give up the handles, before the nodes close. */
void wf_traffic_release(void);
/* Free the buffers, after the nodes have closed. */
void wf_traffic_free(void);

struct wf_group *wf_traffic_groups(unsigned *count);

static inline bool wf_leg_has_pitch(const struct wf_leg *leg)
{
	return leg->row_bytes != 0;
}

/* The leg of a number, by which others name it. */
struct wf_leg *wf_traffic_leg(uint64_t number);
unsigned wf_traffic_number(const struct wf_leg *leg);

/* Has all ended that @leg has begun? */
bool wf_leg_has_ended(const struct wf_leg *leg);

/* Does @leg run: begun in the present life of its node, and not ended? */
bool wf_leg_is_live(const struct wf_leg *leg);

/* Has @node had a way to @peer? */
bool wf_traffic_is_linked(unsigned node, unsigned peer);

/* Note, in the legs that will miss it, that node @number is about to die. */
void wf_traffic_bereave(unsigned number);

/* Note that node @number is about to close: it answers the calls that it serves. */
void wf_traffic_leave(unsigned number);
/* Note that node @number is about to drain: calls that it does not serve yet may fail. */
void wf_traffic_drain(unsigned number);

/* Is @bytes what @leg sent? */
bool wf_leg_sent(const struct wf_leg *leg, const void *bytes, size_t count);

#endif
