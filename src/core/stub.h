/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stub: a service of protobuf-c whose methods are calls of one peer.
 *
 * Threads: any.
 */
#ifndef WF_CORE_STUB_H
#define WF_CORE_STUB_H

#include <weft/weft.h>

struct weft_stub {
	ProtobufCService service; /* passed to generated functions */
	struct weft_peer *peer;
};

/* Open a stub for the service @descriptor of @peer.  -ENOMEM: recorded. */
int wf_stub_open(struct weft_peer *peer, const ProtobufCServiceDescriptor *descriptor,
		 struct weft_stub **stub);
void wf_stub_close(struct weft_stub *stub);

/* Open a call of @stub, made when a method of *@service is invoked.  Failures are recorded. */
int wf_stub_call(struct weft_stub *stub, const struct weft_call_options *options,
		 ProtobufCService **service, struct weft_op **op);

#endif
