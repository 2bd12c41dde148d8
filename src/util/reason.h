/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reason: an error that is kept for later, in as little memory as it needs.
 *
 * The sentence is allocated, and without memory for it the name of the code stands in its
 * place: so keeping one can't fail.  All zero: there is none.
 *
 * Threads: whoever owns the struct.
 */
#ifndef WF_REASON_H
#define WF_REASON_H

#include "util/error.h"

struct wf_reason {
	int code; /* 0: all is well */
	char *text; /* NULL: there was no memory for it, or there is no error */
};

/* Keep @e in place of what was kept before. */
void wf_reason_keep(struct wf_reason *r, const struct wf_error *e);

/* There is none any more. */
void wf_reason_drop(struct wf_reason *r);

/* "" when there is none. */
const char *wf_reason_text(const struct wf_reason *r);

/* As it was given.  Returns @e; NULL when there is none. */
const struct wf_error *wf_reason_get(const struct wf_reason *r, struct wf_error *e);

#endif
