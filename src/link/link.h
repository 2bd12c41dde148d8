/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link: the live relation with one peer.
 *
 * Life: idle (an address, nothing under way) -> dialling (the door) -> trying
 * (a rail) -> up -> idle or gone.  While it is up the rail may fail (trying
 * again, nothing is lost) and the door may close (redialled); only when
 * neither comes back in time is the peer dead.  Then all that waits for it
 * fails, and a link with an address starts afresh with its next use.
 *
 * The floors above post messages, which become records in frames: in order,
 * each delivered once, or the link dies.
 *
 * Who calls out: sent(), the sinks of worker.h and wf_link_die run code of the
 * floors above, which may give back the last reference to any link, and change
 * the state of this one.  A link without references is GONE at once, but its memory,
 * and its place in the worker's list, stay until the next turn begins.  So a caller
 * needs no reference of its own to look at the link after it has called out; but
 * look it must (state, stage, epoch), and do nothing for a link that has changed.
 * Reads, messages, controls and lanes are freed by whoever owns them inside the call
 * that tells of their end: after that call nobody looks at them.
 *
 * The object's code is in link.c (life), dial.c (door and greeting),
 * same.c (two links with one peer), attempt.c (finding a rail), lane.c (more of them, for bodies), flow.c
 * (frames out), intake.c (frames in), live.c (heartbeat, redial) and budget.c
 * (credits).
 *
 * Threads: owner.
 */
#ifndef WF_LINK_H
#define WF_LINK_H

#include "link/attempt.h"
#include "link/budget.h"
#include "link/depth.h"
#include "link/dial.h"
#include "link/flow.h"
#include "link/intake.h"
#include "link/lane.h"
#include "link/live.h"
#include "link/message.h"
#include "link/same.h"
#include "link/sidedoor.h"
#include "link/worker.h"
#include "util/map.h"
#include "wire/record.h"

/* The longest record we take: a key of 64 KiB and an eager body fit several times. */
#define WF_LINK_RECORD_BYTES_MAX (1 * MIB)

/*
 *   IDLE     -> DIALLING  something wants to reach the peer
 *   IDLE     -> TRYING    the peer has dialled
 *   DIALLING -> TRYING    the peer has answered
 *   TRYING   -> DIALLING  its door closed before any rail worked
 *   TRYING   -> UP        a rail works
 *   UP       -> TRYING    the rail has failed
 *   any      -> IDLE      the peer is dead, or another link or worker has it
 *   any      -> GONE      the peer is dead and has no address, or nobody refers to the link
 */
enum wf_link_state {
	WF_LINK_IDLE,
	WF_LINK_DIALLING, /* also: waiting to dial again */
	WF_LINK_TRYING,
	WF_LINK_UP,
	WF_LINK_GONE
};

/*
 * How far the present life of the peer has come: down this list, some left out, and back to
 * the first when the peer is dead.  A rail that fails changes nothing of it.
 */
enum wf_link_stage {
	WF_LINK_STAGE_UNMET,
	WF_LINK_STAGE_MOVING,  /* its hello has come, and may be for another worker to answer */
	WF_LINK_STAGE_GREETED, /* link->peer is what the peer says of itself */
	WF_LINK_STAGE_PONGED,  /* a pong has gone: for the peer, who dialled, the link may be up */
	WF_LINK_STAGE_PROVED   /* the link was up: frames and transfers may wait for a rail */
};

/* Of what is kept on a peer's behalf, see ledger.h. */
enum wf_ledger_side {
	WF_LEDGER_RECEIVED, /* until the program receives it */
	WF_LEDGER_OWED,     /* until the peer takes or ends it */
	WF_LEDGER_SIDES
};

/* Offers of a peer's: struct wf_answer of the transfer floor, which alone uses them. */
struct wf_link_offers {
	struct wf_map map;  /* by the peer's id of the offer */
	struct wf_list all; /* the oldest first */
};

/* A link's lists of what the floors above have for its peer, each used by its floor alone. */
enum wf_link_work {
	WF_LINK_PARCELS_WAITING, /* for a rail, or for more */
	WF_LINK_PARCELS,         /* offered */
	WF_LINK_PULLS,
	WF_LINK_RECEIVES,        /* that name the peer */
	WF_LINK_CALLS,
	WF_LINK_SERVED,          /* calls of the peer's */
	WF_LINK_STREAMS,
	WF_LINK_ECHOES,
	WF_LINK_WORKS
};

/* Room for eager bodies, in bytes counted up.  Until the peer dies, but for @held. */
struct wf_link_room {
	uint64_t granted, spent;    /* at the peer, for ours */
	uint64_t total, told, used; /* here, for the peer's: granted, as last told, and used */
	uint64_t held;              /* of its tensors that wait here, also from earlier lives */
};

/* The ledger's account of the peer: what this node keeps on its behalf, see ledger.h. */
struct wf_link_account {
	bool stranger;             /* it dialled this node, and nobody here has named its address */
	struct wf_list kept;       /* tensors that wait for a receive, the oldest first */
	uint64_t bytes[WF_LEDGER_SIDES];
};

/* Notes of the floors above on the peer, each of one floor alone.  Until the peer dies. */
struct wf_link_above {
	bool briefed;              /* the peer was told what a new one is to know */
	bool drain_told;           /* and that this node takes no more calls */
	bool drains;               /* the peer has said that it takes none */
	struct wf_early *early;    /* allocated: calls cancelled before they came */
};

/* Parts in steps: struct wf_part of the tensor floor. */
struct wf_link_parts {
	struct wf_list all;
	struct wf_list heard;      /* of which the peer has said an abort that does not count */
	uint32_t heard_count;
};

/* Reads of the peer's memory on the rail in use. */
struct wf_link_reads {
	uint32_t count;            /* under way, or refused by the rail */
	uint64_t ns;               /* when one of them last ended, or the first of these began */
	struct wf_depth depth;     /* of the reads of one body */
};

struct wf_link {
	struct wf_worker *worker;
	struct wf_list node;       /* in worker->link_list */
	struct wf_list dirty_node;
	unsigned refs;
	uint32_t number;           /* for people: the same in all its lives */
	enum wf_link_state state;
	enum wf_link_stage stage;
	uint64_t id, token;        /* ours, in frames to us */
	struct wf_hello *peer;     /* by wf_greet_keep_hello(); of zeros before the first */
	struct wf_link *same;      /* not NULL: another name of that link, while that one lives */
	/*
	 * Of the door that this link stands for, because it was opened by it; "": it was dialled
	 * to us, and what its peer says of its own address is not used.  Set through its home.
	 */
	char address[WF_SOCKET_ADDRESS_BYTES];
	struct wf_home home;
	char name[WF_GREET_NAME_BYTES];
	void *user;                /* the floor above's */
	struct wf_list work[WF_LINK_WORKS]; /* goes over to the other link when two become one */
	struct wf_link_above above;
	struct wf_link_account account;

	/* door */
	struct wf_conn *conn;
	bool dialler;              /* this side dials: first, and again */
	struct wf_dial dial;
	struct wf_live_redial redial;
	struct wf_same_proofs proofs;
	struct wf_sidedoor_link side;
	char gate_text[160];       /* why no same-host rail reaches the peer; outlives it */
	struct wf_live live;

	/* rail */
	struct wf_worker_rail *on;
	struct wf_attempt_rail rail;
	struct wf_attempt attempt;
	struct wf_list lanes;      /* struct wf_lane, beside the rail in use */

	/* frames out, and in */
	struct wf_flow_out out;
	struct wf_flow flow;
	struct wf_intake intake;
	struct wf_budget slots;
	struct wf_budget_controls controls;
	struct wf_link_room room;

	/* bodies */
	uint32_t offer_count;      /* of ours that the peer may be reading */
	struct wf_link_offers offers; /* of the peer's, that are not over here */
	struct wf_link_parts parts;
	struct wf_link_reads reads;
};

/* The link to @address, made if there is none; returns a reference.  Nothing is sent.  -EINVAL, -ENOMEM. */
int wf_link_open(struct wf_worker *w, const char *address, struct wf_link **link,
		 struct wf_error *e);

/* A link for a peer that dialled us; returns a reference. */
int wf_link_create(struct wf_worker *w, struct wf_link **link);

/* Has the peer said who it is, in its present life?  Then link->peer holds. */
static inline bool wf_link_greeted(const struct wf_link *link)
{
	return link->stage >= WF_LINK_STAGE_GREETED;
}

/* Was the link up in the peer's present life? */
static inline bool wf_link_was_up(const struct wf_link *link)
{
	return link->stage == WF_LINK_STAGE_PROVED;
}

/* The link that a name stands for. */
static inline struct wf_link *wf_link_real(struct wf_link *link)
{
	while (link->same)
		link = link->same;
	return link;
}

/* Write an event of @link into the flight recorder. */
static inline void wf_link_record(const struct wf_link *link, enum wf_recorder_kind kind,
				  uint64_t a, uint64_t b)
{
	wf_recorder_add(&link->worker->loop.recorder, kind, link->number, a, b);
}

/* Have frames of @link sent in this turn. */
static inline void wf_link_mark(struct wf_link *link)
{
	if (wf_list_empty(&link->dirty_node))
		wf_list_append(&link->worker->dirty, &link->dirty_node);
}

/* The memory stays until the next turn: see the head of this file. */
void wf_link_get(struct wf_link *link);
void wf_link_put(struct wf_link *link);

/* Queue @m; dials if the link is idle.  A link that is gone fails it at the end of this turn. */
void wf_link_post(struct wf_link *link, struct wf_message *m);

/* Take back a message of which no byte has left.  -EALREADY: too late, sent() follows. */
int wf_link_unpost(struct wf_link *link, struct wf_message *m);

/* Queue @c for the next control frame. */
void wf_link_control(struct wf_link *link, struct wf_control *c);

/* Something waits for this peer: its death must be noticed.  Dials if the link is idle and has an address and @dial. */
void wf_link_watch(struct wf_link *link, bool dial);
void wf_link_unwatch(struct wf_link *link);

/* May the peer take @bytes more of eager tensors?  Takes them if so. */
bool wf_link_take_room(struct wf_link *link, uint64_t bytes);

/* The peer has sent an eager tensor of @bytes.  false: it had no room for that. */
bool wf_link_use_room(struct wf_link *link, uint64_t bytes);

/* It could not be taken after all, and comes again. */
void wf_link_unuse_room(struct wf_link *link, uint64_t bytes);

/* @bytes of eager tensors of this peer have found their receiver. */
void wf_link_give_room(struct wf_link *link, uint64_t bytes);

/* How long a body on a shared rail stays, at least, when its reader does not answer a withdrawal. */
#define WF_LINK_LEASE_NS (1500 * WF_NS_PER_MS)

/*
 * Has this node stood still for so long, @still_ns, or its door been closed, that the peer may
 * have given it up and reused what it offered?  Only where no key, nor the end of a connection, says so.
 */
bool wf_link_may_be_given_up(const struct wf_link *link, uint64_t still_ns);

/* A read of the peer's memory has ended well: the rail is alive. */
static inline void wf_link_progress(struct wf_link *link)
{
	link->flow.progress_ns = link->worker->loop.now_ns;
}

/* A read of the peer's memory begins, or the rail does not take it; and some end, or need no rail any more. */
static inline void wf_link_read_begins(struct wf_link *link)
{
	if (!link->reads.count++)
		link->reads.ns = link->worker->loop.now_ns;
}

static inline void wf_link_reads_end(struct wf_link *link, uint32_t count)
{
	link->reads.count -= count;
	link->reads.ns = link->worker->loop.now_ns;
}

/* Ask through the door whether the peer lives. */
void wf_link_probe(struct wf_link *link);

/* Has it answered that, or a heartbeat, after @ns? */
static inline bool wf_link_has_answered(const struct wf_link *link, uint64_t ns)
{
	return link->live.beat_answered_ns > ns;
}

/* The capabilities of the rail in use; NULL while none is. */
static inline const struct wf_caps *wf_link_caps(const struct wf_link *link)
{
	return link->state == WF_LINK_UP ? wf_rail_caps(link->on->rail) : NULL;
}

/* The longest record the peer takes; 0 before its hello. */
uint32_t wf_link_record_bytes_max(const struct wf_link *link);

/* The rail has failed: close it and look for another.  Nothing is lost.  @why is a sentence. */
void wf_link_rail_failed(struct wf_link *link, const char *why);

/* The peer is dead.  @e is what everything that waits gets. */
void wf_link_die(struct wf_link *link, const struct wf_error *e);

/* As wf_link_die, for a peer that broke the protocol. */
void wf_link_violate(struct wf_link *link, const char *what);

/* For people: why the peer is not reached yet; "" if nothing has failed. */
static inline const char *wf_link_trouble(const struct wf_link *link)
{
	return link->state == WF_LINK_UP ? "" : link->attempt.tried;
}

/* For people: the peer's name or address. */
static inline const char *wf_link_label(const struct wf_link *link)
{
	if (link->name[0])
		return link->name;
	return link->address[0] ? link->address : "a peer without a name";
}

/* For people: how things stand with the peer, as in "it is ...". */
#define WF_LINK_STATE_BYTES 400
void wf_link_describe(const struct wf_link *link, char text[WF_LINK_STATE_BYTES]);

#endif
