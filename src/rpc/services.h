/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The services of a node, found by name.
 *
 * Services are added while calls come in, and none goes before the node does.
 *
 * Threads: any, but for what says otherwise.
 */
#ifndef WF_SERVICES_H
#define WF_SERVICES_H

#include <stdatomic.h>
#include "rpc/limit.h"

struct wf_served;
struct wf_stream;

/* A service, as this floor sees it: a name and what to do with its calls. */
struct wf_service {
	struct wf_service *next;
	const char *name;
	size_t name_bytes; /* set by wf_services_add */
	uint64_t message_bytes_max; /* of a request, or of each message of a stream */
	struct wf_limit limit;
	/* The method's number; -ENOENT: there is none of that name. */
	int (*find)(struct wf_service *service, const char *method, size_t bytes);
	/* The name of a method that was found. */
	const char *(*method_name)(const struct wf_service *service, int method);
	/* The request is whole.  Runs as a notice, outside the library's own work. */
	void (*handle)(struct wf_service *service, int method, struct wf_served *served,
		       const uint8_t *request, size_t bytes);
	/* Has the method a stream?  NULL: none has.  Then one is made, all zero but for what its
	 * owner sets (NULL: no memory), and given to the handler, as a notice, too.
	 */
	bool (*streams)(const struct wf_service *service, int method);
	struct wf_stream *(*open)(struct wf_service *service, int method, struct wf_served *served);
	void (*begin)(struct wf_service *service, int method, struct wf_served *served);
};

/* What a node serves, on whichever worker. */
struct wf_services {
	_Atomic(struct wf_service *) first; /* grows at its head, so that any thread may add */
	struct wf_limits limits;
	atomic_bool forgot; /* see replies.h */
};

/* The one of that name; NULL: there is none. */
struct wf_service *wf_services_find(const struct wf_services *services, const char *name,
				    size_t bytes);

/* Serve @service, from now on: borrows it.  -EEXIST.  Threads: any, one at a time. */
int wf_services_add(struct wf_services *services, struct wf_service *service);

#endif
