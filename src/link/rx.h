/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reception: the frames of a link on their way in.
 *
 * Threads: owner.
 */
#ifndef WF_RX_H
#define WF_RX_H

#include "wire/pack.h"

struct wf_link;
struct wf_engine;
struct wf_engine_rail;

/* Receiving from the peer.  Valid until the peer dies. */
struct wf_rx {
	struct wf_assembly assembly;
	uint64_t assembly_bytes;   /* bytes charged for the assembly's record */
	uint32_t control_received; /* the last control frame that was taken */
	/* Records already taken of the next frame, which was not taken to the end. */
	uint32_t data_handled, control_handled;
	uint8_t record_type; /* type of the last record of a frame; 0: it does not unpack */
};

void wf_rx_received(struct wf_engine *engine, struct wf_engine_rail *on, uint8_t *bytes,
		    size_t count);

#endif
