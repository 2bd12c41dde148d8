/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Publish: windows that peers find by a name, through the service of windows.proto.
 */
#ifndef WF_CORE_PUBLISH_H
#define WF_CORE_PUBLISH_H

#include <stdatomic.h>
#include <weft/weft.h>
#include "util/list.h"

/* Windows that a node has published. */
struct wf_publish {
	struct wf_list names; /* under the node's lock */
	atomic_bool serves;   /* the service is served, or about to be */
};

/* Publish @window.  -EEXIST, -ENOMEM: recorded.  Threads: any. */
int wf_publish_add(struct weft_window *window, const void *key, size_t key_bytes);

/* Forget the names of @window, which closes; NULL: of all windows.  Threads: any. */
void wf_publish_forget(struct weft_node *node, const struct weft_window *window);

/* Ask @peer for a window until it is published.  Failures are recorded.  Threads: any, callback. */
int wf_publish_find(struct weft_peer *peer, const void *key, size_t key_bytes,
		    const struct weft_op_options *options, struct weft_op **op);

/* Import the window that @op has found.  -EINVAL and those of wf_rma_import(): recorded. */
int wf_publish_found(const struct weft_op *op, struct weft_remote **remote);

#endif
