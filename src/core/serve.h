/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serve: the services of a node.
 */
#ifndef WF_CORE_SERVE_H
#define WF_CORE_SERVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <weft/weft.h>
#include "rpc/service.h"

/* Services that a node serves. */
struct wf_serve {
	struct wf_list all;       /* struct wf_service_pb; under the node's lock */
	pthread_mutex_t own_lock; /* held while a service of the library's own is added */
};

/* Serve @service; @options are of this version.  -EEXIST, -EINVAL, -ENOENT, -ENOMEM: recorded. */
int wf_serve_add(struct weft_node *node, ProtobufCService *service,
		 const struct weft_serve_options *options);

/*
 * Serve @service, the library's own and of every node, unless *@served says that @node serves it.
 * @options NULL: none.  -ENOMEM: recorded.  Threads: any.
 */
int wf_serve_own(struct weft_node *node, ProtobufCService *service,
		 const struct weft_serve_options *options, atomic_bool *served);

/* Free @service, which is served no more, as the node has closed. */
void wf_serve_forget(struct wf_service_pb *service);

#endif
