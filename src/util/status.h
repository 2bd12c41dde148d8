/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From codes to outcomes, and what an outcome is called.
 *
 * Threads: any.
 */
#ifndef WF_STATUS_H
#define WF_STATUS_H

#include <weft/base.h>

/* The outcome of an operation that ended with @code: 0 is WEFT_OK. */
enum weft_status wf_status_of(int code);

/* The code that gives @status back; 0 for WEFT_OK. */
int wf_status_code(enum weft_status status);

/* "DEADLINE_EXCEEDED"; "?" for what is none. */
const char *wf_status_name(enum weft_status status);

#endif
