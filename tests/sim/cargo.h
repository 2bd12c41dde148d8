/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attachments of a simulated run, with both of their ends: what goes beside requests,
 * replies and messages of streams, and what is received of it, in which order and when.
 *
 * A load is what goes beside one message, an item is one tensor of it.  A call with loads is
 * answered here, by what its leg says, when its receives have ended.
 */
#ifndef WF_SIM_CARGO_H
#define WF_SIM_CARGO_H

#include "tests/sim/world.h"

struct wf_leg;

/* Whose memory a receive takes. */
enum wf_cargo_memory { WF_CARGO_OWN, WF_CARGO_ALLOC, WF_CARGO_POOL };

/* One operation: the send of an item, or its receive. */
struct wf_cargo_end {
	/* the plan */
	uint64_t limit_ns;    /* 0: its call's */
	uint64_t patience_ns; /* from its beginning until it is cancelled; 0: it never is */
	bool detached;        /* its handle is given up at once */

	/* what became of it */
	bool begun;
	unsigned node, life;  /* where, and when */
	struct wf_flight flight;
	uint64_t due_ns;      /* its deadline */
	uint64_t bereft_ns;   /* as of a leg */
	bool hit_deadline;
	bool seen;            /* by the checker, after its end */
	enum weft_executed executed;
	uint8_t *buffer;      /* what it borrows */
	size_t buffer_bytes;
};

struct wf_item {
	struct wf_load *load;

	/* the plan */
	size_t bytes;
	size_t row_bytes, pitch_bytes; /* as of a leg */
	uint64_t seed;
	unsigned flags;       /* as of a leg */
	bool unwatched;       /* nobody waits for its send */
	bool wanted;          /* it is to be received: */
	enum wf_cargo_memory memory;
	bool any_shape, refuses, misfits;
	uint64_t wait_ns;     /* so long after its message */

	/* what became of it */
	unsigned index;       /* as its message has it */
	struct wf_cargo_end sent, got;
	void *shared;         /* memory of the pool that is given up after the send; NULL: before */
	void *view;           /* what its receiver looks at, until: */
	uint64_t view_ns;
};

struct wf_load {
	struct wf_leg *leg;
	bool back;            /* it goes to the caller */
	bool backwards;       /* the last is received first */
	unsigned count;
	struct wf_item *items;

	/* what became of it */
	unsigned attached;    /* that could be */
	uint64_t came_ns;     /* its message has; 0: it has not */
	unsigned life;        /* of who has it */
	struct weft_op *op;   /* it is received of this: a read is freed after that; or: */
	void *call;           /* one that is served */
	bool closed;          /* no receive is begun any more */
};

/* Of a leg: one load for each message. */
struct wf_cargo {
	struct wf_load *up, *down; /* NULL: no message has any */
	bool hasty;           /* the server does not wait for its receives */
};

/* Whose message is next; one of them. */
struct wf_berth {
	struct weft_op *request;
	void *reply;
	struct weft_stream *stream;
};

/* Draw loads for @leg, a call or a stream that is planned. */
void wf_cargo_plan(struct wf_leg *leg);

/* Attach what is planned.  Accepts NULL. */
void wf_cargo_attach(struct wf_load *load, const struct wf_berth *berth);

/* Its message has come: @op, from now on its own, unless it is a call.  Accepts NULL. */
void wf_cargo_came(struct wf_load *load, struct weft_op *op);

/* Node @number serves @call of @leg. */
void wf_cargo_serve(struct wf_leg *leg, unsigned number, void *call);

/* All receives of @count loads that came have been begun, and have ended.  Accepts NULL. */
bool wf_cargo_is_begun(const struct wf_load *loads, unsigned count);
bool wf_cargo_is_received(const struct wf_load *loads, unsigned count);

/* All sends that were begun have ended, but for those that nobody waits for.  Accepts NULL. */
bool wf_cargo_is_sent(const struct wf_load *load);

/* Do what is due at both ends; when the next is. */
uint64_t wf_cargo_run(uint64_t now);

/* Nothing is still to begin, or to end. */
bool wf_cargo_is_over(void);

/* Node @number is about to close: it answers what it serves.  As wf_traffic_bereave. */
void wf_cargo_leave(unsigned number);
void wf_cargo_bereave(unsigned number);

struct wf_item *wf_cargo_items(unsigned *count);

/* It runs: begun in the present life of its node, and not ended. */
bool wf_cargo_is_live(const struct wf_cargo_end *end);

/* Its node has died, or closed, since. */
bool wf_cargo_is_of_the_past(const struct wf_cargo_end *end);

/* The other end's node. */
unsigned wf_cargo_peer(const struct wf_item *item, const struct wf_cargo_end *end);

/* Give up the handles, before the nodes close; the rest, after that. */
void wf_cargo_release(void);
void wf_cargo_free(void);

#endif
