/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connect data: what the peer sends with a request for a connection on a rail, and which link that
 * is for.
 *
 *   in clear   u64 link, u64 token, u32 epoch[, u32 lane]
 *   with TLS   u64 link, u32 epoch, u32 lane, 16 bytes of proof
 *
 * Link and token are the receiver's; lane 0, or none, is the rail of frames.  The proof is made
 * with the link's secret over the rest and the address of the receiver's rail.
 *
 * Threads: owner.
 */
#ifndef WF_REQUEST_H
#define WF_REQUEST_H

#include "util/bytes.h"
#include "wire/greet.h"

struct wf_engine;
struct wf_engine_rail;
struct wf_link;

/* Put the data for a connection to the peer's rail @to, WF_CONNECT_BYTES at most.  -ENOMEM. */
int wf_request_put(const struct wf_link *link, uint32_t lane, const struct wf_greet_rail *to,
		   struct wf_bytes_writer *w);

/*
 * Returns the link that a request at our rail @on is for, whose peer has dialled and has proved
 * that the request is its own; NULL: there is none.
 */
struct wf_link *wf_request_get(const struct wf_engine *engine, const struct wf_engine_rail *on,
			       const uint8_t *bytes, size_t count, uint32_t *epoch,
			       uint32_t *lane);

#endif
