/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reflection: the service of reflect.proto, which tells what a node serves.
 */
#ifndef WF_CORE_REFLECTION_H
#define WF_CORE_REFLECTION_H

#include <weft/weft.h>

/* Serve the reflection of @node from now on.  -EEXIST, -ENOMEM: recorded.  Threads: any. */
int wf_reflection_serve(struct weft_node *node);

#endif
