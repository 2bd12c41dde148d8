/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retry: a call that is made again when it fails.
 */
#ifndef WF_CORE_RETRY_H
#define WF_CORE_RETRY_H

#include <weft/weft.h>
#include "loop/timer.h"
#include "util/error.h"
#include "wire/greet.h"

/* State of a call that is made again when it fails; see retry.c. */
struct wf_retry {
	struct weft_op *op;
	struct weft_retry policy;
	unsigned failed;          /* attempts that have failed */
	bool waiting;             /* the next attempt is to come */
	bool quiet;               /* all that the last attempt held is free */
	bool known;               /* the server may know the call by its id, from an earlier attempt */
	struct wf_timer timer;
	struct wf_error last;     /* why the last attempt failed */
	uint32_t metadata_bytes;  /* length of the call's own metadata */
	uint8_t incarnation[WF_INCARNATION_BYTES]; /* the server that may have handled the call */
};

/* Let the call @op be made again as @given says.  -EINVAL, -ENOMEM: recorded. */
int wf_retry_open(struct weft_op *op, const struct weft_retry *given);

/* All functions below are harmless for a call without retries.  Threads: owner. */

/* Returns whether there is to be another attempt after one that failed with @e. */
bool wf_retry_again(struct weft_op *op, const struct wf_error *e, enum weft_executed executed);
/* Note that all that the last attempt held is free. */
void wf_retry_quiet(struct weft_op *op);
/* End early, because of @e, a call that waits for its next attempt. */
void wf_retry_stop(struct weft_op *op, const struct wf_error *e);

/* Returns whether @op is between two attempts. */
bool wf_retry_waits(const struct weft_op *op);
/* Write for people which attempt @op waits for. */
void wf_retry_describe(const struct weft_op *op, char *text, size_t bytes);

#endif
