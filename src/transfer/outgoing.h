/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An outgoing body: a record with a body, on its way out.
 *
 * An outgoing body waits until its link has a rail, is planned, and goes eagerly or as an offer
 * that the peer pulls.  It ends once: when its body may be reused.
 *
 * Threads: owner.
 */
#ifndef WF_OUTGOING_H
#define WF_OUTGOING_H

#include "memory/grant.h"
#include "transfer/path.h"
#include "transfer/recall.h"
#include "transfer/sender_sums.h"
#include "transfer/stage.h"
#include "transfer/stripe.h"
#include "transfer/terms.h"
#include "transfer/transfer.h"
#include "util/reason.h"

#define WF_OUTGOING_HEAD_BYTES 256 /* longest head from the transfer's freelist of records */

/* The record of an outgoing body, until it has left. */
struct wf_outgoing_record {
	struct wf_outgoing *outgoing;
	struct wf_message message;
	bool spare; /* the record is from the freelist */
	uint8_t head[];
};

struct wf_outgoing;

/*
 * States of an outgoing body:
 *
 *   ENDED --------> WAITING      wf_outgoing_post()
 *   WAITING ------> QUEUED       there is a rail: the record is queued, with body or offer
 *   QUEUED -------> OFFERED      the record has left, and the body is to be pulled, or taken back if
 *                                the outgoing body was stopped with a part of its offer out
 *   OFFERED ------> WITHDRAWING  stopped, and the peer is told; or not to be offered anew
 *   WAITING ------> WITHDRAWING  the record can't go; the outgoing body ends in the next turn
 *   each ---------> ENDED        sent, pulled, stopped, or quiet
 */
enum wf_outgoing_state {
	WF_OUTGOING_ENDED, /* ended, or not begun */
	WF_OUTGOING_WAITING,
	WF_OUTGOING_QUEUED,
	WF_OUTGOING_OFFERED,
	WF_OUTGOING_WITHDRAWING
};

/* The staging of an outgoing body whose body is on a device. */
struct wf_outgoing_staging {
	struct wf_outgoing *outgoing;
	const struct wf_engine_rail *reached_by; /* rail that last reached the device, or NULL */
	struct wf_pool_waiter bounce_waiter; /* waits for the pool, for the stage's buffer */
	uint64_t reader;     /* id of the pull that reads the staged body */
	uint64_t filled, taken; /* bytes that the reader was told of, and has read */
	bool awaited;        /* the outgoing body waits for the stage to be ready */
};

/* The part of an outgoing body that the peer may read. */
struct wf_outgoing_offer {
	uint64_t id;         /* id in the table of outgoing bodies; 0: no offer */
	struct wf_grant grant;
	uint32_t grant_epoch;
	uint32_t place;      /* index among the leases, if the body is lent */
	bool lent;
	bool direct;         /* rails reach the body on its device, without the buffer */
	bool connected;      /* closing the endpoint of the rail makes the body quiet */
	bool parcel;         /* a parcel went with the offer */
	uint8_t resume_status; /* how RESUME asked: WF_RESUME_HANDLE, WF_RESUME_COPIED or 0 */
	uint64_t resuming;   /* id of the pull that waits for more rails, or for the stage */
	struct wf_stripe_offer *spread; /* the body on lanes; NULL: no reader has asked */
	struct wf_recall *recall; /* NULL once it is posted */
};

/* A class of outgoing bodies: all that outgoing bodies of one owner have in common. */
struct wf_outgoing_class {
	bool needs_room; /* eager only if the receiver can keep the body unmatched */
	bool offers;     /* a body is offered, however short it is */
	bool shared;     /* any number of pulls may read the offer */
	bool in_order;   /* records leave in order: the priority counts where the body is read */
	/* Returns whether the record of @p must not overtake that of @before.  NULL: it may. */
	bool (*follows)(const struct wf_outgoing *p, const struct wf_outgoing *before);
	/* Write the head of the record into the room that wf_outgoing_head() gives.  -ENOMEM. */
	int (*put_head)(struct wf_outgoing *p, const struct wf_body *body);
	/* The record is queued: more records about the body may follow it.  NULL: none do. */
	void (*posted)(struct wf_outgoing *p);
	/* @p has ended; @e is NULL: well.  The body is free, and @p may be freed. */
	void (*done)(struct wf_outgoing *p, const struct wf_error *e);
};

struct wf_outgoing {
	/* set by the owner */
	void *body;
	uint64_t body_bytes;
	/* stage of a body on a device, whose moved calls wf_outgoing_filled(); else NULL */
	struct wf_stage *stage;
	const struct wf_outgoing_class *class;
	const struct wf_terms *terms;
	uint8_t type; /* type of the record */
	/* the body lies in the pool and is not written: peers of this host may view it */
	bool lend;
	bool insists; /* without a body, and told for certain: memory for its head is waited for */
	/* may be set before wf_outgoing_stop(): the peer is told otherwise, and answers PULLED */
	bool told;

	/* read by the owner, after its end too */
	uint8_t plan;         /* enum wf_body_way: eager or pull; none: not made yet */
	struct wf_path path;
	enum wf_outgoing_state state;
	bool sent;            /* some of the record may have reached the peer */
	bool refused;         /* the peer has had the offer and did not take the body */

	/* private to outgoing.c: set up by wf_outgoing_post(), whatever was there before */
	bool fenced;         /* withdrawn, and its rail given up: late messages on it are dropped */
	struct wf_transfer *transfer;
	struct wf_link *link;
	struct wf_list node; /* in link->work, while it waits for a rail, and while offered */
	struct wf_outgoing_record *record; /* NULL: not made yet, or left */
	struct wf_outgoing_staging *staging; /* NULL: the body is not on a device */
	uint64_t sum;        /* checksum of a body of one piece */
	struct wf_sender_sums
		*summing; /* checksums of a longer body; NULL: its reader has not asked */
	struct wf_outgoing_offer offer;
	struct wf_timer quiet_timer; /* ends a withdrawal; before, waits for rails or memory */
	/* on a shared rail: end of the withdrawal, and time of the probe */
	uint64_t quiet_ns, probed_ns;
	struct wf_reason why; /* why the outgoing body ends, while it is withdrawn */
};

/*
 * Start @p on its way over @link.  Borrows @p and its body until done, which is never called
 * inside.
 */
void wf_outgoing_post(struct wf_transfer *t, struct wf_link *link, struct wf_outgoing *p);

/* Make room for a head of @bytes; called by the class's put_head.  -ENOMEM. */
int wf_outgoing_head(struct wf_outgoing *p, size_t bytes, struct wf_bytes_writer *head);

/*
 * End @p early with @e.  done follows, maybe inside, at the latest when the body is quiet; and
 * it may still say that all went well.  Harmless after the end.
 */
void wf_outgoing_stop(struct wf_outgoing *p, const struct wf_error *e);

/* Undo wf_outgoing_post() before @p had a rail: it may be posted again.  -EALREADY. */
int wf_outgoing_take_back(struct wf_outgoing *p);

/* Handle progress of the stage of @p, or, with @e, its failure. */
void wf_outgoing_filled(struct wf_outgoing *p, const struct wf_error *e);

/* Say for people what @p waits for. */
void wf_outgoing_describe(const struct wf_outgoing *p, char *text, size_t bytes);

/* Returns a number that differs once @p has come further. */
uint64_t wf_outgoing_progress(const struct wf_outgoing *p);

/* Returns how many bytes of the body the peer may be reading just now, without a word. */
static inline uint64_t wf_outgoing_offered_bytes(const struct wf_outgoing *p)
{
	return p->state == WF_OUTGOING_OFFERED ? p->body_bytes : 0;
}

/* Returns whether some of the record may have reached the peer. */
bool wf_outgoing_has_left(const struct wf_outgoing *p);

/* Records of the peer about the offer of @p, and events of its link; called by transfer.c. */
void wf_outgoing_pulled(struct wf_outgoing *p, enum weft_status status, uint32_t chunks);
void wf_outgoing_withdrawn(struct wf_outgoing *p);
int wf_outgoing_resume(struct wf_outgoing *p, uint64_t pull, uint8_t status);

/* Send a reader the offer that it goes on by; of no body: there is none.  -ENOMEM. */
int wf_outgoing_tell(struct wf_link *link, uint8_t priority, const struct wf_record_offer *offer);
int wf_outgoing_spread(struct wf_outgoing *p, uint64_t pull);
int wf_outgoing_taken(struct wf_outgoing *p, uint64_t bytes);
int wf_outgoing_check(struct wf_outgoing *p, uint64_t pull);
int wf_outgoing_seal(struct wf_outgoing *p, const struct wf_parcel_ask *ask);
bool wf_outgoing_up(
	struct wf_outgoing *p); /* false: @p waits on, and so do the outgoing bodies behind it */
void wf_outgoing_paused(struct wf_outgoing *p);
void wf_outgoing_fail(struct wf_outgoing *p, const struct wf_error *e);

#endif
