/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statuses: the outcomes that codes stand for, and their names.
 *
 * Threads: any.
 */
#ifndef WF_STATUS_H
#define WF_STATUS_H

#include <weft/base.h>

/* Return the outcome of an operation that ended with @code: 0 is WEFT_OK. */
enum weft_status wf_status_of(int code);

/* Return the code that stands for @status; 0 for WEFT_OK. */
int wf_status_code(enum weft_status status);

/* Return the failure that a program means by @said; WEFT_UNKNOWN for WEFT_OK and for no status. */
enum weft_status wf_status_failure(enum weft_status said);

/* Return the name of @status, as "DEADLINE_EXCEEDED"; "?" for a number that is no status. */
const char *wf_status_name(enum weft_status status);

#endif
