/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Health: gRPC's health service, of this node.
 */
#ifndef WF_API_HEALTH_H
#define WF_API_HEALTH_H

#include <weft/weft.h>

struct wf_health;

/* Accepts NULL.  Threads: setup. */
void wf_health_close(struct wf_health *health);

#endif
