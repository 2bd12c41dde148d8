/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ep: the way to one peer on one rail, for messages to the peer and reads of its memory.
 *
 * Threads: owner.
 */
#ifndef WF_EP_H
#define WF_EP_H

#include "fabric/rail.h"
#include "util/span.h"

/*
 * Open a way to the peer at @address.  Connected rail: starts connecting with @data (up to
 * WF_CONNECT_BYTES); CONNECTED or CLOSED follows, or nothing at all if the host is silent: the
 * caller has a limit of its own.  Shared rail: usable at once.  wf_ep_owner returns @owner.
 * -ENOSPC: the address vector is full.
 */
int wf_ep_open(struct wf_rail *rail, const uint8_t *address, size_t address_bytes,
	       const void *data, size_t data_bytes, void *owner, struct wf_ep **ep,
	       struct wf_error *e);

/*
 * Open a way on a same-host rail: process @pid, as the kernel numbers it, has the endpoint at
 * @address, and @gate_fd is the gate of that; -1: no gate.  Borrows @gate_fd until return.
 */
int wf_ep_open_here(struct wf_rail *rail, const uint8_t *address, size_t address_bytes,
		    uint32_t pid, int gate_fd, void *owner, struct wf_ep **ep, struct wf_error *e);

/* Accept @request; CONNECTED or CLOSED follows.  Frees @request in any case. */
int wf_ep_accept(struct wf_rail *rail, struct wf_rail_request *request, void *owner,
		 struct wf_ep **ep, struct wf_error *e);
/* Refuse @request, and free it. */
void wf_ep_reject(struct wf_rail *rail, struct wf_rail_request *request);

/*
 * Close @ep; accepts NULL.  No event names @ep or a cookie of its operations any more.  On a
 * connected rail the operations touch no memory once this returns.  On a shared rail they may:
 * wait for them first, or reopen the rail.
 */
void wf_ep_close(struct wf_ep *ep);

void *wf_ep_owner(const struct wf_ep *ep);

/* Operations that have been posted on @ep and have not ended. */
uint32_t wf_ep_busy(const struct wf_ep *ep);

/*
 * Send one message of at most frame_bytes.  0: posted, SENT follows, borrows
 * @bytes until then.  1: done at once, no event.  -EAGAIN: nothing was posted
 * (also before CONNECTED).  -EMSGSIZE.  -ENOTCONN: @ep is dead.  Other
 * codes kill a connected endpoint: CLOSED follows.
 * @desc is from wf_mr_desc, NULL where the rail needs none.
 */
int wf_ep_send(struct wf_ep *ep, const void *bytes, size_t count, void *desc, void *cookie);

/*
 * Read @count bytes (at most caps->read_bytes_max) of the peer's memory.  0: posted, READ follows.
 * -EAGAIN: nothing was posted.  Borrows @into until READ or wf_ep_close.
 */
int wf_ep_read(struct wf_ep *ep, void *into, size_t count, void *desc, uint64_t address,
	       uint64_t key, void *cookie);

/* Read @spans, up to caps->read_spans_max of them, all under one @key, as wf_ep_read() does. */
int wf_ep_read_spans(struct wf_ep *ep, const struct wf_span *spans, uint32_t span_count,
		     void *desc, uint64_t key, void *cookie);

/*
 * Read as wf_ep_read_spans() does, by the rail's helper thread, while the caller makes another
 * read.  -EAGAIN: the helper has enough to do, or there is none.
 */
int wf_ep_read_aside(struct wf_ep *ep, const struct wf_span *spans, uint32_t span_count,
		     void *cookie);

#endif
