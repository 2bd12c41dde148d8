/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stub: a service of protobuf-c whose methods are calls of one peer.
 *
 * Threads: any.
 */
#ifndef WF_CORE_STUB_H
#define WF_CORE_STUB_H

#include <weft/weft.h>

struct weft_stub {
	ProtobufCService service; /* what generated functions get */
	struct weft_peer *peer;
};

/* -ENOMEM: recorded. */
int wf_stub_open(struct weft_peer *peer, const ProtobufCServiceDescriptor *descriptor,
		 struct weft_stub **stub);
void wf_stub_close(struct weft_stub *stub);

/* A call of @stub's service, made when a method of *@service is invoked.  Recorded. */
int wf_stub_call(struct weft_stub *stub, const struct weft_call_options *options,
		 ProtobufCService **service, struct weft_op **op);

#endif
