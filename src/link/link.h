/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link: the live relation with one peer.  Parts of it lie in headers of their own.
 *
 * Life: see the states below.  While a link is up the rail may fail (nothing is lost) and the door
 * may close (redialled); only when neither comes back in time is the peer dead.  Then all that
 * waits for the peer fails, and a link with an address starts afresh with its next use.
 *
 * The floors above post messages, which become records in frames: in order, but for priorities, and
 * each delivered once, or the link dies.
 *
 * Upcalls: sent(), the sinks of engine.h and wf_link_die run code of the floors above, which may
 * give back the last reference to any link, and change the state of this one.  A link without
 * references is GONE at once, but its memory, and its place in the engine's list, stay until the
 * next turn begins.  So a caller needs no reference of its own to look at the link after an upcall;
 * but look it must (state, stage, epoch), and do nothing for a link that has changed.  Reads,
 * messages, controls and lanes are freed by their owner inside the call that tells of their end:
 * after that call the link does not touch them.
 *
 * Threads: owner.
 */
#ifndef WF_LINK_H
#define WF_LINK_H

#include "link/above.h"
#include "link/dial.h"
#include "link/eager_credit.h"
#include "link/engine.h"
#include "link/keepalive.h"
#include "link/lane.h"
#include "link/ledger.h"
#include "link/message.h"
#include "link/probe.h"
#include "link/rx.h"
#include "link/rx_credit.h"
#include "link/same.h"
#include "link/seals.h"
#include "link/sidedoor.h"
#include "link/tx.h"
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
	WF_LINK_DIALLING, /* dialling, or waiting to dial again */
	WF_LINK_TRYING,
	WF_LINK_UP,
	WF_LINK_GONE
};

/*
 * Stages of the present life of the peer: down this list, some left out, and back to the first when
 * the peer is dead.  A rail that fails leaves the stage as it is.
 */
enum wf_link_stage {
	WF_LINK_STAGE_UNMET,
	WF_LINK_STAGE_MOVING,  /* the hello has come, and may be for another worker to answer */
	WF_LINK_STAGE_GREETED, /* link->peer is what the peer says of itself */
	WF_LINK_STAGE_PONGED,  /* a pong has gone: the link may be up for the peer, which dialled */
	WF_LINK_STAGE_PROVED   /* the link was up: frames and transfers may wait for a rail */
};

struct wf_link {
	struct wf_engine *engine;
	struct wf_list node;       /* place in engine->link_list */
	struct wf_list dirty_node;
	unsigned refs;
	uint32_t number;           /* number for people: the same in all lives of the peer */
	enum wf_link_state state;
	enum wf_link_stage stage;
	uint64_t id, token;        /* identify the link in frames to us */
	struct wf_greet_hello *peer; /* the peer's hello (wf_greet_keep_hello()); zeros before it */
	struct wf_link *_Atomic same; /* the live link that this one also names; NULL: none */
	/*
	 * Address by which this link was opened, and whose door it stands for; "": the link was
	 * dialled to us, and the peer's word of its own address is not used.  Set through @home.
	 */
	char address[WF_SOCKET_ADDRESS_BYTES];
	struct wf_directory_home home;
	char name[WF_GREET_NAME_BYTES];
	void *_Atomic user;        /* pointer for the floor above, which any thread may follow */
	struct wf_list work[WF_ABOVE_WORKS]; /* lists that go over when two links become one */
	struct wf_above_notes above;
	struct wf_ledger account;

	/* door */
	struct wf_conn *conn;
	bool dialler;              /* our side dials, at first and whenever the door closes */
	struct wf_dial dial;
	struct wf_keepalive_redial redial;
	struct wf_same_proofs proofs;
	struct wf_sidedoor_link side;
	struct wf_keepalive keepalive;

	/* rail */
	struct wf_engine_rail *on;
	struct wf_probe_rail rail;
	struct wf_probe probe;
	struct wf_seals seals;
	struct wf_list lanes;      /* lanes (struct wf_lane) beside the rail in use */

	/* frames out, and in */
	struct wf_tx_out out;
	struct wf_tx tx;
	struct wf_rx rx;
	struct wf_rx_credit slots;
	struct wf_rx_credit_controls controls;
	struct wf_eager_credit eager_credit;

	/* bodies */
	struct wf_above_offers offers; /* ours, and the peer's that are not over here */
	struct wf_above_parts parts;
	struct wf_above_yields yields;
	struct wf_depth_reads reads;
};

/* Find or make the link to @address, sending nothing; returns a reference.  -EINVAL, -ENOMEM. */
int wf_link_open(struct wf_engine *engine, const char *address, struct wf_link **link,
		 struct wf_error *e);

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

/* Returns the link for which @link stands, maybe as another name. */
static inline struct wf_link *wf_link_real(struct wf_link *link)
{
	for (struct wf_link *same; (same = link->same);)
		link = same;
	return link;
}

/* Write an event of @link into the flight recorder. */
static inline void wf_link_record(const struct wf_link *link, enum wf_recorder_kind kind,
				  uint64_t a, uint64_t b)
{
	wf_recorder_add(&link->engine->loop.recorder, kind, link->number, a, b);
}

void wf_link_get(struct wf_link *link); /* take a reference */
void wf_link_put(struct wf_link *link); /* the memory stays until the next turn: see the head */

/*
 * Count an operation that waits for this peer, whose death must be noticed until wf_link_unwatch().
 * @dial: dial if the link is idle and has an address.
 */
void wf_link_watch(struct wf_link *link, bool dial);
void wf_link_unwatch(struct wf_link *link);

/* Returns the capabilities of the rail in use; NULL while none is. */
static inline const struct wf_rail_caps *wf_link_caps(const struct wf_link *link)
{
	return link->state == WF_LINK_UP ? wf_rail_caps(link->on->rail) : NULL;
}

/* Returns the length of the longest record that the peer takes; 0 before its hello. */
uint32_t wf_link_record_bytes_max(const struct wf_link *link);

/* Close a rail that has failed, and look for another.  Nothing is lost.  @why is a sentence. */
void wf_link_rail_failed(struct wf_link *link, const char *why);

/* Returns, for people, why the peer is not reached yet; "" if nothing has failed. */
static inline const char *wf_link_trouble(const struct wf_link *link)
{
	return link->state == WF_LINK_UP ? "" : link->probe.tried;
}

/* Returns, for people, the peer's name or address. */
static inline const char *wf_link_label(const struct wf_link *link)
{
	if (link->name[0])
		return link->name;
	return link->address[0] ? link->address : "a peer without a name";
}

/* Say, for people, how things stand with the peer, as in "it is ...". */
#define WF_LINK_STATE_BYTES 400
void wf_link_describe(const struct wf_link *link, char text[WF_LINK_STATE_BYTES]);

#endif
