/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The services of a node, found by name.
 *
 * Services are added while calls come in, and none goes before the node does.
 *
 * Threads: any, but where a comment says otherwise.
 */
#ifndef WF_SERVICES_H
#define WF_SERVICES_H

#include <stdatomic.h>
#include "rpc/limit.h"

struct wf_server_call;
struct wf_stream;

/* A service, as this floor sees it: a name, and callbacks for its calls. */
struct wf_service {
	struct wf_service *next;
	const char *name;
	size_t name_bytes; /* set by wf_services_add */
	uint64_t message_bytes_max; /* limit of a request, or of each message of a stream */
	struct wf_limit limit;
	/* Returns the method's number; -ENOENT: there is none of that name. */
	int (*find)(struct wf_service *service, const char *method, size_t bytes);
	/* Returns the name of a method that was found. */
	const char *(*method_name)(const struct wf_service *service, int method);
	/*
	 * Handle a call whose request is whole.  Runs as a notice, outside the library's own
	 * work.
	 */
	void (*handle)(struct wf_service *service, int method, struct wf_server_call *served,
		       const uint8_t *request, size_t bytes);
	/* Returns whether the method has a stream.  NULL: no method has. */
	bool (*streams)(const struct wf_service *service, int method);
	/*
	 * Make the stream of a call, all zero but for members that its owner sets.  NULL: no
	 * memory.
	 */
	struct wf_stream *(*open)(struct wf_service *service, int method,
				  struct wf_server_call *served);
	/* Give a call with its stream to the handler.  Runs as a notice. */
	void (*begin)(struct wf_service *service, int method, struct wf_server_call *served);
};

/* The services of a node, for all workers. */
struct wf_services {
	_Atomic(struct wf_service *) first; /* grows at the head: any thread may add */
	struct wf_limits limits;
	atomic_bool forgot; /* see reply_cache.h */
};

/* Returns the service of that name; NULL: there is none. */
struct wf_service *wf_services_find(const struct wf_services *services, const char *name,
				    size_t bytes);

/* Serve @service from now on; borrows it.  -EEXIST.  Threads: any, one at a time. */
int wf_services_add(struct wf_services *services, struct wf_service *service);

#endif
