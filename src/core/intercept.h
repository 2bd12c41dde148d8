/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intercept: functions of the program that see each call begin and end.
 */
#ifndef WF_CORE_INTERCEPT_H
#define WF_CORE_INTERCEPT_H

#include <weft/weft.h>
#include "rpc/server_call.h"

/* Interceptor state of a call that this node makes. */
struct wf_intercept_call {
	unsigned asked;      /* interceptors asked, which are to hear of the end */
	uint64_t invoked_ns; /* when the interceptors were asked */
	bool asking;         /* the interceptors are being asked now */
};

/* Copy the @given interceptors, freed with @node even on failure.  -EINVAL, -ENOMEM: recorded. */
int wf_intercept_open(struct weft_node *node, const struct weft_interceptor *const *given);

/* Ask about the call @op, its service and method known; a refusal is put into its error. */
void wf_intercept_begin(struct weft_op *op);
/* Tell the interceptors that were asked about @op how it ended, and count that. */
void wf_intercept_ended(struct weft_op *op);

/* Implement admit and told of struct wf_server_calls. */
enum weft_status wf_intercept_admit(struct wf_server_call *served, const char **message);
void wf_intercept_served(struct wf_server_call *served, enum weft_status status);

#endif
