/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A protobuf-c service behind a served call: unpack, invoke, pack the reply.
 *
 * Threads: owner for add; the closure of a call may be called from any thread.
 */
#ifndef WF_SERVICE_H
#define WF_SERVICE_H

#include <protobuf-c/protobuf-c.h>
#include "rpc/served.h"

struct wf_pb_service {
	struct wf_service base;
	ProtobufCService *service; /* the user's */
	struct wf_list mine;       /* in a list of its owner's */
};

/* Fill @s in for @service; borrows it. */
void wf_service_init(struct wf_pb_service *s, ProtobufCService *service);

/* Keep the request message until the reply, not only until the handler returns. */
void wf_service_defer(struct wf_served *served);

#endif
