/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The traffic of a simulated run: tensors of all kinds, calls, streams and pings, with
 * attachments or without, and calls that make calls, planned from chance and begun as time
 * comes.
 *
 * A leg is one operation of one node.  Legs of tensors come in groups that
 * share a channel: one send and its receive, a stream of several of each, or
 * one that nobody answers.
 */
#ifndef WF_SIM_TRAFFIC_H
#define WF_SIM_TRAFFIC_H

#include "tests/sim/cargo.h"
#include "tests/sim/talk.h"
#include "tests/sim/world.h"

#define WF_TRAFFIC_LONG_NS (8 * WF_NS_PER_S) /* a deadline that is never met unless something hangs */
#define WF_TRAFFIC_CANARY 0xee

enum wf_leg_kind { WF_LEG_SEND, WF_LEG_RECEIVE, WF_LEG_CALL, WF_LEG_PING, WF_LEG_STREAM };

/* Whose memory a receive takes. */
enum wf_leg_memory { WF_LEG_OWN, WF_LEG_ALLOC, WF_LEG_POOL };

struct wf_group;

struct wf_leg {
	enum wf_leg_kind kind;
	struct wf_group *group;
	unsigned node, peer;  /* equal: a receive from anybody */
	uint64_t begin_ns, limit_ns;
	uint64_t cancel_ns;   /* 0: never */
	uint64_t stopped_ns;  /* when its own node aborted or ended its step; 0: it did not */
	unsigned stopped_life; /* of that node */
	uint64_t hold_ns;     /* a call: until the handler answers; UINT64_MAX: it fails */
	bool detached;        /* its handle is given up at once */

	/* the tensor, or the request */
	size_t bytes;
	uint64_t seed;
	unsigned flags;       /* of a send: WEFT_DEAD, WEFT_OPAQUE, WEFT_SNAPSHOT, WEFT_SHARE */
	size_t dead_bytes;    /* a send: of a dead tensor, as its shape says */
	size_t row_bytes, pitch_bytes; /* a send of rows with gaps; 0: it has none */

	/* of a receive */
	enum wf_leg_memory memory;
	bool any_shape, refuses, misfits;

	struct wf_talk talk; /* of a stream, whose flight is the call's */
	struct wf_cargo cargo; /* of a call or a stream */

	struct wf_leg *child;  /* of a call: its handler makes this one, and answers when that has ended; NULL: none */
	struct wf_leg *parent; /* of a call: whose handler begins it; NULL: it is begun by itself */

	/* what became of it */
	bool begun, refused;  /* refused: the call that was to begin it has failed */
	unsigned life;        /* of its node, when it began */
	uint64_t bereft_ns;   /* when its peer died, to which it had a link; 0: it has not */
	struct wf_flight flight;
	bool seen;            /* by the checker, after its end */
	enum weft_executed executed;
	const struct wf_leg *got; /* a receive: the send whose tensor it has */
	bool hit_deadline;
	uint8_t *buffer;      /* what the operation borrows */
	size_t buffer_bytes;
	void *shared;         /* a send: memory of the pool that is given up after its end; NULL: before */
	void *view;           /* a receive: what it looks at, until: */
	uint64_t view_ns;
	unsigned handled;     /* a call: how often a handler ran */
	void *served;         /* a call with a child: at its server, until it is answered */
	unsigned delivered;   /* a send: how many receives got it */
};

/* Legs that share a channel, or a single call or ping. */
struct wf_group {
	struct wf_leg *legs;
	unsigned count;
	uint64_t step;
	uint64_t stop_ns;    /* when its step is aborted, or ended, by: */
	unsigned stopper;
	bool ends;           /* ended: nobody else hears of it */
	bool stopped;
	uint64_t meddle_ns;  /* when its step is aborted by a node that takes no part in it; 0: never */
	unsigned meddler;
	bool lonely; /* something will be missing, or end early: no leg must go well */
};

/* What the run is like; other settings come through the environment. */
struct wf_traffic_config {
	unsigned nodes;
	uint64_t from_ns, until_ns;
};

void wf_traffic_plan(const struct wf_traffic_config *config);

/* Streams besides, in some runs: drawn last, so that the others are what they are without. */
void wf_traffic_plan_streams(const struct wf_traffic_config *config);

/* Calls and streams with attachments besides, in some: drawn after those. */
void wf_traffic_plan_cargo(const struct wf_traffic_config *config);

/* Calls whose handlers make calls, besides, in some: drawn after those. */
void wf_traffic_plan_trees(const struct wf_traffic_config *config);

/* Nodes that abort steps in which they take no part, in some: drawn after those, and after faults. */
void wf_traffic_plan_meddlers(const struct wf_traffic_config *config);

/* Why such a node aborts a step, as no operation may say. */
#define WF_TRAFFIC_MEDDLED "it is not mine"

/* How long bodies are, and how soon something ends them. */
size_t wf_traffic_some_bytes(void);
uint64_t wf_traffic_soon_ns(void);

/*
 * A tensor of @bytes, in rows of @row_bytes unless that is 0, which begin @pitch_bytes apart
 * unless that is 0.  @shape and @strides are the caller's.
 */
struct weft_tensor wf_traffic_tensor(void *data, size_t bytes, size_t row_bytes,
				     size_t pitch_bytes, int64_t shape[2], int64_t strides[2]);

/* Lay rows apart that lie behind each other. */
void wf_traffic_spread(uint8_t *rows, size_t bytes, size_t row_bytes, size_t pitch_bytes);

/* Begin and cancel what is due; when the next is. */
uint64_t wf_traffic_run(void);

/* Nothing is still to begin, or to end. */
bool wf_traffic_is_over(void);

/* Every node that is left ends every step: nothing of them may be kept. */
void wf_traffic_end_steps(void);

/* Give up the handles, before the nodes close; free the buffers, after that. */
void wf_traffic_release(void);
void wf_traffic_free(void);

struct wf_group *wf_traffic_groups(unsigned *count);

static inline bool wf_leg_has_pitch(const struct wf_leg *leg)
{
	return leg->row_bytes != 0;
}

/* By its number, as others name it. */
struct wf_leg *wf_traffic_leg(uint64_t number);
unsigned wf_traffic_number(const struct wf_leg *leg);

/* All that it has begun has ended. */
bool wf_leg_has_ended(const struct wf_leg *leg);

/* It runs: begun in the present life of its node, and not ended. */
bool wf_leg_is_live(const struct wf_leg *leg);

/* @node has had a way to @peer. */
bool wf_traffic_is_linked(unsigned node, unsigned peer);

/* Node @number is about to die: note it where it will be missed. */
void wf_traffic_bereave(unsigned number);

/* It is about to close, and answers what it serves; or to drain: what it does not serve yet may fail. */
void wf_traffic_leave(unsigned number);
void wf_traffic_drain(unsigned number);

/* Is @bytes what @leg sent? */
bool wf_leg_sent(const struct wf_leg *leg, const void *bytes, size_t count);

#endif
