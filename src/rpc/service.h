/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A protobuf-c service behind a served call: unpack, invoke, pack the reply.
 *
 * Threads: owner for add; the closure of a call may be called from any thread.
 */
#ifndef WF_SERVICE_H
#define WF_SERVICE_H

#include <protobuf-c/protobuf-c.h>
#include "rpc/server_call.h"

struct weft_stream;

/* The handler of a method with a stream. */
struct wf_stream_handler {
	void (*handle)(struct weft_stream *stream, void *arg); /* NULL: the method has no stream */
	void *arg;
};

struct wf_service_pb {
	struct wf_service base;
	struct wf_stream_handler *handlers; /* by method, allocated; NULL: no streams */
	ProtobufCService *service; /* service of the user */
	struct wf_list mine;       /* in a list of the owner */
};

/* Returns the method of that name; NULL: there is none. */
const ProtobufCMethodDescriptor *wf_service_method(const ProtobufCServiceDescriptor *service,
						   const char *name, size_t bytes);

/* Set @s up, all zero, for @service, which is borrowed; with no limits. */
void wf_service_init(struct wf_service_pb *s, ProtobufCService *service);
void wf_service_fini(struct wf_service_pb *s);

/* Keep the request message until the reply, not only until the handler returns. */
void wf_service_defer(struct wf_server_call *served);

#endif
