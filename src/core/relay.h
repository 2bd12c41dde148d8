/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Relay: a receive of a broadcast that takes its body from another receiver, and serves a third one
 * while it does.
 *
 * The receive shows its destination as a window that fills from its beginning, and asks the sender,
 * by a call, from whom to take the body.  It gets the other's window piece by piece, in order; or
 * pulls from the sender, as any receive does, when that is the answer, or when all else failed: so
 * the end of another receiver costs time alone.  When all has come it serves on for a while, as the
 * one behind it is some pieces late.
 *
 *   JOINING ---> FETCHING   the sender has named a source
 *   JOINING ---> PULLING    the sender is the source, or does not answer
 *   FETCHING --> JOINING    the source has failed; the third time: PULLING
 *   JOINING ---> HIDING     some pieces have come, and the body, which has a checksum, is to be pulled
 *                           as a whole: its window must be quiet first
 *   HIDING ----> PULLING    the window is gone
 *   each ------> LEAVING    all has come; the sender says whether another is to read here
 *   LEAVING ---> SERVING    another is, and has not read all
 *   each ------> CLOSING    the receive is over; the window must be quiet before its end is told
 *
 * Threads: owner.  A node of several workers relays nothing.
 */
#ifndef WF_RELAY_H
#define WF_RELAY_H

#include <weft/weft.h>
#include "tensor/receiving.h"

struct wf_relay;

/* The functions of all relays. */
extern const struct wf_receiving_relay wf_relay_functions;

/* Make the relay of the receive @op.  -ENOMEM.  Threads: any. */
int wf_relay_open(struct weft_op *op, struct wf_relay **relay);

/* End the operation of @relay, whose receiving has ended with @e, when its window is quiet. */
void wf_relay_done(struct wf_relay *relay, const struct wf_error *e);

/* Serve no longer, as the operation is stopped.  Returns whether its receiving had ended. */
bool wf_relay_stop(struct wf_relay *relay);

/* Free the relay of an operation that is over, or never began. */
void wf_relay_free(struct wf_relay *relay);

#endif
