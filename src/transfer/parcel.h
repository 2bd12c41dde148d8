/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A parcel: a record with a body, on its way out.
 *
 * It waits until its link has a rail, is planned, and goes eagerly or as an
 * offer that the peer pulls.  It ends once: when its body may be reused.
 *
 * Threads: owner.
 */
#ifndef WF_PARCEL_H
#define WF_PARCEL_H

#include "memory/grant.h"
#include "transfer/path.h"
#include "transfer/recall.h"
#include "transfer/spread.h"
#include "transfer/stage.h"
#include "transfer/summing.h"
#include "transfer/terms.h"
#include "transfer/transfer.h"
#include "util/reason.h"

#define WF_PARCEL_HEAD_BYTES 256 /* records with heads up to this are spare pieces of the transfer */

/* The record of a parcel, until it has left. */
struct wf_parcel_record {
	struct wf_parcel *parcel;
	struct wf_message message;
	bool spare; /* it is one of those pieces */
	uint8_t head[];
};

struct wf_parcel;

/*
 *   ENDED --------> WAITING      it is posted
 *   WAITING ------> QUEUED       there is a rail: its record is in the link's queue, with body or offer
 *   QUEUED -------> OFFERED      the record has left, and the body is to be pulled
 *   OFFERED ------> WITHDRAWING  it is stopped, and the peer is told; or it can't be offered anew
 *   WAITING ------> WITHDRAWING  it can't go, and ends in the next turn
 *   each ---------> ENDED        it is sent, pulled, stopped, or quiet
 */
enum wf_parcel_state {
	WF_PARCEL_ENDED, /* or not begun */
	WF_PARCEL_WAITING,
	WF_PARCEL_QUEUED,
	WF_PARCEL_OFFERED,
	WF_PARCEL_WITHDRAWING
};

/* The staging of a parcel whose body is on a device. */
struct wf_parcel_staging {
	struct wf_parcel *parcel;
	const struct wf_worker_rail *reached_by; /* that one did last, where the body is; NULL: none has */
	struct wf_pool_waiter room_waiter; /* for the stage's room */
	uint64_t reader;     /* the pull that reads what is staged */
	uint64_t filled, taken; /* of that: so much it was told, and has told us */
	bool awaited;        /* it waits for the stage to be ready */
};

/* What the peer may read of a parcel. */
struct wf_parcel_offer {
	uint64_t id;         /* 0: there is none */
	struct wf_grant grant;
	uint32_t grant_epoch;
	uint32_t place;      /* among the leases, if it is lent */
	bool lent;
	bool direct;         /* rails reach the body on its device, and nothing goes through the stage's room */
	bool connected;      /* its rail is: closing the endpoint makes the body quiet */
	uint8_t resume_status; /* how the pull that waits has asked: WF_RESUME_HANDLE, WF_RESUME_COPIED or 0 */
	uint64_t resuming;   /* the pull that waits for more rails, or for the stage */
	struct wf_spread_offer *spread; /* the same on lanes; NULL: nobody has asked for that */
	struct wf_recall *recall; /* until it is said */
};

/* A kind of parcels: what is the same for all that an owner posts. */
struct wf_parcel_class {
	bool needs_room; /* eager only if the receiver can keep it unmatched */
	/* Write the head of the record into what wf_parcel_head gives.  -ENOMEM. */
	int (*put_head)(struct wf_parcel *p, const struct wf_body *body);
	/* @p has ended, NULL: well.  The body is free, and @p may be freed. */
	void (*done)(struct wf_parcel *p, const struct wf_error *e);
};

struct wf_parcel {
	/* set by the owner */
	void *body;
	uint64_t body_bytes;
	/* @body is on a device, and goes through this, whose moved calls wf_parcel_filled; or NULL */
	struct wf_stage *stage;
	const struct wf_parcel_class *class;
	const struct wf_terms *terms;
	uint8_t type; /* of the record */
	bool lend; /* it lies in the pool and nobody writes to it: peers of this host may look at it there */
	/* may be set before wf_parcel_stop: the peer is told otherwise, and answers PULLED */
	bool told;

	/* read by the owner, after its end too */
	uint8_t plan;         /* enum wf_body_way: eager or pull; none: not made yet */
	struct wf_path path;
	enum wf_parcel_state state;
	bool sent;            /* some of it may have reached the peer */
	bool refused;         /* the peer has had the offer and did not take the body */

	/* its own: set up when it is posted, whatever was there before */
	bool fenced;         /* withdrawn, and its rail was given up: what comes late on it is dropped */
	struct wf_transfer *transfer;
	struct wf_link *link;
	struct wf_list node; /* in a list of its link, while it waits for a rail and while it is offered */
	struct wf_parcel_record *record; /* NULL: not made yet, or it has left */
	struct wf_parcel_staging *staging; /* NULL: the body is not on a device */
	uint64_t sum;        /* of a body in one piece */
	struct wf_summing *summing; /* of a longer one; NULL: its reader has not asked */
	struct wf_parcel_offer offer;
	struct wf_timer quiet_timer; /* before a withdrawal: to look for more rails, which it must have */
	uint64_t quiet_ns, probed_ns; /* withdrawn on a shared rail: when it ends, and when the peer was asked whether it lives */
	struct wf_reason why; /* of its end, while it is withdrawn */
};

/*
 * Start @p on its way over @link.  Borrows @p and its body until done, which is never
 * called inside.
 */
void wf_parcel_post(struct wf_transfer *t, struct wf_link *link, struct wf_parcel *p);

/* For the class: room for a head of @bytes.  -ENOMEM. */
int wf_parcel_head(struct wf_parcel *p, size_t bytes, struct wf_writer *head);

/*
 * End it early with @e.  done follows, maybe inside, at the latest when the body is
 * quiet; and it may still say that all went well.  Harmless after the end.
 */
void wf_parcel_stop(struct wf_parcel *p, const struct wf_error *e);

/* As if it had not been posted, before it had a rail: it may be posted again.  -EALREADY. */
int wf_parcel_take_back(struct wf_parcel *p);

/* Its stage has come further, or, with @e, has failed. */
void wf_parcel_filled(struct wf_parcel *p, const struct wf_error *e);

/* For people: what it waits for.  And a number that differs once it has come further. */
void wf_parcel_describe(const struct wf_parcel *p, char *text, size_t bytes);
uint64_t wf_parcel_progress(const struct wf_parcel *p);

/* Bytes of its body that the peer may be reading just now, without a word. */
static inline uint64_t wf_parcel_offered_bytes(const struct wf_parcel *p)
{
	return p->state == WF_PARCEL_OFFERED ? p->body_bytes : 0;
}

/* May some of it have reached the peer? */
bool wf_parcel_has_left(const struct wf_parcel *p);

/* For transfer.c: the peer's words about offers, and the link's. */
void wf_parcel_pulled(struct wf_parcel *p, enum weft_status status, uint32_t chunks);
void wf_parcel_withdrawn(struct wf_parcel *p);
int wf_parcel_resume(struct wf_parcel *p, uint64_t pull, uint8_t status);
int wf_parcel_spread(struct wf_parcel *p, uint64_t pull);
int wf_parcel_taken(struct wf_parcel *p, uint64_t bytes);
int wf_parcel_check(struct wf_parcel *p, uint64_t pull);
bool wf_parcel_up(struct wf_parcel *p); /* false: it waits on, and so does what comes behind it */
void wf_parcel_paused(struct wf_parcel *p);
void wf_parcel_fail(struct wf_parcel *p, const struct wf_error *e);

#endif
