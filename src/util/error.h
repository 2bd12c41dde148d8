/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sentence about what went wrong, recorded by the function that first knows it and carried up
 * with the code.
 *
 * Threads: the owner of the struct.
 */
#ifndef WF_ERROR_H
#define WF_ERROR_H

#include "util/base.h"

#define WF_ERROR_BYTES 480 /* room for two names and two addresses */

struct wf_error {
	int code;
	char text[WF_ERROR_BYTES];
};

/* Record @code and a sentence, cut if too long, and return @code.  @e may be NULL. */
int wf_error_set(struct wf_error *e, int code, const char *format, ...) WF_PRINTF(3, 4);

/* Put "context: " before the sentence in @e, which is not NULL.  Returns the code. */
int wf_error_within(struct wf_error *e, const char *format, ...) WF_PRINTF(2, 3);

/* Return the text of a negative code, an errno or one of libfabric's. */
const char *wf_error_name(int code);

#endif
