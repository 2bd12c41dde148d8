/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rail: one libfabric domain that a worker has open, with everything on it.
 *
 * Both shapes look the same from above.  A connected rail has an endpoint per
 * peer (FI_EP_MSG) and listens; a shared one has a single endpoint (FI_EP_RDM)
 * and a peer is an address in its vector.  Receive slots belong to the rail,
 * all of one size, and are always posted: a message lands in any of them.
 * There are few at first, and more as they are asked for.
 *
 * A rail trusts nothing that the provider hands back: contexts are handles
 * looked up in the rail's own table, and one that comes late, twice or as
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
struct wf_ep;   /* this worker's way to one peer on one rail */
struct wf_mr;   /* one registration */
struct wf_request; /* a peer that wants to connect */

struct wf_rail_config {
	const char *host;      /* address to bind, for rows that go by IP */
	uint16_t port_first, port_last; /* 0: any port */
	uint32_t slots_count;  /* receive slots at most; fewer if the provider has fewer */
	uint32_t frame_bytes;  /* 0: the row's */
	struct wf_counters *counters;  /* NULL: nobody counts */
	struct wf_recorder *recorder;  /* NULL: nobody asks where the worker is */
	void (*wake)(void *ctx);       /* poll again: a helper has ended a read; from its thread.  NULL: no helper */
	void *wake_ctx;
};

int wf_rail_open(const struct wf_candidate *candidate, const struct wf_rail_config *config,
		 struct wf_rail **rail, struct wf_error *e);

/* End every operation: none touches memory any more.  Only wf_mr_close, caps and close may follow. */
void wf_rail_stop(struct wf_rail *rail);

/* Closes what is still open on it.  Accepts NULL. */
void wf_rail_close(struct wf_rail *rail);

/*
 * Close and open the shared endpoint again, because operations on it are
 * stuck: afterwards none of them touches memory any more.  Every wf_ep on it
 * is dead and must be closed; the address is new.  Connected rails: -ENOSYS.
 */
int wf_rail_reopen(struct wf_rail *rail, struct wf_error *e);

/* Has a peer been inside our endpoint for so long that it must be reopened? */
bool wf_rail_is_stuck(const struct wf_rail *rail);

const struct wf_caps *wf_rail_caps(const struct wf_rail *rail);

/* Receive slots: how many there are, the most there may be; and have @slots_count of them, as far as that goes.  -ENOMEM. */
uint32_t wf_rail_slots(const struct wf_rail *rail);
uint32_t wf_rail_slots_most(const struct wf_rail *rail);
int wf_rail_grow(struct wf_rail *rail, uint32_t slots_count, struct wf_error *e);

/* Our address, to be told to peers: at most WF_ADDRESS_BYTES. */
size_t wf_rail_address(const struct wf_rail *rail, uint8_t *address);

/* The gate of our endpoint, for peers of this host; -1: there is none. */
int wf_rail_gate_fd(const struct wf_rail *rail);

/* Names under /dev/shm that the provider made for this rail, one per line, "" if none. */
const char *wf_rail_files(const struct wf_rail *rail);

enum wf_event_kind {
	WF_EVENT_SENT,      /* the message of @cookie: its buffer is free */
	WF_EVENT_RECEIVED,  /* @count bytes at @bytes, in @slot, until wf_rail_give */
	WF_EVENT_READ,      /* the read of @cookie has ended */
	WF_EVENT_REQUEST,   /* @request with connect data @bytes: accept or reject it */
	WF_EVENT_CONNECTED, /* @ep can be used */
	WF_EVENT_CLOSED     /* @ep is dead: refused, reset, or shut by the peer; still to be closed */
};

struct wf_event {
	enum wf_event_kind kind;
	int status;     /* 0 or negative, for SENT, READ and CLOSED */
	struct wf_ep *ep; /* not for RECEIVED: who sent it stands in the message */
	void *cookie;
	struct wf_request *request;
	const uint8_t *bytes;
	size_t count;
	uint32_t slot;
};

/*
 * Make progress and collect up to @max events; how many.  Events of one call
 * are in the provider's order.  One that names an endpoint closed since the
 * call finds no owner: wf_ep_owner gives NULL until the next poll.
 */
int wf_rail_poll(struct wf_rail *rail, struct wf_event *events, int max);

/* One more event of those that the last poll found, without another look at the provider. */
bool wf_rail_next(struct wf_rail *rail, struct wf_event *event);

/* Post @slot again.  Each RECEIVED is given back exactly once. */
void wf_rail_give(struct wf_rail *rail, uint32_t slot);

/*
 * Sleeping.  fd: for epoll, level-triggered, readable when there is work; -1
 * if the rail has none.  arm: 0 means the caller may sleep on it, -EAGAIN
 * that there is work now.  Call wf_rail_woken when it was readable.
 */
int wf_rail_fd(const struct wf_rail *rail);
int wf_rail_arm(struct wf_rail *rail);
void wf_rail_woken(struct wf_rail *rail);

/*
 * Has somebody connected who has not said yet who he is?  Then call wf_rail_tidy that often until
 * this is false: a provider would keep such connections for ever.
 */
#define WF_RAIL_TIDY_NS (1 * WF_NS_PER_S)
bool wf_rail_untidy(const struct wf_rail *rail);
void wf_rail_tidy(struct wf_rail *rail);

/*
 * A way to the peer at @address.  Connected: starts connecting with @data (up
 * to WF_CONNECT_BYTES); CONNECTED or CLOSED follows, or nothing at all if the
 * host is silent: the caller has a limit of its own.  Shared: usable at once.
 * @owner is what wf_ep_owner returns.
 * -ENOSPC: the address vector is full.
 */
int wf_ep_open(struct wf_rail *rail, const uint8_t *address, size_t address_bytes,
	       const void *data, size_t data_bytes, void *owner, struct wf_ep **ep,
	       struct wf_error *e);

/*
 * The same for a same-host rail: process @pid, as the kernel calls it, has the endpoint at
 * @address, and @gate_fd is its gate; -1: it has none.  Borrows @gate_fd until return.
 */
int wf_ep_open_here(struct wf_rail *rail, const uint8_t *address, size_t address_bytes,
		    uint32_t pid, int gate_fd, void *owner, struct wf_ep **ep, struct wf_error *e);

/* Take a request; CONNECTED or CLOSED follows.  Frees @request in any case. */
int wf_ep_accept(struct wf_rail *rail, struct wf_request *request, void *owner, struct wf_ep **ep,
		 struct wf_error *e);
void wf_ep_reject(struct wf_rail *rail, struct wf_request *request);

/*
 * Close it; accepts NULL.  No event names it or a cookie of its operations any
 * more.  On a connected rail its operations touch no memory once this returns.
 * On a shared rail they may: wait for them first, or reopen the rail.
 */
void wf_ep_close(struct wf_ep *ep);

void *wf_ep_owner(const struct wf_ep *ep);

/* Operations that have been posted on it and have not ended. */
uint32_t wf_ep_busy(const struct wf_ep *ep);

/*
 * Send one message of at most frame_bytes.  0: posted, SENT follows, borrows
 * @bytes until then.  1: done at once, no event.  -EAGAIN: nothing was posted
 * (also before CONNECTED).  -EMSGSIZE.  -ENOTCONN: it is dead.  Any other
 * code kills a connected endpoint: CLOSED follows.
 * @desc is from wf_mr_desc, NULL where the rail needs none.
 */
int wf_ep_send(struct wf_ep *ep, const void *bytes, size_t count, void *desc, void *cookie);

/*
 * Read @count bytes (at most caps->read_bytes_max) of the peer's memory.  0: posted, READ follows.
 * -EAGAIN: nothing was posted.  Borrows @into until READ or wf_ep_close.
 */
int wf_ep_read(struct wf_ep *ep, void *into, size_t count, void *desc, uint64_t address,
	       uint64_t key, void *cookie);

/*
 * As wf_ep_read, by a thread that helps the rail, so that one more is made here meanwhile.
 * -EAGAIN: it has enough to do, or there is none.
 */
int wf_ep_read_aside(struct wf_ep *ep, void *into, size_t count, uint64_t address, void *cookie);

enum wf_access { WF_ACCESS_LOCAL = 1, WF_ACCESS_REMOTE_READ = 2 };

/*
 * Register @base for @access bits.  A remote key is random where the provider
 * lets us choose.  -ENOMEM with a sentence that names RLIMIT_MEMLOCK when that
 * is the cause.
 */
int wf_mr_open(struct wf_rail *rail, const void *base, size_t bytes, unsigned access,
	       struct wf_mr **mr, struct wf_error *e);

/* Where memory of a device lies. */
struct wf_mr_device {
	int cuda;	 /* CUDA's number of it */
	int dma_buf;	 /* a descriptor of the memory; -1: there is none */
	uint64_t offset; /* of the first byte in that */
};

/*
 * The same for memory of a device, on a rail whose caps say that this may be.  -EOPNOTSUPP with
 * a sentence: its NIC does not reach it there; if it never has, caps say so from then on.
 */
int wf_mr_open_device(struct wf_rail *rail, const void *base, size_t bytes,
		      const struct wf_mr_device *device, unsigned access, struct wf_mr **mr,
		      struct wf_error *e);
void wf_mr_close(struct wf_mr *mr);

/*
 * Would peers reach @base?  It is registered for that and closed again; where they read it
 * themselves it is read so, too, of which a registration says nothing.  As wf_mr_open; -EFAULT.
 */
int wf_mr_try(struct wf_rail *rail, const void *base, size_t bytes, struct wf_error *e);

/* One that is kept has served again; it is closed because others need the room: both are counted.  Accept NULL. */
void wf_mr_hit(const struct wf_mr *mr);
void wf_mr_evict(struct wf_mr *mr);

void *wf_mr_desc(const struct wf_mr *mr);
uint64_t wf_mr_key(const struct wf_mr *mr);

/* What a peer names to reach @ptr inside it. */
uint64_t wf_mr_address(const struct wf_mr *mr, const void *ptr);

#endif
