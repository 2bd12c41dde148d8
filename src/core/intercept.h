/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intercept: functions of the program that see each call begin and end.
 */
#ifndef WF_CORE_INTERCEPT_H
#define WF_CORE_INTERCEPT_H

#include <weft/weft.h>
#include "rpc/served.h"

/* Of a call that this node makes. */
struct wf_intercept_call {
	unsigned asked;      /* interceptors, which are to hear of its end */
	uint64_t invoked_ns; /* when they were asked */
	bool asking;         /* they are being asked now */
};

/* Copy those that are @given; freed with the node, also after a failure.  -EINVAL, -ENOMEM: recorded. */
int wf_intercept_open(struct weft_node *node, const struct weft_interceptor *const *given);

/* A call of this node begins, its service and method known: the error of @op is set if it is refused. */
void wf_intercept_begin(struct weft_op *op);
void wf_intercept_ended(struct weft_op *op);

/* As the rpc floor wants them. */
enum weft_status wf_intercept_admit(struct wf_served *served, const char **message);
void wf_intercept_served(struct wf_served *served, enum weft_status status);

#endif
