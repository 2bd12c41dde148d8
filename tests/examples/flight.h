/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that are under way together: calls, sends and receives.
 *
 * A flight owns operations from the moment they have been started.  Threads: the
 * one that uses the flight.
 */
#ifndef FLIGHT_H
#define FLIGHT_H

#include <stdbool.h>
#include <weft/weft.h>

#include "sentence.h"
#include "traffic.h"

#define FLIGHT_OPS 16 /* a worker has 4 calls, 4 receives and 4 sends */

struct flight {
	unsigned count;
	struct {
		struct weft_op *op;
		const char *peer; /* borrowed, for sentences */
	} ops[FLIGHT_OPS];
};

/*
 * Add an operation just started by a call that returned @err.  The flight then
 * owns @op; @peer says with whom, as "ps 0 (host:port)".  Returns @err.
 */
int flight_add(struct flight *f, int err, struct weft_op *op, const char *peer,
	       struct sentence *why);

/* Has every operation ended? */
bool flight_landed(const struct flight *f);

/* -EIO: an operation has failed, and @why says how.  0: none has, so far. */
int flight_check(const struct flight *f, struct sentence *why);

/* Count what ended operations moved (@t may be NULL), and forget all. */
void flight_clear(struct flight *f, struct traffic *t);

/* Say in @why what the failure of @op, an operation with @peer, means to people. */
void flight_explain(const struct weft_op *op, const char *peer,
		    struct sentence *why);

#endif
