/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rail: one libfabric domain that a worker has open, with everything on it.
 *
 * Rails of both shapes look the same from above.  A connected rail has an endpoint
 * per peer (FI_EP_MSG) and listens; a shared rail has a single endpoint (FI_EP_RDM),
 * and a peer is an address in its vector.  Receive slots belong to the rail, have
 * one size, and are always posted: a message lands in any of them.  The slots are
 * few at first, and more on demand.
 *
 * A rail trusts nothing that the provider hands back: contexts are handles
 * looked up in the rail's own table, and a context that comes late, twice or as
 * NULL is counted and dropped.
 *
 * Never blocks, but in open and close.  Threads: owner.
 */
#ifndef WF_RAIL_H
#define WF_RAIL_H

#include "fabric/select.h"
#include "util/counters.h"
#include "util/error.h"
#include "util/recorder.h"

#define WF_ADDRESS_BYTES 128 /* the longest endpoint address; shm's is a string of some 40 bytes */
#define WF_CONNECT_BYTES 32  /* connect data we use; verbs carries 48 */

struct wf_rail; /* opaque: fabric/ keeps libfabric to itself */
struct wf_ep;   /* a worker's way to one peer on one rail */
struct wf_mr;   /* a registration */
struct wf_rail_request; /* a peer that wants to connect */

struct wf_rail_config {
	const char *host;      /* address to bind, for rows that go by IP */
	uint16_t port_first, port_last; /* 0: any port */
	uint32_t slots_count;  /* receive slots at most; fewer if the provider has fewer */
	struct wf_counters *counters;  /* NULL: nobody counts */
	struct wf_recorder *recorder;  /* NULL: nobody asks where the worker is */
	void (*wake)(void *ctx); /* called by the helper's thread: poll again.  NULL: no helper */
	void *wake_ctx;
	/*
	 * Called where there is no room to register memory: give up registrations that nothing
	 * uses.  Returns whether there were any.  NULL: there never are.
	 */
	bool (*make_room)(void *ctx);
	void *make_room_ctx;
};

int wf_rail_open(const struct wf_select_candidate *candidate, const struct wf_rail_config *config,
		 struct wf_rail **rail, struct wf_error *e);

/*
 * End every operation: none touches memory any more.  Only wf_mr_close, wf_rail_caps and
 * wf_rail_close may follow.
 */
void wf_rail_stop(struct wf_rail *rail);

/* Close @rail with all that is still open on it.  Accepts NULL. */
void wf_rail_close(struct wf_rail *rail);

/*
 * Close and open the shared endpoint again, because operations on it are
 * stuck: afterwards none of them touches memory any more.  Every wf_ep on it
 * is dead and must be closed; the address is new.  Connected rails: -ENOSYS.
 */
int wf_rail_reopen(struct wf_rail *rail, struct wf_error *e);

/*
 * Must the shared endpoint be reopened?  A peer has been inside it for too long, or too many
 * of its peers are half met.
 */
bool wf_rail_is_stuck(const struct wf_rail *rail);

const struct wf_rail_caps *wf_rail_caps(const struct wf_rail *rail);

/* Receive slots that there are. */
uint32_t wf_rail_slots(const struct wf_rail *rail);
/* Receive slots that there may be at most. */
uint32_t wf_rail_slots_most(const struct wf_rail *rail);
/* Have @slots_count receive slots, or the most there may be.  -ENOMEM. */
int wf_rail_grow(struct wf_rail *rail, uint32_t slots_count, struct wf_error *e);

/* Our address, to be told to peers: at most WF_ADDRESS_BYTES. */
size_t wf_rail_address(const struct wf_rail *rail, uint8_t *address);

/* Descriptor of our endpoint's gate, for peers of this host; -1: no gate. */
int wf_rail_gate_fd(const struct wf_rail *rail);

/* Names under /dev/shm that the provider made for this rail, one per line, "" if none. */
const char *wf_rail_files(const struct wf_rail *rail);

enum wf_rail_event_kind {
	WF_EVENT_SENT,      /* the message of @cookie has left, and its buffer is free */
	WF_EVENT_RECEIVED,  /* @count bytes at @bytes, in @slot, until wf_rail_give */
	WF_EVENT_READ,      /* the read of @cookie has ended */
	WF_EVENT_REQUEST,   /* @request with connect data @bytes: accept or reject it */
	WF_EVENT_CONNECTED, /* @ep can be used */
	WF_EVENT_CLOSED     /* @ep is dead: refused, reset or shut by the peer; close it */
};

struct wf_rail_event {
	enum wf_rail_event_kind kind;
	int status;     /* 0 or negative, for SENT, READ and CLOSED */
	struct wf_ep *ep; /* not for RECEIVED: the message itself names its sender */
	void *cookie;
	struct wf_rail_request *request;
	uint8_t *bytes; /* in the slot of a RECEIVED the receiver may write */
	size_t count;
	uint32_t slot;
};

/*
 * Make progress and collect up to @max events; returns how many.  Events of one call are in the
 * provider's order.  An event that names an endpoint closed since the call finds no owner:
 * wf_ep_owner returns NULL until the next poll.
 */
int wf_rail_poll(struct wf_rail *rail, struct wf_rail_event *events, int max);

/* Take one more event that the last poll found, without another look at the provider. */
bool wf_rail_next(struct wf_rail *rail, struct wf_rail_event *event);

/* Post @slot again.  Each RECEIVED is given back exactly once. */
void wf_rail_give(struct wf_rail *rail, uint32_t slot);

/* Descriptor for epoll, level-triggered, readable when there is work; -1: the rail has none. */
int wf_rail_fd(const struct wf_rail *rail);
/* Get ready for a sleep.  0: the caller may sleep on the descriptor; -EAGAIN: there is work now. */
int wf_rail_arm(struct wf_rail *rail);
/* Say that the descriptor was readable. */
void wf_rail_woken(struct wf_rail *rail);

/*
 * Are there connections that have not said a word yet?  Then call wf_rail_tidy every
 * WF_RAIL_TIDY_NS until this is false: a provider would keep such connections for ever.
 */
#define WF_RAIL_TIDY_NS (1 * WF_NS_PER_S)
bool wf_rail_untidy(const struct wf_rail *rail);
void wf_rail_tidy(struct wf_rail *rail);

#endif
