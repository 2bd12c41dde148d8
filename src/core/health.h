/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Health: gRPC's health service of a node.
 */
#ifndef WF_CORE_HEALTH_H
#define WF_CORE_HEALTH_H

#include <weft/weft.h>

struct wf_health;

/* Serve the health of @node from now on.  -EEXIST, -ENOMEM: recorded.  Threads: any. */
int wf_health_serve(struct weft_node *node);

/*
 * Set the status that is reported for @service.  -ENOENT: @node does not serve its health;
 * -ENOMEM: recorded.  Threads: any.
 */
int wf_health_set(struct weft_node *node, const char *service, enum weft_health status);

/* Free @health.  Accepts NULL.  Threads: setup. */
void wf_health_close(struct wf_health *health);

#endif
