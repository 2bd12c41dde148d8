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

/* Of a call that is made again when it fails; see retry.c. */
struct wf_retry {
	struct weft_op *op;
	struct weft_retry policy;
	unsigned failed;          /* attempts that have */
	bool waiting;             /* for the next one: */
	bool quiet;               /* what the last one held is free */
	struct wf_timer timer;
	struct wf_error last;     /* why it failed */
	uint32_t metadata_bytes;  /* of the call's own */
	uint8_t incarnation[WF_INCARNATION_BYTES]; /* of the server, if it may have handled the call */
};

/* @op, a call, is made again as @given says.  -EINVAL, -ENOMEM: recorded. */
int wf_retry_open(struct weft_op *op, const struct weft_retry *given);

/*
 * An attempt begins; it has failed with @e: is there to be another?; what it held is free; what
 * comes next is ended early by @e.  Each harmless for a call without.  Threads: owner.
 */
void wf_retry_begin(struct weft_op *op);
bool wf_retry_again(struct weft_op *op, const struct wf_error *e, enum weft_executed executed);
void wf_retry_quiet(struct weft_op *op);
void wf_retry_stop(struct weft_op *op, const struct wf_error *e);

/* Is it between two attempts?  And, for people, before which. */
bool wf_retry_waits(const struct weft_op *op);
void wf_retry_describe(const struct weft_op *op, char *text, size_t bytes);

#endif
