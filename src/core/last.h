/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Last: the sentence of the last failure of each thread, which weft_error() gives.
 *
 * Threads: any, callback.
 */
#ifndef WF_CORE_LAST_H
#define WF_CORE_LAST_H

#include "util/error.h"

int wf_last_set(int code, const char *format, ...) WF_PRINTF(2, 3);
int wf_last_copy(const struct wf_error *e);
int wf_last_null(const char *what);
const char *wf_last_text(void);

/* Check that @argument is not NULL: 0, or -EINVAL and a sentence that names the argument. */
#define WF_NEED(argument) ((argument) ? 0 : wf_last_null(#argument))

#endif
