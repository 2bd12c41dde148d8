/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reason: an error that is kept for later, in as little memory as it needs.
 *
 * The sentence is allocated; without memory for it the name of the code stands in its place, so
 * keeping a reason can't fail.  All zero: there is none.
 *
 * Threads: the owner of the struct.
 */
#ifndef WF_REASON_H
#define WF_REASON_H

#include "util/error.h"

struct wf_reason {
	int code; /* 0: there is no error */
	char *text; /* NULL: there was no memory for it, or there is no error */
};

/* Keep @e in place of what was kept before. */
void wf_reason_keep(struct wf_reason *r, const struct wf_error *e);

/* Forget the reason. */
void wf_reason_drop(struct wf_reason *r);

/* Return the sentence; "" when there is no error. */
const char *wf_reason_text(const struct wf_reason *r);

/* Copy the error that was kept to @e.  Returns @e; NULL when there is none. */
const struct wf_error *wf_reason_get(const struct wf_reason *r, struct wf_error *e);

#endif
