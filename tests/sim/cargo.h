/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attachments of a simulated run, with both of their ends: tensors beside requests, replies
 * and messages of streams, and their receives, in which order and when.
 *
 * A load is all that goes beside one message, an item is one tensor of a load.  A call with
 * loads is answered here, as its leg says, when its receives have ended.
 */
#ifndef WF_SIM_CARGO_H
#define WF_SIM_CARGO_H

#include "tests/sim/world.h"

struct wf_leg;

/* The memory of a receive. */
enum wf_cargo_memory { WF_CARGO_OWN, WF_CARGO_ALLOC, WF_CARGO_POOL };

/* An operation: the send of an item, or its receive. */
struct wf_cargo_end {
	/* the plan */
	uint64_t limit_ns;    /* time limit; 0: the call's */
	uint64_t patience_ns; /* from the beginning until the cancel; 0: none */
	bool detached;        /* the handle is given up at once */

	/* the run */
	bool begun;
	unsigned node, life;  /* node where it began, and life of that */
	struct wf_flight flight;
	uint64_t due_ns;      /* deadline of the operation */
	uint64_t bereft_ns;   /* like a leg's */
	bool hit_deadline;
	bool seen;            /* seen by the checker, after the end */
	enum weft_executed executed;
	uint8_t *buffer;      /* memory that the operation borrows */
	size_t buffer_bytes;
};

struct wf_item {
	struct wf_load *load;

	/* the plan */
	size_t bytes;
	size_t row_bytes, pitch_bytes; /* like a leg's */
	uint64_t seed;
	unsigned flags;       /* like a leg's */
	bool unwatched;       /* nobody waits for the send */
	bool wanted;          /* the item is to be received, as follows */
	enum wf_cargo_memory memory;
	bool any_shape, refuses, misfits;
	uint64_t wait_ns;     /* time from the message to the receive */

	/* the run */
	unsigned index;       /* index in the message */
	struct wf_cargo_end sent, got;
	void *shared;         /* memory of the pool that is given up after the send; NULL: before */
	void *view;           /* view of the receiver, until @view_ns */
	uint64_t view_ns;
};

struct wf_load {
	struct wf_leg *leg;
	bool back;            /* the load goes to the caller */
	bool backwards;       /* the last item is received first */
	unsigned count;
	struct wf_item *items;

	/* the run */
	unsigned attached;    /* items that could be attached */
	uint64_t came_ns;     /* when the message came; 0: not yet */
	unsigned life;        /* life of the node that has the load */
	struct weft_op *op;   /* operation that brought the load: a read, freed after; or @call */
	void *call;           /* server call that brought the load */
	bool closed;          /* no receive is begun any more */
};

/* The cargo of a leg: a load for each message. */
struct wf_cargo {
	struct wf_load *up, *down; /* NULL: no message has a load */
	bool hasty;           /* the server does not wait for its receives */
};

/* The owner of the next message; one member is set. */
struct wf_berth {
	struct weft_op *request;
	void *reply;
	struct weft_stream *stream;
};

/* Draw loads for @leg, a call or a stream that is planned. */
void wf_cargo_plan(struct wf_leg *leg);

/* Attach the items that are planned.  Accepts NULL. */
void wf_cargo_attach(struct wf_load *load, const struct wf_berth *berth);

/* Note that the message of @load has come: takes @op, unless it is a call.  Accepts NULL. */
void wf_cargo_came(struct wf_load *load, struct weft_op *op);

/* Note that node @number serves @call of @leg. */
void wf_cargo_serve(struct wf_leg *leg, unsigned number, void *call);

/* Have all receives of @count loads that came been begun?  Accepts NULL. */
bool wf_cargo_is_begun(const struct wf_load *loads, unsigned count);
/* Have all receives of @count loads that came ended?  Accepts NULL. */
bool wf_cargo_is_received(const struct wf_load *loads, unsigned count);

/* Have all sends ended that were begun, but for those that nobody waits for?  Accepts NULL. */
bool wf_cargo_is_sent(const struct wf_load *load);

/* Do what is due at either end.  Returns when the next thing is. */
uint64_t wf_cargo_run(uint64_t now);

/* Is nothing left to begin, or to end? */
bool wf_cargo_is_over(void);

/* Let node @number, which is about to close, answer the calls that it serves. */
void wf_cargo_leave(unsigned number);
/* Note that node @number is about to die, as wf_traffic_bereave. */
void wf_cargo_bereave(unsigned number);

struct wf_item *wf_cargo_items(unsigned *count);

/* Does @end run: begun in the present life of its node, and not ended? */
bool wf_cargo_is_live(const struct wf_cargo_end *end);

/* Has the node of @end died, or closed, since? */
bool wf_cargo_is_of_the_past(const struct wf_cargo_end *end);

/* The other end's node. */
unsigned wf_cargo_peer(const struct wf_item *item, const struct wf_cargo_end *end);

/* Give up the handles, before the nodes close. */
void wf_cargo_release(void);
/* Free the rest, after the nodes have closed. */
void wf_cargo_free(void);

#endif
